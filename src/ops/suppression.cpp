// Ops that keep the best of overlapping boxes.
#include <queue>

#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

// Intersection over union of two boxes, each given by two opposite corners.
float overlap(const float* a, const float* b) {
  const float top_a = std::min(a[0], a[2]), bottom_a = std::max(a[0], a[2]), left_a = std::min(a[1], a[3]),
              right_a = std::max(a[1], a[3]), top_b = std::min(b[0], b[2]), bottom_b = std::max(b[0], b[2]),
              left_b = std::min(b[1], b[3]), right_b = std::max(b[1], b[3]);
  const float area_a = (bottom_a - top_a) * (right_a - left_a), area_b = (bottom_b - top_b) * (right_b - left_b);
  if (area_a <= 0 || area_b <= 0) return 0;
  const float common = std::max(std::min(bottom_a, bottom_b) - std::max(top_a, top_b), 0.0f) *
                       std::max(std::min(right_a, right_b) - std::max(left_a, left_b), 0.0f);
  return common / (area_a + area_b - common);
}

struct Candidate {
  float score;
  int64_t box;
  size_t compared;  // number of selected boxes that it was compared with
  bool operator<(const Candidate& other) const {
    return score < other.score || (score == other.score && box > other.box);
  }
};

// Boxes by columns, filled up to whole blocks with empty ones, so that a block is compared with a box at once.
class BoxColumns {
 public:
  // Whether one of the boxes overlaps this one by more than `iou`.
  bool overlap(const float* box, float iou) const {
    const Corners x = corners(box);
    for (size_t first = 0; first < count_; first += kBlock) {
      int over = 0;
      for (size_t i = 0; i < kBlock; ++i) {
        const Block& b = blocks_[first / kBlock];
        const float common = std::max(std::min(x.bottom, b.bottom[i]) - std::max(x.top, b.top[i]), 0.0f) *
                             std::max(std::min(x.right, b.right[i]) - std::max(x.left, b.left[i]), 0.0f);
        over |= common / (x.area + b.area[i] - common) > iou ? 1 : 0;
      }
      if (over != 0) return true;
    }
    return false;
  }
  void add(const float* box) {
    if (count_ % kBlock == 0) {
      blocks_.emplace_back();
      for (size_t i = 0; i < kBlock; ++i) set(i, kEmpty);
    }
    set(count_++ % kBlock, corners(box));
  }

 private:
  static constexpr size_t kBlock = 16;
  static constexpr float kFar = std::numeric_limits<float>::infinity();
  struct Corners {
    float top, left, bottom, right, area;
  };
  struct Block {
    std::array<float, kBlock> top, left, bottom, right, area;
  };
  static constexpr Corners kEmpty{kFar, kFar, -kFar, -kFar, 1};

  static Corners corners(const float* box) {
    Corners x{std::min(box[0], box[2]), std::min(box[1], box[3]), std::max(box[0], box[2]), std::max(box[1], box[3]),
              0};
    x.area = (x.bottom - x.top) * (x.right - x.left);
    return x.area <= 0 ? kEmpty : x;
  }
  void set(size_t i, const Corners& x) {
    Block& b = blocks_.back();
    b.top[i] = x.top, b.left[i] = x.left, b.bottom[i] = x.bottom, b.right[i] = x.right, b.area[i] = x.area;
  }

  std::vector<Block> blocks_;
  size_t count_ = 0;
};

// The boxes of best score that no better chosen one overlaps by more than `iou`.
std::vector<Candidate> suppress_hard(const float* boxes, int64_t stride, const std::vector<float>& scores, int64_t most,
                                     float iou, float least_score) {
  std::vector<Candidate> candidates, chosen;
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > least_score) candidates.push_back({scores[i], static_cast<int64_t>(i), 0});
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    stop_point_after(1);
    return b < a;
  });
  BoxColumns kept;
  for (const Candidate& next : candidates) {
    if (static_cast<int64_t>(chosen.size()) >= most) break;
    const float* box = boxes + next.box * stride;
    stop_point_after(std::ssize(chosen));
    if (kept.overlap(box, iou)) continue;
    kept.add(box);
    chosen.push_back(next);
  }
  return chosen;
}

