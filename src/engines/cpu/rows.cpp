#include "engines/cpu/rows.h"

#include <array>
#include <functional>
#include <limits>
#include <variant>

#include "engines/cpu/call_step.h"
#include "engines/cpu/channels.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/integers.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/vector_loops.h"
#include "ops/kernels.h"
#include "support/memory.h"

namespace cairn {

namespace {

Dims sizes(const Value* value) { return value->type.shape.sizes(); }

size_t positive_axis(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

// A tensor seen as rows along one axis: [outer, size, inner].
struct Rows {
  int64_t outer, size, inner;
};
Rows rows_of(const Node& node) {
  const Dims dims = sizes(node.inputs[0]);
  const size_t axis = positive_axis(node.attr().integer("axis"), dims.size());
  return {count_between(dims, 0, axis), dims[axis], count_between(dims, axis + 1, dims.size())};
}

// A reduction with x seen as [outer, middle, inner].
struct Stage {
  int64_t outer = 1, middle = 1, inner = 1;
  int64_t count() const { return outer * inner; }
};
// Reductions of axes: those next to each other in one stage, the last of x first.
struct Stages {
  std::vector<Stage> all;
  bool largest = false;  // or the smallest, where the scale is -1
  float scale = 1;
  int64_t zero = 0;  // point of bytes
  Form form = Form::floats, result = Form::floats;
};

std::vector<bool> reduced_axes(const Node& node) {
  std::vector<bool> reduced(node.inputs[0]->type.shape.rank(), false);
  for (int64_t axis : node.attr().integers("axes")) reduced[positive_axis(axis, reduced.size())] = true;
  return reduced;
}

bool is_reduction(const Group& group) {
  return group.nodes.size() == 1 && group.last().op->has(kReduction) &&
         std::string_view(group.last().op->name).starts_with("reduce_");
}

// The node that makes floats of bytes, by one scale, for a reduction, if the group is these two.
const Node* expanded_bytes(const Group& group) {
  const Node& first = *group.nodes.front();
  const bool both = group.nodes.size() == 2 && first.is("dequantize_linear") && is_byte(first.inputs[0]->type.dtype) &&
                    group.last().op->has(kReduction) && group.last().inputs[0] == first.result();
  return both && one_number(first.inputs[1]) && one_number(first.inputs[2]) ? &first : nullptr;
}

std::vector<Stage> stages_of(const Node& node) {
  const Dims dims = sizes(node.inputs[0]);
  const std::vector<bool> reduced = reduced_axes(node);
  std::vector<Stage> stages;
  int64_t left = 1;  // elements that stay behind the axes
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 1) continue;
    if (!reduced[i]) {
      left *= dims[i];
    } else if (!stages.empty() && stages.back().inner == left) {
      stages.back().middle *= dims[i];
    } else {
      stages.push_back({1, dims[i], left});
    }
    for (Stage& stage : stages)
      if (&stage != &stages.back() || !reduced[i]) stage.outer *= dims[i];
  }
  if (stages.empty()) stages.push_back({1, 1, left});
  return stages;
}

std::variant<Stages, std::string> read_reduction(const Group& group) {
  const Node* bytes = expanded_bytes(group);
  const auto found = bytes ? std::nullopt : as_rounded(group);
  if (!bytes && (!found || !found->node->op->has(kReduction))) return "is another operation";
  if (auto reason = bytes ? std::nullopt : not_floats(group)) return *reason;
  const Node& node = bytes ? group.last() : *found->node;
  const bool smallest = node.is("reduce_min");
  Stages stages;
  stages.largest = node.is("reduce_max") || smallest;
  stages.form = bytes ? form_of(bytes->inputs[0]->type.dtype) : form_in(group, node.inputs[0]);
  stages.result = form_of(group.outputs[0]->type.dtype);
  if (bytes && stages.largest) return "takes sums of bytes";
  if (!stages.largest && !node.is("reduce_mean") && !node.is("reduce_sum")) return "is another reduction";
  stages.all = stages_of(node);
  const bool narrow = is_narrow(stages.form) || is_narrow(stages.result);
  if (stages.all.size() > 1 && (narrow || bytes)) return "axes are not neighbours";
  int64_t elements = 1;
  for (const Stage& each : stages.all) elements *= each.middle;
  if (elements == 0) return "nothing to reduce";
  const Stage& first = stages.all.front();
  if (first.inner < 8 && first.inner != 1 && !folds_rows(first.outer, first.middle, first.inner))
    return "few innermost elements stay";
  if (first.inner == 1 && narrow) return "rows of 16 bits have their own kernel";
  if (bytes && (first.inner == 1 || first.middle > SumOfBytes::kMost)) return "takes floats";
  if (smallest) stages.scale = -1;
  if (node.is("reduce_mean")) stages.scale = 1.f / static_cast<float>(elements);
  if (bytes)
    stages.scale *= *one_number(bytes->inputs[1]), stages.zero = static_cast<int64_t>(*one_number(bytes->inputs[2]));
  return stages;
}

// A reduction of any axes: the offset of each result's first element, and the offsets of its elements relative to that.
struct Fold {
  Dims starts, others;
};
Fold fold_of(const Node& node) {
  const Dims dims = sizes(node.inputs[0]), strides = strides_of(dims);
  const std::vector<bool> reduced = reduced_axes(node);
  Dims kept[2], steps[2];  // dims and strides of the kept axes, then of the reduced ones
  for (size_t i = 0; i < dims.size(); ++i) {
    kept[reduced[i]].push_back(dims[i]);
    steps[reduced[i]].push_back(strides[i]);
  }
  Fold fold;
  walk<1>(kept[0], {steps[0]}, [&](int64_t, auto& at) { fold.starts.push_back(at[0]); });
  walk<1>(kept[1], {steps[1]}, [&](int64_t, auto& at) { fold.others.push_back(at[0]); });
  return fold;
}

// T: the element type, A: the accumulator type.
template <class T, class A, class Combine>
void fold_elements(const StepArgs& args, const Fold& fold, A start, bool mean, Combine&& combine) {
  const auto count = std::ssize(fold.others);
  for_each(args.executor, std::ssize(fold.starts), count, [&](int64_t i) {
    const T* x = input<T>(args, 0) + fold.starts[static_cast<size_t>(i)];
    A sum = start;
    for (int64_t at : fold.others) sum = combine(sum, static_cast<A>(x[at]));
    if constexpr (std::is_same_v<A, double>)
      if (mean) sum /= static_cast<double>(count);
    output<T>(args)[i] = T(static_cast<Compute<T>>(sum));
  });
}

template <class T>
std::function<void(const StepArgs&)> fold_numbers(const Node& node, Fold fold) {
  using C = Compute<T>;
  using Limits = std::numeric_limits<C>;
  constexpr C kInfinity = Limits::has_infinity ? Limits::infinity() : Limits::max();
  constexpr C kLeast = Limits::has_infinity ? static_cast<C>(-Limits::infinity()) : Limits::lowest();
  const auto with = [&](auto start, auto combine) {
    return [=, fold = std::move(fold), mean = node.is("reduce_mean")](const StepArgs& args) {
      fold_elements<T>(args, fold, start, mean, combine);
    };
  };
  if (node.is("reduce_max")) return with(kLeast, [](C a, C b) { return maximum(a, b); });
  if (node.is("reduce_min")) return with(kInfinity, [](C a, C b) { return minimum(a, b); });
  const bool product = node.is("reduce_prod");
  if constexpr (kIsFloat<T>) {
    if (product) return with(1.0, std::multiplies<>());
    return with(0.0, std::plus<>());
  } else {
    if (product) return with(T(1), [](T a, T b) { return wrapped(a, b, std::multiplies<>()); });
    return with(T(0), [](T a, T b) { return wrapped(a, b, std::plus<>()); });
  }
}

}  // namespace

