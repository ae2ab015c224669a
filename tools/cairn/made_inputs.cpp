#include "made_inputs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <unordered_set>

#include "engine/engine.h"
#include "ir/control.h"

namespace cairn::cli {
namespace {

/// What the operators that read an input expect of its values.
struct Range {
  double low = -INFINITY, high = INFINITY;
  bool is_number = false;  // a text that says one

  bool bounded() const { return std::isfinite(low) || std::isfinite(high); }
  void within(double least, double most) { low = std::max(low, least), high = std::min(high, most); }
};

int64_t size_at(const Value* value, int64_t axis) {
  const Shape& shape = value->type.shape;
  if (!value->type.is_tensor() || !shape.ranked) return -1;
  if (axis < 0) axis += static_cast<int64_t>(shape.rank());
  return axis >= 0 && axis < static_cast<int64_t>(shape.rank()) ? shape.dims[static_cast<size_t>(axis)].size : -1;
}

double scalar_of(const Value* value) {
  const Tensor* tensor = constant_of(value);
  return tensor && tensor->count() > 0 && (tensor->dtype().is_float() || tensor->dtype().kind != DType::Kind::string)
             ? std::abs(tensor->as_f64()[0])
             : NAN;
}

/// Domains of functions of one float.
struct Domain {
  std::string_view op;
  size_t operand;
  double low, high;
};
constexpr Domain kDomains[] = {{"log", 0, 0.05, 4},       {"log1p", 0, -0.9, 4},      {"sqrt", 0, 0, 4},
                               {"rsqrt", 0, 0.05, 4},     {"reciprocal", 0, 0.25, 4}, {"div", 1, 0.25, 4},
                               {"pow", 0, 0.05, 3},       {"acos", 0, -0.95, 0.95},   {"asin", 0, -0.95, 0.95},
                               {"atanh", 0, -0.95, 0.95}, {"acosh", 0, 1.05, 4},      {"log_gamma", 0, 0.1, 6},
                               {"lgamma", 0, 0.1, 6},     {"digamma", 0, 0.1, 6},     {"floor_div", 1, 1, 9},
                               {"mod", 1, 1, 9},          {"erfinv", 0, -0.9, 0.9}};

/// Operand 0 (or any) comes out with its values, moved or of another type.
constexpr std::string_view kCarrying[] = {"identity", "cast",    "reshape", "transpose", "broadcast_to",
                                          "slice",    "concat",  "tile",    "pad",       "reverse",
                                          "maximum",  "minimum", "select",  "abs"};

class Expectations {
 public:
  explicit Expectations(const Module& module) : module_(module) {}

  Range of(const Block& block, const Value* input) {
    range_ = {}, seen_.clear();
    follow(block, input, 0);
    return range_;
  }

 private:
  static constexpr size_t kMostValues = 256;

  void follow(const Block& block, const Value* value, int level) {
    if (seen_.size() > kMostValues || level > 16 || !seen_.insert(value).second) return;
    auto [uses, fresh] = uses_.try_emplace(&block, nullptr);
    if (fresh) uses->second = std::make_unique<Uses>(block);
    for (const Node* node : uses->second->users(value))
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (node->inputs[i] == value) use(block, *node, i, level);
  }

  void use(const Block& block, const Node& node, size_t operand, int level) {
    const std::string_view op = node.op->name;
    const bool is_float = node.inputs[operand]->type.is_tensor() && node.inputs[operand]->type.dtype.is_float();
    if (index(node, operand) || label(node, operand)) return;
    if (is_float || op == "floor_div" || op == "mod")
      for (const Domain& domain : kDomains)
        if (domain.op == op && domain.operand == operand) range_.within(domain.low, domain.high);
    if (op == "less" || op == "less_equal" || op == "greater" || op == "greater_equal") compared(node, operand);
    if (is_float && operand == 0) scaled(node);
    if (op.find("number") != std::string_view::npos) range_.is_number = true;
    const bool carries = std::find(std::begin(kCarrying), std::end(kCarrying), op) != std::end(kCarrying) ||
                         (!is_float && (op == "add" || op == "sub")) || (op == "gather" && operand == 0);
    if (carries) follow(block, node.result(), level + 1);
    enter(node, operand, level);
  }

