// Which interface of TensorFlow each script is written for, whether it uses TensorFlow at all, and which scripts are
// started by themselves. Decided by file: by its imports and uses, then by the files it works with.
#pragma once

#include <vector>

#include "migrate/migrate.h"
#include "migrate/values.h"
#include "support/executor.h"

namespace cairn::migrate {

/// A use of a framework's name in a script.
struct NameUse {
  NodeId node;
  ApiName name;
  bool alone;  // it can be nothing else
};

/// What is known about one script.
struct FileFacts {
  Generation generation = Generation::none;  // by its own imports and uses
  int tf = 0;  // 1 or 2: whose rules apply; 0: TensorFlow is neither used here nor through the project's modules
  bool entry = false;         // started by itself
  bool computes = false;      // it or what it uses makes operators, not only files and records
  bool trains_keras = false;  // it or what it uses calls a Keras model's fit()
  bool eager = false;         // eager execution is switched on where the interface of TensorFlow 1 is used
  Distribution distributed = Distribution::none;
  bool shared = false;  // scripts of Horovod and scripts of a strategy use it
  std::vector<NameUse> names;
};

/// What is known about the whole run.
struct ProjectFacts {
  int tf = 1;                                     // of most scripts
  Distribution distributed = Distribution::none;  // Horovod where any script is
  bool horovod_has_peers = false;                 // all that the project uses of it
  std::vector<FileFacts> files;                   // by the index of the module in the project
};

ProjectFacts find_facts(const Project& project, const Options& options, Executor& executor);

/// The code around `node` asks first whether the name is there: try with a handler of ImportError or AttributeError,
/// hasattr(), a test of the version.
bool asks_for_names(const Module& module, NodeId node);

}  // namespace cairn::migrate
