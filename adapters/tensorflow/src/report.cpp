#include "report.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace cairn_tf {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostNames = 20;     // of nodes that stay for the same reason
constexpr size_t kMostGraphs = 1000;  // the first ones of a long run

Json describe(const std::vector<Node>& nodes, const std::vector<bool>& numeric, const Partition& partition,
              const std::vector<std::string>& names) {
  Json clusters = Json::array();
  size_t on_engine = 0, of_numbers = 0;
  std::set<size_t> inside;
  for (size_t i = 0; i < partition.clusters.size(); ++i) {
    std::map<std::string, int> ops;
    for (int member : partition.clusters[i]) {
      ++ops[nodes[static_cast<size_t>(member)].op];
      inside.insert(static_cast<size_t>(member));
    }
    clusters.push_back({{"name", names[i]}, {"nodes", partition.clusters[i].size()}, {"ops", ops}});
  }
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> host;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (numeric[i]) {
      ++of_numbers;
      on_engine += inside.count(i);
    }
    if (!inside.count(i) && !nodes[i].constant) host[{nodes[i].op, partition.host[i]}].push_back(nodes[i].name);
  }
  Json stays = Json::array();
  for (auto& [what, list] : host) {
    size_t count = list.size();
    list.resize(std::min(count, kMostNames));
    stays.push_back({{"op", what.first}, {"reason", what.second}, {"count", count}, {"nodes", list}});
  }
  return {{"nodes", nodes.size()},
          {"numeric", of_numbers},
          {"numeric_on_engine", on_engine},
          {"clusters", clusters},
          {"host", stays}};
}

}  // namespace

bool report_wanted() {
  const char* path = std::getenv("CAIRN_REPORT");
  return path && *path;
}

namespace {

struct File {
  std::mutex mutex;
  Json graphs = Json::array(), stock = Json::array(), open = Json::object(), doubt = Json::object();
  bool told = false;  // that the report cannot be written

  /// Replaces the report as a whole; a step goes on where it cannot be written.
  void write() {
    const std::string path = std::getenv("CAIRN_REPORT");
    const bool device = path.rfind("/dev/", 0) == 0;
    const std::string part = device ? path : path + ".part";
    std::ofstream out(part, std::ios::trunc);
    out << Json{{"graphs", graphs}, {"changing_sizes", open}, {"in_doubt", doubt}, {"run_by_tensorflow", stock}}.dump(
               1, ' ', false, Json::error_handler_t::replace)
        << '\n';
    out.close();
    if (out && (device || std::rename(part.c_str(), path.c_str()) == 0)) return;
    if (!std::exchange(told, true)) std::fprintf(stderr, "CAIRN_REPORT: %s cannot be written\n", path.c_str());
    if (!device) std::remove(part.c_str());
  }
};
File& file() {
  static File the_file;
  return the_file;
}

}  // namespace

void report(const std::string& title, const std::vector<Node>& nodes, const std::vector<bool>& numeric,
            const Partition& partition, const std::vector<std::string>& clusters) {
  std::lock_guard lock(file().mutex);
  if (file().graphs.size() >= kMostGraphs) return;
  Json graph = describe(nodes, numeric, partition, clusters);
  graph["function"] = title;
  file().graphs.push_back(std::move(graph));
  file().write();
}

void report_open_sizes(const std::string& cluster, int compilations, const std::string& why) {
  std::lock_guard lock(file().mutex);
  if (file().open.size() >= kMostGraphs) return;
  file().open[cluster]["compilations"] = compilations;
  file().open[cluster]["compiled_per_set"] = why;
  file().write();
}

void report_new_sizes(const std::string& cluster, const std::string& where) {
  std::lock_guard lock(file().mutex);
  if (file().open.size() >= kMostGraphs) return;
  file().open[cluster]["new_sizes"] = where;
  file().write();
}

void report_in_doubt(const std::string& cluster, const std::string& where) {
  std::lock_guard lock(file().mutex);
  if (file().doubt.size() >= kMostGraphs) return;
  file().doubt[cluster] = where;
  file().write();
}

void report_stock_run(const std::string& cluster, const std::string& reason, const std::vector<std::string>& nodes) {
  if (!report_wanted()) return;
  std::lock_guard lock(file().mutex);
  if (file().stock.size() >= kMostGraphs) return;
  file().stock.push_back({{"cluster", cluster}, {"reason", reason}, {"nodes", nodes}});
  file().write();
}

}  // namespace cairn_tf
