#include "frontends/inputs.h"
#include "frontends/unknown_name.h"

#include <algorithm>

namespace cairn {

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

void name_unknown_dims(Block& body) {
  auto unnamed = [](const Dim& dim) { return !dim.known() && dim.symbol == nullptr; };
  int64_t count = 0;
  for (const auto& param : body.params)
    count += std::count_if(param->type.shape.dims.begin(), param->type.shape.dims.end(), unnamed);
  for (auto& param : body.params) {
    std::string stem;
    for (char c : param->name) stem += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (stem.empty() || std::isdigit(static_cast<unsigned char>(stem[0]))) stem = "_" + stem;
    for (size_t i = 0; i < param->type.shape.rank(); ++i)
      if (Dim& dim = param->type.shape.dims[i]; unnamed(dim))
        dim = Dim(intern_symbol(count == 1 ? "n" : fmt::format("{}_{}", stem, i)));
  }
}

}  // namespace cairn
