#include "engines/cpu/separable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/pixel_product.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/tile_step.h"
#include "support/memory.h"

namespace cairn {

namespace {

constexpr double kLeastBetween =
    512 << 10;  // bytes of an image that pass between the parts: less stays in the cache anyway
constexpr int64_t kBandBytes = 384 << 10;  // of what passes between them for some rows

/// A convolution with its epilogue, and the group of its own that it would be.
struct ChainedConv {
  Group group;
  Contraction contraction;

  const Node& node() const { return *contraction.node; }
  const Epilogue& epilogue() const { return contraction.epilogue; }
  int64_t channels() const { return last_dim(contraction.result); }
};

struct Separable {
  std::optional<ChainedConv> first, last;
  ChainedConv depthwise;
  SlideSpec slide;
  ConvSpec first_spec, last_spec;
};

/// The contraction `node` and what follows it in the group, up to the next contraction, with the casts that widen operands.
std::optional<ChainedConv> part_from(const Group& group, const Node& node) {
  ChainedConv part;
  std::vector<const Node*> nodes;
  const auto contains = [](const std::vector<const Node*>& all, const Node* one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  const auto add = [&](const Node& each) {
    for (const Value* input : each.inputs)
      if (input->producer && is_widening(*input->producer) && contains(group.nodes, input->producer) &&
          !contains(nodes, input->producer))
        nodes.push_back(input->producer);
    nodes.push_back(&each);
  };
  add(node);
  const Value* made = node.result(0);
  for (const Node* each : group.nodes) {
    if (std::find(each->inputs.begin(), each->inputs.end(), made) == each->inputs.end()) continue;
    if (each->op->has(kContraction)) break;
    add(*each);
    made = each->result(0);
  }
  if (is_widening(*nodes.back())) {  // for the next contraction
    made = nodes.back()->inputs[0];
    nodes.pop_back();
  }
  for (const Node* each : nodes)
    for (const Value* input : each->inputs) {
      auto& inputs = part.group.inputs;
      if (!contains(nodes, input->producer) && std::find(inputs.begin(), inputs.end(), input) == inputs.end())
        inputs.push_back(input);
    }
  part.group.nodes = std::move(nodes);
  part.group.outputs = {made};
  const auto contraction = as_contraction(part.group);
  if (!contraction) return std::nullopt;
  part.contraction = *contraction;
  return part;
}

/// The parts of the group in the order of their data.
std::vector<ChainedConv> convolutions_of(const Group& group) {
  std::vector<ChainedConv> parts;
  size_t nodes = 0;
  for (const Node* node : group.nodes) {
    if (!node->op->has(kContraction)) continue;
    auto part = part_from(group, *node);
    if (!part || (!parts.empty() && source_of(group, node->inputs[0]) != parts.back().contraction.result)) return {};
    nodes += part->group.nodes.size();
    parts.push_back(std::move(*part));
  }
  const bool whole = nodes == group.nodes.size() && group.outputs.size() == 1 && !parts.empty() &&
                     parts.back().contraction.result == group.outputs[0];
  return whole ? std::move(parts) : std::vector<ChainedConv>();
}

/// How the parts pass the value on: 16 bits would be widened at once, but for pairs of bf16 that the processor multiplies.
Form form_between(const Value* value) {
  const Form form = form_of(value->type.dtype);
  return form == Form::brains && machine_has_brain_products() ? form : Form::floats;
}

double bytes_between(const Value* value) {
  return static_cast<double>(bytes_of(form_between(value)) * dim(value, 1) * dim(value, 2) * last_dim(value));
}

Refusal read_separable(const Group& group, Separable& s) {
  const size_t contractions = static_cast<size_t>(std::count_if(
      group.nodes.begin(), group.nodes.end(), [](const Node* node) { return node->op->has(kContraction); }));
  if (contractions < 2 || contractions > 3) return "is not two or three convolutions";
  std::vector<ChainedConv> parts = convolutions_of(group);
  const auto depthwise =
      std::find_if(parts.begin(), parts.end(), [](const ChainedConv& part) { return is_depthwise(part.node()); });
  if (depthwise == parts.end() || depthwise - parts.begin() > 1 || parts.end() - depthwise > 2)
    return "has no depthwise convolution beside one by pixels";
  for (const ChainedConv& part : parts) {
    const bool depth = &part == &*depthwise, last = &part == &parts.back();
    if (!depth && !is_pixel_product(part.node())) return "has another convolution";
    if (!constant_of(part.node().inputs[1])) return "weights are computed in the run";
    const Value* bias = part.epilogue().bias;
    if (bias && !constant_of(bias)) return "a bias is computed in the run";
    if (part.epilogue().residual && (depth || !last)) return "adds a residual on the way";
  }
  const Node& node = depthwise->node();
  if (auto reason = read_depthwise(depthwise->group, s.slide)) return reason;
  if (s.slide.d != 1 || s.slide.kd != 1 || s.slide.n != dim(node.inputs[0], 0)) return "has other dims";
  if (!Slide::goes_by_rows(s.slide)) return "rows are short";
  double between = 0;
  for (size_t i = 0; i + 1 < parts.size(); ++i) between += bytes_between(parts[i].contraction.result);
  if (between < kLeastBetween) return "what passes between the parts stays in the cache anyway";
  const bool has_first = depthwise != parts.begin(), has_last = depthwise + 1 != parts.end();
  if (has_first) s.first = parts.front();
  if (has_last) s.last = parts.back();
  if (has_first)
    if (auto reason = read_pixel_product(s.first->group, s.first_spec)) return reason;
  if (has_last)
    if (auto reason = read_pixel_product(s.last->group, s.last_spec)) return reason;
  s.depthwise = parts[has_first ? 1 : 0];
  const auto pass_floats = [](const ChainedConv& from, NarrowEpilogue& narrow, Form& x_form) {
    if (form_between(from.contraction.result) == Form::floats) narrow = {}, x_form = Form::floats;
  };
  if (has_first) pass_floats(*s.first, s.first_spec.narrow, s.slide.x_form);
  if (has_last) pass_floats(s.depthwise, s.slide.narrow, s.last_spec.x_form);
  return std::nullopt;
}

class SeparableStep final : public Step {
 public:
  SeparableStep(const Group& group, const Separable& s, MakeContext& context)
      : spec_(s.slide), slide_(s.slide, machine_isa()), threads_(std::max(1, context.threads)) {
    if (s.first) first_.emplace(s.first->contraction, s.first_spec, group, context);
    if (s.last) last_.emplace(s.last->contraction, s.last_spec, group, context);
    x_ = index_of(group, (s.first ? *s.first : s.depthwise).node().inputs[0]);
    const Tensor& kernel = *constant_of(s.depthwise.node().inputs[1]);
    packed_ = context.packer.packed(kernel, slide_.layout(), slide_.packed_size() * sizeof(float), [&](void* to) {
      slide_.pack(kernel.data(), form_of(kernel.dtype()), static_cast<float*>(to));
    });
    const Value* bias = s.depthwise.epilogue().bias;
    bias_.resize(slide_.bias_size());
    slide_.pack_bias(bias ? floats_of(bias).data() : nullptr, bias_.data());
    const int64_t row = (first_ ? spec_.stride_h * wide_row() : 0) + (last_ ? made_row() : 0);
    band_ = std::clamp<int64_t>(kBandBytes / std::max<int64_t>(1, row), 2, spec_.oh);
    parts_ = threads_ == 1 ? 1 : std::min<int64_t>(spec_.oh, 2 * threads_);
    for (int64_t part = 0; part < parts_; ++part)
      each_band(part, [&](const Band& band) {
        most_wide_ = std::max(most_wide_, band.end - band.begin);
        if (first_ && band.end > band.fresh) first_->for_pixels((band.end - band.fresh) * spec_.w);
        if (last_) last_->for_pixels((band.last - band.first) * spec_.ow);
      });
  }

  void run(const StepArgs& args) const override {
    Executor& executor = executor_for(args, threads_);
    executor.run(static_cast<int>(spec_.n * parts_), [&](int chunk, int worker) {
      char* scratch = static_cast<char*>(args.workspace) + static_cast<size_t>(worker) * scratch_bytes();
      run_part(chunk / parts_, chunk % parts_, args, scratch, scratch + wide_bytes());
    });
  }

  std::string kernel() const override {
    return fmt::format("cpu/separable {}depthwise{} {}, {} rows at a time", first_ ? "product, " : "",
                       last_ ? ", product" : "", slide_.describe(), band_);
  }
  size_t workspace() const override { return scratch_bytes() * static_cast<size_t>(threads_); }
  bool reads(size_t input) const override { return input == x_ || (last_ && last_->residual() == input); }

 private:
  /// Rows [first, last) of the depthwise results, which read rows [begin, end); those from `fresh` on were not made yet.
  struct Band {
    int64_t first, last, begin, fresh, end;
  };
  template <class Each>
  void each_band(int64_t part, Each&& each) const {
    const SlideSpec& s = spec_;
    const int64_t end = s.oh * (part + 1) / parts_;
    int64_t made = 0;
    for (int64_t row = s.oh * part / parts_; row < end;) {
      Band band{row, std::min(end, row + band_), 0, 0, 0};
      band.begin = std::clamp<int64_t>(row * s.stride_h - s.pad_top, 0, s.h);
      band.end = std::clamp<int64_t>((band.last - 1) * s.stride_h - s.pad_top + (s.kh - 1) * s.dilation_h + 1, 0, s.h);
      band.fresh = std::clamp(made, band.begin, std::max(band.begin, band.end));
      made = std::max(made, band.end);
      each(band);
      row = band.last;
    }
  }

  void run_part(int64_t image, int64_t part, const StepArgs& args, char* wide, char* made) const {
    const SlideSpec& s = spec_;
    auto* widened = reinterpret_cast<float*>(made + made_bytes());
    const char* x = input<char>(args, x_) + image * s.h * (first_ ? s.w * first_->read() : wide_row());
    char* const y = output<char>(args) + image * s.oh * (last_ ? s.ow * last_->made() : made_row());
    const auto at = last_ ? last_->residual() : std::nullopt;
    const char* residual = at ? input<char>(args, *at) + image * s.oh * s.ow * last_->added() : nullptr;
    int64_t held = 0;  // the first row in `wide`
    each_band(part, [&](const Band& band) {
      if (first_) {
        if (band.fresh > band.begin && band.begin != held)
          std::memmove(wide, wide + (band.begin - held) * wide_row(),
                       static_cast<size_t>((band.fresh - band.begin) * wide_row()));
        held = band.begin;
        if (band.end > band.fresh)
          first_->run((band.end - band.fresh) * s.w, x + band.fresh * s.w * first_->read(), nullptr,
                      wide + (band.fresh - held) * wide_row(), widened);
      }
      slide_.run_rows(band.first, band.last, first_ ? wide - held * wide_row() : x,
                      static_cast<const float*>(packed_.get()), bias_.data(),
                      last_ ? made - band.first * made_row() : y);
      const int64_t to = band.first * s.ow;
      if (last_)
        last_->run((band.last - band.first) * s.ow, made, residual ? residual + to * last_->added() : nullptr,
                   y + to * last_->made(), widened);
    });
  }

  // Bytes.
  int64_t wide_row() const { return spec_.w * spec_.in_channels() * bytes_of(spec_.x_form); }
  int64_t made_row() const { return spec_.ow * spec_.channels * bytes_of(spec_.narrow.result); }
  size_t wide_bytes() const { return first_ ? whole_lines(static_cast<size_t>(most_wide_ * wide_row())) : 0; }
  size_t made_bytes() const { return last_ ? whole_lines(static_cast<size_t>(band_ * made_row())) : 0; }
  size_t scratch_bytes() const {
    const size_t widened = std::max(first_ ? first_->widened_size() : 0, last_ ? last_->widened_size() : 0);
    return wide_bytes() + made_bytes() + whole_lines(widened * sizeof(float));
  }

  SlideSpec spec_;
  Slide slide_;
  int threads_;
  std::optional<PixelProduct> first_, last_;
  size_t x_ = 0;
  std::shared_ptr<const void> packed_;
  std::vector<float> bias_;
  int64_t band_ = 1, parts_ = 1, most_wide_ = 0;
};

}  // namespace

bool is_depthwise(const Node& node) {
  return node.is("conv2d") && node.attr().integer("groups") > 1 &&
         node.attr().integer("groups") == last_dim(node.inputs[0]);
}

bool is_pixel_product(const Node& node) {
  if (!node.is("conv2d") || node.attr().integer("groups") != 1 || dim(node.inputs[1], 0) != 1 ||
      dim(node.inputs[1], 1) != 1)
    return false;
  const SlideSpec s = slide_of(node, {1, 1});
  return s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 && s.pad_left == 0 &&
         dim(node.inputs[0], 1) == dim(node.result(), 1) && dim(node.inputs[0], 2) == dim(node.result(), 2);
}

Refusal refuses_separable(const Group& group) {
  Separable separable;
  return read_separable(group, separable);
}

std::unique_ptr<Step> make_separable(const Group& group, MakeContext& context) {
  Separable separable;
  const Refusal refusal = read_separable(group, separable);
  CHECK(!refusal, "{}", *refusal);
  return std::make_unique<SeparableStep>(group, separable, context);
}

}  // namespace cairn
