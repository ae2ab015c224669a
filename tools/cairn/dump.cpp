#include "dump.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "arrays.h"

namespace cairn::cli {

namespace {

/// Marks that separate parts of a file's name may not stand inside one.
std::string part_of_name(const std::string& name) {
  std::string part = file_name(name);
  std::replace(part.begin(), part.end(), '.', '_');
  return part;
}

}  // namespace

Dumper::Dumper(const Module& module, std::string folder, uint64_t time)
    : module_(module), folder_(std::move(folder)), time_(std::to_string(time)) {
  std::filesystem::create_directories(folder_);
  manifest_ = (std::filesystem::path(folder_) / "manifest.jsonl").string();
}

void Dumper::step_ends(const Plan& plan, size_t step, void* const* buffers) {
  const PlannedStep& planned = plan.steps[step];
  if (planned.control) return;  // the steps inside are seen one by one
  for (size_t i = 0; i < planned.group.outputs.size(); ++i) {
    const Value& value = *planned.group.outputs[i];
    if (value.producer && value.type.is_static() && !is_host_object(value.type))
      write(*value.producer, value.index, value, buffers[planned.outputs[i]]);
  }
}

void Dumper::write(const Node& node, size_t index, const Value& value, const void* data) {
  Json sources = Json::array();
  std::string name = value.name, location;
  for (SourceId id : node.sources) {
    if (id >= module_.sources.size()) continue;
    const Source& source = module_.sources[id];
    sources.push_back(source.framework + ":" + source.name);
    name = source.name;
    location = source.location;
  }
  std::string file =
      fmt::format("{}.{}.{}.0.{}.output.{}.npy", node.op->name, part_of_name(name), files_, time_, index);
  write_npy(Tensor::view(value.type.dtype, value.type.shape.sizes(), data, nullptr),
            (std::filesystem::path(folder_) / file).string());
  Json line = {{"file", file},   {"op", name},         {"type", node.op->name}, {"kind", "output"},
               {"index", index}, {"sources", sources}, {"location", location}};
  std::ofstream(manifest_, std::ios::app) << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  ++files_;
}

}  // namespace cairn::cli
