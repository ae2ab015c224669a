// The loops of vector_loops.cpp, included once for each instruction set, each time in another namespace.

#include "engines/cpu/vector_types.h"

#include "engines/cpu/vector_math.h"

// Executes an operation on a whole tile; positions beyond the tile's count have arbitrary content.
void execute(ElementOp op, float low, float high, const float* a, const float* b, const float* c, float* to) {
  switch (op) {
#define CAIRN_VECTOR(name, instruction, f32)                                                            \
  case ElementOp::instruction:                                                                          \
    for (int64_t i = 0; i < kElementTile; i += kFloats)                                                 \
      store(to + i, element(ElementOp::instruction, low, high, load(a + i), load(b + i), load(c + i))); \
    break;
#include "engines/cpu/element_table.h"
    default: break;  // operations of the C library
  }
}

// Channels [first, last) of one outer index; four partial sums in a fixed order. What vectors read behind the last channel belongs to
// the next row.
void reduce_channels(bool largest, int64_t middle, int64_t c, float scale, const float* x, float* y, int64_t first,
                     int64_t last) {
  for (int64_t at = first; at < last; at += kFloats) {
    const int64_t count = std::min<int64_t>(kFloats, last - at), whole = middle * c - at - kFloats;
    Floats part[4];
    for (int i = 0; i < 4; ++i)  // by index: a reference to an element would imply an alignment of 64
      part[i] = largest ? spread(-std::numeric_limits<float>::infinity()) : Floats{};
    for (int64_t i = 0; i < middle; ++i) {
      const float* from = x + i * c + at;
      const Floats value = i * c <= whole ? load(from) : load_first(from, count);
      part[i & 3] = largest ? larger(part[i & 3], value * scale) : part[i & 3] + value;
    }
    Floats all = largest ? larger(larger(part[0], part[1]), larger(part[2], part[3]))
                         : (part[0] + part[1]) + (part[2] + part[3]);
    put(y + at, count, all * scale);
  }
}

// op of all lanes: of halves, then of their halves.
template <class Op>
CAIRN_INLINE float over_lanes(Floats vector, Op op) {
  typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
  typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
  float lanes[kFloats];
  store(lanes, vector);
  if constexpr (kFloats > 8) {
    const Eight eight = op(*reinterpret_cast<const Eight*>(lanes), *reinterpret_cast<const Eight*>(lanes + 8));
    *reinterpret_cast<Eight*>(lanes) = eight;
  }
  if constexpr (kFloats > 4) {
    const Four four = op(*reinterpret_cast<const Four*>(lanes), *reinterpret_cast<const Four*>(lanes + 4));
    *reinterpret_cast<Four*>(lanes) = four;
  }
  return op(op(lanes[0], lanes[2]), op(lanes[1], lanes[3]));
}
struct SumOf {
  template <class T>
  CAIRN_INLINE T operator()(T a, T b) const {
    return a + b;
  }
};
struct LargerOf {
  template <class T>
  CAIRN_INLINE T operator()(T a, T b) const {
    return (a > b) | (a != a) ? a : b;
  }
};
CAIRN_INLINE float sum_of_lanes(Floats vector) { return over_lanes(vector, SumOf()); }
CAIRN_INLINE float largest_of_lanes(Floats vector) { return over_lanes(vector, LargerOf()); }

/// Lane i is the sum (or other combination) of the lanes of rows[i], in the order of over_lanes().
template <class Combine>
CAIRN_INLINE Floats over_lanes_of_each(Floats* rows, Combine combine) {
#pragma GCC unroll 4
  for (int half = kFloats / 2; half > 0; half /= 2) {
    Ints low, high;  // halves of the parts of one vector, then of the other
    for (int lane = 0; lane < kFloats; ++lane) {
      low[lane] = lane / half * 2 * half + lane % half;
      high[lane] = low[lane] + half;
    }
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i)
      rows[i] =
          combine(CAIRN_SHUFFLE(rows[2 * i], rows[2 * i + 1], low), CAIRN_SHUFFLE(rows[2 * i], rows[2 * i + 1], high));
  }
  return rows[0];
}

