// Python's view of the C interface: arrays go in and out without copies, the interpreter lock is free while a model runs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "cairn/training.h"
#include "job.h"
#include "judge.h"
#include "operators.h"
#include "user_ops.h"

namespace nb = nanobind;
using namespace cairn_python;

namespace {

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
  /// What a builder finished.
  explicit Module(const nb::capsule& finished) : handle_(static_cast<CairnModule*>(finished.data())) {}

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
  nb::tuple quantized(const nb::dict& arrays, const std::string& options) const {
    Inputs inputs;
    std::vector<std::string> names;
    for (const auto& [name, array] : arrays)
      inputs.add(array, names.emplace_back(nb::cast<std::string>(name)), "float32");
    std::vector<const char*> texts;
    for (const std::string& name : names) texts.push_back(name.c_str());
    CairnModule* made = nullptr;
    char* report = nullptr;
    CairnStatus status;
    {
      nb::gil_scoped_release release;
      status =
          cairn_module_quantize(handle(), options.c_str(), texts.data(), inputs.data(), inputs.size(), &made, &report);
    }
    check(status);
    return nb::make_tuple(Module(made), take_text(report));
  }

 private:
  std::unique_ptr<CairnModule, FreeModule> handle_;
};

class Model {
 public:
  Model(const std::string& path, int threads, const std::string& engines, const std::string& options,
        double max_seconds, uint64_t plan_memory, bool deterministic)
      : Model(Module(path, options, max_seconds), threads, engines, max_seconds, plan_memory, false, deterministic) {}

  /// What is built rounds as eager operators do.
  Model(const Module& module, int threads, const std::string& engines, double max_seconds, uint64_t plan_memory,
        bool bind_state = false, bool deterministic = true, const std::string& precision_mode = "") {
    Limit limit(max_seconds);
    CairnModelOptions given{};
    given.struct_size = sizeof given;
    given.threads = threads;
    given.engines = engines.empty() ? nullptr : engines.c_str();
    given.plan_memory = plan_memory;
    given.bind_state = bind_state;
    given.deterministic = deterministic;
    given.precision_mode = precision_mode.c_str();
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
    for (const auto* ports : {&inputs_, &outputs_})
      for (const Port& one : *ports) packs_ = packs_ || one.name.ends_with(":dims");
  }

  /// Sequences and optionals, which are several ports each, are packed and unpacked in Python.
  nb::dict run(nb::args arguments, double max_seconds) {
    if (!packs_) return run_packed(arguments, max_seconds);
    return nb::cast<nb::dict>(
        nb::module_::import_("cairn._containers").attr("run")(nb::find(*this), arguments, max_seconds));
  }

  nb::dict run_packed(nb::args arguments, double max_seconds) const {
    Limit limit(max_seconds);
    std::vector<Output> outputs = run_on(read(arguments));
    nb::dict result;
    for (size_t i = 0; i < outputs.size(); ++i) result[outputs_[i].name.c_str()] = outputs[i].array();
    return result;
  }

  /// Arrays in the model's order go in and out. With bound state the run writes the new content of variables and random
  /// states into these arrays, which must be row-major.
  nb::list call(const nb::list& arrays) const {
    Limit limit(0);
    Inputs inputs;
    for (size_t i = 0; i < arrays.size(); ++i) inputs.add(arrays[i], i < inputs_.size() ? inputs_[i].name : "", "");
    nb::list results;
    for (Output& output : run_on(inputs)) results.append(output.array());
    return results;
  }

  std::string plan(nb::args arguments) const {
    Inputs inputs = read(arguments);
    char* text = nullptr;
    CairnStatus status;
    {
      nb::gil_scoped_release release;  // operators written in Python take it
      status = cairn_model_plan(model_.get(), inputs.data(), inputs.size(), &text);
    }
    check(status);
    return take_text(text);
  }

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  int threads() const { return cairn_model_threads(model_.get()); }
  size_t memory() const { return cairn_model_memory(model_.get(), nullptr); }