// Non-maximum suppression: the selected boxes, best score first. With `sigma` above 0 (soft NMS), the scores of
// overlapping boxes are lowered instead of dropping the boxes.
std::vector<Candidate> suppress(const float* boxes, int64_t stride, const std::vector<float>& scores, int64_t most,
                                float iou, float least_score, float sigma) {
  if (!(sigma > 0)) return suppress_hard(boxes, stride, scores, most, iou, least_score);
  std::priority_queue<Candidate> queue;
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > least_score) queue.push({scores[i], static_cast<int64_t>(i), 0});
  std::vector<Candidate> chosen;
  while (static_cast<int64_t>(chosen.size()) < most && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    stop_point_after(4 * (std::ssize(chosen) - static_cast<int64_t>(next.compared)) + 4);
    for (size_t i = chosen.size(); i-- > next.compared && next.score > least_score;) {
      const float common = overlap(boxes + next.box * stride, boxes + chosen[i].box * stride);
      next.score *= common <= iou ? std::exp(-0.5f / sigma * common * common) : 0.0f;
    }
    next.compared = chosen.size();
    if (next.score == before)
      chosen.push_back(next);
    else if (next.score > least_score)
      queue.push(next);
  }
  return chosen;
}

void infer_suppression(InferContext& context) {
  const bool boxes = ranked(context, 0, 2);
  if (boxes) same_size(context, context.shape(0).dims[1], 4, "columns of boxes and 4");
  if (ranked(context, 1, 1) && boxes)
    same_size(context, context.shape(0).dims[0], context.shape(1).dims[0], "numbers of boxes and scores");
  for (size_t i : {2, 3, 4, 5}) require_scalar(context, i);
  for (size_t i : {0, 1, 3, 4, 5})
    if (context.dtype(i) != kF32) context.fail("input {} must be f32, found {}", i, to_string(context.dtype(i)));
  Dim count;
  if (context.attr.boolean("pad"))
    if (auto most = constant_integers(context, 2)) count = std::max<int64_t>(0, (*most)[0]);
  context.result(kI64, Shape{count});
  context.result(kF32, Shape{count});
  context.result(kI64, Shape());
}

void non_max_suppression(KernelContext& context) {
  const Tensor& scores = context.input(1);
  auto number = [&](size_t i) { return *data<float>(context.input(i)); };
  const int64_t most = std::max<int64_t>(0, context.input(2).as_i64()[0]);
  const std::vector<float> list(data<float>(scores), data<float>(scores) + scores.count());
  auto chosen = suppress(data<float>(context.input(0)), 4, list, most, number(3), number(4), number(5));
  const auto count = static_cast<int64_t>(chosen.size()), length = context.attr.boolean("pad") ? most : count;
  Tensor &indices = context.allocate(0, kI64, {length}), &left = context.allocate(1, kF32, {length});
  std::memset(indices.mutable_data(), 0, indices.bytes());
  std::memset(left.mutable_data(), 0, left.bytes());
  for (size_t i = 0; i < chosen.size(); ++i) {
    data<int64_t>(indices)[i] = chosen[i].box;
    data<float>(left)[i] = chosen[i].score;
  }
  *data<int64_t>(context.allocate(2, kI64, {})) = count;
}

void infer_class_suppression(InferContext& context) {
  const bool boxes = ranked(context, 0, 3), scores = ranked(context, 1, 3);
  if (boxes) same_size(context, context.shape(0).dims[2], 4, "columns of boxes and 4");
  if (boxes && scores) {
    same_size(context, context.shape(0).dims[0], context.shape(1).dims[0], "batch sizes");
    same_size(context, context.shape(0).dims[1], context.shape(1).dims[2], "numbers of boxes and scores");
  }
  for (size_t i : {2, 3, 4}) require_scalar(context, i);
  for (size_t i : {0, 1, 3, 4})
    if (context.dtype(i) != kF32) context.fail("input {} must be f32, found {}", i, to_string(context.dtype(i)));
  context.result(kI64, Shape{Dim(), 3});
}

void class_non_max_suppression(KernelContext& context) {
  const Tensor &boxes = context.input(0), &scores = context.input(1);
  const int64_t images = scores.dims()[0], classes = scores.dims()[1], count = scores.dims()[2];
  const int64_t most = std::max<int64_t>(0, context.input(2).as_i64()[0]);
  const float iou = *data<float>(context.input(3)), least = *data<float>(context.input(4));
  std::vector<int64_t> rows;
  for (const int64_t row : turns(images * classes)) {
    const float* from = data<float>(scores) + row * count;
    for (const Candidate& one :
         suppress(data<float>(boxes) + row / classes * count * 4, 4, {from, from + count}, most, iou, least, 0))
      rows.insert(rows.end(), {row / classes, row % classes, one.box});
  }
  Tensor& found = context.allocate(0, kI64, {std::ssize(rows) / 3, 3});
  std::copy(rows.begin(), rows.end(), data<int64_t>(found));
}

