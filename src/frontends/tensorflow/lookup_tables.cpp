#include "frontends/tensorflow/lookup_tables.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "frontends/tensorflow/graph.h"
#include "frontends/tensorflow/row.h"

namespace cairn::tensorflow {
namespace {

using Kind = AttrValue::Kind;

/// A column of a vocabulary file, as an initialiser names it.
constexpr int64_t kWholeLine = -2, kLineNumber = -1;

template <class T>
void append_number(std::string_view text, std::vector<T>& to, const std::string& where) {
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size())
    fail(ErrorKind::invalid_model, where, "'{}' is no number", printable(text.substr(0, 80)));
  to.push_back(value);
}

/// The part of a line that the initialiser uses as key or value.
class Column {
 public:
  Column(int64_t index, DType dtype, std::string_view delimiter)
      : index_(index), dtype_(dtype), delimiter_(delimiter) {}

  void add(std::string_view line, int64_t number, const std::string& where) {
    if (index_ == kLineNumber) return integers_.push_back(number);
    std::string_view part = line;
    for (int64_t i = 0; index_ >= 0 && i <= index_; ++i) {
      const size_t end = delimiter_.empty() ? std::string_view::npos : line.find(delimiter_);
      if (end == std::string_view::npos && i < index_)
        fail(ErrorKind::invalid_model, where, "has no column {}", index_);
      part = line.substr(0, end);
      line.remove_prefix(end == std::string_view::npos ? line.size() : end + delimiter_.size());
    }
    if (dtype_ == kString)
      texts_.emplace_back(part);
    else if (dtype_.is_float())
      append_number(part, reals_, where);
    else
      append_number(part, integers_, where);
  }

  Tensor tensor(const std::string& where) const {
    const auto count = static_cast<int64_t>(texts_.size() + reals_.size() + integers_.size());
    if (dtype_ == kString && index_ != kLineNumber) return Tensor::of(kString, {count}, texts_);
    if (dtype_ == kI64) return Tensor::of(kI64, {count}, integers_);
    if (dtype_ == kF64) return Tensor::of(kF64, {count}, reals_);
    if (dtype_ == kF32) return Tensor::of(kF32, {count}, std::vector<float>(reals_.begin(), reals_.end()));
    if (dtype_ == kI32) return Tensor::of(kI32, {count}, std::vector<int32_t>(integers_.begin(), integers_.end()));
    fail(ErrorKind::unsupported, where, "a table of {} from a file is not supported", to_string(dtype_));
  }

 private:
  int64_t index_;
  DType dtype_;
  std::string_view delimiter_;
  std::vector<std::string> texts_;
  std::vector<int64_t> integers_;
  std::vector<double> reals_;
};

class TableKeeper {
 public:
  TableKeeper(GraphDef& graph, const std::string& directory, const std::map<std::string, std::string>& assets)
      : graph_(graph), model_(*graph.model), names_(graph.nodes, model_.name()), directory_(directory),
        assets_(assets) {}

  uint32_t table_of(const Node& filler) const { return source(filler, 0); }

  /// A node that initialises the table from constants.
  Node import_of(uint32_t table, std::string_view name, const TableContent& content) {
    Node node;
    node.name = name;
    node.op = graph_.nodes[table].op.ends_with("V2") ? "LookupTableImportV2" : "LookupTableImport";
    node.inputs = {{table, 0},
                   {constant(fmt::format("{}/keys", name), content.keys), 0},
                   {constant(fmt::format("{}/values", name), content.values), 0}};
    for (auto [from, to] : {std::pair{"key_dtype", "Tin"}, std::pair{"value_dtype", "Tout"}})
      if (const Attr* type = graph_.nodes[table].find(from)) node.attrs.push_back({to, type->value});
    return node;
  }

  TableContent read_file(const Node& table, const Node& filler) {
    const std::string path = path_of(filler);
    auto number = [&](const char* name, int64_t fallback) {
      const AttrValue value = attr_of(filler, name, Kind::integer, model_);
      return value.kind == Kind::none ? fallback : value.integer;
    };
    const AttrValue given = attr_of(filler, "delimiter", Kind::text, model_);
    const std::string_view delimiter = given.kind == Kind::none ? "\t" : given.text;
    Column keys(number("key_index", kWholeLine), type_of(table, "key_dtype"), delimiter);
    Column values(number("value_index", kLineNumber), type_of(table, "value_dtype"), delimiter);
    const int64_t most = number("vocab_size", -1), offset = number("offset", 0);
    const auto file = ModelBytes::open(path);
    std::string_view rest = file->bytes();
    int64_t line = 0;
    for (; !rest.empty() && (most < 0 || line < most); ++line) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      std::string text(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      std::erase(text, '\r');  // as TensorFlow reads lines
      model_.charge(4 * text.size() + 128);
      const std::string where = fmt::format("{}:{}", path, line + 1);
      keys.add(text, line + offset, where);
      values.add(text, line + offset, where);
    }
    if (line < most) fail(ErrorKind::invalid_model, path, "has {} lines, the table takes {}", line, most);
    return {keys.tensor(path), values.tensor(path)};
  }

