#include "cairn/compare_tools.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compare/formats/layout.h"
#include "compare/tree.h"
#include "formats/dump_data.h"
#include "formats/names.h"
#include "formats/npy.h"
#include "judge/metrics.h"
#include "support/files.h"

namespace cairn::compare {

namespace {

namespace fs = std::filesystem;

template <class Number>
Number parse_number(const std::string& option, std::string_view text) {
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    fail(ErrorKind::invalid_argument, option, "needs a number, found {}", text.empty() ? "nothing" : text);
  return number;
}

/// The dump in the layout that was asked for; as it is when none was.
Tensor in_layout(const DumpTensor& dumped, const Tensor& tensor, const Arguments& arguments) {
  if (!arguments.has("-f")) return tensor;
  const Layout *from = find_layout(dumped.format & 0xff), *to = find_layout(arguments.text("-f"));
  if (to == nullptr) fail(ErrorKind::invalid_argument, "-f", "there is no converter to {}", arguments.text("-f"));
  if (from == nullptr) fail(ErrorKind::unsupported, "-f", "there is no converter from {}", layout_name(dumped.format));
  if (to->parts.find('0') != std::string_view::npos) return to_blocks(tensor, *from, *to);
  return from_blocks(tensor, *from, *to, arguments.has("-s") ? arguments.integers("-s") : dumped.original_dims);
}

void write_tensor(const fs::path& file, const DumpFile& dump, const DumpTensor& dumped, bool input, size_t index,
                  const Arguments& arguments, const fs::path& out) {
  std::string where = fmt::format("{} {} {}", file.string(), input ? "input" : "output", index);
  Tensor tensor = in_layout(dumped, to_tensor(dumped, where, dump.owner), arguments);
  std::string base = (out / file.filename()).string() + fmt::format(".{}.{}", input ? "input" : "output", index);
  if (!arguments.has("-t") || arguments.text("-t") == "npy") {
    write_npy(base + ".npy", tensor);
  } else {
    std::string layout = arguments.has("-f") ? arguments.text("-f") : layout_name(dumped.format);
    write_file(
        fmt::format("{}.{}.{}.{}.bin", base, fmt::join(tensor.dims(), "_"), dump_type_name(dumped.data_type), layout),
        {static_cast<const char*>(tensor.data()), tensor.bytes()});
  }
}

std::vector<fs::path> dump_files(const std::vector<std::string>& named) {
  std::vector<fs::path> files;
  for (const std::string& name : named) {
    if (!fs::is_directory(name)) {
      files.emplace_back(name);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(name)) {
      auto parsed = parse_file_name(entry.path().filename().string());
      if (entry.is_regular_file() && parsed && parsed->kind == FileName::Kind::dump) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The record of an overflow as the device wrote it: fields of 64 bits each.
nlohmann::ordered_json overflow_record(std::string_view data) {
  constexpr const char* kFields[] = {"model_id",  "stream_id",   "task_id",   "task_type", "pc_start",
                                     "para_base", "kernel_code", "block_idx", "status"};
  nlohmann::ordered_json record;
  for (size_t i = 0; i < std::size(kFields) && 8 * i + 8 <= data.size(); ++i) {
    uint64_t value;
    std::memcpy(&value, data.data() + 8 * i, 8);
    record[kFields[i]] = value;
  }
  return record;
}

}  // namespace

Arguments::Arguments(const std::vector<std::string>& words, const std::vector<OptionForm>& forms) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with('-') || words[i].size() == 1) {
      positional_.push_back(words[i]);
      continue;
    }
    size_t equals = words[i].find('=');
    std::string name = words[i].substr(0, equals);
    auto form = std::find_if(forms.begin(), forms.end(), [&](const OptionForm& f) {
      return f.name == name || std::find(f.aliases.begin(), f.aliases.end(), name) != f.aliases.end();
    });
    if (form == forms.end()) fail(ErrorKind::invalid_argument, name, "is not an option; --help lists them");
    std::string value;
    if (equals != std::string::npos) {
      value = words[i].substr(equals + 1);
    } else if (form->takes_value) {
      if (i + 1 == words.size()) fail(ErrorKind::invalid_argument, name, "needs a value");
      value = words[++i];
    }
    if (!values_.try_emplace(form->name, value).second) fail(ErrorKind::invalid_argument, name, "is given twice");
  }
}

std::vector<std::string> Arguments::list(const std::string& option) const {
  std::vector<std::string> items;
  std::string_view rest = text(option);
  while (true) {
    size_t comma = rest.find(',');
    items.emplace_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) return items;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<int64_t> Arguments::integers(const std::string& option) const {
  std::vector<int64_t> numbers;
  for (const std::string& item : list(option)) numbers.push_back(parse_number<int64_t>(option, item));
  return numbers;
}

int64_t Arguments::integer(const std::string& option, int64_t otherwise, int64_t least, int64_t most) const {
  if (!has(option)) return otherwise;
  int64_t number = parse_number<int64_t>(option, text(option));
  if (number < least || number > most)
    fail(ErrorKind::invalid_argument, option, "is from {} to {}, found {}", least, most, number);
  return number;
}

double Arguments::real(const std::string& option, double otherwise, double least, double most) const {
  if (!has(option)) return otherwise;
  double number = parse_number<double>(option, text(option));
  if (!(number >= least && number <= most))
    fail(ErrorKind::invalid_argument, option, "is from {} to {}, found {}", least, most, text(option));
  return number;
}

std::string file_part(const std::string& name) { return plain_name(name).substr(0, 200); }

int convert_dumps(const Arguments& arguments) {
  if (!arguments.has("-d")) fail(ErrorKind::invalid_argument, "-d", "is needed: dump files or a folder of them");
  if (arguments.has("-t") && arguments.text("-t") != "npy" && arguments.text("-t") != "bin")
    fail(ErrorKind::invalid_argument, "-t", "is npy or bin, found {}", arguments.text("-t"));
  fs::path out = arguments.has("-out") ? arguments.text("-out") : ".";
  fs::create_directories(out);
  auto version = static_cast<int>(arguments.integer("-v", 0, 1, 2));
  int64_t only_output = arguments.integer("-o", -1, 0, 1 << 20), only_input = arguments.integer("-i", -1, 0, 1 << 20);
  bool all = only_output < 0 && only_input < 0;
  size_t written = 0, faults = 0;
  for (const fs::path& file : dump_files(arguments.list("-d"))) try {
      DumpFile dump = read_dump(file.string(), version);
      for (bool input : {true, false}) {
        const auto& tensors = input ? dump.inputs : dump.outputs;
        for (size_t i = 0; i < tensors.size(); ++i) {
          if (!all && static_cast<int64_t>(i) != (input ? only_input : only_output)) continue;
          write_tensor(file, dump, tensors[i], input, i, arguments, out);
          ++written;
        }
      }
    } catch (const Error& error) {
      ++faults;
      fmt::print(stderr, "error: {}\n", error.what());
    }
  fmt::print("{} tensors written to {}\n", written, out.string());
  if (written == 0 && faults == 0) fail(ErrorKind::not_found, arguments.text("-d"), "holds no such dump");
  return faults > 0 ? 1 : 0;
}

int list_overflows(const Arguments& arguments) {
  if (!arguments.has("-d")) fail(ErrorKind::invalid_argument, "-d", "is needed: the folder of the overflow detection");
  auto most = static_cast<size_t>(arguments.integer("-n", 1, 1, 1'000'000));
  DumpTree tree = read_tree(arguments.text("-d"));
  struct Found {
    FileName name;
    std::string path;
  };
  std::vector<Found> files;
  for (const std::string& path : tree.overflow)
    files.push_back({*parse_file_name(fs::path(path).filename().string()), path});
  std::stable_sort(files.begin(), files.end(),
                   [](const Found& a, const Found& b) { return a.name.time < b.name.time; });
  auto list = nlohmann::ordered_json::array();
  for (const Found& file : files) {
    if (list.size() == most) break;
    nlohmann::ordered_json entry = {{"file", file.path}, {"task_id", file.name.task}, {"stream_id", file.name.stream}};
    for (const DumpStep& step : tree.steps)
      for (const DumpedOp& op : step.ops)
        if (op.task == file.name.task && op.stream == file.name.stream)
          entry["operator"] = op.name, entry["type"] = op.type;
    try {
      DumpFile dump = read_dump(file.path);
      for (const DumpTensor& tensor : dump.outputs) entry["record"] = overflow_record(tensor.data);
    } catch (const Error& error) {
      entry["fault"] = error.what();
    }
    list.push_back(std::move(entry));
  }
  std::string text = list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (arguments.has("-out")) {
    fs::create_directories(arguments.text("-out"));
    write_file(arguments.text("-out") + "/overflow_summary.json", text);
  }
  fmt::print("{} overflow files, the first in time first\n{}", files.size(), text);
  return 0;
}

int compare_files(const Arguments& arguments) {
  for (const char* needed : {"-m", "-g"})
    if (!arguments.has(needed)) fail(ErrorKind::invalid_argument, needed, "is needed: a .npy file");
  const Tensor mine = read_npy(arguments.text("-m")), golden = read_npy(arguments.text("-g"));
  if (mine.dims() != golden.dims())
    fail(ErrorKind::invalid_argument, arguments.text("-m"), "has the shape [{}], {} has [{}]",
         fmt::join(mine.dims(), ","), arguments.text("-g"), fmt::join(golden.dims(), ","));
  judge::Metrics metrics = judge::measure(mine, golden);
  std::string names, values;
  for (size_t i = 0; i < judge::kMetrics; ++i) {
    auto metric = static_cast<judge::Metric>(i);
    if (metric == judge::Metric::divergence || metric == judge::Metric::deviation) continue;
    names += fmt::format("{},", column_name(metric));
    values += metrics.text(metric) + ",";
    fmt::print("{:28}{}\n", column_name(metric), metrics.text(metric));
  }
  if (!metrics.note.empty()) fmt::print("{}\n", metrics.note);
  if (arguments.has("-out")) {
    fs::create_directories(arguments.text("-out"));
    write_file(arguments.text("-out") + "/file_result.csv",
               names + "CompareFailReason\n" + values + metrics.note + "\n");
  }
  return 0;
}

}  // namespace cairn::compare
