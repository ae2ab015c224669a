#include "compare/comparison.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <new>
#include <set>

#include "compare/formats/layout.h"
#include "formats/names.h"
#include "judge/rounding.h"
#include "support/denormals.h"

namespace cairn::compare {

namespace {

constexpr float kLargestHalf = 65504;

std::string text(const std::vector<int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

// --- bringing two tensors to one layout ---

/// Plain layouts that the reference's tensor may have, the likely one first.
std::vector<const Layout*> plain_layouts(size_t rank, const std::string& known, const Layout& from) {
  std::vector<const char*> names;
  if (from.parts.find('R') != std::string_view::npos)
    names = {"ND"};
  else if (rank == 4)
    names = {"NCHW", "NHWC", "HWCN", "CHWN"};
  else if (rank == 5)
    names = {"NCDHW", "NDHWC", "DHWCN"};
  std::vector<const Layout*> layouts;
  if (const Layout* layout = find_layout(known)) layouts.push_back(layout);
  for (const char* name : names)
    if (name != known) layouts.push_back(find_layout(name));
  return layouts;
}

std::vector<int64_t> without_ones(std::vector<int64_t> dims) {
  std::erase(dims, 1);
  return dims;
}

/// `tensor` in its device layout as the reference holds it; itself when the dims are equal already. `exact`: they must be.
Tensor to_reference_form(const LoadedTensor& mine, const LoadedTensor& golden, const std::string& golden_layout,
                         bool exact) {
  const Tensor& tensor = mine.tensor;
  const std::vector<int64_t>& target = golden.tensor.dims();
  const Layout* from = find_layout(mine.layout);
  bool equal_layouts = golden_layout.empty() || mine.layout.empty() || mine.layout == golden_layout;
  if (tensor.dims() == target && (equal_layouts || from == nullptr || mine.layout == "ND")) return tensor;
  PackedFormat format = unpack_format(mine.format);
  if (from != nullptr && format.sub_format > 1 && mine.layout.starts_with("FRACTAL_Z"))
    fail(ErrorKind::unsupported, "", "{} with {} groups has no converter", mine.layout, format.sub_format);
  if (from != nullptr)
    for (const Layout* to : plain_layouts(target.size(), golden_layout, *from))
      if (fits(*from, tensor.dims(), *to, target)) return from_blocks(tensor, *from, *to, target);
  // A dump may hold a tensor flattened; other dims of the same rank are another tensor.
  const bool regrouped = from != nullptr || tensor.rank() != target.size();
  if (!exact && tensor.count() == golden.tensor.count() &&
      (regrouped || without_ones(tensor.dims()) == without_ones(target)))
    return tensor;
  // The device may hold a tensor of other rank: [N,C] as [N,C1,1,1,C0]. Its own original shape is the way then.
  std::optional<int64_t> original = element_count(mine.original_dims);
  if (from != nullptr && original && *original == golden.tensor.count())
    for (const Layout* to : plain_layouts(mine.original_dims.size(), golden_layout, *from))
      if (fits(*from, tensor.dims(), *to, mine.original_dims))
        return from_blocks(tensor, *from, *to, mine.original_dims);
  fail(ErrorKind::invalid_argument, "", "shapes differ: {}{} against {}", mine.layout.empty() ? "" : mine.layout + " ",
       text(tensor.dims()), text(target));
}

// --- pairing ---

struct GoldenTensor {
  const DumpedOp* op;
  const TensorSource* source;
};

/// Tensors of one step of the reference, by plain name; executions of the same operator in order of time.
class GoldenIndex {
 public:
  GoldenIndex(const DumpStep& step, const OpMapping& mapping) {
    for (const DumpedOp& op : step.ops) {
      for (const TensorSource& source : op.tensors) {
        Origin origin = source.input ? Origin() : origin_of_output(mapping, op.name, source.index);
        if (!source.input && origin.name.empty()) origin = {source.origin, source.origin_index, ""};
        // A file of ours may hold results of several source nodes: the place in it is not the result's number.
        const bool ours = !op.sources.empty() && !origin.name.empty();
        if (!ours) add(op.name, source.input, source.index, {&op, &source});
        if (source.input) continue;
        if (ours)
          add(origin.name, false, origin.index, {&op, &source});
        else if (!origin.name.empty() && plain_name(origin.name) != plain_name(op.name))
          add(origin.name, false, origin.index, {&op, &source});
      }
    }
  }
  const std::vector<GoldenTensor>* find(const std::string& op, bool input, int index) const {
    auto found = tensors_.find({plain_name(op), input, index});
    return found == tensors_.end() ? nullptr : &found->second;
  }

 private:
  using Key = std::tuple<std::string, bool, int>;
  std::map<Key, std::vector<GoldenTensor>> tensors_;
  void add(const std::string& op, bool input, int index, GoldenTensor tensor) {
    tensors_[{plain_name(op), input, index}].push_back(tensor);
  }
};

/// "tf:conv1/Conv2D" without the framework's mark.
std::string without_mark(const std::string& source) {
  size_t colon = source.find(':');
  return colon == std::string::npos || colon > 8 ? source : source.substr(colon + 1);
}

/// Names under which the reference may hold a tensor of `op`, the surest first.
std::vector<Origin> candidates(const DumpedOp& op, const TensorSource& source, const OpMapping& mapping) {
  std::vector<Origin> list;
  auto add = [&](Origin origin) {
    if (!origin.name.empty()) list.push_back(std::move(origin));
  };
  if (source.input) {
    add(origin_of_input(mapping, op.name, source.index));
    add({op.name, source.index, "input"});
    return list;
  }
  add(origin_of_output(mapping, op.name, source.index));
  add({source.origin, source.origin_index, ""});
  // "split:slice" of ours is a value on the way to a result of split, none of its results.
  const bool inner = !op.sources.empty() && op.name.starts_with(without_mark(op.sources.back()) + ":");
  if (!op.sources.empty() && !inner) add({without_mark(op.sources.back()), source.index, ""});
  add({op.name, source.index, ""});
  add({"input_" + op.name, source.index, ""});
  return list;
}

struct Pair {
  Row row;
  const DumpedOp* op = nullptr;
  std::optional<TensorSource> mine, golden;
  std::string golden_layout;
  bool plain = false;  // of trees whose names and shapes are to be the same
};

class Pairing {
 public:
  Pairing(const DumpStep& mine, const DumpStep& golden, const OpMapping& mapping, const OpMapping& golden_mapping)
      : mine_(mine), golden_(golden), mapping_(mapping), index_(golden, golden_mapping) {}

  std::vector<Pair> pairs() {
    std::vector<Pair> pairs;
    size_t sequence = 0;
    for (const DumpedOp* op : in_model_order()) {
      ++sequence;
      if (op->tensors.empty()) pairs.push_back(blank(*op, sequence));
      for (const TensorSource& source : op->tensors) pairs.push_back(pair(*op, source, sequence));
    }
    for (const DumpedOp& op : golden_.ops) {
      bool used = std::any_of(op.tensors.begin(), op.tensors.end(), [&](const auto& t) { return used_.contains(&t); });
      if (used || mapped_.contains(plain_name(op.name))) continue;
      Pair only;
      only.row.op_type = op.type, only.row.golden = op.name, only.row.golden_path = op.path;
      only.row.sequence = ++sequence;
      only.row.reason = op.fault.empty() ? "the operator is not in NPUDump" : op.fault;
      pairs.push_back(std::move(only));
    }
    return pairs;
  }

 private:
  /// By the mapping's order when it knows the operators, else as they ran.
  std::vector<const DumpedOp*> in_model_order() const {
    std::vector<const DumpedOp*> ops;
    for (const DumpedOp& op : mine_.ops) ops.push_back(&op);
    auto place = [&](const DumpedOp* op) {
      const MappedOp* mapped = mapping_.find(op->name);
      return mapped == nullptr ? std::numeric_limits<size_t>::max() : mapped->sequence;
    };
    bool known = !ops.empty() && std::all_of(ops.begin(), ops.end(), [&](auto* op) { return mapping_.find(op->name); });
    if (known) std::stable_sort(ops.begin(), ops.end(), [&](auto* a, auto* b) { return place(a) < place(b); });
    return ops;
  }

  Pair blank(const DumpedOp& op, size_t sequence) const {
    Pair pair;
    pair.op = &op;
    pair.row.sequence = sequence;
    const MappedOp* mapped = mapping_.find(op.name);
    pair.row.op_type = op.type.empty() && mapped != nullptr ? mapped->type : op.type;
    pair.row.mine = op.name, pair.row.mine_path = op.path, pair.row.location = op.location;
    pair.row.reason = op.fault;
    return pair;
  }

  Pair pair(const DumpedOp& op, const TensorSource& source, size_t sequence) {
    Pair pair = blank(op, sequence);
    pair.mine = source;
    pair.row.has_tensor = true;
    pair.row.input = source.input, pair.row.index = source.index, pair.row.mine_path = source.path;
    const MappedOp* mapped = mapping_.find(op.name);
    if (mapped != nullptr)
      for (const std::string& original : mapped->originals) mapped_.insert(plain_name(original));
    for (const Origin& origin : candidates(op, source, mapping_)) {
      bool input = origin.layout == "input";
      const std::vector<GoldenTensor>* found = index_.find(origin.name, input, origin.index);
      if (found == nullptr) continue;
      const GoldenTensor& golden = counterpart(*found, origin, input);
      used_.insert(golden.source);
      pair.golden = *golden.source;
      pair.golden_layout = input ? "" : origin.layout;
      pair.row.golden = mapped != nullptr && !mapped->originals.empty()
                            ? fmt::format("{}", fmt::join(mapped->originals, ","))
                            : golden.op->name;
      pair.row.golden_path = golden.source->path;
      return pair;
    }
    pair.row.reason = source.input ? "the input is not in GroundTruth" : "the operator is not in GroundTruth";
    return pair;
  }

  /// Of the executions of one operator the next one; of names that differ in folders and dots only the same.
  const GoldenTensor& counterpart(const std::vector<GoldenTensor>& found, const Origin& origin, bool input) {
    auto same = [&](const GoldenTensor& each) {
      return each.op->name == origin.name || each.source->origin == origin.name;
    };
    const bool exact = std::any_of(found.begin(), found.end(), same);
    size_t run = runs_[{origin.name, input, origin.index}]++;
    const GoldenTensor* last = &found.back();
    for (const GoldenTensor& each : found) {
      if (exact && !same(each)) continue;
      last = &each;
      if (run-- == 0) break;
    }
    return *last;
  }

  const DumpStep& mine_;
  const DumpStep& golden_;
  const OpMapping& mapping_;
  std::map<std::tuple<std::string, bool, int>, size_t> runs_;  // of a tensor so far
  GoldenIndex index_;
  std::set<const TensorSource*> used_;
  std::set<std::string> mapped_;
};

/// Steps of both trees that belong together: by number when both have several.
std::vector<std::pair<const DumpStep*, const DumpStep*>> paired_steps(const DumpTree& mine, const DumpTree& golden) {
  for (const DumpTree* tree : {&mine, &golden})
    if (tree->steps.empty())
      fail(ErrorKind::not_found, tree->root, "holds no dump files ({} other files)", tree->other_files);
  if (mine.steps.size() == 1 && golden.steps.size() == 1) return {{&mine.steps[0], &golden.steps[0]}};
  std::vector<std::pair<const DumpStep*, const DumpStep*>> pairs;
  for (const DumpStep& step : mine.steps) {
    const DumpStep* same = nullptr;
    for (const DumpStep& other : golden.steps) {
      bool by_number = step.number && other.number && *step.number == *other.number;
      if (!by_number && step.folder != other.folder) continue;
      if (same != nullptr)
        fail(ErrorKind::invalid_argument, golden.root, "holds step {} in {} and in {}; name one of the folders",
             step.folder, same->folder, other.folder);
      same = &other;
    }
    if (same != nullptr) pairs.push_back({&step, same});
  }
  if (pairs.empty())
    fail(ErrorKind::invalid_argument, mine.root,
         "has the steps {} to {}, {} has {} to {}: name two folders that belong together", mine.steps.front().folder,
         mine.steps.back().folder, golden.root, golden.steps.front().folder, golden.steps.back().folder);
  return pairs;
}

// --- measuring and judging ---

bool half_overflow(const Tensor& tensor) {
  std::vector<float> storage;
  auto values = as_floats(tensor, storage);
  return std::any_of(values.begin(), values.end(), [](float v) { return std::abs(v) >= kLargestHalf; });
}

Verdict judged(Row& row, const Thresholds& thresholds) {
  const Diagnosis& d = *row.diagnosis;
  row.finding = d.finding();
  // Two correct operators of this kind may differ by the bound.
  if (judge::agrees(d.distance, row.bound)) {
    row.finding.clear();
    return Verdict::pass;
  }
  if (d.distance.unlike > 0) return Verdict::fail;
  double cosine = row.metrics[Metric::cosine], distance = row.metrics[Metric::relative_euclidean];
  if (d.zero_mismatch() || cosine < thresholds.cosine || distance > thresholds.relative_euclidean) return Verdict::fail;
  // Values that are not finite on both sides leave these without a number.
  return std::isnan(cosine) || std::isnan(distance) || !row.finding.empty() ? Verdict::warning : Verdict::pass;
}

/// Floats of any width are compared, integers and booleans as well, but not one kind with the other.
void expect_same_kind(const LoadedTensor& mine, const LoadedTensor& golden) {
  auto kind = [](DType dtype) { return dtype.is_float() ? 0 : dtype == kString ? 1 : dtype == kC64 ? 2 : 3; };
  if (kind(mine.tensor.dtype()) != kind(golden.tensor.dtype()))
    fail(ErrorKind::invalid_argument, "", "types differ: {} against {}", mine.dtype, golden.dtype);
}

void compare_texts(Row& row, const Tensor& mine, const Tensor& golden) {
  const judge::Distance distance = judge::distance(mine, golden);
  row.verdict = judge::agrees(distance, 0) ? Verdict::pass : Verdict::fail;
  if (distance.unlike > 0) row.reason = fmt::format("{} of {} texts differ", distance.unlike, mine.count());
}

void measure_pair(Pair& pair, const std::vector<Tensor>& golden_inputs, const CompareOptions& options) {
  Row& row = pair.row;
  LoadedTensor stored = load(*pair.mine, options.mine_version);
  row.mine_type = stored.dtype, row.mine_address = stored.address, row.dims = stored.tensor.dims();
  if (stored.tensor.dtype() == kF16) row.overflow = half_overflow(stored.tensor);
  LoadedTensor reference = load(*pair.golden, options.golden_version);
  row.golden_type = reference.dtype, row.golden_address = reference.address;
  expect_same_kind(stored, reference);
  Tensor mine = to_reference_form(stored, reference, pair.golden_layout, pair.plain);
  const Tensor& golden = reference.tensor;
  if (mine.dtype() == kString) return compare_texts(row, mine, golden);
  row.metrics = judge::measure(mine, golden, options.limit);
  row.reason = row.metrics.note;
  std::vector<float> storage_x, storage_y;
  auto x = as_floats(mine, storage_x), y = as_floats(golden, storage_y);
  if (options.limit >= 0 && static_cast<size_t>(options.limit) < x.size())
    x = x.first(static_cast<size_t>(options.limit)), y = y.first(static_cast<size_t>(options.limit));
  DType storage = judge::coarser(mine.dtype(), golden.dtype());
  row.diagnosis = judge::diagnose(x, y, storage);
  if (!row.input && (mine.dtype().is_float() || golden.dtype().is_float()))
    if (auto facts = judge::bound_facts(row.op_type, golden_inputs, golden, storage))
      row.bound = judge::error_bound(*facts);
  row.verdict = judged(row, options.thresholds);
}

/// The tensors of the reference that `op` reads, when all of them were dumped on either side.
std::vector<Tensor> inputs_of(const std::vector<Pair>& pairs, size_t at, const CompareOptions& options) {
  std::vector<Tensor> inputs;
  for (size_t i = at; i-- > 0 && pairs[i].op == pairs[at].op && pairs[at].op != nullptr;) {
    if (!pairs[i].row.input || !pairs[i].mine) continue;
    const TensorSource& source = pairs[i].golden ? *pairs[i].golden : *pairs[i].mine;
    inputs.insert(inputs.begin(), load(source, pairs[i].golden ? options.golden_version : options.mine_version).tensor);
  }
  return inputs;
}

void measure_row(std::vector<Pair>& pairs, size_t at, const CompareOptions& options) {
  Pair& pair = pairs[at];
  if (!pair.mine || !pair.golden || options.only_names) return;
  KeepDenormals keep;
  try {
    std::vector<Tensor> inputs;
    if (!pair.row.input) {
      try {
        inputs = inputs_of(pairs, at, options);
      } catch (const Error&) {
        // An input that cannot be read has a row of its own that says so; this row goes without a bound.
        inputs.clear();
      }
    }
    measure_pair(pair, inputs, options);
  } catch (const Error& error) {
    pair.row.reason = error.what(), pair.row.verdict = Verdict::fail;
  } catch (const std::bad_alloc&) {
    pair.row.reason = "comparing it needs more memory than there is", pair.row.verdict = Verdict::fail;
  }
}

bool chosen(const Pair& pair, const CompareOptions& options) {
  if (options.only_op && plain_name(pair.row.mine) != plain_name(*options.only_op)) return false;
  size_t place = pair.row.sequence;
  if (!options.selected.empty())
    return std::find(options.selected.begin(), options.selected.end(), place) != options.selected.end();
  return place >= options.first && (options.last == 0 || place <= options.last) &&
         (place - options.first) % options.every == 0;
}

}  // namespace

std::string Row::tensor_name() const {
  return has_tensor ? fmt::format("{}:{}:{}", mine, input ? "input" : "output", index) : "*";
}

size_t Comparison::count(Verdict verdict) const {
  return static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [&](const Row& r) { return r.verdict == verdict; }));
}

