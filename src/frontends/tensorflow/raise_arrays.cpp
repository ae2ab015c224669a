// The gradient arrays of TensorArrays become nodes of their own beside the array. TensorFlow asks for one where it is used,
// in a loop above all, and finds the same one each time; a loop that was raised takes in what was there before it.
#include <algorithm>
#include <map>
#include <tuple>

#include "frontends/tensorflow/flow.h"

namespace cairn::tensorflow {
namespace {

class Hoisting {
 public:
  explicit Hoisting(Raising& raising) : raising_(raising), flow_(raising.graph.nodes, raising.effects) {}

  void run() {
    const size_t count = flow_.nodes.size();
    for (size_t i = 0; i < count; ++i)
      if (flow_.nodes[i].op == "TensorArrayGradV3") replace(i);
  }

 private:
  /// Handle and flow of the gradient, under the same name: the flow is what comes in.
  void replace(size_t i) {
    const AttrValue source = attr_of(flow_.nodes[i], "source", AttrValue::Kind::text, *raising_.graph.model);
    const End handle = gradient_of(flow_.data(i, 0), source.text);
    const End flow = flow_.data(i, 1);
    Node& node = flow_.nodes[i];
    node.op = "IdentityN";
    node.attrs.clear();
    node.inputs = {handle.text, flow.text};
    flow_.resolve(i);
  }

  /// The gradient's handle where `handle` is: made beside the array, handed on as the array is.
  End gradient_of(const End handle, std::string_view source) {
    const auto key = std::tuple(handle.node, handle.index, source);
    if (auto found = made_.find(key); found != made_.end()) return found->second;
    const Node& original = flow_.nodes[handle.node];
    const bool array = original.op == "TensorArrayV3";
    if (!array && original.op != "Identity" && !flow_.at(handle, "Enter") && !flow_.at(handle, "Switch"))
      fail(ErrorKind::unsupported, printable(original.name), "hands on a TensorArray that has a gradient");
    Node made = original;
    made.name = raising_.fresh(original.name, fmt::format("{}%{}", last_part(original.name), source));
    if (array) {
      made.op = kArrayGradient;
      made.inputs = {original.name};
    } else {
      const End before = flow_.data(handle.node, 0);
      const End from = gradient_of(before, source);
      std::replace(made.inputs.begin(), made.inputs.end(), before.text, from.text);
    }
    std::string_view text =
        handle.index <= 0 ? made.name : raising_.keep(fmt::format("{}:{}", made.name, handle.index));
    const End end{flow_.nodes.size(), handle.index, text};
    flow_.add(std::move(made));
    return made_[key] = end;
  }

  static std::string_view last_part(std::string_view name) {
    size_t slash = name.rfind('/');
    return slash == std::string_view::npos ? name : name.substr(slash + 1);
  }

  Raising& raising_;
  Flow flow_;
  std::map<std::tuple<size_t, int, std::string_view>, End> made_;
};

}  // namespace

void hoist_array_gradients(Raising& raising) { Hoisting(raising).run(); }

}  // namespace cairn::tensorflow
