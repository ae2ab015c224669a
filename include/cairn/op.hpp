// Operators from users in C++: rows written with functions, over the C interface of <cairn/op.h>. Nothing is linked.
//
//   #include <cairn/op.hpp>
//   using namespace cairn::op;
//
//   CAIRN_OPS(registry) {
//     registry.add(Row("acme.double", "2 * x")
//                      .input("x", floats)
//                      .result("y")
//                      .shape([](ShapeRule& rule) { rule.result(rule.input(0)); })
//                      .kernel([](Kernel& kernel) { ... })
//                      .gradient([](Gradient& g) { g.set(0, 2 * g.dy(0)); })
//                      .test("f32[2, 3]"));
//   }
#ifndef CAIRN_OP_HPP_
#define CAIRN_OP_HPP_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cairn/op_call.hpp"
#include "cairn/op_graph.hpp"

namespace cairn::op {

/// Says what the results are for inputs of these types.
class ShapeRule : public Call {
 public:
  explicit ShapeRule(const CairnShapeCall& rule) : Call(rule.call), rule_(rule) {}
  size_t input_count() const { return rule_.input_count; }
  Type input(size_t i) const { return Type(rule_.inputs[i]); }
  /// The elements of input i where they are known, else null.
  const CairnTensor* value(size_t i) const { return rule_.values[i]; }
  void result(const Type& type) {
    std::vector<const char*> symbols;
    for (const std::string& symbol : type.symbols) symbols.push_back(symbol.empty() ? nullptr : symbol.c_str());
    symbols.resize(type.dims.size(), nullptr);
    const CairnType c{CAIRN_TYPE_TENSOR,
                      type.dtype,
                      type.ranked ? static_cast<int32_t>(type.rank()) : -1,
                      type.dims.data(),
                      symbols.data(),
                      nullptr,
                      0};
    check(call_.registry->result(&rule_, &c));
  }

 private:
  const CairnShapeCall& rule_;
};

/// Elements of a tensor in row-major order.
template <class T>
class Elements {
 public:
  Elements(T* data, size_t size) : data_(data), size_(size) {}
  T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) const { return data_[i]; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }

 private:
  T* data_;
  size_t size_;
};

/// One run: inputs to be read, outputs to be written.
class Kernel : public Call {
 public:
  explicit Kernel(const CairnKernelCall& kernel) : Call(kernel.call), kernel_(kernel) {}
  size_t input_count() const { return kernel_.input_count; }
  CairnDType input_dtype(size_t i) const { return kernel_.inputs[i].dtype; }
  std::vector<int64_t> input_dims(size_t i) const { return dims(kernel_.inputs[i]); }
  std::vector<int64_t> output_dims(size_t i) const { return dims(kernel_.outputs[i]); }
  template <class T>
  Elements<const T> input(size_t i) const {
    return elements<const T>(kernel_.inputs[i], "input", i);
  }
  template <class T>
  Elements<T> output(size_t i) const {
    if (!kernel_.outputs[i].data)
      throw Failure("the dims of output " + std::to_string(i) + " are known only now: allocate it");
    return elements<T>(kernel_.outputs[i], "output", i);
  }
  /// An output whose dims the shape rule could not tell.
  template <class T>
  Elements<T> allocate(size_t i, const std::vector<int64_t>& dims) const {
    check(call_.registry->allocate(&kernel_, i, static_cast<int32_t>(dims.size()), dims.data()));
    return elements<T>(kernel_.outputs[i], "output", i);
  }
  /// Calls body(T{}) with the C++ type of the elements of input i: one of the types that are listed.
  template <class... T, class Body>
  void with_type_of(size_t i, Body&& body) const {
    const bool done = ((same(input_dtype(i), dtype_of<T>()) ? (body(T{}), true) : false) || ...);
    if (!done) throw Failure("elements of input " + std::to_string(i) + " have a type that the kernel does not take");
  }

 private:
  static std::vector<int64_t> dims(const CairnTensor& tensor) { return {tensor.shape, tensor.shape + tensor.ndim}; }
  template <class T>
  static Elements<T> elements(const CairnTensor& tensor, const char* what, size_t i) {
    if (!same(tensor.dtype, dtype_of<std::remove_const_t<T>>()))
      throw Failure(std::string(what) + " " + std::to_string(i) + " has elements of another type");
    size_t count = 1;
    for (int32_t axis = 0; axis < tensor.ndim; ++axis) count *= static_cast<size_t>(tensor.shape[axis]);
    return {reinterpret_cast<T*>(static_cast<char*>(tensor.data) + tensor.byte_offset), count};
  }

  const CairnKernelCall& kernel_;
};

/// A row under construction.
class Row {
 public:
  Row(const char* name, const char* summary) : name_(name), summary_(summary) {}

  Row& input(const char* name, CairnAccepts accepts = any, CairnRole role = data, CairnArity arity = CAIRN_ARITY_ONE) {
    inputs_.push_back({name, accepts, role, arity});
    return *this;
  }
  /// An attribute and what it is when left out: Attribute("axis", -1).
  Row& attribute(Attribute fallback) {
    attributes_.push_back({std::move(fallback), false});
    return *this;
  }
  template <class T>
  Row& attribute(const char* name, T fallback) {
    return attribute(Attribute(name, std::move(fallback)));
  }
  Row& required_attribute(const char* name, CairnAttributeKind kind) {
    attributes_.push_back({Attribute::required(name, kind), true});
    return *this;
  }
  Row& result(const char* name) {
    results_.push_back(name);
    return *this;
  }
  Row& elementwise() { return flag(CAIRN_OP_ELEMENTWISE); }
  Row& random() { return flag(CAIRN_OP_RANDOM); }
  Row& shape(std::function<void(ShapeRule&)> rule) {
    functions_->shape = std::move(rule);
    return *this;
  }
  Row& kernel(std::function<void(Kernel&)> kernel) {
    functions_->kernel = std::move(kernel);
    return *this;
  }
  Row& gradient(std::function<void(Gradient&)> gradient) {
    functions_->gradient = std::move(gradient);
    return *this;
  }
  Row& no_gradient(const char* reason) {
    no_gradient_ = reason;
    return *this;
  }
  Row& decompose(std::function<void(Decomposition&)> parts) {
    functions_->decompose = std::move(parts);
    return *this;
  }
  /// Inputs worth testing: "f32[2, 3], f32[3] {axis = 1}".
  Row& test(const char* inputs) {
    cases_.push_back(inputs);
    return *this;
  }
  /// What a framework calls it: "tensorflow:FusedGelu", "onnx:com.acme::Gelu".
  Row& foreign_name(const char* name) {
    foreign_.push_back(name);
    return *this;
  }

