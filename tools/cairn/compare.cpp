#include "cairn/compare.h"

#include <charconv>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <set>

#include "cairn/compare_tools.h"
#include "cairn/console.h"
#include "compare/report.h"
#include "support/fault.h"
#include "support/files.h"

namespace cairn::compare {

namespace {

namespace fs = std::filesystem;

constexpr int kExitDiffers = 2, kExitNothing = 3;

constexpr const char* kHelp = R"(cairn compare: dump files against dump files

Usage: cairn compare MINE GOLDEN [options]

MINE and GOLDEN are folders of dumps, or .npy, .npz or DumpData files: of Cairn, of TensorFlow's
debugger, of ONNX models, of the platform's devices.

  -f, --mapping FILE       operators behind MINE: a model's JSON, {"mine": ["golden"]}, or lines
                           mine,golden
  -cf, --golden-mapping F  the same for GOLDEN, when it comes from a compiled model too
  --min-cosine X           least cosine similarity (0.99)
  --max-distance X         largest relative Euclidean distance (0.05)
  --max N                  compare the first N elements of each tensor
  --op NAME                this operator only
  --csv FILE, --json FILE, --html FILE   write the result; "-" prints JSON or CSV
  --threads N              workers (all processors)

Exit status: 0 all agree, 2 some differ, 3 nothing could be compared, 1 error.

Examples:
  cairn compare dump/0 golden/                       Cairn's dump against TensorFlow's .npy files
  cairn compare mine.npz golden.npz --html page.html with a page to look at
  cairn compare 20240101/0/net/1/0 golden -f net.json   a device's dump, JSON of atc --mode=1

The platform's form is taken as well: compare -m MINE -g GOLDEN -f JSON -out FOLDER -alg all
-advisor; under the name msaccucmp also convert, overflow and file_compare.
)";

constexpr const char* kPlatformHelp = R"(msaccucmp: compare, convert and inspect dump files

  msaccucmp compare -m MINE -g GOLDEN [-f JSON] [-cf JSON] [-out DIR] [-alg LIST|all] [-map]
                    [-overflow_detection] [-r START,END,STEP | -s I,J] [-op NAME (-o|-i) N] [-n TOP]
                    [-ml LINES] [--ignore_single_op_result] [-max N] [-advisor] [-v 1|2]
  msaccucmp convert -d FILES [-out DIR] [-t npy|bin] [-f FORMAT] [-s SHAPE] [-o N | -i N] [-v 1|2]
  msaccucmp overflow -d DIR [-n TOP] [-out DIR]
  msaccucmp file_compare -m FILE -g FILE [-out DIR]
)";

CompareOptions options_of(const Arguments& arguments) {
  CompareOptions options;
  options.thresholds.cosine = arguments.real("--min-cosine", options.thresholds.cosine, -1, 1);
  options.thresholds.relative_euclidean =
      arguments.real("--max-distance", options.thresholds.relative_euclidean, 0, 1e30);
  options.limit = arguments.integer("-max", -1, 1, std::numeric_limits<int64_t>::max());
  options.mine_version = options.golden_version = static_cast<int>(arguments.integer("-v", 0, 1, 2));
  options.only_names = arguments.has("-map");
  if (arguments.has("-op")) options.only_op = arguments.text("-op");
  if (arguments.has("-r") && arguments.has("-s")) fail(ErrorKind::invalid_argument, "-r", "excludes -s");
  if (arguments.has("-r")) {
    std::vector<int64_t> range = arguments.integers("-r");
    if (range.empty() || range.size() > 3 || range[0] < 1 ||
        (range.size() > 1 && range[1] != -1 && range[1] < range[0]) || (range.size() > 2 && range[2] < 1))
      fail(ErrorKind::invalid_argument, "-r",
           "is start,end,step with 1 <= start <= end (or -1: to the last) and step >= 1");
    options.first = static_cast<size_t>(range[0]);
    if (range.size() > 1 && range[1] != -1) options.last = static_cast<size_t>(range[1]);
    if (range.size() > 2) options.every = static_cast<size_t>(range[2]);
  }
  for (int64_t place : arguments.has("-s") ? arguments.integers("-s") : std::vector<int64_t>()) {
    if (place < 1) fail(ErrorKind::invalid_argument, "-s", "is a list of places from 1, found {}", place);
    options.selected.push_back(static_cast<size_t>(place));
  }
  return options;
}

