#include "engines/cpu/kernel_gradient.h"

#include <cstring>

#include "engines/cpu/groups.h"
#include "engines/cpu/tile_jit.h"
#include "ops/shapes.h"

namespace cairn {

namespace {

constexpr int64_t kBlockBytes = 512 << 10;  // of the image's rows and of dy's, to stay in the second-level cache
constexpr int64_t kCountedChannels = 512;   // of the image's: with more a block would be too short
constexpr int64_t kSmallImage = 32;         // pixels of dy: several such images are one block

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Along one dim the outputs [first, last) meet a tap inside the image, at input `at` first.
struct Reach {
  int64_t first, last, at;
};
Reach reach_of(int64_t first, int64_t last, int64_t in, int64_t stride, int64_t shift) {
  const int64_t low = shift < 0 ? ceil_div(-shift, stride) : 0;
  const int64_t high = in - shift <= 0 ? 0 : ceil_div(in - shift, stride);
  first = std::max(first, low), last = std::max(first, std::min(last, high));
  return {first, last, first * stride + shift};
}

/// dW[tap, i, o] = sum over pixels of x[pixel at the tap, i] * dy[pixel, o]. A unit of work is some positions (channels i
/// of a tap, or where channels are few of a row of taps, which lie side by side in x) by a panel of channels o; it adds
/// up blocks of rows, or of whole small images, one after the other: the same order at any width.
class KernelGradient {
 public:
  KernelGradient(const Node& node, int threads) {
    const Value *x = node.inputs[0], *dy = node.inputs[1], *kernel = node.result();
    SlideSpec slide;
    read_windows(node, slide);
    groups_ = node.attr().integer("groups");
    images_ = dim(x, 0), in_ = dim(x, 3), out_ = dim(dy, 3);
    w_ = slide.w, h_ = slide.h, ow_ = slide.ow, oh_ = slide.oh;
    if (dim(kernel, 0) * dim(kernel, 1) == 1 && slide.stride_h == 1 && slide.stride_w == 1 && slide.pad_top == 0 &&
        slide.pad_left == 0 && h_ == oh_ && w_ == ow_) {  // rows of all images are one list
      h_ = oh_ = images_ * h_;
      images_ = 1;
    }
    const int64_t lane = lanes(machine_isa());
    out_each_ = out_ / groups_, in_each_ = in_ / groups_;
    repack_ = out_each_ % lane != 0;
    step_each_ = ceil_div(out_each_, lane) * lane, padded_ = step_each_ * groups_;
    vectors_ = static_cast<int>(std::min<int64_t>(2, ceil_div(out_each_, lane)));
    width_ = vectors_ * lane;
    panels_ = ceil_div(out_each_, width_);
    const int64_t most = most_pixels(machine_isa(), vectors_), kh = dim(kernel, 0), kw = dim(kernel, 1);
    by_rows_ = groups_ == 1 && kw > 1 && slide.dilation_w == 1 && 2 * in_ <= most;
    taps_ = by_rows_ ? kh : kh * kw;
    positions_ = by_rows_ ? kw * in_ : in_each_;
    tiles_ = ceil_div(positions_, most);
    const int64_t rows =
        kBlockBytes / (4 * ow_ * (std::min(in_, kCountedChannels) * slide.stride_h * slide.stride_w + width_));
    block_rows_ = std::clamp<int64_t>(rows, 1, oh_);
    if (oh_ * ow_ <= kSmallImage) block_images_ = std::clamp<int64_t>(rows / oh_, 1, images_);
    while (images_ % block_images_ != 0) --block_images_;
    once_ = blocks() == 1 && block_images_ == images_;
    make_calls(slide, kh, kw);
    const int64_t units = groups_ * panels_ * tiles_ * taps_;
    units_per_chunk_ = std::max<int64_t>(1, threads == 1 ? units : ceil_div(units, threads * 6));
  }

  size_t workspace() const { return repack_ ? static_cast<size_t>(images_ * oh_ * ow_ * padded_) * sizeof(float) : 0; }
  std::string describe() const {
    const std::string blocks =
        block_images_ > 1 ? fmt::format("{} images", block_images_) : fmt::format("{} rows", block_rows_);
    return fmt::format("{}x{} {}, {}blocks of {}", ceil_div(positions_, tiles_), width_, to_string(machine_isa()),
                       by_rows_ ? "rows of taps, " : "", blocks);
  }

  void run(Executor& executor, const float* x, const float* dy, float* gradient, float* workspace) const {
    if (repack_) {
      for_each(executor, images_ * oh_ * ow_, padded_, [&](int64_t pixel) {
        for (int64_t g = 0; g < groups_; ++g) {
          float* to = workspace + pixel * padded_ + g * step_each_;
          std::memcpy(to, dy + pixel * out_ + g * out_each_, static_cast<size_t>(out_each_) * sizeof(float));
          std::fill(to + out_each_, to + step_each_, 0.f);
        }
      });
      dy = workspace;
    }
    const int64_t units = groups_ * panels_ * tiles_ * taps_;
    executor.run(static_cast<int>(ceil_div(units, units_per_chunk_)), [&](int chunk, int) {
      const int64_t first = chunk * units_per_chunk_, last = std::min(units, first + units_per_chunk_);
      for (int64_t unit = first; unit < last && !once_; ++unit) clear(unit, gradient);
      for (int64_t image = 0; image < images_; image += block_images_)
        for (int64_t block = 0; block < blocks(); ++block)
          for (int64_t unit = first; unit < last; ++unit) add(unit, image, block, x, dy, gradient);
    });
  }

