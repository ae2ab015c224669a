// ONNX's recurrent layers: RNN, GRU and LSTM.
#include <algorithm>
#include <map>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/recurrent.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

using Kind = Recurrence::Kind;

/// A function of gates or states: an op's name, or another name with its numbers.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
};

/// The numbers that a function has, and what they are where none are given.
struct Numbers {
  size_t count;
  double alpha, beta;
};
const std::map<std::string_view, Numbers> kFunctions{
    {"sigmoid", {0, 0, 0}},      {"tanh", {0, 0, 0}},
    {"relu", {0, 0, 0}},         {"softsign", {0, 0, 0}},
    {"softplus", {0, 0, 0}},     {"affine", {2, 1, 0}},
    {"leakyrelu", {1, 0.01, 0}}, {"thresholdedrelu", {1, 1, 0}},
    {"scaledtanh", {2, 1, 1}},   {"hardsigmoid", {2, 0.2, 0.5}},
    {"elu", {1, 1, 0}},
};

Value* applied(const Activation& function, Value* input, Builder& b) {
  const Var x(b, input);
  const double alpha = function.alpha, beta = function.beta;
  if (function.name == "softsign") return (x / (abs(x) + 1)).value;
  if (function.name == "affine") return (x * alpha + beta).value;
  if (function.name == "leakyrelu") return x.apply("leaky_relu", {}, {{"alpha", alpha}}).value;
  if (function.name == "thresholdedrelu") return select(x > alpha, x, x.number(0)).value;
  if (function.name == "scaledtanh") return ((x * beta).apply("tanh") * alpha).value;
  if (function.name == "hardsigmoid") return (x * alpha + beta).apply("clip", {}, {{"low", 0.0}, {"high", 1.0}}).value;
  if (function.name == "elu") return x.apply("elu", {}, {{"alpha", alpha}}).value;
  return x.apply(function.name).value;
}

/// All directions one after the other; functions with numbers take theirs from the lists in this order.
std::vector<Activation> activations(const OpContext& c, Kind kind, size_t directions) {
  const std::vector<std::string> own = kind == Kind::lstm  ? std::vector<std::string>{"sigmoid", "tanh", "tanh"}
                                       : kind == Kind::gru ? std::vector<std::string>{"sigmoid", "tanh"}
                                                           : std::vector<std::string>{"tanh"};
  std::vector<std::string> names = c.texts("activations");
  if (names.empty())
    for (size_t d = 0; d < directions; ++d) names.insert(names.end(), own.begin(), own.end());
  if (names.size() != own.size() * directions)
    fail(ErrorKind::invalid_model, "", "has {} activations, expected {}", names.size(), own.size() * directions);
  const std::vector<float> alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<Activation> all;
  for (const std::string& given : names) {
    std::string name = given;
    for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    const auto found = kFunctions.find(name);
    if (found == kFunctions.end()) fail(ErrorKind::invalid_model, "", "activation '{}' is unknown", printable(given));
    const Numbers& own = found->second;
    Activation one{name, own.alpha, own.beta};
    if (own.count > 0 && alpha < alphas.size()) one.alpha = alphas[alpha++];
    if (own.count > 1 && beta < betas.size()) one.beta = betas[beta++];
    all.push_back(std::move(one));
  }
  return all;
}

/// All directions of one node.
class Layer {
 public:
  Layer(OpContext& c, Kind kind) : c_(c), kind_(kind), direction_(c.text("direction", "forward")) {
    c.expect_inputs(3, kind == Kind::lstm ? 8 : 6);
    for (size_t i : {0, 1, 2})
      if (c.rank(i) != 3) fail(ErrorKind::invalid_model, "", "input {} has {} dims, expected 3", i, c.rank(i));
    if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional")
      fail(ErrorKind::invalid_model, "", "direction '{}' is unknown", printable(direction_));
    const Dim hidden = c.in[2]->type.shape.dims[2];
    if (!hidden.known()) c.refuse("the recurrence must have a known shape");
    hidden_ = hidden.size;
    if (c.integer("hidden_size", hidden_) != hidden_)
      fail(ErrorKind::invalid_model, "", "hidden_size is {}, the recurrence has {}", c.integer("hidden_size"), hidden_);
    clip_ = c.real("clip", 0);
    if (!(clip_ >= 0)) fail(ErrorKind::invalid_model, "", "clip is {}", clip_);
    directions_ = direction_ == "bidirectional" ? 2 : 1;
    activations_ = activations(c, kind, directions_);
    batch_first_ = c.integer("layout", 0) != 0;
    x_ = batch_first_ ? swapped(c.in[0]) : c.in[0];
  }

