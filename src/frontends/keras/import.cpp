// Imports models saved by Keras: their layers in the order of their calls.
#include <algorithm>
#include <optional>
#include <set>

#include "frontends/fold.h"
#include "frontends/inputs.h"
#include "frontends/keras/architecture.h"
#include "frontends/keras/calls.h"
#include "frontends/keras/importer.h"
#include "frontends/reshape.h"
#include "frontends/unknown_name.h"
#include "frontends/unknowns.h"
#include "frontends/way_around.h"
#include "ir/result_marks.h"
#include "ir/text.h"

namespace cairn {
namespace keras {
namespace {

/// [batch, steps, ...] as [batch * steps, ...].
Value* steps_joined(Value* x, Builder& builder) {
  std::vector<Value*> sizes{builder.ints({-1})};
  for (size_t axis = 2; axis < x->type.shape.rank(); ++axis) sizes.push_back(dim_of(x, axis, builder));
  return reshape_by(x, joined(sizes, builder), builder);
}

/// The reverse, with as many steps as `like` has.
Value* steps_apart(Value* x, Value* like, Builder& builder) {
  std::vector<Value*> sizes{dim_of(like, 0, builder), dim_of(like, 1, builder)};
  for (size_t axis = 1; axis < x->type.shape.rank(); ++axis) sizes.push_back(dim_of(x, axis, builder));
  return reshape_by(x, joined(sizes, builder), builder);
}

class Importer {
 public:
  Importer(const Saved& saved, Module& module, Builder& builder, const ImportOptions& options, InputTypes& types)
      : saved_(saved), module_(module), b_(builder), options_(options), types_(types) {}

  Problems& problems() { return problems_; }
  /// The result that a name of `out_nodes` means. Throws UnknownName.
  Value* result_named(const std::string& text) const;
  /// Names of `replace` that belong to no layer.
  std::vector<std::string> not_cut() const;
  /// Ways around what failed: results above it that can be outputs, and layers below that can be inputs.
  std::pair<std::vector<std::string>, std::vector<std::string>> ways_around(const std::vector<Value*>& results) const;
  /// Layers whose states would go on from call to call.
  const std::vector<std::string>& stateful() const { return stateful_; }

  struct Scope {
    std::string prefix;              // for source names
    std::optional<Weights> weights;  // of the model that contains the layers; none: it is the outermost one
    int level = 0;
  };
  /// Imports a model; results are stand-ins if a layer above could not be imported.
  std::vector<Value*> model(const Json& architecture, const std::vector<Value*>& inputs, const Scope& scope) {
    if (scope.level > kMostLevels) fail(ErrorKind::unsupported, "", "models are nested deeper than {}", kMostLevels);
    const Json& config = member(architecture, "config", Json::value_t::object);
    const Layers layers = layers_of(config);
    return text_of(architecture, "class_name") == "Sequential" ? sequential(layers, inputs, scope)
                                                               : functional(config, layers, inputs, scope);
  }

 private:
  std::vector<Value*> sequential(const Layers& layers, std::vector<Value*> values, const Scope& scope) {
    for (size_t i = 0; i < layers.size(); ++i) {
      const auto& [layer, place] = layers[i];
      if (text_of(*layer, "class_name") == "InputLayer") continue;
      if (i + 1 < layers.size()) told_[{whole_name(*layer, scope), 0}] = member_of(layers[i + 1].first, "build_config");
      values = call(*layer, place, with_masks(values), scope);
    }
    return values;
  }

  /// The value with its mask, which Keras 3 passes as an argument of the call.
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

  /// The arguments of a call; nothing if a result is not available yet.
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

  /// Adds a result to a layer that could not be imported: it has as many results as are used.
  std::map<ResultName, Value*>::iterator further_result(ResultName name, std::map<ResultName, Value*>& known) {
    const ResultName whole = name;
    name.index = 0;
    auto first = known.find(name);
    if (first == known.end() || !unknowns_.is_stand_in(first->second)) return known.end();
    Value* further = unknowns_.add(std::nullopt, Shape::unranked());
    if (auto maker = makers_.find(first->second); maker != makers_.end()) makers_[further] = maker->second;
    return known.emplace(whole, further).first;
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
      for (const Json& node : member(*layer, "inbound_nodes", Json::value_t::array)) {
        pending.push_back({layer, place, number++, read_call(node)});
        note_types(*layer, pending.back().call, scope);
      }
    }
    // Layers are listed in the order of their depth; shared ones may have to wait for others.
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

