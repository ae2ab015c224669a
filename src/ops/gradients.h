// What gradient rules share: sizes that are numbers where types tell them, sums over places, formulas that are differentiated
// op by op. The rules stand beside their rows, or in <family>_gradients.cpp.
#pragma once

#include "ir/gradient.h"
#include "support/function_ref.h"

namespace cairn {

/// The rule of piecewise constant ops: their gradient is zero.
inline void no_slope(GradientContext&) {}

/// The gradient of input 0 is dy times kSlope(context).
template <auto kSlope>
void by_slope(GradientContext& g) {
  g.set(0, g.dy() * kSlope(g));
}

/// Throws Error unsupported "<op>: message": a gradient that is asked for and does not exist.
[[noreturn]] void refuse_gradient(const GradientContext& g, const std::string& message);

/// A size, or what is computed of sizes: a number where types tell it, else an i64[1] that the run computes.
class Size {
 public:
  Size(Builder& b, int64_t number) : builder_(&b), dim_(number) {}
  /// Dim `axis` of x.
  Size(Var x, size_t axis);
  /// Element `index` of a vector of integers.
  static Size element(Var vector, size_t index);

  const Dim& dim() const { return dim_; }
  bool is(int64_t number) const { return dim_.size == number; }
  /// i64[1]
  Var vector() const { return dim_.known() ? Var{*builder_, builder_->ints({dim_.size})} : Var{*builder_, value_}; }
  /// i64[]
  Var scalar() const;
  /// The scalar in a float type.
  Var as(DType dtype) const { return cast(scalar(), dtype); }

  friend Size operator+(const Size& a, const Size& b);
  friend Size operator-(const Size& a, const Size& b);
  friend Size operator*(const Size& a, const Size& b);

 private:
  Builder* builder_;
  Dim dim_;
  Value* value_ = nullptr;  // where the dim is no number
};
using Sizes = std::vector<Size>;

/// The dims of x; refuses where their number is not known.
Sizes sizes_of(const GradientContext& g, Var x);
/// The product of sizes[first .. last), of none 1.
Size product_of(Builder& b, const Sizes& sizes, size_t first, size_t last);
/// Number of elements; of any rank.
Size count_of(Var x);
/// i64[n]
Var as_vector(Builder& b, const Sizes& sizes);
/// x / size and x * size; of 16-bit floats in f32, because a size may be more than they hold.
Var divided(Var x, const Size& size);
Var multiplied(Var x, const Size& size);
/// A possibly negative axis counted from the start.
size_t axis_from_start(int64_t axis, size_t rank);

Var reshape(Var x, const Sizes& sizes);
Var flattened(Var x);
Var transpose(Var x, std::vector<int64_t> permutation);
Var matmul(Var a, Var b, bool transpose_a = false, bool transpose_b = false);
Var concat(const std::vector<Var>& parts, int64_t axis);
/// x where the mask holds, else 0.
Var keep_where(Var mask, Var x);
/// Swaps the last two dims.
Var transposed_matrices(Var x);
/// 0, 1, ... size - 1
Var counting(const Size& size);
/// The numbers 0, 1, ... of the elements of x in row-major order, in its shape.
Var numbered(Var x);
/// i64 indices counted from the start of `size` elements; sizes may be a vector along the last dim.
Var counted_from_start(Var indices, Var size);
/// Parts of x along its first dim.
Var gather_rows(Var x, Var rows);
/// The same with zeros for negative numbers of rows, which are a vector or x is one.
Var gather_rows_or_zeros(Var x, Var rows);
/// For each of `count` rows the sum of the rows of x [places, width] that belong there; negative places belong nowhere.
Var sum_rows(Var x, Var places, const Size& count);
/// Elements of dy summed at the places, numbers of elements of `like`; negative places belong nowhere.
Var sum_elements(Var dy, Var places, Var like);
/// Index vectors as numbers of rows of an array that is [batches, rows of a batch, width].
struct RowNumbers {
  Size count, rows, width;  // index vectors, rows of all batches, elements of a row
  Var numbers;              // i64[count], -1 of vectors that are left out
};
/// `padded`: vectors with a negative number are left out; else negative numbers count from the end.
RowNumbers row_numbers(const GradientContext& g, Var vectors, const Sizes& sizes, size_t batch, bool padded);
/// x with the axes that a reduction dropped put back as sizes of 1.
Var with_axes(const GradientContext& g, Var reduced, Var x, const std::vector<int64_t>& axes, bool kept);
/// For each element of x the product of the others of its group, where one of them may be 0: `product` and `sum` take a
/// tensor like x to what they are over each element's group, in a shape that broadcasts to x.
Var product_of_others(Var x, FunctionRef<Var(Var)> product, FunctionRef<Var(Var)> sum);
/// A copy of this node on other inputs, with its attributes.
std::vector<Var> apply_again(const GradientContext& g, std::vector<Var> inputs);

/// Sets gradients by differentiating a formula of rows op by op. It gets the inputs and returns as many results as the op has.
void differentiate_formula(GradientContext& g, FunctionRef<std::vector<Value*>(const std::vector<Var>&)> formula);
/// The rule of a row whose decomposition says all.
void by_decomposition(GradientContext& g);

// The rules of the families that have a file of gradients.
void resize2d_rule(GradientContext& g);
void crop_and_resize_rule(GradientContext& g);
void matrix_inverse_rule(GradientContext& g);
void determinant_rule(GradientContext& g);
void log_determinant_rule(GradientContext& g);
void cholesky_rule(GradientContext& g);
void matrix_solve_rule(GradientContext& g);
void triangular_solve_rule(GradientContext& g);
void qr_rule(GradientContext& g);
void svd_rule(GradientContext& g);
void self_adjoint_eig_rule(GradientContext& g);
void softmax_rule(GradientContext& g);
void log_softmax_rule(GradientContext& g);
void batch_norm_training_rule(GradientContext& g);
void layer_norm_rule(GradientContext& g);
void sparse_reorder_rule(GradientContext& g);
void sparse_fill_empty_rows_rule(GradientContext& g);
void sparse_slice_rule(GradientContext& g);
void sparse_add_rule(GradientContext& g);
void sparse_reduce_rule(GradientContext& g);
void sparse_softmax_rule(GradientContext& g);

}  // namespace cairn
