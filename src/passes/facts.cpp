#include "passes/facts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace cairn {

bool is_identity(const Permutation& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  return true;
}

Permutation compose(const Permutation& first, const Permutation& second) {
  Permutation result;
  for (int64_t axis : second) result.push_back(first[static_cast<size_t>(axis)]);
  return result;
}

Permutation inverse(const Permutation& permutation) {
  Permutation result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return result;
}

std::optional<CommonDims> common_dims(const Shape& before, const Shape& after) {
  if (!before.ranked || !after.ranked) return {};
  CommonDims all;
  std::vector<Dim> left = before.dims, right = after.dims;
  size_t i = 0, j = 0;
  while (i < left.size() && j < right.size()) {
    const Dim a = left[i], b = right[j];
    const bool equal = a.surely_equals(b);
    if (!equal && (!a.known() || !b.known() || a.size == 0 || b.size == 0)) return {};
    if (!equal && std::max(a.size, b.size) % std::min(a.size, b.size) != 0) return {};
    const bool ends_left = equal || a.size < b.size, ends_right = equal || b.size < a.size;
    all.dims.push_back(ends_left ? a : b);
    all.before.push_back(i);
    all.after.push_back(j);
    if (!ends_left) left[i] = Dim(a.size / b.size);
    if (!ends_right) right[j] = Dim(b.size / a.size);
    i += ends_left, j += ends_right;
  }
  if (i < left.size() || j < right.size()) return {};  // dims of one at the end
  return all;
}

Permutation permutation_of(const Node& transpose) {
  Permutation result = transpose.attr().integers("permutation");
  for (int64_t& axis : result) axis = static_cast<int64_t>(axis_of(axis, result.size()));
  return result;
}

size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

std::optional<double> splat(const Tensor& tensor) {
  DType dtype = tensor.dtype();
  bool numeric = (dtype.is_float() || dtype.is_integer() || dtype == kBool) && dtype.bits >= 8;
  if (!numeric || tensor.count() == 0) return {};
  size_t size = dtype.size();
  const char* bytes = static_cast<const char*>(tensor.data());
  for (int64_t i = 1; i < tensor.count(); ++i)
    if (std::memcmp(bytes, bytes + static_cast<size_t>(i) * size, size) != 0) return {};
  return Tensor::view(dtype, {}, bytes, nullptr).as_f64()[0];
}

bool is_zero(const Value* value) {
  if (value->producer && value->producer->is("broadcast_to")) value = value->producer->inputs[0];
  const Tensor* constant = constant_of(value);
  return constant && is_all(*constant, 0);
}

bool powers_of_two(const Tensor& tensor) {
  if (tensor.count() == 0 || (tensor.dtype() != kF32 && tensor.dtype() != kF64)) return false;
  int limit = tensor.dtype() == kF32 ? 120 : 1000;  // both the number and its reciprocal are normal
  for (double value : tensor.as_f64()) {
    int exponent = 0;
    if (std::abs(std::frexp(value, &exponent)) != 0.5 || std::abs(exponent) > limit) return false;
  }
  return true;
}

bool makes_no_digits(const Node& node) {
  constexpr std::string_view kNames[] = {
      "reshape",    "transpose",  "broadcast_to", "concat", "tile", "slice", "reverse",    "gather",
      "gather_nd",  "identity",   "relu",         "neg",    "abs",  "sign",  "maximum",    "minimum",
      "max_pool2d", "max_pool3d", "select",       "floor",  "ceil", "round", "reduce_max", "reduce_min"};
  return std::find(std::begin(kNames), std::end(kNames), node.op->name) != std::end(kNames);
}

bool surely_same(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor() || a.dtype != b.dtype || !a.shape.ranked || !b.shape.ranked) return false;
  return std::equal(a.shape.dims.begin(), a.shape.dims.end(), b.shape.dims.begin(), b.shape.dims.end(),
                    [](const Dim& x, const Dim& y) { return x.surely_equals(y); });
}

