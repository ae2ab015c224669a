#include "user_ops.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <optional>

#include "attributes.h"
#include "cairn/op.h"

namespace nb = nanobind;

namespace {

using cairn_python::Attributes;
using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

void (*check_status)(CairnStatus) = nullptr;

constexpr std::pair<uint8_t, const char*> kCodes[] = {{CAIRN_INT, "int"},
                                                      {CAIRN_UINT, "uint"},
                                                      {CAIRN_FLOAT, "float"},
                                                      {CAIRN_BFLOAT, "bfloat"},
                                                      {CAIRN_COMPLEX, "complex"}};

std::string name_of(CairnDType dtype) {
  if (dtype.code == CAIRN_BOOL) return "bool";
  if (dtype.code == CAIRN_TEXT) return "str";
  for (auto [code, name] : kCodes)
    if (code == dtype.code) return name + std::to_string(dtype.bits);
  return "?";
}

/// "float32", "bool", ... Throws nb::type_error.
CairnDType dtype_named(const std::string& name) {
  if (name == "bool") return {CAIRN_BOOL, 8, 1};
  const size_t digits = name.find_first_of("0123456789");
  for (auto [code, kind] : kCodes)
    if (digits != std::string::npos && name.substr(0, digits) == kind)
      return {code, static_cast<uint8_t>(std::stoi(name.substr(digits))), 1};
  throw nb::type_error(("no element type is called " + name).c_str());
}

/// dtype and dims with None for open sizes; None for any dims.
nb::tuple shown(const CairnType& type) {
  nb::object dims = nb::none();
  if (type.ndim >= 0) {
    nb::list list;
    for (int32_t axis = 0; axis < type.ndim; ++axis)
      list.append(type.dims[axis] < 0 ? nb::none() : nb::object(nb::cast(type.dims[axis])));
    dims = nb::tuple(list);
  }
  return nb::make_tuple(name_of(type.dtype), dims);
}

/// A tensor type as given by Python; keeps its dims.
struct GivenType {
  std::vector<int64_t> dims;
  CairnType type{};

  GivenType(const std::string& dtype, const nb::object& shape) {
    if (!shape.is_none())
      for (nb::handle dim : shape) dims.push_back(dim.is_none() ? -1 : nb::cast<int64_t>(dim));
    type = {CAIRN_TYPE_TENSOR,
            dtype_named(dtype),
            shape.is_none() ? -1 : static_cast<int32_t>(dims.size()),
            dims.data(),
            nullptr,
            nullptr,
            0};
  }
};

/// A view of elements that somebody else owns, during a call.
nb::object array_of(const CairnTensor& tensor, bool writable) {
  if (tensor.dtype.code == CAIRN_BFLOAT || tensor.dtype.code == CAIRN_TEXT)
    throw nb::type_error(("a NumPy function cannot take elements of " + name_of(tensor.dtype)).c_str());
  std::vector<size_t> dims(tensor.shape, tensor.shape + tensor.ndim);
  void* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  const nb::dlpack::dtype dtype{tensor.dtype.code, tensor.dtype.bits, 1};
  nb::object nobody = nb::capsule(&check_status, [](void*) noexcept {});
  if (writable)
    return nb::cast(nb::ndarray<nb::numpy>(data, dims.size(), dims.data(), nobody, nullptr, dtype),
                    nb::rv_policy::reference);
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(data, dims.size(), dims.data(), nobody, nullptr, dtype),
                  nb::rv_policy::reference);
}

CairnTensor tensor_of(const Array& array) {
  return {const_cast<void*>(array.data()),
          {1, 0},
          static_cast<int32_t>(array.ndim()),
          {array.dtype().code, array.dtype().bits, array.dtype().lanes},
          const_cast<int64_t*>(array.shape_ptr()),
          nullptr,
          0};
}

/// Values are handed to Python as numbers that only their builder understands.
CairnValue* value_of(size_t handle) { return reinterpret_cast<CairnValue*>(handle); }
size_t handle_of(const CairnValue* value) { return reinterpret_cast<size_t>(value); }

std::vector<CairnValue*> values_of(const std::vector<size_t>& handles) {
  std::vector<CairnValue*> values;
  for (size_t handle : handles) values.push_back(value_of(handle));
  return values;
}

