// cairn data: what a data set holds, and data sets as files of another kind.
#include "data/opened.h"

#include <algorithm>
#include <filesystem>

#include "data/images/images.h"
#include "data_page.h"
#include "formats/page.h"
#include "support/executor.h"
#include "support/files.h"
#include "support/stop.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

namespace cd = cairn::data;

struct DataVerb {
  std::string path, from, html, output, to;
  std::vector<std::string> index;
  int rows = 8, shards = 1, workers = 0;
  bool json = false, shuffled = false;
};

constexpr int64_t kMostCounted = 200000;    // rows whose labels are counted,
constexpr uint64_t kMostRead = 2000000000;  // and bytes that are read for it
constexpr size_t kMostPicture = 4 << 20;    // bytes of a picture in the page

bool is_pixels(const cd::Array& array) {
  if (array.type.kind != cd::Kind::u8 || array.shape.size() < 2 || array.shape.size() > 3) return false;
  const int64_t channels = array.shape.size() == 2 ? 1 : array.shape[2];
  return array.count() > 0 && (channels == 1 || channels == 3 || channels == 4);
}

const char* picture_type(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff")) return "jpeg";
  if (bytes.starts_with("\x89PNG")) return "png";
  return bytes.starts_with("BM") && bytes.size() > 54 ? "bmp" : nullptr;
}

bool may_be_file(const cd::Array& array) {
  return array.type.kind == cd::Kind::bytes ? array.count() == 1
                                            : array.type.kind == cd::Kind::u8 && array.shape.size() == 1;
}

/// A value at a glance: "JPEG, 375 x 500", "3", "[0.5, 1, ...]".
std::string glance(const cd::Array& array) {
  if (may_be_file(array) && picture_type(array.view())) {
    std::string type = picture_type(array.view());
    std::transform(type.begin(), type.end(), type.begin(), [](char c) { return std::toupper(c); });
    try {
      const auto [height, width] = cd::image_size(array.view());
      return fmt::format("{}, {} x {} pixels", type, height, width);
    } catch (const Error&) {
      return type + ", damaged";
    }
  }
  if (is_pixels(array)) return fmt::format("{} x {} pixels", array.shape[0], array.shape[1]);
  if (array.type.is_text() && array.count() == 1) {
    const std::string_view text = array.view();
    std::string shown = printable(text.substr(0, text.find_last_not_of('\0') + 1));
    return shown.size() > 60 ? shown.substr(0, 57) + "..." : shown;
  }
  std::vector<std::string> values;
  cd::with_number(array.type.kind, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < std::min<int64_t>(array.count(), 6); ++i) {
      if constexpr (std::is_floating_point_v<T>)
        values.push_back(fmt::format("{:.4g}", array.as<T>()[i]));
      else
        values.push_back(fmt::format("{}", static_cast<int64_t>(array.as<T>()[i])));
    }
  });
  if (array.shape.empty() && !values.empty()) return values[0];
  return fmt::format("[{}{}]", fmt::join(values, ", "), array.count() > 6 ? ", ..." : "");
}

