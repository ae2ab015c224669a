// Encoding declarations, line starts and the text scan that spares most files a parse.
#include "migrate/source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

namespace cairn::migrate {

LineIndex::LineIndex(std::string_view text) {
  starts_.push_back(0);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')))
      starts_.push_back(static_cast<uint32_t>(i + 1));
  }
}

Position LineIndex::at(uint32_t offset) const {
  auto next = std::upper_bound(starts_.begin(), starts_.end(), offset);
  uint32_t line = static_cast<uint32_t>(next - starts_.begin());
  return {line, offset - starts_[line - 1] + 1};
}

std::string_view LineIndex::line(std::string_view text, uint32_t line) const {
  size_t begin = starts_[line - 1];
  size_t end = line < starts_.size() ? starts_[line] : text.size();
  while (end > begin && (text[end - 1] == '\n' || text[end - 1] == '\r')) --end;
  return text.substr(begin, end - begin);
}

std::string declared_encoding(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) return "utf-8";
  size_t at = 0;
  for (int line = 0; line < 2 && at < text.size(); ++line) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view content = text.substr(at, end - at);
    at = end + 1;
    size_t hash = content.find_first_not_of(" \t\f");
    if (hash == std::string_view::npos) continue;
    if (content[hash] != '#') break;
    size_t coding = content.find("coding", hash);
    if (coding == std::string_view::npos) continue;
    size_t name = coding + 6;
    if (name >= content.size() || (content[name] != ':' && content[name] != '=')) continue;
    name = content.find_first_not_of(" \t", name + 1);
    std::string found;
    for (; name < content.size() &&
           (std::isalnum(static_cast<unsigned char>(content[name])) || std::strchr("-_.", content[name]));
         ++name)
      found += content[name] == '_' ? '-' : static_cast<char>(std::tolower(content[name]));
    if (!found.empty()) return found;
  }
  return "utf-8";
}

std::string parsable_copy(std::string_view text, const std::string& encoding) {
  std::string copy(text);
  if (encoding == "utf-8" || encoding == "utf8" || encoding.starts_with("utf-8")) return copy;
  // In these a byte >= 0x80 opens a two-byte character whose second byte may look like ASCII (a quote, a backslash).
  static constexpr std::array pairs = {"gbk",       "cp936", "gb18030", "gb2312", "big5",
                                       "shift-jis", "sjis",  "cp932",   "johab"};
  bool two_bytes =
      std::any_of(pairs.begin(), pairs.end(), [&](const char* name) { return encoding.starts_with(name); });
  for (size_t i = 0; i < copy.size(); ++i) {
    if (static_cast<unsigned char>(copy[i]) < 0x80) continue;
    copy[i] = 'x';
    if (two_bytes && i + 1 < copy.size() && copy[i + 1] != '\n' && copy[i + 1] != '\r') copy[++i] = 'x';
  }
  return copy;
}

bool names_a_framework(std::string_view text) {
  static constexpr std::array names = {"tensorflow", "horovod", "npu_bridge", "npu_device",
                                       "keras",      "torch",   "mindspore",  "tf_slim",
                                       "cupy",       "pynvml",  "pycuda",     "CUDA_VISIBLE_DEVICES"};
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return memmem(text.data(), text.size(), name.data(), name.size()) != nullptr;
  });
}

}  // namespace cairn::migrate
