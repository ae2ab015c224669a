#include "engines/cpu/integer_step.h"

#include <algorithm>

#include "engines/cpu/call_step.h"
#include "engines/cpu/conv.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/integer_operands.h"
#include "engines/cpu/integers.h"
#include "engines/cpu/slides.h"
#include "ops/kernels.h"
#include "support/memory.h"

namespace cairn {

namespace {

bool is_single(const Value* value) { return count_of(value->type.shape.sizes()) == 1; }

int32_t integer_at(DType dtype, const void* data, int64_t i) {
  return dtype == kI8 ? static_cast<const int8_t*>(data)[i] : static_cast<const uint8_t*>(data)[i];
}

/// The zero point that makes bytes of weights signed without a rest, or nothing.
bool has_signed_bytes(const Value* weights, const Value* zero) {
  const int32_t wanted = weights->type.dtype == kU8 ? 128 : 0;
  const Tensor* constant = constant_of(zero);
  if (!constant || !constant_of(weights)) return false;
  for (int64_t i = 0; i < constant->count(); ++i)
    if (integer_at(constant->dtype(), constant->data(), i) != wanted) return false;
  return true;
}

/// A product of integers in the tile's terms: one convolution, or `batch` products of equal size.
struct IntegerProblem {
  IntegerContraction contraction;
  ConvSpec spec;
  int64_t channels = 0;  // of x, spec.ic being elements
  int64_t batch = 1;
  std::vector<int64_t> matrices_of_x, matrices_of_weights;  // those of each product of a batch
  bool shared = true;                                       // all products of a batch have the same weights
  bool transposed = false;                                  // weights are [n, k]