  static void read_windows(const Node& node, SlideSpec& slide) {
    const Value *x = node.inputs[0], *dy = node.inputs[1];
    const WindowSpec rows = window_spec(node.attr(), dim(node.result(), 0), 0);
    const WindowSpec columns = window_spec(node.attr(), dim(node.result(), 1), 1);
    slide.h = dim(x, 1), slide.w = dim(x, 2), slide.oh = dim(dy, 1), slide.ow = dim(dy, 2);
    slide.stride_h = rows.stride, slide.stride_w = columns.stride;
    slide.dilation_h = rows.dilation, slide.dilation_w = columns.dilation;
    slide.pad_top = rows.padding_before(slide.h, slide.oh), slide.pad_left = columns.padding_before(slide.w, slide.ow);
  }

 private:
  /// What a tap does in a block of rows.
  struct Call {
    int64_t x = 0, dy = 0;                // where its first pixel lies in an image
    std::vector<TileFunction> functions;  // by kind of tile and whether it is in the last panel; null: nothing to do
  };
  struct Unit {
    int64_t group, panel, tile, tap;
  };

  int64_t blocks() const { return ceil_div(oh_, block_rows_); }
  Unit unit_of(int64_t i) const {
    return {i / taps_ / tiles_ / panels_, i / taps_ / tiles_ % panels_, i / taps_ % tiles_, i % taps_};
  }
  int64_t tile_size(int64_t tile) const { return positions_ / tiles_ + (tile < positions_ % tiles_); }
  int64_t tile_start(int64_t tile) const { return tile * (positions_ / tiles_) + std::min(tile, positions_ % tiles_); }
  // Tiles of one kind have the same code: in a row of taps each its own, for each meets the image's border elsewhere.
  int64_t kinds() const { return by_rows_ ? tiles_ : 2; }
  size_t function_of(int64_t tile, bool last) const {
    const int64_t kind = by_rows_ ? tile : tile_size(tile) != tile_size(0);
    return static_cast<size_t>(2 * kind + last);
  }
  int64_t place(const Unit& unit) const {
    return (unit.tap * positions_ + tile_start(unit.tile)) * out_ + unit.group * out_each_ + unit.panel * width_;
  }

  void clear(int64_t i, float* gradient) const {
    const Unit unit = unit_of(i);
    const int64_t columns = std::min(width_, out_each_ - unit.panel * width_);
    for (int64_t row = 0; row < tile_size(unit.tile); ++row)
      std::fill_n(gradient + place(unit) + row * out_, columns, 0.f);
  }

  void add(int64_t i, int64_t image, int64_t block, const float* x, const float* dy, float* gradient) const {
    alignas(64) static constexpr float kZeros[64] = {};
    const Unit unit = unit_of(i);
    const Call& call = calls_[static_cast<size_t>(unit.tap * blocks() + block)];
    const TileFunction function = call.functions[function_of(unit.tile, unit.panel + 1 == panels_)];
    if (!function) return once_ ? clear(i, gradient) : void();
    float* to = gradient + place(unit);
    function(x + image * h_ * w_ * in_ + call.x + unit.group * in_each_ + tile_start(unit.tile),
             dy + image * oh_ * ow_ * padded_ + call.dy + unit.group * step_each_ + unit.panel * width_, to, kZeros,
             to);
  }

  void make_calls(const SlideSpec& slide, int64_t kh, int64_t kw) {
    for (int64_t ky = 0; ky < kh; ++ky)
      for (int64_t kx = 0; kx < (by_rows_ ? 1 : kw); ++kx)
        for (int64_t block = 0; block < blocks(); ++block) {
          const Reach rows = reach_of(block * block_rows_, std::min(oh_, (block + 1) * block_rows_), h_, slide.stride_h,
                                      ky * slide.dilation_h - slide.pad_top);
          const int64_t shift = kx * slide.dilation_w - slide.pad_left;
          const Reach columns = by_rows_ ? Reach{0, ow_, shift} : reach_of(0, ow_, w_, slide.stride_w, shift);
          Call call;
          call.x = (rows.at * w_ + columns.at) * in_;
          call.dy = (rows.first * ow_ + columns.first) * padded_;
          call.functions.assign(static_cast<size_t>(2 * kinds()), nullptr);
          for (int64_t tile = 0; tile < tiles_ && rows.first < rows.last; ++tile)
            for (bool last : {false, true})
              if (TileFunction& function = call.functions[function_of(tile, last)]; !function)
                function = make_function(slide, rows.last - rows.first, runs_of(slide, columns, tile), tile, last);
          calls_.push_back(std::move(call));
        }
  }

