// Parses lines of comma-separated values into columns.
#include "ops/kernels.h"
#include "ops/text.h"

namespace cairn {

namespace {

/// Splits one line into fields as TensorFlow does: RFC 4180, with line ends before a field skipped.
class CsvLine {
 public:
  CsvLine(const KernelContext& context, int64_t number, std::string_view line)
      : context_(context), number_(number), line_(line), delimiter_(context.attr.text("delimiter")[0]),
        quotes_(context.attr.boolean("quotes")) {}

  std::vector<std::string> fields() {
    std::vector<std::string> found;
    while (at_ < line_.size()) {
      if (line_[at_] == '\n' || line_[at_] == '\r') {
        ++at_;
        continue;
      }
      found.push_back(quotes_ && line_[at_] == '"' ? quoted() : plain());
    }
    if (!line_.empty() && line_.back() == delimiter_) found.emplace_back();
    return found;
  }

 private:
  std::string plain() {
    std::string field;
    for (; at_ < line_.size() && line_[at_] != delimiter_; ++at_) {
      if ((quotes_ && line_[at_] == '"') || line_[at_] == '\n' || line_[at_] == '\r')
        context_.fail("record {} has a quote or a line end inside of a field without quotes", number_);
      field += line_[at_];
    }
    ++at_;
    return field;
  }

  std::string quoted() {
    std::string field;
    for (++at_;; ++at_) {
      if (at_ >= line_.size()) context_.fail("record {} has a quote that is not closed", number_);
      if (line_[at_] != '"') {
        field += line_[at_];
      } else if (at_ + 1 >= line_.size() || line_[at_ + 1] == delimiter_) {
        at_ += 2;
        return field;
      } else if (line_[++at_] == '"') {
        field += '"';
      } else {
        context_.fail("record {} has a quote inside of quotes that is not doubled", number_);
      }
    }
  }

  const KernelContext& context_;
  int64_t number_;
  std::string_view line_;
  char delimiter_;
  bool quotes_;
  size_t at_ = 0;
};

void infer_decode_csv(InferContext& context) {
  if (context.attr.text("delimiter").size() != 1) context.fail("the delimiter must be one character");
  const std::vector<int64_t>& columns = context.attr.integers("columns");
  if (!columns.empty() && columns.size() + 1 != context.input_count())
    context.fail("{} columns for {} defaults", columns.size(), context.input_count() - 1);
  for (int64_t column : columns)
    if (column < 0) context.fail("column {} is negative", column);
  for (size_t i = 1; i < context.input_count(); ++i) {
    const DType dtype = context.dtype(i);
    if (dtype != kString && dtype != kF32 && dtype != kF64 && dtype != kI32 && dtype != kI64)
      context.fail("columns of {} are not supported", to_string(dtype));
    context.result(dtype, context.shape(0));
  }
}

void put_field(KernelContext& context, int64_t row, size_t column, const std::string& field) {
  const Tensor& fallback = context.input(1 + column);
  Tensor& y = context.output(column);
  with_elements(y.dtype(), [&](auto tag) {
    using Element = decltype(tag);
    if (!field.empty() && field != context.attr.text("missing")) return;
    if (fallback.count() != 1) context.fail("field {} of record {} is missing and has no default", column, row);
    data<Element>(y)[row] = *data<Element>(fallback);
  });
  if (field.empty() || field == context.attr.text("missing")) return;
  auto read = [&](auto tag) {
    if (!read_number(field, data<decltype(tag)>(y)[row]))
      context.fail("field {} of record {} is no {}: '{}'", column, row, to_string(y.dtype()), printable(field));
  };
  if (y.dtype() == kString) data<std::string>(y)[row] = field;
  if (y.dtype() == kF32) read(float());
  if (y.dtype() == kF64) read(double());
  if (y.dtype() == kI32) read(int32_t());
  if (y.dtype() == kI64) read(int64_t());
}

void decode_csv(KernelContext& context) {
  const size_t columns = context.input_count() - 1;
  const std::vector<int64_t>& picked = context.attr.integers("columns");
  for (size_t i = 0; i < columns; ++i) context.allocate(i, context.input(1 + i).dtype(), context.input(0).dims());
  for (const int64_t row : turns(context.input(0).count())) {
    const auto fields = CsvLine(context, row, texts(context.input(0))[static_cast<size_t>(row)]).fields();
    if (picked.empty() && fields.size() != columns)
      context.fail("record {} has {} fields, expected {}", row, fields.size(), columns);
    for (size_t i = 0; i < columns; ++i) {
      const size_t at = picked.empty() ? i : static_cast<size_t>(picked[i]);
      if (at >= fields.size()) context.fail("record {} has {} fields, expected {}", row, fields.size(), at + 1);
      put_field(context, row, i, fields[at]);
    }
  }
}

}  // namespace

OpDef csv_row() {
  return {
      .name = "decode_csv",
      .summary =
          "the fields of lines, one result each, or the columns named; an empty field, or one that is the word for "
          "missing, is its default, or an error where that is empty",
      .inputs = {{"records", Accepts::text}, {"defaults", Accepts::any_tensor, InputDef::Arity::variadic}},
      .attributes = {text_or("delimiter", ","), flag("quotes", true), text_or("missing", ""), integers("columns", {})},
      .results = {},
      .traits = kHostValue,
      .infer = infer_decode_csv,
      .no_gradient = "it reads texts",
      .reference = decode_csv,
      .oracle = untested("works on texts: tests/python/test_records.py compares it with TensorFlow")};
}

}  // namespace cairn
