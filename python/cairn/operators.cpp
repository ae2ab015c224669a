// cairn.ops: each operator is a built-in function that reads NumPy's arrays where they lie and calls the C interface; 0.5 us
// for small ones, during which the interpreter's lock is kept.
#include "operators.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <list>
#include <span>

#include "arrays.h"
#include "attributes.h"
#include "job.h"
#include "numpy_arrays.h"

namespace cairn_python {
namespace {

constexpr int32_t kMostDims = 8;  // of arrays that are read without help
constexpr size_t kFew = 8;
constexpr double kSmall = 2e5;  // FLOPs and bytes of a run that keeps the interpreter's lock

/// A list of tensors: cairn.List.
class TensorList {
 public:
  explicit TensorList(CairnList* own) : list_(own) {}
  explicit TensorList(nb::iterable elements) {
    Inputs inputs;
    for (nb::handle element : elements) inputs.add(element, "element", "float32");
    check(cairn_list_create(inputs.data(), inputs.size(), &list_));
  }
  ~TensorList() { cairn_list_free(list_); }
  TensorList(const TensorList&) = delete;
  CairnList* get() const { return list_; }
  size_t size() const { return cairn_list_size(list_); }
  nb::object element(Py_ssize_t index) const {
    if (index < 0) index += static_cast<Py_ssize_t>(size());
    if (index < 0 || static_cast<size_t>(index) >= size()) throw nb::index_error();
    CairnTensor tensor{};
    check(cairn_list_element(list_, static_cast<size_t>(index), &tensor));
    std::vector<Output> copies(1);
    void* to = allocate_output(&copies, 0, tensor.dtype, tensor.ndim, tensor.shape);
    size_t count = 1;
    for (size_t dim : copies[0].shape) count *= dim;
    std::memcpy(to, tensor.data, count * tensor.dtype.bits / 8);
    return copies[0].array();
  }

 private:
  CairnList* list_ = nullptr;
};

/// A short list or tuple of integers, written to the room that there is; false for anything else.
bool read_integers(PyObject* object, std::span<int64_t> room, size_t& count) {
  if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object)) return false;
  count = static_cast<size_t>(PySequence_Fast_GET_SIZE(object));
  if (count > room.size()) return false;
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(object, static_cast<Py_ssize_t>(i));
    if (!PyLong_CheckExact(item)) return false;
    room[i] = PyLong_AsLongLong(item);
    if (room[i] == -1 && PyErr_Occurred()) throw nb::python_error();
  }
  return true;
}

/// The tensors of one call: as many as most operators have in place.
class Tensors {
 public:
  size_t size() const { return count_; }
  CairnTensor* data() { return more_.empty() ? few_.data() : more_.data(); }

  void add(nb::handle value, const char* name, const char* like, bool written = false) {
    CairnTensor tensor{};
    const Numpy& numpy = Numpy::get();
    if (numpy.is_array(value.ptr()) && count_ < kFew &&
        numpy.read(value.ptr(), tensor, strides_[count_].data(), kMostDims, written))
      return add(tensor);
    if (!written && count_ < kFew && (add_integers(value.ptr(), like) || add_number(value.ptr(), like))) return;
    if (nb::isinstance<TensorList>(value))
      return add({nb::cast<TensorList&>(value).get(), {1, 0}, 0, {CAIRN_LIST, 0, 1}, nullptr, nullptr, 0});
    if (written) return add_written(value, name);
    others_.emplace_back().add(value, name, like);
    add(others_.back().data()[0]);
  }
  void add(const CairnTensor& tensor) {
    if (count_ == kFew) more_.assign(few_.begin(), few_.end());
    if (count_ < kFew)
      few_[count_] = tensor;
    else
      more_.push_back(tensor);
    ++count_;
  }

 private:
  /// A short list where integers are expected: a vector, which lies with its size in place of strides.
  bool add_integers(PyObject* object, const char* like) {
    size_t count = 0;
    auto& room = strides_[count_];
    if (std::strcmp(like, "int64") != 0 || !read_integers(object, std::span(room).subspan(1), count)) return false;
    room[0] = static_cast<int64_t>(count);
    add({&room[1], {1, 0}, 1, {CAIRN_INT, 64, 1}, room.data(), nullptr, 0});
    return true;
  }

