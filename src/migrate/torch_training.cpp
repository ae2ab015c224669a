// Training and evaluation code of PyTorch: what computes a loss becomes a function, backward() its gradients, step() a call of the
// optimizer; no_grad() goes, because gradients are only taken where they are asked for.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "migrate/torch_regions.h"

namespace cairn::migrate {
namespace {

// ---- one function or the top of a script ----

class Training : private Regions {
 public:
  Training(TorchFile& torch, NodeId scope, std::vector<Event> events) : Regions(torch, scope, std::move(events)) {
    for (const Event& event : events_)
      if (event.does == Does::step) optimizers_.insert(event.receiver);
  }

  // Whether gradients must lie beside the parameters: no variable of this function could carry them to where they are used.
  bool needs_keeping() const {
    Names stepped;
    for (size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (event.does == Does::hand || taker_) return true;
      if (event.does == Does::step && is_own_optimizer(torch_, event.subject)) return true;
      if (event.does == Does::backward) {
        std::vector<std::string> optimizers = stepping(i);
        if (optimizers.empty() || optimizers.size() > 2 || loss_seed(event) != kNoNode) return true;
        stepped.insert(optimizers.begin(), optimizers.end());
      }
      if (event.does == Does::step && (!stepped.contains(event.receiver) || closure_of(event) != kNoNode)) return true;
      if ((event.does == Does::clip || event.does == Does::clip_value) && !clips_plainly(event)) return true;
    }
    return false;
  }

  /// The function is one that is given a loss with its gradients.
  void take(const Taker& taker) { taker_ = taker; }

  // `all` are the optimizers of other functions that this one may name as well.
  void keep(Names all) { kept_ = true, elsewhere_ = std::move(all); }
  const Names& optimizers() const { return optimizers_; }

  void rewrite() {
    for (size_t i = 0; i < events_.size(); ++i)
      if (events_[i].does == Does::backward && torch_.file.options.recorded)
        rewrite_recorded_backward(torch_, events_[i].call, events_[i].subject);
      else if (events_[i].does == Does::backward)
        taker_ && taker_->backward == events_[i].call ? take_gradients(i) : backward(i);
      else if (events_[i].does == Does::hand)
        hand(i);
    for (const Event& event : events_) {
      NodeId statement = event.statement;
      switch (event.does) {
        case Does::zero: zero(event); break;
        case Does::idle: torch_.drop(kTorchTraining, statement, "nothing is scaled here"); break;
        case Does::step: step(event); break;
        case Does::clip:
        case Does::clip_value: clip(event); break;
        default: break;
      }
    }
  }

 private:
  std::string suffix(const std::string& optimizer) const {
    if (optimizers_.size() < 2) return "";
    std::string name;
    for (char c : optimizer) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    for (std::string_view word : {"self_", "optimizer_", "optimizer", "optim_", "opt_"})
      if (name.starts_with(word) && name.size() > word.size()) name.erase(0, word.size());
    return "_" + name;
  }

  std::string gradients_of(const std::string& optimizer) const { return "grads" + suffix(optimizer); }

  bool ends(const Event& event, const std::string& optimizer) const {
    return event.does == Does::zero && (event.subject == kNoNode || event.receiver == optimizer);
  }

  // The optimizers whose step comes after this backward() and before their gradients are cleared.
  std::vector<std::string> stepping(size_t at) const {
    std::vector<std::string> found;
    Names over;
    for (size_t i = at + 1; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (event.does == Does::step && !over.contains(event.receiver) && closure_of(event) == kNoNode) {
        found.push_back(event.receiver);
        over.insert(event.receiver);
      }
      for (const std::string& optimizer : optimizers_)
        if (ends(event, optimizer)) over.insert(optimizer);
    }
    return found;
  }

