// Random numbers, which the runtime that reads the file draws by a generator of its own; and operators on texts and keys.
#include "export/rows.h"
#include "frontends/onnx/model.h"
#include "ir/evaluate.h"
#include "passes/facts.h"

namespace cairn::onnx_export {

namespace {

/// What is drawn; result 0 is the next state, which ONNX does not have.
void drawn(const Context& c, Name name) { c.graph.set(c.node.result(1), std::move(name)); }

Name like_shape(const Context& c, const char* op, DType dtype) {
  const Name shape = c.one("Reshape", {c.i64(1), c.graph.ints({-1})});
  const Name x = c.one("ConstantOfShape", {shape}, {{"value", Tensor::of(kF32, {1}, std::vector<float>{0})}});
  return c.one(op, {x}, {{"dtype", int64_t{onnx::type_of(dtype)}}});
}

template <const char* const& kOp>
void floats(const Context& c) {
  drawn(c, like_shape(c, kOp, c.attr().dtype("dtype")));
}
constexpr const char *kUniform = "RandomUniformLike", *kNormal = "RandomNormalLike";

/// Of several normal numbers the first of magnitude below 2; one in 10^12 is out of bounds, and cut.
void truncated_normal(const Context& c) {
  constexpr int kDraws = 9;
  const DType dtype = c.attr().dtype("dtype");
  const Name two = c.graph.number(2, dtype);
  Name y = like_shape(c, kNormal, dtype);
  for (int i = 1; i < kDraws; ++i)
    y = c.one("Where", {c.one("Less", {c.one("Abs", {y}), two}), y, like_shape(c, kNormal, dtype)});
  drawn(c, c.one("Clip", {y, c.graph.number(-2, dtype), two}));
}

void integers(const Context& c) {
  const DType dtype = c.value(2)->type.dtype;
  const Name low = c.cast(c.in(2), kF64), range = c.one("Sub", {c.cast(c.in(3), kF64), low});
  const Name step = c.one("Floor", {c.one("Mul", {like_shape(c, kUniform, kF64), range})});
  drawn(c, c.cast(c.one("Add", {step, low}), dtype));
}

void shuffle(const Context& c) {
  const Name rows = c.one("Shape", {c.in(1)}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  const Name keys = c.one("RandomUniformLike", {c.one("ConstantOfShape", {rows})});
  drawn(c, c.one("Gather", {c.in(1), c.graph.add("TopK", {keys, rows}, {}, 2)[1]}));
}

bool of_known_count(const Node& node) { return constant_of(node.inputs[2]) != nullptr; }
void categorical(const Context& c) {
  const Settings settings = {{"sample_size", constant_of(c.value(2))->as_i64()[0]},
                             {"dtype", int64_t{onnx::type_of(c.attr().dtype("dtype"))}}};
  drawn(c, c.one("Multinomial", {c.in(1)}, settings));
}

void join(const Context& c) {
  Name y = c.in(0);
  const std::string& separator = c.attr().text("separator");
  for (size_t i = 1; i < c.node.inputs.size(); ++i) {
    if (!separator.empty())
      y = c.one("StringConcat", {y, c.graph.constant(Tensor::of<std::string>(kString, {}, {separator}))});
    y = c.one("StringConcat", {y, c.in(i)});
  }
  c.out(c.node.inputs.size() == 1 ? c.one("Identity", {y}) : y);
}

void match(const Context& c) { c.out(c.one("RegexFullMatch", {c.in(0)}, {{"pattern", c.attr().text("pattern")}})); }

bool changes_case(const Node& node) {
  return node.attr().text("mode") == "lower" || node.attr().text("mode") == "upper";
}
void change_case(const Context& c) {
  const Name flat = c.one("Reshape", {c.in(0), c.graph.ints({-1})});
  const std::string action = c.attr().text("mode") == "lower" ? "LOWER" : "UPPER";
  const Name y = c.one("StringNormalizer", {flat}, {{"case_change_action", action}, {"locale", std::string("C")}});
  c.out(c.one("Reshape", {y, c.one("Shape", {c.in(0)})}));
}

/// Without a width or a flag ONNX Runtime writes integers alike, and floats with eight digits.
bool written_alike(const Node& node) {
  const DType dtype = node.inputs[0]->type.dtype;
  const auto& attr = node.attr();
  if (dtype == kBool || attr.integer("width") != 0 || !attr.text("fill").empty()) return false;
  return dtype.is_float() ? attr.text("style") == "shortest" && attr.integer("precision") == 8
                          : attr.integer("precision") < 0;
}
void to_text(const Context& c) { c.out(c.cast(c.in(0), kString)); }

void to_number(const Context& c) { c.out(c.cast(c.in(0), c.attr().dtype("dtype"))); }

/// The type of LabelEncoder that holds all numbers of a type.
DType type_of_labels(DType dtype) {
  if (dtype == kString || dtype == kF64) return dtype;
  return dtype.is_float() ? kF32 : kI64;
}
/// Keys, values and one default that are known.
bool encodes_labels(const Node& node) {
  for (size_t i : {0, 1, 3})
    if (!constant_of(node.inputs[i]) || onnx::type_of(node.inputs[i]->type.dtype) == onnx::kUndefined) return false;
  return constant_of(node.inputs[3])->count() == 1 && constant_of(node.inputs[0])->count() > 0;
}
void encode_labels(const Context& c) {
  const DType own = c.value(2)->type.dtype, labels = type_of_labels(own), replies = type_of_labels(c.type().dtype);
  const auto list = [&](size_t i, DType dtype, const char* op = "cast") {
    const Tensor& tensor = *constant_of(c.value(i));
    const Tensor flat = tensor.reshaped({tensor.count()});
    return flat.dtype() == dtype ? flat : evaluate(op, {flat}, {{"dtype", dtype}});
  };
  // Keys of another type are the bits of floats, see search_floats().
  const Tensor keys = own == c.value(0)->type.dtype ? list(0, labels) : list(0, own, "bitcast");
  const Name y =
      c.one("ai.onnx.ml:LabelEncoder", {own == labels ? c.in(2) : c.cast(c.in(2), labels)},
            {{"keys_tensor", keys}, {"values_tensor", list(1, replies)}, {"default_tensor", list(3, replies)}});
  c.out(replies == c.type().dtype ? y : c.cast(y, c.type().dtype));
}

constexpr Row kRandomRows[] = {{"random_uniform", floats<kUniform>},
                               {"random_normal", floats<kNormal>},
                               {"random_truncated_normal", truncated_normal},
                               {"random_integers", integers},
                               {"random_shuffle", shuffle},
                               {"random_categorical", categorical, nullptr, of_known_count},
                               {"text_join", join},
                               {"text_match", match},
                               {"text_map", change_case, nullptr, changes_case},
                               {"text_to_number", to_number},
                               {"number_to_text", to_text, nullptr, written_alike},
                               {"find_key", encode_labels, nullptr, encodes_labels}};

}  // namespace

std::span<const Row> random_rows() { return kRandomRows; }

}  // namespace cairn::onnx_export
