// The framework names of operators from users, and the message for a missing operator.
#include "ir/user_ops.h"

#include <map>
#include <mutex>

namespace cairn {

namespace {

struct ForeignNames {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, const OpDef*> rows;  // by framework and type
  std::map<std::pair<std::string, std::string>, std::string> aliases;
};

ForeignNames& foreign_names() {
  static auto& names = *new ForeignNames;
  return names;
}

/// "acme.fusedgelu" of "acme.fused_gelu", "acme::FusedGelu" and "Acme>FusedGelu".
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool separator = c == '.' || c == ':' || c == '>';
    if (separator && !text.empty() && text.back() != '.') text += '.';
    if (!separator && c != '_') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

}  // namespace

void add_foreign_name(std::string_view framework, std::string_view type, const OpDef& row) {
  ForeignNames& names = foreign_names();
  const std::lock_guard lock(names.mutex);
  const OpDef*& place = names.rows[{std::string(framework), std::string(type)}];
  if (place && place != &row)
    fail(ErrorKind::invalid_argument, row.name, "{} '{}' stands for {} already", framework, type, place->name);
  place = &row;
}

void add_foreign_alias(std::string_view framework, std::string_view type, std::string_view other) {
  ForeignNames& names = foreign_names();
  const std::lock_guard lock(names.mutex);
  std::string& place = names.aliases[{std::string(framework), std::string(type)}];
  if (!place.empty() && place != other)
    fail(ErrorKind::invalid_argument, std::string(other), "{} '{}' stands for {} already", framework, type, place);
  place = other;
}

std::string_view foreign_alias(std::string_view framework, std::string_view type) {
  ForeignNames& names = foreign_names();
  const std::lock_guard lock(names.mutex);
  auto found = names.aliases.find({std::string(framework), std::string(type)});
  return found == names.aliases.end() ? std::string_view() : found->second;
}

const OpDef* find_foreign_op(std::string_view framework, std::string_view type) {
  {
    ForeignNames& names = foreign_names();
    const std::lock_guard lock(names.mutex);
    auto found = names.rows.find({std::string(framework), std::string(type)});
    if (found != names.rows.end()) return found->second;
  }
  const std::vector<const OpDef*> rows = user_ops();
  if (rows.empty()) return nullptr;
  const std::string wanted = plain(type);
  const bool whole = wanted.find('.') != std::string::npos;
  const OpDef* found = nullptr;
  for (const OpDef* row : rows) {
    const std::string own = plain(row->name);
    if (own != wanted && (whole || own.substr(own.rfind('.') + 1) != wanted)) continue;
    if (found)
      fail(ErrorKind::unsupported, "", "'{}' may be {} or {}; name the domain as well", type, found->name, row->name);
    found = row;
  }
  return found;
}

std::string unknown_op(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return fmt::format("no operator is called {}", name);
  return fmt::format(
      "operator {} comes from no library that is loaded; name the library with --op-library, CAIRN_OP_LIBRARY or "
      "cairn.load_op_library",
      name);
}

}  // namespace cairn
