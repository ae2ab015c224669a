#include "quantize/quantise.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ir/text.h"
#include "passes/pipeline.h"
#include "quantize/costs.h"
#include "quantize/equalise.h"

namespace cairn::quantize {

namespace {

constexpr double kUsualPoints = 0.5, kUsualError = 0.1;
constexpr int64_t kTrialExamples = 64;  // of what is tried several times, or for each layer

bool matches(const std::string& pattern, const std::string& name) {
  return pattern.ends_with('*') ? name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1))
                                : name == pattern;
}

class Quantiser {
 public:
  Quantiser(const Module& source, const Examples* examples, const Options& options)
      : examples_(examples), options_(options), base_(clone(source)) {
    optimise(base_);
    if (!base_.main().updates.empty())
      fail(ErrorKind::unsupported, "", "a model that changes its variables cannot be quantised");
    layers_ = layers_of(base_, &outcome_.skipped);
    if (layers_.empty())
      fail(ErrorKind::unsupported, "", "no convolution or matrix product has f32 data and constant weights{}",
           reasons());
    on_.assign(layers_.size(), true);
    outcome_.layers.resize(layers_.size());
    for (size_t i = 0; i < layers_.size(); ++i) start(i);
    check_names();
    for (const Layer& layer : layers_) values_ = std::max(values_, layer.value + 1);
  }

  Outcome run() {
    if (examples_) {
      tell("running the f32 model", 0);
      judge_.emplace(*examples_, *Model::make(clone(base_), {.threads = options_.threads}), examples_->count());
      outcome_.original = judge_->original(), outcome_.examples = examples_->count();
      outcome_.batches = (calibrated() + examples_->batch() - 1) / examples_->batch();
    }
    outcome_.budget = parse_budget(options_.budget, examples_ && examples_->labelled());
    outcome_.bytes_before = constant_bytes(base_);
    seen_ = observe(base_, {});
    drop_not_finite();
    choose_bytes();
    choices_ = choose({}, false);
    if (examples_) improve();
    if (judge_) fall_back();
    finish();
    if (examples_) compare_times();
    return std::move(outcome_);
  }

 private:
  std::string reasons() const {
    std::string text;
    for (const auto& [reason, count] : outcome_.skipped)
      text += fmt::format("{}{} {}", text.empty() ? "; left out: " : ", ", count, reason);
    return text;
  }

  void tell(const std::string& what, double share) const {
    if (options_.progress) options_.progress(what, share);
  }

  const LayerOrder* order_of(size_t i) const {
    const auto found = options_.orders.find(layers_[i].name);
    return found == options_.orders.end() ? nullptr : &found->second;
  }

  void leave(size_t i, const std::string& reason) { on_[i] = false, outcome_.layers[i].reason = reason; }

  void start(size_t i) {
    const Node& node = *layers_[i].node;
    LayerResult& result = outcome_.layers[i];
    result.name = layers_[i].name, result.op = node.op->name;
    if (!node.sources.empty()) result.location = base_.sources[node.sources.front()].location;
    result.bytes_before = layers_[i].weights().bytes();
    const LayerOrder* order = order_of(i);
    const bool kept = std::any_of(options_.keep.begin(), options_.keep.end(),
                                  [&](const std::string& pattern) { return matches(pattern, layers_[i].name); });
    if (kept || (order && !order->quantise)) leave(i, "told to stay f32");
    if (options_.only_ordered && !order) leave(i, "without a record");
  }

  void check_names() const {
    const auto known = [&](const std::string& pattern) {
      return std::any_of(layers_.begin(), layers_.end(),
                         [&](const Layer& layer) { return matches(pattern, layer.name); });
    };
    std::vector<std::string> patterns = options_.keep;
    for (const auto& [name, order] : options_.orders) patterns.push_back(name);
    for (const std::string& pattern : patterns)
      if (!known(pattern))
        fail(ErrorKind::not_found, pattern, "is no layer of the model, which has {} of them: {}, ...", layers_.size(),
             layers_.front().name);
  }

