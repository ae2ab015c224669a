// TensorFlow's decoders of connectionist temporal classification, whose results are sparse tensors.
#include "frontends/reshape.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {
namespace {

Value* whole_number(OpContext& c, int64_t value) { return c.b.constant(Tensor::scalar_i64(value)); }

/// 0, 1, ... along dim `axis` of x.
Value* steps_of(OpContext& c, Value* x, size_t axis) { return counted(scalar_dim(x, axis, c.b), c.b); }

/// A mask [batch, steps] of the steps before the end of each sequence. Lengths above the number of steps stop the run.
Value* steps_within(OpContext& c, Value* lengths, Value* steps, Value* count) {
  const Attributes all{{"axes", std::vector<int64_t>{0}}};
  c.b.add_node(op_named("assert"), {c.b.add("reduce_all", {c.b.add("less_equal", {lengths, count})}, all)},
               {{"message", std::string("a sequence is longer than the number of steps")}});
  return c.b.add("less", {steps, expand_dims(lengths, {1}, c.b)});
}

/// Places [n, 2], elements and shape of the sparse matrix that takes the elements of `labels` [batch, steps] where `kept`
/// and puts those of a row one behind the other.
std::vector<Value*> sparse_rows_of(OpContext& c, Value* labels, Value* kept) {
  Value* counts = c.b.add("cumsum", {cast_to(kept, kI64, c.b)}, {{"axis", int64_t{1}}});
  Value* from = c.b.add("non_zero", {kept});
  Value* row = c.b.add("slice", {from, c.b.ints({0, 0}), c.b.ints({kToTheEnd, 1})});
  Value* place = c.b.add("sub", {c.b.add("gather_nd", {counts, from}), whole_number(c, 1)});
  Value* indices = c.b.add("concat", {row, expand_dims(place, {1}, c.b)}, {{"axis", int64_t{1}}});
  const Attributes everything{{"axes", std::vector<int64_t>{0, 1}}};
  Value* longest = c.b.add("maximum", {c.b.add("reduce_max", {counts}, everything), whole_number(c, 0)});
  return {indices, c.b.add("gather_nd", {labels, from}), joined({dim_of(labels, 0, c.b), longest}, c.b)};
}

/// logits [steps, batch, classes], lengths.
Value* checked_lengths(OpContext& c) {
  c.expect_inputs(2);
  if (c.rank(0) != 3 || c.rank(1) != 1)
    fail(ErrorKind::invalid_model, "", "logits and lengths have {} and {} dims, expected 3 and 1", c.rank(0),
         c.rank(1));
  return cast_to(c.in[1], kI64, c.b);
}

/// The most probable class of every step, without blanks and, when merged, without repetitions.
void greedy_decoder(OpContext& c) {
  Value *logits = c.in[0], *lengths = checked_lengths(c);
  const Attributes classes{{"axis", int64_t{2}}};
  const std::vector<int64_t> swap{1, 0};
  Value* best = transposed(c.b.add("arg_max", {logits}, classes), swap, c.b);
  Value* count = scalar_dim(logits, 0, c.b);
  Value* within = steps_within(c, lengths, steps_of(c, logits, 0), count);
  const int64_t index = c.integer("blank_index", -1);
  Value* blank = whole_number(c, index);
  if (index < 0) blank = c.b.add("add", {blank, scalar_dim(logits, 2, c.b)});
  Value* kept = c.b.add("and", {within, c.b.add("not_equal", {best, blank})});
  if (c.boolean("merge_repeated", false)) {
    Tensor pads = Tensor::of<int64_t>(kI64, {2, 2}, std::vector<int64_t>{0, 0, 1, 0});
    Value* earlier = c.b.add("slice", {best, c.b.ints({0, 0}), c.b.ints({kToTheEnd, -1})});
    Value* before = c.b.add("pad", {earlier, c.b.constant(pads)}, {{"value", -1.0}});
    kept = c.b.add("and", {kept, c.b.add("not_equal", {best, before})});
  }
  c.out = sparse_rows_of(c, best, kept);
  Value* scores = transposed(c.b.add("reduce_max", {logits}, {{"axes", std::vector<int64_t>{2}}}), swap, c.b);
  Value* counted = c.b.add("select", {within, scores, c.b.scalar_like(scores, 0)});
  Value* sum = c.b.add("reduce_sum", {counted}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", true}});
  c.out.push_back(c.b.add("neg", {sum}));
}

void beam_search_decoder(OpContext& c) {
  Value *logits = c.in[0], *lengths = checked_lengths(c);
  const int64_t paths = c.integer("top_paths");
  if (paths > 1000) c.refuse("{} paths are not supported", paths);
  auto* made = c.b.add_node(op_named("ctc_beam_search"), {logits, lengths},
                            {{"beam_width", c.integer("beam_width")},
                             {"top_paths", paths},
                             {"merge_repeated", c.boolean("merge_repeated", true)}});
  std::vector<Value*> parts[3];
  for (int64_t path = 0; path < paths; ++path) {
    Value* labels = c.b.add("gather", {made->result(0), whole_number(c, path)}, {{"axis", int64_t{0}}});
    Value* found = c.b.add("gather", {made->result(1), whole_number(c, path)}, {{"axis", int64_t{0}}});
    Value* kept = c.b.add("less", {steps_of(c, labels, 1), expand_dims(found, {1}, c.b)});
    const std::vector<Value*> sparse = sparse_rows_of(c, labels, kept);
    for (size_t i = 0; i < 3; ++i) parts[i].push_back(sparse[i]);
  }
  for (const auto& part : parts) c.out.insert(c.out.end(), part.begin(), part.end());
  c.out.push_back(made->result(2));
}

constexpr Row kCtcRows[] = {
    {"CTCBeamSearchDecoder", beam_search_decoder},
    {"CTCGreedyDecoder", greedy_decoder},
};

}  // namespace

std::span<const Row> ctc_rows() { return kCtcRows; }

}  // namespace cairn::tensorflow
