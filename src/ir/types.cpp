#include "ir/types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <mutex>
#include <unordered_set>

#include "support/error.h"
#include "support/fork.h"

namespace cairn {

namespace {

struct NamedDType {
  const char* name;
  DType dtype;
};

constexpr NamedDType kDTypes[] = {
    {"bool", kBool}, {"i4", kI4},      {"i8", kI8},
    {"i16", kI16},   {"i32", kI32},    {"i64", kI64},
    {"u4", kU4},     {"u8", kU8},      {"u16", kU16},
    {"u32", kU32},   {"u64", kU64},    {"f16", kF16},
    {"f32", kF32},   {"f64", kF64},    {"bf16", kBF16},
    {"c64", kC64},   {"str", kString}, {"c128", DType{DType::Kind::complex_float, 128}},
};

}  // namespace

std::string to_string(DType dtype) {
  for (const auto& row : kDTypes)
    if (row.dtype == dtype) return row.name;
  return fmt::format("kind{}x{}", static_cast<int>(dtype.kind), dtype.bits);
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const auto& row : kDTypes)
    if (text == row.name) return row.dtype;
  return std::nullopt;
}

Symbol intern_symbol(std::string_view name) {
  static std::mutex mutex;
  static std::unordered_set<std::string> names;  // nodes are stable, so addresses stay valid
  const ShieldedLock lock(mutex);
  return &*names.emplace(name).first;
}

bool Shape::known() const {
  if (!ranked) return false;
  for (const Dim& dim : dims)
    if (!dim.known()) return false;
  return true;
}

std::vector<int64_t> Shape::sizes() const {
  std::vector<int64_t> sizes;
  sizes.reserve(dims.size());
  for (const Dim& dim : dims) {
    CHECK(dim.known(), "shape {}", to_string(*this));
    sizes.push_back(dim.size);
  }
  return sizes;
}

std::optional<int64_t> element_count(const std::vector<int64_t>& sizes) {
  bool empty = false;
  for (int64_t size : sizes) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
  }
  if (empty) return 0;
  __int128 count = 1;
  for (int64_t size : sizes) {
    count *= size;
    if (count > (int64_t{1} << 55)) return std::nullopt;
  }
  return static_cast<int64_t>(count);
}

size_t storage_bytes(DType dtype, int64_t count) {
  if (dtype.kind == DType::Kind::string) return static_cast<size_t>(count) * sizeof(std::string);
  return (static_cast<size_t>(count) * dtype.bits + 7) / 8;
}

size_t storage_bytes(const Type& type) { return storage_bytes(type.dtype, *element_count(type.shape.sizes())); }

std::string to_string(const Dim& dim) {
  if (dim.known()) return std::to_string(dim.size);
  return dim.symbol ? "?" + *dim.symbol : "?";
}

std::string to_string(const Shape& shape) {
  if (!shape.ranked) return "[*]";
  std::vector<std::string> dims;
  for (const Dim& dim : shape.dims) dims.push_back(to_string(dim));
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

std::string to_string(const Type& type) {
  std::vector<std::string> elements;
  for (const Type& element : type.elements) elements.push_back(to_string(element));
  switch (type.kind) {
    case Type::Kind::tensor: return to_string(type.dtype) + to_string(type.shape);
    case Type::Kind::list: return fmt::format("list<{}>", fmt::join(elements, ", "));
    case Type::Kind::optional: return fmt::format("optional<{}>", fmt::join(elements, ", "));
    case Type::Kind::tuple: return fmt::format("tuple<{}>", fmt::join(elements, ", "));
    case Type::Kind::resource: return fmt::format("resource<{}>", fmt::join(elements, ", "));
    case Type::Kind::rng: return "rng";
    case Type::Kind::token: return "token";
  }
  return "?";
}

namespace {

// Whether two types agree in kind, element type and number of contained types; shapes are not compared.
bool same_frame(const Type& a, const Type& b) {
  return a.kind == b.kind && a.elements.size() == b.elements.size() && (!a.is_tensor() || a.dtype == b.dtype);
}

}  // namespace

bool compatible(const Type& a, const Type& b) {
  if (!same_frame(a, b)) return false;
  for (size_t i = 0; i < a.elements.size(); ++i)
    if (!compatible(a.elements[i], b.elements[i])) return false;
  if (!a.is_tensor() || !a.shape.ranked || !b.shape.ranked) return true;
  if (a.shape.rank() != b.shape.rank()) return false;
  for (size_t i = 0; i < a.shape.rank(); ++i) {
    const Dim &x = a.shape.dims[i], &y = b.shape.dims[i];
    if (x.known() && y.known() && x.size != y.size) return false;
  }
  return true;
}

Type meet(const Type& a, const Type& b) {
  Type result = a;
  for (size_t i = 0; i < a.elements.size(); ++i) result.elements[i] = meet(a.elements[i], b.elements[i]);
  if (!a.is_tensor() || !b.shape.ranked) return result;
  if (!a.shape.ranked) {
    result.shape = b.shape;
    return result;
  }
  for (size_t i = 0; i < a.shape.rank(); ++i) {
    Dim& mine = result.shape.dims[i];
    const Dim& other = b.shape.dims[i];
    if (!mine.known() && (other.known() || !mine.symbol)) mine = other;
  }
  return result;
}

Type join(const Type& a, const Type& b) {
  CHECK(same_frame(a, b), "{} and {}", to_string(a), to_string(b));
  Type result = a;
  for (size_t i = 0; i < a.elements.size(); ++i) result.elements[i] = join(a.elements[i], b.elements[i]);
  if (!a.is_tensor()) return result;
  if (!a.shape.ranked || !b.shape.ranked || a.shape.rank() != b.shape.rank()) {
    result.shape = Shape::unranked();
    return result;
  }
  for (size_t i = 0; i < a.shape.rank(); ++i)
    if (!a.shape.dims[i].surely_equals(b.shape.dims[i])) result.shape.dims[i] = Dim();
  return result;
}

}  // namespace cairn
