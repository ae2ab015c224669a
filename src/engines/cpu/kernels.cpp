#include "engines/cpu/kernels.h"

#include "engines/cpu/elements.h"
#include "engines/cpu/moving.h"
#include "engines/cpu/program.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/tile_step.h"

namespace cairn {

namespace {

std::unique_ptr<Step> make_program(const Group& group, MakeContext&) {
  ElementwiseProgram program(group);
  CallOptions options{.in_place = program.aligned_inputs()};
  return call(
      fmt::format("elementwise {}", program.instructions()),
      [program = std::move(program)](const StepArgs& args) { program.run(args.executor, args.inputs, args.outputs); },
      std::move(options));
}

constexpr CpuKernel kKernels[] = {
    {"tile", refuses_tile, make_tile},
    {"depthwise", refuses_depthwise, make_depthwise},
    {"pool", refuses_pool, make_pool},
    {"reduce", refuses_reduction, make_reduction},
    {"softmax", refuses_softmax, make_softmax},
    {"layer_norm", refuses_layer_norm, make_layer_norm},
    {"elementwise", ElementwiseProgram::refuses, make_program},
    {"concat", refuses_concat, make_concat},
    {"transpose", refuses_transpose, make_transpose},
    {"axis_copy", refuses_axis_copy, make_axis_copy},
    {"gather", refuses_gather, make_gather},
    {"one_hot", refuses_one_hot, make_one_hot},
    {"arg", refuses_arg, make_arg},
    {"cumsum", refuses_cumsum, make_cumsum},
    {"fold", refuses_fold, make_fold},
    {"elements", refuses_elements, make_elements},
};

}  // namespace

std::span<const CpuKernel> cpu_kernels() {
  return kKernels;
}

}  // namespace cairn