std::string base64(std::string_view bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? kLetters[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::optional<std::string> picture(const cd::Array& array) {
  if (is_pixels(array)) return "data:image/png;base64," + base64(cd::encode_png(array));
  if (!may_be_file(array) || !picture_type(array.view()) || array.size() > kMostPicture) return std::nullopt;
  return fmt::format("data:image/{};base64,{}", picture_type(array.view()), base64(array.view()));
}

struct Row {
  int64_t number;
  cd::Row values;
};

/// The first rows, or as many in an order of its own.
std::vector<Row> sample(const cd::OpenedData& data, const DataVerb& verb) {
  std::vector<Row> rows;
  const int64_t count = data.source->count(), wanted = std::min<int64_t>(count, verb.rows);
  cd::Sampling sampling{data.source.get(), 0, 0, cd::Random{0}};
  const auto sampler = verb.shuffled ? cd::random_sampler(false, wanted) : cd::sequential_sampler(0, wanted);
  for (int64_t number : wanted ? sampler->rows(count, sampling) : std::vector<int64_t>())
    rows.push_back({number, data.source->read_checked(number)});
  return rows;
}

/// [{name, rows}] of the column that holds labels, where there is one.
Json label_counts(const cd::OpenedData& data, uint64_t bytes) {
  Json counts = Json::array();
  const std::vector<std::string>& columns = data.source->columns;
  auto label = std::find_if(columns.begin(), columns.end(),
                            [](const std::string& name) { return name == "label" || name == "fine_label"; });
  if (label == columns.end() || data.source->count() > kMostCounted) return counts;
  if (bytes > kMostRead && data.kind != "images") return counts;  // whose labels are known without reading
  std::map<int64_t, int64_t> found;
  try {
    for (int64_t each : data.source->labels(*label)) ++found[each];
  } catch (const Error&) {  // vectors or texts, which are no classes; damaged rows are told where they are read
    return counts;
  }
  for (auto [number, rows] : found) {
    const bool named = number >= 0 && number < std::ssize(data.classes);
    counts.push_back(
        {{"name", named ? data.classes[static_cast<size_t>(number)] : std::to_string(number)}, {"rows", rows}});
  }
  return counts;
}

uint64_t bytes_of(const cd::OpenedData& data) {
  uint64_t bytes = 0;
  for (const std::string& file : data.files) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(file, error);
    bytes += error ? 0 : size;
  }
  return bytes;
}

Json column_of(const std::string& name, const cd::Array* first) {
  Json column = {{"name", name}};
  if (!first) return column;
  const cd::Kind kind = first->type.kind;
  column["type"] = kind == cd::Kind::text ? "text" : kind == cd::Kind::bytes ? "bytes" : cd::name_of(first->type);
  column["shape"] = first->shape;
  column["example"] = glance(*first);
  return column;
}

Json sample_of(const std::vector<std::string>& columns, const Row& row, bool pictures) {
  Json told = {{"row", row.number}, {"values", Json::array()}};
  if (pictures) told["pictures"] = Json::array();
  for (size_t i = 0; i < columns.size(); ++i) {
    told["values"].push_back({columns[i], glance(row.values[i])});
    if (std::optional<std::string> made = pictures ? picture(row.values[i]) : std::nullopt)
      told["pictures"].push_back(*made);
  }
  return told;
}

Json told(const cd::OpenedData& data, const DataVerb& verb, bool pictures) {
  const std::vector<std::string>& names = data.source->columns;
  const std::vector<Row> rows = sample(data, verb);
  const uint64_t bytes = bytes_of(data);
  Json columns = Json::array(), samples = Json::array();
  for (size_t i = 0; i < names.size(); ++i)
    columns.push_back(column_of(names[i], rows.empty() ? nullptr : &rows[0].values[i]));
  for (const Row& row : rows) samples.push_back(sample_of(names, row, pictures));
  return {{"path", verb.path},
          {"kind", data.kind},
          {"files", data.files.size()},
          {"bytes", bytes},
          {"rows", data.source->count()},
          {"columns", columns},
          {"counts", label_counts(data, bytes)},
          {"samples", samples}};
}

void print_told(const Json& json) {
  fmt::print("{}: {}, {} rows in {} file{}, {}\n\n", json["path"].get<std::string>(), json["kind"].get<std::string>(),
             json["rows"].get<int64_t>(), json["files"].get<size_t>(), json["files"] == 1 ? "" : "s",
             bytes_text(json["bytes"].get<double>()));
  Table columns({"column", "type", "shape", "first row"});
  for (const Json& each : json["columns"])
    columns.add({each["name"], each.value("type", ""),
                 each.contains("shape") ? cd::text_of(each["shape"].get<cd::Shape>()) : "", each.value("example", "")});
  columns.print();
  if (json["samples"].size() > 1) {
    fmt::print("\n");
    std::vector<std::string> names{">row"};
    for (const Json& each : json["columns"]) names.push_back(each["name"]);
    Table rows(names);
    for (const Json& each : json["samples"]) {
      std::vector<std::string> cells{std::to_string(each["row"].get<int64_t>())};
      for (const Json& value : each["values"]) cells.push_back(value[1]);
      rows.add(cells);
    }
    rows.print();
  }
  if (json["counts"].empty()) return;
  Table counts({"label", ">rows"});
  for (const Json& each : json["counts"])
    if (&each - &json["counts"][0] < 20) counts.add({each["name"], std::to_string(each["rows"].get<int64_t>())});
  fmt::print("\n");
  counts.print();
  if (json["counts"].size() > 20) fmt::print("and {} more labels\n", json["counts"].size() - 20);
}

int inspect(const DataVerb& verb) {
  const cd::OpenedData data = cd::open_data(verb.path, verb.from, cd::sequential_sampler(0, 0));
  Json json = told(data, verb, !verb.html.empty());
  if (!verb.html.empty()) {
    write_file(expand_home(verb.html), fill_page(kDataPage, json.dump(-1, ' ', false, Json::error_handler_t::replace)));
    for (Json& each : json["samples"]) each.erase("pictures");
  }
  if (verb.json)
    print_json(json);
  else
    print_told(json);
  if (!verb.html.empty() && !verb.json) fmt::print("\npage: {}\n", verb.html);
  return 0;
}

int convert(const DataVerb& verb) {
  const cd::OpenedData data = cd::open_data(verb.path, verb.from, cd::sequential_sampler(0, 0));
  const int64_t count = data.source->count();
  if (count == 0) fail(ErrorKind::invalid_argument, verb.path, "holds no row, which would tell the columns");
  auto target =
      cd::make_target({expand_home(verb.output), verb.to, verb.shards, verb.index}, data, data.source->read_checked(0));
  cd::Settings settings;
  settings.workers = verb.workers > 0 ? verb.workers : std::min(available_threads(), 8);
  settings.poll = [] { stop_point(); };
  cd::Iterator rows(data.source, settings);
  Progress progress("rows", static_cast<double>(count));
  int64_t done = 0;
  while (std::optional<cd::Row> row = rows.next()) {
    stop_point();
    try {
      target->write(*row);
    } catch (const Error& error) {
      throw Error(error.kind(), error.where().empty() ? data.source->origin(done) : error.where(), error.message());
    }
    progress.at(static_cast<double>(++done));
  }
  target->commit();
  if (verb.json)
    print_json({{"rows", done}, {"output", verb.output}});
  else
    fmt::print("{} rows of {} written to {}\n", done, data.kind, verb.output);
  return 0;
}

void add_common(Verb& verb, DataVerb& data) {
  verb.add_option("path", data.path, "a file, or a folder").required();
  verb.add_option("--from", data.from, "what PATH holds, where it does not tell").one_of(cd::data_kinds());
  verb.add_flag("--json", data.json, "print as JSON");
}

}  // namespace

