// The operator CairnCluster: a part of a graph that the engine runs on TensorFlow's tensors, threads and variables.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <random>

#include "engine.h"
#include "report.h"
#include "second_cut.h"
#include "stock_function.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/util/determinism.h"
#include "tensors.h"

namespace cairn_tf {
namespace {

namespace tf = tensorflow;

const std::string kRandomStates = "cairn_random_states";  // made once: too long to be held without allocation

/// Random states by source node. Those of a session's graph are the session's: another fetch set continues the same stream.
/// Those of a function lie in the cluster, as TensorFlow's lie in the kernel: tf.random.set_seed makes new kernels, which begin
/// anew.
class RandomStates : public tf::ResourceBase {
 public:
  std::string DebugString() const override { return "random states of Cairn"; }
  std::mutex& mutex() { return mutex_; }

  /// The node's state, at its start when it is new; the address stays.
  std::array<uint64_t, 3>& state(const Compiled::Random& random) {
    auto [entry, fresh] = states_.try_emplace(random.name);
    if (fresh && random.seeded) std::copy_n(random.first, 3, entry->second.begin());
    if (fresh && !random.seeded) {
      std::random_device source;
      for (uint64_t& word : entry->second) word = uint64_t{source()} << 32 | source();
    }
    return entry->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::array<uint64_t, 3>> states_;
};

/// Memory of one run, kept for the next.
struct Scratch {
  std::vector<CairnTensor> tensors;
  std::vector<int64_t> dims, values;
  Sizes sizes;
  std::vector<tf::Tensor> held;
  std::vector<tf::core::RefCountPtr<tf::Var>> variables;
  std::vector<tf::TensorValue> references;  // to TF1 variables
  std::vector<tf::mutex*> locks;
};

class ScratchPool {
 public:
  std::unique_ptr<Scratch> take() {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Scratch>();
    auto scratch = std::move(idle_.back());
    idle_.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> idle_;
};

class ClusterOp : public tf::AsyncOpKernel {
 public:
  explicit ClusterOp(tf::OpKernelConstruction* construction) : AsyncOpKernel(construction) {
    Source source;
    std::vector<int> written;
    OP_REQUIRES_OK(construction, construction->GetAttr("graph", &source.graph));
    OP_REQUIRES_OK(construction, construction->GetAttr("precision_mode", &source.precision_mode));
    OP_REQUIRES_OK(construction, construction->GetAttr("mixed_lists", &source.mixed_lists));
    OP_REQUIRES_OK(construction, construction->GetAttr("custom_types", &source.custom_types));
    OP_REQUIRES_OK(construction, construction->GetAttr("keep_types", &source.keep_types));
    OP_REQUIRES_OK(construction, construction->GetAttr("deterministic", &source.deterministic));
    OP_REQUIRES_OK(construction, construction->GetAttr("fixed", &source.fixed));
    OP_REQUIRES_OK(construction, construction->GetAttr("frozen", &source.frozen));
    OP_REQUIRES_OK(construction, construction->GetAttr("written", &written));
    OP_REQUIRES_OK(construction, construction->GetAttr("names", &names_));
    making_.precision_mode = source.precision_mode;
    making_.mixed_lists = source.mixed_lists;
    making_.custom_types = source.custom_types;
    making_.deterministic = source.deterministic;
    making_.frozen = !source.frozen.empty();
    OP_REQUIRES_OK(construction, construction->GetAttr("function", &making_.title));
    if (!making_.title.empty()) own_states_.reset(new RandomStates);
    OP_REQUIRES_OK(construction, construction->GetAttr("stock", &stock_));
    OP_REQUIRES_OK(construction, construction->GetAttr("stock_inputs", &stock_inputs_));
    bool choose = false, in_doubt = false;
    Rules rules;
    OP_REQUIRES_OK(construction, construction->GetAttr("choose", &choose));
    OP_REQUIRES_OK(construction, construction->GetAttr("in_doubt", &in_doubt));
    OP_REQUIRES_OK(construction, read(rules));
    making_.may_measure = choose;
    choose = choose && !tf::OpDeterminismRequired() && !stock_.name().empty();
    if (!choose) rules = {};
    if (!in_doubt) rules.doubt = Rule::engine;
    in_doubt_ = rules.doubt != Rule::engine;
    std::string why;
    library_ = library(why);
    OP_REQUIRES(construction, library_, tf::errors::Unavailable("Cairn: ", why));
    OP_REQUIRES_OK(construction, make_finders(*construction));
    written_.resize(static_cast<size_t>(construction->num_inputs()) + finders_.size());
    for (int i : written) written_[static_cast<size_t>(i)] = true;
    program_ = program(*library_, name(), source, rules);
  }