// Sum of term(vector) over a row in a fixed order: lanes, then halves of them. A long row is summed in blocks, whose sums are
// added with what rounding takes from each (TwoSum), so that its error does not grow with the length.
template <class Term>
CAIRN_INLINE Floats sums_of_short_row(int64_t c, const float* x, float other, Term term) {
  Floats even{}, odd{};
  int64_t i = 0;
  for (; i + 2 * kFloats <= c; i += 2 * kFloats) {
    even += term(load(x + i));
    odd += term(load(x + i + kFloats));
  }
  for (; i + kFloats <= c; i += kFloats) even += term(load(x + i));
  if (i < c) odd += term(load_first(x + i, c - i, other));
  return even + odd;
}
template <class Term>
CAIRN_INLINE float sum_row(int64_t c, const float* x, float other, Term term) {
  constexpr int64_t kBlock = 64 * kFloats;
  Floats even{}, odd{}, total{}, lost{};
  int64_t i = 0;
  for (; i + kBlock < c; even = odd = Floats{}) {
    for (const int64_t end = i + kBlock; i < end; i += 2 * kFloats) {
      even += term(load(x + i));
      odd += term(load(x + i + kFloats));
    }
    const Floats part = even + odd, sum = total + part, added = sum - total;
    lost += (total - (sum - added)) + (part - added);
    total = sum;
  }
  even = sums_of_short_row(c - i, x + i, other, term);
  if (c > kBlock) {
    double sum = 0, rest = 0;
    for (int lane = 0; lane < kFloats; ++lane) {
      sum += static_cast<double>(total[lane]) + static_cast<double>(even[lane]);
      rest += static_cast<double>(lost[lane]);
    }
    return static_cast<float>(rest == rest ? sum + rest : sum);  // with infinities the compensation is NaN
  }
  return sum_of_lanes(even);
}

/// `sign`: 1, or -1 for the smallest, whose sign then changes.
CAIRN_INLINE Floats largest_lanes_of_row(int64_t c, const float* x, float sign) {
  const float least = -std::numeric_limits<float>::infinity();
  Floats part[4];
  for (int k = 0; k < 4; ++k) part[k] = spread(least);
  int64_t i = 0;
  for (; i + 4 * kFloats <= c; i += 4 * kFloats)
    for (int k = 0; k < 4; ++k) part[k] = larger(part[k], load(x + i + k * kFloats) * sign);
  for (; i + kFloats <= c; i += kFloats) part[0] = larger(part[0], load(x + i) * sign);
  if (i < c) part[1] = larger(part[1], load_first(x + i, c - i, least * sign) * sign);
  return larger(larger(part[0], part[1]), larger(part[2], part[3]));
}

/// Lane i is element i * kColumns + column of the vectors one after another.
template <int kColumns>
CAIRN_INLINE Floats column_of(const Floats* vectors, int column) {
  Ints place, half;
  for (int lane = 0; lane < kFloats; ++lane) {
    place[lane] = (lane * kColumns + column) % (2 * kFloats);
    half[lane] = (lane * kColumns + column) / (2 * kFloats);
  }
  const Floats low = CAIRN_SHUFFLE(vectors[0], vectors[kColumns > 1], place);
  if constexpr (kColumns <= 2) return low;
  return choose(half == 0, low, CAIRN_SHUFFLE(vectors[kColumns > 2 ? 2 : 0], vectors[kColumns - 1], place));
}

/// Rows of few columns, whose vectors hold parts of several.
template <int kColumns>
void reduce_columns(bool largest, int64_t rows, float scale, const float* x, float* y) {
  const auto reduce = [&](const auto* each, auto with) __attribute__((always_inline)) {
    auto value = largest ? each[0] * scale : each[0];
#pragma GCC unroll 4
    for (int k = 1; k < kColumns; ++k) value = largest ? with(value, each[k] * scale) : value + each[k];
    return value * scale;
  };
  int64_t row = 0;
  for (; row + kFloats <= rows; row += kFloats) {
    Floats read[kColumns], each[kColumns];
    for (int k = 0; k < kColumns; ++k) read[k] = load(x + row * kColumns + k * kFloats);
#pragma GCC unroll 4
    for (int k = 0; k < kColumns; ++k) each[k] = column_of<kColumns>(read, k);
    store(y + row, reduce(each, larger));
  }
  for (; row < rows; ++row)
    y[row] = reduce(x + row * kColumns, [](float a, float b) { return a > b || a != a ? a : b; });
}

