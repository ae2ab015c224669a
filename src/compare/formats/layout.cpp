#include "compare/formats/layout.h"

#include <algorithm>
#include <array>

namespace cairn::compare {

namespace {

// FRACTAL_Z keeps C1, H and W as one storage dim and FRACTAL_Z_3D D, C1, H and W: "C1*H*W".
constexpr Layout kLayouts[] = {{"NCHW", 0, "N C H W"},
                               {"NHWC", 1, "N H W C"},
                               {"ND", 2, "B R S"},
                               {"NC1HWC0", 3, "N C1 H W C0"},
                               {"FRACTAL_Z", 4, "C1*H*W N1 N0 C0"},
                               {"NHWC1C0", 6, "N H W C1 C0"},
                               {"C1HWNC0", 9, "C1 H W N C0"},
                               {"CHWN", 14, "C H W N"},
                               {"HWCN", 16, "H W C N"},
                               {"NDHWC", 27, "N D H W C"},
                               {"FRACTAL_ZZ", 28, "B R1 S1 R0 S0"},
                               {"FRACTAL_NZ", 29, "B S1 R1 R0 S0"},
                               {"NCDHW", 30, "N C D H W"},
                               {"DHWCN", 31, "D H W C N"},
                               {"NDC1HWC0", 32, "N D C1 H W C0"},
                               {"FRACTAL_Z_3D", 33, "D*C1*H*W N1 N0 C0"},
                               {"DHWNC", 36, "D H W N C"}};

// Names of formats that are known but not converted.
// clang-format off
constexpr std::pair<uint32_t, std::string_view> kOtherNames[] = {
    {5, "NC1C0HWPAD"},      {7, "FSR_NCHW"},     {8, "FRACTAL_DECONV"}, {12, "NC1HWC0_C04"},   {13, "FRACTAL_Z_C04"},
    {17, "NC1KHKWHWC0"},    {18, "BN_WEIGHT"},   {19, "FILTER_HWCK"},   {25, "C1HWNCoC0"},     {26, "MD"},
    {34, "CN"},             {35, "NC"},          {38, "FRACTAL_ZN_LSTM"}, {39, "FRACTAL_Z_G"}, {43, "ND_RNN_BIAS"},
    {44, "FRACTAL_ZN_RNN"}, {47, "NCL"}};

constexpr std::string_view kAxes = "NCDHWBRS";
constexpr size_t kAxisCount = 8;
constexpr int64_t kCube = 16;  // rows of a block
using Sizes = std::array<int64_t, kAxisCount>;

/// One factor of the storage order: an axis whole, its block number ('1') or its place in a block ('0').
struct Part {
  size_t axis;
  char piece;   // ' ', '1', '0'
  bool joined;  // to the part before, in one storage dim
};
// clang-format on

std::vector<Part> parts_of(const Layout& layout) {
  std::vector<Part> parts;
  bool joined = false;
  for (size_t i = 0; i < layout.parts.size(); ++i) {
    char c = layout.parts[i];
    if (c == ' ' || c == '*') {
      joined = c == '*';
    } else if (c == '0' || c == '1') {
      parts.back().piece = c;
    } else {
      parts.push_back({kAxes.find(c), ' ', joined});
    }
  }
  return parts;
}

bool has_blocks(const Layout& layout) { return layout.parts.find('0') != std::string_view::npos; }
bool is_matrix(const Layout& layout) { return layout.parts.find('R') != std::string_view::npos; }

/// Blocks of the split axes: channels and columns are split by `block`, the rest by 16.
Sizes blocks_of(const std::vector<Part>& parts, int64_t block) {
  Sizes blocks;
  blocks.fill(1);
  for (const Part& part : parts)
    if (part.piece == '0') blocks[part.axis] = kAxes[part.axis] == 'C' || kAxes[part.axis] == 'S' ? block : kCube;
  return blocks;
}

int64_t extent(const Part& part, const Sizes& sizes, const Sizes& blocks) {
  int64_t size = sizes[part.axis], block = blocks[part.axis];
  return part.piece == '0' ? block : part.piece == '1' ? (size + block - 1) / block : size;
}

/// Axis sizes of a tensor with these dims in a plain layout; a matrix layout takes any rank. Nothing for another rank.
std::optional<Sizes> sizes_of(const Layout& plain, const std::vector<int64_t>& dims) {
  Sizes sizes;
  sizes.fill(1);
  if (is_matrix(plain)) {
    size_t rank = dims.size();
    for (size_t i = 0; i + 2 < rank; ++i) sizes[kAxes.find('B')] *= dims[i];
    if (rank >= 2) sizes[kAxes.find('R')] = dims[rank - 2];
    if (rank >= 1) sizes[kAxes.find('S')] = dims[rank - 1];
    return sizes;
  }
  std::vector<Part> parts = parts_of(plain);
  if (parts.size() != dims.size()) return std::nullopt;
  for (size_t i = 0; i < parts.size(); ++i) sizes[parts[i].axis] = dims[i];
  return sizes;
}

/// Size of the innermost block when the layout has one: its last storage dim.
int64_t block_of(const Layout& layout, const std::vector<int64_t>& stored) {
  return has_blocks(layout) && !stored.empty() ? stored.back() : 1;
}

std::vector<int64_t> storage_dims(const Layout& layout, const Sizes& sizes, int64_t block) {
  std::vector<Part> parts = parts_of(layout);
  Sizes blocks = blocks_of(parts, block);
  std::vector<int64_t> dims;
  for (const Part& part : parts) {
    if (part.joined)
      dims.back() *= extent(part, sizes, blocks);
    else
      dims.push_back(extent(part, sizes, blocks));
  }
  return dims;
}

/// offset of an element = sum over axes of table[axis][coordinate]: every layout here is separable.
using Offsets = std::array<std::vector<int64_t>, kAxisCount>;

Offsets offsets_of(const Layout& layout, const Sizes& sizes, int64_t block) {
  std::vector<Part> parts = parts_of(layout);
  Sizes blocks = blocks_of(parts, block);
  Offsets offsets;
  for (size_t axis = 0; axis < kAxisCount; ++axis) offsets[axis].assign(static_cast<size_t>(sizes[axis]), 0);
  int64_t stride = 1;
  for (size_t i = parts.size(); i-- > 0;) {
    const Part& part = parts[i];
    for (int64_t at = 0; at < sizes[part.axis]; ++at) {
      int64_t step = part.piece == '0' ? at % blocks[part.axis] : part.piece == '1' ? at / blocks[part.axis] : at;
      offsets[part.axis][static_cast<size_t>(at)] += step * stride;
    }
    stride *= extent(part, sizes, blocks);
  }
  return offsets;
}

template <class Element>
void copy_elements(const void* from, void* to, const Offsets& source, const Offsets& target, size_t axis,
                   int64_t from_at, int64_t to_at) {
  if (axis == kAxisCount) {
    static_cast<Element*>(to)[to_at] = static_cast<const Element*>(from)[from_at];
    return;
  }
  for (size_t i = 0; i < source[axis].size(); ++i)
    copy_elements<Element>(from, to, source, target, axis + 1, from_at + source[axis][i], to_at + target[axis][i]);
}

void copy(const Tensor& from, Tensor& to, const Offsets& source, const Offsets& target) {
  switch (from.dtype().size()) {
    case 1: return copy_elements<uint8_t>(from.data(), to.mutable_data(), source, target, 0, 0, 0);
    case 2: return copy_elements<uint16_t>(from.data(), to.mutable_data(), source, target, 0, 0, 0);
    case 4: return copy_elements<uint32_t>(from.data(), to.mutable_data(), source, target, 0, 0, 0);
    case 8: return copy_elements<uint64_t>(from.data(), to.mutable_data(), source, target, 0, 0, 0);
    default: fail(ErrorKind::unsupported, "", "{} elements cannot change layout", to_string(from.dtype()));
  }
}

/// A matrix layout in storage dims of any rank: leading dims become one.
std::vector<int64_t> gathered(const Layout& layout, const std::vector<int64_t>& stored) {
  size_t kept = parts_of(layout).size() - 1;
  if (!is_matrix(layout) || !has_blocks(layout) || stored.size() < kept) return stored;
  std::vector<int64_t> dims(stored.end() - static_cast<ptrdiff_t>(kept), stored.end());
  int64_t leading = 1;
  for (size_t i = 0; i + kept < stored.size(); ++i) leading *= stored[i];
  dims.insert(dims.begin(), leading);
  return dims;
}

std::string text(const std::vector<int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

}  // namespace

const Layout* find_layout(std::string_view name) {
  const Layout* row = std::find_if(std::begin(kLayouts), std::end(kLayouts), [&](auto& l) { return l.name == name; });
  return row == std::end(kLayouts) ? nullptr : row;
}

const Layout* find_layout(uint32_t number) {
  const Layout* row =
      std::find_if(std::begin(kLayouts), std::end(kLayouts), [&](auto& l) { return l.number == number; });
  return row == std::end(kLayouts) ? nullptr : row;
}

std::string layout_name(uint32_t format) {
  if (const Layout* layout = find_layout(format & 0xff)) return std::string(layout->name);
  for (auto [number, name] : kOtherNames)
    if (number == (format & 0xff)) return std::string(name);
  return fmt::format("format {}", format & 0xff);
}

PackedFormat unpack_format(uint32_t format) {
  uint32_t code = format >> 24 & 0xf;
  return {format & 0xff, format >> 8 & 0xffff, code == 0 ? 0 : int64_t{1} << (code - 1)};
}

bool fits(const Layout& from, const std::vector<int64_t>& stored, const Layout& to,
          const std::vector<int64_t>& target) {
  std::optional<Sizes> sizes = is_matrix(from) == is_matrix(to) ? sizes_of(to, target) : std::nullopt;
  if (!sizes) return false;
  if (is_matrix(from) && !has_blocks(from)) return stored == target;
  std::vector<int64_t> dims = gathered(from, stored);
  return dims == storage_dims(from, *sizes, block_of(from, dims));
}

Tensor from_blocks(const Tensor& tensor, const Layout& from, const Layout& to, const std::vector<int64_t>& target) {
  if (!fits(from, tensor.dims(), to, target))
    fail(ErrorKind::invalid_argument, "", "{} {} cannot be {} {}", from.name, text(tensor.dims()), to.name,
         text(target));
  Sizes sizes = *sizes_of(to, target);
  Tensor result = Tensor::uninitialized(tensor.dtype(), target);
  copy(tensor, result, offsets_of(from, sizes, block_of(from, tensor.dims())), offsets_of(to, sizes, 1));
  return result;
}

std::vector<int64_t> dims_in(const Layout& from, const std::vector<int64_t>& dims, const Layout& to, int64_t block) {
  std::optional<Sizes> sizes = is_matrix(from) == is_matrix(to) ? sizes_of(from, dims) : std::nullopt;
  if (!sizes || has_blocks(from))
    fail(ErrorKind::invalid_argument, "", "{} {} has no form in {}", from.name, text(dims), to.name);
  std::vector<int64_t> stored = storage_dims(to, *sizes, block);
  if (is_matrix(to)) {  // leading dims stay as they are
    stored.erase(stored.begin());
    if (dims.size() > 2) stored.insert(stored.begin(), dims.begin(), dims.end() - 2);
  }
  return stored;
}

Tensor to_blocks(const Tensor& tensor, const Layout& from, const Layout& to, int64_t block) {
  Tensor result = Tensor::zeros(tensor.dtype(), dims_in(from, tensor.dims(), to, block));
  Sizes sizes = *sizes_of(from, tensor.dims());
  copy(tensor, result, offsets_of(from, sizes, 1), offsets_of(to, sizes, block));
  return result;
}

}  // namespace cairn::compare
