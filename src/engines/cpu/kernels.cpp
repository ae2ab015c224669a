#include "engines/cpu/kernels.h"

#include "engines/cpu/activated.h"
#include "engines/cpu/attention.h"
#include "engines/cpu/batch_norm.h"
#include "engines/cpu/conv_parts.h"
#include "engines/cpu/crop.h"
#include "engines/cpu/depthwise_rows.h"
#include "engines/cpu/doubles.h"
#include "engines/cpu/elements.h"
#include "engines/cpu/few_channels.h"
#include "engines/cpu/index_vectors.h"
#include "engines/cpu/integer_depthwise.h"
#include "engines/cpu/integer_step.h"
#include "engines/cpu/integer_winograd.h"
#include "engines/cpu/kernel_gradient.h"
#include "engines/cpu/moving.h"
#include "engines/cpu/pixel_gradient.h"
#include "engines/cpu/pixel_lanes.h"
#include "engines/cpu/planes.h"
#include "engines/cpu/products.h"
#include "engines/cpu/program.h"
#include "engines/cpu/quantised_elements.h"
#include "engines/cpu/random.h"
#include "engines/cpu/resample.h"
#include "engines/cpu/row_slices.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/sampling.h"
#include "engines/cpu/scattered_gradient.h"
#include "engines/cpu/segments.h"
#include "engines/cpu/separable.h"
#include "engines/cpu/tile_step.h"
#include "engines/cpu/training.h"
#include "engines/cpu/trees.h"
#include "engines/cpu/updated_gradient.h"
#include "engines/cpu/wide_reduction.h"
#include "engines/cpu/widened_gradient.h"
#include "engines/cpu/winograd_gradient.h"
#include "engines/cpu/winograd_step.h"

