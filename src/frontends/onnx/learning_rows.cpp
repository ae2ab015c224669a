// ai.onnx.ml: encoders, scalers, linear models and support vector machines, composed of the core's operators.
#include "frontends/onnx/learning.h"

#include <cmath>
#include <numeric>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {

Value* as_floats(OpContext& c, size_t input) {
  if (c.in[input]->type.dtype == kString) fail(ErrorKind::invalid_model, "", "input {} are texts", input);
  return c.in[input]->type.dtype == kF64 ? c.in[input] : cast_to(c.in[input], kF32, c.b);
}

Value* floats_of(Builder& b, DType dtype, std::vector<int64_t> dims, const std::vector<double>& numbers) {
  if (dtype == kF64) return b.constant(Tensor::of(kF64, std::move(dims), numbers));
  return b.constant(Tensor::of(kF32, std::move(dims), std::vector<float>(numbers.begin(), numbers.end())));
}

std::vector<double> doubles_of(OpContext& c, std::string_view attribute) {
  const std::vector<float> list = c.reals(attribute);
  return {list.begin(), list.end()};
}

std::vector<double> doubles_or_tensor(OpContext& c, const std::string& attribute) {
  const auto tensor = c.tensor(attribute + "_as_tensor");
  return tensor && tensor->count() > 0 ? tensor->as_f64() : doubles_of(c, attribute);
}

Labels::Labels(OpContext& c, const char* of_numbers, const char* of_texts)
    : numbers(c.integers(of_numbers)), texts(c.texts(of_texts)) {
  if (!numbers.empty() && !texts.empty())
    fail(ErrorKind::invalid_model, "", "has both {} and {}, expected one of them", of_numbers, of_texts);
}

Value* Labels::at(Builder& b, Value* classes) const {
  const auto count = static_cast<int64_t>(size());
  Value* all = texts.empty() ? b.ints(numbers) : b.constant(Tensor::of<std::string>(kString, {count}, texts));
  return b.add("gather", {all, classes});
}

Value* largest(Builder& b, Value* scores) {
  return b.add("arg_max", {scores}, {{"axis", int64_t{1}}, {"dtype", kI64}});
}

Value* both_columns(Builder& b, Value* second, bool of_one) {
  const Var x(b, second);
  return b.add("concat", {(of_one ? 1.0 - x : -x).value, second}, {{"axis", int64_t{1}}});
}

Value* transformed(OpContext& c, Value* scores, const std::string& how) {
  Builder& b = c.b;
  const Var x(b, scores);
  if (how == "NONE") return scores;
  if (how == "LOGISTIC") return b.add("sigmoid", {scores});
  if (how == "SOFTMAX") return b.add("softmax", {scores}, {{"axis", int64_t{-1}}});
  if (how == "SOFTMAX_ZERO") {  // what is 0 stays 0
    const Attributes rows{{"axes", std::vector<int64_t>{-1}}, {"keep_dims", true}};
    const Var most = x.apply("reduce_max", {}, rows);
    const Var parts = select(abs(x) > 1e-7, exp(x - most), x * exp(-most)), sum = parts.apply("reduce_sum", {}, rows);
    return select(sum.apply("equal", {sum.number(0)}), ones_like(parts) * 0.5, parts / sum).value;
  }
  if (how == "PROBIT") {  // by Winitzki's formula, as ONNX Runtime does
    const Var p = x * 2 - 1, rest = log((1.0 - p) * (1.0 + p)), half = rest * 0.5 + 2 / (M_PI * 0.147);
    return (sign(p) * sqrt(sqrt(half * half - rest / 0.147) - half) * 1.41421356).value;
  }
  fail(ErrorKind::invalid_model, "", "post_transform '{}' is unknown", printable(how));
}

