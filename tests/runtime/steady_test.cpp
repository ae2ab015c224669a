// A steady run of a convolution network allocates nothing and meets no page fault, one of a single operator takes no lock
// either; a conversion allocates in proportion to its nodes.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

#include "frontends/import.h"
#include "ir/text.h"
#include "runtime/single_op.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which replace malloc themselves

extern "C" void* __libc_malloc(size_t);
extern "C" void* __libc_memalign(size_t, size_t);

namespace {
std::atomic<long> g_allocations{0}, g_locks{0};

using Lock = int (*)(pthread_mutex_t*);
Lock of_the_system() { return reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock")); }
const Lock g_lock = of_the_system();  // before there are threads
}  // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  g_locks.fetch_add(1, std::memory_order_relaxed);
  return (g_lock ? g_lock : of_the_system())(mutex);
}

extern "C" void* malloc(size_t bytes) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}

extern "C" void* aligned_alloc(size_t alignment, size_t bytes) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}

namespace cairn {
namespace {

const char* kNetwork = R"(module @m {
  func @main(%x: f32[?n, 16, 16, 3]) -> (%y: f32[?n, 10]) {
    %w = constant {value = f32[3, 3, 3, 32] @weights[0]} : f32[3, 3, 3, 32]
    %b = constant {value = f32[32] @weights[1]} : f32[32]
    %c = conv2d %x, %w {strides = [2, 2], padding = same} : f32[?n, 8, 8, 32]
    %a = add %c, %b : f32[?n, 8, 8, 32]
    %r = relu %a : f32[?n, 8, 8, 32]
    %w2 = constant {value = f32[1, 1, 32, 32] @weights[2]} : f32[1, 1, 32, 32]
    %c2 = conv2d %r, %w2 : f32[?n, 8, 8, 32]
    %s = add %c2, %r : f32[?n, 8, 8, 32]
    %p = max_pool2d %s {window = [2, 2], strides = [2, 2]} : f32[?n, 4, 4, 32]
    %m = reduce_mean %p {axes = [1, 2]} : f32[?n, 32]
    %w3 = constant {value = f32[32, 10] @weights[3]} : f32[32, 10]
    %l = matmul %m, %w3 : f32[?n, 10]
    %y = softmax %l : f32[?n, 10]
    return %y
  }
})";

std::shared_ptr<const Model> network() {
  std::vector<Tensor> weights = {Tensor::zeros(kF32, {3, 3, 3, 32}), Tensor::zeros(kF32, {32}),
                                 Tensor::zeros(kF32, {1, 1, 32, 32}), Tensor::zeros(kF32, {32, 10})};
  return Model::make(parse(kNetwork, weights), {.threads = 2});
}

// Allocations of `runs` runs after three to warm up, and after what `then` does behind those.
long allocations_of(const Model& model, const Tensor& x, std::span<float> y, int runs, const RunOptions& options = {},
                    const std::function<void()>& then = nullptr) {
  TensorRef ref{kF32, x.dims(), x.data()};
  auto run = [&] {
    model.run(
        {&ref, 1}, [&](size_t, DType, std::span<const int64_t>) { return y.data(); }, options);
  };
  for (int i = 0; i < 3; ++i) run();
  if (then) then();
  long allocations = g_allocations;
  for (int i = 0; i < runs; ++i) run();
  return g_allocations - allocations;
}

// What is done for the first time meets faults, on a busy machine late: a worker that took no chunk before, or a wait that was
// over while it spun. There is an end to it.
TEST(Steady, AllocatesNothingAndMeetsNoPageFault) {
  auto model = network();
  Tensor x = Tensor::zeros(kF32, {2, 16, 16, 3});
  std::vector<float> y(20);
  long faults = 1;
  for (int turn = 0; turn < 50 && faults; ++turn) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    EXPECT_EQ(allocations_of(*model, x, y, 100), 0);
    getrusage(RUSAGE_SELF, &after);
    faults = after.ru_minflt - before.ru_minflt;
  }
  EXPECT_EQ(faults, 0);
  EXPECT_FLOAT_EQ(y[0], 0.1f);
}

