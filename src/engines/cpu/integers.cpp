#include "engines/cpu/integers.h"

#include <algorithm>
#include <cmath>

#include "engines/cpu/groups.h"
#include "engines/cpu/program.h"

namespace cairn {

namespace {

bool is_8_bits(const Value* value) { return value->type.dtype == kU8 || value->type.dtype == kI8; }

/// Whether it is f32 with one number for all, or one for each channel of the result.
bool is_each_channel(const Value* value, const Type& result) {
  const auto& dims = value->type.shape.dims;
  if (value->type.dtype != kF32 || dims.size() > result.shape.rank()) return false;
  if (dims.empty()) return true;
  if (dims.back() != Dim(1) && dims.back() != result.shape.dims.back()) return false;
  return std::all_of(dims.begin(), dims.end() - 1, [](const Dim& dim) { return dim.size == 1; });
}

struct Quantisation {
  float scale = 1;
  int32_t zero = 0;
  DType dtype;

  float low() const { return static_cast<float>((dtype == kI8 ? -128 : 0) - zero); }
  float high() const { return static_cast<float>((dtype == kI8 ? 127 : 255) - zero); }
  friend bool operator==(const Quantisation&, const Quantisation&) = default;
};

/// The scale and zero point of a quantize_linear or dequantize_linear between 8 bits and floats, when each is one constant.
std::optional<Quantisation> quantisation_of(const Node& node) {
  const auto scale = one_number(node.inputs[1]), zero = one_number(node.inputs[2]);
  if (!is_8_bits(node.inputs[2]) || !scale || !zero || !(*scale > 0) || !std::isfinite(1 / *scale)) return std::nullopt;
  return Quantisation{*scale, static_cast<int32_t>(*zero), node.inputs[2]->type.dtype};
}

bool dequantizes_8_bits(const Node& node) {
  return node.is("dequantize_linear") && is_8_bits(node.inputs[0]) && quantisation_of(node).has_value();
}

class Chain {
 public:
  explicit Chain(const Node& product) { found_.node = &product, found_.result = product.result(); }

  const Value* result() const { return found_.result; }

  /// Adds a node that reads the result so far; `inner` dequantises its other operand inside the group.
  bool extend(const Node& node, const Node* inner) {
    if (!take(node, inner)) return false;
    found_.result = node.result();
    return true;
  }

  IntegerContraction read() const {
    IntegerContraction all = found_;
    IntegerEpilogue& e = all.epilogue;
    if (stage_ == Stage::sums) return all;
    const bool bytes = stage_ == Stage::rounded || stage_ == Stage::done;
    const float last = bytes ? 1 / output_.scale : 1;
    e.output = bytes ? IntegerEpilogue::Output::bytes : IntegerEpilogue::Output::floats;
    all.factor = e.rounds ? 1 / middle_.scale : last;
    all.later_factor = last;
    e.later_bias = all.later_bias != nullptr;
    e.first_low *= all.factor, e.first_high *= all.factor;
    e.round_low = middle_.low(), e.round_high = middle_.high(), e.round_scale = middle_.scale * last;
    if (!e.rounds) e.round_low = e.round_high = 0, e.round_scale = 1;
    e.residual_scale *= last, e.residual_shift *= last;
    e.low *= last, e.high *= last;
    if (bytes) {
      e.low = std::max(e.low, output_.low()), e.high = std::min(e.high, output_.high());
      e.zero_point = output_.zero;
    }
    if (!e.rounds && !all.residual) {
      e.low = std::max(e.low, e.first_low), e.high = std::min(e.high, e.first_high);
      e.first_low = -IntegerEpilogue::kNone, e.first_high = IntegerEpilogue::kNone;
    }
    return all;
  }

 private:
  enum class Stage : uint8_t { sums, scaled, biased, activated, rounded, again, added, activated_again, done };

  bool take(const Node& node, const Node* inner) {
    if (node.is("dequantize_linear")) return dequantize(node);
    if (node.is("quantize_linear")) return quantize(node);
    if (node.is("relu") || node.is("clip")) return activate(node);
    return node.is("add") && node.inputs[0] != node.inputs[1] && add(node, inner);
  }

  bool dequantize(const Node& node) {
    if (stage_ == Stage::rounded) {
      const auto same = quantisation_of(node);
      if (node.inputs[0] != found_.result || !same || *same != output_) return false;
      middle_ = output_;
      found_.epilogue.rounds = true;
      return to(Stage::again);
    }
    if (stage_ != Stage::sums || node.inputs[0] != found_.result || one_number(node.inputs[2]) != 0.f) return false;
    if (!is_each_channel(node.inputs[1], node.result()->type)) return false;
    found_.scale = node.inputs[1];
    return to(Stage::scaled);
  }

  bool quantize(const Node& node) {
    const bool early = stage_ >= Stage::scaled && stage_ < Stage::rounded;
    if (node.inputs[0] != found_.result || (!early && (stage_ < Stage::again || stage_ == Stage::done))) return false;
    const auto read = quantisation_of(node);
    if (!read) return false;
    output_ = *read;
    return to(early ? Stage::rounded : Stage::done);
  }