std::vector<size_t> handles_of(const std::vector<CairnValue*>& values) {
  std::vector<size_t> handles;
  for (const CairnValue* value : values) handles.push_back(handle_of(value));
  return handles;
}

class PythonBuilder {
 public:
  explicit PythonBuilder(const std::string& name) {
    check_status(cairn_builder_create(name.c_str(), &builder_));
    owned_.reset(builder_);
    check_status(cairn_builder_function(builder_, "main", nullptr, 0));
  }
  /// Inside a rule.
  explicit PythonBuilder(CairnBuilder* builder) : builder_(builder) {}

  /// `dtype` "rng": a random state.
  size_t param(const std::string& name, const std::string& dtype, const nb::object& shape) {
    GivenType given(dtype == "rng" ? "bool" : dtype, shape);
    if (dtype == "rng") given.type.kind = CAIRN_TYPE_RNG;
    CairnValue* value = nullptr;
    check_status(cairn_builder_param(open(), name.c_str(), &given.type, &value));
    return handle_of(value);
  }
  size_t constant(const Array& array) {
    const CairnTensor tensor = tensor_of(array);
    CairnValue* value = nullptr;
    check_status(cairn_builder_constant(open(), &tensor, nullptr, &value));
    return handle_of(value);
  }
  size_t number(double number, const std::string& dtype) {
    CairnValue* value = nullptr;
    check_status(cairn_builder_number(open(), number, dtype_named(dtype), &value));
    return handle_of(value);
  }
  std::vector<size_t> add(const std::string& op, const std::vector<size_t>& inputs, const nb::dict& attributes,
                          size_t results) {
    const Attributes given(attributes);
    const std::vector<CairnValue*> values = values_of(inputs);
    std::vector<CairnValue*> made(results, nullptr);
    check_status(cairn_builder_add(open(), op.c_str(), values.data(), values.size(), given.data(), given.size(),
                                   nullptr, made.data(), made.size()));
    return handles_of(made);
  }
  void result(const std::string& name, size_t value, size_t updates) {
    check_status(cairn_builder_result(open(), name.c_str(), value_of(value), value_of(updates)));
  }
  std::vector<size_t> gradients(const std::vector<size_t>& results, const std::vector<size_t>& seeds,
                                const std::vector<size_t>& wanted) {
    const std::vector<CairnValue*> of = values_of(results), from = values_of(seeds), by = values_of(wanted);
    std::vector<CairnValue*> made(wanted.size(), nullptr);
    check_status(cairn_builder_gradients(open(), of.data(), from.empty() ? nullptr : from.data(), of.size(), by.data(),
                                         by.size(), made.data()));
    return handles_of(made);
  }
  /// (gradients, for each of `kept` the param that these read in its place, or 0)
  std::pair<std::vector<size_t>, std::vector<size_t>> gradients_of_kept(const std::vector<size_t>& results,
                                                                        const std::vector<size_t>& seeds,
                                                                        const std::vector<size_t>& wanted,
                                                                        const std::vector<size_t>& kept) {
    const std::vector<CairnValue*> of = values_of(results), from = values_of(seeds), by = values_of(wanted);
    const std::vector<CairnValue*> known = values_of(kept);
    std::vector<CairnValue*> made(wanted.size()), params(kept.size());
    check_status(cairn_builder_gradients_of_kept(open(), of.data(), from.data(), of.size(), by.data(), by.size(),
                                                 known.data(), known.size(), made.data(), params.data()));
    return {handles_of(made), handles_of(params)};
  }
  void source(const std::string& name, const std::string& op, const std::string& location) {
    check_status(
        cairn_builder_source(open(), "mindspore", name.empty() ? nullptr : name.c_str(), op.c_str(), location.c_str()));
  }
  void begin_if(size_t condition) {
    check_status(cairn_builder_begin_if(open(), value_of(condition), nullptr, 0, nullptr));
  }
  void begin_else() { check_status(cairn_builder_begin_else(open(), nullptr, 0, nullptr)); }
  void branch(size_t which) { check_status(cairn_builder_branch(open(), which)); }
  std::vector<size_t> join(const std::vector<size_t>& then, const std::vector<size_t>& otherwise) {
    if (then.size() != otherwise.size()) throw nb::value_error("both branches return equally many values");
    const std::vector<CairnValue*> first = values_of(then), second = values_of(otherwise);
    return made(then.size(), [&](CairnValue** results) {
      return cairn_builder_join(open(), first.data(), second.data(), first.size(), results);
    });
  }
  std::vector<size_t> begin_while(const std::vector<size_t>& carried) {
    const std::vector<CairnValue*> values = values_of(carried);
    return made(carried.size(), [&](CairnValue** inside) {
      return cairn_builder_begin_while(open(), values.data(), values.size(), nullptr, 0, inside);
    });
  }
  std::vector<size_t> begin_body(size_t condition, size_t carried) {
    return made(carried,
                [&](CairnValue** inside) { return cairn_builder_begin_body(open(), value_of(condition), inside); });
  }
  std::vector<size_t> end_while(const std::vector<size_t>& next) {
    const std::vector<CairnValue*> values = values_of(next);
    return made(next.size(),
                [&](CairnValue** results) { return cairn_builder_end_while(open(), values.data(), results); });
  }
  std::vector<size_t> begin_call(const std::string& name, const std::vector<size_t>& inputs) {
    const std::vector<CairnValue*> values = values_of(inputs);
    return made(inputs.size(), [&](CairnValue** inside) {
      return cairn_builder_begin_call(open(), name.c_str(), values.data(), values.size(), inside);
    });
  }
  /// `count`: inputs, results and float results of the function.
  std::vector<size_t> begin_backward(const std::vector<size_t>& results, size_t count) {
    const std::vector<CairnValue*> values = values_of(results);
    return made(count, [&](CairnValue** inside) {
      return cairn_builder_begin_backward(open(), values.data(), values.size(), inside);
    });
  }
  std::vector<size_t> end_call(const std::vector<size_t>& values, size_t results) {
    const std::vector<CairnValue*> given = values_of(values);
    return made(results, [&](CairnValue** made) {
      return cairn_builder_end_call(open(), given.data(), given.size(), made, results);
    });
  }
  void abandon() { check_status(cairn_builder_abandon(open())); }
  nb::tuple type(size_t value) {
    const CairnType* type = nullptr;
    check_status(cairn_builder_type(open(), value_of(value), &type));
    return shown(*type);
  }
  /// The module, which _cairn.Module takes over.
  nb::capsule finish() {
    CairnModule* module = nullptr;
    check_status(cairn_builder_finish(open(), &module));
    return nb::capsule(module, "CairnModule");
  }
  void save(const std::string& path) {
    CairnModule* module = nullptr;
    check_status(cairn_builder_finish(open(), &module));
    const CairnStatus status = cairn_module_save(module, path.c_str());
    cairn_module_free(module);
    check_status(status);
  }
  /// A rule has ended: its values are nobody's any more.
  void close() { builder_ = nullptr; }

