// Encoding of GraphDef and of single attribute values. Weights are written without copying them.
#include <algorithm>
#include <limits>
#include <protozero/pbf_writer.hpp>

#include "frontends/tensorflow/fields.h"
#include "frontends/tensorflow/functions.h"
#include "support/files.h"

namespace cairn::tensorflow {
namespace {

using protozero::pbf_writer;

protozero::data_view view(std::string_view text) { return {text.data(), text.size()}; }

void put_varint(std::string& to, uint64_t value) { protozero::add_varint_to_buffer(&to, value); }

void put_head(std::string& to, uint32_t field, uint64_t length) {
  put_varint(to, (field << 3) | static_cast<uint32_t>(protozero::pbf_wire_type::length_delimited));
  put_varint(to, length);
}

void put_entry(pbf_writer& to, uint32_t field, std::string_view key, std::string_view value) {
  pbf_writer entry(to, field);
  entry.add_bytes(field::map_entry::key, view(key));
  entry.add_bytes(field::map_entry::value, view(value));
}

/// Collects output in order: small texts are owned, payloads are pointed at.
class Pieces {
 public:
  void text(std::string piece) {
    total_ += piece.size();
    if (!pieces_.empty() && !pieces_.back().owned.empty())
      pieces_.back().owned += piece;
    else
      pieces_.push_back({std::move(piece), {}});
  }
  void payload(std::string_view piece) {
    total_ += piece.size();
    pieces_.push_back({{}, piece});
  }
  uint64_t total() const { return total_; }
  template <class Sink>
  void each(Sink&& sink) const {
    for (const Piece& piece : pieces_) sink(piece.owned.empty() ? piece.view : std::string_view(piece.owned));
  }

