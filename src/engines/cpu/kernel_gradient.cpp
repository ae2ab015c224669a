#include "engines/cpu/kernel_gradient.h"

#include "engines/cpu/amx_kernel_gradient.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/kernel_gradient_work.h"
#include "engines/cpu/slides.h"

namespace cairn {

Refusal refuses_kernel_gradient(const Group& group) {
  if (!is_convolution(group.last(), ConvRole::kernel_gradient)) return "is another operation";
  const Node* node = &group.last();
  if (!std::all_of(group.nodes.begin(), group.nodes.end() - 1, [](const Node* each) { return is_widening(*each); }))
    return "follows another operation";
  for (const Value* value : {node->inputs[0], node->inputs[1], node->result()}) {
    if (value->type.dtype != kF32) return fmt::format("elements are {}, takes f32", to_string(value->type.dtype));
    const int64_t count = *element_count(value->type.shape.sizes());
    if (count == 0) return "has no elements";
    if (count / std::max<int64_t>(1, value == node->result() ? 1 : dim(value, 0)) > INT32_MAX / 4)
      return "one image is larger than 512 Mi elements";
  }
  if (convolution_of(*node, node->inputs[0], node->inputs[1], node->result()).taps() > 4096) return "has too many taps";
  return std::nullopt;
}

namespace {

std::unique_ptr<Step> make_step(const char* name, KernelGradient gradient, size_t x, size_t dy, CallOptions options) {
  options.workspace = gradient.workspace();
  const std::string title = fmt::format("{} {}", name, gradient.describe());
  return call(
      title,
      [=, gradient = std::move(gradient)](const StepArgs& args) {
        gradient.run(args.executor, args.inputs[x], args.inputs[dy], output(args), static_cast<float*>(args.workspace));
      },
      std::move(options));
}

}  // namespace

std::unique_ptr<Step> make_kernel_gradient(const Group& group, MakeContext& context) {
  const Node& node = group.last();
  const size_t x = index_of(group, node.inputs[0]), dy = index_of(group, node.inputs[1]);
  CallOptions options;
  options.unread = inputs_but(group, {x, dy});
  if (node.attr().integer("groups") == 1) {
    const SlideSpec slide = convolution_of(node, node.inputs[0], node.inputs[1], node.result());
    if (auto step =
            make_amx_kernel_gradient("kernel_gradient", slide, last_dim(node.inputs[1]), x,
                                     form_in(group, node.inputs[0]), dy, form_in(group, node.inputs[1]), options))
      return step;
  }
  return make_step("kernel_gradient",
                   {node, form_in(group, node.inputs[0]), form_in(group, node.inputs[1]), context.threads}, x, dy,
                   std::move(options));
}

std::unique_ptr<Step> make_transposed_product(int64_t rows, int64_t in, int64_t out, size_t x, Form x_form, size_t dy,
                                              Form dy_form, MakeContext& context) {
  SlideSpec slide;
  slide.h = slide.oh = rows, slide.channels = in;
  if (auto step = make_amx_kernel_gradient("transposed_product", slide, out, x, x_form, dy, dy_form, {})) return step;
  return make_step("transposed_product", {rows, in, out, x_form, dy_form, context.threads}, x, dy, {});
}

}  // namespace cairn
