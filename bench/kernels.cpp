// Every convolution of ResNet-50 and MobileNetV2 and the products of BERT on the CPU engine's own kernels, run in network
// order (so that weights are as cold and activations as warm as in use): GFLOP/s and share of the live peak.
// kernels [NETWORK|all] [THREADS] [ROUNDS] [--json]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "engines/cpu/conv.h"
#include "engines/cpu/window.h"

namespace cairn {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Register-only multiply-adds on every worker, in GFLOP/s.
double peak(Executor& executor) {
  constexpr long kLoops = 200000;
  const bool wide = machine_isa() == Isa::avx512;
  const double start = now();
  executor.run(executor.width(), [&](int, int) {
#define FMA12(r)                                                                                              \
  "vfmadd231ps " r "15," r "14," r "0\nvfmadd231ps " r "15," r "14," r "1\nvfmadd231ps " r "15," r "14," r    \
  "2\nvfmadd231ps " r "15," r "14," r "3\nvfmadd231ps " r "15," r "14," r "4\nvfmadd231ps " r "15," r "14," r \
  "5\nvfmadd231ps " r "15," r "14," r "6\nvfmadd231ps " r "15," r "14," r "7\nvfmadd231ps " r "15," r "14," r \
  "8\nvfmadd231ps " r "15," r "14," r "9\nvfmadd231ps " r "15," r "14," r "10\nvfmadd231ps " r "15," r "14," r "11\n"
#define CLOBBERED \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm14", "xmm15"
    asm volatile("vxorps %%ymm14,%%ymm14,%%ymm14\nvxorps %%ymm15,%%ymm15,%%ymm15\n" ::: "xmm14", "xmm15");
    for (long i = 0; i < kLoops; ++i)
      if (wide)
        asm volatile(FMA12("%%zmm")::: CLOBBERED);
      else
        asm volatile(FMA12("%%ymm")::: CLOBBERED);
    asm volatile("vzeroupper");
#undef FMA12
#undef CLOBBERED
  });
  return executor.width() * (kLoops * 12.0 * 2 * (wide ? 16 : 8)) / (now() - start) / 1e9;
}

struct Layer {
  std::string name;
  bool depthwise = false;
  ConvSpec conv;
  int input, output, residual;  // activation buffers
};

class Network {
 public:
  std::vector<Layer> layers;

  /// Same padding as the frameworks' trained models: the kernel's half on each side.
  void add(int input, int output, int64_t size, int64_t ic, int64_t oc, int64_t kernel, int64_t stride,
           Activation activation, int residual = -1, bool depthwise = false) {
    ConvSpec s;
    s.h = s.w = size, s.ic = ic, s.oc = oc, s.kh = s.kw = kernel, s.stride_h = s.stride_w = stride;
    s.pad_top = s.pad_left = kernel / 2;
    s.oh = s.ow = (size + kernel / 2 * 2 - kernel) / stride + 1;
    s.residual = residual >= 0, s.activation = activation;
    const char* kind = depthwise ? "dw" : "conv";
    layers.push_back({fmt::format("{} {}x{} s{} {}-{} @{}{}", kind, kernel, kernel, stride, ic, oc, size,
                                  residual >= 0 ? " +res" : ""),
                      depthwise, s, input, output, residual});
  }
  void product(int input, int output, int64_t m, int64_t k, int64_t n) {
    ConvSpec s;
    s.w = s.ow = m, s.ic = k, s.oc = n;
    layers.push_back({fmt::format("product {}x{}x{}", m, n, k), false, s, input, output, -1});
  }
};

constexpr Activation kRelu{Activation::Kind::relu, 0, 0};
constexpr Activation kRelu6{Activation::Kind::clip, 0, 6};

Network resnet50() {
  Network net;
  net.add(0, 1, 224, 3, 64, 7, 2, kRelu);
  int64_t size = 56, channels = 64;
  int x = 1;
  const int64_t width[] = {64, 128, 256, 512}, blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < blocks[stage]; ++block) {
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1, w = width[stage];
      net.add(x, 2, size, channels, w, 1, 1, kRelu);
      net.add(2, 3, size, w, w, 3, stride, kRelu);
      if (block == 0) {
        const int other = x == 1 ? 4 : 1;
        net.add(x, other, size, channels, w * 4, 1, stride, {});
        x = other;
      }
      size = (size - 1) / stride + 1;
      net.add(3, x, size, w, w * 4, 1, 1, kRelu, x);
      channels = w * 4;
    }
  net.product(2, 3, 1, 2048, 1000);
  return net;
}

