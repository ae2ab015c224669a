// Special functions of doubles, for the rows of special.cpp and for kernels that compute other widths or several threads at once.
#pragma once

#include <string_view>

namespace cairn {

double log_gamma(double x);
double digamma(double x);
double erf_inverse(double x);
double normal_quantile(double x);
/// exp(-|x|) times the modified Bessel function of order 0 or 1.
double scaled_bessel(double x, int order);

/// A row of several operands as a function of one element of each; the pointer of the other kind is null.
struct SpecialFunction {
  const char* name;
  double (*of_two)(double, double);
  double (*of_three)(double, double, double) = nullptr;
};
/// Null where the row is no such function.
const SpecialFunction* find_special_function(std::string_view row);

}  // namespace cairn
