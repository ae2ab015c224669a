// Writes MindRecord files.
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include "data/mindrecord_schema.h"
#include "support/fault.h"
#include "support/part_file.h"

namespace cairn::data {

namespace fs = std::filesystem;

namespace {

/// A value as a type of the format. Throws Error where it is no number.
template <class T>
std::vector<T> numbers_of(const Array& array, const std::string& column) {
  std::vector<T> numbers(static_cast<size_t>(array.count()));
  const bool known = with_number(array.type.kind, [&](auto zero) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto value = array.as<decltype(zero)>()[i];
      numbers[i] = static_cast<T>(value);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<decltype(zero), bool>)
        if (static_cast<decltype(zero)>(numbers[i]) != value || (numbers[i] < 0) != (value < 0))
          fail(ErrorKind::invalid_argument, "", "column '{}' holds {}, which does not fit its type", column, value);
    }
  });
  if (!known)
    fail(ErrorKind::invalid_argument, "", "column '{}' holds {}, expected numbers", column, name_of(array.type));
  return numbers;
}

std::string_view raw_bytes(const void* data, size_t size) { return {static_cast<const char*>(data), size}; }

/// Integers in as few bytes as each needs: their count, two bits of width for each, the values.
template <class T>
std::string narrowed(const std::vector<T>& values) {
  std::string widths((values.size() + 3) / 4, '\0'), packed;
  for (size_t i = 0; i < values.size(); ++i) {
    int code = 0;
    while (code < 3 && (values[i] < -(int64_t{1} << (8 * kMindWidths[code] - 1)) ||
                        values[i] >= int64_t{1} << (8 * kMindWidths[code] - 1)))
      ++code;
    widths[i / 4] = static_cast<char>(widths[i / 4] | code << (6 - 2 * (i % 4)));
    const int64_t value = values[i];
    packed.append(raw_bytes(&value, static_cast<size_t>(kMindWidths[code])));
  }
  std::string made;
  for (int shift : {24, 16, 8, 0}) made += static_cast<char>(values.size() >> shift);
  return made + widths + packed;
}

std::string text_value(const Array& array, const std::string& column) {
  if (array.type.kind == Kind::u8) return std::string(array.view());
  if (!array.type.is_text() || array.count() != 1)
    fail(ErrorKind::invalid_argument, "", "column '{}' holds {} {}, expected one text", column, name_of(array.type),
         text_of(array.shape));
  const std::string_view text = array.view();
  return std::string(text.substr(0, text.find_last_not_of('\0') + 1));
}

std::string blob_bytes(const Array& array, const MindColumn& column) {
  if (column.type == "bytes") return text_value(array, column.name);
  int64_t known = 1;
  bool open = false;
  for (int64_t size : *column.shape) size < 0 ? open = true : known *= size;
  if (open ? known == 0 || array.count() % known : array.count() != known)
    fail(ErrorKind::invalid_argument, "", "column '{}' has {} elements, but its shape is {}", column.name,
         array.count(), text_of(*column.shape));
  if (column.type == "int32") return narrowed(numbers_of<int32_t>(array, column.name));
  if (column.type == "int64") return narrowed(numbers_of<int64_t>(array, column.name));
  if (column.type == "float32") {
    const std::vector<float> values = numbers_of<float>(array, column.name);
    return std::string(raw_bytes(values.data(), 4 * values.size()));
  }
  const std::vector<double> values = numbers_of<double>(array, column.name);
  return std::string(raw_bytes(values.data(), 8 * values.size()));
}

MindJson plain_json(const Array& array, const MindColumn& column) {
  if (column.type == "string") {
    if (!array.type.is_text()) fail(ErrorKind::invalid_argument, "", "column '{}' holds no text", column.name);
    return text_value(array, column.name);
  }
  if (array.count() != 1)
    fail(ErrorKind::invalid_argument, "", "column '{}' has the shape {}, expected one number", column.name,
         text_of(array.shape));
  if (column.type == "int32") return numbers_of<int32_t>(array, column.name)[0];
  if (column.type == "int64") return numbers_of<int64_t>(array, column.name)[0];
  if (column.type == "float32") return numbers_of<float>(array, column.name)[0];
  return numbers_of<double>(array, column.name)[0];
}