 private:
  struct Piece {
    std::string owned;
    std::string_view view;
  };
  std::vector<Piece> pieces_;
  uint64_t total_ = 0;
};

/// Writes a node; `spell` gives the text of each input.
template <class Spell>
void put_node(Pieces& to, uint32_t field, const Node& node, Spell&& spell) {
  std::string body;
  pbf_writer writer(body);
  writer.add_string(field::node_def::name, view(node.name));
  writer.add_string(field::node_def::op, view(node.op));
  for (Edge input : node.inputs) writer.add_string(field::node_def::input, spell(input));
  if (!node.device.empty()) writer.add_string(field::node_def::device, view(node.device));
  const Attr* large = nullptr;
  for (const Attr& attr : node.attrs) {
    if (attr.payload.empty()) {
      put_entry(writer, field::node_def::attr, attr.name, attr.value);
      continue;
    }
    CHECK(large == nullptr, "node {} has two payloads", node.name);
    large = &attr;
  }
  std::string head;
  if (large == nullptr) {
    put_head(head, field, body.size());
    return to.text(head + body);
  }
  // attr entry { key, value: AttrValue { tensor { head, content } } }, from the inside out.
  std::string tensor(large->value);
  put_head(tensor, field::tensor::content, large->payload.size());
  std::string value;
  put_head(value, field::attr_value::tensor, tensor.size() + large->payload.size());
  std::string entry;
  put_head(entry, field::map_entry::key, large->name.size());
  entry += large->name;
  put_head(entry, field::map_entry::value, value.size() + tensor.size() + large->payload.size());
  uint64_t entry_bytes = entry.size() + value.size() + tensor.size() + large->payload.size();
  put_head(body, field::node_def::attr, entry_bytes);
  put_head(head, field, body.size() + entry_bytes);
  to.text(head + body + entry + value + tensor);
  to.payload(large->payload);
}

void put_arg(pbf_writer& to, uint32_t field, const FunctionArg& arg) {
  pbf_writer writer(to, field);
  writer.add_string(field::arg_def::name, view(arg.name));
  if (arg.type != kDtInvalid) writer.add_enum(field::arg_def::type, arg.type);
  if (!arg.type_attr.empty()) writer.add_string(field::arg_def::type_attr, view(arg.type_attr));
  if (!arg.number_attr.empty()) writer.add_string(field::arg_def::number_attr, view(arg.number_attr));
  if (!arg.type_list_attr.empty()) writer.add_string(field::arg_def::type_list_attr, view(arg.type_list_attr));
}

std::string graph_input(const std::vector<Node>& nodes, Edge input) {
  if (input.is_control()) return fmt::format("^{}", nodes[input.node].name);
  return input.port == 0 ? std::string(nodes[input.node].name) : tensor_name(nodes, input);
}

/// The text of an input in a function body, where results are identified by name.
std::string body_input(const std::vector<Node>& nodes, Edge input, const Library& library) {
  const Node& node = nodes[input.node];
  if (input.is_control() || node.op == "_Arg") return graph_input(nodes, input);
  const std::vector<std::string_view> names = result_names(node, library);
  if (names.size() == 1 && names[0].empty())
    return fmt::format("{}:{}:{}", node.name, node.result.empty() ? "output" : node.result, input.port);
  if (static_cast<size_t>(input.port) >= names.size())
    fail(ErrorKind::invalid_model, printable(node.name), "has {} results, {} is read", names.size(), input.port);
  const auto last = names.begin() + input.port;
  return fmt::format("{}:{}:{}", node.name, *last, last - std::find(names.begin(), last, *last));
}

Pieces encode_function(const FunctionDef& function, const Library& library) {
  Pieces pieces;
  if (!function.raw.empty()) {
    pieces.payload(function.raw);
    return pieces;
  }
  std::string text;
  pbf_writer writer(text);
  {
    pbf_writer signature(writer, field::function_def::signature);
    signature.add_string(field::op_def::name, view(function.name));
    for (const FunctionArg& arg : function.inputs) put_arg(signature, field::op_def::input_arg, arg);
    for (const FunctionArg& arg : function.outputs) put_arg(signature, field::op_def::output_arg, arg);
    for (const auto& [name, node] : function.control_returns)
      signature.add_string(field::op_def::control_output, view(name));
  }
  auto spell = [&](Edge input) { return body_input(function.nodes, input, library); };
  for (const FunctionArg& output : function.outputs)
    put_entry(writer, field::function_def::ret, output.name, spell(output.edge));
  for (const auto& [name, node] : function.control_returns)
    put_entry(writer, field::function_def::control_ret, name, function.nodes[node].name);
  for (const Attr& attr : function.attrs) put_entry(writer, field::function_def::attr, attr.name, attr.value);
  pieces.text(text);
  for (const Node& node : function.nodes)
    if (node.op != "_Arg") put_node(pieces, field::function_def::node, node, spell);
  return pieces;
}

Pieces encode_pieces(const GraphDef& graph) {
  Pieces pieces;
  for (const Node& node : graph.nodes)
    put_node(pieces, field::graph_def::node, node, [&](Edge input) { return graph_input(graph.nodes, input); });
  if (!graph.functions.empty()) {
    Pieces library;
    const Library functions(graph);
    for (const FunctionDef& function : graph.functions) {
      Pieces one = encode_function(function, functions);
      std::string head;
      put_head(head, field::library::function, one.total());
      library.text(head);
      one.each([&](std::string_view piece) { library.text(std::string(piece)); });
    }
    std::string head;
    put_head(head, field::graph_def::library, library.total());
    pieces.text(head);
    library.each([&](std::string_view piece) { pieces.text(std::string(piece)); });
  }
  std::string text;
  pbf_writer writer(text);
  pbf_writer versions(writer, field::graph_def::versions);
  versions.add_int32(field::version_def::producer, graph.producer);
  if (graph.min_consumer != 0) versions.add_int32(field::version_def::min_consumer, graph.min_consumer);
  versions.commit();
  pieces.text(text);
  return pieces;
}

/// The bytes of a message that `fill` writes. Nested messages are made this way because pbf_writer leaves empty ones out,
/// and the shape of a scalar is one.
template <class Fill>
std::string message(Fill&& fill) {
  std::string text;
  pbf_writer writer(text);
  fill(writer);
  return text;
}

std::string shape_message(const ShapeProto& shape) {
  return message([&](pbf_writer& writer) {
    for (int64_t size : shape.dims)
      writer.add_message(field::tensor_shape::dim,
                         message([&](pbf_writer& dim) { dim.add_int64(field::dim::size, size); }));
    if (shape.unknown_rank) writer.add_bool(field::tensor_shape::unknown_rank, true);
  });
}

template <class Fill>
std::string list_attr(Fill&& fill) {
  return message([&](pbf_writer& writer) { writer.add_message(field::attr_value::list, message(fill)); });
}

}  // namespace

std::string encode(const GraphDef& graph) {
  std::string bytes;
  encode_pieces(graph).each([&](std::string_view piece) { bytes += piece; });
  return bytes;
}

void write_graph_def(const GraphDef& graph, const std::string& path) {
  Pieces pieces = encode_pieces(graph);
  if (pieces.total() > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::unsupported, path, "the graph takes {} bytes, and a GraphDef file can hold 2147483647",
         pieces.total());
  write_file(path, [&](const FileSink& sink) { pieces.each(sink); });
}

std::string attr_type(DataType type) {
  return message([&](pbf_writer& writer) { writer.add_enum(field::attr_value::type, type); });
}

std::string attr_types(const std::vector<DataType>& types) {
  return list_attr([&](pbf_writer& list) {
    std::vector<int32_t> numbers(types.begin(), types.end());
    list.add_packed_enum(field::list_value::type, numbers.begin(), numbers.end());
  });
}

std::string attr_shapes(const std::vector<ShapeProto>& shapes) {
  return list_attr([&](pbf_writer& list) {
    for (const ShapeProto& shape : shapes) list.add_message(field::list_value::shape, shape_message(shape));
  });
}

std::string attr_function(std::string_view name) {
  return message([&](pbf_writer& writer) {
    pbf_writer function(writer, field::attr_value::func);
    function.add_string(field::name_attr_list::name, view(name));
  });
}

std::string attr_functions(const std::vector<std::string_view>& names) {
  return list_attr([&](pbf_writer& list) {
    for (std::string_view name : names) {
      pbf_writer function(list, field::list_value::func);
      function.add_string(field::name_attr_list::name, view(name));
    }
  });
}

Attr attr_tensor(ModelBytes& model, std::string_view name, DataType type, const std::vector<int64_t>& dims,
                 std::string_view content) {
  std::string head = message([&](pbf_writer& writer) {
    writer.add_enum(field::tensor::dtype, type);
    writer.add_message(field::tensor::shape, shape_message({false, dims}));
  });
  if (!content.empty()) return {name, model.keep(std::move(head)), content};
  std::string value = message([&](pbf_writer& writer) { writer.add_message(field::attr_value::tensor, head); });
  return {name, model.keep(std::move(value))};
}

Attr attr_texts(ModelBytes& model, std::string_view name, const std::vector<int64_t>& dims,
                const std::vector<std::string>& texts) {
  std::string tensor = message([&](pbf_writer& writer) {
    writer.add_enum(field::tensor::dtype, kDtString);
    writer.add_message(field::tensor::shape, shape_message({false, dims}));
    for (const std::string& text : texts) writer.add_bytes(field::tensor::string_val, text);
  });
  std::string value = message([&](pbf_writer& writer) { writer.add_message(field::attr_value::tensor, tensor); });
  return {name, model.keep(std::move(value))};
}

}  // namespace cairn::tensorflow
