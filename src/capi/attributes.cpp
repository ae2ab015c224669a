#include "capi/attributes.h"

#include <algorithm>

namespace cairn::capi {

namespace {

constexpr int kDeepest = 16;  // types within types

Type tensor_type(const CairnType& given) {
  const DType dtype = from_c(given.dtype);
  if (given.ndim < 0) return Type::tensor(dtype, Shape::unranked());
  if (given.ndim > 64)
    fail(ErrorKind::invalid_argument, "type", "has {} dimensions, at most 64 are possible", given.ndim);
  if (given.ndim > 0) require(given.dims, "dims");
  Shape shape;
  for (int32_t axis = 0; axis < given.ndim; ++axis) {
    const char* symbol = given.symbols ? given.symbols[axis] : nullptr;
    if (given.dims[axis] >= 0)
      shape.dims.emplace_back(given.dims[axis]);
    else
      shape.dims.push_back(symbol ? Dim(intern_symbol(symbol)) : Dim());
  }
  return Type::tensor(dtype, std::move(shape));
}

Type nested_type(const CairnType& given, int depth) {
  if (given.kind == CAIRN_TYPE_TENSOR) return tensor_type(given);
  if (given.kind < 0 || given.kind > CAIRN_TYPE_TOKEN || depth > kDeepest)
    fail(ErrorKind::invalid_argument, "type", "kind {} is none, or types nest too deep", given.kind);
  Type type{static_cast<Type::Kind>(given.kind), kF32, {}, {}};
  if (given.element_count) require(given.elements, "elements");
  for (size_t i = 0; i < given.element_count; ++i) type.elements.push_back(nested_type(given.elements[i], depth + 1));
  const bool one =
      given.kind == CAIRN_TYPE_LIST || given.kind == CAIRN_TYPE_OPTIONAL || given.kind == CAIRN_TYPE_RESOURCE;
  if (one && type.elements.size() != 1)
    fail(ErrorKind::invalid_argument, "type", "has {} element types, expected 1", type.elements.size());
  return type;
}

std::string text_of(const CairnText& text) {
  if (text.size) require(text.data, "text");
  return {text.data ? text.data : "", text.size};
}

template <class T, class List>
std::vector<T> list_of(const List& list) {
  if (list.count) require(list.data, "list");
  return list.count ? std::vector<T>(list.data, list.data + list.count) : std::vector<T>();
}

Attribute as_given(const CairnAttribute& given) {
  const auto& value = given.value;
  switch (given.kind) {
    case CAIRN_ATTRIBUTE_BOOLEAN: return value.boolean != 0;
    case CAIRN_ATTRIBUTE_INTEGER: return value.integer;
    case CAIRN_ATTRIBUTE_NUMBER: return value.number;
    case CAIRN_ATTRIBUTE_TEXT: return text_of(value.text);
    case CAIRN_ATTRIBUTE_FUNCTION: return FunctionName{text_of(value.text)};
    case CAIRN_ATTRIBUTE_INTEGERS: return list_of<int64_t>(value.integers);
    case CAIRN_ATTRIBUTE_NUMBERS: return list_of<double>(value.numbers);
    case CAIRN_ATTRIBUTE_TEXTS: {
      std::vector<std::string> texts;
      for (const CairnText& text : list_of<CairnText>(value.texts)) texts.push_back(text_of(text));
      return texts;
    }
    case CAIRN_ATTRIBUTE_DTYPE: return from_c(value.dtype);
    case CAIRN_ATTRIBUTE_TYPE: require(value.type, given.name); return type_from_c(*value.type);
    case CAIRN_ATTRIBUTE_TENSOR: {
      require(value.tensor, given.name);
      const Inputs read(value.tensor, 1);
      const TensorRef& ref = read.refs()[0];
      return Tensor::view(ref.dtype, {ref.dims.begin(), ref.dims.end()}, ref.data, nullptr).owned();
    }
  }
  fail(ErrorKind::invalid_argument, given.name, "kind {} is no kind of attribute", given.kind);
}

bool is_empty_list(const Attribute& value) {
  const auto* integers = std::get_if<std::vector<int64_t>>(&value);
  const auto* numbers = std::get_if<std::vector<double>>(&value);
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  return (integers && integers->empty()) || (numbers && numbers->empty()) || (texts && texts->empty());
}

/// The value converted without loss to another kind, or nothing.
std::optional<Attribute> widened(const Attribute& value, AttrKind wanted) {
  if (wanted == AttrKind::number)
    if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (wanted == AttrKind::dtype)
    if (const auto* name = std::get_if<std::string>(&value))
      if (auto dtype = parse_dtype(*name)) return *dtype;
  if (wanted == AttrKind::numbers)
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value))
      return std::vector<double>(integers->begin(), integers->end());
  if (!is_empty_list(value)) return std::nullopt;
  if (wanted == AttrKind::integers) return std::vector<int64_t>();
  if (wanted == AttrKind::numbers) return std::vector<double>();
  if (wanted == AttrKind::texts) return std::vector<std::string>();
  return std::nullopt;
}

}  // namespace

