#include "data/tfrecord.h"

#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "data/transforms.h"
#include "support/crc32c.h"
#include "support/files.h"
#include "support/part_file.h"
#include "support/utf8.h"

namespace cairn::data {

namespace {

using protozero::pbf_reader;

uint64_t little(std::string_view bytes, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), size);
  return value;
}

struct Record {
  uint32_t file;
  uint64_t begin, size;
};

using Wire = protozero::pbf_wire_type;

/// The reader's field, which must be written so: protozero takes that for granted.
pbf_reader& checked(pbf_reader& reader, Wire wire = Wire::length_delimited) {
  if (reader.wire_type() != wire) fail(ErrorKind::io, "", "is no tf.train.Example: a field is of another kind");
  return reader;
}

/// The value of one feature, as it is written.
struct Value {
  int list = 0;  // 1 bytes, 2 floats, 3 integers
  std::vector<std::string_view> texts;
  std::vector<float> floats;
  std::vector<int64_t> integers;
};

Value value_of(pbf_reader feature) {
  Value value;
  while (feature.next()) {
    value.list = static_cast<int>(feature.tag());
    pbf_reader list = checked(feature).get_message();
    while (list.next()) {
      if (list.tag() != 1) {
        list.skip();
      } else if (value.list == 1) {
        const auto view = checked(list).get_view();
        value.texts.emplace_back(view.data(), view.size());
      } else if (value.list == 2) {
        if (list.wire_type() == Wire::length_delimited)
          for (float each : list.get_packed_float()) value.floats.push_back(each);
        else
          value.floats.push_back(checked(list, Wire::fixed32).get_float());
      } else if (list.wire_type() == Wire::length_delimited) {
        for (int64_t each : list.get_packed_int64()) value.integers.push_back(each);
      } else {
        value.integers.push_back(checked(list, Wire::varint).get_int64());
      }
    }
  }
  return value;
}

/// The features of an example, by name.
std::map<std::string_view, pbf_reader> features_of(std::string_view record) {
  std::map<std::string_view, pbf_reader> features;
  pbf_reader example(record.data(), record.size());
  while (example.next(1)) {
    pbf_reader all = checked(example).get_message();
    while (all.next(1)) {
      pbf_reader entry = checked(all).get_message();
      std::string_view name;
      pbf_reader value;
      while (entry.next()) {
        if (entry.tag() == 1) {
          const auto view = checked(entry).get_view();
          name = {view.data(), view.size()};
        } else if (entry.tag() == 2) {
          value = checked(entry).get_message();
        } else {
          entry.skip();
        }
      }
      features[name] = value;
    }
  }
  return features;
}

Array plain_array(const Value& value) {
  if (value.list == 2) {
    Array made = Array::make(Kind::f32, {std::ssize(value.floats)});
    std::copy(value.floats.begin(), value.floats.end(), made.write<float>());
    return made;
  }
  if (value.list != 1) {
    Array made = Array::make(Kind::i64, {std::ssize(value.integers)});
    std::copy(value.integers.begin(), value.integers.end(), made.write<int64_t>());
    return made;
  }
  size_t width = 1;
  for (std::string_view text : value.texts) width = std::max(width, text.size());
  if (width > UINT32_MAX || width * value.texts.size() > size_t{1} << 32)
    fail(ErrorKind::io, "", "{} texts of up to {} bytes are too many for one row", value.texts.size(), width);
  Array made = Array::make(Type{Kind::bytes, static_cast<uint32_t>(width)}, {std::ssize(value.texts)});
  std::memset(made.bytes(), 0, made.size());
  for (size_t i = 0; i < value.texts.size(); ++i)
    std::memcpy(made.bytes() + i * width, value.texts[i].data(), value.texts[i].size());
  return made;
}

Array bytes_array(std::string_view bytes) {
  Array made = Array::make(Kind::u8, {std::ssize(bytes)});
  std::memcpy(made.bytes(), bytes.data(), bytes.size());
  return made;
}

void reshape(Array& array, const Shape& shape, const std::string& name) {
  Shape wanted = shape;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < 0)
      open = static_cast<int64_t>(i);
    else
      known *= wanted[i];
  }
  if (open >= 0 && known > 0 && array.count() % known == 0) wanted[open] = array.count() / known;
  Array like = array;
  like.shape = wanted;
  if ((open >= 0 && wanted[open] < 0) || like.count() != array.count())
    fail(ErrorKind::io, "", "column '{}' has {} elements, but its shape is {}", name, array.count(), text_of(shape));
  array.shape = std::move(wanted);
}

