// Losses that also return their gradient, because both share the exponentials. Sums are kept in f64.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

// The shape of the loss: that of input 0, the logits, without the last dim (the classes).
Shape without_classes(const InferContext& context) {
  Shape shape = context.shape(0);
  if (!shape.ranked) return shape;
  if (shape.rank() == 0) context.fail("logits must have a dim of classes, found {}", to_string(context.input(0)));
  shape.dims.pop_back();
  return shape;
}

void infer_cross_entropy(InferContext& context) {
  const DType dtype = number_type(context, 0);
  equal_types(context);
  without_classes(context);
  Shape shape = context.shape(0);
  if (shape.ranked && ranked(context, 1, shape.rank()))
    for (size_t i = 0; i < shape.rank(); ++i)
      shape.dims[i] = same_size(context, shape.dims[i], context.shape(1).dims[i], "sizes of logits and labels");
  Shape loss = shape;
  if (loss.ranked) loss.dims.pop_back();
  context.result(dtype, std::move(loss));
  context.result(dtype, std::move(shape));
}

void infer_sparse_cross_entropy(InferContext& context) {
  const DType dtype = number_type(context, 0);
  Shape loss = without_classes(context), shape = context.shape(0);
  if (loss.ranked && ranked(context, 1, loss.rank()))
    for (size_t i = 0; i < loss.rank(); ++i)
      shape.dims[i] = loss.dims[i] =
          same_size(context, loss.dims[i], context.shape(1).dims[i], "sizes of logits and labels");
  if (!loss.ranked) loss = context.shape(1);
  context.result(dtype, std::move(loss));
  context.result(dtype, std::move(shape));
}

double cross_entropy_flops(const InferContext& context) {
  return 8 * static_cast<double>(known_count(context.shape(0)).value_or(0));
}

// loss = sum of label(row, c) * (log of the sum of exp - logit), gradient = softmax - label(row, c).
template <class T, class Label>
void cross_entropy(KernelContext& context, Label&& label) {
  const Tensor& logits = context.input(0);
  const int64_t classes = logits.dims().back(), rows = count_between(logits.dims(), 0, logits.rank() - 1);
  std::vector<double> centred(static_cast<size_t>(rows > 0 ? classes : 0));
  for (const int64_t row : turns(rows, 8 * classes)) {
    const T* from = data<T>(logits) + row * classes;
    T* gradient = data<T>(context.output(1)) + row * classes;
    double most = -std::numeric_limits<double>::infinity(), sum = 0, loss = 0;
    for (int64_t c = 0; c < classes; ++c) most = maximum(most, static_cast<double>(from[c]));
    for (size_t c = 0; c < centred.size(); ++c) sum += std::exp(centred[c] = static_cast<double>(from[c]) - most);
    for (const int64_t c : turns(classes)) {
      const double x = centred[static_cast<size_t>(c)], share = label(row, c);
      if (share != 0) loss += share * (std::log(sum) - x);
      gradient[c] = T(static_cast<Compute<T>>(std::exp(x) / sum - share));
    }
    data<T>(context.output(0))[row] = T(static_cast<Compute<T>>(loss));
  }
}

void dense_cross_entropy(KernelContext& context) {
  allocate_results(context);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    const int64_t classes = context.input(0).dims().back();
    const T* labels = data<T>(context.input(1));
    cross_entropy<T>(context, [=](int64_t row, int64_t c) { return static_cast<double>(labels[row * classes + c]); });
  });
}

void sparse_cross_entropy(KernelContext& context) {
  allocate_results(context);
  const Dims labels = context.input(1).as_i64();
  const int64_t classes = context.input(0).dims().back();
  for (int64_t label : labels)
    if (label < 0 || label >= classes) context.fail("label {} is out of range for {} classes", label, classes);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    cross_entropy<decltype(tag)>(
        context, [&](int64_t row, int64_t c) { return labels[static_cast<size_t>(row)] == c ? 1.0 : 0.0; });
  });
}

