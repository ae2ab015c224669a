#include "frontends/onnx/packed.h"

#include "frontends/reshape.h"

namespace cairn::onnx {

namespace {

Shape vector_of(Dim size) { return Shape(std::vector<Dim>{size}); }
Value* one_i64(Builder& b, int64_t x) { return b.constant(Tensor::scalar_i64(x)); }
Value* more(Builder& b, Value* i, Value* count) { return b.add("less", {i, count}); }
Value* next(Builder& b, Value* i) { return b.add("add", {i, one_i64(b, 1)}); }

/// The elements of `values` as a list of tensors, whose dims are the parts of `dims` of these lengths.
Value* list_of(Builder& b, Value* values, Value* dims, Value* ranks, const ValueInfo& info) {
  Shape shape = Shape::unranked();
  if (info.ranked) shape = Shape(std::vector<Dim>(info.dims.size()));
  Value* each = b.add("list_split", {dims, ranks});
  const auto rank = static_cast<int64_t>(info.dims.size());
  return b.make_while(
      {one_i64(b, 0), b.ints({0}), empty_list(Type::tensor(values->type.dtype, std::move(shape)), b)},
      {values, each, b.add("list_size", {each})},
      [](Builder& in, const std::vector<Value*>& now) { return std::vector{more(in, now[0], now[5])}; },
      [&](Builder& in, const std::vector<Value*>& now) {
        Value* sizes = in.add("list_get", {now[4], now[0]});
        if (info.ranked) sizes = in.add("reshape", {sizes, in.ints({rank})});
        Value* count = in.add("reduce_prod", {sizes}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}});
        Value* end = in.add("add", {now[1], count});
        Value* x = in.add("reshape", {in.add("slice", {now[3], now[1], end}), sizes});
        return std::vector{next(in, now[0]), end, in.add("list_push", {now[2], x})};
      })[2];
}

/// A list that holds an empty vector, so that its elements can always be joined.
Value* vectors(Builder& b, DType dtype) {
  return b.add("list_push", {empty_list(Type::tensor(dtype, vector_of({})), b), b.constant(Tensor::zeros(dtype, {0}))});
}

/// The values, dims and ranks of a list's elements.
std::vector<Value*> parts_of(Builder& b, Value* list) {
  std::vector<Value*> lists = b.make_while(
      {one_i64(b, 0), vectors(b, list->type.elements[0].dtype), vectors(b, kI64), vectors(b, kI64)},
      {list, b.add("list_size", {list})},
      [](Builder& in, const std::vector<Value*>& now) { return std::vector{more(in, now[0], now[5])}; },
      [](Builder& in, const std::vector<Value*>& now) {
        Value *x = in.add("list_get", {now[4], now[0]}), *dims = in.add("shape_of", {x});
        return std::vector{next(in, now[0]), in.add("list_push", {now[1], in.add("reshape", {x, in.ints({-1})})}),
                           in.add("list_push", {now[2], dims}),
                           in.add("list_push", {now[3], in.add("shape_of", {dims})})};
      });
  for (size_t i = 1; i < lists.size(); ++i) lists[i] = b.add("list_concat", {lists[i]});
  return {lists.begin() + 1, lists.end()};
}

}  // namespace

Value* empty_list(Type element, Builder& builder) {
  return builder.add("list_make", {one_i64(builder, 0)}, {{"element", std::move(element)}});
}

Value* unpacked(Importer& importer, cairn::Function& main, const ValueInfo& input, InputTypes& types) {
  using Kind = ValueInfo::Kind;
  const std::string name = clean(input.name);
  if (input.kind != Kind::sequence && input.kind != Kind::optional)
    fail(ErrorKind::unsupported, name, "inputs that are {} are not supported",
         input.kind == Kind::map ? "dictionaries" : "sparse tensors");
  const auto dtype = dtype_of(input.element);
  if (!dtype) fail(ErrorKind::unsupported, name, "elements of {} are not supported", type_name(input.element));
  Builder b(main.body);
  const auto part = [&](const char* suffix, DType type, Shape shape) {
    return main.body.add_param(types.type({name + suffix}, type, std::move(shape)), name + suffix);
  };
  const bool one = !input.of_sequence;
  Value* values = part("", *dtype, vector_of({}));
  Value* dims =
      part(":dims", kI64, vector_of(one && input.ranked ? Dim(static_cast<int64_t>(input.dims.size())) : Dim()));
  Value* ranks = one ? nullptr : part(":ranks", kI64, vector_of({}));
  Value* given = input.kind == Kind::optional ? part(":given", kBool, Shape()) : nullptr;
  Value* value = one ? b.add("reshape", {values, dims}) : list_of(b, values, dims, ranks, input);
  if (given) importer.mark_presence(value, given);
  return value;
}

void add_result(const Importer& importer, cairn::Function& main, Value* value, std::string_view name,
                const ValueInfo* declared) {
  Builder b(main.body);
  const auto add = [&](Value* part, const char* suffix) {
    main.body.results.push_back(part);
    main.result_names.push_back(clean(name) + suffix);
  };
  const bool list = value->type.kind == Type::Kind::list;
  using Kind = ValueInfo::Kind;
  const bool plain = declared && (declared->kind == Kind::tensor || declared->kind == Kind::sequence);
  Value* given = plain ? nullptr : importer.presence(value);  // what an optional gave is none itself
  if (!given && declared && declared->kind == Kind::optional) given = b.constant(Tensor::of<uint8_t>(kBool, {}, {1}));
  if (list) {
    const std::vector<Value*> parts = parts_of(b, value);
    add(parts[0], ""), add(parts[1], ":dims"), add(parts[2], ":ranks");
  } else if (given) {
    add(b.add("reshape", {value, b.ints({-1})}), ""), add(b.add("shape_of", {value}), ":dims");
  } else {
    add(value, "");
  }
  if (given) add(given, ":given");
}

}  // namespace cairn::onnx
