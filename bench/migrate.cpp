// Lines per second of processor time of script migration over a folder, and the seconds of each report: one thread, files read before
// the clock starts.
// Run: bench_migrate FOLDER [repetitions]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "migrate/reports.h"
#include "migrate/tree.h"

namespace {

using namespace cairn::migrate;

template <class Work>
double seconds(Work&& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

struct Report {
  const char* name;
  void (*make)(const Result& result);
  double best = 1e9;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print(stderr, "usage: bench_migrate FOLDER [repetitions]\n"), 2;
  Options options;
  options.jobs = 1;
  Tree tree = read_tree(argv[1], options);
  Report reports[] = {{"text", [](const Result& result) { (void)text_report(result); }},
                      {"diff", [](const Result& result) { (void)diff_report(result); }},
                      {"json", [](const Result& result) { (void)json_report(result); }},
                      {"sarif", [](const Result& result) { (void)sarif_report(result); }},
                      {"csv", [](const Result& result) { (void)csv_report(result); }},
                      {"html", [](const Result& result) { (void)html_report(result, "tree"); }},
                      {"xlsx", [](const Result& result) { xlsx_report(result, {}, "/dev/null"); }}};
  double best = 1e9;
  uint64_t lines = 0, scripts = 0;
  for (int i = 0; i < (argc > 2 ? std::atoi(argv[2]) : 3); ++i) {
    Result result;
    best = std::min(best, seconds([&] { result = migrate(tree.inputs, options); }));
    lines = result.lines, scripts = 0;
    for (const FileResult& file : result.files) scripts += file.lines;
    for (Report& report : reports) report.best = std::min(report.best, seconds([&] { report.make(result); }));
  }
  double all = best;
  for (const Report& report : reports) all += report.best, fmt::print("{:<8} {:.3f} s\n", report.name, report.best);
  fmt::print("{:.0f} lines/s over the tree, {:.0f} with all reports, {:.0f} lines/s of framework files, one thread\n",
             lines / best, lines / all, scripts / best);
}
