// Ops on texts (byte strings): hashes, lengths, pattern matching, splitting, joining, parsing of numbers.
#include "ops/text.h"
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/pattern.h"
#include "ops/text_hash.h"

namespace cairn {

namespace {

/// Result 0 is make(text) for every element.
template <class T, class Make>
void map_texts(KernelContext& context, DType dtype, Make&& make) {
  const Tensor& x = context.input(0);
  Tensor& y = context.allocate(0, dtype, x.dims());
  std::transform(texts(x).begin(), texts(x).end(), data<T>(y), make);
}

template <DType dtype>
void infer_like_text(InferContext& context) {
  context.result(dtype, context.shape(0));
}

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encoded_base64(std::string_view text, bool padded) {
  std::string result;
  for (size_t at = 0; at < text.size(); at += 3) {
    const size_t count = std::min<size_t>(3, text.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < count ? static_cast<uint8_t>(text[at + i]) : 0);
    for (size_t i = 0; i <= count; ++i) result += kBase64[bits >> (18 - 6 * i) & 63];
    if (padded) result.append(3 - count, '=');
  }
  return result;
}

std::string decoded_base64(const KernelContext& context, std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string result;
  uint32_t bits = 0, held = 0;
  for (char c : text) {
    const size_t digit = kBase64.find(c);
    if (digit == std::string_view::npos || text.size() % 4 == 1)
      context.fail("text is not web-safe base64: '{}'", printable(text));
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((held += 6) >= 8) result += static_cast<char>(bits >> (held -= 8));
  }
  return result;
}

void map_text(KernelContext& context) {
  const std::string& mode = context.attr.text("mode");
  auto letters = [](char low, int distance) {
    return [=](std::string text) {
      for (char& c : text)
        if (c >= low && c <= low + 25) c = static_cast<char>(c + distance);
      return text;
    };
  };
  if (mode == "lower") return map_texts<std::string>(context, kString, letters('A', 32));
  if (mode == "upper") return map_texts<std::string>(context, kString, letters('a', -32));
  map_texts<std::string>(context, kString, [&](const std::string& text) {
    if (mode == "strip") return std::string(stripped(text));
    return mode == "decode_base64" ? decoded_base64(context, text)
                                   : encoded_base64(text, mode == "encode_base64_padded");
  });
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void text_length(KernelContext& context) {
  const bool bytes = context.attr.text("unit") == "byte";
  map_texts<int32_t>(context, kI32, [&](const std::string& text) {
    return static_cast<int32_t>(bytes ? text.size() : characters(text));
  });
}

void text_bucket(KernelContext& context) {
  const std::string& method = context.attr.text("method");
  const auto buckets = static_cast<uint64_t>(context.attr.integer("buckets"));
  const std::vector<int64_t>& key = context.attr.integers("key");
  map_texts<int64_t>(context, kI64, [&](const std::string& text) {
    const uint64_t hash = method == "fingerprint" ? fingerprint64(text)
                          : method == "murmur"    ? murmur64(text)
                          : method == "murmur3"
                              ? murmur3(static_cast<uint32_t>(key[0]), text)
                              : siphash(static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1]), text);
    return static_cast<int64_t>(hash % buckets);
  });
}

void infer_text_bucket(InferContext& context) {
  if (context.attr.integer("buckets") < 1) context.fail("there are {} buckets", context.attr.integer("buckets"));
  if (context.attr.integers("key").size() != 2)
    context.fail("the key has {} numbers, expected 2", context.attr.integers("key").size());
  context.result(kI64, context.shape(0));
}

void text_to_number(KernelContext& context) {
  with_numbers(context.attr.dtype("dtype"), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t> ||
                  std::is_same_v<T, int64_t>)
      map_texts<T>(context, context.attr.dtype("dtype"), [&](const std::string& text) {
        T value{};
        if (!read_number(text, value)) context.fail("cannot read '{}' as a number", printable(text));
        return value;
      });
  });
}

void infer_text_to_number(InferContext& context) {
  const DType dtype = context.attr.dtype("dtype");
  if (dtype != kF32 && dtype != kF64 && dtype != kI32 && dtype != kI64)
    context.fail("dtype must be f32, f64, i32 or i64, found {}", to_string(dtype));
  context.result(dtype, context.shape(0));
}

