// What the data pipelines of a recording's process did, as cairn.data writes it beside the events: read, as a table, and advice.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "profile/analysis.h"
#include "profile/files.h"
#include "profile/writer.h"
#include "support/files.h"

namespace cairn::profile {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
constexpr size_t kMostPipelineBytes = 64 << 20;

double number_at(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}
std::string text_at(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

DataPipeline pipeline_of(const Json& told) {
  DataPipeline pipeline{number_at(told, "seconds"), static_cast<int64_t>(number_at(told, "workers")), {}};
  auto operations = told.find("operations");
  if (operations == told.end() || !operations->is_array()) return pipeline;
  for (const Json& each : *operations)
    if (each.is_object())
      pipeline.operations.push_back({text_at(each, "operation"), text_at(each, "where"),
                                     static_cast<int64_t>(number_at(each, "rows")), number_at(each, "busy_s"),
                                     number_at(each, "waited_s"), number_at(each, "queue"), number_at(each, "ahead")});
  return pipeline;
}

constexpr double kWorthTelling = 0.05;

}  // namespace

std::vector<DataPipeline> read_data_pipelines(const std::string& folder) {
  const fs::path path = fs::path(folder) / kDataPipelines;
  std::error_code error;
  std::vector<DataPipeline> pipelines;
  if (!fs::exists(path, error)) return pipelines;
  const Json told = Json::parse(read_file(path.string(), kMostPipelineBytes), nullptr, false);
  if (!told.is_array()) fail(ErrorKind::io, path.string(), "is damaged: no list in JSON");
  for (const Json& each : told)
    if (each.is_object()) pipelines.push_back(pipeline_of(each));
  std::erase_if(pipelines, [](const DataPipeline& each) { return each.operations.empty(); });
  return pipelines;
}

void write_data_pipelines(const Recording& recording, const std::string& path) {
  if (recording.pipelines.empty()) return;
  Writer file(path);
  file.text("Pipeline,Operation,Script Line,Rows,Busy(us),Waited For(us),Queue,Queue Size\n");
  for (size_t number = 0; number < recording.pipelines.size(); ++number)
    for (const DataOperation& each : recording.pipelines[number].operations)
      file.text(fmt::format("{},{},{},{},{:.3f},{:.3f},{:.2f},{:.0f}\n", number + 1, csv_cell(each.operation),
                            csv_cell(each.where), each.rows, each.busy_s * 1e6, each.waited_s * 1e6, each.queue,
                            each.ahead));
  file.close();
}

void advise_on_data(const Recording& recording, std::vector<Advice>& list) {
  for (const DataPipeline& pipeline : recording.pipelines) {
    const DataOperation& last = pipeline.operations.back();
    if (pipeline.seconds <= 0 || last.waited_s < kWorthTelling * pipeline.seconds) continue;
    const DataOperation* slowest = &last;
    double busy = 0;
    for (const DataOperation& each : pipeline.operations) {
      busy += each.busy_s;
      if (each.busy_s > slowest->busy_s) slowest = &each;
    }
    const std::string name =
        slowest->where.empty() ? slowest->operation : slowest->operation + " (" + slowest->where + ")";
    list.push_back(
        {fmt::format("The program waits for rows of a data pipeline, most of whose time goes into {}: more workers, or "
                     "less work there.",
                     name),
         fmt::format("waited {:.2f} s of {:.2f} s; {} took {:.2f} s for {} rows, {:.0f} % of what the operations took, "
                     "with {} workers; {:.1f} of {:.0f} rows or batches lay ready",
                     last.waited_s, pipeline.seconds, slowest->operation, slowest->busy_s, slowest->rows,
                     busy > 0 ? 100 * slowest->busy_s / busy : 0, pipeline.workers, last.queue, last.ahead)});
  }
}

}  // namespace cairn::profile
