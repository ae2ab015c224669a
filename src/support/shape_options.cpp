#include "support/shape_options.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "support/options.h"

namespace cairn {

namespace {

constexpr size_t kLeastProfiles = 2, kMostProfiles = 100;
constexpr const char* kShapeFix = "write name:dims, several separated by ';': \"input1:1,224,224,3;input2:1,10\"";
constexpr const char* kRangeFix = "write name:[dims]: \"input1:[1~8,224,224,3];input2:[-1,10]\"";

[[noreturn]] void refuse(const char* code, const std::string& option, const std::string& message,
                         const std::string& fix = {}) {
  Report report;
  report.add({code, Severity::error, option, {}, message, fix});
  throw ReportError(ErrorKind::invalid_argument, "", "the command line is wrong", std::move(report));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n").find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  return text;
}

/// The integer that the text is, or nothing; a number out of range gives INT64_MAX.
std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (code == std::errc::result_out_of_range) return INT64_MAX;
  return code == std::errc() ? std::optional(number) : std::nullopt;
}

constexpr const char* kBothEnds = "write both ends, as in 1~8, or -1 for any size";

/// Suggests what was most likely meant by a text that is no size.
std::string size_fix(std::string_view text, const char* otherwise) {
  const std::string_view plain = trimmed(text);
  if (plain.empty()) return "there is a comma too many, or a size is missing";
  for (std::string_view dash : {"-", "..", ":", "\u2013"})
    if (const size_t at = plain.find(dash); at != std::string_view::npos && at > 0) {
      const std::string_view low = plain.substr(0, at), high = plain.substr(at + dash.size());
      if (number_in(low) && number_in(high)) return fmt::format("write a range with '~': {}~{}", low, high);
    }
  for (std::string_view open : {"None", "none", "null", "?", "*", "-", "n", "N", "batch", "batch_size", "bs", "unk"})
    if (plain == open || plain.starts_with("unk__")) return "write -1 for a size that is open, 1~8 for a range";
  if (plain.find_first_not_of("0123456789xX* \t") == std::string_view::npos) return "separate the sizes by ','";
  if (plain.starts_with('~') || plain.ends_with('~')) return kBothEnds;
  if (plain.find('~') != std::string_view::npos) return "a range is two sizes with '~' between, the smaller first: 1~8";
  return otherwise;
}

int64_t parse_size(std::string_view text, std::string_view part) {
  auto size = number_in(trimmed(text));
  if (!size)
    refuse("E10014", "--input_shape", fmt::format("'{}' in '{}' is not a number", text, part),
           size_fix(text, kShapeFix));
  if (*size > INT32_MAX)
    refuse("E10013", "--input_shape",
           fmt::format("'{}' in '{}' is too large, expected at most {}", text, part, INT32_MAX));
  if (*size == 0 || *size < -1)
    refuse("E10011", "--input_shape",
           fmt::format("'{}' in '{}' is not a size; expected at least 1, or -1 for any", *size, part));
  return *size;
}

void add_range(NamedDims& input, SizeRange range) {
  input.dims.push_back(range.low == range.high ? range.low : -1);
  input.ranges.push_back(range);
}

/// "a,b,c" with empty parts kept.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    size_t end = std::min(text.find(separator), text.size());
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

void add_size(NamedDims& input, std::string_view item, std::string_view part) {
  size_t tilde = item.find('~');
  if (tilde == std::string_view::npos) {
    int64_t size = parse_size(item, part);
    return add_range(input, size < 0 ? SizeRange{} : SizeRange{size, size});
  }
  if (trimmed(item.substr(0, tilde)).empty() || trimmed(item.substr(tilde + 1)).empty())
    refuse("E10014", "--input_shape", fmt::format("'{}' in '{}' has one end only", item, part), kBothEnds);
  int64_t low = parse_size(item.substr(0, tilde), part), high = parse_size(item.substr(tilde + 1), part);
  if (low < 0) refuse("E10014", "--input_shape", fmt::format("'{}' in '{}' has no lower end", item, part), kShapeFix);
  if (high >= 0 && high < low)
    refuse("E10002", "--input_shape", fmt::format("'{}' in '{}' ends below its start", item, part), kShapeFix);
  add_range(input, {low, high < 0 ? SizeRange::kNoLimit : high});
}

/// Parses the text inside one pair of brackets of --input_shape_range.
void add_ranges(NamedDims& input, std::string_view inside, const std::string& part) {
  if (trimmed(inside).empty()) return;  // a scalar
  for (std::string_view item : parts_of(inside, ',')) {
    size_t tilde = item.find('~');
    auto low = number_in(trimmed(item.substr(0, tilde)));
    auto high = tilde == std::string_view::npos ? low : number_in(trimmed(item.substr(tilde + 1)));
    bool range = tilde != std::string_view::npos;
    if (!low || !high || (range && (*low < 0 || *high < *low)) || *low > INT32_MAX)
      refuse("E10048", "--input_shape_range",
             fmt::format("Value [{}] for parameter [--input_shape_range] is invalid. Reason: '{}' is neither a size "
                         "nor a range such as 1~20",
                         part, item),
             size_fix(item, kRangeFix));
    if (!range && *low < 0)
      add_range(input, {});
    else
      add_range(input, {*low, *high});
  }
}

NamedDims parse_named_range(const std::string& part) {
  size_t open = part.find('['), close = part.find(']');
  bool once = open != std::string::npos && part.rfind('[') == open && close == part.size() - 1 && open > 1 &&
              trimmed(std::string_view(part).substr(0, open)).ends_with(':');
  if (!once)
    refuse(
        "E10048", "--input_shape_range",
        fmt::format("Value [{}] for parameter [--input_shape_range] is invalid. Reason: expected a name, a colon and "
                    "one pair of brackets",
                    part),
        kRangeFix);
  NamedDims input{.of_ranges = true};
  std::string_view name = trimmed(std::string_view(part).substr(0, open));
  input.name = trimmed(name.substr(0, name.size() - 1));
  add_ranges(input, std::string_view(part).substr(open + 1, close - open - 1), part);
  return input;
}

const char* option_of(ProfileKind kind) {
  constexpr const char* kNames[] = {"--dynamic_batch_size", "--dynamic_image_size", "--dynamic_dims"};
  return kNames[static_cast<int>(kind)];
}

[[noreturn]] void bad_profile(const char* code, ProfileKind kind, const std::string& value, const std::string& reason,
                              const std::string& fix = {}) {
  refuse(code, option_of(kind),
         fmt::format("Value [{}] for parameter [{}] is invalid. Reason: {}", value, option_of(kind), reason), fix);
}

size_t open_sizes(const NamedDims& input) {
  return static_cast<size_t>(std::count(input.dims.begin(), input.dims.end(), -1));
}

/// Checks the -1 axes of an input, whose sizes the profiles give.
void check_open_axes(ProfileKind kind, const NamedDims& input, const std::string& format) {
  auto bad = [&](const char* code, const std::string& what) {
    refuse(code, "--input_shape", fmt::format("input [{}]: {}", input.name, what));
  };
  for (size_t i = 0; i < input.dims.size(); ++i)
    if (input.dims[i] < 0 && input.ranges[i] != SizeRange{})
      bad("E10040", fmt::format("a range cannot stand together with {}; write -1", option_of(kind)));
  if (kind == ProfileKind::batch) {
    if (input.dims.empty()) bad("E10012", "it has no dimension that could be the batch");
    for (size_t i = 1; i < input.dims.size(); ++i)
      if (input.dims[i] < 0) bad("E10018", "only its first dimension may be -1 with --dynamic_batch_size");
  }
  if (kind == ProfileKind::image && open_sizes(input) > 0) {
    size_t height = format.starts_with("NCHW") ? 2 : 1;
    bool fits =
        input.dims.size() == 4 && open_sizes(input) == 2 && input.dims[height] < 0 && input.dims[height + 1] < 0;
    if (!fits)
      bad("E10019", fmt::format("height and width of its four dimensions ({}), and they alone, must be -1 with "
                                "--dynamic_image_size",
                                format));
  }
}

}  // namespace

