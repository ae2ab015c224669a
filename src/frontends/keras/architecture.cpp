#include "frontends/keras/architecture.h"

#include <algorithm>
#include <map>

#include "frontends/keras/calls.h"
#include "frontends/keras/importer.h"

namespace cairn::keras {

constexpr size_t kMostLayers = 1 << 16;

bool is_model(std::string_view kind) { return kind == "Functional" || kind == "Model" || kind == "Sequential"; }

const Json& member(const Json& object, const char* key, Json::value_t type) {
  auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || found->type() != type)
    fail(ErrorKind::invalid_model, "", "the architecture lacks '{}'", key);
  return *found;
}

std::string text_of(const Json& object, const char* key) {
  return member(object, key, Json::value_t::string).get<std::string>();
}

const Json* member_of(const Json* object, const char* key) {
  const bool has = object != nullptr && object->is_object() && object->contains(key);
  return has ? &(*object)[key] : nullptr;
}

std::string name_of(const Json& layer) {
  const Json& config = member(layer, "config", Json::value_t::object);
  return text_of(config.contains("name") ? config : layer, "name");
}

bool is_operation(const Json& layer) {
  const auto module = layer.find("module");
  return module != layer.end() && module->is_string() && module->get<std::string>().starts_with("keras.src.ops");
}

bool is_shape(const Json* value) {
  return value != nullptr && value->is_array() && value->size() <= 64 &&
         std::all_of(value->begin(), value->end(), [](const Json& dim) { return !dim.is_structured(); });
}

Shape shape_told(const Json& list) {
  Shape shape;
  for (const Json& dim : list)
    shape.dims.push_back(dim.is_number_unsigned() && dim < (int64_t{1} << 40) ? Dim(dim.get<int64_t>()) : Dim());
  return shape;
}

Layers layers_of(const Json& config) {
  const Json& all = member(config, "layers", Json::value_t::array);
  if (all.size() > kMostLayers) fail(ErrorKind::unsupported, "", "has more than {} layers", kMostLayers);
  std::map<std::string, int> used;
  Layers layers;
  for (const Json& layer : all) {
    std::string place = next_place(text_of(layer, "class_name"), used);
    layers.emplace_back(&layer, std::move(place));
  }
  return layers;
}

std::vector<const Json*> input_layers(const Json& architecture) {
  const Json& config = member(architecture, "config", Json::value_t::object);
  const Layers layers = layers_of(config);
  std::vector<const Json*> inputs;
  if (text_of(architecture, "class_name") == "Sequential") {
    if (layers.empty()) fail(ErrorKind::invalid_model, "", "has no layers");
    inputs.push_back(layers[0].first);
    return inputs;
  }
  for (const ResultName& entry : results_in(member(config, "input_layers", Json::value_t::array)))
    for (const auto& [layer, place] : layers)
      if (name_of(*layer) == entry.layer) inputs.push_back(layer);
  return inputs;
}

}  // namespace cairn::keras