std::vector<Value*> cross_entropy_by_exp(Builder& b, const Node& node) {
  Value *logits = node.inputs[0], *labels = node.inputs[1];
  const Attributes keep = {{"axes", std::vector<int64_t>{-1}}, {"keep_dims", true}};
  const Attributes drop = {{"axes", std::vector<int64_t>{-1}}};
  Value* centred = b.add("sub", {logits, b.add("reduce_max", {logits}, keep)});
  Value* powers = b.add("exp", {centred});
  Value* sum = b.add("reduce_sum", {powers}, keep);
  Value* terms = b.add("mul", {labels, b.add("sub", {b.add("log", {sum}), centred})});
  return {b.add("reduce_sum", {terms}, drop), b.add("sub", {b.add("div", {powers, sum}), labels})};
}

// x with a new last dim of size 1.
Var with_classes(const GradientContext& g, Var x) {
  Sizes sizes = sizes_of(g, x);
  sizes.emplace_back(g.b, 1);
  return reshape(x, sizes);
}
// dx of softmax(x) = y for dy.
Var of_softmax(Var y, Var dy) { return y * (dy - reduce_sum(dy * y, {-1}, true)); }

// Result 1, softmax - labels, is the derivative when the labels add up to 1; else the softmax is multiplied by their
// sum.
void softmax_cross_entropy_rule(GradientContext& g) {
  const Var labels = g.x(1), soft = g.y(1) + labels;
  std::optional<Var> dx, dlabels;
  if (g.has_dy(0)) {
    const Var dloss = with_classes(g, g.dy(0));
    dx = dloss * (soft * reduce_sum(labels, {-1}, true) - labels);
    if (g.wanted(1)) dlabels = -dloss * g.x(0).apply("log_softmax");
  }
  if (g.has_dy(1)) {
    const Var more = of_softmax(soft, g.dy(1));
    dx = dx ? *dx + more : more;
    dlabels = dlabels ? *dlabels - g.dy(1) : -g.dy(1);
  }
  if (dx) g.set(0, *dx);
  if (dlabels) g.set(1, *dlabels);
}
void sparse_softmax_cross_entropy_rule(GradientContext& g) {
  std::optional<Var> dx;
  if (g.has_dy(0)) dx = with_classes(g, g.dy(0)) * g.y(1);
  if (g.has_dy(1)) {
    const Var more = of_softmax(g.x(0).apply("softmax"), g.dy(1));
    dx = dx ? *dx + more : more;
  }
  if (dx) g.set(0, *dx);
}
void ctc_loss_rule(GradientContext& g) {
  if (g.has_dy(1)) refuse_gradient(g, "its gradient cannot be differentiated again");
  g.set(0, with_classes(g, g.dy(0)) * g.y(1));
}

void infer_ctc_loss(InferContext& context) {
  const DType dtype = number_type(context, 0);
  Dim batch, labels;
  if (ranked(context, 0, 3)) batch = context.shape(0).dims[1];
  if (ranked(context, 1, 2)) {
    labels = context.shape(1).dims[0];
    same_size(context, context.shape(1).dims[1], Dim(2), "numbers of a label's place");
  }
  if (ranked(context, 2, 1)) same_size(context, labels, context.shape(2).dims[0], "numbers of places and labels");
  if (ranked(context, 3, 1)) batch = same_size(context, batch, context.shape(3).dims[0], "numbers of sequences");
  Shape gradient = context.shape(0);
  if (gradient.ranked) gradient.dims[1] = batch;
  context.result(dtype, Shape{batch});
  context.result(dtype, std::move(gradient));
}

double ctc_flops(const InferContext& context) {
  return 20 * static_cast<double>(known_count(context.shape(0)).value_or(0));
}

constexpr double kImpossible = -std::numeric_limits<double>::infinity();  // log of 0