namespace {

/// Refuses "a:1,2 b:3,4", where ';' is missing between two inputs.
void check_separator(std::string_view part, size_t last_colon) {
  const size_t colon = part.find(':');
  const std::string_view between = part.substr(colon + 1, last_colon - std::min(last_colon, colon + 1));
  const size_t end = between.find_first_not_of("0123456789,-~[]() \t");
  const std::string_view sizes = between.substr(0, end);
  if (end == std::string_view::npos || sizes.find_first_of(", \t]") == std::string_view::npos ||
      sizes.find_first_of("0123456789") == std::string_view::npos)
    return;
  const std::string_view rest = part.substr(colon + 1 + end);
  std::string_view first = trimmed(part.substr(0, colon + 1 + end));
  if (first.ends_with(',')) first.remove_suffix(1);
  refuse("E10002", "--input_shape", fmt::format("';' is missing in front of '{}'", rest),
         fmt::format("--input_shape=\"{};{}\"", trimmed(first), rest));
}

/// Refuses a part without a colon.
[[noreturn]] void refuse_part(const std::string& part) {
  const size_t equals = part.find('=');
  const bool numbers = part.find_first_not_of("0123456789,-~ \t") == std::string::npos;
  refuse("E10002", "--input_shape", fmt::format("'{}' has no name and dimensions with ':' between", part),
         numbers ? "separate the sizes by ',' and inputs by ';': \"input1:1,224,224,3;input2:1,10\""
         : equals != std::string::npos
             ? fmt::format("write ':' in place of '=': \"{}:{}\"", part.substr(0, equals), part.substr(equals + 1))
             : kShapeFix);
}

}  // namespace