  void run() {
    std::vector<Value*> all;
    std::vector<std::vector<Value*>> last(kind_ == Kind::lstm ? 2 : 1);
    for (size_t d = 0; d < directions_; ++d) {
      const Sequence sequence = recur(direction(d), c_.b);
      all.push_back(expand_dims(sequence.all, {1}, c_.b));
      for (size_t i = 0; i < last.size(); ++i) last[i].push_back(expand_dims(sequence.last[i], {0}, c_.b));
    }
    auto joined = [&](const std::vector<Value*>& parts, int64_t axis) {
      return parts.size() == 1 ? parts[0] : c_.b.add("concat", parts, {{"axis", axis}});
    };
    Value* y = joined(all, 1);
    c_.out = {batch_first_ ? transposed(y, {2, 0, 1, 3}, c_.b) : y};
    for (const auto& parts : last) c_.out.push_back(batch_first_ ? swapped(joined(parts, 0)) : joined(parts, 0));
  }

 private:
  Value* swapped(Value* x) { return transposed(x, {1, 0, 2}, c_.b); }

  /// The part for direction d of an input, without the dim of directions; null if the input is left out.
  Value* part(size_t input, size_t d, bool state = false) {
    if (!c_.given(input)) return nullptr;
    Value* all = state && batch_first_ ? swapped(c_.in[input]) : c_.in[input];
    return folded(c_.b.add("gather", {all, c_.b.constant(Tensor::scalar_i64(static_cast<int64_t>(d)))}), c_.b);
  }

  Recurrence direction(size_t d) {
    Builder& b = c_.b;
    Recurrence layer;
    layer.kind = kind_;
    layer.hidden = hidden_;
    if (kind_ == Kind::lstm) layer.order = {0, 2, 3, 1};
    // `apply` knows them by their place.
    size_t at = d * activations_.size() / directions_;
    if (kind_ != Kind::simple) layer.gate = std::to_string(at++);
    layer.fresh = std::to_string(at++);
    if (kind_ == Kind::lstm) layer.out = std::to_string(at);
    layer.apply = [this](const std::string& place, Value* x, Builder& in) {
      const bool of_result = kind_ == Kind::lstm && std::stoul(place) % 3 == 2;  // which ONNX Runtime does not clip
      if (clip_ > 0 && !of_result) x = in.add("clip", {x}, {{"low", -clip_}, {"high", clip_}});
      return applied(activations_[std::stoul(place)], x, in);
    };
    layer.coupled = c_.integer("input_forget", 0) != 0;
    layer.reset_after = c_.integer("linear_before_reset", 0) != 0;
    layer.backwards = direction_ == "reverse" || d == 1;
    layer.input = b.add("matmul", {x_, part(1, d)}, {{"transpose_b", true}});
    layer.kernel = transposed(part(2, d), {1, 0}, b);
    if (Value* bias = part(3, d)) {
      const int64_t gates = kind_ == Kind::lstm ? 4 : kind_ == Kind::gru ? 3 : 1;
      layer.input = b.add("add", {layer.input, part_of(bias, 0, gates * hidden_, b)});
      layer.bias = part_of(bias, gates * hidden_, 2 * gates * hidden_, b);
    }
    if (kind_ == Kind::lstm) layer.peephole = part(7, d);
    if (c_.given(4)) layer.lengths = expand_dims(cast_to(c_.in[4], kI64, b), {1}, b);
    for (size_t i = 0; i < (kind_ == Kind::lstm ? 2u : 1u); ++i) {
      Value* start = part(5 + i, d, true);
      layer.states.push_back(start != nullptr ? start : zero_state(x_, hidden_, b));
    }
    return layer;
  }

  OpContext& c_;
  Kind kind_;
  double clip_ = 0;  // of what goes into activations; 0 for none
  std::string direction_;
  std::vector<Activation> activations_;
  size_t directions_ = 1;
  int64_t hidden_ = 0;
  bool batch_first_ = false;
  Value* x_ = nullptr;  // [steps, batch, inputs]
};

template <Kind kKind>
void recurrent(OpContext& c) {
  Layer(c, kKind).run();
}

constexpr Row kRecurrentRows[] = {
    {"GRU", recurrent<Kind::gru>},
    {"LSTM", recurrent<Kind::lstm>},
    {"RNN", recurrent<Kind::simple>},
};

}  // namespace

std::span<const Row> recurrent_rows() { return kRecurrentRows; }

}  // namespace cairn::onnx
