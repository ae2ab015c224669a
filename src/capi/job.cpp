// Jobs of several processes.
#include "cairn/job.h"

#include "capi/handles.h"
#include "comm/job.h"

using namespace cairn;

CairnStatus cairn_job_join(const char* options) {
  return capi::guarded([&] { comm::join(options ? options : ""); });
}

CairnStatus cairn_job_leave() { return capi::guarded(comm::leave); }

int32_t cairn_job_joined() { return comm::joined(); }

CairnStatus cairn_job_group(const char* name, CairnGroup* group) {
  return capi::guarded([&] {
    capi::require(name, "name");
    thread_local comm::GroupView view;  // whose ranks the caller reads
    view = comm::group(name);
    capi::hand_out(CairnGroup{sizeof(CairnGroup), view.rank, static_cast<int32_t>(view.ranks.size()), view.local_rank,
                              view.local_size, view.ranks.data()},
                   group, "group");
  });
}

CairnStatus cairn_job_group_create(const char* name, const int32_t* ranks, size_t count) {
  return capi::guarded([&] {
    capi::require(name, "name");
    if (count) capi::require(ranks, "ranks");
    comm::create_group(name, {ranks, ranks + count});
  });
}

CairnStatus cairn_job_group_destroy(const char* name) {
  return capi::guarded([&] {
    capi::require(name, "name");
    comm::destroy_group(name);
  });
}

CairnStatus cairn_job_set_fusion(const char* group, const char* strategy) {
  return capi::guarded([&] {
    capi::require(group, "group");
    capi::require(strategy, "strategy");
    comm::set_fusion(group, strategy);
  });
}

CairnStatus cairn_job_set_place(const char* where) {
  return capi::guarded([&] {
    thread_local std::string text;
    thread_local std::optional<comm::Place> place;
    place.reset();
    if (where) place.emplace(text = where);
  });
}

CairnStatus cairn_job_set_timeout(double seconds) {
  return capi::guarded([&] { comm::set_timeout(seconds); });
}

CairnStatus cairn_job_describe(char** description) {
  return capi::guarded([&] {
    capi::require(description, "description");
    *description = capi::copy_text(comm::describe());
  });
}
