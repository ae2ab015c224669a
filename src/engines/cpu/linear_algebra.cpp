// Linear algebra on the matrices in the last two dims, several matrices at a time, by routines compiled for AVX2; f32 in f32.
#include <atomic>

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/results.h"
#include "engines/cpu/rows.h"
#include "ops/matrices.h"

namespace cairn {

Refusal refuses_linear_algebra(const Group& group) {
  if (group.nodes.size() != 1 || !find_matrix_routine(matrix_routines(), group.last().op->name))
    return "is another operation";
  return std::nullopt;
}

std::unique_ptr<Step> make_linear_algebra(const Group& group, MakeContext& context) {
  const Node& node = group.last();
  std::vector<Type> inputs, types;
  std::vector<size_t> places;
  for (const Value* value : node.inputs) {
    inputs.push_back(value->type);
    places.push_back(index_of(group, value));
  }
  for (const auto& result : node.results) types.push_back(result->type);
  const auto is_f32 = [](const Type& type) { return type.dtype == kF32; };
  const bool plain = machine_isa() == Isa::none;
  const bool single = !plain && std::ranges::all_of(inputs, is_f32) && std::ranges::all_of(types, is_f32);
  const auto routines = plain ? matrix_routines() : single ? matrix_routines_avx2_f32() : matrix_routines_avx2();
  const MatrixBatch batch(find_matrix_routine(routines, node.op->name), single ? kF32 : kF64, node.attr(), inputs,
                          types);
  const size_t each = whole_lines(batch.scratch());
  const Results results(group, node, each * static_cast<size_t>(std::max(1, context.threads)));
  const std::string name = node.op->name;
  const auto run = [=](const StepArgs& args) {
    std::vector<const void*> from;
    std::vector<void*> to;
    for (size_t place : places) from.push_back(args.inputs[place]);
    for (size_t i = 0; i < types.size(); ++i) to.push_back(results.at<void*>(args, i));
    std::atomic<MatrixFault> fault = MatrixFault::none;
    args.executor.run(static_cast<int>(batch.count()), [&](int number, int worker) {
      auto* scratch = static_cast<std::byte*>(args.workspace) + static_cast<size_t>(worker) * each;
      const MatrixFault found = batch.compute(number, from.data(), to.data(), scratch);
      if (found != MatrixFault::none) fault = found;
    });
    if (fault != MatrixFault::none)
      throw Error(ErrorKind::invalid_argument, "", fmt::format("{}: {}", name, to_string(fault.load())));
  };
  return call(name, run, {.workspace = results.workspace()});
}

}  // namespace cairn
