// A model opened for a command: prepared, with inputs made or read, and its plan described.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "console.h"
#include "convert/facts.h"
#include "convert/report.h"
#include "ir/text.h"
#include "model/open.h"
#include "runtime/model.h"
#include "support/options.h"
#include "support/shape_options.h"

namespace cairn::cli {

/// The options that every command on a model has.
struct ModelArguments {
  std::string path;
  std::string shapes;  // "x:1,224,224,3"
  int batch = 0;       // first size where the model leaves it open; 0: not given
  int threads = 0;
  std::string engines;  // "cpu,reference"
  bool deterministic = false;
  std::vector<std::string> outputs;
  std::string weights;  // of a Caffe model
  std::string signature;
  std::vector<std::string> replace, cut;  // "node=zeros", "node"
};

/// What --replace and --cut say, for ImportOptions.
std::map<std::string, std::string> replacements(const ModelArguments& arguments);
/// Reads the source of a model; repairs made to --input-shape are said on standard error.
Module open(const ModelArguments& arguments);
std::shared_ptr<const Model> prepare(const ModelArguments& arguments);

/// Dims for every input: as declared, from --input-shape, and --batch in front where the model leaves it open; for other
/// open sizes likely ones that `fits` (runtime/likely_dims.h), with `batch` in front, or 1 where none fit. Throws Error
/// invalid_argument for a name or size that does not fit the model.
std::vector<Dims> choose_dims(const Model& model, const ModelArguments& arguments, int64_t batch = 1,
                              const std::function<bool(const std::vector<Dims>&)>& fits = {});
/// "name=file" or "file" in the inputs' order; the rest are made (or zero), see made_inputs.h. All sizes must agree with the
/// model.
std::vector<Tensor> read_inputs(const Model& model, const ModelArguments& arguments,
                                const std::vector<std::string>& files, bool zeros = false, uint64_t seed = 0);

/// One run, recorded and dumped as what is on asks for; the first one of the process starts what the environment asks for. In
/// `options` an observer that is told as well.
std::vector<Tensor> run_watched(const Model& model, const std::vector<Tensor>& inputs, RunOptions options = {});

/// "conv1/Conv2D (train.py:41)" and how many other source nodes the step has.
std::string step_sources(const Module& module, const PlannedStep& step);
/// What all names start with, up to a '/'; of fewer than two names nothing.
std::string common_folder(const std::vector<std::string>& names);
/// Time of each step, control steps without what they run, summed over runs made on one thread.
class StepTimes : public Observer {
 public:
  struct Entry {
    const PlannedStep* step = nullptr;
    double seconds = 0;
    size_t runs = 0;
  };

  void step_begins(const Plan& plan, size_t step, void* const* buffers) override;
  void step_ends(const Plan& plan, size_t step, void* const* buffers) override;
  /// In order of first run.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  struct Open {
    std::chrono::steady_clock::time_point begin;
    double inner = 0;  // seconds of steps inside
  };
  std::vector<Open> open_;
  std::vector<Entry> entries_;
  std::unordered_map<const PlannedStep*, size_t> index_;
};

}  // namespace cairn::cli