Refusal refuses_reduction(const Group& group) {
  const auto stages = read_reduction(group);
  if (auto* reason = std::get_if<std::string>(&stages)) return *reason;
  return std::nullopt;
}

std::unique_ptr<Step> make_reduction(const Group& group, MakeContext&) {
  const Stages s = std::get<Stages>(read_reduction(group));
  const Stage first = s.all.front();
  if (is_byte(s.form)) {
    const SumOfBytes sum{first.outer, first.middle, first.inner, s.zero, s.scale, s.form == Form::signed_bytes};
    const size_t x = index_of(group, group.nodes.front()->inputs[0]);
    return call("reduce bytes",
                [=](const StepArgs& args) { sum_bytes(args.executor, sum, args.inputs[x], output(args)); });
  }
  const auto kept = [](int64_t floats) { return whole_lines(static_cast<size_t>(floats) * sizeof(float)); };
  size_t between = is_narrow(s.result) ? kept(s.all.back().count()) : 0, needed = 0;  // what stages make for the next
  for (const Stage& each : s.all) {
    if (&each != &s.all.back()) between += kept(each.count());
    if (each.inner > 1) needed = std::max(needed, reduce_workspace(each.outer, each.middle, each.inner));
  }
  const auto run = [=](const StepArgs& args) {
    auto* workspace = static_cast<char*>(args.workspace);
    auto* const scratch = reinterpret_cast<float*>(workspace + between);
    const void* x = args.inputs[0];
    for (const Stage& each : s.all) {
      const bool last = &each == &s.all.back();
      float* const y = last && !is_narrow(s.result) ? output(args) : reinterpret_cast<float*>(workspace);
      const float scale = last || s.largest ? s.scale : 1.f;
      if (each.inner == 1)
        reduce_rows(args.executor, s.largest, each.outer, each.middle, scale, static_cast<const float*>(x), y);
      else
        reduce_middle(args.executor, s.largest, each.outer, each.middle, each.inner, scale, x, y, scratch, s.form);
      x = y, workspace += kept(each.count());
    }
    if (is_narrow(s.result)) narrow(s.result, s.all.back().count(), static_cast<const float*>(x), args.outputs[0]);
  };
  return call(first.inner == 1 && s.all.size() == 1 ? "reduce_rows" : "reduce", run, {.workspace = between + needed});
}