std::vector<NamedDims> parse_input_shapes(const std::string& value, std::vector<std::string>& repairs) {
  std::vector<NamedDims> shapes;
  for (const std::string& part : split_list(value, ';')) {
    size_t colon = part.rfind(':');
    if (colon == std::string::npos || colon == 0) refuse_part(part);
    check_separator(part, colon);
    if (part.find('.', colon) != std::string::npos && part.find("..", colon) == std::string::npos)
      refuse("E10002", "--input_shape", fmt::format("'{}' has a number with a point, expected whole numbers", part),
             kShapeFix);
    NamedDims shape;
    shape.name = trimmed(std::string_view(part).substr(0, colon));
    std::string_view text = trimmed(std::string_view(part).substr(colon + 1));
    if ((text.starts_with('[') && text.ends_with(']')) || (text.starts_with('(') && text.ends_with(')'))) {
      repairs.push_back(fmt::format("--input_shape: brackets in '{}' are left out", part));
      text = text.substr(1, text.size() - 2);
    }
    if (!trimmed(text).empty())
      for (std::string_view item : parts_of(text, ',')) add_size(shape, item, part);
    shapes.push_back(std::move(shape));
  }
  if (shapes.empty()) refuse("E10002", "--input_shape", "there is no input in it", kShapeFix);
  return shapes;
}

std::vector<NamedDims> parse_shape_ranges(const std::string& value) {
  std::vector<NamedDims> inputs;
  if (!trimmed(value).starts_with('[')) {
    for (const std::string& part : split_list(value, ';')) inputs.push_back(parse_named_range(part));
    if (inputs.empty()) refuse("E10048", "--input_shape_range", "there is no input in it", kRangeFix);
    return inputs;
  }
  std::string_view rest = trimmed(value);
  while (!rest.empty()) {
    size_t close = rest.find(']');
    if (!rest.starts_with('[') || close == std::string_view::npos)
      refuse(
          "E10048", "--input_shape_range",
          fmt::format("Value [{}] for parameter [--input_shape_range] is invalid. Reason: expected pairs of brackets",
                      value),
          kRangeFix);
    inputs.emplace_back();
    add_ranges(inputs.back(), rest.substr(1, close - 1), value);
    rest = trimmed(rest.substr(close + 1));
    if (!rest.empty() && (rest[0] == ',' || rest[0] == ';')) rest = trimmed(rest.substr(1));
  }
  return inputs;
}

