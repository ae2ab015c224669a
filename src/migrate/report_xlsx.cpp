// The spreadsheet of API uses, and reading such spreadsheets (and CSV) back as a list of classes. Of Office Open XML (ECMA-376) as
// much as one sheet of texts and numbers needs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <unordered_map>

#include "migrate/reports.h"
#include "support/error.h"
#include "support/files.h"
#include "support/utf8.h"
#include "support/zip.h"

namespace cairn::migrate {
namespace {

constexpr std::string_view kHead = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
constexpr std::string_view kMain = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
constexpr std::string_view kOffice = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
constexpr std::string_view kPackage = "http://schemas.openxmlformats.org/package/2006";
constexpr std::string_view kType = "application/vnd.openxmlformats-officedocument.spreadsheetml";
constexpr size_t kMostRows = 1'048'576, kLongestText = 32'000;  // the format's; a little below the format's 32,767

/// Well-formed whatever the bytes are.
std::string xml_text(std::string_view bytes) {
  std::string text;
  for (bytes = bytes.substr(0, kLongestText); !bytes.empty();) {
    const size_t size = utf8_size(bytes);
    const char c = bytes[0];
    if (size == 0)
      text += "\uFFFD";
    else if (c == '<' || c == '>' || c == '&')
      text += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
    else if (size > 1 || static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n')
      text += bytes.substr(0, size);
    bytes.remove_prefix(std::max<size_t>(size, 1));
  }
  return text;
}

/// A sheet row by row. Texts are kept by the caller; each is written once and then named by its number.
class Sheet {
 public:
  void open_row() { rows_ += "<row>", ++count_; }
  void close_row() { rows_ += "</row>"; }
  void text(std::string_view text, std::string_view style = "") {
    auto [known, fresh] = numbers_.try_emplace(text, numbers_.size());
    if (fresh) texts_ += fmt::format("<si><t xml:space=\"preserve\">{}</t></si>", xml_text(text));
    fmt::format_to(std::back_inserter(rows_), "<c t=\"s\"{}><v>{}</v></c>", style, known->second);
  }
  void number(uint64_t number) { fmt::format_to(std::back_inserter(rows_), "<c><v>{}</v></c>", number); }
  size_t count() const { return count_; }

  std::string sheet(std::span<const double> widths) const {
    std::string columns;
    for (size_t i = 0; i < widths.size(); ++i)
      columns += fmt::format("<col min=\"{0}\" max=\"{0}\" width=\"{1}\" customWidth=\"1\"/>", i + 1, widths[i]);
    return fmt::format(
        "{}<worksheet xmlns=\"{}\"><sheetViews><sheetView workbookViewId=\"0\"><pane ySplit=\"1\" topLeftCell=\"A2\" "
        "activePane=\"bottomLeft\" state=\"frozen\"/></sheetView></sheetViews><cols>{}</cols><sheetData>{}</sheetData>"
        "</worksheet>",
        kHead, kMain, columns, rows_);
  }
  std::string texts() const {
    return fmt::format("{}<sst xmlns=\"{}\" uniqueCount=\"{}\">{}</sst>", kHead, kMain, numbers_.size(), texts_);
  }

 private:
  std::unordered_map<std::string_view, size_t> numbers_;
  std::string rows_, texts_;
  size_t count_ = 0;
};

constexpr std::string_view kBold = " s=\"1\"";  // the second of the styles

/// What a workbook of one sheet holds beside that sheet and its texts.
std::vector<std::pair<std::string, std::string>> frame(std::string_view title) {
  auto relation = [](int number, std::string_view kind, std::string_view target) {
    return fmt::format("<Relationship Id=\"r{}\" Type=\"{}/{}\" Target=\"{}\"/>", number, kOffice, kind, target);
  };
  auto relations = [](const std::string& inner) {
    return fmt::format("{}<Relationships xmlns=\"{}/relationships\">{}</Relationships>", kHead, kPackage, inner);
  };
  auto part = [](std::string_view name, std::string_view kind) {
    return fmt::format("<Override PartName=\"/xl/{}.xml\" ContentType=\"{}.{}+xml\"/>", name, kType, kind);
  };
  return {
      {"[Content_Types].xml",
       fmt::format("{}<Types xmlns=\"{}/content-types\"><Default Extension=\"rels\" "
                   "ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>{}{}{}{}</Types>",
                   kHead, kPackage, part("workbook", "sheet.main"), part("worksheets/sheet1", "worksheet"),
                   part("sharedStrings", "sharedStrings"), part("styles", "styles"))},
      {"_rels/.rels", relations(relation(1, "officeDocument", "xl/workbook.xml"))},
      {"xl/workbook.xml", fmt::format("{}<workbook xmlns=\"{}\" xmlns:r=\"{}\"><bookViews><workbookView/></bookViews>"
                                      "<sheets><sheet name=\"{}\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>",
                                      kHead, kMain, kOffice, title)},
      {"xl/_rels/workbook.xml.rels",
       relations(relation(1, "worksheet", "worksheets/sheet1.xml") + relation(2, "sharedStrings", "sharedStrings.xml") +
                 relation(3, "styles", "styles.xml"))},
      {"xl/styles.xml",
       fmt::format("{}<styleSheet xmlns=\"{}\"><fonts count=\"2\"><font><sz val=\"11\"/></font><font><b/><sz "
                   "val=\"11\"/></font></fonts><fills count=\"2\"><fill><patternFill patternType=\"none\"/></fill>"
                   "<fill><patternFill patternType=\"gray125\"/></fill></fills><borders count=\"1\"><border/></borders>"
                   "<cellStyleXfs count=\"1\"><xf/></cellStyleXfs><cellXfs count=\"2\"><xf/><xf fontId=\"1\" "
                   "applyFont=\"1\"/></cellXfs><cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/>"
                   "</cellStyles></styleSheet>",
                   kHead, kMain)},
  };
}

std::string_view platform_class(const Reference& reference, const SupportList& list) {
  const std::string_view given = list.find(reference.name);
  const std::string_view id = given.empty() ? std::string_view(reference.platform) : given;
  for (const ClassTitle& title : platform_classes())
    if (id == title.id) return title.chinese;
  return id;
}

}  // namespace

void xlsx_report(const Result& result, const SupportList& list, const std::string& path) {
  static constexpr std::array<std::string_view, 11> kColumns = {
      "序号", "脚本文件名", "代码行", "模块名", "API名", "工具迁移API支持度", "说明", "path", "column", "use", "here"};
  static constexpr std::array<double, 11> kWidths = {6, 24, 8, 20, 40, 36, 50, 40, 8, 10, 18};
  Sheet sheet;
  sheet.open_row();
  for (std::string_view column : kColumns) sheet.text(column, kBold);
  sheet.close_row();
  for (const FileResult& file : result.files)
    for (const Reference& reference : file.references) {
      if (sheet.count() == kMostRows) break;
      const std::string_view name = reference.name, whole = file.path;
      sheet.open_row();
      sheet.number(sheet.count() - 1);
      sheet.text(whole.substr(whole.rfind('/') + 1));
      sheet.number(reference.line);
      sheet.text(name.substr(0, name.rfind('.')));
      sheet.text(name);
      sheet.text(platform_class(reference, list));
      sheet.text(reference.advice);
      sheet.text(whole);
      sheet.number(reference.column);
      sheet.text(reference.use);
      sheet.text(reference.status);
      sheet.close_row();
    }
  write_file(path, [&](const FileSink& sink) {
    ZipWriter zip(path);
    for (const auto& [name, text] : frame("api_analysis")) sink(zip.deflated(name, text));
    sink(zip.deflated("xl/sharedStrings.xml", sheet.texts()));
    sink(zip.deflated("xl/worksheets/sheet1.xml", sheet.sheet(kWidths)));
    sink(zip.finish());
  });
}

namespace {

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
  const ZipArchive archive = ZipArchive::of(bytes, nullptr, where);
  auto part = [&](std::string_view name) {
    constexpr size_t kMost = 256u << 20;
    const ZipMember* member = archive.find(name);
    if (member != nullptr && member->size > kMost) fail(ErrorKind::invalid_argument, where, "is too large a .xlsx file");
    return member != nullptr ? archive.content(*member) : ZipArchive::Content{};
  };
  const ZipArchive::Content strings = part("xl/sharedStrings.xml"), sheet = part("xl/worksheets/sheet1.xml");
  std::vector<std::string> shared;
  each_element(strings.bytes, "si",
               [&](std::string_view, std::string_view content) { shared.push_back(all_text(content)); });
  std::vector<std::vector<std::string>> rows;
  each_element(sheet.bytes, "row", [&](std::string_view, std::string_view row) {
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