// The number of boxes that combined non-maximum suppression returns for each image.
Dim answered(const InferContext& context) {
  auto each = constant_integers(context, 2), total = constant_integers(context, 3);
  if (!each || !total || !context.shape(1).ranked) return Dim();
  if ((*each)[0] <= 0 || (*total)[0] <= 0)
    context.fail("sizes must be positive, found {} and {}", (*each)[0], (*total)[0]);
  const Dim& classes = context.shape(1).dims[2];
  if (!context.attr.boolean("pad_per_class")) return (*total)[0];
  int64_t all;
  if (!classes.known() || __builtin_mul_overflow((*each)[0], classes.size, &all)) return Dim();
  return std::min((*total)[0], all);
}

void infer_combined(InferContext& context) {
  const bool boxes = ranked(context, 0, 4), scores = ranked(context, 1, 3);
  for (size_t i : {0, 1, 4, 5})
    if (context.dtype(i) != kF32) context.fail("input {} must be f32, found {}", i, to_string(context.dtype(i)));
  for (size_t i : {2, 3, 4, 5}) require_scalar(context, i);
  if (boxes) same_size(context, context.shape(0).dims[3], 4, "columns of boxes and 4");
  Dim batch;
  if (boxes && scores) {
    batch = same_size(context, context.shape(0).dims[0], context.shape(1).dims[0], "batch sizes");
    same_size(context, context.shape(0).dims[1], context.shape(1).dims[1], "numbers of boxes and scores");
    const Dim& sets = context.shape(0).dims[2];
    if (sets.known() && sets.size != 1) same_size(context, sets, context.shape(1).dims[2], "sets of boxes and classes");
  }
  const Dim count = answered(context);
  context.result(kF32, Shape{batch, count, 4});
  context.result(kF32, Shape{batch, count});
  context.result(kF32, Shape{batch, count});
  context.result(kI32, Shape{batch});
}

void combined_non_max_suppression(KernelContext& context) {
  allocate_results(context);
  const Tensor &boxes = context.input(0), &scores = context.input(1);
  const int64_t images = scores.dims()[0], count = scores.dims()[1], classes = scores.dims()[2], sets = boxes.dims()[2];
  const int64_t most = context.input(2).as_i64()[0], places = context.output(1).dims()[1];
  const bool clip = context.attr.boolean("clip_boxes");
  struct Found {
    float score;
    const float* box;
    int64_t number;
  };
  for (size_t i : {0, 1, 2, 3}) std::memset(context.output(i).mutable_data(), 0, context.output(i).bytes());
  for (const int64_t image : turns(images)) {
    std::vector<Found> found;
    for (const int64_t k : turns(classes)) {
      const float* from = data<float>(boxes) + (image * count * sets + (sets > 1 ? k : 0)) * 4;
      std::vector<float> list;
      for (int64_t i = 0; i < count; ++i) list.push_back(data<float>(scores)[(image * count + i) * classes + k]);
      for (const Candidate& one :
           suppress(from, 4 * sets, list, most, *data<float>(context.input(4)), *data<float>(context.input(5)), 0))
        found.push_back({one.score, from + one.box * 4 * sets, k});
    }
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.score > b.score; });
    const int64_t kept = std::min<int64_t>(places, static_cast<int64_t>(found.size()));
    for (const int64_t i : turns(kept)) {
      const Found& one = found[static_cast<size_t>(i)];
      for (const int64_t d : turns(4))
        data<float>(context.output(0))[(image * places + i) * 4 + d] =
            clip ? std::clamp(one.box[d], 0.0f, 1.0f) : one.box[d];
      data<float>(context.output(1))[image * places + i] = one.score;
      data<float>(context.output(2))[image * places + i] = static_cast<float>(one.number);
    }
    data<int32_t>(context.output(3))[image] = static_cast<int32_t>(kept);
  }
}

