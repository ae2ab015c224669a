// The verb `cairn migrate`, and the option form of the platform's converter (-i -l -o -r -m -d -c).
#include "cairn/migrate.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>

#include "cairn/help.h"
#include "cairn/options.h"
#include "migrate/options.h"
#include "migrate/reports.h"
#include "migrate/syntax.h"
#include "migrate/tree.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/part_file.h"

namespace cairn::migrate {
namespace {

namespace fs = std::filesystem;

struct Command {
  std::string path, out, undo;
  bool in_place = false, diff = false, json = false, quiet = false, rules = false;
  std::string report, sarif, csv, xlsx, html, config;
  std::string list, main;  // -l, -m
  std::vector<std::pair<std::string, std::string>> options;
  // the converter's form
  std::string input, report_root, mode;
  bool compat = false;
};

std::string hyphens(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    if (c == '_') c = '-';
  return text;
}

void declare(CLI::App& app, Command& command) {
  app.add_option("PATH", command.path, "a script, a notebook or a folder of them");
  app.add_option("-o,--output", command.out, "write the whole tree with the migrated scripts to this folder");
  app.add_flag("--in-place", command.in_place, "write the migrated scripts over the old ones (--undo takes it back)");
  app.add_flag("--diff", command.diff, "print the differences and write nothing (the default)");
  app.add_option("--undo", command.undo, "take the last --in-place run on this folder back");
  app.add_flag("--json", command.json, "print the result as JSON");
  app.add_flag("--quiet", command.quiet, "print no summary");
  app.add_flag("--rules", command.rules, "print all rules with examples and end");
  app.add_option("--report", command.report, "write all reports into this folder");
  app.add_option("--sarif", command.sarif, "write findings and fixes as SARIF");
  app.add_option("--csv", command.csv, "write changes, findings and uses as CSV");
  app.add_option("--xlsx", command.xlsx, "write the uses of framework names as a spreadsheet");
  app.add_option("--html", command.html, "write the report page");
  app.add_option("--config", command.config, "options from this JSON file; PATH/cairn_migrate.json otherwise");
  for (const OptionRow& row : option_rows()) {
    std::string name(row.name), flags = "--" + hyphens(row.name);
    if (name == "main") flags = "-m," + flags;
    if (name == "distributed") flags = "-d,--distributed_mode," + flags;
    auto set = [&command, name](const std::string& value) { command.options.push_back({name, value}); };
    if (row.values.empty())
      app.add_flag_callback(
          flags, [set] { set("true"); }, std::string(row.meaning));
    else
      app.add_option_function<std::string>(flags, set, std::string(row.meaning))->type_name(std::string(row.values));
  }
  const char* form = "The converter's own form";
  app.add_option("-i,--input", command.input,
                 "folder of scripts; reports and names as the platform's converter writes them")
      ->group(form);
  app.add_option("-l,--list", command.list, "list of API classes, .xlsx or .csv")->group(form);
  app.add_option("-r,--report-root", command.report_root, "folder for the report folder")->group(form);
  app.add_flag("-c,--compat", command.compat, "scripts run TensorFlow 2 in its compat.v1 mode")->group(form);
  for (CLI::Option* option :
       app.get_options([](const CLI::Option* each) { return each->get_items_expected_max() > 0; }))
    option->check(cli::not_empty());
}

void emit(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

bool has_findings(const Result& result) {
  for (const FileResult& file : result.files) {
    if (file.state == FileState::failed) return true;
    for (const Finding& finding : file.findings)
      if (finding.severity != Severity::note) return true;
  }
  return false;
}

Options gather(const Command& command, const std::string& root) {
  Options options;
  std::string config = command.config.empty() ? root + "/cairn_migrate.json" : command.config;
  std::error_code error;
  if (!command.config.empty() || fs::exists(config, error)) set_options_json(options, read_file(config), config);
  for (const auto& [name, value] : command.options) set_option(options, name, value);
  return options;
}

void write_reports(const Command& command, const Result& result, const SupportList& list) {
  if (!command.report.empty()) {
    fs::create_directories(command.report);
    write_file(command.report + "/report.json", json_report(result));
    write_file(command.report + "/report.sarif", sarif_report(result));
    write_file(command.report + "/report.csv", csv_report(result));
    write_file(command.report + "/report.html", html_report(result, command.path));
    xlsx_report(result, list, command.report + "/report.xlsx");
  }
  if (!command.sarif.empty()) write_file(command.sarif, sarif_report(result));
  if (!command.csv.empty()) write_file(command.csv, csv_report(result));
  if (!command.html.empty()) write_file(command.html, html_report(result, command.path));
  if (!command.xlsx.empty()) xlsx_report(result, list, command.xlsx);
}

int say_problems(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) fmt::print(stderr, "error   {}\n", problem);
  return problems.empty() ? 0 : 1;
}

int run_migrate(const Command& command) {
  std::error_code error;
  Options options = gather(
      command, fs::is_directory(command.path, error) ? command.path : fs::path(command.path).parent_path().string());
  SupportList list;
  if (!command.list.empty()) list = SupportList::read(command.list);
  Tree tree = read_tree(command.path, options);
  Result result = migrate(std::move(tree.inputs), options);
  int code = has_findings(result) ? 1 : 0;
  if (command.in_place)
    code = std::max(code, say_problems(write_in_place(tree, result)));
  else if (!command.out.empty())
    code = std::max(code, say_problems(write_tree(tree, result, command.out)));
  else if (result.changed())
    code = 1;
  write_reports(command, result, list);
  if (command.json)
    emit(json_report(result));
  else if (!command.in_place && command.out.empty())
    emit(diff_report(result));
  if (!command.quiet && !command.json) fmt::print(stderr, "{}", text_report(result));
  return code;
}

bool lies_inside(const std::string& inner, const std::string& outer) {
  fs::path a = fs::weakly_canonical(inner), b = fs::weakly_canonical(outer);
  return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
}

int run_converter_form(Command command) {
  std::time_t now = std::time(nullptr);
  std::string stamp = fmt::format("{:%Y%m%d%H%M%S}", fmt::localtime(now));
  fs::path input = fs::path(command.input).lexically_normal();
  std::string name = input.has_filename() ? input.filename() : input.parent_path().filename();
  std::string out = command.out.empty() ? "output_npu_" + stamp : command.out + "/" + name + "_npu_" + stamp;
  std::string report = (command.report_root.empty() ? "" : command.report_root + "/") + "report_npu_" + stamp;
  if (!fs::is_directory(command.input))
    fail(ErrorKind::not_found, command.input, "-i takes a folder, and this is none");
  for (const std::string& folder : {out, report})
    if (lies_inside(folder, command.input))
      fail(ErrorKind::invalid_argument, folder, "must not lie inside the input folder {}", command.input);
  for (auto& [option, value] : command.options) {
    if (option == "distributed" && value != "horovod" && value != "tf_strategy")
      fail(ErrorKind::invalid_argument, "-d", "expected horovod or tf_strategy, found '{}'", value);
    if (option == "main") {
      if (!value.ends_with(".py") || !fs::is_regular_file(value))
        fail(ErrorKind::not_found, value, "-m takes the program's entry script, and this is none");
      value = fs::relative(value, command.input).generic_string();
    }
  }
  command.path = command.input;
  Options options = gather(command, command.input);
  options.platform = true;
  if (command.compat) options.tf = 1;
  SupportList list;
  if (!command.list.empty()) list = SupportList::read(command.list);
  Tree tree = read_tree(command.input, options);
  Result result = migrate(std::move(tree.inputs), options);
  int code = say_problems(write_tree(tree, result, out));
  platform_reports(result, list, report);
  fmt::print("{}\nscripts: {}\nreports: {}\n", text_report(result), out, report);
  return std::max(code, has_findings(result) ? 1 : 0);
}

[[noreturn]] void end_without_memory(size_t bytes) {
  cairn::note(fmt::format("error: migrate: {}", memory_fault(bytes).what()));
  remove_part_files();
  ::_exit(2);
}

int dispatch(const Command& command, const CLI::App& app) {
  when_parser_lacks_memory(end_without_memory);
  if (command.rules) return emit(rules_markdown()), 0;
  if (!command.undo.empty()) {
    size_t restored = 0;
    int code = say_problems(undo(command.undo, restored));
    fmt::print(stderr, "{} files restored\n", restored);
    return code;
  }
  if (!command.input.empty()) return run_converter_form(command);
  if (command.path.empty()) return fmt::print(stderr, "{}", app.help()), 2;
  if (command.in_place + !command.out.empty() + command.diff > 1)
    fail(ErrorKind::invalid_argument, "", "-o, --in-place and --diff exclude each other");
  return run_migrate(command);
}

}  // namespace
}  // namespace cairn::migrate

int migrate_main(int argc, char** argv) {
  using namespace cairn::migrate;
  Command command;
  CLI::App app("Makes TensorFlow training scripts run on the platform: shows, writes and reports what they need.",
               "cairn migrate");
  app.formatter(std::make_shared<cairn::cli::Help>());
  declare(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cairn::cli::end_parse(app, error, 2);
  }
  try {
    return dispatch(command, app);
  } catch (...) {
    fmt::print(stderr, "error: migrate: {}\n", cairn::current_fault().what());
    return 2;
  }
}
