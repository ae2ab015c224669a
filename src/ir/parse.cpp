// Parser of the text form, in one pass; attribute kinds and result types come from the op rows.
#include <algorithm>
#include <bit>
#include <charconv>

#include "ir/builder.h"
#include "ir/text.h"
#include "ir/user_ops.h"

namespace cairn {

namespace {

constexpr int kMaxDepth = 64;  // nested regions and types
const std::vector<Tensor> kNoWeights;

class Parser {
 public:
  Parser(std::string_view text, const std::vector<Tensor>& weights, std::string file)
      : text_(text), weights_(weights), file_(std::move(file)) {}

  Module module() {
    Module module;
    expect("module");
    expect("@");
    module.name = word();
    expect("{");
    while (!accept("}")) {
      if (accept("metadata")) {
        std::string key = word();
        expect("=");
        module.metadata[key] = quoted();
      } else if (accept("optimised_by")) {
        module.optimised_by = quoted();
      } else if (accept("disabled_pass")) {
        module.disabled_passes.push_back(quoted());
      } else if (accept("keep_memory")) {
        module.keep_memory = true;
      } else if (accept("random")) {
        auto& state = module.random_states[quoted()];
        expect("=");
        for (uint64_t& number : state) number = parsed<uint64_t>(word());
      } else if (accept("source")) {
        if (static_cast<size_t>(integer()) != module.sources.size()) error("sources must be numbered in order");
        expect("=");
        Source source;
        source.framework = quoted(), source.name = quoted(), source.op = quoted(), source.location = quoted();
        module.sources.push_back(std::move(source));
      } else if (accept("removed")) {
        auto id = static_cast<SourceId>(integer());
        expect("=");
        module.removed[id] = removal(quoted());
      } else {
        function(module);
      }
    }
    skip();
    if (at_ != text_.size()) error("text after the module");
    return module;
  }

  Type type(int depth = 0) {
    if (depth > kMaxDepth) error("types nest too deep");
    std::string name = word();
    if (name == "rng") return Type::rng();
    if (name == "token") return Type::token();
    static constexpr std::pair<const char*, Type::Kind> kNested[] = {{"list", Type::Kind::list},
                                                                     {"optional", Type::Kind::optional},
                                                                     {"tuple", Type::Kind::tuple},
                                                                     {"resource", Type::Kind::resource}};
    for (auto [text, kind] : kNested) {
      if (name != text) continue;
      Type result{kind, kF32, {}, {}};
      expect("<");
      if (accept(">")) return result;
      do result.elements.push_back(type(depth + 1));
      while (accept(","));
      expect(">");
      if (kind != Type::Kind::tuple && result.elements.size() != 1) error("{} takes one type", name);
      return result;
    }
    auto dtype = parse_dtype(name);
    if (!dtype) error("no type is called {}", name);
    return Type::tensor(*dtype, shape());
  }

  Attribute attribute(AttrKind kind) {
    switch (kind) {
      case AttrKind::boolean: return boolean();
      case AttrKind::integer: return integer();
      case AttrKind::number: return number();
      case AttrKind::text: return word();
      case AttrKind::integers: return list<int64_t>([this] { return integer(); });
      case AttrKind::numbers: return list<double>([this] { return number(); });
      case AttrKind::texts: return list<std::string>([this] { return word(); });
      case AttrKind::dtype: return dtype();
      case AttrKind::type: return type();
      case AttrKind::tensor: return tensor();
      case AttrKind::function: expect("@"); return FunctionName{word()};
    }
    error("unknown attribute kind");
  }

  void finish() {
    skip();
    if (at_ != text_.size()) error("unexpected text at the end");
  }

 private:
  template <class... Args>
  [[noreturn]] void error(fmt::format_string<Args...> format, Args&&... args) {
    auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<long>(std::min(last_, text_.size())), '\n');
    throw Error(ErrorKind::invalid_model, fmt::format("{}:{}", file_, line),
                fmt::format(format, std::forward<Args>(args)...));
  }

