// Layers that turn a net's offsets and scores into boxes: SSD's, Faster R-CNN's and YOLO's, with the results that the platform's
// operators give.
#include <cmath>

#include "frontends/caffe/boxes.h"
#include "ops/gradients.h"

namespace cairn::caffe {
namespace {

NewDim kept_dim(size_t axis) { return {-1, static_cast<int>(axis)}; }

/// 0, 1, ... below the number of images, as f32[images, 1, 1], for each of `like` [images, k, ..].
Var image_numbers(Var like) {
  const Var number = cast(counting(Size(like, 0)), kF32);
  return {*like.builder, expand_dims(number.value, {1, 2}, *like.builder)};
}

/// Boxes [images, n, classes, 4] of offsets from anchors [1 or images, n, 1, 4], scaled by the variances or not.
Var decoded(LayerContext& c, Var offsets, Var anchors, Var variances, bool scaled, int64_t code) {
  enum { corner = 1, centre_size, corner_size };
  if (!scaled) offsets = offsets * variances;
  if (code == corner) return anchors + offsets;
  if (code != centre_size && code != corner_size) c.invalid("code_type {} is unknown", code);
  const Var left = column(anchors, 0), top = column(anchors, 1), width = column(anchors, 2) - left,
            height = column(anchors, 3) - top;
  const auto joined_columns = [](std::vector<Var> parts) {
    return beside(parts, static_cast<int64_t>(parts[0].shape().rank()) - 1);
  };
  if (code == corner_size) return anchors + offsets * joined_columns({width, height, width, height});
  const Var x = column(offsets, 0) * width + left + width * 0.5, y = column(offsets, 1) * height + top + height * 0.5;
  const Var w = exp(column(offsets, 2)) * width * 0.5, h = exp(column(offsets, 3)) * height * 0.5;
  return joined_columns({x - w, y - h, x + w, y + h});
}

/// The parameters of SSDDetectionOutput, or of DetectionOutput where --op_name_map renames it.
struct Detection {
  explicit Detection(LayerContext& c) {
    Message own = c.params("ssddetectionoutput_param"), other = c.params("detection_output_param");
    const bool renamed = own.bytes().empty() && !other.bytes().empty();
    const Message& params = renamed ? other : own;
    const Message suppression = renamed ? other.message("nms_param") : own;
    classes = params.integer("num_classes", 2);
    background = params.integer("background_label_id", 0);
    shared = params.flag("share_location", true);
    scaled = params.flag("variance_encoded_in_target", false);
    code = params.integer("code_type", renamed ? 1 : 2);
    best = params.integer("keep_top_k", renamed ? -1 : 200);
    least = params.real("confidence_threshold", renamed ? -INFINITY : 0.01f);
    iou = suppression.real(renamed ? "nms_threshold" : "iou_threshold", renamed ? 0.3f : 0.45f);
    most = suppression.integer("top_k", renamed ? -1 : 400);
    if (suppression.real("eta", 1) < 1) c.refuse("a threshold that shrinks (eta below 1) is not supported");
    constexpr int64_t kMost = 1 << 20;
    if (classes < 1 || classes > kMost) c.invalid("num_classes is {}", classes);
    if (most < 0) most = kMost;
    if (best < 0) best = 1024;
    if (best < 1 || best > kMost) c.invalid("keep_top_k is {}", best);
  }

