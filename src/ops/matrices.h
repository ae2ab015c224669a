// Linear algebra on single matrices: routines that are compiled for several instruction sets from one body
// (matrices_body.h), and what reads their operands from tensors and writes their results.
#pragma once

#include <span>
#include <string_view>

#include "ir/op_def.h"

namespace cairn {

/// A matrix by columns, of the routine's elements.
struct MatrixSpan {
  void* data;
  int64_t rows, columns;
};

struct MatrixFlags {
  bool adjoint = false, lower = false;
};

enum class MatrixFault : uint8_t { none, singular, not_positive, no_eigenvalues };
const char* to_string(MatrixFault fault);

/// Overwrites `in`. A vector is a matrix with one column, a number one with one element.
using MatrixRoutine = MatrixFault (*)(MatrixFlags flags, const MatrixSpan* in, const MatrixSpan* out);
struct NamedMatrixRoutine {
  std::string_view op;
  MatrixRoutine routine;
};
/// On f64, for every x86-64 processor.
std::span<const NamedMatrixRoutine> matrix_routines();
/// On f64 and on f32, for those with AVX2 and FMA; in engines/cpu.
std::span<const NamedMatrixRoutine> matrix_routines_avx2();
std::span<const NamedMatrixRoutine> matrix_routines_avx2_f32();
/// The routine of this op, or null.
MatrixRoutine find_matrix_routine(std::span<const NamedMatrixRoutine> routines, std::string_view op);

/// An op of linear algebra over the matrices in the last two dims of its inputs, whose leading dims broadcast.
class MatrixBatch {
 public:
  /// Whose routine computes on elements of `computed`, f64 or f32. All dims are known.
  MatrixBatch(MatrixRoutine routine, DType computed, const AttributeView& attributes, std::span<const Type> inputs,
              std::span<const Type> results);
  /// The number of matrices of a result; 0 when all results are empty.
  int64_t count() const { return count_; }
  /// The bytes of scratch that compute() uses.
  size_t scratch() const { return scratch_; }
  MatrixFault compute(int64_t number, const void* const* inputs, void* const* results, void* scratch) const;

 private:
  struct Operand {
    DType dtype;
    int64_t rows, columns;
    std::vector<int64_t> strides;  // of an input over the dims of the batch, in matrices; of a result empty
  };
  template <class T>
  MatrixFault compute_in(int64_t number, const void* const* inputs, void* const* results, T* scratch) const;

  MatrixRoutine routine_;
  DType computed_;
  MatrixFlags flags_;
  std::vector<Operand> inputs_, results_;
  std::vector<int64_t> batch_;
  int64_t count_ = 0;
  size_t scratch_ = 0;
};

}  // namespace cairn