 private:
  uint32_t source(const Node& node, size_t input) const {
    return origin(data_input(node, input), graph_.nodes, model_.name()).node;
  }

  DType type_of(const Node& table, const char* attr) const {
    const AttrValue value = attr_of(table, attr, Kind::type, model_);
    const auto dtype = dtype_of(static_cast<DataType>(value.integer));
    if (!dtype) fail(ErrorKind::unsupported, printable(table.name), "attribute {} is no type of a table", attr);
    return *dtype;
  }

  std::string path_of(const Node& filler) const {
    const Node& path = graph_.nodes[source(filler, 1)];
    if (auto asset = assets_.find(std::string(path.name)); asset != assets_.end())
      return fmt::format("{}/assets/{}", directory_, asset->second);
    const AttrValue value = attr_of(path, "value", Kind::tensor, model_);
    if (path.op != "Const" || value.kind == Kind::none)
      fail(ErrorKind::unsupported, printable(filler.name), "the path of its file is computed, expected a constant");
    const Tensor text = read_tensor(value, graph_.model, printable(path.name));
    if (text.dtype() != kString || text.count() != 1)
      fail(ErrorKind::invalid_model, printable(filler.name), "the path of its file must be one string");
    return text.values<std::string>()[0];
  }

  /// The place of a new node.
  uint32_t constant(const std::string& wanted, const Tensor& value) {
    std::string name = wanted;
    while (names_.find(name)) name += "_";
    Node node;
    node.name = model_.keep(std::move(name));
    node.op = "Const";
    const DType dtype = value.dtype();
    const DataType type = dtype == kString ? kDtString
                          : dtype == kI64  ? kDtInt64
                          : dtype == kI32  ? kDtInt32
                          : dtype == kF64  ? kDtDouble
                          : dtype == kBool ? kDtBool
                                           : kDtFloat;
    node.attrs = {{"dtype", model_.keep(attr_type(type))}};
    if (dtype == kString) {
      const auto texts = value.values<std::string>();
      node.attrs.push_back(attr_texts(model_, "value", value.dims(), {texts.begin(), texts.end()}));
    } else {
      if (dtype_of(type) != dtype)
        fail(ErrorKind::unsupported, printable(wanted), "a table of {} is not supported", to_string(dtype));
      const std::string_view content = model_.keep(std::string(static_cast<const char*>(value.data()), value.bytes()));
      node.attrs.push_back(attr_tensor(model_, "value", type, value.dims(), content));
    }
    graph_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(graph_.nodes.size() - 1);
  }

  GraphDef& graph_;
  ModelBytes& model_;
  NodeNames names_;
  const std::string& directory_;
  const std::map<std::string, std::string>& assets_;
};

}  // namespace

void read_table_files(GraphDef& graph) {
  const bool files = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& node) { return node.op.starts_with("InitializeTableFromTextFile"); });
  std::vector<uint32_t> all(graph.nodes.size());
  std::iota(all.begin(), all.end(), 0u);
  if (files) keep_tables(graph, all, "", {}, [](const Node&) { return std::nullopt; });
}

void keep_tables(GraphDef& graph, std::vector<uint32_t>& roots, const std::string& directory,
                 const std::map<std::string, std::string>& assets,
                 const std::function<std::optional<TableContent>(const Node& table)>& stored) {
  const std::vector<bool> needed = needed_by(roots, graph.nodes, Along::all);
  const auto count = static_cast<uint32_t>(graph.nodes.size());
  std::set<uint32_t> used;
  for (uint32_t i = 0; i < count; ++i)
    if (needed[i] && traits_of(graph.nodes[i].op).has(Trait::makes_table)) used.insert(i);
  if (!used.empty()) {
    TableKeeper keeper(graph, directory, assets);
    std::erase_if(used, [&](uint32_t table) {  // a mutable table has its content in the checkpoint
      const auto content = stored(graph.nodes[table]);
      if (!content) return false;
      const std::string_view name = graph.model->keep(fmt::format("{}/restored", graph.nodes[table].name));
      Node filler = keeper.import_of(table, name, *content);
      roots.push_back(static_cast<uint32_t>(graph.nodes.size()));
      graph.nodes.push_back(std::move(filler));
      return true;
    });
    std::vector<std::pair<uint32_t, Node>> fillers;
    for (uint32_t i = 0; i < count; ++i) {
      if (!traits_of(graph.nodes[i].op).has(Trait::fills_table)) continue;
      Node node = graph.nodes[i];
      const uint32_t table = keeper.table_of(node);
      if (!used.contains(table)) continue;
      if (node.op.starts_with("InitializeTableFromTextFile"))
        node = keeper.import_of(table, node.name, keeper.read_file(graph.nodes[table], node));
      std::erase_if(node.inputs, [](Edge input) { return input.is_control(); });
      fillers.emplace_back(i, std::move(node));
    }
    for (auto& [place, node] : fillers) {
      roots.push_back(place);
      graph.nodes[place] = std::move(node);
    }
  }
  prune(graph, roots);
}

}  // namespace cairn::tensorflow
