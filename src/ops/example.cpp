// Parses tf.train.Example records into tensors: dense features of fixed or padded size, sparse and ragged ones.
#include <protozero/pbf_reader.hpp>

#include <map>

#include "ir/text.h"
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/text.h"

namespace cairn {

namespace {

constexpr const char* kExampleTests = "works on texts: tests/python/test_records.py compares it with TensorFlow";

const std::vector<std::string>& names_in(const AttributeView& attr, const char* name) {
  return std::get<std::vector<std::string>>(attr.get(name));
}

/// The values of one feature of one record.
struct Feature {
  DType dtype = kF32;
  bool there = false;
  std::vector<std::string> texts;
  std::vector<float> floats;
  std::vector<int64_t> integers;

  size_t size() const { return texts.size() + floats.size() + integers.size(); }
};

Feature read_feature(protozero::pbf_reader feature) {
  constexpr uint32_t kBytes = 1, kFloats = 2, kIntegers = 3, kValue = 1;
  Feature result;
  while (feature.next()) {
    const uint32_t kind = feature.tag();
    if (kind != kBytes && kind != kFloats && kind != kIntegers) {
      feature.skip();
      continue;
    }
    result = {kind == kBytes ? kString : kind == kFloats ? kF32 : kI64, true, {}, {}, {}};
    for (auto list = feature.get_message(); list.next();) {
      const bool packed = list.wire_type() == protozero::pbf_wire_type::length_delimited;
      if (list.tag() != kValue) {
        list.skip();
      } else if (kind == kBytes) {
        result.texts.push_back(list.get_string());
      } else if (kind == kFloats) {
        if (packed)
          for (float value : list.get_packed_float()) result.floats.push_back(value);
        else
          result.floats.push_back(list.get_float());
      } else if (packed) {
        for (int64_t value : list.get_packed_int64()) result.integers.push_back(value);
      } else {
        result.integers.push_back(list.get_int64());
      }
    }
  }
  return result;
}

using Record = std::map<std::string, Feature, std::less<>>;

/// Reads the features with these names; protozero throws when the bytes are not a valid message.
Record read_record(std::string_view bytes, const std::vector<std::string_view>& wanted) {
  constexpr uint32_t kFeatures = 1, kEntry = 1, kKey = 1, kValue = 2;
  Record record;
  for (protozero::pbf_reader example(bytes.data(), bytes.size()); example.next();) {
    if (example.tag() != kFeatures) {
      example.skip();
      continue;
    }
    for (auto features = example.get_message(); features.next();) {
      if (features.tag() != kEntry) {
        features.skip();
        continue;
      }
      std::string key;
      Feature feature;
      for (auto entry = features.get_message(); entry.next();) {
        if (entry.tag() == kKey)
          key = entry.get_string();
        else if (entry.tag() == kValue)
          feature = read_feature(entry.get_message());
        else
          entry.skip();
      }
      if (feature.there && std::find(wanted.begin(), wanted.end(), key) != wanted.end())
        record[key] = std::move(feature);
    }
  }
  return record;
}

void append(const Feature& feature, Tensor& to, int64_t at) {
  if (to.dtype() == kString)
    std::copy(feature.texts.begin(), feature.texts.end(), data<std::string>(to) + at);
  else if (to.dtype() == kF32)
    std::copy(feature.floats.begin(), feature.floats.end(), data<float>(to) + at);
  else
    std::copy(feature.integers.begin(), feature.integers.end(), data<int64_t>(to) + at);
}

DType feature_type(const InferContext& context, DType dtype) {
  if (dtype != kF32 && dtype != kI64 && dtype != kString)
    context.fail("features are f32, i64 or str, not {}", to_string(dtype));
  return dtype;
}

DType named_type(const InferContext& context, const std::string& text) {
  const auto dtype = parse_dtype(text);
  if (!dtype) context.fail("type '{}' is unknown", printable(text));
  return feature_type(context, *dtype);
}

/// Type of one record's dense feature; its first dim may be unknown.
Type dense_type(const InferContext& context, const std::string& text) {
  const Type type = parse_type(text);
  if (!type.is_tensor() || !type.shape.ranked) context.fail("dense feature of type '{}'", printable(text));
  feature_type(context, type.dtype);
  for (size_t d = 1; d < type.shape.rank(); ++d)
    if (!type.shape.dims[d].known()) context.fail("dim {} of a dense feature is not known", d);
  return type;
}

/// Element type of the row splits of a ragged feature.
DType named_splits(const InferContext& context, size_t feature) {
  const std::vector<std::string>& list = names_in(context.attr, "splits");
  const auto dtype = feature < list.size() ? parse_dtype(list[feature]) : std::nullopt;
  if (dtype != kI32 && dtype != kI64) context.fail("row splits of ragged feature {} must be i32 or i64", feature);
  return *dtype;
}

void infer_parse_example(InferContext& context) {
  const AttributeView& attr = context.attr;
  const Shape& records = context.shape(0);
  if (!records.ranked || records.rank() > 1)
    context.fail("records must be a vector or one, found {}", to_string(context.input(0)));
  const size_t rank = records.rank();
  const auto same = [&](const char* names, const char* types) {
    if (names_in(attr, names).size() != names_in(attr, types).size())
      context.fail("{} {} for {} {}", names_in(attr, names).size(), names, names_in(attr, types).size(), types);
  };
  same("sparse", "sparse_types"), same("dense", "dense_types"), same("ragged", "ragged_types");
  if (context.input_count() != 1 + names_in(attr, "dense").size())
    context.fail("{} defaults for {} dense features", context.input_count() - 1, names_in(attr, "dense").size());
  const auto& sparse = names_in(attr, "sparse_types");
  for (size_t i = 0; i < sparse.size(); ++i) context.result(kI64, Shape{Dim(), Dim(static_cast<int64_t>(rank) + 1)});
  for (const std::string& type : sparse) context.result(named_type(context, type), Shape{Dim()});
  for (size_t i = 0; i < sparse.size(); ++i) context.result(kI64, Shape{Dim(static_cast<int64_t>(rank) + 1)});
  for (size_t i = 0; i < names_in(attr, "dense").size(); ++i) {
    Type type = dense_type(context, names_in(attr, "dense_types")[i]);
    if (context.dtype(1 + i) != type.dtype)
      context.fail("the default of '{}' is {}, expected {}", printable(names_in(attr, "dense")[i]),
                   to_string(context.dtype(1 + i)), to_string(type.dtype));
    type.shape.dims.insert(type.shape.dims.begin(), records.dims.begin(), records.dims.end());
    context.result(std::move(type));
  }
  const auto& ragged = names_in(attr, "ragged_types");
  for (const std::string& type : ragged) context.result(named_type(context, type), Shape{Dim()});
  for (size_t i = 0; i < ragged.size(); ++i)
    context.result(named_splits(context, i), Shape{rank == 0                 ? Dim(int64_t{0})
                                                   : records.dims[0].known() ? Dim(records.dims[0].size + 1)
                                                                             : Dim()});
}

class ExampleParser {
 public:
  explicit ExampleParser(KernelContext& context) : context_(context), batched_(context.input(0).rank() == 1) {
    std::vector<std::string_view> wanted;
    for (const char* list : {"sparse", "dense", "ragged"})
      wanted.insert(wanted.end(), names_in(context.attr, list).begin(), names_in(context.attr, list).end());
    for (const std::string& bytes : context.input(0).values<std::string>()) {
      try {
        records_.push_back(read_record(bytes, wanted));
      } catch (const protozero::exception&) {
        context.fail("record {} is no tf.train.Example: '{}'", records_.size(),
                     printable(std::string_view(bytes).substr(0, 80)));
      }
    }
    types_ = context.infer();
  }

