// The door for models that Keras saved: their layers in the order of their calls.
#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "frontends/fold.h"
#include "frontends/inputs.h"
#include "frontends/keras/calls.h"
#include "frontends/keras/importer.h"
#include "frontends/reshape.h"
#include "frontends/unknowns.h"
#include "ir/result_marks.h"
#include "ir/text.h"

namespace cairn {
namespace keras {
namespace {

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

/// Functions of Keras 3 have it beside their configuration.
std::string name_of(const Json& layer) {
  const Json& config = member(layer, "config", Json::value_t::object);
  return text_of(config.contains("name") ? config : layer, "name");
}
/// Whether it is a function of keras.ops, some of which are called as layers are.
bool is_operation(const Json& layer) {
  const auto module = layer.find("module");
  return module != layer.end() && module->is_string() && module->get<std::string>().starts_with("keras.src.ops");
}

class Importer {
 public:
  Importer(const Saved& saved, Module& module, Builder& builder) : saved_(saved), module_(module), b_(builder) {}

  Problems& problems() { return problems_; }
  /// Layers whose states would go on from call to call.
  const std::vector<std::string>& stateful() const { return stateful_; }

  struct Scope {
    std::string prefix;              // of source names
    std::optional<Weights> weights;  // of the model that contains the layers; none: the outermost
    int level = 0;
  };
  using Layers = std::vector<std::pair<const Json*, std::string>>;  // and their places in an archive

  /// Stand-ins where something above could not be imported.
  std::vector<Value*> model(const Json& architecture, const std::vector<Value*>& inputs, const Scope& scope) {
    if (scope.level > kMostLevels) fail(ErrorKind::unsupported, "", "models are nested deeper than {}", kMostLevels);
    const Json& config = member(architecture, "config", Json::value_t::object);
    const Layers layers = list(config);
    return text_of(architecture, "class_name") == "Sequential" ? sequential(layers, inputs, scope)
                                                               : functional(config, layers, inputs, scope);
  }

