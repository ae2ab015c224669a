// NumPy's arrays without a call of Python: their fields, whose layout is part of NumPy's stable interface (1.x and 2.x), and
// the functions that make them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstring>
#include <optional>

#include "cairn/cairn.h"

namespace cairn_python {

namespace nb = nanobind;

class Numpy {
 public:
  /// Imports NumPy at the first call.
  static const Numpy& get() {
    static const Numpy* instance = new Numpy;
    return *instance;
  }

  bool is_array(PyObject* object) const { return Py_TYPE(object) == array_type_; }

  /// The element type of an array; of no bits where it is no number.
  CairnDType dtype(PyObject* array) const {
    return understood_ ? dtype_of(reinterpret_cast<const Fields*>(array)->descr->type_num) : CairnDType{};
  }

  /// The array as a tensor; `strides` has room for its dims. False where it takes more than reading fields: other byte order,
  /// elements that are no numbers, strides that are not whole elements.
  bool read(PyObject* object, CairnTensor& tensor, int64_t* strides, int32_t most_dims, bool written = false) const {
    const auto& array = *reinterpret_cast<const Fields*>(object);
    if (!understood_ || array.nd > most_dims || array.descr->byteorder == '>' || !(array.flags & kAligned) ||
        (written && !(array.flags & kWriteable)))
      return false;
    const CairnDType dtype = dtype_of(array.descr->type_num);
    if (dtype.bits == 0) return false;
    tensor = {array.data, {1, 0}, array.nd, dtype, reinterpret_cast<int64_t*>(array.dimensions), nullptr, 0};
    if (array.flags & kRowMajor) return true;
    const Py_ssize_t size = dtype.bits / 8;
    for (int axis = 0; axis < array.nd; ++axis) {
      if (array.strides[axis] % size != 0) return false;
      strides[axis] = array.strides[axis] / size;
    }
    tensor.strides = strides;
    return true;
  }

  /// A new array, or nothing where its elements are of no type that NumPy has. Its memory is NumPy's own, `*data`.
  nb::object make(const CairnTensor& like, void** data) const {
    const int type = type_of(like.dtype);
    if (!understood_ || type < 0) return {};
    PyObject* made =
        new_(array_type_, like.ndim, reinterpret_cast<Py_ssize_t*>(like.shape), type, nullptr, nullptr, 0, 0, nullptr);
    if (!made) throw nb::python_error();
    *data = reinterpret_cast<Fields*>(made)->data;
    return nb::steal(made);
  }

  /// An array of memory that `owner` keeps, or nothing as above.
  nb::object view(const CairnTensor& of, nb::object owner) const {
    const int type = type_of(of.dtype);
    if (!understood_ || type < 0) return {};
    PyObject* made = new_(array_type_, of.ndim, reinterpret_cast<Py_ssize_t*>(of.shape), type, nullptr, of.data, 0,
                          kRowMajor | kAligned | kWriteable, nullptr);
    if (!made || set_base_(made, owner.release().ptr()) != 0) throw nb::python_error();
    return nb::steal(made);
  }

 private:
  struct Descr {
    PyObject_HEAD PyTypeObject* typeobj;
    char kind, type, byteorder, flags;
    int type_num;
  };
  struct Fields {
    PyObject_HEAD char* data;
    int nd;
    Py_ssize_t* dimensions;
    Py_ssize_t* strides;
    PyObject* base;
    Descr* descr;
    int flags;
  };
  static constexpr int kRowMajor = 1, kAligned = 0x100, kWriteable = 0x400;
  using New = PyObject* (*)(PyTypeObject*, int, const Py_ssize_t*, int, const Py_ssize_t*, void*, int, int, PyObject*);
  using SetBase = int (*)(PyObject*, PyObject*);

  // bool, then signed and unsigned by turns, 8, 16, 32 bits, long, long long, then floats; half is 23.
  static constexpr CairnDType dtype_of(int type) {
    constexpr uint8_t kBits[] = {8, 8, 8, 16, 16, 32, 32, 8 * sizeof(long), 8 * sizeof(long), 64, 64, 32, 64};
    if (type == 23) return {CAIRN_FLOAT, 16, 1};
    if (type == 14) return {CAIRN_COMPLEX, 64, 1};
    if (type < 0 || type > 12) return {0, 0, 0};
    const uint8_t code = type == 0 ? CAIRN_BOOL : type > 10 ? CAIRN_FLOAT : type % 2 ? CAIRN_INT : CAIRN_UINT;
    return {code, kBits[type], 1};
  }
  static constexpr int type_of(CairnDType dtype) {
    for (int type : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 23}) {
      const CairnDType each = dtype_of(type);
      if (each.code == dtype.code && each.bits == dtype.bits) return type;
    }
    return -1;
  }

  Numpy() {
    nb::object numpy = nb::module_::import_("numpy");
    array_type_ = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("ndarray")).release().ptr());
    nb::object core;
    try {
      core = nb::module_::import_("numpy._core._multiarray_umath");
    } catch (nb::python_error&) {
      core = nb::module_::import_("numpy.core._multiarray_umath");  // before 2.0
    }
    nb::object table = core.attr("_ARRAY_API");
    auto** functions = static_cast<void**>(PyCapsule_GetPointer(table.ptr(), nullptr));
    if (!functions) throw nb::python_error();
    new_ = reinterpret_cast<New>(functions[93]);
    set_base_ = reinterpret_cast<SetBase>(functions[282]);
    understood_ = reads_as_expected(numpy);
  }

  /// Whether fields are where this file says.
  bool reads_as_expected(const nb::object& numpy) const {
    nb::object array = numpy.attr("zeros")(nb::make_tuple(2, 3), nb::arg("dtype") = "float32");
    nb::object turned = array.attr("T");
    const auto& fields = *reinterpret_cast<const Fields*>(array.ptr());
    const auto& view = *reinterpret_cast<const Fields*>(turned.ptr());
    return fields.nd == 2 && fields.dimensions[0] == 2 && fields.dimensions[1] == 3 && fields.strides[0] == 12 &&
           fields.descr->type_num == 11 && fields.descr->kind == 'f' && (fields.flags & kRowMajor) &&
           (fields.flags & kWriteable) && view.strides[0] == 4 && view.data == fields.data && !(view.flags & kRowMajor);
  }

  PyTypeObject* array_type_ = nullptr;
  New new_ = nullptr;
  SetBase set_base_ = nullptr;
  bool understood_ = false;
};

}  // namespace cairn_python
