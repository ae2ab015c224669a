#include "engines/cpu/attention.h"

#include <limits>

#include "engines/cpu/conv.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/vector_loops.h"
#include "ops/kernels.h"
#include "passes/facts.h"

namespace cairn {

namespace {

/// A strided view [batch, heads, rows, columns] of a tensor.
struct View {
  const Value* base = nullptr;
  Dims dims, strides;  // 4 each; a batch or head dim of 1 has stride 0
};

struct Attention {
  std::vector<const Node*> nodes;
  View q, k, v, y;  // k: [batch, heads, columns of q, keys]
  const Value* mask = nullptr;
  float scale = 1;
};

/// The value's producer if it may join the group and the value has a single use; else null.
const Node* own_producer(const Value* value, const Surroundings& around) {
  const Node* producer = value->producer;
  return producer && around.joins(producer) && around.sole_user(value) ? producer : nullptr;
}

bool is_f32(const Value* value) { return value->type.is_static() && value->type.dtype == kF32; }

/// Between f32 and 16 bits.
bool is_cast(const Node* node) {
  const auto is_float = [](const Value* value) { return is_f32(value) || is_narrow(value->type.dtype); };
  return node && node->is("cast") && is_float(node->inputs[0]) && is_float(node->result());
}

/// The value that casts of the group make this of, those inside of it, where nothing is rounded, or one that widens an operand.
const Value* through_casts(const Value* value, Attention& attention, const Surroundings& around, bool inside) {
  for (const Node* node = own_producer(value, around); is_cast(node) && (inside || is_f32(value));
       node = own_producer(value, around)) {
    attention.nodes.push_back(node);
    value = node->inputs[0];
  }
  return value;
}
/// And what casts of the group make of it: those inside, or the one that rounds the result.
const Value* along_casts(const Value* value, Attention& attention, const Surroundings& around, bool inside) {
  for (const Node* node = around.sole_user(value); is_cast(node) && around.joins(node) && (inside || is_f32(value));
       node = around.sole_user(value)) {
    attention.nodes.push_back(node);
    value = node->result();
  }
  return value;
}

std::optional<double> number_of(const Value* value) {
  const Tensor* tensor = constant_of(value);
  return tensor ? splat(*tensor) : std::nullopt;
}

Dims permuted(const Dims& values, const Dims& permutation) {
  Dims result;
  for (int64_t i : permutation) result.push_back(values[static_cast<size_t>(i < 0 ? i + std::ssize(values) : i)]);
  return result;
}

/// The value that a number multiplies to make this one of q or k; the number becomes part of the scale.
const Value* through_numbers(const Value* value, Attention& attention, const Surroundings& around) {
  for (const Node* node = own_producer(value, around); node && node->is("mul"); node = own_producer(value, around)) {
    const size_t at = number_of(node->inputs[1]) ? 0 : 1;
    const auto number = number_of(node->inputs[1 - at]);
    if (!number || !is_f32(value) || node->inputs[at]->type != value->type) return value;
    attention.scale = static_cast<float>(attention.scale * *number);
    attention.nodes.push_back(node);
    value = node->inputs[at];
  }
  return value;
}

std::optional<View> view_of(const Value* value, Attention& attention, const Surroundings& around, bool scaled) {
  const auto below = [&](const Value* at) {
    if (scaled) at = through_numbers(at, attention, around);
    return through_casts(at, attention, around, false);
  };
  View view;
  value = below(value);
  const Node* producer = own_producer(value, around);
  const bool moved = producer && producer->is("transpose");
  view.base = moved ? below(producer->inputs[0]) : value;
  view.dims = value->type.shape.sizes();
  view.strides = strides_of(view.base->type.shape.sizes());
  if (moved) {
    view.strides = permuted(view.strides, producer->attr().integers("permutation"));
    attention.nodes.push_back(producer);
  }
  if (view.dims.size() < 3 || view.dims.size() > 4) return std::nullopt;
  while (view.dims.size() < 4) {
    view.dims.insert(view.dims.begin(), 1);
    view.strides.insert(view.strides.begin(), 0);
  }
  for (size_t i = 0; i < 2; ++i)
    if (view.dims[i] == 1) view.strides[i] = 0;
  return view;
}

// Recognises scale and mask between the scores and the softmax; returns the scores.
const Value* through_scale(const Value* x, Attention& attention, const Surroundings& around) {
  x = through_casts(x, attention, around, true);
  for (const Node* node = own_producer(x, around); node && node->inputs.size() == 2; node = own_producer(x, around)) {
    const bool divides = node->is("div");
    if (node->is("add") && !attention.mask && attention.scale == 1) {
      const auto product = [&](const Value* side) {
        return own_producer(side, around) && side->type.shape == x->type.shape;
      };
      const size_t at = product(node->inputs[0]) ? 0 : 1;
      if (!product(node->inputs[at])) return x;
      attention.mask = node->inputs[1 - at];
      x = node->inputs[at];
    } else if (node->is("mul") || divides) {
      const size_t at = number_of(node->inputs[1]) ? 0 : 1;
      const auto number = number_of(node->inputs[1 - at]);
      if (!number || (divides && at == 1) || node->inputs[at]->type != x->type) return x;
      attention.scale = static_cast<float>(divides ? attention.scale / *number : attention.scale * *number);
      x = node->inputs[at];
    } else {
      return x;
    }
    attention.nodes.push_back(node);
    x = through_casts(x, attention, around, true);
  }
  return x;
}

void transpose_last(View& view) {
  std::swap(view.dims[2], view.dims[3]);
  std::swap(view.strides[2], view.strides[3]);
}

bool fits(const Attention& a) {
  for (const View* view : {&a.k, &a.v})
    for (size_t i : {0, 1})
      if (view->dims[i] != a.q.dims[i] && view->dims[i] != 1) return false;
  for (const View* view : {&a.k, &a.v})
    if (is_narrow(view->base->type.dtype) && view->strides[2] != 1 && view->strides[3] != 1) return false;
  return a.q.strides[3] == 1 && a.y.strides[3] == 1 && a.q.dims[3] == a.k.dims[2] && a.k.dims[3] == a.v.dims[2];
}

std::optional<Attention> match(const Node& softmax, const Surroundings& around) {
  Attention a;
  const Value* p = softmax.result();
  if (!is_f32(p)) return std::nullopt;
  const auto rank = static_cast<int64_t>(p->type.shape.rank());
  const int64_t axis = softmax.attr().integer("axis");
  if ((rank != 3 && rank != 4) || (axis != -1 && axis != rank - 1)) return std::nullopt;
  a.nodes.push_back(&softmax);
  p = along_casts(p, a, around, true);
  const Value* scores = through_scale(softmax.inputs[0], a, around);
  const Node *first = own_producer(scores, around), *second = around.sole_user(p);
  if (!first || !first->is("matmul") || first->attr().boolean("transpose_a")) return std::nullopt;
  if (!second || !second->is("matmul") || !around.joins(second) || second->inputs[0] != p || second->inputs[1] == p ||
      second->attr().boolean("transpose_a"))
    return std::nullopt;
  a.nodes.push_back(first);
  a.nodes.push_back(second);
  const auto q = view_of(first->inputs[0], a, around, true), k = view_of(first->inputs[1], a, around, true),
             v = view_of(second->inputs[1], a, around, false);
  if (!q || !k || !v) return std::nullopt;
  a.q = *q, a.k = *k, a.v = *v;
  if (first->attr().boolean("transpose_b")) transpose_last(a.k);
  if (second->attr().boolean("transpose_b")) transpose_last(a.v);
  const Value* y = along_casts(second->result(), a, around, false);
  a.y = {y, y->type.shape.sizes(), strides_of(y->type.shape.sizes())};
  const Node* turn = around.sole_user(y);
  if (turn && turn->is("transpose") && around.joins(turn)) {
    const Dims permutation = turn->attr().integers("permutation"), to = strides_of(turn->result()->type.shape.sizes());
    for (size_t i = 0; i < permutation.size(); ++i)
      a.y.strides[static_cast<size_t>(permutation[i] < 0 ? permutation[i] + rank : permutation[i])] = to[i];
    a.nodes.push_back(turn);
    a.y.base = along_casts(turn->result(), a, around, false);
  }
  while (a.y.dims.size() < 4) {
    a.y.dims.insert(a.y.dims.begin(), 1);
    a.y.strides.insert(a.y.strides.begin(), 0);
  }
  if (a.mask && !is_f32(a.mask)) return std::nullopt;
  return fits(a) ? std::optional(a) : std::nullopt;
}

/// The unit of work is a block of rows of one head; each unit packs that head's k and v for itself.
class AttentionStep final : public Step {
 public:
  AttentionStep(const Group& group, Attention a, MakeContext& context) : a_(std::move(a)), workers_(context.threads) {
    q_ = index_of(group, a_.q.base), k_ = index_of(group, a_.k.base), v_ = index_of(group, a_.v.base);
    rows_ = a_.q.dims[2], keys_ = a_.k.dims[3];
    block_ = std::clamp<int64_t>(kScores / std::max<int64_t>(1, keys_), std::min<int64_t>(32, rows_), rows_);
    blocks_ = (rows_ + block_ - 1) / block_;
    if (a_.mask) {
      mask_ = index_of(group, a_.mask);
      Dims all = a_.q.dims;
      all[3] = keys_;
      mask_strides_ = broadcast_strides(a_.mask->type.shape.sizes(), all);
    }
    for (int64_t size : {block_, rows_ - (blocks_ - 1) * block_}) {
      scores_.emplace_back(scores_spec(a_, size), machine_isa(), 1);
      results_.emplace_back(result_spec(a_, size), machine_isa(), 1);
    }
    packed_k_ = lines(scores_[0].packed_size()), packed_v_ = lines(results_[0].packed_size());
    widened_ = lines(std::max(scores_[0].widened_size(1), scores_[1].widened_size(1)));
    scratch_ = packed_k_ + packed_v_ + lines(static_cast<size_t>(block_ * keys_)) + widened_;
    zeros_.assign(std::max(scores_[0].bias_size(), results_[0].bias_size()), 0.f);
  }