  void run() {
    const size_t sparse = names_in(context_.attr, "sparse").size(), dense = names_in(context_.attr, "dense").size();
    const size_t ragged = names_in(context_.attr, "ragged").size();
    for (size_t i = 0; i < sparse; ++i)
      make_sparse(names_in(context_.attr, "sparse")[i], i, sparse + i, 2 * sparse + i);
    for (size_t i = 0; i < dense; ++i)
      make_dense(names_in(context_.attr, "dense")[i], context_.input(1 + i), 3 * sparse + i);
    for (size_t i = 0; i < ragged; ++i)
      make_ragged(names_in(context_.attr, "ragged")[i], 3 * sparse + dense + i, 3 * sparse + dense + ragged + i);
  }

 private:
  /// The feature of each record, checked to have that type; null for records without it.
  std::vector<const Feature*> features(const std::string& name, DType dtype) const {
    std::vector<const Feature*> found;
    for (size_t row = 0; row < records_.size(); ++row) {
      auto feature = records_[row].find(name);
      found.push_back(feature == records_[row].end() ? nullptr : &feature->second);
      if (found.back() && found.back()->dtype != dtype)
        context_.fail("feature '{}' of record {} is {}, expected {}", printable(name), row,
                      to_string(found.back()->dtype), to_string(dtype));
    }
    return found;
  }

  static int64_t total(const std::vector<const Feature*>& list) {
    int64_t count = 0;
    for (const Feature* feature : list) count += feature ? static_cast<int64_t>(feature->size()) : 0;
    return count;
  }

  Tensor& make_values(const std::vector<const Feature*>& list, size_t result) {
    Tensor& values = context_.allocate(result, types_[result].dtype, {total(list)});
    int64_t at = 0;
    for (const Feature* feature : list) {
      if (!feature) continue;
      append(*feature, values, at);
      at += static_cast<int64_t>(feature->size());
    }
    return values;
  }

