// The op families: the rows of a family are in the file of its name. table.cpp collects them.
#pragma once

#include <span>

#include "ir/op_def.h"

namespace cairn {

std::span<const OpDef> constant_ops();
std::span<const OpDef> unary_ops();
std::span<const OpDef> binary_ops();
std::span<const OpDef> special_ops();
std::span<const OpDef> bit_ops();
std::span<const OpDef> linear_ops();
std::span<const OpDef> convolution_ops();
std::span<const OpDef> quantisation_ops();
std::span<const OpDef> linear_algebra_ops();
std::span<const OpDef> fourier_ops();
std::span<const OpDef> pooling_ops();
std::span<const OpDef> morphology_ops();
std::span<const OpDef> ctc_decoding_ops();
std::span<const OpDef> normalisation_ops();
std::span<const OpDef> loss_ops();
std::span<const OpDef> segment_ops();
std::span<const OpDef> reduction_ops();
std::span<const OpDef> shape_ops();
std::span<const OpDef> slicing_ops();
std::span<const OpDef> indexing_ops();
std::span<const OpDef> image_ops();
std::span<const OpDef> image_gradient_ops();
std::span<const OpDef> sampling_ops();
std::span<const OpDef> suppression_ops();
std::span<const OpDef> tree_ops();
std::span<const OpDef> aipp_ops();
std::span<const OpDef> dynamic_ops();
std::span<const OpDef> control_ops();
std::span<const OpDef> list_ops();
std::span<const OpDef> state_ops();
std::span<const OpDef> random_ops();
std::span<const OpDef> host_ops();
std::span<const OpDef> text_ops();
std::span<const OpDef> text_part_ops();
std::span<const OpDef> lookup_ops();
std::span<const OpDef> sparse_ops();
std::span<const OpDef> ragged_ops();
std::span<const OpDef> example_ops();
std::span<const OpDef> collective_ops();

}  // namespace cairn