 private:
  std::vector<Output> run_on(const Inputs& inputs) const {
    std::vector<Output> outputs(outputs_.size());
    CairnStatus status;
    {
      nb::gil_scoped_release release;
      status = cairn_model_run(model_.get(), inputs.data(), inputs.size(), allocate_output, &outputs, nullptr);
    }
    Limit::check_status(status);
    return outputs;
  }

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
  bool packs_ = false;
};

struct FreeTrainer {
  void operator()(CairnTrainer* trainer) const { cairn_trainer_free(trainer); }
};

class Trainer {
 public:
  Trainer(const std::string& path, const std::string& import_options, const std::string& options, int threads,
          const std::string& engines) {
    Limit limit(0);
    auto module = open_module(path, import_options);
    CairnModelOptions given{};
    given.struct_size = sizeof given;
    given.threads = threads;
    given.engines = engines.empty() ? nullptr : engines.c_str();
    CairnTrainer* trainer = nullptr;
    CairnStatus status;
    {
      nb::gil_scoped_release release;
      status = cairn_trainer_create(module.get(), options.c_str(), &given, &trainer);
    }
    Limit::check_status(status);
    trainer_.reset(trainer);
    CairnPort port{};
    port.struct_size = sizeof port;
    for (size_t i = 0; i < cairn_trainer_input_count(trainer); ++i) {
      check(cairn_trainer_input(trainer, i, &port));
      inputs_.push_back(Port::of(port));
    }
  }

  nb::tuple step(const nb::list& arrays, double rate) { return measured(arrays, &rate); }
  nb::tuple evaluate(const nb::list& arrays) { return measured(arrays, nullptr); }

  /// `watch` is called with each epoch as JSON; False ends the training.
  void fit(const nb::list& arrays, const nb::object& validation, const std::string& options, nb::callable watch) {
    Limit limit(0);
    Inputs examples = read(arrays), held;
    if (!validation.is_none()) held = read(nb::cast<nb::list>(validation));
    if (!validation.is_none() && held.size() != examples.size())
      raise_error("invalid_argument", "validation", "has other arrays than the examples");
    Watch told{watch, nullptr};
    CairnStatus status;
    {
      nb::gil_scoped_release release;
      status = cairn_trainer_fit(trainer_.get(), examples.data(), examples.size(), held.size() ? held.data() : nullptr,
                                 options.c_str(), &epoch_ends, &told);
    }
    if (told.failure) std::rethrow_exception(told.failure);
    Limit::check_status(status);
  }

  nb::dict state() {
    std::vector<Output> outputs;
    check(cairn_trainer_states(trainer_.get(), allocate_output, &outputs));
    nb::dict states;
    CairnPort port{};
    port.struct_size = sizeof port;
    for (size_t i = 0; i < outputs.size(); ++i) {
      check(cairn_trainer_state(trainer_.get(), i, &port));
      states[port.name] = outputs[i].array();
    }
    return states;
  }

  void restore(const nb::dict& states) {
    Inputs inputs;
    CairnPort port{};
    port.struct_size = sizeof port;
    for (size_t i = 0; i < cairn_trainer_state_count(trainer_.get()); ++i) {
      check(cairn_trainer_state(trainer_.get(), i, &port));
      nb::str name(port.name);
      if (!states.contains(name)) raise_error("invalid_argument", port.name, "is not given");
      inputs.add(states[name], port.name, numpy_name(port.dtype));
    }
    check(cairn_trainer_restore(trainer_.get(), inputs.data(), inputs.size()));
  }

  void save(const std::string& path) { check(cairn_trainer_save(trainer_.get(), path.c_str())); }
  const std::vector<Port>& inputs() const { return inputs_; }

 private:
  struct Watch {
    nb::callable call;
    std::exception_ptr failure;
  };

  static int32_t epoch_ends(void* user, const char* epoch) {
    auto& watch = *static_cast<Watch*>(user);
    nb::gil_scoped_acquire acquire;
    try {
      return watch.call(nb::str(epoch)).is(nb::bool_(false)) ? 0 : 1;
    } catch (...) {
      watch.failure = std::current_exception();
      return 0;
    }
  }

