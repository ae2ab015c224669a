// All of them are products of two matrices whose elements lie in runs: a window's channels, a row or a column. Blocks of both are
// packed into panels, and tiles of sums go through these.
#include "engines/cpu/products.h"

#include <array>

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/vector_loops.h"
#include "ops/kernels.h"
#include "support/memory.h"

namespace cairn {

namespace {

constexpr int64_t kRows = 6, kWidth = 128;  // rows of a tile and bytes of each, two registers of AVX-512: twelve sums
constexpr int64_t kDepth = 256, kMostRows = 16 * kRows, kMostColumnBytes = 1024;

/// Sums have the elements' type, floats of 16 bits that of f32, whole numbers one that wraps.
template <class T>
using Held = std::conditional_t<kIsFloat<T>, Compute<T>, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;
template <class U>
constexpr int64_t kColumns = kWidth / sizeof(U);  // of a tile

/// sums [kRows, kColumns] += kRows rows of A, whose elements are `step` apart, and b [depth, kColumns], by two registers of so many
/// bytes a row.
template <class U, int kBytes>
CAIRN_INLINE void add_products(int64_t depth, const U* const* rows, int64_t step, const U* b, U* sums) {
  typedef U Vector __attribute__((vector_size(kBytes), may_alias));
  constexpr int64_t kParts = kWidth / kBytes;
  for (int64_t part = 0; part < kParts; part += 2) {
    Vector* to = reinterpret_cast<Vector*>(sums) + part;
    const Vector* y = reinterpret_cast<const Vector*>(b) + part;
    Vector left[kRows], right[kRows];
    for (int row = 0; row < kRows; ++row) left[row] = to[row * kParts], right[row] = to[row * kParts + 1];
    for (int64_t k = 0; k < depth; ++k, y += kParts)
      for (int row = 0; row < kRows; ++row) {
        left[row] += rows[row][k * step] * y[0];
        right[row] += rows[row][k * step] * y[1];
      }
    for (int row = 0; row < kRows; ++row) to[row * kParts] = left[row], to[row * kParts + 1] = right[row];
  }
}

#define CAIRN_TILE(name, U, bytes)                                                                         \
  CAIRN_VECTORISED(void, name, (int64_t depth, const U* const* rows, int64_t step, const U* b, U* sums)) { \
    add_products<U, bytes>(depth, rows, step, b, sums);                                                    \
  }
CAIRN_TILE(doubles_64, double, 64)
CAIRN_TILE(doubles_32, double, 32)
CAIRN_TILE(floats_64, float, 64)
CAIRN_TILE(floats_32, float, 32)
CAIRN_TILE(words_64, uint32_t, 64)
CAIRN_TILE(words_32, uint32_t, 32)
CAIRN_TILE(long_words_64, uint64_t, 64)
CAIRN_TILE(long_words_32, uint64_t, 32)
#undef CAIRN_TILE

template <class U>
auto tile_of() {
  const bool wide = machine_isa() == Isa::avx512;
  using Tile = void (*)(int64_t, const U* const*, int64_t, const U*, U*);
  if constexpr (std::is_same_v<U, double>)
    return wide ? Tile(doubles_64) : Tile(doubles_32);
  else if constexpr (std::is_same_v<U, float>)
    return wide ? Tile(floats_64) : Tile(floats_32);
  else if constexpr (std::is_same_v<U, uint32_t>)
    return wide ? Tile(words_64) : Tile(words_32);
  else
    return wide ? Tile(long_words_64) : Tile(long_words_32);
}

/// Where a convolution's windows lie: of each pixel of one tensor and each tap the pixel of the other, or -1.
struct Windows {
  std::array<int64_t, 4> from, to;  // volumes, slices, rows, columns of both tensors
  std::array<int64_t, 3> taps;
  std::array<std::vector<int64_t>, 3> places;  // along each axis: [from, taps]

  int64_t at(int64_t pixel, int64_t tap) const {
    int64_t place = 0, scale = 1;
    auto above = static_cast<uint32_t>(pixel), taps_above = static_cast<uint32_t>(tap);  // 32 bits divide faster
    for (size_t axis = 3; axis-- > 0; scale *= to[axis + 1]) {
      const auto count = static_cast<uint32_t>(from[axis + 1]), size = static_cast<uint32_t>(taps[axis]);
      const int64_t found = places[axis][above % count * size + taps_above % size];
      if (found < 0) return -1;
      place += found * scale;
      above /= count, taps_above /= size;
    }
    return place + above * scale;
  }
};

/// A matrix [lines, depth] whose elements lie in runs along the depth, or `across` it along the lines: run `number` at the other
/// coordinate `at` begins at `at * step + number * run_step`, or by the windows at the pixel found times `step`.
struct Operand {
  int64_t run, step, run_step = 0;
  bool across = false;
  std::shared_ptr<const Windows> windows = nullptr;

