// Lines of text files and rows of CSV files.
#include <charconv>

#include "data/source.h"
#include "support/files.h"

namespace cairn::data {

namespace {

struct Span {
  uint32_t file;
  uint64_t begin, end;
  int64_t line;
};

/// Files and where the rows lie in them.
class SpanSource : public Source {
 public:
  using Source::Source;
  int64_t count() const override { return std::ssize(spans_); }
  std::string origin(int64_t index) const override {
    return fmt::format("{}, line {}", paths_[spans_[index].file], spans_[index].line);
  }

 protected:
  std::string_view text(int64_t index) const {
    const Span& span = spans_[index];
    return std::string_view(*files_[span.file]).substr(span.begin, span.end - span.begin);
  }
  std::vector<std::string> paths_;
  std::vector<std::shared_ptr<const std::string>> files_;
  std::vector<Span> spans_;
};

class TextFiles : public SpanSource {
 public:
  TextFiles(const std::vector<std::string>& files, SamplerPtr sampler, std::string where)
      : SpanSource("text_file", {"text"}, std::move(sampler), std::move(where)) {
    for (const std::string& path : files) {
      paths_.push_back(path);
      files_.push_back(file_bytes(path));
      const std::string& bytes = *files_.back();
      int64_t line = 1;
      for (size_t begin = 0; begin < bytes.size(); ++line) {
        const size_t end = std::min(bytes.find('\n', begin), bytes.size());
        const size_t length = end - begin - (end > begin && bytes[end - 1] == '\r');
        if (length) spans_.push_back({static_cast<uint32_t>(files_.size() - 1), begin, begin + length, line});
        begin = end + 1;
      }
    }
  }
  Row read(int64_t index) const override { return {Array::of_text(text(index))}; }
};

/// Where the row that begins at `begin` ends; line ends within quotes belong to it.
size_t csv_end(std::string_view bytes, size_t begin, int64_t& line) {
  bool quoted = false;
  for (size_t i = begin; i < bytes.size(); ++i) {
    if (bytes[i] == '"') quoted = !quoted;
    if (bytes[i] != '\n') continue;
    ++line;
    if (!quoted) return i;
  }
  return bytes.size();
}

std::vector<std::string> cells_of(std::string_view row, char delimiter) {
  if (row.ends_with('\r')) row.remove_suffix(1);
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < row.size(); ++i) {
    if (quoted && row[i] == '"' && i + 1 < row.size() && row[i + 1] == '"')
      cells.back() += row[i++];
    else if (row[i] == '"')
      quoted = !quoted;
    else if (row[i] == delimiter && !quoted)
      cells.emplace_back();
    else
      cells.back() += row[i];
  }
  if (quoted) fail(ErrorKind::io, "", "a quote is not closed");
  return cells;
}

class CsvFiles : public SpanSource {
 public:
  CsvFiles(const std::vector<std::string>& files, char delimiter, std::vector<std::string> names,
           std::vector<CsvColumn> told, bool header, SamplerPtr sampler, std::string where)
      : SpanSource("csv", std::move(names), std::move(sampler), std::move(where)), delimiter_(delimiter),
        told_(std::move(told)) {
    for (const std::string& path : files) {
      paths_.push_back(path);
      files_.push_back(file_bytes(path));
      const std::string& bytes = *files_.back();
      bool first = header;
      int64_t line = 1;
      for (size_t begin = 0; begin < bytes.size();) {
        const int64_t number = line;
        const size_t end = csv_end(bytes, begin, line);
        if (end > begin && !std::exchange(first, false))
          spans_.push_back({static_cast<uint32_t>(files_.size() - 1), begin, end, number});
        begin = end + 1;
      }
    }
  }
  Row read(int64_t index) const override {
    const std::vector<std::string> cells = cells_of(text(index), delimiter_);
    if (cells.size() != told_.size())
      fail(ErrorKind::io, "", "{} cells, but there are {} columns", cells.size(), told_.size());
    Row row;
    for (size_t i = 0; i < cells.size(); ++i)
      row.push_back(value(cells[i].empty() ? told_[i].otherwise : cells[i], told_[i]));
    return row;
  }

 private:
  static Array value(const std::string& cell, const CsvColumn& column) {
    if (column.kind == Kind::text) return Array::of_text(cell);
    const char* begin = cell.data();
    while (*begin == ' ' || *begin == '+') ++begin;
    const char* end = cell.data() + cell.size();
    while (end > begin && end[-1] == ' ') --end;
    auto parsed = [&](auto number, Kind kind) {
      auto [stop, error] = std::from_chars(begin, end, number);
      if (error != std::errc{} || stop != end || begin == end)
        fail(ErrorKind::io, "", "column '{}' holds '{}', which is no {}", column.name, printable(cell),
             name_of(type_of(kind)));
      return Array::scalar(kind, number);
    };
    if (column.kind == Kind::i32) return parsed(int32_t{}, Kind::i32);
    return column.kind == Kind::f32 ? parsed(float{}, Kind::f32) : parsed(double{}, Kind::f64);
  }

  char delimiter_;
  std::vector<CsvColumn> told_;
};

}  // namespace

NodePtr text_files(const std::vector<std::string>& files, SamplerPtr sampler, std::string where) {
  return std::make_shared<TextFiles>(files, std::move(sampler), std::move(where));
}

NodePtr csv_files(const std::vector<std::string>& files, char delimiter, std::vector<CsvColumn> columns, bool header,
                  SamplerPtr sampler, std::string where) {
  std::vector<std::string> names;
  for (const CsvColumn& column : columns) names.push_back(column.name);
  return std::make_shared<CsvFiles>(files, delimiter, std::move(names), std::move(columns), header, std::move(sampler),
                                    std::move(where));
}

std::vector<std::string> csv_header(const std::string& file, char delimiter) {
  const auto bytes = file_bytes(file);
  int64_t line = 1;
  return cells_of(std::string_view(*bytes).substr(0, csv_end(*bytes, 0, line)), delimiter);
}

}  // namespace cairn::data
