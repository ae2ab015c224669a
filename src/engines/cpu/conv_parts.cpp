#include "engines/cpu/conv_parts.h"

#include <cstring>
#include <numeric>

#include "engines/cpu/call_step.h"
#include "engines/cpu/conv.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/slides.h"
#include "ops/shapes.h"

namespace cairn {

namespace {

/// One plain convolution: its offsets in x, y and the bias, and the taps of its kernel (see Conv::pack_taps).
struct Part {
  ConvSpec spec;
  int64_t x = 0, y = 0, bias = 0;
  Dims taps;
};

struct Parts {
  std::vector<Part> list;
  int64_t channels = 0;  // of x, that a part with merged groups reads
  int64_t channel_step = 0, output_step = 0;
  int64_t merged = 1;          // groups of channels that a part computes as one, with weights of 0 between them
  Form x_form = Form::floats;  // of what the step reads; the parts may take floats
  bool covers = true;          // the parts write every element of y
  /// Zero padding that the step adds around x first, so that large kernels are always inside the image.
  struct Border {
    int64_t n = 0, d = 0, h = 0, w = 0, pixel = 0;  // of x before padding
    int64_t front = 0, top = 0, left = 0, back = 0, bottom = 0, right = 0;
    int64_t slices() const { return front + d + back; }
    int64_t rows() const { return top + h + bottom; }
    int64_t row() const { return (left + w + right) * pixel; }
    size_t floats() const { return static_cast<size_t>(n * slices() * rows() * row()); }
  } border;
};

/// Changes the parts to work on a padded copy of x.
void pad_input(Parts& parts) {
  const ConvSpec& any = parts.list[0].spec;
  Parts::Border border{any.n, any.d, any.h, any.w, std::max(any.x_pixel, any.ic)};
  const auto reach = [](int64_t out, int64_t stride, int64_t taps, int64_t dilation, int64_t before) {
    return (out - 1) * stride + (taps - 1) * dilation + 1 - before;
  };
  for (const Part& part : parts.list) {
    const ConvSpec& s = part.spec;
    border.front = std::max(border.front, s.pad_front);
    border.top = std::max(border.top, s.pad_top), border.left = std::max(border.left, s.pad_left);
    border.back = std::max(border.back, reach(s.od, s.stride_d, s.kd, s.dilation_d, s.pad_front) - s.d);
    border.bottom = std::max(border.bottom, reach(s.oh, s.stride_h, s.kh, s.dilation_h, s.pad_top) - s.h);
    border.right = std::max(border.right, reach(s.ow, s.stride_w, s.kw, s.dilation_w, s.pad_left) - s.w);
  }
  for (Part& part : parts.list) {
    ConvSpec& s = part.spec;
    part.x += ((border.front - s.pad_front) * border.rows() + border.top - s.pad_top) * border.row() +
              (border.left - s.pad_left) * border.pixel;
    s.d = border.slices(), s.h = border.rows(), s.w = border.row() / border.pixel;
    s.pad_front = s.pad_top = s.pad_left = 0;
  }
  parts.border = border;
}

Refusal refuses_each(const Parts& parts) {
  for (const Part& part : parts.list)
    if (auto reason = Conv::refuses(part.spec, machine_isa())) return reason;
  return std::nullopt;
}
Refusal refuses_parts(Parts& parts) {
  if (!refuses_each(parts)) return std::nullopt;
  pad_input(parts);
  return refuses_each(parts);
}

/// Lets the parts compute with operands and results of 16 bits. Several parts read what is widened once.
Refusal read_forms(const Group& group, const Contraction& contraction, Parts& parts) {
  if (auto reason = not_floats(group)) return reason;
  const Node& node = *contraction.node;
  const Epilogue& epilogue = contraction.epilogue;
  parts.x_form = form_in(group, node.inputs[0]);
  const Form weights = form_in(group, node.inputs[1]);
  const Form precision = weights_precision(group, node.inputs[1], parts.x_form);
  const NarrowEpilogue narrow = narrow_of(group, epilogue);
  if (!parts.covers && epilogue.residual && narrow.residual != narrow.result)
    return "adds elements of another type to those without taps";
  const auto even = [&](const Part& part) {
    const ConvSpec& s = part.spec;
    const bool taps = std::all_of(part.taps.begin(), part.taps.end(), [](int64_t tap) { return tap % 2 == 0; });
    return s.ic % 2 == 0 && s.x_pixel % 2 == 0 && part.x % 2 == 0 && (parts.channel_step != 1 || taps);
  };
  const bool pairs = machine_has_brain_products() && parts.x_form == Form::brains &&
                     (weights == Form::brains || precision == Form::brains) && !parts.border.pixel &&
                     (parts.channel_step != 1 || parts.output_step % 2 == 0) &&
                     std::all_of(parts.list.begin(), parts.list.end(), even);
  for (Part& part : parts.list) {
    ConvSpec& s = part.spec;
    s.weights_form = weights, s.precision = precision, s.narrow = narrow;
    if (pairs) {
      s.arithmetic = Arithmetic::pairs, s.x_form = Form::brains;
      s.ic /= 2, s.x_pixel /= 2;
    } else if (parts.list.size() == 1 && !parts.border.pixel) {
      s.x_form = parts.x_form;
    }
  }
  return std::nullopt;
}

class PartsStep final : public Step {
 public:
  struct Inputs {
    size_t x, kernel, residual = SIZE_MAX;
    const Value* bias = nullptr;
  };