namespace {

/// The columns of the input, or, where they are known only in a run, as many as the attributes are for.
int64_t features_of(OpContext& c, int64_t numbers, int64_t rows) {
  if (c.rank(0) != 2) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 2", c.rank(0));
  const Dim features = c.in[0]->type.shape.dims[1];
  if (features.known()) return features.size;
  if (rows < 1 || numbers < 1 || numbers % rows != 0)
    fail(ErrorKind::invalid_model, "", "has {} numbers for {} rows", numbers, rows);
  return numbers / rows;
}
Value* as_f32(Value* x, Builder& b) { return cast_to(x, kF32, b); }

void scaler(OpContext& c) {
  c.expect_inputs(1, 1);
  const Var x(c.b, as_floats(c, 0));
  const auto list = [&](const char* name, double fallback) {
    std::vector<double> all = doubles_of(c, name);
    if (all.empty()) all = {fallback};
    return Var(c.b, floats_of(c.b, x.dtype(), {std::ssize(all)}, all));
  };
  c.out = {as_f32(((x - list("offset", 0)) * list("scale", 1)).value, c.b)};
}

void normalizer(OpContext& c) {
  c.expect_inputs(1, 1);
  const std::string how = c.text("norm", "MAX");
  const Var x(c.b, as_floats(c, 0));
  const Attributes rows{{"axes", std::vector<int64_t>{-1}}, {"keep_dims", true}};
  Var size = x;
  if (how == "MAX")
    size = abs(x).apply("reduce_max", {}, rows);
  else if (how == "L1")
    size = abs(x).apply("reduce_sum", {}, rows);
  else if (how == "L2")
    size = sqrt(square(x).apply("reduce_sum", {}, rows));
  else
    fail(ErrorKind::invalid_model, "", "norm '{}' is unknown", printable(how));
  c.out = {as_f32((x / maximum(size, size.number(1e-30))).value, c.b)};
}

void imputer(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  Value* x = c.in[0];
  const bool floats = x->type.dtype.is_float();
  if (!floats && !x->type.dtype.is_integer()) fail(ErrorKind::invalid_model, "", "the input are no numbers");
  const std::vector<int64_t> whole = c.integers("imputed_value_int64s");
  std::vector<double> imputed = doubles_of(c, "imputed_value_floats");
  const double replaced =
      imputed.empty() ? static_cast<double>(c.integer("replaced_value_int64", 0)) : c.real("replaced_value_float", 0);
  if (imputed.empty()) imputed.assign(whole.begin(), whole.end());
  if (imputed.empty()) fail(ErrorKind::invalid_model, "", "has no value to impute");
  Value* values = cast_to(floats_of(b, kF64, {std::ssize(imputed)}, imputed), x->type.dtype, b);
  if (imputed.size() == 1) values = reshape_to(values, {}, b);
  Value* missing =
      std::isnan(replaced) && floats ? b.add("not_equal", {x, x}) : b.add("equal", {x, b.scalar_like(x, replaced)});
  c.out = {b.add("select", {missing, values, x})};
}

void one_hot_encoder(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  const Labels all(c, "cats_int64s", "cats_strings");
  if (all.size() == 0) fail(ErrorKind::invalid_model, "", "has no categories");
  const bool texts = c.in[0]->type.dtype == kString;
  if (texts != all.numbers.empty())
    fail(ErrorKind::invalid_model, "", "the input and the categories are of different types");
  std::vector<int64_t> order(all.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  Value* x = texts ? c.in[0] : cast_to(c.in[0], kI64, b);
  Value* classes = all.at(b, b.ints(order));
  const auto rank = static_cast<int64_t>(c.rank(0));
  c.out = {cast_to(b.add("equal", {expand_dims(x, {rank}, b), classes}), kF32, b)};
}

/// From texts to numbers or back, by the type of the input.
void category_mapper(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  const std::vector<int64_t> numbers = c.integers("cats_int64s");
  const std::vector<std::string> texts = c.texts("cats_strings");
  if (numbers.size() != texts.size() || numbers.empty())
    fail(ErrorKind::invalid_model, "", "has {} numbers for {} texts", numbers.size(), texts.size());
  const bool from_texts = c.in[0]->type.dtype == kString;
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return from_texts ? texts[i] < texts[j] : numbers[i] < numbers[j]; });
  order.erase(
      std::unique(order.begin(), order.end(),
                  [&](size_t i, size_t j) { return from_texts ? texts[i] == texts[j] : numbers[i] == numbers[j]; }),
      order.end());
  std::vector<int64_t> from;
  std::vector<std::string> to;
  for (size_t i : order) from.push_back(numbers[i]), to.push_back(texts[i]);
  const auto count = static_cast<int64_t>(order.size());
  Value *of_numbers = b.ints(from), *of_texts = b.constant(Tensor::of<std::string>(kString, {count}, to));
  Value* fallback = from_texts
                        ? b.ints({c.integer("default_int64", -1)})
                        : b.constant(Tensor::of<std::string>(kString, {1}, {c.text("default_string", "_Unused")}));
  Value* x = b.add("reshape", {from_texts ? c.in[0] : cast_to(c.in[0], kI64, b), b.ints({-1})});
  Value* y = from_texts ? b.add("find_key", {of_texts, of_numbers, x, fallback})
                        : b.add("find_key", {of_numbers, of_texts, x, fallback});
  c.out = {b.add("reshape", {y, b.add("shape_of", {c.in[0]})})};
}