  /// A plain number, which lies in place of strides.
  bool add_number(PyObject* object, const char* like) {
    const bool single = std::strcmp(like, "float32") == 0;
    if (!single && std::strcmp(like, "float64") != 0) return false;
    if (!PyFloat_CheckExact(object) && !PyLong_CheckExact(object)) return false;
    const double number = PyFloat_AsDouble(object);
    if (number == -1 && PyErr_Occurred()) throw nb::python_error();
    void* room = strides_[count_].data();
    if (single) *static_cast<float*>(room) = static_cast<float>(number);
    if (!single) *static_cast<double*>(room) = number;
    add({room, {1, 0}, 0, {CAIRN_FLOAT, static_cast<uint8_t>(single ? 32 : 64), 1}, nullptr, nullptr, 0});
    return true;
  }

  void add_written(nb::handle value, const char* name) {
    nb::ndarray<nb::device::cpu> array;
    if (!nb::try_cast(nb::borrow(value), array))
      raise_error("invalid_argument", name, "out is no writable array of numbers in the CPU's memory");
    add({array.data(),
         {1, 0},
         static_cast<int32_t>(array.ndim()),
         {array.dtype().code, array.dtype().bits, array.dtype().lanes},
         const_cast<int64_t*>(array.shape_ptr()),
         const_cast<int64_t*>(array.stride_ptr()),
         0});
    written_.push_back(std::move(array));
  }

  size_t count_ = 0;
  std::array<CairnTensor, kFew> few_;
  std::array<std::array<int64_t, kMostDims + 1>, kFew> strides_;
  std::vector<CairnTensor> more_;
  std::list<Inputs> others_;  // what is no plain array of NumPy's
  std::vector<nb::ndarray<nb::device::cpu>> written_;
};

/// Typed attributes from keywords.
class Keywords {
 public:
  const CairnAttribute* data() const { return list_.data(); }
  size_t size() const { return count_; }

  void add(const char* name, const std::string& kind, nb::handle value) {
    if (value.is_none()) return;
    if (count_ == list_.size()) raise_error("invalid_argument", name, "is one attribute too many");
    CairnAttribute& made = list_[count_++];
    made = {name, CAIRN_ATTRIBUTE_BOOLEAN, {}};
    PyObject* object = value.ptr();
    if (PyBool_Check(object)) {
      made.value.boolean = object == Py_True;
    } else if (PyLong_CheckExact(object)) {
      made.kind = CAIRN_ATTRIBUTE_INTEGER;
      made.value.integer = PyLong_AsLongLong(object);
      if (made.value.integer == -1 && PyErr_Occurred()) throw nb::python_error();
    } else if (PyFloat_CheckExact(object)) {
      made.kind = CAIRN_ATTRIBUTE_NUMBER;
      made.value.number = PyFloat_AS_DOUBLE(object);
    } else if (!add_integers(made, object) && !add_text(made, kind, object)) {
      add_other(made, kind, value);
    }
  }

 private:
  bool add_integers(CairnAttribute& made, PyObject* object) {
    size_t count = 0;
    if (!read_integers(object, std::span(integers_).subspan(used_), count)) return false;
    made.kind = CAIRN_ATTRIBUTE_INTEGERS;
    made.value.integers = {integers_.data() + used_, count};
    used_ += count;
    return true;
  }

  /// A word, or an element type by its short name: the text is Python's own.
  static bool add_text(CairnAttribute& made, const std::string& kind, PyObject* object) {
    if (!PyUnicode_CheckExact(object) || kind == "tensor") return false;
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(object, &size);
    if (!data) throw nb::python_error();
    if (kind == "dtype" && (size > 4 || std::string_view(data) == "int8")) return false;
    made.kind = CAIRN_ATTRIBUTE_TEXT;
    made.value.text = {data, static_cast<size_t>(size)};
    return true;
  }

  void add_other(CairnAttribute& made, const std::string& kind, nb::handle value) {
    nb::object own = nb::borrow(value);
    if (kind == "tensor") {
      others_.emplace_back().add(own, made.name, "float32");
      made.kind = CAIRN_ATTRIBUTE_TENSOR;
      made.value.tensor = others_.back().data();
      return;
    }
    if (kind == "dtype" && !nb::isinstance<nb::str>(own))
      own = nb::module_::import_("numpy").attr("dtype")(own).attr("name");
    if (kind == "dtype") own = short_name(own);
    nb::dict one;
    one[made.name] = own;
    const Attributes& kept = attributes_.emplace_back(one);
    const char* name = made.name;
    made = kept.data()[0];
    made.name = name;
  }