 private:
  template <class Make>
  static std::vector<size_t> made(size_t count, Make&& make) {
    std::vector<CairnValue*> values(count, nullptr);
    check_status(make(values.data()));
    return handles_of(values);
  }
  CairnBuilder* open() const {
    if (!builder_) throw nb::value_error("the operator's function has returned; its values cannot be used any more");
    return builder_;
  }
  struct Free {
    void operator()(CairnBuilder* builder) const { cairn_builder_free(builder); }
  };
  CairnBuilder* builder_ = nullptr;
  std::unique_ptr<CairnBuilder, Free> owned_;
};

/// The Python functions of one operator. Each takes what is made of its call and returns None, or a text: why it failed.
struct Functions {
  nb::object shape, kernel, gradient, decompose;
};

nb::dict attributes_of(const CairnOpCall& call) {
  nb::dict attributes;
  for (size_t i = 0; i < call.attribute_count; ++i) {
    const CairnAttribute& each = call.attributes[i];
    const auto& value = each.value;
    nb::object made;
    nb::list list;
    switch (each.kind) {
      case CAIRN_ATTRIBUTE_BOOLEAN: made = nb::bool_(value.boolean != 0); break;
      case CAIRN_ATTRIBUTE_INTEGER: made = nb::cast(value.integer); break;
      case CAIRN_ATTRIBUTE_NUMBER: made = nb::cast(value.number); break;
      case CAIRN_ATTRIBUTE_TEXT: made = nb::str(value.text.data, value.text.size); break;
      case CAIRN_ATTRIBUTE_INTEGERS:
        for (size_t k = 0; k < value.integers.count; ++k) list.append(value.integers.data[k]);
        made = list;
        break;
      case CAIRN_ATTRIBUTE_NUMBERS:
        for (size_t k = 0; k < value.numbers.count; ++k) list.append(value.numbers.data[k]);
        made = list;
        break;
      case CAIRN_ATTRIBUTE_TEXTS:
        for (size_t k = 0; k < value.texts.count; ++k)
          list.append(nb::str(value.texts.data[k].data, value.texts.data[k].size));
        made = list;
        break;
      default: continue;
    }
    attributes[each.name] = made;
  }
  return attributes;
}

