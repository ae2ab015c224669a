// Beam search over the labellings of connectionist temporal classification (Graves, "Supervised sequence labelling with
// recurrent neural networks", 2012, chapter 7.5).
#include <map>

#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();  // log of 0

double log_add(double a, double b) {
  if (a == kNever) return b;
  if (b == kNever) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

/// Log probabilities of a prefix: total, of the paths that end with a blank, of those that end with its last label.
struct Chances {
  double total = kNever, blank = kNever, label = kNever;
};

struct Prefix {
  Prefix* parent = nullptr;
  int64_t label = -1;
  Chances before, now;
  std::map<int64_t, std::unique_ptr<Prefix>> longer = {};
  bool active() const { return now.total != kNever; }
};

/// The beam search over one sequence: after each step the `width` most probable prefixes are kept.
class BeamSearch {
 public:
  explicit BeamSearch(size_t width) : width_(width) {
    root_.now.total = root_.now.blank = 0;
    beam_ = {&root_};
  }

  /// One step; `logs` are the log probabilities of the classes, of which the last is the blank.
  void step(const std::vector<double>& logs) {
    const std::vector<Prefix*> prefixes = std::exchange(beam_, {});
    for (Prefix* prefix : prefixes) prefix->before = prefix->now;
    for (Prefix* prefix : prefixes) {
      stay(*prefix, logs);
      keep(prefix);
    }
    for (Prefix* prefix : prefixes)
      if (is_candidate(prefix->before.total)) grow(*prefix, logs);
  }

  size_t size() const { return beam_.size(); }
  double log_probability(size_t rank) const { return beam_[rank]->now.total; }
  /// The labels of the prefix of that rank; `merge_repeated` merges equal adjacent labels into one.
  std::vector<int64_t> labels(size_t rank, bool merge_repeated) const {
    std::vector<int64_t> labels;
    int64_t last = -1;
    for (const Prefix* prefix = beam_[rank]; prefix->parent != nullptr; prefix = prefix->parent) {
      if (!merge_repeated || prefix->label != last) labels.push_back(prefix->label);
      last = prefix->label;
    }
    std::reverse(labels.begin(), labels.end());
    return labels;
  }

 private:
  void stay(Prefix& prefix, const std::vector<double>& logs) {
    if (prefix.parent != nullptr) {
      if (prefix.parent->active()) {
        const Chances& shorter = prefix.parent->before;
        prefix.now.label =
            log_add(prefix.now.label, prefix.label == prefix.parent->label ? shorter.blank : shorter.total);
      }
      prefix.now.label += logs[static_cast<size_t>(prefix.label)];
    }
    prefix.now.blank = prefix.before.total + logs.back();
    prefix.now.total = log_add(prefix.now.blank, prefix.now.label);
  }

  void grow(Prefix& prefix, const std::vector<double>& logs) {
    for (const int64_t label : turns(std::ssize(logs) - 1, 16)) {
      auto& place = prefix.longer[label];
      if (place == nullptr) place = std::make_unique<Prefix>(Prefix{&prefix, label, {}, {}});
      Prefix& longer = *place;
      if (longer.active()) continue;
      const double shorter = label == prefix.label ? prefix.before.blank : prefix.before.total;
      longer.now.blank = kNever;
      longer.now.total = longer.now.label = logs[static_cast<size_t>(label)] + shorter;
      if (!is_candidate(longer.now.total)) {
        longer.before = longer.now = {};
        continue;
      }
      if (beam_.size() == width_) {
        beam_.back()->now = {};
        beam_.pop_back();
      }
      keep(&longer);
    }
  }

  bool is_candidate(double total) const {
    return total > kNever && (beam_.size() < width_ || total > beam_.back()->now.total);
  }
  /// Inserts the prefix into the beam, which is sorted by decreasing probability.
  void keep(Prefix* prefix) {
    auto at = std::upper_bound(beam_.begin(), beam_.end(), prefix,
                               [](const Prefix* a, const Prefix* b) { return a->now.total > b->now.total; });
    beam_.insert(at, prefix);
  }

  size_t width_;
  Prefix root_;
  std::vector<Prefix*> beam_;
};

void ctc_beam_search(KernelContext& context) {
  allocate_results(context);
  const Tensor& logits = context.input(0);
  const int64_t steps = logits.dims()[0], batch = logits.dims()[1], classes = logits.dims()[2];
  const Dims lengths = context.input(1).as_i64();
  const int64_t paths = context.attr.integer("top_paths");
  std::fill_n(data<int64_t>(context.output(0)), context.output(0).count(), -1);
  with_floats(logits.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (const int64_t b : turns(batch)) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      if (length < 0 || length > steps) context.fail("sequence {} has {} of {} steps", b, length, steps);
      BeamSearch search(static_cast<size_t>(context.attr.integer("beam_width")));
      std::vector<double> logs(static_cast<size_t>(classes));
      for (const int64_t t : turns(length, 8 * classes)) {
        const T* from = data<T>(logits) + (t * batch + b) * classes;
        double most = kNever, sum = 0;
        for (int64_t c = 0; c < classes; ++c) most = std::max(most, static_cast<double>(from[c]));
        for (int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(from[c]) - most);
        for (size_t c = 0; c < logs.size(); ++c) logs[c] = static_cast<double>(from[c]) - most - std::log(sum);
        search.step(logs);
      }
      if (static_cast<int64_t>(search.size()) < paths)
        context.fail("sequence {} has {} paths, {} are wanted", b, search.size(), paths);
      for (const int64_t p : turns(paths)) {
        const auto labels = search.labels(static_cast<size_t>(p), context.attr.boolean("merge_repeated"));
        std::copy(labels.begin(), labels.end(), data<int64_t>(context.output(0)) + (p * batch + b) * steps);
        data<int64_t>(context.output(1))[p * batch + b] = std::ssize(labels);
        data<T>(context.output(2))[b * paths + p] =
            T(static_cast<Compute<T>>(search.log_probability(static_cast<size_t>(p))));
      }
    }
  });
}

