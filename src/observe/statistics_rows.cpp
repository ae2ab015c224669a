#include "observe/statistics_rows.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>

namespace cairn::observe {

namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string operation_of(const Origin& origin, size_t task) {
  return fmt::format("{},{},{},0,", quoted(origin.op), quoted(origin.name), task);
}

std::string type_text(DType dtype, const std::vector<int64_t>& dims) {
  size_t count = 1;
  for (int64_t dim : dims) count *= static_cast<size_t>(dim);
  return fmt::format("{},{},\"({})\",", storage_bytes(dtype, static_cast<int64_t>(count)), to_string(dtype),
                     fmt::join(dims, ","));
}

/// The number of f32 elements in the buffer, if the plan determines it; else (or for other types) 0.
size_t floats_in(const Buffer& buffer) {
  bool known = buffer.value && buffer.value->type.is_tensor() && buffer.value->type.is_static();
  if (!known || buffer.kind == Buffer::Kind::constant || is_host_object(buffer.value->type) || !buffer.space->is_host())
    return 0;
  const Type& type = buffer.value->type;
  if (type.dtype != kF32) return 0;
  size_t count = 1;
  for (int64_t dim : type.shape.sizes()) count *= static_cast<size_t>(dim);
  return count;
}

/// Appends a number and a comma; for tensors of floats of at most 32 bits with fewer digits.
char* put_number(char* out, double value, bool narrow) {
  *out++ = ',';
  return narrow ? fmt::format_to(out, FMT_COMPILE("{}"), static_cast<float>(value))
                : fmt::format_to(out, FMT_COMPILE("{:.9g}"), value);
}

}  // namespace

bool is_wanted(const PlannedStep& step, const Module& module, const DumpOptions& options) {
  if (step.control || step.group.nodes.empty()) return false;
  const auto& layers = options.layers;
  if (layers.empty()) return true;
  auto named = [&](const std::string& name) { return std::find(layers.begin(), layers.end(), name) != layers.end(); };
  for (const Node* node : step.group.nodes)
    for (SourceId id : node->sources)
      if (id < module.sources.size() && named(module.sources[id].name)) return true;
  return false;
}

StatisticsRows::StatisticsRows(const Plan& plan, const Module& module, const DumpOptions& options)
    : steps_(plan.steps.size()) {
  auto type_of = [&](size_t buffer) {
    const cairn::Value* value = plan.buffers[buffer].value;
    bool known = value && value->type.is_tensor() && value->type.is_static();
    return known ? type_text(value->type.dtype, value->type.shape.sizes()) : "";
  };
  const std::vector<StepNames> names = step_names(plan, module);
  for (size_t task = 0; task < plan.steps.size(); ++task) {
    const PlannedStep& step = plan.steps[task];
    if (!is_wanted(step, module, options)) continue;
    auto add = [&](std::vector<Value>& rows, const std::vector<size_t>& buffers, const std::vector<ValueName>& values,
                   const char* io) {
      for (size_t i = 0; i < buffers.size() && i < values.size(); ++i)
        for (size_t place : values[i].places)
          rows.push_back({buffers[i], operation_of(values[i].origin, task), fmt::format("{},{},", io, place),
                          type_of(buffers[i]), floats_in(plan.buffers[buffers[i]])});
    };
    if (options.inputs) add(steps_[task].inputs, step.inputs, names[task].inputs, "input");
    if (options.outputs) add(steps_[task].outputs, step.outputs, names[task].outputs, "output");
  }
}

void StatisticsRows::add(std::vector<StatisticsRow>& rows, size_t step, bool inputs, const Plan& plan,
                         void* const* buffers, int64_t data_index, uint64_t time) const {
  for (const Value& value : inputs ? steps_[step].inputs : steps_[step].outputs) {
    if (value.floats > 0 && buffers[value.buffer]) {
      const auto* x = static_cast<const float*>(buffers[value.buffer]);
      rows.push_back({&value, nullptr, data_index, time, true, statistics_of(x, value.floats)});
      continue;
    }
    auto tensor = tensor_at(plan, value.buffer, buffers);
    if (!tensor || !has_statistics(tensor->dtype())) continue;
    bool narrow = tensor->dtype().is_float() && tensor->dtype().bits <= 32;
    std::unique_ptr<std::string> late;
    if (value.type.empty()) late = std::make_unique<std::string>(type_text(tensor->dtype(), tensor->dims()));
    rows.push_back({&value, std::move(late), data_index, time, narrow, statistics_of(*tensor)});
  }
}

void write_row(const StatisticsRow& row, std::string& text) {
  const StatisticsRows::Value& value = *row.value;
  const Statistics& s = row.statistics;
  char numbers[256];  // at most 4 of 17 characters, 5 of 20, commas
  char* end = fmt::format_to(numbers, FMT_COMPILE("{},"), row.data_index);
  text.append(numbers, end).append(value.operation);
  end = fmt::format_to(numbers, FMT_COMPILE("{},"), row.time);
  text.append(numbers, end).append(value.place);
  const std::string& type = value.type.empty() ? *row.type : value.type;
  text.append(type, 0, type.size() - 1);  // put_number brings its comma
  end = numbers;
  for (double number : {s.most, s.least, s.mean, s.norm}) end = put_number(end, number, row.narrow);
  end =
      fmt::format_to(end, FMT_COMPILE(",{},{},{},{},{}\n"), s.count, s.nan, s.minus_infinite, s.plus_infinite, s.zero);
  text.append(numbers, end);
}

}  // namespace cairn::observe
