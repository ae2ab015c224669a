#include "engines/cpu/winograd_gradient.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/kernel_gradient.h"
#include "engines/cpu/pixel_packing.h"
#include "engines/cpu/slides.h"

namespace cairn {

namespace {

// Bytes of a block's values: they stay in the second-level cache beside sums that do, else are many, since far sums are loaded and
// stored once a block.
constexpr int64_t kNearSums = 1 << 20, kNearValues = 1280 << 10, kFarValues = 24 << 20;
constexpr int64_t kLeastOfBlock = 48, kMostOfBlock = 256;  // tiles
constexpr int64_t kAllSums = 20 << 20;                     // bound of the bytes of all parts' sums
constexpr int64_t kMostSums = 8, kChunksOfWorker = 2;

int64_t whole_vectors(int64_t floats) { return ceil_div(floats, 16) * 16; }

}  // namespace

WinogradGradient::WinogradGradient(const WinogradSpec& spec, int64_t results, Isa isa, int threads)
    : spec_(spec), results_(results), isa_(isa), threads_(threads) {
  vectors_ = spec.oc > lanes(isa) ? 2 : 1;
  width_ = vectors_ * lanes(isa);
  panels_ = ceil_div(spec.oc, width_), m_row_ = panels_ * width_;
  tiles_ = spec.tiles(results);
  zeros_ = whole_vectors(std::max(spec.ic, spec.oc));
  const int64_t values = m_part() * 4 <= kNearSums ? kNearValues : kFarValues;
  blocks_ = ceil_div(tiles_, std::clamp(values / (points() * (spec.ic + spec.oc) * 4), kLeastOfBlock, kMostOfBlock));
  if (2 * m_part() * 4 <= kAllSums)
    blocks_ = std::max(blocks_, std::min<int64_t>(2, tiles_ / kLeastOfBlock));  // two parts
  most_tiles_ = ceil_div(tiles_, blocks_);
  parts_ = std::clamp<int64_t>(kAllSums / (m_part() * 4), 1, std::min(kMostSums, blocks_));
  if (threads > 1) splits_ = std::clamp<int64_t>(threads * kChunksOfWorker / parts_, 1, panels_);
  x_loops_.h = spec.h, x_loops_.w = spec.w, x_loops_.ic = x_loops_.x_pixel = spec.ic;
  x_loops_.pad_top = spec.pad_top, x_loops_.pad_left = spec.pad_left;
  x_loops_.v_tile = whole_vectors(spec.ic), x_loops_.x_form = spec.x_form;
  dy_loops_.h = spec.oh, dy_loops_.w = spec.ow, dy_loops_.x_pixel = spec.oc;
  dy_loops_.v_tile = ceil_div(panels_, splits_) * width_, dy_loops_.x_form = spec.narrow.result;
  for (WinogradLoops* s : {&x_loops_, &dy_loops_}) {
    s->tiles_y = ceil_div(spec.oh, results), s->tiles_x = ceil_div(spec.ow, results);
    s->v_point = whole_vectors(most_tiles_ * s->v_tile) + 16;
  }
  code_ = winograd_code(isa, results);
  for (int64_t block = 0; block < blocks_; ++block) add_rows(first_of(block + 1) - first_of(block));
}

void WinogradGradient::add_rows(int64_t tiles) {
  auto [place, is_new] = rows_.try_emplace(tiles);
  if (!is_new) return;
  const int64_t count = ceil_div(spec_.ic, most_pixels(isa_, vectors_));
  for (int64_t i = 0; i < count; ++i) {
    const Range channels = part_of(spec_.ic, count, i);
    TileSpec tile;
    tile.isa = isa_, tile.vectors = vectors_, tile.columns = static_cast<int>(width_);
    for (int64_t channel = 0; channel < channels.size(); ++channel) tile.pixel_bytes.push_back(channel * 4);
    const auto all = static_cast<uint32_t>((uint64_t{1} << channels.size()) - 1);
    tile.rows = {{{0, 0, static_cast<int>(tiles), all}}};
    tile.a_step_bytes = x_loops_.v_tile * 4, tile.b_step_bytes = dy_loops_.v_tile * 4;
    tile.c_stride = m_row_;
    tile.block_steps = is_narrow(spec_.x_form) ? 0 : winograd_block(tiles);
    const auto function = [&](bool adds) {
      tile.residual = adds;
      kernels_.push_back(TileKernel::make(tile));
      return kernels_.back()->function();
    };
    place->second.push_back({channels.first, function(false), function(true)});
  }
}

size_t WinogradGradient::scratch_size() const {
  return static_cast<size_t>(zeros_ + parts_ * m_part() + threads_ * values());
}

// Some panels of one part. Columns beyond the last channel hold what happened to be there; nobody reads their sums.
void WinogradGradient::run_chunk(int64_t chunk, const void* x, const void* dy, const float* zeros, float* sums,
                                 float* scratch) const {
  alignas(64) static constexpr float kNoBias[64] = {};
  const Range blocks = part_of(blocks_, parts_, chunk / splits_), panels = part_of(panels_, splits_, chunk % splits_);
  const int64_t first = panels.first * width_;
  WinogradLoops loops = dy_loops_;
  loops.ic = std::min(spec_.oc, panels.last * width_) - first;
  float* v = scratch;
  float* u = scratch + points() * x_loops_.v_point;
  sums += chunk / splits_ * m_part() + first;
  dy = static_cast<const char*>(dy) + first * bytes_of(loops.x_form);
  for (int64_t block = blocks.first; block < blocks.last; ++block) {
    const int64_t begin = first_of(block), end = first_of(block + 1);
    code_.transform(x_loops_, begin, end, x, zeros, v);
    code_.transform_results(loops, begin, end, dy, zeros, u);
    const std::vector<Rows>& rows = rows_.find(end - begin)->second;
    for (int64_t point = 0; point < points(); ++point)
      for (int64_t panel = 0; panel < panels.size(); ++panel)
        for (const Rows& each : rows) {
          float* to = sums + point * m_point() + each.first * m_row_ + panel * width_;
          (block == blocks.first ? each.begin : each.add)(v + point * x_loops_.v_point + each.first,
                                                          u + point * loops.v_point + panel * width_, to, kNoBias, to);
        }
  }
}

void WinogradGradient::run(Executor& executor, const void* x, const void* dy, float* gradient, float* scratch) const {
  float *zeros = scratch, *sums = zeros + zeros_, *rest = sums + parts_ * m_part();
  std::fill_n(zeros, zeros_, 0.f);
  executor.run(static_cast<int>(parts_ * splits_),
               [&](int chunk, int worker) { run_chunk(chunk, x, dy, zeros, sums, rest + worker * values()); });
  for_each(executor, spec_.ic, points() * spec_.oc * parts_, [&](int64_t i) {
    code_.finish_kernel(spec_.oc, parts_, m_part(), m_point(), sums + i * m_row_, gradient + i * spec_.oc,
                        spec_.ic * spec_.oc);
  });
}

std::string WinogradGradient::describe() const {
  return fmt::format("F({}x{},3x3) {}x{} {}, {} of {} tiles, {} parts of {}", results_, results_,
                     most_pixels(isa_, vectors_), width_, to_string(isa_), most_tiles_, tiles_, parts_,
                     to_string(spec_.x_form));
}

namespace {

constexpr int64_t kManyPixels = 1 << 16;  // whose sums in f32 err as much elsewhere as tiles of 4 x 4 do
constexpr double kGain = 0.7;             // products of values that come from far are slower than the estimate

Refusal read_winograd_gradient(const Group& group, WinogradSpec& spec, int64_t& results) {
  const Node& node = group.last();
  if (!is_convolution(node, ConvRole::kernel_gradient)) return "is another operation";
  if (node.attr().integer("groups") != 1) return "has groups";
  const SlideSpec s = convolution_of(node, node.inputs[0], node.inputs[1], node.result());
  if (s.d * s.od * s.kd != 1 || s.kh != 3 || s.kw != 3) return "kernel is not 3 x 3";
  if (s.stride_h * s.stride_w * s.dilation_h * s.dilation_w != 1) return "has a stride or a dilation";
  spec = {s.n, s.h, s.w, s.channels, last_dim(node.inputs[1]), s.oh, s.ow, s.pad_top, s.pad_left};
  spec.x_form = form_in(group, node.inputs[0]), spec.narrow.result = form_in(group, node.inputs[1]);
  if (spec.x_form == Form::brains && machine_has_brain_products())
    return "pairs of bf16 are multiplied by the definition";
  spec.packed_in_run = true;  // the sums are written, and read to be finished
  if (spec.n * spec.oh * spec.ow * spec.ic * spec.oc == 0) return "has no elements";
  if (spec.n * spec.oh * spec.ow < kManyPixels && !is_narrow(spec.x_form)) spec.most_results = 3;
  results = Winograd::best_results(spec, machine_isa(), kGain);
  if (results == 0) return "takes longer than the definition, by estimate";
  return refuses_kernel_gradient(group);  // which make_winograd_gradient() may make
}

}  // namespace

Refusal refuses_winograd_gradient(const Group& group) {
  WinogradSpec spec;
  int64_t results = 0;
  return read_winograd_gradient(group, spec, results);
}

std::unique_ptr<Step> make_winograd_gradient(const Group& group, MakeContext& context) {
  WinogradSpec spec;
  int64_t results = 0;
  const Refusal refusal = read_winograd_gradient(group, spec, results);
  CHECK(!refusal, "{}", *refusal);
  if (!context.winograd) return make_kernel_gradient(group, context);
  const Node& node = group.last();
  const size_t x = index_of(group, node.inputs[0]), dy = index_of(group, node.inputs[1]);
  CallOptions options;
  options.unread = inputs_but(group, {x, dy});
  WinogradGradient gradient(spec, results, machine_isa(), context.threads);
  options.workspace = gradient.scratch_size() * sizeof(float);
  std::string name = "winograd_gradient " + gradient.describe();
  const auto run = [=, gradient = std::move(gradient), workers = context.threads](const StepArgs& args) {
    Executor& executor = executor_for(args, workers);
    gradient.run(executor, args.inputs[x], args.inputs[dy], output(args), static_cast<float*>(args.workspace));
  };
  return call(std::move(name), run, std::move(options));
}

}  // namespace cairn