const Row* Comparison::first_suspect() const {
  std::vector<judge::Judged> values(rows.size());
  std::vector<size_t> inputs;  // of the operator
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i].sequence != rows[i - 1].sequence || rows[i].step != rows[i - 1].step) inputs.clear();
    if (rows[i].input)
      inputs.push_back(i);
    else
      values[i].inputs = inputs;
    values[i].verdict = rows[i].verdict;
  }
  const std::vector<bool> first = judge::first_faults(values);
  const Row* suspect = nullptr;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (first[i] && !rows[i].input) return &rows[i];
    if (suspect == nullptr && rows[i].verdict == Verdict::fail) suspect = &rows[i];
  }
  return suspect;
}

TensorPair load_pair(const DumpTree& mine, const DumpTree& golden, const OpMapping& mapping,
                     const OpMapping& golden_mapping, const CompareOptions& options, const std::string& op, bool input,
                     int index) {
  bool seen = false;
  for (auto [mine_step, golden_step] : paired_steps(mine, golden)) {
    for (const Pair& pair : Pairing(*mine_step, *golden_step, mapping, golden_mapping).pairs()) {
      if (plain_name(pair.row.mine) != plain_name(op)) continue;
      seen = true;
      if (!pair.mine || pair.row.input != input || pair.row.index != index) continue;
      if (!pair.golden) fail(ErrorKind::not_found, pair.row.tensor_name(), "{}", pair.row.reason);
      LoadedTensor stored = load(*pair.mine, options.mine_version);
      LoadedTensor reference = load(*pair.golden, options.golden_version);
      return {to_reference_form(stored, reference, pair.golden_layout, false), reference.tensor};
    }
  }
  if (!seen) fail(ErrorKind::not_found, mine.root, "holds no operator {}", op);
  fail(ErrorKind::not_found, op, "has no {} {} in {}", input ? "input" : "output", index, mine.root);
}

