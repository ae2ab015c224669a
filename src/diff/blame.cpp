#include "diff/blame.h"

#include <algorithm>
#include <set>

#include "ir/result_marks.h"
#include "judge/distance.h"
#include "passes/pipeline.h"

namespace cairn::diff {

namespace {

constexpr size_t kMostConfirmations = 24;

Tensor cast(const Tensor& from, DType to) {
  if (from.dtype() == to) return from;
  Tensor out = Tensor::zeros(to, from.dims());
  std::vector<double> values = from.as_f64();
  for (size_t i = 0; i < values.size(); ++i) {
    auto value = static_cast<float>(values[i]);
    if (to == kF32) out.mutable_values<float>()[i] = value;
    if (to == kF64) out.mutable_values<double>()[i] = values[i];
    if (to == kF16) out.mutable_values<uint16_t>()[i] = float_to_half(value);
    if (to == kBF16) out.mutable_values<uint16_t>()[i] = float_to_bfloat(value);
  }
  return out;
}

/// Golden's value as it would stand in the place of ours; nothing when our type holds no such numbers.
std::optional<Tensor> stand_in(const Tensor& golden, const Tensor& mine) {
  bool floats = golden.dtype().is_float() && mine.dtype().is_float();
  if (!floats && golden.dtype() != mine.dtype()) return std::nullopt;
  const auto found = judge::nearest(mine, golden);
  return found ? std::optional(cast(found->golden, mine.dtype())) : std::nullopt;
}

/// Keeps what one execution of a step read and made.
class Grabber final : public Observer {
 public:
  Grabber(const PlannedStep* step, size_t turn, Observer* fault) : step_(step), left_(turn), fault_(fault) {}
  bool needs_values() const override { return true; }
  void step_begins(const Plan& plan, size_t index, void* const* buffers) override {
    if (fault_) fault_->step_begins(plan, index, buffers);
    if (&plan.steps[index] == step_ && left_ == 0) inputs = grab(plan, step_->inputs, buffers);
  }
  void step_ends(const Plan& plan, size_t index, void* const* buffers) override {
    if (fault_) fault_->step_ends(plan, index, buffers);
    if (&plan.steps[index] == step_ && left_-- == 0) outputs = grab(plan, step_->outputs, buffers);
  }

  std::vector<std::optional<Tensor>> inputs, outputs;

 private:
  static std::vector<std::optional<Tensor>> grab(const Plan& plan, const std::vector<size_t>& places,
                                                 void* const* buffers) {
    std::vector<std::optional<Tensor>> list;
    for (size_t place : places) {
      auto tensor = tensor_at(plan, place, buffers);
      list.push_back(tensor ? std::optional(tensor->owned()) : std::nullopt);
    }
    return list;
  }

  const PlannedStep* step_;
  size_t left_;
  Observer* fault_;
};

/// The group as a program of its own: what it reads are inputs x0, x1, ..., what it makes y0, y1, ...
Module program_of(const Module& from, const Group& group) {
  Module program;
  program.name = "operator";
  program.sources = from.sources;
  program.functions.push_back(std::make_unique<Function>());
  Function& main = *program.functions.back();
  main.name = "main";
  std::unordered_map<const Value*, Value*> map;
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    const Value* value = group.inputs[i];
    if (constant_of(value))
      main.body.nodes.push_back(clone(*value->producer, map));
    else
      map[value] = main.body.add_param(value->type, fmt::format("x{}", i));
  }
  for (const Node* node : group.nodes) main.body.nodes.push_back(clone(*node, map));
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    main.body.results.push_back(map.at(group.outputs[i]));
    main.result_names.push_back(fmt::format("y{}", i));
  }
  return program;
}

std::vector<std::string> sources_of(const Module& module, const Group& group) {
  std::vector<std::string> list;
  for (const Node* node : group.nodes)
    for (SourceId id : node->sources) {
      if (id >= module.sources.size() || result_mark(module.sources[id])) continue;
      const Source& source = module.sources[id];
      std::string line = script_line(source);
      std::string text = fmt::format("{}:{}{}", source.framework, source.name, line.empty() ? "" : " (" + line + ")");
      if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
    }
  return list;
}

/// Whether one of "tf:conv1 (train.py:3)" is the node.
bool holds(const std::vector<std::string>& sources, const std::string& node) {
  return std::any_of(sources.begin(), sources.end(), [&](const std::string& source) {
    const std::string_view name = std::string_view(source).substr(source.find(':') + 1);
    return name.starts_with(node) && (name.size() == node.size() || name[node.size()] == ' ');
  });
}

