// Makes the gradient arrays of TensorArrays explicit nodes next to the array. TensorFlow requests the gradient array
// where it is used, mostly in a loop, and returns the same one each time; a raised loop can only capture an array that
// was created before it.
#include <algorithm>
#include <map>

#include "frontends/tensorflow/flow.h"

namespace cairn::tensorflow {
namespace {

class Hoisting {
 public:
  explicit Hoisting(Raising& raising) : raising_(raising), flow_{raising.graph.nodes, raising.effects} {}

  void run() {
    const auto count = static_cast<uint32_t>(flow_.nodes.size());
    for (uint32_t i = 0; i < count; ++i)
      if (flow_.nodes[i].op == "TensorArrayGradV3") replace(i);
  }

 private:
  /// Handle and flow of the gradient, under the same name: the flow is what comes in.
  void replace(uint32_t i) {
    const AttrValue source = attr_of(flow_.nodes[i], "source", AttrValue::Kind::text, *raising_.graph.model);
    const Edge handle = gradient_of(flow_.data(i, 0), source.text);
    const Edge flow = flow_.data(i, 1);
    Node& node = flow_.nodes[i];
    node.op = "IdentityN";
    node.attrs.clear();
    node.inputs = {handle, flow};
  }

  /// The gradient's handle that corresponds to `handle`: created next to the array and forwarded in the same way.
  Edge gradient_of(Edge handle, std::string_view source) {
    const auto key = std::pair(handle, source);
    if (auto found = made_.find(key); found != made_.end()) return found->second;
    Node made = flow_.nodes[handle.node];
    const bool array = made.op == "TensorArrayV3";
    if (!array && made.op != "Identity" && !flow_.at(handle, "Enter") && !flow_.at(handle, "Switch"))
      fail(ErrorKind::unsupported, printable(made.name), "hands on a TensorArray that has a gradient");
    made.name = raising_.fresh(made.name, fmt::format("{}%{}", last_part(made.name), source));
    if (array) {
      made.op = kArrayGradient;
      made.inputs = {{handle.node, 0}};
    } else {
      const Edge before = flow_.data(handle.node, 0);
      std::replace(made.inputs.begin(), made.inputs.end(), before, gradient_of(before, source));
    }
    return made_[key] = {flow_.add(std::move(made)), handle.port};
  }

  static std::string_view last_part(std::string_view name) {
    size_t slash = name.rfind('/');
    return slash == std::string_view::npos ? name : name.substr(slash + 1);
  }

  Raising& raising_;
  Flow flow_;
  std::map<std::pair<Edge, std::string_view>, Edge> made_;
};

}  // namespace

void hoist_array_gradients(Raising& raising) { Hoisting(raising).run(); }

}  // namespace cairn::tensorflow
