/* The C interface of Cairn for jobs of several processes, which are called ranks. The conventions are those of cairn.h.
 * Ranks exchange tensors by the operators of src/ops/collective.cpp (all_reduce, all_gather, reduce_scatter, ...), in models
 * as well as one by one (cairn_op_run). Every rank must run the same collectives of a group in the same order; a rank that
 * does not, dies or stops ends the collective on all others with an error that names it.
 */
#ifndef CAIRN_JOB_H_
#define CAIRN_JOB_H_

#include "cairn/cairn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Joins the job that the environment describes: RANK_TABLE_FILE with RANK_ID, RANK_ID and RANK_SIZE, CM_*, or OMPI_* of
 * mpirun, or what `cairn launch` sets (CAIRN_JOB). `options`: NULL, or JSON that goes before the environment: {"rank": 0,
 * "size": 4, "local_rank": 0, "local_size": 4, "table": "hccl.json", "address": "127.0.0.1:29500" (where rank 0 waits for
 * the others), "token": "...", "transport": "gloo" ("gloo", "mpi"; default "auto"), "shared_memory": true, "timeout": 60
 * (seconds that a collective waits for another rank), "connect_timeout": 120}. Without any of these the job has one rank.
 * A process that has joined already stays in its job; joins nest with leaves. */
CAIRN_API CairnStatus cairn_job_join(const char* options);
/* The last leave closes all connections, after every rank has left or the timeout has passed. */
CAIRN_API CairnStatus cairn_job_leave(void);
/* 1 between join and the last leave. */
CAIRN_API int32_t cairn_job_joined(void);

typedef struct CairnGroup {
  uint32_t struct_size;
  int32_t rank; /* of this process in the group; -1: not a member */
  int32_t size;
  int32_t local_rank; /* among the members on this host */
  int32_t local_size;
  const int32_t* ranks; /* the job's ranks of the members, in the group's order; valid until the group is destroyed */
} CairnGroup;

/* Group "world" (also called hccl_world_group and nccl_world_group) has all ranks. A group's ranks are distinct and all of
 * them create it with the same list; others may, too, and are no members. CAIRN_NOT_FOUND without that group. */
CAIRN_API CairnStatus cairn_job_group(const char* name, CairnGroup* group);
CAIRN_API CairnStatus cairn_job_group_create(const char* name, const int32_t* ranks, size_t count);
CAIRN_API CairnStatus cairn_job_group_destroy(const char* name);

/* How all_reduce nodes of a group whose attribute `fusion` is 1 are put together, for models prepared from now on. JSON:
 * {"bytes": 8388608} (at most so many a bucket), {"indices": [20, 159]} (last gradient of each bucket, as
 * set_split_strategy_by_idx), {"percents": [60, 40]} (of all bytes, as set_split_strategy_by_size) or {"none": true}. */
CAIRN_API CairnStatus cairn_job_set_fusion(const char* group, const char* strategy);

/* Where the collectives that this thread runs one by one are called from ("train.py:41"), which other ranks are told when one of
 * them fails; NULL: no longer known. Those of models tell the script line of their node. */
CAIRN_API CairnStatus cairn_job_set_place(const char* where);

/* From now on collectives of the job that this process has joined wait so many seconds for another rank. All ranks say the same. */
CAIRN_API CairnStatus cairn_job_set_timeout(double seconds);

/* JSON: rank, size, hosts, groups, transport with the reason for its choice, timeouts, and for each kind of collective its
 * calls, bytes, seconds and seconds of waiting for other ranks. */
CAIRN_API CairnStatus cairn_job_describe(char** description);

#ifdef __cplusplus
}
#endif

#endif
