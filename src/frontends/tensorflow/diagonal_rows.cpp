// TensorFlow's ops on diagonals and bands of matrices. Positions are computed by arithmetic on i64 tensors, which is
// folded during import if the sizes are known.
#include <numeric>

#include "frontends/reshape.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {
namespace {

/// A dim of x as a scalar.
Var size_of_dim(OpContext& c, Value* x, size_t axis) { return Var(c.b, scalar_dim(x, axis, c.b)); }

/// 0, 1, ... along dim `axis` of x, as i64.
Value* places_along(OpContext& c, Value* x, size_t axis) {
  const std::vector<Type> type{Type::tensor(kI64, Shape{x->type.shape.dims[axis]})};
  Value *zero = c.b.constant(Tensor::scalar_i64(0)), *one = c.b.constant(Tensor::scalar_i64(1));
  Value* limit = size_of_dim(c, x, axis).value;
  return folded(c.b.add_node(op_named("iota"), {zero, limit, one}, {{"dtype", kI64}}, {}, type)->result(), c.b);
}
Var counted_to(OpContext& c, const Var& limit) { return Var(c.b, counted(limit.value, c.b)); }
Var as_column(OpContext& c, const Var& vector) { return Var(c.b, expand_dims(vector.value, {1}, c.b)); }

void matrix_band_part(OpContext& c) {
  c.expect_inputs(3);
  const size_t rank = c.rank(0);
  if (rank < 2) fail(ErrorKind::invalid_model, "", "takes matrices, found {} dims", rank);
  Value* rows = expand_dims(places_along(c, c.in[0], rank - 2), {1}, c.b);
  Value* distance = c.b.add("sub", {places_along(c, c.in[0], rank - 1), rows});
  Value* zero = c.b.constant(Tensor::scalar_i64(0));
  Value *lower = cast_to(c.in[1], kI64, c.b), *upper = cast_to(c.in[2], kI64, c.b);
  auto within = [&](Value* bound, Value* beyond) {
    return c.b.add("or", {c.b.add("less", {bound, zero}), c.b.add("less_equal", {beyond, bound})});
  };
  Value* inside = c.b.add("and", {within(lower, c.b.add("neg", {distance})), within(upper, distance)});
  c.out = {c.b.add("select", {inside, c.in[0], c.b.scalar_like(c.in[0], 0)})};
}

/// Of 2 * half dims, where the first half names the same place as the second: dims 0, ... and `behind`, ... of x.
Value* same_places(OpContext& c, Value* x, size_t half, size_t behind) {
  Value* same = nullptr;
  for (size_t i = 0; i < half; ++i) {
    auto along = [&](size_t dim, size_t at) {  // of 2 * half dims
      std::vector<int64_t> ones(2 * half - 1 - at);
      std::iota(ones.begin(), ones.end(), 1);
      return expand_dims(places_along(c, x, dim), ones, c.b);
    };
    Value* equal = c.b.add("equal", {along(i, i), along(behind + i, half + i)});
    same = same ? c.b.add("and", {same, equal}) : equal;
  }
  return same;
}

/// x on the diagonal of a tensor with twice its dims.
void diag(OpContext& c) {
  c.expect_inputs(1);
  const size_t rank = c.rank(0);
  if (rank < 1) fail(ErrorKind::invalid_model, "", "takes a vector, found a scalar");
  std::vector<int64_t> behind(rank);
  std::iota(behind.begin(), behind.end(), static_cast<int64_t>(rank));
  c.out = {c.b.add("select",
                   {same_places(c, c.in[0], rank, 0), expand_dims(c.in[0], behind, c.b), c.b.scalar_like(c.in[0], 0)})};
}

void diag_part(OpContext& c) {
  c.expect_inputs(1);
  Value* x = c.in[0];
  const size_t half = c.rank(0) / 2;
  if (half == 0 || c.rank(0) % 2 != 0) fail(ErrorKind::invalid_model, "", "has {} dims, expected 2, 4, ...", c.rank(0));
  std::vector<int64_t> behind(half);
  std::iota(behind.begin(), behind.end(), static_cast<int64_t>(half));
  for (size_t i = 0; i < half; ++i) {
    const Dim &row = x->type.shape.dims[i], &column = x->type.shape.dims[half + i];
    if (row.surely_equals(column)) continue;
    const std::string message = fmt::format("dims {} and {} of the input differ", i, half + i);
    if (row.known() && column.known()) fail(ErrorKind::invalid_model, "", "{}", message);
    Value* equal = c.b.add("equal", {dim_of(x, i, c.b), dim_of(x, half + i, c.b)});
    c.b.add_node(op_named("assert"), {c.b.add("reduce_all", {equal}, {{"axes", std::vector<int64_t>{0}}})},
                 {{"message", message}});
  }
  Value* kept = c.b.add("select", {same_places(c, x, half, half), x, c.b.scalar_like(x, 0)});
  c.out = {c.b.add("reduce_sum", {kept}, {{"axes", behind}})};
}

/// The diagonals `lower` .. `upper` of matrices (0 is the main one). They are stored one per row, the uppermost first,
/// in rows of the length of the longest one; shorter ones are aligned to the left or right.
class Band {
 public:
  Band(OpContext& c, std::optional<size_t> operand) : c_(c) {
    std::vector<int64_t> k = operand ? c.constant_integers(*operand, "the diagonals") : std::vector<int64_t>{0};
    if (k.empty() || k.size() > 2) fail(ErrorKind::invalid_model, "", "names {} diagonals, expected 1 or 2", k.size());
    lower_ = k[0], upper_ = k.back();
    if (lower_ > upper_ || lower_ < -INT32_MAX || upper_ > INT32_MAX)
      fail(ErrorKind::invalid_model, "", "the diagonals {} to {} are out of range", lower_, upper_);
    const std::string align = c.text("align", c.node().op.ends_with("V3") ? "RIGHT_LEFT" : "LEFT_LEFT");
    const size_t middle = align.find('_');
    for (std::string_view side :
         {std::string_view(align).substr(0, middle), std::string_view(align).substr(middle + 1)})
      if (side != "LEFT" && side != "RIGHT")
        fail(ErrorKind::invalid_model, "", "align '{}' is unknown", printable(align));
    upper_left_ = align.starts_with("LEFT"), lower_left_ = align.ends_with("LEFT");
  }