void number_to_text(KernelContext& context) {
  const Tensor& x = context.input(0);
  Tensor& y = context.allocate(0, kString, x.dims());
  auto* to = data<std::string>(y);
  const std::string& style = context.attr.text("style");
  const auto width = static_cast<int>(std::clamp<int64_t>(context.attr.integer("width"), 0, 1000));
  const auto precision = static_cast<int>(std::clamp<int64_t>(context.attr.integer("precision"), -1, 1000));
  std::string format = "%" + context.attr.text("fill");
  auto print = [&](auto value) {
    const int size = precision < 0 ? snprintf(nullptr, 0, format.c_str(), width, value)
                                   : snprintf(nullptr, 0, format.c_str(), width, precision, value);
    std::string text(static_cast<size_t>(std::max(size, 0)) + 1, '\0');
    if (precision < 0)
      snprintf(text.data(), text.size(), format.c_str(), width, value);
    else
      snprintf(text.data(), text.size(), format.c_str(), width, precision, value);
    text.pop_back();
    return text;
  };
  if (x.dtype() == kBool) {
    for (int64_t i = 0; i < x.count(); ++i) to[i] = data<uint8_t>(x)[i] ? "true" : "false";
    return;
  }
  with_numbers(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    format += precision < 0 ? "*" : "*.*";
    format += kIsFloat<T> ? (style == "scientific" ? "e"
                             : style == "shortest" ? "g"
                                                   : "f")
                          : (std::is_signed_v<T> ? "lld" : "llu");
    for (const int64_t i : turns(x.count())) {
      if constexpr (kIsFloat<T>)
        to[i] = print(static_cast<double>(data<T>(x)[i]));
      else if constexpr (std::is_signed_v<T>)
        to[i] = print(static_cast<long long>(data<T>(x)[i]));
      else
        to[i] = print(static_cast<unsigned long long>(data<T>(x)[i]));
    }
  });
}

void infer_number_to_text(InferContext& context) {
  if (context.dtype(0) != kBool) number_type(context, 0);
  const std::string& fill = context.attr.text("fill");
  if (!fill.empty() && fill != " " && fill != "+" && fill != "-" && fill != "0" && fill != "#")
    context.fail("fill must be one of ' ', '+', '-', '0' and '#', found '{}'", printable(fill));
  context.result(kString, context.shape(0));
}

void infer_text_match(InferContext& context) {
  Pattern pattern(context.attr.text("pattern"));
  context.result(kBool, context.shape(0));
}

void text_match(KernelContext& context) {
  const Pattern pattern(context.attr.text("pattern"));
  map_texts<uint8_t>(context, kBool, [&](const std::string& text) { return pattern.matches_whole(text); });
}

void infer_text_replace(InferContext& context) {
  const std::string& rewrite = context.attr.text("rewrite");
  if (const std::string fault = Pattern(context.attr.text("pattern")).fault_of(rewrite); !fault.empty())
    context.fail("rewrite '{}' cannot be read: {}", printable(rewrite), fault);
  context.result(kString, context.shape(0));
}

void text_replace(KernelContext& context) {
  const Pattern pattern(context.attr.text("pattern"));
  const std::string& rewrite = context.attr.text("rewrite");
  const bool all = context.attr.boolean("all");
  map_texts<std::string>(context, kString,
                         [&](const std::string& text) { return pattern.replaced(text, rewrite, all); });
}

void infer_join(InferContext& context) {
  Shape shape;
  for (size_t i = 0; i < context.input_count(); ++i) shape = broadcast(context, shape, context.shape(i));
  context.result(kString, std::move(shape));
}

void text_join(KernelContext& context) {
  allocate_results(context);
  Tensor& y = context.output(0);
  const std::string& separator = context.attr.text("separator");
  auto* to = data<std::string>(y);
  for (size_t i = 0; i < context.input_count(); ++i) {
    const std::array<Dims, 1> strides{broadcast_strides(context.input(i).dims(), y.dims())};
    const auto from = texts(context.input(i));
    walk(y.dims(), strides, [&](int64_t n, const auto& offsets) {
      if (i == 0)
        to[n] = from[static_cast<size_t>(offsets[0])];
      else
        to[n] += separator + from[static_cast<size_t>(offsets[0])];
    });
  }
}

