#include "engines/cpu/stored_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "engines/cpu/isa.h"
#include "engines/cpu/narrow.h"
#include "ir/module.h"

namespace cairn {

namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t kLongest = 384;  // rows whose products one sum takes

/// Blocks of equal rows that each lie in one of `rows`, where that is possible.
int64_t short_blocks(int64_t rows, bool all) {
  if (rows <= kLongest) return rows;
  const int64_t parts = (rows + 255) / 256;
  if (all) return (rows + 8 * parts - 1) / (8 * parts) * 8;
  for (int64_t part = parts; part <= 2 * parts; ++part)
    if (rows % part == 0) return rows / part;
  return rows;
}

/// Whether it has one number, or one for each index of this axis of a matrix; `step`: between the numbers.
bool along(const Tensor& each, size_t axis, int64_t size, int64_t& step) {
  const Dims& dims = each.dims();
  step = each.count() == 1 ? 0 : 1;
  if (dims.size() > 2) return false;
  return step == 0 || (each.count() == size && dims.size() + axis >= 2 && dims[dims.size() + axis - 2] == size);
}

CAIRN_VECTORISED(void, expand_bytes,
                 (int64_t count, int64_t width, const int8_t* from, const float* scale, const float* zero, float* to)) {
  for (int64_t row = 0; row < count; ++row, from += width, to += width)
    for (int64_t i = 0; i < width; ++i) to[i] = (static_cast<float>(from[i]) - zero[i]) * scale[i];
}

CAIRN_VECTORISED(void, expand_pairs,
                 (int64_t pairs, int64_t width, const uint32_t* __restrict from, uint32_t* __restrict to)) {
  for (int64_t pair = 0; pair < pairs; ++pair, from += width, to += 2 * width)
    for (int64_t i = 0; i < width; ++i) to[i] = from[i] << 16, to[width + i] = from[i] & 0xffff0000U;
}

CAIRN_VECTORISED(void, expand_nibbles,
                 (int64_t count, int64_t width, const uint32_t* from, const float* scale, const float* zero,
                  float* to)) {
  for (int64_t row = 0; row < count; ++row, to += width) {
    const uint32_t* codes = from + row / 8 * width;
    const auto shift = static_cast<uint32_t>(row % 8 * 4);
    for (int64_t i = 0; i < width; ++i)
      to[i] = (static_cast<float>(static_cast<int32_t>(codes[i] >> shift & 15)) - zero[i]) * scale[i];
  }
}

}  // namespace

int32_t StoredWeights::code(int64_t row, int64_t column) const {
  const int64_t at = row * row_step + column * column_step;
  const auto* bytes = static_cast<const uint8_t*>(constant_of(codes)->data());
  if (stored == Stored::nibbles) return bytes[at / 2] >> (at % 2 * 4) & 15;
  return is_unsigned ? bytes[at] - 128 : static_cast<int8_t>(bytes[at]);
}

float StoredWeights::scale_of(int64_t row, int64_t column) const {
  return scale->values<float>()[static_cast<size_t>(row / scale_rows * scale_block + column * scale_step)];
}

float StoredWeights::zero_of(int64_t row, int64_t column) const {
  const auto at = static_cast<size_t>(row / scale_rows * zero_block + column * zero_step);
  const float down = stored == Stored::bytes && is_unsigned ? 128 : 0;
  if (zero->dtype() == kF32) return zero->values<float>()[at] - down;
  return static_cast<float>(zero->dtype() == kI8 ? zero->values<int8_t>()[at] : zero->values<uint8_t>()[at]) - down;
}

std::string StoredWeights::fingerprint() const {
  size_t all = 0;
  for (const Tensor* each : {scale, zero})
    if (each) all = all * 31 + std::hash<std::string_view>()({static_cast<const char*>(each->data()), each->bytes()});
  return fmt::format(" {} {} {:x}", row_step, column_step, all);
}

void StoredWeights::pack_panel(const PanelLayout& layout, int64_t first_column, void* to) const {
  std::memset(to, 0, static_cast<size_t>(layout.bytes()));
  const int64_t count = std::min(layout.width, columns - first_column), width = layout.width;
  if (!layout.scaled()) {
    const auto* from = static_cast<const uint16_t*>(constant_of(codes)->data()) + first_column * column_step;
    auto* halves = static_cast<uint16_t*>(to);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t o = 0; o < count; ++o) {
        const int64_t at = stored == Stored::brains ? (row / 2 * width + o) * 2 + row % 2 : row * width + o;
        halves[at] = from[row * row_step + o * column_step];
      }
    return;
  }
  auto* at = static_cast<uint8_t*>(to);
  for (int64_t first = 0; first < rows; first += block) {
    const int64_t length = std::min(block, rows - first);
    auto* header = reinterpret_cast<float*>(at);
    for (int64_t o = 0; o < count; ++o) {
      header[o] = scale_of(first, first_column + o);
      if (zeros) header[width + o] = zero_of(first, first_column + o);
    }
    at += layout.header_bytes();
    for (int64_t row = 0; row < length; ++row)
      for (int64_t o = 0; o < count; ++o) {
        const int32_t value = code(first + row, first_column + o);
        if (stored == Stored::bytes)
          at[row * width + o] = static_cast<uint8_t>(value);
        else
          reinterpret_cast<uint32_t*>(at)[row / 8 * width + o] |= static_cast<uint32_t>(value) << (row % 8 * 4);
      }
    at += layout.bytes_of(length);
  }
}

