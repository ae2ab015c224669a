// com.microsoft's routed experts: all experts see all rows as one batched product, and the router's shares weigh what they say.
#include <array>

#include "frontends/fold.h"
#include "frontends/onnx/attention.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

/// Where a node has the weights, scales, biases and zero points of its layers fc1, fc2, fc3.
struct Places {
  std::array<size_t, 3> weights, scales, biases, zeros;
  size_t shares = 0;  // of experts, in place of the router's own; 0: none
};
constexpr Places kFloats{{2, 4, 6}, {}, {3, 5, 7}, {}};
constexpr Places kQuantised{{2, 5, 8}, {3, 6, 9}, {4, 7, 10}, {11, 12, 13}, 14};

class Experts {
 public:
  Experts(OpContext& c, const Places& places) : c_(c), b_(c.b), places_(places) {
    if (c.integer("use_sparse_mixer", 0) != 0) c.refuse("the sparse mixer is not supported");
    if (quantised() && c.text("quant_type", "int") != "int")
      c.refuse("quant_type {} is not supported", printable(c.text("quant_type", "int")));
    hidden_ = known_dim(c, c.in[0], c.rank(0) - 1, "the size of the rows");
    dtype_ = c.in[0]->type.dtype == kF64 ? kF64 : kF32;
  }

  Value* run() {
    Value* x = reshape_to(cast_to(c_.in[0], dtype_, b_), {{-1}, {hidden_}}, b_);
    Value* h = activated(layer(x, 0));
    if (c_.given(places_.weights[2])) h = b_.add("mul", {h, layer(x, 2)});
    Value* shares = transposed(routed(), {1, 0}, b_);
    const Var said(b_, layer(h, 1));  // [experts, rows, hidden]
    const Var y = reduce_sum(said * Var(b_, expand_dims(shares, {2}, b_)), {0});
    return reshape_by(cast_to(y.value, c_.in[0]->type.dtype, b_), b_.add("shape_of", {c_.in[0]}), b_);
  }

 private:
  bool quantised() const { return places_.scales[0] != 0; }

  /// x through the layer of all experts.
  Value* layer(Value* x, size_t i) {
    Value* y = b_.add("matmul", {x, weights(i)}, {{"transpose_b", true}});
    const size_t bias = places_.biases[i];
    return c_.given(bias) ? b_.add("add", {y, expand_dims(cast_to(c_.in[bias], dtype_, b_), {1}, b_)}) : y;
  }

  /// [experts, outputs, inputs]; few bits lie with the first number lowest, and have a scale for each output or block.
  Value* weights(size_t i) {
    Value* w = c_.in[places_.weights[i]];
    if (!quantised()) return cast_to(w, dtype_, b_);
    const int64_t bits = c_.integer("expert_weight_bits", 4), experts = known_dim(c_, w, 0, "the number of experts"),
                  outputs = known_dim(c_, w, 1, "the size of the experts");
    if ((bits != 4 && bits != 8) || w->type.dtype != kU8) c_.refuse("weights of {} bits are not supported", bits);
    const auto unpacked = [&](Value* bytes) {
      if (bits == 8) return cast_to(bytes, dtype_, b_);
      Value *low = b_.add("bit_and", {bytes, b_.scalar_like(bytes, 15)}),
            *high = b_.add("shift_right", {bytes, b_.scalar_like(bytes, 4)});
      Value* both = b_.add("concat", {expand_dims(low, {3}, b_), expand_dims(high, {3}, b_)}, {{"axis", int64_t{3}}});
      return cast_to(reshape_to(both, {{experts}, {outputs}, {-1}}, b_), dtype_, b_);
    };
    Value* scale = cast_to(c_.in[places_.scales[i]], dtype_, b_);
    scale = reshape_to(scale, {{experts}, {outputs}, {-1}, {1}}, b_);
    const int64_t blocks = known_dim(c_, scale, 2, "the number of blocks");
    Value* numbers = reshape_to(unpacked(w), {{experts}, {outputs}, {blocks}, {-1}}, b_);
    Value* zero = b_.scalar_like(numbers, static_cast<double>(int64_t{1} << (bits - 1)));
    if (const size_t at = places_.zeros[i]; c_.given(at)) {
      zero = unpacked(reshape_to(c_.in[at], {{experts}, {outputs}, {-1}}, b_));
      zero = reshape_to(b_.add("slice", {zero, b_.ints({0, 0, 0}), b_.ints({kToTheEnd, kToTheEnd, blocks})}),
                        {{experts}, {outputs}, {blocks}, {1}}, b_);
    }
    Value* scaled = b_.add("mul", {b_.add("sub", {numbers, zero}), scale});
    return reshape_to(scaled, {{experts}, {outputs}, {-1}}, b_);
  }

