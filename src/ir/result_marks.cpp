#include "ir/result_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace cairn {

std::optional<ResultMark> result_mark(const Source& source) {
  const size_t colon = source.op.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  ResultMark mark{source.op.substr(0, colon)};
  const char *end = source.op.data() + source.op.size(), *at = source.op.data() + colon + 1;
  auto [behind, error] = std::from_chars(at, end, mark.index);
  if (error != std::errc()) return std::nullopt;
  if (behind == end) return mark;
  auto [last, fault] = std::from_chars(behind + 1, end, mark.own);
  return *behind == '@' && fault == std::errc() && last == end ? std::optional(mark) : std::nullopt;
}

void mark_results(const std::vector<Value*>& results, const std::string& op,
                  const std::function<bool(const Value*)>& is_new,
                  const std::function<SourceId(const std::string& op)>& add) {
  auto made = [&](const Value* value) { return value && value->producer && is_new(value); };
  auto first = std::find_if(results.begin(), results.end(), made);
  if (first == results.end()) return;
  size_t index = 0;
  if (std::all_of(results.begin(), results.end(), [&](const Value* value) {
        const size_t at = index++;
        return !made(value) || (value->producer == (*first)->producer && value->index == at);
      }))
    return;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!made(results[i])) continue;
    const uint32_t own = results[i]->index;
    const SourceId id = add(own == 0 ? fmt::format("{}:{}", op, i) : fmt::format("{}:{}@{}", op, i, own));
    auto& ids = results[i]->producer->sources;
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
}

void carry_marks(Module& module, const Node& from, const std::vector<Value*>& values,
                 const std::function<bool(const Value*)>& is_new) {
  const std::vector<SourceId> plain = plain_sources(module, from.sources);
  if (plain.empty() || plain.back() >= module.sources.size()) return;
  const Source source = module.sources[plain.back()];
  std::vector<Value*> results;
  auto put = [&](size_t index, Value* value) {
    if (results.size() <= index) results.resize(index + 1, nullptr);
    results[index] = value;
  };
  for (SourceId id : from.sources)
    if (auto mark = result_mark(module.sources[id]); mark && module.sources[id].name == source.name)
      if (mark->own < values.size()) put(mark->index, values[mark->own]);
  for (size_t i = 0; i < values.size() && plain.size() == from.sources.size(); ++i) put(i, values[i]);
  auto is_ours = [&](const Value* value) {
    const auto& ids = value->producer->sources;
    return is_new(value) && std::find(ids.begin(), ids.end(), plain.back()) != ids.end();
  };
  mark_results(results, source.op, is_ours, [&](const std::string& op) {
    for (SourceId id = 0; id < module.sources.size(); ++id)
      if (module.sources[id].op == op && module.sources[id].name == source.name) return id;
    return module.add_source({source.framework, source.name, op, source.location});
  });
}

std::vector<SourceId> plain_sources(const Module& module, const std::vector<SourceId>& sources) {
  std::vector<SourceId> plain;
  std::copy_if(sources.begin(), sources.end(), std::back_inserter(plain),
               [&](SourceId id) { return id >= module.sources.size() || !result_mark(module.sources[id]); });
  return plain;
}

std::unordered_set<std::string> marked_sources(const Module& module) {
  std::unordered_set<std::string> names;
  for (const Source& source : module.sources)
    if (result_mark(source)) names.insert(source.name);
  return names;
}

}  // namespace cairn