struct Inputs {
  DumpTree mine, golden;
  OpMapping mapping, golden_mapping;
};

Inputs read_inputs(const Arguments& arguments, const std::string& mine, const std::string& golden,
                   const CompareOptions& options) {
  Inputs inputs;
  inputs.mine = read_tree(mine, options.mine_version);
  inputs.golden = read_tree(golden, options.golden_version);
  if (arguments.has("-f")) inputs.mapping = read_mapping(arguments.text("-f"));
  if (arguments.has("-cf")) inputs.golden_mapping = read_mapping(arguments.text("-cf"));
  return inputs;
}

Comparison run(const Arguments& arguments, const Inputs& inputs, CompareOptions options) {
  int threads = static_cast<int>(arguments.integer("--threads", available_threads(), 1, 256));
  auto executor = make_pool(threads);
  std::optional<cli::Progress> progress;
  options.progress = [&](size_t done, size_t total) {
    if (!progress) progress.emplace("comparing", static_cast<double>(total));
    progress->at(static_cast<double>(done));
  };
  return compare_trees(inputs.mine, inputs.golden, inputs.mapping, inputs.golden_mapping, options, *executor);
}

// --- the form of `cairn compare` ---

void write_or_print(const std::string& path, const std::string& content) {
  if (path == "-")
    fmt::print("{}", content);
  else
    write_file(path, content);
}

std::string name_of(const Row& row) {
  return row.mine == "*" ? row.golden : row.has_tensor ? row.tensor_name() : row.mine;
}

/// Rows that failed before a number could be compared: other shapes, other types, without counterpart, unreadable.
std::vector<const Row*> not_comparable(const Comparison& comparison) {
  std::vector<const Row*> rows;
  for (const Row& row : comparison.rows)
    if (row.verdict == Verdict::fail && !row.diagnosis) rows.push_back(&row);
  return rows;
}

void print_not_comparable(const Comparison& comparison) {
  constexpr size_t kMost = 8;
  const auto rows = not_comparable(comparison);
  for (size_t i = 0; i < std::min(rows.size(), kMost); ++i)
    fmt::print("{} {}: {}\n", cli::red("differs:"), name_of(*rows[i]), rows[i]->reason);
  if (rows.size() > kMost) fmt::print("and {} more\n", rows.size() - kMost);
}

void print_summary(const Comparison& comparison) {
  std::vector<const Row*> shown;
  for (Verdict verdict : {Verdict::fail, Verdict::warning, Verdict::pass})
    for (const Row& row : comparison.rows)
      if (row.verdict == verdict && shown.size() < 12) shown.push_back(&row);
  cli::Table table({"tensor", "reference", ">cosine", ">rel. Euclid", ">max abs", "verdict"});
  for (const Row* row : shown)
    table.add({row->tensor_name(), row->golden, row->metrics.text(Metric::cosine),
               row->metrics.text(Metric::relative_euclidean), row->metrics.text(Metric::max_absolute),
               to_string(row->verdict)});
  if (!table.empty()) table.print();
  std::string reason;
  for (const Row& row : comparison.rows)
    if (reason.empty() && row.verdict == Verdict::none && !row.reason.empty())
      reason = fmt::format(" (the first: {}: {})", name_of(row), row.reason);
  fmt::print("\n{} tensors: {} pass, {} odd, {} differ, {} not compared{}\n", comparison.rows.size(),
             comparison.count(Verdict::pass), comparison.count(Verdict::warning), comparison.count(Verdict::fail),
             comparison.count(Verdict::none), reason);
  print_not_comparable(comparison);
  const Row* suspect = comparison.first_suspect();
  if (suspect != nullptr && suspect->diagnosis)
    fmt::print("{} {}{}{}\n", cli::red("first suspect:"), suspect->tensor_name(),
               suspect->location.empty() ? "" : " (" + suspect->location + ")",
               suspect->finding.empty() ? "" : ": " + suspect->finding);
}

int exit_status(const Comparison& comparison) {
  if (comparison.count(Verdict::fail) > 0) return kExitDiffers;
  return comparison.count(Verdict::pass) + comparison.count(Verdict::warning) > 0 ? 0 : kExitNothing;
}