  static ConvSpec scores_spec(const Attention& a, int64_t rows) {
    ConvSpec spec;
    spec.w = spec.ow = rows, spec.ic = a.q.dims[3], spec.oc = a.k.dims[3], spec.x_pixel = a.q.strides[2];
    spec.x_form = form(a.q), spec.weights_form = form(a.k);
    return spec;
  }
  static ConvSpec result_spec(const Attention& a, int64_t rows) {
    ConvSpec spec;
    spec.w = spec.ow = rows, spec.ic = a.k.dims[3], spec.oc = a.v.dims[3], spec.y_pixel = a.y.strides[2];
    spec.weights_form = form(a.v), spec.narrow.result = form(a.y);
    return spec;
  }

  void run(const StepArgs& args) const override {
    const int64_t pieces = a_.q.dims[0] * a_.q.dims[1] * blocks_;
    auto* scratch = static_cast<float*>(args.workspace);
    if (args.executor.width() > workers_) {
      for (int64_t i = 0; i < pieces; ++i) piece(args, i, scratch);
      return;
    }
    args.executor.run(static_cast<int>(pieces),
                      [&](int i, int worker) { piece(args, i, scratch + static_cast<size_t>(worker) * scratch_); });
  }

  std::string kernel() const override {
    return fmt::format("cpu/attention {} heads of {} x {}, {} rows a piece{}", a_.q.dims[0] * a_.q.dims[1], rows_,
                       keys_, block_, a_.mask ? ", masked" : "");
  }
  size_t workspace() const override { return scratch_ * sizeof(float) * static_cast<size_t>(workers_); }
  bool reads(size_t i) const override { return i == q_ || i == k_ || i == v_ || i == mask_; }