  // Gradients of several backward() add up until the step: under a condition, or in turns of a loop.
  bool adds_up(size_t at, const std::string& optimizer) const {
    const Event& backward = events_[at];
    bool steps = false, clears = false, any = false;
    for (const Event& event : events_) {
      any = any || ends(event, optimizer);
      if (event.does == Does::step && event.receiver == optimizer)
        steps = steps || block_of(event.statement) == block_of(backward.statement);
      if (ends(event, optimizer)) clears = clears || loop_of(event.statement) == loop_of(backward.statement);
    }
    return any && !(steps && clears);
  }

  // An earlier backward() of the same optimizer since its gradients were cleared.
  bool follows_another(size_t at, const std::string& optimizer) const {
    for (size_t i = at; i-- > 0;) {
      if (ends(events_[i], optimizer)) return false;
      if (events_[i].does == Does::step && events_[i].receiver == optimizer) return false;
      if (events_[i].does != Does::backward) continue;
      std::vector<std::string> others = stepping(i);
      if (std::find(others.begin(), others.end(), optimizer) != others.end()) return true;
    }
    return false;
  }

  // def update(self, loss): becomes def update(self, loss, grads):, and backward() puts them beside the parameters.
  void take_gradients(size_t at) {
    const Event& event = events_[at];
    for (const Parameter& one : torch_.file.module.parameters(scope_)) {
      if (one.name != taker_->loss) continue;
      const NodeId up = syntax_.parent(one.site);
      const NodeId whole = syntax_.kind(up) == Kind::parameters ? one.site : up;
      Rewrite(torch_.file, kTorchTraining, whole, "gradients come with the loss")
          .insert(syntax_[whole].end, ", grads", int64_t{1} << 44)
          .commit();
    }
    std::string weights;
    for (const std::string& each : taker_->optimizers) weights += (weights.empty() ? "" : " + ") + each + ".parameters";
    torch_.replace(kTorchTraining, event.statement, fmt::format("keep_gradients({}, grads)", weights),
                   "gradients lie beside the parameters");
    torch_.note(event.call, "torch.Tensor.backward", "migrated by a combination");
  }

  // The call that hands a loss over: the gradients are taken in front of it.
  void hand(size_t at) {
    const Event& event = events_[at];
    Region region = region_of(event.statement, reads(syntax_, event.subject));
    if ((region.moved.empty() && region.repeated.empty() && !runs_module(event.subject)) || !region.calls.empty() ||
        is_cut_off(region, event.subject) || event.receiver.empty())
      return by_hand(event,
                     "the loss that it is given is computed elsewhere: take its gradients there, and hand them over");
    write(at, region, kNoNode, {}, event.receiver);
  }

  void by_hand(const Event& event, const std::string& why) {
    torch_.leave(event.call, "torch.Tensor." + std::string(method_of(syntax_, event.call)), why);
  }

  void backward(size_t at) {
    const Event& event = events_[at];
    NodeId statement = event.statement;
    if (syntax_.kind(syntax_.first(statement)) != Kind::call || syntax_.first(statement) != event.call)
      return by_hand(event, "call it as a statement of its own");
    for (NodeId other : syntax_.children(block_of(statement)))
      if (other != statement && torch_.line_of(syntax_[other].begin) == torch_.line_of(syntax_[statement].begin))
        return by_hand(event, "several statements share its line: give each its own");
    std::vector<std::string> optimizers = stepping(at);
    Names wanted = reads(syntax_, event.subject);
    Region region = region_of(statement, wanted);
    NodeId condition = kNoNode;  // if train: loss.backward()
    if (region.moved.empty() && region.repeated.empty()) {
      NodeId owner = syntax_.parent(block_of(statement));
      if (syntax_.kind(owner) == Kind::if_statement &&
          syntax_.child(owner, Field::consequence) == block_of(statement)) {
        condition = owner;
        region = region_of(owner, wanted);
      }
    }
    if (region.moved.empty() && region.repeated.empty() && !runs_module(event.subject))
      return by_hand(event,
                     "the loss is computed elsewhere: make a function of what computes it, and call "
                     "ops.value_and_grad(function, None, parameters, has_aux=True)");
    for (const std::string& call : region.calls)
      if (call.starts_with('?'))
        return by_hand(event,
                       call.substr(1) + " is computed by a method that takes arguments: make one function of both");
    if (is_cut_off(region, event.subject))
      return by_hand(event,
                     "what the loss is made of is computed elsewhere: make one function of both, and call "
                     "ops.value_and_grad(function, None, parameters)");
    std::string weights = kept_ ? weights_of(at, region) : "";
    if (kept_ && weights.empty())
      return by_hand(event,
                     "whose gradients are wanted is not to be seen here: take them by "
                     "ops.value_and_grad(function, None, parameters)");
    write(at, region, condition, optimizers, weights);
  }

