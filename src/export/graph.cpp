#include "export/graph.h"

#include <numeric>
#include <protozero/pbf_writer.hpp>

#include "frontends/onnx/fields.h"
#include "frontends/onnx/model.h"
#include "ir/builder.h"
#include "ir/evaluate.h"
#include "model/om_file.h"

namespace cairn::onnx_export {

namespace {

namespace field = onnx::field;
constexpr int64_t kOperatorSet = 20, kLearningSet = 5, kFormat = 9;
constexpr size_t kLargest = (size_t{1} << 31) - 1;  // of a message

/// Where a tensor lies in another file.
struct InFile {
  std::string file;
  size_t offset = 0;
};

std::string tensor_bytes(const Name& name, const Tensor& tensor, const InFile& place = {}) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  for (const int64_t dim : tensor.dims()) writer.add_int64(field::tensor::dims, dim);
  writer.add_int32(field::tensor::data_type, onnx::type_of(tensor.dtype()));
  if (!name.empty()) writer.add_string(field::tensor::name, name);
  if (!place.file.empty()) {
    const auto entry = [&](const char* key, const std::string& value) {
      std::string pair;
      protozero::pbf_writer pair_writer(pair);
      pair_writer.add_string(field::entry::key, key), pair_writer.add_string(field::entry::value, value);
      writer.add_message(field::tensor::external_data, pair);
    };
    entry("location", place.file), entry("offset", std::to_string(place.offset));
    entry("length", std::to_string(tensor.bytes()));
    writer.add_int32(field::tensor::data_location, 1);
  } else if (tensor.dtype() == kString) {
    for (const std::string& text : tensor.values<std::string>()) writer.add_bytes(field::tensor::string_data, text);
  } else {
    writer.add_bytes(field::tensor::raw_data, static_cast<const char*>(tensor.data()), tensor.bytes());
  }
  return bytes;
}

std::string setting_bytes(const char* name, const Setting& setting) {
  enum : int32_t {
    real = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    integers = 7
  };  // AttributeProto.AttributeType
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_string(field::attribute::name, name);
  int32_t type = integer;
  if (const auto* i = std::get_if<int64_t>(&setting)) writer.add_int64(field::attribute::i, *i);
  if (const auto* f = std::get_if<float>(&setting)) writer.add_float(field::attribute::f, *f), type = real;
  if (const auto* s = std::get_if<std::string>(&setting)) writer.add_bytes(field::attribute::s, *s), type = text;
  if (const auto* t = std::get_if<Tensor>(&setting))
    writer.add_message(field::attribute::t, tensor_bytes("", *t)), type = tensor;
  if (const auto* g = std::get_if<Subgraph>(&setting)) writer.add_message(field::attribute::g, g->bytes), type = graph;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&setting)) {
    for (const int64_t each : *list) writer.add_int64(field::attribute::ints, each);
    type = integers;
  }
  writer.add_int32(field::attribute::type, type);
  return bytes;
}

std::string type_bytes(const Type& type) {
  std::string tensor, shape, bytes;
  protozero::pbf_writer tensor_writer(tensor), shape_writer(shape), writer(bytes);
  if (type.kind == Type::Kind::list) {
    protozero::pbf_writer(tensor).add_message(field::sequence_type::elem_type, type_bytes(type.elements[0]));
    writer.add_message(field::type::sequence, tensor);
    return bytes;
  }
  tensor_writer.add_int32(field::tensor_type::elem_type, onnx::type_of(type.dtype));
  for (const Dim& dim : type.shape.dims) {
    std::string one;
    protozero::pbf_writer dim_writer(one);
    if (dim.known()) dim_writer.add_int64(field::dimension::value, dim.size);
    if (!dim.known() && dim.symbol) dim_writer.add_string(field::dimension::param, *dim.symbol);
    shape_writer.add_message(field::shape::dim, one);
  }
  if (type.shape.ranked) tensor_writer.add_message(field::tensor_type::shape, shape);
  writer.add_message(field::type::tensor, tensor);
  return bytes;
}

std::string port_bytes(const Name& name, const Type& type) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_string(field::value_info::name, name);
  writer.add_message(field::value_info::type, type_bytes(type));
  return bytes;
}

bool is_port(const Type& type) { return type.is_tensor() && onnx::type_of(type.dtype) != onnx::kUndefined; }

}  // namespace