  PartsStep(const char* name, Parts parts, Inputs inputs, int64_t result, const Tensor* kernel, MakeContext& context)
      : name_(name), parts_(std::move(parts)), inputs_(inputs), workers_(context.threads) {
    result_bytes_ = static_cast<size_t>(result * bytes_of(spec().narrow.result));
    for (const Part& part : parts_.list) {  // groups differ in their places only
      const bool again = !convs_.empty() && part.spec == parts_.list[convs_.size() - 1].spec;
      convs_.push_back(again ? convs_.back() : std::make_shared<Conv>(part.spec, machine_isa(), context.threads));
      starts_.push_back(packed_floats_);
      packed_floats_ += (convs_.back()->packed_size() + 15) / 16 * 16;
    }
    pack_biases(context);
    if (!kernel) return;
    const std::string layout =
        fmt::format("{} parts of {} groups and {} at {} to {} by {} and {}", convs_.size(), parts_.merged,
                    convs_[0]->layout(), fmt::join(parts_.list.front().taps, ","),
                    fmt::join(parts_.list.back().taps, ","), parts_.channel_step, parts_.output_step);
    packed_ = context.packer.packed(*kernel, layout, packed_floats_ * sizeof(float), [&](void* to) {
      pack(serial_executor(), kernel->data(), static_cast<float*>(to));
    });
  }

  void run(const StepArgs& args) const override {
    const Form x_form = spec().x_form, residual_form = spec().narrow.residual, result = spec().narrow.result;
    auto* scratch = static_cast<float*>(args.workspace) + packed_here();
    const void* x = args.inputs[inputs_.x];
    if (parts_.border.pixel) x = padded(args, x, scratch);
    if (widens()) x = widened(args, x, scratch);
    const float* packed = static_cast<const float*>(packed_.get());
    const void* residual = inputs_.residual == SIZE_MAX ? args.outputs[0] : args.inputs[inputs_.residual];
    if (!packed) {
      pack(args.executor, args.inputs[inputs_.kernel], static_cast<float*>(args.workspace));
      packed = static_cast<const float*>(args.workspace);
    }
    if (!parts_.covers) residual = fill(args, residual);
    const auto* bias = static_cast<const float*>(bias_.get());
    // The scratch is for so many workers.
    Executor& executor = is_narrow(x_form) ? executor_for(args, workers_) : args.executor;
    for (size_t i = 0; i < convs_.size(); ++i) {
      const Part& part = parts_.list[i];
      convs_[i]->run(executor, at(x, part.x, x_form), packed + starts_[i], bias + bias_starts_[i],
                     at(residual, part.y, residual_form), const_cast<void*>(at(args.outputs[0], part.y, result)),
                     scratch);
    }
  }

