// Discrete Fourier transforms of several lines at a time, one in each lane of a vector of f64.
#include "ops/fourier.h"

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/rows.h"
#include "ops/kernels.h"
#include "support/memory.h"

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace {

namespace plain {
#define CAIRN_DOUBLES 1
#include "ops/fourier_body.h"
#undef CAIRN_DOUBLES
}  // namespace plain

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace avx2 {
#define CAIRN_DOUBLES 4
#include "ops/fourier_body.h"
#undef CAIRN_DOUBLES
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace avx512 {
#define CAIRN_DOUBLES 8
#include "ops/fourier_body.h"
#undef CAIRN_DOUBLES
}  // namespace avx512
#pragma GCC pop_options

/// The length of the transform of this node when it is known, else -1.
int64_t length_of(const Node& node) {
  if (node.inputs.size() == 1) return 0;
  const Tensor* length = constant_of(node.inputs[1]);
  return length && length->count() == 1 ? length->as_i64()[0] : -1;
}

bool is_transform(const Node& node) { return node.is("dft") || node.is("real_dft") || node.is("inverse_real_dft"); }

}  // namespace

Refusal refuses_fourier(const Group& group) {
  if (group.nodes.size() != 1 || !is_transform(group.last())) return "is another operation";
  if (length_of(group.last()) < 0) return "the length is no constant";
  return std::nullopt;
}

std::unique_ptr<Step> make_fourier(const Group& group, MakeContext& context) {
  const Node& node = group.last();
  const Type &x = node.inputs[0]->type, &y = node.result()->type;
  const size_t from = index_of(group, node.inputs[0]);
  if (count_of(y.shape.sizes()) == 0) return call("fourier", [](const StepArgs&) {});
  const auto lines = std::make_shared<const FourierLines>(
      FourierLines::of(*node.op, node.attr(), x.shape.sizes(), y.shape.sizes(), length_of(node)));
  const auto fourier = std::make_shared<const Fourier>(lines->worked());
  const Isa isa = machine_isa();
  // A vector that most lines leave empty gains nothing; neither does one whose buffers leave the cache.
  const size_t numbers = 2 * lines->worked() + fourier->scratch();
  int64_t lanes = isa == Isa::avx512 ? 8 : isa == Isa::avx2 ? 4 : 1;
  if (2 * lines->count <= lanes || numbers * static_cast<size_t>(lanes) > (size_t{1} << 17)) lanes = 1;
  const size_t bytes = whole_lines(numbers * static_cast<size_t>(lanes) * 2 * sizeof(double));
  const DType dtype = x.dtype;
  const auto run = [=](const StepArgs& args) {
    const int64_t groups = (lines->count + lanes - 1) / lanes;
    const auto work = static_cast<int64_t>(lines->worked()) * lanes * 16;
    const int64_t each = std::max<int64_t>(1, (32 << 10) / work);
    with_floats(dtype, [&](auto tag) {
      using T = decltype(tag);
      const auto transform = lanes == 8   ? avx512::transform_lines<T>
                             : lanes == 4 ? avx2::transform_lines<T>
                                          : plain::transform_lines<T>;
      args.executor.run(static_cast<int>((groups + each - 1) / each), [&](int chunk, int worker) {
        char* buffer = static_cast<char*>(args.workspace) + static_cast<size_t>(worker) * bytes;
        for (int64_t i = chunk * each; i < std::min(groups, (chunk + 1) * each); ++i)
          transform(*fourier, *lines, i * lanes, std::min(lanes, lines->count - i * lanes), input<T>(args, from),
                    output<T>(args), buffer);
      });
    });
  };
  return call("fourier", run, {.workspace = bytes * static_cast<size_t>(std::max(1, context.threads))});
}

}  // namespace cairn