  /// Into the regions of a loop or branch, and into functions.
  void enter(const Node& node, size_t operand, int level) {
    const size_t first = first_region_input(node);
    for (const auto& region : node.regions)
      if (operand >= first && operand - first < region->params.size())
        follow(*region, region->params[operand - first].get(), level + 1);
    const Function* function = is_call(node) ? module_.find(callee_name(node)) : nullptr;
    if (function && operand < function->body.params.size())
      follow(function->body, function->body.params[operand].get(), level + 1);
  }

  void rows(int64_t count) {
    if (count > 0)
      range_.within(0, static_cast<double>(count - 1));
    else
      range_.within(0, INFINITY);
  }

  bool index(const Node& node, size_t operand) {
    if (node.is("gather") && operand == 1)
      rows(size_at(node.inputs[0], node.attr().integer("axis")));
    else if ((node.is("gather_nd") || node.is("scatter_update")) && operand == 1)
      rows(size_at(node.inputs[0], 0));
    else if (node.is("scatter_nd") && operand == 0)
      rows(size_at(node.result(), 0));
    else if (node.is("one_hot") && operand == 0)
      rows(size_at(node.result(), node.attr().integer("axis")));
    else if (node.is("segment_reduce") && operand == 1)
      rows(size_at(node.result(), 0));
    else if (const int64_t least = least_of_shape(node, operand); least > 0)
      rows(least);
    else if (node.is("top_k") && operand == 1)
      range_.within(1, static_cast<double>(std::max<int64_t>(size_at(node.inputs[0], -1), 1)));
    else
      return false;
    return true;
  }

  /// The smallest size that the constant shape beside the index vectors of a sparse tensor has; 0 when there is none.
  static int64_t least_of_shape(const Node& node, size_t operand) {
    const auto& named = node.op->inputs;
    if (operand >= named.size() || named[operand].role != Role::index) return 0;
    for (size_t i = operand + 1; i < std::min({operand + 3, named.size(), node.inputs.size()}); ++i) {
      if (!std::string_view(named[i].name).ends_with("shape")) continue;
      const Tensor* shape = constant_of(node.inputs[i]);
      if (shape == nullptr || shape->count() == 0 || shape->dtype().kind == DType::Kind::string) return 0;
      const Dims sizes = shape->as_i64();
      return *std::min_element(sizes.begin(), sizes.end());
    }
    return 0;
  }

  bool label(const Node& node, size_t operand) {
    if (!node.is("sparse_softmax_cross_entropy") || operand != 1) return false;
    rows(size_at(node.inputs[0], -1));
    return true;
  }

  /// A length against positions, an id against a bound.
  void compared(const Node& node, size_t operand) {
    const Value* other = node.inputs[1 - operand];
    if (node.inputs[operand]->type.dtype.is_float() || !other->type.is_tensor() || !other->type.shape.ranked) return;
    int64_t most = 0;
    for (const Dim& dim : other->type.shape.dims) most = std::max(most, dim.size);
    if (most > 1) range_.within(1, static_cast<double>(most));
  }

  /// x / 255, x * (1 / 127.5), x - 127.5: bytes of an image.
  void scaled(const Node& node) {
    if (node.inputs.size() < 2) return;
    const double by = scalar_of(node.inputs[1]);
    const bool bytes = (node.is("div") && by >= 100 && by <= 300) ||
                       (node.is("mul") && by >= 1 / 300.0 && by <= 0.01) || (node.is("sub") && by >= 90 && by <= 160);
    if (bytes) range_.within(0, 255);
  }