Refusal refuses_fold(const Group& group) {
  constexpr int64_t kMost = 1 << 20;  // bound of the results and of the elements of each, whose offsets are stored
  if (!is_reduction(group)) return "is another operation";
  const Node& node = group.last();
  const bool known = node.is("reduce_sum") || node.is("reduce_mean") || node.is("reduce_max") ||
                     node.is("reduce_min") || node.is("reduce_prod") || node.is("reduce_all") || node.is("reduce_any");
  if (!known) return "is another reduction";
  if (is_narrow(node.result()->type.dtype)) return "floats of 16 bits are faster as f32";
  const int64_t results = count_of(sizes(node.result())), elements = count_of(sizes(node.inputs[0]));
  if (results > kMost || (results > 0 && elements / results > kMost)) return "has too many results or elements of one";
  return std::nullopt;
}

std::unique_ptr<Step> make_fold(const Group& group, MakeContext&) {
  const Node& node = group.last();
  Fold fold = fold_of(node);
  const DType dtype = node.result()->type.dtype;
  std::function<void(const StepArgs&)> run;
  if (dtype == kBool) {
    const bool all = node.is("reduce_all");
    run = [fold = std::move(fold), all](const StepArgs& args) {
      fold_elements<uint8_t>(args, fold, static_cast<uint8_t>(all), false,
                             [all](uint8_t a, uint8_t b) { return static_cast<uint8_t>(all ? a && b : a || b); });
    };
  } else {
    with_numbers(dtype, [&](auto tag) { run = fold_numbers<decltype(tag)>(node, std::move(fold)); });
  }
  return call("fold", std::move(run));
}

Refusal refuses_softmax(const Group& group) {
  if (!single_node(group, "softmax") && !single_node(group, "log_softmax")) return "is another operation";
  return not_f32(group);
}