  static std::string whole_name(const Json& layer, const Scope& scope) { return whole_name(name_of(layer), scope); }
  static std::string whole_name(const std::string& name, const Scope& scope) {
    return scope.prefix.empty() ? name : scope.prefix + "/" + name;
  }

  /// What a call tells of the results that it reads.
  void note_types(const Json& layer, const Call& call, const Scope& scope) {
    for (const Argument& input : call.inputs)
      if (input.from)
        if (const Json* type = input.from->type ? input.from->type : member_of(&layer, "build_config"))
          told_.try_emplace({whole_name(input.from->layer, scope), input.from->index}, type);
  }

  /// A model that has inputs of its own counts these as its first call, in Keras 2.
  uint64_t first_call(const Json& layer) const {
    if (saved_.keras3 || !is_model(text_of(layer, "class_name"))) return 0;
    const Json& inner = member(member(layer, "config", Json::value_t::object), "layers", Json::value_t::array);
    return !inner.empty() && text_of(inner[0], "class_name") == "InputLayer" ? 1 : 0;
  }

  std::vector<Value*> call(const Json& layer, const std::string& place, const Given& given, const Scope& scope) {
    const std::string name = name_of(layer), whole = whole_name(layer, scope);
    const auto missing = [](const Given::Value& argument) {
      return argument.value == nullptr && argument.literal == nullptr;
    };
    if (std::any_of(given.inputs.begin(), given.inputs.end(), missing)) return {nullptr};
    const size_t problems = problems_.count();
    std::vector<Value*> results =
        apply(layer, whole, given,
              scope.weights ? scope.weights->part(name, "layers/" + place) : saved_.weights(name, place), scope.level);
    note_call(whole, given, results, problems_.count() != problems && !is_model(text_of(layer, "class_name")));
    return options_.replace.contains(whole) ? cut(whole, given, results) : results;
  }

  void note_call(const std::string& whole, const Given& given, const std::vector<Value*>& results, bool failed) {
    const auto place = static_cast<uint32_t>(calls_.size());
    Called& called = calls_.emplace_back(Called{whole, results, {}, failed});
    auto read = [&](const Given::Value& argument) {
      for (const Value* value : {argument.value, argument.mask})
        if (auto maker = makers_.find(value); maker != makers_.end()) called.sources.push_back(maker->second);
    };
    for (const Given::Value& input : given.inputs) read(input);
    for (const auto& [name, argument] : given.named) read(argument);
    for (const Value* result : results)
      if (result != nullptr) makers_.try_emplace(result, place);
    if (!failed) return;
    for (const Given::Value& input : given.inputs)
      if (input.value != nullptr && input.value->producer != nullptr && !unknowns_.contains(input.value) &&
          makers_.contains(input.value))
        ends_.insert(input.value);
  }

  /// Inputs of the model in place of a layer's results.
  std::vector<Value*> cut(const std::string& whole, const Given& given, std::vector<Value*> results) {
    if (!cut_.insert(whole).second)
      fail(ErrorKind::unsupported, printable(whole), "is called several times and cannot become an input");
    for (size_t i = 0; i < results.size(); ++i) {
      Value*& result = results[i];
      if (result == nullptr) continue;
      const bool unknown = unknowns_.is_stand_in(result);
      if (masks_.contains(result) || (unknown && std::any_of(given.inputs.begin(), given.inputs.end(),
                                                             [](const Given::Value& v) { return v.mask != nullptr; })))
        fail(ErrorKind::unsupported, printable(whole), "hands on a mask, which an input of the model does not have");
      const std::string name = clean(results.size() == 1 ? whole : fmt::format("{}:{}", whole, i));
      const Type type = unknown ? type_told(whole, i) : as_input(result->type);
      result = b_.block().add_param(types_.type({name}, type.dtype, type.shape), name);
      name_unknown_dims(*result);
    }
    return results;
  }