bool same_by_count(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor() || a.dtype != b.dtype || !a.shape.ranked || !b.shape.ranked) return false;
  if (a.shape.rank() != b.shape.rank()) return false;
  size_t open = 0;
  bool empty = false;
  for (size_t i = 0; i < a.shape.rank(); ++i) {
    if (!a.shape.dims[i].surely_equals(b.shape.dims[i]))
      ++open;
    else if (!a.shape.dims[i].known() || a.shape.dims[i].size == 0)
      empty = true;  // with a dim of 0, equal element counts would not determine the unknown dim
  }
  return open == 0 || (open == 1 && !empty);
}

bool implies(const Type& type, const Type& known) { return compatible(type, known) && meet(type, known) == type; }

namespace {

std::optional<std::vector<Dim>> constant_elements(const Tensor& tensor) {
  if (!tensor.dtype().is_integer() || tensor.dtype().bits < 8 || tensor.rank() > 1 || tensor.count() > 64) return {};
  std::vector<Dim> dims;
  for (int64_t value : tensor.as_i64()) dims.push_back(value < 0 ? Dim() : Dim(value));
  return dims;
}

std::optional<std::vector<Dim>> sliced_elements(const Node& node, int depth) {
  auto from = known_elements(node.inputs[0], depth);
  const Tensor *begin = constant_of(node.inputs[1]), *end = constant_of(node.inputs[2]);
  const auto& steps = node.attr().integers("steps");
  if (!from || !begin || !end || begin->count() != 1 || end->count() != 1) return {};
  if (!steps.empty() && (steps.size() != 1 || steps[0] != 1)) return {};
  auto size = static_cast<int64_t>(from->size());
  auto place = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  int64_t first = place(begin->as_i64()[0]), last = std::max(first, place(end->as_i64()[0]));
  return std::vector<Dim>(from->begin() + first, from->begin() + last);
}

std::optional<std::vector<Dim>> gathered_elements(const Node& node, int depth) {
  auto from = known_elements(node.inputs[0], depth);
  const Tensor* indices = constant_of(node.inputs[1]);
  if (!from || !indices || indices->rank() > 1 || indices->count() > 64) return {};
  std::vector<Dim> dims;
  for (int64_t index : indices->as_i64()) {
    auto size = static_cast<int64_t>(from->size());
    if (index < -size || index >= size) return {};
    dims.push_back((*from)[axis_of(index, from->size())]);
  }
  return dims;
}

}  // namespace

std::optional<std::vector<Dim>> known_elements(const Value* value, int depth) {
  const Shape& shape = value->type.shape;
  if (depth == 0 || !value->type.is_tensor() || !value->type.dtype.is_integer() || !shape.ranked || shape.rank() > 1)
    return {};
  if (const Tensor* tensor = constant_of(value)) return constant_elements(*tensor);
  const Node* node = value->producer;
  if (node && node->is("shape_of") && node->inputs[0]->type.shape.ranked) return node->inputs[0]->type.shape.dims;
  if (node && node->is("cast") && node->inputs[0]->type.dtype.is_integer())
    return known_elements(node->inputs[0], depth - 1);
  if (node && node->is("reshape") && node->inputs[0]->type.shape.ranked && node->inputs[0]->type.shape.rank() <= 1)
    return known_elements(node->inputs[0], depth - 1);
  if (node && node->is("slice")) {
    if (auto dims = sliced_elements(*node, depth - 1)) return dims;
  } else if (node && node->is("gather")) {
    if (auto dims = gathered_elements(*node, depth - 1)) return dims;
  } else if (node && node->is("concat")) {
    std::vector<Dim> dims;
    for (const Value* input : node->inputs) {
      auto part = known_elements(input, depth - 1);
      if (!part) return {};
      dims.insert(dims.end(), part->begin(), part->end());
    }
    return dims;
  }
  if (!shape.known()) return {};
  int64_t count = shape.rank() == 0 ? 1 : shape.dims[0].size;
  if (count > 64) return {};
  return std::vector<Dim>(static_cast<size_t>(count));
}