/// Columns side by side, each input cut or filled up with zeros to its number of columns.
void feature_vectorizer(OpContext& c) {
  c.expect_inputs(1, c.in.size());
  const std::vector<int64_t> wanted = c.integers("inputdimensions");
  std::vector<Value*> parts;
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (c.rank(i) < 1 || c.rank(i) > 2) c.refuse("input {} has {} dims, expected 1 or 2", i, c.rank(i));
    Value* x = as_f32(c.in[i], c.b);
    if (c.rank(i) == 1) x = expand_dims(x, {1}, c.b);
    const Dim own = x->type.shape.dims[1];
    if (i < wanted.size() && own != Dim(wanted[i])) {
      constexpr int64_t kMostColumns = 1 << 20;
      if (wanted[i] < 0 || wanted[i] > kMostColumns)
        fail(ErrorKind::invalid_model, "", "inputdimensions has {}", wanted[i]);
      if (!own.known()) x = c.b.add("pad", {x, c.b.constant(Tensor::of<int64_t>(kI64, {2, 2}, {0, 0, 0, wanted[i]}))});
      if (!own.known() || wanted[i] < own.size)
        x = c.b.add("slice", {x, c.b.ints({0, 0}), c.b.ints({kToTheEnd, wanted[i]})});
      else
        x = c.b.add("pad", {x, c.b.constant(Tensor::of<int64_t>(kI64, {2, 2}, {0, 0, 0, wanted[i] - own.size}))});
    }
    parts.push_back(x);
  }
  c.out = {parts.size() == 1 ? parts[0] : c.b.add("concat", parts, {{"axis", int64_t{1}}})};
}

/// The scores x * coefficients + intercepts, [n, targets]; `rows`: how many targets the attributes tell.
Value* linear_scores(OpContext& c, int64_t rows) {
  Value* x = as_floats(c, 0);
  const std::vector<double> coefficients = doubles_of(c, "coefficients"), intercepts = doubles_of(c, "intercepts");
  const auto count = std::ssize(coefficients);
  const int64_t features = features_of(c, count, intercepts.empty() ? rows : std::ssize(intercepts));
  if (features < 1 || count < 1 || count % features != 0)
    fail(ErrorKind::invalid_model, "", "has {} coefficients for {} features", count, features);
  const int64_t targets = count / features;
  Value* y =
      c.b.add("matmul", {x, floats_of(c.b, x->type.dtype, {targets, features}, coefficients)}, {{"transpose_b", true}});
  if (intercepts.empty()) return y;
  if (std::ssize(intercepts) != targets)
    fail(ErrorKind::invalid_model, "", "has {} intercepts for {} targets", intercepts.size(), targets);
  return c.b.add("add", {y, floats_of(c.b, x->type.dtype, {targets}, intercepts)});
}

void linear_regressor(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {transformed(c, as_f32(linear_scores(c, c.integer("targets", 1)), c.b), c.text("post_transform", "NONE"))};
}

