// Keras' recurrent layers: SimpleRNN, GRU, LSTM and Bidirectional.
#include "frontends/fold.h"
#include "frontends/keras/importer.h"
#include "frontends/recurrent.h"
#include "frontends/reshape.h"

namespace cairn::keras {
namespace {

using Kind = Recurrence::Kind;

/// Steps and batch change places.
Value* swapped(Value* x, Builder& b) {
  std::vector<int64_t> order{1, 0, 2};
  order.resize(x->type.shape.rank());
  return b.add("transpose", {x}, {{"permutation", order}});
}

struct Results {
  Value* all;                  // [batch, steps, hidden], in the order in which the steps were taken
  std::vector<Value*> states;  // [batch, hidden] after the last one: what the layer gives, and of an LSTM its cell
};

size_t states_of(Kind kind) { return kind == Kind::lstm ? 2 : 1; }

void take_functions(Recurrence& layer, LayerContext& c, const char* gate) {
  layer.fresh = layer.out = c.text("activation", "tanh");
  if (layer.kind != Kind::simple) layer.gate = c.text("recurrent_activation", gate);
  layer.apply = [keras3 = c.keras3](const std::string& function, Value* y, Builder& builder) {
    return activation(y, function, keras3, builder);
  };
}

/// `states` at the start: as many as the kind has, or none for zeros.
Results run(LayerContext& c, Kind kind, bool backwards, bool masked_zero, std::span<Value* const> states) {
  if (c.rank() != 3) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 3", c.rank());
  for (const char* key : {"stateful", "time_major"})
    if (c.boolean(key, false)) c.refuse("{} is not supported", key);
  const int64_t hidden = c.integer("units", -1), gates = kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1;
  if (hidden < 1 || hidden > (1 << 24)) fail(ErrorKind::invalid_model, "", "has {} units", hidden);
  Builder& b = c.b;
  Recurrence layer;
  layer.kind = kind;
  layer.hidden = hidden;
  layer.backwards = backwards;
  take_functions(layer, c, "sigmoid");
  layer.reset_after = c.boolean("reset_after", true);
  Value* x = swapped(c.in[0], b);
  layer.input = b.add("matmul", {x, c.weight("kernel", {c.last_dim(), gates * hidden})});
  layer.kernel = c.weight("recurrent_kernel", {hidden, gates * hidden});
  const bool two = kind == Kind::gru && layer.reset_after;  // biases: of the input and of the state
  if (c.boolean("use_bias", true)) {
    Value* bias = two ? c.weight("bias", {2, gates * hidden}) : c.weight("bias", {gates * hidden});
    auto row = [&](int64_t i) { return folded(b.add("gather", {bias, b.constant(Tensor::scalar_i64(i))}), b); };
    if (two) layer.bias = row(1);
    layer.input = b.add("add", {layer.input, two ? row(0) : bias});
  }
  if (c.masks[0] != nullptr) layer.mask = expand_dims(swapped(c.masks[0], b), {2}, b);
  layer.masked_zero = masked_zero;
  for (size_t i = 0; i < states_of(kind); ++i)
    layer.states.push_back(states.empty() ? zero_state(x, hidden, b) : states[i]);
  const Sequence sequence = recur(layer, b);
  Value* all = swapped(sequence.all, b);
  if (backwards) all = b.add("reverse", {all}, {{"axes", std::vector<int64_t>{1}}});
  return {all, sequence.last};
}

/// The states at the start, which follow the input of a call.
std::span<Value* const> given_states(const LayerContext& c, size_t count) {
  if (c.in.size() != 1) {
    if (c.find("num_constants") != nullptr) c.refuse("constants are not supported");
    c.expect_inputs(1 + count);
  }
  return std::span(c.in).subspan(1);
}

template <Kind kKind>
void recurrent(LayerContext& c) {
  const std::span<Value* const> states = given_states(c, states_of(kKind));
  c.weights = c.weights.numbered() ? c.weights.part("", "cell") : c.weights;
  const bool all = c.boolean("return_sequences", false), masked_zero = c.boolean("zero_output_for_mask", false);
  if (c.masks[0] != nullptr && masked_zero && !all)
    c.refuse("zero_output_for_mask without return_sequences is not supported");
  const Results results = run(c, kKind, c.boolean("go_backwards", false), masked_zero, states);
  c.out = {all ? results.all : results.states[0]};
  if (c.boolean("return_state", false)) c.out.insert(c.out.end(), results.states.begin(), results.states.end());
  if (all) c.mask = c.masks[0];
}

/// An LSTM whose states are images: convolutions take the place of products.
void conv_lstm(LayerContext& c) {
  c.expect_inputs(1);
  if (c.rank() != 5) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 5", c.rank());
  if (c.text("data_format", "channels_last") != "channels_last") c.refuse("channels_first is not supported");
  if (c.boolean("stateful", false)) c.refuse("stateful is not supported");
  if (c.masks[0] != nullptr) c.refuse("a mask on its input is not supported");
  const int64_t hidden = c.integer("filters", -1);
  if (hidden < 1 || hidden > (1 << 20)) fail(ErrorKind::invalid_model, "", "has {} filters", hidden);
  c.weights = c.weights.numbered() ? c.weights.part("", "cell") : c.weights;
  Builder& b = c.b;
  const std::vector<int64_t> order{1, 0, 2, 3, 4}, sizes = c.sizes("kernel_size", 2, 1);
  Value* x = b.add("transpose", {c.in[0]}, {{"permutation", order}});
  const std::vector<Dim>& dims = x->type.shape.dims;
  for (size_t i = 2; i < 5; ++i)
    if (!dims[i].known()) c.refuse("dim {} of the input is not known; declare the shapes of the model's inputs", i);
  Value* images = reshape_by(x, b.ints({-1, dims[2].size, dims[3].size, dims[4].size}), b);
  Value* kernel = c.weight("kernel", {sizes[0], sizes[1], c.last_dim(), 4 * hidden});
  Value* made = b.add("conv2d", {images, kernel},
                      {{"strides", c.sizes("strides", 2, 1)},
                       {"dilations", c.sizes("dilation_rate", 2, 1)},
                       {"padding", c.text("padding", "valid")}});
  Recurrence layer;
  layer.kind = Kind::lstm;
  layer.convolves = true;
  layer.hidden = hidden;
  layer.backwards = c.boolean("go_backwards", false);
  take_functions(layer, c, "hard_sigmoid");
  layer.kernel = c.weight("recurrent_kernel", {sizes[0], sizes[1], hidden, 4 * hidden});
  if (c.boolean("use_bias", true)) made = b.add("add", {made, c.weight("bias", {4 * hidden})});
  const Dim height = made->type.shape.dims[1], width = made->type.shape.dims[2];
  Value* of_image = b.ints({height.size, width.size, 4 * hidden});
  layer.input = reshape_by(made, joined({dim_of(x, 0, b), dim_of(x, 1, b), of_image}, b), b);
  Value* state = joined({dim_of(x, 1, b), b.ints({height.size, width.size, hidden})}, b);
  const Type type = Type::tensor(x->type.dtype, Shape{dims[1], height, width, Dim(hidden)});
  Value* zeros = b.add_node(op_named("broadcast_to"), {scalar_like(x, 0, b), state}, {}, {}, {type})->result();
  layer.states = {zeros, zeros};
  const Sequence sequence = recur(layer, b);
  Value* all = b.add("transpose", {sequence.all}, {{"permutation", order}});
  if (layer.backwards) all = b.add("reverse", {all}, {{"axes", std::vector<int64_t>{1}}});
  c.out = {c.boolean("return_sequences", false) ? all : sequence.last[0]};
  if (c.boolean("return_state", false)) c.out.insert(c.out.end(), sequence.last.begin(), sequence.last.end());
}

/// Two copies of a layer, one against time; what they give is joined, that of the second in the order of time.
void bidirectional(LayerContext& c) {
  const Json *inner = c.find("layer"), *other = c.find("backward_layer");
  if (inner == nullptr || !inner->is_object() || !inner->contains("config"))
    fail(ErrorKind::invalid_model, "", "has no layer");
  const std::string kind = inner->value("class_name", ""), mode = c.text("merge_mode", "concat");
  const Json* turned = &(*inner)["config"];  // of the layer against time; Keras 3 always writes it down
  if (other != nullptr && c.keras3 && other->is_object() && other->value("class_name", "") == kind &&
      other->contains("config") && (*other)["config"].value("go_backwards", false))
    turned = &(*other)["config"];
  else if (other != nullptr)
    c.refuse("a backward_layer of its own is not supported");
  if (kind != "LSTM" && kind != "GRU" && kind != "SimpleRNN") c.refuse("around {} is not supported", printable(kind));
  if ((*inner)["config"].value("go_backwards", false)) c.refuse("around a layer that goes backwards is not supported");
  const Kind which = kind == "LSTM" ? Kind::lstm : kind == "GRU" ? Kind::gru : Kind::simple;
  const std::string name = (*inner)["config"].value("name", "");
  const size_t count = states_of(which);
  const std::span<Value* const> states = given_states(c, 2 * count);
  std::vector<Value*> parts, last;
  for (bool backwards : {false, true}) {
    Weights weights = c.weights.part((backwards ? "backward_" : "forward_") + name,
                                     backwards ? "backward_layer/cell" : "forward_layer/cell");
    LayerContext one(c.b, backwards ? *turned : (*inner)["config"], c.in, weights);
    one.masks = c.masks;
    one.keras3 = c.keras3;
    const bool all = one.boolean("return_sequences", false);
    const Results results =
        run(one, which, backwards, all, states.empty() ? states : states.subspan(backwards ? count : 0, count));
    Value* y = all ? results.all : results.states[0];
    if (backwards && all) y = c.b.add("reverse", {y}, {{"axes", std::vector<int64_t>{1}}});
    if (all) c.mask = c.masks[0];
    if (one.boolean("return_state", false)) last.insert(last.end(), results.states.begin(), results.states.end());
    parts.push_back(y);
  }
  if (mode == "concat")
    c.out = {c.b.add("concat", parts, {{"axis", int64_t(parts[0]->type.shape.rank()) - 1}})};
  else if (mode == "sum" || mode == "mul")
    c.out = {c.b.add(mode == "sum" ? "add" : "mul", parts)};
  else if (mode == "ave")
    c.out = {c.b.add("mul", {c.b.add("add", parts), cast_to(c.b.scalar(0.5f), parts[0]->type.dtype, c.b)})};
  else
    c.refuse("merge_mode '{}' is not supported", printable(mode));
  c.out.insert(c.out.end(), last.begin(), last.end());
}

constexpr Row kRecurrentRows[] = {
    {"Bidirectional", bidirectional, nullptr, Row::Masks::own},
    {"ConvLSTM2D", conv_lstm, nullptr, Row::Masks::own},
    {"GRU", recurrent<Kind::gru>, nullptr, Row::Masks::own},
    {"LSTM", recurrent<Kind::lstm>, nullptr, Row::Masks::own},
    {"SimpleRNN", recurrent<Kind::simple>, nullptr, Row::Masks::own},
};

}  // namespace

std::span<const Row> recurrent_rows() { return kRecurrentRows; }

}  // namespace cairn::keras
