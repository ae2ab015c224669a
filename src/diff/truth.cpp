#include "diff/truth.h"

#include <algorithm>

#include "passes/widen.h"

namespace cairn::diff {

namespace {

using judge::Distance;

std::optional<Distance> error_of(const Tensor& value, const Tensor& truth) {
  if (value.count() != truth.count() || !value.dtype().is_float() || value.dtype().bits < 16) return std::nullopt;
  return judge::nearest(value, truth)->distance;
}

void judge_errors(TruthRow& row, std::span<const Distance> mine, std::span<const Distance> theirs) {
  if (!mine.empty()) row.mine = judge::together(mine);
  if (!theirs.empty()) row.theirs = judge::together(theirs);
  if (row.mine) row.row.error = row.mine->most, row.row.nonfinite = row.mine->unlike;
  if (row.mine && row.theirs) static_cast<judge::Errors&>(row) = judge::compare_errors(mine, theirs);
}

std::span<const Distance> list(const std::optional<Distance>& error) {
  return {error ? &*error : nullptr, error ? 1u : 0u};
}

/// Where ours is first the larger one: not so in what a value was made from, through values without counterpart.
void find_first(TruthResult& result) {
  std::vector<judge::Judged> values;
  for (const auto& inputs : result.made_from) values.push_back({judge::Verdict::none, inputs});
  for (const TruthRow& row : result.rows)
    if (row.place)
      values[*row.place].verdict = row.larger == Larger::mine ? judge::Verdict::fail : judge::Verdict::pass;
  const std::vector<bool> first = judge::first_faults(values);
  for (TruthRow& row : result.rows) row.first = row.place && first[*row.place];
}

/// A row for each floating value of the truth that the other side has as well, in the order of computation.
void add_rows(TruthResult& result, const Trace& trace, const Golden& theirs, const Trace& exact) {
  std::map<Key, size_t> places;  // of several values with one name the last is meant
  for (size_t i = 0; i < trace.values.size(); ++i) places[trace.values[i].key] = i;
  std::map<Key, size_t> last;
  for (size_t i = 0; i < exact.values.size(); ++i) last[exact.values[i].key] = i;
  for (size_t i = 0; i < exact.values.size(); ++i) {
    const Traced& value = exact.values[i];
    if (last[value.key] != i || !value.tensor.defined() || value.tensor.dtype() != kF64) continue;
    auto other = theirs.values.find(value.key);
    auto own = places.find(value.key);
    TruthRow row;
    row.row.key = value.key, row.row.op = value.op, row.row.location = value.location;
    row.row.dims = value.tensor.dims();
    if (other != theirs.values.end() && other->second.defined()) row.theirs = error_of(other->second, value.tensor);
    if (own != places.end() && trace.values[own->second].tensor.defined()) {
      const Traced& traced = trace.values[own->second];
      row.mine = error_of(traced.tensor, value.tensor);
      if (row.mine) row.place = own->second;
      row.row.kernel = traced.kernel, row.row.dtype = to_string(traced.tensor.dtype());
    }
    if (!row.theirs) continue;
    row.row.spread = judge::distance(value.tensor, value.tensor).size;
    judge_errors(row, list(row.mine), list(row.theirs));
    result.rows.push_back(std::move(row));
  }
  for (const Traced& value : trace.values) result.made_from.push_back(value.inputs);
  find_first(result);
}

}  // namespace

size_t TruthResult::count(Larger larger) const {
  return static_cast<size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const TruthRow& row) { return row.mine && row.theirs && row.larger == larger; }));
}

bool TruthResult::worse() const {
  return std::any_of(outputs.begin(), outputs.end(), [](const TruthRow& row) { return row.larger == Larger::mine; });
}

Subject in_float64(Subject plain) {
  plain.engines = {"reference"};
  plain.disabled = {"ALL"};
  plain.before_passes = [](Module& module) { widen_floats(module, true); };
  return plain;
}

TruthResult judge_by_truth(const Subject& mine, const std::vector<Tensor>& inputs, const Golden& theirs,
                           const Subject& truth, const std::vector<Tensor>& exact_inputs) {
  TruthResult result;
  result.theirs = theirs.maker;
  auto model = mine.model(), exact_model = truth.model();
  const Trace trace = trace_run(*model, inputs, {}, mine.fault.get());
  const Trace exact = trace_run(*exact_model, exact_inputs);
  add_rows(result, trace, theirs, exact);
  for (const auto& [name, tensor] : trace.outputs) {
    const Tensor *other = find_output(theirs.outputs, name), *right = find_output(exact.outputs, name);
    if (!other) fail(ErrorKind::not_found, name, "is no output of {}", theirs.maker);
    if (!right) fail(ErrorKind::not_found, name, "is no output of the graph in float64");
    if (!tensor.dtype().is_float()) continue;
    TruthRow row;
    row.row.key.node = name, row.row.dims = tensor.dims(), row.row.dtype = to_string(tensor.dtype());
    row.row.is_output = true;
    row.mine = error_of(tensor, *right), row.theirs = error_of(*other, *right);
    row.row.spread = judge::distance(*right, *right).size;
    judge_errors(row, list(row.mine), list(row.theirs));
    result.outputs.push_back(std::move(row));
  }
  return result;
}

TruthResult together(std::vector<TruthResult> runs) {
  TruthResult result = runs.at(0);
  result.runs = runs.size();
  for (auto part : {&TruthResult::outputs, &TruthResult::rows}) {
    std::map<Key, std::pair<std::vector<Distance>, std::vector<Distance>>> errors;
    for (const TruthResult& run : runs)
      for (const TruthRow& row : run.*part)
        if (row.mine && row.theirs)
          errors[row.row.key].first.push_back(*row.mine), errors[row.row.key].second.push_back(*row.theirs);
    for (TruthRow& row : result.*part)
      if (row.mine && row.theirs) judge_errors(row, errors[row.row.key].first, errors[row.row.key].second);
  }
  find_first(result);
  return result;
}

}  // namespace cairn::diff
