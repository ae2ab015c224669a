#include "frontends/einsum.h"

#include <algorithm>

#include "frontends/fold.h"
#include "frontends/reshape.h"

namespace cairn {
namespace {

/// A tensor with a label for each dim: letters, or digits for the dims of an ellipsis.
struct Term {
  Value* value;
  std::string labels;
};

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

/// Labels of `a` that pass the test, in its order.
template <class Test>
std::string those(const std::string& a, Test&& test) {
  std::string result;
  for (char label : a)
    if (test(label)) result += label;
  return result;
}

class Equation {
 public:
  Equation(const std::string& text, const std::vector<Value*>& operands, Builder& builder) : b_(builder) {
    std::string clean = those(text, [](char c) { return c != ' '; });
    size_t arrow = clean.find("->");
    std::string left = clean.substr(0, arrow);
    std::vector<std::string> parts(1);
    for (char c : left)
      if (c == ',')
        parts.emplace_back();
      else
        parts.back() += c;
    if (parts.size() != operands.size())
      fail(ErrorKind::invalid_model, "", "equation has {} terms for {} operands", parts.size(), operands.size());
    size_t spread = 0;
    for (size_t i = 0; i < operands.size(); ++i) spread = std::max(spread, spread_of(parts[i], operands[i]));
    if (spread > 9) fail(ErrorKind::unsupported, "", "an ellipsis stands for {} dims", spread);
    std::string all;
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::string labels = expanded(parts[i], spread_of(parts[i], operands[i]));
      all += labels;
      terms_.push_back(diagonal({operands[i], labels}));
    }
    asked_ = arrow == std::string::npos ? implied(all) : expanded(clean.substr(arrow + 2), spread);
    for (char label : asked_)
      if (!has(result_, label)) result_ += label;
    for (char label : result_)
      if (std::none_of(terms_.begin(), terms_.end(), [&](const Term& term) { return has(term.labels, label); }))
        fail(ErrorKind::invalid_model, "", "label {} of the result is in no operand", label);
  }

  Value* run() {
    Term sum = terms_[0];
    for (size_t i = 1; i < terms_.size(); ++i) {
      std::string later = result_;
      for (size_t k = i + 1; k < terms_.size(); ++k) later += terms_[k].labels;
      sum = product(sum, terms_[i], later);
    }
    sum = summed(sum, result_);
    for (size_t i = 0; i < asked_.size(); ++i)
      if (asked_.find(asked_[i]) != i) sum = on_diagonal(sum, asked_[i]);
    return ordered(sum, asked_).value;
  }

 private:
  /// How many dims the ellipsis of an operand stands for.
  static size_t spread_of(const std::string& part, const Value* operand) {
    if (!operand->type.is_tensor() || !operand->type.shape.ranked)
      fail(ErrorKind::unsupported, "", "the rank of an operand is not known");
    size_t dots = part.find("..."), named = part.size() - (dots == std::string::npos ? 0 : 3);
    size_t rank = operand->type.shape.rank();
    if (named > rank || (dots == std::string::npos && named != rank))
      fail(ErrorKind::invalid_model, "", "'{}' does not fit an operand with {} dims", part, rank);
    return rank - named;
  }

  static std::string expanded(std::string part, size_t spread) {
    size_t dots = part.find("...");
    if (dots != std::string::npos) {
      std::string digits;
      for (size_t i = spread; i-- > 0;) digits += static_cast<char>('0' + i);
      part.replace(dots, 3, digits);
    }
    for (char label : part)
      if (!std::isalnum(static_cast<unsigned char>(label)))
        fail(ErrorKind::invalid_model, "", "equation has the character '{}'", label);
    return part;
  }

  Value* places(Value* like, size_t axis) {
    const Type type = Type::tensor(kI64, Shape{like->type.shape.dims[axis]});
    Value* size = scalar_dim(like, axis, b_);
    Value *zero = b_.constant(Tensor::scalar_i64(0)), *one = b_.constant(Tensor::scalar_i64(1));
    return b_.add_node(op_named("iota"), {zero, size, one}, {{"dtype", kI64}}, {}, {type})->result();
  }