 private:
  static constexpr int64_t kScores = 64 << 10;  // scores of a unit of work, which stay in the second-level cache
  static Form form(const View& view) { return form_of(view.base->type.dtype); }
  static size_t lines(size_t floats) { return (floats + 15) / 16 * 16; }

  void piece(const StepArgs& args, int64_t index, float* scratch) const {
    const int64_t block = index % blocks_, head = index / blocks_ % a_.q.dims[1],
                  batch = index / blocks_ / a_.q.dims[1];
    const int64_t first = block * block_;
    const auto start = [&](const View& view, int64_t row) {
      return (batch * view.strides[0] + head * view.strides[1] + row * view.strides[2]) * bytes_of(form(view));
    };
    const int64_t count = std::min(block_, rows_ - first);
    const size_t last = block + 1 == blocks_;
    const Conv &scores = scores_[last], &results = results_[last];
    float *k = scratch, *v = k + packed_k_, *widened = v + packed_v_, *p = widened + widened_;
    for (int panel = 0; panel < scores.panels(); ++panel)
      scores.pack_taps(panel, input<char>(args, k_) + start(a_.k, 0), {0}, a_.k.strides[2], a_.k.strides[3], k);
    for (int panel = 0; panel < results.panels(); ++panel)
      results.pack_taps(panel, input<char>(args, v_) + start(a_.v, 0), {0}, a_.v.strides[2], a_.v.strides[3], v);
    const char* q = input<char>(args, q_) + start(a_.q, first);
    scores.run(serial_executor(), q, k, zeros_.data(), p, p, widened);
    for (int64_t row = 0; row < count; ++row)
      vector_loops().softmax_of_scores(keys_, a_.scale, mask_row(args, batch, head, first + row), p + row * keys_);
    char* y = output<char>(args) + start(a_.y, first);
    results.run(serial_executor(), p, v, zeros_.data(), y, y);
  }

