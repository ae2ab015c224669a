// Every row of every frontend on operands and attributes made by chance: a module or one sentence, never a crash, an
// endless import or memory without bound.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "frontends/caffe/importer.h"
#include "frontends/import.h"
#include "frontends/keras/importer.h"
#include "frontends/onnx/importer.h"
#include "frontends/tensorflow/cluster.h"
#include "frontends/tensorflow/importer.h"
#include "passes/pipeline.h"
#include "row_nodes.h"
#include "sanitized.h"
#include "support/report.h"

namespace cairn {
namespace {

using test::Asked;

int rounds() {
  const char* text = std::getenv("CAIRN_ROW_ROUNDS");
  return text ? std::atoi(text) : 40;
}

/// Imports one model.
using Round = std::function<void(Random& random)>;

int run_rounds(const Round& round, uint64_t seed, int report) {
  const itimerval limit{{}, {10, 0}};  // of processor time
  for (int i = 0; i < rounds(); ++i) {
    Random random(seed + static_cast<uint64_t>(i));
    setitimer(ITIMER_PROF, &limit, nullptr);
    try {
      round(random);
    } catch (const Error& error) {
      const auto* several = dynamic_cast<const ReportError*>(&error);
      const std::string text = several ? several->headline() : error.what();
      if (text.find('\n') != std::string::npos || text.size() < 8 || text.size() > 1000) {
        const std::string what = "the message is " + text;
        return write(report, what.data(), what.size()) < 0 ? 3 : 4;
      }
    }
  }
  return 0;
}

/// "" or what went wrong in a process of its own.
std::string problem_of(const Round& round, uint64_t seed) {
  int report[2];
  if (pipe(report) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const rlimit memory{size_t{1} << 30, size_t{1} << 30};
    if (kMemoryCounts) setrlimit(RLIMIT_DATA, &memory);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int code = 2;
    try {
      code = run_rounds(round, seed, report[1]);
    } catch (const std::exception& error) {
      const std::string text = error.what();
      if (write(report[1], text.data(), text.size()) < 0) code = 3;
    }
    _exit(code);
  }
  close(report[1]);
  std::string said;
  char buffer[256];
  for (ssize_t size; (size = read(report[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(size));
  close(report[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit {}: {}", WEXITSTATUS(status), said);
}

/// All rows, several of which are named in one message when they fail.
void expect_answers(const std::vector<std::string_view>& rows,
                    const std::function<void(std::string_view row, Random& random)>& import) {
  const char* only = std::getenv("CAIRN_ROW");
  for (std::string_view row : rows) {
    if (only && row != only) continue;
    EXPECT_EQ(problem_of([&](Random& random) { import(row, random); }, std::hash<std::string_view>()(row)), "") << row;
  }
}

// ---- ONNX ---------------------------------------------------------------------------------------------------------------

std::string delimited(int field, const std::string& bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string number(int field, uint64_t value) { return varint(static_cast<uint64_t>(field) << 3) + varint(value); }

std::string onnx_tensor(const std::string& name, int type, const std::vector<int64_t>& dims, const std::string& raw) {
  std::string bytes;
  for (int64_t dim : dims) bytes += number(1, static_cast<uint64_t>(dim));
  bytes += number(2, static_cast<uint64_t>(type)) + delimited(8, name);
  return type == onnx::kText ? bytes + delimited(6, "a") + delimited(6, "b") : bytes + delimited(9, raw);
}

std::string raw_i64(const std::vector<int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
}

/// Texts live as long as the model.
class OnnxMaker {
 public:
  OnnxMaker(Random& random, const std::vector<Asked>& asked)
      : random_(random), asked_(asked), bytes_(ModelBytes::from_memory("model", std::string(1 << 16, ' '))) {
    model_.bytes = bytes_;
    model_.ir_version = 8;
    static constexpr int64_t kOpsets[] = {7, 9, 10, 11, 12, 13, 17, 18, 20, 21, 23};
    const int64_t opset = kOpsets[below(random, std::size(kOpsets))];
    model_.opsets = {{"", opset}, {"com.microsoft", 1}, {"ai.onnx.ml", 3}};
    add_values();
  }

  onnx::Model make(std::string_view op, std::string_view domain) {
    onnx::Node node;
    node.name = "n";
    node.op = op;
    node.domain = domain;
    const size_t count = below(random_, 10) == 0 ? 12 : below(random_, 6);
    for (size_t i = 0; i < count; ++i)
      node.inputs.push_back(below(random_, 7) == 0 ? "" : names_[below(random_, names_.size())]);
    node.outputs = {"y"};
    if (below(random_, 4) == 0) node.outputs = {"y", "z", "", "w"};
    for (const Asked& each : asked_)
      if (below(random_, 3) == 0) node.attributes.push_back(attribute(each));
    static const Asked unasked{"integer", "nobody_asks_for_this"};
    node.attributes.push_back(attribute(unasked));
    model_.graph.nodes.push_back(std::move(node));
    onnx::ValueInfo y;
    y.name = "y";
    model_.graph.outputs = {y};
    return model_;
  }

 private:
  std::string_view keep(std::string text) { return bytes_->keep(std::move(text)); }

  void value(const char* name, int32_t element, bool ranked, std::vector<int64_t> dims) {
    onnx::ValueInfo info;
    info.kind = onnx::ValueInfo::Kind::tensor;
    info.name = name;
    info.element = element;
    info.ranked = ranked;
    for (int64_t dim : dims) info.dims.push_back({dim, {}});
    model_.graph.inputs.push_back(info);
    names_.push_back(name);
  }
  void constant(const char* name, int type, const std::vector<int64_t>& dims, const std::string& raw) {
    model_.graph.initializers.push_back({name, keep(onnx_tensor(name, type, dims, raw))});
    names_.push_back(name);
  }

  void add_values() {
    using namespace onnx;
    value("image", kFloat, true, {2, 3, 8, 8});
    value("image_again", kFloat, true, {2, 3, 8, 8});
    value("volume", kFloat, true, {1, 3, 4, 4, 4});
    value("open", kFloat, true, {-1, -1, -1, -1});
    value("any", kFloat, false, {});
    value("vector", kFloat, true, {3});
    value("matrix", kFloat, true, {2, 3});
    value("scalar", kFloat, true, {});
    value("none", kFloat, true, {0, 3});
    value("cube", kFloat, true, {2, 3, 4});
    value("long", kInt64, true, {3});
    value("longs", kInt64, true, {2, 3});
    value("int", kInt32, true, {2, 3});
    value("byte", kUint8, true, {2, 3, 8, 8});
    value("flag", kBoolean, true, {});
    value("flags", kBoolean, true, {2, 3});
    value("text", kText, true, {2});
    value("half", kFloat16, true, {2, 3});
    value("double", kDouble, true, {2, 3});
    value("complex", kComplex64, true, {2, 3});
    constant("c0", kInt64, {}, raw_i64({0}));
    constant("c1", kInt64, {1}, raw_i64({1}));
    constant("clist", kInt64, {3}, raw_i64({some_number(), some_number(), some_number()}));
    constant("cfour", kInt64, {4}, raw_i64({some_number(), some_number(), some_number(), some_number()}));
    constant("cempty", kInt64, {0}, "");
    constant("cabsurd", kInt64, {1}, raw_i64({some_number()}));
    constant("ckernel", kFloat, {2, 3, 3, 3}, std::string(2 * 27 * 4, '\0'));
    constant("cfloat", kFloat, {}, std::string("\0\0\x80\x3f", 4));
    constant("cnan", kFloat, {2}, std::string("\0\0\xc0\x7f\0\0\x80\x7f", 8));
    constant("cflag", kBoolean, {}, std::string(1, '\1'));
    constant("ctext", kText, {2}, "");
    if (below(random_, 3) != 0) return;
    onnx::Node sequence;
    sequence.op = "SequenceConstruct";
    sequence.inputs = {"matrix", "matrix"};
    sequence.outputs = {"sequence"};
    model_.graph.nodes.push_back(sequence);
    names_.push_back("sequence");
  }

  int64_t some_number() { return test::some_number(random_); }

  std::shared_ptr<onnx::Graph> body() {
    auto graph = std::make_shared<onnx::Graph>();
    const size_t inputs = below(random_, 4), outputs = below(random_, 4);
    static constexpr const char* kIn[] = {"b0", "b1", "b2", "b3"};
    for (size_t i = 0; i < inputs; ++i) {
      onnx::ValueInfo info;
      info.name = kIn[i];
      graph->inputs.push_back(info);
    }
    for (size_t i = 0; i < outputs; ++i) {
      onnx::ValueInfo info;
      info.name =
          inputs > 0 && below(random_, 2) == 0 ? kIn[below(random_, inputs)] : names_[below(random_, names_.size())];
      graph->outputs.push_back(info);
    }
    return graph;
  }

  onnx::Attribute attribute(const Asked& asked) {
    using Type = onnx::Attribute::Type;
    onnx::Attribute result;
    result.name = asked.name;
    Type type = static_cast<Type>(below(random_, 13));
    if (below(random_, 6) != 0) {
      static const std::map<std::string, Type> kKinds = {{"integer", Type::integer},   {"has", Type::integer},
                                                         {"integers", Type::integers}, {"integers_of", Type::integers},
                                                         {"real", Type::real},         {"reals", Type::reals},
                                                         {"text", Type::text},         {"texts", Type::texts},
                                                         {"tensor", Type::tensor},     {"graph", Type::graph}};
      if (auto found = kKinds.find(asked.kind); found != kKinds.end()) type = found->second;
    }
    result.type = type;
    result.integer = some_number();
    result.real = below(random_, 4) == 0 ? NAN : static_cast<float>(some_number());
    result.text = test::some_text(random_);
    result.integers = test::some_numbers(random_);
    for (int64_t each : test::some_numbers(random_)) result.reals.push_back(static_cast<float>(each));
    for (size_t i = below(random_, 4); i > 0; --i) result.texts.push_back(test::some_text(random_));
    result.tensor = {
        "t", keep(onnx_tensor("t", static_cast<int>(below(random_, 18)), test::some_numbers(random_), "12345678"))};
    result.graph = body();  // rows look at it only where the type says so
    return result;
  }

  Random& random_;
  const std::vector<Asked>& asked_;
  std::shared_ptr<ModelBytes> bytes_;
  onnx::Model model_;
  std::vector<std::string_view> names_;
};

TEST(EveryRow, OfOnnxAnswersAnyOperandsAndAttributes) {
  const test::Sources sources("onnx");
  std::vector<std::string_view> rows = onnx::supported_ops();
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  expect_answers(rows, [&](std::string_view row, Random& random) {
    std::string_view domain;
    for (std::string_view each : {"", "com.microsoft", "ai.onnx.ml"})
      if (onnx::find_row(each, row) && (domain.empty() || below(random, 2) == 0)) domain = each;
    if (!onnx::find_row(domain, row)) domain = "com.microsoft";
    Module module = import_onnx(OnnxMaker(random, sources.of(row)).make(row, domain));
    optimise(module);
  });
}

// ---- TensorFlow ---------------------------------------------------------------------------------------------------------

/// As a frozen graph, or as a cluster, where variables are arguments.
class GraphMaker {
 public:
  GraphMaker(Random& random, const std::vector<Asked>& asked, bool cluster)
      : random_(random), asked_(asked), cluster_(cluster),
        bytes_(ModelBytes::from_memory("graph", std::string(1 << 16, ' '))) {
    graph_.model = bytes_;
    using namespace tensorflow;
    value("image", kDtFloat, {2, 8, 8, 3});
    value("image_again", kDtFloat, {2, 8, 8, 3});
    value("volume", kDtFloat, {1, 4, 4, 4, 3});
    value("open", kDtFloat, {-1, -1, -1, -1});
    value("any", kDtFloat, {}, false);
    value("vector", kDtFloat, {3});
    value("matrix", kDtFloat, {2, 3});
    value("scalar", kDtFloat, {});
    value("none", kDtFloat, {0, 3});
    value("cube", kDtFloat, {2, 3, 4});
    value("long", kDtInt64, {3});
    value("longs", kDtInt64, {2, 3});
    value("int", kDtInt32, {2, 3});
    value("one_int", kDtInt32, {});
    value("byte", kDtUint8, {2, 8, 8, 3});
    value("flag", kDtBool, {});
    value("flags", kDtBool, {2, 3});
    value("text", kDtString, {2});
    value("half", kDtHalf, {2, 3});
    value("double", kDtDouble, {2, 3});
    value("complex", kDtComplex64, {2, 3});
    if (cluster_) {
      value("variable", kDtFloat, {2, 3}, true, "resource");
      value("slot", kDtFloat, {2, 3}, true, "resource");
      value("reference", kDtFloat, {2, 3}, true, "ref");
      value("counter", kDtInt64, {}, true, "resource");
      value("state", kDtInt64, {3}, true, "resource");
    }
    constant("c0", kDtInt32, {}, {0});
    constant("c1", kDtInt32, {1}, {1});
    constant("c2", kDtInt32, {2}, {some_number(), some_number()});
    constant("clist", kDtInt32, {3}, {some_number(), some_number(), some_number()});
    constant("cfour", kDtInt64, {4}, {some_number(), some_number(), some_number(), some_number()});
    constant("cpairs", kDtInt32, {2, 2}, {some_number(), some_number(), some_number(), some_number()});
    constant("cempty", kDtInt32, {0}, {});
    constant("cabsurd", kDtInt64, {}, {some_number()});
    node("ckernel", "Const",
         {attr_type(kDtFloat),
          attr_tensor(*bytes_, "value", kDtFloat, {3, 3, 3, 2}, bytes_->keep(std::string(54 * 4, '\0')))});
    node("cfloat", "Const",
         {attr_type(kDtFloat),
          attr_tensor(*bytes_, "value", kDtFloat, {}, bytes_->keep(std::string("\0\0\x80\x3f", 4)))});
    node("cflag", "Const",
         {attr_type(kDtBool), attr_tensor(*bytes_, "value", kDtBool, {}, bytes_->keep(std::string(1, '\1')))});
  }

  Module import(std::string_view op) {
    tensorflow::Node node;
    node.name = "n";
    node.op = op;
    const size_t count = below(random_, 10) == 0 ? 13 : below(random_, 7);
    for (size_t i = 0; i < count; ++i)
      node.inputs.push_back({static_cast<uint32_t>(below(random_, graph_.nodes.size())), 0});
    for (const Asked& each : asked_)
      if (below(random_, 3) == 0) node.attrs.push_back(attribute(each));
    node.attrs.push_back(attribute({"integer", "nobody_asks_for_this"}));
    for (const char* type : {"T", "dtype", "Tidx", "DstT", "out_type"})
      if (below(random_, 2) == 0) node.attrs.push_back({type, some_type()});
    graph_.nodes.push_back(std::move(node));
    if (!cluster_) {
      options_.out_nodes = {"n"};
      return import_tensorflow(graph_, options_);
    }
    tensorflow::Node result;
    result.name = "y";
    result.op = "_Retval";
    result.inputs = {{static_cast<uint32_t>(graph_.nodes.size() - 1), 0}};
    result.attrs = {{"T", some_type()}, {"index", keep(number(3, 0))}};
    graph_.nodes.push_back(std::move(result));
    return import_cluster(graph_, options_);
  }

 private:
  std::string_view keep(std::string text) { return bytes_->keep(std::move(text)); }
  int64_t some_number() { return test::some_number(random_); }

  static std::string shape_bytes(const std::vector<int64_t>& dims, bool ranked) {
    std::string bytes;
    for (int64_t dim : dims) bytes += delimited(2, number(1, static_cast<uint64_t>(dim)));
    return ranked ? bytes : bytes + number(3, 1);
  }

  void node(const char* name, const char* op, std::pair<std::string, tensorflow::Attr> content) {
    tensorflow::Node made;
    made.name = name;
    made.op = op;
    made.attrs = {{"dtype", keep(content.first)}, content.second};
    graph_.nodes.push_back(std::move(made));
  }

  void value(const char* name, tensorflow::DataType type, const std::vector<int64_t>& dims, bool ranked = true,
             const char* handle = nullptr) {
    tensorflow::Node made;
    made.name = name;
    made.op = cluster_ ? "_Arg" : "Placeholder";
    if (cluster_) {
      made.attrs = {{"T", keep(tensorflow::attr_type(type))},
                    {"index", keep(number(3, static_cast<uint64_t>(arguments_++)))}};
      if (handle) made.attrs.push_back({"handle", keep(delimited(2, handle))});
      std::vector<Dim> shape;
      for (int64_t dim : dims) shape.push_back(dim < 0 ? Dim() : Dim(dim));
      if (ranked) options_.input_shapes[name] = Shape(std::move(shape));
    } else {
      made.attrs = {{"dtype", keep(tensorflow::attr_type(type))},
                    {"shape", keep(delimited(7, shape_bytes(dims, ranked)))}};
    }
    graph_.nodes.push_back(std::move(made));
  }

  void constant(const char* name, tensorflow::DataType type, const std::vector<int64_t>& dims,
                const std::vector<int64_t>& values) {
    std::string raw = raw_i64(values);
    if (type == tensorflow::kDtInt32) {
      const std::vector<int32_t> narrow(values.begin(), values.end());
      raw = {reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(int32_t)};
    }
    node(name, "Const",
         {tensorflow::attr_type(type), tensorflow::attr_tensor(*bytes_, "value", type, dims, keep(raw))});
  }

  std::string_view some_type() {
    static constexpr int kTypes[] = {1, 1, 1, 1, 3, 9, 10, 2, 19, 7, 4, 20, 21, 0, 77};
    return keep(tensorflow::attr_type(static_cast<tensorflow::DataType>(kTypes[below(random_, std::size(kTypes))])));
  }

  std::string list() {
    std::string bytes;
    for (size_t i = below(random_, 6); i > 0; --i) switch (below(random_, 3)) {
        case 0: bytes += number(3, static_cast<uint64_t>(some_number())); break;
        case 1: bytes += number(3, 1); break;
        default: bytes += below(random_, 4) == 0 ? delimited(2, test::some_text(random_)) : number(3, 2);
      }
    return bytes;
  }

  tensorflow::Attr attribute(const Asked& asked) {
    std::string kind = asked.kind;
    static constexpr const char* kKinds[] = {"integer", "real",  "boolean", "text",     "integers",
                                             "dtype",   "shape", "tensor",  "function", "has"};
    if (below(random_, 6) == 0) kind = kKinds[below(random_, std::size(kKinds))];
    std::string bytes;
    if (kind == "integer") bytes = number(3, static_cast<uint64_t>(some_number()));
    if (kind == "boolean" || kind == "has") bytes = number(5, below(random_, 2));
    if (kind == "text") bytes = delimited(2, test::some_text(random_));
    if (kind == "real")
      bytes = varint(4 << 3 | 5) + std::string(below(random_, 2) ? "\0\0\xc0\x7f" : "\0\0\x80\x3f", 4);
    if (kind == "integers" || kind == "texts" || kind == "functions") bytes = delimited(1, list());
    if (kind == "dtype") return {asked.name, some_type()};
    if (kind == "shape") bytes = delimited(7, shape_bytes(test::some_numbers(random_), below(random_, 4) != 0));
    if (kind == "tensor") bytes = delimited(8, number(1, 3) + delimited(4, "1234"));
    if (kind == "function") bytes = delimited(10, delimited(1, "nobody"));
    return {asked.name, keep(bytes)};
  }

  Random& random_;
  const std::vector<Asked>& asked_;
  bool cluster_;
  std::shared_ptr<ModelBytes> bytes_;
  tensorflow::GraphDef graph_;
  ImportOptions options_;
  int arguments_ = 0;
};

TEST(EveryRow, OfTensorFlowSaysWhichVariablesItReadsOrWrites) {
  using tensorflow::Trait;
  for (const tensorflow::Row* row : tensorflow::rows_with_traits()) {
    const bool reads = row->traits.has(Trait::reads), writes = row->traits.has(Trait::writes);
    EXPECT_FALSE(reads && writes) << row->op;
    EXPECT_EQ(row->traits.handles > 0, reads || writes) << row->op;
    EXPECT_FALSE(row->traits.has(Trait::free) && row->traits.has(Trait::heavy)) << row->op;
  }
}

TEST(EveryRow, OfTensorFlowAnswersAnyOperandsAndAttributes) {
  const test::Sources sources("tensorflow");
  expect_answers(tensorflow::supported_ops(), [&](std::string_view row, Random& random) {
    Module module = GraphMaker(random, sources.of(row), below(random, 2) == 0).import(row);
    optimise(module);
  });
}

// ---- Caffe --------------------------------------------------------------------------------------------------------------

/// Fields by chance, of which one that asks for a message gets one.
std::string some_fields(const TextMessage& message, Random& random, int depth = 0) {
  static constexpr const char* kNumbers[] = {"0", "1", "2",   "3",          "-1",
                                             "4", "7", "100", "2147483647", "-9223372036854775808"};
  static constexpr const char* kReals[] = {"0", "1", "-1", "0.5", "1e30", "nan", "-inf", "1e-30", "2"};
  std::string text;
  for (size_t n = below(random, 6); n > 0; --n) {
    const TextField& field = message.fields[below(random, message.fields.size())];
    text += fmt::format("{} ", field.name);
    switch (field.kind) {
      case TextKind::integer: text += fmt::format(": {} ", kNumbers[below(random, std::size(kNumbers))]); break;
      case TextKind::real32:
      case TextKind::real64: text += fmt::format(": {} ", kReals[below(random, std::size(kReals))]); break;
      case TextKind::boolean: text += below(random, 2) ? ": true " : ": false "; break;
      case TextKind::enumeration:
        text += fmt::format(": {} ", field.words[below(random, field.words.size())].name);
        break;
      case TextKind::message:
        text += "{ " + (depth < 2 ? some_fields(*field.message, random, depth + 1) : "") + "} ";
        break;
      default: text += ": \"V3\" ";
    }
  }
  return text;
}

/// One layer on bottoms, and with the weights and the parameters that its type can have.
std::string some_net(std::string_view type, Random& random) {
  static constexpr const char* kInputs[][2] = {{"image", "dim: 2 dim: 3 dim: 8 dim: 8"},
                                               {"other", "dim: 2 dim: 3 dim: 8 dim: 8"},
                                               {"wide", "dim: 1 dim: 12 dim: 4 dim: 6"},
                                               {"open", "dim: -1 dim: 3 dim: -1 dim: -1"},
                                               {"vector", "dim: 3"},
                                               {"matrix", "dim: 3 dim: 6"},
                                               {"empty", "dim: 0 dim: 3"},
                                               {"volume", "dim: 1 dim: 3 dim: 4 dim: 4 dim: 4"},
                                               {"scalar", ""}};
  std::string text;
  for (const auto& input : kInputs) text += fmt::format("input: '{}' input_shape {{ {} }}\n", input[0], input[1]);
  text += fmt::format("layer {{ name: 'layer' type: '{}' ", type);
  for (size_t n = 1 + below(random, below(random, 4) == 0 ? 4 : 2); n > 0; --n)
    text += fmt::format("bottom: '{}' ", kInputs[below(random, std::size(kInputs))][0]);
  for (size_t n = 0; n <= below(random, 3); ++n) text += fmt::format("top: 'y{}' ", n);
  for (const TextField& field : caffe::kLayer.fields)
    if (field.kind == TextKind::message && field.name.ends_with("_param") && below(random, 2) == 0)
      text += fmt::format("{} {{ {} {}}} ", field.name, some_fields(*field.message, random),
                          field.name == "convolution_param" ? "num_output: 12 kernel_size: 3 " : "");
  return text + "}";
}

TEST(EveryRow, OfCaffeAnswersAnyBottomsAndParameters) {
  const std::string folder = testing::TempDir(), net = folder + "/some.prototxt";
  ImportOptions options;
  options.weights = folder + "/some.caffemodel";
  expect_answers(caffe::supported_layers(), [&](std::string_view row, Random& random) {
    static constexpr int64_t kShapes[][4] = {{12, 3, 3, 3}, {3, 1, 1, 1},    {12, 1, 1, 1},
                                             {1, 1, 1, 1},  {1, 1, 12, 192}, {3, 12, 3, 3}};
    std::string layer = delimited(1, "layer");
    for (int i = 0; i < 3; ++i) {
      const auto& sizes = kShapes[i == 0 ? below(random, std::size(kShapes)) : 1 + below(random, 2)];
      std::string blob;
      for (int k = 0; k < 4; ++k) blob += number(k + 1, static_cast<uint64_t>(sizes[k]));
      layer += delimited(
          7, blob + delimited(5, std::string(static_cast<size_t>(4 * sizes[0] * sizes[1] * sizes[2] * sizes[3]), 'a')));
    }
    std::ofstream(net) << some_net(row, random);
    std::ofstream(options.weights) << delimited(100, layer);
    Module module = import_model(net, options);
    optimise(module);
  });
}

// ---- Keras --------------------------------------------------------------------------------------------------------------

using Json = keras::Json;

Json some_json(Random& random, int depth = 0) {
  switch (below(random, depth > 2 ? 6 : 8)) {
    case 0: return test::some_number(random);
    case 1: return test::some_text(random);
    case 2: return nullptr;
    case 3: return below(random, 2) == 0;
    case 4: return 0.5;
    case 5: return test::some_numbers(random);
    case 6: {
      Json list = Json::array();
      for (size_t i = below(random, 4); i > 0; --i) list.push_back(some_json(random, depth + 1));
      return list;
    }
    default: return {{"class_name", test::some_text(random)}, {"config", some_json(random, depth + 1)}};
  }
}

Json layer_config(Random& random, const std::vector<Asked>& asked, const char* name) {
  Json config = {{"name", name}};
  for (const Asked& each : asked) {
    if (below(random, 2) == 0 || each.name == "name") continue;
    if (below(random, 6) == 0)
      config[each.name] = some_json(random);
    else if (each.kind == "boolean")
      config[each.name] = below(random, 2) == 0;
    else if (each.kind == "text")
      config[each.name] = test::some_text(random);
    else if (each.kind == "number")
      config[each.name] = 0.5;
    else if (each.kind == "sizes" || each.kind == "integers")
      config[each.name] = below(random, 2) == 0 ? Json(test::some_numbers(random)) : Json(test::some_number(random));
    else
      config[each.name] = below(random, 3) == 0 ? some_json(random) : Json(test::some_number(random));
  }
  return config;
}

Json keras_model(Random& random, const std::vector<Asked>& asked, std::string_view row) {
  static const std::vector<std::vector<Json>> kShapes = {{nullptr, 3},
                                                         {nullptr, 8, 8, 3},
                                                         {nullptr, 4, 4, 4, 3},
                                                         {nullptr, 5, 3},
                                                         {nullptr},
                                                         {nullptr, nullptr, nullptr},
                                                         {2, 0, 3},
                                                         {}};
  Json layers = Json::array(), entries = Json::array(), arguments = Json::array();
  static constexpr const char* kInputs[] = {"a", "b", "c", "d"};
  for (size_t i = below(random, 4) + (below(random, 5) != 0); i > 0; --i) {
    const char* name = kInputs[i - 1];
    Json config = {{"name", name}, {"batch_input_shape", kShapes[below(random, kShapes.size())]}};
    config["dtype"] = below(random, 5) == 0 ? "int32" : "float32";
    layers.push_back(
        {{"class_name", "InputLayer"}, {"config", config}, {"name", name}, {"inbound_nodes", Json::array()}});
    entries.push_back({name, 0, 0});
    Json named = Json::object();
    for (const Asked& each : asked)
      if (below(random, 12) == 0) named[each.name] = some_json(random);
    if (below(random, 8) == 0)
      arguments.push_back({"_CONSTANT_VALUE", -1, some_json(random), named});
    else
      arguments.push_back({name, 0, 0, named});
  }
  layers.push_back({{"class_name", row},
                    {"config", layer_config(random, asked, "n")},
                    {"name", "n"},
                    {"inbound_nodes", Json::array({arguments})}});
  Json& config = layers.back()["config"];
  if (below(random, 2) == 0)
    config["layer"] = {{"class_name", below(random, 2) ? "Dense" : "LSTM"},
                       {"config", layer_config(random, asked, "inner")}};
  if (below(random, 2) == 0) config["function"] = test::some_text(random);
  return {
      {"class_name", "Functional"},
      {"config",
       {{"layers", layers}, {"input_layers", entries}, {"output_layers", Json::array({Json::array({"n", 0, 0})})}}}};
}

TEST(EveryRow, OfKerasAnswersAnyOperandsAndAttributes) {
  const test::Sources sources("keras");
  const keras::Saved sound = keras::read(test::data("tiny.h5"));
  expect_answers(keras::supported_layers(), [&](std::string_view row, Random& random) {
    keras::Saved saved = sound;
    saved.architecture = keras_model(random, sources.of(row), row);
    saved.keras3 = below(random, 2) == 0;
    Module module = keras::import(saved);
    optimise(module);
  });
  expect_answers(keras::supported_operations(), [&](std::string_view row, Random& random) {
    keras::Saved saved = sound;
    saved.architecture = keras_model(random, sources.of("TFOpLambda"), row);
    saved.architecture["config"]["layers"].back()["module"] = "keras.src.ops.numpy";
    saved.keras3 = true;
    Module module = keras::import(saved);
    optimise(module);
  });
}

}  // namespace
}  // namespace cairn
