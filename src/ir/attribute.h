// Compile-time parameters of a node. Their names, kinds, defaults and allowed words are declared by the op (AttrDef).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/tensor.h"
#include "ir/types.h"

namespace cairn {

enum class AttrKind : uint8_t {
  boolean,
  integer,
  number,
  text,
  integers,
  numbers,
  texts,
  dtype,
  type,
  tensor,
  function
};

/// Name of a function of the same module, written @name.
struct FunctionName {
  std::string name;
  friend bool operator==(const FunctionName&, const FunctionName&) = default;
};

/// The alternatives are in the order of AttrKind.
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, DType, Type, Tensor, FunctionName>;

inline AttrKind kind_of(const Attribute& attribute) { return static_cast<AttrKind>(attribute.index()); }
/// Equal kinds and values; floats and tensors are compared by their bits, so that NaN equals itself.
bool same(const Attribute& a, const Attribute& b);

/// The attributes of one node, as a list in the order in which the op declares them. A missing one has its declared
/// default.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string_view, Attribute>> list) {
    for (const auto& [name, value] : list) set(name, value);
  }
  const Attribute* find(std::string_view name) const;
  void set(std::string_view name, Attribute value);
  void erase(std::string_view name);
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  size_t size() const { return list_.size(); }

 private:
  std::vector<std::pair<std::string, Attribute>> list_;
};

}  // namespace cairn