/// The index of a file in the making.
class Index {
 public:
  Index(const std::string& path, const std::string& shard, const MindSchema& schema,
        const std::vector<std::string>& fields)
      : path_(path) {
    // It is there: where a signal's handler has removed it, no other takes its place.
    if (sqlite3_open_v2(path.c_str(), &base_, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) failed();
    std::string columns, marks;
    for (size_t i = 0; i < fields.size(); ++i) {
      auto column =
          std::find_if(schema.begin(), schema.end(), [&](const MindColumn& each) { return each.name == fields[i]; });
      columns += fmt::format(", INC_{} INT, \"{}_0\" {}", i, fields[i], column->type == "string" ? "TEXT" : "NUMERIC");
      marks += ",?,?";
    }
    run("PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF; BEGIN; CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)");
    char* named = sqlite3_mprintf("INSERT INTO SHARD_NAME VALUES (%Q)", shard.c_str());
    const std::string insert = named;
    sqlite3_free(named);
    run(insert);
    run("CREATE TABLE INDEXES(ROW_ID INT NOT NULL, PAGE_ID_RAW INT, PAGE_OFFSET_RAW INT, PAGE_OFFSET_RAW_END INT, "
        "ROW_GROUP_ID "
        "INT, PAGE_ID_BLOB INT, PAGE_OFFSET_BLOB INT, PAGE_OFFSET_BLOB_END INT" +
        columns + ", PRIMARY KEY(ROW_ID))");
    if (sqlite3_prepare_v2(base_, ("INSERT INTO INDEXES VALUES (?,?,?,?,?,?,?,?" + marks + ")").c_str(), -1, &insert_,
                           nullptr) != SQLITE_OK)
      failed();
  }
  ~Index() {
    sqlite3_finalize(insert_);
    sqlite3_close(base_);
  }
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  void add(const int64_t (&places)[8], const MindJson& plain, const std::vector<std::string>& fields) {
    sqlite3_reset(insert_);
    for (int i = 0; i < 8; ++i) sqlite3_bind_int64(insert_, i + 1, places[i]);
    for (size_t i = 0; i < fields.size(); ++i) {
      const int at = 9 + 2 * static_cast<int>(i);
      sqlite3_bind_int64(insert_, at, 0);  // the schema's number
      const MindJson& value = plain.at(fields[i]);
      if (value.is_string())
        sqlite3_bind_text(insert_, at + 1, value.get<std::string>().c_str(), -1, SQLITE_TRANSIENT);
      else if (value.is_number_integer())
        sqlite3_bind_int64(insert_, at + 1, value.get<int64_t>());
      else
        sqlite3_bind_double(insert_, at + 1, value.get<double>());
    }
    if (sqlite3_step(insert_) != SQLITE_DONE) failed();
  }
  void finish() { run("COMMIT"); }

 private:
  void run(const std::string& statement) {
    if (sqlite3_exec(base_, statement.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) failed();
  }
  [[noreturn]] void failed() { fail(ErrorKind::io, path_, "the index cannot be written: {}", sqlite3_errmsg(base_)); }

  std::string path_;
  sqlite3* base_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
};

struct Page {
  bool blob;
  int64_t id, of_kind, first_row, end_row, size;
  std::vector<std::pair<int64_t, int64_t>> groups;  // of a raw page: blob pages whose rows it holds, and from where
};

}  // namespace

/// A file in the making: a part file and a temporary index beside it.
struct MindWriter::Shard {
  Shard(const std::string& path, const MindSchema& schema, const std::vector<std::string>& index, int64_t header_size,
        int64_t page_size)
      : path(path), header_size(header_size), page_size(page_size), part(path), index_part(path + ".db"),
        rows(index_part.part(), fs::path(path).filename(), schema, index) {
    if (part.part().empty()) fail(ErrorKind::io, path, "is no regular file");
    file = std::fopen(part.part().c_str(), "r+b");
    if (!file) fail(ErrorKind::io, path, "cannot be written: {}", reason(errno));
  }
  ~Shard() {
    if (file) std::fclose(file);
  }
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// {page, begin, end} of data with their length in front, written to the page of a kind that has room.
  std::array<int64_t, 3> put(bool blob, const std::string& data) {
    const auto size = static_cast<int64_t>(data.size()) + 8;
    if (size > page_size)
      fail(ErrorKind::invalid_argument, path,
           "a row of {} bytes does not fit into a page of {}; set_page_size() makes pages larger", size, page_size);
    Page* page = open[blob] < 0 ? nullptr : &pages[open[blob]];
    if (!page || page->size + size > page_size) {
      int64_t of_kind = 0;
      for (const Page& each : pages) of_kind += each.blob == blob;
      open[blob] = std::ssize(pages);
      pages.push_back({blob, std::ssize(pages), of_kind, blob ? count : 0, blob ? count : 0, 0, {}});
      page = &pages.back();
    }
    const int64_t begin = page->size;
    const uint64_t length = data.size();
    std::string bytes(raw_bytes(&length, 8));
    write_at(header_size + page->id * page_size + begin, bytes + data);
    page->size += size;
    if (blob) {
      page->end_row = count + 1;
    } else if (const int64_t group = pages[open[true]].of_kind;
               page->groups.empty() || page->groups.back().first != group) {
      page->groups.emplace_back(group, begin);
    }
    return {page->id, begin, page->size};
  }

