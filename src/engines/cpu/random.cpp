#include "engines/cpu/random.h"

#include "engines/cpu/draw_places.h"
#include "engines/cpu/isa.h"

namespace cairn {

namespace {

using namespace random;

constexpr int64_t kWide = 16;  // groups computed at once

// Philox::words() for consecutive counts, converted to numbers in [0, 1).
CAIRN_VECTORISED(void, uniform_groups, (const Philox& first, float* to)) {
  uint32_t x0[kWide], x1[kWide], x2[kWide], x3[kWide];
  for (uint64_t i = 0; i < kWide; ++i) {
    const uint64_t low = first.low + i, high = first.high + (low < i);
    x0[i] = static_cast<uint32_t>(low), x1[i] = static_cast<uint32_t>(low >> 32);
    x2[i] = static_cast<uint32_t>(high), x3[i] = static_cast<uint32_t>(high >> 32);
  }
  auto k0 = static_cast<uint32_t>(first.key), k1 = static_cast<uint32_t>(first.key >> 32);
  for (int round = 0; round < kRounds; ++round, k0 += kWeyl[0], k1 += kWeyl[1])
    for (int64_t i = 0; i < kWide; ++i) {
      const uint64_t a = uint64_t{kFactors[0]} * x0[i], b = uint64_t{kFactors[1]} * x2[i];
      x0[i] = static_cast<uint32_t>(b >> 32) ^ x1[i] ^ k0, x1[i] = static_cast<uint32_t>(b);
      x2[i] = static_cast<uint32_t>(a >> 32) ^ x3[i] ^ k1, x3[i] = static_cast<uint32_t>(a);
    }
  for (int64_t i = 0; i < kWide; ++i) {
    to[4 * i] = unit<float>(x0[i]), to[4 * i + 1] = unit<float>(x1[i]);
    to[4 * i + 2] = unit<float>(x2[i]), to[4 * i + 3] = unit<float>(x3[i]);
  }
}

/// Writes `count` elements, drawn from the groups that begin at `state`.
template <class Distribution>
void fill(Philox state, int64_t count, float* to) {
  int64_t i = 0;
  if constexpr (std::is_same_v<Distribution, Uniform>)
    for (; i + 4 * kWide <= count; i += 4 * kWide, state.skip(kWide)) uniform_groups(state, to + i);
  for (; i < count; state.skip(kCounts<float, Distribution>)) {
    const Draws<float> draws = Distribution::template of<float>(state);
    for (size_t j = 0; j < draws.size() && i < count; ++j, ++i) to[i] = draws[j];
  }
}

using Fill = void (*)(Philox state, int64_t count, float* to);

/// The fill function, by how much a group advances the counter, and the cost of an element.
struct Drawing {
  Fill fill = nullptr;
  uint64_t counts = 1;
  int64_t work = 1;
};
template <class Distribution>
constexpr Drawing kDrawing = {fill<Distribution>, kCounts<float, Distribution>,
                              std::is_same_v<Distribution, Uniform> ? 4 : 64};

const Drawing* drawing_of(const Node& node) {
  if (node.is("random_uniform")) return &kDrawing<Uniform>;
  if (node.is("random_normal")) return &kDrawing<Normal>;
  if (node.is("random_truncated_normal")) return &kDrawing<TruncatedNormal>;
  return nullptr;
}

}  // namespace

Refusal refuses_random(const Group& group) {
  if (group.nodes.size() != 1 || !drawing_of(group.last())) return "is another operation";
  const Type& y = group.last().result(1)->type;
  if (!y.is_static() || !constant_of(group.last().inputs[1])) return "the shape is no constant";
  return y.dtype == kF32 ? std::nullopt : Refusal(fmt::format("elements are {}, takes f32", to_string(y.dtype)));
}

std::unique_ptr<Step> make_random(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Drawing drawing = *drawing_of(node);
  const int64_t count = count_of(node.result(1)->type.shape.sizes());
  const uint64_t moved = counts_of(count, node.attr().integer("reserve"), kGroup<float>, drawing.counts);
  const DrawPlaces places(group, node);
  const auto run = [=](const StepArgs& args) {
    constexpr int64_t kBlock = 1024;  // groups
    const Philox first = places.read(args);
    if (places.drawn())
      for_each(args.executor, (count + 4 * kBlock - 1) / (4 * kBlock), 4 * kBlock * drawing.work, [&](int64_t block) {
        Philox here = first;
        here.skip(static_cast<uint64_t>(block * kBlock) * drawing.counts);
        const int64_t at = block * 4 * kBlock;
        drawing.fill(here, std::min(4 * kBlock, count - at), output(args, places.y) + at);
      });
    places.write(args, first, moved);
  };
  return call(node.op->name, run);
}

}  // namespace cairn