  void write(size_t at, const Region& region, NodeId condition, const std::vector<std::string>& optimizers,
             std::string weights) {
    const Event& event = events_[at];
    const NodeId statement = event.statement;
    const std::string message = "the gradients of a function in place of backward()";
    Names given = carried(region);
    std::string loss = torch_.rendered(event.subject), value = loss;
    bool named = syntax_.kind(event.subject) == Kind::identifier || syntax_.kind(event.subject) == Kind::attribute;
    if (!named) value = torch_.file.module.mentions("loss") ? "loss_value" : "loss";
    if (NodeId seed = loss_seed(event); seed != kNoNode)
      loss = fmt::format("({} * {}).sum()", named ? loss : "(" + loss + ")", torch_.rendered(seed));
    std::vector<std::string> others = results(region, statement, given);
    std::erase(others, value);
    const bool handed = event.does == Does::hand;
    const std::string ending = optimizers.empty() ? "" : suffix(optimizers[0]);
    std::string function = "forward" + ending, parameters, returned = loss, assigned = value;
    for (int more = 2; !functions_.insert(function).second; ++more)
      function = fmt::format("forward{}_{}", ending, more);
    for (const std::string& name : given) parameters += (parameters.empty() ? "" : ", ") + name;
    for (const std::string& name : others) returned += ", " + name, assigned += ", " + name;
    const uint32_t end = syntax_[region.before].begin;
    const uint32_t start = region.moved.empty() ? end : syntax_[region.moved.front()].begin;
    const int unit = torch_.unit();
    torch_.insert_lines(kTorchTraining, start, end, 0, {fmt::format("def {}({}):", function, parameters)}, message, -9);
    for (const std::string& call : region.calls)
      torch_.insert_lines(kTorchTraining, start, end, unit, {call}, "called again, so that gradients go through it",
                          -8);
    for (NodeId repeated : region.repeated)
      torch_.insert_lines(kTorchTraining, start, end, unit, {torch_.rendered(repeated)},
                          "computed in the function, so that gradients go through it", -8);
    if (!region.moved.empty()) torch_.shift(start, syntax_[region.moved.back()].end, unit);
    torch_.insert_lines(kTorchTraining, end, end, unit, {"return " + returned}, message, -7);
    std::string grads = kept_ ? "grads" : gradients_of(optimizers[0]);
    if (!kept_) weights = optimizers[0] + ".parameters";
    if (!kept_ && optimizers.size() == 2) {
      weights += " + " + optimizers[1] + ".parameters";
      shared_[optimizers[0]] = {grads, fmt::format("[:len({}.parameters)]", optimizers[0])};
      shared_[optimizers[1]] = {grads, fmt::format("[len({}.parameters):]", optimizers[0])};
    }
    const bool sums = !kept_ && adds_up(at, optimizers[0]), second = !kept_ && follows_another(at, optimizers[0]);
    std::string taken = sums || second ? "more" + grads.substr(5) : grads;
    const std::string line = fmt::format("{}{}{}, {} = ops.value_and_grad({}, None, {}{})({})",
                                         others.empty() ? "" : "(", assigned, others.empty() ? "" : ")", taken,
                                         function, weights, others.empty() ? "" : ", has_aux=True", parameters);
    if (handed) return hand_over(event, line, named ? "" : value, message);
    torch_.replace(kTorchTraining, statement, line, message);
    if (sums) {
      summed_.insert(optimizers[0]);
      torch_.append_lines(
          kTorchTraining, syntax_[statement].end, syntax_[statement].begin,
          {fmt::format("{0} = {1} if {0} is None else [a + b for a, b in zip({0}, {1})]", grads, taken)},
          "gradients add up");
      NodeId loop = loop_of(statement);
      bool cleared = std::any_of(events_.begin(), events_.end(), [&](const Event& one) {
        return ends(one, optimizers[0]) && loop != kNoNode && one.statement < loop;
      });
      if (!cleared && loop != kNoNode)
        torch_.insert_lines(kTorchTraining, syntax_[loop].begin, syntax_[loop].begin, 0, {grads + " = None"},
                            "gradients add up");
    } else if (kept_) {
      torch_.append_lines(kTorchTraining, syntax_[statement].end, syntax_[statement].begin,
                          {fmt::format("keep_gradients({}, {})", weights, grads)},
                          "gradients lie beside the parameters");
    } else if (second) {
      torch_.append_lines(kTorchTraining, syntax_[statement].end, syntax_[statement].begin,
                          {fmt::format("{0} = [a + b for a, b in zip({0}, {1})]", grads, taken)}, "gradients add up");
    }
    if (condition != kNoNode) without_gradients(condition, fmt::format("{} = {}({})", assigned, function, parameters));
    torch_.note(event.call, "torch.Tensor.backward", "migrated by a combination");
    if (!region.repeated.empty() || !region.calls.empty())
      torch_.file.find(kTorchTraining, event.call, Severity::note, "a part of the network runs again for this loss",
                       "moving statistics of its normalisation are updated twice");
  }

