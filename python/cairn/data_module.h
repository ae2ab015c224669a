// What the files of the module _data share: handles of the library's objects as Python holds them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "data/source.h"
#include "data/transforms.h"
#include "data_arrays.h"

namespace cairn_python {

using namespace cairn::data;

using Names = std::vector<std::string>;

/// A callable that may be let go of in any thread.
class Callback {
 public:
  explicit Callback(nb::object function)
      : function_(new nb::object(std::move(function)), [](nb::object* held) {
          if (!Py_IsInitialized()) return;
          nb::gil_scoped_acquire lock;
          delete held;
        }) {}
  /// With the lock.
  template <class... Args>
  nb::object operator()(Args&&... args) const {
    return (*function_)(std::forward<Args>(args)...);
  }

 private:
  std::shared_ptr<nb::object> function_;
};

/// A shared node as Python holds it: nanobind knows no const.
struct Pipeline {
  NodePtr node;
};
struct SamplerHandle {
  std::shared_ptr<Sampler> sampler;
};
struct Transform {
  FunctionPtr function;
};

inline Pipeline made(NodePtr node) { return {std::move(node)}; }

template <class F>
auto unlocked(F&& call) {
  nb::gil_scoped_release release;
  return call();
}

inline std::shared_ptr<const Source> source_of(const Pipeline& pipeline) {
  auto source = std::dynamic_pointer_cast<const Source>(pipeline.node);
  if (!source) throw nb::type_error("no source");
  return source;
}

void add_samplers(nb::module_& module);
void add_sources(nb::module_& module);
void add_writers(nb::module_& module);

}  // namespace cairn_python