  void skip() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
        ++at_;
      else if (text_.substr(at_, 2) == "//")
        at_ = std::min(text_.find('\n', at_), text_.size());
      else
        return;
    }
  }

  static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '/' || c == '-' || c == '$' || c == '+';  // '+': exponents of numbers
  }

  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    if (word_char(token.back()) && at_ + token.size() < text_.size() && word_char(text_[at_ + token.size()]))
      return false;
    last_ = at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (accept(token)) return;
    error("expected '{}', found '{}'", token, text_.substr(at_, std::min<size_t>(12, text_.size() - at_)));
  }

  bool peek(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }

  std::string quoted() {
    expect("\"");
    std::string out;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        out += text_[at_];
        continue;
      }
      if (++at_ >= text_.size()) break;
      char c = text_[at_];
      if (c == 'n') {
        out += '\n';
      } else if (c == 'x') {
        unsigned value = 0;
        auto hex = text_.substr(at_ + 1, 2);
        if (std::from_chars(hex.data(), hex.data() + hex.size(), value, 16).ec != std::errc()) error("bad escape");
        out += static_cast<char>(value);
        at_ += 2;
      } else {
        out += c;
      }
    }
    if (at_ >= text_.size()) error("unterminated string");
    last_ = ++at_;
    return out;
  }

  std::string word() {
    if (peek('"')) return quoted();
    size_t start = at_;
    while (at_ < text_.size() && word_char(text_[at_])) ++at_;
    if (start == at_) error("expected a name, found '{}'", text_.substr(at_, std::min<size_t>(12, text_.size() - at_)));
    last_ = at_;
    return std::string(text_.substr(start, at_ - start));
  }

  template <class T>
  T parsed(std::string_view digits, int base = 10) {
    T value{};
    std::from_chars_result result{};
    if constexpr (std::is_floating_point_v<T>)
      result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    else
      result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (result.ec != std::errc() || result.ptr != digits.data() + digits.size()) error("'{}' is not a number", digits);
    return value;
  }

  int64_t integer() { return parsed<int64_t>(word()); }

  template <class T>
  T real() {
    std::string text = word();
    if (text == "bits") {
      using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
      expect("(");
      std::string digits = word();
      expect(")");
      if (digits.substr(0, 2) != "0x") error("'{}' is not hexadecimal", digits);
      return std::bit_cast<T>(parsed<Bits>(std::string_view(digits).substr(2), 16));
    }
    if (text == "nan") return std::numeric_limits<T>::quiet_NaN();
    return parsed<T>(text);
  }
  double number() { return real<double>(); }

  bool boolean() {
    if (accept("true")) return true;
    expect("false");
    return false;
  }

  DType dtype() {
    std::string name = word();
    auto found = parse_dtype(name);
    if (!found) error("no element type is called {}", name);
    return *found;
  }

  template <class T, class F>
  std::vector<T> list(F&& item) {
    std::vector<T> values;
    expect("[");
    if (accept("]")) return values;
    do values.push_back(item());
    while (accept(","));
    expect("]");
    return values;
  }

  Shape shape() {
    expect("[");
    if (accept("*")) {
      expect("]");
      return Shape::unranked();
    }
    std::vector<Dim> dims;
    if (accept("]")) return dims;
    do {
      if (accept("?")) {
        bool named = at_ < text_.size() && word_char(text_[at_]);
        dims.push_back(named ? Dim(intern_symbol(word())) : Dim());
      } else {
        int64_t size = integer();
        if (size < 0) error("a dimension cannot be {}", size);
        dims.push_back(size);
      }
    } while (accept(","));
    expect("]");
    return dims;
  }

  Tensor tensor() {
    Type tensor_type = type();
    if (!tensor_type.is_static()) error("a constant needs a static type, found {}", to_string(tensor_type));
    auto dims = tensor_type.shape.sizes();
    auto count = element_count(dims);
    if (!count) error("a constant of type {} is too large", to_string(tensor_type));
    if (accept("@")) {
      expect("weights");
      expect("[");
      auto index = static_cast<size_t>(integer());
      expect("]");
      if (index >= weights_.size()) error("no weights[{}], there are {}", index, weights_.size());
      if (weights_[index].type() != tensor_type)
        error("weights[{}] is {}, expected {}", index, to_string(weights_[index].type()), to_string(tensor_type));
      return weights_[index];
    }
    if (static_cast<size_t>(*count) > text_.size()) error("{} elements do not fit the text", *count);
    Tensor value = Tensor::zeros(tensor_type.dtype, dims);
    expect("(");
    for (int64_t i = 0; i < *count; ++i) {
      if (i) expect(",");
      element(value, static_cast<size_t>(i));
    }
    expect(")");
    return value;
  }

  void element(Tensor& value, size_t i) {
    DType dtype = value.dtype();
    if (dtype.kind == DType::Kind::string)
      value.mutable_values<std::string>()[i] = quoted();
    else if (dtype == kBool)
      value.mutable_values<uint8_t>()[i] = boolean();
    else if (dtype == kF32)
      value.mutable_values<float>()[i] = real<float>();
    else if (dtype == kF64)
      value.mutable_values<double>()[i] = real<double>();
    else if (dtype == kF16 || dtype == kBF16) {
      std::string digits = word();
      if (digits.substr(0, 2) != "0x") error("'{}' is not hexadecimal", digits);
      value.mutable_values<uint16_t>()[i] = parsed<uint16_t>(std::string_view(digits).substr(2), 16);
    } else if (dtype == kU64)
      value.mutable_values<uint64_t>()[i] = parsed<uint64_t>(word());
    else if (dtype.is_integer() && dtype.bits >= 8) {
      int64_t number = integer();
      std::memcpy(static_cast<char*>(value.mutable_data()) + i * dtype.size(), &number, dtype.size());
    } else
      error("constants of type {} cannot be written out", to_string(dtype));
  }

  Removal removal(const std::string& text) {
    for (int i = 0; i <= static_cast<int>(Removal::training); ++i)
      if (text == to_string(static_cast<Removal>(i))) return static_cast<Removal>(i);
    error("'{}' is no reason for removal", text);
  }

  using Scope = std::unordered_map<std::string, Value*>;

  void define(Scope& scope, const std::string& name, Value* value) {
    value->name = name;
    if (!scope.emplace(name, value).second) error("%{} is defined twice", name);
  }

  void params(Block& block, Scope& scope) {
    expect("(");
    if (accept(")")) return;
    do {
      expect("%");
      std::string name = word();
      expect(":");
      define(scope, name, block.add_param(type(), name));
    } while (accept(","));
    expect(")");
  }

  Value* use(const Scope& scope) {
    expect("%");
    std::string name = word();
    auto found = scope.find(name);
    if (found == scope.end()) error("%{} is not defined here", name);
    return found->second;
  }

  void function(Module& module) {
    expect("func");
    expect("@");
    auto function = std::make_unique<Function>();
    function->name = word();
    if (module.find(function->name)) error("@{} is defined twice", function->name);
    Scope scope;
    params(function->body, scope);
    expect("->");
    expect("(");
    std::vector<Type> types;
    if (!accept(")")) {
      do {
        expect("%");
        function->result_names.push_back(word());
        expect(":");
        types.push_back(type());
      } while (accept(","));
      expect(")");
    }
    if (accept("updates")) {
      expect("[");
      do {
        auto result = static_cast<size_t>(integer());
        expect("=");
        function->updates.emplace_back(result, static_cast<size_t>(integer()));
      } while (accept(","));
      expect("]");
    }
    expect("{");
    block(module, function->body, scope, "return", 0);
    if (function->body.results.size() != types.size())
      error("@{} returns {} values, declares {}", function->name, function->body.results.size(), types.size());
    for (size_t i = 0; i < types.size(); ++i)
      if (!compatible(types[i], function->body.results[i]->type))
        error("result {} is {}, declared {}", i, to_string(function->body.results[i]->type), to_string(types[i]));
    module.functions.push_back(std::move(function));
  }

  void block(Module& module, Block& block, Scope& scope, std::string_view end, int depth) {
    if (depth > kMaxDepth) error("regions nest too deep");
    while (!accept(end)) node(module, block, scope, depth);
    if (peek('%')) {
      do block.results.push_back(use(scope));
      while (accept(","));
    }
    expect("}");
  }

  void node(Module& module, Block& block, Scope& scope, int depth) {
    std::vector<std::string> names;
    if (peek('%')) {
      do {
        expect("%");
        names.push_back(word());
      } while (accept(","));
      expect("=");
    }
    std::string op_name = word();
    const OpDef* op = find_op(op_name);
    if (!op) error("{}", unknown_op(op_name));
    std::vector<Value*> inputs;
    if (peek('%')) {
      do inputs.push_back(use(scope));
      while (accept(","));
    }
    Attributes attributes;
    if (accept("{")) {
      do {
        std::string name = word();
        const AttrDef* def = op->find_attribute(name);
        if (!def) error("{} has no attribute {}", op_name, name);
        expect("=");
        attributes.set(name, attribute(def->kind));
      } while (accept(","));
      expect("}");
    }
    std::vector<Type> types;
    if (accept(":")) {
      do types.push_back(type());
      while (accept(","));
    }
    std::vector<SourceId> sources;
    if (accept("#")) {
      do sources.push_back(static_cast<SourceId>(integer()));
      while (accept(","));
    }
    std::vector<std::unique_ptr<Block>> regions;
    while (accept("region")) {
      regions.push_back(std::make_unique<Block>());
      Scope inner;
      params(*regions.back(), inner);
      expect("{");
      this->block(module, *regions.back(), inner, "yield", depth + 1);
    }
    Node* made = build(block, *op, std::move(inputs), std::move(attributes), std::move(regions), types);
    for (SourceId id : sources)
      if (id >= module.sources.size()) error("no source {}, there are {}", id, module.sources.size());
    made->sources = std::move(sources);
    if (names.size() != made->results.size())
      error("{} has {} results, {} are named", op_name, made->results.size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) define(scope, names[i], made->results[i].get());
  }

  Node* build(Block& block, const OpDef& op, std::vector<Value*> inputs, Attributes attributes,
              std::vector<std::unique_ptr<Block>> regions, const std::vector<Type>& types) {
    Node* made = nullptr;
    try {
      made = Builder(block).add_node(op, std::move(inputs), std::move(attributes), std::move(regions), types);
    } catch (const Error& fault) {
      error("{}", fault.what());
    }
    return made;
  }

  std::string_view text_;
  const std::vector<Tensor>& weights_;
  std::string file_;
  size_t at_ = 0;
  size_t last_ = 0;  // end of the last consumed token: errors are reported there
};

}  // namespace

Module parse(std::string_view text, const std::vector<Tensor>& weights, const std::string& file) {
  return Parser(text, weights, file).module();
}

Type parse_type(std::string_view text) {
  Parser parser(text, kNoWeights, "type");
  Type type = parser.type();
  parser.finish();
  return type;
}

Attribute parse_attribute(std::string_view text, AttrKind kind) {
  Parser parser(text, kNoWeights, "attribute");
  Attribute attribute = parser.attribute(kind);
  parser.finish();
  return attribute;
}

}  // namespace cairn
