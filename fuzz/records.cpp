// Files of rows: TFRecord, MindRecord beside a sound index and an index beside sound rows, CSV, text and pickles.
#include <fstream>

#include "answers.h"
#include "data/mindrecord.h"
#include "data/tfrecord.h"

using namespace cairn;

namespace {

/// Reads as many rows as there are, but no more than a second takes.
void read_all(const data::Source& source) {
  for (int64_t i = 0; i < std::min<int64_t>(source.count(), 100); ++i) fuzz::expect_answer([&] { source.read(i); });
}

/// A file of three rows and its index, as tests/python/test_data.py has it.
std::string write_sound(const std::string& path) {
  const data::MindSchema schema = {
      {"x", "int32", data::Shape{-1}}, {"y", "string", std::nullopt}, {"z", "bytes", std::nullopt}};
  data::MindWriter writer({path}, schema, {}, 1 << 14, 1 << 15);
  for (int i = 0; i < 3; ++i) {
    data::Array numbers = data::Array::make(data::Kind::i64, {9});
    for (int64_t k = 0; k < 9; ++k) numbers.write<int64_t>()[k] = k * 999;
    data::Array bytes = data::Array::make(data::Kind::u8, {5});
    std::memcpy(bytes.bytes(), "bytes", 5);
    writer.write({numbers, data::Array::of_text("text"), bytes});
  }
  writer.commit();
  return path;
}

void read_mindrecord(const std::string& path) {
  fuzz::expect_answer(
      [&] { read_all(*data::mindrecord(data::mindrecord_shards(path), {}, data::sequential_sampler(0, 0), "")); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string rows = write_sound(fuzz::folder() + "/rows"), other = write_sound(fuzz::folder() + "/index");
  const std::string_view bytes = fuzz::text_of(data, size);
  std::ofstream(rows, std::ios::binary) << bytes;
  read_mindrecord(rows);
  std::ofstream(other + ".db", std::ios::binary) << bytes;
  read_mindrecord(other);
  const auto sampler = data::sequential_sampler(0, 0);
  fuzz::expect_answer([&] { read_all(*data::tfrecord({rows}, {}, sampler, "")); });
  fuzz::expect_answer([&] {
    read_all(dynamic_cast<const data::Source&>(*data::cifar({rows}, 1, {"image", "label"}, sampler, "")));
  });
  fuzz::expect_answer([&] {
    const std::vector<std::string> names = data::csv_header(rows, ',');
    std::vector<data::CsvColumn> columns;
    for (const std::string& name : names) columns.push_back({name, data::Kind::f32, "0"});
    const data::NodePtr node = data::csv_files({rows}, ',', columns, true, sampler, "");
    read_all(dynamic_cast<const data::Source&>(*node));
  });
  return 0;
}