double log_of_sum(double a, double b) {
  if (a == kImpossible) return b;
  if (b == kImpossible) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// One sequence of connectionist temporal classification (Graves, "Supervised sequence labelling with recurrent neural
// networks", 2012, chapter 7). The path is its labels with a blank before, between and after them; each step stays,
// advances by one, or skips a blank between different labels.
class CtcSequence {
 public:
  CtcSequence(const std::vector<int64_t>& labels, int64_t classes, bool merge_repeated)
      : classes_(static_cast<size_t>(classes)), merge_(merge_repeated) {
    const size_t blank = classes_ - 1;
    for (int64_t label : labels) path_.insert(path_.end(), {blank, static_cast<size_t>(label)});
    path_.push_back(blank);
  }

  /// `logs` are log probabilities [steps, classes]. Sets `shares`, of the same size, to the log probability of all
  /// paths that emit the class at the step. Returns the log probability of all paths.
  double run(const std::vector<double>& logs, std::vector<double>& shares) const {
    const size_t places = path_.size(), steps = logs.size() / classes_;
    auto log_at = [&](size_t step, size_t place) { return logs[step * classes_ + path_[place]]; };
    std::vector<double> before(steps * places, kImpossible), after(steps * places, kImpossible);
    for (size_t u = 0; u < std::min<size_t>(places, 2); ++u) before[u] = log_at(0, u);
    const auto work = static_cast<int64_t>(8 * places);
    for (size_t t = 1; t < steps; ++t, stop_point_after(work))
      for (size_t u = 0; u < places; ++u) {
        const double* last = &before[(t - 1) * places];
        double sum = stays(u) ? last[u] : kImpossible;
        if (u > 0) sum = log_of_sum(sum, last[u - 1]);
        if (skips(u)) sum = log_of_sum(sum, last[u - 2]);
        before[t * places + u] = sum + log_at(t, u);
      }
    for (size_t u = places - std::min<size_t>(places, 2); u < places; ++u) after[(steps - 1) * places + u] = 0;
    for (size_t t = steps - 1; t-- > 0; stop_point_after(work))
      for (size_t u = 0; u < places; ++u) {
        const double* next = &after[(t + 1) * places];
        double sum = stays(u) ? next[u] + log_at(t + 1, u) : kImpossible;
        if (u + 1 < places) sum = log_of_sum(sum, next[u + 1] + log_at(t + 1, u + 1));
        if (u + 2 < places && skips(u + 2)) sum = log_of_sum(sum, next[u + 2] + log_at(t + 1, u + 2));
        after[t * places + u] = sum;
      }
    shares.assign(logs.size(), kImpossible);
    for (const size_t t : turns(steps, work))
      for (size_t u = 0; u < places; ++u) {
        double& share = shares[t * classes_ + path_[u]];
        share = log_of_sum(share, before[t * places + u] + after[t * places + u]);
      }
    double all = kImpossible;
    for (size_t u = 0; u < places; ++u) all = log_of_sum(all, before[u] + after[u]);
    return all;
  }

 private:
  bool stays(size_t u) const { return merge_ || path_[u] == classes_ - 1; }
  bool skips(size_t u) const { return u > 1 && path_[u] != classes_ - 1 && !(merge_ && path_[u] == path_[u - 2]); }

  std::vector<size_t> path_;
  size_t classes_;
  bool merge_;
};

// The labels of each sequence, checked: places in order, no label behind a blank, enough steps for all of them.
std::vector<std::vector<int64_t>> ctc_labels(KernelContext& context, int64_t batch, int64_t classes) {
  const Dims places = context.input(1).as_i64(), values = context.input(2).as_i64();
  const bool collapse = context.attr.boolean("collapse_repeated");
  std::vector<std::vector<int64_t>> labels(static_cast<size_t>(batch));
  int64_t last = 0, row = 0, place = -1;
  bool ended = false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (places[2 * i] < 0 || places[2 * i] >= batch)
      context.fail("label {} is of sequence {}, there are {}", i, places[2 * i], batch);
    if (places[2 * i] < row || (places[2 * i] == row && places[2 * i + 1] <= place) || places[2 * i + 1] < 0)
      context.fail("the places of the labels are not in order at label {}", i);
    const bool first = places[2 * i] != row || place < 0;
    ended = ended && !first;
    row = places[2 * i], place = places[2 * i + 1];
    const bool repeated = collapse && !first && values[i] == last;
    last = values[i];
    if (repeated) continue;
    if (values[i] < 0) context.fail("label {} of sequence {} is negative", values[i], row);
    if (values[i] >= classes - 1) {
      ended = true;
    } else {
      if (ended) context.fail("sequence {} has label {} behind a blank", row, values[i]);
      labels[static_cast<size_t>(row)].push_back(values[i]);
    }
  }
  return labels;
}

