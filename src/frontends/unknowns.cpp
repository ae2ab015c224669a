#include "frontends/unknowns.h"

#include <algorithm>
#include <unordered_set>

namespace cairn {
namespace {

/// The shapes that are tried for an unknown value: open and fixed sizes of each rank.
std::vector<Shape> shapes_to_try() {
  std::vector<Shape> shapes{Shape::unranked()};
  constexpr size_t kMostDims = 5;
  for (size_t rank = 0; rank <= kMostDims; ++rank)
    for (const Dim& size : {Dim(), Dim(4)}) shapes.emplace_back(std::vector<Dim>(rank, size));
  return shapes;
}

Shape opened(const Shape& shape) {
  return shape.ranked ? Shape(std::vector<Dim>(shape.rank(), Dim())) : Shape::unranked();
}

}  // namespace

Value* Unknowns::add(std::optional<DType> dtype, Shape shape) {
  own_.push_back(std::make_unique<Value>());
  own_.back()->type = Type::tensor(dtype.value_or(kF32), std::move(shape));
  known_dtype_[own_.back().get()] = dtype.has_value();
  return own_.back().get();
}

bool Unknowns::tells_dtypes(const std::vector<Value*>& inputs) const {
  return std::all_of(inputs.begin(), inputs.end(), [&](const Value* input) {
    auto found = known_dtype_.find(input);
    return found == known_dtype_.end() || found->second;
  });
}

std::vector<Value*> Unknowns::with_types(const std::vector<Value*>& inputs, std::optional<DType> dtype,
                                         const Shape& shape) {
  std::vector<Value*> changed = inputs;
  for (Value*& input : changed) {
    if (input == nullptr || !contains(input) || !input->type.is_tensor()) continue;
    auto found = known_dtype_.find(input);
    const bool told = found == known_dtype_.end() || found->second;
    input = add(told || !dtype ? input->type.dtype : *dtype, shape);
  }
  return changed;
}

std::vector<Value*> Unknowns::results(const std::vector<Value*>& inputs, bool once, const Build& build) {
  std::optional<Error> reason;
  bool reasons_differ = false;
  const bool told = tells_dtypes(inputs);
  auto attempt = [&](const std::vector<Value*>& tried) -> std::optional<std::vector<Value*>> {
    try {
      return build(tried);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::out_of_memory || error.kind() == ErrorKind::cancelled) throw;
      reasons_differ = reasons_differ || (reason && error.message() != reason->message());
      reason = error;
      return std::nullopt;
    }
  };
  auto stand_in = [&](Value* result, bool as_they_are) {
    if (result == nullptr || !result->type.is_tensor() || constant_of(result) != nullptr) return result;
    if (as_they_are && told && result->type.is_static()) return result;
    if (!as_they_are) return add(told ? std::optional(result->type.dtype) : std::nullopt, opened(result->type.shape));
    known_dtype_.try_emplace(result, told);
    return result;
  };
  const bool before = std::exchange(doubt_, doubt_ || once);
  struct Restore {
    bool& doubt;
    bool before;
    ~Restore() { doubt = before; }
  } restore{doubt_, before};
  auto made = attempt(inputs);
  const bool as_they_are = made.has_value();
  std::vector<std::optional<DType>> dtypes{std::nullopt};
  if (!told) dtypes = {kF32, kI32, kI64, kBool, kString};
  for (const Shape& shape : once || made ? std::vector<Shape>() : shapes_to_try())
    for (std::optional<DType> dtype : dtypes)
      if (!made) made = attempt(with_types(inputs, dtype, shape));
  const bool wants_constant = reason && reason->message().find("constant") != std::string::npos;
  if (!made && !once && !reasons_differ && !wants_constant) throw Error(*reason);
  std::vector<Value*> results;
  for (Value* result : made.value_or(std::vector<Value*>())) results.push_back(stand_in(result, as_they_are));
  return results;
}

bool keep_needed(Block& block) {
  std::unordered_set<const Value*> needed(block.results.begin(), block.results.end());
  std::unordered_set<const Node*> kept;
  for (size_t i = block.nodes.size(); i-- > 0;) {
    const Node& node = *block.nodes[i];
    if (std::none_of(node.results.begin(), node.results.end(),
                     [&](auto& value) { return needed.contains(value.get()); }))
      continue;
    kept.insert(&node);
    needed.insert(node.inputs.begin(), node.inputs.end());
  }
  size_t params = 0;
  for (const auto& param : block.params) params += needed.count(param.get());
  const auto without_node = std::count_if(
      needed.begin(), needed.end(), [](const Value* value) { return value == nullptr || value->producer == nullptr; });
  if (static_cast<size_t>(without_node) != params) return false;
  std::erase_if(block.nodes, [&](const auto& node) { return !kept.contains(node.get()); });
  std::erase_if(block.params, [&](const auto& param) { return !needed.contains(param.get()); });
  renumber(block.params);
  return true;
}

}  // namespace cairn
