// Storage layouts of the platform: names, numbers, and conversion between any two of them by one rule. A layout lists its
// axes in order of storage; an axis may be split into blocks ("C1 ... C0": of C0 channels, N1 N0: of 16).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace cairn::compare {

struct Layout {
  std::string_view name;   // "NC1HWC0"
  uint32_t number;         // as formats are numbered in dumps
  std::string_view parts;  // "N C1 H W C0"; the matrix layouts have B (all leading axes), R (rows), S (columns)
};

/// Nothing when the layout is not known or cannot be converted.
const Layout* find_layout(std::string_view name);
const Layout* find_layout(uint32_t number);
/// "NC1HWC0" for the low byte of a format, "format 77" when it has no name.
std::string layout_name(uint32_t format);

/// A 32-bit format of a dump: primary format, sub-format (groups), and the size of a channel block when given.
struct PackedFormat {
  uint32_t primary, sub_format;
  int64_t block;  // 0: not given
};
PackedFormat unpack_format(uint32_t format);

/// How the tensor in `from` with storage dims is seen in the plain layout `to` when that has the dims `target`. Throws
/// Error invalid_argument when the two cannot hold the same tensor.
Tensor from_blocks(const Tensor& tensor, const Layout& from, const Layout& to, const std::vector<int64_t>& target);
/// The other way: `tensor` in the plain layout `from` becomes `to` with blocks of `block` channels, padded with zeros.
Tensor to_blocks(const Tensor& tensor, const Layout& from, const Layout& to, int64_t block = 16);

/// Storage dims of `to` for a tensor with these dims in the plain layout `from`.
std::vector<int64_t> dims_in(const Layout& from, const std::vector<int64_t>& dims, const Layout& to,
                             int64_t block = 16);
/// True when a tensor of storage dims in `from` can be one of dims `target` in the plain layout `to`.
bool fits(const Layout& from, const std::vector<int64_t>& stored, const Layout& to, const std::vector<int64_t>& target);

}  // namespace cairn::compare