void reduce_rows(bool largest, int64_t rows, int64_t c, float scale, const float* x, float* y) {
  if (c > 0 && c <= 4) {
    constexpr std::array few{reduce_columns<1>, reduce_columns<2>, reduce_columns<3>, reduce_columns<4>};
    return few[static_cast<size_t>(c - 1)](largest, rows, scale, x, y);
  }
  constexpr int64_t kShort = 8 * kFloats;
  const auto same = [](Floats value) __attribute__((always_inline)) { return value; };
  int64_t row = 0;
  for (; c <= kShort && row + kFloats <= rows; row += kFloats) {  // the lanes of several rows are reduced together
    Floats each[kFloats];
    for (int64_t i = 0; i < kFloats; ++i) {
      const float* from = x + (row + i) * c;
      each[i] = largest ? largest_lanes_of_row(c, from, scale) : sums_of_short_row(c, from, 0.f, same);
    }
    store(y + row, (largest ? over_lanes_of_each(each, LargerOf()) : over_lanes_of_each(each, SumOf())) * scale);
  }
  for (; row < rows; ++row) {
    const float* from = x + row * c;
    y[row] = (largest ? largest_of_lanes(largest_lanes_of_row(c, from, scale)) : sum_row(c, from, 0.f, same)) * scale;
  }
}

void layer_norm_row(int64_t c, float epsilon, const float* x, const float* scale, const float* offset, float* y) {
  const float count = static_cast<float>(c);
  const float mean = sum_row(
                         c, x, 0.f, [](Floats value) __attribute__((always_inline)) { return value; }) /
                     count;
  const float squares = sum_row(
      c, x, mean, [mean](Floats value) __attribute__((always_inline)) { return (value - mean) * (value - mean); });
  const float factor = 1.f / std::sqrt(squares / count + epsilon);
  for (int64_t i = 0; i < c; i += kFloats) {
    const int64_t rest = c - i;
    const Floats value = (take(x + i, rest) - mean) * factor;
    put(y + i, rest, scale ? value * take(scale + i, rest) + take(offset + i, rest) : value);
  }
}

// A NaN may be lost: it comes back with the sum of the powers. `read`: up to a vector at a position, as much as there is.
template <class Read>
CAIRN_INLINE float top_of(int64_t c, Read read) {
  const auto top = [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; };
  Floats even = spread(-std::numeric_limits<float>::infinity()), odd = even;
  int64_t i = 0;
  for (; i + 2 * kFloats <= c; i += 2 * kFloats)
    even = top(even, read(i, kFloats)), odd = top(odd, read(i + kFloats, kFloats));
  if (i + kFloats <= c) even = top(even, read(i, kFloats)), i += kFloats;
  if (i < c) odd = top(odd, read(i, c - i));
  return over_lanes(top(even, odd), top);
}
/// Behind the first `count` lanes the least there is.
CAIRN_INLINE Floats first_lanes_or_least(Floats value, int64_t count) {
  Ints lane;
  for (int i = 0; i < kFloats; ++i) lane[i] = i;
  return choose(lane < static_cast<int32_t>(count), value, spread(-std::numeric_limits<float>::infinity()));
}
/// The softmax of what `read` gives; y may be what it reads. The last part of a vector stays in a register: a load of what a mask stored
/// would wait for it.
template <class Read>
CAIRN_INLINE void softmax_of(int64_t c, Read read, float* y) {
  const float most = top_of(c, read);
  const auto power = [&](int64_t i, int64_t count) __attribute__((always_inline)) {
    return exp_below(read(i, count) - most);
  };
  int64_t i = 0;
  Floats even{}, odd{}, rest{};
  for (; i + 2 * kFloats <= c; i += 2 * kFloats) {
    const Floats first = power(i, kFloats), second = power(i + kFloats, kFloats);
    even += first, odd += second;
    store(y + i, first), store(y + i + kFloats, second);
  }
  if (i + kFloats <= c) {
    const Floats value = power(i, kFloats);
    even += value;
    store(y + i, value);
    i += kFloats;
  }
  if (i < c) odd += rest = power(i, c - i);
  const float factor = 1.f / sum_of_lanes(even + odd);
  if (i < c) store_first(y + i, c - i, rest * factor);
  for (int64_t k = 0; k < i; k += kFloats) store(y + k, load(y + k) * factor);
}

