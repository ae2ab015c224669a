#include "train/step.h"

#include <algorithm>
#include <set>

#include "autodiff/differentiate.h"
#include "autodiff/losses.h"
#include "autodiff/optimisers.h"
#include "autodiff/parameters.h"
#include "comm/job.h"
#include "ir/evaluate.h"
#include "ir/image_order.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "support/nearest.h"
#include "train/normalisation.h"

namespace cairn {
namespace {

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(name, pattern); });
}

/// The names of the weights, without the statistics.
std::vector<std::string> weights_of(const Module& module, const std::set<std::string>& statistics) {
  std::vector<std::string> names;
  std::set<std::string> seen = statistics;
  for_each_block(module.main().body, [&](Block& block) {
    for (const auto& node : block.nodes) {
      const Value* value = node->results.empty() ? nullptr : node->result();
      if (!value || !constant_of(value) || value->name.empty() || !is_weight(*node, &module)) continue;
      if (seen.insert(value->name).second) names.push_back(value->name);
    }
  });
  return names;
}

/// The names that the options select. A pattern that matches no name is an Error.
std::set<std::string> trained_names(const std::vector<std::string>& names, const TrainingOptions& options) {
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const auto* patterns : {&options.train, &options.freeze})
    for (const std::string& pattern : *patterns)
      if (std::none_of(names.begin(), names.end(), [&](const auto& name) { return matches_pattern(name, pattern); }))
        fail(ErrorKind::not_found, pattern, "no weight of the model has this name{}", did_you_mean(pattern, known));
  std::set<std::string> chosen;
  for (const std::string& name : names)
    if ((options.train.empty() || matches_any(name, options.train)) && !matches_any(name, options.freeze))
      chosen.insert(name);
  if (chosen.empty()) fail(ErrorKind::invalid_model, "", "the model has no weights to train");
  return chosen;
}

const std::vector<int64_t>& permutation_of(const Node& transpose) { return transpose.attr().integers("permutation"); }

/// If all uses of a weight transpose it in the same way, the weight is stored transposed, so that no step has to
/// transpose it and its gradient. Returns the permutation; empty if the weight is unchanged.
std::vector<int64_t> keep_transposed(Function& function, Value* weight) {
  std::vector<Node*> users;
  bool other = std::count(function.body.results.begin(), function.body.results.end(), weight) > 0;
  for (const auto& node : function.body.nodes)
    if (std::find(node->inputs.begin(), node->inputs.end(), weight) != node->inputs.end()) users.push_back(node.get());
  for (Node* user : users) other |= !user->is("transpose") || permutation_of(*user) != permutation_of(*users[0]);
  if (users.empty() || other) return {};
  const std::vector<int64_t> permutation = permutation_of(*users[0]);
  weight->type = users[0]->result()->type;
  std::set<const Value*> gone;
  for (Node* user : users) gone.insert(user->result());
  for (const auto& node : function.body.nodes)
    for (Value*& input : node->inputs)
      if (gone.contains(input)) input = weight;
  for (Value*& result : function.body.results)
    if (gone.contains(result)) result = weight;
  std::erase_if(function.body.nodes,
                [&](const auto& node) { return !node->results.empty() && gone.contains(node->result()); });
  return permutation;
}

/// Whether both surely hold the same numbers: importers reshape a scale for each operator that reads it.
bool alike(const Value* a, const Value* b) {
  const Tensor *x = constant_of(a), *y = constant_of(b);
  if (a == b || (x && y && x->same_bits(*y))) return true;
  const Node *from = a->producer, *other = b->producer;
  return from && other && from->op == other->op && from->op->has(kView) && a->type == b->type &&
         alike(from->inputs[0], other->inputs[0]);
}

/// What goes to integers and back, which has no slope, becomes the row that passes gradients through.
void pass_gradients_through_rounding(Function& function) {
  for (const auto& node : function.body.nodes) {
    const Node* rounds = node->is("dequantize_linear") ? node->inputs[0]->producer : nullptr;
    if (!rounds || !rounds->is("quantize_linear")) continue;
    if (!alike(rounds->inputs[1], node->inputs[1]) || !alike(rounds->inputs[2], node->inputs[2])) continue;
    node->op = &op_named("fake_quantize");
    node->inputs = rounds->inputs;
  }
}

class TrainingBuilder {
 public:
  TrainingBuilder(const Module& model, const TrainingOptions& options)
      : options_(options), loss_(find_loss(options.loss)),
        optimiser_(find_optimiser(options.optimiser), options.numbers, options.weight_decay), base_(clone(model)) {}

  TrainingProgram run() {
    open_model();
    lift_weights();
    make_evaluation();
    make_step();
    program_.usual_rate = optimiser_.row().rate;
    return std::move(program_);
  }