  const Module& module_;
  Range range_;
  std::unordered_set<const Value*> seen_;
  std::map<const Block*, std::unique_ptr<Uses>> uses_;
};

Range usual_range(DType dtype) {
  if (dtype == kU8) return {0, 255};
  if (dtype == kI8) return {-128, 127};
  return {0, 9};
}

template <class T>
void fill(Tensor& tensor, auto&& draw) {
  for (T& value : tensor.mutable_values<T>()) value = static_cast<T>(draw());
}

std::string text(std::mt19937_64& random, bool number) {
  constexpr const char* kWords[] = {"red", "green", "blue", "the quick brown fox", "A", "user_17", "new york", "42"};
  return number ? fmt::format("{}", static_cast<double>(random() % 1000) / 8) : kWords[random() % std::size(kWords)];
}

Tensor made(DType dtype, const Dims& dims, const Range& range, uint64_t seed) {
  Tensor tensor = Tensor::zeros(dtype, dims);
  std::mt19937_64 random(seed + 1);
  if (dtype == kString) {
    for (std::string& each : tensor.mutable_values<std::string>()) each = text(random, range.is_number);
    return tensor;
  }
  std::normal_distribution<double> normal;
  auto number = [&] {
    if (!range.bounded()) return normal(random);
    const double low = std::isfinite(range.low) ? range.low : range.high - 4;
    const double high = std::isfinite(range.high) ? range.high : low + 4;
    return std::uniform_real_distribution<double>(low, std::max(low, high))(random);
  };
  auto whole = [&] {
    Range bounds = usual_range(dtype);
    if (range.bounded()) bounds.within(std::ceil(range.low), std::floor(range.high));
    const auto low = static_cast<int64_t>(std::min(bounds.low, bounds.high));
    // Tables may be larger than what an input without any has.
    const bool table = range.bounded() && std::isfinite(range.high) && dtype.bits >= 16;
    const auto high = std::max(low, static_cast<int64_t>(table ? std::min(range.high, 0x1p30) : bounds.high));
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  if (dtype == kF32) fill<float>(tensor, number);
  if (dtype == kF64) fill<double>(tensor, number);
  if (dtype == kF16) fill<uint16_t>(tensor, [&] { return float_to_half(static_cast<float>(number())); });
  if (dtype == kBF16) fill<uint16_t>(tensor, [&] { return float_to_bfloat(static_cast<float>(number())); });
  if (dtype == kC64)
    for (float& part : std::span(static_cast<float*>(tensor.mutable_data()), 2 * static_cast<size_t>(tensor.count())))
      part = static_cast<float>(normal(random));
  size_t place = 0;
  if (dtype == kBool) {
    const uint64_t first = random();
    fill<uint8_t>(tensor, [&] { return place++ < 2 ? (first + place) & 1 : random() & 1; });
  }
  if (dtype == kU8) fill<uint8_t>(tensor, whole);
  if (dtype == kI8) fill<int8_t>(tensor, whole);
  if (dtype == kI16) fill<int16_t>(tensor, whole);
  if (dtype == kU16) fill<uint16_t>(tensor, whole);
  if (dtype == kI32) fill<int32_t>(tensor, whole);
  if (dtype == kU32) fill<uint32_t>(tensor, whole);
  if (dtype == kI64) fill<int64_t>(tensor, whole);
  if (dtype == kU64) fill<uint64_t>(tensor, whole);
  return tensor;
}

}  // namespace

std::vector<Tensor> make_inputs(const Model& model, const std::vector<Dims>& dims, uint64_t seed) {
  Expectations expectations(model.module());
  const Block& block = model.module().main().body;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < dims.size(); ++i) {
    auto param = std::find_if(block.params.begin(), block.params.end(),
                              [&](const auto& each) { return each->name == model.inputs()[i].name; });
    const Range range = param == block.params.end() ? Range{} : expectations.of(block, param->get());
    inputs.push_back(made(model.inputs()[i].type.dtype, dims[i], range, 1000 * seed + i));
  }
  return inputs;
}

std::vector<Dims> make_dims(const Model& model, const ModelArguments& arguments) {
  const auto runs = [&](const std::vector<Dims>& dims) {
    if (model.state().empty()) model.run(make_inputs(model, dims, 0));
    return true;
  };
  return choose_dims(model, arguments, 3, runs);
}

}  // namespace cairn::cli