std::optional<StoredWeights> stored_weights(const Node& node, bool transposed) {
  const auto is_constant = [](const Value* value) { return constant_of(value) != nullptr; };
  if (node.inputs.empty() || !std::all_of(node.inputs.begin(), node.inputs.end(), is_constant)) return std::nullopt;
  if (node.result()->type.dtype != kF32) return std::nullopt;
  StoredWeights w;
  w.codes = node.inputs[0];
  const DType dtype = w.codes->type.dtype;
  const Dims dims = node.result()->type.shape.sizes();
  if (dims.size() < 2) return std::nullopt;
  w.columns = transposed ? dims[dims.size() - 2] : dims.back();
  w.rows = *element_count(dims) / std::max<int64_t>(1, w.columns);
  w.row_step = transposed ? 1 : w.columns, w.column_step = transposed ? w.rows : 1;
  if (node.is("cast") && (dtype == kF16 || dtype == kBF16)) {
    w.stored = dtype == kF16 ? Stored::halves : Stored::brains;
    return w.rows > 0 && (dims.size() == 2 || !transposed) ? std::optional(w) : std::nullopt;
  }
  const bool blocks = node.is("dequantize_blocks");
  if (dims.size() != 2 || w.rows == 0 || (blocks ? !transposed : !node.is("dequantize_linear") || dtype.bits != 8))
    return std::nullopt;
  w.scale = constant_of(node.inputs[1]), w.zero = constant_of(node.inputs[2]);
  if (blocks) {
    w.stored = node.attr().integer("bits") == 4 ? Stored::nibbles : Stored::bytes;
    w.is_unsigned = true;
    w.column_step = w.codes->type.shape.sizes()[1] * (w.stored == Stored::nibbles ? 2 : 1);
    w.scale_rows = node.attr().integer("block");
    w.scale_step = w.scale->dims()[1], w.scale_block = 1;
    if (w.zero->count() != 1) w.zero_step = w.scale_step, w.zero_block = 1;
  } else {
    w.stored = Stored::bytes, w.is_unsigned = dtype == kU8;
    w.scale_rows = w.rows;
    const size_t axis = transposed ? 0 : 1;
    if (w.scale->dtype() != kF32 || !along(*w.scale, axis, w.columns, w.scale_step) ||
        !along(*w.zero, axis, w.columns, w.zero_step))
      return std::nullopt;
  }
  w.block = short_blocks(std::min(w.rows, w.scale_rows), w.scale_rows >= w.rows);
  const float none = w.stored == Stored::nibbles ? 8 : 0;
  for (int64_t o = 0; o < w.columns && !w.zeros; ++o)
    for (int64_t row = 0; row < w.rows && !w.zeros; row += w.scale_rows) w.zeros = w.zero_of(row, o) != none;
  return w;
}

void expand_panel(const PanelLayout& layout, const void* panel, float* to) {
  if (layout.stored == Stored::halves) return widen(Form::halves, layout.rows * layout.width, panel, to);
  if (layout.stored == Stored::brains) {
    const auto* from = static_cast<const uint32_t*>(panel);
    const int64_t pairs = layout.rows / 2, done = pairs * layout.width;
    expand_pairs(pairs, layout.width, from, reinterpret_cast<uint32_t*>(to));
    for (int64_t i = 0; i < (layout.rows - 2 * pairs) * layout.width; ++i)
      to[2 * done + i] = __builtin_bit_cast(float, from[done + i] << 16);
    return;
  }
  std::vector<float> same(static_cast<size_t>(layout.width), layout.stored == Stored::nibbles ? 8.F : 0.F);
  const auto* at = static_cast<const char*>(panel);
  for (int64_t first = 0; first < layout.rows; first += layout.block, to += layout.block * layout.width) {
    const int64_t length = std::min(layout.block, layout.rows - first);
    const auto* scale = reinterpret_cast<const float*>(at);
    const float* zero = layout.zeros ? scale + layout.width : same.data();
    const char* codes = at + layout.header_bytes();
    if (layout.stored == Stored::bytes)
      expand_bytes(length, layout.width, reinterpret_cast<const int8_t*>(codes), scale, zero, to);
    else
      expand_nibbles(length, layout.width, reinterpret_cast<const uint32_t*>(codes), scale, zero, to);
    at = codes + layout.bytes_of(length);
  }
}

}  // namespace cairn