 private:
  /// Prepares one function that returns the operands of the loss.
  void open_model() {
    inline_calls(base_);
    lift_state(base_);
    hoist_invariants(base_.main().body);  // else the backward pass would keep them for every iteration
    Function& main = base_.main();
    if (!main.updates.empty())
      fail(ErrorKind::unsupported, "", "the model keeps variables between runs; freeze it first");
    if (main.body.results.empty()) fail(ErrorKind::invalid_model, "", "the model has no output");
    Value* answers = main.body.results[0];
    if (!answers->type.is_tensor() || !answers->type.dtype.is_float() || !answers->type.shape.ranked)
      fail(ErrorKind::invalid_argument, main.result_names[0],
           "the loss takes floats of a known number of dims, found {}", to_string(answers->type));
    const Node* last = answers->producer;
    if (last && loss_.contains && last->is(loss_.contains)) answers = last->inputs[0];
    main.body.results = {answers};
    main.result_names.resize(1);
    program_.inputs = main.body.params.size();
    use_kept_statistics(main);
    pass_gradients_through_rounding(main);
    remove_dead(main.body, &base_);
    const auto rank = static_cast<int64_t>(answers->type.shape.rank());
    axis_ = options_.class_axis.value_or(channels_first(base_) && rank > 2 ? 1 : -1);
  }

  void lift_weights() {
    Function& main = base_.main();
    const std::set<std::string> statistics = statistics_of(main);
    const std::vector<std::string> names = weights_of(base_, statistics);
    const std::set<std::string> trained = trained_names(names, options_);
    LiftOptions lift{{trained.begin(), trained.end()}, 1};
    lift.names.insert(lift.names.end(), statistics.begin(), statistics.end());
    for (Parameter& parameter : lift_constants(main, lift)) {
      TrainedState state{TrainedState::Kind::weight, parameter.name, copy_of(parameter.value), parameter.value};
      if (statistics.contains(parameter.name)) state.kind = TrainedState::Kind::statistic;
      Value* param = main.body.params[parameter.param].get();
      state.permutation = keep_transposed(main, param);
      if (!state.permutation.empty()) state.start = transposed(parameter.value, state.permutation);
      program_.states.push_back(std::move(state));
    }
    program_.evaluated_states = program_.states.size();
  }

  struct Measured {
    Value *loss, *accuracy;
  };
  /// Adds the labels as a param, and the nodes that compute loss and accuracy.
  Measured measure(Function& main) {
    Builder b(main.body);
    const Var answers(b, main.body.results[0]);
    const bool classes = options_.classes && loss_.labels != Loss::Labels::like_answers;
    const Var labels(b, main.body.add_param(label_type(loss_, answers.type(), classes, axis_), options_.labels));
    Measured measured{loss_of(loss_, answers, labels, options_.loss_numbers, axis_).value, nullptr};
    if (loss_.counts_hits) measured.accuracy = accuracy_of(answers, labels, axis_).value;
    return measured;
  }

  static void set_results(Function& main, const Measured& measured) {
    main.body.results = {measured.loss};
    main.result_names = {"loss"};
    if (measured.accuracy) main.body.results.push_back(measured.accuracy), main.result_names.emplace_back("accuracy");
  }

  void make_evaluation() {
    program_.evaluate = clone(base_);
    program_.evaluate.name += "_evaluation";
    Function& main = program_.evaluate.main();
    const Measured measured = measure(main);
    set_results(main, measured);
    program_.has_accuracy = measured.accuracy != nullptr;
    order_params(main);
  }

  /// Moves the params that were added after the states (labels and others) in front of them, behind the inputs.
  void order_params(Function& main) const {
    auto& params = main.body.params;
    const auto states = params.begin() + static_cast<int64_t>(program_.inputs);
    std::rotate(states, states + static_cast<int64_t>(program_.evaluated_states), params.end());
    renumber(params);
  }

  void make_step() {
    program_.step = clone(base_);
    Function& main = program_.step.main();
    std::vector<Value*> states;
    for (size_t i = 0; i < program_.states.size(); ++i) states.push_back(main.body.params[program_.inputs + i].get());
    const auto statistics = use_batch_statistics(main, options_.statistics_momentum);
    std::map<Value*, Value*> fresh(statistics.begin(), statistics.end());
    Value* random = has_dropout(main) ? main.body.add_param(Type::rng(), "dropout") : nullptr;
    if (random) fresh[random] = use_dropout(main, random);
    Measured measured = measure(main);
    Value* rate = main.body.add_param(Type::tensor(kF32, {}), "learning_rate");
    Value* count = main.body.add_param(Type::tensor(kF32, {}), "step");
    order_params(main);
    if (random) {
      auto& params = main.body.params;
      std::rotate(params.begin() + random->index, params.begin() + random->index + 1, params.end());
      renumber(params);
      const Tensor start = Tensor::of<uint64_t>(kU64, {3}, {options_.seed, 0, 0});
      program_.states.push_back({TrainedState::Kind::random, random->name, start});
      states.push_back(random);
    }

    std::vector<Value*> weights;
    for (size_t i = 0; i < states.size(); ++i)
      if (program_.states[i].kind == TrainedState::Kind::weight) weights.push_back(states[i]);
    std::vector<Value*> gradients = append_gradients(program_.step, main, {measured.loss}, {nullptr}, weights);
    Builder b(main.body);
    for (size_t i = 0; i < weights.size(); ++i) gradients[i] = mean_of_ranks(b, gradients[i], weights[i]->name);
    measured.loss = mean_of_ranks(b, measured.loss, "loss");
    if (measured.accuracy) measured.accuracy = mean_of_ranks(b, measured.accuracy, "accuracy");
    clip(b, gradients);
    for (size_t i = 0; i < weights.size(); ++i) update(b, main, weights[i], gradients[i], rate, count, states, fresh);
    set_results(main, measured);
    for (Value* state : states) {
      auto found = fresh.find(state);
      if (found == fresh.end()) continue;
      main.updates.emplace_back(main.body.results.size(), state->index);
      main.body.results.push_back(found->second);
      main.result_names.push_back(state->name);
    }
  }