  /// Reduces a label that a term has twice: takes the diagonal of both dims, which becomes the last dim.
  Term diagonal(Term term) {
    for (size_t first = 0; first < term.labels.size(); ++first) {
      const char label = term.labels[first];
      const size_t second = term.labels.find(label, first + 1);
      if (second == std::string::npos) continue;
      const Dim size = term.value->type.shape.dims[first], other = term.value->type.shape.dims[second];
      if (size.known() && other.known() && size.size != other.size)
        fail(ErrorKind::invalid_model, "", "label {} stands for sizes {} and {}", label, size.size, other.size);
      std::string rest = those(term.labels, [&](char c) { return c != label; });
      std::vector<int64_t> permutation;
      std::vector<NewDim> dims;
      for (size_t i = 0; i < term.labels.size(); ++i)
        if (i != first && i != second) permutation.push_back(static_cast<int64_t>(i));
      for (size_t i = 0; i < permutation.size(); ++i) dims.push_back({-1, static_cast<int>(i)});
      for (size_t i : {first, second}) permutation.push_back(static_cast<int64_t>(i));
      dims.push_back({size.known() ? element_count({size.size, size.size}).value_or(-1) : -1, -1});
      Value* moved = transposed(term.value, permutation, b_);
      Value* step = folded(b_.add("add", {dim_of(moved, dims.size(), b_), b_.ints({1})}), b_);
      Value* at = folded(b_.add("mul", {places(moved, dims.size()), step}), b_);
      const auto axis = static_cast<int64_t>(dims.size()) - 1;
      term = {b_.add("gather", {reshape_to(moved, dims, b_), at}, {{"axis", axis}}), rest + label};
      first = static_cast<size_t>(-1);  // restart at the first label
    }
    return term;
  }

  /// Expands the dim of a label to the diagonal of two dims, with zeros off the diagonal.
  Term on_diagonal(const Term& term, char label) {
    const std::string rest = those(term.labels, [&](char c) { return c != label; });
    const std::string last = those(term.labels, [&](char c) { return c == label; });
    Value* x = ordered(term, rest + last).value;
    const size_t axis = rest.size() + last.size() - 1;
    Value* at = places(x, axis);
    Value* same = folded(b_.add("equal", {at, expand_dims(at, {1}, b_)}), b_);
    Value* spread = expand_dims(x, {static_cast<int64_t>(axis) + 1}, b_);
    return {b_.add("select", {same, spread, b_.scalar_like(x, 0)}), rest + last + label};
  }

  /// The result's labels when "->" is missing: those of the ellipsis, then the labels that occur once, in alphabetic
  /// order.
  static std::string implied(const std::string& all) {
    std::string digits, letters;
    for (char c = '9'; c >= '0'; --c)
      if (has(all, c)) digits += c;
    for (char c : all)
      if (!std::isdigit(static_cast<unsigned char>(c)) && std::count(all.begin(), all.end(), c) == 1) letters += c;
    std::sort(letters.begin(), letters.end());
    return digits + letters;
  }