  const Value* x() const { return contraction.node->inputs[0]; }
  const Value* weights() const { return contraction.node->inputs[1]; }
  const Value* x_zero() const { return contraction.node->inputs[2]; }
  const Value* weights_zero() const { return contraction.node->inputs[3]; }
};

Refusal read_product(IntegerProblem& problem) {
  const Node& node = *problem.contraction.node;
  const Dims a = problem.x()->type.shape.sizes(), b = problem.weights()->type.shape.sizes();
  const Dims result = node.result()->type.shape.sizes();
  problem.transposed = node.attr().boolean("transpose_b");
  if (node.attr().boolean("transpose_a")) return "the left operand is transposed";
  problem.channels = a.back();
  problem.spec.oc = result.back();
  problem.shared = count_between(b, 0, b.size() - 2) == 1;
  if (problem.shared) {
    problem.spec.w = problem.spec.ow = count_of(result) / result.back();
    return std::nullopt;
  }
  const Dims batch(result.begin(), result.end() - 2);
  problem.batch = count_of(batch);
  const auto matrices = [&](const Dims& dims) { return broadcast_strides(Dims(dims.begin(), dims.end() - 2), batch); };
  walk<2>(batch, {matrices(a), matrices(b)}, [&](int64_t, const auto& matrix) {
    problem.matrices_of_x.push_back(matrix[0]), problem.matrices_of_weights.push_back(matrix[1]);
  });
  problem.spec.w = problem.spec.ow = result[result.size() - 2];
  return std::nullopt;
}

Refusal read_convolution(IntegerProblem& problem) {
  const Node& node = *problem.contraction.node;
  if (node.attr().integer("groups") != 1) return "has groups";
  const SlideSpec slide = convolution_of(node, problem.x(), node.result(), problem.weights());
  problem.spec = conv_spec(slide, last_dim(problem.weights()));
  problem.channels = slide.channels;
  return std::nullopt;
}

Refusal read_integer_tile(const Group& group, IntegerProblem& problem) {
  const auto contraction = as_integer_contraction(group);
  if (!contraction) return "is no product of integers";
  problem.contraction = *contraction;
  const Node& node = *contraction->node;
  if (*element_count(node.result()->type.shape.sizes()) == 0) return "has no elements";
  if (auto reason = node.is("matmul_integer") ? read_product(problem) : read_convolution(problem)) return reason;
  if (!is_single(problem.x_zero())) return "the left operand has several zero points";
  const Value* zero = problem.weights_zero();
  if (!is_single(zero) && (!constant_of(zero) || count_of(zero->type.shape.sizes()) != problem.spec.oc ||
                           last_dim(zero) != problem.spec.oc))
    return "zero points of the right operand are not those of channels";
  ConvSpec& spec = problem.spec;
  // Bytes need the sums of the weights, which are made where all products share them.
  const bool bytes = machine_has_dot_products() && problem.shared && has_signed_bytes(problem.weights(), zero);
  spec.arithmetic = bytes ? Arithmetic::bytes : Arithmetic::words;
  spec.epilogue = contraction->epilogue;
  spec.ic = (problem.channels + steps_in(spec.arithmetic) - 1) / steps_in(spec.arithmetic);
  spec.packed_in_run = !constant_of(problem.weights()) || !problem.shared;
  return Conv::refuses(spec, machine_isa());
}

class IntegerStep final : public Step {
 public:
  IntegerStep(const Group& group, IntegerProblem problem, MakeContext& context)
      : problem_(std::move(problem)), spec_(problem_.spec), conv_(spec_, machine_isa(), context.threads),
        workers_(context.threads) {
    const IntegerContraction& c = problem_.contraction;
    const auto add = [&](const Value* value, Operand& operand) {
      if (value) operand = {index_of(group, value), constant_of(value), value->type.dtype, is_single(value)};
    };
    add(problem_.x(), x_), add(problem_.weights(), weights_);
    add(problem_.x_zero(), x_zero_), add(problem_.weights_zero(), weights_zero_);
    add(c.scale, scale_), add(c.bias, bias_), add(c.residual, residual_), add(c.later_bias, later_bias_);
    staged_ = bytes() && x_.dtype == kU8 && problem_.channels % 4 == 0 ? 0 : x_elements();
    for (int64_t i = 0; weights_zero_.constant && i < weights_zero_.constant->count(); ++i)
      zeros_.push_back(integer_at(weights_zero_.dtype, weights_zero_.constant->data(), i));
    pack(context);
    fixed_ = x_zero_.constant && fixed(scale_) && fixed(bias_) && fixed(later_bias_);
    if (fixed_) {
      parameters_ = Tensor::zeros(kF32, {static_cast<int64_t>(conv_.bias_size())});
      std::vector<int32_t> starts(start_values());
      fill_parameters(nullptr, starts.data(), static_cast<float*>(parameters_.mutable_data()));
    }
  }

  void run(const StepArgs& args) const override {
    auto* scratch = static_cast<float*>(args.workspace);
    const float* parameters = fixed_ ? static_cast<const float*>(parameters_.data()) : scratch;
    if (!fixed_) {
      auto* starts = reinterpret_cast<int32_t*>(scratch + whole(static_cast<int64_t>(conv_.bias_size())));
      fill_parameters(&args, starts, scratch);
    }
    scratch += parameter_floats();
    const float* x = input(args, x_.index);
    if (staged_) {
      stage_rows(args.executor, spec_.arithmetic, x_.dtype, x, staged_ / spec_.ic, problem_.channels,
                 integer(x_zero_, &args), reinterpret_cast<uint32_t*>(scratch));
      x = scratch;
    }
    scratch += whole(staged_);
    auto* y = static_cast<char*>(args.outputs[0]);
    const auto* residual = static_cast<const char*>(residual_.index == kNone ? y : args.inputs[residual_.index]);
    if (packed_) return conv_.run(args.executor, x, static_cast<const float*>(packed_.get()), parameters, residual, y);
    const int64_t rows = spec_.n * spec_.h * spec_.w * spec_.ic, result = spec_.ow * spec_.oc;
    const auto product = [&](int64_t i, Executor& executor, float* packed) {
      const auto of = [i](const std::vector<int64_t>& matrices) {
        return matrices.empty() ? 0 : matrices[static_cast<size_t>(i)];
      };
      const int64_t weights = of(problem_.matrices_of_weights);
      executor.run(conv_.panels(), [&](int panel, int) { pack_panel(&args, weights, panel, packed); });
      conv_.run(executor, x + of(problem_.matrices_of_x) * rows, packed, parameters,
                residual + i * result * spec_.epilogue.residual_bytes(),
                y + i * result * spec_.epilogue.output_bytes());
    };
    if (packers() == 1 || args.executor.width() > workers_) {
      for (int64_t i = 0; i < problem_.batch; ++i) product(i, args.executor, scratch);
      return;
    }
    args.executor.run(static_cast<int>(problem_.batch), [&](int i, int worker) {
      product(i, serial_executor(), scratch + static_cast<size_t>(worker) * conv_.packed_size());
    });
  }