void softmax_row(bool log, int64_t c, const float* x, float* y) {
  const auto read = [x](int64_t i, int64_t count) __attribute__((always_inline)) {
    return count < kFloats ? load_first(x + i, count, -std::numeric_limits<float>::infinity()) : load(x + i);
  };
  if (!log) return softmax_of(c, read, y);
  const float most = top_of(c, read);
  const auto power = [most](Floats value) __attribute__((always_inline)) { return exp_below(value - most); };
  const float total = std::log(sum_row(c, x, -std::numeric_limits<float>::infinity(), power));
  for (int64_t i = 0; i < c; i += kFloats) put(y + i, c - i, take(x + i, c - i) - most - total);
}

// The softmax of `lanes` adjacent columns, at most a vector of them.
CAIRN_INLINE void softmax_lanes(bool log, int64_t size, int64_t inner, int64_t lanes, const float* x, float* y) {
  const auto take_row = [&](int64_t i) __attribute__((always_inline)) { return take(x + i * inner, lanes); };
  const auto put_row = [&](int64_t i, Floats value) __attribute__((always_inline)) {
    put(y + i * inner, lanes, value);
  };
  Floats most = spread(-std::numeric_limits<float>::infinity());
  Floats part[4];  // partial sums, added in pairs
  for (int i = 0; i < 4; ++i) part[i] = Floats{};
  for (int64_t i = 0; i < size; ++i) most = larger(most, take_row(i));
  if (log) {
    for (int64_t i = 0; i < size; ++i) part[i & 3] += exp_of(take_row(i) - most);
    const Floats shift = log_of((part[0] + part[1]) + (part[2] + part[3]));
    for (int64_t i = 0; i < size; ++i) put_row(i, take_row(i) - most - shift);
    return;
  }
  for (int64_t i = 0; i < size; ++i) {
    const Floats value = exp_of(take_row(i) - most);
    part[i & 3] += value;
    put_row(i, value);
  }
  const Floats sum = (part[0] + part[1]) + (part[2] + part[3]);
  for (int64_t i = 0; i < size; ++i) {
    Floats value = take(y + i * inner, lanes);
    put_row(i, value / sum);
  }
}

void softmax_columns(bool log, int64_t size, int64_t inner, int64_t lanes, const float* x, float* y) {
  for (int64_t at = 0; at < lanes; at += kFloats)
    softmax_lanes(log, size, inner, std::min<int64_t>(kFloats, lanes - at), x + at, y + at);
}

void cross_entropy_row(int64_t c, const float* logits, const float* labels, int64_t label, float* loss,
                       float* gradient) {
  const float least = -std::numeric_limits<float>::infinity();
  Floats most{spread(least)};
  for (int64_t at = 0; at < c; at += kFloats) {
    if (c - at >= kFloats) {
      most = larger(most, load(logits + at));
      continue;
    }
    for (int64_t i = at; i < c; ++i) most[0] = most[0] > logits[i] || most[0] != most[0] ? most[0] : logits[i];
  }
  float top = most[0];
  for (int lane = 1; lane < kFloats; ++lane) top = top > most[lane] || top != top ? top : most[lane];
  double sum = 0;
  for (int64_t at = 0; at < c; at += kFloats) {
    const Floats power = exp_of(take(logits + at, c - at) - top);
    put(gradient + at, c - at, power);
    for (int64_t lane = 0; lane < std::min<int64_t>(kFloats, c - at); ++lane) sum += static_cast<double>(power[lane]);
  }
  const double shift = std::log(sum) + static_cast<double>(top);
  const auto scale = static_cast<float>(1 / sum);
  double total = 0;
  for (int64_t i = 0; i < c; ++i) {
    const float share = labels ? labels[i] : i == label ? 1.f : 0.f;
    if (share != 0) total += static_cast<double>(share) * (shift - static_cast<double>(logits[i]));
    gradient[i] = gradient[i] * scale - share;
  }
  // A NaN among the logits makes the loss NaN, even if its own label is 0.
  *loss = static_cast<float>(sum != sum && total == total ? sum : total);
}