Network mobilenet_v2() {
  Network net;
  net.add(0, 1, 224, 3, 32, 3, 2, kRelu6);
  int64_t size = 112, channels = 32;
  int x = 1;
  const int64_t table[][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                              {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  for (const auto& [expand, oc, count, first_stride] : table)
    for (int64_t block = 0; block < count; ++block) {
      const int64_t stride = block == 0 ? first_stride : 1, wide = channels * expand;
      if (expand > 1) net.add(x, 2, size, channels, wide, 1, 1, kRelu6);
      net.add(expand > 1 ? 2 : x, 3, size, wide, wide, 3, stride, kRelu6, -1, true);
      size = (size - 1) / stride + 1;
      const bool residual = stride == 1 && channels == oc;
      const int output = residual ? x : x == 1 ? 4 : 1;
      net.add(3, output, size, wide, oc, 1, 1, {}, residual ? x : -1);
      x = output, channels = oc;
    }
  net.add(x, 2, size, 320, 1280, 1, 1, kRelu6);
  net.product(2, 3, 1, 1280, 1000);
  return net;
}

Network bert() {
  Network net;
  for (int i = 0; i < 4; ++i) {
    for (int output : {2, 3, 4}) net.product(1, output, 128, 768, 768);
    net.product(4, 1, 128, 768, 768);
    net.product(1, 2, 128, 768, 3072);
    net.product(2, 1, 128, 3072, 768);
  }
  return net;
}

using Buffer = std::unique_ptr<float, decltype(&std::free)>;

Buffer buffer(size_t floats) {
  const size_t page = size_t{2} << 20, bytes = (floats * 4 + page - 1) / page * page;
  Buffer data(static_cast<float*>(std::aligned_alloc(page, bytes)), &std::free);
  std::memset(data.get(), 0, bytes);
  return data;
}

/// A layer with its kernel made and its weights packed.
class Prepared {
 public:
  Prepared(const Layer& layer, int threads, std::mt19937& random) : layer_(layer) {
    const ConvSpec& s = layer.conv;
    const int64_t ic = layer.depthwise ? 1 : s.ic;
    const float scale = std::sqrt(3.f / static_cast<float>(s.kh * s.kw * ic));
    std::uniform_real_distribution<float> spread(-scale, scale);
    std::vector<float> weights(static_cast<size_t>(s.kh * s.kw * ic * s.oc));
    for (float& weight : weights) weight = spread(random);
    if (layer.depthwise) {
      SlideSpec slide;
      slide.h = s.h, slide.w = s.w, slide.channels = s.ic, slide.oh = s.oh, slide.ow = s.ow, slide.kh = s.kh,
      slide.kw = s.kw, slide.stride_h = s.stride_h, slide.stride_w = s.stride_w, slide.pad_top = s.pad_top,
      slide.pad_left = s.pad_left, slide.activation = s.activation;
      slide_ = std::make_unique<Slide>(slide, machine_isa());
      packed_ = buffer(slide_->packed_size()), bias_ = buffer(slide_->bias_size());
      slide_->pack(weights.data(), packed_.get());
    } else {
      conv_ = std::make_unique<Conv>(s, machine_isa(), threads);
      packed_ = buffer(conv_->packed_size()), bias_ = buffer(conv_->bias_size());
      conv_->pack(weights.data(), packed_.get());
    }
  }

  void run(Executor& executor, const std::vector<Buffer>& buffers) const {
    const auto at = [&](int i) { return i < 0 ? nullptr : buffers[static_cast<size_t>(i)].get(); };
    if (slide_)
      slide_->run(executor, at(layer_.input), packed_.get(), bias_.get(), nullptr, at(layer_.output));
    else
      conv_->run(executor, at(layer_.input), packed_.get(), bias_.get(), at(layer_.residual), at(layer_.output));
  }

  double gflop() const {
    const ConvSpec& s = layer_.conv;
    return 2e-9 * static_cast<double>(s.kh * s.kw * s.oh * s.ow * s.oc * (layer_.depthwise ? 1 : s.ic));
  }
  const std::string& name() const { return layer_.name; }
  std::string kernel() const { return slide_ ? slide_->describe() : conv_->describe(); }

 private:
  Layer layer_;
  std::unique_ptr<Conv> conv_;
  std::unique_ptr<Slide> slide_;
  Buffer packed_{nullptr, &std::free}, bias_{nullptr, &std::free};
};

nlohmann::json measure(const std::string& name, const Network& network, Executor& executor, int rounds) {
  std::mt19937 random(1);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 5; ++i) buffers.push_back(buffer(4 << 20));
  std::uniform_real_distribution<float> spread(-1, 1);
  for (int i = 0; i < 224 * 224 * 3; ++i) buffers[0].get()[i] = buffers[1].get()[i] = spread(random);
  std::vector<std::unique_ptr<Prepared>> layers;
  const double start = now();
  for (const Layer& layer : network.layers)
    layers.push_back(std::make_unique<Prepared>(layer, executor.width(), random));
  const double made = now() - start;
  std::vector<double> best(layers.size(), 1e9), passes;
  double live = 0;
  for (int round = 0; round < rounds; ++round) {
    live = std::max(live, peak(executor));
    const double pass = now();
    for (const auto& layer : layers) layer->run(executor, buffers);
    passes.push_back(now() - pass);
    for (size_t i = 0; i < layers.size(); ++i) {
      const double before = now();
      layers[i]->run(executor, buffers);
      best[i] = std::min(best[i], now() - before);
    }
  }
  nlohmann::json rows = nlohmann::json::array();
  double gflop = 0, sum = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    gflop += layers[i]->gflop(), sum += best[i];
    rows.push_back({{"layer", layers[i]->name()},
                    {"kernel", layers[i]->kernel()},
                    {"us", best[i] * 1e6},
                    {"gflops", layers[i]->gflop() / best[i]},
                    {"share", layers[i]->gflop() / best[i] / live}});
  }
  const double fastest = *std::min_element(passes.begin(), passes.end());
  return {{"network", name},
          {"threads", executor.width()},
          {"peak_gflops", live},
          {"make_ms", made * 1e3},
          {"sum_of_best_ms", sum * 1e3},
          {"pass_ms", fastest * 1e3},
          {"share", gflop / fastest / live},
          {"layers", rows}};
}