  Type type_told(const std::string& whole, size_t index) const {
    auto found = told_.find({whole, index});
    const Json* told = found == told_.end() ? nullptr : found->second;
    const Json *shape = member_of(told, "shape"), *dtype = member_of(told, "dtype");
    if (shape == nullptr) shape = member_of(told, "input_shape");
    return Type::tensor(dtype != nullptr && dtype->is_string() ? dtype_named(dtype->get<std::string>()) : kF32,
                        is_shape(shape) ? shape_told(*shape) : Shape::unranked());
  }

  /// "layer", or of several results "layer:1".
  std::string result_name(const Value* value) const {
    const Called& called = calls_[makers_.at(value)];
    const auto index = std::find(called.results.begin(), called.results.end(), value) - called.results.begin();
    return called.results.size() == 1 ? clean(called.name) : fmt::format("{}:{}", clean(called.name), index);
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
      problems_.unsupported(clean(kind), {clean(whole), ""}, {});
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
      problems_.refused(clean(kind), {clean(whole), ""}, error);
    } catch (const Json::exception&) {
      problems_.refused(clean(kind), {clean(whole), ""},
                        Error(ErrorKind::invalid_model, "", "its configuration is damaged"));
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
    context.check_dtype();
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

  /// TimeDistributed: applies a layer or model to every step; the steps are merged into the batch for it.
  void distribute(LayerContext& c, const std::string& whole, int level) {
    c.expect_inputs(1);
    if (level > kMostLevels) c.refuse("layers are nested deeper than {}", kMostLevels);
    if (c.rank() < 3) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 3 or more", c.rank());
    const Json& layer = member(c.config, "layer", Json::value_t::object);
    const std::vector<SourceId> sources = b_.sources;
    Value* x = steps_joined(c.in[0], b_);
    // A mask over dims inside the steps goes to the inner layer; a mask over the steps bypasses it.
    Value* outer = c.masks[0];
    const bool within = outer != nullptr && outer->type.shape.ranked && outer->type.shape.rank() > 2;
    Value* inner = within ? steps_joined(outer, b_) : nullptr;
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
          c.mask = steps_apart(made->second, c.in[0], b_);
        else if (within)
          c.mask = b_.add("reduce_any", {outer}, {{"axes", axes_from(2, outer->type.shape.rank())}});
      }
      c.out.push_back(steps_apart(y, c.in[0], b_));
    }
  }

  /// Passes masks and further arguments to the layer, as far as it supports them.
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

  const Saved& saved_;
  Module& module_;
  Builder& b_;
  Problems problems_;
  Unknowns unknowns_;
  std::vector<std::string> stateful_;
  std::map<const Value*, Value*> masks_;  // which steps of a value count, where a layer said so