std::unique_ptr<Step> make_softmax(const Group& group, MakeContext&) {
  const Rows rows = rows_of(group.last());
  const bool log = group.last().is("log_softmax");
  const auto run = [=](const StepArgs& args) {
    if (rows.outer == 0 || rows.size == 0 || rows.inner == 0) return;
    if (rows.inner == 1)
      softmax(args.executor, log, rows.outer, rows.size, input(args, 0), output(args));
    else
      softmax_middle(args.executor, log, rows.outer, rows.size, rows.inner, input(args, 0), output(args));
  };
  return call(group.last().op->name, run, {.in_place = {0}});
}

Refusal refuses_layer_norm(const Group& group) {
  const auto found = as_rounded(group);
  if (!found || !found->node->is("layer_norm")) return "is another operation";
  if (auto reason = not_floats(group)) return reason;
  const Node* node = found->node;
  for (size_t i : {1, 2})
    if (form_in(group, node->inputs[i]) != Form::floats) return "scale or offset has 16 bits";
  const Dims dims = sizes(node->result());
  const size_t axis = positive_axis(node->attr().integer("axis"), dims.size());
  const Dims own(dims.begin() + static_cast<int64_t>(axis), dims.end());
  for (size_t i : {1, 2})
    if (sizes(node->inputs[i]) != own) return "scale or offset is not one number an element of the axes";
  return std::nullopt;
}

std::unique_ptr<Step> make_layer_norm(const Group& group, MakeContext& context) {
  const Node& node = *as_rounded(group)->node;
  const int64_t c = count_of(sizes(node.inputs[1])), threads = std::max(1, context.threads);
  FormedRows forms{count_of(sizes(node.result())) / std::max<int64_t>(1, c), c};
  forms.x = form_in(group, node.inputs[0]), forms.y = form_of(group.outputs[0]->type.dtype);
  const auto epsilon = static_cast<float>(node.attr().number("epsilon"));
  const size_t x = index_of(group, node.inputs[0]), scale = index_of(group, node.inputs[1]),
               offset = index_of(group, node.inputs[2]);
  const auto run = [=](const StepArgs& args) {
    FormedRows rows = forms;
    rows.scratch = static_cast<float*>(args.workspace);
    Executor& executor = forms.narrow() ? executor_for(args, threads) : args.executor;
    layer_norm(executor, rows, epsilon, args.inputs[x], input(args, scale), input(args, offset), args.outputs[0]);
  };
  CallOptions options{.workspace = static_cast<size_t>(forms.scratch_floats() * threads) * sizeof(float)};
  if (bytes_of(forms.x) == bytes_of(forms.y)) options.in_place = {x};
  return call("layer_norm", run, std::move(options));
}

namespace {

const Node* made_by(const Value* value, std::string_view op) {
  return value->producer && value->producer->is(op) ? value->producer : nullptr;
}

// The axes of a mean that keeps dims, if they are all from one on.
std::optional<size_t> first_of_last_axes(const Node& mean) {
  if (!mean.attr().boolean("keep_dims") || !mean.result()->type.is_static()) return std::nullopt;
  const std::vector<bool> reduced = reduced_axes(mean);
  const auto first = std::find(reduced.begin(), reduced.end(), true);
  if (first == reduced.end() || std::find(first, reduced.end(), false) != reduced.end()) return std::nullopt;
  return static_cast<size_t>(first - reduced.begin());
}

/// (x - mean) / sqrt(variance + epsilon) by single nodes.
struct Normalisation {
  const Node *mean, *centred, *squares, *variance, *sum, *root, *last;
  double epsilon = 0;
};

std::optional<Normalisation> read_normalisation(const Node& last) {
  for (size_t i : {1, 0}) {
    Normalisation n{.last = &last};
    if (last.inputs.size() != 2 || (last.is("div") ? i == 0 : !last.is("mul"))) continue;
    n.root = made_by(last.inputs[i], last.is("div") ? "sqrt" : "rsqrt");
    n.centred = made_by(last.inputs[1 - i], "sub");
    n.sum = n.root ? made_by(n.root->inputs[0], "add") : nullptr;
    if (!n.sum || !n.centred || !(n.mean = made_by(n.centred->inputs[1], "reduce_mean"))) continue;
    const Value* x = n.centred->inputs[0];
    const Tensor* epsilon = nullptr;
    for (size_t k : {0, 1})
      if ((n.variance = made_by(n.sum->inputs[k], "reduce_mean")) && (epsilon = constant_of(n.sum->inputs[1 - k])))
        break;
    if (!n.variance || !epsilon || epsilon->count() != 1 || n.mean->inputs[0] != x) continue;
    n.squares = n.variance->inputs[0]->producer;
    if (!n.squares) continue;
    const Value* centred = n.centred->result();
    const bool squares = (n.squares->is("square") && n.squares->inputs[0] == centred) ||
                         (n.squares->is("mul") && n.squares->inputs[0] == centred && n.squares->inputs[1] == centred) ||
                         (n.squares->is("squared_difference") && n.squares->inputs == n.centred->inputs);
    const auto axes = first_of_last_axes(*n.mean);
    if (!squares || !axes || axes != first_of_last_axes(*n.variance)) continue;
    if (last.result()->type != x->type || x->type.dtype != kF32) continue;
    n.epsilon = epsilon->as_f64()[0];
    return n;
  }
  return std::nullopt;
}

}  // namespace