  bool several() const { return lower_ != upper_; }
  int64_t lower() const { return lower_; }
  int64_t upper() const { return upper_; }
  bool main() const { return lower_ == 0 && upper_ == 0; }
  int64_t count() const { return upper_ - lower_ + 1; }

  /// The length of diagonal d of a matrix.
  static Var length(const Var& d, const Var& rows, const Var& columns) {
    return (columns - by_number(d, "maximum", 0)).apply("minimum", {rows + by_number(d, "minimum", 0)});
  }
  /// The position in its row of `longest` elements at which diagonal d begins.
  Var begin(const Var& d, const Var& rows, const Var& columns, const Var& longest) const {
    const Var right = longest - length(d, rows, columns), left = right * 0.0;
    Var begin = upper_left_ ? left : right;
    if (lower_left_ != upper_left_) begin = select(d < 0, lower_left_ ? left : right, begin);
    return upper_left_ == lower_left_ ? begin : select(by_number(d, "equal", 0), left, begin);
  }

  /// The diagonals (the last dims of `diagonals`) in place of what `others` has there; matrices of that many rows and columns.
  Value* spread(Value* diagonals, const Var& rows, const Var& columns, const Var& i, const Var& j,
                Value* others) const {
    const auto rank = static_cast<int64_t>(diagonals->type.shape.rank());
    const Var longest = size_of_dim(c_, diagonals, diagonals->type.shape.rank() - 1);
    const Var d = j - as_column(c_, i);
    const Var inside = Var(c_.b, c_.b.add("and", {by_number(d, "less_equal", double(upper_)).value,
                                                  by_number(d, "greater_equal", double(lower_)).value}));
    Var at = (j - by_number(d, "maximum", 0)) + begin(d, rows, columns, longest);
    Value* flat = diagonals;
    if (several()) {
      at = (double(upper_) - d) * longest + at;
      std::vector<NewDim> dims;
      for (int n = 0; n + 2 < rank; ++n) dims.push_back({-1, n});
      const Dim size = diagonals->type.shape.dims.back();
      dims.push_back({size.known() ? element_count({size.size, count()}).value_or(-1) : -1, -1});
      flat = reshape_to(diagonals, dims, c_.b);
    }
    const Var safe = folded(select(inside, at, at * 0.0));
    const auto axis = static_cast<int64_t>(flat->type.shape.rank()) - 1;
    Value* taken = c_.b.add("gather", {flat, safe.value}, {{"axis", axis}});
    return c_.b.add("select", {folded(inside).value, taken, others});
  }