std::optional<std::vector<int64_t>> reshape_operand(const std::vector<Dim>& dims) {
  std::vector<int64_t> operand;
  size_t open = 0;
  bool empty = false;
  for (const Dim& dim : dims) {
    operand.push_back(dim.known() ? dim.size : -1);
    open += !dim.known();
    empty = empty || (dim.known() && dim.size == 0);
  }
  if (open > 1 || (open == 1 && empty)) return {};
  return operand;
}

Tensor integers_like(const Type& like, const std::vector<int64_t>& values) {
  if (like.dtype != kI32) return Tensor::of_i64(values);
  return Tensor::of(kI32, {static_cast<int64_t>(values.size())}, std::vector<int32_t>(values.begin(), values.end()));
}

bool along_last_dim(const Tensor& tensor) { return tensor.rank() == 0 || tensor.count() == tensor.dims().back(); }

bool varies_along(const Value* value, size_t axis, size_t rank) {
  const Shape& shape = value->type.shape;
  if (!shape.ranked || shape.rank() > rank) return false;
  for (size_t i = 0; i < shape.rank(); ++i)
    if (shape.dims[i] != Dim(1) && i + rank - shape.rank() != axis) return false;
  return true;
}

namespace {

/// Whether the node makes weights that the product reads as they are stored.
bool expands_for(const Node& node, const Node& product, bool kernels) {
  constexpr int64_t kMany = 1 << 10,
                    kManyBytes = 1 << 14;  // elements: fewer are faster as floats, and do not fill caches
  const Value* result = node.result();
  const bool matrices = product.is("matmul") && result->type.shape.rank() == 2;
  const bool convolution = (product.is("conv2d") || product.is("conv3d")) && product.attr().integer("groups") == 1;
  if (!(matrices && !product.attr().boolean("transpose_a")) && !(kernels && convolution)) return false;
  if (product.inputs[1] != result || product.inputs[0] == result || product.result()->type.dtype != kF32) return false;
  if (element_count(result->type.shape.sizes()).value_or(0) < kMany) return false;
  const DType from = node.inputs[0]->type.dtype;
  if (node.is("cast")) return from.is_float() && from.bits == 16;
  const bool transposed = matrices && product.attr().boolean("transpose_b");
  if (node.is("dequantize_blocks")) return transposed;
  const size_t axis = transposed ? 0 : 1;
  if (element_count(result->type.shape.sizes()).value_or(0) < kManyBytes) return false;
  return matrices && from.bits == 8 && varies_along(node.inputs[1], axis, 2) && varies_along(node.inputs[2], axis, 2);
}

}  // namespace

std::unordered_set<const Node*> expanded_operands(const Block& block, bool kernels) {
  std::unordered_map<const Value*, const Node*> made;
  for (const auto& node : block.nodes) {
    const bool expands = node->is("cast") || node->is("dequantize_linear") || node->is("dequantize_blocks");
    if (expands && node->result()->type.dtype == kF32 && node->result()->type.is_static())
      made.emplace(node->result(), node.get());
  }
  if (made.empty()) return {};
  std::unordered_set<const Node*> found;
  std::unordered_set<const Value*> seen;
  const auto use = [&](const Value* value, const Node* user) {
    const auto node = made.find(value);
    if (node == made.end()) return;
    if (!seen.insert(value).second || !user || !expands_for(*node->second, *user, kernels))
      found.erase(node->second);
    else
      found.insert(node->second);
  };
  for (const auto& node : block.nodes)
    for (const Value* input : node->inputs) use(input, node.get());
  for (const Value* result : block.results) use(result, nullptr);
  return found;
}

}  // namespace cairn