  void hand_over(const Event& event, const std::string& line, const std::string& value, const std::string& message) {
    const uint32_t end = syntax_[event.statement].begin;
    torch_.insert_lines(kTorchTraining, end, end, 0, {line}, message, -6);
    if (!value.empty()) torch_.replace(kTorchTraining, event.subject, value, message);
    const bool keyword = syntax_.kind(syntax_.parent(event.subject)) == Kind::keyword_argument;
    Rewrite(torch_.file, kTorchTraining, event.call, "gradients go with the loss")
        .insert(syntax_[event.subject].end, keyword ? ", grads=grads" : ", grads", int64_t{1} << 44)
        .commit();
    torch_.note(event.call, "torch.Tensor.backward", "migrated by a combination");
  }

  // What the other branch of `if training:` gets: the values alone.
  void without_gradients(NodeId condition, const std::string& line) {
    const uint32_t like = syntax_[condition].begin;
    NodeId otherwise = syntax_.child(condition, Field::alternative);
    NodeId body = syntax_.child(otherwise, Field::body);
    if (otherwise == kNoNode)
      torch_.append_lines(kTorchTraining, syntax_[condition].end, like,
                          {"else:", std::string(torch_.unit(), ' ') + line}, "the values without gradients");
    else if (body != kNoNode)
      torch_.insert_lines(kTorchTraining, syntax_[body].begin, syntax_[body].begin, 0, {line},
                          "the values without gradients");
  }

  // The first argument of backward(): what the gradients begin with where it is not 1.
  NodeId loss_seed(const Event& event) const {
    if (event.does == Does::hand) return kNoNode;
    Arguments bound = torch_.file.bind(event.call, "gradient retain_graph create_graph inputs");
    NodeId seed = bound.value("gradient");
    std::string_view text = syntax_.text(seed);
    return text.starts_with("torch.ones") || text == "None" ? kNoNode : seed;
  }