  void write_at(int64_t place, std::string_view bytes) {
    if (std::fseek(file, place, SEEK_SET) != 0 || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size())
      fail(ErrorKind::io, path, "cannot be written: {}", reason(errno));
  }

  std::string path;
  int64_t header_size, page_size;
  PartFile part, index_part;
  Index rows;
  std::FILE* file = nullptr;
  std::vector<Page> pages;
  int64_t open[2] = {-1, -1};
  int64_t count = 0;
};

MindWriter::MindWriter(std::vector<std::string> files, MindSchema schema, std::vector<std::string> index,
                       int64_t header_size, int64_t page_size)
    : files_(std::move(files)), schema_(std::move(schema)), index_(std::move(index)) {
  check_schema(schema_);
  for (const std::string& field : index_) {
    auto column =
        std::find_if(schema_.begin(), schema_.end(), [&](const MindColumn& each) { return each.name == field; });
    const bool plain = std::all_of(field.begin(), field.end(),
                                   [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
    if (column == schema_.end() || column->blob() || !plain)
      fail(ErrorKind::invalid_argument, "", "index field '{}' {}", field,
           column == schema_.end() ? "is not in the schema"
           : plain                 ? "is a blob"
                                   : "has a name of more than letters, digits and _");
  }
  for (const std::string& file : files_)
    shards_.push_back(std::make_unique<Shard>(file, schema_, index_, header_size, page_size));
}

MindWriter::~MindWriter() = default;

void MindWriter::write(const Row& row) {
  if (row.size() != schema_.size())
    fail(ErrorKind::invalid_argument, "", "a row has {} columns, the schema {}", row.size(), schema_.size());
  MindJson plain = MindJson::object();
  std::map<std::string, std::string> sorted;  // the format has blobs by name
  for (size_t i = 0; i < row.size(); ++i) {
    if (schema_[i].blob())
      sorted[schema_[i].name] = blob_bytes(row[i], schema_[i]);
    else
      plain[schema_[i].name] = plain_json(row[i], schema_[i]);
  }
  std::vector<std::string> blobs;
  for (auto& [name, bytes] : sorted) blobs.push_back(std::move(bytes));
  std::string blob = blobs.size() == 1 ? blobs[0] : std::string(blobs.empty() ? 4 : 0, '\0');
  for (size_t i = 0; i < blobs.size() && blobs.size() > 1; ++i) {
    for (int shift = 56; shift >= 0; shift -= 8) blob += static_cast<char>(blobs[i].size() >> shift);
    blob += blobs[i];
  }
  std::string raw;
  try {
    MindJson::to_msgpack(plain, raw);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::invalid_argument, "", "a text is no UTF-8: {}", error.what());
  }
  Shard& shard = *shards_[next_ % shards_.size()];
  const auto [blob_page, blob_begin, blob_end] = shard.put(true, blob);
  const auto [raw_page, raw_begin, raw_end] = shard.put(false, raw);
  const int64_t group = shard.pages[shard.open[true]].of_kind;
  shard.rows.add({shard.count, raw_page, raw_begin, raw_end, group, blob_page, blob_begin, blob_end}, plain, index_);
  ++shard.count;
  ++next_;
}

void MindWriter::commit() {
  std::vector<std::string> names;
  for (const std::string& file : files_) names.push_back(fs::path(file).filename());
  std::vector<std::string> blobs;
  for (const MindColumn& column : schema_)
    if (column.blob()) blobs.push_back(column.name);
  std::sort(blobs.begin(), blobs.end());
  for (size_t number = 0; number < shards_.size(); ++number) {
    Shard& shard = *shards_[number];
    MindJson header;
    header["header_size"] = shard.header_size;
    header["page_size"] = shard.page_size;
    header["compression_size"] = 0;
    header["index_fields"] = MindJson::array();
    for (const std::string& field : index_)
      header["index_fields"].push_back({{"index_field", field}, {"schema_id", 0}});
    header["page"] = MindJson::array();
    for (const Page& page : shard.pages) {
      MindJson groups = MindJson::array();
      if (page.blob) groups.push_back({{"id", 0}, {"offset", 0}});
      for (auto [id, offset] : page.groups) groups.push_back({{"id", id}, {"offset", offset}});
      header["page"].push_back({{"page_id", page.id},
                                {"shard_id", number},
                                {"page_type", page.blob ? "BLOB_DATA" : "RAW_DATA"},
                                {"page_type_id", page.of_kind},
                                {"start_row_id", page.first_row},
                                {"end_row_id", page.end_row},
                                {"row_group_ids", groups},
                                {"page_size", page.size}});
    }
    header["schema"] = MindJson::array({MindJson{{"schema", json_of(schema_)}, {"blob_fields", blobs}, {"desc", ""}}});
    header["shard_addresses"] = names;
    header["shard_id"] = number;
    header["statistics"] = nullptr;
    header["version"] = "3.0";
    const std::string text = header.dump();
    if (std::ssize(text) + 8 > shard.header_size)
      fail(ErrorKind::invalid_argument, shard.path,
           "the header of {} bytes does not fit into {}; set_header_size() makes room", text.size(), shard.header_size);
    const uint64_t length = text.size();
    shard.write_at(0, std::string(raw_bytes(&length, 8)) + text);
    if (std::fflush(shard.file) != 0 || (shard.pages.empty() && ftruncate(fileno(shard.file), shard.header_size) != 0))
      fail(ErrorKind::io, shard.path, "cannot be written: {}", reason(errno));
    shard.rows.finish();
  }
  std::vector<PartFile*> files;
  for (auto& shard : shards_) files.insert(files.end(), {&shard->part, &shard->index_part});
  PartFile::commit_all(files);
}

MindSchema schema_of(const std::vector<std::string>& columns, const Row& row) {
  MindSchema schema;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Array& array = row[i];
    MindColumn column{columns[i], "", std::nullopt};
    switch (array.type.kind) {
      case Kind::text: column.type = "string"; break;
      case Kind::bytes: column.type = "bytes"; break;
      case Kind::f16:
      case Kind::f32: column.type = "float32"; break;
      case Kind::f64: column.type = "float64"; break;
      case Kind::i64:
      case Kind::u32:
      case Kind::u64: column.type = "int64"; break;
      case Kind::u8: column.type = array.shape.size() == 1 ? "bytes" : "int32"; break;
      default: column.type = "int32";
    }
    if (!array.shape.empty() && column.type != "bytes") {
      if (column.type == "string")
        fail(ErrorKind::unsupported, "", "column '{}' holds several texts in a row", columns[i]);
      column.shape = array.shape;
    }
    schema.push_back(std::move(column));
  }
  return schema;
}

}  // namespace cairn::data
