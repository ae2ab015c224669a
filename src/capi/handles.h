// What the C interface's handles are, and the one place where exceptions become statuses.
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
  std::vector<size_t> variable_states, random_states;  // which of model->state()
  cairn::RunMutex mutex;
  std::map<size_t, cairn::Tensor> acquired;  // by variable
};

struct CairnList {
  cairn::HostValue value;
};

struct CairnCancel {
  std::atomic<bool> flag{false};
};

namespace cairn::capi {

/// Keeps the failure for cairn_last_error() of this thread.
CairnStatus remember(CairnStatus status, std::string where, std::string message, std::string report = {});
CairnStatus remember_current_exception();

/// Runs `body`; what it throws becomes a status.
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

/// The caller's struct in the size that this library knows: what its older version lacks is zero.
template <class Struct>
Struct checked(const Struct* given, const char* name) {
  Struct known{};
  if (!given) return known;
  if (given->struct_size < sizeof(uint32_t) || given->struct_size > 4096)
    fail(ErrorKind::invalid_argument, name, "struct_size is {}, set it to sizeof the struct", given->struct_size);
  std::memcpy(&known, given, std::min<size_t>(given->struct_size, sizeof known));
  return known;
}

/// Fills as much of the caller's struct as it has.
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

/// What a tensor of texts holds, as our own. `index` is for messages. Throws Error invalid_argument.
Tensor texts_from_c(const CairnTensor& tensor, size_t index);

/// The callers' tensors as row-major elements: in place where they lie so, else copied.
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

/// Memory for outputs through the caller's function.
class Outputs {
 public:
  Outputs(CairnAllocate allocate, void* user);
  void* operator()(size_t index, DType dtype, std::span<const int64_t> dims);
  /// To be called when all outputs are written: text is shown to the caller and kept until the thread's next run.
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
/// Types as the options' precision mode has them, after the passes that fuse: a fused node is one operator.
void apply_precision(const CairnModelOptions* given, Module& module);

}  // namespace cairn::capi