  NodeId closure_of(const Event& event) const {
    return object_of(syntax_, event.call) == event.subject
               ? syntax_.first(syntax_.child(event.call, Field::arguments)) == kNoNode
                     ? kNoNode
                     : only_argument(syntax_, event.call)
               : kNoNode;
  }

  // The parameters whose gradients a backward() adds to: those of the optimizers that step with them; where none is to be
  // seen, of the networks that compute the loss; and single tensors whose gradients the script reads.
  std::string weights_of(size_t at, const Region& region) const {
    Names used = reads(syntax_, events_[at].subject);
    for (const std::vector<NodeId>* part : {&region.moved, &region.repeated})
      for (NodeId statement : *part) used.merge(reads(syntax_, statement));
    std::vector<std::string> found;
    auto add = [&](const std::string& text) {
      if (std::find(found.begin(), found.end(), text) == found.end()) found.push_back(text);
    };
    for (const std::string& optimizer : stepping(at)) add(optimizer + ".parameters");
    if (found.empty())
      for (const std::string& optimizer : elsewhere_) add(optimizer + ".parameters");
    if (found.empty())
      for (NodeId node = 0; node < syntax_.size(); ++node) {
        const bool name = syntax_.kind(node) == Kind::identifier || syntax_.kind(node) == Kind::attribute;
        if (name && used.contains(std::string(syntax_.text(node))) && is_network(node))
          add(std::string(syntax_.text(node)) + ".trainable_params()");
      }
    std::string joined;
    for (const std::string& one : found) joined += (joined.empty() ? "" : " + ") + one;
    std::string single;
    for (const std::string& leaf : leaves(events_[at].statement))
      if (used.contains(leaf) && !is_network_text(leaf)) single += (single.empty() ? "" : ", ") + leaf;
    if (single.empty()) return joined;
    return joined.empty() ? "[" + single + "]"
                          : fmt::format("[*{}, {}]", found.size() > 1 ? "(" + joined + ")" : joined, single);
  }

  bool clips_plainly(const Event& event) const {
    auto next = std::find_if(events_.begin(), events_.end(),
                             [&](const Event& one) { return one.does == Does::step && one.call > event.call; });
    Arguments bound = torch_.file.bind(event.call, "parameters max_norm norm_type error_if_nonfinite foreach");
    NodeId assignment = syntax_.first(event.statement);  // norm = clip_grad_norm_(...)
    const bool named = event.does == Does::clip && syntax_.kind(assignment) == Kind::assignment &&
                       syntax_.child(assignment, Field::right) == event.call;
    return next != events_.end() && (assignment == event.call || named) && !bound.has("norm_type");
  }

  void clip_kept(const Event& event) {
    Arguments bound = torch_.file.bind(
        event.call, event.does == Does::clip ? "parameters max_norm norm_type" : "parameters clip_value");
    const bool norm = event.does == Does::clip;
    NodeId limit = bound.value(norm ? "max_norm" : "clip_value"), kind = bound.value("norm_type");
    if (limit == kNoNode || bound.value("parameters") == kNoNode)
      return torch_.leave(event.call, "torch.nn.utils.clip_grad_norm_",
                          "its arguments are not to be seen: the gradients lie in parameter.grad");
    torch_.replace(kTorchTraining, event.call,
                   fmt::format("{}({}, {}{})", norm ? "clip_gradients" : "clip_gradient_values",
                               torch_.rendered(bound.value("parameters")), torch_.rendered(limit),
                               kind == kNoNode ? "" : ", " + torch_.rendered(kind)),
                   "the gradients that lie beside the parameters are clipped");
    torch_.note(event.call, "torch.nn.utils.clip_grad_norm_", "migrated by a combination");
  }

