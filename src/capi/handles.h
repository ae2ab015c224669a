// The handles of the C interface, and the one place where exceptions are converted to statuses.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <new>
#include <string>

#include "cairn/cairn.h"
#include "model/open.h"
#include "runtime/model.h"
#include "support/fork.h"

struct CairnModule {
  cairn::Module module;
  cairn::OmOrigin origin;
};

struct CairnModel {
  std::shared_ptr<const cairn::Model> model;
  struct Port {
    std::string name;
    CairnDType dtype;
    bool ranked;
    std::vector<int64_t> dims;
  };
  std::vector<Port> inputs, outputs, variables;
  std::vector<size_t> variable_states, random_states;  // indices in model->state()
  cairn::RunMutex mutex;
  std::map<size_t, cairn::Tensor> acquired;  // elements of acquired variables, by index
};

struct CairnList {
  cairn::HostValue value;
};

struct CairnCancel {
  std::atomic<bool> flag{false};
};

namespace cairn::capi {

/// Records the error for cairn_last_error() of this thread; returns the status.
CairnStatus remember(CairnStatus status, std::string where, std::string message, std::string report = {});
CairnStatus remember_current_exception();

/// Runs `body` and converts exceptions to statuses.
template <class Body>
CairnStatus guarded(Body&& body) noexcept {
  try {
    body();
    return CAIRN_OK;
  } catch (...) {
    return remember_current_exception();
  }
}

/// Throws Error invalid_argument when a pointer that must be given is not.
inline void require(const void* pointer, const char* name) {
  if (!pointer) fail(ErrorKind::invalid_argument, name, "is NULL");
}

/// The caller's struct converted to this library's version: members that an older version lacks are zero.
template <class Struct>
Struct checked(const Struct* given, const char* name) {
  Struct known{};
  if (!given) return known;
  if (given->struct_size < sizeof(uint32_t) || given->struct_size > 4096)
    fail(ErrorKind::invalid_argument, name, "struct_size is {}, set it to sizeof the struct", given->struct_size);
  std::memcpy(&known, given, std::min<size_t>(given->struct_size, sizeof known));
  return known;
}

/// Copies to the caller's struct as many members as its version has.
template <class Struct>
void hand_out(const Struct& value, Struct* given, const char* name) {
  require(given, name);
  uint32_t size = given->struct_size;
  if (size < sizeof(uint32_t) || size > 4096)
    fail(ErrorKind::invalid_argument, name, "struct_size is {}, set it to sizeof the struct", size);
  std::memcpy(given, &value, std::min<size_t>(size, sizeof value));
  given->struct_size = size;
}

char* copy_text(const std::string& text);

CairnDType to_c(DType dtype);
/// Throws Error unsupported.
DType from_c(CairnDType dtype);

/// The elements of a text tensor as a Tensor. `index` is used in messages. Throws Error invalid_argument.
Tensor texts_from_c(const CairnTensor& tensor, size_t index);

/// The caller's tensors as row-major elements: in place if they are row-major, else copied.
class Inputs {
 public:
  /// Throws Error invalid_argument, unsupported.
  Inputs(const CairnTensor* tensors, size_t count);
  ~Inputs();
  Inputs(const Inputs&) = delete;
  std::span<const TensorRef> refs() const { return refs_; }

 private:
  std::vector<TensorRef> refs_;
  std::vector<Tensor> copies_;
};

/// Allocates outputs through the caller's function.
class Outputs {
 public:
  Outputs(CairnAllocate allocate, void* user);
  void* operator()(size_t index, DType dtype, std::span<const int64_t> dims);
  /// To be called when all outputs are written: passes text outputs to the caller, which stay valid until the thread's
  /// next run.
  void hand_over_texts();

 private:
  struct Texts {
    Tensor own;
    CairnText* callers;
  };

  CairnAllocate allocate_;
  void* user_;
  std::vector<Texts> texts_;
};

ModelOptions model_options(const CairnModelOptions* given);
/// Applies the options' precision mode, after the passes that fuse nodes, since a fused node counts as one operator.
void apply_precision(const CairnModelOptions* given, Module& module);

}  // namespace cairn::capi