  int64_t classes, background, code, best, most;
  bool shared, scaled;
  double least, iou;
};

/// How many boxes an image has, [images, 8]; then rows of image, class, score, the corners and 0, as many as keep_top_k rounded up to
/// 128. A layer with one top has the rows alone.
void ssd_detection(LayerContext& c) {
  c.expect(3);
  const Detection d(c);
  constexpr int64_t kRows = 128;
  if (c.rank(2) != 3 || c.size(1, 2) != 2) c.invalid("the anchors have other dims than [1, 2, 4 * n]");
  const int64_t n = c.size(2, 2) / 4, sets = d.shared ? 1 : d.classes;
  const Var anchors{c.b, c.reshape(c.in[2], {kept_dim(0), {2}, {n}, {1}, {4}})};
  const auto half = [&](int64_t i) {
    return anchors.apply("gather", {{c.b, c.b.constant(Tensor::scalar_i64(i))}}, {{"axis", int64_t{1}}});
  };
  const Var offsets{c.b, c.reshape(c.in[0], {kept_dim(0), {n}, {sets}, {4}})};
  Var boxes = decoded(c, offsets, half(0), half(1), d.scaled, d.code);
  Var scores = transpose({c.b, c.reshape(c.in[1], {kept_dim(0), {n}, {d.classes}})}, {0, 2, 1});
  if (d.background >= 0 && d.background < d.classes) {
    std::vector<uint8_t> mask(static_cast<size_t>(d.classes));
    mask[static_cast<size_t>(d.background)] = 1;
    scores =
        select({c.b, c.b.constant(Tensor::of<uint8_t>(kBool, {d.classes, 1}, mask))}, scores.number(-INFINITY), scores);
  }
  boxes = d.shared ? Var{c.b, c.reshape(boxes.value, {kept_dim(0), {n}, {4}})} : transpose(boxes, {0, 2, 1, 3});
  const Best best = best_of(c, surviving(c, boxes, scores, d.most, d.iou, d.least), d.best);
  const Var size = best.place.number(static_cast<double>(n)), kind = cast(best.place.apply("floor_div", {size}), kF32);
  const Var each = d.shared ? boxes : Var{c.b, c.reshape(boxes.value, {kept_dim(0), {n * d.classes}, {4}})};
  const auto one = [&](Var x) { return Var{c.b, expand_dims(x.value, {2}, c.b)}; };
  const Var score = one(best.score);
  const Var rows = beside({image_numbers(score) + zeros_like(score), one(kind), score,
                           picked(each, d.shared ? best.place.apply("mod", {size}) : best.place), zeros_like(score)},
                          2);
  Value* y = padded_rows(c, rows, best, (d.best + kRows - 1) / kRows * kRows).value;
  c.out = c.tops() == 1 ? std::vector{y} : std::vector{counts(best), y};
}

/// Boxes of several shapes around a pixel, as Faster R-CNN rounds them: by ratio, then by scale.
std::vector<float> anchor_shapes(double base, const std::vector<float>& ratios, const std::vector<float>& scales) {
  std::vector<float> corners;
  const double centre = 0.5 * (base - 1);
  for (double ratio : ratios) {
    const double width = std::nearbyint(std::sqrt(base * base / ratio)), height = std::nearbyint(width * ratio);
    for (double scale : scales) {
      const double w = 0.5 * (width * scale - 1), h = 0.5 * (height * scale - 1);
      for (double corner : {centre - w, centre - h, centre + w, centre + h})
        corners.push_back(static_cast<float>(corner));
    }
  }
  return corners;
}

/// Boxes moved and stretched by offsets [images, n, 4], a side counting both of its pixels, and cut to the image.
Var moved_boxes(Var boxes, Var offsets, Var height, Var width) {
  const auto along = [&](int64_t axis, Var size) {
    const Var side = column(boxes, axis + 2) - column(boxes, axis) + 1.0;
    const Var centre = column(offsets, axis) * side + column(boxes, axis) + side * 0.5;
    const Var half = exp(column(offsets, axis + 2)) * side * 0.5;
    const auto inside = [&](Var x) { return maximum(minimum(x, size - 1.0), x.number(0)); };
    return std::pair{inside(centre - half), inside(centre + half)};
  };
  const auto [left, right] = along(0, width);
  const auto [top, bottom] = along(1, height);
  return beside({left, top, right, bottom}, 2);
}

/// The best boxes of a region proposal net: rows of their images and corners, [images, 5, post_nms_topn], and how many they are.
void proposal(LayerContext& c) {
  c.expect(3);
  Builder& b = c.b;
  const Message params = c.params("proposal_param");
  std::vector<float> ratios = params.reals("ratio"), scales = params.reals("scale");
  if (ratios.empty()) ratios = {0.5f, 1, 2};
  if (scales.empty()) scales = {8, 16, 32};
  for (float ratio : ratios)
    if (!(ratio > 0)) c.invalid("a ratio is {}", ratio);
  const double stride = params.real("feat_stride", 16), base = params.real("base_size", 16);
  const int64_t before = params.integer("pre_nms_topn", 3000), after = params.integer("post_nms_topn", 304);
  const auto shapes = static_cast<int64_t>(ratios.size() * scales.size());
  const int64_t height = c.size(2), width = c.size(3), n = height * width * shapes;
  constexpr int64_t kMost = 1 << 20;
  if (c.size(1) != 2 * shapes || c.size(1, 1) != 4 * shapes || height < 1 || width < 1 || n > kMost || after < 1 ||
      after > kMost)
    c.invalid("{} and {} channels of {} x {} do not fit {} anchors", c.size(1), c.size(1, 1), height, width, shapes);
  std::vector<float> anchors;
  const std::vector<float> around = anchor_shapes(base, ratios, scales);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (size_t i = 0; i < around.size(); ++i)
        anchors.push_back(around[i] + static_cast<float>(stride) * static_cast<float>(i % 2 == 0 ? x : y));
  const Var fore{
      b, b.add("slice", {c.in[0], b.ints({0, shapes, 0, 0}), b.ints({kToTheEnd, 2 * shapes, kToTheEnd, kToTheEnd})})};
  Var scores{b, c.reshape(transpose(fore, {0, 2, 3, 1}).value, {kept_dim(0), {1}, {n}})};
  const Var offsets{b, c.reshape(c.in[1], {kept_dim(0), {shapes}, {4}, {height}, {width}})};
  const Var info{b, expand_dims(c.in[2], {1}, b)};  // [images, 1, (height, width, scale)]
  const Var boxes = moved_boxes(numbers(b, {1, n, 4}, anchors),
                                {b, c.reshape(transpose(offsets, {0, 3, 4, 1, 2}).value, {kept_dim(0), {n}, {4}})},
                                column(info, 0), column(info, 1));
  Var least = info.number(params.real("min_size", 16));
  if (c.size(1, 2) > 2) least = column(info, 2) * least;
  const auto large = [&](int64_t axis) {
    return (column(boxes, axis + 2) - column(boxes, axis) + 1.0).apply("greater_equal", {least});
  };
  const Var fits{b, c.reshape(large(0).apply("and", {large(1)}).value, {kept_dim(0), {1}, {n}})};
  scores = select(fits, scores, scores.number(-INFINITY));
  const Var whole = boxes + numbers(b, {4}, {0, 0, 1, 1});
  const double iou = params.real("iou_threshold", 0.7f);
  const Best best = best_of(c, surviving(c, whole, scores, before, iou, -INFINITY), after);
  const Var chosen = picked(boxes, best.place);
  const Var rows = beside({image_numbers(chosen) + zeros_like(column(chosen, 0)), chosen}, 2);
  c.out = {transpose(padded_rows(c, rows, best, after), {0, 2, 1}).value, counts(best)};
}

/// The width that the platform gives rows of `count` numbers.
int64_t aligned(int64_t count) { return (count * 2 + 32 + 31) / 32 * 32 / 2; }

/// x [images, .., count] with zeros up to the aligned width.
Value* aligned_rows(LayerContext& c, Var x, int64_t count) {
  std::vector<int64_t> pairs(2 * x.shape().rank(), 0);
  pairs.back() = aligned(count) - count;
  const auto rank = static_cast<int64_t>(x.shape().rank());
  return x.apply("pad", {{c.b, c.b.constant(Tensor::of<int64_t>(kI64, {rank, 2}, pairs))}}).value;
}

/// Corners and sizes, objectness and classes of a YOLO layer's boxes, each through its activation.
void yolo(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("yolo_param");
  const int64_t boxes = params.integer("boxes", 3), coords = params.integer("coords", 4),
                classes = params.integer("classes", 80);
  const std::string_view version = params.has("yolo_version") ? params.text("yolo_version") : "V3";
  const bool third = version == "V3", background = !third && params.flag("background", false),
             shares = !third && params.flag("softmax", false);
  const int64_t height = c.size(2), width = c.size(3), area = height * width;
  constexpr int64_t kMost = 1 << 20;
  if ((version != "V2" && !third) || params.flag("softmaxtree", false))
    c.refuse("yolo_version '{}' and softmaxtree are not supported", printable(version));
  if (coords != 4 || boxes < 1 || classes < 1 || boxes > kMost || classes > kMost ||
      c.size(1) != boxes * (5 + classes) || area < 1)
    c.invalid("{} channels are not {} boxes of {} numbers and {} classes", c.size(1), boxes, coords + 1, classes);
  const Var x{c.b, c.reshape(c.in[0], {kept_dim(0), {boxes}, {5 + classes}, {area}})};
  const auto part = [&](int64_t begin, int64_t end) {
    return x.apply("slice",
                   {{c.b, c.b.ints({0, 0, begin, 0})}, {c.b, c.b.ints({kToTheEnd, kToTheEnd, end, kToTheEnd})}});
  };
  const Var corners = beside({part(0, 2).apply("sigmoid"), part(2, 4)}, 2);
  Var sure = part(4, 5), kinds = part(5, kToTheEnd);
  if (background && shares) {
    const Var all = part(4, kToTheEnd).apply("softmax", {}, {{"axis", int64_t{2}}});
    const auto slice = [&](int64_t begin, int64_t end) {
      return all.apply("slice",
                       {{c.b, c.b.ints({0, 0, begin, 0})}, {c.b, c.b.ints({kToTheEnd, kToTheEnd, end, kToTheEnd})}});
    };
    sure = slice(0, 1), kinds = slice(1, kToTheEnd);
  } else {
    if (!background) sure = sure.apply("sigmoid");
    kinds = shares ? kinds.apply("softmax", {}, {{"axis", int64_t{2}}}) : kinds.apply("sigmoid");
  }
  const Var flat{c.b, c.reshape(corners.value, {kept_dim(0), {boxes * 4}, {area}})};
  const Var each{c.b, c.reshape(transpose(kinds, {0, 2, 1, 3}).value, {kept_dim(0), {classes}, {boxes * area}})};
  c.out = {aligned_rows(c, flat, area),
           aligned_rows(c, {c.b, c.reshape(sure.value, {kept_dim(0), {boxes * area}})}, boxes * area),
           aligned_rows(c, each, boxes * area)};
  for (const Value* made : c.out) c.planes[made] = {height, width};
}

/// The first numbers of aligned rows.
Var front(Var x, int64_t count) {
  std::vector<int64_t> begin(x.shape().rank(), 0), end(x.shape().rank(), kToTheEnd);
  end.back() = count;
  return x.apply("slice", {{*x.builder, x.builder->ints(begin)}, {*x.builder, x.builder->ints(end)}});
}

/// YOLO's boxes, all layers together: relative to the image, which fills the net's input or stands centred in it.
class YoloBoxes {
 public:
  YoloBoxes(LayerContext& c, const Message& params, bool third) : c_(c), params_(params), third_(third) {
    boxes_ = params.integer("boxes", third ? 3 : 5);
    layers_ = (c.in.size() - 1) / 3;
    for (const char* name : {"biases", "biases_low", "biases_mid", "biases_high"})
      for (float bias : params.reals(name)) biases_.push_back(bias);
    constexpr int64_t kMost = 1 << 20;
    if (layers_ < 1 || c.in.size() != 3 * layers_ + 1)
      c.invalid("has {} bottoms, expected three for each Yolo layer and img_info", c.in.size());
    if (boxes_ < 1 || boxes_ > kMost || biases_.size() != layers_ * 2 * static_cast<size_t>(boxes_))
      c.invalid("has {} biases for {} layers of {} boxes", biases_.size(), layers_, boxes_);
    if (!params.flag("relative", true)) c.refuse("relative must be true");
  }

