// cairn why of the file that CAIRN_REPORT names: for each cluster of the TensorFlow door where it runs, also at sizes that are new,
// and for each operator that stays with TensorFlow the reason.
#include "why_report.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Where a cluster runs, by what the report says of its sizes and refusals.
std::string place_of(const Json& report, const std::string& cluster) {
  for (const Json& stock : report["run_by_tensorflow"])
    if (stock["cluster"] == cluster)
      return fmt::format("tensorflow{}: {}", stock["nodes"].empty() ? "" : " in part",
                         stock["reason"].get<std::string>());
  if (const Json doubt = report.value("in_doubt", Json::object()); doubt.contains(cluster))
    if (const auto where = doubt[cluster].get<std::string>(); has(where, "tensorflow: ")) return where;
  const Json told = report["changing_sizes"].value(cluster, Json::object());
  std::string place = "engine";
  if (told.contains("compilations")) {
    const auto why = told.value("compiled_per_set", "");
    place += why.empty() ? ", sizes open" : fmt::format(", compiled for each set of sizes: {}", why);
  }
  return told.contains("new_sizes") ? fmt::format("{}; new sizes on {}", place, told["new_sizes"].get<std::string>())
                                    : place;
}

/// The clusters and the operators that stay, of all graphs; those that have `name` in their names.
Json reasons(const Json& report, const std::string& name) {
  Json list = Json::array();
  for (const Json& graph : report["graphs"]) {
    for (const Json& cluster : graph["clusters"])
      if (const auto title = cluster["name"].get<std::string>(); has(title, name))
        list.push_back({{"name", title}, {"nodes", cluster["nodes"]}, {"place", place_of(report, title)}});
    for (const Json& stays : graph["host"]) {
      const auto op = stays["op"].get<std::string>();
      bool concerned = has(op, name);
      for (const Json& node : stays["nodes"]) concerned = concerned || has(node.get<std::string>(), name);
      if (concerned)
        list.push_back({{"name", op},
                        {"nodes", stays["count"]},
                        {"place", fmt::format("tensorflow: {}", stays["reason"].get<std::string>())}});
    }
  }
  return list;
}

}  // namespace

bool is_report(const std::string& path) { return path.size() > 5 && path.substr(path.size() - 5) == ".json"; }

int explain_report(const std::string& path, const std::string& name, bool json) {
  const Json report = Json::parse(read_file(path), nullptr, false);
  for (const char* part : {"graphs", "changing_sizes", "run_by_tensorflow"})
    if (!report.is_object() || !report.contains(part))
      fail(ErrorKind::invalid_argument, path, "is no report of CAIRN_REPORT: it has no {}", part);
  const Json list = reasons(report, name);
  if (list.empty() && !name.empty()) fail(ErrorKind::not_found, name, "is no cluster or operator of the report");
  if (json) print_json({{"report", list}});
  for (const Json& each : json ? Json::array() : list)
    fmt::print("{}  {} nodes\n  on {}\n", bold(each["name"].get<std::string>()), each["nodes"].get<int>(),
               each["place"].get<std::string>());
  return 0;
}

}  // namespace cairn::cli
