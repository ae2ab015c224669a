#include "diff/truth.h"

#include <algorithm>

#include "passes/widen.h"

namespace cairn::diff {

namespace {

std::optional<judge::Distance> error_of(const Tensor& value, const Tensor& truth) {
  if (value.count() != truth.count() || !value.dtype().is_float() || value.dtype().bits < 16) return std::nullopt;
  return judge::nearest(value, truth)->distance;
}

void judge_errors(TruthRow& row, const Tensor& truth) {
  row.row.spread = judge::distance(truth, truth).size;
  if (row.mine) row.row.error = row.mine->most, row.row.nonfinite = row.mine->unlike;
  if (row.mine && row.theirs) static_cast<judge::Errors&>(row) = judge::compare_errors(*row.mine, *row.theirs);
}

/// Where ours is first the larger one: not so in what a value was made from, through values without counterpart.
void find_first(const Trace& trace, const std::vector<TruthRow*>& rows) {
  std::vector<judge::Judged> values;
  for (size_t i = 0; i < trace.values.size(); ++i)
    values.push_back({!rows[i] || !rows[i]->theirs      ? judge::Verdict::none
                      : rows[i]->larger == Larger::mine ? judge::Verdict::fail
                                                        : judge::Verdict::pass,
                      trace.values[i].inputs});
  const std::vector<bool> first = judge::first_faults(values);
  for (size_t i = 0; i < trace.values.size(); ++i)
    if (rows[i]) rows[i]->first = first[i];
}

/// A row for each floating value of the truth that the other side has as well, in the order of computation.
void add_rows(TruthResult& result, const Trace& trace, const Golden& theirs, const Trace& exact) {
  std::map<Key, size_t> places;  // of several values with one name the last is meant
  for (size_t i = 0; i < trace.values.size(); ++i) places[trace.values[i].key] = i;
  std::map<Key, size_t> last;
  for (size_t i = 0; i < exact.values.size(); ++i) last[exact.values[i].key] = i;
  std::vector<size_t> of_trace;
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
      row.row.kernel = traced.kernel, row.row.dtype = to_string(traced.tensor.dtype());
    }
    if (!row.theirs) continue;
    judge_errors(row, value.tensor);
    of_trace.push_back(row.mine ? own->second : trace.values.size());
    result.rows.push_back(std::move(row));
  }
  std::vector<TruthRow*> rows(trace.values.size() + 1, nullptr);
  for (size_t i = 0; i < result.rows.size(); ++i) rows[of_trace[i]] = &result.rows[i];
  find_first(trace, rows);
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
    judge_errors(row, *right);
    result.outputs.push_back(std::move(row));
  }
  return result;
}

}  // namespace cairn::diff
