// The engine behind its C interface: libcairn.so loaded at run time, and the programs of clusters, compiled once per set
// of input shapes and shared by all kernels of the process that have the same graph.
#pragma once

#include <cairn/cairn.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace cairn_tf {

/// The functions of libcairn.so that the adapter calls.
struct Library {
  decltype(&::cairn_abi_version) abi_version = nullptr;
  decltype(&::cairn_version) version = nullptr;
  decltype(&::cairn_last_error) last_error = nullptr;
  decltype(&::cairn_free_text) free_text = nullptr;
  decltype(&::cairn_cluster_refusals) cluster_refusals = nullptr;
  decltype(&::cairn_module_from_cluster) module_from_cluster = nullptr;
  decltype(&::cairn_module_free) module_free = nullptr;
  decltype(&::cairn_model_prepare) model_prepare = nullptr;
  decltype(&::cairn_model_free) model_free = nullptr;
  decltype(&::cairn_model_input_count) model_input_count = nullptr;
  decltype(&::cairn_model_input) model_input = nullptr;
  decltype(&::cairn_model_input_use) model_input_use = nullptr;
  decltype(&::cairn_model_first_random_state) model_first_random_state = nullptr;
  decltype(&::cairn_model_memory) model_memory = nullptr;
  decltype(&::cairn_model_run) model_run = nullptr;
};

/// A failure of the engine: `node` made it, or is empty.
struct Failure {
  CairnStatus status = CAIRN_OK;
  std::string node;
  std::string message;
  std::string report = {};  // JSON of problems with their nodes, or ""
  bool failed() const { return status != CAIRN_OK; }
};

/// The library named by the environment variable CAIRN_LIBRARY, else libcairn.so beside the installed package `cairn`
/// (`folder` is that of _cairn_tf.so). Null and a sentence in `why` when it cannot be loaded; tried once per process.
const Library* library(std::string& why);

/// Compiled for one set of input shapes.
class Compiled {
 public:
  Compiled(const Library& library, CairnModel* model);
  ~Compiled();
  Compiled(const Compiled&) = delete;

  struct Random {
    std::string name;  // of the source node
    bool seeded;
    uint64_t first[3];
  };
  CairnModel* model() const { return model_; }
  /// That it keeps, and the bound that the engine has for one model.
  size_t bytes(size_t& most) const { return library_.model_memory(model_, &most); }
  /// Inputs after the cluster's arguments: random states.
  const std::vector<Random>& random() const { return random_; }

 private:
  const Library& library_;
  CairnModel* model_;
  std::vector<Random> random_;
};

/// What is compiled: the cluster's graph, and how.
struct Source {
  std::string graph;
  std::string precision_mode;  // of the platform, or ""
  std::string mixed_lists;     // JSON text, or ""
  std::string custom_types;    // lines of the platform's file, or ""
  std::string keep_types;      // JSON list of nodes, or ""
  std::vector<int> fixed;      // arguments that follow from shapes: integers that the code holds
  std::vector<int> frozen;     // variables that the code holds as they are when it is compiled
  auto operator<=>(const Source&) const = default;
};

/// The code of a cluster. Thread-safe.
class Program {
 public:
  Program(const Library& library, std::string name, Source source)
      : library_(library), name_(std::move(name)), source_(std::move(source)) {}

  /// The code for these arguments (all but the random states), whose node names are `argument_name(i)`; compiled when it
  /// is the first time. Null and the reason in `failure` when the engine refuses. Allocates nothing when known.
  std::shared_ptr<const Compiled> compiled(const CairnTensor* arguments, size_t count, int threads, Failure& failure);

 private:
  struct Entry {
    std::vector<int64_t> shapes;  // per argument: rank, dims
    std::vector<int64_t> values;  // of the fixed arguments
    int threads;
    std::shared_ptr<const Compiled> code;  // null: refused
    Failure failure;
    std::shared_ptr<std::atomic<uint64_t>> used = std::make_shared<std::atomic<uint64_t>>(0);  // when, last
  };
  void make_room();
  bool same_values(const std::vector<int64_t>& values, const CairnTensor* arguments) const;
  std::string import_options(const CairnTensor* arguments, size_t count) const;
  bool find(const CairnTensor* arguments, size_t count, int threads, std::shared_ptr<const Compiled>& code,
            Failure& failure) const;
  std::shared_ptr<const Compiled> compile(const CairnTensor* arguments, size_t count, int threads,
                                          Failure& failure) const;

  const Library& library_;
  std::string name_;
  Source source_;
  std::mutex compiling_;
  mutable std::shared_mutex mutex_;
  mutable std::atomic<uint64_t> uses_{0};
  std::vector<Entry> entries_;  // oldest first; the bytes that they keep are bounded
};

/// The process' program of this source; it lives as long as anybody holds it, the latest ones longer. One that holds
/// variables is its caller's alone.
std::shared_ptr<Program> program(const Library& library, const std::string& name, const Source& source);

std::string argument_name(size_t index);
Failure last_failure(const Library& library);

}  // namespace cairn_tf