class Tfrecord : public Source {
 public:
  Tfrecord(std::vector<std::string> paths, std::vector<std::shared_ptr<const MappedFile>> mapped,
           std::vector<std::string_view> files, std::vector<std::shared_ptr<const std::string>> unpacked,
           std::vector<Record> records, std::vector<Feature> features, std::vector<std::string> columns,
           SamplerPtr sampler, std::string where)
      : Source("tfrecord", std::move(columns), std::move(sampler), std::move(where)), paths_(std::move(paths)),
        mapped_(std::move(mapped)), files_(std::move(files)), unpacked_(std::move(unpacked)),
        records_(std::move(records)), features_(std::move(features)) {}

  int64_t count() const override { return std::ssize(records_); }
  Row read(int64_t index) const override {
    const Record& record = records_[index];
    const std::string_view bytes = files_[record.file].substr(record.begin, record.size);
    const auto stored = static_cast<uint32_t>(little(files_[record.file].substr(record.begin + record.size), 4));
    if (stored != 0 && unmask_crc32c(stored) != crc32c(bytes))
      fail(ErrorKind::io, "", "is damaged: its checksum differs");
    try {
      auto found = features_of(bytes);
      Row row;
      for (const Feature& feature : features_) {
        auto value = found.find(feature.name);
        if (value == found.end())
          fail(ErrorKind::io, "", "Invalid data, no column '{}' in an example, which has [{}]", feature.name,
               names(found));
        row.push_back(array(value_of(value->second), feature));
      }
      return row;
    } catch (const protozero::exception& error) {
      fail(ErrorKind::io, "", "is no tf.train.Example: {}", error.what());
    }
  }
  std::string origin(int64_t index) const override {
    const uint32_t file = records_[index].file;
    const auto first =
        std::partition_point(records_.begin(), records_.end(), [&](const Record& r) { return r.file < file; });
    return fmt::format("{}, row {}", paths_[file], index - (first - records_.begin()));
  }

  static std::string names(const std::map<std::string_view, pbf_reader>& features) {
    std::vector<std::string> names;
    for (const auto& [name, value] : features) names.push_back(printable(name));
    return fmt::format("{}", fmt::join(names, ", "));
  }

 private:
  static Array array(const Value& value, const Feature& told) {
    Array made;
    const bool number = told.kind && !type_of(*told.kind).is_text();
    if (value.list == 1 && number) {
      if (value.texts.size() != 1)
        fail(ErrorKind::io, "", "column '{}' holds {} texts, expected 1", told.name, value.texts.size());
      made = bytes_array(value.texts[0]);
    } else {
      made = plain_array(value);
      if (number && made.type.kind != *told.kind) made = cast(made, *told.kind);
    }
    if (told.shape) reshape(made, *told.shape, told.name);
    return made;
  }

  std::vector<std::string> paths_;
  std::vector<std::shared_ptr<const MappedFile>> mapped_;
  std::vector<std::string_view> files_;
  std::vector<std::shared_ptr<const std::string>> unpacked_;
  std::vector<Record> records_;
  std::vector<Feature> features_;
};

void find_records(std::string_view bytes, uint32_t file, const std::string& path, std::vector<Record>& records) {
  for (uint64_t place = 0; place < bytes.size();) {
    if (bytes.size() - place < 16) fail(ErrorKind::io, path, "Invalid file, it ends inside a record");
    const uint64_t length = little(bytes.substr(place), 8);
    const auto stored = static_cast<uint32_t>(little(bytes.substr(place + 8), 4));
    if (stored != 0 && unmask_crc32c(stored) != crc32c(bytes.substr(place, 8)))
      fail(ErrorKind::io, path, "Invalid file, the record at byte {} is damaged: the checksum of its length differs",
           place);
    if (length > bytes.size() - place - 16)
      fail(ErrorKind::io, path, "Invalid file, the record at byte {} is longer than the file", place);
    records.push_back({file, place + 12, length});
    place += 16 + length;
  }
}

bool is_packed(
    std::string_view bytes) {  // gzip, or zlib: no record of a plain file begins with a length of these bytes
  if (bytes.starts_with("\x1f\x8b\x08")) return true;
  if (bytes.size() < 2 || bytes[0] != 0x78 ||
      (static_cast<uint8_t>(bytes[0]) * 256 + static_cast<uint8_t>(bytes[1])) % 31)
    return false;
  return bytes.size() < 16 || little(bytes, 8) > bytes.size() - 16;
}

}  // namespace