Comparison compare_trees(const DumpTree& mine, const DumpTree& golden, const OpMapping& mapping,
                         const OpMapping& golden_mapping, const CompareOptions& options, Executor& executor) {
  Comparison result;
  result.mine = mine.root, result.golden = golden.root;
  result.other_files = mine.other_files;
  result.overflow_files = mine.overflow;
  auto steps = paired_steps(mine, golden);
  std::vector<Pair> pairs;
  for (auto [mine_step, golden_step] : steps) {
    std::vector<Pair> found = Pairing(*mine_step, *golden_step, mapping, golden_mapping).pairs();
    for (Pair& pair : found) {
      if (!chosen(pair, options)) continue;
      if (steps.size() > 1) pair.row.step = mine_step->number;
      pair.plain = mine.plain && golden.plain;
      const bool alone = !pair.mine || !pair.golden;
      if (pair.op != nullptr && !pair.op->fault.empty()) pair.row.verdict = Verdict::fail;
      if (pair.plain && alone && pair.row.verdict == Verdict::none) {
        pair.row.verdict = Verdict::fail;
        pair.row.reason = fmt::format("is not in {}", pair.mine ? golden.root : mine.root);
      }
      pairs.push_back(std::move(pair));
    }
  }
  const bool selects = options.first > 1 || !options.selected.empty();
  if (pairs.empty() && selects && !options.only_op)
    fail(ErrorKind::not_found, mine.root, "holds no operator at the places that were chosen; it has {}",
         steps[0].first->ops.size());
  if (pairs.empty() && options.only_op) fail(ErrorKind::not_found, mine.root, "holds no operator {}", *options.only_op);
  std::atomic<size_t> done = 0;
  executor.run(static_cast<int>(pairs.size()), [&](int chunk, int worker) {
    measure_row(pairs, static_cast<size_t>(chunk), options);
    size_t now = ++done;
    if (worker == 0 && options.progress) options.progress(now, pairs.size());
  });
  for (Pair& pair : pairs) result.rows.push_back(std::move(pair.row));
  return result;
}