  struct Called {
    std::string name;
    std::vector<Value*> results;
    std::vector<uint32_t> sources;  // places of calls
    bool failed;
  };
  const ImportOptions& options_;
  InputTypes& types_;
  std::vector<Called> calls_;
  std::map<const Value*, uint32_t> makers_;  // places of calls, by their results
  std::set<const Value*> ends_;              // what failed calls read that did not fail
  std::set<std::string, std::less<>> cut_;
  std::map<std::pair<std::string, uint64_t>, const Json*> told_;  // types of results, by layer and number
};

Value* Importer::result_named(const std::string& text) const {
  const Called* found = nullptr;
  size_t index = 0;
  for (const Called& called : calls_) {
    const std::string name = clean(called.name);
    const bool numbered = text.size() > name.size() && text.starts_with(name + ":");
    if (name != text && !numbered) continue;
    if (found != nullptr && found->name == called.name)
      fail(ErrorKind::unsupported, printable(text), "is called several times and cannot become an output");
    found = &called;
    index = numbered ? std::strtoul(&text[name.size() + 1], nullptr, 10) : 0;
    if (!numbered && called.results.size() > 1)
      options_.tell("{0} has {1} results, of which {0}:0 is an output; name the others as {0}:1", text,
                    called.results.size());
  }
  if (found != nullptr && index < found->results.size()) return found->results[index];
  throw UnknownName(ErrorKind::not_found, UnknownName::Of::output, text, saved_.model->name(),
                    fmt::format("has no layer '{}'", printable(text)));
}

std::vector<std::string> Importer::not_cut() const {
  std::vector<std::string> names;
  for (const auto& [name, how] : options_.replace)
    if (!cut_.contains(name)) names.push_back(name);
  return names;
}

std::pair<std::vector<std::string>, std::vector<std::string>> Importer::ways_around(
    const std::vector<Value*>& results) const {
  DataFlow flow;
  Places failed;
  for (const Called& called : calls_) {
    if (called.failed) failed.insert(static_cast<uint32_t>(flow.sources.size()));
    flow.sources.push_back(called.sources);
  }
  for (const Value* result : results)
    if (auto maker = makers_.find(result); maker != makers_.end()) flow.outputs.insert(maker->second);
  std::set<std::string> ends, below;
  for (const Value* end : ends_) ends.insert(result_name(end));
  for (uint32_t place : inputs_below(flow, failed)) below.insert(clean(calls_[place].name));
  return {{ends.begin(), ends.end()}, {below.begin(), below.end()}};
}

Type input_type(const Json& layer, InputTypes& types, const std::string& name) {
  const Json& config = member(layer, "config", Json::value_t::object);
  Shape shape = Shape::unranked();
  for (const char* key : {"batch_input_shape", "batch_shape"}) {
    auto found = config.find(key);
    if (found != config.end() && found->is_array() && found->size() <= 64) shape = shape_told(*found);
  }
  auto dtype = config.find("dtype");
  const bool named = dtype != config.end() && dtype->is_string();
  return types.type({name}, dtype_named(named ? dtype->get<std::string>() : "float32"), shape);
}

/// Leaves of a model what its outputs need, where these or inputs were chosen. False where they need what failed.
bool keep_wanted(Module& module, const ImportOptions& options) {
  Block& body = module.main().body;
  std::vector<std::string> params;
  for (const auto& param : body.params) params.push_back(param->name);
  if (!keep_needed(body)) return false;
  for (const std::string& name : params)
    if (options.input_shapes.contains(name) &&
        std::none_of(body.params.begin(), body.params.end(), [&](auto& param) { return param->name == name; }))
      options.tell_cut_off(name);
  std::set<SourceId> left;
  for (const auto& node : body.nodes) left.insert(node->sources.begin(), node->sources.end());
  for (SourceId id = 0; id < module.sources.size(); ++id)
    if (!left.contains(id)) module.removed.emplace(id, Removal::dead);
  return true;
}

Module import_sound(const Saved& saved, const ImportOptions& options, bool propose) {
  const std::string &file = saved.model->name(), kind = text_of(saved.architecture, "class_name");
  if (!is_model(kind))
    fail(ErrorKind::unsupported, file,
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
  name_unknown_dims(main.body);
  Builder builder(main.body);
  Importer importer(saved, module, builder, options, types);
  main.body.results = importer.model(saved.architecture, inputs, {});
  types.refuse_unused(file, main.body);
  if (const auto names = importer.not_cut(); !names.empty())
    fail(ErrorKind::not_found, printable(names.front()), "is no layer of the model");
  if (!options.out_nodes.empty()) {
    main.body.results.clear();
    for (const std::string& text : options.out_nodes) main.body.results.push_back(importer.result_named(text));
  }
  const bool whole = options.out_nodes.empty() && options.replace.empty();
  if (whole ? !importer.problems().empty() : !keep_wanted(module, options)) {
    auto [ends, below] = importer.ways_around(main.body.results);
    const auto attempt = [&](const auto& outputs, const auto& cuts) {
      import_sound(saved, options.with(outputs, cuts), false);
    };
    importer.problems().raise(file, propose ? Problems::Remedies{ends, below, attempt} : Problems::Remedies());
  }
  if (!importer.stateful().empty())
    options.tell("stateful layers start from zeros in every run, as after reset_states(): {}",
                 fmt::join(importer.stateful(), ", "));
  for (size_t i = 0; i < main.body.results.size(); ++i) {
    const Value* result = main.body.results[i];
    std::string name = result->name.empty() ? "output" : result->name;
    if (!options.out_nodes.empty()) name = options.out_nodes[i];
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
    return import_sound(saved, options, true);
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::invalid_model, file, "the architecture is damaged");
  } catch (const Error& error) {
    if (!error.where().empty() || dynamic_cast<const ReportError*>(&error) != nullptr) throw;
    fail(error.kind(), file, "{}", error.what());
  }
}

}  // namespace keras

Module import_keras(const std::string& path, const ImportOptions& options) {
  return keras::import(keras::read(path), options);
}

}  // namespace cairn
