// Single operators of the platform that are formulas of their inputs and attributes.
//
// A formula is statements between semicolons, "name = expression", and at last the results between commas. x0, x1, ... are the
// inputs (x2?1: 1 where the third is left out), `alpha:0.5` is an attribute with its default, `if(flag, a, b)` looks at an
// attribute that is true or false. Names with a capital letter are operators of TensorFlow, those with a small one:
//   channel(x1)       a vector along the channels of x0; along(x1): the sizes of x0 from the attribute `axis` on
//   number(x1)        in the type of x0
//   sum(e), mean(e)   over the axes of an attribute, all by default; kept_sum(e): its sizes stay as 1
//   spatial_mean(e)   over all but the first axis and that of the channels; last_mean(e): over the last axes, those of x1
//   flat(e)           as a vector
//   reduced(e)        as the attribute `reduction` says: none, mean (the default), sum, batchmean
#include <cctype>
#include <charconv>

#include "single_op_writer.h"
#include "support/error.h"

namespace cairn::cli::single {
namespace {

struct Formula {
  std::string_view op, text;
};

// clang-format off
constexpr Formula kFormulas[] = {
    {"Adds", "x0 + value"},
    {"Addcdiv", "x0 + x1 / x2 * x3"},
    {"Addcmul", "x0 + x1 * x2 * x3"},
    {"ApplyAdaMaxD", "m = x1 + (x8 - x1) * (1 - x5); v = Maximum(x6 * x2, Abs(x8)); x0 - x4 / (1 - x3) * m / (v + x7), m, v"},
    {"ApplyAdadeltaD", "a = x1 * x4 + Square(x6) * (1 - x4); d = Sqrt(x2 + x5) * Rsqrt(a + x5) * x6; "
                       "x0 - x3 * d, a, x2 * x4 + Square(d) * (1 - x4)"},
    {"ApplyAdagradD", "a = if(update_slots:true, x1 + Square(x3), x1); x0 - x2 * x3 * Rsqrt(a), a"},
    {"ApplyAdamD", "m = x1 + (x9 - x1) * (1 - x6); v = x2 + (Square(x9) - x2) * (1 - x7); "
                   "r = x5 * Sqrt(1 - x4) / (1 - x3); "
                   "x0 - r * if(use_nesterov:false, m * x6 + (1 - x6) * x9, m) / (x8 + Sqrt(v)), m, v"},
    {"ApplyGradientDescent", "x0 - x1 * x2"},
    {"ApplyKerasMomentumD", "a = x1 * x4 - x2 * x3; x0 + if(use_nesterov:false, a * x4 - x2 * x3, a), a"},
    {"ApplyMomentum", "a = x1 * x4 + x3; x0 - if(use_nesterov:false, x2 * x3 + x2 * x4 * a, x2 * a)"},
    {"ApplyMomentumD", "a = x1 * x4 + x3; x0 - if(use_nesterov:false, x2 * x3 + x2 * x4 * a, x2 * a), a"},
    {"ApplyRMSPropD", "s = x1 + (Square(x4) - x1) * (1 - rho); m = x2 * momentum + x4 * x3 * Rsqrt(s + epsilon); x0 - m, s, m"},
    {"Axpy", "x0 + x1 * alpha:1"},
    {"AxpyV2", "x0 + x1 * x2"},
    {"BNInfer", "(x0 - channel(x3)) * Rsqrt(channel(x4) + epsilon) * channel(x1) + channel(x2)"},
    {"Bias", "x0 + along(x1)"},
    {"BinaryCrossEntropy", "reduced(-(x1 * Maximum(Log(x0), -100) + (1 - x1) * Maximum(Log(1 - x0), -100)) * x2?1)"},
    {"Celu", "Maximum(x0, 0) + Minimum(alpha1:1 * (Exp(x0 / alpha2:1) - 1), 0)"},
    {"CeluV2", "Maximum(x0, 0) + Minimum(alpha:1 * (Exp(x0 / alpha:1) - 1), 0)"},
    {"ClipByValue", "Minimum(Maximum(x0, x1), x2)"},
    {"ClipByValueV2", "Minimum(Maximum(x0, x1), x2)"},
    {"Dot", "sum(x0 * x1)"},
    {"Elu", "SelectV2(Greater(x0, 0), x0 * scale:1, scale:1 * alpha:1 * (Exp(x0 * input_scale:1) - 1))"},
    {"EluGradV2", "SelectV2(Greater(x1, 0), x0, x0 * (x1 + alpha:1))"},
    {"EuclideanNormD", "Sqrt(sum(Square(x0)))"},
    {"FastGelu", "x0 * Sigmoid(1.702 * x0)"},
    {"Fills", "ZerosLike(x0) + value"},
    {"FusedMulAdd", "x0 * x1 + x2"},
    {"FusedMulAddAdd", "x0 * x1 + x2 + x3"},
    {"FusedMulAddN", "x0 * x2 + x1"},
    {"Gelu", "0.5 * x0 * (1 + Tanh(0.7978845608028654 * (x0 + 0.044715 * x0 * x0 * x0)))"},
    {"HardShrink", "SelectV2(LessEqual(Abs(x0), lambd:0.5), ZerosLike(x0), x0)"},
    {"HardSigmoid", "Minimum(Maximum(x0 * alpha:0.16666666 + beta:0.5, 0), 1)"},
    {"HardSwish", "x0 * Relu6(x0 + 3) / 6"},
    {"InstanceNorm", "m = spatial_mean(x0); v = spatial_mean(Square(x0 - m)); "
                     "(x0 - m) * Rsqrt(v + epsilon:0.000001) * channel(x1) + channel(x2), m, v"},
    {"KLDiv", "reduced(x1 * (Log(x1) - x0))"},
    {"L1LossGrad", "x0 * Sign(x1 - x2)"},
    {"L2Normalize", "x0 / Maximum(Sqrt(kept_sum(Square(x0))), eps:0.0001)"},
    {"LeakyRelu", "SelectV2(Greater(x0, 0), x0, x0 * negative_slope:0)"},
    {"LeakyReluGrad", "SelectV2(Greater(x1, 0), x0, x0 * negative_slope:0)"},
    {"Lerp", "x0 + x2 * (x1 - x0)"},
    {"LogAddExp", "m = Maximum(x0, x1); m + Log(Exp(x0 - m) + Exp(x1 - m))"},
    {"LogSigmoid", "-Softplus(-x0)"},
    {"LogSigmoidGrad", "x0 * Sigmoid(-x1)"},
    {"MaskedFill", "SelectV2(x1, x2, x0)"},
    {"MaskedScale", "x0 * number(x1) * value"},
    {"MaximumGrad", "SelectV2(GreaterEqual(x1, x2), x0, ZerosLike(x0)), SelectV2(GreaterEqual(x1, x2), ZerosLike(x0), x0)"},
    {"MinimumGrad", "SelectV2(LessEqual(x1, x2), x0, ZerosLike(x0)), SelectV2(LessEqual(x1, x2), ZerosLike(x0), x0)"},
    {"Mish", "x0 * Tanh(Softplus(x0))"},
    {"MseLoss", "reduced(Square(x0 - x1))"},
    {"Muls", "x0 * value"},
    {"PRelu", "Maximum(x0, 0) + channel(x1) * Minimum(x0, 0)"},
    {"Power", "Pow(x0 * scale:1 + shift:0, power:1)"},
    {"ReduceLogSumExp", "Log(sum(Exp(x0)))"},
    {"Relu6D", "Relu6(x0 * scale:1)"},
    {"RmsNorm", "r = Rsqrt(last_mean(Square(x0)) + epsilon:0.000001); x0 * r * x1, r"},
    {"SGD", "g = x1 + x0 * weight_decay:0; a = x3 * x4 + g * (1 - dampening:0); x0 - x2 * if(nesterov:false, g + x4 * a, a)"},
    {"Scale", "x0 * along(x1) + along(x2)?0"},
    {"Shrink", "SelectV2(Greater(x0, lambd:0.5), x0 - bias:0, SelectV2(Less(x0, -lambd:0.5), x0 + bias:0, ZerosLike(x0)))"},
    {"SigmoidCrossEntropyWithLogits", "Maximum(x0, 0) - x0 * x1 + Log1p(Exp(-Abs(x0)))"},
    {"SigmoidCrossEntropyWithLogitsGrad", "(Sigmoid(x0) - x1) * x2"},
    {"SiluGrad", "s = Sigmoid(x1); x0 * (s + x1 * s * (1 - s))"},
    {"SmoothL1Loss", "d = Abs(x0 - x1); SelectV2(Less(d, sigma:1), 0.5 * d * d / sigma:1, d - 0.5 * sigma:1)"},
    {"SmoothL1LossV2", "d = Abs(x0 - x1); reduced(SelectV2(Less(d, sigma:1), 0.5 * d * d / sigma:1, d - 0.5 * sigma:1))"},
    {"SoftMarginLoss", "reduced(Log1p(Exp(-x0 * x1)))"},
    {"SoftShrink", "Sign(x0) * Maximum(Abs(x0) - lambd:0.5, 0)"},
    {"SoftmaxGrad", "x0 * (x1 - kept_sum(x0 * x1))"},
    {"SoftplusV2", "SelectV2(Greater(x0 * beta:1, threshold:20), x0, Softplus(x0 * beta:1) / beta:1)"},
    {"SquareSumV1", "sum(Square(x0))"},
    {"Swish", "x0 * Sigmoid(x0 * scale:1)"},
    {"SwishGrad", "s = Sigmoid(x1 * scale:1); x0 * (s + scale:1 * x1 * s * (1 - s))"},
    {"Threshold", "SelectV2(Greater(x0, threshold:0), ZerosLike(x0) + 1, ZerosLike(x0))"},
    {"ThresholdV2", "SelectV2(Greater(x0, x1), x0, ZerosLike(x0) + x2?0)"},
    {"ThresholdV2D", "SelectV2(Greater(x0, threshold), x0, ZerosLike(x0) + value)"},
    {"ThresholdedRelu", "SelectV2(Greater(x0, alpha:1), x0, ZerosLike(x0))"},
};
// clang-format on

/// Reads a formula and writes its nodes.
class FormulaWriter {
 public:
  FormulaWriter(Writer& w, std::string_view text) : w_(w), text_(text) {}

