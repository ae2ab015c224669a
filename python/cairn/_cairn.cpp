// Python's view of the C interface: arrays go in and out without copies, the interpreter lock is free while a model runs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "attributes.h"
#include "cairn/cairn.h"

namespace nb = nanobind;

namespace {

using Array = nb::ndarray<nb::ro, nb::device::cpu>;

constexpr const char* kKinds[] = {"ok", "invalid_argument", "invalid_model", "unsupported", "not_found",
                                  "io", "out_of_memory",    "cancelled",     "internal"};

/// cairn.Error; lives as long as the module.
PyObject* error_type = nullptr;

[[noreturn]] void raise_error(const std::string& kind, const std::string& where, const std::string& message,
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

void check(CairnStatus status) {
  if (status == CAIRN_OK) return;
  CairnError error{};
  error.struct_size = sizeof error;
  cairn_last_error(&error);
  raise_error(status <= CAIRN_INTERNAL ? kKinds[status] : "internal", error.where, error.message, error.report);
}

class Memory;
Memory& memory();

/// Memory of outputs that were dropped, kept for the next run: fresh pages cost more than many models.
class Memory {
 public:
  /// The child of a fork finds the list whole and the mutex free.
  Memory() {
    pthread_atfork([] { memory().mutex_.lock(); }, [] { memory().mutex_.unlock(); }, [] { memory().mutex_.unlock(); });
  }
  void* take(size_t bytes) {
    {
      std::lock_guard lock(mutex_);
      auto found = idle_.find(bytes);
      if (found != idle_.end()) {
        void* data = found->second;
        idle_.erase(found);
        idle_bytes_ -= bytes;
        return data;
      }
    }
    return std::aligned_alloc(64, bytes);
  }
  void give(void* data, size_t bytes) {
    {
      std::lock_guard lock(mutex_);
      if (idle_bytes_ + bytes <= kMost) {
        idle_.emplace(bytes, data);
        idle_bytes_ += bytes;
        return;
      }
    }
    std::free(data);
  }

 private:
  static constexpr size_t kMost = size_t{256} << 20;
  std::mutex mutex_;
  std::multimap<size_t, void*> idle_;
  size_t idle_bytes_ = 0;
};

Memory& memory() {
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

bool is_bfloat(CairnDType dtype) { return dtype.code == CAIRN_BFLOAT && dtype.bits == 16; }

struct Output {
  std::unique_ptr<Block> block;
  CairnDType dtype{};
  std::vector<size_t> shape;

  nb::object array() {
    if (dtype.code == CAIRN_TEXT) return texts();
    nb::dlpack::dtype type{dtype.code, dtype.bits, 1};
    if (is_bfloat(dtype)) type = {CAIRN_UINT, 16, 1};  // NumPy has no such type of its own
    void* data = block->data;
    nb::capsule owner(block.release(), [](void* block) noexcept { delete static_cast<Block*>(block); });
    nb::ndarray<nb::numpy> array(data, shape.size(), shape.data(), owner, nullptr, type);
    nb::object made = nb::cast(array, nb::rv_policy::reference);
    if (is_bfloat(dtype)) made = made.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
    return made;
  }

 private:
  /// An array of bytes objects, as TensorFlow gives them.
  nb::object texts() const {
    size_t count = 1;
    for (size_t dim : shape) count *= dim;
    nb::list dims;
    for (size_t dim : shape) dims.append(dim);
    nb::module_ numpy = nb::module_::import_("numpy");
    nb::object made = numpy.attr("empty")(count, nb::arg("dtype") = "object");
    const auto* text = static_cast<const CairnText*>(block->data);
    for (size_t i = 0; i < count; ++i) made[i] = nb::bytes(text[i].data, text[i].size);
    return made.attr("reshape")(nb::tuple(dims));
  }
};

/// Called without the interpreter lock.
void* allocate_output(void* user, size_t index, CairnDType dtype, int32_t ndim, const int64_t* shape) {
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

  std::vector<Array> arrays_;
  std::vector<std::unique_ptr<Texts>> texts_;
  std::vector<CairnTensor> tensors_;
};

std::string numpy_name(CairnDType dtype) {
  constexpr std::pair<uint8_t, const char*> kNames[] = {{CAIRN_INT, "int"},
                                                        {CAIRN_UINT, "uint"},
                                                        {CAIRN_FLOAT, "float"},
                                                        {CAIRN_BFLOAT, "bfloat"},
                                                        {CAIRN_COMPLEX, "complex"}};
  if (dtype.code == CAIRN_BOOL) return "bool";
  if (dtype.code == CAIRN_TEXT) return "str";
  for (auto [code, name] : kNames)
    if (code == dtype.code) return name + std::to_string(dtype.bits);
  return "?";
}

struct Port {
  std::string name, dtype;
  std::optional<std::vector<std::optional<int64_t>>> shape;

  static Port of(const CairnPort& port) {
    Port made{port.name, numpy_name(port.dtype), std::nullopt};
    if (port.ndim < 0) return made;
    made.shape.emplace();
    for (int32_t axis = 0; axis < port.ndim; ++axis)
      made.shape->push_back(port.dims[axis] < 0 ? std::nullopt : std::optional(port.dims[axis]));
    return made;
  }
  nb::object shape_tuple() const {
    if (!shape) return nb::none();
    nb::list dims;
    for (const auto& dim : *shape) dims.append(dim ? nb::cast(*dim) : nb::none());
    return nb::tuple(dims);
  }
  std::string text() const {
    return "Port(name=" + nb::cast<std::string>(nb::repr(nb::str(name.c_str()))) + ", dtype=" + dtype +
           ", shape=" + nb::cast<std::string>(nb::repr(shape_tuple())) + ")";
  }
};

struct FreeModule {
  void operator()(CairnModule* module) const { cairn_module_free(module); }
};
struct FreeModel {
  void operator()(CairnModel* model) const { cairn_model_free(model); }
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

struct FreeOp {
  void operator()(CairnOp* op) const { cairn_op_free(op); }
};

std::string take_text(char* text) {
  std::string copy = text;
  cairn_free_text(text);
  return copy;
}

std::unique_ptr<CairnModule, FreeModule> open_module(const std::string& path, const std::string& options) {
  CairnModule* module = nullptr;
  CairnStatus status;
  {
    nb::gil_scoped_release release;
    status = cairn_module_open(path.c_str(), options.c_str(), &module);
  }
  Limit::check_status(status);
  return std::unique_ptr<CairnModule, FreeModule>(module);
}

class Module {
 public:
  Module(const std::string& path, const std::string& options, double max_seconds) {
    Limit limit(max_seconds);
    handle_ = open_module(path, options);
  }
  explicit Module(CairnModule* made) : handle_(made) {}

  CairnModule* handle() const { return handle_.get(); }
  std::string text() const {
    char* text = nullptr;
    check(cairn_module_text(handle(), &text));
    return take_text(text);
  }
  void save(const std::string& path, double max_seconds) const {
    Limit limit(max_seconds);
    CairnStatus status;
    {
      nb::gil_scoped_release release;
      status = cairn_module_save(handle(), path.c_str());
    }
    Limit::check_status(status);
  }
  Module gradient(const std::string& options) const {
    CairnModule* made = nullptr;
    check(cairn_module_grad(handle(), options.c_str(), &made));
    return Module(made);
  }

 private:
  std::unique_ptr<CairnModule, FreeModule> handle_;
};

class Model {
 public:
  Model(const std::string& path, int threads, const std::string& engines, const std::string& options,
        double max_seconds, uint64_t plan_memory)
      : Model(Module(path, options, max_seconds), threads, engines, max_seconds, plan_memory) {}

  Model(const Module& module, int threads, const std::string& engines, double max_seconds, uint64_t plan_memory) {
    Limit limit(max_seconds);
    CairnModelOptions given{};
    given.struct_size = sizeof given;
    given.threads = threads;
    given.engines = engines.empty() ? nullptr : engines.c_str();
    given.plan_memory = plan_memory;
    CairnModel* model = nullptr;
    CairnStatus status;
    {
      nb::gil_scoped_release release;
      status = cairn_model_prepare(module.handle(), &given, &model);
    }
    Limit::check_status(status);
    model_.reset(model);
    CairnPort port{};
    port.struct_size = sizeof port;
    for (size_t i = 0; i < cairn_model_input_count(model); ++i) {
      check(cairn_model_input(model, i, &port));
      inputs_.push_back(Port::of(port));
    }
    for (size_t i = 0; i < cairn_model_output_count(model); ++i) {
      check(cairn_model_output(model, i, &port));
      outputs_.push_back(Port::of(port));
    }
  }

  nb::dict run(nb::args arguments, double max_seconds) const {
    Limit limit(max_seconds);
    Inputs inputs = read(arguments);
    std::vector<Output> outputs(outputs_.size());
    CairnStatus status;
    {
      nb::gil_scoped_release release;
      status = cairn_model_run(model_.get(), inputs.data(), inputs.size(), allocate_output, &outputs, nullptr);
    }
    Limit::check_status(status);
    nb::dict result;
    for (size_t i = 0; i < outputs.size(); ++i) result[outputs_[i].name.c_str()] = outputs[i].array();
    return result;
  }

  std::string plan(nb::args arguments) const {
    Inputs inputs = read(arguments);
    char* text = nullptr;
    check(cairn_model_plan(model_.get(), inputs.data(), inputs.size(), &text));
    return take_text(text);
  }

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  int threads() const { return cairn_model_threads(model_.get()); }

 private:
  /// One dict by name, or arrays in the model's order.
  Inputs read(const nb::args& arguments) const {
    Inputs inputs;
    if (arguments.size() != 1 || !nb::isinstance<nb::dict>(arguments[0])) {
      for (size_t i = 0; i < arguments.size(); ++i)
        inputs.add(arguments[i], i < inputs_.size() ? inputs_[i].name : "",
                   i < inputs_.size() ? inputs_[i].dtype : "float32");
      return inputs;
    }
    auto given = nb::cast<nb::dict>(arguments[0]);
    for (const Port& port : inputs_) {
      nb::str name(port.name.c_str());
      if (!given.contains(name)) raise_error("invalid_argument", port.name, "is not given; the model takes " + names());
      inputs.add(given[name], port.name, port.dtype);
    }
    if (given.size() != inputs_.size())
      for (auto [key, value] : given) check_name(nb::cast<std::string>(nb::str(key)));
    return inputs;
  }

  void check_name(const std::string& name) const {
    for (const Port& port : inputs_)
      if (port.name == name) return;
    raise_error("invalid_argument", name, "is no input of the model; it takes " + names());
  }

  std::string names() const {
    std::string text;
    for (const Port& port : inputs_) text += (text.empty() ? "" : ", ") + port.name;
    return text;
  }

  std::unique_ptr<CairnModel, FreeModel> model_;
  std::vector<Port> inputs_, outputs_;
};

nb::object run_op(const std::string& name, nb::list values, const nb::dict& attributes, int threads,
                  const std::string& engines) {
  const cairn_python::Attributes list(attributes);
  CairnOp* made = nullptr;
  check(cairn_op_create(name.c_str(), list.data(), list.size(), &made));
  std::unique_ptr<CairnOp, FreeOp> op(made);
  Inputs inputs;
  for (nb::handle value : values) inputs.add(value, name, "float32");
  std::vector<Output> outputs;
  CairnModelOptions options{sizeof options, threads, engines.empty() ? nullptr : engines.c_str(), 0};
  Limit limit(0);
  CairnStatus status;
  {
    nb::gil_scoped_release release;
    status = cairn_op_run(op.get(), inputs.data(), inputs.size(), allocate_output, &outputs, &options);
  }
  Limit::check_status(status);
  if (outputs.size() == 1) return outputs[0].array();
  nb::list results;
  for (Output& output : outputs) results.append(output.array());
  return nb::tuple(results);
}

}  // namespace

NB_MODULE(_cairn, module) {
  module.attr("__version__") = cairn_version();
  error_type = PyErr_NewExceptionWithDoc("cairn.Error", "What went wrong: kind, where, report (a list of problems).",
                                         PyExc_RuntimeError, nullptr);
  module.attr("Error") = nb::borrow(error_type);

  nb::class_<Port>(module, "Port", "An input or output: name, dtype, and shape with None for open sizes.")
      .def_ro("name", &Port::name)
      .def_ro("dtype", &Port::dtype)
      .def_prop_ro("shape", &Port::shape_tuple)
      .def("__repr__", &Port::text);

  nb::class_<Module>(module, "Module", "A program as read: Module(path, options in JSON).")
      .def(nb::init<const std::string&, const std::string&, double>(), nb::arg("path"), nb::arg("options") = "",
           nb::arg("max_seconds") = 0.0)
      .def("text", &Module::text, "The text form.")
      .def("save", &Module::save, nb::arg("path"), nb::arg("max_seconds") = 0.0, "Writes an .om file.")
      .def("_gradient", &Module::gradient);

  nb::class_<Model>(module, "Model", "A model ready to run; made by load(). Any number of threads may run it at once.")
      .def(nb::init<const std::string&, int, const std::string&, const std::string&, double, uint64_t>())
      .def(nb::init<const Module&, int, const std::string&, double, uint64_t>())
      .def("run", &Model::run, nb::arg("arguments"), nb::arg("max_seconds") = 0.0,
           "run({name: array}) or run(array, ...) -> {name: array}. Row-major arrays are read in place. Text: arrays "
           "or lists of bytes or str go in, arrays of bytes objects come out. A run that takes longer than max_seconds "
           "(0: any time) raises cairn.Error of kind cancelled.")
      .def("plan", &Model::plan, "What a run on these inputs would do, as JSON.")
      .def_prop_ro("inputs", &Model::inputs)
      .def_prop_ro("outputs", &Model::outputs)
      .def_prop_ro("threads", &Model::threads);

  module.def("_profile_start", [](const std::string& options) { check(cairn_profile_start(options.c_str())); });
  module.def("_profile_stop", [] {
    char* folder = nullptr;
    CairnStatus status;
    {
      nb::gil_scoped_release release;
      status = cairn_profile_stop(&folder);
    }
    check(status);
    return take_text(folder);
  });
  module.def("_range_begin", [](const std::string& name) { check(cairn_profile_range_begin(name.c_str())); });
  module.def("_range_end", [] { check(cairn_profile_range_end()); });
  module.def("_dump_start", [](const std::string& options) { check(cairn_dump_start(options.c_str())); });
  module.def("_dump_stop", [] {
    char* folder = nullptr;
    check(cairn_dump_stop(&folder));
    return take_text(folder);
  });
  module.def("_run_op", &run_op);
  module.def("_aipp_parameters", [](const std::string& config, int64_t images) {
    size_t size = 0;
    check(cairn_aipp_parameters(config.c_str(), images, nullptr, &size));
    std::string bytes(size, '\0');
    check(cairn_aipp_parameters(config.c_str(), images, bytes.data(), &size));
    return nb::bytes(bytes.data(), bytes.size());
  });
  module.def("_ops", [] {
    char* text = nullptr;
    check(cairn_describe_ops(&text));
    return take_text(text);
  });
}