  /// Sums over the labels that are not needed later.
  Term summed(const Term& term, const std::string& needed) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < term.labels.size(); ++i)
      if (!has(needed, term.labels[i])) axes.push_back(static_cast<int64_t>(i));
    if (axes.empty()) return term;
    return {b_.add("reduce_sum", {term.value}, {{"axes", axes}}),
            those(term.labels, [&](char label) { return has(needed, label); })};
  }

  Term ordered(const Term& term, const std::string& labels) {
    if (term.labels == labels) return term;
    std::vector<int64_t> permutation;
    std::string left = term.labels;
    for (char label : labels) {
      permutation.push_back(static_cast<int64_t>(left.find(label)));
      left[left.find(label)] = ' ';
    }
    return {transposed(term.value, permutation, b_), labels};
  }

  Dim dim(const Term& term, char label) const { return term.value->type.shape.dims[term.labels.find(label)]; }

  /// Sizes of some dims of a term: where they are from.
  struct Part {
    const Term* term;
    std::string labels;  // multiplied
  };

  /// x under dims that are products of dims of terms.
  Value* shaped(Value* x, const std::vector<Part>& parts) {
    std::vector<Dim> dims;
    std::vector<int64_t> numbers;
    for (const Part& part : parts) {
      int64_t product = 1;
      bool known = true;
      for (char label : part.labels) {
        Dim size = dim(*part.term, label);
        known = known && size.known() && !__builtin_mul_overflow(product, size.size, &product);
      }
      dims.push_back(known ? Dim(product) : part.labels.size() == 1 ? dim(*part.term, part.labels[0]) : Dim());
      numbers.push_back(known ? product : -1);
    }
    Value* shape = nullptr;
    if (std::count(numbers.begin(), numbers.end(), -1) <= 1 && std::count(numbers.begin(), numbers.end(), 0) == 0) {
      shape = b_.ints(numbers);
    } else {
      std::vector<Value*> sizes;
      for (size_t i = 0; i < parts.size(); ++i) {
        if (numbers[i] >= 0) {
          sizes.push_back(b_.ints({numbers[i]}));
          continue;
        }
        Value* size = nullptr;
        for (char label : parts[i].labels) {
          Value* one = dim_of(parts[i].term->value, parts[i].term->labels.find(label), b_);
          size = size == nullptr ? one : b_.add("mul", {size, one});
        }
        sizes.push_back(size);
      }
      shape = joined(sizes, b_);
    }
    std::vector<Type> type{Type::tensor(x->type.dtype, Shape(dims))};
    return b_.add_node(op_named("reshape"), {x, shape}, {}, {}, type)->result();
  }

  /// One part for each label.
  static std::vector<Part> each(const Term& term, const std::string& labels) {
    std::vector<Part> parts;
    for (char label : labels) parts.push_back({&term, std::string(1, label)});
    return parts;
  }

  /// The product of two terms, summed over the common labels that are not needed later.
  Term product(Term x, Term y, const std::string& later) {
    x = summed(x, later + y.labels);
    y = summed(y, later + x.labels);
    std::string batch = those(x.labels, [&](char c) { return has(y.labels, c) && has(later, c); });
    std::string inner = those(x.labels, [&](char c) { return has(y.labels, c) && !has(later, c); });
    std::string rows = those(x.labels, [&](char c) { return !has(y.labels, c); });
    std::string columns = those(y.labels, [&](char c) { return !has(x.labels, c); });
    x = ordered(x, batch + rows + inner);
    y = ordered(y, batch + inner + columns);
    // The row dims of the product need not be merged if the other factor has no batch dims.
    bool apart = batch.empty() && !rows.empty();
    std::vector<Part> of_x = each(x, batch), of_y = each(y, batch), of_result = each(x, batch);
    if (apart)
      of_x = each(x, rows);
    else
      of_x.push_back({&x, rows});
    of_x.push_back({&x, inner});
    of_y.push_back({&y, inner});
    of_y.push_back({&y, columns});
    auto shaped_unless = [&](const Term& term, const std::vector<Part>& parts) {
      bool same = parts.size() == term.labels.size();
      for (const Part& part : parts) same = same && part.labels.size() == 1;
      return same ? term.value : shaped(term.value, parts);
    };
    Value* result = b_.add("matmul", {shaped_unless(x, of_x), shaped_unless(y, of_y)});
    for (Part& part : each(x, rows)) of_result.push_back(part);
    for (Part& part : each(y, columns)) of_result.push_back(part);
    Term named{result, batch + rows + columns};
    bool split = (apart || rows.size() == 1) && columns.size() == 1;
    if (!split) named.value = shaped(result, of_result);
    return named;
  }

  Builder& b_;
  std::vector<Term> terms_;
  std::string asked_;   // the result's labels, possibly with repetitions
  std::string result_;  // without repetitions
};

}  // namespace

Value* einsum(const std::string& equation, const std::vector<Value*>& operands, Builder& builder) {
  if (operands.empty()) fail(ErrorKind::invalid_model, "", "has no operand");
  return Equation(equation, operands, builder).run();
}

}  // namespace cairn
