// Ops that split texts into several elements: words, characters, bytes, n-grams of words.
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/text.h"
#include "support/utf8.h"

namespace cairn {

namespace {

/// Splits at any of the separator's bytes; an empty separator splits after every byte.
void split_at_bytes(std::string_view text, std::string_view separators, bool skip_empty,
                    std::vector<std::string_view>& parts) {
  if (separators.empty()) {
    for (size_t i = 0; i < text.size(); ++i) parts.push_back(text.substr(i, 1));
    return;
  }
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (!skip_empty || end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

/// Splits as Python does: at whitespace when the separator is empty, at most `most` times unless that is negative.
void split_as_python(std::string_view text, std::string_view separator, int64_t most,
                     std::vector<std::string_view>& parts) {
  if (most == 0) return parts.push_back(text);
  if (separator.empty()) {
    auto skip = [&] {
      while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    };
    for (skip(); !text.empty(); skip()) {
      if (most-- == 0) return parts.push_back(text);
      size_t end = 0;
      while (end < text.size() && !is_blank(text[end])) ++end;
      parts.push_back(text.substr(0, end));
      text.remove_prefix(end);
    }
    return;
  }
  for (size_t end; most-- != 0 && (end = text.find(separator)) != std::string_view::npos;) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
  parts.push_back(text);
}

void infer_text_split(InferContext& context) {
  ranked(context, 0, 1);
  context.result(kI64, Shape{Dim(), Dim(2)});
  context.result(kString, Shape{Dim()});
  context.result(kI64, Shape{Dim(2)});
}

void text_split(KernelContext& context) {
  const auto from = texts(context.input(0));
  const std::string& separator = context.attr.text("separator");
  const std::string& mode = context.attr.text("mode");
  std::vector<std::string_view> parts;
  Dims rows;
  int64_t widest = 0;
  for (size_t row = 0; row < from.size(); ++row) {
    if (mode == "words")
      split_as_python(from[row], separator, context.attr.integer("most"), parts);
    else
      split_at_bytes(from[row], separator, mode == "bytes_no_empty", parts);
    widest = std::max(widest, static_cast<int64_t>(parts.size() - rows.size()));
    rows.resize(parts.size(), static_cast<int64_t>(row));
  }
  const auto count = static_cast<int64_t>(parts.size());
  auto* indices = data<int64_t>(context.allocate(0, kI64, {count, 2}));
  auto* values = data<std::string>(context.allocate(1, kString, {count}));
  for (const int64_t i : turns(count)) {
    const auto at = static_cast<size_t>(i);
    indices[2 * i] = rows[at];
    indices[2 * i + 1] = i > 0 && rows[at] == rows[at - 1] ? indices[2 * i - 1] + 1 : 0;
    values[i] = parts[at];
  }
  auto* shape = data<int64_t>(context.allocate(2, kI64, {2}));
  shape[0] = static_cast<int64_t>(from.size()), shape[1] = widest;
}

void infer_decode_raw(InferContext& context) {
  const DType dtype = context.attr.dtype("dtype");
  if (dtype == kString || dtype.bits < 8) context.fail("dtype must be of whole bytes, found {}", to_string(dtype));
  if (!context.shape(0).ranked) return context.result(dtype, Shape::unranked());
  Shape shape = context.shape(0);
  shape.dims.emplace_back();
  context.result(dtype, std::move(shape));
}

void decode_raw(KernelContext& context) {
  const auto from = texts(context.input(0));
  const DType dtype = context.attr.dtype("dtype");
  const size_t bytes = from.empty() ? 0 : from[0].size(), width = dtype.size();
  for (const std::string& text : from)
    if (text.size() != bytes)
      context.fail("texts of {} and of {} bytes, expected all of the same size", bytes, text.size());
  if (bytes % width != 0) context.fail("{} bytes are no whole number of elements of {}", bytes, to_string(dtype));
  Dims dims = context.input(0).dims();
  dims.push_back(static_cast<int64_t>(bytes / width));
  Tensor& y = context.allocate(0, dtype, dims);
  auto* to = static_cast<char*>(y.mutable_data());
  for (const std::string& text : from) to = std::copy(text.begin(), text.end(), to);
  if (context.attr.boolean("little_endian")) return;
  to = static_cast<char*>(y.mutable_data());
  for (size_t at = 0; at < y.bytes(); at += width) std::reverse(to + at, to + at + width);
}

void infer_text_characters(InferContext& context) {
  const Dim count = ranked(context, 0, 1) ? context.shape(0).dims[0] : Dim();
  context.result(kI64, Shape{count.known() ? Dim(count.size + 1) : Dim()});
  context.result(context.attr.boolean("numbers") ? kI32 : kString, Shape{Dim()});
}

/// The characters of each text; each invalid byte becomes U+FFFD.
void text_characters(KernelContext& context) {
  const auto from = texts(context.input(0));
  auto* splits = data<int64_t>(context.allocate(0, kI64, {static_cast<int64_t>(from.size()) + 1}));
  std::vector<std::string> found;
  splits[0] = 0;
  for (size_t row = 0; row < from.size(); ++row) {
    for (std::string_view rest = from[row]; !rest.empty();) {
      const size_t size = utf8_size(rest);
      stop_point_after(16);
      found.emplace_back(size == 0 ? std::string_view("\xef\xbf\xbd") : rest.substr(0, size));
      rest.remove_prefix(std::max<size_t>(size, 1));
    }
    splits[row + 1] = static_cast<int64_t>(found.size());
  }
  const bool numbers = context.attr.boolean("numbers");
  Tensor& y = context.allocate(1, numbers ? kI32 : kString, {static_cast<int64_t>(found.size())});
  for (size_t i = 0; i < found.size(); ++i) {
    if (!numbers) {
      data<std::string>(y)[i] = std::move(found[i]);
      continue;
    }
    const auto lead = static_cast<uint8_t>(found[i][0]);
    uint32_t character = found[i].size() == 1 ? lead : lead & (0xff >> (found[i].size() + 1));
    for (size_t k = 1; k < found[i].size(); ++k) character = character << 6 | (found[i][k] & 0x3f);
    data<int32_t>(y)[i] = static_cast<int32_t>(character);
  }
}

void infer_text_ngrams(InferContext& context) {
  ranked(context, 0, 1);
  const bool known = ranked(context, 1, 1);
  for (int64_t width : context.attr.integers("widths"))
    if (width < 1) context.fail("width {} is not positive", width);
  context.result(kString, Shape{Dim()});
  context.result(context.dtype(1), known ? context.shape(1) : Shape{Dim()});
}

/// The n-grams of one row: runs of consecutive words, joined.
class NGrams {
 public:
  explicit NGrams(const AttributeView& attr)
      : separator_(attr.text("separator")), left_(attr.text("left_pad")), right_(attr.text("right_pad")),
        pad_(attr.integer("pad_width")), widths_(attr.integers("widths")), preserve_(attr.boolean("keep_short")) {}

  void row(std::span<const std::string> words, std::vector<std::string>& into) const {
    const size_t before = into.size();
    const auto count = static_cast<int64_t>(words.size());
    for (int64_t width : widths_) {
      const int64_t pad = pad_ < 0 ? width - 1 : std::min(pad_, width - 1);
      for (int64_t first = -pad; first + width <= count + pad; ++first, stop_point_after(32 * width))
        into.push_back(joined(words, first, width));
    }
    if (preserve_ && into.size() == before && count > 0) {
      const int64_t pad = pad_ < 0 ? 0 : pad_;
      into.push_back(joined(words, -pad, count + 2 * pad));
    }
  }

 private:
  std::string joined(std::span<const std::string> words, int64_t first, int64_t width) const {
    std::string text;
    for (int64_t i = first; i < first + width; ++i) {
      if (i > first) text += separator_;
      text += i < 0 ? left_ : i >= std::ssize(words) ? right_ : words[static_cast<size_t>(i)];
    }
    return text;
  }

  std::string separator_, left_, right_;
  int64_t pad_;
  std::vector<int64_t> widths_;
  bool preserve_;
};

void text_ngrams(KernelContext& context) {
  const auto words = texts(context.input(0));
  const Dims splits = context.input(1).as_i64();
  const NGrams grams(context.attr);
  std::vector<std::string> found;
  Tensor& ends = context.allocate(1, context.input(1).dtype(), context.input(1).dims());
  with_integers(ends.dtype(), [&](auto tag) {
    auto* to = data<decltype(tag)>(ends);
    for (size_t i = 0; i < splits.size(); ++i) {
      const int64_t begin = i == 0 ? 0 : splits[i - 1];
      if (splits[i] < begin || splits[i] > std::ssize(words) || (i == 0 && splits[i] != 0))
        context.fail("row splits go from {} to {} of {} words", begin, splits[i], words.size());
      if (i > 0) grams.row(words.subspan(static_cast<size_t>(begin), static_cast<size_t>(splits[i] - begin)), found);
      to[i] = static_cast<decltype(tag)>(found.size());
    }
  });
  Tensor& y = context.allocate(0, kString, {static_cast<int64_t>(found.size())});
  std::move(found.begin(), found.end(), data<std::string>(y));
}

std::vector<OpDef> make_text_part_rows() {
  const InputDef x{"x", Accepts::text};
  return {
      {.name = "text_split",
       .summary =
           "the parts of each text of a vector as a sparse matrix: of words as Python's split (at blanks without a "
           "separator, at most `most` times unless negative); of bytes at any byte of the separator",
       .inputs = {x},
       .attributes = {word("mode", "words", {"words", "bytes", "bytes_no_empty"}), text_or("separator", ""),
                      integer("most", -1)},
       .results = {"indices", "values", "shape"},
       .traits = kHostValue | kDynamicResult,
       .infer = infer_text_split,
       .reference = text_split,
       .oracle = untested(kTextTests)},
      {.name = "decode_raw",
       .summary = "the bytes of each text, which all have the same number, as elements in a new last dim",
       .inputs = {x},
       .attributes = {{"dtype", AttrKind::dtype}, flag("little_endian", true)},
       .traits = kHostValue | kDynamicResult,
       .infer = infer_decode_raw,
       .reference = decode_raw,
       .oracle = untested(kTextTests)},
      {.name = "text_characters",
       .summary =
           "the characters of each text of a vector in UTF-8, as texts or numbers, one after the other, and where "
           "each text's begin and end; each byte that is part of none gives U+FFFD",
       .inputs = {x},
       .attributes = {flag("numbers")},
       .results = {"splits", "characters"},
       .traits = kHostValue | kDynamicResult,
       .infer = infer_text_characters,
       .reference = text_characters,
       .oracle = untested(kTextTests)},
      {.name = "text_ngrams",
       .summary =
           "the runs of words of each row, as long as each of the widths tells, with up to pad_width pads before and "
           "behind (width - 1 where negative), joined; with keep_short a row too short for any gives all it has",
       .inputs = {x, index_operand("splits")},
       .attributes = {text_or("separator", " "),
                      {"widths", AttrKind::integers},
                      text_or("left_pad", ""),
                      text_or("right_pad", ""),
                      integer("pad_width", 0),
                      flag("keep_short")},
       .results = {"ngrams", "splits"},
       .traits = kHostValue | kDynamicResult,
       .infer = infer_text_ngrams,
       .reference = text_ngrams,
       .oracle = untested(kTextTests)},
  };
}

}  // namespace

std::span<const OpDef> text_part_ops() {
  static const std::vector<OpDef> rows = make_text_part_rows();
  return rows;
}

}  // namespace cairn