  void write() {
    for (size_t before = at_;; before = at_) {
      const std::string name = word();
      if (name.empty() || !take('=')) {
        at_ = before;
        break;
      }
      names_[name] = sum();
      CHECK(take(';'), "formula {}", text_);
    }
    do w_.result(sum());
    while (take(','));
    CHECK(at_ == text_.size(), "formula {} at {}", text_, at_);
  }

 private:
  bool take(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string word() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  double number() {
    double value = 0;
    const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    CHECK(read.ec == std::errc(), "formula {} at {}", text_, at_);
    at_ = static_cast<size_t>(read.ptr - text_.data());
    return value;
  }
  std::string node(const char* kind, std::vector<std::string> inputs, const Writer::Attributes& attributes = {}) {
    return silent_ ? "" : w_.node(kind, inputs, attributes);
  }
  std::string constant(double value) { return silent_ ? "" : w_.constant(value); }

  std::string sum() {
    std::string left = product();
    for (;;) {
      if (take('+'))
        left = node("AddV2", {left, product()});
      else if (take('-'))
        left = node("Sub", {left, product()});
      else
        return left;
    }
  }
  std::string product() {
    std::string left = factor();
    for (;;) {
      if (take('*'))
        left = node("Mul", {left, factor()});
      else if (take('/'))
        left = node("RealDiv", {left, factor()});
      else
        return left;
    }
  }

  std::string factor() {
    if (take('-')) return node("Neg", {factor()});
    if (take('(')) {
      std::string inside = sum();
      CHECK(take(')'), "formula {}", text_);
      return inside;
    }
    while (text_[at_] == ' ') ++at_;
    if (std::isdigit(static_cast<unsigned char>(text_[at_]))) return constant(number());
    const std::string name = word();
    if (take('(')) return name == "if" ? choice() : call(name);
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    if (name.size() == 2 && name[0] == 'x' && std::isdigit(static_cast<unsigned char>(name[1]))) return input(name);
    return attribute(name);
  }

  /// x2, or x2?1 for an input that may be left out.
  std::string input(const std::string& name) {
    const auto index = static_cast<size_t>(name[1] - '0');
    if (!take('?')) return silent_ ? "" : w_.in(index).name;
    const double fallback = number();
    return w_.has(index) ? w_.in(index).name : constant(fallback);
  }

  std::string attribute(const std::string& name) {
    const bool optional = take(':');
    const double fallback = optional ? number() : 0;
    if (!optional && !silent_ && w_.find(name.c_str()) == nullptr)
      w_.refuse("E10029", fmt::format("attribute {} is missing", name));
    return constant(w_.real(name.c_str(), fallback));
  }

  std::string choice() {
    const std::string flag = word();
    CHECK(take(':'), "formula {}", text_);
    const bool fallback = word() == "true", chosen = w_.find(flag.c_str()) ? w_.boolean(flag.c_str()) : fallback;
    const auto branch = [&](bool taken) {
      const bool before = std::exchange(silent_, silent_ || !taken);
      CHECK(take(','), "formula {}", text_);
      std::string made = sum();
      silent_ = before;
      return made;
    };
    const std::string yes = branch(chosen), no = branch(!chosen);
    CHECK(take(')'), "formula {}", text_);
    return chosen ? yes : no;
  }

  std::string call(const std::string& name) {
    if (name == "channel" || name == "along" || name == "number") return of_input(name);
    std::vector<std::string> arguments;
    do arguments.push_back(sum());
    while (take(','));
    CHECK(take(')'), "formula {}", text_);
    if (silent_) return "";
    if (std::isupper(static_cast<unsigned char>(name[0]))) return node(name.c_str(), arguments);
    const std::string& x = arguments[0];
    if (name == "sum" || name == "mean")
      return over(name == "sum" ? "Sum" : "Mean", x, axes(), w_.boolean("keep_dims") || w_.boolean("keepdim"));
    if (name == "kept_sum") return over("Sum", x, axes(), true);
    if (name == "spatial_mean") return over("Mean", x, spatial(), true);
    if (name == "last_mean") return over("Mean", x, last(w_.in(1).dims.size()), true);
    if (name == "flat") return node("Reshape", {x, w_.constant({-1})}, {{"Tshape", type_value("DT_INT32")}});
    CHECK(name == "reduced", "formula {}: {}", text_, name);
    return reduced(x);
  }

  std::string over(const char* kind, const std::string& x, const Ints& axes, bool keep) {
    return node(kind, {x, w_.constant(axes)},
                {{"keep_dims", fmt::format("b: {}", keep)}, {"Tidx", type_value("DT_INT32")}});
  }
  Ints last(size_t count) const {
    const auto rank = static_cast<int64_t>(w_.in(0).dims.size());
    Ints list;
    for (int64_t axis = rank - static_cast<int64_t>(count); axis < rank; ++axis) list.push_back(axis);
    return list;
  }
  Ints axes() const {
    for (const char* name : {"axis", "axes", "dim"})
      if (w_.find(name)) {
        const Ints given = w_.ints(name, {});
        if (!given.empty()) return given;
      }
    return last(text_.find("kept_sum") == std::string_view::npos ? w_.in(0).dims.size() : 1);
  }
  int64_t channel_axis() const {
    const std::string order = lower(w_.text("data_format", w_.in(0).format.c_str()));
    return order.starts_with("nc") || order == "nd" ? 1 : static_cast<int64_t>(w_.in(0).dims.size()) - 1;
  }
  Ints spatial() const {
    Ints list;
    for (int64_t axis = 1; axis < static_cast<int64_t>(w_.in(0).dims.size()); ++axis)
      if (axis != channel_axis()) list.push_back(axis);
    return list;
  }

  std::string reduced(const std::string& x) {
    const std::string how = w_.text("reduction", "mean");
    if (how == "none") return x;
    if (how != "mean" && how != "sum" && how != "batchmean")
      w_.refuse("E10030", "reduction is none, mean, sum or batchmean");
    const Ints all = last(w_.in(0).dims.size());
    if (how == "mean") return over("Mean", x, all, false);
    const std::string total = over("Sum", x, all, false);
    if (how == "sum") return total;
    if (w_.in(0).dims.empty() || w_.in(0).dims[0] < 1) w_.refuse("E10027", "batchmean needs a known batch size");
    return node("RealDiv", {total, constant(static_cast<double>(w_.in(0).dims[0]))});
  }

  std::string of_input(const std::string& name) {
    const std::string which = word();
    const auto index = static_cast<size_t>(which[1] - '0');
    CHECK(take(')'), "formula {}", text_);
    if (take('?')) {
      const double fallback = number();
      if (!w_.has(index)) return constant(fallback);
    }
    if (silent_) return "";
    const Operand& x = w_.in(index);
    if (name == "number")
      return x.type == w_.in(0).type
                 ? x.name
                 : node("Cast", {x.name},
                        {{"SrcT", type_value(x.type)}, {"DstT", type_value(w_.in(0).type)}, {"T", type_value(x.type)}});
    const auto rank = static_cast<int64_t>(w_.in(0).dims.size()), own = static_cast<int64_t>(x.dims.size());
    int64_t first = name == "channel" ? channel_axis() : w_.integer("axis", 1);
    if (first < 0) first += rank;
    if (own == 0 || own == rank || (own == 1 && x.dims[0] == 1)) return x.name;  // broadcasts as it is
    if (first + own > rank)
      w_.refuse("E10027", fmt::format("input {} has {} dimensions, which do not fit the {} of input 0 from axis {} on",
                                      index, own, rank, first));
    Ints dims(static_cast<size_t>(rank), 1);
    std::copy(x.dims.begin(), x.dims.end(), dims.begin() + first);
    return node("Reshape", {x.name, w_.constant(dims)}, {{"Tshape", type_value("DT_INT32")}});
  }

  Writer& w_;
  std::string_view text_;
  size_t at_ = 0;
  bool silent_ = false;  // reads a branch that is not chosen
  std::map<std::string, std::string> names_;
};

}  // namespace

std::vector<std::string_view> formula_names() {
  std::vector<std::string_view> names;
  for (const Formula& each : kFormulas) names.push_back(each.op);
  return names;
}

bool formula(Writer& w) {
  const auto found =
      std::find_if(std::begin(kFormulas), std::end(kFormulas), [&](const Formula& each) { return each.op == w.op.op; });
  if (found == std::end(kFormulas)) return false;
  FormulaWriter(w, found->text).write();
  return true;
}

}  // namespace cairn::cli::single
