// Ops without arithmetic, which the host carries out.
#include <cmath>

#include "ir/gradient.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

void identity(KernelContext& context) {
  const HostValue& x = context.value(0);
  if (!x.tensor.defined()) {
    context.result(0) = x;
    return;
  }
  Tensor& y = context.allocate(0, x.tensor.dtype(), x.tensor.dims());
  if (y.dtype() == kString)
    copy_elements(x.tensor, y);
  else
    std::memcpy(y.mutable_data(), x.tensor.data(), x.tensor.bytes());
}

/// Formats a number as TensorFlow does: with six digits, or nine when six give a different float.
std::string written(double number, DType dtype) {
  if (!dtype.is_float()) return fmt::format("{}", static_cast<int64_t>(number));
  const bool wide = dtype == kF64;
  std::string text = fmt::format("{:.{}g}", number, wide ? 15 : 6);
  const double read = strtod(text.c_str(), nullptr);
  const bool same = wide ? read == number : static_cast<float>(read) == static_cast<float>(number);
  return same || std::isnan(number) ? text : fmt::format("{:.{}g}", number, wide ? 17 : 9);
}

/// The first `most` elements with brackets around rows, as TensorFlow's Assert prints a tensor: "[200 200 200...]...".
std::string summary(const Tensor& tensor, int64_t most) {
  const auto& dims = tensor.dims();
  const int64_t shown = most < 0 ? tensor.count() : std::min(most, tensor.count());
  const std::vector<double> numbers = tensor.as_f64();
  std::string text;
  for (int64_t i = 0; i < shown; ++i) {
    size_t opened = 0;  // inner dims that begin with this element
    int64_t row = 1;
    for (size_t axis = dims.size(); axis-- > 1 && i % (row *= dims[axis]) == 0;) ++opened;
    if (i > 0 && opened > 0) text.append(opened, ']');
    if (opened > 0) text.append(opened, '[');
    if (i > 0 && opened == 0) text += ' ';
    text += written(numbers[static_cast<size_t>(i)], tensor.dtype());
  }
  if (dims.size() > 1 && shown > 0) {
    if (shown % dims.back() != 0) text += "...";
    text.append(dims.size() - 1, ']');
  }
  return shown < tensor.count() ? text + "..." : text;
}

void infer_assertion(InferContext& context) {
  const auto& texts = std::get<std::vector<std::string>>(context.attr.get("texts"));
  const std::vector<int64_t>& places = context.attr.integers("places");
  const size_t values = context.input_count() - 1;
  const auto items = static_cast<int64_t>(texts.size() + values);
  bool fit = places.size() == values;
  for (size_t i = 0; i < places.size() && fit; ++i) fit = places[i] >= (i ? places[i - 1] + 1 : 0) && places[i] < items;
  if (!fit)
    context.fail("{} values and {} texts have other places than the {} given", values, texts.size(), places.size());
}

void check_assertion(KernelContext& context) {
  const auto holds = context.input(0).values<uint8_t>();
  if (std::all_of(holds.begin(), holds.end(), [](uint8_t each) { return each != 0; })) return;
  std::string message = context.attr.text("message");
  const auto& texts = std::get<std::vector<std::string>>(context.attr.get("texts"));
  const std::vector<int64_t>& places = context.attr.integers("places");
  const size_t values = context.input_count() - 1;
  for (size_t item = 0, text = 0, value = 0; item < texts.size() + values; ++item) {
    const bool is_value = value < places.size() && places[value] == static_cast<int64_t>(item);
    message += fmt::format(
        " [{}]", is_value ? summary(context.input(1 + value), context.attr.integer("summarize")) : texts.at(text));
    ++(is_value ? value : text);
  }
  context.fail("{}", message);
}

std::vector<OpDef> make_host_rows() {
  return {
      {.name = "identity",
       .summary = "x itself",
       .inputs = {{"x", Accepts::any}},
       .traits = kView | kInPlace,
       .infer = [](InferContext& context) { context.result(context.input(0)); },
       .gradient = [](GradientContext& g) { g.set(0, g.dy()); },
       .reference = identity,
       .oracle = {"x"},
       .cases = {"f32[2, 3]", "i64[]", "bool[0, 2]", "f16[5]"}},
      {.name = "stop_gradient",
       .summary = "x itself, through which no gradient flows",
       .inputs = {{"x", Accepts::any}},
       .traits = kView | kInPlace,
       .infer = [](InferContext& context) { context.result(context.input(0)); },
       .gradient = [](GradientContext&) {},
       .reference = identity,
       .oracle = {"x"},
       .cases = {"f32[2, 3]", "i64[]", "f64[0, 2]"}},
      {.name = "dropout",
       .summary =
           "x itself; when a model is trained, each element is 0 with the probability `rate` and else divided by "
           "1 - rate, and `broadcast` names the axes along which all elements share their fate",
       .inputs = {{"x", Accepts::floats}},
       .attributes = {{"rate", AttrKind::number}, {"broadcast", AttrKind::integers, std::vector<int64_t>{}}},
       .traits = kView | kInPlace,
       .infer = [](InferContext& context) { context.result(context.input(0)); },
       .gradient = [](GradientContext& c) { c.set(0, c.dy()); },
       .reference = identity,
       .oracle = {"x"},
       .cases = {"f32[2, 3] {rate = 0.5}", "f64[0, 2] {rate = 0}"}},
      {.name = "after",
       .summary = "x itself, once the others are computed: what is made from it is not one with what is made from x",
       .inputs = {{"x", Accepts::any}, {"others", Accepts::any, InputDef::Arity::variadic}},
       .traits = kView | kNotFoldable,
       .infer = [](InferContext& context) { context.result(context.input(0)); },
       .gradient = [](GradientContext& c) { c.set(0, c.dy()); },
       .reference = identity,
       .oracle = {"x"},
       .cases = {"f32[2, 3], f32[2]", "f32[4]", "i64[], f32[0, 2], bool[]"}},
      {.name = "assert",
       .summary = "stops the run unless every element of the condition holds, with the message and a list of texts and "
                  "of values, whose places in the list are given, each with so many elements",
       .inputs = {{"condition", Accepts::boolean}, {"values", Accepts::number_or_bool, InputDef::Arity::variadic}},
       .attributes = {{"message", AttrKind::text},
                      {"texts", AttrKind::texts, std::vector<std::string>{}},
                      {"places", AttrKind::integers, std::vector<int64_t>{}},
                      {"summarize", AttrKind::integer, int64_t{3}}},
       .results = {},
       .traits = kWritesState | kNotFoldable,
       .infer = infer_assertion,
       .reference = check_assertion,
       .oracle = untested("has no result: tests/ops/kernel_test.cpp")},
  };
}

}  // namespace

std::span<const OpDef> host_ops() {
  static const std::vector<OpDef> rows = make_host_rows();
  return rows;
}

}  // namespace cairn