  void ComputeAsync(tf::OpKernelContext* context, DoneCallback done) override {
    if (in_doubt_ && context->function_library() && !library_->watching() && program_->doubt().next_is_stock()) {
      return run_stock(context, stock_.name(), [this, clock = Clock(), done = std::move(done)] {
        program_->doubt().stock_took(clock.ns());
        program_->tell_choices();
        done();
      });
    }
    auto scratch = scratches_.take();
    Failure refusal;
    bool uninitialised = false, elsewhere = false;
    tf::Status status = Run(context, *this, *scratch, refusal, uninitialised, elsewhere).status();
    scratches_.give_back(std::move(scratch));
    if (elsewhere) {
      return run_stock(context, stock_.name(), [this, clock = Clock(), done = std::move(done)] {
        program_->choice().stock_took(clock.ns());
        done();
      });
    }
    const bool lasts = refusal.status != CAIRN_OUT_OF_MEMORY && refusal.status != CAIRN_CANCELLED;
    bool refused = refusal.failed() && lasts && !is_setting(refusal);
    if ((refused || uninitialised) && !stock_.name().empty()) {
      // An assignment that comes before the read of what has no value may be among the nodes.
      return run_stock(context, refused ? around(context, refusal) : stock_.name(), std::move(done));
    }
    if (!status.ok()) context->SetStatus(status);
    done();
  }

 private:
  static tf::Status read(Rules& rules) {
    for (auto [variable, rule] : {std::pair("CAIRN_NEW_SIZES", &rules.new_sizes), {"CAIRN_IN_DOUBT", &rules.doubt}})
      if (!read_rule(variable, *rule))
        return tf::errors::InvalidArgument("Cairn: ", variable, " should be engine, tensorflow or measured");
    return tf::OkStatus();
  }

  /// TensorFlow's own kernels of the variables that the cluster finds itself.
  tf::Status make_finders(tf::OpKernelConstruction& construction) {
    std::string bytes;
    tf::GraphDef variables;
    TF_RETURN_IF_ERROR(construction.GetAttr("variables", &bytes));
    if (!variables.ParseFromString(bytes)) return tf::errors::Internal("Cairn: variables of ", name());
    for (const tf::NodeDef& node : variables.node()) {
      std::shared_ptr<const tf::NodeProperties> properties;
      TF_RETURN_IF_ERROR(tf::NodeProperties::CreateFromNodeDef(node, tf::OpRegistry::Global(), &properties));
      tf::OpKernel* kernel = nullptr;
      TF_RETURN_IF_ERROR(tf::CreateOpKernel(construction.device_type(), construction.device(),
                                            construction.device()->GetAllocator({}), construction.function_library(),
                                            construction.resource_manager(), properties,
                                            construction.graph_def_version(), &kernel));
      finders_.emplace_back(kernel);
    }
    return tf::OkStatus();
  }

  /// The function that runs instead of a refused cluster: its nodes cut again around those that the engine named, all of it on
  /// TensorFlow where that cannot be. Made and told once.
  std::string around(tf::OpKernelContext* context, const Failure& refusal) {
    std::lock_guard lock(cutting_);
    if (!again_.empty()) return again_;
    std::vector<std::string> nodes;
    tf::FunctionLibraryRuntime* runtime = context->function_library();
    if (runtime) {
      Making making = making_;
      making.functions = &library_of(*runtime), making.refused = refused_nodes(refusal);
      tf::Status cut = cut_again(stock_.name(), context->device()->name(), *library_, making, again_, nodes);
      if (!cut.ok()) LOG(WARNING) << "Cairn: " << name() << " is not cut again: " << cut.message();
    }
    if (again_.empty()) again_ = stock_.name();
    report_stock_run(name(), refusal.node + ": " + refusal.message, nodes);
    LOG(WARNING) << "Cairn: " << name() << (nodes.empty() ? "" : ", " + std::to_string(nodes.size()) + " of its nodes,")
                 << " runs on stock TensorFlow, because the engine refuses it: " << refusal.node << ": "
                 << refusal.message;
    return again_;
  }

