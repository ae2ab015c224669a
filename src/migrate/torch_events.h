// What the training code of a PyTorch script does, call by call, and the names that code reads and sets.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "migrate/torch_file.h"

namespace cairn::migrate {

enum class Does : uint8_t { nothing, zero, backward, step, clip, clip_value, idle, hand };

// A function whose backward() is of a parameter: its callers compute the loss, and hand it over with its gradients.
struct Taker {
  NodeId function, backward;  // the call of backward()
  std::string loss;
  std::vector<std::string> optimizers;  // as the function names them
};

struct Event {
  Does does;
  NodeId call, statement;
  NodeId subject;        // the loss of backward(), the optimizer of the others; kNoNode for all optimizers
  std::string receiver;  // the optimizer's text
};

using Names = std::set<std::string>;

// ---- what a call is (torch_events.cpp) ----

bool has_word(std::string_view text, std::string_view word);
NodeId object_of(const Syntax& syntax, NodeId call);
std::string_view method_of(const Syntax& syntax, NodeId call);
NodeId only_argument(const Syntax& syntax, NodeId call);
Event event_of(TorchFile& torch, NodeId call);
/// The function around a node; 0 at the top of the script.
NodeId scope_of(const Syntax& syntax, NodeId node);

// ---- names that code reads and sets (torch_events.cpp) ----

bool is_part_of_name(const Syntax& syntax, NodeId node);
bool is_target(const Syntax& syntax, NodeId node, bool with_augmented);
void add_targets(const Syntax& syntax, NodeId target, Names& names);
Names sets(const Syntax& syntax, NodeId within);
Names reads(const Syntax& syntax, NodeId within);
Names reads_with_gradient(const Syntax& syntax, NodeId within);
bool meets(const Names& a, const Names& b);

// ---- losses that a function is given (torch_takers.cpp) ----

/// The takers of a script with the optimizers of each, as it names them: those that step in it, else those of its object.
std::vector<Taker> takers_of(TorchFile& torch, const std::map<NodeId, std::vector<Event>>& events);
/// Adds the calls of takers to the events of the functions around them; gives the takers that are called.
std::set<NodeId> add_handings(TorchFile& torch, const std::vector<Taker>& takers,
                              std::map<NodeId, std::vector<Event>>& events);

}  // namespace cairn::migrate
