// What every function of a row in C++ sees: types and attributes. Part of <cairn/op.hpp>.
#ifndef CAIRN_OP_CALL_HPP_
#define CAIRN_OP_CALL_HPP_

#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/op.h"

namespace cairn::op {

/// What refuses an input or fails: its text is told with the operator's name.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr CairnAccepts any = CAIRN_ACCEPTS_TENSOR, numbers = CAIRN_ACCEPTS_NUMBERS,
                              floats = CAIRN_ACCEPTS_FLOATS, integers = CAIRN_ACCEPTS_INTEGERS,
                              boolean = CAIRN_ACCEPTS_BOOLEAN, i32_or_i64 = CAIRN_ACCEPTS_I32_OR_I64,
                              text = CAIRN_ACCEPTS_TEXT;
inline constexpr CairnRole data = CAIRN_ROLE_DATA, shape = CAIRN_ROLE_SHAPE, index = CAIRN_ROLE_INDEX,
                           state = CAIRN_ROLE_STATE;
inline constexpr CairnArity optional = CAIRN_ARITY_OPTIONAL, variadic = CAIRN_ARITY_VARIADIC;

inline constexpr CairnDType f16{CAIRN_FLOAT, 16, 1}, f32{CAIRN_FLOAT, 32, 1}, f64{CAIRN_FLOAT, 64, 1},
    bf16{CAIRN_BFLOAT, 16, 1}, i8{CAIRN_INT, 8, 1}, i16{CAIRN_INT, 16, 1}, i32{CAIRN_INT, 32, 1}, i64{CAIRN_INT, 64, 1},
    u8{CAIRN_UINT, 8, 1}, u16{CAIRN_UINT, 16, 1}, u32{CAIRN_UINT, 32, 1}, u64{CAIRN_UINT, 64, 1},
    bool8{CAIRN_BOOL, 8, 1};
inline bool same(CairnDType a, CairnDType b) { return a.code == b.code && a.bits == b.bits; }
inline bool is_float(CairnDType dtype) { return dtype.code == CAIRN_FLOAT || dtype.code == CAIRN_BFLOAT; }

/// The element type of a C++ type.
template <class T>
constexpr CairnDType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return bool8;
  constexpr auto bits = static_cast<uint8_t>(8 * sizeof(T));
  if constexpr (std::is_floating_point_v<T>) return {CAIRN_FLOAT, bits, 1};
  return {static_cast<uint8_t>(std::is_signed_v<T> ? CAIRN_INT : CAIRN_UINT), bits, 1};
}

/// A tensor type: -1 for a dim that is not known.
struct Type {
  CairnDType dtype = f32;
  bool ranked = true;
  std::vector<int64_t> dims;
  std::vector<std::string> symbols;  // of the dims: equal names are equal sizes; "": none

  Type() = default;
  Type(CairnDType d, std::vector<int64_t> sizes) : dtype(d), dims(std::move(sizes)), symbols(dims.size()) {}
  explicit Type(const CairnType& type) : dtype(type.dtype), ranked(type.ndim >= 0) {
    if (type.kind != CAIRN_TYPE_TENSOR) throw Failure("an input is no tensor");
    for (int32_t axis = 0; axis < type.ndim; ++axis) {
      dims.push_back(type.dims[axis]);
      const char* symbol = type.symbols ? type.symbols[axis] : nullptr;
      symbols.emplace_back(symbol ? symbol : "");
    }
  }
  size_t rank() const { return dims.size(); }
  Type as(CairnDType other) const {
    Type changed = *this;
    changed.dtype = other;
    return changed;
  }
  /// Without one dim, counted from the end where negative.
  Type without(int64_t axis) const {
    Type changed = *this;
    if (!ranked) return changed;
    const auto at = static_cast<int64_t>(rank()) * (axis < 0) + axis;
    if (at < 0 || at >= static_cast<int64_t>(rank()))
      throw Failure("axis " + std::to_string(axis) + " is out of range");
    changed.dims.erase(changed.dims.begin() + at);
    changed.symbols.erase(changed.symbols.begin() + at);
    return changed;
  }
};

/// Named access to the attributes of a node.
class Call {
 public:
  explicit Call(const CairnOpCall& call) : call_(call) {}
  bool boolean(const char* name) const { return find(name, CAIRN_ATTRIBUTE_BOOLEAN).boolean != 0; }
  int64_t integer(const char* name) const { return find(name, CAIRN_ATTRIBUTE_INTEGER).integer; }
  double number(const char* name) const { return find(name, CAIRN_ATTRIBUTE_NUMBER).number; }
  std::string text(const char* name) const {
    const CairnText& text = find(name, CAIRN_ATTRIBUTE_TEXT).text;
    return {text.data, text.size};
  }
  std::vector<int64_t> integers(const char* name) const {
    const auto& list = find(name, CAIRN_ATTRIBUTE_INTEGERS).integers;
    return {list.data, list.data + list.count};
  }
  std::vector<double> numbers(const char* name) const {
    const auto& list = find(name, CAIRN_ATTRIBUTE_NUMBERS).numbers;
    return {list.data, list.data + list.count};
  }
  CairnDType dtype(const char* name) const { return find(name, CAIRN_ATTRIBUTE_DTYPE).dtype; }
  [[noreturn]] void fail(const std::string& message) const { throw Failure(message); }

 protected:
  const CairnAttribute::CairnAttributeValue& find(const char* name, CairnAttributeKind kind) const {
    for (size_t i = 0; i < call_.attribute_count; ++i)
      if (std::strcmp(call_.attributes[i].name, name) == 0 && call_.attributes[i].kind == kind)
        return call_.attributes[i].value;
    throw Failure(std::string("the row declares no attribute ") + name + " of that kind");
  }
  /// Throws Failure with the message of the call that failed.
  void check(CairnStatus status) const { check(*call_.registry, status); }
  static void check(const CairnOpRegistry& registry, CairnStatus status) {
    if (status == CAIRN_OK) return;
    CairnError error{};
    error.struct_size = sizeof error;
    registry.last_error(&error);
    throw Failure(*error.where ? std::string(error.where) + ": " + error.message : error.message);
  }

  const CairnOpCall& call_;
};

}  // namespace cairn::op

#endif
