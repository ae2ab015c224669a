// Quantisation after training: calibrates a model on examples, makes its convolutions and matrix products compute on 8 bits
// (or their weights alone 8 or 4), and leaves as many of the worst in f32 as a budget asks for.
#pragma once

#include "quantize/examples.h"
#include "quantize/insert.h"

namespace cairn::quantize {

/// What quantisation may cost.
struct Budget {
  std::optional<double> points;  // of accuracy, in percent: what labels are for
  std::optional<double> error;   // of the results, as part of their standard deviation
};
/// "0.5%": of accuracy with labels, else the error of the results; "25dB": the least SQNR. Empty: 0.5 % of accuracy, or an
/// error of 10 %. Throws Error invalid_argument.
Budget parse_budget(const std::string& text, bool labelled);

/// How one layer is told to be quantised, by Layer::name.
struct LayerOrder {
  bool quantise = true;
  std::optional<Method> method;
  std::optional<Affine> steps;  // of its data, instead of calibration
  std::vector<float> scales;    // of its kernel, by output channel
};

struct Options {
  Method method = Method::mse;
  double percentile = 99.99;
  int weights_only = 0;  // bits: 8 or 4; 0: data as well
  int64_t group = 64;    // inputs that share a scale of 4 bits
  std::string budget;
  std::vector<std::string> keep;  // layers that stay f32: names, or the beginning of names and *
  std::map<std::string, LayerOrder> orders;
  bool only_ordered = false;        // layers without an order stay f32
  int64_t calibration = 256;        // most examples that ranges are taken from
  int64_t calibration_batches = 0;  // the same in batches, where it is not 0
  bool equalise = true, smooth = true, correct = true;
  bool costs = true;  // data is rounded only where bytes make a run faster
  bool fall_back = true;
  int threads = 0;
  std::function<void(const std::string& what, double share)> progress;
};

struct LayerResult {
  std::string name, op, location;
  bool quantised = false;
  bool rounds_data = false;    // else its weights alone are small
  std::string reason;          // why it is not, or its data is not
  std::optional<double> sqnr;  // dB of the model's results when this layer alone is quantised
  std::optional<Range> extent;
  std::optional<Affine> steps;  // of its data
  std::vector<float> scales;    // of its kernel
  uint64_t bytes_before = 0, bytes_after = 0;
};

struct Outcome {
  Module module;
  std::vector<LayerResult> layers;
  std::map<std::string, size_t> skipped;        // contractions that are no layers, by reason
  std::optional<Score> original, whole, final;  // of f32, of all layers quantised, of what was made; none without data
  Budget budget;
  bool within = true;
  uint64_t bytes_before = 0, bytes_after = 0;    // of all constants
  double seconds_before = 0, seconds_after = 0;  // of a run on one batch; 0: not measured
  int64_t examples = 0, batches = 1;             // measured with; calibrated on
  std::vector<std::string> steps;                // what was done beside rounding, in words
};

/// `examples` may be null for weights alone, and where all layers have orders with steps. Throws Error.
Outcome quantise(const Module& source, const Examples* examples, const Options& options);

}  // namespace cairn::quantize
