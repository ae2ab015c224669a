#include "engines/cpu/elements.h"

#include <cmath>
#include <cstring>
#include <functional>

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/odometer.h"
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

constexpr int64_t kBlock = 4096;  // positions of a chunk
constexpr size_t kMostOperands = 3;

/// Iterates over the operands of one node and its result together; adjacent dims that are contiguous in all of them are
/// merged.
class Walk {
 public:
  Walk(const Node& node, const Group& group, const GroupStrides* given = nullptr) {
    const Dims to = node.result()->type.shape.sizes();
    count_ = count_of(to);
    std::vector<Dims> strides;
    for (const Value* value : node.inputs) {
      inputs_.push_back(index_of(group, value));
      strides.push_back(walked_strides(value->type.shape.sizes(), given ? given->inputs[inputs_.back()] : Dims(), to));
    }
    strides.push_back(walked_strides(to, given ? given->outputs[0] : Dims(), to));
    steps_.resize(strides.size());
    for (size_t d = 0; d < to.size(); ++d) {
      if (to[d] == 1) continue;
      bool adjoins = !dims_.empty();
      for (size_t k = 0; k < strides.size(); ++k) adjoins = adjoins && steps_[k].back() == strides[k][d] * to[d];
      for (size_t k = 0; k < strides.size(); ++k) {
        if (adjoins) steps_[k].pop_back();
        steps_[k].push_back(strides[k][d]);
      }
      adjoins ? void(dims_.back() *= to[d]) : dims_.push_back(to[d]);
    }
    if (!dims_.empty()) return;
    dims_.push_back(1);
    for (Dims& steps : steps_) steps.push_back(0);
    steps_.back().back() = 1;
  }

  size_t input(size_t k) const { return inputs_[k]; }
  int64_t count() const { return count_; }
  size_t operands() const { return inputs_.size(); }
  /// Operands with the same strides as the result, which may overwrite them.
  std::vector<size_t> aligned_operands() const {
    std::vector<size_t> aligned;
    for (size_t k = 0; k < operands(); ++k)
      if (steps_[k] == steps_.back()) aligned.push_back(k);
    return aligned;
  }

  /// Calls run(count, offsets, steps) for runs along the last dim, in parallel; offsets and steps are those of each
  /// operand, then of the result.
  template <class Run>
  void each(Executor& executor, Run&& run) const {
    const int64_t inner = dims_.back();
    for_each(executor, (count_ + kBlock - 1) / kBlock, kBlock, [&](int64_t block) {
      const int64_t last = std::min(count_, (block + 1) * kBlock);
      Odometer row({dims_.data(), dims_.size() - 1}, block * kBlock / inner);
      int64_t column = block * kBlock % inner;
      for (int64_t at = block * kBlock, many = 0; at < last; at += many, column = 0, row.next()) {
        many = std::min(inner - column, last - at);
        std::array<int64_t, kMostOperands + 1> offsets, steps;
        for (size_t k = 0; k < steps_.size(); ++k) {
          steps[k] = steps_[k].back();
          offsets[k] = row.offset(steps_[k]) + column * steps[k];
        }
        run(many, offsets, steps);
      }
    });
  }

 private:
  Dims dims_;
  std::vector<Dims> steps_;  // of each operand, then of the result
  std::vector<size_t> inputs_;
  int64_t count_ = 0;
};

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

Run over(Walk walk, std::array<size_t, kMostOperands> widths, size_t width, Loop loop) {
  return [walk = std::move(walk), widths, width, loop = std::move(loop)](const StepArgs& args) {
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

// y = f(x) with elements of type From and To.
template <class From, class To, class F>
Run unary(Walk walk, F f) {
  return over(std::move(walk), {sizeof(From)}, sizeof(To), [f](int64_t many, const Operands& operands, void* result) {
    const From* x = operands.of<From>(0);
    To* y = static_cast<To*>(result);
    for (int64_t i = 0; i < many; ++i) y[i] = f(x[i * operands.step[0]]);
  });
}

/// The loop of a pair of operands, for the types that scripts count and choose with.
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
                if constexpr (std::is_same_v<From, int32_t> || std::is_same_v<From, int64_t>)
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

// Integer division, rounded towards 0, after a check that no divisor is 0; the smallest integer divided by -1 wraps.
struct Divided {
  template <class T>
  static T quotient(T x, T y) {
    if constexpr (std::is_signed_v<T>)
      if (y == -1) return wrapped(T(0), x, std::minus<>());
    return static_cast<T>(x / y);
  }
  template <class T>
  static T rest(T x, T y) {
    if constexpr (std::is_signed_v<T>)
      if (y == -1) return 0;
    return static_cast<T>(x % y);
  }
};

template <class T>
Run integer_division(const Node& node, Walk walk) {
  Run run;
  const auto turns = [](T x, T y) { return Divided::rest(x, y) != 0 && (x < 0) != (y < 0); };
  if (node.is("truncate_div")) run = arithmetic<T>(walk, [](T x, T y) { return Divided::quotient(x, y); });
  if (node.is("truncate_mod")) run = arithmetic<T>(walk, [](T x, T y) { return Divided::rest(x, y); });
  if (node.is("floor_div"))
    run = arithmetic<T>(walk, [=](T x, T y) { return static_cast<T>(Divided::quotient(x, y) - turns(x, y)); });
  if (node.is("mod"))
    run = arithmetic<T>(walk, [=](T x, T y) { return static_cast<T>(Divided::rest(x, y) + (turns(x, y) ? y : T(0))); });
  if (!run) return run;
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

Run select(const Node& node, Walk walk) {
  Run run;
  with_elements(node.result()->type.dtype, [&](auto tag) {
    using T = decltype(tag);
    run = over(walk, {sizeof(uint8_t), sizeof(T), sizeof(T)}, sizeof(T),
               [](int64_t many, const Operands& x, void* result) {
                 const T *a = x.of<T>(1), *b = x.of<T>(2);
                 T* y = static_cast<T*>(result);
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
  const bool checks_divisors =
      node.inputs[0]->type.dtype.is_integer() &&
      (node.is("truncate_div") || node.is("truncate_mod") || node.is("floor_div") || node.is("mod"));  // as one row
  if (checks_divisors) return nullptr;
  return elements_step(node, Walk(node, group, &strides));
}

}  // namespace cairn