void linear_classifier(OpContext& c) {
  c.expect_inputs(1, 1);
  const Labels labels(c, "classlabels_ints", "classlabels_strings");
  Value* scores = linear_scores(c, labels.size() == 2 ? 1 : static_cast<int64_t>(labels.size()));
  const auto targets = static_cast<size_t>(scores->type.shape.dims[1].size);
  Value* label = targets == 1 && labels.size() == 2
                     ? squeeze(cast_to((Var(c.b, scores) > 0.0).value, kI64, c.b), {1}, c.b)
                     : largest(c.b, scores);
  if (targets == 1 && labels.size() == 2)
    scores = both_columns(c.b, scores, c.text("post_transform", "NONE") != "LOGISTIC");  // as ONNX Runtime does
  else if (targets != labels.size())
    c.refuse("has {} labels for {} scores", labels.size(), targets);
  c.out = {labels.at(c.b, label), transformed(c, as_f32(scores, c.b), c.text("post_transform", "NONE"))};
}

/// The kernel of each row of x with each of `vectors`, [n, count].
Value* svm_kernel(OpContext& c, Value* x, std::vector<double> vectors, int64_t features) {
  Builder& b = c.b;
  const std::string how = c.text("kernel_type", "LINEAR");
  std::vector<double> params = doubles_of(c, "kernel_params");
  params.resize(3, 0);
  const double gamma = params[0], shift = params[1], degree = params[2];
  const auto count = std::ssize(vectors) / features;
  if (how == "RBF") {  // squared distances; around the mean, so that little is lost
    std::vector<double> mean(static_cast<size_t>(features));
    for (size_t i = 0; i < vectors.size(); ++i) mean[i % mean.size()] += vectors[i] / static_cast<double>(count);
    for (size_t i = 0; i < vectors.size(); ++i) vectors[i] -= mean[i % mean.size()];
    x = b.add("sub", {x, floats_of(b, x->type.dtype, {features}, mean)});
  }
  std::vector<double> squares(static_cast<size_t>(count));
  for (size_t i = 0; i < vectors.size(); ++i) squares[i / static_cast<size_t>(features)] += vectors[i] * vectors[i];
  const Var dot(b,
                b.add("matmul", {x, floats_of(b, x->type.dtype, {count, features}, vectors)}, {{"transpose_b", true}}));
  if (how == "LINEAR") return dot.value;
  if (how == "POLY") return (dot * gamma + shift).apply("pow", {dot.number(std::trunc(degree))}).value;
  if (how == "SIGMOID") return (dot * gamma + shift).apply("tanh").value;
  if (how != "RBF") fail(ErrorKind::invalid_model, "", "kernel_type '{}' is unknown", printable(how));
  const Var own = reduce_sum(square(Var(b, x)), {1}, true), theirs(b, floats_of(b, x->type.dtype, {count}, squares));
  return exp(maximum(own + theirs - dot * 2, dot.number(0)) * -gamma).value;
}

void svm_regressor(OpContext& c) {
  c.expect_inputs(1, 1);
  const int64_t count = c.integer("n_supports", 0);
  Value* x = as_floats(c, 0);
  const std::vector<double> vectors = doubles_of(c, "support_vectors"), weights = doubles_of(c, "coefficients"),
                            rho = doubles_of(c, "rho");
  const int64_t features =
      count > 0 ? features_of(c, std::ssize(vectors), count) : features_of(c, std::ssize(weights), 1);
  if (features < 1 || rho.empty() || std::ssize(weights) != (count > 0 ? count : features) ||
      (count > 0 && (std::ssize(vectors) % features != 0 || std::ssize(vectors) / features != count)))
    fail(ErrorKind::invalid_model, "", "support vectors, coefficients and rho do not fit {} features", features);
  Value* kernel = count > 0 ? svm_kernel(c, x, vectors, features) : x;
  const Var y =
      Var(c.b, c.b.add("matmul", {kernel, floats_of(c.b, x->type.dtype, {std::ssize(weights), 1}, weights)})) + rho[0];
  Value* made = as_f32(y.value, c.b);
  if (c.integer("one_class", 0) != 0)
    made = c.b.add("select", {c.b.add("greater", {made, c.b.scalar(0)}), c.b.scalar(1), c.b.scalar(-1)});
  c.out = {transformed(c, made, c.text("post_transform", "NONE"))};
}

