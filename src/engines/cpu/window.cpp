#include "engines/cpu/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include "engines/cpu/form_code.h"
#include "engines/cpu/kernel_store.h"
#include "engines/cpu/slide_tile.h"
#include "support/error.h"
#include "support/stop.h"

namespace cairn {

namespace {

constexpr int64_t kMostTaps = 256;
constexpr int64_t kShortRow = 10;  // a tile may span several rows with fewer pixels
constexpr int64_t kChunksPerThread = 6;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Enough independent sums to hide the latency of a multiply-add, few enough to leave registers for the other values.
int64_t most_tile_pixels(Isa isa) { return isa == Isa::avx512 ? 14 : 10; }

const void* place(const void* data, int64_t at, Form form) {
  return static_cast<const char*>(data) + at * bytes_of(form);
}
void* place(void* data, int64_t at, Form form) { return static_cast<char*>(data) + at * bytes_of(form); }

template <class T>
void append_bytes(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string key_of(const SlideTile& tile) {
  std::string key;
  append_bytes(key, tile.pixel_bytes.size());
  for (int64_t bytes : tile.pixel_bytes) append_bytes(key, bytes);
  for (float divisor : tile.divisors) append_bytes(key, divisor);
  for (const SlideTap& tap : tile.taps) {
    append_bytes(key, tap.x_bytes);
    append_bytes(key, tap.pixels);
  }
  return key;
}

/// What code depends on beside the tile.
std::string key_of(const SlideSpec& spec, Isa isa) {
  std::string key;
  for (int64_t number : {spec.channels, spec.multiplier}) append_bytes(key, number);
  append_bytes(key, isa);
  append_bytes(key, spec.work);
  append_bytes(key, spec.residual);
  append_bytes(key, spec.activation.kind);
  append_bytes(key, spec.activation.low);
  append_bytes(key, spec.activation.high);
  for (Form form : {spec.x_form, spec.narrow.result, spec.narrow.residual}) append_bytes(key, form);
  append_bytes(key, spec.narrow.rounds_sum);
  append_bytes(key, spec.narrow.rounds_biased);
  return key;
}

}  // namespace

// Arguments: rdi = x, rsi = packed, rdx = y, rcx = residual, r8 = number of whole vectors of channels, r9 = whether to
// handle the remaining channels; r10 = bias, loaded from the stack.
class Slide::Code final : public FormCode {
 public:
  Code(const SlideSpec& spec, Isa isa, const SlideTile& tile)
      : FormCode(isa, isa == Isa::avx512 && machine_has_brain_products(), static_cast<int>(spec.channels % lanes(isa))),
        spec_(spec), wide_(isa == Isa::avx512), tile_(tile) {
    Xbyak::Label loop, rest, end;
    mov(r10, ptr[rsp + 8]);
    load_numbers();
    test(r8, r8);
    jz(rest, T_NEAR);
    L(loop);
    emit_channels();
    add(rdx, lanes(isa) * static_cast<int>(bytes_of(spec_.narrow.result)));
    add(rcx, lanes(isa) * static_cast<int>(bytes_of(spec_.narrow.residual)));
    add(rdi, lanes(isa) * static_cast<int>(bytes_of(spec_.x_form)) / multiplier());
    if (spec_.work == WindowWork::multiply_add) {
      add(rsi, packed_bytes());
      add(r10, vector_bytes());
    }
    dec(r8);
    jnz(loop, T_NEAR);
    L(rest);
    test(r9, r9);
    jz(end, T_NEAR);
    if (tail_) {
      in_tail_ = true;
      prepare_tail(reg(registers() - 1));
      if (wide_) {
        mov(eax, (1 << tail_ / multiplier()) - 1);
        kmovw(k2, eax);
      }
      emit_channels();
    }
    L(end);
    vzeroupper();
    ret();
    emit_divisors();
    emit_spread();
    emit_numbers();
    readyRE();
  }
  Function function() const { return getCode<Function>(); }

