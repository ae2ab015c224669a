#include "autodiff/losses.h"

#include <cmath>
#include <numeric>

#include "support/nearest.h"

namespace cairn {
namespace {

using Labels = Loss::Labels;

bool are_classes(const LossOperands& o) { return o.labels.dtype().is_integer(); }

Var sum_of_classes(Var x) { return reduce_sum(x, {-1}); }
Var softplus_of(Var x) { return x.apply("softplus"); }
Var positive(Var x) { return maximum(x, x.number(0)); }

Var one_hot_like(Var classes, Var like) {
  Builder& b = *like.builder;
  const Dim& count = like.shape().dims.back();
  if (!count.known()) fail(ErrorKind::invalid_argument, "loss", "the number of classes of the answers is not known");
  Value* depth = b.constant(Tensor::scalar_i64(count.size));
  return {b, b.add("one_hot", {classes.value, depth, like.number(1).value, like.number(0).value})};
}

/// Answers are logits, with the classes along the last dim.
Var cross_entropy(const LossOperands& o) {
  const double smoothing = o.number("smoothing");
  const char* op = are_classes(o) ? "sparse_softmax_cross_entropy" : "softmax_cross_entropy";
  const Var loss = o.answers.apply(op, {o.labels});
  if (smoothing == 0) return loss;
  const Var spread = -reduce_mean(o.answers.apply("log_softmax"), {-1});
  return loss * (1 - smoothing) + spread * smoothing;
}

Var negative_log_likelihood(const LossOperands& o) {
  const Var labels = are_classes(o) ? one_hot_like(o.labels, o.answers) : o.labels;
  return -sum_of_classes(labels * o.answers);
}

/// max(x, 0) - x z + log(1 + exp(-|x|)), which does not overflow.
Var binary_cross_entropy(const LossOperands& o) {
  const Var x = o.answers;
  return positive(x) - x * o.labels + exp(-abs(x)).apply("log1p");
}

Var mean_squared_error(const LossOperands& o) { return square(o.answers - o.labels); }
Var mean_absolute_error(const LossOperands& o) { return abs(o.answers - o.labels); }

Var huber(const LossOperands& o) {
  const double delta = o.number("delta");
  const Var error = abs(o.answers - o.labels);
  return select(error > delta, (error - delta / 2) * delta, square(error) * 0.5);
}

Var log_cosh(const LossOperands& o) {
  const Var error = o.answers - o.labels;
  return error + softplus_of(error * -2) - std::log(2);
}

/// Answers are log probabilities, labels probabilities; a label of 0 contributes 0.
Var kl_divergence(const LossOperands& o) {
  const Var none = o.labels.apply("equal", {o.labels.number(0)}), safe = select(none, o.labels.number(1), o.labels);
  return sum_of_classes(o.labels * (log(safe) - o.answers));
}

Var hinge(const LossOperands& o) { return positive(1 - o.labels * o.answers); }
Var squared_hinge(const LossOperands& o) { return square(hinge(o)); }

/// Answers are logarithms of the expected counts.
Var poisson(const LossOperands& o) { return exp(o.answers) - o.labels * o.answers; }

Var cosine(const LossOperands& o) {
  const Var product = sum_of_classes(o.answers * o.labels);
  const Var lengths = sqrt(sum_of_classes(square(o.answers)) * sum_of_classes(square(o.labels)));
  return 1 - product / maximum(lengths, lengths.number(1e-8));
}

/// Moves the blank class of the logits [steps, batch, classes] to the end.
Var blank_last(Var logits, int64_t blank, int64_t count) {
  if (blank == count - 1) return logits;
  Builder& b = *logits.builder;
  auto part = [&](int64_t begin, int64_t end) {
    return b.add("slice", {logits.value, b.ints({0, 0, begin}), b.ints({INT64_MAX, INT64_MAX, end})});
  };
  return {b, b.add("concat", {part(0, blank), part(blank + 1, count), part(blank, blank + 1)}, {{"axis", int64_t{2}}})};
}

/// Answers are logits [steps, batch, classes], labels class numbers [batch, longest label]; negative numbers are
/// padding.
Var ctc(const LossOperands& o) {
  const Shape& shape = o.answers.shape();
  if (shape.rank() != 3 || !shape.dims[2].known())
    fail(ErrorKind::invalid_argument, "loss", "ctc takes answers [steps, batch, classes], found {}",
         to_string(o.answers.type()));
  const int64_t count = shape.dims[2].size;
  const auto given = static_cast<int64_t>(o.number("blank")), blank = given < 0 ? given + count : given;
  if (blank < 0 || blank >= count)
    fail(ErrorKind::invalid_argument, "loss", "blank {} is no class of {}", given, count);
  Builder& b = *o.answers.builder;
  const Var places = o.labels.apply("greater_equal", {o.labels.number(0)}).apply("non_zero");
  const Var labels = o.labels.apply("gather_nd", {places});
  const Var moved = select(labels > static_cast<double>(blank), labels - 1, labels);
  const Var sizes = dims_of(o.answers);
  auto size = [&](int64_t i) { return Var(b, b.add("slice", {sizes.value, b.ints({i}), b.ints({i + 1})})); };
  const Var lengths = size(0).apply("broadcast_to", {size(1)});
  return {b, b.add("ctc_loss", {blank_last(o.answers, blank, count).value, places.value, moved.value, lengths.value},
                   {{"ignore_longer", true}})};
}

std::vector<Loss> make_losses() {
  return {
      {"cross_entropy",
       "cross-entropy of softmax(answers); labels are classes, or probabilities of the answers' shape",
       {{"smoothing", 0, "share of the labels that is spread over all classes"}},
       cross_entropy,
       "softmax",
       Labels::classes_or_like,
       true},
      {"nll",
       "minus the answer of the label's class, for answers that are log probabilities",
       {},
       negative_log_likelihood,
       nullptr,
       Labels::classes_or_like,
       true},
      {"binary_cross_entropy",
       "cross-entropy of sigmoid(answers), each for itself; labels are 0 to 1",
       {},
       binary_cross_entropy,
       "sigmoid",
       Labels::like_answers,
       true},
      {"mse", "squared differences", {}, mean_squared_error},
      {"mae", "absolute differences", {}, mean_absolute_error},
      {"huber",
       "half the squared difference, and linear beyond delta",
       {{"delta", 1, "where the linear part begins"}},
       huber},
      {"log_cosh", "logarithm of the hyperbolic cosine of the difference", {}, log_cosh},
      {"kl_divergence",
       "sum of label * (log(label) - answer), for answers that are log probabilities",
       {},
       kl_divergence},
      {"hinge", "max(0, 1 - label * answer); labels are -1 or 1", {}, hinge},
      {"squared_hinge", "the square of hinge", {}, squared_hinge},
      {"poisson", "exp(answer) - label * answer, for answers that are logarithms of counts", {}, poisson},
      {"cosine", "1 - the cosine of the angle between answer and label", {}, cosine},
      {"ctc",
       "connectionist temporal classification; answers are logits [steps, batch, classes], labels classes [batch, "
       "most], "
       "where -1 fills up",
       {{"blank", -1, "class of the blank, -1: the last"}},
       ctc,
       nullptr,
       Labels::sequences},
  };
}

std::vector<int64_t> all_axes(const Type& type) {
  if (!type.shape.ranked) fail(ErrorKind::invalid_argument, "loss", "the number of dims of the answers is not known");
  std::vector<int64_t> axes(type.shape.rank());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

/// Moves the axis to the end.
Var axis_last(Var x, int64_t axis) {
  const auto rank = static_cast<int64_t>(all_axes(x.type()).size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank)
    fail(ErrorKind::invalid_argument, "loss", "axis {} of the classes is out of range for answers {}", axis,
         to_string(x.type()));
  if (axis == rank - 1) return x;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return x.apply("transpose", {}, {{"permutation", order}});
}

}  // namespace

std::span<const Loss> losses() {
  static const std::vector<Loss> rows = make_losses();
  return rows;
}

const Loss& find_loss(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Loss& row : losses()) {
    if (row.name == name) return row;
    known.emplace_back(row.name);
  }
  fail(ErrorKind::not_found, "loss", "none is called '{}'{}; there are {}", printable(name), did_you_mean(name, known),
       fmt::join(known, ", "));
}

Type label_type(const Loss& loss, const Type& answers, bool classes, int64_t axis) {
  std::vector<Dim> dims = answers.shape.dims;
  if (loss.labels == Labels::sequences) return Type::tensor(kI64, Shape{dims.size() > 1 ? dims[1] : Dim(), Dim()});
  if (!classes) return answers;
  if (loss.labels == Labels::like_answers)
    fail(ErrorKind::invalid_argument, "loss", "{} takes labels of the answers' shape, not classes", loss.name);
  const auto rank = static_cast<int64_t>(all_axes(answers).size());
  if (rank == 0 || axis < -rank || axis >= rank)
    fail(ErrorKind::invalid_argument, "loss", "answers {} have no axis {} of classes", to_string(answers), axis);
  dims.erase(dims.begin() + (axis < 0 ? axis + rank : axis));
  return Type::tensor(kI64, Shape(std::move(dims)));
}

Var loss_of(const Loss& loss, Var answers, Var labels, const std::map<std::string, double>& numbers, int64_t axis) {
  LossOperands operands{answers, labels, {}};
  std::vector<std::string_view> known;
  for (const LossNumber& number : loss.numbers) {
    operands.numbers[number.name] = number.fallback;
    known.emplace_back(number.name);
  }
  for (const auto& [name, value] : numbers) {
    if (!operands.numbers.contains(name))
      fail(ErrorKind::not_found, loss.name, "has no number '{}'{}{}", printable(name), did_you_mean(name, known),
           known.empty() ? "; it has none" : fmt::format("; it has {}", fmt::join(known, ", ")));
    operands.numbers[name] = value;
  }
  if (loss.labels != Labels::sequences && axis != -1) {
    if (!are_classes(operands)) operands.labels = axis_last(labels, axis);
    operands.answers = axis_last(answers, axis);
  }
  const Var each = loss.of(operands);
  return reduce_mean(each, all_axes(each.type()));
}

std::string describe_losses() {
  std::string text =
      "\nWhat `cairn train --loss` takes, with the numbers (`--loss-set name=value`) as they are when not given. The "
      "loss of "
      "a batch is the mean over its rows or elements. Where a model ends in the operator of the third column, the loss "
      "takes "
      "what goes into it.\n\n"
      "| loss | what it is | contains | numbers |\n|---|---|---|---|\n";
  for (const Loss& row : losses()) {
    text += fmt::format("| `{}` | {} | {} |", row.name, row.summary, row.contains ? row.contains : "");
    for (const LossNumber& number : row.numbers)
      text += fmt::format(" `{}` = {}: {}", number.name, number.fallback, number.meaning);
    text += " |\n";
  }
  return text;
}

Var accuracy_of(Var answers, Var labels, int64_t axis) {
  const auto rank = static_cast<int64_t>(all_axes(answers.type()).size());
  Var same = answers;
  if (labels.dtype().is_integer()) {
    same = answers.apply("arg_max", {}, {{"axis", axis}, {"dtype", kI64}}).apply("equal", {labels});
  } else if (rank > 1 && answers.shape().dims[axis < 0 ? axis + rank : axis] != Dim(1)) {
    auto largest = [&](Var x) { return x.apply("arg_max", {}, {{"axis", axis}, {"dtype", kI64}}); };
    same = largest(answers).apply("equal", {largest(labels)});
  } else {
    same = (answers > 0).apply("equal", {labels > 0.5});
  }
  return reduce_mean(cast(same, kF32), all_axes(same.type()));
}

}  // namespace cairn
