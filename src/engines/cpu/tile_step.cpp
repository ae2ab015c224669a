#include "engines/cpu/tile_step.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engines/cpu/call_step.h"
#include "engines/cpu/conv.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/kernel_gradient.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/step_bias.h"
#include "engines/cpu/stored_weights.h"
#include "support/memory.h"

namespace cairn {

namespace {

using Refusal = std::optional<std::string>;
using Dims = std::vector<int64_t>;

// Products of up to so many rows expand stored weights in registers, those of more a panel at a time. Of pairs of bf16 each takes
// one instruction.
constexpr int64_t kFewExpandedRows = 12, kFewPairedRows = 256;

size_t dims_of(const Value* value) { return value->type.shape.rank(); }

/// A contraction in the tile's terms: one convolution, or `offsets.size()` products of equal size.
struct TileProblem {
  Contraction contraction;
  ConvSpec spec;
  const Value *x = nullptr, *weights = nullptr;  // the node's operands
  bool transposed = false;                       // weights of a product are [n, k]
  std::optional<StoredWeights> stored;
  struct Offsets {
    int64_t x, weights;  // of one product, in elements; the results are contiguous
  };
  std::vector<Offsets> offsets = {{0, 0}};
  // Pairs of an odd number of channels: x, of these sizes, is copied with a channel of zeros and zeros for what is outside.
  std::optional<ConvSpec> odd;
};

Refusal read_conv(TileProblem& problem) {
  const Node& node = *problem.contraction.node;
  if (node.attr().integer("groups") != 1) return "has groups";
  const SlideSpec slide = convolution_of(node, node.inputs[0], node.result(), node.inputs[1]);
  problem.spec = conv_spec(slide, last_dim(node.inputs[1]));
  return std::nullopt;
}

/// The offset of each matrix of an operand whose batch dims are broadcast to `batch`.
std::vector<int64_t> matrix_offsets(Dims operand, const Dims& batch) {
  const int64_t size = operand[operand.size() - 1] * operand[operand.size() - 2];
  operand.resize(operand.size() - 2);
  operand.insert(operand.begin(), batch.size() - operand.size(), 1);
  std::vector<int64_t> offsets{0};
  for (size_t axis = 0; axis < batch.size(); ++axis) {
    std::vector<int64_t> next;
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < batch[axis]; ++i) next.push_back(offset * operand[axis] + (operand[axis] == 1 ? 0 : i));
    offsets = std::move(next);
  }
  for (int64_t& offset : offsets) offset *= size;
  return offsets;
}

constexpr int64_t kMostProducts = 1 << 20;

Refusal set_offsets(TileProblem& problem, const Dims& x, const Dims& weights, const Dims& batch) {
  if (*element_count(batch) > kMostProducts) return fmt::format("has more than {} matrices", kMostProducts);
  const auto from = matrix_offsets(x, batch), by = matrix_offsets(weights, batch);
  problem.offsets.clear();
  for (size_t i = 0; i < from.size(); ++i) problem.offsets.push_back({from[i], by[i]});
  return std::nullopt;
}

/// Products of matrices `a` and single columns `b`: the matrices are the weights.
Refusal read_column(TileProblem& problem, const Dims& a, const Dims& b, const Dims& batch) {
  ConvSpec& spec = problem.spec;
  std::swap(problem.x, problem.weights);
  spec.oc = a[a.size() - (spec.transposed_x ? 1 : 2)];
  problem.transposed = !std::exchange(spec.transposed_x, false);
  return set_offsets(problem, b, a, batch);
}

Refusal read_product(TileProblem& problem) {
  const Node& node = *problem.contraction.node;
  const Dims a = node.inputs[0]->type.shape.sizes(), b = node.inputs[1]->type.shape.sizes();
  const Dims result = node.result()->type.shape.sizes();
  ConvSpec& spec = problem.spec;
  problem.transposed = node.attr().boolean("transpose_b");
  spec.transposed_x = node.attr().boolean("transpose_a");
  spec.ic = a[a.size() - (spec.transposed_x ? 2 : 1)];
  spec.oc = result.back();
  const Dims batch(result.begin(), result.end() - 2);
  // The column that a matrix makes of a vector is the row that the vector makes of the transposed matrix.
  const bool is_column = spec.oc == 1 && !problem.contraction.epilogue.bias && !problem.contraction.stored;
  if (is_column && (constant_of(node.inputs[0]) || (spec.transposed_x && a.size() == 2 && b.size() == 2)))
    return read_column(problem, a, b, batch);
  if (b.size() == 2 && !spec.transposed_x) {  // the rows of all matrices form one list
    spec.w = spec.ow = *element_count(a) / std::max<int64_t>(1, spec.ic);
    return std::nullopt;
  }
  spec.w = spec.ow = result[result.size() - 2];
  return set_offsets(problem, a, b, batch);
}

Refusal read_stored(TileProblem& problem) {
  const Node& node = *problem.contraction.node;
  ConvSpec& spec = problem.spec;
  const bool product = node.is("matmul");
  problem.stored = stored_weights(*problem.contraction.stored, problem.transposed);
  if (!problem.stored || (!product && problem.stored->scale) || (product && dims_of(node.inputs[1]) != 2) ||
      problem.weights != node.inputs[1] || spec.transposed_x)
    return "weights are stored as no tile reads them";
  spec.packed_in_run = false;
  if (spec.arithmetic == Arithmetic::pairs) {  // they are as small when they are packed as others are
    problem.weights = problem.stored->codes;
    problem.stored.reset();
    return std::nullopt;
  }
  spec.widest_panel = product;
  const bool pairs = problem.stored->stored == Stored::brains;
  const int64_t pixels = spec.n * spec.od * spec.oh * spec.ow, few = pairs ? kFewPairedRows : kFewExpandedRows;
  spec.expands = (!product && (!pairs || spec.taps() > 1)) || pixels > few || machine_isa() == Isa::none;
  if (spec.expands) return std::nullopt;
  spec.stored = problem.stored->stored, spec.block = problem.stored->block, spec.zeros = problem.stored->zeros;
  return std::nullopt;
}

/// Whether x and weights are bf16 with pairs of channels side by side in both, or in copies with one more.
bool can_pair(const TileProblem& problem) {
  const ConvSpec& spec = problem.spec;
  const bool dot = machine_has_brain_products() && spec.x_form == Form::brains &&
                   (spec.weights_form == Form::brains || spec.precision == Form::brains);
  const bool even = spec.ic % 2 == 0 || (constant_of(problem.weights) && problem.offsets.size() == 1);
  return dot && even && spec.ic > 0 && !spec.transposed_x;
}

/// The same convolution of images that hold all that windows read.
ConvSpec with_zeros_around(ConvSpec s) {
  const auto reach = [](int64_t out, int64_t taps, int64_t stride, int64_t dilation) {
    return (out - 1) * stride + (taps - 1) * dilation + 1;
  };
  s.d = reach(s.od, s.kd, s.stride_d, s.dilation_d), s.h = reach(s.oh, s.kh, s.stride_h, s.dilation_h);
  s.w = reach(s.ow, s.kw, s.stride_w, s.dilation_w);
  s.pad_front = s.pad_top = s.pad_left = 0;
  return s;
}

/// Types of the operands and the result.
Refusal read_forms(const Group& group, TileProblem& problem) {
  const Epilogue& epilogue = problem.contraction.epilogue;
  ConvSpec& spec = problem.spec;
  if (!problem.contraction.stored)
    if (auto reason = not_floats(group)) return reason;
  spec.x_form = form_in(group, problem.x), spec.weights_form = form_in(group, problem.weights);
  spec.precision = weights_precision(group, problem.weights, spec.x_form);
  if (precision_in(group, problem.x) != Form::floats) return "rounds what it does not pack";
  spec.narrow = narrow_of(group, epilogue);
  if (can_pair(problem)) {
    spec.arithmetic = Arithmetic::pairs;
    if (spec.ic % 2 != 0) problem.odd = std::exchange(spec, with_zeros_around(spec));
    spec.ic = (spec.ic + 1) / 2;
  }
  for (const Value* value : {problem.x, epilogue.bias, epilogue.residual})
    if (const Value* source = value ? source_of(group, value) : nullptr;
        source && source->type.dtype != kF32 && !is_narrow(source->type.dtype))
      return fmt::format("an operand is {}, takes floats up to f32", to_string(source->type.dtype));
  return std::nullopt;
}

Refusal read_tile(const Group& group, TileProblem& problem) {
  auto contraction = as_contraction(group);
  if (!contraction) contraction = as_stored_contraction(group);
  if (!contraction) return "is no matrix product or convolution with bias, addition and activation";
  problem.contraction = *contraction;
  if (*element_count(contraction->node->result()->type.shape.sizes()) == 0) return "has no elements";
  const bool product = contraction->node->is("matmul");
  if (!product && !is_convolution(*contraction->node, ConvRole::forward)) return "is another contraction";
  problem.x = contraction->node->inputs[0], problem.weights = contraction->node->inputs[1];
  if (auto reason = product ? read_product(problem) : read_conv(problem)) return reason;
  if (auto reason = read_forms(group, problem)) return reason;
  problem.spec.residual = contraction->epilogue.residual != nullptr;
  problem.spec.activation = activation_of(contraction->epilogue);
  problem.spec.packed_in_run = !constant_of(problem.weights);
  problem.spec.plain_weights = product && !problem.transposed;
  if (contraction->stored)
    if (auto reason = read_stored(problem)) return reason;
  return Conv::refuses(problem.spec, machine_isa());
}

/// Whether it is a plain product with many rows of a transposed x.
bool reads_far_rows(const TileProblem& problem) {
  const ConvSpec& spec = problem.spec;
  const Epilogue& epilogue = problem.contraction.epilogue;
  const bool plain = !epilogue.bias && !epilogue.residual && spec.activation.kind == Activation::Kind::none;
  return spec.transposed_x && !problem.stored && !spec.narrow.acts() && !problem.transposed && plain &&
         problem.offsets.size() == 1 && has_many_transposed_rows(spec.ic, spec.w, spec.oc);
}

/// Pixels of an odd number of channels, with a zero behind each.
void pad_pixels(const uint16_t* from, int64_t pixels, int64_t channels, uint16_t* to) {
  int64_t i = 0;
  for (; channels == 3 && i + 1 < pixels; ++i) {
    uint64_t pixel = 0;
    std::memcpy(&pixel, from + i * 3, sizeof(pixel));
    pixel &= 0xffffffffffff;
    std::memcpy(to + i * 4, &pixel, sizeof(pixel));
  }
  for (; i < pixels; ++i) {
    std::copy_n(from + i * channels, channels, to + i * (channels + 1));
    to[i * (channels + 1) + channels] = 0;
  }
}

/// Images as with_zeros_around() wants them for `s`.
void pad_images(Executor& executor, const ConvSpec& s, const uint16_t* from, uint16_t* to) {
  const ConvSpec padded = with_zeros_around(s);
  const int64_t channels = s.ic + 1, left = std::min(s.pad_left, padded.w),
                inside = std::clamp<int64_t>(padded.w - left, 0, s.w);
  for_each(executor, s.n * padded.d * padded.h, padded.w * channels, [&](int64_t row) {
    const int64_t y = row % padded.h - s.pad_top, z = row / padded.h % padded.d - s.pad_front;
    uint16_t *const start = to + row * padded.w * channels, *const end = start + padded.w * channels;
    if (y < 0 || y >= s.h || z < 0 || z >= s.d) return std::fill(start, end, 0);
    uint16_t* const first = std::fill_n(start, left * channels, 0);
    const int64_t image = row / (padded.h * padded.d);
    pad_pixels(from + ((image * s.d + z) * s.h + y) * s.w * s.ic, inside, s.ic, first);
    std::fill(first + inside * channels, end, 0);
  });
}

/// Blocks of memory with zeros behind each.
std::vector<char> with_zeros(const void* from, int64_t blocks, int64_t bytes, int64_t zeros) {
  std::vector<char> padded(static_cast<size_t>(blocks * (bytes + zeros)));
  for (int64_t i = 0; i < blocks; ++i)
    std::memcpy(padded.data() + i * (bytes + zeros), static_cast<const char*>(from) + i * bytes,
                static_cast<size_t>(bytes));
  return padded;
}

const float* floats(const void* data) { return static_cast<const float*>(data); }

constexpr size_t kNone = StepBias::kNone;

class TileStep final : public Step {
 public:
  TileStep(const Group& group, TileProblem problem, MakeContext& context)
      : conv_(problem.spec, machine_isa(), context.threads), spec_(problem.spec), transposed_(problem.transposed),
        odd_(problem.odd), offsets_(std::move(problem.offsets)), workers_(context.threads) {
    const Epilogue& epilogue = problem.contraction.epilogue;
    x_ = index_of(group, problem.x);
    weights_ = index_of(group, problem.stored ? problem.stored->codes : problem.weights);
    residual_ = epilogue.residual ? index_of(group, epilogue.residual) : kNone;
    const Tensor* weights = constant_of(problem.weights);
    if (problem.stored) pack(*problem.stored, context);
    keeps_ = !weights && !problem.stored && !problem.spec.packed_in_run;
    if (weights && !problem.stored) pack(*weights, context);
    bias_.read(group, conv_, epilogue, context);
  }

