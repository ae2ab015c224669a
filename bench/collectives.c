/* A rank of bench/collectives.py in C: Open MPI with -DOPEN_MPI, otherwise Cairn. Reads "BYTES COUNT" lines from the pipe FOLDER/RANK
 * and makes COUNT all-reduces of so many bytes in place after a barrier; rank 0 writes the seconds of one to FOLDER/answers. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static float* x;

#ifdef OPEN_MPI
#include <mpi.h>

static int join(void) {
  int rank;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
static void leave(void) { MPI_Finalize(); }
static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void prepare(int64_t count) { (void)count; }
static void all_reduce(int64_t count) {
  MPI_Allreduce(MPI_IN_PLACE, x, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
#else
#include "cairn/job.h"

static const CairnOp* op;
static CairnTensor input, output;
static int64_t dims[1];

static void check(CairnStatus status) {
  CairnError error;
  if (status == CAIRN_OK) return;
  error.struct_size = sizeof error;
  cairn_last_error(&error);
  fprintf(stderr, "%s: %s\n", error.where, error.message);
  exit(1);
}
static int64_t size_of_world(int* rank) {
  CairnGroup world;
  world.struct_size = sizeof world;
  check(cairn_job_group("world", &world));
  *rank = world.rank;
  return world.size;
}
static int join(void) {
  int rank;
  check(cairn_job_join(NULL));
  size_of_world(&rank);
  return rank;
}
static void leave(void) { check(cairn_job_leave()); }
static void barrier(void) {
  const CairnOperator* found;
  const CairnOp* made;
  check(cairn_op_find("barrier", &found));
  check(cairn_op_prepare(found, NULL, 0, NULL, 0, NULL, 0, NULL, &made));
  check(cairn_op_run(made, NULL, 0, NULL, 0, NULL, NULL, NULL));
  cairn_op_free(made);
}
static void prepare(int64_t count) {
  const CairnOperator* found;
  CairnAttribute ranks = {"ranks", CAIRN_ATTRIBUTE_INTEGER, {0}};
  CairnTensor tensor = {NULL, {1, 0}, 1, {CAIRN_FLOAT, 32, 1}, dims, NULL, 0};
  int rank;
  ranks.value.integer = size_of_world(&rank);
  dims[0] = count;
  input = output = tensor;
  input.data = output.data = x;
  if (op) cairn_op_free(op);
  check(cairn_op_find("all_reduce", &found));
  check(cairn_op_prepare(found, &ranks, 1, &input, 1, NULL, 0, NULL, &op));
}
static void all_reduce(int64_t count) {
  (void)count;
  check(cairn_op_run(op, &input, 1, &output, 1, NULL, NULL, NULL));
}
#endif

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  const int rank = join();
  char path[4096];
  FILE *orders, *answers = NULL;
  long long bytes, count, made = 0;
  if (argc != 2) return 2;
  snprintf(path, sizeof path, "%s/%d", argv[1], rank);
  orders = fopen(path, "r");
  snprintf(path, sizeof path, "%s/answers", argv[1]);
  if (rank == 0) answers = fopen(path, "w");
  while (fscanf(orders, "%lld %lld", &bytes, &count) == 2) {
    double begin;
    if (bytes != made) {
      free(x);
      x = malloc((size_t)bytes);
      memset(x, 0, (size_t)bytes);
      prepare(bytes / 4);
      made = bytes;
      all_reduce(bytes / 4);
    }
    barrier();
    begin = now();
    for (long long i = 0; i < count; ++i) all_reduce(bytes / 4);
    if (answers) fprintf(answers, "%.9g\n", (now() - begin) / (double)count), fflush(answers);
  }
  leave();
  return 0;
}
