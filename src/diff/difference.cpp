#include "diff/difference.h"

#include <algorithm>
#include <cmath>

#include "compare/diagnosis.h"
#include "compare/metrics.h"
#include "diff/blame.h"
#include "ir/text.h"
#include "passes/pipeline.h"

namespace cairn::diff {

namespace {

constexpr uint64_t kSeeds[] = {11, 23};

std::vector<int64_t> without_ones(const std::vector<int64_t>& dims) {
  std::vector<int64_t> kept;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(kept), [](int64_t dim) { return dim != 1; });
  return kept;
}

Tensor permuted(const Tensor& tensor, const std::vector<size_t>& order) {
  std::vector<int64_t> dims, strides(tensor.rank(), 1);
  for (size_t axis = tensor.rank(); axis-- > 1;) strides[axis - 1] = strides[axis] * tensor.dims()[axis];
  for (size_t axis : order) dims.push_back(tensor.dims()[axis]);
  Tensor out = Tensor::uninitialized(tensor.dtype(), dims);
  size_t size = tensor.dtype().size();
  const char* from = static_cast<const char*>(tensor.data());
  char* to = static_cast<char*>(out.mutable_data());
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t i = 0; i < out.count(); ++i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) at += index[axis] * strides[order[axis]];
    std::memcpy(to + static_cast<size_t>(i) * size, from + static_cast<size_t>(at) * size, size);
    for (size_t axis = dims.size(); axis-- > 0;)
      if (++index[axis] < dims[axis])
        break;
      else
        index[axis] = 0;
  }
  return out;
}

/// Channels moved behind the other axes, and in front of them.
std::vector<std::vector<size_t>> channel_moves(size_t rank) {
  if (rank < 3) return {};
  std::vector<size_t> back = {0}, front = {0, rank - 1};
  for (size_t axis = 2; axis < rank; ++axis) back.push_back(axis);
  back.push_back(1);
  for (size_t axis = 1; axis + 1 < rank; ++axis) front.push_back(axis);
  return {back, front};
}

bool is_compared(DType dtype) {
  return dtype.kind != DType::Kind::string && dtype.bits >= 8 && dtype.kind != DType::Kind::complex_float;
}

struct Distance {
  double error = 0, spread = 0;
  size_t nonfinite = 0;
};

Distance distance(const Tensor& x, const Tensor& y) {
  std::vector<double> a = x.as_f64(), b = y.as_f64();
  Distance out;
  double square = 0;
  size_t finite = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i]) && std::isfinite(b[i])) {
      out.error = std::max(out.error, std::abs(a[i] - b[i]));
      square += b[i] * b[i], ++finite;
    } else if (!(std::isnan(a[i]) && std::isnan(b[i])) && a[i] != b[i]) {
      ++out.nonfinite;
    }
  }
  out.spread = finite ? std::sqrt(square / static_cast<double>(finite)) : 0;
  return out;
}

Row compare_texts(const Tensor& mine, const Tensor& golden) {
  Row row;
  row.dims = mine.dims(), row.dtype = to_string(mine.dtype());
  if (mine.dtype() != golden.dtype() || mine.count() != golden.count()) {
    row.off = true, row.error = INFINITY;
    row.finding = fmt::format("{} {} elements, golden has {} {}", mine.count(), row.dtype, golden.count(),
                              to_string(golden.dtype()));
    return row;
  }
  auto x = mine.values<std::string>(), y = golden.values<std::string>();
  for (size_t i = 0; i < x.size(); ++i) row.nonfinite += x[i] != y[i];
  row.off = row.nonfinite > 0;
  if (row.off) row.finding = fmt::format("{} of {} texts differ", row.nonfinite, x.size());
  return row;
}

/// The rounding of either side's type, at the size of the largest element.
double last_place(const Tensor& mine, const Tensor& golden) {
  if (!mine.dtype().is_float()) return 0;
  double most = 0;
  for (double value : golden.as_f64())
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  return 2 * compare::unit_roundoff(compare::coarser(mine.dtype(), golden.dtype())) * most;
}

}  // namespace

