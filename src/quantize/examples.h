// Calibration data, and what a model makes of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/model.h"
#include "train/dataset.h"

namespace cairn::quantize {

/// Arrays by name from an .npz file, or from a folder of .npz files (equal names are put together) and .npy files (named as
/// the inputs). Throws Error not_found, io, invalid_argument.
std::map<std::string, Tensor> read_examples(const std::string& path);

class Examples {
 public:
  /// `labels`: the name of the labels' array; empty: "labels", "label" or "y" if there is one. Throws Error not_found,
  /// invalid_argument: also where a float is not finite.
  Examples(const Module& module, std::map<std::string, Tensor> arrays, const std::string& labels, int64_t batch);

  int64_t count() const { return count_; }
  int64_t batch() const { return batch_; }
  bool labelled() const { return !labels_.empty(); }
  /// Runs the model on the first examples, at most `limit` (at least one batch), and hands out each batch's results.
  void run(const Model& model, int64_t limit,
           const std::function<void(const std::vector<Tensor>& results, int64_t first)>& take) const;
  /// How many of the answers, which begin with example `first`, are the labels.
  int64_t hits(const Tensor& answers, int64_t first) const;

 private:
  std::unique_ptr<Dataset> data_;
  std::vector<int64_t> labels_;
  int64_t count_ = 0, batch_ = 1;
  bool keep_rest_ = true;
};

/// How near a model's results are to those of the f32 model.
struct Score {
  double sqnr =
      0;  // dB, of the worst float result: its variance over the examples to its mean square error; at most kEqual
  std::optional<double> accuracy;  // of the first result, if there are labels

  static constexpr double kEqual = 200;
  double error() const;  // as part of the results' standard deviation
};

/// The results of the f32 model, kept to compare others with.
class Judge {
 public:
  Judge(const Examples& examples, const Model& model, int64_t limit);
  Score of(const Model& model, int64_t limit) const;
  const Score& original() const { return original_; }

 private:
  const Examples& examples_;
  std::vector<std::vector<Tensor>> expected_;  // by batch
  std::vector<std::vector<double>> means_;     // by result
  Score original_;
};

}  // namespace cairn::quantize