  void step_kept(const Event& event) {
    NodeId closure = closure_of(event);
    if (is_own_optimizer(torch_, event.subject))
      return torch_.note(event.call, "torch.optim.Optimizer.step", "migrated");
    const bool several = torch_.file.resolver.is_instance(torch_.file.module, event.subject, "torch.optim.LBFGS");
    const bool recorded = torch_.file.options.recorded;
    std::string by = fmt::format("{0}(kept_gradients({0}.parameters))", event.receiver);
    if (closure != kNoNode && several) by = fmt::format("{}.step({})", event.receiver, torch_.rendered(closure));
    if (closure != kNoNode && !several) by = fmt::format("stepped({}, {})", event.receiver, torch_.rendered(closure));
    if (recorded && !several)
      by = fmt::format("recorded.step({}{}{})", event.receiver, closure == kNoNode ? "" : ", ",
                       closure == kNoNode ? "" : torch_.rendered(closure));
    torch_.replace(kTorchTraining, event.call, by, "the optimizer is called with the gradients");
    torch_.note(event.call, "torch.optim.Optimizer.step", "migrated");
  }

  void zero(const Event& event) {
    if (kept_) {
      std::string owner = torch_.rendered(object_of(syntax_, event.call));
      torch_.replace(
          kTorchTraining, event.call,
          fmt::format("clear_gradients({}{})", owner, event.subject == kNoNode ? ".trainable_params()" : ".parameters"),
          "gradients lie beside the parameters");
      torch_.note(event.call, "torch.optim.Optimizer.zero_grad", "migrated");
      return;
    }
    std::string cleared;
    for (const std::string& optimizer : summed_)
      if (ends(event, optimizer)) cleared += (cleared.empty() ? "" : " = ") + gradients_of(optimizer);
    if (cleared.empty())
      torch_.drop(kTorchTraining, event.statement, "gradients are made anew each time");
    else
      torch_.replace(kTorchTraining, event.statement, cleared + " = None", "gradients add up");
    torch_.note(event.call, "torch.optim.Optimizer.zero_grad", "migrated");
  }

  void step(const Event& event) {
    if (kept_) return step_kept(event);
    std::string grads = gradients_of(event.receiver);
    if (auto shared = shared_.find(event.receiver); shared != shared_.end())
      grads = shared->second.first + shared->second.second;
    torch_.replace(kTorchTraining, event.call, fmt::format("{}({})", event.receiver, grads),
                   "the optimizer is called with the gradients");
    torch_.note(event.call, "torch.optim.Optimizer.step", "migrated");
  }

  void clip(const Event& event) {
    if (kept_) return clip_kept(event);
    auto next = std::find_if(events_.begin(), events_.end(),
                             [&](const Event& one) { return one.does == Does::step && one.call > event.call; });
    Arguments bound = torch_.file.bind(event.call, "parameters max_norm norm_type error_if_nonfinite foreach");
    NodeId limit = bound.value("max_norm");
    const bool named = syntax_.first(event.statement) != event.call;
    for (NodeId other : bound.extra)
      if (syntax_.text(syntax_.child(other, Field::name)) == "clip_value") limit = syntax_.child(other, Field::value);
    if (limit == kNoNode)
      return torch_.leave(event.call, "torch.nn.utils.clip_grad_norm_",
                          "between the gradients and the step: grads = ops.clip_by_global_norm(grads, limit)");
    std::string grads = gradients_of(next->receiver), most = torch_.rendered(limit);
    std::string operand = syntax_.kind(limit) == Kind::float_ || syntax_.kind(limit) == Kind::integer ||
                                  syntax_.kind(limit) == Kind::identifier || syntax_.kind(limit) == Kind::attribute
                              ? most
                              : "(" + most + ")";
    std::string line = event.does == Does::clip
                           ? fmt::format("{0} = ops.clip_by_global_norm({0}, {1})", grads, most)
                           : fmt::format("{0} = [ops.clip_by_value(grad, -{1}, {1}) for grad in {0}]", grads, operand);
    if (named) {
      torch_.replace(kTorchTraining, event.call,
                     fmt::format("ops.sqrt(sum((grad * grad).sum() for grad in {}))", grads),
                     "the norm of the gradients, and the gradients clipped");
      torch_.append_lines(kTorchTraining, syntax_[event.statement].end, syntax_[event.statement].begin, {line},
                          "the gradients are clipped as values");
    } else {
      torch_.replace(kTorchTraining, event.statement, line, "the gradients are clipped as values");
    }
    torch_.note(event.call, "torch.nn.utils.clip_grad_norm_", "migrated by a combination");
  }