std::vector<int64_t> to_channels_first(size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return order;
}

std::vector<int64_t> to_channels_last(size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

Graph::Graph(const Module& module) : module_(module), whole_(std::make_shared<Whole>()) {
  for (const std::string& name : module.main().result_names) whole_->names.insert(name);
  for (const auto& param : module.main().body.params) {
    if (param->type.kind == Type::Kind::rng) continue;
    if (!is_port(param->type))
      fail(ErrorKind::unsupported, param->name, "{} is no type of ONNX", to_string(param->type));
    whole_->names.insert(param->name), places_[param.get()].plain = param->name;
  }
}

Graph::Graph(Graph& around) : module_(around.module_), around_(&around), base_(around.base_), whole_(around.whole_) {}

Name Graph::unique(const std::string& base) {
  std::string name = base;
  for (size_t i = 1; !whole_->names.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

void Graph::begin(const Node& node) {
  base_ = node.sources.empty() ? "" : module_.sources[node.sources.front()].name;
  if (base_.empty()) base_ = (around_ ? around_->base_ + "/" : "") + node.op->name;
}

std::vector<Name> Graph::add(const char* op, std::vector<Name> inputs, const Settings& settings, size_t results) {
  Written& node = nodes_.emplace_back();
  constexpr std::string_view kLearning = "ai.onnx.ml:";
  if (std::string_view(op).starts_with(kLearning))
    op += kLearning.size(), node.domain = kLearning.substr(0, kLearning.size() - 1), whole_->learning = true;
  node.op = op, node.inputs = std::move(inputs);
  for (size_t i = 0; i < results; ++i) node.outputs.push_back(unique(base_));
  node.name = node.outputs[0];
  protozero::pbf_writer writer(node.settings);
  for (const auto& [name, setting] : settings) writer.add_message(field::node::attribute, setting_bytes(name, setting));
  return node.outputs;
}

Name Graph::constant(const Tensor& value) {
  if (onnx::type_of(value.dtype()) == onnx::kUndefined)
    fail(ErrorKind::unsupported, base_, "{} is no type of ONNX", to_string(value.dtype()));
  if (around_) return around_->constant(value);
  constants_.emplace_back(unique(base_ + "/constant"), value);
  return constants_.back().first;
}

Name Graph::number(double value, DType dtype) {
  Block block;
  return constant(*constant_of(Builder(block).number(value, dtype)));
}

Name Graph::plain(const Value* value) {
  Place& place = places_[value];
  if (!place.plain.empty()) return place.plain;
  if (const Tensor* tensor = constant_of(value)) return place.plain = constant(*tensor);
  CHECK(!place.first.empty(), "{}", value->name);
  return place.plain = one("Transpose", {place.first}, {{"perm", to_channels_last(value->type.shape.rank())}});
}

Name Graph::channels_first(const Value* value) {
  if (const Name& known = places_[value].first; !known.empty()) return known;
  const std::vector<int64_t> order = to_channels_first(value->type.shape.rank());
  if (const Tensor* tensor = constant_of(value))
    return places_[value].first = constant(evaluate("transpose", {*tensor}, {{"permutation", order}}));
  const Name from = plain(value);
  return places_[value].first = one("Transpose", {from}, {{"perm", order}});
}

bool Graph::only_channels_first(const Value* value) const {
  const auto found = places_.find(value);
  return found != places_.end() && found->second.plain.empty() && !found->second.first.empty();
}

/// A result of a node takes the output's name; an input, a constant or a second output is passed on.
void Graph::name_output(const Value* value, const Name& wanted) {
  const Name name = plain(value);
  for (Written& node : nodes_) {
    const auto found = std::find(node.outputs.begin(), node.outputs.end(), name);
    if (found == node.outputs.end()) continue;
    const auto& all = module_.main().result_names;
    if (std::find(all.begin(), all.end(), name) != all.end()) break;
    *found = wanted;
    for (Written& user : nodes_) std::replace(user.inputs.begin(), user.inputs.end(), name, wanted);
    for (auto& [each, place] : places_) {
      if (place.plain == name) place.plain = wanted;
      if (place.first == name) place.first = wanted;
    }
    return;
  }
  base_ = wanted + "/output";
  one("Identity", {name});
  nodes_.back().outputs[0] = wanted;
}

std::string Graph::node_bytes() const {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  for (const Written& node : nodes_) {
    std::string one;
    protozero::pbf_writer node_writer(one);
    for (const Name& input : node.inputs) node_writer.add_string(field::node::input, input);
    for (const Name& output : node.outputs) node_writer.add_string(field::node::output, output);
    node_writer.add_string(field::node::name, node.name);
    node_writer.add_string(field::node::op_type, node.op);
    if (!node.domain.empty()) node_writer.add_string(field::node::domain, node.domain);
    one += node.settings;
    writer.add_message(field::graph::node, one);
  }
  return bytes;
}

Subgraph Graph::within(const std::vector<Port>& inputs, const std::vector<Port>& results) {
  std::vector<Port> passed;
  for (const auto& [name, type] : results) passed.emplace_back(one("Identity", {name}), type);
  std::string bytes = node_bytes();
  protozero::pbf_writer writer(bytes);
  writer.add_string(field::graph::name, base_);
  for (const auto& [name, type] : inputs) writer.add_message(field::graph::input, port_bytes(name, *type));
  for (const auto& [name, type] : passed) writer.add_message(field::graph::output, port_bytes(name, *type));
  return {std::move(bytes)};
}

/// The results that are written, with their names: outputs, and the new content of variables.
std::vector<std::pair<const Value*, Name>> Graph::results() const {
  const Function& main = module_.main();
  std::vector<std::pair<const Value*, Name>> all;
  for (size_t i = 0; i < main.body.results.size(); ++i) {
    const auto update = std::ranges::find(main.updates, i, &std::pair<size_t, size_t>::first);
    const Value* result = main.body.results[i];
    if (result->type.kind == Type::Kind::rng) continue;
    if (!is_port(result->type))
      fail(ErrorKind::unsupported, main.result_names[i], "{} is no type of ONNX", to_string(result->type));
    const bool changes = update != main.updates.end();
    all.emplace_back(result, changes ? main.body.params[update->second]->name + ":new" : main.result_names[i]);
  }
  return all;
}

std::string Graph::graph_bytes(const std::string& data_file, bool external, std::vector<Tensor>& data) {
  constexpr size_t kSmall = 1024;  // stays in the model
  const auto all = results();
  for (const auto& [value, name] : all) name_output(value, name);
  std::string bytes = node_bytes();
  size_t total = bytes.size(), offset = 0;
  for (const auto& [name, tensor] : constants_) total += tensor.bytes() + kSmall;
  external = external || total > kLargest;
  protozero::pbf_writer writer(bytes);
  writer.add_string(field::graph::name, module_.name);
  for (const auto& [name, tensor] : constants_) {
    InFile place;
    if (external && tensor.bytes() >= kSmall && tensor.dtype() != kString) {
      place = {data_file, offset};
      data.push_back(tensor);
      offset += (tensor.bytes() + kOnnxAlignment - 1) / kOnnxAlignment * kOnnxAlignment;
    }
    writer.add_message(field::graph::initializer, tensor_bytes(name, tensor, place));
  }
  if (bytes.size() > kLargest)
    fail(ErrorKind::unsupported, "", "the model is larger than the 2 GB that an ONNX file holds, without its weights");
  for (const auto& param : module_.main().body.params)
    if (param->type.kind != Type::Kind::rng)
      writer.add_message(field::graph::input, port_bytes(param->name, param->type));
  for (const auto& [value, name] : all) writer.add_message(field::graph::output, port_bytes(name, value->type));
  return bytes;
}

OnnxModel Graph::model(const std::string& data_file, bool external) {
  OnnxModel model;
  const std::string graph = graph_bytes(data_file, external, model.data);
  protozero::pbf_writer writer(model.bytes);
  writer.add_int64(field::model::ir_version, kFormat);
  writer.add_string(field::model::producer_name, "cairn");
  writer.add_string(field::model::producer_version, std::string(kProducer).substr(sizeof "cairn"));
  writer.add_message(field::model::graph, graph);
  const auto import = [&](const char* domain, int64_t version) {
    std::string set;
    protozero::pbf_writer set_writer(set);
    set_writer.add_string(field::opset::domain, domain), set_writer.add_int64(field::opset::version, version);
    writer.add_message(field::model::opset_import, set);
  };
  import("", kOperatorSet);
  if (whole_->learning) import("ai.onnx.ml", kLearningSet);
  return model;
}

}  // namespace cairn::onnx_export
