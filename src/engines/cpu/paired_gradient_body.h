// The gradient of maximum pooling by windows of two by two that lie side by side, in the floats of rows as they lie. Included once
// for each instruction set, each time in another namespace.
#include "engines/cpu/vector_types.h"

/// The same float by float, for rows beside which there is no memory to read.
void store_pair_row_one_by_one(const PairRow& row) {
  for (int64_t i = 0; i < row.count; ++i) {
    const int64_t left = row.second[i] ? i - row.channels : i, right = left + row.channels;
    const float values[] = {row.x[left], row.x[right], row.below[left], row.below[right]};
    int winner = 0;
    for (int each : {1, 2, 3})
      if (values[winner] < values[each]) winner = each;
    if (row.gated && !(values[winner] > 0)) winner = -1;
    const int own = row.second[i] ? 1 : 0;
    row.dx[i] = winner == own ? row.gradient[i] : 0.f;
    row.next[i] = winner == own + 2 ? row.gradient[i] : 0.f;
  }
}

/// Two rows of dx: each float finds the four of its window, whose first largest gets the gradient.
void store_pair_row(const PairRow& row) {
  if (!row.inside) return store_pair_row_one_by_one(row);
  for (int64_t i = 0; i < row.count; i += kFloats) {
    const Ints second = *reinterpret_cast<const Ints*>(row.second + i);
    const Floats own = load(row.x + i), low = load(row.below + i);
    const Floats right = choose(second, own, load(row.x + i + row.channels));
    const Floats low_left = choose(second, load(row.below + i - row.channels), low);
    const Floats low_right = choose(second, low, load(row.below + i + row.channels));
    Floats most = choose(second, load(row.x + i - row.channels), own);
    const Ints is_right = most < right;
    most = choose(is_right, right, most);
    const Ints is_low = most < low_left;
    most = choose(is_low, low_left, most);
    const Ints is_last = most < low_right;
    most = choose(is_last, low_right, most);
    Ints gets = ~is_low & ~is_last & ~(is_right ^ second),
         next_gets = (is_last & second) | (is_low & ~is_last & ~second);
    if (row.gated) gets &= most > Floats{}, next_gets &= most > Floats{};
    const Floats gradient = load(row.gradient + i);
    const Floats made = choose(gets, gradient, Floats{}), next = choose(next_gets, gradient, Floats{});
    if (i + kFloats <= row.count) {
      store(row.dx + i, made), store(row.next + i, next);
    } else {
      store_first(row.dx + i, row.count - i, made), store_first(row.next + i, row.count - i, next);
    }
  }
}
