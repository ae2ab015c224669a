#include "passes/precision.h"

#include <algorithm>
#include <unordered_set>

#include "passes/facts.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

// The platform's white and black lists, in our names; operators in neither are gray.
constexpr std::string_view kWhite[] = {"matmul",
                                       "conv2d",
                                       "conv3d",
                                       "conv2d_transpose",
                                       "conv2d_input_gradient",
                                       "conv3d_input_gradient",
                                       "conv2d_kernel_gradient",
                                       "conv3d_kernel_gradient"};
// Their first result has the type of the operands of its shape; parameters and statistics stay f32.
constexpr std::string_view kNorms[] = {"batch_norm", "batch_norm_training", "batch_norm_gradient", "layer_norm"};
constexpr std::string_view kBlack[] = {
    "log", "log1p", "expm1", "pow", "log_softmax", "reduce_sum", "reduce_prod", "softmax_cross_entropy", "cumsum"};
// The platform's names that differ from ours by more than spelling.
constexpr std::pair<std::string_view, std::string_view> kPlatformNames[] = {{"batchmatmul", "matmul"},
                                                                            {"gemm", "matmul"},
                                                                            {"fullyconnection", "matmul"},
                                                                            {"depthwiseconv2d", "conv2d"},
                                                                            {"deconvolution", "conv2d_transpose"},
                                                                            {"realdiv", "div"},
                                                                            {"divnonan", "div"},
                                                                            {"addn", "add"},
                                                                            {"biasadd", "add"},
                                                                            {"bninfer", "batch_norm"},
                                                                            {"bninference", "batch_norm"},
                                                                            {"fusedbatchnorm", "batch_norm"},
                                                                            {"avgpool", "avg_pool2d"},
                                                                            {"avgpool3d", "avg_pool3d"},
                                                                            {"maxpool3d", "max_pool3d"},
                                                                            {"maxpool", "max_pool2d"},
                                                                            {"stridedslice", "slice"},
                                                                            {"clipbyvalue", "clip"},
                                                                            {"fastgelu", "gelu"},
                                                                            {"matrixmul", "matmul"}};