  /// Rows x1, y1, x2, y2, score, class, [images, k, 6].
  std::pair<Var, Best> best() {
    std::vector<Var> all_boxes, all_scores;
    for (size_t i = 0; i < layers_; ++i) {
      all_boxes.push_back(boxes_of(i));
      all_scores.push_back(scores_of(i));
    }
    const Var boxes = beside(all_boxes, 1), scores = beside(all_scores, 2);
    const double iou = params_.real("iou_threshold", 0.45f), least = params_.real("score_threshold", 0.5);
    most_ = params_.integer("post_nms_topn", 512);
    if (most_ < 1 || most_ > (1 << 16)) c_.invalid("post_nms_topn is {}", most_);
    const Best best =
        best_of(c_, surviving(c_, boxes, scores, params_.integer("pre_nms_topn", 512), iou, least), most_);
    const Var n = best.place.number(static_cast<double>(scores.shape().dims[2].size));
    const auto one = [&](Var x) { return Var{c_.b, expand_dims(x.value, {2}, c_.b)}; };
    const Var kind = cast(best.place.apply("floor_div", {n}), kF32);
    return {padded_rows(c_, beside({picked(boxes, best.place.apply("mod", {n})), one(best.score), one(kind)}, 2), best,
                        most_),
            best};
  }
  int64_t most() const { return most_; }

