// The architecture in a saved model: JSON of models, which hold layers, which may be models.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/keras/saved.h"
#include "ir/types.h"

namespace cairn::keras {

/// Layers of a model, and their places in an archive.
using Layers = std::vector<std::pair<const Json*, std::string>>;

/// Whether layers of this class are models.
bool is_model(std::string_view kind);
/// What an object has under the key. Throws Error invalid_model where that is missing or of another type.
const Json& member(const Json& object, const char* key, Json::value_t type);
std::string text_of(const Json& object, const char* key);
/// Null where there is none.
const Json* member_of(const Json* object, const char* key);
/// The name of a layer; functions of Keras 3 have it outside of their configuration.
std::string name_of(const Json& layer);
/// Whether it is a function of keras.ops, some of which are called as layers are.
bool is_operation(const Json& layer);
bool is_shape(const Json* value);
/// Sizes as the file has them; null, or what is none, is open.
Shape shape_told(const Json& list);
/// All layers of the model of this configuration. Throws Error.
Layers layers_of(const Json& config);
/// Layers that are the inputs of the outermost model, in the order of its arguments. Throws Error.
std::vector<const Json*> input_layers(const Json& architecture);

}  // namespace cairn::keras
