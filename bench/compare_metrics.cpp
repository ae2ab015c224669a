// Times the ten metrics on two raw float32 files, one thread: bench_compare_metrics X Y prints seconds and columns as JSON.
// bench/compare_metrics.py runs it beside the numpy statement.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "judge/metrics.h"
#include "support/files.h"

int main(int argc, char** argv) try {
  using namespace cairn;
  if (argc != 3) fail(ErrorKind::invalid_argument, "", "usage: bench_compare_metrics X Y");
  std::vector<std::vector<float>> values;
  for (const char* path : {argv[1], argv[2]}) {
    auto file = MappedFile::open(path);
    const float* begin = reinterpret_cast<const float*>(file->bytes().data());
    values.emplace_back(begin, begin + file->bytes().size() / sizeof(float));
  }
  if (values[0].size() != values[1].size()) fail(ErrorKind::invalid_argument, "", "sizes differ");
  auto begin = std::chrono::steady_clock::now();
  judge::Metrics metrics = judge::measure(values[0], values[1]);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  nlohmann::ordered_json columns;
  for (size_t i = 0; i < judge::kMetrics; ++i) {
    auto metric = static_cast<judge::Metric>(i);
    columns[std::string(column_name(metric))] = metrics.text(metric);
  }
  std::puts(nlohmann::ordered_json{{"seconds", seconds}, {"metrics", columns}}.dump().c_str());
  return 0;
} catch (const cairn::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
