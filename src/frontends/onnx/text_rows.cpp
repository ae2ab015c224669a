// ONNX's operators on texts and vocabularies, which run on the host.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "ir/evaluate.h"

namespace cairn::onnx {
namespace {

Value* number_of(OpContext& c, int64_t x) { return c.b.constant(Tensor::scalar_i64(x)); }
Value* text_constant(OpContext& c, std::vector<int64_t> dims, const std::vector<std::string>& texts) {
  return c.b.constant(Tensor::of<std::string>(kString, std::move(dims), texts));
}

void string_concat(OpContext& c) {
  c.expect_inputs(2, 2);
  c.out = {c.b.add("text_join", c.in)};
}

/// The parts of each text in a new last dim, filled with others, and their number.
std::vector<Value*> split_texts(OpContext& c, Value* from, Attributes how, const std::string& filling) {
  Builder& b = c.b;
  Value* sizes = b.add("shape_of", {from});
  Value* x =
      b.add("reshape", {from, b.add("reduce_prod", {sizes}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}})});
  auto* made = b.add_node(op_named("text_split"), {x}, std::move(how));
  Value *at = made->result(0), *shape = made->result(2);
  Value* nothing = b.add("broadcast_to", {text_constant(c, {}, {filling}), shape});
  Value* parts = b.add("scatter_update", {nothing, at, made->result(1)});
  Value* rows = b.add("slice", {at, b.ints({0, 0}), b.ints({kToTheEnd, 1})});
  Value* one = b.add("broadcast_to", {number_of(c, 1), dim_of(at, 0, b)});
  Value* counts = b.add("scatter_nd", {rows, one, b.add("slice", {shape, b.ints({0}), b.ints({1})})});
  Value* most = b.add("slice", {shape, b.ints({1}), b.ints({2})});
  return {b.add("reshape", {parts, joined({sizes, most}, b)}), b.add("reshape", {counts, sizes})};
}

void string_split(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = split_texts(c, c.in[0], {{"separator", c.text("delimiter", "")}, {"most", c.integer("maxsplit", -1)}}, "");
}

/// Tokens of each text, as an expression tells them or what stands between separators: each is put between two bytes that texts do not
/// have, and all else goes.
void tokenizer(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  constexpr const char *kBegin = "\x01", *kEnd = "\x02";
  const auto replaced = [&](Value* x, const std::string& pattern, const std::string& by) {
    return b.add("text_replace", {x}, {{"pattern", pattern}, {"rewrite", by}});
  };
  const std::vector<std::string> separators = c.texts("separators");
  const bool letters = separators.size() == 1 && separators[0].empty();
  if (c.integer("mark", 0) != 0) c.refuse("marks around texts are not supported");
  if (c.has("tokenexp") == !separators.empty()) c.refuse("needs either tokenexp or separators");
  Value* x = c.in[0];
  if (separators.empty() || letters) {
    x = replaced(x, "(" + (letters ? fmt::format("[^{}]", kBegin) : c.text("tokenexp", "")) + ")",
                 std::string(kBegin) + "\\1" + kEnd);
    x = replaced(x, fmt::format("(^|{1})[^{0}{1}]*({0}|$)", kBegin, kEnd), "\\1\\2");
  } else {
    for (const std::string& separator : separators) x = replaced(x, separator, kEnd);
    x = replaced(x, fmt::format("([^{}]+)", kEnd), std::string(kBegin) + "\\1" + kEnd);
  }
  if (const int64_t least = c.integer("mincharnum", 1); least > 1 && least < 1000)
    x = replaced(x, fmt::format("{0}[^{0}{1}]{{0,{2}}}{1}", kBegin, kEnd, least - 1), "");
  c.out = {split_texts(c, x, {{"mode", std::string("bytes_no_empty")}, {"separator", std::string(kBegin) + kEnd}},
                       c.text("pad_value", ""))[0]};
}

void regex_full_match(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.b.add("text_match", c.in, {{"pattern", c.text("pattern", "")}})};
}