  int64_t begin(int64_t at, int64_t number) const {
    if (!windows) return at * step + number * run_step;
    const int64_t pixel = windows->at(at, number);
    return pixel < 0 ? -1 : pixel * step;
  }
};

struct Range {
  int64_t first, last;
  int64_t count() const { return last - first; }
};

/// Packs whole rows, by squares: each line of the cache is read and written as a whole.
template <int64_t kPanel, class T>
void pack_rows(const Operand& rows, const T* from, Range lines, Range depth, Held<T>* to) {
  constexpr bool kMoves = sizeof(T) == sizeof(float) && sizeof(Held<T>) == sizeof(float) && kPanel % kLanes == 0;
  const auto transpose = kMoves ? vector_loops().transpose : nullptr;
  for (int64_t line = lines.first; line < lines.last; line += kPanel, to += depth.count() * kPanel) {
    const int64_t count = std::min(kPanel, lines.last - line);
    if (count < kPanel) std::fill_n(to, depth.count() * kPanel, Held<T>(0));
    for (int64_t i = 0; i < count; i += kLanes)
      for (int64_t k = depth.first; k < depth.last; k += kLanes) {
        const int64_t down = std::min<int64_t>(kLanes, count - i), along = std::min<int64_t>(kLanes, depth.last - k);
        const T* x = from + (line + i) * rows.step + k;
        Held<T>* y = to + (k - depth.first) * kPanel + i;
        if (transpose && down == kLanes && along == kLanes)
          transpose(reinterpret_cast<const float*>(x), rows.step, reinterpret_cast<float*>(y), kPanel);
        else
          for (int64_t row = 0; row < down; ++row)
            for (int64_t j = 0; j < along; ++j) y[j * kPanel + row] = static_cast<Held<T>>(x[row * rows.step + j]);
      }
  }
}

/// Packs a block as panels [lines / kPanel, depth, kPanel]; lines behind the last are zero.
template <int64_t kPanel, class T>
void pack(const Operand& operand, const T* from, Range lines, Range depth, Held<T>* to) {
  const auto place = [&](int64_t line, int64_t k) {
    const int64_t i = line - lines.first;
    return to + (i / kPanel * depth.count() + k - depth.first) * kPanel + i % kPanel;
  };
  if (!operand.across && !operand.windows && operand.run >= depth.last)
    return pack_rows<kPanel>(operand, from, lines, depth, to);
  const Range along = operand.across ? lines : depth, other = operand.across ? depth : lines;
  std::fill_n(to, (lines.count() + kPanel - 1) / kPanel * kPanel * depth.count(), Held<T>(0));
  for (int64_t at = other.first; at < other.last; ++at)
    for (int64_t i = along.first, many = 0; i < along.last; i += many) {
      const int64_t inside = i % operand.run;
      many = std::min(operand.run - inside, along.last - i);
      const int64_t begin = operand.begin(at, i / operand.run);
      if (begin < 0) continue;
      const T* run = from + begin + inside;
      if (operand.across) {
        for (int64_t j = 0, part = 0; j < many; j += part) {
          part = std::min(many - j, kPanel - (i + j - lines.first) % kPanel);
          std::copy_n(run + j, part, place(i + j, at));
        }
      } else {
        Held<T>* column = place(at, i);
        for (int64_t j = 0; j < many; ++j) column[j * kPanel] = static_cast<Held<T>>(run[j]);
      }
    }
}

/// Whether products with zeros are zero: what lies outside of an image must not meet an infinite weight.
template <class U>
bool all_finite(const U* x, int64_t count) {
  U sum = 0;
  if constexpr (std::is_floating_point_v<U>)
    for (int64_t i = 0; i < count; ++i) sum += x[i] * 0;
  return sum == 0;
}

/// One of the products that a node computes: where the operands and the result begin.
struct Origin {
  int64_t a, b, y;
};

/// y [rows, columns] = the sums over `depth`, for every origin; rows of y are y_step apart.
struct Products {
  Operand a, b;
  int64_t rows, columns, depth, y_step;
  std::vector<Origin> origins;
};

Products products_of_matmul(const Node& node) {
  const Dims x = node.inputs[0]->type.shape.sizes(), w = node.inputs[1]->type.shape.sizes();
  const Dims y = node.result()->type.shape.sizes();
  const bool ta = node.attr().boolean("transpose_a"), tb = node.attr().boolean("transpose_b");
  const size_t rank = y.size();
  const int64_t m = y[rank - 2], n = y[rank - 1], k = x[x.size() - (ta ? 2 : 1)];
  Products all{.a = ta ? Operand{.run = m, .step = m, .across = true} : Operand{.run = k, .step = k},
               .b = tb ? Operand{.run = k, .step = k} : Operand{.run = n, .step = n, .across = true},
               .rows = m,
               .columns = n,
               .depth = k,
               .y_step = n};
  const auto outer = [](const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); };
  const Dims batch = outer(y);
  if (count_of(y) == 0) return all;
  if (!ta && outer(x) == batch && count_of(outer(w)) == 1) {  // one matrix for the rows of the whole batch
    all.rows *= count_of(batch);
    all.origins.push_back({0, 0, 0});
    return all;
  }
  walk<2>(batch, {broadcast_strides(outer(x), batch), broadcast_strides(outer(w), batch)},
          [&](int64_t at, auto& offsets) {
            all.origins.push_back({offsets[0] * m * k, offsets[1] * k * n, at * m * n});
          });
  return all;
}

/// With a depth of 1 for images, which stands at `axis`.
Dims as_volumes(const Value* value, int64_t axis) {
  Dims dims = value->type.shape.sizes();
  if (dims.size() == 4) dims.insert(dims.begin() + axis, 1);
  return dims;
}

/// From pixels of y to those of x, or back.
std::shared_ptr<const Windows> windows_of(const Node& node, const Dims& x, const Dims& kernel, const Dims& y,
                                          bool back) {
  Windows all{{y[0], y[1], y[2], y[3]}, {x[0], x[1], x[2], x[3]}, {kernel[0], kernel[1], kernel[2]}, {}};
  if (back) std::swap(all.from, all.to);
  const size_t spatial = node.inputs[0]->type.shape.rank() - 2;
  for (size_t axis = 0; axis < 3; ++axis) {
    const bool real = axis + spatial >= 3;
    const WindowSpec spec = real ? window_spec(node.attr(), kernel[axis], axis + spatial - 3) : WindowSpec();
    const int64_t before = real ? spec.padding_before(x[axis + 1], y[axis + 1]) : 0;
    for (int64_t i = 0; i < all.from[axis + 1]; ++i)
      for (int64_t tap = 0; tap < kernel[axis]; ++tap) {
        int64_t place = back ? i + before - tap * spec.dilation : i * spec.stride + tap * spec.dilation - before;
        if (back) place = place % spec.stride == 0 ? place / spec.stride : -1;
        all.places[axis].push_back(place < all.to[axis + 1] ? std::max<int64_t>(place, -1) : -1);
      }
  }
  return std::make_shared<const Windows>(std::move(all));
}

Products products_of_convolution(const Node& node) {
  const bool back = is_convolution(node, ConvRole::input_gradient),
             of_kernel = is_convolution(node, ConvRole::kernel_gradient);
  const Dims x = as_volumes(back ? node.result() : node.inputs[0], 1);
  const Dims kernel = as_volumes(of_kernel ? node.result() : node.inputs[1], 0);
  const Dims y = as_volumes(of_kernel ? node.inputs[1] : back ? node.inputs[0] : node.result(), 1);
  const int64_t groups = node.attr().integer("groups"), channels = kernel[3], outputs = y[4] / groups;
  const int64_t taps = count_between(kernel, 0, 3), pixels = count_between(y, 0, 4), inputs = count_between(x, 0, 4);
  const auto windows = windows_of(node, x, kernel, y, back);
  Products all;
  if (back)
    all = {.a = {.run = outputs, .step = y[4], .windows = windows},
           .b = {.run = outputs, .step = y[4], .run_step = channels * y[4]},
           .rows = inputs,
           .columns = channels,
           .depth = taps * outputs,
           .y_step = x[4]};
  else if (of_kernel)
    all = {.a = {.run = channels, .step = x[4], .across = true, .windows = windows},
           .b = {.run = outputs, .step = y[4], .across = true},
           .rows = taps * channels,
           .columns = outputs,
           .depth = pixels,
           .y_step = y[4]};
  else
    all = {.a = {.run = channels, .step = x[4], .windows = windows},
           .b = {.run = outputs, .step = y[4], .across = true},
           .rows = pixels,
           .columns = outputs,
           .depth = taps * channels,
           .y_step = y[4]};
  for (int64_t group = 0; group < groups && all.rows * all.columns > 0; ++group) {
    const int64_t in = group * channels, out = group * outputs;
    all.origins.push_back(back ? Origin{out, out, in} : Origin{in, out, out});
  }
  return all;
}

/// Blocks of the result, as large as leaves several for each worker.
struct Blocks {
  int64_t rows, columns, down, over, each, a_bytes, b_bytes, bytes;
};
Blocks blocks_of(const Products& all, int64_t width, int64_t size, int64_t threads) {
  const auto whole = [](int64_t count, int64_t unit) { return (std::max<int64_t>(count, 1) + unit - 1) / unit * unit; };
  Blocks blocks{std::min(kMostRows, whole(all.rows, kRows)),
                std::min(kMostColumnBytes / size, whole(all.columns, width))};
  const auto count = [&] {
    blocks.down = (all.rows + blocks.rows - 1) / blocks.rows,
    blocks.over = (all.columns + blocks.columns - 1) / blocks.columns;
    return blocks.down * blocks.over * static_cast<int64_t>(all.origins.size());
  };
  // Each block packs its part of B anew, so few rows are divided last.
  while (count() < 4 * threads && blocks.columns > width && blocks.columns >= blocks.rows)
    blocks.columns = whole(blocks.columns / 2, width);
  while (count() < 4 * threads && blocks.rows > 2 * kRows) blocks.rows = whole(blocks.rows / 2, kRows);
  const int64_t depth = std::min(kDepth, std::max<int64_t>(all.depth, 1));
  blocks.each = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, blocks.rows * blocks.columns * all.depth));
  blocks.a_bytes = static_cast<int64_t>(whole_lines(static_cast<size_t>(blocks.rows * depth * size)));
  blocks.b_bytes = static_cast<int64_t>(whole_lines(static_cast<size_t>(blocks.columns * depth * size)));
  blocks.bytes = blocks.a_bytes + blocks.b_bytes + blocks.rows * blocks.columns * size;
  return blocks;
}