  /// In a job each rank trains on its part of a batch, and all on the mean of what they get.
  static Value* mean_of_ranks(Builder& b, Value* x, const std::string& name) {
    const auto ranks = static_cast<int64_t>(comm::group("world").ranks.size());
    if (ranks == 1) return x;
    Attributes attributes = {{"reduction", std::string("mean")}, {"ranks", ranks}, {"name", name}};
    return Var(b, x).apply("all_reduce", {}, std::move(attributes)).value;
  }

  /// Scales all gradients by the same factor, so that their joint Euclidean norm is at most clip_norm.
  void clip(Builder& b, std::vector<Value*>& gradients) const {
    if (options_.clip_norm <= 0) return;
    std::optional<Var> sum;
    for (Value* gradient : gradients) {
      std::vector<int64_t> axes(gradient->type.shape.rank());
      for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
      const Var part = cast(reduce_sum(square({b, gradient}), axes), kF32);
      sum = sum ? *sum + part : part;
    }
    const Var most = sum->number(options_.clip_norm), share = most / maximum(sqrt(*sum), most);
    for (Value*& gradient : gradients) gradient = (Var(b, gradient) * cast(share, gradient->type.dtype)).value;
  }

  void update(Builder& b, Function& main, Value* weight, Value* gradient, Value* rate, Value* count,
              std::vector<Value*>& states, std::map<Value*, Value*>& fresh) {
    update::Operands operands{{b, weight}, {b, gradient}, {}};
    std::vector<Value*> slots;
    for (const Slot& slot : optimiser_.slots()) {
      const DType dtype = weight->type.dtype;
      std::vector<int64_t> dims = slot.scalar ? std::vector<int64_t>{} : weight->type.shape.sizes();
      const std::string name = fmt::format("{}/{}", weight->name, slot.name);
      slots.push_back(main.body.add_param(Type::tensor(dtype, Shape::of(dims)), name));
      operands.slots.emplace_back(b, slots.back());
      program_.states.push_back({TrainedState::Kind::slot, name, filled(dtype, std::move(dims), slot.initial)});
      states.push_back(slots.back());
    }
    const update::Result made = optimiser_.step(operands, {b, rate}, {b, count});
    fresh[weight] = made.weight.value;
    for (size_t i = 0; i < slots.size(); ++i) fresh[slots[i]] = made.slots[i].value;
  }

  static Tensor filled(DType dtype, std::vector<int64_t> dims, double value) {
    Tensor tensor = Tensor::zeros(dtype, std::move(dims));
    if (value == 0) return tensor;
    Block block;
    const Tensor number = *constant_of(Builder(block).number(value, dtype));
    for (int64_t i = 0; i < tensor.count(); ++i)
      std::memcpy(static_cast<char*>(tensor.mutable_data()) + static_cast<size_t>(i) * dtype.size(), number.data(),
                  dtype.size());
    return tensor;
  }

  const TrainingOptions& options_;
  const Loss& loss_;
  ChosenOptimiser optimiser_;
  Module base_;
  int64_t axis_ = -1;
  TrainingProgram program_;
};

}  // namespace

TrainingProgram make_training(const Module& model, const TrainingOptions& options) {
  return TrainingBuilder(model, options).run();
}

Tensor transposed(const Tensor& x, const std::vector<int64_t>& permutation) {
  return evaluate("transpose", {x}, {{"permutation", permutation}});
}

Tensor copy_of(const Tensor& x) {
  Tensor copy = Tensor::uninitialized(x.dtype(), x.dims());
  if (x.bytes()) std::memcpy(copy.mutable_data(), x.data(), x.bytes());
  return copy;
}

bool matches_pattern(std::string_view name, std::string_view pattern) {
  size_t at = 0, place = 0, star = std::string_view::npos, resume = 0;
  while (at < name.size()) {
    if (place < pattern.size() && (pattern[place] == '?' || pattern[place] == name[at]) && pattern[place] != '*') {
      ++at, ++place;
    } else if (place < pattern.size() && pattern[place] == '*') {
      star = place++, resume = at;
    } else if (star != std::string_view::npos) {
      place = star + 1, at = ++resume;
    } else {
      return false;
    }
  }
  while (place < pattern.size() && pattern[place] == '*') ++place;
  return place == pattern.size();
}

}  // namespace cairn