  /// Hands the row to Cairn. Throws Failure.
  void add_to(const CairnOpRegistry& registry) const;

 private:
  struct Functions {
    std::function<void(ShapeRule&)> shape;
    std::function<void(Kernel&)> kernel;
    std::function<void(Gradient&)> gradient;
    std::function<void(Decomposition&)> decompose;
  };
  Row& flag(uint32_t flag) {
    flags_ |= flag;
    return *this;
  }
  /// Runs body(functions); what it throws is told.
  template <class Body>
  static int32_t guarded(const CairnOpCall& call, Body&& body) noexcept {
    try {
      body(*static_cast<const Functions*>(call.user));
      return 0;
    } catch (const std::exception& failure) {
      call.registry->fail(&call, failure.what());
    } catch (...) {
      call.registry->fail(&call, "threw what is no std::exception");
    }
    return 1;
  }
  static int32_t run_shape(const CairnShapeCall* call) {
    return guarded(call->call, [&](const Functions& functions) {
      ShapeRule rule(*call);
      functions.shape(rule);
    });
  }
  static int32_t run_kernel(const CairnKernelCall* call) {
    return guarded(call->call, [&](const Functions& functions) {
      Kernel kernel(*call);
      functions.kernel(kernel);
    });
  }
  static int32_t run_gradient(const CairnGradientCall* call) {
    return guarded(call->call, [&](const Functions& functions) {
      Gradient gradient(*call);
      functions.gradient(gradient);
    });
  }
  static int32_t run_decompose(const CairnDecomposeCall* call) {
    return guarded(call->call, [&](const Functions& functions) {
      Decomposition parts(*call);
      functions.decompose(parts);
    });
  }

  const char* name_;
  const char* summary_;
  std::vector<CairnOpInput> inputs_;
  std::vector<std::pair<Attribute, bool>> attributes_;
  std::vector<const char*> results_, cases_, foreign_;
  const char* no_gradient_ = nullptr;
  uint32_t flags_ = 0;
  std::shared_ptr<Functions> functions_ = std::make_shared<Functions>();
};

inline void Row::add_to(const CairnOpRegistry& registry) const {
  std::vector<CairnOpAttribute> attributes;
  for (const auto& [attribute, required] : attributes_) attributes.push_back({attribute.c(), required});
  // Rows live as long as the process, and so do their functions.
  auto* functions = new Functions(*functions_);
  CairnOpRow row{};
  row.struct_size = sizeof row;
  row.name = name_;
  row.summary = summary_;
  row.inputs = inputs_.data(), row.input_count = inputs_.size();
  row.attributes = attributes.data(), row.attribute_count = attributes.size();
  row.results = results_.data(), row.result_count = results_.size();
  row.flags = flags_;
  row.shape = functions->shape ? run_shape : nullptr;
  row.kernel = functions->kernel ? run_kernel : nullptr;
  row.gradient = functions->gradient ? run_gradient : nullptr;
  row.decompose = functions->decompose ? run_decompose : nullptr;
  row.no_gradient = no_gradient_;
  row.cases = cases_.data(), row.case_count = cases_.size();
  row.foreign_names = foreign_.data(), row.foreign_name_count = foreign_.size();
  row.user = functions;
  if (registry.add(&registry, &row) != CAIRN_OK) throw Failure("a row was refused");  // Cairn keeps why
}

/// What the function of CAIRN_OPS adds its rows to.
class Registry {
 public:
  explicit Registry(const CairnOpRegistry& registry) : registry_(registry) {}
  void add(const Row& row) const { row.add_to(registry_); }
  /// Nodes of that type of a framework ("tensorflow", "onnx") stand for the operator: a row of a user, one of Cairn's own, or
  /// a type that Cairn reads from that framework. Attributes must have the same names. Throws Failure.
  void name(const char* framework, const char* type, const char* op) const {
    if (registry_.name(&registry_, framework, type, op) != CAIRN_OK) throw Failure("a name was refused");
  }

 private:
  const CairnOpRegistry& registry_;
};

}  // namespace cairn::op

/// The body that follows adds the rows of a library; once in a library.
#define CAIRN_OPS(registry)                                                       \
  static void cairn_add_ops(const cairn::op::Registry& registry);                 \
  extern "C" CAIRN_API const uint32_t cairn_op_abi;                               \
  extern "C" CAIRN_API const uint32_t cairn_op_abi = CAIRN_OP_ABI_VERSION;        \
  extern "C" CAIRN_API int32_t cairn_register_ops(const CairnOpRegistry* given) { \
    try {                                                                         \
      cairn_add_ops(cairn::op::Registry(*given));                                 \
      return 0;                                                                   \
    } catch (...) {                                                               \
      return 1;                                                                   \
    }                                                                             \
  }                                                                               \
  static void cairn_add_ops(const cairn::op::Registry& registry)

#endif
