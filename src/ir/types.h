// Types of values: tensors with numeric, symbolic or unknown dims, and a few other kinds. Their text forms round-trip.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

/// An element type: a kind and a width in bits. Types narrower than a byte are stored packed.
struct DType {
  enum class Kind : uint8_t { boolean, signed_int, unsigned_int, ieee_float, brain_float, complex_float, string };
  Kind kind = Kind::ieee_float;
  uint8_t bits = 32;

  friend bool operator==(DType, DType) = default;
  bool is_float() const { return kind == Kind::ieee_float || kind == Kind::brain_float; }
  bool is_integer() const { return kind == Kind::signed_int || kind == Kind::unsigned_int; }
  /// Bytes of one element; 0 for strings (host values) and for types narrower than a byte.
  size_t size() const { return bits / 8; }
};

inline constexpr DType kBool{DType::Kind::boolean, 8};
inline constexpr DType kI8{DType::Kind::signed_int, 8};
inline constexpr DType kI16{DType::Kind::signed_int, 16};
inline constexpr DType kI32{DType::Kind::signed_int, 32};
inline constexpr DType kI64{DType::Kind::signed_int, 64};
inline constexpr DType kU8{DType::Kind::unsigned_int, 8};
inline constexpr DType kU16{DType::Kind::unsigned_int, 16};
inline constexpr DType kU32{DType::Kind::unsigned_int, 32};
inline constexpr DType kU64{DType::Kind::unsigned_int, 64};
inline constexpr DType kI4{DType::Kind::signed_int, 4};
inline constexpr DType kU4{DType::Kind::unsigned_int, 4};
inline constexpr DType kF16{DType::Kind::ieee_float, 16};
inline constexpr DType kF32{DType::Kind::ieee_float, 32};
inline constexpr DType kF64{DType::Kind::ieee_float, 64};
inline constexpr DType kBF16{DType::Kind::brain_float, 16};
inline constexpr DType kC64{DType::Kind::complex_float, 64};
inline constexpr DType kString{DType::Kind::string, 0};

/// "f32", "i64", "bool", "bf16", "str".
std::string to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

/// Name of a size that is only known at run time; equal names mean equal sizes. Interned for the life of the process.
using Symbol = const std::string*;
Symbol intern_symbol(std::string_view name);

/// One dimension: a number, a symbol, or unknown.
struct Dim {
  int64_t size = -1;  // -1: not a number
  Symbol symbol = nullptr;

  Dim() = default;
  Dim(int64_t number) : size(number) {}  // NOLINT: a number is a dimension
  explicit Dim(Symbol name) : symbol(name) {}
  bool known() const { return size >= 0; }
  /// Whether both are the same number or the same symbol. Unknown dims never are, not even compared with themselves.
  bool surely_equals(const Dim& other) const {
    return known() ? size == other.size : symbol != nullptr && symbol == other.symbol;
  }
  friend bool operator==(const Dim&, const Dim&) = default;
};

/// A list of dimensions; when not `ranked`, not even its length is known.
struct Shape {
  bool ranked = true;
  std::vector<Dim> dims;

  Shape() = default;
  Shape(std::vector<Dim> list) : dims(std::move(list)) {}  // NOLINT
  Shape(std::initializer_list<Dim> list) : dims(list) {}
  static Shape unranked() {
    Shape shape;
    shape.ranked = false;
    return shape;
  }
  static Shape of(const std::vector<int64_t>& sizes) { return Shape(std::vector<Dim>(sizes.begin(), sizes.end())); }
  size_t rank() const { return dims.size(); }
  bool known() const;
  /// The dims as numbers; requires known().
  std::vector<int64_t> sizes() const;
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// Product of the sizes; nothing when a size is negative or the count is above 2^55 (its bytes could overflow).
std::optional<int64_t> element_count(const std::vector<int64_t>& sizes);
/// Bytes of `count` elements, packed for types narrower than a byte.
size_t storage_bytes(DType dtype, int64_t count);

struct Type {
  enum class Kind : uint8_t { tensor, list, optional, tuple, resource, rng, token };
  Kind kind = Kind::tensor;
  DType dtype = kF32;          // of a tensor
  Shape shape;                 // of a tensor
  std::vector<Type> elements;  // of a list, optional, resource: one; of a tuple: any number

  static Type tensor(DType dtype, Shape shape) { return {Kind::tensor, dtype, std::move(shape), {}}; }
  static Type list(Type element) { return {Kind::list, kF32, {}, {std::move(element)}}; }
  static Type resource(Type element) { return {Kind::resource, kF32, {}, {std::move(element)}}; }
  static Type rng() { return {Kind::rng, kF32, {}, {}}; }
  static Type token() { return {Kind::token, kF32, {}, {}}; }
  bool is_tensor() const { return kind == Kind::tensor; }
  /// A tensor whose dims are all numbers.
  bool is_static() const { return is_tensor() && shape.known(); }
  friend bool operator==(const Type&, const Type&) = default;
};

/// Bytes of a tensor of a static type.
size_t storage_bytes(const Type& type);

/// "[?n, 8, ?]", "[*]" when unranked.
std::string to_string(const Dim& dim);
std::string to_string(const Shape& shape);
/// "f32[?n, 8]", "list<f32[]>", "resource<f32[10]>", "tuple<i64[], f32[*]>", "rng", "token".
std::string to_string(const Type& type);

/// True when some concrete value can have both types.
bool compatible(const Type& a, const Type& b);
/// The type of values that have both types; requires compatible(a, b). Numbers win over symbols, symbols over unknown.
Type meet(const Type& a, const Type& b);
/// The narrowest type that covers both: equal dims stay, others become unknown. Requires equal kinds and dtypes.
Type join(const Type& a, const Type& b);

}  // namespace cairn
