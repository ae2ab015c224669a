#include "data/mindrecord.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "data/mindrecord_schema.h"
#include "support/files.h"
#include "support/part_file.h"

namespace cairn::data {

namespace fs = std::filesystem;

Kind number_kind(const std::string& type) {
  return type == "int32" ? Kind::i32 : type == "int64" ? Kind::i64 : type == "float32" ? Kind::f32 : Kind::f64;
}

void check_schema(const MindSchema& schema) {
  if (schema.empty() || schema.size() > 100)
    fail(ErrorKind::invalid_argument, "", "a schema has 1 to 100 columns, found {}", schema.size());
  for (const MindColumn& column : schema) {
    constexpr std::string_view kTypes[] = {"int32", "int64", "float32", "float64", "string", "bytes"};
    const auto known = std::find(std::begin(kTypes), std::end(kTypes), column.type);
    if (column.name.empty() || known == std::end(kTypes))
      fail(ErrorKind::invalid_argument, "", "column '{}' must have a type of [{}], but got '{}'", column.name,
           fmt::join(kTypes, ", "), column.type);
    if (!column.shape) continue;
    if (*known == "string" || *known == "bytes" || std::count(column.shape->begin(), column.shape->end(), -1) > 1)
      fail(ErrorKind::invalid_argument, "",
           "column '{}': a shape is a list of sizes, of which one may be -1, of a column of numbers, but got {} {}",
           column.name, column.type, text_of(*column.shape));
    int64_t count = 1;
    for (int64_t size : *column.shape) {
      if (size < -1 || size > INT32_MAX || (count *= std::max<int64_t>(size, 1)) > int64_t{1} << 32)
        fail(ErrorKind::invalid_argument, "", "column '{}' has the shape {}", column.name, text_of(*column.shape));
    }
  }
}

MindSchema schema_of_json(const MindJson& json) {
  MindSchema schema;
  for (const auto& [name, told] : json.items()) {
    MindColumn column{name, told.at("type").get<std::string>(), std::nullopt};
    if (told.contains("shape")) column.shape = told.at("shape").get<Shape>();
    schema.push_back(std::move(column));
  }
  check_schema(schema);
  return schema;
}

MindJson json_of(const MindSchema& schema) {
  MindJson json = MindJson::object();
  for (const MindColumn& column : schema) {
    json[column.name]["type"] = column.type;
    if (column.shape) json[column.name]["shape"] = *column.shape;
  }
  return json;
}

namespace {

/// Where a row lies: offsets within pages.
struct MindPlace {
  int64_t raw_page, raw_begin, raw_end, blob_page, blob_begin, blob_end;
};

/// A row's numbers and texts. Anything nested in them ends the reading, which recurses.
nlohmann::json plain_row(std::string_view bytes) {
  struct Flat : nlohmann::detail::json_sax_dom_parser<nlohmann::json> {
    using Base = nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
    using Base::Base;
    bool start_object(size_t size) { return !std::exchange(inside, true) && Base::start_object(size); }
    bool start_array(size_t) { return false; }
    bool inside = false;
  };
  nlohmann::json row;
  Flat flat(row);
  if (!nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &flat, nlohmann::json::input_format_t::msgpack))
    fail(ErrorKind::io, "", "is damaged: a row's values are no numbers and texts");
  return row;
}

/// A file as it is opened; its index is read whole.
struct MindFile {
  std::string path;
  std::shared_ptr<const MappedFile> file;
  int64_t header_size = 0, page_size = 0;
  MindSchema schema;
  std::vector<std::string> blobs, shards;
  std::vector<MindPlace> rows;

  explicit MindFile(const std::string& path, bool with_rows = true) : path(path) {
    try {
      complete_renames(path);
      read_header();
      if (with_rows) read_index();
    } catch (const nlohmann::json::exception& error) {
      fail(ErrorKind::io, path, "is no MindRecord file, or damaged: {}", error.what());
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::not_found) fail(error.kind(), path, "there is no such MindRecord file");
      if (!error.where().empty()) throw;
      fail(ErrorKind::io, path, "is no MindRecord file, or damaged: {}", error.message());
    }
  }