void infer_ctc_beam_search(InferContext& context) {
  number_type(context, 0);
  const int64_t paths = context.attr.integer("top_paths"), width = context.attr.integer("beam_width");
  if (width < 1 || width > (1 << 20) || paths < 1 || paths > width)
    context.fail("beam_width is {}, top_paths {}", width, paths);
  Dim steps, batch;
  if (ranked(context, 0, 3)) {
    steps = context.shape(0).dims[0], batch = context.shape(0).dims[1];
    if (context.shape(0).dims[2].size == 0) context.fail("there are no classes");
  }
  if (ranked(context, 1, 1)) batch = same_size(context, batch, context.shape(1).dims[0], "numbers of sequences");
  context.result(kI64, Shape{Dim(paths), batch, steps});
  context.result(kI64, Shape{Dim(paths), batch});
  context.result(context.dtype(0), Shape{batch, Dim(paths)});
}

std::vector<OpDef> make_ctc_decoding_rows() {
  return {
      {.name = "ctc_beam_search",
       .summary =
           "the most probable labellings that logits [steps, batch, classes], whose last class is the blank, give by "
           "connectionist temporal classification, found by a search that keeps beam_width prefixes: labels with -1 "
           "behind them, their numbers, and logarithms of the probabilities; merge_repeated leaves one of equal "
           "neighbours",
       .inputs = {{"logits", Accepts::floats}, index_operand("lengths")},
       .attributes = {integer("beam_width", 100), integer("top_paths", 1), flag("merge_repeated")},
       .results = {"paths", "lengths", "log_probability"},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_ctc_beam_search,
       .flops =
           [](const InferContext& context) {
             return 10 * static_cast<double>(known_count(context.shape(0)).value_or(0)) *
                    static_cast<double>(context.attr.integer("beam_width"));
           },
       .no_gradient = "which paths are best is piecewise constant; ctc_loss is differentiable",
       .reference = ctc_beam_search,
       .oracle = {"ctc_beam_search(logits, lengths, beam_width, top_paths, merge_repeated)"},
       .cases = {"f32[5, 2, 4], i32[2]=[5, 3] {beam_width = 10, top_paths = 2}",
                 "f32[6, 1, 3], i64[1]=[6] {beam_width = 3, merge_repeated = true}", "f32[4, 0, 3], i32[0]=[]"}},
  };
}

}  // namespace

std::span<const OpDef> ctc_decoding_ops() {
  static const std::vector<OpDef> rows = make_ctc_decoding_rows();
  return rows;
}

}  // namespace cairn