bool in(std::span<const std::string_view> list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// The name in lower case without underscores, so that "ReduceSum" equals "reduce_sum".
std::string plain(std::string_view name) {
  std::string text;
  for (char c : name)
    if (c != '_') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// The name, and the name without the platform's version suffixes (V2, D).
std::vector<std::string> spellings(const std::string& type) {
  std::vector<std::string> list{plain(type)};
  for (std::string_view mark : {"d", "v2", "v3", "v4"})
    for (size_t i = 0, count = list.size(); i < count; ++i)
      if (list[i].size() > mark.size() + 1 && list[i].ends_with(mark))
        list.push_back(list[i].substr(0, list[i].size() - mark.size()));
  return list;
}

bool is_low(DType dtype) { return dtype == kF16 || dtype == kBF16; }

bool is_float(const Value* value) { return value->type.is_tensor() && value->type.dtype.is_float(); }

Tensor converted(const Tensor& tensor, DType dtype) {
  Tensor result = Tensor::uninitialized(dtype, tensor.dims());
  auto from = tensor.values<float>();
  auto to = result.mutable_values<uint16_t>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = dtype == kF16 ? float_to_half(from[i]) : float_to_bfloat(from[i]);
  return result;
}

/// Lowers the precision of one block; values known to be rounded already are not rounded again.
class Lowering {
 public:
  Lowering(Block& block, Module& module, const PrecisionOptions& options, PrecisionReport& report,
           std::unordered_set<std::string>& used)
      : rewriter_(block, &module), module_(module), options_(options), report_(report), used_(used) {}

  void run(Block& block, const Function& function) {
    find_read(block, function);
    if (!trains(block)) find_readers(block);
    rewriter_.run([this](Node& node) { return visit(node); });
  }

 private:
  /// Finds the nodes on which a white operator or a result depends, directly or through others. The remaining nodes are
  /// the optimiser's arithmetic on gradients: 16 bits would not make it faster, and are too few for squares of
  /// gradients.
  void find_read(const Block& block, const Function& function) {
    std::unordered_set<size_t> updates;
    if (&block == &function.body)
      for (auto [result, param] : function.updates) updates.insert(result);
    std::unordered_set<const Value*> read;
    for (size_t i = 0; i < block.results.size(); ++i)
      if (!updates.count(i)) read.insert(block.results[i]);
    for (auto node = block.nodes.rbegin(); node != block.nodes.rend(); ++node) {
      const bool reads = std::any_of((*node)->results.begin(), (*node)->results.end(),
                                     [&](const auto& result) { return read.count(result.get()) != 0; });
      if (reads) read_.insert(node->get());
      if (reads || !(*node)->regions.empty() || (is_plain(**node) && is_white(**node, listed(**node))))
        read.insert((*node)->inputs.begin(), (*node)->inputs.end());
    }
  }

  /// Whether the block makes gradients: what the forward pass keeps for them has 16 bits. That by an image is a transposed convolution as
  /// well.
  static bool trains(Block& block) {
    bool found = false;
    for_each_block(block, [&](Block& each) {
      for (const auto& node : each.nodes) {
        const std::string_view name = node->op->name;
        found |= name.ends_with("_gradient") && !name.ends_with("_input_gradient");
      }
    });
    return found;
  }

  /// The operators that read each value; one of them is null where the value is a result.
  void find_readers(Block& block) {
    for_each_block(block, [&](Block& each) {
      for (const auto& node : each.nodes)
        for (const Value* input : node->inputs) readers_[input].push_back(node.get());
      for (const Value* result : each.results) readers_[result].push_back(nullptr);
    });
  }

  static bool is_plain(const Node& node) {
    const bool one = node.results.size() == 1 || in(kNorms, node.op->name);
    return node.regions.empty() && one && !node.inputs.empty() && is_float(node.result(0)) && !node.is("cast");
  }

  std::optional<std::vector<Value*>> visit(Node& node) {
    if (!is_plain(node)) return std::nullopt;
    if (const CustomTypes* custom = custom_of(node)) return customised(node, *custom);
    if (any(options_.keep, node, true) || any(options_.precise, node, true)) return std::nullopt;
    if (options_.mode == PrecisionMode::force_wide)
      return is_low(node.result(0)->type.dtype) && node.results.size() == 1 ? std::optional(widened(node)) : nothing();
    if (node.result(0)->type.dtype != kF32 || !wanted(node)) return std::nullopt;
    ++report_.lowered;
    std::vector<Value*> inputs;
    for (Value* input : node.inputs) inputs.push_back(goes_low(node, input) ? rounded(input, options_.low) : input);
    std::vector<Value*> results = again(node, inputs);
    // What only an optimiser's arithmetic reads stays exact.
    const bool gradient = options_.mode == PrecisionMode::mixed && !read_.count(&node);
    if (options_.mode == PrecisionMode::matrix_low_inputs || gradient) return results;
    const bool sums =
        node.op->has(kContraction) || (node.is("add") && (sums_.count(inputs[0]) || sums_.count(inputs[1])));
    const bool digits =
        !makes_no_digits(node) || std::ranges::any_of(inputs, [&](Value* input) { return exact_.count(input); });
    if (digits && stays_exact(node, sums))
      exact_.insert(results[0]), rounded_.insert(results[0]);
    else if (digits)
      results[0] = rounded(results[0], options_.low);
    else
      rounded_.insert(results[0]);
    if (sums) sums_.insert(results[0]);
    return results;
  }

  /// Whether one operator alone reads the result, in the step that makes it: such a value is never stored, and is no more rounded
  /// than the sums inside of an operator. What adds to the sums of a contraction ends with an activation.
  bool stays_exact(const Node& node, bool sums) {
    const auto found = readers_.find(node.result(0));
    if (options_.mode != PrecisionMode::mixed || found == readers_.end()) return false;
    if (sums && is_by_pixels(node) && ends_in_activation(node)) return true;
    const Node* reader = found->second.size() == 1 ? found->second[0] : nullptr;
    if (!goes_along(reader, node)) return false;
    if (!sums) return node.op->has(kElementwise);
    if (reader->is("relu") || reader->is("clip")) return true;
    if (!node.op->has(kContraction) || !reader->is("add")) return false;
    const Value* other = reader->inputs[reader->inputs[0] == node.result(0) ? 1 : 0];
    return is_given(other) && other->type.shape != node.result(0)->type.shape;
  }

  /// Whether it is an element-wise operator that may be lowered, with results of the node's type.
  bool goes_along(const Node* reader, const Node& node) {
    if (!reader || !is_plain(*reader) || !reader->op->has(kElementwise)) return false;
    if (custom_of(*reader) || any(options_.keep, *reader, true) || any(options_.precise, *reader, true)) return false;
    return !in(kBlack, reader->op->name) && !listed(*reader).black && reader->result()->type == node.result(0)->type;
  }

  /// Whether it is a convolution of single pixels or channels, or adds to the sums of one: its results are made some at a time, so that
  /// the element-wise operators behind it need not store them.
  static bool is_by_pixels(const Node& node) {
    const auto producer = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i]->producer : nullptr; };
    const Node* made = node.op->has(kContraction) ? &node : nullptr;
    for (size_t i = 0; i < 2 && !made; ++i)
      if (const Node* other = producer(i); other && other->op->has(kContraction) && is_given(node.inputs[1 - i]))
        made = other;
    if (!made || !made->is("conv2d") || !made->inputs[1]->type.is_static()) return false;
    const std::vector<int64_t> kernel = made->inputs[1]->type.shape.sizes();
    const int64_t groups = made->attr().integer("groups");
    return groups == 1 ? kernel[0] * kernel[1] == 1 : kernel[2] == 1 && groups == kernel[3];
  }

  /// Whether element-wise operators alone read the node's result, and each other's with constants, up to one that others read: an
  /// activation, such as x * sigmoid(x).
  bool ends_in_activation(const Node& node) {
    constexpr size_t kMost = 16;
    std::vector<const Node*> inside{&node};
    const auto contains = [&](const Node* one) { return std::ranges::find(inside, one) != inside.end(); };
    const auto is_ready = [&](const Node* reader) {
      return goes_along(reader, node) && std::ranges::all_of(reader->inputs, [&](const Value* input) {
               return is_given(input) || contains(input->producer);
             });
    };
    const auto readers = [&](const Node* one) -> const std::vector<const Node*>& { return readers_[one->result(0)]; };
    while (inside.size() < kMost) {
      const Node* next = nullptr;
      for (size_t i = 0; i < inside.size() && !next; ++i)
        for (const Node* reader : readers(inside[i]))
          if (!next && !contains(reader) && is_ready(reader)) next = reader;
      if (!next) return false;
      inside.push_back(next);
      const auto stays = [&](const Node* one) { return one == next || std::ranges::all_of(readers(one), contains); };
      if (std::ranges::all_of(inside, stays)) return true;
    }
    return false;
  }

  /// Whether this operand of a lowered operator has 16 bits.
  bool goes_low(const Node& node, const Value* input) const {
    return options_.mode != PrecisionMode::mixed || !in(kNorms, node.op->name) ||
           input->type.shape == node.result(0)->type.shape;
  }

  /// Whether it is a constant or a param (a weight, in training), also with its elements moved: it follows the others.
  static bool is_given(const Value* value) {
    const auto moved = [](const Node* node) {
      return node && makes_no_digits(*node) && std::ranges::count_if(node->inputs, is_float) == 1 &&
             is_float(node->inputs[0]);
    };
    while (moved(value->producer)) value = value->producer->inputs[0];
    return !value->producer || constant_of(value);
  }

  static std::optional<std::vector<Value*>> nothing() { return std::nullopt; }

  std::vector<Value*> again(const Node& node, std::vector<Value*> inputs) {
    std::vector<Type> types;
    for (const auto& result : node.results) types.push_back(result->type);
    Value* first = rewriter_.add(*node.op, std::move(inputs), node.attributes, types);
    std::vector<Value*> results;
    for (size_t i = 0; i < types.size(); ++i) results.push_back(first->producer->result(i));
    return results;
  }

  /// The lists of the options that name the operator.
  struct Listed {
    bool white, black, gray;
  };
  Listed listed(const Node& node) {
    return {any(options_.white, node, false), any(options_.black, node, false), any(options_.gray, node, false)};
  }
  static bool is_white(const Node& node, Listed to) {
    return to.white || (in(kWhite, node.op->name) && !to.black && !to.gray);
  }

  bool wanted(const Node& node) {
    const Listed to = listed(node);
    switch (options_.mode) {
      case PrecisionMode::force_low: return true;
      case PrecisionMode::matrix_low:
      case PrecisionMode::matrix_low_inputs: return in(kWhite, node.op->name);
      default: break;
    }
    if (is_white(node, to)) return true;
    if (to.black || (in(kBlack, node.op->name) && !to.gray) || !read_.count(&node)) return false;
    bool reads = false;
    for (const Value* input : node.inputs) {
      if (!is_float(input) || is_given(input) || !goes_low(node, input)) continue;
      reads = true;
      if (!rounded_.count(input)) return false;
    }
    return reads;
  }

  /// The value rounded to 16 bits, as f32.
  Value* rounded(Value* value, DType low) {
    if (!value->type.is_tensor() || value->type.dtype != kF32 || rounded_.count(value)) return value;
    auto [found, fresh] = cache_.try_emplace({value, low.kind == kF16.kind});
    if (!fresh) return found->second;
    const Tensor* constant = constant_of(value);
    Value* narrow =
        constant ? rewriter_.constant(converted(*constant, low)) : rewriter_.add("cast", {value}, {{"dtype", low}});
    Value* wide = rewriter_.add("cast", {narrow}, {{"dtype", kF32}});
    rounded_.insert(wide);
    return found->second = wide;
  }

  std::vector<Value*> widened(Node& node) {
    ++report_.widened;
    std::vector<Value*> inputs;
    for (Value* input : node.inputs) {
      auto known = wide_.find(input);
      bool low = input->type.is_tensor() && is_low(input->type.dtype);
      inputs.push_back(known != wide_.end() ? known->second
                       : low                ? rewriter_.add("cast", {input}, {{"dtype", kF32}})
                                            : input);
    }
    Value* result = rewriter_.add(*node.op, std::move(inputs), node.attributes);
    if (!is_float(result) || result->type.dtype == node.result()->type.dtype) return {result};
    Value* narrow = rewriter_.add("cast", {result}, {{"dtype", node.result()->type.dtype}});
    wide_[narrow] = result;
    return {narrow};
  }

  std::vector<Value*> customised(Node& node, const CustomTypes& custom) {
    ++report_.lowered;
    std::vector<Value*> inputs = node.inputs;
    for (size_t i = 0; i < std::min(inputs.size(), custom.inputs.size()); ++i)
      if (is_low(custom.inputs[i])) inputs[i] = rounded(inputs[i], custom.inputs[i]);
    std::vector<Value*> results = again(node, std::move(inputs));
    for (size_t i = 0; i < std::min(results.size(), custom.outputs.size()); ++i)
      if (is_low(custom.outputs[i])) results[i] = rounded(results[i], custom.outputs[i]);
    return results;
  }

  const CustomTypes* custom_of(const Node& node) {
    for (const CustomTypes& custom : options_.custom)
      if (fits(custom.node, node, true)) return &custom;
    return nullptr;
  }

  bool any(const std::vector<std::string>& list, const Node& node, bool by_name) {
    bool found = false;
    for (const std::string& entry : list) found = fits(entry, node, by_name) || found;
    return found;
  }

  bool fits(const std::string& entry, const Node& node, bool by_name) {
    bool fit = false;
    if (!by_name || entry.starts_with("OpType::")) {
      fit = is_of_type(module_, node, by_name ? entry.substr(8) : entry);
    } else {
      for (SourceId id : node.sources) fit = fit || (id < module_.sources.size() && module_.sources[id].name == entry);
      fit = fit || node.result()->name == entry;
    }
    if (fit) used_.insert(entry);
    return fit;
  }

  Rewriter rewriter_;
  Module& module_;
  const PrecisionOptions& options_;
  PrecisionReport& report_;
  std::unordered_set<std::string>& used_;
  std::unordered_set<const Node*> read_;
  std::unordered_map<const Value*, std::vector<const Node*>> readers_;
  // Values that need no rounding; of these the ones that would; and the sums of contractions with what was added to them.
  std::unordered_set<const Value*> rounded_, exact_, sums_;
  std::map<std::pair<const Value*, bool>, Value*> cache_;
  std::unordered_map<const Value*, Value*> wide_;
};

}  // namespace

