// The state of models at the C interface: variables by acquire and release, random states as bytes.
#include "capi/handles.h"

using namespace cairn;
using namespace cairn::capi;

namespace {

constexpr size_t kRandomBytes = 3 * sizeof(uint64_t);  // of one random state, u64[3]

size_t state_of(const CairnModel* model, size_t index) {
  require(model, "model");
  if (index >= model->variables.size())
    fail(ErrorKind::not_found, "", "the model has no variable {}, it has {}", index, model->variables.size());
  return model->variable_states[index];
}

/// An independent copy of the variable's value.
Tensor value_of(const CairnModel* model, size_t state) {
  Tensor value = model->model->state_value(state);
  const Port& port = model->model->state()[state];
  if (!value.defined() && !port.type.is_static())
    fail(ErrorKind::not_found, port.name, "has no value yet and is {}", to_string(port.type));
  if (!value.defined()) return Tensor::zeros(port.type.dtype, port.type.shape.sizes());
  Tensor copy = Tensor::uninitialized(value.dtype(), value.dims());
  if (value.bytes()) std::memcpy(copy.mutable_data(), value.data(), value.bytes());
  return copy;
}

void require_random_size(const CairnModel* model, const void* state, size_t size) {
  require(model, "model");
  size_t expected = cairn_model_random_state_size(model);
  if (size != expected)
    fail(ErrorKind::invalid_argument, "size", "is {}, the random state has {} bytes", size, expected);
  if (size) require(state, "state");
}

}  // namespace

size_t cairn_model_variable_count(const CairnModel* model) { return model ? model->variables.size() : 0; }

CairnStatus cairn_model_variable_acquire(CairnModel* model, size_t index, CairnTensor* tensor) {
  return guarded([&] {
    size_t state = state_of(model, index);
    require(tensor, "tensor");
    const auto& port = model->variables[index];
    if (port.dtype.code == CAIRN_TEXT)
      fail(ErrorKind::unsupported, port.name, "is a variable of text, which cannot be acquired");
    std::lock_guard lock(model->mutex);
    if (model->acquired.count(index)) fail(ErrorKind::invalid_argument, port.name, "is acquired already");
    Tensor current = value_of(model, state);
    const ForkShield shield;
    Tensor& value = model->acquired[index] = std::move(current);
    *tensor = {value.mutable_data(),
               {1, 0},
               static_cast<int32_t>(value.rank()),
               port.dtype,
               const_cast<int64_t*>(value.dims().data()),
               nullptr,
               0};
  });
}

CairnStatus cairn_model_variable_release(CairnModel* model, size_t index, int32_t changed) {
  return guarded([&] {
    size_t state = state_of(model, index);
    std::lock_guard lock(model->mutex);
    auto found = model->acquired.find(index);
    if (found == model->acquired.end())
      fail(ErrorKind::invalid_argument, model->variables[index].name, "is not acquired");
    Tensor value = std::move(found->second);
    {
      const ForkShield shield;
      model->acquired.erase(found);
    }
    if (changed) model->model->set_state(state, value);
  });
}

size_t cairn_model_random_state_size(const CairnModel* model) {
  return model ? model->random_states.size() * kRandomBytes : 0;
}

CairnStatus cairn_model_random_state_get(const CairnModel* model, void* state, size_t size) {
  return guarded([&] {
    require_random_size(model, state, size);
    for (size_t i = 0; i < model->random_states.size(); ++i) {
      Tensor value = model->model->state_value(model->random_states[i]);
      CHECK(value.defined() && value.bytes() == kRandomBytes, "random state {}", i);
      std::memcpy(static_cast<char*>(state) + i * kRandomBytes, value.data(), kRandomBytes);
    }
  });
}

CairnStatus cairn_model_random_state_set(CairnModel* model, const void* state, size_t size) {
  return guarded([&] {
    require_random_size(model, state, size);
    for (size_t i = 0; i < model->random_states.size(); ++i) {
      Tensor value = Tensor::uninitialized(kU64, {3});
      std::memcpy(value.mutable_data(), static_cast<const char*>(state) + i * kRandomBytes, kRandomBytes);
      model->model->set_state(model->random_states[i], value);
    }
  });
}
