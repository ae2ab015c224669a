#include "train/fit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "comm/job.h"
#include "support/stop.h"

namespace cairn {
namespace {

double seconds_between(std::chrono::steady_clock::time_point begin, std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::vector<TensorRef> refs_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorRef> refs;
  for (const Tensor& tensor : tensors) refs.push_back({tensor.dtype(), tensor.dims(), tensor.data()});
  return refs;
}

/// The example numbers of batch `index`.
std::span<const int64_t> part(const std::vector<int64_t>& places, int64_t index, int64_t batch) {
  const auto begin = static_cast<size_t>(index * batch);
  return std::span(places).subspan(begin, std::min(static_cast<size_t>(batch), places.size() - begin));
}

/// Sums over examples.
struct Sums {
  double loss = 0, accuracy = 0, examples = 0;
  void add(const Trainer::Result& result, double count) {
    loss += result.loss * count, accuracy += result.accuracy * count, examples += count;
  }
  Trainer::Result mean() const { return {loss / examples, accuracy / examples}; }
};

}  // namespace

std::optional<Schedule::Kind> schedule_kind(std::string_view name) {
  constexpr std::pair<std::string_view, Schedule::Kind> kNames[] = {{"constant", Schedule::Kind::constant},
                                                                    {"step", Schedule::Kind::step},
                                                                    {"cosine", Schedule::Kind::cosine},
                                                                    {"linear", Schedule::Kind::linear}};
  for (auto [known, kind] : kNames)
    if (known == name) return kind;
  return std::nullopt;
}

double Schedule::at(int64_t step, int64_t steps_per_epoch, int epochs) const {
  const double all = static_cast<double>(steps_per_epoch) * epochs, rising = warm_up * double(steps_per_epoch);
  const auto now = static_cast<double>(step);
  if (now < rising) return rate * (now + 1) / (rising + 1);
  const double share = all > rising ? std::min(1.0, (now - rising) / (all - rising)) : 1;
  switch (kind) {
    case Kind::constant: return rate;
    case Kind::step: return rate * std::pow(gamma, static_cast<double>(step / steps_per_epoch / step_epochs));
    case Kind::cosine: return least + (rate - least) * (1 + std::cos(M_PI * share)) / 2;
    case Kind::linear: return least + (rate - least) * (1 - share);
  }
  return rate;
}

std::string json_of(const Epoch& epoch, bool accuracy) {
  nlohmann::ordered_json json = {{"epoch", epoch.number}, {"loss", epoch.loss}};
  if (accuracy) json["accuracy"] = epoch.accuracy;
  if (epoch.validation) json["validation_loss"] = epoch.validation->loss;
  if (epoch.validation && accuracy) json["validation_accuracy"] = epoch.validation->accuracy;
  json["learning_rate"] = epoch.rate, json["steps"] = epoch.steps;
  json["seconds"] = epoch.seconds, json["step_seconds"] = epoch.step_seconds;
  return json.dump();
}

Trainer::Result measure(const Trainer& trainer, const Dataset& data, int64_t batch) {
  std::vector<int64_t> places(static_cast<size_t>(data.count()));
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  Sums sums;
  for (int64_t i = 0; i * batch < data.count(); ++i) {
    stop_point();
    const auto chosen = part(places, i, batch);
    sums.add(trainer.evaluate(refs_of(data.batch(chosen))), static_cast<double>(chosen.size()));
  }
  return sums.mean();
}

namespace {

/// In a job this rank's part of a batch; the parts are equally long, so that the mean of their means is that of the batch.
std::vector<int64_t> own_part(std::span<const int64_t> batch) {
  const comm::GroupView world = comm::group("world");
  const size_t ranks = world.ranks.size(), each = batch.size() / ranks;
  if (batch.size() % ranks != 0 || each == 0)
    fail(ErrorKind::invalid_argument, "batch", "has {} examples, no multiple of {} ranks", batch.size(), ranks);
  const auto begin = batch.begin() + static_cast<ptrdiff_t>(each * static_cast<size_t>(world.rank));
  return {begin, begin + static_cast<ptrdiff_t>(each)};
}

}  // namespace

std::vector<Epoch> fit(Trainer& trainer, const Dataset& data, const Dataset* validation, const FitOptions& options,
                       const FitWatch& watch) {
  using Clock = std::chrono::steady_clock;
  if (options.batch < 1) fail(ErrorKind::invalid_argument, "batch", "is {}, expected 1 or more", options.batch);
  const int64_t whole = data.count() / options.batch, rest = data.count() % options.batch;
  const bool cut = rest % static_cast<int64_t>(comm::group("world").ranks.size()) == 0;  // among the ranks
  const int64_t steps = std::max<int64_t>(whole + (options.keep_rest && rest != 0 && cut), 1);
  std::vector<Epoch> epochs;
  for (int64_t number = trainer.steps() / steps; number < options.epochs; ++number) {
    std::vector<int64_t> places = shuffled(data.count(), options.seed * 1000003 + static_cast<uint64_t>(number));
    if (!options.shuffle) std::sort(places.begin(), places.end());
    Epoch epoch{static_cast<int>(number) + 1};
    Sums sums;
    std::vector<double> times;
    const auto begin = Clock::now();
    for (int64_t i = trainer.steps() % steps; i < steps; ++i) {
      stop_point();
      const auto chosen = part(places, i, options.batch);
      const std::vector<Tensor> batch = data.batch(own_part(chosen));
      epoch.rate = options.schedule.at(trainer.steps(), steps, options.epochs);
      const auto start = Clock::now();
      const Trainer::Result result = trainer.step(refs_of(batch), epoch.rate);
      times.push_back(seconds_between(start, Clock::now()));
      if (!std::isfinite(result.loss))
        fail(ErrorKind::invalid_argument, fmt::format("step {}", trainer.steps()),
             "the loss is {}; lower the learning rate, or bound the gradients by --clip-norm", result.loss);
      sums.add(result, static_cast<double>(chosen.size()));
      if (watch.step) watch.step(number * steps + i + 1, steps * options.epochs);
    }
    epoch.steps = static_cast<int64_t>(times.size());
    epoch.seconds = seconds_between(begin, Clock::now());
    std::nth_element(times.begin(), times.begin() + epoch.steps / 2, times.end());
    epoch.step_seconds = times[static_cast<size_t>(epoch.steps / 2)];
    epoch.loss = sums.mean().loss, epoch.accuracy = sums.mean().accuracy;
    if (validation) epoch.validation = measure(trainer, *validation, options.batch);
    epochs.push_back(epoch);
    if (watch.epoch && !watch.epoch(epoch)) break;
  }
  return epochs;
}

}  // namespace cairn
