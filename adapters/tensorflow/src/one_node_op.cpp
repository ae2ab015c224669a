// The operators CairnUserOp and CairnUserOpGrad, an operator of a user and its gradient, and CairnCollective, an exchange with
// the other ranks of a job, by themselves. In a cluster they are nodes like others; alone each runs as a program of one node.
#include "engine.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tensors.h"

namespace cairn_tf {
namespace {

namespace tf = tensorflow;

class OneNodeOp : public tf::OpKernel {
 public:
  explicit OneNodeOp(tf::OpKernelConstruction* construction) : OpKernel(construction) {
    std::string why;
    library_ = library(why);
    OP_REQUIRES(construction, library_, tf::errors::Unavailable("Cairn: ", why));
    program_ =
        program(*library_, name(), {graph_of(def(), construction->num_inputs(), construction->num_outputs()), {}});
  }

  void Compute(tf::OpKernelContext* context) override {
    const auto& threads = *context->device()->tensorflow_cpu_worker_threads();
    std::vector<CairnTensor> tensors(static_cast<size_t>(context->num_inputs()));
    std::vector<std::vector<int64_t>> dims(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const tf::Tensor& tensor = context->input(static_cast<int>(i));
      for (int axis = 0; axis < tensor.dims(); ++axis) dims[i].push_back(tensor.dim_size(axis));
      tensors[i] = {tensor.data(), {1, 0}, tensor.dims(), to_cairn(tensor.dtype()), dims[i].data(), nullptr, 0};
    }
    Failure refusal;
    Sizes sizes;
    const Program::Call call{tensors.data(), tensors.size(), sizes, &is_cancelled, context->cancellation_manager()};
    program_->read_sizes(call);
    double spent = 0;
    const auto code = program_->compiled(call, threads.num_threads, refusal, spent);
    OP_REQUIRES(context, code, to_status(refusal, name()));
    OP_REQUIRES(context, code->random().empty(),
                tf::errors::Unimplemented("Cairn: ", name(), ": draws random numbers"));
    CairnRunOptions options{};
    options.struct_size = sizeof options;
    options.host = threads.workers;
    options.width = threads.num_threads;
    options.schedule = [](void* host, void (*call)(void* data), void* data) {
      static_cast<tf::thread::ThreadPool*>(host)->Schedule([=] { call(data); });
    };
    options.step = context->step_id();
    options.interrupted = &is_cancelled;
    options.interrupted_user = context->cancellation_manager();
    const CairnStatus status =
        library_->model_run(code->model(), tensors.data(), tensors.size(), &allocate, context, &options);
    OP_REQUIRES(context, status == CAIRN_OK || !context->status().ok(), to_status(last_failure(*library_), name()));
  }

 private:
  static void* allocate(void* user, size_t index, CairnDType, int32_t ndim, const int64_t* shape) {
    auto* context = static_cast<tf::OpKernelContext*>(user);
    tf::TensorShape dims;
    for (int32_t axis = 0; axis < ndim; ++axis) dims.AddDim(shape[axis]);
    tf::Tensor* tensor = nullptr;
    const tf::Status status = context->allocate_output(static_cast<int>(index), dims, &tensor);
    if (!status.ok()) context->SetStatus(status);
    static char nothing[64];
    return !status.ok() ? nullptr : tensor->data() ? tensor->data() : nothing;  // an empty tensor has no memory
  }

  /// The node between arguments and results.
  static std::string graph_of(const tf::NodeDef& def, int inputs, int outputs) {
    tf::GraphDef graph;
    tf::NodeDef node = def;
    node.clear_input();
    node.clear_device();
    for (int i = 0; i < inputs; ++i) {
      tf::NodeDef* argument = graph.add_node();
      argument->set_name(argument_name(static_cast<size_t>(i)));
      argument->set_op("_Arg");
      (*argument->mutable_attr())["index"].set_i(i);
      (*argument->mutable_attr())["T"].set_type(def.attr().at("Tin").list().type(i));
      node.add_input(argument->name());
    }
    *graph.add_node() = node;
    for (int i = 0; i < outputs; ++i) {
      tf::NodeDef* result = graph.add_node();
      result->set_name("__result_" + std::to_string(i));
      result->set_op("_Retval");
      result->add_input(node.name() + ":" + std::to_string(i));
      (*result->mutable_attr())["index"].set_i(i);
    }
    std::string bytes;
    tf::SerializeToStringDeterministic(graph, &bytes);
    return bytes;
  }

  const Library* library_ = nullptr;
  std::shared_ptr<Program> program_;
};

REGISTER_OP("CairnUserOp")
    .Input("x: Tin")
    .Output("y: Tout")
    .Attr("node: string")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 1")
    .SetShapeFn(tf::shape_inference::UnknownShape)
    .Doc("An operator of a library of the user's, as a NodeDef of its name and attributes in a GraphDef.");
REGISTER_KERNEL_BUILDER(Name("CairnUserOp").Device(tf::DEVICE_CPU), OneNodeOp);

REGISTER_OP("CairnUserOpGrad")
    .Input("x: Tin")
    .Output("dx: Tout")
    .Attr("node: string")
    .Attr("wanted: list(int) >= 1")
    .Attr("Tin: list(type) >= 1")
    .Attr("Tout: list(type) >= 1")
    .SetShapeFn(tf::shape_inference::UnknownShape)
    .Doc("Gradients of the inputs `wanted` of such an operator; of its inputs, then a gradient for each result.");
REGISTER_KERNEL_BUILDER(Name("CairnUserOpGrad").Device(tf::DEVICE_CPU), OneNodeOp);

REGISTER_OP("CairnCollective")
    .Input("x: Tin")
    .Output("y: Tout")
    .Attr("kind: string")
    .Attr("group: string")
    .Attr("ranks: int = 1")
    .Attr("reduction: string = 'sum'")
    .Attr("root: int = 0")
    .Attr("tag: int = 0")
    .Attr("dtype: type = DT_FLOAT")
    .Attr("shape: shape = {}")
    .Attr("names: list(string) = []")
    .Attr("order: int = 0")
    .Attr("fusion: int = 0")
    .Attr("fusion_id: int = -1")
    .Attr("bytes: int = 0")
    .Attr("bucket: int = 0")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .SetIsStateful()
    .SetIsDistributedCommunication()
    .SetShapeFn(tf::shape_inference::UnknownShape)
    .Doc(
        "A collective of the ranks of a job; root: for send and receive the other rank; fusion of an all_reduce of one "
        "tensor: 1 with "
        "others up to `bucket` bytes together, of which it has `bytes`, 2 with those of its fusion_id.");
REGISTER_KERNEL_BUILDER(Name("CairnCollective").Device(tf::DEVICE_CPU), OneNodeOp);

}  // namespace
}  // namespace cairn_tf