  Value* activated(Value* h) {
    const std::string name = c_.text("activation_type", "relu");
    const Var x(b_, h);
    if (name == "identity") return h;
    if (name == "relu") return x.apply("relu").value;
    if (name == "gelu") return x.apply("gelu", {}, {{"approximate", true}}).value;
    if (name == "silu") return (x * x.apply("sigmoid")).value;
    if (name != "swiglu") fail(ErrorKind::invalid_model, "", "activation_type '{}' is unknown", printable(name));
    const int64_t form = c_.integer("swiglu_fusion", 0), half = known_dim(c_, h, 2, "the size of the experts") / 2;
    if (form != 1 && form != 2) c_.refuse("swiglu with a layer of its own is not supported");
    const auto part = [&](int64_t i) {
      const int64_t begin = form == 1 ? i : i * half, end = form == 1 ? 2 * half : (i + 1) * half;
      return Var(b_, b_.add("slice", {h, b_.ints({0, 0, begin}), b_.ints({kToTheEnd, kToTheEnd, end})},
                            {{"steps", std::vector<int64_t>{1, 1, form == 1 ? 2 : 1}}}));
    };
    Var gate = part(0), line = part(1);
    if (c_.has("swiglu_limit")) {
      const double limit = c_.real("swiglu_limit", 0);
      gate = minimum(gate, gate.number(limit));
      line = maximum(minimum(line, line.number(limit)), line.number(-limit));
    }
    const Var bent = (gate * c_.real("activation_alpha", 1)).apply("sigmoid");
    return (gate * bent * (line + c_.real("activation_beta", 0))).value;
  }

  /// Each row's share of each expert, 0 beyond the `k` largest: [rows, experts].
  Value* routed() {
    const Var scores(b_, cast_to(c_.in[1], dtype_, b_));
    const int64_t experts = known_dim(c_, scores.value, 1, "the number of experts"), k = c_.integer("k", 1);
    if (k < 1 || k > experts) fail(ErrorKind::invalid_model, "", "k is {} of {} experts", k, experts);
    const auto* best = b_.add_node(op_named("top_k"), {scores.value, b_.constant(Tensor::scalar_i64(k))});
    Value* depth = b_.constant(Tensor::scalar_i64(experts));
    Value* all =
        b_.add("one_hot", {cast_to(best->result(1), kI64, b_), depth, b_.number(1, dtype_), b_.number(0, dtype_)});
    const Var chosen = reduce_sum(Var(b_, all), {1});
    const bool own = places_.shares == 0 || !c_.given(places_.shares);
    Var shares = own ? scores.apply("softmax", {}, {{"axis", int64_t{-1}}})
                     : Var(b_, cast_to(c_.in[places_.shares], dtype_, b_));
    shares = shares * chosen;
    // ONNX Runtime's experts of few bits share among the chosen alone, whatever the attribute says.
    if (c_.integer("normalize_routing_weights", 0) == 0 && !(quantised() && own)) return shares.value;
    return (shares / reduce_sum(shares, {1}, true)).value;
  }

  OpContext& c_;
  Builder& b_;
  const Places& places_;
  int64_t hidden_ = 0;
  DType dtype_ = kF32;
};

template <const Places& kPlaces>
void experts(OpContext& c) {
  c.expect_inputs(2, &kPlaces == &kFloats ? 8 : 15);
  c.out = {Experts(c, kPlaces).run()};
}

constexpr Row kContribExpertRows[] = {
    {"MoE", experts<kFloats>, nullptr, kMicrosoft},
    {"QMoE", experts<kQuantised>, nullptr, kMicrosoft},
};

}  // namespace

std::span<const Row> contrib_expert_rows() { return kContribExpertRows; }

}  // namespace cairn::onnx
