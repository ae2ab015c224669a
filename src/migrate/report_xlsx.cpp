// The spreadsheet of API uses, and reading such spreadsheets (and CSV) back as a list of classes.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "migrate/reports.h"
#include "support/error.h"
#include "support/fault.h"
#include "support/files.h"
#ifdef CAIRN_HAVE_XLSX
#include <xlsxwriter.h>
#endif

namespace cairn::migrate {

#ifdef CAIRN_HAVE_XLSX
namespace {

/// A file without a place on a disk: libxlsxwriter leaves half a file where a disk is full, and prints words of its own.
class Memory {
 public:
  Memory() : descriptor_(::memfd_create("xlsx", MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail(ErrorKind::io, "", "a spreadsheet needs a file in memory: {}", reason(errno));
  }
  ~Memory() { ::close(descriptor_); }
  Memory(const Memory&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

}  // namespace
#endif

void xlsx_report(const Result& result, const SupportList& list, const std::string& path) {
#ifdef CAIRN_HAVE_XLSX
  lxw_workbook_options settings{};
  settings.constant_memory =
      LXW_TRUE;  // rows leave in order, texts in their cells: a fifth less time, and no table of all texts
  const Memory memory;
  lxw_workbook* book = workbook_new_opt(memory.path().c_str(), &settings);
  if (!book) fail(ErrorKind::io, path, "cannot be written");
  lxw_format* bold = workbook_add_format(book);
  format_set_bold(bold);
  lxw_worksheet* sheet = workbook_add_worksheet(book, "api_analysis");
  static constexpr const char* kColumns[] = {"序号", "脚本文件名", "代码行", "模块名", "API名", "工具迁移API支持度",
                                             "说明", "path",       "column", "use",    "here"};
  static constexpr double kWidths[] = {6, 24, 8, 20, 40, 36, 50, 40, 8, 10, 18};
  for (lxw_col_t column = 0; column < std::size(kColumns); ++column) {
    worksheet_write_string(sheet, 0, column, kColumns[column], bold);
    worksheet_set_column(sheet, column, column, kWidths[column], nullptr);
  }
  lxw_row_t row = 1;
  for (const FileResult& file : result.files)
    for (const Reference& reference : file.references) {
      if (row >= 1'048'576) break;
      std::string_view given = list.find(reference.name);
      std::string platform(given.empty() ? std::string_view(reference.platform) : given);
      for (const ClassTitle& title : platform_classes())
        if (platform == title.id) platform = title.chinese;
      size_t dot = reference.name.rfind('.');
      std::string base = file.path.substr(file.path.rfind('/') + 1);
      worksheet_write_number(sheet, row, 0, row, nullptr);
      worksheet_write_string(sheet, row, 1, base.c_str(), nullptr);
      worksheet_write_number(sheet, row, 2, reference.line, nullptr);
      worksheet_write_string(sheet, row, 3, reference.name.substr(0, dot).c_str(), nullptr);
      worksheet_write_string(sheet, row, 4, reference.name.c_str(), nullptr);
      worksheet_write_string(sheet, row, 5, platform.c_str(), nullptr);
      worksheet_write_string(sheet, row, 6, reference.advice.c_str(), nullptr);
      worksheet_write_string(sheet, row, 7, file.path.c_str(), nullptr);
      worksheet_write_number(sheet, row, 8, reference.column, nullptr);
      worksheet_write_string(sheet, row, 9, std::string(reference.use).c_str(), nullptr);
      worksheet_write_string(sheet, row, 10, std::string(reference.status).c_str(), nullptr);
      ++row;
    }
  worksheet_freeze_panes(sheet, 1, 0);
  if (lxw_error error = workbook_close(book); error != LXW_NO_ERROR)
    fail(ErrorKind::io, path, "cannot be written: {}", lxw_strerror(error));
  write_file(path, MappedFile::open(memory.path())->bytes());
#else
  (void)result, (void)list;
  fail(ErrorKind::unsupported, path, "this build has no writer for .xlsx; install libxlsxwriter-dev and build again");
#endif
}

namespace {

uint32_t little(std::string_view bytes, size_t at, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

// The members of a zip archive by name; sizes are checked against the archive and a bound.
std::map<std::string, std::string> unzip(std::string_view bytes, const std::string& where) {
  constexpr size_t kMost = 256u << 20;
  std::map<std::string, std::string> members;
  size_t end = bytes.rfind("PK\x05\x06");
  if (end == bytes.npos || end + 22 > bytes.size()) fail(ErrorKind::invalid_argument, where, "is no .xlsx file");
  uint32_t count = little(bytes, end + 10, 2);
  size_t at = little(bytes, end + 16, 4);
  for (uint32_t i = 0; i < count; ++i) {
    if (at + 46 > bytes.size() || bytes.substr(at, 4) != "PK\x01\x02")
      fail(ErrorKind::invalid_argument, where, "is a damaged .xlsx file");
    uint32_t method = little(bytes, at + 10, 2), packed = little(bytes, at + 20, 4), size = little(bytes, at + 24, 4);
    uint32_t name = little(bytes, at + 28, 2), extra = little(bytes, at + 30, 2), comment = little(bytes, at + 32, 2);
    size_t local = little(bytes, at + 42, 4);
    if (at + 46 + name > bytes.size() || local + 30 > bytes.size() || size > kMost)
      fail(ErrorKind::invalid_argument, where, "is a damaged .xlsx file");
    size_t data = local + 30 + little(bytes, local + 26, 2) + little(bytes, local + 28, 2);
    if (data > bytes.size() || packed > bytes.size() - data)
      fail(ErrorKind::invalid_argument, where, "is a damaged .xlsx file");
    std::string content;
    if (method == 0) {
      content = bytes.substr(data, packed);
    } else {
      content.resize(size);
      z_stream stream{};
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + data));
      stream.avail_in = packed;
      stream.next_out = reinterpret_cast<Bytef*>(content.data());
      stream.avail_out = size;
      inflateInit2(&stream, -MAX_WBITS);
      int status = inflate(&stream, Z_FINISH);
      inflateEnd(&stream);
      if (status != Z_STREAM_END && !(status == Z_BUF_ERROR && stream.avail_out == 0))
        fail(ErrorKind::invalid_argument, where, "is a damaged .xlsx file");
    }
    members[std::string(bytes.substr(at + 46, name))] = std::move(content);
    at += 46 + name + extra + comment;
  }
  return members;
}

std::string unescape(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  std::string plain;
  while (!text.empty()) {
    bool entity = false;
    for (const auto& [name, c] : kEntities)
      if (text.starts_with(name)) {
        plain += c;
        text.remove_prefix(name.size());
        entity = true;
        break;
      }
    if (!entity) {
      plain += text[0];
      text.remove_prefix(1);
    }
  }
  return plain;
}

// Calls visit(attributes, content) for each <tag ...>content</tag>.
template <class Visit>
void each_element(std::string_view xml, const std::string& tag, Visit visit) {
  std::string open = "<" + tag, close = "</" + tag + ">";
  for (size_t at = xml.find(open); at != xml.npos; at = xml.find(open, at)) {
    at += open.size();
    if (at < xml.size() && xml[at] != '>' && xml[at] != ' ' && xml[at] != '/') continue;
    size_t bracket = xml.find('>', at);
    if (bracket == xml.npos) return;
    std::string_view attributes = xml.substr(at, bracket - at);
    if (attributes.ends_with('/')) {
      visit(attributes, std::string_view());
      at = bracket;
      continue;
    }
    size_t end = xml.find(close, bracket);
    if (end == xml.npos) return;
    visit(attributes, xml.substr(bracket + 1, end - bracket - 1));
    at = end;
  }
}

std::string all_text(std::string_view xml) {
  std::string text;
  each_element(xml, "t", [&](std::string_view, std::string_view content) { text += unescape(content); });
  return text;
}

std::vector<std::vector<std::string>> xlsx_rows(std::string_view bytes, const std::string& where) {
  std::map<std::string, std::string> members = unzip(bytes, where);
  std::vector<std::string> shared;
  each_element(members["xl/sharedStrings.xml"], "si",
               [&](std::string_view, std::string_view content) { shared.push_back(all_text(content)); });
  std::vector<std::vector<std::string>> rows;
  each_element(members["xl/worksheets/sheet1.xml"], "row", [&](std::string_view, std::string_view row) {
    rows.emplace_back();
    each_element(row, "c", [&](std::string_view attributes, std::string_view cell) {
      std::string value = all_text(cell);
      each_element(cell, "v", [&](std::string_view, std::string_view content) { value = unescape(content); });
      if (attributes.find("t=\"s\"") != attributes.npos) {
        size_t index = std::strtoul(value.c_str(), nullptr, 10);
        value = index < shared.size() ? shared[index] : "";
      }
      size_t column = rows.back().size();
      if (size_t at = attributes.find(" r=\""); at != attributes.npos) {
        column = 0;
        for (at += 4; at < attributes.size() && attributes[at] >= 'A' && attributes[at] <= 'Z' && column < 1000; ++at)
          column = column * 26 + (attributes[at] - 'A' + 1);
        column = column ? column - 1 : rows.back().size();
      }
      if (column < 64) {
        if (rows.back().size() <= column) rows.back().resize(column + 1);
        rows.back()[column] = value;
      }
    });
  });
  return rows;
}

std::vector<std::vector<std::string>> csv_rows(std::string_view text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      rows.back().back() += c, ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && c == ',')
      rows.back().emplace_back();
    else if (!quoted && c == '\n')
      rows.emplace_back(1);
    else if (c != '\r' || quoted)
      rows.back().back() += c;
  }
  return rows;
}

}  // namespace

SupportList SupportList::read(const std::string& path) {
  std::string bytes = read_file(path, 64 << 20);
  std::vector<std::vector<std::string>> rows = bytes.starts_with("PK") ? xlsx_rows(bytes, path) : csv_rows(bytes);
  SupportList list;
  for (const std::vector<std::string>& row : rows) {
    // ..., module, API, class, ...: the class tells the column; the API stands with or without its module before it.
    for (size_t column = 2; column < row.size(); ++column)
      for (const ClassTitle& title : platform_classes()) {
        if (row[column] != title.id && row[column] != title.chinese && row[column] != title.english) continue;
        const std::string &module = row[column - 2], &api = row[column - 1];
        if (!api.empty())
          list.entries_.push_back({api.find('.') == std::string::npos && !module.empty() ? module + "." + api : api,
                                   std::string(title.id)});
        column = row.size() - 1;
        break;
      }
  }
  if (list.entries_.empty()) fail(ErrorKind::invalid_argument, path, "no row holds a module, an API and a known class");
  std::stable_sort(list.entries_.begin(), list.entries_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return list;
}

std::string_view SupportList::find(std::string_view name) const {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                             [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
  return at != entries_.end() && at->first == name ? std::string_view(at->second) : std::string_view();
}

}  // namespace cairn::migrate