/// The operator of a tree that is one .npy file; nullptr for others.
DumpedOp* only_array(DumpTree& tree) {
  if (!fs::is_regular_file(tree.root) || tree.steps.size() != 1 || tree.steps[0].ops.size() != 1) return nullptr;
  DumpedOp& op = tree.steps[0].ops[0];
  return op.tensors.size() == 1 && op.tensors[0].kind == TensorSource::Kind::npy ? &op : nullptr;
}

int compare_plain(const Arguments& arguments) {
  if (arguments.positional().size() != 2)
    fail(ErrorKind::invalid_argument, "", "needs MINE and GOLDEN, found {} paths; --help shows how",
         arguments.positional().size());
  CompareOptions options = options_of(arguments);
  Inputs inputs = read_inputs(arguments, arguments.positional()[0], arguments.positional()[1], options);
  // Two files of one array each are a pair whatever they are called.
  if (DumpedOp* mine = only_array(inputs.mine), *golden = only_array(inputs.golden);
      mine != nullptr && golden != nullptr)
    golden->name = mine->name, golden->tensors[0].index = mine->tensors[0].index;
  Comparison comparison = run(arguments, inputs, options);
  bool printed = false;
  auto emit = [&](const char* option, const std::string& content) {
    write_or_print(arguments.text(option), content);
    printed |= arguments.text(option) == "-";
  };
  if (arguments.has("--csv")) emit("--csv", to_csv(comparison, {}));
  if (arguments.has("--json")) emit("--json", to_json(comparison, options.thresholds));
  if (arguments.has("--html")) emit("--html", to_html(comparison, options.thresholds));
  if (!printed) print_summary(comparison);
  return exit_status(comparison);
}

// --- the platform's form ---

std::string timestamp() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y%m%d%H%M%S", &parts);
  return text;
}