  /// Layers of a model, each with its place.
  static Layers list(const Json& config) {
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

 private:
  std::vector<Value*> sequential(const Layers& layers, std::vector<Value*> values, const Scope& scope) {
    for (const auto& [layer, place] : layers)
      if (text_of(*layer, "class_name") != "InputLayer") values = call(*layer, place, with_masks(values), scope);
    return values;
  }

  /// Keras 3 writes masks down as arguments of the calls.
  Given::Value with_mask(Value* value) const {
    if (saved_.keras3) return {value, nullptr, nullptr};
    auto mask = masks_.find(value);
    return {value, mask == masks_.end() ? nullptr : mask->second, nullptr};
  }
  Given with_masks(const std::vector<Value*>& values) const {
    Given given;
    for (Value* value : values) given.inputs.push_back(with_mask(value));
    return given;
  }

  /// Nothing while a result is still to be made.
  std::optional<Given> find(const Call& call, std::map<ResultName, Value*>& known) {
    bool ready = true;
    auto look_up = [&](const Argument& argument) -> Given::Value {
      if (!argument.from) return {nullptr, nullptr, argument.literal};
      auto found = known.find(*argument.from);
      if (found == known.end()) found = further_result(*argument.from, known);
      ready = ready && found != known.end();
      return found == known.end() ? Given::Value{} : with_mask(found->second);
    };
    Given given;
    for (const Argument& input : call.inputs) given.inputs.push_back(look_up(input));
    for (const auto& [name, argument] : call.named) given.named.emplace(name, look_up(argument));
    return ready ? std::optional(std::move(given)) : std::nullopt;
  }

  /// A layer that could not be imported has as many results as others read.
  std::map<ResultName, Value*>::iterator further_result(ResultName name, std::map<ResultName, Value*>& known) {
    const ResultName whole = name;
    name.index = 0;
    auto first = known.find(name);
    if (first == known.end() || !unknowns_.is_stand_in(first->second)) return known.end();
    return known.emplace(whole, unknowns_.add(std::nullopt, Shape::unranked())).first;
  }

  std::vector<Value*> functional(const Json& config, const Layers& layers, const std::vector<Value*>& inputs,
                                 const Scope& scope) {
    std::map<ResultName, Value*> known;
    const std::vector<ResultName> entries = results_in(member(config, "input_layers", Json::value_t::array));
    if (entries.size() != inputs.size())
      fail(ErrorKind::invalid_model, "", "takes {} inputs, given {}", entries.size(), inputs.size());
    for (size_t i = 0; i < entries.size(); ++i) known[entries[i]] = inputs[i];
    struct Pending {
      const Json* layer;
      std::string place;
      uint64_t number;
      Call call;
    };
    std::vector<Pending> pending;
    for (const auto& [layer, place] : layers) {
      uint64_t number = first_call(*layer);
      for (const Json& node : member(*layer, "inbound_nodes", Json::value_t::array))
        pending.push_back({layer, place, number++, read_call(node)});
    }
    // Layers stand in the order of their depth; shared ones may have to wait for others.
    while (!pending.empty()) {
      std::vector<Pending> waiting;
      saved_.model->charge(64 * pending.size());
      for (Pending& next : pending) {
        std::optional<Given> given = find(next.call, known);
        if (!given) {
          waiting.push_back(std::move(next));
          continue;
        }
        std::vector<Value*> results = call(*next.layer, next.place, *given, scope);
        for (size_t i = 0; i < results.size(); ++i) known[{name_of(*next.layer), next.number, i}] = results[i];
      }
      if (waiting.size() == pending.size())
        fail(ErrorKind::invalid_model, "", "layer '{}' has inputs that no layer makes",
             printable(name_of(*waiting[0].layer)));
      pending = std::move(waiting);
    }
    std::vector<Value*> results;
    for (const ResultName& output : results_in(member(config, "output_layers", Json::value_t::array))) {
      auto found = known.find(output);
      if (found == known.end()) found = further_result(output, known);
      if (found == known.end())
        fail(ErrorKind::invalid_model, "", "output '{}' is made by no layer", printable(output.layer));
      results.push_back(found->second);
    }
    return results;
  }

  /// A model that has inputs of its own counts these as its first call, in Keras 2.
  uint64_t first_call(const Json& layer) const {
    if (saved_.keras3 || !is_model(text_of(layer, "class_name"))) return 0;
    const Json& inner = member(member(layer, "config", Json::value_t::object), "layers", Json::value_t::array);
    return !inner.empty() && text_of(inner[0], "class_name") == "InputLayer" ? 1 : 0;
  }

  std::vector<Value*> call(const Json& layer, const std::string& place, const Given& given, const Scope& scope) {
    const std::string name = name_of(layer), whole = scope.prefix.empty() ? name : scope.prefix + "/" + name;
    const auto missing = [](const Given::Value& argument) {
      return argument.value == nullptr && argument.literal == nullptr;
    };
    if (std::any_of(given.inputs.begin(), given.inputs.end(), missing)) return {nullptr};
    return apply(layer, whole, given,
                 scope.weights ? scope.weights->part(name, "layers/" + place) : saved_.weights(name, place),
                 scope.level);
  }

  std::vector<Value*> apply(const Json& layer, const std::string& whole, const Given& given, const Weights& weights,
                            int level) {
    const std::string kind = text_of(layer, "class_name");
    if (is_model(kind)) return inner_model(layer, whole, given, weights, level);
    if (kind == "SpectralNormalization" && level < kMostLevels) {  // the saved kernel is the normalised one
      const Json& inner = member(member(layer, "config", Json::value_t::object), "layer", Json::value_t::object);
      return apply(inner, whole, given, weights.part("", "layer"), level + 1);
    }
    saved_.model->charge(1024);
    const Row* row = find_row(is_operation(layer) ? kOperation : kind);
    if (row == nullptr) {
      problems_.unsupported(clean(kind), clean(whole), {});
      return {unknowns_.add(std::nullopt, Shape::unranked())};
    }
    try {
      if (std::any_of(given.inputs.begin(), given.inputs.end(), [&](auto& v) { return unknowns_.contains(v.value); })) {
        auto results = unknowns_.results(values_of(given), row->build == nullptr, [&](std::vector<Value*> values) {
          Given tried = given;
          for (size_t i = 0; i < values.size(); ++i) tried.inputs[i].value = values[i];
          return build(*row, layer, whole, tried, weights, level);
        });
        if (!results.empty()) return results;
      } else {
        return build(*row, layer, whole, given, weights, level);
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::out_of_memory || error.kind() == ErrorKind::cancelled) throw;
      problems_.refused(clean(kind), clean(whole), error);
    } catch (const Json::exception&) {
      problems_.refused(clean(kind), clean(whole), Error(ErrorKind::invalid_model, "", "its configuration is damaged"));
    }
    return {unknowns_.add(std::nullopt, Shape::unranked())};
  }

  std::vector<Value*> build(const Row& row, const Json& layer, const std::string& whole, const Given& given,
                            const Weights& weights, int level) {
    const SourceId id = module_.add_source({"keras", clean(whole), clean(text_of(layer, "class_name")), ""});
    b_.sources = {id};
    const size_t before = b_.block().nodes.size();
    const Json& config = member(layer, "config", Json::value_t::object);
    const bool first = row.channels > 0 && config.value("data_format", Json()) == "channels_first";
    LayerContext context(b_, config, values_of(given), weights);
    context.target = row.target;
    context.kind = text_of(layer, "class_name");
    context.keras3 = saved_.keras3;
    check_dtype(context);
    hand_over(given, row, context);
    const size_t rank = first ? context.rank() : 0;
    if (first) context.in = channels_moved(context.in, row.channels, rank, true, b_);
    row.build != nullptr ? row.build(context) : distribute(context, whole, level);
    if (first) context.out = channels_moved(context.out, row.channels, rank, false, b_);
    if (context.stateful) stateful_.push_back(clean(whole));
    if (b_.block().nodes.size() == before) module_.removed.emplace(id, Removal::identity);
    mark_results(
        context.out, clean(text_of(layer, "class_name")),
        [&](const Value* value) { return !value->producer->sources.empty() && value->producer->sources.front() == id; },
        [&](const std::string& mark) {
          return module_.add_source({"keras", clean(whole), mark, ""});
        });
    name_results(context, clean(whole));
    return context.out;
  }

  static std::vector<Value*> values_of(const Given& given) {
    std::vector<Value*> values;
    for (const Given::Value& input : given.inputs) values.push_back(input.value);
    return values;
  }

  std::vector<Value*> inner_model(const Json& layer, const std::string& whole, const Given& given,
                                  const Weights& weights, int level) {
    const std::vector<Value*> inputs = values_of(given);
    if (std::find(inputs.begin(), inputs.end(), nullptr) != inputs.end())
      fail(ErrorKind::unsupported, "", "model '{}' is called on a constant", printable(whole));
    for (const auto& [key, argument] : given.named)
      if (argument.value != nullptr)
        fail(ErrorKind::unsupported, "", "argument '{}' of the call of '{}' is not supported", printable(key),
             printable(whole));
    return model(layer, inputs, {whole, weights, level + 1});
  }

  /// The mask is that of the first result.
  void name_results(LayerContext& context, const std::string& name) {
    for (size_t i = 0; i < context.out.size(); ++i) {
      Value*& result = context.out[i];
      if (result == nullptr) continue;
      Value* mask = i == 0 ? context.mask : nullptr;
      if (auto other = masks_.find(result); other != masks_.end() && other->second != mask)
        result = b_.add("identity", {result});  // the same values under another mask
      if (result->name.empty()) result->name = name;
      if (mask != nullptr) masks_[result] = mask;
    }
  }

  /// TimeDistributed: a layer or model on every step alone. The steps join the batch around it.
  void distribute(LayerContext& c, const std::string& whole, int level) {
    c.expect_inputs(1);
    if (level > kMostLevels) c.refuse("layers are nested deeper than {}", kMostLevels);
    if (c.rank() < 3) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 3 or more", c.rank());
    const Json& layer = member(c.config, "layer", Json::value_t::object);
    const std::vector<SourceId> sources = b_.sources;
    Value* x = steps_joined(c.in[0]);
    // A mask over dims within the steps is the layer's own; one over the steps passes it by.
    Value* outer = c.masks[0];
    const bool within = outer != nullptr && outer->type.shape.ranked && outer->type.shape.rank() > 2;
    Value* inner = within ? steps_joined(outer) : nullptr;
    const auto results =
        apply(layer, whole + "/" + name_of(layer), {{{x, inner, nullptr}}, {}}, c.weights.part("", "layer"), level + 1);
    b_.sources = sources;
    for (Value* y : results) {
      if (unknowns_.is_stand_in(y)) {
        c.out.push_back(unknowns_.add(std::nullopt, Shape::unranked()));
        continue;
      }
      if (c.out.empty()) {
        if (auto made = masks_.find(y); made != masks_.end())
          c.mask = steps_apart(made->second, c.in[0]);
        else if (within)
          c.mask = b_.add("reduce_any", {outer}, {{"axes", axes_from(2, outer->type.shape.rank())}});
      }
      c.out.push_back(steps_apart(y, c.in[0]));
    }
  }

  static std::vector<int64_t> axes_from(size_t first, size_t rank) {
    std::vector<int64_t> axes(rank - first);
    std::iota(axes.begin(), axes.end(), static_cast<int64_t>(first));
    return axes;
  }
  /// [batch, steps, ...] as [batch * steps, ...].
  Value* steps_joined(Value* x) {
    std::vector<Value*> sizes{b_.ints({-1})};
    for (size_t axis = 2; axis < x->type.shape.rank(); ++axis) sizes.push_back(dim_of(x, axis, b_));
    return reshape_by(x, joined(sizes, b_), b_);
  }
  /// And back, as many as `like` has.
  Value* steps_apart(Value* x, Value* like) {
    std::vector<Value*> sizes{dim_of(like, 0, b_), dim_of(like, 1, b_)};
    for (size_t axis = 1; axis < x->type.shape.rank(); ++axis) sizes.push_back(dim_of(x, axis, b_));
    return reshape_by(x, joined(sizes, b_), b_);
  }

  /// Masks and arguments beside the inputs, as far as the layer knows them.
  void hand_over(const Given& given, const Row& row, LayerContext& c) {
    for (const Given::Value& input : given.inputs) {
      c.masks.push_back(input.mask);
      c.literals.push_back(input.literal);
      if (input.literal != nullptr && !row.named) c.refuse("it is called on a constant");
    }
    for (const auto& [name, argument] : given.named) {
      if (name == "training" && argument.literal != nullptr && *argument.literal == false) continue;
      if (name == "mask" && argument.value != nullptr && c.masks.size() == 1)
        c.masks[0] = argument.value;
      else if (row.named)
        c.named.emplace(name, argument);
      else
        c.refuse("argument '{}' of its call is not supported", printable(name));
    }
    if (row.masks != Row::Masks::pass) return;
    for (Value* mask : c.masks)
      if (mask != nullptr) c.mask = c.mask == nullptr ? mask : b_.add("and", {c.mask, mask});
  }

  static void check_dtype(const LayerContext& c) {
    const Json* policy = c.find("dtype");
    if (policy != nullptr &&
        policy->is_object()) {  // of Keras 3: {"class_name": "DTypePolicy", "config": {"name": ...}}
      const Json* config = policy->contains("config") ? &(*policy)["config"] : nullptr;
      policy = config != nullptr && config->is_object() && config->contains("name") ? &(*config)["name"] : nullptr;
      if (policy == nullptr) c.refuse("its dtype policy is not understood");
    }
    if (policy != nullptr && (!policy->is_string() || policy->get<std::string>().starts_with("mixed") ||
                              policy->get<std::string>().find("_from_") != std::string::npos))
      c.refuse("a dtype policy is not supported");
  }

  const Saved& saved_;
  Module& module_;
  Builder& b_;
  Problems problems_;
  Unknowns unknowns_;
  std::vector<std::string> stateful_;
  std::map<const Value*, Value*> masks_;  // which steps of a value count, where a layer said so
};

/// Layers that are the inputs of the outermost model, in the order of its arguments.
std::vector<const Json*> input_layers(const Json& architecture) {
  const Json& config = member(architecture, "config", Json::value_t::object);
  const auto layers = Importer::list(config);
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

Type input_type(const Json& layer, InputTypes& types, const std::string& name) {
  const Json& config = member(layer, "config", Json::value_t::object);
  Shape shape = Shape::unranked();
  for (const char* key : {"batch_input_shape", "batch_shape"}) {
    auto found = config.find(key);
    if (found == config.end() || !found->is_array() || found->size() > 64) continue;
    shape = Shape();
    for (const Json& dim : *found)
      shape.dims.push_back(dim.is_number_unsigned() && dim < (int64_t{1} << 40) ? Dim(dim.get<int64_t>()) : Dim());
  }
  auto dtype = config.find("dtype");
  const bool named = dtype != config.end() && dtype->is_string();
  return types.type({name}, dtype_named(named ? dtype->get<std::string>() : "float32"), shape);
}

Module import_sound(const Saved& saved, const ImportOptions& options) {
  if (!options.out_nodes.empty())
    fail(ErrorKind::unsupported, saved.model->name(), "outputs inside a saved Keras model cannot be named");
  const std::string kind = text_of(saved.architecture, "class_name");
  if (!is_model(kind))
    fail(ErrorKind::unsupported, saved.model->name(),
         "is a model of class '{}', whose layers the file does not tell; export it with model.export()",
         printable(kind));
  Module module;
  module.functions.push_back(std::make_unique<Function>());
  Function& main = *module.functions.back();
  main.name = "main";
  InputTypes types(options);
  std::vector<Value*> inputs;
  for (const Json* layer : input_layers(saved.architecture)) {
    const std::string name = clean(text_of(member(*layer, "config", Json::value_t::object), "name"));
    inputs.push_back(main.body.add_param(input_type(*layer, types, name), name));
  }
  types.refuse_unused(saved.model->name(), main.body);
  name_unknown_dims(main.body);
  Builder builder(main.body);
  Importer importer(saved, module, builder);
  main.body.results = importer.model(saved.architecture, inputs, {});
  importer.problems().raise(saved.model->name());
  if (!importer.stateful().empty())
    options.tell("stateful layers start from zeros in every run, as after reset_states(): {}",
                 fmt::join(importer.stateful(), ", "));
  for (const Value* result : main.body.results) {
    std::string name = result->name.empty() ? "output" : result->name;
    while (std::find(main.result_names.begin(), main.result_names.end(), name) != main.result_names.end()) name += "_";
    main.result_names.push_back(name);
  }
  module.metadata["format"] = "keras";
  verify(module);
  return module;
}

}  // namespace

Module import(const Saved& saved, const ImportOptions& options) {
  const std::string& file = saved.model->name();
  try {
    return import_sound(saved, options);
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::invalid_model, file, "the architecture is damaged");
  } catch (const Error& error) {
    if (!error.where().empty() || dynamic_cast<const ReportError*>(&error) != nullptr) throw;
    fail(error.kind(), file, "{}", error.what());
  }
}

static std::array<std::span<const Row>, 8> families() {
  return {layer_rows(),     image_rows(),    volume_rows(),    recurrent_rows(),
          attention_rows(), function_rows(), operation_rows(), preprocessing_rows()};
}

const Row* find_row(std::string_view layer) {
  for (std::span<const Row> family : families())
    for (const Row& row : family)
      if (row.layer == layer) return &row;
  return nullptr;
}

std::vector<std::string_view> supported_layers() {
  std::vector<std::string_view> layers;
  for (std::span<const Row> family : families())
    for (const Row& row : family)
      if (row.layer != kOperation) layers.push_back(row.layer);
  std::sort(layers.begin(), layers.end());
  return layers;
}

}  // namespace keras

Module import_keras(const std::string& path, const ImportOptions& options) {
  return keras::import(keras::read(path), options);
}

}  // namespace cairn