  bool activate(const Node& node) {
    const bool first = stage_ == Stage::scaled || stage_ == Stage::biased;
    if (!first && stage_ != Stage::again && stage_ != Stage::added) return false;
    const bool relu = node.is("relu");
    const float low = relu ? 0 : static_cast<float>(node.attr().number("low"));
    const float high = relu ? IntegerEpilogue::kNone : static_cast<float>(node.attr().number("high"));
    IntegerEpilogue& e = found_.epilogue;
    (first ? e.first_low : e.low) = low;
    (first ? e.first_high : e.high) = high;
    return to(first ? Stage::activated : Stage::activated_again);
  }

  bool add(const Node& node, const Node* inner) {
    const Value* other = node.inputs[node.inputs[0] == found_.result ? 1 : 0];
    if (node.result()->type != found_.result->type || other->type.dtype != kF32) return false;
    if (stage_ == Stage::scaled && !inner && is_each_channel(other, node.result()->type)) {
      found_.bias = other;
      return to(Stage::biased);
    }
    if (stage_ == Stage::again && !inner && !found_.later_bias && is_each_channel(other, node.result()->type)) {
      found_.later_bias = other;
      return true;
    }
    if (stage_ < Stage::scaled || stage_ == Stage::rounded || stage_ > Stage::again) return false;
    if (other->type != node.result()->type || constant_of(other)) return false;
    IntegerEpilogue& e = found_.epilogue;
    found_.residual = inner ? inner->inputs[0] : other;
    e.residual = IntegerEpilogue::Residual::floats;
    if (inner) {
      const Quantisation q = *quantisation_of(*inner);
      e.residual = q.dtype == kU8 ? IntegerEpilogue::Residual::u8 : IntegerEpilogue::Residual::i8;
      e.residual_scale = q.scale, e.residual_shift = -static_cast<float>(q.zero) * q.scale;
    }
    return to(Stage::added);
  }

  bool to(Stage stage) {
    stage_ = stage;
    return true;
  }

  IntegerContraction found_;
  Quantisation middle_, output_;
  Stage stage_ = Stage::sums;
};

/// Whether only element-wise programs read the node's floats, which make them of bytes themselves.
bool are_read_by_programs(const Node& node, const Uses& uses) {
  return !uses.is_result(node.result()) && std::ranges::all_of(uses.users(node.result()), [&](const Node* user) {
    return ElementwiseProgram::takes(*user) && user->result()->type.shape == node.result()->type.shape;
  });
}

/// The node that dequantises the other operand of an addition and could be part of the group, or null.
const Node* inner_of(const Node& node, const Value* current, FunctionRef<bool(const Node&)> joins) {
  if (!node.is("add") || node.inputs[0] == node.inputs[1]) return nullptr;
  const Node* producer = node.inputs[node.inputs[0] == current ? 1 : 0]->producer;
  return producer && dequantizes_8_bits(*producer) && joins(*producer) ? producer : nullptr;
}

}  // namespace

std::optional<float> one_number(const Value* value) {
  const Tensor* constant = constant_of(value);
  if (!constant || constant->count() != 1) return std::nullopt;
  if (constant->dtype() == kF32) return constant->values<float>()[0];
  if (constant->dtype() == kU8) return constant->values<uint8_t>()[0];
  if (constant->dtype() == kI8) return constant->values<int8_t>()[0];
  if (constant->dtype() == kI32) return static_cast<float>(constant->values<int32_t>()[0]);
  return std::nullopt;
}

bool is_integer_contraction(const Node& node) { return node.is("conv2d_integer") || node.is("matmul_integer"); }

std::optional<IntegerContraction> as_integer_contraction(const Group& group) {
  const auto product = std::find_if(group.nodes.begin(), group.nodes.end(),
                                    [](const Node* node) { return is_integer_contraction(*node); });
  if (product == group.nodes.end() || group.outputs.size() != 1) return std::nullopt;
  const auto inside = [&](const Node& node) {
    return std::find(group.nodes.begin(), group.nodes.end(), &node) != group.nodes.end();
  };
  Chain chain(**product);
  for (size_t taken = 1; taken < group.nodes.size();) {
    const auto next = std::find_if(group.nodes.begin(), group.nodes.end(), [&](const Node* node) {
      return std::find(node->inputs.begin(), node->inputs.end(), chain.result()) != node->inputs.end();
    });
    if (next == group.nodes.end()) return std::nullopt;
    const Node* inner = inner_of(**next, chain.result(), inside);
    if (!chain.extend(**next, inner)) return std::nullopt;
    taken += inner ? 2 : 1;
  }
  if (chain.result() != group.outputs[0]) return std::nullopt;
  return chain.read();
}

std::vector<std::vector<const Node*>> integer_groups(const Node& product, const Uses& uses,
                                                     FunctionRef<bool(const Node&)> joins) {
  Chain chain(product);
  std::vector<const Node*> taken{&product};
  std::vector<std::vector<const Node*>> groups{taken};
  while (uses.single(chain.result())) {
    const Node* next = uses.users(chain.result()).front();
    if (!joins(*next)) break;
    const Node* inner =
        inner_of(*next, chain.result(), [&](const Node& node) { return uses.single(node.result()) && joins(node); });
    if (!chain.extend(*next, inner)) break;
    if (inner) taken.push_back(inner);
    taken.push_back(next);
    if (!dequantizes_8_bits(*next) || !are_read_by_programs(*next, uses)) groups.push_back(taken);
  }
  return groups;
}

}  // namespace cairn
