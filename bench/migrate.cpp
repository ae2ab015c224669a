// Lines per second of processor time of script migration over a folder: one thread, files read before the clock starts.
// Run: bench_migrate FOLDER [repetitions]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "migrate/tree.h"

int main(int argc, char** argv) {
  using namespace cairn::migrate;
  if (argc < 2) return fmt::print(stderr, "usage: bench_migrate FOLDER [repetitions]\n"), 2;
  Options options;
  options.jobs = 1;
  Tree tree = read_tree(argv[1], options);
  double best_all = 0, best_scripts = 0;
  for (int i = 0; i < (argc > 2 ? std::atoi(argv[2]) : 3); ++i) {
    std::clock_t begin = std::clock();
    Result result = migrate(tree.inputs, options);
    double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    uint64_t scripts = 0;
    for (const FileResult& file : result.files) scripts += file.lines;
    best_all = std::max(best_all, result.lines / seconds);
    best_scripts = std::max(best_scripts, scripts / seconds);
  }
  fmt::print("{:.0f} lines/s over the tree, {:.0f} lines/s of framework files, one thread\n", best_all, best_scripts);
}
