// Collects what keeps a model from being imported: one entry for each foreign operator and reason, with all its nodes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/report.h"

namespace cairn {

class Problems {
 public:
  /// An op without a row. `cuts` are tensors above the node that can be outputs instead.
  void unsupported(const std::string& op, const std::string& node, const std::vector<std::string>& cuts);
  /// A node that has a row but cannot be taken: the reason, as an Error says it.
  void refused(const std::string& op, const std::string& node, const Error& error);
  bool empty() const { return entries_.empty(); }
  /// Throws ReportError when there is any problem. `ends`: outputs that need nothing refused, for problems that have no
  /// cuts of their own; `below`: nodes that could be inputs, so that nothing refused is needed.
  void raise(const std::string& file, const std::vector<std::string>& ends = {},
             const std::vector<std::string>& below = {}) const;

 private:
  struct Entry {
    bool unknown = false;
    std::vector<std::string> nodes;  // in order of meeting, each once
    std::set<std::string> seen;
    std::vector<std::string> cuts;
  };
  static void add_once(Entry& entry, const std::string& node);
  std::map<std::pair<std::string, std::string>, Entry> entries_;  // by op and message
};

}  // namespace cairn