  Names optimizers_, summed_, functions_, elsewhere_;
  std::optional<Taker> taker_;
  bool kept_ = false;
  std::map<std::string, std::pair<std::string, std::string>> shared_;  // optimizer -> gradients, its part of them
};

// The optimizers that step elsewhere, as far as a function may name them: attributes of its own object, variables of the script.
Names optimizers_seen_from(TorchFile& torch, NodeId scope, const std::map<NodeId, Training>& functions) {
  const Syntax& syntax = torch.syntax;
  Names found;
  const NodeId owner = scope == 0 ? kNoNode : syntax.ancestor(scope, Kind::class_definition);
  for (const auto& [other, training] : functions)
    for (const std::string& name : training.optimizers()) {
      const NodeId its = other == 0 ? kNoNode : syntax.ancestor(other, Kind::class_definition);
      const bool member = name.starts_with("self.") && its == owner && owner != kNoNode;
      const bool around = other == 0 || scope == other || (scope > other && scope < syntax[other].after);
      const auto& top = torch.file.module.scopes()[0].names;
      if (member || (!name.starts_with("self.") && (around || top.contains(name)))) found.insert(name);
    }
  return found;
}

}  // namespace

// Whether some script of the project reads or sets the gradient that lies beside a tensor.
bool keeps_gradients(TorchFile& torch) {
  for (const auto& module : torch.file.project.modules()) {
    const std::string& text = module->text();
    for (size_t at = text.find(".grad"); at != text.npos; at = text.find(".grad", at + 1)) {
      const char next = at + 5 < text.size() ? text[at + 5] : ' ';
      if (!std::isalnum(static_cast<unsigned char>(next)) && next != '_' && next != '(') return true;
    }
  }
  return false;
}

bool is_training_call(TorchFile& torch, NodeId call) {
  Kind up = torch.syntax.kind(torch.syntax.parent(call));
  bool context = up == Kind::with_item || up == Kind::decorator;
  return event_of(torch, call).does != Does::nothing || (context && is_idle_context(torch, call));
}

void rewrite_training(TorchFile& torch) {
  const Syntax& syntax = torch.syntax;
  if (!torch.file.is_enabled(kTorchTraining)) return;
  std::map<NodeId, std::vector<Event>> events;
  for (NodeId node = 0; node < syntax.size(); ++node) {
    if (syntax.kind(node) == Kind::with_statement) drop_context(torch, node);
    if (syntax.kind(node) == Kind::decorator) drop_decorator(torch, node);
    if (syntax.kind(node) != Kind::call) continue;
    Event event = event_of(torch, node);
    if (event.does != Does::nothing) events[scope_of(syntax, node)].push_back(event);
  }
  const bool recorded = torch.file.options.recorded;
  const std::vector<Taker> takers = recorded ? std::vector<Taker>() : takers_of(torch, events);
  const std::set<NodeId> called = add_handings(torch, takers, events);
  std::map<NodeId, Training> functions;
  bool keeps = recorded || keeps_gradients(torch);
  for (auto& [scope, list] : events) {
    Training& one = functions.try_emplace(scope, torch, scope, std::move(list)).first->second;
    for (const Taker& taker : takers)
      if (taker.function == scope && called.contains(scope)) one.take(taker);
    keeps = keeps || one.needs_keeping();
  }
  for (auto& [scope, one] : functions) {
    if (keeps) one.keep(optimizers_seen_from(torch, scope, functions));
    one.rewrite();
  }
  begin_in_training(torch);
}

}  // namespace cairn::migrate