/// Values with a counterpart that a place was made from, through those without.
void nearest_paired(const Trace& trace, const std::vector<const Tensor*>& paired, size_t place,
                    std::set<size_t>& found) {
  for (size_t input : trace.values[place].inputs) {
    if (paired[input])
      found.insert(input);
    else
      nearest_paired(trace, paired, input, found);
  }
}

}  // namespace

std::vector<Culprit> Judge::blame(const Model& model, const Trace& plain, const std::vector<const Tensor*>& paired,
                                  const std::vector<Row*>& rows, const Measured& measured,
                                  const std::vector<Row>& first_outputs) {
  std::vector<Culprit> culprits;
  std::vector<Row> outputs = first_outputs;
  while (off(outputs) && culprits.size() < options_.most_culprits) {
    auto culprit = confirm(model, plain, paired, rows, measured, badness(outputs));
    if (!culprit) break;
    bool done = !culprit->confirmed;
    culprits.push_back(std::move(*culprit));
    if (done || culprits.size() == options_.most_culprits) break;
    Meddling mended{mended_, std::nullopt, true};
    Trace next = run(model, mended);
    outputs = this->outputs(next, measured);
    for (size_t i = 0; i < rows.size(); ++i)
      if (paired[i]) {
        rows[i]->off = compare(next.values[i].tensor, *paired[i], measured.values[i]).off;
        rows[i]->suspect = false;
      }
    std::vector<Row*> again = rows;
    find_suspects(next, paired, again);
  }
  if (!culprits.empty() && options_.attribute) attribute(culprits[0], measured);
  return culprits;
}

std::optional<Culprit> Judge::confirm(const Model& model, const Trace& plain, const std::vector<const Tensor*>& paired,
                                      const std::vector<Row*>& rows, const Measured& measured, double before) {
  std::optional<size_t> first;
  size_t tried = 0;
  for (size_t i = 0; i < rows.size() && tried < kMostConfirmations; ++i) {
    if (!paired[i] || !rows[i]->suspect || mended_.contains(i)) continue;
    auto right = stand_in(*paired[i], plain.values[i].tensor);
    if (!right) continue;
    if (!first) first = i;
    ++tried;
    Meddling meddling{mended_, std::nullopt, true};
    meddling.replaced[i] = *right;
    Trace mended = run(model, meddling);
    // With more faults behind it the outputs may stay wrong; then what is made from it must come right.
    if (badness(outputs(mended, measured)) > before / 2 && !mends_users(mended, i, paired, rows, measured)) continue;
    mended_[i] = *right;
    Culprit culprit;
    culprit.row = *rows[i];
    culprit.confirmed = true;
    look_into(culprit, model, plain, i, paired, measured);
    return culprit;
  }
  if (!first) return std::nullopt;
  Culprit culprit;
  culprit.row = *rows[*first];
  look_into(culprit, model, plain, *first, paired, measured);
  return culprit;
}

bool Judge::mends_users(const Trace& mended, size_t place, const std::vector<const Tensor*>& paired,
                        const std::vector<Row*>& rows, const Measured& measured) const {
  double before = 0, after = 0;
  for (size_t k = place + 1; k < rows.size(); ++k) {
    std::set<size_t> read;
    if (paired[k]) nearest_paired(mended, paired, k, read);
    if (!read.contains(place)) continue;
    before += badness({*rows[k]});
    after += badness({compare(mended.values[k].tensor, *paired[k], measured.values[k])});
  }
  return before > 0 && after <= before / 2;
}