  std::string kernel() const override {
    const std::string packing = packed_ ? "" : ", packed in the run";
    if (convs_.empty()) return fmt::format("cpu/{} of no taps", name_);
    const std::string border = parts_.border.pixel ? ", padded in the run" : "";
    return fmt::format("cpu/{} {} parts of {}{}{}", name_, convs_.size(), convs_[0]->describe(), packing, border);
  }
  size_t workspace() const override {
    const size_t x = widens()         ? static_cast<size_t>(x_elements())
                     : convs_.empty() ? 0
                                      : convs_[0]->widened_size(workers_);
    return (packed_here() + std::max(parts_.border.floats(), x)) * sizeof(float);
  }
  bool reads(size_t i) const override {
    return i == inputs_.x || i == inputs_.residual || (i == inputs_.kernel && !packed_);
  }
  // Only the residual: other tiles still read the other inputs.
  std::vector<size_t> in_place() const override {
    const size_t residual = inputs_.residual;
    const bool alone = residual != SIZE_MAX && residual != inputs_.x && residual != inputs_.kernel &&
                       bytes_of(spec().narrow.residual) == bytes_of(spec().narrow.result);
    return alone ? std::vector<size_t>{residual} : std::vector<size_t>{};
  }

 private:
  static const void* at(const void* data, int64_t place, Form form) {
    return static_cast<const char*>(data) + place * bytes_of(form);
  }
  const ConvSpec& spec() const {
    static const ConvSpec none;
    return parts_.list.empty() ? none : parts_.list[0].spec;
  }
  // Whether the step widens x for all parts.
  bool widens() const { return is_narrow(parts_.x_form) && spec().x_form == Form::floats && !parts_.border.pixel; }
  int64_t x_elements() const { return spec().n * spec().d * spec().h * spec().w * std::max(spec().x_pixel, spec().ic); }
  const float* widened(const StepArgs& args, const void* x, float* to) const {
    for_ranges(args.executor, x_elements(), 1, [&](int64_t first, int64_t last) {
      widen(parts_.x_form, last - first, at(x, first, parts_.x_form), to + first);
    });
    return to;
  }

  // Fills y with the residual or 0, for elements that no part writes. Returns the address of the residual from then on.
  const void* fill(const StepArgs& args, const void* residual) const {
    constexpr size_t kBlock = 256 << 10;
    auto* to = static_cast<char*>(args.outputs[0]);
    const auto* from = static_cast<const char*>(residual);
    if (inputs_.residual != SIZE_MAX && from == to) return residual;
    args.executor.run(static_cast<int>((result_bytes_ + kBlock - 1) / kBlock), [&](int block, int) {
      const size_t at = static_cast<size_t>(block) * kBlock, bytes = std::min(kBlock, result_bytes_ - at);
      if (inputs_.residual == SIZE_MAX)
        std::memset(to + at, 0, bytes);
      else
        std::memcpy(to + at, from + at, bytes);
    });
    return args.outputs[0];
  }

  // Floats of the packed kernel at the start of the workspace.
  size_t packed_here() const { return packed_ ? 0 : packed_floats_; }

  const float* padded(const StepArgs& args, const void* x, float* to) const {
    const Parts::Border& b = parts_.border;
    for_each(args.executor, b.n * b.slices() * b.rows(), b.row(), [&](int64_t i) {
      const int64_t row = i % b.rows() - b.top, slice = i / b.rows() % b.slices() - b.front;
      const int64_t image = i / b.rows() / b.slices();
      float* place = to + i * b.row();
      if (row < 0 || row >= b.h || slice < 0 || slice >= b.d) {
        std::fill_n(place, b.row(), 0.f);
        return;
      }
      place = std::fill_n(place, b.left * b.pixel, 0.f);
      const int64_t from = ((image * b.d + slice) * b.h + row) * b.w * b.pixel;
      widen(parts_.x_form, b.w * b.pixel, at(x, from, parts_.x_form), place);
      std::fill_n(place + b.w * b.pixel, b.right * b.pixel, 0.f);
    });
    return to;
  }