  std::string_view bytes(int64_t page, int64_t begin, int64_t end) const {
    const std::string_view all = file->bytes();
    const auto size = static_cast<int64_t>(all.size());
    if (page < 0 || page > size / page_size || begin < 0 || end - begin < 8 || end > page_size ||
        header_size + page * page_size > size - end)
      fail(ErrorKind::io, "", "ends inside the row, or its index is damaged");
    const std::string_view found = all.substr(header_size + page * page_size + begin, end - begin);
    uint64_t length = 0;
    std::memcpy(&length, found.data(), 8);
    if (length != found.size() - 8) fail(ErrorKind::io, "", "is damaged: the row's length is not the index's");
    return found.substr(8);
  }

 private:
  void read_header() {
    file = MappedFile::open(path);
    const std::string_view all = file->bytes();
    uint64_t length = 0;
    if (all.size() >= 8) std::memcpy(&length, all.data(), 8);
    if (length == 0 || length > (1 << 27) || length > all.size() - 8)
      fail(ErrorKind::io, "", "has a header of {} bytes", length);
    const MindJson header = MindJson::parse(all.substr(8, length));
    const std::string version = header.at("version");
    if (version != "2.0" && version != "3.0")
      fail(ErrorKind::io, "", "is of version {}, 2.0 and 3.0 are read", version);
    auto number = [&](const char* name) {
      const MindJson& value = header.at(name);
      return value.is_string() ? std::strtoll(value.get<std::string>().c_str(), nullptr, 10) : value.get<int64_t>();
    };
    header_size = number("header_size");
    page_size = number("page_size");
    if (header_size < 1 || header_size > INT32_MAX || page_size < 1 || page_size > INT32_MAX)
      fail(ErrorKind::io, "", "has a header of {} bytes and pages of {}", header_size, page_size);
    const MindJson& first = header.at("schema").at(0);
    schema = schema_of_json(first.at("schema"));
    if (first.contains("blob_fields")) blobs = first.at("blob_fields").get<std::vector<std::string>>();
    for (const std::string& blob : blobs) column(blob);
    for (const auto& each : header.at("shard_addresses"))
      shards.push_back(fs::path(each.get<std::string>()).filename());
    if (shards.empty() || shards.size() > 4096) fail(ErrorKind::io, "", "names {} files", shards.size());
  }

  void read_index() {
    const std::string index = path + ".db";
    if (!fs::exists(index))
      fail(ErrorKind::not_found, path, "its index {} is missing; both belong together and cannot be renamed",
           fs::path(index).filename().string());
    sqlite3* opened = nullptr;
    const int result = sqlite3_open_v2(index.c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
    std::unique_ptr<sqlite3, decltype(&sqlite3_close)> base(opened, sqlite3_close);
    // A damaged index may define INDEXES as a query without end: the work is bounded by the file's size.
    int64_t left = 20 + static_cast<int64_t>(fs::file_size(index)) / 10'000;
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 1 << 20);
    sqlite3_progress_handler(
        opened, 1'000'000, [](void* left) { return int{--*static_cast<int64_t*>(left) < 0}; }, &left);
    sqlite3_stmt* prepared = nullptr;
    if (result != SQLITE_OK ||
        sqlite3_prepare_v2(opened,
                           "SELECT PAGE_ID_RAW, PAGE_OFFSET_RAW, PAGE_OFFSET_RAW_END, PAGE_ID_BLOB, PAGE_OFFSET_BLOB, "
                           "PAGE_OFFSET_BLOB_END FROM INDEXES ORDER BY ROW_ID",
                           -1, &prepared, nullptr) != SQLITE_OK)
      fail(ErrorKind::io, "", "its index cannot be read: {}", sqlite3_errmsg(opened));
    std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> rows_of(prepared, sqlite3_finalize);
    int step = 0;
    while ((step = sqlite3_step(prepared)) == SQLITE_ROW) {
      int64_t values[6];
      for (int i = 0; i < 6; ++i) values[i] = sqlite3_column_int64(prepared, i);
      rows.push_back({values[0], values[1], values[2], values[3], values[4], values[5]});
    }
    if (step != SQLITE_DONE) fail(ErrorKind::io, "", "its index cannot be read: {}", sqlite3_errmsg(opened));
  }