  std::vector<Seen> observe(const Module& module, const std::vector<std::vector<float>>& smooth) const {
    std::vector<Seen> seen(values_);
    if (!examples_) {
      for (size_t i = 0; i < layers_.size(); ++i)
        if (on_[i] && options_.weights_only == 0 && !(order_of(i) && order_of(i)->steps))
          fail(ErrorKind::invalid_argument, layers_[i].name, "needs calibration data: its range is not known");
      return seen;
    }
    std::vector<ValueChoice> values(values_);
    for (size_t i = 0; i < smooth.size(); ++i) values[i].smooth = smooth[i];
    const auto model = Model::make(watched(module, values), {.threads = options_.threads, .optimise = false});
    const size_t outputs = model->outputs().size() - values_;
    const int64_t limit = calibrated();
    for (const bool counting : {false, true})
      examples_->run(*model, limit, [&](const std::vector<Tensor>& results, int64_t first) {
        tell("calibrating", (counting ? 0.5 : 0) + 0.5 * static_cast<double>(first) / static_cast<double>(limit));
        for (size_t i = 0; i < values_; ++i) {
          const Tensor& value = results[outputs + i];
          if (counting)
            seen[i].count(value.values<float>());
          else
            seen[i].measure(value.values<float>(), value.rank() > 0 ? static_cast<size_t>(value.dims().back()) : 1);
        }
      });
    return seen;
  }

  int64_t calibrated() const {
    const int64_t batches = options_.calibration_batches;
    return std::min(batches > 0 ? batches * examples_->batch() : options_.calibration, examples_->count());
  }

  void drop_not_finite() {
    for (size_t i = 0; i < layers_.size(); ++i)
      if (on_[i] && seen_[layers_[i].value].not_finite() > 0) leave(i, "its data is not finite");
  }

  /// Which layers multiply bytes.
  void choose_bytes() {
    rounds_.assign(layers_.size(), options_.weights_only == 0);
    if (options_.weights_only != 0 || !options_.costs || !examples_) return;
    std::vector<double> elements;
    for (const Seen& seen : seen_)
      elements.push_back(static_cast<double>(seen.elements()) / static_cast<double>(calibrated()));
    rounds_ = worth_rounding(layers_, elements, on_);
    for (size_t i = 0; i < layers_.size(); ++i)
      if (on_[i] && !rounds_[i])
        outcome_.layers[i].reason =
            layers_[i].integers ? "bytes would not be faster" : "there are no products of bytes for it";
  }

