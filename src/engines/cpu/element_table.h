// The element-wise operations of the CPU engine, a row each: the op's name, its instruction, and its formulas. Included where a
// part of it is needed, after a definition of the macros that are wanted; see the end.
//
// CAIRN_VECTOR(name, instruction, f32)                 on vectors x, y, z of f32, bools being 0 and 1: generated code and loops
// CAIRN_VECTOR_WITH(name, instruction, low, high, f32) the same with the node's attributes of these names as numbers low, high
// CAIRN_NARROW(name, instruction, f32)                 of vectors of f32 alone, for elements of 8 and 16 bits
// CAIRN_FUNCTION(name, instruction, f32, wide)         of one float; other widths than f32 by a formula of a double x
// Functions of vectors are those of vector_math.h. An op that others express needs no row: its decomposition becomes one program.

#ifndef CAIRN_VECTOR
#define CAIRN_VECTOR(...)
#endif
#ifndef CAIRN_VECTOR_WITH
#define CAIRN_VECTOR_WITH(name, instruction, low, high, f32) CAIRN_VECTOR(name, instruction, f32)
#endif
#ifndef CAIRN_NARROW
#define CAIRN_NARROW(name, instruction, f32) CAIRN_VECTOR(name, instruction, f32)
#endif
#ifndef CAIRN_FUNCTION
#define CAIRN_FUNCTION(name, instruction, f32, wide) CAIRN_VECTOR(name, instruction, f32)
#endif

CAIRN_VECTOR("identity", copy, x)
CAIRN_VECTOR("add", add, x + y)
CAIRN_VECTOR("sub", sub, x - y)
CAIRN_VECTOR("mul", mul, x* y)
CAIRN_VECTOR("div", div, x / y)
CAIRN_VECTOR("neg", neg, -x)
CAIRN_VECTOR("abs", abs, magnitude_of(x))
CAIRN_VECTOR("square", square, x* x)
CAIRN_VECTOR("squared_difference", squared_difference, (x - y) * (x - y))
CAIRN_VECTOR("maximum", maximum, larger(x, y))
CAIRN_VECTOR("minimum", minimum, smaller(x, y))
CAIRN_VECTOR("sign", sign, choose(x > 0.f, one, choose(x < 0.f, -one, choose(x != x, x, spread(0.f)))))

CAIRN_VECTOR("equal", equal, choose(x == y, one, zero))
CAIRN_VECTOR("not_equal", not_equal, choose(x != y, one, zero))
CAIRN_VECTOR("less", less, choose(x < y, one, zero))
CAIRN_VECTOR("less_equal", less_equal, choose(x <= y, one, zero))
CAIRN_VECTOR("greater", greater, choose(x > y, one, zero))
CAIRN_VECTOR("greater_equal", greater_equal, choose(x >= y, one, zero))
CAIRN_VECTOR("and", logical_and, x* y)
CAIRN_VECTOR("or", logical_or, choose(x + y > 0.f, one, zero))
CAIRN_VECTOR("xor", logical_xor, choose(x != y, one, zero))
CAIRN_VECTOR("not", logical_not, one - x)
CAIRN_VECTOR("select", select, choose(x != 0.f, y, z))

CAIRN_VECTOR("relu", relu, larger(x, zero))
CAIRN_VECTOR_WITH("clip", clip, "low", "high", smaller(larger(x, spread(low)), spread(high)))
CAIRN_VECTOR_WITH("leaky_relu", leaky_relu, "alpha", nullptr, choose(x < 0.f, x* low, x))
CAIRN_VECTOR_WITH("elu", elu, "alpha", nullptr, choose(x > 0.f, x, expm1_of(x) * low))
CAIRN_VECTOR_WITH("gelu", gelu, "approximate", nullptr, low != 0 ? gelu_by_tanh_of(x) : gelu_of(x))

CAIRN_NARROW("round to f16", round_half, half_of(x))
CAIRN_NARROW("round to bf16", round_brain, brain_of(x))
CAIRN_NARROW("sigmoid to 16 bits", sigmoid_few, sigmoid_few_of(x))
CAIRN_NARROW("tanh to 16 bits", tanh_few, tanh_few_of(x))
CAIRN_NARROW("gelu to 16 bits", gelu_few, low != 0 ? gelu_by_tanh_few_of(x) : gelu_few_of(x))

