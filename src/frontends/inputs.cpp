#include "frontends/inputs.h"
#include "frontends/unknown_name.h"

#include <algorithm>

namespace cairn {

static bool is_unnamed(const Dim& dim) { return !dim.known() && dim.symbol == nullptr; }

Type InputTypes::type(const std::vector<std::string>& names, DType dtype, Shape own) {
  for (const auto& [name, shape] : options_.input_shapes) {
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    used_.insert(name);
    if (!compatible(Type::tensor(dtype, shape), Type::tensor(dtype, own)))
      fail(ErrorKind::invalid_argument, names[0], "shape {} does not fit the model's {}", to_string(shape),
           to_string(own));
    return Type::tensor(dtype, shape);
  }
  return Type::tensor(dtype, std::move(own));
}

void InputTypes::cut_off(const std::vector<std::string>& names) {
  for (const auto& [name, shape] : options_.input_shapes) {
    const std::string node = name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
    const bool named = std::find(names.begin(), names.end(), node) != names.end();
    if (named && used_.insert(name).second) options_.tell_cut_off(name);
  }
}

void InputTypes::refuse_unused(const std::string& file, const Block& body) const {
  std::string names;
  for (const auto& param : body.params) names += (names.empty() ? "" : ", ") + param->name;
  for (const auto& [name, shape] : options_.input_shapes)
    if (!used_.contains(name))
      throw UnknownName(ErrorKind::invalid_argument, UnknownName::Of::input, name, file,
                        fmt::format("has no input '{}'; it has {}", name, names));
}

Type as_input(Type type) {
  if (!type.is_tensor()) fail(ErrorKind::unsupported, "", "is no tensor");
  for (Dim& dim : type.shape.dims) dim.symbol = nullptr;
  return type;
}

void name_unknown_dims(Value& param) {
  std::string stem;
  for (char c : param.name) stem += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (stem.empty() || std::isdigit(static_cast<unsigned char>(stem[0]))) stem = "_" + stem;
  auto& dims = param.type.shape.dims;
  for (size_t i = 0; i < dims.size(); ++i)
    if (is_unnamed(dims[i])) dims[i] = Dim(intern_symbol(fmt::format("{}_{}", stem, i)));
}

void name_unknown_dims(Block& body) {
  std::vector<Dim*> dims;
  for (const auto& param : body.params)
    for (Dim& dim : param->type.shape.dims)
      if (is_unnamed(dim)) dims.push_back(&dim);
  if (dims.size() == 1) *dims[0] = Dim(intern_symbol("n"));
  for (const auto& param : body.params) name_unknown_dims(*param);
}

}  // namespace cairn