  /// From what was seen; `correct`: results get back what rounded weights add to their means.
  Choices choose(const std::vector<std::vector<float>>& smooth, bool correct) const {
    Choices choices;
    choices.values.resize(values_), choices.layers.resize(layers_.size());
    for (size_t i = 0; i < smooth.size(); ++i) choices.values[i].smooth = smooth[i];
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      const LayerOrder* order = order_of(i);
      const Method method = order && order->method ? *order->method : options_.method;
      ValueChoice& value = choices.values[layer.value];
      if (options_.weights_only == 0 && order && order->steps) value.steps = order->steps;
      if (options_.weights_only == 0 && !value.steps)
        value.steps = affine_of(seen_[layer.value].range(method, options_.percentile));
      KernelOptions kernel{.search = method == Method::mse};
      if (options_.weights_only != 0) kernel.bits = options_.weights_only;
      if (kernel.bits == 4) kernel.group = options_.group, kernel.search = true;
      if (order) kernel.scales = order->scales;
      LayerChoice& choice = choices.layers[i];
      choice.rounds_data = rounds_[i];
      const Tensor weights = choice.rounds_data ? smoothed_kernel(layer, value.smooth) : layer.weights();
      choice.kernel = small_kernel(layer, weights, kernel);
      if (!correct || !layer.gathers) continue;
      const std::vector<double> shift = mean_shift(layer, weights, choice.kernel.near, seen_[layer.value].means());
      for (const double each : shift) choice.shift.push_back(static_cast<float>(-each));
    }
    return choices;
  }

  Score score(const Choices& choices, const std::vector<bool>& on, int64_t limit) const {
    const auto model = Model::make(insert(base_, choices, on), {.threads = options_.threads});
    return judge_->of(*model, limit);
  }

  /// Keeps each of the steps that make the model better when all layers are quantised.
  void improve() {
    double best = score(choices_, on_, kTrialExamples).sqnr;
    const auto try_step = [&](const std::string& what, const Choices& choices) {
      const double now = score(choices, on_, kTrialExamples).sqnr;
      if (!(now > best + 0.05)) return false;
      outcome_.steps.push_back(fmt::format("{}: {:.1f} dB to {:.1f} dB", what, best, now));
      best = now, choices_ = choices;
      return true;
    };
    std::vector<std::vector<float>> smooth;
    if (options_.equalise && options_.weights_only == 0 && options_.orders.empty()) try_equalising(try_step);
    if (options_.smooth && options_.weights_only == 0 && options_.orders.empty()) {
      tell("smoothing", 0);
      std::vector<std::vector<float>> factors = smoothing(base_, seen_);
      const auto smoothed =
          std::count_if(factors.begin(), factors.end(), [](const auto& each) { return !each.empty(); });
      if (smoothed > 0) {
        std::vector<Seen> before = std::exchange(seen_, observe(base_, factors));
        if (try_step(fmt::format("{} values of uneven channels scaled", smoothed), choose(factors, false)))
          smooth = std::move(factors);
        else
          seen_ = std::move(before);
      }
    }
    if (!options_.correct) return;
    tell("correcting means", 0);
    try_step("means corrected", choose(smooth, true));
  }

  void try_equalising(const auto& try_step) {
    tell("equalising", 0);
    Module even = clone(base_);
    const size_t pairs = quantize::equalise(even);
    if (pairs == 0) return;
    constexpr double kExact = 60;  // dB: rounding alone
    if (judge_->of(*Model::make(clone(even), {.threads = options_.threads}), kTrialExamples).sqnr < kExact) return;
    std::vector<Seen> seen = observe(even, {});
    std::swap(base_, even), std::swap(seen_, seen);
    std::vector<Layer> layers = std::exchange(layers_, layers_of(base_));
    if (try_step(fmt::format("{} pairs of layers equalised", pairs), choose({}, false))) return;
    std::swap(base_, even), std::swap(seen_, seen), std::swap(layers_, layers);
  }

  bool within(const Score& score) const {
    const Budget& budget = outcome_.budget;
    constexpr double kRounding = 1e-9;
    if (budget.points && score.accuracy)
      return 100 * (*outcome_.original->accuracy - *score.accuracy) <= *budget.points + kRounding;
    return !budget.error || score.error() <= *budget.error + kRounding;
  }

  /// Measures each layer alone, and leaves as few of the worst in f32 as the budget needs.
  void fall_back() {
    std::vector<size_t> worst;
    for (size_t i = 0; i < layers_.size(); ++i)
      if (on_[i]) worst.push_back(i);
    const size_t wanted = worst.size();
    for (size_t done = 0; done < wanted; ++done) {
      tell("measuring layers", static_cast<double>(done) / static_cast<double>(wanted));
      std::vector<bool> alone(layers_.size());
      alone[worst[done]] = true;
      outcome_.layers[worst[done]].sqnr = score(choices_, alone, kTrialExamples).sqnr;
    }
    std::stable_sort(worst.begin(), worst.end(),
                     [&](size_t a, size_t b) { return *outcome_.layers[a].sqnr < *outcome_.layers[b].sqnr; });
    outcome_.whole = outcome_.final = score(choices_, on_, examples_->count());
    outcome_.within = within(*outcome_.whole);
    if (outcome_.within || !options_.fall_back) return;
    const auto without = [&](size_t count) {
      std::vector<bool> on = on_;
      for (size_t i = 0; i < count; ++i) on[worst[i]] = false;
      return on;
    };
    size_t fails = 0, holds = wanted;  // numbers of layers in f32
    Score held = *outcome_.original;
    while (holds - fails > 1) {
      const size_t middle = fails + (holds - fails) / 2;
      tell("falling back", 1 - static_cast<double>(holds - fails) / static_cast<double>(wanted));
      const Score now = score(choices_, without(middle), examples_->count());
      if (within(now))
        holds = middle, held = now;
      else
        fails = middle;
    }
    for (size_t i = 0; i < holds; ++i)
      leave(worst[i], fmt::format("the budget; {:.1f} dB by itself", *outcome_.layers[worst[i]].sqnr));
    outcome_.final = held, outcome_.within = true;
  }

  void finish() {
    for (size_t i = 0; i < layers_.size(); ++i) {
      LayerResult& result = outcome_.layers[i];
      result.quantised = on_[i], result.rounds_data = on_[i] && rounds_[i];
      const LayerChoice& choice = choices_.layers[i];
      const uint64_t integers = choice.kernel.integers.bytes();
      result.bytes_after = !on_[i]                   ? result.bytes_before
                           : choice.kernel.bits == 4 ? (integers + 1) / 2 + choice.kernel.scales.bytes()
                                                     : integers + choice.kernel.scales.bytes();
      if (examples_) result.extent = seen_[layers_[i].value].extent();
      if (result.rounds_data) result.steps = choices_.values[layers_[i].value].steps;
      const auto scales = choice.kernel.scales.values<float>();
      if (on_[i] && choice.kernel.grouped.empty()) result.scales.assign(scales.begin(), scales.end());
    }
    outcome_.module = insert(base_, choices_, on_);
    verify(outcome_.module);
    outcome_.bytes_after = constant_bytes(outcome_.module);
  }

  /// Medians of runs in turn, after one that plans.
  void compare_times() {
    tell("comparing times", 0);
    constexpr int kRuns = 7;
    const auto before = Model::make(clone(base_), {.threads = options_.threads});
    const auto after = Model::make(clone(outcome_.module), {.threads = options_.threads});
    std::vector<double> times[2];
    for (int run = 0; run <= kRuns; ++run)
      for (const bool quantised : {false, true}) {
        const auto begin = std::chrono::steady_clock::now();
        examples_->run(quantised ? *after : *before, 0, [](const auto&, int64_t) {});
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
        if (run > 0) times[quantised].push_back(time.count());
      }
    for (auto& list : times) std::nth_element(list.begin(), list.begin() + kRuns / 2, list.end());
    outcome_.seconds_before = times[0][kRuns / 2], outcome_.seconds_after = times[1][kRuns / 2];
  }

  const Examples* examples_;
  const Options& options_;
  Module base_;
  Outcome outcome_;
  std::vector<Layer> layers_;
  std::vector<bool> on_, rounds_;  // of which the weights, and the data as well, are small
  size_t values_ = 0;
  std::vector<Seen> seen_;
  Choices choices_;
  std::optional<Judge> judge_;
};

}  // namespace

Budget parse_budget(const std::string& text, bool labelled) {
  Budget budget;
  if (text.empty()) {
    (labelled ? budget.points : budget.error) = labelled ? kUsualPoints : kUsualError;
    return budget;
  }
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string_view unit = end;
  const bool decibels = unit == "dB" || unit == "db";
  if (end == text.c_str() || !std::isfinite(number) || number < 0 || !(decibels || unit == "%"))
    fail(ErrorKind::invalid_argument, "budget", "'{}' is neither a share as 0.5% nor a ratio as 25dB", printable(text));
  if (decibels)
    budget.error = std::pow(10, -number / 20);
  else if (labelled)
    budget.points = number;
  else
    budget.error = number / 100;
  return budget;
}

Outcome quantise(const Module& source, const Examples* examples, const Options& options) {
  if (options.weights_only != 0 && options.weights_only != 4 && options.weights_only != 8)
    fail(ErrorKind::invalid_argument, "weights-only", "{} bits are not supported; 8 or 4", options.weights_only);
  return Quantiser(source, examples, options).run();
}

}  // namespace cairn::quantize
