// TensorFlow's recurrent blocks: a whole cell, or a whole LSTM layer, and their gradients. Loops carry only the states;
// if the gates are used, those of all steps are computed from the states at once.
#include <array>
#include <functional>

#include "frontends/reshape.h"
#include "frontends/tensorflow/training.h"
#include "ir/control.h"

namespace cairn::tensorflow {
namespace {

using Values = std::vector<Value*>;

/// Elements begin .. end-1 along an axis.
Value* cut_axis(Builder& b, Value* x, size_t axis, int64_t begin, int64_t end) {
  std::vector<int64_t> first(x->type.shape.rank(), 0), last(x->type.shape.rank(), kToTheEnd);
  first[axis] = begin, last[axis] = end;
  return folded(b.add("slice", {x, b.ints(first), b.ints(last)}), b);
}
Value* add(Builder& b, Value* x, Value* y) { return b.add("add", {x, y}); }
Value* mul(Builder& b, Value* x, Value* y) { return b.add("mul", {x, y}); }
Value* sub_from_one(Builder& b, Value* x) { return b.add("sub", {b.scalar_like(x, 1), x}); }
/// The derivatives of sigmoid and tanh by their results.
Value* sigmoid_slope(Builder& b, Value* y) { return mul(b, y, sub_from_one(b, y)); }
Value* tanh_slope(Builder& b, Value* y) { return sub_from_one(b, mul(b, y, y)); }
/// Along the last axis.
Value* beside(Builder& b, const Values& parts) { return b.add("concat", parts, {{"axis", int64_t{-1}}}); }

int64_t known_size(OpContext& c, const Value* x, size_t axis, const char* what) {
  const Shape& shape = x->type.shape;
  if (!shape.ranked || axis >= shape.rank()) fail(ErrorKind::invalid_model, "", "{} are {}", what, to_string(x->type));
  if (!shape.dims[axis].known() || shape.dims[axis].size > (1 << 28))
    c.refuse("the size of {} is {}", what, to_string(shape.dims[axis]));
  return shape.dims[axis].size;
}

Value* zeros(OpContext& c, const Value* like, int64_t size) {
  return c.b.add("broadcast_to", {c.b.scalar_like(like, 0), c.b.ints({size})});
}

/// A loop over the first dim of `sequences`.
struct Scan {
  Values states, sequences, constants;
  bool backwards = false;
  /// Returns the next states, and the values to collect from the step.
  std::function<std::pair<Values, Values>(Builder& b, const Values& states, const Values& elements,
                                          const Values& constants)>
      step = {};

  struct Results {
    Values last, all;  // final states; collected values along a new first dim, in the order of the sequences
  };
  /// `left`: the types of the collected values.
  Results run(Builder& b, const std::vector<Type>& left) const {
    Value *zero = b.constant(Tensor::scalar_i64(0)), *count = scalar(b, dim_of(sequences[0], 0, b));
    Values inputs{zero};
    inputs.insert(inputs.end(), states.begin(), states.end());
    for (const Type& type : left) inputs.push_back(b.add("list_make", {zero}, {{"element", type}}));
    const size_t carried = inputs.size();
    inputs.push_back(count);
    for (const Values* values : {&sequences, &constants}) inputs.insert(inputs.end(), values->begin(), values->end());
    std::vector<std::unique_ptr<Block>> regions(2);
    for (auto& region : regions) {
      region = std::make_unique<Block>();
      for (const Value* input : inputs) region->add_param(input->type, "");
    }
    Block& test = *regions[0];
    test.results = {Builder(test).add("less", {test.params[0].get(), test.params[carried].get()})};
    fill(*regions[1], left.size());
    const Attributes attributes{{kCarried, static_cast<int64_t>(carried)}};
    auto* loop = b.add_node(op_named("while"), inputs, attributes, std::move(regions));
    Results results;
    for (size_t i = 0; i < states.size(); ++i) results.last.push_back(loop->result(1 + i));
    for (size_t i = 0; i < left.size(); ++i) {
      Shape shape = left[i].shape;
      shape.dims.insert(shape.dims.begin(), sequences[0]->type.shape.dims[0]);
      const Type type = Type::tensor(left[i].dtype, shape);
      Value* all = b.add_node(op_named("list_stack"), {loop->result(1 + states.size() + i)}, {}, {}, {type})->result();
      results.all.push_back(backwards ? b.add("reverse", {all}, {{"axes", std::vector<int64_t>{0}}}) : all);
    }
    return results;
  }

