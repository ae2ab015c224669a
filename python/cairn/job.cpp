#include "job.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "cairn/job.h"

namespace cairn_python {

namespace {

// The interpreter goes on while this process waits for other ranks.
template <class Call>
void without_lock(Call call) {
  CairnStatus status;
  {
    nb::gil_scoped_release release;
    status = call();
  }
  check(status);
}

nb::dict group(const std::string& name) {
  CairnGroup group{sizeof(CairnGroup)};
  check(cairn_job_group(name.c_str(), &group));
  nb::dict made;
  made["rank"] = group.rank, made["size"] = group.size;
  made["local_rank"] = group.local_rank, made["local_size"] = group.local_size;
  made["ranks"] = std::vector<int32_t>(group.ranks, group.ranks + group.size);
  return made;
}

std::string describe() {
  char* text = nullptr;
  check(cairn_job_describe(&text));
  std::string copy = text;
  cairn_free_text(text);
  return copy;
}

/// "train.py:41", of the innermost frame that is none of this package.
std::string caller() {
  static const auto own = nb::cast<std::string>(nb::module_::import_("os.path").attr("dirname")(
                              nb::module_::import_("cairn").attr("__file__"))) +
                          "/";
  auto frame = nb::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame.is_valid()) {
    auto* const here = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(here)));
    const char* text = PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename);
    if (!text) PyErr_Clear();
    const std::string file = text ? text : "?";
    if (!file.starts_with(own))
      return file.substr(file.rfind('/') + 1) + ":" + std::to_string(PyFrame_GetLineNumber(here));
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(here)));
  }
  return "";
}

}  // namespace

CallerPlace::CallerPlace(bool wanted) : set_(wanted && cairn_job_joined()) {
  if (set_) check(cairn_job_set_place(caller().c_str()));
}
CallerPlace::~CallerPlace() {
  if (set_) cairn_job_set_place(nullptr);
}

void add_job(nb::module_& module) {
  module.def("_job_join",
             [](const std::string& options) { without_lock([&] { return cairn_job_join(options.c_str()); }); });
  module.def("_job_leave", [] { without_lock(cairn_job_leave); });
  module.def("_job_joined", [] { return cairn_job_joined() != 0; });
  module.def("_job_group", &group);
  module.def("_job_group_create", [](const std::string& name, const std::vector<int32_t>& ranks) {
    const CallerPlace place(true);
    without_lock([&] { return cairn_job_group_create(name.c_str(), ranks.data(), ranks.size()); });
  });
  module.def("_job_group_destroy", [](const std::string& name) { check(cairn_job_group_destroy(name.c_str())); });
  module.def("_job_set_fusion", [](const std::string& group, const std::string& strategy) {
    check(cairn_job_set_fusion(group.c_str(), strategy.c_str()));
  });
  module.def("_job_set_timeout", [](double seconds) { check(cairn_job_set_timeout(seconds)); });
  module.def("_job_describe", &describe);
}

}  // namespace cairn_python