  void pack(Executor& executor, const void* kernel, float* to) const {
    for (size_t i = 0; i < convs_.size(); ++i) {
      const std::vector<char> merged = parts_.merged > 1 ? merged_kernel(parts_.list[i], kernel) : std::vector<char>();
      executor.run(convs_[i]->panels(), [&](int panel, int) {
        convs_[i]->pack_taps(panel, merged.empty() ? kernel : merged.data(), parts_.list[i].taps, parts_.channel_step,
                             parts_.output_step, to + starts_[i]);
      });
    }
  }

  // The kernel of the part's channels, with 0 where input and output belong to different groups.
  std::vector<char> merged_kernel(const Part& part, const void* kernel) const {
    const int64_t groups = parts_.merged, ic = parts_.channels / groups, oc = part.spec.oc / groups;
    const int64_t all = part.spec.oc * std::ssize(parts_.list), rows = std::ssize(part.taps) * ic;
    const Form form = part.spec.weights_form;
    std::vector<char> to(static_cast<size_t>(rows * groups * part.spec.oc * bytes_of(form)));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t place = ((row / ic * groups + g) * ic + row % ic) * part.spec.oc + g * oc;
        std::memcpy(to.data() + place * bytes_of(form), at(kernel, row * all + part.bias + g * oc, form),
                    static_cast<size_t>(oc * bytes_of(form)));
      }
    return to;
  }

  void pack_biases(MakeContext& context) {
    static const Tensor zero = Tensor::zeros(kF32, {1});
    const Tensor* bias = inputs_.bias ? constant_of(inputs_.bias) : nullptr;
    size_t floats = 0;
    for (const auto& conv : convs_) {
      bias_starts_.push_back(floats);
      floats += conv->bias_size();
    }
    const std::string layout = fmt::format("{}{} of {} parts", bias ? "bias" : "zeros", floats, convs_.size());
    bias_ = context.packer.packed(bias ? *bias : zero, layout, floats * sizeof(float), [&](void* to) {
      for (size_t i = 0; i < convs_.size(); ++i)
        convs_[i]->pack_bias(bias ? bias->values<float>().data() + parts_.list[i].bias : nullptr,
                             static_cast<float*>(to) + bias_starts_[i]);
    });
  }