// A loop of `turns` turns with a loop inside: a product, element-wise work, a branch.
const char* kLoop = R"(module @m {
  func @main(%x: f32[4, 16], %w: f32[16, 16], %n: i64[]) -> (%y: f32[4, 16]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %i, %y = while %zero, %x, %w, %n {carried = 2} : i64[], f32[4, 16]
      region(%i1: i64[], %y1: f32[4, 16], %w1: f32[16, 16], %n1: i64[]) {
        %more = less %i1, %n1 : bool[]
        yield %more
      }
      region(%i2: i64[], %y2: f32[4, 16], %w2: f32[16, 16], %n2: i64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %m = matmul %y2, %w2 : f32[4, 16]
        %t = tanh %m : f32[4, 16]
        %last = equal %next, %n2 : bool[]
        %r = if %last, %t : f32[4, 16]
          region(%a: f32[4, 16]) {
            %f = neg %a : f32[4, 16]
            yield %f
          }
          region(%b: f32[4, 16]) {
            %g = square %b : f32[4, 16]
            yield %g
          }
        yield %next, %r
      }
    return %y
  }
})";

TEST(Steady, TurnsOfALoopAllocateNothing) {
  auto model = Model::make(parse(kLoop), {.threads = 2});
  const Tensor x = Tensor::zeros(kF32, {4, 16}), w = Tensor::zeros(kF32, {16, 16});
  std::vector<float> y(64);
  for (int64_t turns : {1, 2, 1000, 1001}) {
    const Tensor n = Tensor::scalar_i64(turns);
    const TensorRef refs[] = {{kF32, x.dims(), x.data()}, {kF32, w.dims(), w.data()}, {kI64, n.dims(), n.data()}};
    const auto run = [&] { model->run(refs, [&](size_t, DType, std::span<const int64_t>) { return y.data(); }); };
    for (int i = 0; i < 3; ++i) run();
    const long before = g_allocations;
    run();
    EXPECT_EQ(g_allocations - before, 0) << turns << " turns";
  }
}

// A second thread of a host, which is busy elsewhere until some point.
class LateThread {
 public:
  ~LateThread() {  // the thread may be about to make its last call, whose function stays
    data_ = this;
    data_.notify_all();
  }
  /// Returns when the thread is at work on what it was asked for before.
  void begin() {
    has_begun_ = true;
    has_begun_.notify_all();
    calls.wait(0);
  }

  static void schedule(void* host, void (*call)(void* data), void* data) {
    auto& self = *static_cast<LateThread*>(host);
    self.hand_over(call, data);
  }
  std::atomic<int> calls = 0;

 private:
  void hand_over(void (*call)(void* data), void* data) {
    call_ = call;
    data_ = data;
    data_.notify_all();
  }
  void serve() {
    has_begun_.wait(false);
    while (true) {
      data_.wait(nullptr);
      void* data = data_.exchange(nullptr);
      if (data == this) return;
      ++calls;
      calls.notify_all();
      call_(data);
    }
  }

  std::atomic<bool> has_begun_ = false;
  std::atomic<void (*)(void* data)> call_ = nullptr;
  std::atomic<void*> data_ = nullptr;
  std::jthread thread_{[this] { serve(); }};
};

TEST(Steady, AWorkerThatComesLateAllocatesNothing) {
  LateThread late;
  auto executor = make_lent_executor(&late, LateThread::schedule, 2);
  std::vector<float> y(640);
  const Tensor x = Tensor::zeros(kF32, {64, 16, 16, 3});
  EXPECT_EQ(allocations_of(*network(), x, y, 3, {.executor = executor.get()}, [&] { late.begin(); }), 0);
  EXPECT_GT(late.calls, 0);
  EXPECT_FLOAT_EQ(y[0], 0.1f);
}

TEST(Steady, ResNet50AllocatesNothing) {
  const char* models = std::getenv("CAIRN_TEST_MODELS");
  ASSERT_TRUE(models) << "CAIRN_TEST_MODELS names the folder that `python tools/dev/models.py` prints";
  auto model = Model::make(import_model(std::string(models) + "/resnet50/saved_model"), {.threads = 2});
  std::vector<float> y(1000);
  EXPECT_EQ(allocations_of(*model, Tensor::zeros(kF32, {1, 224, 224, 3}), y, 20), 0);
}