// Integers of 8 bits: `low` is the zero point; or y the scale, `low` the type's least number without the zero point, `high` 1 / y.
CAIRN_NARROW("integers to floats", dequantise, (x - spread(low)) * y)
CAIRN_NARROW("floats to u8", quantise_unsigned, choose(x == x, steps_of(x, y, high, low) - spread(low), zero))
CAIRN_NARROW("floats to i8", quantise_signed, choose(x == x, steps_of(x, y, high, low) - spread(128 + low), zero))

CAIRN_FUNCTION("reciprocal", reciprocal, one / x, 1 / x)
CAIRN_FUNCTION("sqrt", sqrt, root_of(x), std::sqrt(x))
CAIRN_FUNCTION("rsqrt", rsqrt, one / root_of(x), 1 / std::sqrt(x))
CAIRN_FUNCTION("floor", floor, floor_of(x), std::floor(x))
CAIRN_FUNCTION("ceil", ceil, ceil_of(x), std::ceil(x))
CAIRN_FUNCTION("round", round, round_of(x), std::nearbyint(x))
CAIRN_FUNCTION("exp", exp, exp_of(x), std::exp(x))
CAIRN_FUNCTION("expm1", expm1, expm1_of(x), std::expm1(x))
CAIRN_FUNCTION("log", log, log_of(x), std::log(x))
CAIRN_FUNCTION("log1p", log1p, log1p_of(x), std::log1p(x))
CAIRN_FUNCTION("tanh", tanh, tanh_of(x), std::tanh(x))
CAIRN_FUNCTION("sigmoid", sigmoid, sigmoid_of(x), 1 / (1 + std::exp(-x)))
CAIRN_FUNCTION("softplus", softplus, softplus_of(x), std::log1p(std::exp(x > 0 ? -x : x)) + (x > 0 ? x : 0))
CAIRN_FUNCTION("erf", erf, erf_of(x), std::erf(x))
CAIRN_FUNCTION("sin", sin, sin_of(x), std::sin(x))
CAIRN_FUNCTION("cos", cos, cos_of(x), std::cos(x))
CAIRN_FUNCTION("tan", tan, tan_of(x), std::tan(x))
CAIRN_FUNCTION("asin", asin, asin_of(x), std::asin(x))
CAIRN_FUNCTION("acos", acos, acos_of(x), std::acos(x))
CAIRN_FUNCTION("atan", atan, atan_of(x), std::atan(x))
CAIRN_FUNCTION("sinh", sinh, sinh_of(x), std::sinh(x))
CAIRN_FUNCTION("cosh", cosh, cosh_of(x), std::cosh(x))
CAIRN_FUNCTION("erfc", erfc, erfc_of(x), std::erfc(x))
CAIRN_FUNCTION("asinh", asinh, asinh_of(x), std::asinh(x))
CAIRN_FUNCTION("acosh", acosh, acosh_of(x), std::acosh(x))
CAIRN_FUNCTION("atanh", atanh, atanh_of(x), std::atanh(x))
CAIRN_FUNCTION("log_gamma", log_gamma, log_gamma_of(x), log_gamma(x))
CAIRN_FUNCTION("digamma", digamma, digamma_of(x), digamma(x))
CAIRN_FUNCTION("erf_inverse", erf_inverse, erf_inverse_of(x), erf_inverse(x))
CAIRN_FUNCTION("normal_quantile", normal_quantile, normal_quantile_of(x), normal_quantile(x))
CAIRN_FUNCTION("bessel_i0e", bessel_i0e, bessel_i0e_of(x), scaled_bessel(x, 0))
CAIRN_FUNCTION("bessel_i1e", bessel_i1e, bessel_i1e_of(x), scaled_bessel(x, 1))
CAIRN_VECTOR("atan2", atan2, atan2_of(x, y))
CAIRN_VECTOR("pow", pow, pow_of(x, y))
CAIRN_VECTOR("truncate_mod", truncate_mod, truncate_mod_of(x, y))
CAIRN_VECTOR("mod", mod, mod_of(x, y))
CAIRN_VECTOR("floor_div", floor_div, floor_div_of(x, y))

#undef CAIRN_VECTOR
#undef CAIRN_VECTOR_WITH
#undef CAIRN_NARROW
#undef CAIRN_FUNCTION
