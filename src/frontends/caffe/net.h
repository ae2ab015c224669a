// The layers of a Caffe net for inference, whatever generation of the format its file is in.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/caffe/schema.h"
#include "frontends/wire.h"

namespace cairn::caffe {

/// The bytes of a message, read by the names of its fields. Of a repeated field single access gives the last value; of
/// messages all together, as protocol buffers join them. A field that the message's generation lacks is not there.
class Message {
 public:
  Message(const TextMessage& schema, std::string_view bytes, ModelBytes& model)
      : schema_(&schema), bytes_(bytes), model_(&model) {}

  bool has(std::string_view field) const;
  int64_t integer(std::string_view field, int64_t fallback) const;
  double real(std::string_view field, double fallback) const;
  bool flag(std::string_view field, bool fallback) const { return integer(field, fallback) != 0; }
  std::string_view text(std::string_view field) const;
  std::vector<int64_t> integers(std::string_view field) const;
  std::vector<float> reals(std::string_view field) const;
  std::vector<std::string_view> texts(std::string_view field) const;
  Message message(std::string_view field) const;
  std::vector<Message> messages(std::string_view field) const;
  std::string_view bytes() const { return bytes_; }
  /// Names in its text that are no fields.
  std::vector<std::string_view> unknown() const;
  /// The line of its first field; 0 without.
  int64_t line() const;

 private:
  template <class Read>
  void each(uint32_t number, Read&& read) const;
  uint32_t number_of(std::string_view field) const;

  const TextMessage* schema_;
  std::string_view bytes_;
  ModelBytes* model_;
};

struct Layer {
  std::string_view name, type;
  std::vector<std::string_view> bottoms, tops;
  Message params;
  int64_t line = 0;
  std::vector<std::string_view> param_names = {};  // layers share the parameters that they name alike
};

struct Input {
  std::string_view name;
  std::vector<int64_t> dims;
  bool ranked = true;
};

struct Net {
  std::shared_ptr<ModelBytes> bytes;
  std::string_view name;
  std::vector<Input> inputs;  // that the net declares itself; layers may make more
  std::vector<Layer> layers;  // those of the test phase, in their order
};

/// Throws Error invalid_model.
Net read_net(const std::string& path);

}  // namespace cairn::caffe
