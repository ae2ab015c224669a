#include "engines/cpu/elements.h"

#include <cmath>
#include <cstring>
#include <functional>

#include "engines/cpu/element_walk.h"
#include "engines/cpu/integer_division.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/vector_loops.h"
#include "ops/special.h"

namespace cairn {

Dims walked_strides(const Dims& from, Dims own, const Dims& to) {
  if (own.empty()) return broadcast_strides(from, to);
  own.insert(own.begin(), to.size() - from.size(), 0);
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] == 1) own[to.size() - from.size() + i] = 0;
  return own;
}

namespace {

using Walk = ElementWalk;

using Run = std::function<void(const StepArgs&)>;

/// The operands of a loop: the address of the first element and the stride in elements of each.
struct Operands {
  std::array<const uint8_t*, kMostOperands> at;
  std::array<int64_t, kMostOperands> step;

  template <class T>
  const T* of(size_t k) const {
    return reinterpret_cast<const T*>(at[k]);
  }
};

// A loop computes `many` elements. Code that does not depend on the element type is outside of it and compiled once.
using Loop = std::function<void(int64_t many, const Operands& x, void* y)>;

void scatter(const uint8_t* from, int64_t many, size_t width, int64_t step, uint8_t* to) {
  for (int64_t i = 0; i < many; ++i, from += width, to += step * static_cast<int64_t>(width))
    std::memcpy(to, from, width);
}

/// Short rows are gathered first, so that a loop has many elements.
void run_gathered(const StepArgs& args, const Walk& walk, const std::array<size_t, kMostOperands>& widths, size_t width,
                  const Loop& loop) {
  constexpr int64_t kPiece = 512;
  for_ranges(args.executor, (walk.count() + kPiece - 1) / kPiece, 8 * kPiece, [&](int64_t begin, int64_t end) {
    alignas(64) std::array<std::array<uint8_t, kPiece * 8>, kMostOperands> pieces;
    for (int64_t first = begin * kPiece; first < std::min(walk.count(), end * kPiece); first += kPiece) {
      const int64_t many = std::min(kPiece, walk.count() - first);
      Operands x{};
      for (size_t k = 0; k < walk.operands(); ++k) {
        const uint8_t* from = input<uint8_t>(args, walk.input(k));
        x.step[k] = walk.is_single(k) ? 0 : 1;
        x.at[k] = from + x.step[k] * first * static_cast<int64_t>(widths[k]);
        if (walk.is_single(k) || walk.is_aligned(k)) continue;
        walk.gather(k, widths[k], first, many, from, pieces[k].data());
        x.at[k] = pieces[k].data();
      }
      loop(many, x, output<uint8_t>(args) + first * static_cast<int64_t>(width));
    }
  });
}

Run over(Walk walk, std::array<size_t, kMostOperands> widths, size_t width, Loop loop) {
  const bool short_rows =
      walk.has_short_rows() && std::all_of(widths.begin(), widths.end(), [](size_t each) { return each <= 8; });
  return [walk = std::move(walk), widths, width, loop = std::move(loop), short_rows](const StepArgs& args) {
    if (short_rows) return run_gathered(args, walk, widths, width, loop);
    Operands begin{};
    for (size_t k = 0; k < walk.operands(); ++k) begin.at[k] = input<uint8_t>(args, walk.input(k));
    const auto advance = [&](Operands& x, auto& steps) {
      for (size_t k = 0; k < walk.operands(); ++k) x.at[k] += steps[k] * static_cast<int64_t>(widths[k]);
    };
    walk.each(args.executor, [&](int64_t many, auto& offsets, auto& steps) {
      const size_t result = walk.operands();
      uint8_t* y = output<uint8_t>(args) + offsets[result] * static_cast<int64_t>(width);
      Operands x = begin;
      advance(x, offsets);
      std::copy_n(steps.begin(), kMostOperands, x.step.begin());
      if (steps[result] == 1 || many == 1) return loop(many, x, y);
      constexpr int64_t kPiece = 256;
      alignas(16) uint8_t piece[kPiece * 16];
      std::array<int64_t, kMostOperands + 1> further;
      for (size_t k = 0; k <= result; ++k) further[k] = steps[k] * kPiece;
      for (int64_t done = 0; done < many; done += kPiece, advance(x, further)) {
        const int64_t now = std::min(kPiece, many - done);
        loop(now, x, piece);
        scatter(piece, now, width, steps[result], y + done * steps[result] * static_cast<int64_t>(width));
      }
    });
  };
}

/// The types that scripts count and choose with, whose loops are compiled for vectors.
template <class T>
constexpr bool kCounts = std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> || std::is_same_v<T, uint8_t>;

template <class From, class To, class F>
CAIRN_INLINE void singles(int64_t many, const From* x, To* y, const F* f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < many; ++i) y[i] = (*f)(x[i]);
}