  tf::Status instantiate(const tf::OpKernelContext& context, const std::string& function,
                         tf::FunctionLibraryRuntime::Handle& handle) {
    std::lock_guard lock(cutting_);
    tf::FunctionLibraryRuntime& functions = *context.function_library();
    if (instance_.functions != &functions || instance_.name != function) {
      TF_RETURN_IF_ERROR(instantiate_as_in_a_session(functions, function, stock_.attr(), instance_.handle));
      instance_.functions = &functions;
      instance_.name = function;
    }
    handle = instance_.handle;
    return tf::OkStatus();
  }

  /// What the engine refuses when it sees the shapes, TensorFlow runs itself: the same nodes as a function.
  void run_stock(tf::OpKernelContext* context, const std::string& function, DoneCallback done) {
    tf::FunctionLibraryRuntime* functions = context->function_library();
    OP_REQUIRES_ASYNC(context, functions, tf::errors::Internal("Cairn: no function library"), done);
    tf::FunctionLibraryRuntime::Handle handle = 0;
    OP_REQUIRES_OK_ASYNC(context, instantiate(*context, function, handle), done);
    tf::FunctionLibraryRuntime::Options options(context->step_id());
    options.runner = context->runner();
    options.cancellation_manager = context->cancellation_manager();
    options.rendezvous = context->rendezvous();
    options.step_container = context->step_container();
    options.stats_collector = context->stats_collector();
    options.collective_executor = context->collective_executor();
    std::vector<tf::Tensor> inputs;
    for (int i : stock_inputs_) inputs.push_back(context->input(i));
    auto results = std::make_shared<std::vector<tf::Tensor>>();
    functions->Run(options, handle, inputs, results.get(), [context, results, done](const tf::Status& status) {
      if (!status.ok()) context->SetStatus(status);
      for (size_t i = 0; status.ok() && i < results->size(); ++i)
        context->set_output(static_cast<int>(i), (*results)[i]);
      done();
    });
  }

  /// One run: variables locked while it lasts.
  class Run {
   public:
    /// `refusal` tells when the engine does not take the cluster in these shapes, `uninitialised` that a variable has no
    /// value yet, `elsewhere` that TensorFlow should run it; nothing has been changed then.
    Run(tf::OpKernelContext* context, ClusterOp& op, Scratch& scratch, Failure& refusal, bool& uninitialised,
        bool& elsewhere)
        : context_(context), op_(op), scratch_(scratch), refusal_(refusal), uninitialised_(uninitialised),
          elsewhere_(elsewhere) {
      const size_t count = inputs() + op.finders_.size();
      scratch.tensors.resize(count);
      scratch.locks.clear();
      status_ = run(count);
    }
    ~Run() {
      scratch_.held.clear();  // before others may write: a variable held by two is copied
      if (locked_)
        for (tf::mutex* lock : scratch_.locks) lock->unlock();
      scratch_.variables.clear();
    }
    Run(const Run&) = delete;
    const tf::Status& status() const { return status_; }

