// Helpers of gradient rules: sizes that are constants when the types tell them, scatter-like sums, differentiation of a
// formula op by op. The rules are beside their rows or in <family>_gradients.cpp.
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

/// A size, or a number computed from sizes: a constant when the types tell it, else an i64[1] computed at run time.
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
  Value* value_ = nullptr;  // i64[1], when dim_ is not a number
};
using Sizes = std::vector<Size>;

/// The dims of x; throws Error unsupported when the rank is unknown.
Sizes sizes_of(const GradientContext& g, Var x);
/// The product of sizes[first .. last); 1 when the range is empty.
Size product_of(Builder& b, const Sizes& sizes, size_t first, size_t last);
/// The number of elements of x; the rank may be unknown.
Size count_of(Var x);
/// i64[n]
Var as_vector(Builder& b, const Sizes& sizes);
/// x / size and x * size; 16-bit floats are computed in f32, because a size may exceed their range.
Var divided(Var x, const Size& size);
Var multiplied(Var x, const Size& size);
/// The axis as an index >= 0; a negative one counts from the end.
size_t axis_from_start(int64_t axis, size_t rank);

Var reshape(Var x, const Sizes& sizes);
Var flattened(Var x);
Var transpose(Var x, std::vector<int64_t> permutation);
Var matmul(Var a, Var b, bool transpose_a = false, bool transpose_b = false);
Var concat(const std::vector<Var>& parts, int64_t axis);
/// x where the mask is true, else 0.
Var keep_where(Var mask, Var x);
/// Swaps the last two dims.
Var transposed_matrices(Var x);
/// A mask like the matrices of x: true where op(row, column) holds.
Var where_of_matrix(Var x, const char* op);
Var lower_triangle(Var x);
Var upper_triangle(Var x);
/// 0, 1, ... size - 1
Var counting(const Size& size);
/// The row-major indices 0, 1, ... of the elements of x, in the shape of x.
Var numbered(Var x);
/// The indices as i64, with `size` added to negative ones; `size` may be a vector along the last dim.
Var counted_from_start(Var indices, Var size);
/// Gathers rows of x (slices along its first dim).
Var gather_rows(Var x, Var rows);
/// The same, with zeros for negative row numbers. Either `rows` or x must be a vector.
Var gather_rows_or_zeros(Var x, Var rows);
/// Segment sum: row r of the result, r < `count`, is the sum of the rows i of x with places[i] = r. Rows with a
/// negative place are left out.
Var sum_rows(Var x, Var places, const Size& count);
/// A tensor like `like` in which each element of dy is added at its place, a row-major index. Elements with a negative
/// place are left out.
Var sum_elements(Var dy, Var places, Var like);
/// Index vectors converted to row numbers of an array seen as [batches, rows of a batch, width].
struct RowNumbers {
  Size count, rows, width;  // number of index vectors, of rows in all batches, of elements in a row
  Var numbers;              // i64[count], -1 for vectors that are left out
};
/// `padded`: vectors with a negative index are left out; else negative indices count from the end.
RowNumbers row_numbers(const GradientContext& g, Var vectors, const Sizes& sizes, size_t batch, bool padded);
/// `reduced` with the axes that the reduction of x dropped put back as dims of size 1; `kept`: it still has them.
Var with_axes(const GradientContext& g, Var reduced, Var x, const std::vector<int64_t>& axes, bool kept);
/// For each element of x the product of the other elements of its group, correct also when some are 0. `product` and
/// `sum` reduce a tensor like x over the groups; their results broadcast to x.
Var product_of_others(Var x, FunctionRef<Var(Var)> product, FunctionRef<Var(Var)> sum);
/// Applies the op of this node, with its attributes, to other inputs.
std::vector<Var> apply_again(const GradientContext& g, std::vector<Var> inputs);

/// Sets the gradients by differentiating a formula op by op. `formula` gets the inputs and returns as many results as
/// the op has.
void differentiate_formula(GradientContext& g, FunctionRef<std::vector<Value*>(const std::vector<Var>&)> formula);
/// A gradient rule that differentiates the row's decomposition.
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