void ctc_loss(KernelContext& context) {
  allocate_results(context);
  const Tensor& logits = context.input(0);
  const int64_t most = logits.dims()[0], batch = logits.dims()[1], classes = logits.dims()[2];
  const Dims lengths = context.input(3).as_i64();
  const bool merge = context.attr.boolean("merge_repeated"), ignore = context.attr.boolean("ignore_longer");
  if (classes < 1) context.fail("there is no class for the blank");
  const auto labels = ctc_labels(context, batch, classes);
  with_floats(logits.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T *loss = data<T>(context.output(0)), *gradient = data<T>(context.output(1));
    std::fill_n(loss, batch, T(0));
    std::fill_n(gradient, logits.count(), T(0));
    std::vector<double> logs, shares;
    for (const int64_t row : turns(batch)) {
      const auto& wanted = labels[static_cast<size_t>(row)];
      const int64_t steps = lengths[static_cast<size_t>(row)], needed = static_cast<int64_t>(wanted.size());
      if (steps < 0 || steps > most) context.fail("sequence {} has {} steps, there are {}", row, steps, most);
      if (needed > steps && !ignore) context.fail("sequence {} has {} labels for {} steps", row, needed, steps);
      if (needed > steps || steps == 0) continue;
      logs.clear();
      for (const int64_t t : turns(steps, 8 * classes)) {
        const T* from = data<T>(logits) + (t * batch + row) * classes;
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t c = 0; c < classes; ++c) largest = maximum(largest, static_cast<double>(from[c]));
        for (int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(from[c]) - largest);
        for (int64_t c = 0; c < classes; ++c) logs.push_back(static_cast<double>(from[c]) - largest - std::log(sum));
      }
      const double all = CtcSequence(wanted, classes, merge).run(logs, shares);
      loss[row] = T(static_cast<Compute<T>>(-all));
      for (const int64_t t : turns(steps))
        for (const int64_t c : turns(classes)) {
          const auto i = static_cast<size_t>(t * classes + c);
          // When no path is possible, the gradient is the softmax alone.
          const double part = all == kImpossible ? 0 : std::exp(shares[i] - all);
          gradient[(t * batch + row) * classes + c] = T(static_cast<Compute<T>>(std::exp(logs[i]) - part));
        }
    }
  });
}