/// The part of `text` from `position`; characters are counted by their first bytes, as TensorFlow does.
std::string part_of_text(const KernelContext& context, std::string_view text, int64_t position, int64_t length,
                         bool bytes) {
  const auto size = static_cast<int64_t>(bytes ? text.size() : characters(text));
  const int64_t begin = position < 0 ? position + size : position;
  if (begin < 0 || begin > size)
    context.fail("position {} is outside of '{}', which has {} {}", position, printable(text), size,
                 bytes ? "bytes" : "characters");
  const int64_t count = length < 0 ? size - begin : std::min(length, size - begin);
  if (bytes) return std::string(text.substr(static_cast<size_t>(begin), static_cast<size_t>(count)));
  std::string result;
  int64_t place = -1;
  for (char c : text) {
    if ((c & 0xc0) != 0x80) ++place;
    if (place >= begin && place < begin + count) result += c;
  }
  return result;
}

void infer_text_part(InferContext& context) {
  context.result(kString, broadcast(context, broadcast(context, context.shape(0), context.shape(1)), context.shape(2)));
}

void text_part(KernelContext& context) {
  allocate_results(context);
  Tensor& y = context.output(0);
  std::array<Dims, 3> strides;
  for (size_t i = 0; i < 3; ++i) strides[i] = broadcast_strides(context.input(i).dims(), y.dims());
  const Dims positions = context.input(1).as_i64(), lengths = context.input(2).as_i64();
  const auto from = texts(context.input(0));
  const bool bytes = context.attr.text("unit") == "byte";
  walk(y.dims(), strides, [&](int64_t n, const auto& at) {
    data<std::string>(y)[n] =
        part_of_text(context, from[static_cast<size_t>(at[0])], positions[static_cast<size_t>(at[1])],
                     lengths[static_cast<size_t>(at[2])], bytes);
  });
}

void infer_text_reduce_join(InferContext& context) {
  if (!context.shape(0).ranked) return context.result(kString, Shape::unranked());
  const auto axes = axis_set(context, context.attr.integers("axes"), context.shape(0).rank());
  context.result(kString, reduced(context.shape(0), axes, context.attr.boolean("keep_dims")));
}

/// Joins along the axes in the given order, the first one changing fastest.
void text_reduce_join(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const Dims strides = strides_of(x.dims());
  std::vector<bool> joined(x.rank(), false);
  Dims inner_dims, outer_dims;
  std::array<Dims, 1> inner, outer;
  const std::vector<int64_t>& axes = context.attr.integers("axes");
  for (size_t i = axes.size(); i-- > 0;) {
    const auto at = static_cast<size_t>(axes[i] < 0 ? axes[i] + static_cast<int64_t>(x.rank()) : axes[i]);
    joined[at] = true;
    inner_dims.push_back(x.dims()[at]), inner[0].push_back(strides[at]);
  }
  for (size_t at = 0; at < x.rank(); ++at)
    if (!joined[at]) outer_dims.push_back(x.dims()[at]), outer[0].push_back(strides[at]);
  const std::string& separator = context.attr.text("separator");
  walk(outer_dims, outer, [&](int64_t n, const auto& from) {
    std::string& to = data<std::string>(y)[n];
    to.clear();
    walk(inner_dims, inner, [&](int64_t m, const auto& offset) {
      if (m > 0) to += separator;
      to += texts(x)[static_cast<size_t>(from[0] + offset[0])];
    });
  });
}