// y = f(x) with elements of type From and To.
template <class From, class To, class F>
Run unary(Walk walk, F f) {
  return over(std::move(walk), {sizeof(From)}, sizeof(To), [f](int64_t many, const Operands& operands, void* result) {
    const From* x = operands.of<From>(0);
    To* y = static_cast<To*>(result);
    if constexpr (kCounts<From> && (kCounts<To> || std::is_same_v<To, float> || std::is_same_v<To, double>))
      if (operands.step[0] == 1) return Vectorised<singles<From, To, F>>()(many, x, y, &f);
    for (int64_t i = 0; i < many; ++i) y[i] = f(x[i * operands.step[0]]);
  });
}

template <class From, class To, class F>
CAIRN_INLINE void pairs(int64_t many, const From* a, int64_t step_a, const From* b, int64_t step_b, To* y, const F* f) {
  const auto each = [&](auto left, auto right) {
#pragma GCC ivdep
    for (int64_t i = 0; i < many; ++i) y[i] = (*f)(left(i), right(i));
  };
  const auto one = [](const From* from) { return [value = *from](int64_t) { return value; }; };
  const auto row = [](const From* from) { return [from](int64_t i) { return from[i]; }; };
  if (step_a == 1 && step_b == 1) return each(row(a), row(b));
  if (step_a == 1 && step_b == 0) return each(row(a), one(b));
  if (step_a == 0 && step_b == 1) return each(one(a), row(b));
  for (int64_t i = 0; i < many; ++i) y[i] = (*f)(a[i * step_a], b[i * step_b]);
}

template <class From, class To, class F>
Run binary(Walk walk, F f) {
  return over(std::move(walk), {sizeof(From), sizeof(From)}, sizeof(To),
              [f](int64_t many, const Operands& x, void* result) {
                const From *a = x.of<From>(0), *b = x.of<From>(1);
                To* y = static_cast<To*>(result);
                if constexpr (kCounts<From>)
                  return Vectorised<pairs<From, To, F>>()(many, a, x.step[0], b, x.step[1], y, &f);
                if (x.step[0] == 1 && x.step[1] == 1) {
                  for (int64_t i = 0; i < many; ++i) y[i] = f(a[i], b[i]);
                } else {
                  for (int64_t i = 0; i < many; ++i) y[i] = f(a[i * x.step[0]], b[i * x.step[1]]);
                }
              });
}

// An operation on elements computed in their type, 16-bit floats in f32.
template <class T, class F>
Run arithmetic(Walk walk, F f) {
  return binary<T, T>(std::move(walk), [f](T a, T b) {
    return T(static_cast<Compute<T>>(f(static_cast<Compute<T>>(a), static_cast<Compute<T>>(b))));
  });
}
template <class T, class F>
Run comparison(Walk walk, F f) {
  return binary<T, uint8_t>(
      std::move(walk), [f](T a, T b) -> uint8_t { return f(static_cast<Compute<T>>(a), static_cast<Compute<T>>(b)); });
}
template <class T, class F>
Run mapping(Walk walk, F f) {
  return unary<T, T>(std::move(walk), [f](T x) { return T(static_cast<Compute<T>>(f(static_cast<Compute<T>>(x)))); });
}

template <class F>
auto integers_wrap(F f) {
  return [f](auto a, auto b) {
    if constexpr (std::is_integral_v<decltype(a)>)
      return wrapped(a, b, f);
    else
      return f(a, b);
  };
}