 private:
  static Value* scalar(Builder& b, Value* vector) { return folded(b.add("reshape", {vector, b.ints({})}), b); }

  void fill(Block& body, size_t lists) const {
    Builder b(body);
    size_t at = 0;
    auto take = [&](size_t number) {
      Values values;
      for (size_t i = 0; i < number; ++i) values.push_back(body.params[at++].get());
      return values;
    };
    Value *number = take(1)[0], *one = b.constant(Tensor::scalar_i64(1));
    const Values own_states = take(states.size()), own_lists = take(lists);
    Value *count = take(1)[0], *place = number;
    if (backwards) place = b.add("sub", {b.add("sub", {count, one}), number});
    Values elements;
    for (Value* sequence : take(sequences.size())) elements.push_back(b.add("gather", {sequence, place}));
    const auto [next, made] = step(b, own_states, elements, take(constants.size()));
    body.results = {b.add("add", {number, one})};
    body.results.insert(body.results.end(), next.begin(), next.end());
    for (size_t i = 0; i < lists; ++i) body.results.push_back(b.add("list_push", {own_lists[i], made[i]}));
  }
};

enum Gate : size_t { kInput, kFresh, kForget, kOutput };

/// The attributes common to all LSTM blocks.
struct Lstm {
  int64_t hidden = 0;
  std::array<int64_t, 4> place = {0, 1, 2, 3};  // of each gate in the weights
  double forget_bias = 0, clip = 0;
  bool peephole = false;

  Lstm(OpContext& c, const Value* states) : hidden(known_size(c, states, 1, "the states")) {
    const bool second = c.node().op.ends_with("V2");
    if (second) place = {0, 2, 1, 3};
    forget_bias = second ? 0 : c.real("forget_bias", 1);
    clip = c.real("cell_clip", second ? 0 : 3);
    peephole = c.boolean("use_peephole", false);
  }

  Value* gate(Builder& b, Value* all, Gate gate) const {
    const int64_t begin = place[gate] * hidden;
    return cut_axis(b, all, all->type.shape.rank() - 1, begin, begin + hidden);
  }
  Value* gates(Builder& b, const std::array<Value*, 4>& apart) const {
    Values ordered(4);
    for (size_t gate = 0; gate < 4; ++gate) ordered[static_cast<size_t>(place[gate])] = apart[gate];
    return beside(b, ordered);
  }

  struct Step {
    Value *input, *cell, *forget, *output, *fresh, *bent, *h;
  };
  /// `all`: the sums of all gates; `peeps`: weights of cell to input, forget and output gate.
  Step step(Builder& b, Value* all, Value* before, const Values& peeps) const {
    auto opened = [&](Gate which, Value* cell, size_t peep, double bias) {
      Value* sum = gate(b, all, which);
      if (bias != 0) sum = add(b, sum, b.scalar_like(sum, bias));
      return b.add("sigmoid", {peephole ? add(b, sum, mul(b, cell, peeps[peep])) : sum});
    };
    Step s;
    s.input = opened(kInput, before, 0, 0), s.forget = opened(kForget, before, 1, forget_bias);
    s.fresh = b.add("tanh", {gate(b, all, kFresh)});
    s.cell = add(b, mul(b, s.fresh, s.input), mul(b, before, s.forget));
    if (clip > 0) s.cell = b.add("clip", {s.cell}, {{"low", -clip}, {"high", clip}});
    s.output = opened(kOutput, s.cell, 2, 0);
    s.bent = b.add("tanh", {s.cell});
    s.h = mul(b, s.output, s.bent);
    return s;
  }

