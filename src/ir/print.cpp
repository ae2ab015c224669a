// Printer of the text form.
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "ir/text.h"

namespace cairn {

namespace {

bool bare_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '/' || c == '-' || c == '$';
}

bool bare(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), bare_char); }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', static_cast<char>(c)};
    else if (c == '\n')
      out += "\\n";
    else if (c < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", c);
    else
      out += static_cast<char>(c);
  }
  return out + '"';
}

std::string word(std::string_view text) { return bare(text) ? std::string(text) : quoted(text); }

std::string number(double value) {
  if (value != value) {
    uint64_t bits = std::bit_cast<uint64_t>(value);
    return bits == 0x7ff8000000000000 ? "nan" : fmt::format("bits(0x{:x})", bits);
  }
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string number(float value) {
  if (value != value) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    return bits == 0x7fc00000 ? "nan" : fmt::format("bits(0x{:x})", bits);
  }
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

// Numbers of up to 32 bits go through float, which holds every f16 and bf16 exactly.
std::string element(const Tensor& tensor, size_t i) {
  DType dtype = tensor.dtype();
  if (dtype.kind == DType::Kind::string) return quoted(tensor.values<std::string>()[i]);
  if (dtype == kBool) return tensor.values<uint8_t>()[i] ? "true" : "false";
  if (dtype == kF32) return number(tensor.values<float>()[i]);
  if (dtype == kF64) return number(tensor.values<double>()[i]);
  if (dtype == kF16) return fmt::format("0x{:x}", tensor.values<uint16_t>()[i]);
  if (dtype == kBF16) return fmt::format("0x{:x}", tensor.values<uint16_t>()[i]);
  if (dtype == kU64) return fmt::format("{}", tensor.values<uint64_t>()[i]);
  Tensor one = Tensor::view(dtype, {}, static_cast<const char*>(tensor.data()) + i * dtype.size(), nullptr);
  return fmt::format("{}", one.as_i64()[0]);
}

bool writable(DType dtype) { return dtype.bits >= 8 || dtype.kind == DType::Kind::string ? dtype != kC64 : false; }

template <class T, class F>
std::string list(const std::vector<T>& values, F&& text) {
  std::vector<std::string> parts;
  for (const T& value : values) parts.push_back(text(value));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  ModuleText take() { return {std::move(out_), std::move(weights_)}; }

  void module(const Module& module) {
    sources_ = &module.sources;
    out_ += fmt::format("module @{} {{\n", word(module.name));
    for (const auto& [key, value] : module.metadata)
      out_ += fmt::format("  metadata {} = {}\n", word(key), quoted(value));
    if (!module.optimised_by.empty()) out_ += fmt::format("  optimised_by {}\n", quoted(module.optimised_by));
    for (const std::string& pass : module.disabled_passes) out_ += fmt::format("  disabled_pass {}\n", quoted(pass));
    if (module.keep_memory) out_ += "  keep_memory\n";
    for (const auto& [name, state] : module.random_states)
      out_ += fmt::format("  random {} = {} {} {}\n", quoted(name), state[0], state[1], state[2]);
    for (size_t i = 0; i < module.sources.size(); ++i) {
      const Source& source = module.sources[i];
      out_ += fmt::format("  source {} = {} {} {} {}\n", i, quoted(source.framework), quoted(source.name),
                          quoted(source.op), quoted(source.location));
    }
    for (const auto& [id, removal] : module.removed)
      out_ += fmt::format("  removed {} = {}\n", id, quoted(to_string(removal)));
    for (const auto& each : module.functions) function(*each, 1);
    out_ += "}\n";
  }

  void function(const Function& function, int depth) {
    names_.clear();
    used_.clear();
    reserved_.clear();
    counter_ = 0;
    reserve(function.body);
    std::vector<std::string> results;
    for (size_t i = 0; i < function.body.results.size(); ++i)
      results.push_back(fmt::format("%{}: {}", word(i < function.result_names.size() ? function.result_names[i] : ""),
                                    to_string(function.body.results[i]->type)));
    indent(depth);
    out_ += fmt::format("func @{}({}) -> ({})", word(function.name), params(function.body), fmt::join(results, ", "));
    if (!function.updates.empty()) {
      std::vector<std::string> updates;
      for (auto [result, param] : function.updates) updates.push_back(fmt::format("{} = {}", result, param));
      out_ += fmt::format(" updates [{}]", fmt::join(updates, ", "));
    }
    out_ += " {\n";
    block(function.body, depth + 1, "return");
    indent(depth);
    out_ += "}\n";
  }

  void node(const Node& node, int depth) {
    indent(depth);
    std::vector<std::string> parts;
    for (const auto& result : node.results) parts.push_back(name(result.get()));
    if (!parts.empty()) out_ += fmt::format("{} = ", fmt::join(parts, ", "));
    out_ += node.op->name;
    parts.clear();
    for (const Value* input : node.inputs) parts.push_back(name(input));
    if (!parts.empty()) out_ += fmt::format(" {}", fmt::join(parts, ", "));
    parts.clear();
    for (const auto& [key, value] : node.attributes) parts.push_back(fmt::format("{} = {}", key, attribute(value)));
    if (!parts.empty()) out_ += fmt::format(" {{{}}}", fmt::join(parts, ", "));
    parts.clear();
    for (const auto& result : node.results) parts.push_back(to_string(result->type));
    if (!parts.empty()) out_ += fmt::format(" : {}", fmt::join(parts, ", "));
    sources(node);
    out_ += '\n';
    for (const auto& region : node.regions) {
      indent(depth + 1);
      out_ += fmt::format("region({}) {{\n", params(*region));
      block(*region, depth + 2, "yield");
      indent(depth + 1);
      out_ += "}\n";
    }
  }

  std::string attribute(const Attribute& value) {
    return std::visit(
        [this](const auto& v) -> std::string {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, bool>)
            return v ? "true" : "false";
          else if constexpr (std::is_same_v<T, int64_t>)
            return std::to_string(v);
          else if constexpr (std::is_same_v<T, double>)
            return number(v);
          else if constexpr (std::is_same_v<T, std::string>)
            return word(v);
          else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
            return fmt::format("[{}]", fmt::join(v, ", "));
          else if constexpr (std::is_same_v<T, std::vector<double>>)
            return list(v, [](double x) { return number(x); });
          else if constexpr (std::is_same_v<T, std::vector<std::string>>)
            return list(v, [](const std::string& x) { return quoted(x); });
          else if constexpr (std::is_same_v<T, FunctionName>)
            return "@" + word(v.name);
          else if constexpr (std::is_same_v<T, Tensor>)
            return tensor(v);
          else
            return to_string(v);
        },
        value);
  }

 private:
  std::string tensor(const Tensor& value) {
    std::string type = to_string(value.type());
    if (!writable(value.dtype()) ||
        (static_cast<size_t>(value.count()) > options_.inline_elements && value.dtype().kind != DType::Kind::string))
      return fmt::format("{} @weights[{}]", type, weight(value));
    std::vector<std::string> elements;
    for (size_t i = 0; i < static_cast<size_t>(value.count()); ++i) elements.push_back(element(value, i));
    return fmt::format("{} ({})", type, fmt::join(elements, ", "));
  }

  size_t weight(const Tensor& value) {
    std::string_view bytes(static_cast<const char*>(value.data()), value.bytes());
    auto [first, last] = by_hash_.equal_range(std::hash<std::string_view>()(bytes));
    for (; first != last; ++first)
      if (weights_[first->second].same_bits(value)) return first->second;
    by_hash_.emplace(std::hash<std::string_view>()(bytes), weights_.size());
    weights_.push_back(value);
    return weights_.size() - 1;
  }

  void indent(int depth) { out_.append(static_cast<size_t>(depth) * 2, ' '); }

  void reserve(const Block& block) {
    for (const auto& param : block.params) reserved_.insert(param->name);
    for (const auto& node : block.nodes) {
      for (const auto& result : node->results) reserved_.insert(result->name);
      for (const auto& region : node->regions) reserve(*region);
    }
  }

  std::string name(const Value* value) {
    auto [entry, fresh] = names_.try_emplace(value);
    if (!fresh) return entry->second;
    std::string text = value->name;
    if (text.empty() || !used_.insert(text).second) {
      std::string stem = text.empty() ? "" : text + ".";
      size_t& next = text.empty() ? counter_ : suffix_[text];
      do text = stem + std::to_string(next++);
      while (reserved_.count(text) || used_.count(text));
      used_.insert(text);
    }
    return entry->second = "%" + word(text);
  }

  std::string params(const Block& block) {
    std::vector<std::string> parts;
    for (const auto& param : block.params)
      parts.push_back(fmt::format("{}: {}", name(param.get()), to_string(param->type)));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  void block(const Block& block, int depth, const char* end) {
    for (const auto& each : block.nodes) node(*each, depth);
    std::vector<std::string> parts;
    for (const Value* result : block.results) parts.push_back(name(result));
    indent(depth);
    out_ += parts.empty() ? fmt::format("{}\n", end) : fmt::format("{} {}\n", end, fmt::join(parts, ", "));
  }

  void sources(const Node& node) {
    if (node.sources.empty() || !options_.sources) return;
    out_ += fmt::format(" #{}", fmt::join(node.sources, ","));
    if (!sources_ || node.sources.front() >= sources_->size()) return;
    const Source& source = (*sources_)[node.sources.front()];
    std::string comment = fmt::format("  // {}:{} {}", source.framework, source.name, source.location);
    std::replace(comment.begin(), comment.end(), '\n', ' ');
    while (comment.back() == ' ') comment.pop_back();
    out_ += comment;
  }

  PrintOptions options_;
  std::string out_;
  std::vector<Tensor> weights_;
  std::unordered_multimap<size_t, size_t> by_hash_;
  const std::vector<Source>* sources_ = nullptr;
  std::unordered_map<const Value*, std::string> names_;
  std::unordered_set<std::string> used_, reserved_;
  std::unordered_map<std::string, size_t> suffix_;
  size_t counter_ = 0;
};

}  // namespace

ModuleText print(const Module& module, const PrintOptions& options) {
  Printer printer(options);
  printer.module(module);
  return printer.take();
}

std::string print(const Function& function, const PrintOptions& options) {
  Printer printer(options);
  printer.function(function, 0);
  return printer.take().text;
}

std::string print(const Node& node) {
  Printer printer({});
  printer.node(node, 0);
  std::string text = printer.take().text;
  return text.substr(0, text.find('\n'));
}

std::string to_string(const Attribute& attribute) { return Printer({}).attribute(attribute); }

}  // namespace cairn