/// Adds the products of one tile, but for those outside of the images.
template <class T>
void add_inside(const Operand& a, const T* from, Range rows, Range depth, const Held<T>* b, Held<T>* sums) {
  for (int64_t row = rows.first; row < rows.last; ++row)
    for (int64_t k = depth.first; k < depth.last; ++k) {
      const int64_t along = a.across ? row : k, begin = a.begin(a.across ? k : row, along / a.run);
      if (begin < 0) continue;
      const auto x = static_cast<Held<T>>(from[begin + along % a.run]);
      for (int64_t i = 0; i < kColumns<Held<T>>; ++i)
        sums[(row - rows.first) * kColumns<Held<T>> + i] += x * b[(k - depth.first) * kColumns<Held<T>> + i];
    }
}

/// The rows of a tile: packed, or where they lie in A. Behind the last there are others, whose sums nobody reads.
template <class T>
struct TileRows {
  const Held<T>* at[kRows];
  int64_t step;

  TileRows(const Held<T>* packed) : step(kRows) {
    for (int row = 0; row < kRows; ++row) at[row] = packed + row;
  }
  TileRows(const Operand& a, const T* from, Range lines, int64_t depth) : step(1) {
    for (int64_t row = 0; row < kRows; ++row)
      at[row] = reinterpret_cast<const Held<T>*>(from + std::min(lines.first + row, lines.last - 1) * a.step + depth);
  }
};

