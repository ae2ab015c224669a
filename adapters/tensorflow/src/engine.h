// The engine behind its C interface: libcairn.so loaded at run time, and the programs of clusters, shared by all kernels of
// the process that have the same graph. A cluster is compiled for the first sizes it meets, and when others come once more,
// with what differs between them open: a further set of sizes is a plan of that code.
#pragma once

#include <cairn/cairn.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cluster_choice.h"
#include "size_choice.h"

namespace cairn_tf {

/// The functions of libcairn.so that the adapter calls.
struct Library {
  decltype(&::cairn_abi_version) abi_version = nullptr;
  decltype(&::cairn_version) version = nullptr;
  decltype(&::cairn_last_error) last_error = nullptr;
  decltype(&::cairn_free_text) free_text = nullptr;
  decltype(&::cairn_cluster_refusals) cluster_refusals = nullptr;
  decltype(&::cairn_cluster_operators) cluster_operators = nullptr;
  decltype(&::cairn_module_from_cluster) module_from_cluster = nullptr;
  decltype(&::cairn_module_free) module_free = nullptr;
  decltype(&::cairn_model_prepare) model_prepare = nullptr;
  decltype(&::cairn_model_free) model_free = nullptr;
  decltype(&::cairn_model_input_count) model_input_count = nullptr;
  decltype(&::cairn_model_input) model_input = nullptr;
  decltype(&::cairn_model_input_use) model_input_use = nullptr;
  decltype(&::cairn_model_first_random_state) model_first_random_state = nullptr;
  decltype(&::cairn_model_memory) model_memory = nullptr;
  decltype(&::cairn_model_planning) model_planning = nullptr;
  decltype(&::cairn_watching) watching = nullptr;
  decltype(&::cairn_model_plan) model_plan = nullptr;
  decltype(&::cairn_model_run) model_run = nullptr;
  decltype(&::cairn_limit_begin) limit_begin = nullptr;
  decltype(&::cairn_limit_end) limit_end = nullptr;
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

/// An argument whose open values the code takes as dims: it is told as empty, [0, value, value, ...].
struct ToldByDims {
  size_t argument;
  std::vector<int64_t> elements;  // which of its values
};

/// Prepared for one set of sizes, or for all that differ in open ones.
class Compiled {
 public:
  Compiled(const Library& library, CairnModel* model, std::vector<ToldByDims> told);
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
  /// The ns that its runs have spent on plans.
  uint64_t planning() const { return library_.model_planning(model_); }
  /// Inputs after the cluster's arguments: random states.
  const std::vector<Random>& random() const { return random_; }
  /// Makes the arguments those of model(); `dims` holds what they then point to. Allocates nothing when it has room.
  void tell_values(CairnTensor* arguments, std::vector<int64_t>& dims) const;

 private:
  const Library& library_;
  CairnModel* model_;
  std::vector<ToldByDims> told_;
  std::vector<Random> random_;
};

/// What is compiled: the cluster's graph, and how.
struct Source {
  std::string graph;
  std::string precision_mode;  // of the platform, or ""
  std::string mixed_lists;     // JSON text, or ""
  std::string custom_types;    // lines of the platform's file, or ""
  std::string keep_types;      // JSON list of nodes, or ""
  bool deterministic = false;  // convolutions by their definition alone
  std::vector<int> fixed;      // arguments that follow from shapes: integers that the code holds
  std::vector<int> frozen;     // variables that the code holds as they are when it is compiled
  auto operator<=>(const Source&) const = default;
};

/// Of a cluster's choices.
struct Rules {
  Rule new_sizes = Rule::engine, doubt = Rule::engine;
};

/// The code of a cluster. Thread-safe.
class Program {
 public:
  Program(const Library& library, std::string name, Source source, Rules rules)
      : library_(library), name_(std::move(name)), source_(std::move(source)), choice_(rules.new_sizes),
        doubt_(rules.doubt) {}

  /// Arguments (all but the random states), whose node names are `argument_name(i)`, and whether the step should end.
  struct Call {
    const CairnTensor* arguments;
    size_t count;
    Sizes& sizes;
    int32_t (*interrupted)(void* user) = nullptr;
    void* interrupted_user = nullptr;
    bool ended() const { return interrupted && interrupted(interrupted_user); }
  };
  void read_sizes(const Call& call) const;
  /// The code for these arguments; compiled, for `spent` ns, where none fits their sizes. Null and the reason in `failure` when
  /// the engine refuses, or where the step ends meanwhile (CAIRN_CANCELLED). Allocates nothing when known.
  std::shared_ptr<const Compiled> compiled(const Call& call, int threads, Failure& failure, double& spent);
  /// Where runs go whose sizes hardly ever repeat.
  SizeChoice& choice() { return choice_; }
  /// Where runs of a cluster in doubt go.
  ClusterChoice& doubt() { return doubt_; }
  void tell_choices();

 private:
  /// Code, and the sizes that it is for.
  struct Entry {
    Sizes sizes;            // that it was made at
    std::vector<int> like;  // per size: the first that it always equals where it is open, else -1; empty: none is open
    int threads;
    std::shared_ptr<const Compiled> code = nullptr;  // null: refused
    Failure failure = {};
    std::shared_ptr<std::atomic<uint64_t>> used = std::make_shared<std::atomic<uint64_t>>(0);  // when, last

    bool fits(const Sizes& other) const;
    /// Opens what differs at `other`, and parts what is open and differs there; false where that cannot be.
    bool widen(const Sizes& other, const std::vector<bool>& may_vary);
  };
  std::vector<bool> may_vary(const Call& call) const;
  bool find(const Sizes& sizes, int threads, std::shared_ptr<const Compiled>& code, Failure& failure) const;
  /// Makes the entry one of open sizes that fits these as well as those of an earlier one; false: `entry` is unchanged.
  bool make_open(const Call& call, Entry& entry);
  nlohmann::json plan(const Compiled& code, std::vector<CairnTensor> arguments) const;
  std::string why_not_open(const Entry& open, const Call& call) const;
  std::string import_options(const Call& call, const Entry& entry, std::vector<ToldByDims>& told) const;
  void compile(const Call& call, Entry& entry);
  void make_room();

  const Library& library_;
  std::string name_;
  Source source_;
  SizeChoice choice_;
  ClusterChoice doubt_;
  std::timed_mutex compiling_;
  int compilations_ = 0;
  bool per_set_ = false;  // of sizes: open ones are refused, or cost more
  mutable std::shared_mutex mutex_;
  mutable std::atomic<uint64_t> uses_{0};
  std::vector<Entry> entries_;  // oldest first; the bytes that they keep are bounded
};

/// The process' program of this source; it lives as long as anybody holds it, the latest ones longer. One that holds
/// variables is its caller's alone.
std::shared_ptr<Program> program(const Library& library, const std::string& name, const Source& source,
                                 Rules rules = {});

std::string argument_name(size_t index);
Failure last_failure(const Library& library);

}  // namespace cairn_tf
