// Collects the problems that prevent the import of a model: one entry per foreign operator and reason, with all its
// nodes.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/report.h"

namespace cairn {

class Problems {
 public:
  using Place = Problem::Place;
  /// An op without a row. `cuts` are tensors above the node that can be outputs instead.
  void unsupported(const std::string& op, const Place& node, const std::vector<std::string>& cuts);
  /// A node that has a row but cannot be taken: the reason, as an Error says it.
  void refused(const std::string& op, const Place& node, const Error& error);
  bool empty() const { return entries_.empty(); }
  /// How often a node was added.
  size_t count() const { return count_; }
  /// Ways around what is refused. `ends`: outputs that need nothing of it; `below`: nodes that could be inputs instead.
  struct Remedies {
    std::vector<std::string> ends, below;
    /// Tries to import the model with these outputs, or with these nodes as inputs; throws Error when that fails.
    std::function<void(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs)> attempt;
  };
  /// Throws ReportError when there is any problem, with those remedies that were tried and work.
  void raise(const std::string& file, const Remedies& remedies = {}) const;

 private:
  struct Entry {
    bool unknown = false;
    std::vector<Place> nodes;  // in order of meeting, each once
    std::set<std::string> seen;
    std::vector<std::string> cuts;
  };
  void add_once(Entry& entry, const Place& node);
  static std::string fix(const Entry& entry, const Remedies& remedies,
                         const std::function<bool(const std::vector<std::string>&, bool)>& holds);
  std::map<std::pair<std::string, std::string>, Entry> entries_;  // by op and message
  size_t count_ = 0;
};

}  // namespace cairn