  /// "float32" as "f32".
  static nb::object short_name(const nb::object& name) {
    std::string text = nb::cast<std::string>(name);
    for (auto [longer, shorter] :
         {std::pair("bfloat", "bf"), {"float", "f"}, {"uint", "u"}, {"int", "i"}, {"complex", "c"}})
      if (text.starts_with(longer)) return nb::str((shorter + text.substr(std::strlen(longer))).c_str());
    return name;
  }

  size_t count_ = 0, used_ = 0;
  std::array<CairnAttribute, 24> list_;
  std::array<int64_t, 32> integers_;
  std::list<Attributes> attributes_;
  std::list<Inputs> others_;
};

/// A row as a function of Python.
struct Function {
  struct Input {
    PyObject* name;  // interned
    std::string text;
    bool optional, variadic, integers;
  };
  struct Keyword {
    PyObject* name;
    std::string text, kind;
  };
  const CairnOperator* op = nullptr;
  std::string name, doc;
  std::vector<Input> inputs;
  std::vector<Keyword> attributes;
  PyObject* out = nullptr;
  PyTypeObject* tensor = nullptr;  // a class whose objects hold arrays, in the attribute `array`
  PyObject* array = nullptr;
  PyObject* otherwise = nullptr;  // called instead where calls are recorded, where one fails
  bool collective = false;        // exchanges with other ranks
  bool alike = false;             // and where inputs are no tensors of one floating type
  PyMethodDef method{};
};

/// What this thread hands calls of functions with tensors to, or null.
thread_local PyObject* recorder = nullptr;

/// Whether the inputs are tensors of one floating type, or after the first plain numbers.
bool are_alike(const Function& function, PyObject* const* given, Py_ssize_t count) {
  CairnDType first{};
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (i > 0 && (PyFloat_CheckExact(given[i]) || PyLong_CheckExact(given[i]))) continue;
    if (!PyObject_TypeCheck(given[i], function.tensor)) return false;
    nb::object array = nb::steal(PyObject_GetAttr(given[i], function.array));
    if (!array.is_valid()) throw nb::python_error();
    if (!Numpy::get().is_array(array.ptr())) return false;
    const CairnDType dtype = Numpy::get().dtype(array.ptr());
    if (i == 0) first = dtype;
    if (dtype.code != CAIRN_FLOAT || dtype.bits != first.bits) return false;
  }
  return true;
}

/// What a call is given, with the arrays of tensors in their place.
class Unwrapped {
 public:
  Unwrapped(const Function& function, PyObject* const* given, size_t count) : given_(given) {
    if (!function.tensor) return;
    if (count > kFew) more_.resize(count);
    PyObject** values = count > kFew ? more_.data() : few_.data();
    given_ = values;
    for (; count_ < count; ++count_) {
      PyObject* each = given[count_];
      const bool is_tensor = PyObject_TypeCheck(each, function.tensor);
      values[count_] = is_tensor ? PyObject_GetAttr(each, function.array) : Py_NewRef(each);
      if (!values[count_]) release(), throw nb::python_error();
    }
  }
  ~Unwrapped() { release(); }
  Unwrapped(const Unwrapped&) = delete;
  PyObject* const* data() const { return given_; }

 private:
  void release() {
    for (size_t i = 0; i < count_; ++i) Py_DECREF(given_[i]);
  }

  PyObject* const* given_;
  size_t count_ = 0;  // of references
  std::array<PyObject*, kFew> few_;
  std::vector<PyObject*> more_;
};

/// A tensor of the array.
nb::object wrapped(const Function& function, nb::handle array) {
  nb::object made = nb::steal(function.tensor->tp_alloc(function.tensor, 0));
  if (!made.is_valid() || PyObject_SetAttr(made.ptr(), function.array, array.ptr()) != 0) throw nb::python_error();
  return made;
}

nb::object wrapped_all(const Function& function, nb::object made) {
  if (!function.tensor) return made;
  if (!PyTuple_CheckExact(made.ptr())) return wrapped(function, made);
  nb::list list;
  for (nb::handle each : nb::borrow<nb::tuple>(made)) list.append(wrapped(function, each));
  return nb::tuple(list);
}