 private:
  std::pair<int64_t, int64_t> plane(size_t layer) const {
    const auto found = c_.planes.find(c_.in[layer]);
    if (found == c_.planes.end()) c_.refuse("bottom {} is not made by a Yolo layer", layer);
    return found->second;
  }

  Var boxes_of(size_t layer) {
    Builder& b = c_.b;
    const auto [height, width] = plane(layer);
    const int64_t area = height * width;
    const Var raw{b, c_.reshape(front({b, c_.in[layer]}, area).value, {kept_dim(0), {boxes_}, {4}, {area}})};
    const Var x = transpose(raw, {0, 1, 3, 2});  // [images, boxes, pixels, 4]
    std::vector<float> places, sizes;
    for (int64_t i = 0; i < area; ++i)
      for (int64_t at : {i % width, i / width}) places.push_back(static_cast<float>(at));
    for (size_t i = 0; i < 2 * static_cast<size_t>(boxes_); ++i)
      sizes.push_back(biases_[layer * 2 * static_cast<size_t>(boxes_) + i]);
    const Var info{b, expand_dims(c_.in[c_.in.size() - 1], {1, 2}, b)};  // the net's height and width, then the image's
    const Var grid = numbers(b, {2}, {static_cast<float>(width), static_cast<float>(height)});
    const Var net = beside({column(info, 1), column(info, 0)}, 3),
              image = beside({column(info, 3), column(info, 2)}, 3);
    const auto pair = [&](int64_t first) { return beside({column(x, first), column(x, first + 1)}, 3); };
    Var centre = (pair(0) + numbers(b, {1, area, 2}, places)) / grid;
    Var size = exp(pair(2)) * numbers(b, {boxes_, 1, 2}, sizes) / (third_ ? net : grid);
    if (!params_.flag("resize_origin_img_to_net", false)) {  // the image as large as fits, in the middle
      const Var rate = net / image, least = minimum(column(rate, 0), column(rate, 1));
      const Var share = image * least / net;
      centre = (centre - (1.0 - share) * 0.5) / share;
      size = size / share;
    }
    const Var corners = beside({(centre - size * 0.5) * image, (centre + size * 0.5) * image}, 3);
    return {b, c_.reshape(corners.value, {kept_dim(0), {boxes_ * area}, {4}})};
  }