std::vector<const Node*> find_normalisation(const Node& last) {
  const auto n = read_normalisation(last);
  if (!n) return {};
  return {n->mean, n->centred, n->squares, n->variance, n->sum, n->root, n->last};
}

Refusal refuses_normalisation(const Group& group) {
  constexpr int64_t kLongRow = 64 << 10, kFewRows = 8;  // which threads share better one operation after the other
  const std::vector<const Node*> nodes = find_normalisation(group.last());
  if (nodes.empty() || !std::is_permutation(nodes.begin(), nodes.end(), group.nodes.begin(), group.nodes.end()))
    return "is another operation";
  if (group.outputs.size() != 1) return "has other results";
  const Dims dims = sizes(group.last().result());
  const int64_t rows = count_between(dims, 0, *first_of_last_axes(*nodes.front())), all = count_of(dims);
  if (rows < kFewRows && all > rows * kLongRow) return "has few, long rows";
  return std::nullopt;
}

std::unique_ptr<Step> make_normalisation(const Group& group, MakeContext&) {
  const Normalisation n = *read_normalisation(group.last());
  const Dims dims = sizes(n.last->result());
  const int64_t rows = count_between(dims, 0, *first_of_last_axes(*n.mean));
  const int64_t c = count_between(dims, *first_of_last_axes(*n.mean), dims.size());
  const auto epsilon = static_cast<float>(n.epsilon);
  const size_t x = index_of(group, n.mean->inputs[0]);
  CallOptions options{.in_place = {x}};
  options.unread = inputs_but(group, {x});
  return call(
      "normalisation",
      [=](const StepArgs& args) {
        layer_norm(args.executor, FormedRows{rows, c}, epsilon, args.inputs[x], nullptr, nullptr, args.outputs[0]);
      },
      std::move(options));
}

Refusal refuses_arg(const Group& group) {
  if (!single_node(group, "arg_max") && !single_node(group, "arg_min")) return "is another operation";
  return std::nullopt;
}