/// A GraphDef of `count` element-wise nodes, each on the one before or that and one further up.
tensorflow::GraphDef chain(int count) {
  tensorflow::GraphDef graph;
  graph.model = ModelBytes::from_memory("chain", "");
  auto keep = [&](std::string text) { return graph.model->keep(std::move(text)); };
  const tensorflow::Attr type{"T", keep(tensorflow::attr_type(tensorflow::kDtFloat))};
  graph.nodes.push_back({keep("x"), keep("Placeholder"), {}, {}, {{"dtype", type.value}}});
  uint32_t before = 0, further = 0;
  for (int i = 0; i < count; ++i) {
    const bool two = i % 3 == 1;
    tensorflow::Node node{keep(fmt::format("n{}", i)),
                          two          ? "AddV2"
                          : i % 3 == 0 ? "Tanh"
                                       : "Neg",
                          {},
                          {{before, 0}},
                          {type}};
    if (two) node.inputs.push_back({further, 0});
    further = std::exchange(before, static_cast<uint32_t>(graph.nodes.size()));
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

TEST(Steady, AConversionAllocatesInProportionToItsNodes) {
  auto conversion = [](int count) {
    const tensorflow::GraphDef graph = chain(count);
    const long before = g_allocations;
    ImportOptions options;
    options.input_shapes = {{"x", Shape{4, 8}}};
    Model::make(import_tensorflow(graph, options), {.threads = 1})->plan(std::vector<Dims>{{4, 8}});
    return g_allocations - before;
  };
  conversion(10);  // tables that are made once
  const long small = conversion(1'000), large = conversion(10'000);
  EXPECT_LT(2 * large, 21 * small) << small << " of 1,000 nodes, " << large << " of 10,000";
}

TEST(Steady, TheCounterCounts) {
  long allocations = g_allocations;
  std::free(std::malloc(10));
  auto text = std::make_unique<std::string>(100, 'x');
  EXPECT_GE(g_allocations - allocations, 2);
}

/// Allocations and locks of an operator that is prepared and run again and again.
std::pair<long, long> spent_by(const char* name, const Attributes& attributes, std::vector<Operand> inputs,
                               std::vector<Operand> outputs) {
  const OpDef& op = op_named(name);
  const ModelOptions options{.threads = 1};
  const auto call = [&] { prepare_op(op, attributes, inputs, outputs, options)->run(inputs, outputs, nullptr); };
  for (int i = 0; i < 3; ++i) call();
  const long allocations = g_allocations, locks = g_locks;
  for (int i = 0; i < 50; ++i) call();
  return {g_allocations - allocations, g_locks - locks};
}

TEST(Steady, SingleOperatorsNeitherAllocateNorLock) {
  std::vector<float> a(4096, 1), b(4096, 2), y(8192);
  uint64_t state[3] = {1, 0, 0};
  int64_t shape[1] = {64}, flat[1] = {256};
  const int64_t image[] = {1, 8, 8, 4}, kernel[] = {3, 3, 4, 4}, square[] = {16, 16}, turned[] = {1, 16}, row[] = {16};
  const int64_t one[] = {1}, three[] = {3}, draws[] = {64}, all[] = {256}, wide[] = {32, 1};
  const Operand x{kF32, square, nullptr, a.data()}, z{kF32, square, nullptr, b.data()},
      view{kF32, square, turned, a.data()}, result{kF32, square, nullptr, y.data()},
      spread{kF32, square, wide, y.data()};
  const std::pair<long, long> nothing{0, 0};
  EXPECT_EQ(spent_by("add", {}, {x, z}, {result}), nothing);
  EXPECT_EQ(spent_by("add", {}, {view, z}, {result}), nothing) << "a view";
  EXPECT_EQ(spent_by("add", {}, {x, z}, {spread}), nothing) << "into a view";
  EXPECT_EQ(spent_by("softmax", {}, {view}, {result}), nothing) << "a view that is copied";
  EXPECT_EQ(spent_by("matmul", {}, {x, view}, {result}), nothing);
  EXPECT_EQ(spent_by("transpose", {{"permutation", std::vector<int64_t>{1, 0}}}, {x}, {result}), nothing);
  EXPECT_EQ(spent_by("reduce_sum", {{"axes", std::vector<int64_t>{1}}}, {x}, {{kF32, row, nullptr, y.data()}}),
            nothing);
  EXPECT_EQ(spent_by("reshape", {}, {x, {kI64, one, nullptr, flat}}, {{kF32, all, nullptr, y.data()}}), nothing);
  EXPECT_EQ(spent_by("conv2d", {{"padding", std::string("same")}},
                     {{kF32, image, nullptr, a.data()}, {kF32, kernel, nullptr, b.data()}},
                     {{kF32, image, nullptr, y.data()}}),
            nothing);
  const Operand rng{kU64, three, nullptr, state};
  EXPECT_EQ(spent_by("random_uniform", {}, {rng, {kI64, one, nullptr, shape}}, {rng, {kF32, draws, nullptr, y.data()}}),
            nothing);
}

}  // namespace
}  // namespace cairn

#endif