// After a check that no divisor is 0.
template <class T>
Run integer_division(const Node& node, Walk walk) {
  const std::optional<Division> division = division_of(node);
  if (!division) return {};
  Run run = over(walk, {sizeof(T), sizeof(T)}, sizeof(T), [=](int64_t many, const Operands& x, void* result) {
    divide(*division, many, x.of<T>(0), x.step[0], x.of<T>(1), x.step[1], static_cast<T*>(result));
  });
  const int64_t divisors = count_of(node.inputs[1]->type.shape.sizes());
  return [run = std::move(run), name = node.op->name, divisors, walk](const StepArgs& args) {
    const T* y = input<T>(args, walk.input(1));
    for (int64_t i = 0; i < divisors && walk.count() > 0; ++i)
      if (y[i] == 0) fail(ErrorKind::invalid_argument, name, "integer division by zero");
    run(args);
  };
}

template <class T>
Run compare(const Node& node, Walk walk) {
  if (node.is("equal")) return comparison<T>(std::move(walk), std::equal_to<>());
  if (node.is("not_equal")) return comparison<T>(std::move(walk), std::not_equal_to<>());
  if (node.is("less")) return comparison<T>(std::move(walk), std::less<>());
  if (node.is("less_equal")) return comparison<T>(std::move(walk), std::less_equal<>());
  if (node.is("greater")) return comparison<T>(std::move(walk), std::greater<>());
  if (node.is("greater_equal")) return comparison<T>(std::move(walk), std::greater_equal<>());
  return {};
}

template <class T>
Run calculate(const Node& node, Walk walk) {
  const auto difference = integers_wrap(std::minus<>());
  if (node.is("add")) return arithmetic<T>(std::move(walk), integers_wrap(std::plus<>()));
  if (node.is("sub")) return arithmetic<T>(std::move(walk), difference);
  if (node.is("mul")) return arithmetic<T>(std::move(walk), integers_wrap(std::multiplies<>()));
  if (node.is("maximum")) return arithmetic<T>(std::move(walk), [](auto a, auto b) { return maximum(a, b); });
  if (node.is("minimum")) return arithmetic<T>(std::move(walk), [](auto a, auto b) { return minimum(a, b); });
  if (node.is("squared_difference"))
    return arithmetic<T>(std::move(walk), [difference](auto a, auto b) {
      const decltype(a) rest = difference(a, b);
      return integers_wrap(std::multiplies<>())(rest, rest);
    });
  if (node.is("neg"))
    return mapping<T>(std::move(walk), [difference](auto x) {
      if constexpr (kIsFloat<T>)
        return -x;
      else
        return difference(decltype(x)(0), x);
    });
  if (node.is("abs"))
    return mapping<T>(std::move(walk), [difference](auto x) {
      if constexpr (kIsFloat<T>)
        return std::abs(x);
      else
        return x < 0 ? difference(decltype(x)(0), x) : x;
    });
  if (node.is("square"))
    return mapping<T>(std::move(walk), [](auto x) { return integers_wrap(std::multiplies<>())(x, x); });
  if (node.is("relu")) return mapping<T>(std::move(walk), [](auto x) { return x < 0 ? decltype(x)(0) : x; });
  if (node.is("sign"))
    return mapping<T>(std::move(walk), [](auto x) { return static_cast<decltype(x)>(x > 0 ? 1 : x < 0 ? -1 : x); });
  if (node.is("clip")) {
    const double low = node.attr().number("low"), high = node.attr().number("high");
    const auto least = static_cast<Compute<T>>(saturate<T>(kIsFloat<T> ? low : std::ceil(low)));
    const auto most = static_cast<Compute<T>>(saturate<T>(kIsFloat<T> ? high : std::floor(high)));
    return mapping<T>(std::move(walk), [=](auto x) { return minimum(maximum(x, least), most); });
  }
  if constexpr (!kIsFloat<T>) {
    if (node.is("bit_and")) return arithmetic<T>(std::move(walk), std::bit_and<>());
    if (node.is("bit_or")) return arithmetic<T>(std::move(walk), std::bit_or<>());
    if (node.is("bit_xor")) return arithmetic<T>(std::move(walk), std::bit_xor<>());
    if (node.is("bit_not")) return mapping<T>(std::move(walk), std::bit_not<>());
    return integer_division<T>(node, std::move(walk));
  } else {
    return {};
  }
}