/// The texts [n] or [1, n] that are no stop words, in one case; one empty text when none is left.
void string_normalizer(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  const std::string action = c.text("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    fail(ErrorKind::invalid_model, "", "case_change_action '{}' is unknown", printable(action));
  const size_t rank = c.rank(0);
  if (rank != 1 && !(rank == 2 && c.in[0]->type.shape.dims[0] == Dim(1)))
    c.refuse("texts must have the dims [n] or [1, n]");
  const bool exact = c.integer("is_case_sensitive", 0) != 0;
  const auto in_case = [&](Value* x, const char* mode) {
    return b.add("text_map", {x}, {{"mode", std::string(mode)}});
  };
  Value* x = rank == 2 ? squeeze(c.in[0], {0}, b) : c.in[0];
  std::vector<std::string> stops = c.texts("stopwords");
  if (!stops.empty()) {
    Value* all = text_constant(c, {static_cast<int64_t>(stops.size())}, stops);
    Value* compared = exact ? x : in_case(x, "lower");
    Value* equal = b.add("equal", {expand_dims(compared, {1}, b), exact ? all : in_case(all, "lower")});
    Value* kept = b.add("not", {b.add("reduce_any", {equal}, {{"axes", std::vector<int64_t>{1}}})});
    x = b.add("gather", {x, b.add("reshape", {b.add("non_zero", {kept}), b.ints({-1})})});
    Value* filled = b.add("concat", {x, text_constant(c, {1}, {""})}, {{"axis", int64_t{0}}});
    x = b.add("slice", {filled, b.ints({0}), b.add("maximum", {dim_of(x, 0, b), b.ints({1})})});
  }
  if (action != "NONE") x = in_case(x, action == "LOWER" ? "lower" : "upper");
  c.out = {rank == 2 ? expand_dims(x, {0}, b) : x};
}

/// Keys or values of an encoder: an attribute of texts, integers, reals, or a tensor.
std::optional<Tensor> list_of(OpContext& c, const std::string& what) {
  if (auto tensor = c.tensor(what + "_tensor")) return tensor;
  if (c.has(what + "_strings")) {
    const std::vector<std::string> list = c.texts(what + "_strings");
    return Tensor::of<std::string>(kString, {static_cast<int64_t>(list.size())}, list);
  }
  if (c.has(what + "_int64s")) return Tensor::of_i64(c.integers(what + "_int64s"));
  if (!c.has(what + "_floats")) return std::nullopt;
  const std::vector<float> list = c.reals(what + "_floats");
  return Tensor::of(kF32, {static_cast<int64_t>(list.size())}, list);
}

template <class T>
std::vector<int64_t> sorted_places(const Tensor& keys) {
  const auto all = keys.values<T>();
  std::vector<int64_t> order(all.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto before = [&](int64_t a, int64_t b) {  // NaN is the last
    const T &x = all[static_cast<size_t>(a)], &y = all[static_cast<size_t>(b)];
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(x) || std::isnan(y)) return std::isnan(y) && !std::isnan(x);
    return x < y;
  };
  std::stable_sort(order.begin(), order.end(), before);
  order.erase(std::unique(order.begin(), order.end(), [&](int64_t a, int64_t b) { return !before(a, b); }),
              order.end());
  return order;
}

/// Up to version 3 no number is found by a key that is NaN.
void without_nan(Tensor& keys, Tensor& values) {
  if (!keys.dtype().is_float() || keys.count() != values.count()) return;
  std::vector<int64_t> kept;
  const std::vector<double> all = keys.as_f64();
  for (size_t i = 0; i < all.size(); ++i)
    if (!std::isnan(all[i])) kept.push_back(static_cast<int64_t>(i));
  for (Tensor* list : {&keys, &values})
    *list = evaluate("gather", {list->reshaped({list->count()}), Tensor::of_i64(kept)});
}

void label_encoder(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  auto keys = list_of(c, "classes"), values = list_of(c, "values");
  if (keys) {  // version 1: texts and their places, either way
    std::vector<int64_t> places(static_cast<size_t>(keys->count()));
    std::iota(places.begin(), places.end(), int64_t{0});
    values = Tensor::of_i64(places);
    if (c.in[0]->type.dtype != kString) std::swap(keys, values);
  } else {
    keys = list_of(c, "keys");
  }
  if (keys && values && c.opset < 4) without_nan(*keys, *values);
  if (!keys || !values || keys->count() != values->count() || keys->count() == 0)
    c.refuse("needs as many keys as values, and one at least");
  if (keys->dtype() != c.in[0]->type.dtype)
    fail(ErrorKind::invalid_model, "", "the keys are {}, the input {}", to_string(keys->dtype()),
         to_string(c.in[0]->type.dtype));
  std::vector<int64_t> order;
  if (keys->dtype() == kString)
    order = sorted_places<std::string>(*keys);
  else if (keys->dtype() == kI64)
    order = sorted_places<int64_t>(*keys);
  else if (keys->dtype() == kF32)
    order = sorted_places<float>(*keys);
  else if (keys->dtype() == kF64)
    order = sorted_places<double>(*keys);
  else
    c.refuse("keys of {} are not supported", to_string(keys->dtype()));
  Value* fallback = nullptr;
  if (auto tensor = c.tensor("default_tensor"); tensor && tensor->count() == 1)
    fallback = b.constant(*tensor);
  else if (values->dtype() == kString)
    fallback = text_constant(c, {}, {c.text("default_string", "_Unused")});
  else if (values->dtype() == kI64)
    fallback = number_of(c, c.integer("default_int64", -1));
  else if (values->dtype().is_float())
    fallback = b.number(c.real("default_float", -0.0), values->dtype());
  else
    fallback = b.number(-1, values->dtype());
  const auto taken = [&](const Tensor& list) {
    Value* all = b.constant(list.reshaped({list.count()}));
    return b.add("gather", {all, b.ints(order)});
  };
  // Floats are found by their bits: both zeros become one, all NaNs another, and all are as distinct as the numbers are.
  const auto found = [&](Value* x) {
    if (!x->type.dtype.is_float()) return x;
    Value *zero = b.scalar_like(x, 0), *is_zero = folded(b.add("equal", {x, zero}), b);
    Value *nan = b.scalar_like(x, std::nan("")), *is_nan = folded(b.add("is_nan", {x}), b);
    Value* number = folded(b.add("select", {is_zero, zero, folded(b.add("select", {is_nan, nan, x}), b)}), b);
    return folded(b.add("bitcast", {number}, {{"dtype", x->type.dtype == kF64 ? kI64 : kI32}}), b);
  };
  Value* x = found(b.add("reshape", {c.in[0], b.ints({-1})}));
  Value *sorted = folded(found(folded(taken(*keys), b)), b), *replies = taken(*values);
  if (keys->dtype().is_float()) {  // in the order of their bits
    const Tensor bits = *constant_of(sorted);
    const std::vector<int64_t> places =
        keys->dtype() == kF64 ? sorted_places<int64_t>(bits) : sorted_places<int32_t>(bits);
    sorted = b.add("gather", {sorted, b.ints(places)}), replies = b.add("gather", {replies, b.ints(places)});
  }
  Value* y = b.add("find_key", {sorted, replies, x, b.add("reshape", {fallback, b.ints({1})})});
  c.out = {b.add("reshape", {y, b.add("shape_of", {c.in[0]})})};
}

/// How often each n-gram of a pool is in the last dim, for all distances between its elements up to max_skip_count.
class Vectorizer {
 public:
  explicit Vectorizer(OpContext& c) : c_(c), b_(c.b) {
    c.expect_inputs(1, 1);
    const std::vector<int64_t> starts = c.integers("ngram_counts");
    texts_ = c.texts("pool_strings");
    numbers_ = c.integers("pool_int64s");
    indexes_ = c.integers("ngram_indexes");
    least_ = c.integer("min_gram_length"), most_ = c.integer("max_gram_length"), skips_ = c.integer("max_skip_count");
    const auto size = static_cast<int64_t>(std::max(texts_.size(), numbers_.size()));
    if (least_ < 1 || most_ < least_ || most_ > kMost || skips_ < 0 || skips_ > kMost || size > kMostPool)
      c.refuse("n-grams of {} to {} with {} skips are not supported", least_, most_, skips_);
    int64_t row = 0;
    for (size_t i = 0; i < starts.size(); ++i) {
      const auto n = static_cast<int64_t>(i) + 1;
      const int64_t end = i + 1 < starts.size() ? starts[i + 1] : size;
      if (starts[i] < 0 || end < starts[i] || end > size || (end - starts[i]) % n != 0)
        fail(ErrorKind::invalid_model, "", "ngram_counts do not fit the pool");
      const int64_t count = (end - starts[i]) / n;
      pools_.push_back({n, starts[i], count, row});
      row += count;
    }
    if (row != static_cast<int64_t>(indexes_.size()))
      fail(ErrorKind::invalid_model, "", "has {} indexes for {} n-grams", indexes_.size(), row);
    for (int64_t index : indexes_) {
      if (index < 0 || index > kMostPool) fail(ErrorKind::invalid_model, "", "an index is {}", index);
      width_ = std::max(width_, index + 1);
    }
  }

  Value* run() {
    const size_t rank = c_.rank(0);
    if (rank != 1 && rank != 2) c_.refuse("the input has {} dims, expected 1 or 2", rank);
    x_ = rank == 1 ? expand_dims(c_.in[0], {0}, b_) : c_.in[0];
    const Dim length = x_->type.shape.dims[1];
    Value* counts = b_.add("broadcast_to", {number_of(c_, 0), joined({b_.ints({width_}), dim_of(x_, 0, b_)}, b_)});
    for (const Pool& pool : pools_)
      if (pool.n >= least_ && pool.n <= most_ && pool.count > 0)
        for (int64_t skip = 0; skip <= (pool.n == 1 ? 0 : skips_); ++skip)
          if (!length.known() || length.size > (pool.n - 1) * (skip + 1)) counts = counted(counts, pool, skip + 1);
    Value* y = weighted(cast_to(transposed(counts, {1, 0}, b_), kF32, b_));
    return rank == 1 ? squeeze(y, {0}, b_) : y;
  }

 private:
  static constexpr int64_t kMost = 64, kMostPool = 1 << 20;
  struct Pool {
    int64_t n, start, count, row;
  };

  Value* counted(Value* counts, const Pool& pool, int64_t step) {
    Value* windows = b_.add("sub", {dim_of(x_, 1, b_), b_.ints({(pool.n - 1) * step})});
    windows = folded(b_.add("maximum", {windows, b_.ints({0})}), b_);
    Value* same = nullptr;  // [batch, windows, n-grams]
    for (int64_t k = 0; k < pool.n; ++k) {
      const auto element = [&](int64_t gram) { return static_cast<size_t>(pool.start + gram * pool.n + k); };
      Value* wanted;
      if (!texts_.empty()) {
        std::vector<std::string> list;
        for (int64_t gram = 0; gram < pool.count; ++gram) list.push_back(texts_[element(gram)]);
        wanted = text_constant(c_, {pool.count}, list);
      } else {
        std::vector<int64_t> list;
        for (int64_t gram = 0; gram < pool.count; ++gram) list.push_back(numbers_[element(gram)]);
        wanted = cast_to(b_.ints(list), x_->type.dtype, b_);
      }
      Value* end = folded(b_.add("add", {windows, b_.ints({k * step})}), b_);
      Value* part = b_.add("slice", {x_, b_.ints({0, k * step}), joined({b_.ints({kToTheEnd}), end}, b_)});
      Value* equal = b_.add("equal", {expand_dims(part, {2}, b_), wanted});
      same = same == nullptr ? equal : b_.add("and", {same, equal});
    }
    Value* found = b_.add("reduce_sum", {cast_to(same, kI64, b_)}, {{"axes", std::vector<int64_t>{1}}});
    const auto begin = indexes_.begin() + pool.row;
    return b_.add("scatter_reduce", {counts, b_.ints({begin, begin + pool.count}), transposed(found, {1, 0}, b_)});
  }

  Value* weighted(Value* counts) {
    const std::string mode = c_.text("mode", "");
    if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
      fail(ErrorKind::invalid_model, "", "mode '{}' is unknown", printable(mode));
    if (mode == "TF") return counts;
    std::vector<float> all(static_cast<size_t>(width_), 1);
    const std::vector<float> given = c_.reals("weights");
    for (size_t i = 0; i < given.size() && i < indexes_.size(); ++i) all[static_cast<size_t>(indexes_[i])] = given[i];
    if (mode == "IDF") counts = cast_to(b_.add("greater", {counts, b_.scalar(0)}), kF32, b_);
    return b_.add("mul", {counts, b_.constant(Tensor::of(kF32, {width_}, all))});
  }

  OpContext& c_;
  Builder& b_;
  Value* x_ = nullptr;
  std::vector<std::string> texts_;
  std::vector<int64_t> numbers_, indexes_;
  std::vector<Pool> pools_;
  int64_t least_ = 1, most_ = 1, skips_ = 0, width_ = 0;
};

void tf_idf_vectorizer(OpContext& c) { c.out = {Vectorizer(c).run()}; }

constexpr Row kTextRows[] = {
    {"LabelEncoder", label_encoder, nullptr, "ai.onnx.ml"},
    {"RegexFullMatch", regex_full_match},
    {"StringConcat", string_concat},
    {"StringNormalizer", string_normalizer},
    {"StringSplit", string_split},
    {"TfIdfVectorizer", tf_idf_vectorizer},
    {"Tokenizer", tokenizer, nullptr, kMicrosoft},
};

}  // namespace

std::span<const Row> text_rows() { return kTextRows; }

}  // namespace cairn::onnx