   private:
    tf::Status run(size_t count) {
      TF_RETURN_IF_ERROR(lock_variables(count));
      scratch_.held.reserve(count);
      for (size_t i = 0; i < count; ++i) {
        TF_RETURN_IF_ERROR(hold(i));
        if (is_variable(i) && !scratch_.held.back().IsInitialized()) return uninitialised(i);
      }
      size_t total = 0;
      for (const tf::Tensor& tensor : scratch_.held) total += static_cast<size_t>(tensor.dims());
      scratch_.dims.resize(total + 1);
      int64_t* dims = scratch_.dims.data();
      for (size_t i = 0; i < count; ++i) describe(scratch_.held[i], scratch_.tensors[i], dims);
      const auto& threads = *context_->device()->tensorflow_cpu_worker_threads();
      const Program::Call call{scratch_.tensors.data(), count, scratch_.sizes, &is_cancelled,
                               context_->cancellation_manager()};
      op_.program_->read_sizes(call);
      SizeChoice& choice = op_.program_->choice();
      elsewhere_ = context_->function_library() && !op_.library_->watching() && choice.next_is_stock(scratch_.sizes);
      if (elsewhere_) return tf::OkStatus();
      const Clock clock;
      double planning = 0;
      auto code = op_.program_->compiled(call, threads.num_threads, refusal_, planning);
      if (!code) return to_status(refusal_, op_.name());
      const uint64_t before = code->planning();
      TF_RETURN_IF_ERROR(run(*code, threads));
      planning += static_cast<double>(code->planning() - before);
      if (code->random().empty()) {
        choice.took(scratch_.sizes, clock.ns(), planning);
        op_.program_->doubt().took(clock.ns(), planning > 0);
      } else {
        op_.program_->doubt().stay_on_engine();  // as streams of random numbers do
      }
      op_.program_->tell_choices();
      return tf::OkStatus();
    }

    tf::Status run(const Compiled& code, const tf::DeviceBase::CpuWorkerThreads& threads) {
      tf::core::RefCountPtr<RandomStates> states;
      std::unique_lock<std::mutex> drawing;
      if (!code.random().empty()) TF_RETURN_IF_ERROR(bind_random(code, states, drawing));
      CairnRunOptions options{};
      options.struct_size = sizeof options;
      options.host = threads.workers;
      options.width = threads.num_threads;
      options.schedule = &schedule;
      options.step = context_->step_id();
      options.interrupted = &is_cancelled;
      options.interrupted_user = context_->cancellation_manager();
      code.tell_values(scratch_.tensors.data(), scratch_.values);
      CairnStatus result = op_.library_->model_run(code.model(), scratch_.tensors.data(), scratch_.tensors.size(),
                                                   &allocate, this, &options);
      TF_RETURN_IF_ERROR(allocation_);
      return result == CAIRN_OK ? tf::OkStatus() : to_status(last_failure(*op_.library_), op_.name());
    }

    size_t inputs() const { return static_cast<size_t>(context_->num_inputs()); }
    tf::OpKernel* finder(size_t i) const { return i < inputs() ? nullptr : op_.finders_[i - inputs()].get(); }

    /// Null: not the handle of a variable. Kernels of handles hold them, those of TF1 variables hold nothing.
    const tf::ResourceHandle* handle(size_t i) const {
      const int input = static_cast<int>(i);
      if (finder(i)) {
        const tf::Tensor* held = finder(i)->const_tensor();
        return held ? held->flat<tf::ResourceHandle>().data() : nullptr;
      }
      return context_->input_dtype(input) == tf::DT_RESOURCE ? &tf::HandleFromInput(context_, input) : nullptr;
    }

    /// A TF1 variable as its own kernel finds it, which makes it when it is not there.
    tf::Status find_reference(tf::OpKernel& finder, tf::TensorValue& reference) const {
      static const tf::AllocatorAttributes kPlain;
      tf::OpKernelContext::Params params;
      params.step_id = context_->step_id();
      params.op_kernel = &finder;
      params.device = context_->device();
      params.resource_manager = context_->resource_manager();
      params.output_attr_array = &kPlain;
      tf::OpKernelContext context(&params, 1);
      finder.Compute(&context);
      if (context.status().ok()) reference = context.release_output(0);
      return context.status();
    }

