#include "formats/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace cairn {

namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t from = 0;;) {
    size_t to = text.find(at, from);
    parts.push_back(text.substr(from, to == std::string_view::npos ? to : to - from));
    if (to == std::string_view::npos) return parts;
    from = to + 1;
  }
}

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// type.op.task.stream.time, or with threads: type.op[.stream].task.time.task_type.context.thread.device.
std::optional<FileName> parse_base(const std::vector<std::string_view>& parts) {
  FileName name;
  bool sound = false;
  if (parts.size() == 5)
    sound =
        parse_number(parts[2], name.task) && parse_number(parts[3], name.stream) && parse_number(parts[4], name.time);
  else if (parts.size() == 8)
    sound = parse_number(parts[2], name.task) && parse_number(parts[3], name.time);
  else if (parts.size() == 9)
    sound =
        parse_number(parts[2], name.stream) && parse_number(parts[3], name.task) && parse_number(parts[4], name.time);
  if (!sound || parts[0].empty() || parts[1].empty()) return std::nullopt;
  name.op_type = parts[0], name.op = parts[1];
  if (name.op_type == "Opdebug") name.kind = FileName::Kind::overflow;
  return name;
}

/// The part "input" or "output" and the index behind it, at position `at`.
bool parse_port(const std::vector<std::string_view>& parts, size_t at, FileName& name) {
  if (parts[at] != "input" && parts[at] != "output") return false;
  name.input = parts[at] == "input";
  return parse_number(parts[at + 1], name.index) && name.index >= 0;
}

std::optional<FileName> parse_raw(const std::vector<std::string_view>& parts) {
  if (parts.size() < 11) return std::nullopt;
  size_t port = parts.size() - 6;
  std::optional<FileName> name = parse_base({parts.begin(), parts.begin() + static_cast<ptrdiff_t>(port)});
  if (!name || !parse_port(parts, port, *name)) return std::nullopt;
  name->kind = FileName::Kind::raw;
  for (std::string_view dim : split(parts[port + 2], '_')) {
    if (dim.empty() && parts[port + 2].empty()) break;
    int64_t size = 0;
    if (!parse_number(dim, size) || size < 0 || name->dims.size() >= 64) return std::nullopt;
    name->dims.push_back(size);
  }
  name->dtype = parts[port + 3], name->layout = parts[port + 4];
  return name;
}

}  // namespace

std::optional<FileName> parse_file_name(std::string_view file) {
  std::vector<std::string_view> parts = split(file, '.');
  if (parts.back() == "bin") return parse_raw(parts);
  if (parts.back() != "npy") return parse_base(parts);
  if (parts.size() >= 8) {
    FileName port;
    std::optional<FileName> name = parse_base({parts.begin(), parts.end() - 3});
    if (name && parse_port(parts, parts.size() - 3, port)) {
      name->kind = FileName::Kind::decoded;
      name->input = port.input, name->index = port.index;
      return name;
    }
  }
  FileName name;
  name.kind = FileName::Kind::framework;
  size_t n = parts.size();
  if (n < 4 || !parse_number(parts[n - 2], name.time) || !parse_number(parts[n - 3], name.index) || name.index < 0)
    return std::nullopt;
  name.op = file.substr(0, static_cast<size_t>(parts[n - 3].data() - file.data()) - 1);
  return name.op.empty() ? std::nullopt : std::optional(name);
}

std::string dump_file_name(std::string_view op_type, std::string_view op, int64_t task, int64_t stream, uint64_t time) {
  return fmt::format("{}.{}.{}.{}.{:016}", plain_name(op_type), plain_name(op), task, stream, time);
}

std::string plain_name(std::string_view op) {
  std::string plain(op);
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c == '.' || c == '/' || c == '\\' || c == ' '; }, '_');
  return plain;
}

}  // namespace cairn