/// Runs body() with the interpreter's lock; what goes wrong is told to the operator's caller.
template <class Body>
int32_t guarded(const CairnOpCall& call, Body&& body) noexcept {
  if (!Py_IsInitialized()) {
    call.registry->fail(&call, "Python has ended");
    return 1;
  }
  nb::gil_scoped_acquire lock;
  try {
    nb::object failure = body(*static_cast<const Functions*>(call.user));
    if (failure.is_none()) return 0;
    call.registry->fail(&call, nb::cast<std::string>(failure).c_str());
  } catch (const std::exception& error) {
    call.registry->fail(&call, error.what());
  }
  return 1;
}

int32_t run_shape(const CairnShapeCall* call) {
  return guarded(call->call, [&](const Functions& functions) -> nb::object {
    nb::list inputs;
    for (size_t i = 0; i < call->input_count; ++i) inputs.append(shown(call->inputs[i]));
    nb::list types;
    nb::object failure = functions.shape(inputs, attributes_of(call->call), types);
    if (!failure.is_none()) return failure;
    for (nb::handle each : types) {
      const GivenType given(nb::cast<std::string>(each[0]), nb::borrow(each[1]));
      check_status(call->call.registry->result(call, &given.type));
    }
    return nb::none();
  });
}

int32_t run_kernel(const CairnKernelCall* call) {
  return guarded(call->call, [&](const Functions& functions) -> nb::object {
    nb::list inputs, outputs, dtypes;
    for (size_t i = 0; i < call->input_count; ++i) inputs.append(array_of(call->inputs[i], false));
    for (size_t i = 0; i < call->output_count; ++i) {
      outputs.append(call->outputs[i].data ? array_of(call->outputs[i], true) : nb::none());
      dtypes.append(name_of(call->outputs[i].dtype));
    }
    nb::list open;  // results whose dims are known only now, by output
    nb::object failure = functions.kernel(inputs, attributes_of(call->call), outputs, dtypes, open);
    if (!failure.is_none()) return failure;
    for (nb::handle each : open) {
      const auto index = nb::cast<size_t>(each[0]);
      const Array array = nb::cast<Array>(nb::borrow(each[1]));
      check_status(call->call.registry->allocate(call, index, static_cast<int32_t>(array.ndim()), array.shape_ptr()));
      if (array.nbytes() > 0) std::memcpy(call->outputs[index].data, array.data(), array.nbytes());
    }
    return nb::none();
  });
}

template <class Call, class Body>
int32_t with_builder(const Call* call, Body&& body) {
  return guarded(call->call, [&](const Functions& functions) -> nb::object {
    nb::object builder = nb::cast(new PythonBuilder(call->builder), nb::rv_policy::take_ownership);
    nb::object failure = body(functions, builder);
    nb::cast<PythonBuilder&>(builder).close();
    return failure;
  });
}

nb::list handle_list(CairnValue* const* values, size_t count) {
  nb::list list;
  for (size_t i = 0; i < count; ++i) list.append(handle_of(values[i]));
  return list;
}

int32_t run_gradient(const CairnGradientCall* call) {
  return with_builder(call, [&](const Functions& functions, const nb::object& builder) {
    nb::list wanted, made;
    for (size_t i = 0; i < call->input_count; ++i) wanted.append(call->wanted[i] != 0);
    nb::object failure = functions.gradient(
        builder, handle_list(call->inputs, call->input_count), handle_list(call->results, call->result_count),
        handle_list(call->gradients, call->result_count), wanted, attributes_of(call->call), made);
    if (!failure.is_none()) return failure;
    for (size_t i = 0; i < call->input_count && i < made.size(); ++i)
      call->made[i] = value_of(nb::cast<size_t>(made[i]));
    return failure;
  });
}