void add_data(Verb& app, Run& run) {
  auto data = std::make_shared<DataVerb>();
  Verb verb = app.add_verb("data", "what a data set holds, and data sets as files of another kind");
  verb.footer(
      "\nExamples:\n  cairn data inspect train.mindrecord0\n  cairn data convert cifar-10-batches-bin -o "
      "cifar.mindrecord --shards 4");
  Verb look = verb.add_verb("inspect", "columns, numbers of rows and labels, some rows; as text or as a page");
  add_common(look, *data);
  look.add_option("--rows", data->rows, "how many rows are shown").within(0, 10000);
  look.add_flag("--shuffle", data->shuffled, "rows from all over the data set, not the first");
  look.add_option("--html", data->html, "write a page with pictures");
  look.footer(
      "\nMindRecord and TFRecord files, CSV, text, MNIST's idx files, CIFAR's files, folders\n"
      "of images.\n\nExamples:\n"
      "  cairn data inspect train.mindrecord0\n  cairn data inspect photos/ --rows 100 --shuffle --html photos.html\n"
      "  cairn data inspect part-00000-of-00008.tfrecord --json");
  look.callback([data, &run] { run = [data] { return inspect(*data); }; });
  Verb change = verb.add_verb("convert", "writes a data set as MindRecord, TFRecord, CSV, images, CIFAR or MNIST");
  add_common(change, *data);
  change.add_option("-o,--output", data->output, "the file or folder; its name tells the kind, or --to").required();
  change.add_option("--to", data->to, "mindrecord, tfrecord, csv, images, cifar10, cifar100 or mnist");
  change.add_option("--shards", data->shards, "number of files").within(1, 1000);
  change.add_option("--index", data->index, "columns by which a MindRecord can be searched").delimiter(',');
  change.add_option("--workers", data->workers, "threads that read (default: as many as there are processors)")
      .within(0, 256);
  change.footer(
      "\nImages of pixels go into MindRecord and TFRecord as PNG, files of images as they are. What is\n"
      "written appears under its name when it is complete; an interrupted command leaves what lay there\n"
      "before.\n\nExamples:\n"
      "  cairn data convert photos/ -o photos.mindrecord --shards 4 --index label\n"
      "  cairn data convert photos.mindrecord0 -o copy/ --to images\n"
      "  cairn data convert cifar-10-batches-bin -o cifar.tfrecord\n  cairn data convert table.csv -o "
      "table.mindrecord");
  change.callback([data, &run] { run = [data] { return convert(*data); }; });
}

}  // namespace cairn::cli