  void run(const StepArgs& args) const override {
    const float* bias = bias_.get(args, static_cast<char*>(args.workspace));
    auto* y = static_cast<char*>(args.outputs[0]);
    const auto* residual = residual_ == kNone ? y : static_cast<const char*>(args.inputs[residual_]);
    const void* x = args.inputs[x_];
    Executor& all = executor_for(args, workers_);
    auto* scratch = reinterpret_cast<float*>(static_cast<char*>(args.workspace) + bias_.workspace());
    if (odd_) {
      auto* even = reinterpret_cast<uint16_t*>(scratch);
      pad_images(args.executor, *odd_, static_cast<const uint16_t*>(x), even);
      x = even, scratch += padded_floats();
    }
    if (expands_) return expand(all, x, scratch, bias, residual, y);
    if ((packed_ && offsets_.size() == 1) || keeps_)
      return conv_.run(is_narrow(spec_.x_form) ? all : args.executor, x, floats(keeps_ ? args.kept : packed_.get()),
                       bias, residual, y, scratch);
    const int64_t result = spec_.n * spec_.oh * spec_.ow * spec_.oc;
    const auto product = [&](size_t i, Executor& executor, float* packed) {
      const int64_t at = static_cast<int64_t>(i) * result;
      const void *from = place(x, offsets_[i].x, spec_.x_form), *added = place(residual, at, spec_.narrow.residual);
      char* to = y + at * bytes_of(spec_.narrow.result);
      if (packed_)
        return conv_.run(executor, from, floats(packed_.get()) + matrices_[i] * conv_.packed_size(), bias, added, to,
                         packed + packed_floats());
      conv_.pack_and_run(executor, from, place(args.inputs[weights_], offsets_[i].weights, spec_.weights_form),
                         transposed_, packed, bias, added, to, packed + packed_floats());
    };
    const auto products = static_cast<int>(offsets_.size());
    if (packers() == 1 || args.executor.width() > workers_) {
      for (int i = 0; i < products; ++i)
        product(static_cast<size_t>(i), is_narrow(spec_.x_form) ? all : args.executor, scratch);
      return;
    }
    const int each = std::max(1, products / (8 * workers_));
    args.executor.run((products + each - 1) / each, [&](int chunk, int worker) {
      for (int i = chunk * each; i < std::min(products, (chunk + 1) * each); ++i)
        product(static_cast<size_t>(i), serial_executor(), scratch + static_cast<size_t>(worker) * scratch_floats());
    });
  }