  /// Columns of one row of dy, and which positions of the tile meet the image there.
  std::vector<TapRun> runs_of(const SlideSpec& slide, const Reach& columns, int64_t tile) const {
    const int64_t size = tile_size(tile);
    const auto all = static_cast<uint32_t>((uint64_t{1} << size) - 1);
    std::vector<TapRun> runs;
    if (!by_rows_) {
      if (columns.first < columns.last) runs.push_back({0, 0, static_cast<int>(columns.last - columns.first), all});
      return runs;
    }
    for (int64_t column = 0; column < ow_; ++column) {
      uint32_t inside = 0;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t x = column * slide.stride_w - slide.pad_left + (tile_start(tile) + i) / in_;
        if (x >= 0 && x < w_) inside |= 1u << i;
      }
      if (!runs.empty() && runs.back().pixels == inside && runs.back().b_row + runs.back().length == column)
        ++runs.back().length;
      else if (inside)
        runs.push_back({column * slide.stride_w * in_ * 4, static_cast<int>(column), 1, inside});
    }
    return runs;
  }

  TileFunction make_function(const SlideSpec& slide, int64_t rows, std::vector<TapRun> runs, int64_t number,
                             bool last) {
    if (runs.empty()) return nullptr;
    TileSpec tile;
    tile.isa = machine_isa();
    tile.vectors = vectors_;
    tile.columns = static_cast<int>(last ? out_each_ - (panels_ - 1) * width_ : width_);
    for (int64_t i = 0; i < tile_size(number); ++i) tile.pixel_bytes.push_back(i * 4);
    tile.a_step_bytes = slide.stride_w * in_ * 4;
    tile.a_row_bytes = slide.stride_h * w_ * in_ * 4;
    tile.b_row_rows = static_cast<int>(ow_);
    if (!by_rows_ && runs[0].length == ow_ && slide.stride_h == 1 && slide.stride_w == 1 && w_ == ow_) {
      runs[0].length *= static_cast<int>(rows);  // rows follow each other
      rows = 1;
    }
    if (block_images_ > 1) {  // a row of the tile is an image
      const size_t each = runs.size();
      for (int64_t row = 1; row < rows; ++row)
        for (size_t i = 0; i < each; ++i)
          runs.push_back({runs[i].a_bytes + row * tile.a_row_bytes,
                          runs[i].b_row + static_cast<int>(row) * tile.b_row_rows, runs[i].length, runs[i].pixels});
      tile.a_row_bytes = h_ * w_ * in_ * 4;
      tile.b_row_rows = static_cast<int>(oh_ * ow_);
      rows = block_images_;
    }
    tile.rows.assign(static_cast<size_t>(rows), runs);
    tile.b_step_bytes = padded_ * 4;
    tile.c_stride = out_;
    tile.residual = !once_;
    kernels_.push_back(TileKernel::make(tile));
    return kernels_.back()->function();
  }

  int64_t groups_, images_, h_, w_, oh_, ow_, in_, out_, taps_;
  int64_t in_each_, out_each_;  // channels of a group
  int64_t step_each_, padded_;  // distance of groups and pixels in the dy that is read
  bool repack_ = false;         // dy is copied so that groups are whole vectors
  int vectors_ = 1;
  bool by_rows_ = false, once_ = false;  // once: each unit has one block
  int64_t positions_, width_, panels_, tiles_, block_rows_, block_images_ = 1, units_per_chunk_;
  std::vector<Call> calls_;
  std::vector<std::shared_ptr<const TileKernel>> kernels_;
};

}  // namespace

Refusal refuses_kernel_gradient(const Group& group) {
  const Node* node = single_node(group, "conv2d_kernel_gradient");
  if (!node) return "is another operation";
  if (machine_isa() == Isa::none) return "needs a processor with AVX2 and FMA";
  for (const Value* value : {node->inputs[0], node->inputs[1], node->result()}) {
    if (value->type.dtype != kF32) return fmt::format("elements are {}, takes f32", to_string(value->type.dtype));
    const int64_t count = *element_count(value->type.shape.sizes());
    if (count == 0) return "has no elements";
    if (count / std::max<int64_t>(1, value == node->result() ? 1 : dim(value, 0)) > INT32_MAX / 4)
      return "one image is larger than 512 Mi elements";
  }
  if (dim(node->result(), 0) * dim(node->result(), 1) > 225) return "has too many taps";
  return std::nullopt;
}

std::unique_ptr<Step> make_kernel_gradient(const Group& group, MakeContext& context) {
  const Node& node = group.last();
  KernelGradient gradient(node, context.threads);
  const size_t x = index_of(group, node.inputs[0]), dy = index_of(group, node.inputs[1]);
  CallOptions options{.workspace = gradient.workspace()};
  for (size_t i = 0; i < group.inputs.size(); ++i)
    if (i != x && i != dy) options.unread.push_back(i);
  const std::string name = "kernel_gradient " + gradient.describe();
  return call(
      name,
      [=, gradient = std::move(gradient)](const StepArgs& args) {
        gradient.run(args.executor, input(args, x), input(args, dy), output(args), static_cast<float*>(args.workspace));
      },
      std::move(options));
}

}  // namespace cairn