 private:
  int packed_bytes() const { return static_cast<int>(spec_.taps()) * vector_bytes(); }
  int pixels() const { return static_cast<int>(tile_.pixel_bytes.size()); }
  int multiplier() const { return static_cast<int>(spec_.multiplier); }
  bool multiplies() const { return spec_.work == WindowWork::multiply_add; }
  Xbyak::Xmm sum(int pixel) const { return reg(pixel); }
  // These use the six registers after the sums of the largest tile; the mask of AVX2 is in the last.
  Xbyak::Xmm weight() const { return reg(wide_ ? 26 : 10); }
  Xbyak::Xmm loaded() const { return reg(wide_ ? 27 : 11); }
  Xbyak::Xmm other() const { return reg(wide_ ? 28 : 12); }  // or which of the loaded channels each lane reads
  Xbyak::Xmm low() const { return reg(wide_ ? 29 : 13); }    // or the start of a maximum
  Xbyak::Xmm high() const { return reg(wide_ ? 30 : 14); }

  void load_numbers() {
    if (multiplier() > 1) vmovups(other(), ptr[rip + spread_]);
    if (spec_.narrow.result == Form::brains) keep_numbers(static_cast<int>(most_tile_pixels(isa_)), weight().getIdx());
    if (spec_.work == WindowWork::maximum) return set_number(low(), -std::numeric_limits<float>::infinity());
    if (spec_.activation.kind == Activation::Kind::none) return;
    const bool relu = spec_.activation.kind == Activation::Kind::relu;
    set_number(low(), relu ? 0 : spec_.activation.low);
    set_number(high(), relu ? 0 : spec_.activation.high);
  }

  // As many channels of x as a vector of y reads, spread over its lanes.
  void load_spread(const Xbyak::Xmm& target, const Xbyak::RegExp& from) {
    const int count = (in_tail_ ? tail_ : vector_bytes() / 4) / multiplier();
    const Xbyak::Xmm low(target.getIdx());
    if (in_tail_ && wide_) {
      vmovups(Xbyak::Zmm(target.getIdx()) | k2 | T_z, ptr[from]);
    } else if (count == 8) {
      vmovups(Xbyak::Ymm(target.getIdx()), ptr[from]);
    } else if (count == 4) {
      vmovups(low, ptr[from]);
    } else if (count >= 2) {
      vmovsd(low, ptr[from]);
      if (count == 3) vinsertps(low, low, ptr[from + 8], 2 << 4);
    } else {
      vmovss(low, ptr[from]);
    }
    if (wide_)
      vpermps(Xbyak::Zmm(target.getIdx()), Xbyak::Zmm(other().getIdx()), Xbyak::Zmm(target.getIdx()));
    else
      vpermps(Xbyak::Ymm(target.getIdx()), Xbyak::Ymm(other().getIdx()), Xbyak::Ymm(target.getIdx()));
  }

  void emit_channels() {
    start();
    if (spec_.x_form == Form::floats) {
      for (int tap = 0; tap < spec_.taps(); ++tap) emit_tap(tap);
    } else {
      emit_places();
    }
    for (int pixel = 0; pixel < pixels(); ++pixel) finish(pixel);
  }

  void start() {
    for (int pixel = 0; pixel < pixels(); ++pixel) {
      if (spec_.work == WindowWork::maximum)
        vmovaps(sum(pixel), low());
      else
        vxorps(Xbyak::Ymm(pixel), Xbyak::Ymm(pixel), Xbyak::Ymm(pixel));  // clears the whole register
    }
  }

  Xbyak::RegExp place(const SlideTap& tap, int pixel) const {
    return rdi + static_cast<int>(tap.x_bytes + tile_.pixel_bytes[static_cast<size_t>(pixel)]);
  }
  Xbyak::Address weights(int tap) { return ptr[rsi + tap * vector_bytes()]; }

  void emit_tap(int index) {
    const SlideTap& tap = tile_.taps[static_cast<size_t>(index)];
    if (tap.pixels == 0) return;
    if (multiplies()) vmovups(weight(), weights(index));
    for (int pixel = 0; pixel < pixels(); ++pixel) {
      if (!(tap.pixels >> pixel & 1)) continue;
      if (multiplies() && multiplier() == 1 && !in_tail_) {
        vfmadd231ps(sum(pixel), weight(), ptr[place(tap, pixel)]);
        continue;
      }
      multiplier() > 1 ? load_spread(loaded(), place(tap, pixel))
                       : load_elements(loaded(), place(tap, pixel), Form::floats, in_tail_);
      combine(pixel, weight());
    }
  }