namespace cairn {

namespace {

std::unique_ptr<Step> make_program_of(ElementwiseProgram program, size_t inputs) {
  CallOptions options{.in_place = program.aligned_inputs()};
  for (size_t i = 0; i < inputs; ++i)
    if (!program.reads(i)) options.unread.push_back(i);
  std::string name = fmt::format("elementwise {}{}", program.instructions(),
                                 program.gathers()    ? " gathering"
                                 : program.by_table() ? " by table"
                                                      : "");
  return call(
      std::move(name),
      [program = std::move(program)](const StepArgs& args) { program.run(args.executor, args.inputs, args.outputs); },
      std::move(options));
}

std::unique_ptr<Step> make_program(const Group& group, MakeContext&) {
  return make_program_of(ElementwiseProgram(group), group.inputs.size());
}

std::unique_ptr<Step> make_strided_program(const Group& group, const GroupStrides& strides) {
  ElementwiseProgram program(group, strides);
  return program.reads_far() ? nullptr : make_program_of(std::move(program), group.inputs.size());
}

constexpr CpuKernel kKernels[] = {
    {"attention", refuses_attention, make_attention},
    {"updated_gradient", refuses_updated_gradient, make_updated_gradient, nullptr, false, cannot_make_updated_gradient},
    {"separable", refuses_separable, make_separable},
    {"pixel_lanes", refuses_pixel_lanes, make_pixel_lanes},
    {"few_channels", refuses_few_channels, make_few_channels},
    {"winograd", refuses_winograd, make_winograd},
    {"tile", refuses_tile, make_tile},
    {"integer_depthwise", refuses_integer_depthwise, make_integer_depthwise},
    {"integer_winograd", refuses_integer_winograd, make_integer_winograd},
    {"integer_tile", refuses_integer_tile, make_integer_tile},
    {"depthwise_rows", refuses_depthwise_rows, make_depthwise_rows},
    {"depthwise", refuses_depthwise, make_depthwise},
    {"grouped", refuses_grouped, make_grouped},
    {"activated", refuses_activated, make_activated},
    {"planes", refuses_planes, make_planes},
    {"pool", refuses_pool, make_pool},
    {"integer_pool", refuses_integer_pool, make_integer_pool},
    {"large_pool", refuses_large_pool, make_large_pool},
    {"resize", refuses_resize, make_resize},
    {"resize_gradient", refuses_resize_gradient, make_resize_gradient},
    {"crop", refuses_crop, make_crop},
    {"crop_gradient", refuses_crop_gradient, make_crop_gradient},
    {"grid_sample", refuses_grid_sample, make_grid_sample},
    {"roi_align", refuses_roi_align, make_roi_align},
    {"roi_align_gradient", refuses_roi_align_gradient, make_roi_align_gradient},
    {"reduce", refuses_reduction, make_reduction},
    {"softmax", refuses_softmax, make_softmax},
    {"layer_norm", refuses_layer_norm, make_layer_norm},
    {"normalisation", refuses_normalisation, make_normalisation},
    {"row_slices", refuses_row_slices, make_row_slices},
    {"elementwise", ElementwiseProgram::refuses, make_program, make_strided_program},
    {"doubles", refuses_doubles, make_doubles, make_strided_doubles},
    {"quantisation", refuses_quantisation, make_quantisation},
    {"concat", refuses_concat, make_concat},
    {"transpose", refuses_transpose, make_transpose, make_strided_transpose},
    {"axis_copy", refuses_axis_copy, make_axis_copy},
    {"gather", refuses_gather, make_gather},
    {"gather_nd", refuses_gather_nd, make_gather_nd},
    {"scatter", refuses_scatter, make_scatter},
    {"one_hot", refuses_one_hot, make_one_hot},
    {"arg", refuses_arg, make_arg},
    {"top_k", refuses_top_k, make_top_k},
    {"cumsum", refuses_cumsum, make_cumsum},
    {"linear_algebra", refuses_linear_algebra, make_linear_algebra},
    {"fourier", refuses_fourier, make_fourier},
    {"trees", refuses_trees, make_trees},
    {"wide_reduction", refuses_wide_reduction, make_wide_reduction},
    {"fold", refuses_fold, make_fold},
    {"row_updates", refuses_row_updates, make_row_updates},
    {"scatter_elements", refuses_scatter_elements, make_scatter_elements},
    {"segments", refuses_segments, make_segments},
    {"unique_padded", refuses_unique_padded, make_unique_padded},
    {"unique", refuses_unique, make_unique_elements, nullptr, true},
    {"non_zero", refuses_non_zero, make_non_zero, nullptr, true},
    {"depthwise_gradient", refuses_depthwise_gradient, make_depthwise_gradient},
    {"widened_gradient", refuses_widened_gradient, make_widened_gradient},
    {"scattered_gradient", refuses_scattered_gradient, make_scattered_gradient},
    {"input_gradient", refuses_input_gradient, make_input_gradient},
    {"winograd_gradient", refuses_winograd_gradient, make_winograd_gradient},
    {"pixel_gradient", refuses_pixel_gradient, make_pixel_gradient},
    {"kernel_gradient", refuses_kernel_gradient, make_kernel_gradient},
    {"batch_norm_training", refuses_batch_norm_training, make_batch_norm_training},
    {"batch_norm", refuses_batch_norm_inference, make_batch_norm_inference},
    {"batch_norm_gradient", refuses_batch_norm_gradient, make_batch_norm_gradient},
    {"cross_entropy", refuses_cross_entropy, make_cross_entropy},
    {"pool_gradient", refuses_pool_gradient, make_pool_gradient},
    {"pool_places", refuses_pool_places, make_pool_places},
    {"products", refuses_products, make_products},
    {"random", refuses_random, make_random},
    {"discrete_random", refuses_discrete_random, make_discrete_random},
    {"elements", refuses_elements, make_elements, make_strided_elements},
};

}  // namespace

std::span<const CpuKernel> cpu_kernels() { return kKernels; }

}  // namespace cairn
