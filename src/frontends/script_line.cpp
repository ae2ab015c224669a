#include "frontends/script_line.h"

#include <algorithm>
#include <charconv>

#include "support/error.h"

namespace cairn {
namespace {

constexpr size_t kMostFrames = 256;
constexpr std::string_view kPackages[] = {"/site-packages/", "/dist-packages/", "/lib/python3"};

bool is_installed(std::string_view file) {
  return file.starts_with('<') || std::any_of(std::begin(kPackages), std::end(kPackages), [&](std::string_view part) {
           return file.find(part) != std::string_view::npos;
         });
}

/// The number that the text starts with; 0: none.
int64_t leading_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : 0;
}

constexpr std::string_view kFile = "File \"";

/// Of a line `File "train.py", line 41, in forward`. Line 0: it is none.
ScriptFrame python_frame(std::string_view text) {
  constexpr std::string_view kLine = "\", line ";
  const size_t begin = text.find(kFile), end = text.find(kLine);
  if (begin == text.npos || end == text.npos || end < begin + kFile.size()) return {};
  return {text.substr(begin + kFile.size(), end - begin - kFile.size()),
          leading_number(text.substr(end + kLine.size()))};
}

/// The same of `train.py(41): forward`.
ScriptFrame torch_frame(std::string_view text) {
  const size_t open = text.find(".py(");
  if (open == text.npos || text.find("): ", open) == text.npos) return {};
  return {text.substr(0, open + 3), leading_number(text.substr(open + 4))};
}

}  // namespace

std::string script_line(const std::vector<ScriptFrame>& frames) {
  for (size_t i = frames.size(); i-- > 0;) {
    const auto [file, line] = frames[i];
    if (line > 0 && !is_installed(file)) return fmt::format("{}:{}", printable(file.substr(file.rfind('/') + 1)), line);
  }
  return "";
}

std::string script_line_in(std::string_view text) {
  const bool of_python = text.find(kFile) != text.npos;
  std::vector<ScriptFrame> frames;
  while (!text.empty() && frames.size() < kMostFrames) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const ScriptFrame frame = of_python ? python_frame(line) : torch_frame(line); frame.line > 0)
      frames.push_back(frame);
  }
  if (!of_python) std::reverse(frames.begin(), frames.end());
  return script_line(frames);
}

}  // namespace cairn