  struct Slopes {
    Value *all, *input, *forget, *output, *before;  // by the sums of the gates, and by the cell before
  };
  /// The gradients of one step by those of its cell and its h.
  Slopes slopes(Builder& b, const Step& s, Value* before, Value* cell_gradient, Value* h_gradient,
                const Values& peeps) const {
    Slopes d;
    d.output = mul(b, sigmoid_slope(b, s.output), mul(b, h_gradient, s.bent));
    Value* cell = add(b, mul(b, tanh_slope(b, s.bent), mul(b, h_gradient, s.output)), cell_gradient);
    if (peephole) cell = add(b, cell, mul(b, d.output, peeps[2]));
    Value* fresh = mul(b, tanh_slope(b, s.fresh), mul(b, cell, s.input));
    d.forget = mul(b, sigmoid_slope(b, s.forget), mul(b, cell, before));
    d.input = mul(b, sigmoid_slope(b, s.input), mul(b, cell, s.fresh));
    d.all = gates(b, {d.input, fresh, d.forget, d.output});
    d.before = mul(b, cell, s.forget);
    if (peephole) d.before = add(b, d.before, add(b, mul(b, d.input, peeps[0]), mul(b, d.forget, peeps[1])));
    return d;
  }
};

void expect_rank(OpContext& c, size_t input, size_t rank) {
  if (c.rank(input) != rank)
    fail(ErrorKind::invalid_model, "", "input {} has {} dims, expected {}", input, c.rank(input), rank);
}

/// x, cell, h, weights, three peepholes, bias.
void lstm_cell(OpContext& c) {
  c.expect_inputs(8);
  for (size_t i : {0, 1, 2, 3}) expect_rank(c, i, 2);
  const Lstm lstm(c, c.in[1]);
  Value* all = add(c.b, c.b.add("matmul", {beside(c.b, {c.in[0], c.in[2]}), c.in[3]}), c.in[7]);
  const Lstm::Step s = lstm.step(c.b, all, c.in[1], {c.in[4], c.in[5], c.in[6]});
  c.out = {s.input, s.cell, s.forget, s.output, s.fresh, s.bent, s.h};
}

/// The sum of a product over all but the last dim: of a weight that every row shares.
Value* shared(OpContext& c, Value* x, Value* y) {
  std::vector<int64_t> axes(x->type.shape.rank() - 1);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  return c.b.add("reduce_sum", {y == nullptr ? x : mul(c.b, x, y)}, {{"axes", axes}});
}

/// As lstm_cell, then the seven results without h, the gradients by cell and h.
void lstm_cell_gradient(OpContext& c) {
  c.expect_inputs(16);
  for (size_t i : {0, 1, 2, 3, 8}) expect_rank(c, i, 2);
  const Lstm lstm(c, c.in[1]);
  const Lstm::Step s{c.in[8], c.in[9], c.in[10], c.in[11], c.in[12], c.in[13], nullptr};
  const auto d = lstm.slopes(c.b, s, c.in[1], c.in[14], c.in[15], {c.in[4], c.in[5], c.in[6]});
  c.out = {d.before, d.all, shared(c, d.input, c.in[1]), shared(c, d.forget, c.in[1]), shared(c, d.output, c.in[9])};
  if (!lstm.peephole)
    for (size_t i : {2, 3, 4}) c.out[i] = zeros(c, c.in[0], lstm.hidden);
}

/// The value before each step: `first`, then the sequence without its last element.
Value* before_each(OpContext& c, Value* first, Value* sequence) {
  const Shape shape = sequence->type.shape;
  Value* all = c.b.add("concat", {expand_dims(first, {0}, c.b), sequence}, {{"axis", int64_t{0}}});
  Value* part = cut_axis(c.b, all, 0, 0, -1);
  return c.b.add_node(op_named("identity"), {part}, {}, {}, {Type::tensor(sequence->type.dtype, shape)})->result();
}

/// steps, x [steps, batch, n], cell, h, weights, three peepholes, bias. Results of later steps are 0.
void block_lstm(OpContext& c) {
  c.expect_inputs(9);
  expect_rank(c, 1, 3);
  for (size_t i : {2, 3, 4}) expect_rank(c, i, 2);
  const Lstm lstm(c, c.in[2]);
  Value *x = c.in[1], *weights = c.in[4];
  const int64_t inputs = known_size(c, x, 2, "the inputs");
  const Values peeps{c.in[5], c.in[6], c.in[7]};
  Value *of_x = cut_axis(c.b, weights, 0, 0, inputs), *of_h = cut_axis(c.b, weights, 0, inputs, kToTheEnd);
  Value* from_x = add(c.b, c.b.add("matmul", {x, of_x}), c.in[8]);
  Scan scan{{c.in[2], c.in[3]}, {from_x}, {of_h, peeps[0], peeps[1], peeps[2]}};
  scan.step = [&](Builder& b, const Values& states, const Values& elements, const Values& constants) {
    Value* all = add(b, elements[0], b.add("matmul", {states[1], constants[0]}));
    const Lstm::Step s = lstm.step(b, all, states[0], {constants[1], constants[2], constants[3]});
    return std::pair(Values{s.cell, s.h}, Values{s.cell, s.h});
  };
  const Values all = scan.run(c.b, {c.in[2]->type, c.in[3]->type}).all;
  Value *cells = before_each(c, c.in[2], all[0]), *hs = before_each(c, c.in[3], all[1]);
  const Lstm::Step s = lstm.step(c.b, add(c.b, from_x, c.b.add("matmul", {hs, of_h})), cells, peeps);
  c.out = {s.input, all[0], s.forget, s.output, s.fresh, c.b.add("tanh", {all[0]}), all[1]};
  const Dim steps = x->type.shape.dims[0];
  const Tensor* told = constant_of(c.in[0]);
  if (told != nullptr && told->count() == 1 && told->dtype().is_integer() && steps.known() &&
      told->as_i64()[0] >= steps.size)
    return;
  Value* within =
      c.b.add("less", {expand_dims(counted(scalar_dim(x, 0, c.b), c.b), {1, 2}, c.b), cast_to(c.in[0], kI64, c.b)});
  for (Value*& result : c.out) result = c.b.add("select", {within, result, c.b.scalar_like(result, 0)});
}

/// As block_lstm, then its seven results, the gradients by cell and h.
void block_lstm_gradient(OpContext& c) {
  c.expect_inputs(18);
  expect_rank(c, 1, 3);
  for (size_t i : {2, 3, 4}) expect_rank(c, i, 2);
  const Lstm lstm(c, c.in[2]);
  Value *x = c.in[1], *weights = c.in[4];
  const int64_t inputs = known_size(c, x, 2, "the inputs");
  Value *cells = before_each(c, c.in[2], c.in[10]), *hs = before_each(c, c.in[3], c.in[15]);
  // Sequences: gates i, cs, f, o, ci, co, then the previous values and the two gradients.
  Scan scan{{c.in[2], c.in[3]},
            {c.in[9], c.in[10], c.in[11], c.in[12], c.in[13], c.in[14], cells, c.in[16], c.in[17]},
            {cut_axis(c.b, weights, 0, inputs, kToTheEnd), c.in[5], c.in[6], c.in[7]},
            true};
  for (Value*& state : scan.states) {
    Value* shape = folded(c.b.add("shape_of", {state}), c.b);
    state = c.b.add_node(op_named("broadcast_to"), {c.b.scalar_like(state, 0), shape}, {}, {}, {state->type})->result();
  }
  scan.step = [&](Builder& b, const Values& states, const Values& e, const Values& constants) {
    const Lstm::Step s{e[0], e[1], e[2], e[3], e[4], e[5], nullptr};
    const auto d = lstm.slopes(b, s, e[6], add(b, states[0], e[7]), add(b, states[1], e[8]),
                               {constants[1], constants[2], constants[3]});
    Value* h = b.add("matmul", {d.all, constants[0]}, {{"transpose_b", true}});
    return std::pair(Values{d.before, h}, Values{d.all});
  };
  Type sums = c.in[2]->type;
  sums.shape.dims[1] = Dim(4 * lstm.hidden);
  const Scan::Results found = scan.run(c.b, {sums});
  Value* all = found.all[0];
  auto rows = [&](Value* sequence, int64_t size) { return c.b.add("reshape", {sequence, c.b.ints({-1, size})}); };
  Value* xh = beside(c.b, {rows(x, inputs), rows(hs, lstm.hidden)});
  Value* by_weights = c.b.add("matmul", {xh, rows(all, 4 * lstm.hidden)}, {{"transpose_a", true}});
  Value* by_x = c.b.add("matmul", {all, cut_axis(c.b, weights, 0, 0, inputs)}, {{"transpose_b", true}});
  c.out = {by_x, found.last[0], found.last[1], by_weights};
  const Gate gates[] = {kInput, kForget, kOutput};
  for (size_t i = 0; i < 3; ++i)
    c.out.push_back(lstm.peephole ? shared(c, lstm.gate(c.b, all, gates[i]), i == 2 ? c.in[10] : cells)
                                  : zeros(c, x, lstm.hidden));
  c.out.push_back(shared(c, all, nullptr));
}

/// x, h, weights and biases: of reset and update gate, of the new state.
void gru_cell(OpContext& c) {
  c.expect_inputs(6);
  for (size_t i : {0, 1, 2, 3}) expect_rank(c, i, 2);
  const int64_t hidden = known_size(c, c.in[1], 1, "the states");
  Value *x = c.in[0], *h = c.in[1];
  auto layer = [&](Value* state, size_t weights) {
    return add(c.b, c.b.add("matmul", {beside(c.b, {x, state}), c.in[weights]}), c.in[weights + 2]);
  };
  Value* both = c.b.add("sigmoid", {layer(h, 2)});
  Value *reset = cut_axis(c.b, both, 1, 0, hidden), *update = cut_axis(c.b, both, 1, hidden, kToTheEnd);
  Value* fresh = c.b.add("tanh", {layer(mul(c.b, h, reset), 3)});
  Value* next = add(c.b, mul(c.b, update, h), mul(c.b, sub_from_one(c.b, update), fresh));
  c.out = {reset, update, fresh, next};
}

/// As gru_cell, then reset, update, new state, and the gradient by h.
void gru_cell_gradient(OpContext& c) {
  c.expect_inputs(10);
  for (size_t i : {0, 1, 2, 3, 6}) expect_rank(c, i, 2);
  const int64_t inputs = known_size(c, c.in[0], 1, "the inputs");
  Value *h = c.in[1], *reset = c.in[6], *update = c.in[7], *fresh = c.in[8], *dh = c.in[9];
  auto back = [&](Value* gradient, size_t weights) {
    Value* both = c.b.add("matmul", {gradient, c.in[weights]}, {{"transpose_b", true}});
    return std::pair(cut_axis(c.b, both, 1, 0, inputs), cut_axis(c.b, both, 1, inputs, kToTheEnd));
  };
  Value* by_update = mul(c.b, mul(c.b, dh, c.b.add("sub", {h, fresh})), sigmoid_slope(c.b, update));
  Value* by_fresh = mul(c.b, mul(c.b, dh, sub_from_one(c.b, update)), tanh_slope(c.b, fresh));
  const auto [x_of_fresh, kept] = back(by_fresh, 3);
  Value* by_reset = mul(c.b, mul(c.b, kept, h), sigmoid_slope(c.b, reset));
  Value* by_both = beside(c.b, {by_reset, by_update});
  const auto [x_of_both, h_of_both] = back(by_both, 2);
  Value* by_h = add(c.b, h_of_both, add(c.b, mul(c.b, kept, reset), mul(c.b, update, dh)));
  c.out = {add(c.b, x_of_fresh, x_of_both), by_h, by_fresh, by_both};
}

constexpr Row kBlockRnnRows[] = {
    {"BlockLSTM", block_lstm},
    {"BlockLSTMGrad", block_lstm_gradient},
    {"BlockLSTMGradV2", block_lstm_gradient},
    {"BlockLSTMV2", block_lstm},
    {"GRUBlockCell", gru_cell},
    {"GRUBlockCellGrad", gru_cell_gradient},
    {"LSTMBlockCell", lstm_cell},
    {"LSTMBlockCellGrad", lstm_cell_gradient},
};

}  // namespace

std::span<const Row> block_rnn_rows() { return kBlockRnnRows; }

}  // namespace cairn::tensorflow