  // Elements that are widened serve all windows that they lie in.
  void emit_places() {
    std::map<int64_t, std::vector<std::pair<int, int>>> readers;  // taps and pixels
    for (int tap = 0; tap < spec_.taps(); ++tap)
      for (int pixel = 0; pixel < pixels(); ++pixel)
        if (const SlideTap& each = tile_.taps[static_cast<size_t>(tap)]; each.pixels >> pixel & 1)
          readers[each.x_bytes + tile_.pixel_bytes[static_cast<size_t>(pixel)]].emplace_back(tap, pixel);
    for (const auto& [at, all] : readers) {
      load_elements(loaded(), rdi + static_cast<int>(at), spec_.x_form, in_tail_);
      for (const auto& [tap, pixel] : all) combine(pixel, weights(tap));
    }
  }

  /// The loaded element with the sum.
  void combine(int pixel, const Xbyak::Operand& weight) {
    if (multiplies())
      vfmadd231ps(sum(pixel), loaded(), weight);
    else if (spec_.work == WindowWork::mean)
      vaddps(sum(pixel), sum(pixel), loaded());
    else
      emit_maximum(sum(pixel));
  }

  // maxps returns its second source if either is NaN. The bitwise or of both orders is NaN if either is, else the
  // maximum.
  void emit_maximum(const Xbyak::Xmm& most) {
    vmaxps(other(), most, loaded());
    vmaxps(most, loaded(), most);
    vorps(most, most, other());
  }

  void finish(int pixel) {
    const auto at = [&](Form form) { return static_cast<int>(pixel * spec_.channels * bytes_of(form)); };
    const NarrowEpilogue& narrow = spec_.narrow;
    if (spec_.work == WindowWork::mean) {
      vbroadcastss(other(), ptr[rip + divisors_ + pixel * 4]);
      vdivps(sum(pixel), sum(pixel), other());
    }
    if (narrow.rounds_sum) round(sum(pixel), weight(), loaded(), narrow.result);
    if (multiplies()) vaddps(sum(pixel), sum(pixel), ptr[r10]);  // the bias; whole vectors are packed
    if (spec_.residual) {
      if (narrow.rounds_biased) round(sum(pixel), weight(), loaded(), narrow.result);
      load_elements(loaded(), rcx + at(narrow.residual), narrow.residual, in_tail_);
      vaddps(sum(pixel), sum(pixel), loaded());
    }
    if (spec_.activation.kind != Activation::Kind::none) vmaxps(sum(pixel), low(), sum(pixel));  // NaN stays
    if (spec_.activation.kind == Activation::Kind::clip) vminps(sum(pixel), high(), sum(pixel));
    store_elements(rdx + at(narrow.result), sum(pixel), weight(), loaded(), narrow.result, in_tail_);
  }

  void emit_divisors() {
    if (spec_.work != WindowWork::mean) return;
    align(4);
    L(divisors_);
    for (float divisor : tile_.divisors) dd(std::bit_cast<uint32_t>(divisor));
  }

  // The channel of x, counted from the first one loaded, that each lane reads.
  void emit_spread() {
    if (multiplier() == 1) return;
    align(4);
    L(spread_);
    for (int lane = 0; lane < vector_bytes() / 4; ++lane) dd(static_cast<uint32_t>(lane / multiplier()));
  }