template <class T>
void compute_block(const Products& all, const Origin& origin, Range rows, Range columns, const Blocks& blocks,
                   const T* a, const T* b, T* y, uint8_t* scratch) {
  using U = Held<T>;
  static const auto tile = tile_of<U>();
  constexpr int64_t kWide = kColumns<U>, kTile = kRows * kWide;
  auto* as = reinterpret_cast<U*>(scratch);
  auto* bs = reinterpret_cast<U*>(scratch + blocks.a_bytes);
  auto* sums = reinterpret_cast<U*>(scratch + blocks.a_bytes + blocks.b_bytes);
  const int64_t down = (rows.count() + kRows - 1) / kRows, over = (columns.count() + kWide - 1) / kWide;
  const bool packs = all.a.windows || all.a.across || sizeof(T) != sizeof(U);
  std::fill_n(sums, down * over * kTile, U(0));
  for (int64_t k = 0; k < all.depth; k += kDepth) {
    const Range depth{k, std::min(all.depth, k + kDepth)};
    if (packs) pack<kRows>(all.a, a + origin.a, rows, depth, as);
    pack<kWide>(all.b, b + origin.b, columns, depth, bs);
    const bool plain = !all.a.windows || all_finite(bs, over * kWide * depth.count());
    for (int64_t j = 0; j < over; ++j)
      for (int64_t i = 0; i < down; ++i) {
        const U* panel = bs + j * depth.count() * kWide;
        const Range lines{rows.first + i * kRows, std::min(rows.last, rows.first + (i + 1) * kRows)};
        U* to = sums + (j * down + i) * kTile;
        const TileRows<T> from =
            packs ? TileRows<T>(as + i * depth.count() * kRows) : TileRows<T>(all.a, a + origin.a, lines, k);
        if (plain)
          tile(depth.count(), from.at, from.step, panel, to);
        else
          add_inside(all.a, a + origin.a, lines, depth, panel, to);
      }
  }
  for (int64_t row = 0; row < rows.count(); ++row) {
    T* to = y + origin.y + (rows.first + row) * all.y_step + columns.first;
    for (int64_t column = 0; column < columns.count(); ++column) {
      const int64_t tile_at = column / kWide * down + row / kRows;
      to[column] = T(static_cast<Compute<T>>(sums[tile_at * kTile + row % kRows * kWide + column % kWide]));
    }
  }
}