void Judge::look_into(Culprit& culprit, const Model& model, const Trace& plain, size_t place,
                      const std::vector<const Tensor*>& paired, const Measured& measured) {
  const Traced& traced = plain.values[place];
  culprit.sources = sources_of(model.module(), traced.step->group);
  culprit.program = program_of(model.module(), traced.step->group);
  // Right values where the operator reads: what is off now is its own work, or that of values without a counterpart.
  std::set<size_t> before;
  nearest_paired(plain, paired, place, before);
  for (size_t input : traced.inputs)
    if (!paired[input] && !plain.values[input].key.node.empty())
      culprit.unpaired.push_back(fmt::format("{} ({})", plain.values[input].key.node, plain.values[input].op));
  Meddling local{{}, std::nullopt, true};
  for (size_t input : before)
    if (auto right = stand_in(*paired[input], plain.values[input].tensor)) local.replaced[input] = *right;
  Grabber grabber(traced.step, traced.key.turn, subject_.fault.get());
  ++runs;
  Trace injected = trace_run(model, inputs_, local, &grabber);
  culprit.local_error = compare(injected.values[place].tensor, *paired[place], measured.values[place]).error;
  const Group& group = traced.step->group;
  for (size_t i = 0; i < grabber.inputs.size(); ++i) {
    if (!grabber.inputs[i] || constant_of(group.inputs[i])) continue;
    // What lies there may have been made in other dims, of which the operator reads a view.
    const Type& type = group.inputs[i]->type;
    const bool fits = type.is_static() && element_count(type.shape.sizes()) == grabber.inputs[i]->count();
    culprit.inputs.emplace_back(fmt::format("x{}", i),
                                fits ? grabber.inputs[i]->reshaped(type.shape.sizes()) : *grabber.inputs[i]);
  }
  for (size_t i = 0; i < grabber.outputs.size(); ++i) {
    if (!grabber.outputs[i]) continue;
    std::string name = fmt::format("y{}", i);
    culprit.found.emplace_back(name, *grabber.outputs[i]);
    for (size_t k = 0; k < plain.values.size(); ++k) {
      const Traced& other = plain.values[k];
      bool same = other.step == traced.step && other.key.turn == traced.key.turn &&
                  other.producer == group.outputs[i]->producer && other.key.index == group.outputs[i]->index;
      if (!same || !paired[k]) continue;
      if (auto right = stand_in(*paired[k], *grabber.outputs[i])) culprit.expected.emplace_back(name, *right);
    }
  }
  // The same operator, by the reference engine on the same values: when that is right, the kernel is not.
  bool whole =
      std::all_of(grabber.inputs.begin(), grabber.inputs.end(), [](const auto& each) { return each.has_value(); });
  if (!whole || culprit.inputs.size() != culprit.program.main().body.params.size()) return;
  auto reference = Model::make(clone(culprit.program), {.threads = 1, .engines = {"reference"}, .optimise = false});
  std::vector<Tensor> inputs;
  for (const auto& [name, tensor] : culprit.inputs) inputs.push_back(tensor);
  std::vector<Tensor> computed = reference->run(inputs);
  for (const auto& [name, right] : culprit.expected) {
    size_t index = std::stoul(name.substr(1));
    Row mine = compare(*grabber.outputs[index], right, measured.values[place]);
    Row theirs = compare(computed[index], right, measured.values[place]);
    if (mine.off && !theirs.off) culprit.kernel = true;
  }
}

bool Judge::is_wrong(const std::vector<std::string>& without, const Measured& measured) {
  auto model = subject_.model(without);
  return off(outputs(run(*model, Meddling{{}, std::nullopt, false}), measured));
}

/// One step may do what several nodes of the graph ask for. The reference engine does them one by one.
void Judge::narrow(Culprit& culprit, const std::vector<std::string>& without) {
  if (culprit.sources.size() < 2) return;
  auto plain =
      Model::make(subject_.module(without), {.threads = subject_.threads, .engines = {"reference"}, .optimise = false});
  ++runs;
  Trace trace = trace_run(*plain, inputs_);
  std::vector<const Tensor*> paired = pair(trace);
  for (size_t i = 0; i < paired.size() && !culprit.inner; ++i) {
    const Traced& traced = trace.values[i];
    if (!paired[i] || !holds(culprit.sources, traced.key.node)) continue;
    Row row = compare(traced.tensor, *paired[i], culprit.row.allowed / options_.factor);
    row.key = traced.key, row.op = traced.op, row.location = traced.location, row.kernel = traced.kernel;
    if (row.off && traced.key.node != culprit.row.key.node) culprit.inner = std::move(row);
    if (row.off) return;
  }
}

/// The shortest run of passes from the front that makes it wrong ends in the one to blame: log2 of their number of models.
void Judge::attribute(Culprit& culprit, const Measured& measured) {
  if (culprit.kernel) return;
  std::vector<std::string> names;
  for (const PassInfo& pass : list_passes())
    if (!pass.required) names.push_back(pass.name);
  names.insert(names.end(), subject_.further_passes.begin(), subject_.further_passes.end());
  auto without_from = [&](size_t first) {
    return std::vector<std::string>(names.begin() + static_cast<ptrdiff_t>(first), names.end());
  };
  if (!subject_.load().optimised_by.empty() && subject_.further_passes.empty()) return;
  if (is_wrong(without_from(0), measured)) return narrow(culprit, names);
  size_t right = 0, wrong = names.size();
  while (wrong - right > 1) {
    size_t middle = (right + wrong) / 2;
    (is_wrong(without_from(middle), measured) ? wrong : right) = middle;
  }
  culprit.pass = names[wrong - 1];
  culprit.pass_alone = !is_wrong({culprit.pass}, measured);
}

}  // namespace cairn::diff
