#include "model_json.h"

#include <algorithm>
#include <charconv>

#include "ir/text.h"
#include "model/om_file.h"

namespace cairn::cli {
namespace {

constexpr int kDeepest = 100;  // messages in messages

Json description_of(const Type& type) {
  Json dims = Json::array();
  for (const Dim& dim : type.shape.dims) dims.push_back(dim.size);
  return {{"dtype", to_string(type.dtype)}, {"shape", {{"dim", dims}}}, {"type", to_string(type)}};
}

Json graph_json(const Function& function) {
  std::unordered_map<const Value*, std::string> names;
  Json ops = Json::array();
  for (const auto& param : function.body.params) {
    names[param.get()] = param->name + ":0";
    ops.push_back(
        {{"name", param->name}, {"type", "Data"}, {"output_desc", Json::array({description_of(param->type)})}});
  }
  size_t counter = 0;
  for (const auto& node : function.body.nodes) {
    std::string name = node->results.empty() || node->result()->name.empty()
                           ? fmt::format("{}_{}", node->op->name, counter++)
                           : node->result()->name;
    Json inputs = Json::array(), input_desc = Json::array(), output_desc = Json::array(), attributes = Json::array();
    for (const Value* input : node->inputs) {
      inputs.push_back(names[input]);
      input_desc.push_back(description_of(input->type));
    }
    for (size_t i = 0; i < node->results.size(); ++i) {
      names[node->result(i)] = fmt::format("{}:{}", name, i);
      output_desc.push_back(description_of(node->result(i)->type));
    }
    for (const auto& [key, value] : node->attributes)
      if (!std::holds_alternative<Tensor>(value)) attributes.push_back({{"key", key}, {"value", to_string(value)}});
    ops.push_back({{"name", name},
                   {"type", node->op->name},
                   {"attr", attributes},
                   {"input", inputs},
                   {"input_desc", input_desc},
                   {"output_desc", output_desc}});
  }
  return {{"name", function.name}, {"op", ops}};
}

/// Text form of protocol buffers without a schema.
class TextDump {
 public:
  TextDump(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Json read() {
    Json message = fields(0);
    if (at_ < text_.size()) refuse("'}' without '{'");
    return message;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    fail(ErrorKind::invalid_model, fmt::format("{}: line {}", file_, line), "{}", what);
  }

  void skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (std::string_view(" \t\r\n,;").find(text_[at_]) != std::string_view::npos)
        ++at_;
      else
        return;
    }
  }
  bool take(char mark) {
    skip();
    if (at_ >= text_.size() || text_[at_] != mark) return false;
    ++at_;
    return true;
  }

  std::string_view word() {
    skip();
    size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  std::string_view("_.+-").find(text_[at_]) != std::string_view::npos))
      ++at_;
    if (at_ == start) refuse("expected a name or a number");
    return text_.substr(start, at_ - start);
  }

  std::string quoted() {
    char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_++];
    }
    if (at_ >= text_.size()) refuse("a text that never closes");
    ++at_;
    return value;
  }

  Json scalar() {
    skip();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return quoted();
    std::string_view text = word();
    int64_t whole = 0;
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), whole);
    if (code == std::errc() && end == text.data() + text.size()) return whole;
    double real = 0;
    auto [real_end, real_code] = std::from_chars(text.data(), text.data() + text.size(), real);
    if (real_code == std::errc() && real_end == text.data() + text.size()) return real;
    if (text == "true" || text == "false") return text == "true";
    return std::string(text);
  }

  static bool left_out(std::string_view name) {
    for (const char* each : {"data", "bt", "output", "data_offset", "workspace", "workspace_bytes", "memory_size",
                             "weight_size", "size", "quantize_factor"})
      if (name == each) return true;
    return false;
  }

  Json fields(int depth) {
    if (depth > kDeepest) refuse(fmt::format("more than {} messages in each other", kDeepest));
    Json message = Json::object();
    for (skip(); at_ < text_.size() && text_[at_] != '}'; skip()) {
      std::string name(word());
      bool colon = take(':');
      Json value;
      if (take('{')) {
        value = fields(depth + 1);
        if (!take('}')) refuse("'{' that never closes");
      } else if (colon) {
        value = scalar();
      } else {
        refuse(fmt::format("expected ':' or '{{' behind {}", name));
      }
      if (!left_out(name)) add(message, name, std::move(value));
    }
    return message;
  }

  static void add(Json& message, const std::string& name, Json value) {
    bool list = name == "op" || name == "graph" || name == "input" || name == "attr" || name == "input_desc" ||
                name == "output_desc" || name == "dim";
    if (!message.contains(name)) {
      message[name] = list ? Json::array({std::move(value)}) : std::move(value);
      return;
    }
    if (!message[name].is_array()) message[name] = Json::array({message[name]});
    message[name].push_back(std::move(value));
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
};

}  // namespace

Json module_json(const Module& module) {
  Json graphs = Json::array();
  for (const auto& function : module.functions) graphs.push_back(graph_json(*function));
  return {{"name", module.name}, {"version", kProducer}, {"graph", graphs}};
}

Json text_dump_json(std::string_view text, const std::string& file) {
  Json json = TextDump(text, file).read();
  if (!json.contains("graph") && !json.contains("op"))
    fail(ErrorKind::invalid_model, file, "has neither a graph nor an op: it is no text dump of a graph");
  return json;
}

}  // namespace cairn::cli