// Functions of one float, computed in f64 and rounded once: for f32 those without vector code, for other widths all.
struct FloatFunction {
  const char* name;
  double (*apply)(double x);
};
constexpr FloatFunction kFloatFunctions[] = {
#define CAIRN_FUNCTION(name, instruction, f32, wide) {name, [](double x) -> double { return wide; }},
#include "engines/cpu/element_table.h"
};

// Functions of several floats, one by one in f64.
template <class T>
Run special(const SpecialFunction& function, Walk walk) {
  return over(std::move(walk), {sizeof(T), sizeof(T), sizeof(T)}, sizeof(T),
              [function](int64_t many, const Operands& x, void* result) {
                const auto at = [&](size_t k, int64_t i) { return static_cast<double>(x.of<T>(k)[i * x.step[k]]); };
                for (int64_t i = 0; i < many; ++i) {
                  const double y = function.of_two ? function.of_two(at(0, i), at(1, i))
                                                   : function.of_three(at(0, i), at(1, i), at(2, i));
                  static_cast<T*>(result)[i] = T(static_cast<Compute<T>>(y));
                }
              });
}

template <class T>
Run evaluate(const Node& node, Walk walk) {
  if (node.is("div")) return arithmetic<T>(std::move(walk), std::divides<>());
  if (node.is("atan2")) return arithmetic<T>(std::move(walk), [](auto y, auto x) { return std::atan2(y, x); });
  if (node.is("pow"))
    return arithmetic<T>(std::move(walk), [](auto x, auto y) {
      return static_cast<Compute<T>>(std::pow(static_cast<double>(x), static_cast<double>(y)));
    });
  for (const FloatFunction& function : kFloatFunctions)
    if (node.is(function.name))
      return unary<T, T>(std::move(walk),
                         [f = function.apply](T x) { return T(static_cast<Compute<T>>(f(static_cast<double>(x)))); });
  if (const SpecialFunction* function = find_special_function(node.op->name))
    return special<T>(*function, std::move(walk));
  return {};
}

template <class T>
Run test(const Node& node, Walk walk) {
  const auto with = [&](auto f) {
    return unary<T, uint8_t>(std::move(walk), [f](T x) -> uint8_t { return f(static_cast<Compute<T>>(x)); });
  };
  if (node.is("is_nan")) return with([](auto x) { return std::isnan(x); });
  if (node.is("is_inf")) return with([](auto x) { return std::isinf(x); });
  if (node.is("is_finite")) return with([](auto x) { return std::isfinite(x); });
  return {};
}

Run cast(const Node& node, Walk walk) {
  const DType to = node.result()->type.dtype;
  Run run;
  with_numbers_or_bool(node.inputs[0]->type.dtype, [&](auto tag) {
    using From = decltype(tag);
    if (to == kBool) {
      run = unary<From, uint8_t>(walk, [](From x) -> uint8_t { return static_cast<Compute<From>>(x) != 0; });
      return;
    }
    if constexpr (std::is_same_v<From, float>)
      if (to == kI32) {
        run = over(walk, {sizeof(float)}, sizeof(int32_t), [](int64_t many, const Operands& x, void* result) {
          const float* from = x.of<float>(0);
          auto* y = static_cast<int32_t*>(result);
          if (x.step[0] == 1) return vector_loops().truncate(many, from, y);
          for (int64_t i = 0; i < many; ++i) y[i] = cast_element<float, int32_t>(from[i * x.step[0]]);
        });
        return;
      }
    with_numbers(to, [&](auto other) {
      using To = decltype(other);
      run = unary<From, To>(walk, [](From x) { return cast_element<From, To>(x); });
    });
  });
  return run;
}

template <class T>
CAIRN_INLINE void choose(int64_t many, const uint8_t* which, const T* a, int64_t step_a, const T* b, int64_t step_b,
                         T* y) {
  const auto each = [&](auto left, auto right) {
#pragma GCC ivdep
    for (int64_t i = 0; i < many; ++i) y[i] = which[i] ? left(i) : right(i);
  };
  const auto one = [](const T* from) { return [value = *from](int64_t) { return value; }; };
  const auto row = [](const T* from) { return [from](int64_t i) { return from[i]; }; };
  if (step_a == 1 && step_b == 1) return each(row(a), row(b));
  if (step_a == 1 && step_b == 0) return each(row(a), one(b));
  if (step_a == 0 && step_b == 1) return each(one(a), row(b));
  for (int64_t i = 0; i < many; ++i) y[i] = which[i] ? a[i * step_a] : b[i * step_b];
}