const Tensor* find_output(const std::vector<std::pair<std::string, Tensor>>& list, const std::string& name) {
  for (const std::string& each : {name, name + ":0", name.substr(0, name.rfind(':'))})
    for (const auto& [key, tensor] : list)
      if (key == each) return &tensor;
  return nullptr;
}

std::vector<Tensor> forms_of(const Tensor& golden, const Tensor& like) {
  std::vector<Tensor> forms;
  if (golden.count() != like.count()) return forms;
  if (without_ones(golden.dims()) == without_ones(like.dims())) forms.push_back(golden.reshaped(like.dims()));
  for (const auto& order : channel_moves(golden.rank())) {
    std::vector<int64_t> dims;
    for (size_t axis : order) dims.push_back(golden.dims()[axis]);
    if (dims == like.dims()) forms.push_back(permuted(golden, order));
  }
  if (forms.empty()) forms.push_back(golden.reshaped(like.dims()));
  return forms;
}

std::optional<Tensor> in_form_of(const Tensor& golden, const Tensor& like) {
  std::vector<Tensor> forms = forms_of(golden, like);
  return forms.empty() ? std::nullopt : std::optional(forms[0]);
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
  std::optional<Distance> best;
  Tensor form;
  // Dims can be equal by chance, with the channels elsewhere: the form that fits best is meant.
  for (const Tensor& each : forms_of(golden, mine)) {
    Distance found = distance(mine, each);
    if (!best || std::pair(found.nonfinite, found.error) < std::pair(best->nonfinite, best->error))
      best = found, form = each;
  }
  row.error = best->error, row.spread = best->spread, row.nonfinite = best->nonfinite;
  row.allowed = options_.factor * noise + last_place(mine, form);
  row.off = row.nonfinite > 0 || row.error > row.allowed;
  if (row.off) {
    std::vector<float> x, y;
    row.finding = compare::diagnose(compare::as_floats(mine, x), compare::as_floats(form, y), mine.dtype()).finding();
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
    if (!a.defined() || !is_compared(a.dtype()) || a.dims() != b.dims()) return;
    noise = std::max(noise, distance(b, a).error);
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
    if (!is_compared(tensor.dtype()) && tensor.dtype() != kString) continue;
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
    if (found == golden_.values.end() || !traced.tensor.defined() || !is_compared(traced.tensor.dtype())) continue;
    bool fits =
        found->second.defined() && is_compared(found->second.dtype()) && found->second.count() == traced.tensor.count();
    if (fits) paired[i] = &found->second;
  }
  return paired;
}

/// Off, although all that went in is right: of values that have no counterpart, what went into them.
void Judge::find_suspects(const Trace& trace, const std::vector<const Tensor*>& paired, std::vector<Row*>& rows) const {
  std::vector<bool> tainted(trace.values.size(), false);
  for (size_t i = 0; i < trace.values.size(); ++i) {
    const auto& inputs = trace.values[i].inputs;
    bool from_tainted = std::any_of(inputs.begin(), inputs.end(), [&](size_t input) { return tainted[input]; });
    if (paired[i]) {
      rows[i]->suspect = rows[i]->off && !from_tainted;
      tainted[i] = rows[i]->off;
    } else {
      tainted[i] = from_tainted;
    }
  }
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
  std::vector<double> allowed(outputs.size(), 0);
  if (load) {
    auto model = Model::make(load(), {.threads = threads, .engines = {"reference"}, .optimise = false});
    const Trace plain = trace_run(*model, inputs, {.keep = false});
    for (uint64_t seed : kSeeds) {
      const Trace moved = trace_run(*model, inputs, {.noise = seed, .keep = false});
      for (size_t i = 0; i < outputs.size(); ++i) {
        const Tensor &a = plain.outputs[i].second, &b = moved.outputs[i].second;
        if (is_compared(a.dtype()) && a.dims() == b.dims())
          allowed[i] = std::max(allowed[i], factor * distance(b, a).error);
      }
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (is_compared(outputs[i].dtype())) allowed[i] += last_place(outputs[i], outputs[i]);
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
                      subject.threads, options.factor};
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