 public:
  const MindColumn& column(const std::string& name) const {
    for (const MindColumn& column : schema)
      if (column.name == name) return column;
    fail(ErrorKind::io, "", "names a blob '{}' that is not in its schema", name);
  }
};

Array widened(std::string_view data, Kind kind) {
  if (data.size() < 4) fail(ErrorKind::io, "", "is damaged: integers end early");
  size_t count = 0;
  for (int i = 0; i < 4; ++i) count = count << 8 | static_cast<uint8_t>(data[i]);
  const size_t begin = 4 + (count + 3) / 4;
  if (begin > data.size()) fail(ErrorKind::io, "", "is damaged: integers are longer than their blob");
  Array made = Array::make(kind, {static_cast<int64_t>(count)});
  size_t place = begin;
  for (size_t i = 0; i < count; ++i) {
    const int code = static_cast<uint8_t>(data[4 + i / 4]) >> (6 - 2 * (i % 4)) & 3, width = kMindWidths[code];
    if (data.size() - place < static_cast<size_t>(width))
      fail(ErrorKind::io, "", "is damaged: integers are longer than their blob");
    uint64_t bits = 0;
    std::memcpy(&bits, data.data() + place, static_cast<size_t>(width));
    const auto value = static_cast<int64_t>(bits << (64 - 8 * width)) >> (64 - 8 * width);
    if (kind == Kind::i32)
      made.write<int32_t>()[i] = static_cast<int32_t>(value);
    else
      made.write<int64_t>()[i] = value;
    place += static_cast<size_t>(width);
  }
  if (place != data.size()) fail(ErrorKind::io, "", "is damaged: integers do not fill their blob");
  return made;
}

/// The value of a blob; bytes stay where they are mapped.
Array blob_value(std::string_view data, const MindColumn& column, const std::shared_ptr<const MappedFile>& file) {
  if (column.type == "bytes")
    return {{Kind::u8, 1}, {std::ssize(data)}, file, reinterpret_cast<const std::byte*>(data.data()), false};
  const Kind kind = number_kind(column.type);
  Array made;
  if (kind == Kind::i32 || kind == Kind::i64) {
    made = widened(data, kind);
  } else {
    const uint32_t size = type_of(kind).size;
    if (data.size() % size != 0) fail(ErrorKind::io, "", "is damaged: {} bytes are no {}", data.size(), column.type);
    made = Array::make(kind, {static_cast<int64_t>(data.size() / size)});
    std::memcpy(made.bytes(), data.data(), data.size());
  }
  Shape shape = column.shape.value_or(made.shape);
  int64_t known = 1;
  for (int64_t size : shape) known *= size < 0 ? 1 : size;
  for (int64_t& size : shape)
    if (size < 0) size = known > 0 ? made.count() / known : 0;
  const int64_t count = made.count();
  made.shape = shape;
  if (made.count() != count)
    fail(ErrorKind::io, "", "is damaged: column '{}' has {} elements, but its shape is {}", column.name, count,
         text_of(*column.shape));
  return made;
}

Array plain_value(const nlohmann::json& value, const MindColumn& column) {
  if (column.type == "string") return Array::of_text(value.get_ref<const std::string&>());
  if (!value.is_number()) fail(ErrorKind::io, "", "is damaged: column '{}' holds no number", column.name);
  switch (number_kind(column.type)) {
    case Kind::i32: return Array::scalar(Kind::i32, static_cast<int32_t>(value.get<int64_t>()));
    case Kind::i64: return Array::scalar(Kind::i64, value.get<int64_t>());
    case Kind::f32: return Array::scalar(Kind::f32, value.get<float>());
    default: return Array::scalar(Kind::f64, value.get<double>());
  }
}