  size_t kept() const override { return keeps_ ? conv_.packed_size() * 4 : 0; }
  void keep(const StepArgs& args) const override {
    const void* weights = args.inputs[weights_];
    args.executor.run(conv_.panels(), [&](int panel, int) {
      conv_.pack_panel(panel, weights, static_cast<float*>(args.kept), transposed_);
    });
  }

  std::string kernel() const override {
    static constexpr std::array<const char*, 5> kStored = {"", ", f16 weights", ", bf16 weights", ", weights of 8 bits",
                                                           ", weights of 4 bits"};
    const std::string batch = offsets_.size() > 1 ? fmt::format(", {} products", offsets_.size()) : "";
    return fmt::format("cpu/tile {}{}{}{}{}", conv_.describe(), batch, kStored[static_cast<size_t>(layout_.stored)],
                       expands_ ? " expanded" : "",
                       packed_  ? ""
                       : keeps_ ? ", packed before the loop"
                                : ", packed in the run");
  }
  size_t workspace() const override {
    if (expands_) return bias_.workspace() + (expanded_floats() + conv_.widened_size(1)) * 4;
    const bool whole = (packed_ && offsets_.size() == 1) || keeps_;
    return bias_.workspace() + padded_floats() * 4 +
           (whole ? conv_.widened_size(workers_) : scratch_floats() * packers()) * 4;
  }
  bool reads(size_t input) const override {
    return input == x_ || input == residual_ || input == bias_.input() || (input == weights_ && !packed_);
  }
  // Only the residual: other tiles still read the other inputs.
  std::vector<size_t> in_place() const override {
    const bool alone = residual_ != kNone && residual_ != x_ && residual_ != weights_ && residual_ != bias_.input() &&
                       bytes_of(spec_.narrow.residual) == bytes_of(spec_.narrow.result);
    return alone ? std::vector<size_t>{residual_} : std::vector<size_t>{};
  }