template <class T>
std::unique_ptr<Step> make_step(const Group& group, Products all, int threads) {
  const Node& node = group.last();
  const size_t a = index_of(group, node.inputs[0]), b = index_of(group, node.inputs[1]);
  const Blocks blocks = blocks_of(all, kColumns<Held<T>>, sizeof(Held<T>), threads);
  const auto run = [all = std::move(all), blocks, a, b](const StepArgs& args) {
    const int64_t tiles = blocks.down * blocks.over, count = tiles * static_cast<int64_t>(all.origins.size());
    args.executor.run(static_cast<int>((count + blocks.each - 1) / blocks.each), [&](int chunk, int worker) {
      for (int64_t at = chunk * blocks.each; at < std::min(count, (chunk + 1) * blocks.each); ++at) {
        const int64_t row = at % tiles / blocks.over * blocks.rows, column = at % blocks.over * blocks.columns;
        compute_block<T>(
            all, all.origins[static_cast<size_t>(at / tiles)], {row, std::min(all.rows, row + blocks.rows)},
            {column, std::min(all.columns, column + blocks.columns)}, blocks, input<T>(args, a), input<T>(args, b),
            output<T>(args), static_cast<uint8_t*>(args.workspace) + worker * blocks.bytes);
      }
    });
  };
  return call("products", run, {.workspace = static_cast<size_t>(blocks.bytes) * static_cast<size_t>(threads)});
}

}  // namespace

Refusal refuses_products(const Group& group) {
  const Node& node = group.last();
  const bool convolves = is_convolution(node, ConvRole::forward) || is_convolution(node, ConvRole::input_gradient) ||
                         is_convolution(node, ConvRole::kernel_gradient);
  if (group.nodes.size() != 1 || (!convolves && !node.is("matmul"))) return "is another operation";
  const bool known =
      node.inputs[0]->type.is_static() && node.inputs[1]->type.is_static() && node.result()->type.is_static();
  return known ? std::nullopt : Refusal("dims are not known");
}

std::unique_ptr<Step> make_products(const Group& group, MakeContext& context) {
  const Node& node = group.last();
  std::unique_ptr<Step> step;
  with_numbers(node.result()->type.dtype, [&](auto tag) {
    step = make_step<decltype(tag)>(group, node.is("matmul") ? products_of_matmul(node) : products_of_convolution(node),
                                    std::max(1, context.threads));
  });
  return step;
}

}  // namespace cairn