/// One call: its tensors, the prepared operator, what comes out.
class Call {
 public:
  Call(const CairnOperator* op, const char* name, const CairnModelOptions* options = nullptr)
      : found_(op), name_(name), options_(options) {}
  ~Call() { cairn_op_free(op_); }
  Call(const Call&) = delete;

  void add_input(nb::handle value, const char* like) { inputs_.add(value, name_, like); }

  void set_out(nb::handle out) {
    out_ = nb::borrow(out);
    if (!nb::isinstance<nb::tuple>(out)) return outputs_.add(out, name_, "", true);
    for (nb::handle each : nb::borrow<nb::tuple>(out)) outputs_.add(each, name_, "", true);
  }

  nb::object run(const CairnAttribute* attributes, size_t count) {
    check(cairn_op_prepare(found_, attributes, count, inputs_.data(), inputs_.size(), outputs_.data(), outputs_.size(),
                           options_, &op_));
    if (!out_.is_valid()) make_outputs();
    double bytes = 0;
    const double flops = cairn_op_cost(op_, &bytes);
    flops + bytes < kSmall ? run_here() : run_unlocked();
    return out_.is_valid() ? out_ : results();
  }

 private:
  /// Small results of known size are NumPy's own; large ones, whose pages are kept for the next, come by the allocator.
  void make_outputs() {
    constexpr int64_t kLarge = 64 << 10;
    size_t count = 0;
    const CairnTensor* known = cairn_op_outputs(op_, &count);
    made_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      CairnTensor output = known[i];
      int64_t bytes = output.dtype.bits / 8;
      for (int32_t axis = 0; axis < output.ndim; ++axis) bytes *= output.shape[axis];
      if (output.ndim >= 0 && output.dtype.code < CAIRN_TEXT && bytes < kLarge)
        made_[i] = Numpy::get().make(output, &output.data);
      outputs_.add(output);
    }
  }

  void run_here() {
    static const CairnRunOptions alone = [] {
      CairnRunOptions options{};
      options.struct_size = sizeof options;
      options.width = 1;
      return options;
    }();
    check(run_with(&alone));
  }

  void run_unlocked() {
    Limit limit(0);
    CairnStatus status;
    {
      nb::gil_scoped_release release;
      status = run_with(nullptr);
    }
    Limit::check_status(status);
  }

  CairnStatus run_with(const CairnRunOptions* options) {
    return cairn_op_run(op_, inputs_.data(), inputs_.size(), outputs_.data(), outputs_.size(), allocate_output,
                        &allocated_, options);
  }

  nb::object result(size_t i) {
    if (made_[i].is_valid()) return std::move(made_[i]);
    if (outputs_.data()[i].dtype.code == CAIRN_LIST)
      return nb::cast(new TensorList(static_cast<CairnList*>(outputs_.data()[i].data)), nb::rv_policy::take_ownership);
    return allocated_.at(i).array();
  }

  nb::object results() {
    if (made_.size() == 1) return result(0);
    nb::list list;
    for (size_t i = 0; i < made_.size(); ++i) list.append(result(i));
    return nb::tuple(list);
  }

  const CairnOperator* found_;
  const char* name_;
  const CairnModelOptions* options_;
  const CairnOp* op_ = nullptr;
  Tensors inputs_, outputs_;
  nb::object out_;
  std::vector<nb::object> made_;
  std::vector<Output> allocated_;
};

bool equal_names(PyObject* a, PyObject* b) { return a == b || PyUnicode_Compare(a, b) == 0; }

/// What a call of a function says: its inputs in order, then attributes.
class Arguments {
 public:
  Arguments(const Function& function, Call& call) : function_(function), call_(call) {}

