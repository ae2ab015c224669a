// The routines of linear algebra for processors with AVX2: this file has options of its own (cmake/folders.cmake).
#define Eigen EigenAvx2
#include "ops/matrices_body.h"

namespace cairn {

std::span<const NamedMatrixRoutine> matrix_routines_avx2() { return kMatrixRoutines<double>; }
std::span<const NamedMatrixRoutine> matrix_routines_avx2_f32() { return kMatrixRoutines<float>; }

}  // namespace cairn
