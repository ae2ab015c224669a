// Parts of a workbook after ECMA-376 (SpreadsheetML), in a zip archive.
#include "migrate/spreadsheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "support/error.h"
#include "support/utf8.h"

namespace cairn::migrate {
namespace {

constexpr size_t kPiece = 1 << 16;       // bytes that are compressed at once
constexpr size_t kLongestText = 32'767;  // of a cell
constexpr std::string_view kHead = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";

// Quickly: a report holds hundreds of megabytes of the same few words.
constexpr int kLevel = Z_BEST_SPEED;

void append_escaped(std::string& xml, std::string_view content) {
  for (size_t at = 0; at < content.size();) {
    const unsigned char c = static_cast<unsigned char>(content[at]);
    const size_t size = c < 0x80 ? 1 : utf8_size(content.substr(at));
    const bool control = c < 0x20 && c != '\t' && c != '\n';
    if (c == '<')
      xml += "&lt;";
    else if (c == '>')
      xml += "&gt;";
    else if (c == '&')
      xml += "&amp;";
    else if (size == 0 || control)
      xml += "\xEF\xBF\xBD";
    else
      xml += content.substr(at, size);
    at += std::max<size_t>(size, 1);
  }
}

void append_number(std::string& text, uint64_t value) {
  char digits[20];
  text.append(digits, std::to_chars(digits, std::end(digits), value).ptr);
}

void start_deflate(z_stream& stream) {
  CHECK(deflateInit2(&stream, kLevel, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK, "no compressor");
}

void compress(z_stream& stream, std::string_view bytes, bool last, std::string& into) {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  char piece[kPiece];
  do {
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof(piece);
    deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    into.append(piece, sizeof(piece) - stream.avail_out);
  } while (stream.avail_out == 0);
}

uint32_t checksum_of(uint32_t before, std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// A zip archive; the date of its members is the format's first, so that equal reports are equal files.
class Archive {
 public:
  void add(const std::string& name, std::string_view content) {
    z_stream stream{};
    start_deflate(stream);
    std::string packed;
    compress(stream, content, true, packed);
    deflateEnd(&stream);
    add(name, packed, content.size(), checksum_of(0, content));
  }

  void add(const std::string& name, std::string_view packed, uint64_t size, uint32_t checksum) {
    std::string fields;
    little(fields, 20, 2), little(fields, 0, 2), little(fields, 8, 2);  // version, flags, deflate
    little(fields, 0, 2), little(fields, 0x21, 2);                      // midnight, 1 January 1980
    little(fields, checksum, 4), little(fields, packed.size(), 4), little(fields, size, 4);
    little(fields, name.size(), 2), little(fields, 0, 2);
    directory_ += "PK\x01\x02";
    little(directory_, 20, 2);
    directory_ += fields;
    little(directory_, 0, 2), little(directory_, 0, 2), little(directory_, 0, 2), little(directory_, 0, 4);
    little(directory_, bytes_.size(), 4);
    directory_ += name;
    bytes_ += "PK\x03\x04";
    bytes_ += fields;
    bytes_ += name;
    bytes_ += packed;
    ++count_;
  }

  std::string finish() {
    const size_t begin = bytes_.size();
    bytes_ += directory_;
    bytes_ += "PK\x05\x06";
    little(bytes_, 0, 4), little(bytes_, count_, 2), little(bytes_, count_, 2);
    little(bytes_, directory_.size(), 4), little(bytes_, begin, 4), little(bytes_, 0, 2);
    return std::move(bytes_);
  }

 private:
  static void little(std::string& into, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) into += static_cast<char>(value >> (8 * i));
  }

  std::string bytes_, directory_;
  size_t count_ = 0;
};

constexpr std::string_view kTypes =
    "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">"
    "<Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>"
    "<Default Extension=\"xml\" ContentType=\"application/xml\"/>"
    "<Override PartName=\"/xl/workbook.xml\" "
    "ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml\"/>"
    "<Override PartName=\"/xl/worksheets/sheet1.xml\" "
    "ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml\"/>"
    "<Override PartName=\"/xl/styles.xml\" "
    "ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml\"/>"
    "<Override PartName=\"/xl/sharedStrings.xml\" "
    "ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml\"/></Types>";

#define CAIRN_RELATION "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
constexpr std::string_view kRelations =
    "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">"
    "<Relationship Id=\"rId1\" Type=\"" CAIRN_RELATION "/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>";
constexpr std::string_view kBookRelations =
    "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">"
    "<Relationship Id=\"rId1\" Type=\"" CAIRN_RELATION
    "/worksheet\" Target=\"worksheets/sheet1.xml\"/>"
    "<Relationship Id=\"rId2\" Type=\"" CAIRN_RELATION
    "/styles\" Target=\"styles.xml\"/>"
    "<Relationship Id=\"rId3\" Type=\"" CAIRN_RELATION
    "/sharedStrings\" Target=\"sharedStrings.xml\"/></Relationships>";
#define CAIRN_SHEET "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\""
constexpr std::string_view kStyles =  // style 0 is plain, style 1 bold
    "<styleSheet " CAIRN_SHEET
    "><fonts count=\"2\"><font><sz val=\"11\"/><name val=\"Calibri\"/></font><font><b/>"
    "<sz val=\"11\"/><name val=\"Calibri\"/></font></fonts><fills count=\"2\"><fill><patternFill "
    "patternType=\"none\"/></fill><fill><patternFill patternType=\"gray125\"/></fill></fills><borders count=\"1\">"
    "<border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count=\"1\"><xf numFmtId=\"0\" "
    "fontId=\"0\" fillId=\"0\" borderId=\"0\"/></cellStyleXfs><cellXfs count=\"2\"><xf numFmtId=\"0\" fontId=\"0\" "
    "fillId=\"0\" borderId=\"0\" xfId=\"0\"/><xf numFmtId=\"0\" fontId=\"1\" fillId=\"0\" borderId=\"0\" xfId=\"0\" "
    "applyFont=\"1\"/></cellXfs></styleSheet>";

}  // namespace

Spreadsheet::Spreadsheet(std::string_view sheet, const std::vector<Column>& columns) : sheet_name_(sheet) {
  start_deflate(stream_);
  rows_ = std::string(kHead) +
          "<worksheet " CAIRN_SHEET
          "><sheetViews><sheetView workbookViewId=\"0\"><pane ySplit=\"1\" "
          "topLeftCell=\"A2\" activePane=\"bottomLeft\" state=\"frozen\"/></sheetView></sheetViews><cols>";
  for (size_t i = 0; i < columns.size(); ++i)
    rows_ += fmt::format("<col min=\"{0}\" max=\"{0}\" width=\"{1}\" customWidth=\"1\"/>", i + 1, columns[i].width);
  rows_ += "</cols><sheetData><row>";
  for (const Column& column : columns) rows_ += fmt::format("<c s=\"1\" t=\"s\"><v>{}</v></c>", index_of(column.title));
  cells_ = columns.size();
  rows_ += "</row>";
}

size_t Spreadsheet::index_of(std::string_view content) {
  if (auto known = indices_.find(content); known != indices_.end()) return known->second;
  strings_ += "<si><t xml:space=\"preserve\">";
  append_escaped(strings_, content);
  strings_ += "</t></si>";
  return indices_.emplace(content, indices_.size()).first->second;
}

void Spreadsheet::begin_row() {
  if (!std::exchange(in_row_, true)) rows_ += "<row>";
}

Spreadsheet& Spreadsheet::text(std::string_view content) {
  begin_row();
  if (content.empty()) {
    rows_ += "<c/>";
    return *this;
  }
  ++cells_;
  rows_ += "<c t=\"s\"><v>";
  append_number(rows_, index_of(content.substr(0, kLongestText)));
  rows_ += "</v></c>";
  return *this;
}

Spreadsheet& Spreadsheet::number(uint64_t value) {
  begin_row();
  rows_ += "<c><v>";
  append_number(rows_, value);
  rows_ += "</v></c>";
  return *this;
}

void Spreadsheet::end_row() {
  rows_ += "</row>";
  in_row_ = false;
  if (rows_.size() >= kPiece) flush(false);
}

void Spreadsheet::flush(bool last) {
  checksum_ = checksum_of(checksum_, rows_);
  size_ += rows_.size();
  compress(stream_, rows_, last, packed_);
  rows_.clear();
}

std::string Spreadsheet::finish() {
  rows_ += "</sheetData></worksheet>";
  flush(true);
  const std::string head(kHead);
  Archive archive;
  archive.add("[Content_Types].xml", head + std::string(kTypes));
  archive.add("_rels/.rels", head + std::string(kRelations));
  archive.add("xl/workbook.xml",
              fmt::format("{}<workbook " CAIRN_SHEET " xmlns:r=\"" CAIRN_RELATION
                          "\"><sheets><sheet name=\"{}\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>",
                          head, sheet_name_));
  archive.add("xl/_rels/workbook.xml.rels", head + std::string(kBookRelations));
  archive.add("xl/worksheets/sheet1.xml", packed_, size_, checksum_);
  archive.add("xl/styles.xml", head + std::string(kStyles));
  archive.add("xl/sharedStrings.xml", fmt::format("{}<sst " CAIRN_SHEET " count=\"{}\" uniqueCount=\"{}\">{}</sst>",
                                                  head, cells_, indices_.size(), strings_));
  return archive.finish();
}

#undef CAIRN_RELATION
#undef CAIRN_SHEET

}  // namespace cairn::migrate