Advice advise(const Comparison& comparison) {
  constexpr double kGood = 0.99;
  auto cosine = [](const Row& row) { return row.metrics[Metric::cosine]; };
  for (const Row& row : comparison.rows)
    if (row.overflow.value_or(false))
      return {"FP16 Overflow",
              fmt::format("float16 overflow in {}: values at or above 65504; keep this operator in float32",
                          row.tensor_name())};
  for (const Row& row : comparison.rows) {
    if (row.sequence != comparison.rows.front().sequence) break;
    if (row.input && cosine(row) < kGood)
      return {"Input Inconsistent",
              fmt::format("the inputs differ already: {} has cosine similarity {}; feed both sides the "
                          "same data and switch off shuffling and dropout",
                          row.tensor_name(), row.metrics.text(Metric::cosine))};
  }
  const Row *first = nullptr, *last = nullptr;
  for (const Row& row : comparison.rows) {
    if (std::isnan(cosine(row))) continue;
    last = &row;
    if (first == nullptr && cosine(row) < kGood) first = &row;
  }
  if (first == nullptr) {
    std::string text = "all compared tensors have a cosine similarity of at least 0.99";
    if (const Row* suspect = comparison.first_suspect())  // cosine is blind to factors
      text += fmt::format("; {} differs all the same{}", suspect->tensor_name(),
                          suspect->finding.empty() ? "" : ": " + suspect->finding);
    return {"Global Consistency", std::move(text)};
  }
  bool problem = cosine(*last) < kGood;
  return {"Global Consistency",
          fmt::format("{}: {} is the first tensor below 0.99 ({}), and the last one, {}, is {} ({})",
                      problem ? "problem" : "deviation", first->tensor_name(), first->metrics.text(Metric::cosine),
                      last->tensor_name(), problem ? "below it too" : "good", last->metrics.text(Metric::cosine))};
}

}  // namespace cairn::compare
