// Random graphs: what comes out of the pipeline is valid, computes the same, and accounts for every source node.
#include <gtest/gtest.h>

#include <random>

#include "ir/builder.h"
#include "passes/pipeline.h"
#include "passes/provenance.h"
#include "passes/support.h"

namespace cairn {
namespace {

class GraphMaker {
 public:
  explicit GraphMaker(unsigned seed) : random_(seed) {}

  Module make(size_t nodes) {
    auto main = std::make_unique<Function>();
    main->name = "main";
    builder_ = std::make_unique<Builder>(main->body);
    Dim batch = pick(2) ? Dim(2) : Dim(intern_symbol("n"));
    values_ = {main->body.add_param(Type::tensor(kF32, {batch, 4, 4, 3}), "x"),
               main->body.add_param(Type::tensor(kF32, {batch, 3, 4, 4}), "z"),
               main->body.add_param(Type::tensor(kF32, {2, 3}), "m")};
    while (main->body.nodes.size() < nodes) {
      try {
        size_t before = main->body.nodes.size();
        builder_->sources = {module_.add_source({"test", fmt::format("n{}", module_.sources.size()), "", ""})};
        Value* value = grow();
        if (before == main->body.nodes.size()) module_.sources.pop_back();
        auto known = value->type.shape.dims;
        if (value->type.dtype == kF32 && !known.empty()) values_.push_back(value);
      } catch (const Error&) {  // an op that refuses its inputs adds nothing but its constants
      }
    }
    for (size_t i = 0; i < 3; ++i) {
      main->body.results.push_back(values_[values_.size() - 1 - i]);
      main->result_names.push_back(fmt::format("y{}", i));
    }
    module_.functions.push_back(std::move(main));
    drop_unused_sources();
    return std::move(module_);
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  Value* any() { return values_[values_.size() - 1 - pick(std::min<size_t>(values_.size(), 5))]; }

  // Sources of ops that refused have no node at all.
  void drop_unused_sources() {
    std::vector<bool> used(module_.sources.size(), false);
    for (const auto& node : module_.main().body.nodes)
      for (SourceId id : node->sources) used[id] = true;
    for (SourceId id = 0; id < used.size(); ++id)
      if (!used[id]) module_.removed[id] = Removal::identity;
  }

  Value* constant(std::vector<int64_t> dims) {
    Tensor tensor = Tensor::zeros(kF32, dims);
    for (float& x : tensor.mutable_values<float>()) x = pick(4) == 0 ? 1.f : static_cast<float>(pick(9)) / 4 - 1;
    return builder_->constant(tensor);
  }

  std::vector<int64_t> permutation(size_t rank) {
    if (rank == 4 && pick(4)) return pick(2) ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 3, 1, 2};
    std::vector<int64_t> order;
    for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

  int64_t last(const Value* x) { return x->type.shape.dims.back().known() ? x->type.shape.dims.back().size : 1; }

  Value* grow() {
    Builder& b = *builder_;
    Value* x = any();
    auto rank = static_cast<int64_t>(x->type.shape.rank());
    int64_t axis = rank == 0 ? 0 : static_cast<int64_t>(pick(static_cast<size_t>(rank)));
    static const char* const kUnary[] = {"relu", "abs", "neg", "tanh", "sigmoid", "identity", "square"};
    static const char* const kBinary[] = {"add", "sub", "mul", "maximum", "minimum", "squared_difference"};
    switch (pick(18)) {
      case 0: return b.add(kUnary[pick(7)], {x});
      case 1: return b.add(kBinary[pick(6)], {x, any()});
      case 2: return b.add(kBinary[pick(6)], {x, constant({last(x)})});
      case 3: return b.add(kBinary[pick(6)], {constant({}), x});
      case 4:
      case 5:
      case 6: return b.add("transpose", {x}, {{"permutation", permutation(static_cast<size_t>(rank))}});
      case 7: return b.add("softmax", {x}, {{"axis", axis}});
      case 8: {
        const Dim& dim = x->type.shape.dims[static_cast<size_t>(axis)];
        if (!dim.known()) return x;
        Value* variance = b.add("abs", {constant({dim.size})});
        Value* scale = constant({dim.size});
        return b.add("batch_norm", {x, scale, scale, variance, variance}, {{"epsilon", 0.5}, {"axis", axis}});
      }
      case 9:
        return b.add("conv2d", {x, constant({1 + 2 * static_cast<int64_t>(pick(2)), 1, last(x), 3})},
                     {{"padding", std::string(pick(2) ? "same" : "valid")}});
      case 10: return b.add("matmul", {x, constant({last(x), 3})});
      case 11: return b.add("concat", {x, any()}, {{"axis", axis}});
      case 12:
        return b.add(pick(2) ? "reduce_mean" : "reduce_max", {x},
                     {{"axes", std::vector<int64_t>{axis}}, {"keep_dims", pick(2) == 0}});
      case 13: {
        std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
        pads[pick(pads.size())] = 1;
        return b.add("pad", {x, b.constant(Tensor::of_i64(pads).reshaped({rank, 2}))},
                     {{"value", pick(2) ? 0.0 : -INFINITY}});
      }
      case 14: {
        std::vector<int64_t> begin(static_cast<size_t>(rank), 0), end(static_cast<size_t>(rank), INT64_MAX);
        begin[static_cast<size_t>(axis)] = static_cast<int64_t>(pick(2));
        return b.add("slice", {x, b.ints(begin), b.ints(end)});
      }
      case 15:
        return b.add("clip", {x},
                     {{"low", -0.5 * static_cast<double>(pick(3))}, {"high", 0.5 + static_cast<double>(pick(2))}});
      case 16: {
        std::vector<int64_t> dims{-1};
        if (rank > 1) dims.push_back(last(x));
        return b.add("reshape", {x, b.ints(dims)});
      }
      default: return b.add("max_pool2d", {x}, {{"window", std::vector<int64_t>{2, 2}}});
    }
  }

  std::mt19937 random_;
  Module module_;
  std::unique_ptr<Builder> builder_;
  std::vector<Value*> values_;
};

TEST(RandomGraphs, ComputeTheSameAndLoseNothing) {
  size_t changed = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Module before = GraphMaker(seed).make(8 + seed % 40);
    verify(before);
    Module after = clone(before);
    for (const PassRecord& record : optimise(after)) changed += record.changes;
    verify(after);
    ASSERT_EQ(test::random_check(before, after, 1e-4), "") << "seed " << seed << "\n"
                                                           << print(before).text << print(after).text;
    auto faults = check_provenance(before, after);
    ASSERT_TRUE(faults.empty()) << "seed " << seed << ": " << faults[0] << "\n"
                                << print(before).text << print(after).text;
  }
  EXPECT_GT(changed, 4000u);  // the graphs give the passes work to do
}

TEST(RandomGraphs, AreLeftAloneBySecondRun) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Module module = GraphMaker(seed).make(30);
    optimise(module);
    std::string once = print(module).text;
    size_t changes = 0;
    for (const PassRecord& record : optimise(module)) changes += record.changes;
    EXPECT_EQ(changes, 0u) << "seed " << seed << "\n" << once << print(module).text;
  }
}

}  // namespace
}  // namespace cairn
