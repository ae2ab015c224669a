// Functions that are given a loss and call its backward(): def update(self, loss). Their callers take the gradients, and hand
// them over with the loss.
#include <algorithm>

#include "migrate/torch_events.h"

namespace cairn::migrate {
namespace {

// The function around a backward() of one of its parameters, which nothing in it changes.
std::optional<Taker> taker_of(TorchFile& torch, const Event& event) {
  const Syntax& syntax = torch.syntax;
  const NodeId function = scope_of(syntax, event.call);
  if (function == 0 || event.does != Does::backward || syntax.kind(event.subject) != Kind::identifier)
    return std::nullopt;
  const std::string loss(syntax.text(event.subject));
  const NodeId body = syntax.child(function, Field::body);
  const std::vector<Parameter> parameters = torch.file.module.parameters(function);
  const bool given = std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& one) {
    return one.name == loss && one.index >= 0 && one.value == kNoNode;
  });
  if (!given || sets(syntax, body).contains(loss)) return std::nullopt;
  return Taker{function, event.call, loss, {}};
}

}  // namespace

std::vector<Taker> takers_of(TorchFile& torch, const std::map<NodeId, std::vector<Event>>& events) {
  std::vector<Taker> found;
  for (const auto& [scope, list] : events)
    for (const Event& event : list) {
      std::optional<Taker> taker = taker_of(torch, event);
      if (!taker) continue;
      const NodeId owner = torch.syntax.ancestor(scope, Kind::class_definition);
      auto add = [&](NodeId from, bool members) {
        for (const Event& one : events.at(from))
          if (one.does == Does::step && (!members || one.receiver.starts_with("self.")) &&
              std::find(taker->optimizers.begin(), taker->optimizers.end(), one.receiver) == taker->optimizers.end())
            taker->optimizers.push_back(one.receiver);
      };
      add(scope, false);
      if (taker->optimizers.empty() && owner != kNoNode)
        for (const auto& [other, events_there] : events)
          if (other != 0 && torch.syntax.ancestor(other, Kind::class_definition) == owner) add(other, true);
      if (!taker->optimizers.empty()) found.push_back(*taker);
    }
  return found;
}

namespace {

// The parameters of a function but self, as bind() takes them.
std::string parameter_names(const TorchFile& torch, NodeId function) {
  std::string names;
  for (const Parameter& one : torch.file.module.parameters(function))
    if (one.name != "self") names += (names.empty() ? "" : " ") + std::string(one.name);
  return names;
}

// An optimizer of a taker as its caller names it; "" where it cannot.
std::string named_by_caller(TorchFile& torch, const Taker& taker, const std::string& optimizer, NodeId call) {
  const Syntax& syntax = torch.syntax;
  NodeId callee = syntax.child(call, Field::function);
  if (optimizer.starts_with("self."))
    return syntax.kind(callee) == Kind::attribute
               ? std::string(syntax.text(syntax.child(callee, Field::object))) + optimizer.substr(4)
               : "";
  const std::string names = parameter_names(torch, taker.function);  // bound refers to them
  Arguments bound = torch.file.bind(call, names);
  const std::string root = optimizer.substr(0, optimizer.find('.'));
  if (NodeId given = bound.value(root); given != kNoNode)
    return std::string(syntax.text(given)) + optimizer.substr(root.size());
  const auto& top = torch.file.module.scopes()[0].names;
  return top.contains(root) ? optimizer : "";
}

// The call of a taker, as an event of the function around it.
std::optional<Event> handing(TorchFile& torch, const Taker& taker, NodeId call) {
  const Syntax& syntax = torch.syntax;
  const Values callees = torch.file.resolver.values(torch.file.module, syntax.child(call, Field::function));
  if (std::none_of(callees.begin(), callees.end(), [&](const Value& value) {
        return value.is == Value::Is::function && value.module == &torch.file.module && value.node == taker.function;
      }))
    return std::nullopt;
  const NodeId loss = torch.file.bind(call, parameter_names(torch, taker.function)).value(taker.loss);
  if (loss == kNoNode) return std::nullopt;
  bool all = true;
  std::string weights;
  for (const std::string& each : taker.optimizers) {
    const std::string own = named_by_caller(torch, taker, each, call);
    all = all && !own.empty();
    weights += (weights.empty() ? "" : " + ") + own + ".parameters";
  }
  return Event{Does::hand, call, syntax.statement(call), loss, all ? weights : ""};
}

}  // namespace

std::set<NodeId> add_handings(TorchFile& torch, const std::vector<Taker>& takers,
                              std::map<NodeId, std::vector<Event>>& events) {
  std::set<NodeId> called;
  for (NodeId node = 0; node < torch.syntax.size() && !takers.empty(); ++node) {
    if (torch.syntax.kind(node) != Kind::call) continue;
    for (const Taker& taker : takers)
      if (std::optional<Event> event = handing(torch, taker, node)) {
        std::vector<Event>& list = events[scope_of(torch.syntax, node)];
        list.insert(std::find_if(list.begin(), list.end(), [&](const Event& one) { return one.call > node; }), *event);
        called.insert(taker.function);
      }
  }
  return called;
}

}  // namespace cairn::migrate
