// The loop over epochs and batches: order of the examples, learning rate, measures.
#pragma once

#include <functional>
#include <optional>

#include "train/dataset.h"
#include "train/trainer.h"

namespace cairn {

/// How the learning rate goes over the steps.
struct Schedule {
  enum class Kind : uint8_t { constant, step, cosine, linear } kind = Kind::constant;
  double rate = 0.01;
  double least = 0;      // where cosine and linear end
  double gamma = 0.1;    // step: factor
  int step_epochs = 30;  // step: after so many epochs
  double warm_up = 0;    // epochs in which the rate rises from 0

  /// In this step, counted from 0.
  double at(int64_t step, int64_t steps_per_epoch, int epochs) const;
};
std::optional<Schedule::Kind> schedule_kind(std::string_view name);

struct FitOptions {
  int epochs = 1;
  int64_t batch = 32;
  bool shuffle = true;
  bool keep_rest = true;  // the examples that do not fill the last batch make a smaller one
  uint64_t seed = 0;
  Schedule schedule;
};

struct Epoch {
  int number = 0;  // from 1
  double loss = 0, accuracy = 0;
  std::optional<Trainer::Result> validation;
  double rate = 0;          // at its end
  double seconds = 0;       // without validation
  double step_seconds = 0;  // median
  int64_t steps = 0;
};

/// JSON with these names; `accuracy`: whether there is one.
std::string json_of(const Epoch& epoch, bool accuracy);

struct FitWatch {
  std::function<void(int64_t done, int64_t all)> step = {};
  std::function<bool(const Epoch&)> epoch = {};  // false ends the training
};

/// Goes on where the trainer stands: a restored one continues in its epoch. The result is that of the last epoch. Throws Error.
std::vector<Epoch> fit(Trainer& trainer, const Dataset& data, const Dataset* validation, const FitOptions& options,
                       const FitWatch& watch = {});

/// Over all examples.
Trainer::Result measure(const Trainer& trainer, const Dataset& data, int64_t batch);

}  // namespace cairn
