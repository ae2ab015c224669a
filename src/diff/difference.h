// The first operator that computes something else: a model of ours against values that are held to be right.
//
// What may differ is measured, not guessed: the model runs again with every result moved by what rounding in its operator
// could do, and how far that carries is what a value may be off. Values are paired by source node. An operator is blamed when
// what it made is off, what it read is not, and putting the right values in its place mends what the model gives.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diff/trace.h"

namespace cairn::diff {

/// How the model under suspicion is made.
struct Subject {
  std::function<Module()> load;
  std::vector<std::string> engines;   // best first; empty: the default
  std::vector<std::string> disabled;  // passes that are left out from the start
  /// Further changes of the module behind the passes, those in the list left out; tests plant faults with it.
  std::function<void(Module&, const std::vector<std::string>& disabled)> behind_passes;
  std::vector<std::string> further_passes;     // names that behind_passes goes by
  std::function<void(Module&)> before_passes;  // precision
  std::shared_ptr<Observer> fault;             // see trace_run
  int threads = 0;

  /// The module after its passes, `without` left out as well.
  Module module(const std::vector<std::string>& without = {}) const;
  std::shared_ptr<const Model> model(const std::vector<std::string>& without = {}) const;
};

/// What to compare with: values by Key, of any maker.
struct Golden {
  std::string maker;  // "TensorFlow 2.15.1", "reference"
  std::map<Key, Tensor> values;
  std::vector<std::pair<std::string, Tensor>> outputs;
};
/// Of a run of ours.
Golden golden_of(Trace trace, std::string maker);

struct Row {
  Key key;
  std::string op, location, kernel;
  std::vector<int64_t> dims;
  std::string dtype;
  double error = 0;      // largest |mine - golden|
  double allowed = 0;    // what rounding before and in it may have made of it
  double spread = 0;     // root mean square of golden
  size_t nonfinite = 0;  // elements that are finite on one side only
  bool off = false;
  bool suspect = false;  // off although what it read is not
  std::string finding;   // "off by a factor", see judge/diagnosis.h
  bool is_output = false;

  double share() const { return spread > 0 ? error / spread : error; }
};

struct Culprit {
  Row row;
  bool confirmed = false;             // right values in its place mend the outputs, or half of what they are off
  double local_error = 0;             // of the operator alone: right values put in where it reads
  std::string pass;                   // that made it wrong; empty: no pass
  bool pass_alone = false;            // leaving out this pass alone mends it
  bool kernel = false;                // the reference engine computes it right from the same graph
  std::string remark;                 // what else is known of who made it wrong
  std::vector<std::string> sources;   // "tf:conv1 (train.py:3)" of all nodes that it holds
  std::vector<std::string> unpaired;  // "perm/transpose (Transpose)": what it reads that has no counterpart
  std::optional<Row> inner;           // of several nodes the first that differs, where the graph itself says so
  Module program;                     // the operator alone
  std::vector<std::pair<std::string, Tensor>> inputs, expected, found;  // of `program`
};

struct Result {
  bool equal = true;
  std::string mine, golden;
  std::vector<Row> outputs;
  std::vector<Row> rows;  // every value that has a counterpart, in the order of computation
  size_t unpaired = 0;    // values without one
  std::vector<Culprit> culprits;
  size_t runs = 0;  // of the model
};

struct Options {
  double factor = 16;  // of the measured effect of rounding
  size_t most_culprits = 1;
  bool attribute = true;  // find the pass or engine
};

/// Throws Error: the model cannot be run, or golden has none of its outputs.
Result find_difference(const Subject& subject, const Golden& golden, const std::vector<Tensor>& inputs,
                       const Options& options = {});

/// The output called `name`, with or without the number of a result; null: there is none.
const Tensor* find_output(const std::vector<std::pair<std::string, Tensor>>& list, const std::string& name);

/// How far two right results of an output may be apart: `factor` times what moved when every operator of the model, done
/// alone by the reference engine, was moved by what rounding in it could do, and the rounding of the output itself. By other
/// engines, which round less often, it is less. Without `load` (too large to run so) the rounding of the output alone.
struct Allowance {
  std::function<Module()> load;
  int threads = 0;
  std::vector<std::string> engines = {"reference"};
  double factor = Options{}.factor;
  std::function<bool(const std::vector<double>&)> enough;  // asked after each run; true ends the measuring

  std::vector<double> of(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const;
};

}  // namespace cairn::diff
