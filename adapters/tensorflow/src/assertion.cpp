#include "assertion.h"

#include <algorithm>

#include "edges.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/graph/node_builder.h"

namespace cairn_tf {
namespace {

namespace tf = tensorflow;

/// The constant behind an input, also where branches and loops hand it in; null when it is none, or has several elements.
const tf::TensorProto* text_behind(const tf::Node* node) {
  const tf::Edge* before = nullptr;
  while ((node->IsSwitch() || node->IsEnter() || node->IsIdentity()) && node->input_edge(0, &before).ok())
    node = before->src();
  if (!node->IsConstant()) return nullptr;
  const tf::TensorProto& text = node->attrs().Find("value")->tensor();
  return text.string_val_size() == 1 && text.tensor_shape().dim_size() == 0 ? &text : nullptr;
}

/// The node of this number when nothing reads it or waits for it any more, and what was there for it alone.
void remove_unused(tf::Graph& graph, int number) {
  for (tf::Node* node = graph.FindNodeId(number); node;) {
    if (std::any_of(node->out_edges().begin(), node->out_edges().end(),
                    [](const tf::Edge* edge) { return edge->dst()->IsOp(); }))
      return;
    const tf::Edge* before = nullptr;
    tf::Node* maker = !node->IsConstant() && node->input_edge(0, &before).ok() ? before->src() : nullptr;
    graph.RemoveNode(node);
    node = maker;
  }
}

tf::Status carry_texts_of(tf::Graph& graph, tf::Node* node) {
  std::vector<std::string> texts;
  std::vector<int> places;
  std::vector<const tf::Edge*> values;
  std::vector<int> makers;  // of texts: numbers of nodes
  for (int i = 0; i + 1 < node->num_inputs(); ++i) {
    const tf::Edge* edge = nullptr;
    TF_RETURN_IF_ERROR(node->input_edge(i + 1, &edge));
    if (node->input_type(i + 1) != tf::DT_STRING) {
      places.push_back(i);
      values.push_back(edge);
      continue;
    }
    const tf::TensorProto* text = text_behind(edge->src());
    if (!text) return tf::OkStatus();
    texts.push_back(text->string_val(0));
    makers.push_back(edge->src()->id());
  }
  const tf::Edge* condition = nullptr;
  TF_RETURN_IF_ERROR(node->input_edge(0, &condition));
  std::vector<tf::NodeBuilder::NodeOut> inputs;
  for (const tf::Edge* edge : values) inputs.emplace_back(edge->src(), edge->src_output());
  const tf::NodeDebugInfo debug(*node);
  tf::Node* made = nullptr;
  TF_RETURN_IF_ERROR(tf::NodeBuilder(node->name(), "CairnAssert", graph.op_registry(), &debug)
                         .Input(condition->src(), condition->src_output())
                         .Input(inputs)
                         .Attr("texts", texts)
                         .Attr("places", places)
                         .Attr("summarize", node->attrs().Find("summarize")->i())
                         .Device(node->requested_device())
                         .Finalize(&graph, &made));
  made->set_assigned_device_name(node->assigned_device_name());
  for (const tf::Edge* edge : sorted_inputs(*node))
    if (edge->IsControlEdge()) graph.AddControlEdge(edge->src(), made);
  for (const tf::Edge* edge : sorted_outputs(*node)) graph.AddControlEdge(made, edge->dst());
  graph.RemoveNode(node);
  for (int maker : makers) remove_unused(graph, maker);
  return tf::OkStatus();
}

class AssertOp : public tf::OpKernel {
 public:
  explicit AssertOp(tf::OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("texts", &texts_));
    OP_REQUIRES_OK(construction, construction->GetAttr("places", &places_));
    OP_REQUIRES_OK(construction, construction->GetAttr("summarize", &summarize_));
  }

  void Compute(tf::OpKernelContext* context) override {
    const tf::Tensor& condition = context->input(0);
    OP_REQUIRES(context, tf::TensorShapeUtils::IsScalar(condition.shape()),
                tf::errors::InvalidArgument("In[0] should be a scalar: ", condition.shape().DebugString()));
    if (condition.scalar<bool>()()) return;
    std::string message = "assertion failed:";
    const size_t values = static_cast<size_t>(context->num_inputs()) - 1;
    for (size_t item = 0, text = 0, value = 0; item < texts_.size() + values; ++item) {
      const bool is_value = value < places_.size() && places_[value] == static_cast<int>(item);
      message += " [" +
                 (is_value ? context->input(static_cast<int>(value) + 1).SummarizeValue(summarize_) : texts_[text]) +
                 "]";
      ++(is_value ? value : text);
    }
    context->SetStatus(tf::errors::InvalidArgument(message));
  }

 private:
  std::vector<std::string> texts_;
  std::vector<int> places_;  // of values among texts and values
  int64_t summarize_ = 3;
};

REGISTER_OP("CairnAssert")
    .Input("condition: bool")
    .Input("values: T")
    .Attr("T: list(type) >= 0")
    .Attr("texts: list(string) >= 0")
    .Attr("places: list(int) >= 0")
    .Attr("summarize: int = 3")
    .SetIsStateful()
    .SetShapeFn(tf::shape_inference::NoOutputs)
    .Doc("Assert with the texts of its message. Made by graph passes, never by hand.");
REGISTER_KERNEL_BUILDER(Name("CairnAssert").Device(tf::DEVICE_CPU), AssertOp);

}  // namespace

tf::Status carry_texts(tf::Graph& graph) {
  std::vector<tf::Node*> assertions;
  for (tf::Node* node : graph.op_nodes())
    if (node->type_string() == "Assert") assertions.push_back(node);
  for (tf::Node* node : assertions) TF_RETURN_IF_ERROR(carry_texts_of(graph, node));
  return tf::OkStatus();
}

}  // namespace cairn_tf