void print_table(const nlohmann::json& result) {
  fmt::print("{:<36} {:>9} {:>8} {:>7}  kernel\n", "layer", "us", "GFLOP/s", "% peak");
  for (const auto& row : result["layers"])
    fmt::print("{:<36} {:>9.1f} {:>8.1f} {:>7.1f}  {}\n", row["layer"].get<std::string>(), row["us"].get<double>(),
               row["gflops"].get<double>(), 100 * row["share"].get<double>(), row["kernel"].get<std::string>());
  fmt::print(
      "{}, {} threads: fastest pass {:.2f} ms, {:.1f} % of the peak of {:.0f} GFLOP/s; sum of best {:.2f} ms; made in "
      "{:.0f} ms\n\n",
      result["network"].get<std::string>(), result["threads"].get<int>(), result["pass_ms"].get<double>(),
      100 * result["share"].get<double>(), result["peak_gflops"].get<double>(), result["sum_of_best_ms"].get<double>(),
      result["make_ms"].get<double>());
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool json = std::erase(words, "--json") > 0;
  const std::string which = words.empty() ? "all" : words[0];
  const int threads = words.size() > 1 ? std::max(1, std::atoi(words[1].c_str())) : cairn::available_threads();
  const int rounds = words.size() > 2 ? std::max(1, std::atoi(words[2].c_str())) : 60;
  const std::map<std::string, cairn::Network (*)()> networks = {
      {"resnet50", cairn::resnet50}, {"mobilenet_v2", cairn::mobilenet_v2}, {"bert", cairn::bert}};
  if (which != "all" && !networks.count(which)) {
    fmt::print(stderr, "kernels: unknown network {}; resnet50, mobilenet_v2, bert or all\n", which);
    return 2;
  }
  const auto executor = cairn::make_pool(threads);
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [name, make] : networks)
    if (which == "all" || which == name) all.push_back(cairn::measure(name, make(), *executor, rounds));
  if (json) return fmt::print("{}\n", all.dump(1)), 0;
  for (const auto& result : all) cairn::print_table(result);
}
