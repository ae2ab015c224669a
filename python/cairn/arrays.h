// Arrays, limits and errors between Python and the C interface.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <pthread.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cairn/cairn.h"
#include "numpy_arrays.h"

namespace cairn_python {

namespace nb = nanobind;

using Array = nb::ndarray<nb::ro, nb::device::cpu>;

inline constexpr const char* kKinds[] = {"ok", "invalid_argument", "invalid_model", "unsupported", "not_found",
                                         "io", "out_of_memory",    "cancelled",     "internal"};

/// cairn.Error; lives as long as the module.
inline PyObject* error_type = nullptr;

[[noreturn]] inline void raise_error(const std::string& kind, const std::string& where, const std::string& message,
                                     const std::string& report = {}) {
  nb::object text = nb::str((where.empty() ? message : where + ": " + message).c_str());
  nb::object error = nb::borrow(error_type)(text);
  nb::setattr(error, "kind", nb::str(kind.c_str()));
  nb::setattr(error, "where", nb::str(where.c_str()));
  nb::setattr(error, "report",
              report.empty() ? nb::none() : nb::module_::import_("json").attr("loads")(report)["problems"]);
  PyErr_SetObject(error_type, error.ptr());
  throw nb::python_error();
}

inline void check(CairnStatus status) {
  if (status == CAIRN_OK) return;
  CairnError error{};
  error.struct_size = sizeof error;
  cairn_last_error(&error);
  raise_error(status <= CAIRN_INTERNAL ? kKinds[status] : "internal", error.where, error.message, error.report);
}

class Memory;
inline Memory& memory();

/// Memory of outputs that were dropped, kept for later ones of about that size: fresh pages cost more than many models.
class Memory {
 public:
  /// The child of a fork finds the list whole and the mutex free.
  Memory() {
    pthread_atfork([] { memory().mutex_.lock(); }, [] { memory().mutex_.unlock(); }, [] { memory().mutex_.unlock(); });
  }
  /// At least so many bytes; `bytes` becomes how many there are.
  void* take(size_t& bytes) {
    {
      std::lock_guard lock(mutex_);
      auto found = by_size_.lower_bound(bytes);
      if (found != by_size_.end() && found->first <= bytes + bytes / 4) {
        bytes = found->first;
        return forget(found->second);
      }
    }
    return std::aligned_alloc(64, bytes);
  }
  void give(void* data, size_t bytes) {
    std::lock_guard lock(mutex_);
    idle_.push_back({data, bytes});
    by_size_.emplace(bytes, std::prev(idle_.end()));
    idle_bytes_ += bytes;
    while (idle_bytes_ > kMost) std::free(forget(idle_.begin()));
  }

 private:
  struct Idle {
    void* data;
    size_t bytes;
  };
  using Place = std::list<Idle>::iterator;

  void* forget(Place place) {
    auto [entry, end] = by_size_.equal_range(place->bytes);
    while (entry->second != place) ++entry;
    by_size_.erase(entry);
    void* data = place->data;
    idle_bytes_ -= place->bytes;
    idle_.erase(place);
    return data;
  }

  static constexpr size_t kMost = size_t{256} << 20;
  std::mutex mutex_;
  std::list<Idle> idle_;  // dropped longest ago first
  std::multimap<size_t, Place> by_size_;
  size_t idle_bytes_ = 0;
};

inline Memory& memory() {
  static Memory* instance = new Memory;  // arrays may outlive everything else at exit
  return *instance;
}

struct Block {
  void* data = nullptr;
  size_t bytes = 0;
  ~Block() {
    if (data) memory().give(data, bytes);
  }
};

inline bool is_bfloat(CairnDType dtype) { return dtype.code == CAIRN_BFLOAT && dtype.bits == 16; }

struct Output {
  std::unique_ptr<Block> block;
  CairnDType dtype{};
  std::vector<int64_t> shape;

  nb::object array() {
    if (dtype.code == CAIRN_TEXT) return texts();
    CairnDType type = dtype;
    if (is_bfloat(dtype)) type = {CAIRN_UINT, 16, 1};  // NumPy has no such type of its own
    void* data = block->data;
    nb::capsule owner(block.release(), [](void* block) noexcept { delete static_cast<Block*>(block); });
    nb::object made =
        Numpy::get().view({data, {1, 0}, static_cast<int32_t>(shape.size()), type, shape.data(), nullptr, 0}, owner);
    if (!made) {
      const std::vector<size_t> sizes(shape.begin(), shape.end());
      made = nb::cast(nb::ndarray<nb::numpy>(data, sizes.size(), sizes.data(), owner, nullptr,
                                             nb::dlpack::dtype{type.code, type.bits, 1}),
                      nb::rv_policy::reference);
    }
    if (is_bfloat(dtype)) made = made.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
    return made;
  }