std::vector<OpDef> make_text_rows() {
  const InputDef x{"x", Accepts::text};
  const AttrDef pattern{"pattern", AttrKind::text};
  const AttrDef unit = word("unit", "byte", {"byte", "character"});
  return {
      {.name = "text_map",
       .summary = "each text in lower or upper case (ASCII letters alone), without the blanks at its ends, or to or "
                  "from web-safe base64; what is no base64 is an error",
       .inputs = {x},
       .attributes = {word("mode", "lower",
                           {"lower", "upper", "strip", "encode_base64", "encode_base64_padded", "decode_base64"})},
       .traits = kHostValue,
       .infer = infer_like_text<kString>,
       .reference = map_text,
       .oracle = untested(kTextTests)},
      {.name = "text_length",
       .summary = "bytes of each text, or characters of UTF-8",
       .inputs = {x},
       .attributes = {unit},
       .traits = kHostValue,
       .infer = infer_like_text<kI32>,
       .reference = text_length,
       .oracle = untested(kTextTests)},
      {.name = "text_bucket",
       .summary =
           "a hash of each text modulo the number of buckets, unsigned: farmhash's Fingerprint64, SipHash-2-4 with "
           "the key, TensorFlow's form of MurmurHash2, or MurmurHash3 of 32 bits with the key's first number",
       .inputs = {x},
       .attributes = {word("method", "fingerprint", {"fingerprint", "siphash", "murmur", "murmur3"}),
                      {"buckets", AttrKind::integer},
                      integers("key", {0, 0})},
       .traits = kHostValue,
       .infer = infer_text_bucket,
       .reference = text_bucket,
       .oracle = untested(kTextTests)},
      {.name = "text_to_number",
       .summary =
           "the number that each text is, with blanks around it; anything else, also what an integer cannot hold, "
           "is an error",
       .inputs = {x},
       .attributes = {dtype_or(kF32)},
       .traits = kHostValue,
       .infer = infer_text_to_number,
       .reference = text_to_number,
       .oracle = untested(kTextTests)},
      {.name = "number_to_text",
       .summary = "each number written as by printf, with the flag `fill`; bools as true and false",
       .inputs = {{"x", Accepts::number_or_bool}},
       .attributes = {word("style", "fixed", {"fixed", "scientific", "shortest"}), integer("precision", -1),
                      integer("width", 0), text_or("fill", "")},
       .traits = kHostValue,
       .infer = infer_number_to_text,
       .no_gradient = "texts have no slope",
       .reference = number_to_text,
       .oracle = untested(kTextTests)},
      {.name = "text_match",
       .summary = "whether the regular expression (RE2's, without Unicode classes) matches the whole text",
       .inputs = {x},
       .attributes = {pattern},
       .traits = kHostValue,
       .infer = infer_text_match,
       .reference = text_match,
       .oracle = untested(kTextTests)},
      {.name = "text_replace",
       .summary = "each text with the first match, or all matches, of the regular expression (RE2's, without Unicode "
                  "classes) replaced; \\1 in the "
                  "rewrite is a group",
       .inputs = {x},
       .attributes = {pattern, {"rewrite", AttrKind::text}, flag("all", true)},
       .traits = kHostValue,
       .infer = infer_text_replace,
       .reference = text_replace,
       .oracle = untested(kTextTests)},
      {.name = "text_join",
       .summary =
           "the texts at one position of all inputs, which are broadcast, in a row with the separator between them",
       .inputs = {{"x", Accepts::text, InputDef::Arity::variadic}},
       .attributes = {text_or("separator", "")},
       .traits = kHostValue,
       .infer = infer_join,
       .reference = text_join,
       .oracle = untested(kTextTests)},
      {.name = "text_part",
       .summary = "the part of each text from a position on (from the end where negative) that has the length, or less "
                  "where the text ends; a position outside of the text is an error",
       .inputs = {x, index_operand("position"), {"length", Accepts::i32_or_i64}},
       .attributes = {unit},
       .traits = kHostValue,
       .infer = infer_text_part,
       .reference = text_part,
       .oracle = untested(kTextTests)},
      {.name = "text_reduce_join",
       .summary = "the texts along the axes joined with the separator, the first axis named the fastest",
       .inputs = {x},
       .attributes = {integers("axes", {}), flag("keep_dims"), text_or("separator", "")},
       .traits = kHostValue,
       .infer = infer_text_reduce_join,
       .reference = text_reduce_join,
       .oracle = untested(kTextTests)},
  };
}

}  // namespace

std::span<const OpDef> text_ops() {
  static const std::vector<OpDef> rows = make_text_rows();
  return rows;
}

}  // namespace cairn
