// Shape rules and reference kernels on random, also absurd, inputs: an Error in words or a result, never a crash.
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

constexpr int kRoundsPerOp = 3000;
constexpr int64_t kLargestRun = 1 << 16;  // elements; larger results are only inferred

class Fuzzer {
 public:
  explicit Fuzzer(uint64_t seed) : random_(seed) {}

  // Returns whether a kernel ran to its end.
  bool round(const OpDef& op) {
    OpCase start =
        op.cases.empty() ? OpCase{&op, op.name, {}, {}, {}} : parse_case(op, op.cases[random_() % op.cases.size()]);
    Attributes attributes = mutated(op, start.attributes);
    std::vector<Type> types = start.types;
    std::vector<Tensor> values = start.literals;
    while (types.size() < op.inputs.size() && !one_in(8)) types.push_back(type()), values.emplace_back();
    if (!types.empty() && one_in(10)) types.pop_back(), values.pop_back();
    for (size_t i = 0; i < types.size(); ++i)
      if (one_in(3)) mutate(types[i], values[i]);
    Block block;
    Builder builder(block);
    try {
      std::vector<Value*> inputs;
      for (size_t i = 0; i < types.size(); ++i)
        inputs.push_back(values[i].defined() && types[i].is_tensor() && !one_in(4) ? builder.constant(values[i])
                                                                                   : block.add_param(types[i], "x"));
      infer_types(op, inputs, attributes);
      return run(op, attributes, types, std::move(values));
    } catch (const Error& fault) {
      EXPECT_FALSE(fault.message().empty());
      return false;
    }
  }

 private:
  bool one_in(int count) { return random_() % static_cast<uint64_t>(count) == 0; }

  int64_t number() {
    constexpr int64_t kAbsurd[] = {INT64_MIN, INT64_MIN + 1,    INT64_MAX,           INT64_MAX - 1,   INT32_MAX,
                                   INT32_MIN, int64_t{1} << 40, -(int64_t{1} << 40), int64_t{1} << 62};
    return one_in(4) ? kAbsurd[random_() % std::size(kAbsurd)] : static_cast<int64_t>(random_() % 8) - 3;
  }

  double real() {
    constexpr double kAbsurd[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 0};
    return one_in(3) ? kAbsurd[random_() % std::size(kAbsurd)] : static_cast<double>(number());
  }

  DType dtype() {
    constexpr DType kAll[] = {kBool, kI4, kI8, kI32, kI64, kU8, kU64, kF16, kBF16, kF32, kF64, kC64, kString};
    return kAll[random_() % std::size(kAll)];
  }

  Dim dim() {
    if (one_in(8)) return Dim();
    if (one_in(8)) return Dim(intern_symbol("n"));
    if (one_in(12)) return Dim(int64_t{1} << (20 + random_() % 42));
    return Dim(static_cast<int64_t>(random_() % 5));
  }

  Type type() {
    Shape shape(std::vector<Dim>(random_() % 6));
    for (Dim& each : shape.dims) each = dim();
    Type tensor = Type::tensor(dtype(), one_in(12) ? Shape::unranked() : shape);
    switch (random_() % 16) {
      case 0: return Type::list(tensor);
      case 1: return Type::resource(tensor);
      case 2: return Type::rng();
      case 3: return {Type::Kind::tuple, kF32, {}, {tensor, Type::token()}};
      case 4: return Type::list(Type::list(tensor));
      case 5: return {Type::Kind::resource, kF32, {}, {}};
      default: return tensor;
    }
  }

  void mutate(Type& into, Tensor& value) {
    if (value.defined() && value.dtype().is_integer() && one_in(2)) {  // other operands of the same type
      Tensor other = Tensor::zeros(value.dtype(), value.dims());
      for (int64_t i = 0; i < other.count(); ++i) {
        int64_t element = number();
        std::memcpy(static_cast<char*>(other.mutable_data()) + static_cast<size_t>(i) * other.dtype().size(), &element,
                    other.dtype().size());
      }
      value = other;
      return;
    }
    value = Tensor();
    if (!into.is_tensor() || one_in(4)) {
      into = type();
    } else if (into.shape.dims.empty() || one_in(4)) {
      into.shape.dims.insert(into.shape.dims.begin() + static_cast<int64_t>(random_() % (into.shape.rank() + 1)),
                             dim());
    } else {
      into.shape.dims[random_() % into.shape.rank()] = dim();
    }
  }

  Attribute attribute(AttrKind kind, const AttrDef& def) {
    switch (kind) {
      case AttrKind::boolean: return one_in(2);
      case AttrKind::integer: return number();
      case AttrKind::number: return real();
      case AttrKind::text:
        return def.words.empty() || one_in(10) ? std::string("odd")
                                               : std::string(def.words[random_() % def.words.size()]);
      case AttrKind::integers: {
        std::vector<int64_t> list(random_() % 6);
        for (int64_t& each : list) each = number();
        return list;
      }
      case AttrKind::dtype: return dtype();
      case AttrKind::type: return type();
      case AttrKind::tensor: return Tensor::zeros(kF32, {static_cast<int64_t>(random_() % 3)});
      default: return FunctionName{"f"};
    }
  }

  Attributes mutated(const OpDef& op, Attributes attributes) {
    for (const AttrDef& def : op.attributes) {
      const bool missing = !def.fallback && !attributes.find(def.name);
      if (missing ? !one_in(10) : one_in(4))
        attributes.set(def.name, attribute(one_in(20) ? AttrKind::integer : def.kind, def));
    }
    return attributes;
  }

  bool run(const OpDef& op, const Attributes& attributes, const std::vector<Type>& types, std::vector<Tensor> values) {
    if (!op.reference) return false;
    std::vector<HostValue> inputs;
    for (size_t i = 0; i < types.size(); ++i) {
      if (!values[i].defined()) {
        const Type& given = types[i];
        if (!given.is_static() || given.dtype == kString || given.dtype == kC64 || given.dtype.bits < 8 ||
            !small(given))
          return false;
        values[i] = random_tensor(given, random_, Elements::special);
      }
      inputs.push_back({values[i], nullptr});
    }
    const std::vector<Type> made = KernelContext(op, attributes, inputs, {}).infer();
    for (const Type& result : made)
      if (result.is_static() && !small(result)) return false;
    std::vector<HostValue> results(made.size());
    KernelContext context(op, attributes, inputs, results);
    op.reference(context);
    return true;
  }

  static bool small(const Type& type) {
    auto count = element_count(type.shape.sizes());
    return count && *count <= kLargestRun;
  }

  std::mt19937_64 random_;
};

TEST(Fuzz, RulesAndKernelsAnswerOrRefuse) {
  for (const OpDef* op : all_ops()) {
    Fuzzer fuzzer(std::hash<std::string_view>()(op->name));
    int ran = 0;
    for (int i = 0; i < kRoundsPerOp; ++i) ran += fuzzer.round(*op);
    EXPECT_TRUE(ran > kRoundsPerOp / 100 || op->cases.empty()) << op->name << " ran " << ran << " times";
  }
}

}  // namespace
}  // namespace cairn