 private:
  static const void* place(const void* data, int64_t at, Form form) {
    return static_cast<const char*>(data) + at * bytes_of(form);
  }
  int64_t pixels() const { return spec_.n * spec_.d * spec_.h * spec_.w; }
  size_t padded_floats() const { return odd_ ? static_cast<size_t>((pixels() * spec_.ic + 15) / 16 * 16) : 0; }
  /// Packs each matrix of constant weights once, unless panels would be mostly padding.
  void pack(const Tensor& weights, MakeContext& context) {
    std::vector<int64_t> starts;
    for (const TileProblem::Offsets& each : offsets_) starts.push_back(each.weights);
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    const size_t count = starts.size(), size = conv_.packed_size();
    if (count > 1 && static_cast<int64_t>(count * size) > weights.count() * 2) return;
    for (const TileProblem::Offsets& each : offsets_)
      matrices_.push_back(
          static_cast<size_t>(std::lower_bound(starts.begin(), starts.end(), each.weights) - starts.begin()));
    std::vector<char> even;
    if (odd_) {
      const int64_t channels = odd_->ic, beside = transposed_ ? 1 : spec_.oc,
                    blocks = transposed_ ? spec_.oc : spec_.taps(), bytes = bytes_of(spec_.weights_form);
      even = with_zeros(weights.data(), blocks, channels * beside * bytes, beside * bytes);
    }
    const void* from = odd_ ? even.data() : weights.data();
    const std::string name = conv_.layout() + (odd_ ? " padded" : "") + (transposed_ ? "t" : "") +
                             (count > 1 ? fmt::format(" x {}", count) : "");
    packed_ = context.packer.packed(weights, name, count * size * 4, [&](void* to) {
      for (size_t i = 0; i < count; ++i)
        conv_.pack(place(from, starts[i], spec_.weights_form), static_cast<float*>(to) + i * size, transposed_);
    });
  }
  void pack(const StoredWeights& weights, MakeContext& context) {
    layout_ = {weights.stored, weights.rows, conv_.panel_width(), weights.block, weights.zeros};
    expands_ = spec_.expands;
    const std::string name = fmt::format("panel{} as {} by {}{}", layout_.width, static_cast<int>(layout_.stored),
                                         layout_.block, weights.fingerprint());
    const auto panels = static_cast<size_t>(conv_.panels());
    packed_ = context.packer.packed(*constant_of(weights.codes), name, panels * panel_bytes(), [&](void* to) {
      for (size_t panel = 0; panel < panels; ++panel)
        weights.pack_panel(layout_, static_cast<int64_t>(panel) * layout_.width,
                           static_cast<char*>(to) + panel * panel_bytes());
    });
  }
  size_t panel_bytes() const { return whole_lines(static_cast<size_t>(layout_.bytes())); }

