#include "diff/difference.h"

#include <algorithm>
#include <cmath>

#include "diff/blame.h"
#include "ir/text.h"
#include "judge/diagnosis.h"
#include "judge/metrics.h"
#include "judge/rounding.h"
#include "judge/verdict.h"
#include "passes/pipeline.h"

namespace cairn::diff {

namespace {

constexpr uint64_t kSeeds[] = {11, 23};

Row compare_texts(const Tensor& mine, const Tensor& golden) {
  Row row;
  row.dims = mine.dims(), row.dtype = to_string(mine.dtype());
  if (mine.dtype() != golden.dtype() || mine.count() != golden.count()) {
    row.off = true, row.error = INFINITY;
    row.finding = fmt::format("{} {} elements, golden has {} {}", mine.count(), row.dtype, golden.count(),
                              to_string(golden.dtype()));
    return row;
  }
  row.nonfinite = judge::distance(mine, golden).unlike;
  row.off = row.nonfinite > 0;
  if (row.off) row.finding = fmt::format("{} of {} texts differ", row.nonfinite, mine.count());
  return row;
}

}  // namespace

const Tensor* find_output(const std::vector<std::pair<std::string, Tensor>>& list, const std::string& name) {
  for (const std::string& each : {name, name + ":0", name.substr(0, name.rfind(':'))})
    for (const auto& [key, tensor] : list)
      if (key == each) return &tensor;
  return nullptr;
}

Module Subject::module(const std::vector<std::string>& without) const {
  std::vector<std::string> off = disabled;
  off.insert(off.end(), without.begin(), without.end());
  Module made = load();
  if (before_passes) before_passes(made);
  if (made.optimised_by.empty()) optimise(made, {.disabled = off});
  if (behind_passes) behind_passes(made, off);
  return made;
}

std::shared_ptr<const Model> Subject::model(const std::vector<std::string>& without) const {
  return Model::make(module(without), {.threads = threads, .engines = engines, .optimise = false});
}

Golden golden_of(Trace trace, std::string maker) {
  Golden golden{std::move(maker), {}, std::move(trace.outputs)};
  for (Traced& traced : trace.values) golden.values[traced.key] = std::move(traced.tensor);
  return golden;
}

Judge::Judge(const Subject& subject, const Golden& golden, const std::vector<Tensor>& inputs, const Options& options)
    : subject_(subject), golden_(golden), inputs_(inputs), options_(options) {}

Row Judge::compare(const Tensor& mine, const Tensor& golden, double noise) const {
  Row row;
  row.dims = mine.dims();
  row.dtype = to_string(mine.dtype());
  const auto [form, distance] = *judge::nearest(mine, golden);
  row.error = distance.most, row.spread = distance.size, row.nonfinite = distance.unlike;
  row.allowed = options_.factor * noise + judge::last_place(mine.dtype(), form.dtype(), distance.largest);
  row.off = !judge::agrees(distance, row.allowed);
  if (row.off) {
    std::vector<float> x, y;
    row.finding = judge::diagnose(judge::as_floats(mine, x), judge::as_floats(form, y), mine.dtype()).finding();
  }
  return row;
}

Trace Judge::run(const Model& model, const Meddling& meddling) {
  ++runs;
  return trace_run(model, inputs_, meddling, subject_.fault.get());
}

Measured Judge::measure(const Model& model, const Trace& plain) {
  Measured measured;
  measured.values.resize(plain.values.size()), measured.outputs.resize(plain.outputs.size());
  auto grow = [](double& noise, const Tensor& a, const Tensor& b) {
    if (!a.defined() || !judge::is_measured(a.dtype()) || a.dims() != b.dims()) return;
    noise = std::max(noise, judge::distance(b, a).most);
  };
  for (uint64_t seed : kSeeds) {
    Meddling meddling;
    meddling.noise = seed;
    Trace moved = run(model, meddling);
    if (moved.values.size() != plain.values.size()) continue;  // a loop that runs until something is small enough
    for (size_t i = 0; i < plain.values.size(); ++i)
      grow(measured.values[i], plain.values[i].tensor, moved.values[i].tensor);
    for (size_t i = 0; i < plain.outputs.size(); ++i)
      grow(measured.outputs[i], plain.outputs[i].second, moved.outputs[i].second);
  }
  return measured;
}

std::vector<Row> Judge::outputs(const Trace& trace, const Measured& measured) const {
  std::vector<Row> rows;
  for (size_t i = 0; i < trace.outputs.size(); ++i) {
    const auto& [name, tensor] = trace.outputs[i];
    const Tensor* golden = find_output(golden_.outputs, name);
    if (!golden) fail(ErrorKind::not_found, name, "is no output of {}", golden_.maker);
    if (!judge::is_measured(tensor.dtype()) && tensor.dtype() != kString) continue;
    Row row;
    if (tensor.dtype() == kString || golden->dtype() == kString) {
      row = compare_texts(tensor, *golden);
    } else if (golden->count() == tensor.count()) {
      row = compare(tensor, *golden, measured.outputs[i]);
    } else {
      row.off = true, row.finding = fmt::format("{} elements, golden has {}", tensor.count(), golden->count());
      row.error = INFINITY;
    }
    row.key.node = name, row.is_output = true;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Several nodes of ours may bear one name: what a rewrite made in between has it too, and the last is the one meant.
std::vector<const Tensor*> Judge::pair(const Trace& trace) const {
  std::map<Key, size_t> last;
  for (size_t i = 0; i < trace.values.size(); ++i) last[trace.values[i].key] = i;
  std::vector<const Tensor*> paired(trace.values.size(), nullptr);
  for (const auto& [key, i] : last) {
    const Traced& traced = trace.values[i];
    auto found = golden_.values.find(key);
    if (found == golden_.values.end() || !traced.tensor.defined() || !judge::is_measured(traced.tensor.dtype()))
      continue;
    bool fits = found->second.defined() && judge::is_measured(found->second.dtype()) &&
                found->second.count() == traced.tensor.count();
    if (fits) paired[i] = &found->second;
  }
  return paired;
}

/// Off, although all that went in is right: of values that have no counterpart, what went into them.
void Judge::find_suspects(const Trace& trace, const std::vector<const Tensor*>& paired, std::vector<Row*>& rows) const {
  std::vector<judge::Judged> values;
  for (size_t i = 0; i < trace.values.size(); ++i)
    values.push_back({!paired[i]     ? judge::Verdict::none
                      : rows[i]->off ? judge::Verdict::fail
                                     : judge::Verdict::pass,
                      trace.values[i].inputs});
  const std::vector<bool> first = judge::first_faults(values);
  for (size_t i = 0; i < trace.values.size(); ++i)
    if (paired[i]) rows[i]->suspect = first[i];
}

bool off(const std::vector<Row>& outputs) {
  return std::any_of(outputs.begin(), outputs.end(), [](const Row& row) { return row.off; });
}

/// One number for how far outputs are off, to see whether a change mends them.
double badness(const std::vector<Row>& outputs) {
  double sum = 0;
  for (const Row& row : outputs) {
    if (!row.off) continue;
    double least = row.allowed > 0 ? row.allowed : 1e-30;
    sum += row.nonfinite > 0 ? 1e30 : std::min(row.error / least, 1e30);
  }
  return sum;
}

std::vector<double> Allowance::of(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const {
  std::vector<double> last(outputs.size(), 0);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (judge::is_measured(outputs[i].dtype()))
      last[i] =
          judge::last_place(outputs[i].dtype(), outputs[i].dtype(), judge::distance(outputs[i], outputs[i]).largest);
  std::vector<double> allowed = last;
  if (!load || (enough && enough(allowed))) return allowed;
  Module module = load();
  if (module.optimised_by.empty()) optimise(module, {.disabled = {"ALL"}});  // no kernel takes variables
  auto model = Model::make(std::move(module), {.threads = threads, .engines = engines, .optimise = false});
  const Trace plain = trace_run(*model, inputs, {.keep = false});
  for (uint64_t seed : kSeeds) {
    const Trace moved = trace_run(*model, inputs, {.noise = seed, .keep = false});
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor &a = plain.outputs[i].second, &b = moved.outputs[i].second;
      if (judge::is_measured(a.dtype()) && a.dims() == b.dims())
        allowed[i] = std::max(allowed[i], last[i] + factor * judge::distance(b, a).most);
    }
    if (enough && enough(allowed)) break;
  }
  return allowed;
}

namespace {

constexpr double kMostReferenceFlops = 3e9;

/// A kernel that does several operators rounds what is between them, which its results do not show.
void widen(const Subject& subject, const Trace& plain, const std::vector<Tensor>& inputs, const Options& options,
           Measured& measured) {
  double flops = 0;
  for (const Traced& traced : plain.values)
    if (traced.step) flops += traced.step->cost.flops;
  if (flops > kMostReferenceFlops) return;
  Allowance allowance{[&] {
                        Module module = subject.load();
                        if (subject.before_passes) subject.before_passes(module);
                        return module;
                      },
                      subject.threads,
                      {"reference"},
                      options.factor};
  std::vector<Tensor> outputs;
  for (const auto& [name, tensor] : plain.outputs) outputs.push_back(tensor);
  const std::vector<double> allowed = allowance.of(inputs, outputs);
  for (size_t i = 0; i < allowed.size(); ++i)
    measured.outputs[i] = std::max(measured.outputs[i], allowed[i] / options.factor);
}

}  // namespace

Result find_difference(const Subject& subject, const Golden& golden, const std::vector<Tensor>& inputs,
                       const Options& options) {
  Judge judge(subject, golden, inputs, options);
  Result result;
  result.golden = golden.maker;
  auto model = subject.model();
  Trace plain = judge.run(*model, {});
  Measured measured = judge.measure(*model, plain);
  result.outputs = judge.outputs(plain, measured);
  if (off(result.outputs)) {
    widen(subject, plain, inputs, options, measured);
    result.outputs = judge.outputs(plain, measured);
  }
  result.equal = !off(result.outputs);

  std::vector<const Tensor*> paired = judge.pair(plain);
  std::vector<Row> rows(plain.values.size());
  std::vector<Row*> places(plain.values.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    places[i] = &rows[i];
    if (!paired[i]) {
      ++result.unpaired;
      continue;
    }
    const Traced& traced = plain.values[i];
    rows[i] = judge.compare(traced.tensor, *paired[i], measured.values[i]);
    rows[i].key = traced.key, rows[i].op = traced.op, rows[i].location = traced.location,
    rows[i].kernel = traced.kernel;
  }
  judge.find_suspects(plain, paired, places);
  if (!result.equal) result.culprits = judge.blame(*model, plain, paired, places, measured, result.outputs);
  for (size_t i = 0; i < rows.size(); ++i)
    if (paired[i]) result.rows.push_back(std::move(rows[i]));
  result.runs = judge.runs;
  return result;
}

}  // namespace cairn::diff
