// Folds constants around convolutions and matrix products into their weights, so that product plus bias remains. This
// changes the rounding, as in every inference engine.
#include <algorithm>
#include <limits>
#include <numeric>

#include "passes/facts.h"
#include "passes/rules.h"

namespace cairn {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool wide_float(DType dtype) { return dtype == kF32 || dtype == kF64; }

// Whether the constant scales whole output channels and does not change the product's type.
bool scales_channels(const Match& m) {
  return wide_float(m.type().dtype) && along_last_dim(m.constant("c")) &&
         surely_same(m.node("product").result()->type, m.type());
}

Value* as_vector(Match& m, Value* c, bool column = false) {
  int64_t count = constant_of(c)->count();
  return m.add("reshape",
               {c, m.constant(Tensor::of_i64(column ? std::vector<int64_t>{count, 1} : std::vector<int64_t>{count}))});
}

Value* factor(Match& m, bool divide) { return divide ? m.add("reciprocal", {m["c"]}) : m["c"]; }

// The product with its output channels scaled.
Value* scaled_product(Match& m, Value* scale) {
  Node& product = m.node("product");
  const AttrDef* flag = product.op->find_attribute("transpose_b");
  bool rows = flag && product.attr().boolean("transpose_b");
  return m.like(product, {m["x"], m.add("mul", {m["w"], as_vector(m, scale, rows)})});
}

Value* scale_after(Match& m) { return scaled_product(m, factor(m, m.root().is("div"))); }

Value* scale_after_bias(Match& m) {
  Value* scale = factor(m, m.root().is("div"));
  return m.add("add", {scaled_product(m, scale), m.add("mul", {m["b"], scale})});
}

bool bias_and_scale(const Match& m) { return scales_channels(m) && along_last_dim(m.constant("b")); }

Value* joined_bias(Match& m) { return m.add("add", {m.node("product").result(), m.add("add", {m["a"], m["b"]})}); }

bool keeps_product_type(const Match& m) { return surely_same(m.node("product").result()->type, m.type()); }

// Whether the constant scales whole input channels (the zero padding is not affected).
bool scales_input_channels(const Match& m) {
  const Node& product = m.root();
  if (!wide_float(m.type().dtype) || !along_last_dim(m.constant("c"))) return false;
  if (!surely_same(m["x"]->type, m.node("scale").result()->type)) return false;
  if (product.op->find_attribute("groups") && product.attr().integer("groups") != 1)
    return m.constant("c").count() == 1;
  return !product.op->find_attribute("transpose_a") || !product.attr().boolean("transpose_a");
}

Value* scale_before(Match& m) {
  Node& product = m.root();
  const AttrDef* flag = product.op->find_attribute("transpose_b");
  bool columns = flag && product.attr().boolean("transpose_b");
  Value* scale = as_vector(m, factor(m, m.node("scale").is("div")), !columns);
  return m.like(product, {m["x"], m.add("mul", {m["w"], scale})});
}

bool statistics_in_type(const Match& m) {
  const Shape& shape = m["x"]->type.shape;
  return shape.ranked && wide_float(m.type().dtype) && m["s"]->type.dtype == m.type().dtype &&
         m["v"]->type.dtype == m.type().dtype;
}

// y = x * k + (offset - mean * k), k = scale / sqrt(variance + epsilon).
Value* normalise_by_constants(Match& m) {
  Node& root = m.root();
  size_t rank = m["x"]->type.shape.rank(), axis = axis_of(root.attr().integer("axis"), rank);
  double epsilon = root.attr().number("epsilon");
  Value* shift = m.constant(m.type().dtype == kF32 ? Tensor::scalar_f32(static_cast<float>(epsilon))
                                                   : Tensor::of<double>(kF64, {}, {epsilon}));
  Value* k = m.add("div", {m["s"], m.add("sqrt", {m.add("add", {m["v"], shift})})});
  Value* b = m.add("sub", {m["o"], m.add("mul", {m["m"], k})});
  std::vector<int64_t> dims(rank - axis, 1);
  dims[0] = constant_of(m["s"])->count();
  if (dims.size() > 1) {
    Value* shape = m.constant(Tensor::of_i64(dims));
    k = m.add("reshape", {k, shape});
    b = m.add("reshape", {b, shape});
  }
  return m.add("add", {m.add("mul", {m["x"], k}), b});
}

// The padding, if it is along an image's or volume's spatial dims only: before and after each of them.
std::optional<std::vector<int64_t>> image_pads(const Match& m) {
  constexpr auto allowed = [](int64_t pad) { return pad >= 0 && pad <= std::numeric_limits<int32_t>::max(); };
  const Tensor& pads = m.constant("p");
  if (pads.dims() != std::vector<int64_t>{std::ssize(m.root().attr().integers("pads")) / 2 + 2, 2} ||
      m.node("pad").attr().text("mode") != "constant")
    return {};
  auto all = pads.as_i64();
  if (all[0] || all[1] || *(all.end() - 2) || *(all.end() - 1) || !std::all_of(all.begin(), all.end(), allowed))
    return {};
  return std::vector<int64_t>(all.begin() + 2, all.end() - 2);
}

bool pads_with(const Match& m, double value) {
  const Node& root = m.root();
  const std::string& padding = root.attr().text("padding");
  if (padding != "valid" && padding != "explicit") return false;
  if (root.op->find_attribute("ceil_mode") && root.attr().boolean("ceil_mode")) return false;
  return image_pads(m) && m.node("pad").attr().number("value") == value;
}

Value* pad_inside(Match& m) {
  Node& root = m.root();
  std::vector<int64_t> pads = *image_pads(m);
  if (root.attr().text("padding") == "explicit")
    for (size_t i = 0; i < pads.size(); ++i) pads[i] += root.attr().integers("pads")[i];
  std::vector<Value*> inputs = root.inputs;
  inputs[0] = m["x"];
  return m.like(root, std::move(inputs), {{"padding", std::string("explicit")}, {"pads", std::move(pads)}});
}

// Whether the padded value has rows of pixels [n, w, c], padded by zeros along w only, that the reshape makes images
// [n, 1, w, c].
bool pads_rows(const Match& m) {
  const Node& root = m.root();
  const Tensor& pads = m.constant("p");
  const Shape &rows = m["x"]->type.shape, &images = m.node("image").result()->type.shape;
  const Shape& padded = m.node("pad").result()->type.shape;
  const std::string& padding = root.attr().text("padding");
  if ((padding != "valid" && padding != "explicit") || m.node("pad").attr().text("mode") != "constant" ||
      m.node("pad").attr().number("value") != 0 || pads.dims() != std::vector<int64_t>{3, 2})
    return false;
  const auto all = pads.as_i64();
  if (all[0] || all[1] || all[4] || all[5] || std::min(all[2], all[3]) < 0 ||
      std::max(all[2], all[3]) > std::numeric_limits<int32_t>::max())
    return false;
  if (!rows.ranked || !padded.ranked || !images.ranked || images.rank() != 4 || images.dims[1] != Dim(1)) return false;
  for (size_t i : {0, 1, 2})
    if (!padded.dims[i].surely_equals(images.dims[i ? i + 1 : 0])) return false;
  return reshape_operand({rows.dims[0], Dim(1), rows.dims[1], rows.dims[2]}).has_value();
}

Value* pad_rows_inside(Match& m) {
  Node& root = m.root();
  const auto& dims = m["x"]->type.shape.dims;
  const auto pads = m.constant("p").as_i64();
  std::vector<int64_t> all{0, 0, pads[2], pads[3]};
  if (root.attr().text("padding") == "explicit")
    for (size_t i = 0; i < 4; ++i) all[i] += root.attr().integers("pads")[i];
  Value* shape = m.constant(Tensor::of_i64(*reshape_operand({dims[0], Dim(1), dims[1], dims[2]})));
  std::vector<Value*> inputs = root.inputs;
  inputs[0] = m.add("reshape", {m["x"], shape});
  return m.like(root, std::move(inputs), {{"padding", std::string("explicit")}, {"pads", std::move(all)}});
}

// Whether zero padding cannot change maximum pooling: the image is a relu's result, and no window has padding only.
bool zeros_lose(const Match& m) {
  const auto& window = m.root().attr().integers("window");
  auto pads = image_pads(m);
  if (!pads_with(m, 0) || m.root().attr().text("padding") != "valid" || !m.type().dtype.is_float()) return false;
  for (size_t i = 0; i < pads->size(); ++i)
    if ((*pads)[i] >= window[i / 2]) return false;
  for (int64_t dilation : m.root().attr().integers("dilations"))
    if (dilation != 1) return false;
  return true;
}

#define KERNEL_12 "%w = constant {value = f32[1, 1, 1, 2] (0.5, -1.5)} "
#define KERNEL_23 "%w = constant {value = f32[2, 3] (0.5, -1.5, 1.0, 2.0, 0.25, -1.0)} "

// Whether computed rows meet computed columns, so long or so many that laying out columns as weights would take most of the time.
bool is_long_dot(const Match& m) {
  constexpr int64_t kLeast = 256;
  const Type &a = m["a"]->type, &b = m["b"]->type;
  if (!wide_float(m.type().dtype) || !m.type().is_static() || !a.is_static() || !b.is_static()) return false;
  if (constant_of(m["a"]) || constant_of(m["b"])) return false;
  const std::vector<int64_t> sizes = m.type().shape.sizes(), from = a.shape.sizes();
  return sizes.end()[-1] == 1 && sizes.end()[-2] == 1 && *element_count(from) >= kLeast;
}

Value* sum_of_products(Match& m) {
  const auto rows = [&](Value* value) {
    std::vector<int64_t> sizes = value->type.shape.sizes();
    const int64_t length = sizes.end()[-1] * sizes.end()[-2];
    sizes.pop_back(), sizes.back() = length;
    return m.add("reshape", {value, m.constant(Tensor::of_i64(sizes))});
  };
  Value* product = m.add("mul", {rows(m["a"]), rows(m["b"])});
  const std::vector<int64_t> axes{static_cast<int64_t>(product->type.shape.rank()) - 1};
  Value* sum = m.add("reduce_sum", {product}, {{"axes", axes}, {"keep_dims", true}});
  const std::vector<int64_t> sizes = m.type().shape.sizes();
  return m.add("reshape", {sum, m.constant(Tensor::of_i64(sizes))});
}

// Whether products of a turned matrix, as gradients of weights are, are summed over the whole batch, which both operands have.
bool sums_batch(const Match& m) {
  const Node &product = m.node("product"), &sum = m.root();
  const Shape &a = m["a"]->type.shape, &b = m["b"]->type.shape;
  if (!product.attr().boolean("transpose_a") || product.attr().boolean("transpose_b") || !a.ranked || !b.ranked)
    return false;
  if (a.rank() < 3 || a.rank() != b.rank() || !a.dims.back().known() || !b.dims.back().known()) return false;
  for (size_t i = 0; i + 1 < a.rank(); ++i)
    if (!a.dims[i].surely_equals(b.dims[i])) return false;
  std::vector<size_t> axes, batch(a.rank() - 2);
  for (int64_t axis : sum.attr().integers("axes")) axes.push_back(axis_of(axis, a.rank()));
  std::iota(batch.begin(), batch.end(), size_t{0});
  return std::ranges::is_permutation(axes, batch) && m["a"]->type.dtype.is_float();
}

// One product over the rows of all matrices, of the sum's type.
Value* product_over_batch(Match& m) {
  const auto rows = [&](Value* x) {
    if (x->type.dtype != m.type().dtype) x = m.add("cast", {x}, {{"dtype", m.type().dtype}});
    return m.add("reshape", {x, m.constant(Tensor::of_i64({-1, x->type.shape.dims.back().size}))});
  };
  Value* product = m.like(m.node("product"), {rows(m["a"]), rows(m["b"])});
  if (!m.root().attr().boolean("keep_dims")) return product;
  std::vector<int64_t> dims(m["a"]->type.shape.rank() - 2, 1);
  for (const Value* x : {m["a"], m["b"]}) dims.push_back(x->type.shape.dims.back().size);
  return m.add("reshape", {product, m.constant(Tensor::of_i64(dims))});
}

constexpr Rule kContractionRules[] = {
    {.name = "scale_after_product",
     .summary = "a constant factor a channel after a convolution or matrix product goes into its weights",
     .pattern = "mul|div(conv2d|conv3d|matmul(x, w!)~:product, c!)",
     .where = scales_channels,
     .replace = scale_after,
     .platform = "ConvBatchnormFusionPass",
     .in = "(%x: f32[1, 3, 3, 1]) -> (%y: f32[1, 3, 3, 2]) { " KERNEL_12 "%c = constant {value = f32[2] (2.0, 3.0)} "
           "%p = conv2d %x, %w %y = mul %p, %c return %y }",
     .out = "(%x: f32[1, 3, 3, 1]) -> (%y: f32[1, 3, 3, 2]) { %w = constant {value = f32[1, 1, 1, 2] (1.0, -4.5)} "
            "%y = conv2d %x, %w return %y }"},
    {.name = "scale_after_bias",
     .summary = "a constant factor a channel after product and bias goes into weights and bias",
     .pattern = "mul|div(add(conv2d|conv3d|matmul(x, w!)~:product, b!)~, c!)",
     .where = bias_and_scale,
     .replace = scale_after_bias,
     .platform = "ConvBatchnormFusionPass",
     .in = "(%x: f32[4, 2]) -> (%y: f32[4, 3]) { " KERNEL_23 "%b = constant {value = f32[3] (1.0, 2.0, 3.0)} "
           "%c = constant {value = f32[3] (2.0, 4.0, -1.0)} %p = matmul %x, %w %a = add %p, %b %y = mul %a, %c return "
           "%y }",
     .out = "(%x: f32[4, 2]) -> (%y: f32[4, 3]) { %w = constant {value = f32[2, 3] (1.0, -6.0, -1.0, 4.0, 1.0, 1.0)} "
            "%p = matmul %x, %w %b = constant {value = f32[3] (2.0, 8.0, -3.0)} %y = add %p, %b return %y }"},
    {.name = "bias_after_bias",
     .summary = "two biases are one",
     .pattern = "add(add(conv2d|conv3d|matmul|dequantize_linear(x, ...)~:product, a!)~, b!)",
     .where = keeps_product_type,
     .replace = joined_bias,
     .platform = "ABiasaddConvFusion",
     .in = "(%x: f32[4, 2]) -> (%y: f32[4, 3]) { " KERNEL_23 "%b = constant {value = f32[3] (1.0, 2.0, 3.0)} "
           "%c = constant {value = f32[] (0.5)} %p = matmul %x, %w %a = add %p, %b %y = add %a, %c return %y }",
     .out = "(%x: f32[4, 2]) -> (%y: f32[4, 3]) { " KERNEL_23
            "%p = matmul %x, %w %b = constant {value = f32[3] (1.5, 2.5, 3.5)} "
            "%y = add %p, %b return %y }"},
    {.name = "subtracted_bias",
     .summary = "a subtracted constant after a product is a bias",
     .pattern = "sub(conv2d|conv3d|matmul(x, w!)~:product, b!)",
     .where = keeps_product_type,
     .replace =
         [](Match& m) {
           return m.add("add", {m.node("product").result(), m.add("neg", {m["b"]})});
         },
     .in = "(%x: f32[4, 2]) -> (%y: f32[4, 3]) { " KERNEL_23 "%b = constant {value = f32[3] (1.0, 2.0, 3.0)} "
           "%p = matmul %x, %w %y = sub %p, %b return %y }",
     .out = "(%x: f32[4, 2]) -> (%y: f32[4, 3]) { " KERNEL_23
            "%p = matmul %x, %w %b = constant {value = f32[3] (-1.0, -2.0, -3.0)} "
            "%y = add %p, %b return %y }"},
    {.name = "scale_before_product",
     .summary = "a constant factor a channel before a convolution or matrix product goes into its weights",
     .pattern = "conv2d|conv3d|matmul(mul|div(x, c!)~:scale, w!)",
     .where = scales_input_channels,
     .replace = scale_before,
     .platform = "MulConv2dFusionPass",
     .in =
         "(%x: f32[4, 2]) -> (%y: f32[4, 3]) { " KERNEL_23 "%c = constant {value = f32[2] (2.0, 4.0)} %s = mul %x, %c "
         "%y = matmul %s, %w return %y }",
     .out = "(%x: f32[4, 2]) -> (%y: f32[4, 3]) { %w = constant {value = f32[2, 3] (1.0, -3.0, 2.0, 8.0, 1.0, -4.0)} "
            "%y = matmul %x, %w return %y }"},
    {.name = "fold_batch_norm",
     .summary = "batch normalisation by constant statistics is a constant factor and a constant shift a channel",
     .pattern = "batch_norm(x, s!, o!, m!, v!)",
     .where = statistics_in_type,
     .replace = normalise_by_constants,
     .platform = "BatchNormBnInferFusionPass",
     .in = "(%x: f32[4, 2]) -> (%y: f32[4, 2]) { %s = constant {value = f32[2] (4.0, 3.0)} %o = constant {value = "
           "f32[2] (1.0, -1.0)} "
           "%m = constant {value = f32[2] (0.5, 1.0)} %v = constant {value = f32[2] (4.0, 9.0)} "
           "%y = batch_norm %x, %s, %o, %m, %v {epsilon = 0.0} return %y }",
     .out = "(%x: f32[4, 2]) -> (%y: f32[4, 2]) { %k = constant {value = f32[2] (2.0, 1.0)} %b = constant {value = "
            "f32[2] (0.0, -2.0)} "
            "%p = mul %x, %k %y = add %p, %b return %y }"},
    {.name = "dot_as_sum",
     .summary = "a product of a long row and a long column, both computed, or of many of them, is a sum of products",
     .pattern = "matmul(a, b)",
     .where = is_long_dot,
     .replace = sum_of_products,
     .in = "(%x: f32[1, 256], %z: f32[256, 1]) -> (%y: f32[1, 1]) { %y = matmul %x, %z return %y }",
     .out = "(%x: f32[1, 256], %z: f32[256, 1]) -> (%y: f32[1, 1]) { %s = constant {value = i64[1] (256)} "
            "%a = reshape %x, %s %u = constant {value = i64[1] (256)} %b = reshape %z, %u %p = mul %a, %b "
            "%r = reduce_sum %p {axes = [0], keep_dims = true} "
            "%t = constant {value = i64[2] (1, 1)} %y = reshape %r, %t return %y }"},
    {.name = "sum_over_batch",
     .summary = "a sum over a batch of products is one product over the rows of all",
     .pattern = "reduce_sum(matmul(a, b)~:product)",
     .where = sums_batch,
     .replace = product_over_batch,
     .in = "(%x: f32[?n, 4, 5, 2], %z: f32[?n, 4, 5, 3]) -> (%y: f32[2, 3]) { %p = matmul %x, %z {transpose_a = true} "
           "%y = reduce_sum %p {axes = [0, 1], keep_dims = false} return %y }",
     .out = "(%x: f32[?n, 4, 5, 2], %z: f32[?n, 4, 5, 3]) -> (%y: f32[2, 3]) { "
            "%s = constant {value = i64[2] (-1, 2)} %a = reshape %x, %s %t = constant {value = i64[2] (-1, 3)} "
            "%b = reshape %z, %t %y = matmul %a, %b {transpose_a = true} return %y }"},
    {.name = "wide_sum_over_batch",
     .summary = "the same of products that are widened before they are summed",
     .pattern = "reduce_sum(cast(matmul(a, b)~:product)~:cast)",
     .where = [](const Match& m) { return m.type().dtype == kF32 && m["a"]->type.dtype.bits == 16 && sums_batch(m); },
     .replace = product_over_batch,
     .in = "(%x: f16[4, 5, 2], %z: f16[4, 5, 3]) -> (%y: f32[1, 2, 3]) { %p = matmul %x, %z {transpose_a = true} "
           "%c = cast %p {dtype = f32} %y = reduce_sum %c {axes = [0], keep_dims = true} return %y }",
     .out = "(%x: f16[4, 5, 2], %z: f16[4, 5, 3]) -> (%y: f32[1, 2, 3]) { %c = cast %x {dtype = f32} "
            "%s = constant {value = i64[2] (-1, 2)} %a = reshape %c, %s %d = cast %z {dtype = f32} "
            "%t = constant {value = i64[2] (-1, 3)} %b = reshape %d, %t "
            "%p = matmul %a, %b {transpose_a = true} %u = constant {value = i64[3] (1, 2, 3)} "
            "%y = reshape %p, %u return %y }"},
    {.name = "pad_into_conv",
     .summary = "rows and columns of zeros around an image are padding of the convolution",
     .pattern = "conv2d|conv3d(pad(x, p!):pad, _)",
     .where = [](const Match& m) { return pads_with(m, 0); },
     .replace = pad_inside,
     .platform = "PadConv2dFusionPass",
     .in = "(%x: f32[1, 3, 3, 1]) -> (%y: f32[1, 5, 4, 2]) { " KERNEL_12
           "%p = constant {value = i64[4, 2] (0, 0, 1, 1, 0, 1, 0, 0)} "
           "%a = pad %x, %p %y = conv2d %a, %w return %y }",
     .out = "(%x: f32[1, 3, 3, 1]) -> (%y: f32[1, 5, 4, 2]) { " KERNEL_12
            "%y = conv2d %x, %w {padding = explicit, pads = [1, 1, 0, 1]} return %y }"},
    {.name = "pad_of_rows_into_conv",
     .summary = "zeros around rows of pixels, which become images of one row, are padding of the convolution",
     .pattern = "conv2d(reshape(pad(x, p!):pad, _):image, _)",
     .where = pads_rows,
     .replace = pad_rows_inside,
     .in = "(%x: f32[1, 3, 1]) -> (%y: f32[1, 1, 5, 2]) { " KERNEL_12
           "%p = constant {value = i64[3, 2] (0, 0, 2, 0, 0, 0)} %s = constant {value = i64[4] (1, 1, 5, 1)} "
           "%a = pad %x, %p %b = reshape %a, %s %y = conv2d %b, %w return %y }",
     .out = "(%x: f32[1, 3, 1]) -> (%y: f32[1, 1, 5, 2]) { " KERNEL_12
            "%s = constant {value = i64[4] (1, 1, 3, 1)} %a = reshape %x, %s "
            "%y = conv2d %a, %w {padding = explicit, pads = [0, 0, 2, 0]} return %y }"},
    {.name = "pad_into_max_pool",
     .summary = "padding that never wins is padding of the pooling",
     .pattern = "max_pool2d|max_pool3d(pad(x, p!):pad)",
     .where = [](const Match& m) { return pads_with(m, -kInfinity); },
     .replace = pad_inside,
     .platform = "PadMaxPoolFusionPass",
     .in =
         "(%x: f32[1, 3, 3, 1]) -> (%y: f32[1, 4, 3, 1]) { %p = constant {value = i64[4, 2] (0, 0, 1, 1, 0, 1, 0, 0)} "
         "%a = pad %x, %p {value = -inf} %y = max_pool2d %a {window = [2, 2]} return %y }",
     .out = "(%x: f32[1, 3, 3, 1]) -> (%y: f32[1, 4, 3, 1]) { %y = max_pool2d %x {window = [2, 2], padding = explicit, "
            "pads = [1, 1, 0, 1]} "
            "return %y }"},
    {.name = "zero_pad_into_max_pool",
     .summary = "zeros around what relu gives never exceed a window's largest element",
     .pattern = "max_pool2d|max_pool3d(pad(relu(_):r, p!):pad)",
     .where = zeros_lose,
     .replace =
         [](Match& m) {
           return m.like(m.root(), {m.node("r").result()},
                         {{"padding", std::string("explicit")}, {"pads", *image_pads(m)}});
         },
     .platform = "PadMaxPoolFusionPass",
     .in =
         "(%x: f32[1, 3, 3, 1]) -> (%y: f32[1, 4, 3, 1]) { %p = constant {value = i64[4, 2] (0, 0, 1, 1, 0, 1, 0, 0)} "
         "%r = relu %x %a = pad %r, %p %y = max_pool2d %a {window = [2, 2]} return %y }",
     .out = "(%x: f32[1, 3, 3, 1]) -> (%y: f32[1, 4, 3, 1]) { %r = relu %x "
            "%y = max_pool2d %r {window = [2, 2], padding = explicit, pads = [1, 1, 0, 1]} return %y }"},
};

#undef KERNEL_12
#undef KERNEL_23

}  // namespace

std::span<const Rule> contraction_rules() { return kContractionRules; }

}  // namespace cairn