  std::string kernel() const override {
    return fmt::format("cpu/integer_tile {}{} {}{}{}", bytes() ? "u8" : "i16", machine_has_dot_products() ? " dot" : "",
                       conv_.describe(), staged_ ? ", staged" : "", packed_ ? "" : ", packed in the run");
  }
  size_t workspace() const override {
    const size_t packed = packed_ ? 0 : conv_.packed_size() * packers();
    return (static_cast<size_t>(parameter_floats() + whole(staged_)) + packed) * sizeof(float);
  }
  bool reads(size_t i) const override {
    const bool of_weights = i == weights_.index || i == weights_zero_.index;
    const bool parameter = i == x_zero_.index || i == scale_.index || i == bias_.index || i == later_bias_.index;
    return i == x_.index || i == residual_.index || (of_weights && !packed_) || (parameter && !fixed_) ||
           (i == x_zero_.index && staged_ != 0);
  }
  std::vector<size_t> in_place() const override {
    const bool fits = residual_.index != kNone && residual_.index != x_.index && residual_.index != weights_.index &&
                      spec_.epilogue.residual_bytes() == spec_.epilogue.output_bytes();
    return fits ? std::vector<size_t>{residual_.index} : std::vector<size_t>{};
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Operand {
    size_t index = kNone;
    const Tensor* constant = nullptr;
    DType dtype = kF32;
    bool single = true;
  };

  /// Packing buffers: one for each worker where each computes products of its own.
  size_t packers() const { return problem_.batch < 2 * workers_ ? 1 : static_cast<size_t>(workers_); }
  static bool fixed(const Operand& operand) { return operand.index == kNone || operand.constant; }
  static int64_t whole(int64_t floats) { return (floats + 15) / 16 * 16; }
  bool bytes() const { return spec_.arithmetic == Arithmetic::bytes; }
  int64_t x_elements() const { return count_of(problem_.x()->type.shape.sizes()) / problem_.channels * spec_.ic; }
  size_t start_values() const { return conv_.tap_sets().size() * static_cast<size_t>(spec_.oc); }
  int64_t parameter_floats() const {
    return fixed_ ? 0 : whole(static_cast<int64_t>(conv_.bias_size())) + whole(static_cast<int64_t>(start_values()));
  }

  static const void* data(const Operand& operand, const StepArgs* args) {
    return args ? args->inputs[operand.index] : operand.constant->data();
  }
  static int32_t integer(const Operand& operand, const StepArgs* args) {
    return integer_at(operand.dtype, data(operand, args), 0);
  }

  IntegerMatrix matrix(const void* from, int64_t product) const {
    const int64_t rows = problem_.channels, columns = spec_.oc;
    const auto* begin = static_cast<const char*>(from) + product * rows * columns;
    return {weights_.dtype, begin, rows, columns, problem_.transposed ? 1 : columns, problem_.transposed ? rows : 1};
  }

  void pack_panel(const StepArgs* args, int64_t product, int panel, float* to) const {
    const int64_t width = conv_.panel_width(), first = panel * width, taps = spec_.taps();
    const int32_t zero = zeros_.empty() ? integer(weights_zero_, args) : 0;
    pack_integers(spec_.arithmetic, matrix(data(weights_, args), product), taps, first,
                  std::min(width, spec_.oc - first), width, zeros_.empty() ? &zero : zeros_.data(),
                  zeros_.size() > 1 ? 1 : 0, reinterpret_cast<uint32_t*>(conv_.start_panel(panel, to)));
  }

  void pack(MakeContext& context) {
    if (!weights_.constant || !weights_zero_.constant || !problem_.shared) return;
    const Tensor& weights = *weights_.constant;
    std::string layout = fmt::format("{} {} {} {}", bytes() ? "u8" : "i16", conv_.layout(), problem_.channels,
                                     problem_.transposed ? "t" : "");
    if (!bytes()) layout += fmt::format(", less {}", fmt::join(zeros_, ","));
    packed_ = context.packer.packed(weights, layout, conv_.packed_size() * sizeof(float), [&](void* to) {
      for (int panel = 0; panel < conv_.panels(); ++panel) pack_panel(nullptr, 0, panel, static_cast<float*>(to));
    });
    if (!bytes()) return;
    const auto taps = static_cast<size_t>(spec_.taps() * spec_.oc);
    sums_ = context.packer.packed(
        weights, fmt::format("sums of {} taps, {} {}", spec_.taps(), spec_.oc, problem_.transposed ? "t" : ""),
        taps * sizeof(int32_t),
        [&](void* to) { sum_taps(matrix(weights.data(), 0), spec_.taps(), static_cast<int32_t*>(to)); });
  }

  // Start values take the zero point of x, times the weights of the taps inside the image, from the sums.
  void fill_parameters(const StepArgs* args, int32_t* starts, float* to) const {
    static const float kOne = 1, kZero = 0;
    const IntegerContraction& c = problem_.contraction;
    const auto row = [&](const Operand& operand, const float& fallback, float factor) {
      const void* from = operand.index == kNone ? &fallback : data(operand, args);
      return Conv::Row{static_cast<const float*>(from), operand.single, factor};
    };
    const Conv::Row rows[] = {row(scale_, kOne, c.factor), row(bias_, kZero, c.factor),
                              row(later_bias_, kZero, c.later_factor)};
    const auto& sets = conv_.tap_sets();
    std::fill_n(starts, start_values(), 0);
    const auto* sums = static_cast<const int32_t*>(sums_.get());
    const int32_t zero = bytes() ? unsigned_zero(x_.dtype, integer(x_zero_, args)) : 0;
    for (size_t set = 0; set < sets.size() && zero != 0; ++set)
      for (size_t tap = 0; tap < sets[set].size(); ++tap)
        for (int64_t o = 0; sets[set][tap] == '1' && o < spec_.oc; ++o)
          starts[set * static_cast<size_t>(spec_.oc) + static_cast<size_t>(o)] -=
              zero * sums[static_cast<int64_t>(tap) * spec_.oc + o];
    conv_.pack_parameters(starts, std::span(rows, c.later_bias ? 3 : 2), to);
  }

  IntegerProblem problem_;
  ConvSpec spec_;
  Conv conv_;
  int workers_;
  Operand x_, weights_, x_zero_, weights_zero_, scale_, bias_, later_bias_, residual_;
  int64_t staged_ = 0;  // elements of x that each run writes
  std::shared_ptr<const void> packed_, sums_;
  std::vector<int32_t> zeros_;  // constant ones of the weights: one, or one for each channel
  Tensor parameters_;
  bool fixed_ = false;  // parameters are the same in each run
};

}  // namespace

Refusal refuses_integer_tile(const Group& group) {
  IntegerProblem problem;
  return read_integer_tile(group, problem);
}

std::unique_ptr<Step> make_integer_tile(const Group& group, MakeContext& context) {
  IntegerProblem problem;
  const Refusal refusal = read_integer_tile(group, problem);
  CHECK(!refusal, "{}", *refusal);
  return std::make_unique<IntegerStep>(group, std::move(problem), context);
}

}  // namespace cairn