std::unique_ptr<Step> make_arg(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Rows rows = rows_of(node);
  const bool most = node.is("arg_max"), wide = node.result()->type.dtype == kI64;
  const DType dtype = node.inputs[0]->type.dtype;
  const auto put = [=](const StepArgs& args, int64_t row, int64_t index) {
    if (wide)
      output<int64_t>(args)[row] = index;
    else
      output<int32_t>(args)[row] = static_cast<int32_t>(index);
  };
  if (dtype == kF32 && rows.size <= std::numeric_limits<int32_t>::max())
    return call(node.op->name, [=](const StepArgs& args) {
      if (rows.inner == 1)
        return for_each(args.executor, rows.outer, rows.size, [&](int64_t row) {
          put(args, row, vector_loops().arg_row(most, rows.size, input(args, 0) + row * rows.size));
        });
      const int64_t blocks = (rows.inner + kLanes - 1) / kLanes;
      for_each(args.executor, rows.outer * blocks, rows.size * kLanes, [&](int64_t block) {
        const int64_t outer = block / blocks, column = block % blocks * kLanes;
        const int64_t lanes = std::min<int64_t>(kLanes, rows.inner - column);
        int32_t places[kLanes];
        vector_loops().arg_columns(most, rows.size, rows.inner, lanes,
                                   input(args, 0) + outer * rows.size * rows.inner + column, places);
        for (int64_t i = 0; i < lanes; ++i) put(args, outer * rows.inner + column + i, places[i]);
      });
    });
  return call(node.op->name, [=](const StepArgs& args) {
    with_numbers(dtype, [&](auto tag) {
      using T = decltype(tag);
      using C = Compute<T>;
      for_each(args.executor, rows.outer * rows.inner, rows.size, [&](int64_t row) {
        const T* x = input<T>(args, 0) + row / rows.inner * rows.size * rows.inner + row % rows.inner;
        C best = most ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
        int64_t index = 0;
        for (int64_t i = 0; i < rows.size; ++i) {
          const C value = static_cast<C>(x[i * rows.inner]);
          if (most ? value > best : value < best) best = value, index = i;
        }
        put(args, row, index);
      });
    });
  });
}

Refusal refuses_cumsum(const Group& group) {
  return single_node(group, "cumsum") ? std::nullopt : Refusal("is another operation");
}

namespace {

constexpr int64_t kMostColumns = 64;

/// Sums so far of columns side by side, whose rows lie `step` floats apart.
CAIRN_VECTORISED(void, sum_columns_so_far,
                 (int64_t size, int64_t step, int64_t columns, bool exclusive, const float* x, float* y)) {
  double sums[kMostColumns] = {};
  for (int64_t row = 0; row < size; ++row, x += step, y += step)
    for (int64_t i = 0; i < columns; ++i) {
      const double before = sums[i];
      sums[i] += static_cast<double>(x[i]);
      y[i] = static_cast<float>(exclusive ? before : sums[i]);
    }
}

template <class T>
void sum_so_far(int64_t size, int64_t step, bool exclusive, const T* x, T* y) {
  Sum<T> sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    const Sum<T> before = sum;
    if constexpr (kIsFloat<T>)
      sum += static_cast<double>(x[i * step]);
    else
      sum = wrapped(sum, x[i * step], std::plus<>());
    y[i * step] = T(static_cast<Compute<T>>(exclusive ? before : sum));
  }
}

}  // namespace

std::unique_ptr<Step> make_cumsum(const Group& group, MakeContext& context) {
  const Node& node = group.last();
  const Rows rows = rows_of(node);
  const bool exclusive = node.attr().boolean("exclusive"), backwards = node.attr().boolean("reverse");
  const DType dtype = node.result()->type.dtype;
  const int64_t step = backwards ? -rows.inner : rows.inner, start = backwards ? (rows.size - 1) * rows.inner : 0;
  // Each row's sums wait for those of the row before: the more columns there are, the more additions go on meanwhile.
  const int64_t each = rows.outer * rows.inner / std::max(1, context.threads);
  const int64_t together = dtype != kF32 || rows.inner == 1 ? 1 : each < kMostColumns ? kLanes : kMostColumns;
  const int64_t blocks = (rows.inner + together - 1) / together;
  return call("cumsum", [=](const StepArgs& args) {
    for_each(args.executor, rows.outer * blocks, rows.size * together, [&](int64_t block) {
      const int64_t column = block % blocks * together, columns = std::min(together, rows.inner - column);
      const int64_t at = block / blocks * rows.size * rows.inner + start + column;
      if (together > 1)
        return sum_columns_so_far(rows.size, step, columns, exclusive, input(args, 0) + at, output(args) + at);
      with_numbers(dtype, [&](auto tag) {
        using T = decltype(tag);
        sum_so_far(rows.size, step, exclusive, input<T>(args, 0) + at, output<T>(args) + at);
      });
    });
  });
}

}  // namespace cairn