  const SlideSpec spec_;
  bool wide_, in_tail_ = false;
  const SlideTile tile_;
  Xbyak::Label divisors_, spread_;
};

std::optional<std::string> Slide::refuses(const SlideSpec& spec, Isa isa) {
  if (spec.taps() > kMostTaps) return fmt::format("a window of {} taps would be too much code", spec.taps());
  if (lanes(isa) % spec.multiplier != 0)
    return fmt::format("has {} filters a channel, which do not divide a vector", spec.multiplier);
  if (spec.is_narrow() && (isa == Isa::none || spec.multiplier > 1)) return "has 16 bits";
  if (spec.channels == 0 || spec.out_pixels() * spec.n == 0 || spec.pixels() == 0) return "has no elements";
  const int64_t rows = (spec.kh + most_tile_pixels(isa) * spec.stride_h) * spec.dilation_h + 1;
  const int64_t reach = (spec.kd - 1) * spec.dilation_d * spec.h + rows;
  if (reach * spec.w > std::numeric_limits<int32_t>::max() / 4 / spec.channels) return "rows are longer than 2 GiB";
  return std::nullopt;
}

Slide::Slide(const SlideSpec& spec, Isa isa) : spec_(spec), isa_(isa), pixels_(most_tile_pixels(isa)) {
  CHECK(!refuses(spec, isa), "{}", *refuses(spec, isa));
  std::unordered_map<std::string, Tile> known;
  auto split = [&](int64_t first, int64_t pixels) {
    const int64_t count = ceil_div(pixels, pixels_);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t size = pixels / count + (i < pixels % count);
      add_tile(first, size, known);
      first += size;
    }
  };
  const bool share = spec_.ow < kShortRow;
  const int64_t parts = spec_.od * (share ? 1 : spec_.oh), each = share ? spec_.oh * spec_.ow : spec_.ow;
  for (int64_t i = 0; i < parts; ++i) split(i * each, each);
}

Slide::~Slide() = default;

// The tile lies in one slice of the volume.
void Slide::add_tile(int64_t first, int64_t pixels, std::unordered_map<std::string, Tile>& known) {
  const SlideSpec& s = spec_;
  const int64_t pixel_bytes = s.in_channels() * bytes_of(s.x_form);
  const int64_t slice = first / (s.oh * s.ow), start = first % (s.oh * s.ow), y0 = start / s.ow, x0 = start % s.ow;
  SlideTile tile;
  auto row_of = [&](int64_t i, int64_t ky) { return (start + i) / s.ow * s.stride_h + ky * s.dilation_h - s.pad_top; };
  auto column_of = [&](int64_t i, int64_t kx) {
    return (start + i) % s.ow * s.stride_w + kx * s.dilation_w - s.pad_left;
  };
  for (int64_t i = 0; i < pixels; ++i) {
    const int64_t rows = ((start + i) / s.ow - y0) * s.stride_h, columns = ((start + i) % s.ow - x0) * s.stride_w;
    tile.pixel_bytes.push_back((rows * s.w + columns) * pixel_bytes);
  }
  std::vector<int64_t> counts(static_cast<size_t>(pixels), 0);
  for (const int64_t k : turns(s.taps(), 8 * pixels)) {
    const int64_t kz = k / (s.kh * s.kw), ky = k / s.kw % s.kh, kx = k % s.kw;
    const int64_t z = slice * s.stride_d + kz * s.dilation_d - s.pad_front;
    SlideTap tap{((kz * s.dilation_d * s.h + ky * s.dilation_h) * s.w + kx * s.dilation_w) * pixel_bytes, 0};
    for (int64_t i = 0; i < pixels; ++i) {
      const int64_t y = row_of(i, ky), x = column_of(i, kx);
      const bool inside = z >= 0 && z < s.d && y >= 0 && y < s.h && x >= 0 && x < s.w;
      const bool padded = z < s.d + s.pad_back && y < s.h + s.pad_bottom && x < s.w + s.pad_right;
      if (inside) tap.pixels |= 1u << i;
      counts[static_cast<size_t>(i)] += s.count_padding ? padded : inside;
    }
    tile.taps.push_back(tap);
  }
  if (s.work == WindowWork::mean) tile.divisors.assign(counts.begin(), counts.end());
  const std::string key = key_of(tile);
  auto found = known.find(key);
  if (found == known.end() && isa_ == Isa::none) {
    plain_.push_back(std::make_unique<SlideTile>(tile));
    found = known.emplace(key, Tile{nullptr, plain_.back().get(), 0, 0}).first;
  } else if (found == known.end()) {
    static auto& store = *new KernelStore<Code>;  // never destroyed: it must outlive every kernel
    codes_.push_back(store.get(key_of(spec_, isa_) + key, [&] { return std::make_unique<Code>(spec_, isa_, tile); }));
    found = known.emplace(key, Tile{codes_.back()->function(), nullptr, 0, 0}).first;
  }
  const int64_t row = (slice * s.stride_d - s.pad_front) * s.h + y0 * s.stride_h - s.pad_top;
  const int64_t x = (row * s.w + x0 * s.stride_w - s.pad_left) * s.in_channels();
  tiles_.push_back({found->second.function, found->second.plain, x, first * s.channels});
}

size_t Slide::packed_size() const { return bias_size() * static_cast<size_t>(spec_.taps()); }

size_t Slide::bias_size() const {
  if (spec_.work != WindowWork::multiply_add) return 0;
  return static_cast<size_t>(ceil_div(spec_.channels, lanes(isa_)) * lanes(isa_));
}

std::string Slide::layout() const { return fmt::format("channels{} {}x{}", lanes(isa_), spec_.taps(), spec_.channels); }

void Slide::pack(const void* kernel, Form form, float* packed) const {
  if (packed_size() == 0) return;
  const int64_t lane = lanes(isa_), taps = spec_.taps();
  for (int64_t first = 0; first < spec_.channels; first += lane)
    for (int64_t tap = 0; tap < taps; ++tap, packed += lane) {
      const int64_t count = std::min(lane, spec_.channels - first), at = tap * spec_.channels + first;
      widen(form, count, static_cast<const char*>(kernel) + at * bytes_of(form), packed);
      std::fill(packed + count, packed + lane, 0.f);
    }
}

void Slide::pack_bias(const float* bias, float* packed) const {
  std::fill(packed, packed + bias_size(), 0.f);
  if (bias && bias_size()) std::copy(bias, bias + spec_.channels, packed);
}

void Slide::run(Executor& executor, const void* x, const float* packed, const float* bias, const void* residual,
                void* y) const {
  const int64_t lane = lanes(isa_), vectors = ceil_div(spec_.channels, lane), whole = spec_.channels / lane;
  const int64_t tiles = static_cast<int64_t>(tiles_.size()), all = tiles * spec_.n;
  const int64_t wanted = executor.width() == 1 ? 1 : executor.width() * kChunksPerThread;
  const int64_t tiles_per_chunk = std::max<int64_t>(1, all / wanted), tile_chunks = ceil_div(all, tiles_per_chunk);
  const int64_t vector_chunks = std::min(vectors, ceil_div(wanted, tile_chunks));
  const int64_t packed_step = spec_.work == WindowWork::multiply_add ? spec_.taps() * lane : 0;
  executor.run(static_cast<int>(tile_chunks * vector_chunks), [&](int chunk, int) {
    const int64_t part = chunk % vector_chunks, start = vectors * part / vector_chunks;
    const int64_t end = vectors * (part + 1) / vector_chunks, channel = start * lane;
    const int64_t first = chunk / vector_chunks * tiles_per_chunk;
    for (int64_t i = first; i < std::min(all, first + tiles_per_chunk); ++i) {
      const Tile& tile = tiles_[static_cast<size_t>(i % tiles)];
      const int64_t image = i / tiles;
      stop_point_after(spec_.taps() * lane * (end - start));
      const int64_t from = image * spec_.pixels() * spec_.in_channels() + tile.x + channel / spec_.multiplier;
      const int64_t to = image * spec_.out_pixels() * spec_.channels + tile.y + channel;
      run_tile(tile, place(x, from, spec_.x_form), packed ? packed + start * packed_step : nullptr,
               bias ? bias + channel : nullptr, residual ? place(residual, to, spec_.narrow.residual) : nullptr,
               place(y, to, spec_.narrow.result), std::min(end, whole) - start, end > whole);
    }
  });
}

void Slide::run_tile(const Tile& tile, const void* x, const float* packed, const float* bias, const void* residual,
                     void* y, int64_t vectors, bool rest) const {
  if (tile.function)
    tile.function(x, packed, y, residual, vectors, rest, bias);
  else
    slide_plainly(spec_, *tile.plain, static_cast<const float*>(x), packed, static_cast<float*>(y),
                  static_cast<const float*>(residual), vectors, rest, bias);
}

bool Slide::goes_by_rows(const SlideSpec& spec) { return spec.ow >= kShortRow; }

void Slide::run_rows(int64_t first, int64_t last, const void* x, const float* packed, const float* bias,
                     void* y) const {
  const int64_t lane = lanes(isa_), tiles = std::ssize(tiles_) / (spec_.od * spec_.oh);  // of a row
  for (int64_t i = first * tiles; i < last * tiles; ++i) {
    const Tile& tile = tiles_[static_cast<size_t>(i)];
    run_tile(tile, place(x, tile.x, spec_.x_form), packed, bias, nullptr, place(y, tile.y, spec_.narrow.result),
             spec_.channels / lane, spec_.channels % lane > 0);
  }
}

std::string Slide::describe() const {
  return fmt::format("{} pixels x {} channels {}{}", pixels_, lanes(isa_), to_string(isa_),
                     spec_.is_narrow() ? ", 16 bits" : "");
}

}  // namespace cairn