int32_t run_decompose(const CairnDecomposeCall* call) {
  return with_builder(call, [&](const Functions& functions, const nb::object& builder) {
    nb::list made;
    nb::object failure =
        functions.decompose(builder, handle_list(call->inputs, call->input_count), attributes_of(call->call), made);
    if (!failure.is_none()) return failure;
    for (size_t i = 0; i < call->result_count && i < made.size(); ++i)
      call->results[i] = value_of(nb::cast<size_t>(made[i]));
    return failure;
  });
}

/// Registers an operator: inputs as (name, role, arity), attributes by name with what they are when left out.
void register_op(const std::string& name, const std::string& summary, const nb::list& inputs,
                 const nb::dict& attributes, const std::vector<std::string>& results, uint32_t flags,
                 const std::vector<std::string>& cases, const nb::dict& functions, const std::string& origin) {
  // Rows live as long as the process, and so do their functions.
  auto* own = new Functions;
  CairnOpRow row{};
  row.struct_size = sizeof row;
  auto take = [&](const char* key, nb::object& place, auto& function, auto* run) {
    if (!functions.contains(key)) return;
    place = functions[key];
    function = run;
  };
  take("shape", own->shape, row.shape, run_shape);
  take("kernel", own->kernel, row.kernel, run_kernel);
  take("gradient", own->gradient, row.gradient, run_gradient);
  take("decompose", own->decompose, row.decompose, run_decompose);

  std::deque<std::string> texts;
  std::vector<CairnOpInput> c_inputs;
  for (nb::handle input : inputs)
    c_inputs.push_back({texts.emplace_back(nb::cast<std::string>(input[0])).c_str(), CAIRN_ACCEPTS_TENSOR,
                        nb::cast<int32_t>(input[1]), nb::cast<int32_t>(input[2])});
  const Attributes given(attributes);
  std::vector<CairnOpAttribute> c_attributes;
  for (size_t i = 0; i < given.size(); ++i) c_attributes.push_back({given.data()[i], 0});
  std::vector<const char*> c_results, c_cases;
  for (const std::string& result : results) c_results.push_back(result.c_str());
  for (const std::string& each : cases) c_cases.push_back(each.c_str());
  row.name = name.c_str();
  row.summary = summary.c_str();
  row.inputs = c_inputs.data(), row.input_count = c_inputs.size();
  row.attributes = c_attributes.data(), row.attribute_count = c_attributes.size();
  row.results = c_results.data(), row.result_count = c_results.size();
  row.cases = c_cases.data(), row.case_count = c_cases.size();
  row.flags = flags;
  row.user = own;
  check_status(cairn_op_register(&row, origin.c_str()));
}

}  // namespace

void add_user_ops(nb::module_& module, void (*check)(CairnStatus)) {
  check_status = check;
  nb::class_<PythonBuilder>(module, "_Builder")
      .def(nb::init<const std::string&>())
      .def("param", &PythonBuilder::param, nb::arg(), nb::arg(), nb::arg().none())
      .def("constant", &PythonBuilder::constant)
      .def("number", &PythonBuilder::number)
      .def("add", &PythonBuilder::add)
      .def("result", &PythonBuilder::result)
      .def("gradients", &PythonBuilder::gradients)
      .def("gradients_of_kept", &PythonBuilder::gradients_of_kept)
      .def("source", &PythonBuilder::source)
      .def("begin_if", &PythonBuilder::begin_if)
      .def("begin_else", &PythonBuilder::begin_else)
      .def("branch", &PythonBuilder::branch)
      .def("join", &PythonBuilder::join)
      .def("begin_while", &PythonBuilder::begin_while)
      .def("begin_body", &PythonBuilder::begin_body)
      .def("end_while", &PythonBuilder::end_while)
      .def("begin_call", &PythonBuilder::begin_call)
      .def("begin_backward", &PythonBuilder::begin_backward)
      .def("end_call", &PythonBuilder::end_call)
      .def("abandon", &PythonBuilder::abandon)
      .def("type", &PythonBuilder::type)
      .def("finish", &PythonBuilder::finish)
      .def("save", &PythonBuilder::save);
  module.def("_register_op", &register_op);
  module.def("_load_op_library", [](const std::string& path) { check_status(cairn_op_library_load(path.c_str())); });
}
