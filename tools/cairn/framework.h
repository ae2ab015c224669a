// A model run by the framework that it comes from, in a Python of the user's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "diff/trace.h"
#include "session.h"

namespace cairn::cli {

/// The framework could not be asked: it is not installed.
struct FrameworkMissing {
  std::string reason;
};

struct FrameworkQuestion {
  std::string source;  // SavedModel, checkpoint prefix, .pb, .h5, .keras or .onnx
  std::string signature, python;
  bool trace = false;  // values inside, of the first run
};

struct FrameworkAnswer {
  std::string maker;                         // "TensorFlow 2.15.1", of a trace
  std::vector<std::vector<Tensor>> outputs;  // by run, in the order of our outputs
  std::map<diff::Key, Tensor> values;        // of a trace
};

/// Runs the source once for each list of `inputs`, which are in the order of our model's. Throws FrameworkMissing, or Error
/// with the framework's own sentence.
FrameworkAnswer ask_framework(const FrameworkQuestion& question, const Model& mine,
                              const std::vector<std::vector<Tensor>>& inputs);

/// What `theirs` call each port of `mine`: the same name, the same but for decoration ("serving_default_x:0" is "x"), or the
/// next one of the same type; where there is none, the name as it is.
std::vector<std::string> counterparts(const std::vector<Port>& mine, const std::vector<Port>& theirs);

/// Where the model leaves sizes open that `source`, which it will be compared with, does not: these sizes.
ModelArguments fitted(ModelArguments arguments, const Model& mine, const std::string& source);

}  // namespace cairn::cli
