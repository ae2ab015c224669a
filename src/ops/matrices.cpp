#include "ops/matrices.h"

#include "ops/kernels.h"
#include "ops/matrices_body.h"

namespace cairn {

const char* to_string(MatrixFault fault) {
  switch (fault) {
    case MatrixFault::singular: return "a matrix is not invertible";
    case MatrixFault::not_positive: return "a matrix is not positive definite";
    case MatrixFault::no_eigenvalues: return "the eigenvalues of a matrix were not found";
    case MatrixFault::none: break;
  }
  return "";
}

std::span<const NamedMatrixRoutine> matrix_routines() { return kMatrixRoutines<double>; }

MatrixRoutine find_matrix_routine(std::span<const NamedMatrixRoutine> routines, std::string_view op) {
  for (const NamedMatrixRoutine& each : routines)
    if (each.op == op) return each.routine;
  return nullptr;
}

MatrixBatch::MatrixBatch(MatrixRoutine routine, DType computed, const AttributeView& attributes,
                         std::span<const Type> inputs, std::span<const Type> results)
    : routine_(routine), computed_(computed) {
  if (attributes.has("adjoint")) flags_.adjoint = attributes.boolean("adjoint");
  if (attributes.has("lower")) flags_.lower = attributes.boolean("lower");
  size_t rank = 0;  // of the batch
  for (const Type& input : inputs) rank = std::max(rank, input.shape.rank() - 2);
  const Dims first = results[0].shape.sizes();
  batch_.assign(first.begin(), first.begin() + static_cast<int64_t>(rank));
  const auto operand = [&](const Type& type, size_t leading) {
    const Dims dims = type.shape.sizes();
    return Operand{
        type.dtype, dims.size() > leading ? dims[leading] : 1, dims.size() > leading + 1 ? dims[leading + 1] : 1, {}};
  };
  for (const Type& type : inputs) {
    const size_t leading = type.shape.rank() - 2;
    inputs_.push_back(operand(type, leading));
    const Dims dims = type.shape.sizes();
    inputs_.back().strides = broadcast_strides({dims.begin(), dims.begin() + static_cast<int64_t>(leading)}, batch_);
  }
  bool empty = true;
  for (const Type& type : results) {
    results_.push_back(operand(type, rank));
    empty = empty && (results_.back().rows == 0 || results_.back().columns == 0);
  }
  count_ = empty ? 0 : count_of(batch_);
  if (count_ == 0) return;  // and the matrices may have any size
  int64_t elements = 0;
  for (const auto& operands : {inputs_, results_})
    for (const Operand& each : operands) elements += each.rows * each.columns;
  scratch_ = static_cast<size_t>(elements) * computed_.size();
}

namespace {

/// Rows of `from` become columns of `to`, by blocks whose cache lines are used whole.
template <class From, class To>
void transpose(const From* from, int64_t rows, int64_t columns, To* to) {
  constexpr int64_t kBlock = 8;
  for (const int64_t at : turns((rows + kBlock - 1) / kBlock, columns * kBlock)) {
    const int64_t row = at * kBlock, end = std::min(row + kBlock, rows);
    for (int64_t column = 0; column < columns; column += kBlock)
      for (int64_t r = row; r < end; ++r)
        for (int64_t c = column; c < std::min(column + kBlock, columns); ++c)
          to[c * rows + r] = To(static_cast<Compute<To>>(from[r * columns + c]));
  }
}

}  // namespace

MatrixFault MatrixBatch::compute(int64_t number, const void* const* inputs, void* const* results, void* scratch) const {
  return computed_ == kF32 ? compute_in(number, inputs, results, static_cast<float*>(scratch))
                           : compute_in(number, inputs, results, static_cast<double*>(scratch));
}

template <class T>
MatrixFault MatrixBatch::compute_in(int64_t number, const void* const* inputs, void* const* results, T* scratch) const {
  std::vector<MatrixSpan> in, out;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Operand& operand = inputs_[i];
    int64_t rest = number, at = 0;
    for (size_t axis = batch_.size(); axis-- > 0; rest /= batch_[axis])
      at += rest % batch_[axis] * operand.strides[axis];
    in.push_back({scratch, operand.rows, operand.columns});
    with_floats(operand.dtype, [&](auto tag) {
      const auto* from = static_cast<const decltype(tag)*>(inputs[i]) + at * operand.rows * operand.columns;
      transpose(from, operand.rows, operand.columns, scratch);
    });
    scratch += operand.rows * operand.columns;
  }
  for (const Operand& operand : results_) {
    out.push_back({scratch, operand.rows, operand.columns});
    scratch += operand.rows * operand.columns;
  }
  const MatrixFault fault = routine_(flags_, in.data(), out.data());
  if (fault != MatrixFault::none) return fault;
  for (size_t i = 0; i < results_.size(); ++i) {
    const Operand& operand = results_[i];
    with_floats(operand.dtype, [&](auto tag) {
      auto* to = static_cast<decltype(tag)*>(results[i]) + number * operand.rows * operand.columns;
      transpose(static_cast<const T*>(out[i].data), operand.columns, operand.rows, to);
    });
  }
  return MatrixFault::none;
}

}  // namespace cairn