 private:
  OpContext& c_;
  int64_t lower_ = 0, upper_ = 0;
  bool upper_left_ = false, lower_left_ = false;
};

/// diagonals, k, rows, columns, padding; the first version has the main diagonal alone.
void matrix_diag(OpContext& c) {
  const bool plain = !c.node().op.ends_with("V2") && !c.node().op.ends_with("V3");
  c.expect_inputs(plain ? 1 : 5);
  const Band band(c, plain ? std::nullopt : std::optional<size_t>(1));
  Value* x = c.in[0];
  const size_t rank = c.rank(0), least = band.several() ? 2 : 1;
  if (rank < least) fail(ErrorKind::invalid_model, "", "the diagonals have {} dims, expected {}", rank, least);
  if (band.several() &&
      !compatible(Type::tensor(kI64, {x->type.shape.dims[rank - 2]}), Type::tensor(kI64, {Dim(band.count())})))
    fail(ErrorKind::invalid_model, "", "has {} diagonals, expected {}", to_string(x->type.shape.dims[rank - 2]),
         band.count());
  const int64_t rows = plain ? -1 : c.constant_integer(2, "the number of rows"),
                columns = plain ? -1 : c.constant_integer(3, "the number of columns");
  Value* padding = plain ? c.b.scalar_like(x, 0) : c.in[4];
  const Var longest = size_of_dim(c, x, rank - 1);
  if (band.main() && rows < 0 && columns < 0) {  // sizes stay what they are called
    const Var at(c.b, places_along(c, x, rank - 1));
    c.out = {band.spread(x, longest, longest, at, at, padding)};
    return;
  }
  Var height = longest + double(-std::min<int64_t>(band.upper(), 0)),
      width = longest + double(std::max<int64_t>(band.lower(), 0));
  if (rows < 0 && columns < 0) height = width = height.apply("maximum", {width});
  if (rows >= 0) height = longest.number(double(rows));
  if (columns >= 0) width = longest.number(double(columns));
  height = folded(height), width = folded(width);
  c.out = {band.spread(x, height, width, counted_to(c, height), counted_to(c, width), padding)};
}

std::optional<int64_t> known_product(const Dim& a, const Dim& b) {
  return a.known() && b.known() ? element_count({a.size, b.size}) : std::nullopt;
}

/// matrices, k, padding.
void matrix_diag_part(OpContext& c) {
  const bool plain = !c.node().op.ends_with("V2") && !c.node().op.ends_with("V3");
  c.expect_inputs(plain ? 1 : 3);
  const Band band(c, plain ? std::nullopt : std::optional<size_t>(1));
  Value* x = c.in[0];
  const size_t rank = c.rank(0);
  if (rank < 2) fail(ErrorKind::invalid_model, "", "takes matrices, found {} dims", rank);
  const Var rows = size_of_dim(c, x, rank - 2), columns = size_of_dim(c, x, rank - 1);
  const bool square = x->type.shape.dims[rank - 2].surely_equals(x->type.shape.dims[rank - 1]);
  const Var longest = folded((rows + double(std::min<int64_t>(band.upper(), 0)))
                                 .apply("minimum", {columns + double(-std::max<int64_t>(band.lower(), 0))}));
  const Var n = band.main() && square ? Var(c.b, places_along(c, x, rank - 1)) : counted_to(c, longest);
  Var d = longest.number(double(band.upper()));
  if (band.several())
    d = folded(double(band.upper()) - as_column(c, counted_to(c, longest.number(double(band.count())))));
  const Var at = n - band.begin(d, rows, columns, longest);
  const Var inside(c.b, c.b.add("and", {by_number(at, "greater_equal", 0).value,
                                        at.apply("less", {Band::length(d, rows, columns)}).value}));
  const Var row = at - by_number(d, "minimum", 0), column = at + by_number(d, "maximum", 0);
  const Var flat_at = folded(select(inside, row * columns + column, row * 0.0));
  std::vector<NewDim> dims;
  for (size_t i = 0; i + 2 < rank; ++i) dims.push_back({-1, static_cast<int>(i)});
  const auto count = known_product(x->type.shape.dims[rank - 2], x->type.shape.dims[rank - 1]);
  dims.push_back({count.value_or(-1), -1});
  Value* taken =
      c.b.add("gather", {reshape_to(x, dims, c.b), flat_at.value}, {{"axis", static_cast<int64_t>(rank) - 2}});
  Value* padding = plain ? c.b.scalar_like(x, 0) : c.in[2];
  c.out = {band.main() ? taken : c.b.add("select", {folded(inside).value, taken, padding})};
}

/// matrices, diagonals, k.
void matrix_set_diag(OpContext& c) {
  const bool plain = c.node().op == "MatrixSetDiag" || c.node().op == "BatchMatrixSetDiag";
  c.expect_inputs(plain ? 2 : 3);
  const Band band(c, plain ? std::nullopt : std::optional<size_t>(2));
  const size_t rank = c.rank(0);
  if (rank < 2 || c.rank(1) + (band.several() ? 0 : 1) != rank)
    fail(ErrorKind::invalid_model, "", "takes matrices and their diagonals");
  const Var rows = size_of_dim(c, c.in[0], rank - 2), columns = size_of_dim(c, c.in[0], rank - 1);
  const Var i(c.b, places_along(c, c.in[0], rank - 2)), j(c.b, places_along(c, c.in[0], rank - 1));
  c.out = {band.spread(c.in[1], rows, columns, i, j, c.in[0])};
}

constexpr Row kDiagonalRows[] = {
    {"BatchMatrixBandPart", matrix_band_part},
    {"BatchMatrixDiag", matrix_diag},
    {"BatchMatrixDiagPart", matrix_diag_part},
    {"BatchMatrixSetDiag", matrix_set_diag},
    {"Diag", diag},
    {"DiagPart", diag_part},
    {"MatrixBandPart", matrix_band_part},
    {"MatrixDiag", matrix_diag},
    {"MatrixDiagPart", matrix_diag_part},
    {"MatrixDiagPartV2", matrix_diag_part},
    {"MatrixDiagPartV3", matrix_diag_part},
    {"MatrixDiagV2", matrix_diag},
    {"MatrixDiagV3", matrix_diag},
    {"MatrixSetDiag", matrix_set_diag},
    {"MatrixSetDiagV2", matrix_set_diag},
    {"MatrixSetDiagV3", matrix_set_diag},
};

}  // namespace

std::span<const Row> diagonal_rows() { return kDiagonalRows; }

}  // namespace cairn::tensorflow