std::vector<OpDef> make_losses_rows() {
  return {
      {.name = "softmax_cross_entropy",
       .summary = "along the last dim the sum of labels * -log(softmax(logits)), where a label of 0 adds nothing, and "
                  "softmax(logits) - labels: its gradient by the logits when the labels add up to 1; a row with NaN or "
                  "+inf gives NaN",
       .inputs = {{"logits", Accepts::floats}, {"labels", Accepts::floats}},
       .results = {"loss", "gradient"},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_cross_entropy,
       .flops = cross_entropy_flops,
       .gradient = softmax_cross_entropy_rule,
       .decompose = cross_entropy_by_exp,
       .reference = dense_cross_entropy,
       .oracle = {"cross_entropy(logits, labels)"},
       .cases = {"f32[2, 3], f32[2, 3]", "f32[4, 10], f32[4, 10]", "f32[3, 67], f32[3, 67]", "f32[0, 3], f32[0, 3]",
                 "f32[5], f32[5]", "f32[2, 3, 4], f32[2, 3, 4]",
                 "f32[2, 3]=[1000, 0, -1000, 50, 60, 70], f32[2, 3]=[1, 0, 0, 0.5, 0.5, 0]", "f64[2, 5], f64[2, 5]",
                 "f16[2, 9], f16[2, 9]"}},
      {.name = "sparse_softmax_cross_entropy",
       .summary = "softmax_cross_entropy where each row's label is one class; a label that is no class is an error",
       .inputs = {{"logits", Accepts::floats}, index_operand("labels")},
       .results = {"loss", "gradient"},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_sparse_cross_entropy,
       .flops = cross_entropy_flops,
       .gradient = sparse_softmax_cross_entropy_rule,
       .reference = sparse_cross_entropy,
       .oracle = {"cross_entropy(logits, np.eye(logits.shape[-1], dtype=logits.dtype)[labels])"},
       .cases = {"f32[2, 3], i64[2]=[2, 0]", "f32[4, 10], i32[4]=[9, 0, 3, 3]", "f32[3, 67], i64[3]=[66, 0, 31]",
                 "f32[0, 3], i64[0]=[]", "f32[5], i64[]=[4]", "f32[2, 3, 4], i32[2, 3]=[0, 1, 2, 3, 3, 0]",
                 "f64[2, 5], i64[2]=[4, 4]", "f16[2, 9], i32[2]=[0, 8]"}},
      {.name = "ctc_loss",
       .summary =
           "connectionist temporal classification: -log of the probability that logits [steps, batch, classes], of "
           "which "
           "each sequence has its length, spell the labels at places [label, (sequence, number)], which stand in "
           "order, "
           "and its gradient by the logits; the last class is the blank. merge_repeated: equal neighbours of a path "
           "are "
           "one label; collapse_repeated: those of the labels are one; ignore_longer: a sequence with more labels than "
           "steps gives 0, else it is an error; no possible path gives inf and the softmax as gradient",
       .inputs =
           {{"logits", Accepts::floats}, index_operand("places"), index_operand("labels"), index_operand("lengths")},
       .attributes = {flag("merge_repeated", true), flag("collapse_repeated"), flag("ignore_longer")},
       .results = {"loss", "gradient"},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_ctc_loss,
       .flops = ctc_flops,
       .gradient = ctc_loss_rule,
       .reference = ctc_loss,
       .oracle = {"ctc_loss(logits, places, labels, lengths, merge_repeated, collapse_repeated, ignore_longer)",
                  kTensorFlow},
       .cases = {"f32[5, 2, 4], i64[3, 2]=[0, 0, 0, 1, 1, 0], i32[3]=[0, 2, 1], i32[2]=[5, 3]",
                 "f32[6, 1, 3], i64[3, 2]=[0, 0, 0, 1, 0, 2], i32[3]=[1, 1, 0], i32[1]=[6]",
                 "f32[6, 1, 3], i64[3, 2]=[0, 0, 0, 1, 0, 2], i32[3]=[1, 1, 0], i32[1]=[6] {merge_repeated = false}",
                 "f32[6, 1, 3], i64[3, 2]=[0, 0, 0, 1, 0, 2], i32[3]=[1, 1, 0], i32[1]=[3] {collapse_repeated = true}",
                 "f32[4, 3, 7], i64[4, 2]=[0, 0, 1, 0, 2, 0, 2, 1], i32[4]=[5, 1, 3, 2], i32[3]=[1, 4, 0] "
                 "{ignore_longer = true}",
                 "f32[3, 1, 3], i64[2, 2]=[0, 0, 0, 1], i32[2]=[1, 1], i32[1]=[2]",
                 "f32[9, 2, 5], i64[3, 2]=[0, 0, 1, 0, 1, 3], i32[3]=[1, 3, 0], i32[2]=[9, 7]",
                 "f16[5, 1, 4], i64[1, 2]=[0, 0], i32[1]=[2], i32[1]=[5]"}},
  };
}

}  // namespace

std::span<const OpDef> loss_ops() {
  static const std::vector<OpDef> rows = make_losses_rows();
  return rows;
}

}  // namespace cairn