const char* attribute_kind_name(AttrKind kind) {
  constexpr const char* kNames[] = {"boolean", "integer", "number", "text",   "integers", "numbers",
                                    "texts",   "dtype",   "type",   "tensor", "function"};
  return kNames[static_cast<int>(kind)];
}

Type type_from_c(const CairnType& given) { return nested_type(given, 0); }

Attribute attribute_from_c(const OpDef& op, const CairnAttribute& given) {
  require(given.name, "attribute name");
  const AttrDef* declared = op.find_attribute(given.name);
  if (!declared) fail(ErrorKind::invalid_argument, op.name, "has no attribute {}", given.name);
  Attribute value = as_given(given);
  if (kind_of(value) == declared->kind) return value;
  if (auto other = widened(value, declared->kind)) return std::move(*other);
  fail(ErrorKind::invalid_argument, op.name, "attribute {} is of kind {}, expected {}", given.name,
       attribute_kind_name(kind_of(value)), attribute_kind_name(declared->kind));
}

Attributes attributes_from_c(const OpDef& op, const CairnAttribute* given, size_t count) {
  if (count) require(given, "attributes");
  Attributes attributes;
  for (size_t i = 0; i < count; ++i) {
    Attribute value = attribute_from_c(op, given[i]);
    if (attributes.find(given[i].name))
      fail(ErrorKind::invalid_argument, op.name, "attribute {} is given twice", given[i].name);
    attributes.set(given[i].name, std::move(value));
  }
  return attributes;
}

void CView::fill(const Type& type, CairnType& to) {
  to = {};
  to.kind = static_cast<int32_t>(type.kind);
  if (type.is_tensor()) {
    to.dtype = to_c(type.dtype);
    to.ndim = type.shape.ranked ? static_cast<int32_t>(type.shape.rank()) : -1;
    auto& dims = dims_.emplace_back();
    auto& symbols = symbols_.emplace_back();
    for (const Dim& dim : type.shape.dims) {
      dims.push_back(dim.size);
      symbols.push_back(dim.symbol ? dim.symbol->c_str() : nullptr);
    }
    to.dims = dims.data();
    to.symbols = symbols.data();
  }
  if (type.elements.empty()) return;
  auto& elements = elements_.emplace_back(type.elements.size());
  for (size_t i = 0; i < elements.size(); ++i) fill(type.elements[i], elements[i]);
  to.elements = elements.data();
  to.element_count = elements.size();
}

const CairnType* CView::type(const Type& type) {
  CairnType& made = types_.emplace_back();
  fill(type, made);
  return &made;
}

const CairnText* CView::texts(std::span<const std::string> own) {
  auto& shown = texts_.emplace_back();
  for (const std::string& text : own) shown.push_back({text.data(), text.size()});
  return shown.data();
}

CairnTensor CView::tensor(const Tensor& tensor) {
  const void* data = tensor.dtype() == kString ? texts(tensor.values<std::string>()) : tensor.data();
  auto& dims = dims_.emplace_back(tensor.dims());
  return {const_cast<void*>(data),
          {1, 0},
          static_cast<int32_t>(dims.size()),
          to_c(tensor.dtype()),
          dims.data(),
          nullptr,
          0};
}

CairnAttribute CView::attribute(const char* name, const Attribute& value) {
  CairnAttribute made{name, static_cast<int32_t>(kind_of(value)), {}};
  auto& to = made.value;
  if (const auto* boolean = std::get_if<bool>(&value)) to.boolean = *boolean;
  if (const auto* integer = std::get_if<int64_t>(&value)) to.integer = *integer;
  if (const auto* number = std::get_if<double>(&value)) to.number = *number;
  if (const auto* text = std::get_if<std::string>(&value)) to.text = {text->data(), text->size()};
  if (const auto* name = std::get_if<FunctionName>(&value)) to.text = {name->name.data(), name->name.size()};
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) to.integers = {list->data(), list->size()};
  if (const auto* list = std::get_if<std::vector<double>>(&value)) to.numbers = {list->data(), list->size()};
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) to.texts = {texts(*list), list->size()};
  if (const auto* dtype = std::get_if<DType>(&value)) to.dtype = to_c(*dtype);
  if (const auto* type = std::get_if<Type>(&value)) to.type = this->type(*type);
  if (const auto* tensor = std::get_if<Tensor>(&value)) to.tensor = &tensors_.emplace_back(this->tensor(*tensor));
  return made;
}

}  // namespace cairn::capi