  void expand(Executor& executor, const void* x, float* scratch, const float* bias, const void* residual,
              void* y) const {
    const auto panel = [&](int i, float* to) {
      expand_panel(layout_, static_cast<const char*>(packed_.get()) + static_cast<size_t>(i) * panel_bytes(), to);
    };
    conv_.expand_and_run(executor, x, panel, scratch, bias, residual, y, scratch + expanded_floats());
  }
  size_t expanded_floats() const { return conv_.panel_size() * static_cast<size_t>(workers_); }

  /// The number of packing buffers: one per worker when each packs its own product, else one for all.
  size_t packers() const {
    const auto workers = static_cast<size_t>(workers_);
    return offsets_.size() < 2 * workers ? 1 : workers;
  }
  /// Floats of one packing buffer, in whole cache lines, and with x widened behind it.
  size_t packed_floats() const { return (conv_.scratch_size() + 15) / 16 * 16; }
  size_t scratch_floats() const {
    return packed_floats() + (conv_.widened_size(packers() == 1 ? workers_ : 1) + 15) / 16 * 16;
  }

  Conv conv_;
  ConvSpec spec_;
  bool transposed_;
  std::optional<ConvSpec> odd_;
  std::vector<TileProblem::Offsets> offsets_;
  int workers_;
  size_t x_, weights_, residual_;
  std::shared_ptr<const void> packed_;
  std::vector<size_t> matrices_;  // of each product, among the packed ones
  bool keeps_ = false;            // the weights are packed once for all turns of a loop
  PanelLayout layout_;            // of stored weights
  bool expands_ = false;          // these, a panel at a time
  StepBias bias_;
};

/// Depthwise convolution and pooling.
class SlideStep final : public Step {
 public:
  SlideStep(const char* name, const Group& group, const Contraction& contraction, const SlideSpec& spec)
      : slide_(spec, machine_isa()), name_(name), x_(index_of(group, contraction.node->inputs[0])),
        same_form_(spec.narrow.residual == spec.narrow.result) {}

