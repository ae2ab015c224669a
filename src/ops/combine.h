// How operators with a reduction mode combine two numbers, and what they start from.
#pragma once

#include <string_view>

#include "ops/kernels.h"

namespace cairn {

struct Replace {
  template <class N>
  N operator()(N, N b) const {
    return b;
  }
};
struct Add {
  template <class N>
  N operator()(N a, N b) const {
    if constexpr (std::is_floating_point_v<N>)
      return a + b;
    else
      return wrapped(a, b, std::plus<>());
  }
};
struct Subtract {
  template <class N>
  N operator()(N a, N b) const {
    if constexpr (std::is_floating_point_v<N>)
      return a - b;
    else
      return wrapped(a, b, std::minus<>());
  }
};
struct Multiply {
  template <class N>
  N operator()(N a, N b) const {
    if constexpr (std::is_floating_point_v<N>)
      return a * b;
    else
      return wrapped(a, b, std::multiplies<>());
  }
};
struct Divide {  // floats only, as the shape rules have it
  template <class N>
  N operator()(N a, N b) const {
    if constexpr (std::is_floating_point_v<N>)
      return a / b;
    else
      return a;
  }
};
struct Largest {
  template <class N>
  N operator()(N a, N b) const {
    return maximum(a, b);
  }
};
struct Least {
  template <class N>
  N operator()(N a, N b) const {
    return minimum(a, b);
  }
};

/// What a reduction of elements of type T by the mode starts from, in the type A of its sums.
template <class T, class A>
A neutral(std::string_view mode) {
  using Limits = std::numeric_limits<Compute<T>>;
  if (mode == "prod") return 1;
  if (mode == "max") return std::is_same_v<T, Half> ? A(-65504) : A(Limits::lowest());
  if (mode == "min") return std::is_same_v<T, Half> ? A(65504) : A(Limits::max());
  return 0;
}

}  // namespace cairn
