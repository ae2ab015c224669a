#include "frontends/onnx/writer.h"

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <set>

#include "frontends/onnx/fields.h"
#include "frontends/onnx/initializers.h"

namespace cairn::onnx {
namespace {

constexpr size_t kMostBytes = (size_t{1} << 31) - 1;  // of a message

/// Copies the message's fields unchanged, except those for which `replace` returns other bytes.
template <class Replace>
std::string rewritten(std::string_view message, Replace&& replace) {
  std::string bytes;
  bytes.reserve(message.size());
  protozero::pbf_reader reader(message.data(), message.size());
  for (const char* begin = reader.data().data(); reader.next(); begin = reader.data().data()) {
    const uint32_t field = reader.tag();
    const bool replaced = replace(field, reader, bytes);
    if (!replaced) reader.skip();
    if (!replaced) bytes.append(begin, reader.data().data());
  }
  return bytes;
}

class InitializerWriter {
 public:
  InitializerWriter(const Model& model, const std::map<std::string, Tensor>& fresh)
      : model_(model), own_(model), fresh_(fresh) {}

  std::string run() {
    std::string bytes = rewritten(model_.bytes->bytes(), [&](uint32_t field, auto& reader, std::string& to) {
      if (field != field::model::graph) return false;
      const auto graph = reader.get_view();
      protozero::pbf_writer(to).add_message(field::model::graph, written_graph({graph.data(), graph.size()}));
      return true;
    });
    for (const auto& [name, tensor] : fresh_)
      if (!written_.contains(name))
        fail(ErrorKind::not_found, name, "is no initialiser of {}: its new value cannot be written there",
             model_.bytes->name());
    if (bytes.size() > kMostBytes)
      fail(ErrorKind::unsupported, model_.bytes->name(), "would have {} bytes, an ONNX file has at most {}",
           bytes.size(), kMostBytes);
    return bytes;
  }

 private:
  std::string written_graph(std::string_view graph) {
    size_t nodes = 0, initializers = 0;  // number seen so far, in the file's order
    std::string bytes = rewritten(graph, [&](uint32_t field, auto& reader, std::string& to) {
      if (field != field::graph::node && field != field::graph::initializer) return false;
      const auto view = reader.get_view();
      const std::string_view message(view.data(), view.size());
      protozero::pbf_writer writer(to);
      if (field == field::graph::initializer)
        writer.add_message(field, written_tensor(model_.graph.initializers.at(initializers++), std::nullopt));
      else if (const size_t node = nodes++; own_.gone.empty() || !own_.gone[node])
        writer.add_message(field, written_node(message, node));
      return true;
    });
    for (const auto& copy : own_.copies)
      protozero::pbf_writer(bytes).add_message(field::graph::initializer, written_tensor(*copy.original, copy.name));
    return bytes;
  }

  std::string written_node(std::string_view message, size_t node) const {
    if (own_.replacements.empty()) return std::string(message);
    size_t input = 0;
    return rewritten(message, [&](uint32_t field, auto& reader, std::string& to) {
      if (field != field::node::input) return false;
      const auto found = own_.replacements.find({node, input++});
      if (found == own_.replacements.end()) return false;
      reader.skip();
      protozero::pbf_writer(to).add_string(field, found->second->name);
      return true;
    });
  }

  /// `rename`: the name of a copy.
  std::string written_tensor(const TensorProto& proto, const std::optional<std::string>& rename) {
    const std::string name = clean(rename ? *rename : proto.name);
    auto fresh = fresh_.find(name);
    bool external = false;
    std::string bytes = rewritten(proto.bytes, [&](uint32_t field, auto& reader, std::string&) {
      using namespace field::tensor;  // NOLINT: the fields of this message
      external |= field == external_data;
      constexpr uint32_t kData[] = {float_data,  int32_data,  string_data,   int64_data,   raw_data,
                                    double_data, uint64_data, external_data, data_location};
      const bool data = std::find(std::begin(kData), std::end(kData), field) != std::end(kData);
      if (!data && (field != field::tensor::name || !rename)) return false;
      reader.skip();
      return true;
    });
    if (fresh == fresh_.end() && !external && !rename) return std::string(proto.bytes);
    const Tensor old = read_tensor(proto, model_, name);
    const Tensor& value = fresh == fresh_.end() ? old : fresh->second;
    if (value.type() != old.type())
      fail(ErrorKind::invalid_argument, name, "is {} in {}, the new value is {}", to_string(old.type()),
           model_.bytes->name(), to_string(value.type()));
    protozero::pbf_writer writer(bytes);
    if (rename) writer.add_string(field::tensor::name, *rename);
    writer.add_bytes(field::tensor::raw_data, static_cast<const char*>(value.data()), value.bytes());
    if (fresh != fresh_.end()) written_.insert(name);
    return bytes;
  }

  const Model& model_;
  const OwnInitializers own_;
  const std::map<std::string, Tensor>& fresh_;
  std::set<std::string> written_;
};

}  // namespace

std::string with_initializers(const Model& model, const std::map<std::string, Tensor>& fresh) {
  return InitializerWriter(model, fresh).run();
}

}  // namespace cairn::onnx