std::vector<Profile> parse_profiles(ProfileKind kind, const std::string& value, std::vector<std::string>& repairs) {
  const char* allowed = kind == ProfileKind::batch ? "0123456789, -" : "0123456789,; -";
  const char* fix = kind == ProfileKind::batch ? "separate the batch sizes by ',': \"1,2,4\""
                                               : "separate sizes by ',' and profiles by ';': \"224,224;448,448\"";
  if (size_t bad = value.find_first_not_of(allowed); bad != std::string::npos)
    bad_profile("E10003", kind, value, fmt::format("'{}' is not allowed in it", value.substr(bad, 1)), fix);
  std::vector<Profile> profiles;
  char separator = kind == ProfileKind::batch ? ',' : ';';
  if (kind == ProfileKind::batch && std::ranges::count(parts_of(value, ','), std::string_view()) > 0)
    repairs.push_back(fmt::format("{}: the empty sizes in '{}' are left out", option_of(kind), value));
  for (const std::string& part : split_list(value, separator)) {
    Profile profile;
    for (std::string_view item : parts_of(part, ',')) {
      auto size = number_in(item);
      if (!size) bad_profile("E10003", kind, value, fmt::format("'{}' is not a number", item), fix);
      if (*size <= 0 || *size > INT32_MAX) bad_profile("E10038", kind, value, fmt::format("{} is not a size", item));
      profile.push_back(*size);
    }
    if (kind == ProfileKind::image && profile.size() != 2)
      bad_profile("E10020", kind, value, fmt::format("'{}' has not exactly a height and a width", part),
                  "separate height and width by ',' and profiles by ';': \"224,224;448,448\"");
    if (!profiles.empty() && profile.size() != profiles[0].size())
      bad_profile("E10037", kind, value,
                  fmt::format("'{}' has {} numbers, the first has {}", part, profile.size(), profiles[0].size()));
    if (std::count(profiles.begin(), profiles.end(), profile) > 0)
      bad_profile("E10039", kind, value, fmt::format("'{}' stands in it twice", part));
    profiles.push_back(std::move(profile));
  }
  if (profiles.size() < kLeastProfiles)
    bad_profile("E10035", kind, value,
                fmt::format("it has {} profile{}, expected at least {}", profiles.size(),
                            profiles.size() == 1 ? "" : "s", kLeastProfiles));
  if (profiles.size() > kMostProfiles)
    bad_profile("E10036", kind, value,
                fmt::format("it has {} profiles, expected at most {}", profiles.size(), kMostProfiles));
  return profiles;
}

std::vector<std::vector<std::vector<int64_t>>> fill_profiles(ProfileKind kind, const std::vector<Profile>& profiles,
                                                             const std::vector<NamedDims>& inputs,
                                                             const std::string& format) {
  size_t open = 0;
  for (const NamedDims& input : inputs) check_open_axes(kind, input, format), open += open_sizes(input);
  if (open == 0)
    refuse(kind == ProfileKind::batch ? "E10031" : "E10040", "--input_shape",
           fmt::format("no input has -1 for {} to fill", option_of(kind)), "write -1 for the sizes that change");
  if (kind == ProfileKind::dims && open != profiles[0].size())
    refuse("E10045", "--dynamic_dims",
           fmt::format("each profile has {} numbers, but the inputs have {} times -1", profiles[0].size(), open));
  std::vector<std::vector<std::vector<int64_t>>> filled;
  for (const Profile& profile : profiles) {
    size_t next = 0;
    filled.emplace_back();
    for (const NamedDims& input : inputs) {
      if (kind != ProfileKind::dims) next = 0;  // batch and image sizes are the same for every input
      std::vector<int64_t> dims = input.dims;
      for (int64_t& size : dims)
        if (size < 0) size = profile[next++];
      filled.back().push_back(std::move(dims));
    }
  }
  return filled;
}

}  // namespace cairn