    /// Variables of the run, those written locked in the order of their addresses: two runs cannot wait for each other.
    tf::Status lock_variables(size_t count) {
      scratch_.variables.resize(count);
      scratch_.references.assign(count, {});
      for (size_t i = 0; i < count; ++i) {
        tf::mutex* lock = nullptr;
        if (const tf::ResourceHandle* found = handle(i)) {
          if (!tf::LookupResource(context_, *found, &scratch_.variables[i]).ok()) return uninitialised(i);
          lock = scratch_.variables[i]->mu();
        } else if (finder(i)) {
          TF_RETURN_IF_ERROR(find_reference(*finder(i), scratch_.references[i]));
          lock = scratch_.references[i].mutex_if_ref;
        } else if (context_->input_is_ref(static_cast<int>(i))) {
          lock = context_->input_ref_mutex(static_cast<int>(i));
        }
        if (lock && op_.written_[i]) scratch_.locks.push_back(lock);
      }
      auto& locks = scratch_.locks;
      std::sort(locks.begin(), locks.end());
      bool shared = std::adjacent_find(locks.begin(), locks.end()) != locks.end();
      if (shared) {
        refusal_ = {CAIRN_UNSUPPORTED, op_.name(), "one variable comes in twice and is written"};
        return to_status(refusal_, op_.name());
      }
      for (tf::mutex* lock : locks) lock->lock();
      locked_ = true;
      return tf::OkStatus();
    }

    /// Keeps the tensor of input i alive; a variable that will be written gets memory of its own.
    tf::Status hold(size_t i) {
      const int input = static_cast<int>(i);
      const tf::TensorValue& reference = scratch_.references[i];
      tf::Var* variable = scratch_.variables[i].get();
      auto keep = [&](const tf::Tensor& tensor) {
        scratch_.held.push_back(tensor);
        return tf::OkStatus();
      };
      if (reference.tensor) {
        if (op_.written_[i]) return keep(*reference.tensor);
        tf::mutex_lock lock(*reference.mutex_if_ref);
        return keep(*reference.tensor);
      }
      if (!variable)
        return keep(context_->input_is_ref(input) ? context_->mutable_input(input, op_.written_[i])
                                                  : context_->input(input));
      if (!op_.written_[i]) {
        tf::tf_shared_lock lock(*variable->mu());
        return keep(*variable->tensor());
      }
      tf::Tensor* tensor = variable->tensor();
      if (tensor->IsInitialized() && !tensor->RefCountIsOne()) {
        tf::Tensor copy;
        TF_RETURN_IF_ERROR(context_->allocate_temp(tensor->dtype(), tensor->shape(), &copy));
        std::memcpy(copy.data(), tensor->data(), tensor->TotalBytes());
        *tensor = copy;
      }
      return keep(*tensor);
    }

    bool is_variable(size_t i) const {
      return scratch_.variables[i] || scratch_.references[i].tensor || context_->input_is_ref(static_cast<int>(i));
    }

    static void describe(const tf::Tensor& tensor, CairnTensor& described, int64_t*& dims) {
      described = {tensor.data(), {1, 0}, tensor.dims(), to_cairn(tensor.dtype()), dims, nullptr, 0};
      for (int axis = 0; axis < tensor.dims(); ++axis) *dims++ = tensor.dim_size(axis);
    }

    tf::Status uninitialised(size_t i) {
      uninitialised_ = true;
      return tf::errors::FailedPrecondition("Attempting to use uninitialized value ", op_.names_[i],
                                            ". Run its initializer first.\n\t [[{{node ", op_.names_[i], "}}]]");
    }

    tf::Status bind_random(const Compiled& code, tf::core::RefCountPtr<RandomStates>& states,
                           std::unique_lock<std::mutex>& drawing) {
      if (op_.own_states_) {
        op_.own_states_->Ref();
        states.reset(op_.own_states_.get());
      } else {
        tf::ResourceMgr* manager = context_->resource_manager();
        RandomStates* found = nullptr;
        auto make = [](RandomStates** made) {
          *made = new RandomStates;
          return tf::OkStatus();
        };
        TF_RETURN_IF_ERROR(
            manager->LookupOrCreate<RandomStates>(manager->default_container(), kRandomStates, &found, make));
        states.reset(found);
      }
      drawing = std::unique_lock(states->mutex());
      static int64_t three = 3;
      for (const Compiled::Random& random : code.random())
        scratch_.tensors.push_back({states->state(random).data(), {1, 0}, 1, {CAIRN_UINT, 64, 1}, &three, nullptr, 0});
      return tf::OkStatus();
    }