 private:
  /// An array of bytes objects, as TensorFlow gives them.
  nb::object texts() const {
    size_t count = 1;
    for (int64_t dim : shape) count *= static_cast<size_t>(dim);
    nb::list dims;
    for (int64_t dim : shape) dims.append(dim);
    nb::module_ numpy = nb::module_::import_("numpy");
    nb::object made = numpy.attr("empty")(count, nb::arg("dtype") = "object");
    const auto* text = static_cast<const CairnText*>(block->data);
    for (size_t i = 0; i < count; ++i) made[i] = nb::bytes(text[i].data, text[i].size);
    return made.attr("reshape")(nb::tuple(dims));
  }
};

/// Called without the interpreter lock.
inline void* allocate_output(void* user, size_t index, CairnDType dtype, int32_t ndim, const int64_t* shape) {
  auto& outputs = *static_cast<std::vector<Output>*>(user);
  if (index >= outputs.size()) outputs.resize(index + 1);
  Output& output = outputs[index];
  size_t count = 1;
  for (int32_t axis = 0; axis < ndim; ++axis) count *= static_cast<size_t>(shape[axis]);
  size_t bytes = ((count * dtype.bits + 7) / 8 + 63) / 64 * 64;
  output.dtype = dtype;
  output.shape.assign(shape, shape + ndim);
  output.block = std::make_unique<Block>();
  output.block->bytes = bytes ? bytes : 64;
  output.block->data = memory().take(output.block->bytes);
  return output.block->data;
}

/// Python arrays as the C interface takes them, kept alive.
class Inputs {
 public:
  /// `name` is for messages; `like` makes an array of what is none (a list, a number).
  void add(nb::handle value, const std::string& name, const std::string& like) {
    nb::object object = nb::borrow(value);
    if (const Numpy& numpy = Numpy::get(); numpy.is_array(value.ptr())) {
      CairnTensor tensor{};
      Strides strides;
      if (numpy.read(value.ptr(), tensor, strides.data(), std::ssize(strides))) {
        if (tensor.strides) tensor.strides = strides_.emplace_back(strides).data();
        tensors_.push_back(tensor);
        kept_.push_back(std::move(object));
        return;
      }
    }
    bool bfloat = false;
    if (is_text(object, like)) return add_texts(object, name);
    if (!nb::ndarray_check(object)) {
      try {
        object = nb::module_::import_("numpy").attr("asarray")(object, nb::arg("dtype") = like);
      } catch (nb::python_error& error) {
        raise_error("invalid_argument", name, std::string("is no array: ") + error.what());
      }
    }
    if (nb::hasattr(object, "dtype") && nb::hasattr(object, "view") &&
        nb::cast<std::string>(nb::str(nb::object(object.attr("dtype")))) == "bfloat16") {
      bfloat = true;
      object = object.attr("view")("uint16");
    }
    Array array;
    if (!nb::try_cast(object, array))
      raise_error("invalid_argument", name, "is no array of numbers in the CPU's memory");
    tensors_.push_back({const_cast<void*>(array.data()),
                        {1, 0},
                        static_cast<int32_t>(array.ndim()),
                        {array.dtype().code, array.dtype().bits, array.dtype().lanes},
                        const_cast<int64_t*>(array.shape_ptr()),
                        const_cast<int64_t*>(array.stride_ptr()),
                        0});
    if (bfloat) tensors_.back().dtype = {CAIRN_BFLOAT, 16, 1};
    arrays_.push_back(std::move(array));
  }
  const CairnTensor* data() const { return tensors_.data(); }
  size_t size() const { return tensors_.size(); }

 private:
  using Strides = std::array<int64_t, 32>;
  struct Texts {
    std::vector<std::string> own;
    std::vector<CairnText> shown;
    std::vector<int64_t> shape;
  };

  static bool is_text(const nb::object& object, const std::string& like) {
    if (!nb::hasattr(object, "dtype") || !nb::hasattr(object.attr("dtype"), "kind")) return like == "str";
    const std::string kind = nb::cast<std::string>(nb::str(nb::object(object.attr("dtype").attr("kind"))));
    return kind == "S" || kind == "U" || kind == "O";
  }

  /// bytes as they are, str as UTF-8.
  void add_texts(const nb::object& object, const std::string& name) {
    nb::object array = nb::module_::import_("numpy").attr("asarray")(object, nb::arg("dtype") = "object");
    auto texts = std::make_unique<Texts>();
    for (nb::handle dim : array.attr("shape")) texts->shape.push_back(nb::cast<int64_t>(dim));
    for (nb::handle element : array.attr("ravel")()) {
      if (nb::isinstance<nb::bytes>(element)) {
        auto bytes = nb::borrow<nb::bytes>(element);
        texts->own.emplace_back(bytes.c_str(), bytes.size());
      } else if (nb::isinstance<nb::str>(element)) {
        texts->own.push_back(nb::cast<std::string>(element));
      } else {
        raise_error("invalid_argument", name,
                    "has an element that is neither bytes nor str: " + nb::cast<std::string>(nb::repr(element)));
      }
    }
    for (const std::string& text : texts->own) texts->shown.push_back({text.data(), text.size()});
    tensors_.push_back({texts->shown.data(),
                        {1, 0},
                        static_cast<int32_t>(texts->shape.size()),
                        {CAIRN_TEXT, 8 * sizeof(CairnText), 1},
                        texts->shape.data(),
                        nullptr,
                        0});
    texts_.push_back(std::move(texts));
  }

  std::vector<nb::object> kept_;
  std::deque<Strides> strides_;
  std::vector<Array> arrays_;
  std::vector<std::unique_ptr<Texts>> texts_;
  std::vector<CairnTensor> tensors_;
};

/// While it lives, calls of this thread end after so many seconds (0: any time), and when Python has a signal to handle:
/// Ctrl-C raises KeyboardInterrupt. To be made where the interpreter's lock is held.
class Limit {
 public:
  explicit Limit(double max_seconds) { check(cairn_limit_begin(max_seconds, nullptr, signalled, nullptr)); }
  ~Limit() { cairn_limit_end(); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

  /// Instead of check(), for what was done under the limit.
  static void check_status(CairnStatus status) {
    if (PyErr_Occurred()) throw nb::python_error();
    check(status);
  }

 private:
  static int32_t signalled(void*) {
    nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
  }
};

}  // namespace cairn_python