std::vector<OpDef> make_suppression_rows() {
  const InputDef scalar_size = shape_operand("most");
  return {
      {.name = "non_max_suppression",
       .summary = "indices and scores of at most `most` boxes (two corners each) in falling order of score above "
                  "least_score, those left out that overlap a chosen one by more than iou (sigma above 0: lowered by "
                  "exp(-iou^2 / 2 sigma) instead); pad fills up with 0; and how many they are",
       .inputs = {{"boxes", Accepts::floats},
                  {"scores", Accepts::floats},
                  scalar_size,
                  {"iou", Accepts::floats},
                  {"least_score", Accepts::floats},
                  {"sigma", Accepts::floats}},
       .attributes = {flag("pad")},
       .results = {"indices", "scores", "count"},
       .traits = kDynamicResult,
       .infer = infer_suppression,
       .no_gradient = "which boxes stay is piecewise constant; gather the scores by the indices",
       .reference = non_max_suppression,
       .oracle = {"non_max_suppression(boxes, scores, most, iou, least_score, sigma, pad)", kTensorFlow},
       .cases =
           {"f32[4, 4]=[0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2, 1, 3, 1, 1, 0, 0], f32[4]=[0.9, 0.8, 0.7, 0.95], i32[]=[3], "
            "f32[]=[0.5], f32[]=[-inf], f32[]=[0]",
            "f32[3, 4]=[0, 0, 1, 1, 0, 0.5, 1, 1.5, 0, 2, 1, 3], f32[3]=[0.9, 0.8, 0.1], i32[]=[5], f32[]=[0.9], "
            "f32[]=[0.2], f32[]=[0.5] {pad = true}",
            "f32[0, 4], f32[0], i32[]=[2], f32[]=[0.5], f32[]=[0], f32[]=[0]"}},
      {.name = "class_non_max_suppression",
       .summary = "for each image of boxes [images, n, 4] and each class of scores [images, classes, n] the boxes that "
                  "non_max_suppression keeps, as rows image, class, box",
       .inputs = {{"boxes", Accepts::floats},
                  {"scores", Accepts::floats},
                  scalar_size,
                  {"iou", Accepts::floats},
                  {"least_score", Accepts::floats}},
       .results = {"rows"},
       .traits = kDynamicResult,
       .infer = infer_class_suppression,
       .no_gradient = "which boxes stay is piecewise constant; gather the scores by the rows",
       .reference = class_non_max_suppression,
       .oracle = {"np.array([(n, k, i) for n in range(len(scores)) for k in range(len(scores[n])) for i in "
                  "non_max_suppression(boxes[n], scores[n, k], most, iou, least_score, 0.0, False)[0]], "
                  "np.int64).reshape(-1, 3)",
                  kTensorFlow},
       .cases = {"f32[2, 3, 4]=[0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2, 1, 3, 1, 1, 0, 0, 2, 2, 1, 1, 0, 0, 3, 3], "
                 "f32[2, 2, 3]=[0.9, 0.8, 0.7, 0.2, 0.3, 0.1, 0.5, 0.6, 0.9, 0.1, 0.1, 0.1], i64[]=[2], f32[]=[0.5], "
                 "f32[]=[0.15]",
                 "f32[1, 0, 4], f32[1, 3, 0], i64[]=[2], f32[]=[0.5], f32[]=[0]"}},
      {.name = "combined_non_max_suppression",
       .summary =
           "non_max_suppression for each image and class (boxes of one set, or one for each class), then the best "
           "`total` over classes: boxes, scores, classes, and how many; the rest is 0",
       .inputs = {{"boxes", Accepts::floats},
                  {"scores", Accepts::floats},
                  scalar_size,
                  shape_operand("total"),
                  {"iou", Accepts::floats},
                  {"least_score", Accepts::floats}},
       .attributes = {flag("pad_per_class"), flag("clip_boxes", true)},
       .results = {"boxes", "scores", "classes", "count"},
       .infer = infer_combined,
       .no_gradient = "which boxes stay is piecewise constant",
       .reference = combined_non_max_suppression,
       .oracle = {"tuple(tf.image.combined_non_max_suppression(boxes, scores, int(most), int(total), float(iou), "
                  "float(least_score), pad_per_class, clip_boxes))",
                  kTensorFlow},
       .cases =
           {"f32[1, 3, 1, 4]=[0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 0.5, 1, 0.9], f32[1, 3, 2]=[0.9, 0.1, 0.8, 0.3, 0.2, "
            "0.75], i32[]=[2], i32[]=[4], f32[]=[0.5], f32[]=[0.15]",
            "f32[1, 2, 2, 4]=[0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2, 1, 3, 0, 0, 2, 2], f32[1, 2, 2]=[0.9, 0.3, 0.8, 0.7], "
            "i32[]=[3], i32[]=[5], f32[]=[0.5], f32[]=[0] {clip_boxes = false}"}},
  };
}

}  // namespace

std::span<const OpDef> suppression_ops() {
  static const std::vector<OpDef> rows = make_suppression_rows();
  return rows;
}

}  // namespace cairn