class MindSource : public Source {
 public:
  MindSource(std::vector<std::unique_ptr<MindFile>> files, std::vector<std::string> columns, SamplerPtr sampler,
             std::string where)
      : Source("mindrecord", std::move(columns), std::move(sampler), std::move(where)), files_(std::move(files)) {
    for (const auto& file : files_) {
      first_.push_back(count_);
      count_ += std::ssize(file->rows);
    }
  }
  int64_t count() const override { return count_; }
  std::string origin(int64_t index) const override {
    const auto [file, row] = place(index);
    return fmt::format("{}, row {}", file->path, row);
  }
  Row read(int64_t index) const override {
    const auto [file, row] = place(index);
    const MindPlace& at = file->rows[row];
    nlohmann::json plain;
    std::vector<std::string_view> blobs;
    Row made;
    try {
      for (const std::string& name : columns) {
        const MindColumn& column = file->column(name);
        const auto blob = std::find(file->blobs.begin(), file->blobs.end(), name);
        if (blob != file->blobs.end()) {
          if (blobs.empty()) blobs = split(file->bytes(at.blob_page, at.blob_begin, at.blob_end), file->blobs.size());
          made.push_back(blob_value(blobs[blob - file->blobs.begin()], column, file->file));
          continue;
        }
        if (plain.is_null()) {
          const std::string_view raw = file->bytes(at.raw_page, at.raw_begin, at.raw_end);
          plain = plain_row(raw);
        }
        made.push_back(plain_value(plain.at(name), column));
      }
    } catch (const nlohmann::json::exception& error) {
      fail(ErrorKind::io, "", "is damaged: {}", error.what());
    }
    return made;
  }

 private:
  static std::vector<std::string_view> split(std::string_view data, size_t count) {
    if (count == 1) return {data};
    std::vector<std::string_view> parts;
    while (parts.size() < count) {
      uint64_t length = 0;
      for (size_t i = 0; i < 8 && data.size() >= 8; ++i) length = length << 8 | static_cast<uint8_t>(data[i]);
      if (data.size() < 8 || length > data.size() - 8)
        fail(ErrorKind::io, "", "is damaged: a blob is longer than its row");
      parts.push_back(data.substr(8, length));
      data.remove_prefix(8 + length);
    }
    return parts;
  }
  std::pair<const MindFile*, size_t> place(int64_t index) const {
    const auto part = std::upper_bound(first_.begin(), first_.end(), index) - first_.begin() - 1;
    return {files_[part].get(), static_cast<size_t>(index - first_[part])};
  }

  std::vector<std::unique_ptr<MindFile>> files_;
  std::vector<int64_t> first_;
  int64_t count_ = 0;
};

}  // namespace

std::vector<std::string> mindrecord_shards(const std::string& path) {
  std::vector<std::string> shards = MindFile(path, false).shards;
  if (complete_renames(fs::path(path).parent_path() / shards[0])) shards = MindFile(path, false).shards;
  if (std::find(shards.begin(), shards.end(), fs::path(path).filename()) == shards.end())
    fail(ErrorKind::io, path, "is called [{}] in its header; MindRecord files cannot be renamed",
         fmt::join(shards, ", "));
  std::vector<std::string> files;
  for (const std::string& shard : shards) files.push_back(fs::path(path).parent_path() / shard);
  return files;
}

MindSchema mindrecord_schema(const std::string& path) { return MindFile(path, false).schema; }

std::shared_ptr<const Source> mindrecord(const std::vector<std::string>& files, std::vector<std::string> columns,
                                         SamplerPtr sampler, std::string where) {
  if (files.empty()) fail(ErrorKind::invalid_argument, where, "no MindRecord file is given");
  std::vector<std::unique_ptr<MindFile>> opened;
  for (const std::string& file : files) opened.push_back(std::make_unique<MindFile>(file));
  std::vector<std::string> have;
  for (const MindColumn& column : opened[0]->schema) have.push_back(column.name);
  if (columns.empty()) columns = have;
  for (const std::string& name : columns)
    if (std::find(have.begin(), have.end(), name) == have.end())
      fail(ErrorKind::invalid_argument, where, "Invalid column, '{}' is not in {}, which has [{}]", name, files[0],
           fmt::join(have, ", "));
  for (const auto& file : opened)
    if (json_of(file->schema) != json_of(opened[0]->schema))
      fail(ErrorKind::invalid_argument, file->path, "has another schema than {}", files[0]);
  return std::make_shared<MindSource>(std::move(opened), std::move(columns), std::move(sampler), std::move(where));
}

}  // namespace cairn::data
