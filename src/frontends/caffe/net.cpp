#include "frontends/caffe/net.h"

#include <algorithm>
#include <map>
#include <protozero/pbf_writer.hpp>

namespace cairn::caffe {
namespace {

/// Where the parameters of the first generation stand now. Each layer takes what its parameters have.
struct Moved {
  std::string_view old, layer, field;
};
constexpr Moved kMoved[] = {
    {"num_output", "convolution_param", "num_output"},
    {"biasterm", "convolution_param", "bias_term"},
    {"pad", "convolution_param", "pad"},
    {"kernelsize", "convolution_param", "kernel_size"},
    {"group", "convolution_param", "group"},
    {"stride", "convolution_param", "stride"},
    {"num_output", "inner_product_param", "num_output"},
    {"biasterm", "inner_product_param", "bias_term"},
    {"pool", "pooling_param", "pool"},
    {"pad", "pooling_param", "pad"},
    {"kernelsize", "pooling_param", "kernel_size"},
    {"stride", "pooling_param", "stride"},
    {"dropout_ratio", "dropout_param", "dropout_ratio"},
    {"local_size", "lrn_param", "local_size"},
    {"alpha", "lrn_param", "alpha"},
    {"beta", "lrn_param", "beta"},
    {"k", "lrn_param", "k"},
    {"concat_dim", "concat_param", "concat_dim"},
    {"batchsize", "data_param", "batch_size"},
    {"cropsize", "transform_param", "crop_size"},
    {"meanfile", "transform_param", "mean_file"},
    {"scale", "transform_param", "scale"},
};

const TextField& field_of(const TextMessage& schema, std::string_view name) {
  const auto found =
      std::find_if(schema.fields.begin(), schema.fields.end(), [&](const TextField& f) { return f.name == name; });
  CHECK(found != schema.fields.end(), "{} has no field {}", schema.name, name);
  return *found;
}

/// The parameters of a layer of the first generation as a layer of today has them.
Message upgraded(const Message& old, ModelBytes& model) {
  std::string bytes;
  protozero::pbf_writer layer(bytes);
  for (const Moved& moved : kMoved) {
    if (!old.has(moved.old)) continue;
    const TextField& params = field_of(kLayer, moved.layer);
    const TextField& field = field_of(*params.message, moved.field);
    protozero::pbf_writer inner(layer, params.number);
    if (field.kind == TextKind::real32)
      inner.add_float(field.number, static_cast<float>(old.real(moved.old, 0)));
    else if (field.kind == TextKind::text)
      inner.add_string(field.number, std::string(old.text(moved.old)));
    else
      inner.add_int64(field.number, old.integer(moved.old, 0));
  }
  return {kLayer, model.keep(std::move(bytes)), model};
}

/// The parameters with more padding.
Message with_padding(const Message& params, int64_t pad, ModelBytes& model) {
  std::string bytes(params.bytes());
  protozero::pbf_writer layer(bytes);
  for (std::string_view name : {"convolution_param", "pooling_param"}) {
    const TextField& field = field_of(kLayer, name);
    protozero::pbf_writer inner(layer, field.number);
    inner.add_int64(field_of(*field.message, "pad").number, pad + params.message(name).integer("pad", 0));
  }
  return {kLayer, model.keep(std::move(bytes)), model};
}

/// Padding was a layer of its own in the first generation. Gives it to the layers that read it.
void fold_padding(std::vector<Layer>& layers, ModelBytes& model) {
  std::map<std::string_view, const Layer*> paddings;
  for (Layer& layer : layers) {
    if (layer.type == "padding") paddings[layer.tops.empty() ? "" : layer.tops[0]] = &layer;
    const auto padding = layer.bottoms.empty() ? paddings.end() : paddings.find(layer.bottoms[0]);
    if (padding == paddings.end() || &layer == padding->second) continue;
    const Layer& from = *padding->second;
    if (from.bottoms.size() != 1 || (layer.type != "Convolution" && layer.type != "Pooling"))
      fail(ErrorKind::invalid_model, model.name(),
           "padding '{}' is in front of '{}', which is no convolution or pooling", printable(from.name),
           printable(layer.name));
    layer.params = with_padding(layer.params, from.params.message("pooling_param").integer("pad", 0), model);
    layer.bottoms[0] = from.bottoms[0];
  }
  std::erase_if(layers, [](const Layer& layer) { return layer.type == "padding"; });
}

Layer read_layer(const Message& from) {
  Layer layer{from.text("name"), from.text("type"), from.texts("bottom"), from.texts("top"), from, from.line()};
  for (const Message& param : from.messages("param")) layer.param_names.push_back(param.text("name"));
  return layer;
}

Layer read_old_layer(const Message& from, ModelBytes& model) {
  Layer layer{from.text("name"), "", from.texts("bottom"), from.texts("top"), from, from.line(), from.texts("param")};
  if (!from.has("layer")) {
    layer.type = current_type(from.integer("type", 0));
    return layer;
  }
  const Message oldest = from.message("layer");
  layer.name = oldest.text("name");
  const std::string_view type = oldest.text("type"), now = current_type(type);
  layer.type = now.empty() ? type : now;
  layer.params = upgraded(oldest, model);
  return layer;
}

struct State {
  int64_t phase, level;
  std::vector<std::string_view> stages;
  bool has(std::string_view stage) const { return std::find(stages.begin(), stages.end(), stage) != stages.end(); }
};

bool holds(const Message& rule, const State& state) {
  if (rule.integer("phase", state.phase) != state.phase) return false;
  if (rule.integer("min_level", state.level) > state.level) return false;
  if (rule.integer("max_level", state.level) < state.level) return false;
  for (std::string_view stage : rule.texts("stage"))
    if (!state.has(stage)) return false;
  for (std::string_view stage : rule.texts("not_stage"))
    if (state.has(stage)) return false;
  return true;
}

bool is_included(const Message& layer, const State& state, const std::string& file) {
  const auto include = layer.messages("include"), exclude = layer.messages("exclude");
  if (!include.empty() && !exclude.empty())
    fail(ErrorKind::invalid_model, file, "line {}: a layer has rules to include it and rules to exclude it",
         layer.line());
  const auto hold = [&](const Message& rule) { return holds(rule, state); };
  if (!exclude.empty()) return std::none_of(exclude.begin(), exclude.end(), hold);
  return include.empty() || std::any_of(include.begin(), include.end(), hold);
}

std::vector<Input> declared_inputs(const Message& net, const std::string& file) {
  const auto names = net.texts("input");
  const auto shapes = net.messages("input_shape");
  const auto dims = net.integers("input_dim");
  constexpr size_t kOldRank = 4;
  if (!dims.empty() && !shapes.empty())
    fail(ErrorKind::invalid_model, file, "has input_dim and input_shape, of which one is enough");
  if (!dims.empty() && dims.size() != kOldRank * names.size())
    fail(ErrorKind::invalid_model, file, "has {} numbers input_dim, expected four for each of {} inputs", dims.size(),
         names.size());
  if (!shapes.empty() && shapes.size() != names.size())
    fail(ErrorKind::invalid_model, file, "has {} input_shape for {} inputs", shapes.size(), names.size());
  std::vector<Input> inputs;
  for (size_t i = 0; i < names.size(); ++i) {
    Input input{names[i], {}, !dims.empty() || !shapes.empty()};
    if (!shapes.empty()) input.dims = shapes[i].integers("dim");
    if (!dims.empty()) input.dims.assign(&dims[kOldRank * i], &dims[kOldRank * i] + kOldRank);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

void check(const Net& net) {
  constexpr size_t kMostLayers = 100'000;
  if (net.layers.size() > kMostLayers)
    fail(ErrorKind::invalid_model, net.bytes->name(), "has {} layers, expected at most {}", net.layers.size(),
         kMostLayers);
  if (net.layers.empty()) fail(ErrorKind::invalid_model, net.bytes->name(), "has no layer of the test phase");
}

}  // namespace

Net read_net(const std::string& path) {
  Net net;
  auto file = ModelBytes::open(path);
  const std::string_view wire = file->keep(text_to_wire(file->bytes(), kNet, file->name()));
  const Message whole(kNet, wire, *file);
  net.bytes = file;
  net.name = whole.text("name");
  net.inputs = declared_inputs(whole, file->name());
  const Message given = whole.message("state");
  const State state{given.integer("phase", 1), given.integer("level", 0), given.texts("stage")};
  const auto layers = whole.messages("layer"), old = whole.messages("layers");
  if (!layers.empty() && !old.empty())
    fail(ErrorKind::invalid_model, file->name(), "has layers of two generations, 'layer' and 'layers'");
  for (const Message& layer : layers)
    if (is_included(layer, state, file->name())) net.layers.push_back(read_layer(layer));
  for (const Message& layer : old)
    if (is_included(layer, state, file->name())) net.layers.push_back(read_old_layer(layer, *file));
  fold_padding(net.layers, *file);
  check(net);
  return net;
}

template <class Read>
void Message::each(uint32_t number, Read&& read) const {
  Wire wire(bytes_, schema_->name, *model_);
  while (wire.next())
    if (wire.field() == number)
      read(wire);
    else
      wire.skip();
}

uint32_t Message::number_of(std::string_view name) const {
  for (const TextField& field : schema_->fields)
    if (field.name == name) return field.number;
  return 0;
}

bool Message::has(std::string_view name) const {
  bool found = false;
  each(number_of(name), [&](Wire& wire) { found = true, wire.skip(); });
  return found;
}

int64_t Message::integer(std::string_view name, int64_t fallback) const {
  const std::vector<int64_t> all = integers(name);
  return all.empty() ? fallback : all.back();
}

double Message::real(std::string_view name, double fallback) const {
  const std::vector<float> all = reals(name);
  return all.empty() ? fallback : all.back();
}

std::string_view Message::text(std::string_view name) const {
  const std::vector<std::string_view> all = texts(name);
  return all.empty() ? std::string_view() : all.back();
}

std::vector<int64_t> Message::integers(std::string_view name) const {
  std::vector<int64_t> all;
  each(number_of(name), [&](Wire& wire) { wire.append_integers(all); });
  return all;
}

std::vector<float> Message::reals(std::string_view name) const {
  std::vector<float> all;
  each(number_of(name), [&](Wire& wire) { wire.append_reals(all); });
  return all;
}

std::vector<std::string_view> Message::texts(std::string_view name) const {
  std::vector<std::string_view> all;
  each(number_of(name), [&](Wire& wire) { all.push_back(wire.bytes()); });
  return all;
}

std::vector<Message> Message::messages(std::string_view name) const {
  std::vector<Message> all;
  each(number_of(name), [&](Wire& wire) { all.push_back({*field_of(*schema_, name).message, wire.bytes(), *model_}); });
  return all;
}

Message Message::message(std::string_view name) const {
  const TextMessage& schema = *field_of(number_of(name) != 0 ? *schema_ : kLayer, name).message;
  const std::vector<Message> parts = messages(name);
  if (parts.size() < 2) return {schema, parts.empty() ? std::string_view() : parts[0].bytes_, *model_};
  std::string joined;
  for (const Message& part : parts) joined += part.bytes_;
  model_->charge(joined.size());
  return {schema, model_->keep(std::move(joined)), *model_};
}

std::vector<std::string_view> Message::unknown() const {
  std::vector<std::string_view> names;
  if (schema_->unknown != 0) each(schema_->unknown, [&](Wire& wire) { names.push_back(wire.bytes()); });
  return names;
}

int64_t Message::line() const {
  int64_t line = 0;
  if (schema_->place != 0)
    each(schema_->place, [&](Wire& wire) {
      const int64_t place = wire.integer();
      if (line == 0) line = text_line(place);
    });
  return line;
}

}  // namespace cairn::caffe
