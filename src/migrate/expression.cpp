// Expressions put into other expressions without changing what they mean.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdlib>

#include "migrate/rule.h"

namespace cairn::migrate {
namespace {

// A decimal literal as digits * 10^-scale; false for hex, complex, names and for numbers too long to be exact.
bool decimal(std::string_view text, int64_t& digits, int& scale) {
  digits = 0, scale = 0;
  int exponent = 0, count = 0;
  bool fraction = false, any = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '_') continue;
    if (std::isdigit(static_cast<unsigned char>(c))) {
      if (++count > 15) return false;
      digits = digits * 10 + (c - '0');
      scale += fraction;
      any = true;
    } else if (c == '.' && !fraction) {
      fraction = true;
    } else if ((c == 'e' || c == 'E') && any && i + 1 < text.size()) {
      exponent = std::atoi(std::string(text.substr(i + 1)).c_str());
      break;
    } else {
      return false;
    }
  }
  scale -= exponent;
  while (scale < 0 && digits < 1'000'000'000) digits *= 10, ++scale;
  return any && scale >= 0 && scale <= 15;
}

bool is_one(const Syntax& syntax, NodeId node) {
  double value = 0;
  node = syntax.unwrap(node);
  Kind kind = syntax.kind(node);
  return (kind == Kind::integer || kind == Kind::float_) && number_value(syntax, node, value) && value == 1.0;
}

bool binds_tighter_than_minus(const Syntax& syntax, NodeId node) {
  switch (syntax.kind(node)) {
    case Kind::identifier:
    case Kind::attribute:
    case Kind::subscript:
    case Kind::call:
    case Kind::integer:
    case Kind::float_:
    case Kind::string:
    case Kind::parenthesized_expression:
    case Kind::list:
    case Kind::tuple:
    case Kind::dictionary:
    case Kind::unary_operator:
    case Kind::await:
    case Kind::none:
    case Kind::true_:
    case Kind::false_: return true;
    case Kind::binary_operator: {
      std::string_view op = syntax.text(syntax.child(node, Field::operator_));
      return op == "*" || op == "/" || op == "//" || op == "%" || op == "**" || op == "@";
    }
    default: return false;
  }
}

}  // namespace

std::string as_operand(const Syntax& syntax, NodeId node) {
  std::string text(syntax.text(node));
  return binds_tighter_than_minus(syntax, node) ? text : "(" + text + ")";
}

std::string one_minus(const Syntax& syntax, NodeId node) {
  NodeId inner = syntax.unwrap(node);
  int64_t digits = 0;
  int scale = 0;
  Kind kind = syntax.kind(inner);
  if ((kind == Kind::integer || kind == Kind::float_) && decimal(syntax.text(inner), digits, scale)) {
    int64_t one = 1;
    for (int i = 0; i < scale; ++i) one *= 10;
    int64_t rest = one - digits;
    std::string sign = rest < 0 ? "-" : "";
    rest = std::llabs(rest);
    std::string whole = std::to_string(rest / one);
    if (scale == 0) return sign + whole + (kind == Kind::float_ ? ".0" : "");
    std::string fraction = std::to_string(rest % one);
    fraction.insert(0, scale - fraction.size(), '0');
    while (fraction.size() > 1 && fraction.back() == '0') fraction.pop_back();
    return sign + whole + "." + fraction;
  }
  if (kind == Kind::binary_operator && syntax.text(syntax.child(inner, Field::operator_)) == "-" &&
      is_one(syntax, syntax.child(inner, Field::left)))
    return std::string(syntax.text(syntax.unwrap(syntax.child(inner, Field::right))));
  return "1 - " + as_operand(syntax, node);
}

bool number_value(const Syntax& syntax, NodeId node, double& value) {
  node = syntax.unwrap(node);
  switch (syntax.kind(node)) {
    case Kind::integer:
    case Kind::float_: {
      std::string text;
      for (char c : syntax.text(node))
        if (c != '_') text += c;
      char* end = nullptr;
      value = std::strtod(text.c_str(), &end);
      return end && *end == '\0';
    }
    case Kind::unary_operator: {
      NodeId operand = syntax.child(node, Field::argument);
      if (operand == kNoNode || !number_value(syntax, operand, value)) return false;
      if (syntax.text(node).starts_with('-')) value = -value;
      return true;
    }
    case Kind::binary_operator: {
      double left = 0, right = 0;
      NodeId a = syntax.child(node, Field::left), b = syntax.child(node, Field::right),
             op = syntax.child(node, Field::operator_);
      if (a == kNoNode || b == kNoNode || op == kNoNode || !number_value(syntax, a, left) ||
          !number_value(syntax, b, right))
        return false;
      std::string_view sign = syntax.text(op);
      value = sign == "+"   ? left + right
              : sign == "-" ? left - right
              : sign == "*" ? left * right
              : sign == "/" ? left / right
                            : std::pow(left, right);
      return sign == "+" || sign == "-" || sign == "*" || sign == "/" || sign == "**";
    }
    default: return false;
  }
}

bool is_blank(std::string_view text, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i)
    if (!std::isspace(static_cast<unsigned char>(text[i])) && text[i] != ',' && text[i] != '\\') return false;
  return true;
}

}  // namespace cairn::migrate
