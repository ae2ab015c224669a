// The loops over memory for the ten metrics. Sums of float32 use the order of numpy 1.26, so that they equal its bits
// on every machine: chunks of 8192 in sequence, pairwise summation within a chunk down to blocks of at most 128, eight
// lanes in a block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::judge {

struct FirstSums {
  float xx = 0, yy = 0, dd = 0;      // of x*x, y*y, (x-y)*(x-y)
  float absolute = 0, relative = 0;  // of |x-y|, and of |x/y-1| where |y| > eps, else 0
  FirstSums operator+(const FirstSums& o) const {
    return {xx + o.xx, yy + o.yy, dd + o.dd, absolute + o.absolute, relative + o.relative};
  }
};

struct Moments {
  float min = 0, max = 0;
  double mean = 0, variance = 0;
};

/// With a NaN element the extremes are meaningless; the corresponding sum (xx and yy for the ranges) is NaN then.
struct FirstPass : FirstSums {
  float max_absolute = 0, max_relative = 0;
  Moments x, y;
};

/// The cosine divides by the norms; the divergence uses (v - low) / range, at least the float32 epsilon.
struct SecondScales {
  float norm_x = 1, norm_y = 1;
  float low_x = 0, range_x = 1, low_y = 0, range_y = 1;
};

struct SecondPass {
  float sum_cosine = 0;                      // of (x/norm_x)*(y/norm_y)
  double sum_p = 0, sum_q = 0, sum_pln = 0;  // of p, q and p*ln(p/q)
  SecondPass operator+(const SecondPass& o) const {
    return {sum_cosine + o.sum_cosine, sum_p + o.sum_p, sum_q + o.sum_q, sum_pln + o.sum_pln};
  }
};

/// Requires count >= 1.
FirstPass first_pass(const float* x, const float* y, size_t count);
SecondPass second_pass(const float* x, const float* y, size_t count, const SecondScales& scales);

/// IEEE half to float32, denormals kept.
void half_to_floats(const uint16_t* from, float* to, size_t count);

}  // namespace cairn::judge
