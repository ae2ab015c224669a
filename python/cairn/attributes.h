// Python values as typed attributes of the C interface.
#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "cairn/cairn.h"

namespace cairn_python {

namespace nb = nanobind;

/// A dict of attributes: bool, int, float, str, and lists of them; None leaves one out. Throws nb::type_error.
class Attributes {
 public:
  explicit Attributes(const nb::dict& given) {
    for (auto [key, value] : given)
      if (!value.is_none()) add(keep(nb::cast<std::string>(nb::str(key))), nb::borrow(value));
  }
  const CairnAttribute* data() const { return list_.data(); }
  size_t size() const { return list_.size(); }

 private:
  const char* keep(std::string text) { return kept_.emplace_back(std::move(text)).c_str(); }
  CairnText text(nb::handle value) {
    const std::string& own = kept_.emplace_back(nb::cast<std::string>(value));
    return {own.data(), own.size()};
  }

  void add(const char* name, nb::object value) {
    if (nb::hasattr(value, "tolist")) value = value.attr("tolist")();  // NumPy's arrays and numbers
    if (nb::hasattr(value, "itemsize") && nb::hasattr(value, "kind")) return add_dtype(name, value);
    CairnAttribute made{name, CAIRN_ATTRIBUTE_BOOLEAN, {}};
    auto& to = made.value;
    if (nb::isinstance<nb::bool_>(value)) {
      to.boolean = nb::cast<bool>(value);
    } else if (nb::isinstance<nb::int_>(value)) {
      made.kind = CAIRN_ATTRIBUTE_INTEGER;
      to.integer = nb::cast<int64_t>(value);
    } else if (nb::isinstance<nb::float_>(value)) {
      made.kind = CAIRN_ATTRIBUTE_NUMBER;
      to.number = nb::cast<double>(value);
    } else if (nb::isinstance<nb::str>(value)) {
      made.kind = CAIRN_ATTRIBUTE_TEXT;
      to.text = text(value);
    } else if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
      add_list(made, value);
    } else {
      refuse(name, value);
    }
    list_.push_back(made);
  }

  /// A numpy.dtype.
  void add_dtype(const char* name, const nb::object& value) {
    constexpr std::pair<char, CairnTypeCode> kKinds[] = {
        {'i', CAIRN_INT}, {'u', CAIRN_UINT}, {'f', CAIRN_FLOAT}, {'c', CAIRN_COMPLEX}, {'b', CAIRN_BOOL}};
    const auto kind = nb::cast<std::string>(value.attr("kind"));
    for (auto [letter, code] : kKinds) {
      if (kind != std::string(1, letter)) continue;
      CairnAttribute made{name, CAIRN_ATTRIBUTE_DTYPE, {}};
      made.value.dtype = {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * nb::cast<int>(value.attr("itemsize"))),
                          1};
      list_.push_back(made);
      return;
    }
    refuse(name, value);
  }

  void add_list(CairnAttribute& made, const nb::object& value) {
    bool all_integers = true, all_texts = true;
    for (nb::handle item : value) {
      all_integers &= nb::isinstance<nb::int_>(item);
      all_texts &= nb::isinstance<nb::str>(item);
      if (!nb::isinstance<nb::str>(item) && !nb::isinstance<nb::int_>(item) && !nb::isinstance<nb::float_>(item))
        refuse(made.name, value);
    }
    if (all_integers) {
      auto& own = integers_.emplace_back();
      for (nb::handle item : value) own.push_back(nb::cast<int64_t>(item));
      made.kind = CAIRN_ATTRIBUTE_INTEGERS;
      made.value.integers = {own.data(), own.size()};
    } else if (all_texts) {
      auto& own = texts_.emplace_back();
      for (nb::handle item : value) own.push_back(text(item));
      made.kind = CAIRN_ATTRIBUTE_TEXTS;
      made.value.texts = {own.data(), own.size()};
    } else {
      auto& own = numbers_.emplace_back();
      for (nb::handle item : value) own.push_back(nb::cast<double>(item));
      made.kind = CAIRN_ATTRIBUTE_NUMBERS;
      made.value.numbers = {own.data(), own.size()};
    }
  }

  [[noreturn]] static void refuse(const char* name, nb::handle value) {
    throw nb::type_error((std::string(name) + " cannot be " + nb::cast<std::string>(nb::repr(value)) +
                          ", expected a bool, int, float, str or a list of one kind")
                             .c_str());
  }

  std::vector<CairnAttribute> list_;
  std::deque<std::string> kept_;
  std::deque<std::vector<int64_t>> integers_;
  std::deque<std::vector<double>> numbers_;
  std::deque<std::vector<CairnText>> texts_;
};

}  // namespace cairn_python
