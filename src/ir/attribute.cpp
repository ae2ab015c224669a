#include "ir/attribute.h"

#include <bit>

namespace cairn {

namespace {

bool same_number(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

}  // namespace

bool same(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  if (auto* tensor = std::get_if<Tensor>(&a)) return tensor->same_bits(std::get<Tensor>(b));
  if (auto* number = std::get_if<double>(&a)) return same_number(*number, std::get<double>(b));
  if (auto* numbers = std::get_if<std::vector<double>>(&a)) {
    const auto& others = std::get<std::vector<double>>(b);
    return std::equal(numbers->begin(), numbers->end(), others.begin(), others.end(), same_number);
  }
  return std::visit(
      [&b](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor>)
          return false;
        else
          return value == std::get<T>(b);
      },
      a);
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : list_)
    if (key == name) return &value;
  return nullptr;
}

void Attributes::set(std::string_view name, Attribute value) {
  for (auto& [key, old] : list_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  list_.emplace_back(name, std::move(value));
}

void Attributes::erase(std::string_view name) {
  std::erase_if(list_, [name](const auto& entry) { return entry.first == name; });
}

}  // namespace cairn