  void read(const Group& group, const Contraction& contraction, MakeContext& context) {
    const Epilogue& epilogue = contraction.epilogue;
    kernel_ = index_of(group, contraction.node->inputs[1]);
    if (epilogue.residual) residual_ = index_of(group, epilogue.residual);
    bias_.read(group, slide_, epilogue, context);
    if (const Tensor* kernel = constant_of(contraction.node->inputs[1]))
      packed_ = context.packer.packed(*kernel, slide_.layout(), slide_.packed_size() * 4, [&](void* to) {
        slide_.pack(kernel->data(), form_of(kernel->dtype()), static_cast<float*>(to));
      });
    kernel_form_ = form_in(group, contraction.node->inputs[1]);
  }

  void run(const StepArgs& args) const override {
    const float* bias = bias_.get(args, static_cast<char*>(args.workspace));
    auto* scratch = reinterpret_cast<float*>(static_cast<char*>(args.workspace) + bias_.workspace());
    if (kernel_ != kNone && !packed_) slide_.pack(args.inputs[kernel_], kernel_form_, scratch);
    const void* residual = residual_ == kNone ? nullptr : args.inputs[residual_];
    slide_.run(args.executor, args.inputs[x_], packed_ ? floats(packed_.get()) : scratch, bias, residual,
               args.outputs[0]);
  }

  std::string kernel() const override { return fmt::format("cpu/{} {}", name_, slide_.describe()); }
  size_t workspace() const override { return bias_.workspace() + (packed_ ? 0 : slide_.packed_size() * 4); }
  bool reads(size_t input) const override {
    return input == x_ || input == residual_ || input == bias_.input() || (input == kernel_ && !packed_);
  }
  std::vector<size_t> in_place() const override {
    const bool alone =
        residual_ != kNone && residual_ != x_ && residual_ != kernel_ && residual_ != bias_.input() && same_form_;
    return alone ? std::vector<size_t>{residual_} : std::vector<size_t>{};
  }