  void read(PyObject* const* given, Py_ssize_t count, PyObject* names) {
    const auto& inputs = function_.inputs;
    values_ = {given, static_cast<size_t>(count)};
    const bool variadic = !inputs.empty() && inputs.back().variadic;
    if (values_.size() > inputs.size() && !variadic)
      raise_error("invalid_argument", function_.name,
                  "takes " + std::to_string(inputs.size()) + " inputs, " + std::to_string(count) + " are given");
    const Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < keywords; ++i) read_keyword(PyTuple_GET_ITEM(names, i), given[count + i]);
    for (size_t i = 0; i < values_.size(); ++i) add(inputs[std::min(i, inputs.size() - 1)], values_[i]);
  }

 private:
  void read_keyword(PyObject* name, PyObject* value) {
    if (equal_names(name, function_.out)) {
      if (value != Py_None) call_.set_out(value);
      return;
    }
    for (const Function::Keyword& attribute : function_.attributes)
      if (equal_names(name, attribute.name)) return attributes.add(attribute.text.c_str(), attribute.kind, value);
    for (size_t i = 0; i < function_.inputs.size(); ++i) {
      if (!equal_names(name, function_.inputs[i].name)) continue;
      if (own_.empty()) own_.assign(values_.begin(), values_.end());
      if (own_.size() <= i) own_.resize(i + 1, nullptr);
      if (own_[i])
        raise_error("invalid_argument", function_.name, "input " + function_.inputs[i].text + " is given twice");
      own_[i] = value;
      values_ = own_;
      return;
    }
    raise_error("invalid_argument", function_.name,
                "has no input or attribute " + nb::cast<std::string>(nb::borrow(name)));
  }

  void add(const Function::Input& input, PyObject* value) {
    if (!value || value == Py_None) {
      if (!input.optional) raise_error("invalid_argument", function_.name, "input " + input.text + " is not given");
      left_out_ = input.text.c_str();
      return;
    }
    if (left_out_)
      raise_error("invalid_argument", function_.name, "input " + input.text + " is given without " + left_out_);
    const bool alone = values_.size() == function_.inputs.size();
    if (input.variadic && alone && (PyList_Check(value) || PyTuple_Check(value))) {
      for (nb::handle each : nb::borrow(value)) call_.add_input(each, like(input, each.ptr()));
      return;
    }
    call_.add_input(value, like(input, value));
  }

  /// The element type of what is no array: that of the first array among the inputs.
  const char* like(const Function::Input& input, PyObject* value) {
    if (input.integers) return "int64";
    if (Numpy::get().is_array(value)) return "";
    if (is_text(value)) return "str";
    for (PyObject* each : values_)
      if (each && Numpy::get().is_array(each)) {
        const CairnDType dtype = Numpy::get().dtype(each);
        if (dtype.code == CAIRN_FLOAT && dtype.bits >= 32) return dtype.bits == 32 ? "float32" : "float64";
        like_ = nb::cast<std::string>(nb::handle(each).attr("dtype").attr("name"));
        return like_.c_str();
      }
    return "float32";
  }

  /// A text, or a list of texts.
  static bool is_text(PyObject* value) {
    while ((PyList_Check(value) || PyTuple_Check(value)) && PySequence_Fast_GET_SIZE(value) > 0)
      value = PySequence_Fast_GET_ITEM(value, 0);
    return PyUnicode_Check(value) || PyBytes_Check(value);
  }

  const Function& function_;
  Call& call_;
  std::span<PyObject* const> values_;
  std::vector<PyObject*> own_;  // with inputs given by name
  const char* left_out_ = nullptr;
  std::string like_;

 public:
  Keywords attributes;
};

