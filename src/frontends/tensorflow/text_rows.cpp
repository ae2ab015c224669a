// TensorFlow's ops on strings.
#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

/// A text that must be known: a pattern, a separator.
std::string known_text(OpContext& c, size_t input, const char* what) {
  const Tensor text = c.constant(input, what);
  if (text.dtype() != kString || text.count() != 1) fail(ErrorKind::invalid_model, "", "{} must be one string", what);
  return text.values<std::string>()[0];
}

void text_map(OpContext& c) {
  c.expect_inputs(1);
  const std::string encoding = c.text("encoding", "");
  if (!encoding.empty()) c.refuse("encoding '{}' is not supported, ASCII letters alone are", printable(encoding));
  const bool padded = c.node().op == "EncodeBase64" && c.boolean("pad", false);
  c.out = {c.b.add("text_map", c.in, {{"mode", std::string(c.target) + (padded ? "_padded" : "")}})};
}

std::string unit(OpContext& c) {
  const std::string unit = c.text("unit", "BYTE");
  if (unit != "BYTE" && unit != "UTF8_CHAR")
    fail(ErrorKind::invalid_model, "", "unit '{}' is unknown", printable(unit));
  return unit == "BYTE" ? "byte" : "character";
}

void string_length(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("text_length", c.in, {{"unit", unit(c)}})};
}

void substr(OpContext& c) {
  c.expect_inputs(3);
  c.out = {c.b.add("text_part", c.in, {{"unit", unit(c)}})};
}

void hash_bucket(OpContext& c) {
  c.expect_inputs(1);
  Attributes attributes{{"method", std::string(c.target)}, {"buckets", c.integer("num_buckets")}};
  if (c.has("key")) attributes.set("key", c.integers("key"));
  c.out = {c.b.add("text_bucket", c.in, attributes)};
}

void string_to_number(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("text_to_number", c.in, {{"dtype", c.dtype("out_type", kDtFloat)}})};
}

void as_string(OpContext& c) {
  c.expect_inputs(1);
  if (c.in[0]->type.dtype == kString) {
    c.out = c.in;
    return;
  }
  const std::string style = c.boolean("scientific", false) ? "scientific"
                            : c.boolean("shortest", false) ? "shortest"
                                                           : "fixed";
  c.out = {c.b.add("number_to_text", c.in,
                   {{"style", style},
                    {"precision", c.integer("precision", -1)},
                    {"width", c.integer("width", -1)},
                    {"fill", c.text("fill", "")}})};
}

void regex_match(OpContext& c) {
  const bool is_static = c.node().op.starts_with("Static");
  c.expect_inputs(is_static ? 1 : 2);
  const std::string pattern = is_static ? c.text("pattern", "") : known_text(c, 1, "the pattern");
  c.out = {c.b.add("text_match", {c.in[0]}, {{"pattern", pattern}})};
}

void regex_replace(OpContext& c) {
  const bool is_static = c.node().op.starts_with("Static");
  c.expect_inputs(is_static ? 1 : 3);
  const std::string pattern = is_static ? c.text("pattern", "") : known_text(c, 1, "the pattern");
  const std::string rewrite = is_static ? c.text("rewrite", "") : known_text(c, 2, "the rewrite");
  c.out = {c.b.add("text_replace", {c.in[0]},
                   {{"pattern", pattern}, {"rewrite", rewrite}, {"all", c.boolean("replace_global", true)}})};
}

void string_join(OpContext& c) {
  c.expect_inputs(1, c.in.size());
  c.out = {c.b.add("text_join", c.in, {{"separator", c.text("separator", "")}})};
}

void reduce_join(OpContext& c) {
  c.expect_inputs(2);
  std::vector<int64_t> axes = c.constant_integers(1, "the axes");
  c.out = {
      c.b.add("text_reduce_join", {c.in[0]},
              {{"axes", axes}, {"keep_dims", c.boolean("keep_dims", false)}, {"separator", c.text("separator", "")}})};
}

void string_split(OpContext& c) {
  c.expect_inputs(2);
  const bool words = c.node().op == "StringSplitV2";
  const std::string mode = words ? "words" : c.boolean("skip_empty", true) ? "bytes_no_empty" : "bytes";
  auto* made = c.b.add_node(op_named("text_split"), {c.in[0]},
                            {{"mode", mode},
                             {"separator", known_text(c, 1, "the separator")},
                             {"most", words ? c.integer("maxsplit", -1) : -1}});
  c.out = {made->result(0), made->result(1), made->result(2)};
}

void decode_raw(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("decode_raw", c.in,
                   {{"dtype", c.dtype("out_type")}, {"little_endian", c.boolean("little_endian", true)}})};
}

void unicode_decode(OpContext& c) {
  c.expect_inputs(1);
  const std::string encoding = c.text("input_encoding", "UTF-8");
  if (encoding != "UTF-8" && encoding != "utf-8" && encoding != "UTF8")
    c.refuse("encoding '{}' is not supported", printable(encoding));
  if (c.text("errors", "replace") != "replace" || c.integer("replacement_char", 0xfffd) != 0xfffd ||
      c.boolean("replace_control_characters", false))
    c.refuse("only errors='replace' with U+FFFD is supported");
  auto* made =
      c.b.add_node(op_named("text_characters"), {c.b.add("reshape", {c.in[0], c.b.ints({-1})})}, {{"numbers", true}});
  c.out = {cast_to(made->result(0), c.dtype("Tsplits", kDtInt64), c.b), made->result(1)};
}

void ngrams(OpContext& c) {
  c.expect_inputs(2);
  auto* made = c.b.add_node(op_named("text_ngrams"), c.in,
                            {{"separator", c.text("separator", "")},
                             {"widths", c.integers("ngram_widths")},
                             {"left_pad", c.text("left_pad", "")},
                             {"right_pad", c.text("right_pad", "")},
                             {"pad_width", c.integer("pad_width", 0)},
                             {"keep_short", c.boolean("preserve_short_sequences", false)}});
  c.out = {made->result(0), made->result(1)};
}

constexpr Row kTextRows[] = {
    {"AsString", as_string},
    {"DecodeBase64", text_map, "decode_base64"},
    {"DecodeRaw", decode_raw},
    {"EncodeBase64", text_map, "encode_base64"},
    {"ReduceJoin", reduce_join},
    {"RegexFullMatch", regex_match},
    {"RegexReplace", regex_replace},
    {"StaticRegexFullMatch", regex_match},
    {"StaticRegexReplace", regex_replace},
    {"StringJoin", string_join},
    {"StringLength", string_length},
    {"StringLower", text_map, "lower"},
    {"StringNGrams", ngrams},
    {"StringSplit", string_split},
    {"StringSplitV2", string_split},
    {"StringStrip", text_map, "strip"},
    {"StringToHashBucket", hash_bucket, "murmur"},
    {"StringToHashBucketFast", hash_bucket, "fingerprint"},
    {"StringToHashBucketStrong", hash_bucket, "siphash"},
    {"StringToNumber", string_to_number},
    {"StringUpper", text_map, "upper"},
    {"Substr", substr},
    {"UnicodeDecode", unicode_decode},
};

}  // namespace

std::span<const Row> text_rows() { return kTextRows; }

}  // namespace cairn::tensorflow
