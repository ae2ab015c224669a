#include "frontends/onnx/writer.h"

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <set>

#include "frontends/onnx/fields.h"

namespace cairn::onnx {
namespace {

constexpr size_t kMostBytes = (size_t{1} << 31) - 1;  // of a message

/// The message's fields as they are, but for those of which `replace` makes bytes of its own.
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
  InitializerWriter(const Model& model, const std::map<std::string, Tensor>& fresh) : model_(model), fresh_(fresh) {
    for (const TensorProto& tensor : model.graph.initializers) protos_[tensor.bytes.data()] = &tensor;
  }

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
    return rewritten(graph, [&](uint32_t field, auto& reader, std::string& to) {
      if (field != field::graph::initializer) return false;
      const auto view = reader.get_view();
      protozero::pbf_writer(to).add_message(field, written_tensor({view.data(), view.size()}));
      return true;
    });
  }

  std::string written_tensor(std::string_view message) {
    const auto known = protos_.find(message.data());
    const std::string name = known == protos_.end() ? "" : clean(known->second->name);
    auto fresh = fresh_.find(name);
    bool external = false;
    const std::string kept = rewritten(message, [&](uint32_t field, auto& reader, std::string&) {
      using namespace field::tensor;  // NOLINT: the fields of this message
      external |= field == external_data;
      constexpr uint32_t kData[] = {float_data,  int32_data,  string_data,   int64_data,   raw_data,
                                    double_data, uint64_data, external_data, data_location};
      if (std::find(std::begin(kData), std::end(kData), field) == std::end(kData)) return false;
      reader.skip();
      return true;
    });
    if (known == protos_.end() || (fresh == fresh_.end() && !external)) return std::string(message);
    const Tensor old = read_tensor(*known->second, model_, name);
    const Tensor& value = fresh == fresh_.end() ? old : fresh->second;
    if (value.type() != old.type())
      fail(ErrorKind::invalid_argument, name, "is {} in {}, the new value is {}", to_string(old.type()),
           model_.bytes->name(), to_string(value.type()));
    std::string bytes = kept;
    protozero::pbf_writer(bytes).add_bytes(field::tensor::raw_data, static_cast<const char*>(value.data()),
                                           value.bytes());
    if (fresh != fresh_.end()) written_.insert(name);
    return bytes;
  }

  const Model& model_;
  const std::map<std::string, Tensor>& fresh_;
  std::map<const char*, const TensorProto*> protos_;  // by where they lie in the file
  std::set<std::string> written_;
};

}  // namespace

std::string with_initializers(const Model& model, const std::map<std::string, Tensor>& fresh) {
  return InitializerWriter(model, fresh).run();
}

}  // namespace cairn::onnx
