// Losses that come with their gradient, because both share the exponentials. Sums are kept in f64.
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

// Logits of input 0 have classes along their last dim; the loss has the dims before it.
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
  for (int64_t row = 0; row < rows; ++row) {
    const T* from = data<T>(logits) + row * classes;
    T* gradient = data<T>(context.output(1)) + row * classes;
    double most = -std::numeric_limits<double>::infinity(), sum = 0, loss = 0;
    for (int64_t c = 0; c < classes; ++c) most = maximum(most, static_cast<double>(from[c]));
    for (size_t c = 0; c < centred.size(); ++c) sum += std::exp(centred[c] = static_cast<double>(from[c]) - most);
    for (int64_t c = 0; c < classes; ++c) {
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

std::vector<OpDef> make_rows() {
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
       .decompose = cross_entropy_by_exp,
       .reference = dense_cross_entropy,
       .oracle = {"cross_entropy(logits, labels)"},
       .cases = {"f32[2, 3], f32[2, 3]", "f32[4, 10], f32[4, 10]", "f32[3, 67], f32[3, 67]", "f32[0, 3], f32[0, 3]",
                 "f32[5], f32[5]", "f32[2, 3, 4], f32[2, 3, 4]",
                 "f32[2, 3]=[1000, 0, -1000, 50, 60, 70], f32[2, 3]=[1, 0, 0, 0.5, 0.5, 0]", "f64[2, 5], f64[2, 5]",
                 "f16[2, 9], f16[2, 9]"}},
      {.name = "sparse_softmax_cross_entropy",
       .summary = "softmax_cross_entropy where each row's label is one class; a label that is no class is an error",
       .inputs = {{"logits", Accepts::floats}, {"labels", Accepts::shape_integers}},
       .results = {"loss", "gradient"},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_sparse_cross_entropy,
       .flops = cross_entropy_flops,
       .reference = sparse_cross_entropy,
       .oracle = {"cross_entropy(logits, np.eye(logits.shape[-1], dtype=logits.dtype)[labels])"},
       .cases = {"f32[2, 3], i64[2]=[2, 0]", "f32[4, 10], i32[4]=[9, 0, 3, 3]", "f32[3, 67], i64[3]=[66, 0, 31]",
                 "f32[0, 3], i64[0]=[]", "f32[5], i64[]=[4]", "f32[2, 3, 4], i32[2, 3]=[0, 1, 2, 3, 3, 0]",
                 "f64[2, 5], i64[2]=[4, 4]", "f16[2, 9], i32[2]=[0, 8]"}},
  };
}

}  // namespace

std::span<const OpDef> loss_ops() {
  static const std::vector<OpDef> rows = make_rows();
  return rows;
}

}  // namespace cairn