  nb::tuple measured(const nb::list& arrays, const double* rate) {
    Limit limit(0);
    Inputs batch = read(arrays);
    double loss = 0, accuracy = 0;
    CairnStatus status;
    {
      nb::gil_scoped_release release;
      status = rate ? cairn_trainer_step(trainer_.get(), batch.data(), batch.size(), *rate, &loss, &accuracy)
                    : cairn_trainer_evaluate(trainer_.get(), batch.data(), batch.size(), &loss, &accuracy);
    }
    Limit::check_status(status);
    return nb::make_tuple(loss, accuracy);
  }

  Inputs read(const nb::list& arrays) const {
    Inputs inputs;
    for (size_t i = 0; i < arrays.size(); ++i)
      inputs.add(arrays[i], i < inputs_.size() ? inputs_[i].name : "",
                 i < inputs_.size() ? inputs_[i].dtype : "float32");
    return inputs;
  }

  std::unique_ptr<CairnTrainer, FreeTrainer> trainer_;
  std::vector<Port> inputs_;
};

}  // namespace

NB_MODULE(_cairn, module) {
  Numpy::get(), memory();  // made here: a child of a fork would wait for ever for the thread that makes them
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
      .def(nb::init<const nb::capsule&>())
      .def("text", &Module::text, "The text form.")
      .def("save", &Module::save, nb::arg("path"), nb::arg("max_seconds") = 0.0, "Writes an .om file.")
      .def("_gradient", &Module::gradient)
      .def("_quantize", &Module::quantized);

  nb::class_<Model>(module, "Model", "A model ready to run; made by load(). Any number of threads may run it at once.")
      .def(nb::init<const std::string&, int, const std::string&, const std::string&, double, uint64_t, bool>())
      .def(nb::init<const Module&, int, const std::string&, double, uint64_t>())
      .def(nb::init<const Module&, int, const std::string&, double, uint64_t, bool, bool, const std::string&>())
      .def("_run", &Model::run_packed, nb::arg("arguments"), nb::arg("max_seconds") = 0.0)
      .def("run", &Model::run, nb::arg("arguments"), nb::arg("max_seconds") = 0.0,
           "run({name: array}) or run(array, ...) -> {name: array}. Row-major arrays are read in place. Text: arrays "
           "or lists of bytes or str go in, arrays of bytes objects come out. A run that takes longer than max_seconds "
           "(0: any time) raises cairn.Error of kind cancelled.")
      .def("call", &Model::call)
      .def("plan", &Model::plan, "What a run on these inputs would do, as JSON.")
      .def_prop_ro("inputs", &Model::inputs)
      .def_prop_ro("outputs", &Model::outputs)
      .def_prop_ro("threads", &Model::threads)
      .def_prop_ro("memory", &Model::memory,
                   "Bytes kept for the input shapes seen and for their runs; weights do not count.");

  module.def("_convert",
             [](const std::string& source, const std::string& output, const std::string& options, double max_seconds) {
               Limit limit(max_seconds);
               CairnStatus status;
               char* report = nullptr;
               {
                 nb::gil_scoped_release release;
                 status = cairn_module_convert(source.c_str(), options.c_str(), output.c_str(), &report);
               }
               Limit::check_status(status);
               return take_text(report);
             });

  nb::class_<Trainer>(module, "_Trainer")
      .def(nb::init<const std::string&, const std::string&, const std::string&, int, const std::string&>())
      .def("step", &Trainer::step)
      .def("evaluate", &Trainer::evaluate)
      .def("fit", &Trainer::fit, nb::arg("arrays"), nb::arg("validation").none(), nb::arg("options"), nb::arg("watch"))
      .def("state", &Trainer::state)
      .def("restore", &Trainer::restore)
      .def("save", &Trainer::save)
      .def_prop_ro("inputs", &Trainer::inputs);

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
  add_job(module);
  add_judgement(module);
  add_operators(module);
  add_user_ops(module, &check);
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
