// The loop over epochs and batches: order of the examples, learning rate, metrics.
#pragma once

#include <functional>
#include <optional>

#include "train/dataset.h"
#include "train/trainer.h"

namespace cairn {

/// The learning rate as a function of the step.
struct Schedule {
  enum class Kind : uint8_t { constant, step, cosine, linear } kind = Kind::constant;
  double rate = 0.01;
  double least = 0;      // for cosine and linear: the final rate
  double gamma = 0.1;    // for step: the factor
  int step_epochs = 30;  // for step: the factor applies once in so many epochs
  double warm_up = 0;    // epochs in which the rate rises from 0

  /// The rate in step `step`, counted from 0.
  double at(int64_t step, int64_t steps_per_epoch, int epochs) const;
};
std::optional<Schedule::Kind> schedule_kind(std::string_view name);

struct FitOptions {
  int epochs = 1;
  int64_t batch = 32;
  bool shuffle = true;
  bool keep_rest = true;  // the last batch may be smaller; else its examples are left out
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

/// The epoch as JSON with these names; with the accuracy only if `accuracy`.
std::string json_of(const Epoch& epoch, bool accuracy);

struct FitWatch {
  std::function<void(int64_t done, int64_t all)> step = {};
  std::function<bool(const Epoch&)> epoch = {};  // false ends the training
};

/// Continues from the trainer's current step, so that a restored trainer continues within its epoch. Throws Error.
std::vector<Epoch> fit(Trainer& trainer, const Dataset& data, const Dataset* validation, const FitOptions& options,
                       const FitWatch& watch = {});

/// Loss and accuracy over all examples.
Trainer::Result measure(const Trainer& trainer, const Dataset& data, int64_t batch);

}  // namespace cairn