 private:
  Slide slide_;
  const char* name_;
  size_t x_, kernel_ = kNone, residual_ = kNone;
  bool same_form_;
  Form kernel_form_ = Form::floats;
  std::shared_ptr<const void> packed_;
  StepBias bias_;
};

/// The forms of what the group reads and makes.
Refusal read_slide_forms(const Group& group, const Contraction& contraction, SlideSpec& spec) {
  if (auto reason = not_floats(group)) return reason;
  for (const Value* value : contraction.node->inputs)
    if (precision_in(group, value) != Form::floats) return "an operand is rounded";
  spec.x_form = form_in(group, contraction.node->inputs[0]);
  spec.narrow = narrow_of(group, contraction.epilogue);
  return std::nullopt;
}

Refusal read_depthwise_step(const Group& group, Contraction& contraction, SlideSpec& spec) {
  const auto found = as_contraction(group);
  if (!found || !is_convolution(*found->node, ConvRole::forward)) return "is no convolution";
  contraction = *found;
  const Node& node = *contraction.node;
  const int64_t channels = last_dim(node.inputs[0]), made = last_dim(node.inputs[1]);
  if (node.attr().integer("groups") != channels || channels == 0) return "has not one group a channel";
  Dims window = node.inputs[1]->type.shape.sizes();
  window.resize(window.size() - 2);
  spec = slide_of(node, window);
  if (auto reason = read_slide_forms(group, contraction, spec)) return reason;
  spec.channels = made, spec.multiplier = made / channels;
  spec.residual = contraction.epilogue.residual != nullptr;
  spec.activation = activation_of(contraction.epilogue);
  return std::nullopt;
}

Refusal read_pool(const Group& group, Contraction& contraction, SlideSpec& spec) {
  const auto found = as_rounded(group);
  if (!found || !is_pooling(*found->node)) return "is no pooling";
  contraction = *found;
  spec = pooling_of(*contraction.node);
  if (auto reason = read_slide_forms(group, contraction, spec)) return reason;
  return Slide::refuses(spec, machine_isa());
}

}  // namespace

Refusal refuses_tile(const Group& group) {
  TileProblem problem;
  return read_tile(group, problem);
}

std::unique_ptr<Step> make_tile(const Group& group, MakeContext& context) {
  TileProblem problem;
  const Refusal refusal = read_tile(group, problem);
  CHECK(!refusal, "{}", *refusal);
  const ConvSpec& spec = problem.spec;
  // Weights of one product that are the same in each turn are packed once.
  problem.spec.packed_in_run =
      problem.spec.packed_in_run && !(problem.offsets.size() == 1 && context.stays(source_of(group, problem.weights)));
  if (reads_far_rows(problem))
    return make_transposed_product(spec.ic, spec.w, spec.oc, index_of(group, problem.x), spec.x_form,
                                   index_of(group, problem.weights), spec.weights_form, context);
  return std::make_unique<TileStep>(group, std::move(problem), context);
}

Refusal read_pixel_product(const Group& group, ConvSpec& spec) {
  TileProblem problem;
  if (auto reason = read_tile(group, problem)) return reason;
  if (problem.stored && problem.contraction.stored->is("cast") &&
      is_narrow(problem.spec.weights_form)) {  // packed as floats
    problem.weights = problem.stored->codes;
    problem.stored.reset();
    problem.spec.stored = Stored::floats, problem.spec.block = 0, problem.spec.zeros = false;
    problem.spec.expands = problem.spec.widest_panel = false;
  }
  if (!constant_of(problem.weights) || problem.stored || problem.odd) return "weights are not as they are read";
  spec = problem.spec;
  spec.n = spec.h = spec.oh = 1;
  return std::nullopt;
}

Refusal read_any_depthwise(const Group& group, SlideSpec& spec) {
  Contraction contraction;
  return read_depthwise_step(group, contraction, spec);
}

Refusal read_depthwise(const Group& group, SlideSpec& spec) {
  if (auto reason = read_any_depthwise(group, spec)) return reason;
  return Slide::refuses(spec, machine_isa());
}

Refusal refuses_depthwise(const Group& group) {
  SlideSpec spec;
  return read_depthwise(group, spec);
}

std::unique_ptr<Step> make_depthwise(const Group& group, MakeContext& context) {
  Contraction contraction;
  SlideSpec spec;
  const Refusal refusal = read_depthwise_step(group, contraction, spec);
  CHECK(!refusal, "{}", *refusal);
  auto step = std::make_unique<SlideStep>("depthwise", group, contraction, spec);
  step->read(group, contraction, context);
  return step;
}

Refusal refuses_pool(const Group& group) {
  Contraction pooling;
  SlideSpec spec;
  return read_pool(group, pooling, spec);
}

std::unique_ptr<Step> make_pool(const Group& group, MakeContext&) {
  Contraction pooling;
  SlideSpec spec;
  const Refusal refusal = read_pool(group, pooling, spec);
  CHECK(!refusal, "{}", *refusal);
  const char* name = spec.work == WindowWork::maximum ? "max_pool" : "average_pool";
  return std::make_unique<SlideStep>(name, group, pooling, spec);
}

}  // namespace cairn