  Var scores_of(size_t layer) {
    const auto [height, width] = plane(layer);
    const int64_t n = boxes_ * height * width;
    Var sure = front({c_.b, c_.in[layers_ + layer]}, n);
    sure = select(sure > params_.real("obj_threshold", 0.5), sure, sure.number(0));
    return front({c_.b, c_.in[2 * layers_ + layer]}, n) * Var{c_.b, expand_dims(sure.value, {1}, c_.b)};
  }

  LayerContext& c_;
  const Message params_;
  bool third_;
  int64_t boxes_, most_ = 0;
  size_t layers_;
  std::vector<float> biases_;
};

/// Rows [images, 6, most]; flat, the numbers of each column follow each other at once, however many boxes there are.
void yolo_detection(LayerContext& c) {
  const std::string_view form = c.target;
  const bool third = form != "second";
  const char* field = !third            ? "yolov2_detection_output_param"
                      : form == "third" ? "yolov3_detection_output_param"
                                        : "yolov3_detection_output_v2_param";
  YoloBoxes boxes(c, c.params(field), third);
  const auto [rows, best] = boxes.best();
  const Var columns = transpose(rows, {0, 2, 1});
  c.out = {columns.value, counts(best)};
  if (form == "volume") return;
  const int64_t all = 6 * boxes.most();
  const Var flat{c.b, c.reshape(columns.value, {kept_dim(0), {all}})};
  const Var at = counting(Size(c.b, all)), count = maximum(best.count, best.count.number(1));
  const Var from = at.apply("floor_div", {count}) * static_cast<double>(boxes.most()) + at.apply("mod", {count});
  const Var dense = picked(flat, minimum(from, from.number(static_cast<double>(all - 1))));
  c.out[0] = select(at < best.count * 6.0, dense, dense.number(0)).value;
}

constexpr Row kBoxRows[] = {
    {"Proposal", proposal},
    {"SSDDetectionOutput", ssd_detection},
    {"Yolo", yolo},
    {"YoloV2DetectionOutput", yolo_detection, "second"},
    {"YoloV3DetectionOutput", yolo_detection, "third"},
    {"YoloV3DetectionOutputV2", yolo_detection, "volume"},
};

}  // namespace

std::span<const Row> box_rows() { return kBoxRows; }

}  // namespace cairn::caffe