  const char* name_;
  Parts parts_;
  Inputs inputs_;
  size_t result_bytes_ = 0, packed_floats_ = 0;
  int workers_;
  std::vector<std::shared_ptr<const Conv>> convs_;
  std::vector<size_t> starts_, bias_starts_;
  std::shared_ptr<const void> packed_, bias_;
};

Refusal refuses_bias(const Epilogue& epilogue) {
  const Tensor* bias = epilogue.bias ? constant_of(epilogue.bias) : nullptr;
  return epilogue.bias && !(bias && bias->dtype() == kF32) ? Refusal("bias is no constant of f32") : std::nullopt;
}

/// How many groups to compute as one convolution of pairs of bf16: a vector has 16 results, and matrix registers take 32 elements by 16
/// results, however many of them are 0. The least time, and of equal ones the fewest parts.
int64_t groups_to_merge(const Group& group, const Node& node, int64_t groups, ConvSpec spec) {
  const Form x_form = form_in(group, node.inputs[0]), weights = form_in(group, node.inputs[1]);
  if (x_form != Form::brains || !machine_has_brain_products() || !constant_of(node.inputs[1])) return 1;
  if (weights != Form::brains && weights_precision(group, node.inputs[1], x_form) != Form::brains) return 1;
  int64_t best = 1, least = INT64_MAX;
  for (int64_t merged = 1; merged <= groups && merged * spec.ic <= 64; merged *= 2) {
    ConvSpec all = spec;
    all.ic = merged * spec.ic / 2, all.arithmetic = Arithmetic::pairs;
    const bool even = merged * spec.ic % 2 == 0;
    if (groups % merged != 0 || (!even && merged > 1)) continue;
    const bool registers = even && Conv::suits_matrix_registers(all, machine_isa());
    const int64_t steps = registers ? (all.ic + 15) / 16 : even ? all.ic : spec.ic;
    const int64_t time = groups / merged * steps * ((merged * spec.oc + 15) / 16);
    if (time <= least) best = merged, least = time;
  }
  return best;
}

/// A convolution with several groups, or with a kernel that is too large for the tile without padding of x.
Refusal read_grouped(const Group& group, Contraction& contraction, Parts& parts) {
  const auto found = as_contraction(group);
  if (!found || !is_convolution(*found->node, ConvRole::forward)) return "is no convolution";
  contraction = *found;
  if (auto reason = refuses_bias(contraction.epilogue)) return reason;
  const Node& node = *contraction.node;
  const int64_t groups = node.attr().integer("groups"), all = last_dim(node.inputs[1]);
  if (*element_count(node.result()->type.shape.sizes()) == 0) return "has no elements";
  const SlideSpec slide = convolution_of(node, node.inputs[0], node.result(), node.inputs[1]);
  if (slide.channels == groups && not_f32(group)) return "convolutions by channels are faster as f32";
  Part part;
  ConvSpec& spec = part.spec = conv_spec(slide, all / groups);
  spec.ic = slide.channels / groups;
  const int64_t merged = parts.merged = groups_to_merge(group, node, groups, spec);
  spec.ic *= merged, spec.oc *= merged;
  spec.x_pixel = slide.channels, spec.y_pixel = all;
  spec.residual = contraction.epilogue.residual != nullptr;
  spec.activation = activation_of(contraction.epilogue);
  parts.channels = spec.ic;
  parts.channel_step = merged > 1 ? spec.oc : all, parts.output_step = 1;
  for (int64_t g = 0; g < groups / merged; ++g) {
    part.x = g * spec.ic, part.y = part.bias = g * spec.oc;
    part.taps.clear();
    for (int64_t tap = 0; tap < spec.taps(); ++tap)
      part.taps.push_back(tap * spec.ic * parts.channel_step + (merged > 1 ? 0 : g * spec.oc));
    parts.list.push_back(part);
  }
  if (auto reason = refuses_parts(parts)) return reason;
  return read_forms(group, contraction, parts);
}

/// The pixels first, first + stride, ... of the image along one dim: the taps that reach them make up a convolution of
/// dy.
struct Phase {
  int64_t first = 0, size = 0;  // pixels
  int64_t pad = 0, dilation = 1;
  Dims taps;  // of the forward kernel, in reverse order
};

std::vector<Phase> phases_of(int64_t size, int64_t taps, int64_t stride, int64_t dilation, int64_t pad) {
  std::vector<Phase> phases;
  for (int64_t first = 0; first < std::min(stride, size); ++first) {
    Phase phase{first, (size - first + stride - 1) / stride, 0, dilation / std::gcd(stride, dilation), {}};
    for (int64_t tap = taps - 1; tap >= 0; --tap) {
      const int64_t distance = first + pad - tap * dilation;  // to the element of dy, in pixels of x
      if (distance % stride != 0) continue;
      if (phase.taps.empty()) phase.pad = -(distance / stride);
      phase.taps.push_back(tap);
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

/// The convolutions of dy that give the pixels of these phases, one for each group of channels.
void add_parts(const SlideSpec& s, int64_t all, int64_t groups, const Phase& z, const Phase& y, const Phase& x,
               const Epilogue& epilogue, Parts& parts) {
  if (z.taps.empty() || y.taps.empty() || x.taps.empty()) {
    parts.covers = false;
    return;
  }
  Part part;
  ConvSpec& spec = part.spec;
  spec.n = s.n, spec.d = s.od, spec.h = s.oh, spec.w = s.ow;
  spec.ic = all / groups, spec.oc = s.channels / groups;
  spec.od = z.size, spec.oh = y.size, spec.ow = x.size;
  spec.kd = std::ssize(z.taps), spec.kh = std::ssize(y.taps), spec.kw = std::ssize(x.taps);
  spec.dilation_d = z.dilation, spec.dilation_h = y.dilation, spec.dilation_w = x.dilation;
  spec.pad_front = z.pad, spec.pad_top = y.pad, spec.pad_left = x.pad;
  spec.x_pixel = all, spec.y_pixel = s.stride_w * s.channels, spec.y_row = s.stride_h * s.w * s.channels;
  spec.y_slice = s.stride_d * s.h * s.w * s.channels, spec.y_image = s.pixels() * s.channels;
  spec.residual = epilogue.residual != nullptr;
  spec.activation = activation_of(epilogue);
  for (int64_t g = 0; g < groups; ++g) {
    part.x = g * spec.ic, part.bias = g * spec.oc;
    part.y = ((z.first * s.h + y.first) * s.w + x.first) * s.channels + g * spec.oc;
    part.taps.clear();
    for (int64_t d : z.taps)
      for (int64_t h : y.taps)
        for (int64_t w : x.taps) part.taps.push_back(((d * s.kh + h) * s.kw + w) * spec.oc * all + g * spec.ic);
    parts.list.push_back(part);
  }
}

Refusal read_input_gradient(const Group& group, Contraction& contraction, Parts& parts) {
  const auto found = as_contraction(group);
  if (!found || !is_convolution(*found->node, ConvRole::input_gradient)) return "is another operation";
  contraction = *found;
  if (auto reason = refuses_bias(contraction.epilogue)) return reason;
  const Node* node = contraction.node;
  const Value *dy = node->inputs[0], *kernel = node->inputs[1], *dx = node->result();
  if (*element_count(dx->type.shape.sizes()) == 0 || *element_count(dy->type.shape.sizes()) == 0)
    return "has no elements";
  const int64_t groups = node->attr().integer("groups"), all = last_dim(kernel);
  const bool residual = contraction.epilogue.residual != nullptr;
  if (residual && groups > 1) return "takes an addition with one group only";
  const SlideSpec s = convolution_of(*node, dx, dy, kernel);
  const auto slices = phases_of(s.d, s.kd, s.stride_d, s.dilation_d, s.pad_front);
  const auto rows = phases_of(s.h, s.kh, s.stride_h, s.dilation_h, s.pad_top);
  const auto columns = phases_of(s.w, s.kw, s.stride_w, s.dilation_w, s.pad_left);
  parts.channel_step = 1, parts.output_step = all;
  for (const Phase& z : slices)
    for (const Phase& y : rows)
      for (const Phase& x : columns) add_parts(s, all, groups, z, y, x, contraction.epilogue, parts);
  if (parts.list.empty()) return "has no taps";
  if (!parts.covers && (contraction.epilogue.bias || contraction.epilogue.activation))
    return "takes no bias and no activation of elements without taps";
  if (auto reason = refuses_parts(parts)) return reason;
  return read_forms(group, contraction, parts);
}

}  // namespace

Refusal refuses_grouped(const Group& group) {
  Contraction contraction;
  Parts parts;
  return read_grouped(group, contraction, parts);
}

std::unique_ptr<Step> make_grouped(const Group& group, MakeContext& context) {
  Contraction contraction;
  Parts parts;
  const Refusal refusal = read_grouped(group, contraction, parts);
  CHECK(!refusal, "{}", *refusal);
  const Node& node = *contraction.node;
  PartsStep::Inputs inputs{index_of(group, node.inputs[0]), index_of(group, node.inputs[1])};
  inputs.bias = contraction.epilogue.bias;
  if (contraction.epilogue.residual) inputs.residual = index_of(group, contraction.epilogue.residual);
  return std::make_unique<PartsStep>("grouped", std::move(parts), inputs, 0, constant_of(node.inputs[1]), context);
}

Refusal refuses_input_gradient(const Group& group) {
  Contraction contraction;
  Parts parts;
  return read_input_gradient(group, contraction, parts);
}

std::unique_ptr<Step> make_input_gradient(const Group& group, MakeContext& context) {
  Contraction contraction;
  Parts parts;
  const Refusal refusal = read_input_gradient(group, contraction, parts);
  CHECK(!refusal, "{}", *refusal);
  const Node& node = *contraction.node;
  PartsStep::Inputs inputs{index_of(group, node.inputs[0]), index_of(group, node.inputs[1])};
  inputs.bias = contraction.epilogue.bias;
  if (contraction.epilogue.residual) inputs.residual = index_of(group, contraction.epilogue.residual);
  const int64_t result = *element_count(node.result()->type.shape.sizes());
  return std::make_unique<PartsStep>("input_gradient", std::move(parts), inputs, result, constant_of(node.inputs[1]),
                                     context);
}

}  // namespace cairn
