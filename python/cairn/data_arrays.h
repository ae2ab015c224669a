// Rows between Python and the data library. Workers never touch the interpreter: what they let go of waits until a call of
// Python's takes it away.
#pragma once

#include <nanobind/nanobind.h>

#include <pthread.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/array.h"
#include "numpy_arrays.h"

namespace cairn_python {

namespace nb = nanobind;
using cairn::data::Array;
using cairn::data::Kind;
using cairn::data::Row;

/// Objects whose last use ended in a thread without the interpreter's lock.
class Dropped {
 public:
  static Dropped& get() {
    static Dropped* instance = new Dropped;
    return *instance;
  }
  void add(Py_buffer* buffer) {
    std::lock_guard lock(mutex_);
    buffers_.push_back(buffer);
  }
  /// With the lock.
  void release() {
    std::vector<Py_buffer*> taken;
    {
      std::lock_guard lock(mutex_);
      taken.swap(buffers_);
    }
    for (Py_buffer* buffer : taken) {
      PyBuffer_Release(buffer);
      delete buffer;
    }
  }

 private:
  Dropped() {  // the child of a fork finds the mutex free
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); }, [] { get().mutex_.unlock(); });
  }
  std::mutex mutex_;
  std::vector<Py_buffer*> buffers_;
};

inline CairnDType dtype_of(Kind kind) {
  constexpr CairnDType kTypes[] = {{CAIRN_BOOL, 8, 1},   {CAIRN_UINT, 8, 1},   {CAIRN_INT, 8, 1},
                                   {CAIRN_UINT, 16, 1},  {CAIRN_INT, 16, 1},   {CAIRN_UINT, 32, 1},
                                   {CAIRN_INT, 32, 1},   {CAIRN_UINT, 64, 1},  {CAIRN_INT, 64, 1},
                                   {CAIRN_FLOAT, 16, 1}, {CAIRN_FLOAT, 32, 1}, {CAIRN_FLOAT, 64, 1}};
  return kTypes[static_cast<size_t>(kind)];
}

/// An array that shares memory with an object that NumPy understands.
inline Array array_of(nb::handle object) {
  nb::module_ numpy = nb::module_::import_("numpy");
  nb::object value = nb::borrow(object);
  if (!Numpy::get().is_array(object.ptr()) && nb::hasattr(object, "asnumpy")) value = object.attr("asnumpy")();
  value = numpy.attr("asarray")(value, nb::arg("order") = "C");
  std::string kind = nb::cast<std::string>(nb::str(nb::object(value.attr("dtype").attr("kind"))));
  if (kind == "O") {
    value = numpy.attr("array")(value.attr("tolist")());
    kind = nb::cast<std::string>(nb::str(nb::object(value.attr("dtype").attr("kind"))));
    if (kind == "O") throw nb::type_error("a column must be an array of numbers or texts, not of objects");
  }
  Array array;
  if (kind == "U") {
    value = numpy.attr("char").attr("encode")(value, "utf-8");
    array.type.kind = Kind::text;
  } else if (kind == "S") {
    array.type.kind = Kind::bytes;
  } else {
    if (nb::cast<std::string>(nb::str(nb::object(value.attr("dtype").attr("byteorder")))) == ">")
      value = value.attr("astype")(value.attr("dtype").attr("newbyteorder")("="));
    array.type.kind =
        cairn::data::kind_of(nb::cast<std::string>(nb::str(nb::object(value.attr("dtype").attr("name")))));
  }
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(value.ptr(), buffer.get(), PyBUF_ND) != 0) throw nb::python_error();
  array.type.size = static_cast<uint32_t>(buffer->itemsize);
  array.shape.assign(buffer->shape, buffer->shape + buffer->ndim);
  array.data = static_cast<const std::byte*>(buffer->buf);
  array.owner = std::shared_ptr<const void>(
      buffer.release(), [](const void* held) { Dropped::get().add(static_cast<Py_buffer*>(const_cast<void*>(held))); });
  return array;
}

/// NumPy's view of an array that nobody else has, and a copy of any other.
inline nb::object numpy_of(Array array) {
  if (array.type.is_text()) {
    nb::module_ numpy = nb::module_::import_("numpy");
    nb::list shape;
    for (int64_t size : array.shape) shape.append(size);
    if (array.count() == 0)  // of which NumPy's decode makes floats
      return numpy.attr("empty")(nb::tuple(shape), array.type.kind == Kind::bytes ? "S1" : "U1");
    nb::object made = numpy.attr("ndarray")(nb::tuple(shape), ("S" + std::to_string(array.type.size)).c_str(),
                                            nb::bytes(array.view().data(), array.view().size()));
    return array.type.kind == Kind::bytes ? nb::object(made.attr("copy")())
                                          : nb::object(numpy.attr("char").attr("decode")(made, "utf-8", "replace"));
  }
  if (!array.own || array.owner.use_count() != 1) {
    Array copy = Array::make(array.type, array.shape);
    std::memcpy(copy.bytes(), array.data, array.size());
    array = std::move(copy);
  }
  CairnTensor tensor{
      array.bytes(), {1, 0}, static_cast<int32_t>(array.shape.size()), dtype_of(array.type.kind), array.shape.data(),
      nullptr,       0};
  auto* owner = new std::shared_ptr<const void>(std::move(array.owner));
  nb::capsule keeper(owner, [](void* held) noexcept { delete static_cast<std::shared_ptr<const void>*>(held); });
  nb::object made = Numpy::get().view(tensor, keeper);
  if (!made) throw nb::type_error("this release of NumPy is not understood");
  return made;
}

inline nb::tuple tuple_of(Row row) {
  nb::object made = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(row.size())));
  for (size_t i = 0; i < row.size(); ++i)
    PyTuple_SET_ITEM(made.ptr(), static_cast<Py_ssize_t>(i), numpy_of(std::move(row[i])).release().ptr());
  return nb::tuple(made);
}

inline Row row_of(nb::handle values) {
  Dropped::get().release();  // what calls without a pipeline let go of
  Row row;
  for (nb::handle value : values) row.push_back(array_of(value));
  return row;
}

}  // namespace cairn_python