Run select(const Node& node, Walk walk) {
  Run run;
  with_elements(node.result()->type.dtype, [&](auto tag) {
    using T = decltype(tag);
    run = over(walk, {sizeof(uint8_t), sizeof(T), sizeof(T)}, sizeof(T),
               [](int64_t many, const Operands& x, void* result) {
                 const T *a = x.of<T>(1), *b = x.of<T>(2);
                 T* y = static_cast<T*>(result);
                 if constexpr (std::is_integral_v<T>)
                   if (x.step[0] == 1) return Vectorised<choose<T>>()(many, x.at[0], a, x.step[1], b, x.step[2], y);
                 for (int64_t i = 0; i < many; ++i) y[i] = x.at[0][i * x.step[0]] ? a[i * x.step[1]] : b[i * x.step[2]];
               });
  });
  return run;
}

Run logical(const Node& node, Walk walk) {
  const auto with = [&](auto f) {
    return binary<uint8_t, uint8_t>(std::move(walk),
                                    [f](uint8_t a, uint8_t b) -> uint8_t { return f(a != 0, b != 0); });
  };
  if (node.is("and")) return with(std::logical_and<>());
  if (node.is("or")) return with(std::logical_or<>());
  if (node.is("xor")) return with(std::not_equal_to<>());
  if (node.is("not")) return unary<uint8_t, uint8_t>(std::move(walk), [](uint8_t x) -> uint8_t { return x == 0; });
  return compare<uint8_t>(node, std::move(walk));
}

// The function that computes the node; empty when there is none.
Run run_of(const Node& node, const Walk& walk) {
  if (node.is("cast")) return cast(node, walk);
  if (node.is("select")) return select(node, walk);
  const DType dtype = node.inputs[0]->type.dtype;
  if (dtype == kBool) return logical(node, walk);
  Run run;
  with_numbers(dtype, [&](auto tag) {
    using T = decltype(tag);
    run = compare<T>(node, walk);
    if (!run && node.result()->type.dtype == dtype) run = calculate<T>(node, walk);
    if constexpr (kIsFloat<T>) {
      if (!run) run = test<T>(node, walk);
      if (!run) run = evaluate<T>(node, walk);
    }
  });
  return run;
}

}  // namespace

Refusal refuses_elements(const Group& group) {
  const Node& node = group.last();
  if (group.nodes.size() != 1 || !node.op->has(kElementwise) || !node.op->pure() || node.results.size() != 1 ||
      node.inputs.empty())
    return "is another operation";
  const auto plain = [](const Value* value) {
    const DType dtype = value->type.dtype;
    return value->type.is_static() && (dtype == kBool || dtype.is_float() || dtype.is_integer()) && dtype.bits >= 8;
  };
  if (!plain(node.result()) || !std::all_of(node.inputs.begin(), node.inputs.end(), plain))
    return "elements are no numbers or bools";
  if (node.result()->type.shape.rank() > Odometer::kMostDims) return "has too many dims";
  if (!run_of(node, Walk(node, group))) return fmt::format("has no loop for {}", node.op->name);
  return std::nullopt;
}

namespace {

std::unique_ptr<Step> elements_step(const Node& node, const Walk& walk) {
  CallOptions options;
  for (size_t k : walk.aligned_operands())
    if (node.inputs[k]->type.dtype == node.result()->type.dtype) options.in_place.push_back(walk.input(k));
  return call(fmt::format("elements {}", node.op->name), run_of(node, walk), std::move(options));
}

}  // namespace

std::unique_ptr<Step> make_elements(const Group& group, MakeContext&) {
  return elements_step(group.last(), Walk(group.last(), group));
}

std::unique_ptr<Step> make_strided_elements(const Group& group, const GroupStrides& strides) {
  const Node& node = group.last();
  if (node.inputs[0]->type.dtype.is_integer() && division_of(node)) return nullptr;  // checks divisors as one row
  return elements_step(node, Walk(node, group, &strides));
}

}  // namespace cairn