    static void* allocate(void* user, size_t index, CairnDType, int32_t ndim, const int64_t* shape) {
      Run& run = *static_cast<Run*>(user);
      tf::TensorShape dims;
      for (int32_t axis = 0; axis < ndim; ++axis) dims.AddDim(shape[axis]);
      tf::Tensor* tensor = nullptr;
      run.allocation_ = run.context_->allocate_output(static_cast<int>(index), dims, &tensor);
      if (!run.allocation_.ok()) return nullptr;
      static char nothing[64];
      return tensor->data() ? tensor->data() : nothing;  // an empty tensor has no memory
    }

    static void schedule(void* host, void (*call)(void* data), void* data) {
      static_cast<tf::thread::ThreadPool*>(host)->Schedule([=] { call(data); });
    }

    tf::OpKernelContext* context_;
    ClusterOp& op_;
    Scratch& scratch_;
    Failure& refusal_;
    bool &uninitialised_, &elsewhere_;
    bool locked_ = false;
    tf::Status allocation_, status_;
  };

  const Library* library_ = nullptr;
  Making making_{};
  std::vector<std::unique_ptr<tf::OpKernel>> finders_;  // arguments behind the inputs
  std::vector<std::string> names_;                      // of the variables among the inputs; "" for others
  std::vector<bool> written_;
  std::shared_ptr<Program> program_;
  bool in_doubt_ = false;  // whether all runs should be the engine's
  ScratchPool scratches_;
  tf::core::RefCountPtr<RandomStates> own_states_;  // of a cluster in a function
  tf::NameAttrList stock_;         // the nodes as a function of TensorFlow, of the inputs in stock_inputs_
  std::vector<int> stock_inputs_;  // all but TF1 variables, which the function finds by name
  std::mutex cutting_;
  struct {
    const tf::FunctionLibraryRuntime* functions = nullptr;
    std::string name;
    tf::FunctionLibraryRuntime::Handle handle = 0;
  } instance_;         // of the function that ran last in its place
  std::string again_;  // the function that runs when the engine has refused the cluster; empty before that
};

REGISTER_OP("CairnCluster")
    .Input("args: Tin")
    .Input("floats: Ref(n_float * float)")
    .Input("halves: Ref(n_half * half)")
    .Input("bfloats: Ref(n_bfloat16 * bfloat16)")
    .Input("ints: Ref(n_int32 * int32)")
    .Input("longs: Ref(n_int64 * int64)")
    .Input("bools: Ref(n_bool * bool)")
    .Input("doubles: Ref(n_double * double)")
    .Input("complexes: Ref(n_complex64 * complex64)")
    .Input("double_complexes: Ref(n_complex128 * complex128)")
    .Output("outs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("n_float: int >= 0")
    .Attr("n_half: int >= 0")
    .Attr("n_bfloat16: int >= 0")
    .Attr("n_int32: int >= 0")
    .Attr("n_int64: int >= 0")
    .Attr("n_bool: int >= 0")
    .Attr("n_double: int >= 0")
    .Attr("n_complex64: int >= 0")
    .Attr("n_complex128: int >= 0")
    .Attr("graph: string")
    .Attr("variables: string")
    .Attr("precision_mode: string")
    .Attr("mixed_lists: string")
    .Attr("custom_types: string")
    .Attr("keep_types: string")
    .Attr("deterministic: bool")
    .Attr("fixed: list(int) >= 0")
    .Attr("frozen: list(int) >= 0")
    .Attr("written: list(int) >= 0")
    .Attr("names: list(string) >= 0")
    .Attr("function: string")
    .Attr("choose: bool")
    .Attr("in_doubt: bool")
    .Attr("stock: func")
    .Attr("stock_inputs: list(int) >= 0")
    .SetIsStateful()
    .SetShapeFn(tf::shape_inference::UnknownShape)
    .Doc("Runs a part of a graph on the Cairn engine. Made by graph passes, never by hand.");
REGISTER_KERNEL_BUILDER(Name("CairnCluster").Device(tf::DEVICE_CPU), ClusterOp);

}  // namespace
}  // namespace cairn_tf