/// Probabilities of `k` classes from those of pairs, [n, k, k], by libsvm's iteration, which ends where a row's error is small.
Value* coupled(Builder& b, Value* pairs, int64_t k) {
  const auto at = [k](Var x, int64_t i, int64_t j) {  // x[:, i, j] as [n, 1], of i or j below 0 all
    Builder& b = *x.builder;
    const auto end = [](int64_t one) { return one < 0 ? kToTheEnd : one + 1; };
    Value* part = b.add("slice", {x.value, b.ints({0, std::max<int64_t>(i, 0), std::max<int64_t>(j, 0)}),
                                  b.ints({kToTheEnd, end(i), end(j)})});
    return Var(b, reshape_to(part, {{-1, 0}, {i < 0 || j < 0 ? k : 1}}, b));
  };
  const Var r(b, pairs);
  std::vector<Value*> rows;
  for (int64_t t = 0; t < k; ++t) {
    std::vector<Value*> row;
    for (int64_t j = 0; j < k; ++j) {
      Var q = r.number(0) * at(r, 0, 0);
      if (j != t)
        q = -(at(r, j, t) * at(r, t, j));
      else
        for (int64_t i = 0; i < k; ++i)
          if (i != t) q = q + square(at(r, i, t));
      row.push_back(q.value);
    }
    rows.push_back(expand_dims(b.add("concat", row, {{"axis", int64_t{1}}}), {1}, b));
  }
  Value* q = b.add("concat", rows, {{"axis", int64_t{1}}});
  const double enough = 0.005 / static_cast<double>(k);
  const auto errors = [&](Builder& in, Value* q, Value* p) {  // Q p, p Q p, and the largest difference between them
    const Var qp(in, squeeze(in.add("matmul", {q, expand_dims(p, {2}, in)}), {2}, in));
    const Var pqp = reduce_sum(Var(in, p) * qp, {1}, true);
    return std::tuple(qp, pqp,
                      abs(qp - pqp).apply("reduce_max", {}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", true}}));
  };
  const Var start = ones_like(at(r, 0, -1)) * (1 / static_cast<double>(k));
  Value* count = b.constant(Tensor::scalar_i64(0));
  return b.make_while(
      {count, start.value}, {q},
      [&](Builder& in, const std::vector<Value*>& now) {
        const Var open = std::get<2>(errors(in, now[2], now[1]));
        Value* any =
            in.add("reduce_any", {in.add("not", {(open < enough).value})}, {{"axes", std::vector<int64_t>{0, 1}}});
        Value* early = in.add("less", {now[0], in.constant(Tensor::scalar_i64(std::max<int64_t>(100, k)))});
        return std::vector<Value*>{in.add("and", {any, early})};
      },
      [&](Builder& in, const std::vector<Value*>& now) {
        auto [qp, pqp, error] = errors(in, now[2], now[1]);
        const Var before(in, now[1]), q(in, now[2]), open = error;
        Var p = before;
        for (int64_t t = 0; t < k; ++t) {
          const Var qtt = at(q, t, t),
                    column(in, in.add("slice", {qp.value, in.ints({0, t}), in.ints({kToTheEnd, t + 1})}));
          const Var step = (pqp - column) / qtt, all = step + 1;
          std::vector<double> here(static_cast<size_t>(k));
          here[static_cast<size_t>(t)] = 1;
          p = (p + step * Var(in, floats_of(in, p.dtype(), {k}, here))) / all;
          pqp = (pqp + step * (step * qtt + column * 2)) / all / all;
          qp = (qp + step * at(q, t, -1)) / all;
        }
        Value* kept = in.add("select", {(open < enough).value, before.value, p.value});
        return std::vector<Value*>{in.add("add", {now[0], in.constant(Tensor::scalar_i64(1))}), kept};
      })[1];
}

/// One against one: a score for each pair of classes, a vote for its winner, and probabilities where they were fitted.
class PairedSvm {
 public:
  PairedSvm(OpContext& c, size_t classes, std::vector<int64_t> counts)
      : c_(c), b_(c.b), classes_(static_cast<int64_t>(classes)), counts_(std::move(counts)) {}

  std::vector<Value*> run(const Labels& labels) {
    constexpr int64_t kMost = 256;
    const auto most = std::ssize(doubles_of(c_, "support_vectors"));
    if (std::any_of(counts_.begin(), counts_.end(), [&](int64_t n) { return n < 0 || n > most; }))
      fail(ErrorKind::invalid_model, "", "vectors_per_class do not fit {} numbers", most);
    if (std::ssize(counts_) != classes_ || classes_ < 2 || classes_ > kMost)
      c_.refuse("{} classes with {} numbers of vectors are not supported", classes_, counts_.size());
    const std::string how = c_.text("post_transform", "NONE");
    Value* scores = this->scores();
    Value* won = b_.add("greater", {scores, b_.scalar_like(scores, 0)});
    const DType dtype = scores->type.dtype;
    const int64_t pairs = classes_ * (classes_ - 1) / 2;
    std::vector<double> winner(static_cast<size_t>(pairs * classes_)), loser = winner;
    int64_t pair = 0;
    for (int64_t i = 0; i < classes_; ++i)
      for (int64_t j = i + 1; j < classes_; ++j, ++pair)
        winner[static_cast<size_t>(pair * classes_ + i)] = loser[static_cast<size_t>(pair * classes_ + j)] = 1;
    const auto counted = [&](Value* who, const std::vector<double>& of) {
      return b_.add("matmul", {cast_to(who, dtype, b_), floats_of(b_, dtype, {pairs, classes_}, of)});
    };
    Value* votes = b_.add("add", {counted(won, winner), counted(b_.add("not", {won}), loser)});
    Value* label = labels.at(b_, largest(b_, votes));
    if (c_.has("prob_a")) return {label, transformed(c_, as_f32(probabilities(scores), b_), how)};
    scores = as_f32(scores, b_);
    return {label, transformed(c_, pairs == 1 ? both_columns(b_, scores, false) : scores, how)};
  }

 private:
  Value* scores() {
    const int64_t vectors = std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
    const std::vector<double> all = doubles_of(c_, "support_vectors"), coefficients = doubles_of(c_, "coefficients"),
                              rho = doubles_of(c_, "rho");
    const int64_t features = features_of(c_, std::ssize(all), vectors);
    const int64_t pairs = classes_ * (classes_ - 1) / 2;
    if (features < 1 || vectors < 1 || std::ssize(all) % features != 0 || std::ssize(all) / features != vectors ||
        std::ssize(coefficients) != vectors * (classes_ - 1) || std::ssize(rho) < pairs)
      fail(ErrorKind::invalid_model, "", "support vectors, coefficients and rho do not fit {} features", features);
    Value* x = as_floats(c_, 0);
    std::vector<double> table(static_cast<size_t>(vectors * pairs));
    std::vector<int64_t> first(counts_.size());
    std::exclusive_scan(counts_.begin(), counts_.end(), first.begin(), int64_t{0});
    int64_t pair = 0;
    for (int64_t i = 0; i < classes_; ++i)
      for (int64_t j = i + 1; j < classes_; ++j, ++pair)
        for (const auto& [own, other] : {std::pair(i, j), std::pair(j, i)}) {
          const int64_t row = (other > own ? other - 1 : other) * vectors, start = first[static_cast<size_t>(own)];
          for (int64_t v = start; v < start + counts_[static_cast<size_t>(own)]; ++v)
            table[static_cast<size_t>(v * pairs + pair)] = coefficients[static_cast<size_t>(row + v)];
        }
    Value* kernel = svm_kernel(c_, x, all, features);
    Value* y = b_.add("matmul", {kernel, floats_of(b_, x->type.dtype, {vectors, pairs}, table)});
    return b_.add("add", {y, floats_of(b_, x->type.dtype, {pairs}, {rho.begin(), rho.begin() + pairs})});
  }

  Value* probabilities(Value* scores) {
    const std::vector<double> a = doubles_of(c_, "prob_a"), shift = doubles_of(c_, "prob_b");
    const int64_t pairs = classes_ * (classes_ - 1) / 2;
    if (std::ssize(a) != pairs || std::ssize(shift) != pairs)
      fail(ErrorKind::invalid_model, "", "has {} numbers prob_a for {} pairs", a.size(), pairs);
    const auto list = [&](const std::vector<double>& of) {
      return Var(b_, floats_of(b_, scores->type.dtype, {pairs}, of));
    };
    const Var rising = (-(Var(b_, scores) * list(a) + list(shift))).apply("sigmoid");
    Value* first = b_.add("clip", {rising.value}, {{"low", 1e-7}, {"high", 1 - 1e-7}});
    // [n, classes * classes]: of the pair (i, j) the first's share at i, j and the rest at j, i.
    Value* both = b_.add("concat", {first, (1.0 - Var(b_, first)).value}, {{"axis", int64_t{1}}});
    std::vector<int64_t> from(static_cast<size_t>(classes_ * classes_));
    int64_t pair = 0;
    for (int64_t i = 0; i < classes_; ++i)
      for (int64_t j = i + 1; j < classes_; ++j, ++pair) {
        from[static_cast<size_t>(i * classes_ + j)] = pair;
        from[static_cast<size_t>(j * classes_ + i)] = pairs + pair;
      }
    Value* square = b_.add("gather", {both, b_.ints(from)}, {{"axis", int64_t{1}}});
    return coupled(b_, reshape_to(square, {{-1, 0}, {classes_}, {classes_}}, b_), classes_);
  }

  OpContext& c_;
  Builder& b_;
  int64_t classes_;
  std::vector<int64_t> counts_;
};

/// Without support vectors: a score of each class from its coefficients, all through the kernel's function.
void linear_svm(OpContext& c, const Labels& labels) {
  const std::vector<double> coefficients = doubles_of(c, "coefficients"), rho = doubles_of(c, "rho");
  const auto classes = static_cast<int64_t>(labels.size()), count = std::ssize(coefficients);
  if (classes < 2 || rho.empty() || count < classes || count % classes != 0 ||
      features_of(c, count, classes) != count / classes || c.text("kernel_type", "LINEAR") != "LINEAR")
    c.refuse("{} coefficients without support vectors do not fit {} classes", count, classes);
  const Var scores = Var(c.b, svm_kernel(c, as_floats(c, 0), coefficients, count / classes)) + rho[0];
  c.out = {labels.at(c.b, largest(c.b, scores.value)),
           transformed(c, as_f32(scores.value, c.b), c.text("post_transform", "NONE"))};
}

void svm_classifier(OpContext& c) {
  c.expect_inputs(1, 1);
  const Labels labels(c, "classlabels_ints", "classlabels_strings");
  const std::vector<int64_t> counts = c.integers("vectors_per_class");
  if (counts.empty() || doubles_of(c, "support_vectors").empty()) return linear_svm(c, labels);
  c.out = PairedSvm(c, labels.size(), counts).run(labels);
}

/// A list of dictionaries by label; here the columns are the labels in their order.
void zip_map(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.in[0]};
}

constexpr Row kLearningRows[] = {
    {"CategoryMapper", category_mapper, nullptr, kLearning},
    {"FeatureVectorizer", feature_vectorizer, nullptr, kLearning},
    {"Imputer", imputer, nullptr, kLearning},
    {"LinearClassifier", linear_classifier, nullptr, kLearning},
    {"LinearRegressor", linear_regressor, nullptr, kLearning},
    {"Normalizer", normalizer, nullptr, kLearning},
    {"OneHotEncoder", one_hot_encoder, nullptr, kLearning},
    {"SVMClassifier", svm_classifier, nullptr, kLearning},
    {"SVMRegressor", svm_regressor, nullptr, kLearning},
    {"Scaler", scaler, nullptr, kLearning},
    {"ZipMap", zip_map, nullptr, kLearning},
};

}  // namespace

std::span<const Row> learning_rows() { return kLearningRows; }

}  // namespace cairn::onnx