void softmax_of_scores(int64_t count, float scale, const float* mask, float* x) {
  const auto with = [&](auto finish) __attribute__((always_inline)) {
    softmax_of(
        count,
        [=](int64_t i, int64_t many) __attribute__((always_inline)) {
          // Rounded, as that of a step of its own is: a fused multiply-add would part from it by what large scores round.
          const Floats value = __builtin_assoc_barrier(finish(take(x + i, many) * scale, i, many));
          return many < kFloats ? first_lanes_or_least(value, many) : value;
        },
        x);
  };
  if (mask)
    with([=](Floats value, int64_t i, int64_t many)
             __attribute__((always_inline)) { return value + take(mask + i, many); });
  else
    with([](Floats value, int64_t, int64_t) __attribute__((always_inline)) { return value; });
}

template <int kWidth>
CAIRN_INLINE void spread_rows_of(int64_t rows, int64_t columns, const float* from, float* to) {
  constexpr int kItems = kFloats / kWidth;
  Ints part;
  for (int lane = 0; lane < kFloats; ++lane) part[lane] = lane % kWidth;
  if (columns >= kItems) {
    for (int64_t row = 0; row < rows; ++row, to += columns * kWidth) {
      const Floats value =
          kWidth == 1 ? spread(from[row]) : CAIRN_SHUFFLE(load_first(from + row * kWidth, kWidth), part);
      for (int64_t i = 0; i + kItems <= columns; i += kItems) store(to + i * kWidth, value);
      if (columns % kItems) store(to + columns * kWidth - kFloats, value);
    }
    return;
  }
  Floats item;  // and a half, so that products with the rounded reciprocal stay between the same whole numbers
  for (int lane = 0; lane < kFloats; ++lane) item[lane] = static_cast<float>(lane / kWidth) + 0.5f;
  const float reciprocal = 1.f / static_cast<float>(columns);
  int64_t row = 0, column = 0;
  for (int64_t at = 0; at < rows * columns * kWidth; at += kFloats) {
    const Ints picks = to_ints((item + static_cast<float>(column)) * reciprocal) * kWidth + part;
    put(to + at, rows * columns * kWidth - at, CAIRN_SHUFFLE(take(from + row * kWidth, (rows - row) * kWidth), picks));
    row += kItems / columns, column += kItems % columns;
    if (column >= columns) column -= columns, ++row;
  }
}
void spread_rows(int64_t rows, int64_t columns, int64_t width, const float* from, float* to) {
  (width == 1 ? spread_rows_of<1> : width == 2 ? spread_rows_of<2> : spread_rows_of<4>)(rows, columns, from, to);
}

template <class Source>
CAIRN_INLINE void copy_rows_of(int64_t rows, int64_t columns, Source source, float* to) {
  const float* end = to + rows * columns;
  for (int64_t row = 0; row < rows; ++row, to += columns) {
    const float* from = source(row);
    if (columns < kFloats) {  // what is stored beyond a row is overwritten by those that follow
      const Floats value = load_first(from, columns);
      end - to >= kFloats ? store(to, value) : store_first(to, columns, value);
      continue;
    }
    for (int64_t i = 0; i + kFloats <= columns; i += kFloats) store(to + i, load(from + i));
    if (columns % kFloats) store(to + columns - kFloats, load(from + columns - kFloats));
  }
}
void copy_rows(int64_t rows, int64_t columns, const float* from, int64_t step, float* to) {
  copy_rows_of(
      rows, columns, [=](int64_t row) __attribute__((always_inline)) { return from + row * step; }, to);
}
void copy_rows_at(int64_t rows, int64_t columns, const float* from, const int64_t* offsets, float* to) {
  copy_rows_of(
      rows, columns, [=](int64_t row) __attribute__((always_inline)) { return from + offsets[row]; }, to);
}

// Replaces what is beaten by the values at these places.
CAIRN_INLINE void take_beyond(bool most, Floats value, Ints places, Floats& best, Ints& place) {
  const Ints beyond = most ? value > best : value < best;
  best = beyond ? value : best;
  place = beyond ? places : place;
}
CAIRN_INLINE Floats least_beyond(bool most) {
  return spread(most ? std::numeric_limits<float>::lowest() : std::numeric_limits<float>::max());
}

void arg_columns(bool most, int64_t size, int64_t inner, int64_t lanes, const float* x, int32_t* places) {
  for (int64_t at = 0; at < lanes; at += kFloats) {
    const int64_t count = std::min<int64_t>(kFloats, lanes - at);
    Floats best = least_beyond(most);
    Ints place{}, i{};
    for (int64_t row = 0; row < size; ++row, i += 1)
      take_beyond(most, take(x + row * inner + at, count), i, best, place);
    for (int64_t lane = 0; lane < count; ++lane) places[at + lane] = place[lane];
  }
}