std::shared_ptr<const Source> tfrecord(const std::vector<std::string>& paths, std::vector<Feature> features,
                                       SamplerPtr sampler, std::string where) {
  std::vector<std::shared_ptr<const MappedFile>> mapped;
  std::vector<std::string_view> files;
  std::vector<std::shared_ptr<const std::string>> unpacked_files;
  std::vector<Record> records;
  for (const std::string& path : paths) {
    mapped.push_back(MappedFile::open(path));
    std::string_view bytes = mapped.back()->bytes();
    if (is_packed(bytes)) bytes = *unpacked_files.emplace_back(unpacked(bytes, path));
    files.push_back(bytes);
    find_records(bytes, static_cast<uint32_t>(files.size() - 1), path, records);
  }
  if (features.empty()) {
    if (records.empty())
      fail(ErrorKind::io, paths.at(0), "Invalid file, it holds no example that would tell the columns");
    try {
      for (const auto& [name, value] : features_of(files[records[0].file].substr(records[0].begin, records[0].size)))
        features.push_back({std::string(name), std::nullopt, std::nullopt});
    } catch (const protozero::exception& error) {
      fail(ErrorKind::io, paths.at(0), "row 0 is no tf.train.Example: {}", error.what());
    } catch (const Error& error) {
      fail(error.kind(), paths.at(0), "row 0 {}", error.message());
    }
  }
  std::vector<std::string> columns;
  for (const Feature& feature : features) {
    for (std::string_view rest = feature.name; !rest.empty(); rest.remove_prefix(utf8_size(rest)))
      if (utf8_size(rest) == 0)
        fail(ErrorKind::io, paths.at(0), "row 0 has a column '{}', which is no UTF-8", printable(feature.name));
    columns.push_back(feature.name);
  }
  return std::make_shared<Tfrecord>(paths, std::move(mapped), std::move(files), std::move(unpacked_files),
                                    std::move(records), std::move(features), std::move(columns), std::move(sampler),
                                    std::move(where));
}

struct TfrecordWriter::File {
  explicit File(const std::string& path) : part(path) {}
  PartFile part;
};

TfrecordWriter::TfrecordWriter(const std::string& path) : file_(std::make_unique<File>(path)) {}
TfrecordWriter::~TfrecordWriter() = default;
void TfrecordWriter::commit() { file_->part.commit(); }

void TfrecordWriter::write(std::string_view record) {
  auto masked = [](uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; };
  std::string bytes(12, '\0');
  const uint64_t size = record.size();
  std::memcpy(bytes.data(), &size, 8);
  const uint32_t of_size = masked(crc32c(std::string_view(bytes).substr(0, 8))), of_record = masked(crc32c(record));
  std::memcpy(bytes.data() + 8, &of_size, 4);
  bytes.append(record).append(reinterpret_cast<const char*>(&of_record), 4);
  file_->part.write(bytes);
}

void TfrecordWriter::write(const std::vector<std::string>& columns, const Row& row) {
  std::string features;
  protozero::pbf_writer all(features);
  for (size_t i = 0; i < columns.size(); ++i) {
    const Array& array = row[i];
    std::string list, feature, entry;
    protozero::pbf_writer values(list);
    int number = 3;
    if (array.type.is_text()) {
      number = 1;
      for (int64_t k = 0; k < array.count(); ++k) {
        const std::string_view text = array.view().substr(k * array.type.size, array.type.size);
        values.add_bytes(1, std::string(text.substr(0, text.find_last_not_of('\0') + 1)));
      }
    } else if (array.type.kind == Kind::f32 || array.type.kind == Kind::f64) {
      number = 2;
      const Array floats = cast(array, Kind::f32);
      values.add_packed_float(1, floats.as<float>(), floats.as<float>() + floats.count());
    } else if (array.type.kind == Kind::u8) {
      number = 1;
      values.add_bytes(1, std::string(array.view()));
    } else {
      const Array integers = cast(array, Kind::i64);
      values.add_packed_int64(1, integers.as<int64_t>(), integers.as<int64_t>() + integers.count());
    }
    protozero::pbf_writer(feature).add_message(static_cast<uint32_t>(number), list);
    protozero::pbf_writer fields(entry);
    fields.add_string(1, columns[i]);
    fields.add_message(2, feature);
    all.add_message(1, entry);
  }
  std::string example;
  protozero::pbf_writer(example).add_message(1, features);
  write(example);
}

}  // namespace cairn::data
