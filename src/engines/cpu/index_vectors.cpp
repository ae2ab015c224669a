#include "engines/cpu/index_vectors.h"

#include <cstring>

#include "engines/cpu/groups.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

/// Index vectors (i32 or i64) into the dims [batch, batch + depth) of a tensor.
struct IndexVectors {
  IndexVectors(const Group& group, const Node& node, const Value* vectors, const Dims& tensor, size_t batch)
      : name(node.op->name), input(index_of(group, vectors)), wide(vectors->type.dtype == kI64),
        from_start(node.attr().boolean("from_start")) {
    const Dims shape = vectors->type.shape.sizes();
    count = count_between(shape, 0, shape.size() - 1);
    const auto depth = static_cast<size_t>(shape.back());
    dims.assign(tensor.begin() + static_cast<long>(batch), tensor.begin() + static_cast<long>(batch + depth));
    part = count_between(tensor, batch + depth, tensor.size());
  }

  /// The row-major number of the part that vector i addresses. Throws Error invalid_argument when it is out of range.
  int64_t part_of(const StepArgs& args, int64_t i) const {
    int64_t place = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t at = i * static_cast<int64_t>(dims.size()) + static_cast<int64_t>(d);
      const int64_t index = wide ? static_cast<const int64_t*>(args.inputs[input])[at]
                                 : static_cast<const int32_t*>(args.inputs[input])[at];
      if (index < (from_start ? 0 : -dims[d]) || index >= dims[d])
        fail(ErrorKind::invalid_argument, name, "index {} is out of range for {} elements", index, dims[d]);
      place = place * dims[d] + (index < 0 ? index + dims[d] : index);
    }
    return place;
  }

  /// Computes and checks all numbers before the parallel part, since chunks of an executor must not throw.
  void read(const StepArgs& args, int64_t* places) const {
    for (int64_t i = 0; i < count; ++i) places[i] = part_of(args, i);
  }

  const char* name;
  size_t input;
  bool wide, from_start;
  int64_t count = 0, part = 0;  // number of vectors; elements of an addressed part
  Dims dims;
};

Refusal refuses_vectors(const Value* vectors) {
  const DType dtype = vectors->type.dtype;
  if (dtype != kI32 && dtype != kI64) return fmt::format("indices are {}, takes i32 and i64", to_string(dtype));
  return std::nullopt;
}

}  // namespace

Refusal refuses_gather_nd(const Group& group) {
  const Node* node = single_node(group, "gather_nd");
  if (!node) return "is another operation";
  const DType dtype = node->result()->type.dtype;
  if (dtype == kString || dtype.size() == 0) return fmt::format("elements are {}", to_string(dtype));
  return refuses_vectors(node->inputs[1]);
}

std::unique_ptr<Step> make_gather_nd(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = node.inputs[0]->type.shape.sizes();
  const auto batch = static_cast<size_t>(node.attr().integer("batch_dims"));
  const IndexVectors vectors(group, node, node.inputs[1], dims, batch);
  const int64_t outer = count_between(dims, 0, batch), each = count_between(dims, batch, dims.size());
  const int64_t bytes = vectors.part * static_cast<int64_t>(node.result()->type.dtype.size());
  const int64_t width = static_cast<int64_t>(node.result()->type.dtype.size());
  const bool nothing = count_of(node.result()->type.shape.sizes()) == 0;
  const size_t x = index_of(group, node.inputs[0]);
  const auto run = [=](const StepArgs& args) {
    if (nothing) return;
    auto* places = static_cast<int64_t*>(args.workspace);
    vectors.read(args, places);
    const int64_t picks = vectors.count / outer;
    for_each(args.executor, vectors.count, bytes / 4, [&](int64_t i) {
      const char* from = input<char>(args, x) + i / picks * each * width + places[i] * bytes;
      std::memcpy(output<char>(args) + i * bytes, from, static_cast<size_t>(bytes));
    });
  };
  return call("gather_nd", run, {.workspace = static_cast<size_t>(vectors.count) * sizeof(int64_t)});
}

Refusal refuses_scatter_nd(const Group& group) {
  const Node* node = single_node(group, "scatter_nd");
  if (!node) return "is another operation";
  const DType dtype = node->result()->type.dtype;
  if (dtype != kF32) return fmt::format("elements are {}, takes f32", to_string(dtype));
  return refuses_vectors(node->inputs[0]);
}

// Each worker handles its own parts of the result, in the order of the vectors, so that sums do not depend on the
// number of workers.
std::unique_ptr<Step> make_scatter_nd(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = node.result()->type.shape.sizes();
  const IndexVectors vectors(group, node, node.inputs[0], dims, 0);
  const int64_t count = count_of(dims);
  const bool nothing = count_of(node.inputs[1]->type.shape.sizes()) == 0;
  const size_t updates = index_of(group, node.inputs[1]);
  const auto run = [=](const StepArgs& args) {
    constexpr int64_t kLeastWork = 16 << 10;
    std::memset(args.outputs[0], 0, static_cast<size_t>(count) * sizeof(float));
    if (nothing) return;
    auto* places = static_cast<int64_t*>(args.workspace);
    vectors.read(args, places);
    const int64_t width = args.executor.width(), worth = vectors.count * vectors.part / kLeastWork;
    const int64_t workers = width == 1 ? 1 : std::clamp<int64_t>(worth, 1, width * 4);
    args.executor.run(static_cast<int>(workers), [&](int worker, int) {
      for (int64_t i = 0; i < vectors.count; ++i) {
        if (places[i] % workers != worker) continue;
        const float* from = input(args, updates) + i * vectors.part;
        float* to = output(args) + places[i] * vectors.part;
        for (int64_t j = 0; j < vectors.part; ++j) to[j] += from[j];
      }
    });
  };
  return call("scatter_nd", run, {.workspace = static_cast<size_t>(vectors.count) * sizeof(int64_t)});
}

}  // namespace cairn
