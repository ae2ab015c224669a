// Keras' recurrent layers: SimpleRNN, GRU, LSTM, RNN over their cells, Bidirectional, and LSTMs that convolve.
#include <numeric>

#include "frontends/fold.h"
#include "frontends/keras/importer.h"
#include "frontends/recurrent.h"
#include "frontends/reshape.h"

namespace cairn::keras {
namespace {

using Kind = Recurrence::Kind;

/// Transposes steps and batch.
Value* swapped(Value* x, Builder& b) {
  std::vector<int64_t> order{1, 0, 2};
  order.resize(x->type.shape.rank());
  return transposed(x, order, b);
}

/// The results of a layer that runs backwards, reversed to chronological order.
Value* in_time(const LayerContext& c, Value* all) {
  return c.b.add("reverse", {all}, {{"axes", std::vector<int64_t>{c.boolean("time_major", false) ? 0 : 1}}});
}

/// Rows, images and volumes [n, ..., channels].
Value* convolved(Value* x, Value* kernel, const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations,
                 const std::string& padding, Builder& b) {
  if (padding != "same" && padding != "valid")
    fail(ErrorKind::unsupported, "", "padding '{}' is not supported", printable(padding));
  if (strides.size() == 1)
    return squeeze(
        convolved(expand_dims(x, {1}, b), expand_dims(kernel, {0}, b), {1, strides[0]}, {1, dilations[0]}, padding, b),
        {1}, b);
  return b.add(strides.size() == 2 ? "conv2d" : "conv3d", {x, kernel},
               {{"strides", strides}, {"dilations", dilations}, {"padding", padding}});
}

struct Results {
  Value* all;                  // [batch, steps, hidden], in the order in which the steps were taken
  Value* last;                 // [batch, hidden] after the last one
  std::vector<Value*> states;  // after the last one, of every cell: what it gives, and of an LSTM its cell
};

size_t states_of(Kind kind) { return kind == Kind::lstm ? 2 : 1; }

/// One of the cells that a layer applies in sequence at each step.
struct Cell {
  Kind kind;
  const Json* config;
  Weights weights;
};

Kind kind_of(const LayerContext& c, const std::string& layer) {
  for (auto [name, kind] : {std::pair("LSTM", Kind::lstm), {"GRU", Kind::gru}, {"SimpleRNN", Kind::simple}})
    if (layer == name || layer == std::string(name) + "Cell") return kind;
  c.refuse("around {} is not supported", printable(layer));
}

/// The configuration and the class of a layer within another's configuration.
std::pair<const Json*, std::string> inner_layer(const Json& json) {
  if (!json.is_object() || !json.contains("config") || !json["config"].is_object())
    fail(ErrorKind::invalid_model, "", "it lacks an inner layer");
  return {&json["config"], json.value("class_name", "")};
}

/// The cells of a layer of class `layer`; in an archive, `weights` are those of its member "cell".
std::vector<Cell> cells_of(const LayerContext& c, const std::string& layer, const Weights& weights) {
  if (layer != "RNN") return {{kind_of(c, layer), &c.config, weights}};
  const Json* cell = c.find("cell");
  if (cell == nullptr) fail(ErrorKind::invalid_model, "", "it has no cell");
  const auto [config, kind] = inner_layer(*cell);
  if (kind != "StackedRNNCells") return {{kind_of(c, kind), config, weights}};
  if (config->value("reverse_state_order", false)) c.refuse("reverse_state_order is not supported");
  std::vector<Cell> cells;
  std::map<std::string, int> used;
  const auto list = config->find("cells");
  if (list == config->end() || !list->is_array() || list->empty() || list->size() > 64)
    fail(ErrorKind::invalid_model, "", "it has no list of cells");
  for (const Json& each : *list) {
    const auto [inner, name] = inner_layer(each);
    cells.push_back(
        {kind_of(c, name), inner, weights.part(inner->value("name", ""), "cells/" + next_place(name, used))});
  }
  return cells;
}

void take_functions(Recurrence& layer, LayerContext& c, const char* gate) {
  layer.fresh = layer.out = c.text("activation", "tanh");
  if (layer.kind != Kind::simple) layer.gate = c.text("recurrent_activation", gate);
  layer.apply = [keras3 = c.keras3](const std::string& function, Value* y, Builder& builder) {
    return activation(y, function, keras3, builder);
  };
}

/// One cell over x [steps, batch, n], in the order of time.
Sequence run(LayerContext& c, Kind kind, Value* x, Recurrence layer) {
  const int64_t hidden = c.integer("units", -1), gates = kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1;
  if (hidden < 1 || hidden > (1 << 24)) fail(ErrorKind::invalid_model, "", "has {} units", hidden);
  Builder& b = c.b;
  layer.kind = kind;
  layer.hidden = hidden;
  take_functions(layer, c, "sigmoid");
  layer.reset_after = c.boolean("reset_after", true);
  layer.input = b.add("matmul", {x, c.weight("kernel", {c.last_dim(), gates * hidden})});
  layer.kernel = c.weight("recurrent_kernel", {hidden, gates * hidden});
  const bool two = kind == Kind::gru && layer.reset_after;  // biases: of the input and of the state
  if (c.boolean("use_bias", true)) {
    Value* bias = two ? c.weight("bias", {2, gates * hidden}) : c.weight("bias", {gates * hidden});
    auto row = [&](int64_t i) { return folded(b.add("gather", {bias, b.constant(Tensor::scalar_i64(i))}), b); };
    if (two) layer.bias = row(1);
    layer.input = b.add("add", {layer.input, two ? row(0) : bias});
  }
  for (size_t i = layer.states.size(); i < states_of(kind); ++i) layer.states.push_back(zero_state(x, hidden, b));
  return recur(layer, b);
}

/// `states` at the start: as many as the cells have, or none for zeros.
Results run(LayerContext& c, const std::vector<Cell>& cells, bool backwards, bool masked_zero,
            std::span<Value* const> states) {
  if (c.rank() != 3) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 3", c.rank());
  if (c.boolean("stateful", false)) c.stateful = true;
  Builder& b = c.b;
  const bool steps_first = c.boolean("time_major", false);
  auto turned = [&](Value* x) { return steps_first ? x : swapped(x, b); };
  Results results;
  Value* x = turned(c.in[0]);
  Value* mask = c.masks[0] == nullptr ? nullptr : expand_dims(turned(c.masks[0]), {2}, b);
  for (const Cell& cell : cells) {
    LayerContext one(b, *cell.config, {x}, cell.weights);
    one.keras3 = c.keras3;
    Recurrence layer;
    layer.backwards = backwards;
    layer.mask = mask;
    layer.masked_zero = masked_zero;
    if (!states.empty()) {
      const auto own = states.subspan(results.states.size(), states_of(cell.kind));
      layer.states.assign(own.begin(), own.end());
    }
    const Sequence sequence = run(one, cell.kind, x, layer);
    x = sequence.all;
    results.last = sequence.last[0];
    results.states.insert(results.states.end(), sequence.last.begin(), sequence.last.end());
  }
  results.all = turned(x);
  if (backwards) results.all = in_time(c, results.all);
  return results;
}

size_t states_of(const std::vector<Cell>& cells) {
  size_t count = 0;
  for (const Cell& cell : cells) count += states_of(cell.kind);
  return count;
}

/// The states at the start, which follow the input of a call.
std::span<Value* const> given_states(const LayerContext& c, size_t count) {
  if (c.in.size() != 1) {
    if (c.find("num_constants") != nullptr) c.refuse("constants are not supported");
    c.expect_inputs(1 + count);
  }
  return std::span(c.in.all()).subspan(1);
}

void recurrent(LayerContext& c) {
  const std::vector<Cell> cells = cells_of(c, c.target, c.weights.numbered() ? c.weights.part("", "cell") : c.weights);
  const std::span<Value* const> states = given_states(c, states_of(cells));
  const bool all = c.boolean("return_sequences", false), masked_zero = c.boolean("zero_output_for_mask", false);
  if (c.masks[0] != nullptr && masked_zero && !all)
    c.refuse("zero_output_for_mask without return_sequences is not supported");
  const Results results = run(c, cells, c.boolean("go_backwards", false), masked_zero, states);
  c.out = {all ? results.all : results.last};
  if (c.boolean("return_state", false)) c.out.insert(c.out.end(), results.states.begin(), results.states.end());
  if (all) c.mask = c.masks[0];
}

/// Two copies of a layer, one of which runs backwards; their results are joined in chronological order.
void bidirectional(LayerContext& c) {
  const Json *inner = c.find("layer"), *other = c.find("backward_layer");
  if (inner == nullptr) fail(ErrorKind::invalid_model, "", "has no layer");
  const auto [config, kind] = inner_layer(*inner);
  const Json* turned = config;  // of the backward layer; always explicit in Keras 3
  if (other != nullptr) {
    const auto [written, class_name] = inner_layer(*other);
    if (!c.keras3 || class_name != kind || !written->value("go_backwards", false))
      c.refuse("a backward_layer of its own is not supported");
    turned = written;
  }
  if (config->value("go_backwards", false)) c.refuse("around a layer that goes backwards is not supported");
  const std::string mode = c.text("merge_mode", "concat"), name = config->value("name", "");
  std::vector<Value*> parts, last;
  for (bool backwards : {false, true}) {
    Weights weights = c.weights.part((backwards ? "backward_" : "forward_") + name,
                                     backwards ? "backward_layer/cell" : "forward_layer/cell");
    LayerContext one(c.b, backwards ? *turned : *config, c.in, weights);
    one.masks = c.masks;
    one.keras3 = c.keras3;
    const std::vector<Cell> cells = cells_of(one, kind, weights);
    const size_t count = states_of(cells);
    std::span<Value* const> states = given_states(c, 2 * count);
    if (!states.empty()) states = states.subspan(backwards ? count : 0, count);
    const bool all = one.boolean("return_sequences", false);
    const Results results = run(one, cells, backwards, all, states);
    c.stateful = c.stateful || one.stateful;
    Value* y = all ? results.all : results.last;
    if (backwards && all) y = in_time(one, y);
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
  else if (c.find("merge_mode") == nullptr)
    c.out = parts;
  else
    c.refuse("merge_mode '{}' is not supported", printable(mode));
  c.out.insert(c.out.end(), last.begin(), last.end());
}

/// An LSTM whose states are rows, images or volumes, with convolutions instead of matrix products.
template <size_t kDims>
void conv_lstm(LayerContext& c) {
  constexpr size_t kRank = kDims + 3;
  const std::span<Value* const> given = given_states(c, 2);
  if (c.rank() != kRank) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected {}", c.rank(), kRank);
  if (c.boolean("stateful", false)) c.stateful = true;
  if (c.masks[0] != nullptr) c.refuse("a mask on its input is not supported");
  const int64_t hidden = c.integer("filters", -1);
  if (hidden < 1 || hidden > (1 << 20)) fail(ErrorKind::invalid_model, "", "has {} filters", hidden);
  c.weights = c.weights.numbered() ? c.weights.part("", "cell") : c.weights;
  Builder& b = c.b;
  std::vector<int64_t> order(kRank), kernel = c.sizes("kernel_size", kDims, 1);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  Value* x = transposed(c.in[0], order, b);
  const std::vector<Dim>& dims = x->type.shape.dims;
  std::vector<int64_t> image{-1};
  for (size_t i = 2; i < kRank; ++i)
    if (dims[i].known())
      image.push_back(dims[i].size);
    else
      c.refuse("dim {} of the input is not known; declare the shapes of the model's inputs", i);
  kernel.insert(kernel.end(), {c.last_dim(), 4 * hidden});
  Value* made = convolved(reshape_by(x, b.ints(image), b), c.weight("kernel", kernel), c.sizes("strides", kDims, 1),
                          c.sizes("dilation_rate", kDims, 1), c.text("padding", "valid"), b);
  Recurrence layer;
  layer.kind = Kind::lstm;
  layer.hidden = hidden;
  layer.backwards = c.boolean("go_backwards", false);
  layer.product = [](Value* state, Value* weights, Builder& builder) {
    const std::vector<int64_t> ones(kDims, 1);
    return convolved(state, weights, ones, ones, "same", builder);
  };
  take_functions(layer, c, c.keras3 ? "sigmoid" : "hard_sigmoid");
  kernel[kDims] = hidden;
  layer.kernel = c.weight("recurrent_kernel", kernel);
  if (c.boolean("use_bias", true)) made = b.add("add", {made, c.weight("bias", {4 * hidden})});
  std::vector<int64_t> sizes;  // of a state
  Shape state{dims[1]};
  for (size_t i = 1; i <= kDims; ++i) sizes.push_back(made->type.shape.dims[i].size);
  sizes.push_back(4 * hidden);
  layer.input = reshape_by(made, joined({dim_of(x, 0, b), dim_of(x, 1, b), b.ints(sizes)}, b), b);
  sizes.back() = hidden;
  for (int64_t size : sizes) state.dims.emplace_back(size);
  layer.states.assign(given.begin(), given.end());
  if (given.empty()) {
    Value* all = joined({dim_of(x, 1, b), b.ints(sizes)}, b);
    const Type type = Type::tensor(x->type.dtype, state);
    layer.states.assign(2, b.add_node(op_named("broadcast_to"), {b.scalar_like(x, 0), all}, {}, {}, {type})->result());
  }
  const Sequence sequence = recur(layer, b);
  Value* all = transposed(sequence.all, order, b);
  if (layer.backwards) all = in_time(c, all);
  c.out = {c.boolean("return_sequences", false) ? all : sequence.last[0]};
  if (c.boolean("return_state", false)) c.out.insert(c.out.end(), sequence.last.begin(), sequence.last.end());
}

constexpr auto kOwnMasks = Row::Masks::own;

constexpr Row kRecurrentRows[] = {
    {"Bidirectional", bidirectional, nullptr, kOwnMasks},
    {"ConvLSTM1D", conv_lstm<1>, nullptr, kOwnMasks, false, 2},
    {"ConvLSTM2D", conv_lstm<2>, nullptr, kOwnMasks, false, 2},
    {"ConvLSTM3D", conv_lstm<3>, nullptr, kOwnMasks, false, 2},
    {"GRU", recurrent, "GRU", kOwnMasks},
    {"LSTM", recurrent, "LSTM", kOwnMasks},
    {"RNN", recurrent, "RNN", kOwnMasks},
    {"SimpleRNN", recurrent, "SimpleRNN", kOwnMasks},
};

}  // namespace

std::span<const Row> recurrent_rows() { return kRecurrentRows; }

}  // namespace cairn::keras