int64_t arg_row(bool most, int64_t c, const float* x) {
  Floats best = least_beyond(most);
  Ints place{}, places;
  for (int lane = 0; lane < kFloats; ++lane) places[lane] = lane;
  int64_t i = 0;
  for (; i + kFloats <= c; i += kFloats, places += kFloats) take_beyond(most, load(x + i), places, best, place);
  float beaten = best[0];
  int64_t first = place[0];
  const auto consider = [&](float value, int64_t at) {
    if ((most ? value > beaten : value < beaten) || (value == beaten && at < first)) beaten = value, first = at;
  };
  for (int lane = 1; lane < kFloats; ++lane) consider(best[lane], place[lane]);
  for (; i < c; ++i) consider(x[i], i);
  return first;
}

template <int kColumns>
CAIRN_INLINE void interleave_lanes(const float* from, int64_t step, float* to) {
  Floats columns[kColumns];
  for (int k = 0; k < kColumns; ++k) columns[k] = load(from + k * step);
#pragma GCC unroll 4
  for (int part = 0; part < kColumns; ++part) {
    Ints place, column;
    for (int lane = 0; lane < kFloats; ++lane) {
      place[lane] = (part * kFloats + lane) / kColumns;
      column[lane] = (part * kFloats + lane) % kColumns;
    }
    Floats mixed = CAIRN_SHUFFLE(columns[0], place);
#pragma GCC unroll 4
    for (int k = 1; k < kColumns; ++k) mixed = column == k ? CAIRN_SHUFFLE(columns[k], place) : mixed;
    store(to + part * kFloats, mixed);
  }
}
template <int kColumns>
void interleave_by(int64_t count, const float* from, int64_t step, float* to) {
  int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) interleave_lanes<kColumns>(from + i, step, to + i * kColumns);
  if (i < count && count >= kFloats)  // some of the vector before once more
    return interleave_lanes<kColumns>(from + count - kFloats, step, to + (count - kFloats) * kColumns);
  for (; i < count; ++i)
    for (int k = 0; k < kColumns; ++k) to[i * kColumns + k] = from[k * step + i];
}
void interleave(int64_t count, int64_t columns, const float* from, int64_t step, float* to) {
  (columns == 2 ? interleave_by<2> : columns == 3 ? interleave_by<3> : interleave_by<4>)(count, from, step, to);
}

void truncate(int64_t count, const float* from, int32_t* to) {
  for (int64_t i = 0; i < count; i += kFloats) {
    const Floats x = take(from + i, count - i), within = choose((x > -0x1p31f) & (x < 0x1p31f), x, Floats{});
    Ints y = x >= 0x1p31f ? Ints{} + std::numeric_limits<int32_t>::max() : to_ints(within);
    y = x <= -0x1p31f ? Ints{} + std::numeric_limits<int32_t>::min() : y;
    if (count - i >= kFloats)
      *reinterpret_cast<Ints*>(to + i) = y;
    else
      for (int64_t lane = 0; lane < count - i; ++lane) to[i + lane] = y[lane];
  }
}

void every_second(int64_t count, const float* from, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
}

// Calls body(position, count) for vectors that cover [0, size): the last one begins earlier where there are enough.
template <class Body>
CAIRN_INLINE void over_vectors(int64_t size, Body&& body) {
  if (size < kFloats) return body(0, size);
  for (int64_t i = 0; i < size; i += kFloats) body(std::min<int64_t>(i, size - kFloats), kFloats);
}

void pick(int64_t count, const int32_t* places, const float* from, int64_t size, float* to) {
  over_vectors(
      count, [&](int64_t at, int64_t many) __attribute__((always_inline)) {
        const Ints place = *reinterpret_cast<const Ints*>(places + at);
        const int32_t first = places[at];
        Floats value;
        if (places[at + many - 1] - first < kFloats)
          value = CAIRN_SHUFFLE(take(from + first, size - first), minus(place, first));
        else
          for (int lane = 0; lane < kFloats; ++lane) value[lane] = lane < many ? from[place[lane]] : 0.f;
        put(to + at, many, value);
      });
}