CsvOptions csv_options(const Arguments& arguments) {
  CsvOptions csv;
  csv.overflow = arguments.has("-overflow_detection");
  csv.sequence = arguments.has("-r") || arguments.has("-s");
  csv.only_mapping = arguments.has("-map");
  csv.most_lines = static_cast<size_t>(arguments.integer("-ml", 1'000'000, 10'000, 1'000'000));
  if (arguments.has("-alg") && arguments.text("-alg") != "all") {
    csv.columns.reset();
    for (const std::string& name : arguments.list("-alg")) {
      std::optional<Metric> metric = judge::parse_metric(name);
      if (!metric)
        fail(ErrorKind::invalid_argument, "-alg", "has no algorithm {}; names or numbers 0 to 9, or all", name);
      csv.columns.set(static_cast<size_t>(*metric));
    }
  }
  return csv;
}

/// -op NAME -o N: the worst elements of one tensor in a file beside the result.
void write_single(const Arguments& arguments, const Inputs& inputs, const CompareOptions& options,
                  const std::string& out) {
  bool input = arguments.has("-i");
  if (input == arguments.has("-o")) fail(ErrorKind::invalid_argument, "-op", "needs one of -o INDEX and -i INDEX");
  auto index = static_cast<int>(arguments.integer(input ? "-i" : "-o", 0, 0, 1 << 20));
  auto most = static_cast<size_t>(arguments.integer("-n", 20, 1, 10'000));
  const std::string& op = arguments.text("-op");
  TensorPair pair =
      load_pair(inputs.mine, inputs.golden, inputs.mapping, inputs.golden_mapping, options, op, input, index);
  std::string path = fmt::format("{}/{}_{}_{}_topn.csv", out, file_part(op), input ? "input" : "output", index);
  write_file(path, worst_elements_csv(pair, most));
  fmt::print("worst {} elements: {}\n", most, path);
}

int compare_platform(const Arguments& arguments) {
  for (const char* needed : {"-m", "-g"})
    if (!arguments.has(needed)) fail(ErrorKind::invalid_argument, needed, "is needed: the dumps to compare");
  for (const char* missing : {"-q", "-c", "-a", "-ffts"})
    if (arguments.has(missing))
      fail(ErrorKind::unsupported, missing,
           "is not supported: there are no quantisation rules, scripts of algorithms or "
           "merged thread slices here");
  if (arguments.integer("-p", 0, 0, 1) == 1) fail(ErrorKind::unsupported, "-p", "is supported with 0 only");
  CompareOptions options = options_of(arguments);
  CsvOptions csv = csv_options(arguments);
  std::string out = arguments.has("-out") ? arguments.text("-out") : ".";
  fs::create_directories(out);
  Inputs inputs = read_inputs(arguments, arguments.text("-m"), arguments.text("-g"), options);
  if (options.only_op && !arguments.has("--ignore_single_op_result")) write_single(arguments, inputs, options, out);
  Comparison comparison = run(arguments, inputs, options);
  std::string path = fmt::format("{}/result_{}.csv", out, timestamp());
  write_file(path, to_csv(comparison, csv));
  if (options.only_names)
    fmt::print("{} tensors paired: {}\n", comparison.rows.size(), path);
  else
    fmt::print("{} tensors compared, {} not: {}\n", comparison.rows.size() - comparison.count(Verdict::none),
               comparison.count(Verdict::none), path);
  if (arguments.has("-advisor")) {
    Advice advice = advise(comparison);
    std::string text = fmt::format("Detection Type: {}\nExpert Advice: {}\n", advice.kind, advice.text);
    write_file(out + "/advisor_summary.txt", text);
    fmt::print("{}", text);
  }
  print_not_comparable(comparison);
  return not_comparable(comparison).empty() ? 0 : kExitDiffers;
}

const std::vector<OptionForm>& forms() {
  static const std::vector<OptionForm> list = {
      {"-m", {"--my_dump_path"}, true},
      {"-g", {"--golden_dump_path"}, true},
      {"-f", {"--mapping", "--fusion_rule_file", "--format"}, true},
      {"-cf", {"--golden-mapping", "--close_fusion_rule_file"}, true},
      {"-q", {"--quant_fusion_rule_file"}, true},
      {"-c", {"--custom_script_path"}, true},
      {"-alg", {"--algorithm"}, true},
      {"-a", {"--algorithm_options"}, true},
      {"-map", {"--mapping_only"}, false},
      {"-overflow_detection", {"--overflow_detection"}, false},
      {"-r", {"--range"}, true},
      {"-s", {"--select", "--shape"}, true},
      {"-op", {"--op", "--op_name"}, true},
      {"-o", {"--output"}, true},
      {"-i", {"--input"}, true},
      {"-n", {"--topn"}, true},
      {"-ml", {"--max_line"}, true},
      {"--ignore_single_op_result", {"-is"}, false},
      {"-max", {"--max", "--max_cmp_size"}, true},
      {"-p", {"--post_process"}, true},
      {"-ffts", {"--ffts"}, false},
      {"-advisor", {"--advisor"}, false},
      {"-v", {"--dump_version"}, true},
      {"-out", {"--output_path"}, true},
      {"-d", {"--dump_path"}, true},
      {"-t", {"--type"}, true},
      {"--min-cosine", {}, true},
      {"--max-distance", {}, true},
      {"--csv", {}, true},
      {"--json", {}, true},
      {"--html", {}, true},
      {"--threads", {}, true},
      {"--help", {"-h"}, false},
  };
  return list;
}

int dispatch(const std::string& program, const std::vector<std::string>& words) {
  bool platform = program.starts_with("msaccucmp");
  std::string verb = platform && !words.empty() && !words[0].starts_with('-') ? words[0] : "compare";
  Arguments arguments({words.begin() + (platform && !words.empty() && verb == words[0] ? 1 : 0), words.end()}, forms());
  if (arguments.has("--help") || words.empty()) {
    fmt::print("{}", platform ? kPlatformHelp : kHelp);
    return words.empty() ? 1 : 0;
  }
  if (verb == "convert") return convert_dumps(arguments);
  if (verb == "overflow") return list_overflows(arguments);
  if (verb == "file_compare") return compare_files(arguments);
  if (verb != "compare")
    fail(ErrorKind::invalid_argument, verb, "is no command; there are compare, convert, overflow, file_compare");
  bool platform_form = platform || arguments.has("-m") || arguments.has("-g");
  if (platform_form && !arguments.positional().empty())
    fail(ErrorKind::invalid_argument, arguments.positional()[0], "is not expected beside -m and -g");
  return platform_form ? compare_platform(arguments) : compare_plain(arguments);
}

}  // namespace

}  // namespace cairn::compare

int compare_main(int argc, char** argv) {
  std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "compare";
  try {
    return cairn::compare::dispatch(program, {argv + std::min(argc, 1), argv + argc});
  } catch (...) {
    fmt::print(stderr, "{} {}: {}\n", cairn::cli::red("error:"), program, cairn::current_fault().what());
  }
  return 1;
}