  void make_sparse(const std::string& name, size_t indices_at, size_t values_at, size_t shape_at) {
    const auto list = features(name, types_[values_at].dtype);
    make_values(list, values_at);
    auto* to = data<int64_t>(context_.allocate(indices_at, kI64, {total(list), batched_ ? 2 : 1}));
    int64_t widest = 0;
    for (size_t row = 0; row < list.size(); ++row) {
      const int64_t size = list[row] ? static_cast<int64_t>(list[row]->size()) : 0;
      widest = std::max(widest, size);
      for (int64_t i = 0; i < size; ++i) {
        if (batched_) *to++ = static_cast<int64_t>(row);
        *to++ = i;
      }
    }
    auto* shape = data<int64_t>(context_.allocate(shape_at, kI64, {batched_ ? 2 : 1}));
    if (batched_) *shape++ = std::ssize(list);
    *shape = widest;
  }

  void make_dense(const std::string& name, const Tensor& fallback, size_t result) {
    const Type& type = types_[result];
    const auto list = features(name, type.dtype);
    Shape shape = type.shape;
    const size_t first = batched_ ? 1 : 0;
    int64_t part = 1;
    for (size_t d = first; d < shape.rank(); ++d) part *= shape.dims[d].known() ? shape.dims[d].size : 1;
    const bool open = !shape.known();
    if (open) {
      if (part == 0) context_.fail("feature '{}' has dims of size 0", printable(name));
      int64_t most = 0;
      for (size_t row = 0; row < list.size(); ++row) {
        const int64_t size = list[row] ? static_cast<int64_t>(list[row]->size()) : 0;
        if (size % part != 0)
          context_.fail("feature '{}' of record {} has {} values, expected a multiple of {}", printable(name), row,
                        size, part);
        most = std::max(most, size / part);
      }
      shape.dims[first] = most;
      part *= most;
    }
    Tensor& y = context_.allocate(result, type.dtype, shape.sizes());
    if (fallback.count() > 1 && fallback.count() != part)
      context_.fail("the default of '{}' has {} values, expected {}", printable(name), fallback.count(), part);
    for (size_t row = 0; row < list.size(); ++row) {
      const int64_t at = static_cast<int64_t>(row) * part;
      const int64_t size = list[row] ? static_cast<int64_t>(list[row]->size()) : 0;
      if (list[row] && !open && size != part)
        context_.fail("feature '{}' of record {} has {} values, expected {}", printable(name), row, size, part);
      if (!list[row] && !open && fallback.count() == 0 && part > 0)
        context_.fail("record {} has no feature '{}', which has no default", row, printable(name));
      const bool pads = open || !list[row];
      with_elements(type.dtype, [&](auto tag) {
        using T = decltype(tag);
        for (int64_t i = pads ? size : part; i < part; ++i)
          data<T>(y)[at + i] = fallback.count() == 0 ? T() : data<T>(fallback)[fallback.count() == 1 ? 0 : i];
      });
      if (list[row]) append(*list[row], y, at);
    }
  }

  void make_ragged(const std::string& name, size_t values_at, size_t splits_at) {
    const auto list = features(name, types_[values_at].dtype);
    make_values(list, values_at);
    Tensor& splits = context_.allocate(splits_at, types_[splits_at].dtype, {batched_ ? std::ssize(list) + 1 : 0});
    if (!batched_) return;
    with_integers(splits.dtype(), [&](auto tag) {
      auto* to = data<decltype(tag)>(splits);
      to[0] = 0;
      for (size_t row = 0; row < list.size(); ++row)
        to[row + 1] =
            static_cast<decltype(tag)>(to[row] + static_cast<decltype(tag)>(list[row] ? list[row]->size() : 0));
    });
  }

  KernelContext& context_;
  bool batched_;
  std::vector<Record> records_;
  std::vector<Type> types_;
};

void parse_example(KernelContext& context) { ExampleParser(context).run(); }

AttrDef list_of(const char* name) { return {name, AttrKind::texts, Attribute(std::vector<std::string>{})}; }

std::vector<OpDef> make_example_rows() {
  return {
      {.name = "parse_example",
       .summary =
           "features of records of tf.train.Example: of the sparse ones indices, values and shapes, of the dense ones "
           "a tensor of the type given (a first dim that is not known is as long as the longest, with the default "
           "behind), of the ragged ones values and row splits; a dense feature that is not there is its default, "
           "or an error where that is empty",
       .inputs = {{"records", Accepts::text}, {"defaults", Accepts::any_tensor, InputDef::Arity::variadic}},
       .attributes = {list_of("sparse"), list_of("sparse_types"), list_of("dense"), list_of("dense_types"),
                      list_of("ragged"), list_of("ragged_types"), list_of("splits")},
       .results = {},
       .traits = kHostValue | kDynamicResult,
       .infer = infer_parse_example,
       .no_gradient = "it reads texts",
       .reference = parse_example,
       .oracle = untested(kExampleTests)},
      csv_row(),
  };
}

}  // namespace

std::span<const OpDef> example_ops() {
  static const std::vector<OpDef> rows = make_example_rows();
  return rows;
}

}  // namespace cairn
