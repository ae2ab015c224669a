// random_integers and random_categorical: words as whole numbers, and classes by their probabilities.
#include <algorithm>
#include <limits>

#include "engines/cpu/draw_places.h"
#include "engines/cpu/random.h"

namespace cairn {

namespace {

using namespace random;

/// The words of a stream from number `first` on.
Stream words_from(Philox state, uint64_t first) {
  state.skip(first / 4);
  Stream stream(state);
  for (uint64_t i = 0; i < first % 4; ++i) stream.next();
  return stream;
}

/// As the reference kernel: low + word modulo the range; 64-bit elements take two words, the low one first.
template <class T>
std::unique_ptr<Step> make_integers(const Group& group, const Node& node) {
  using U = std::make_unsigned_t<T>;
  constexpr uint64_t kWords = sizeof(T) / 4;
  const DrawPlaces places(group, node);
  const int64_t count = count_of(node.result(1)->type.shape.sizes()), reserve = node.attr().integer("reserve");
  const size_t low = index_of(group, node.inputs[2]), high = index_of(group, node.inputs[3]);
  return call(node.op->name, [=](const StepArgs& args) {
    const T from = *input<T>(args, low), to = *input<T>(args, high);
    if (from >= to)
      fail(ErrorKind::invalid_argument, "random_integers", "low must be less than high, found {} and {}", from, to);
    const U range = static_cast<U>(to) - static_cast<U>(from);
    const Philox state = places.read(args);
    if (places.drawn())
      for_ranges(args.executor, count, 16, [&](int64_t first, int64_t last) {
        Stream stream = words_from(state, static_cast<uint64_t>(first) * kWords);
        for (int64_t i = first; i < last; ++i) {
          U word = stream.next();
          if constexpr (kWords == 2) word |= static_cast<U>(stream.next()) << 32;
          output<T>(args, places.y)[i] = static_cast<T>(static_cast<U>(from) + word % range);
        }
      });
    places.write(args, state, counts_of(count, reserve, 4 / kWords, 1));
  });
}

/// Running sums of exp(logit - largest), as the reference kernel makes them; returns the last.
double sum_classes(const float* logits, int64_t classes, double* sums) {
  float most = std::numeric_limits<float>::lowest();
  for (int64_t c = 0; c < classes; ++c)
    if (std::isfinite(logits[c])) most = std::max(most, logits[c]);
  double total = 0;
  for (int64_t c = 0; c < classes; ++c) {
    if (std::isfinite(logits[c])) total += std::exp(static_cast<double>(logits[c]) - static_cast<double>(most));
    sums[c] = total;
  }
  return total;
}

template <class T>
std::unique_ptr<Step> make_categorical(const Group& group, const Node& node, int threads) {
  const DrawPlaces places(group, node);
  const Dims logits = node.inputs[1]->type.shape.sizes(), drawn = node.result(1)->type.shape.sizes();
  const int64_t rows = logits[0], classes = logits[1], count = drawn[1];
  const size_t x = index_of(group, node.inputs[1]);
  const auto run = [=](const StepArgs& args) {
    const Philox state = places.read(args);
    const int64_t each = std::clamp<int64_t>((1 << 16) / (classes * 16 + count * 8 + 1), 1, std::max<int64_t>(rows, 1));
    const auto draw_rows = [&](int chunk, int worker) {
      double* sums = static_cast<double*>(args.workspace) + worker * classes;
      for (int64_t row = chunk * each; row < std::min(rows, (chunk + 1) * each); ++row) {
        stop_point_after(classes * 16);
        const double total = sum_classes(input(args, x) + row * classes, classes, sums);
        Stream stream = words_from(state, static_cast<uint64_t>(row * count) * 2);
        for (int64_t i = 0; i < count; ++i) {
          const uint32_t a = stream.next(), b = stream.next();
          output<T>(args, places.y)[row * count + i] =
              static_cast<T>(std::upper_bound(sums, sums + classes, unit(a, b) * total) - sums);
        }
      }
    };
    if (places.drawn() && count > 0)
      executor_for(args, threads).run(static_cast<int>((rows + each - 1) / each), draw_rows);
    const uint64_t reserved = static_cast<uint64_t>((count + 3) / 4 * 8) * kReserved;
    places.write(args, state, rows * count > 0 ? static_cast<uint64_t>(rows) * reserved : 0);
  };
  return call(node.op->name, run, {.workspace = sizeof(double) * static_cast<size_t>(threads * classes)});
}

}  // namespace

Refusal refuses_discrete_random(const Group& group) {
  const Node *integers = single_node(group, "random_integers"), *classes = single_node(group, "random_categorical");
  if (!integers && !classes) return "is another operation";
  if (!group.last().result(1)->type.is_static()) return "the shape is not known";
  if (integers) return std::nullopt;
  const Type& logits = classes->inputs[1]->type;
  if (logits.dtype != kF32 || !logits.is_static()) return "logits are not f32 of known dims";
  return logits.shape.dims[1].size > 0 ? std::nullopt : Refusal("there are no classes");
}

std::unique_ptr<Step> make_discrete_random(const Group& group, MakeContext& context) {
  const Node& node = group.last();
  const bool wide = node.result(1)->type.dtype == kI64;
  if (node.is("random_integers"))
    return wide ? make_integers<int64_t>(group, node) : make_integers<int32_t>(group, node);
  return wide ? make_categorical<int64_t>(group, node, context.threads)
              : make_categorical<int32_t>(group, node, context.threads);
}

}  // namespace cairn