bool is_of_type(const Module& module, const Node& node, const std::string& type) {
  for (SourceId id : node.sources)
    if (id < module.sources.size() && module.sources[id].op == type) return true;
  std::string own = plain(node.op->name);
  for (const std::string& spelling : spellings(type)) {
    if (spelling == own) return true;
    for (auto [platform, ours] : kPlatformNames)
      if (spelling == platform && ours == node.op->name) return true;
  }
  return false;
}

const std::vector<std::string>& types_with_variants() {
  static const std::vector<std::string> kTypes = {
      "AvgPool", "Gelu", "LayerNorm", "LogSoftmax", "LRN",      "ReduceMean", "Softmax", "Sqrt",  "Tanh",
      "Mish",    "Exp",  "RealDiv",   "Sigmoid",    "FloorMod", "BatchNorm",  "Gather",  "Rsqrt", "Softplus"};
  return kTypes;
}

std::string_view precision_name(const PrecisionOptions& options) {
  for (const NamedPrecision& named : precision_modes())
    if (named.mode == options.mode && named.brain == (options.low == kBF16) && options.mode != PrecisionMode::keep)
      return named.name;
  return "";
}

PrecisionReport set_precision(Module& module, const PrecisionOptions& options) {
  PrecisionReport report;
  std::unordered_set<std::string> used;
  bool acts = options.mode != PrecisionMode::keep || !options.custom.empty();
  for (const auto& function : module.functions)
    if (acts)
      for_each_block(function->body,
                     [&](Block& block) { Lowering(block, module, options, report, used).run(block, *function); });
  for (const auto* list : {&options.white, &options.black, &options.gray, &options.keep, &options.precise})
    for (const std::string& entry : *list)
      if (!used.count(entry)) report.unused.push_back(entry);
  for (const CustomTypes& custom : options.custom)
    if (!used.count(custom.node)) report.unused.push_back(custom.node);
  return report;
}

}  // namespace cairn