PyObject* call_function(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  const auto& function = *static_cast<const Function*>(PyCapsule_GetPointer(self, nullptr));
  try {
    if (function.otherwise && (recorder || (function.alike && !are_alike(function, given, count))))
      return PyObject_Vectorcall(function.otherwise, given, count, names);
    const Unwrapped values(function, given, count + (names ? PyTuple_GET_SIZE(names) : 0));
    Call call(function.op, function.name.c_str());
    Arguments arguments(function, call);
    arguments.read(values.data(), count, names);
    const CallerPlace place(function.collective);
    nb::object made = call.run(arguments.attributes.data(), arguments.attributes.size());
    return wrapped_all(function, std::move(made)).release().ptr();
  } catch (nb::python_error& error) {
    if (function.otherwise && error.matches(error_type))
      return PyObject_Vectorcall(function.otherwise, given, count, names);
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

const CairnOperator* find(const std::string& name) {
  const CairnOperator* found = nullptr;
  check(cairn_op_find(name.c_str(), &found));
  return found;
}

PyObject* interned(const std::string& text) { return PyUnicode_InternFromString(text.c_str()); }

/// A function of Python for the row, which lives as long as the process. inputs: (name, optional, variadic, integers);
/// attributes: (name, kind). tensor: a class whose objects hold an array in their attribute `_array`; the function takes and makes such.
/// otherwise: what is called instead where this thread has a recorder, to raise what a call fails with, and with `alike` for inputs
/// that are not tensors of one floating type.
nb::object make_function(const std::string& name, const std::string& python_name, const std::string& doc,
                         const nb::list& inputs, const nb::list& attributes, nb::handle tensor, nb::handle otherwise,
                         bool alike) {
  auto* function = new Function;
  if (!tensor.is_none()) function->tensor = reinterpret_cast<PyTypeObject*>(tensor.inc_ref().ptr());
  if (!otherwise.is_none()) function->otherwise = otherwise.inc_ref().ptr();
  function->alike = alike;
  function->array = interned("_array");
  function->op = find(name);
  function->name = python_name;
  function->doc = doc;
  for (nb::handle input : inputs) {
    const auto text = nb::cast<std::string>(input[0]);
    function->inputs.push_back(
        {interned(text), text, nb::cast<bool>(input[1]), nb::cast<bool>(input[2]), nb::cast<bool>(input[3])});
  }
  for (nb::handle attribute : attributes) {
    const auto text = nb::cast<std::string>(attribute[0]);
    function->attributes.push_back({interned(text), text, nb::cast<std::string>(attribute[1])});
    function->collective |= text == "group";  // of ranks
  }
  function->out = interned("out");
  function->method = {function->name.c_str(),
                      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_function)),
                      METH_FASTCALL | METH_KEYWORDS, function->doc.c_str()};
  nb::object self = nb::steal(PyCapsule_New(function, nullptr, nullptr));
  nb::object made = nb::steal(PyCFunction_NewEx(&function->method, self.ptr(), nb::str("cairn.ops").release().ptr()));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

nb::object run_op(const std::string& name, const nb::list& values, const nb::dict& attributes, int threads,
                  const std::string& engines) {
  const Attributes list(attributes);
  CairnModelOptions options{};
  options.struct_size = sizeof options;
  options.threads = threads;
  options.engines = engines.empty() ? nullptr : engines.c_str();
  Call call(find(name), name.c_str(), &options);
  for (nb::handle value : values) call.add_input(value, "float32");
  const CallerPlace place(attributes.contains("group"));
  return call.run(list.data(), list.size());
}

/// What is known of a call before it runs, as JSON.
std::string describe(const std::string& name, const nb::list& values, const nb::dict& attributes) {
  const Attributes list(attributes);
  Tensors inputs;
  for (nb::handle value : values) inputs.add(value, name.c_str(), "float32");
  const CairnOp* op = nullptr;
  check(cairn_op_prepare(find(name), list.data(), list.size(), inputs.data(), inputs.size(), nullptr, 0, nullptr, &op));
  char* text = nullptr;
  const CairnStatus status = cairn_op_describe(op, &text);
  cairn_op_free(op);
  check(status);
  std::string copy = text;
  cairn_free_text(text);
  return copy;
}

}  // namespace

namespace {

// Not nanobind's, which warns of what a process keeps to its end.
PyMethodDef recorder_method = {"_recorder",
                               [](PyObject*, PyObject*) { return Py_NewRef(recorder ? recorder : Py_None); }, METH_O,
                               "What calls on tensors are handed to on this thread, or None."};
PyMethodDef record_method = {"_record",
                             [](PyObject*, PyObject* given) {
                               PyObject *former = nullptr, *made = nullptr;
                               if (!PyArg_ParseTuple(given, "OO", &former, &made))
                                 return static_cast<PyObject*>(nullptr);
                               former = recorder;
                               recorder = made == Py_None ? nullptr : Py_NewRef(made);
                               Py_XDECREF(former);
                               return Py_NewRef(Py_None);
                             },
                             METH_VARARGS, "_record(self, recorder): sets it."};

void add_function(nb::module_& module, PyMethodDef& method) {
  module.attr(method.ml_name) = nb::steal(PyCFunction_NewEx(&method, nullptr, nullptr));
}

}  // namespace

void add_operators(nb::module_& module) {
  nb::class_<TensorList>(module, "List", "A list of arrays, for operators that take or make one.")
      .def(nb::init<nb::iterable>())
      .def("__len__", &TensorList::size)
      .def("__getitem__", &TensorList::element);
  module.def("_operator", &make_function, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg("tensor") = nb::none(), nb::arg("otherwise") = nb::none(), nb::arg("alike") = false);
  module.def("_method", [](nb::handle function) { return nb::steal(PyInstanceMethod_New(function.ptr())); });
  add_function(module, recorder_method);
  add_function(module, record_method);
  module.def("_run_op", &run_op);
  module.def("_describe_op", &describe);
}

}  // namespace cairn_python