  const float* mask_row(const StepArgs& args, int64_t batch, int64_t head, int64_t row) const {
    if (!a_.mask) return nullptr;
    return input(args, mask_) + batch * mask_strides_[0] + head * mask_strides_[1] + row * mask_strides_[2];
  }

  Attention a_;
  int workers_;
  size_t q_, k_, v_, mask_ = SIZE_MAX;
  int64_t rows_, keys_, block_, blocks_;
  Dims mask_strides_;
  std::vector<Conv> scores_, results_;  // for whole blocks and for the last block
  size_t packed_k_, packed_v_, widened_, scratch_;
  std::vector<float> zeros_;
};

std::optional<Attention> read(const Group& group) {
  const Node* softmax = nullptr;
  for (const Node* node : group.nodes)
    if (node->is("softmax")) softmax = node;
  if (!softmax || group.nodes.size() < 3 || group.outputs.size() != 1) return std::nullopt;
  const auto joins = [&](const Node* node) {
    return std::find(group.nodes.begin(), group.nodes.end(), node) != group.nodes.end();
  };
  const auto sole_user = [&](const Value* value) {
    const Node* user = nullptr;
    for (const Node* node : group.nodes)
      if (std::find(node->inputs.begin(), node->inputs.end(), value) != node->inputs.end()) {
        if (user) return static_cast<const Node*>(nullptr);
        user = node;
      }
    return user;
  };
  auto attention = match(*softmax, {sole_user, joins});
  if (!attention || attention->nodes.size() != group.nodes.size() || attention->y.base != group.outputs[0])
    return std::nullopt;
  return attention;
}

}  // namespace

std::vector<const Node*> find_attention(const Node& softmax, const Surroundings& around) {
  auto attention = match(softmax, around);
  return attention ? std::move(attention->nodes) : std::vector<const Node*>{};
}

Refusal refuses_attention(const Group& group) {
  const auto a = read(group);
  if (!a) return "is no attention";
  if (auto reason = not_floats(group)) return reason;
  for (const View* view : {&a->q, &a->k, &a->v})
    if (view->base->type.dtype == kBF16 && machine_has_brain_products())
      return "pairs of bf16 are multiplied by steps of their own";
  if (*element_count(a->q.dims) == 0 || *element_count(a->v.dims) == 0) return "has no elements";
  if (a->mask) {
    const Dims mask = a->mask->type.shape.sizes();
    if (mask.size() > 4 || mask.empty() || mask.back() != a->k.dims[3]) return "mask is not one number a key";
  }
  if (auto reason = Conv::refuses(AttentionStep::scores_spec(*a, a->q.dims[2]), machine_isa())) return reason;
  return Conv::refuses(AttentionStep::result_spec(*a, a->q.dims[2]), machine_isa());
}

std::unique_ptr<Step> make_attention(const Group& group, MakeContext& context) {
  return std::make_unique<AttentionStep>(group, *read(group), context);
}

}  // namespace cairn
