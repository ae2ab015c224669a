// Readers of foreign files on sound files, and on the attacks that are known: escapes, nesting, expansion, damage.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "frontends/onnx/external_data.h"
#include "frontends/onnx/model.h"
#include "frontends/tensorflow/freeze.h"
#include "frontends/tensorflow/functions.h"
#include "frontends/tensorflow/tensor_bundle.h"
#include "frontends/tensorflow/text_schema.h"
#include "frontends/text_proto.h"
#include "models.h"
#include "support/crc32c.h"

namespace cairn {
namespace {

using tensorflow::AttrValue;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Tensor constant(const tensorflow::GraphDef& graph, std::string_view name) {
  for (const tensorflow::Node& node : graph.nodes)
    if (node.name == name)
      return read_tensor(attr_of(node, "value", AttrValue::Kind::tensor, *graph.model), graph.model, std::string(name));
  ADD_FAILURE() << name << " is not there";
  return {};
}

class EveryForm : public testing::TestWithParam<const char*> {};

TEST_P(EveryForm, OfAConstantIsRead) {
  tensorflow::GraphDef graph = tensorflow::read_graph_def(test::data(GetParam()));
  EXPECT_EQ(constant(graph, "f32").as_f64(), (std::vector<double>{1.5, -2, 3, INFINITY}));
  EXPECT_EQ(constant(graph, "f32").dims(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(constant(graph, "f64").as_f64()[0], 1e300);
  EXPECT_TRUE(std::signbit(constant(graph, "f64").as_f64()[1]));
  EXPECT_EQ(constant(graph, "f16").as_f64(), (std::vector<double>{1, 2.5, -3}));
  EXPECT_EQ(constant(graph, "bf16").as_f64(), (std::vector<double>{1, -2}));
  EXPECT_EQ(constant(graph, "i8").as_i64(), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(constant(graph, "u8").as_i64(), (std::vector<int64_t>{200, 1}));
  EXPECT_EQ(constant(graph, "i16").as_i64(), (std::vector<int64_t>{-300, 3}));
  EXPECT_EQ(constant(graph, "i32").as_i64(), (std::vector<int64_t>{7}));
  EXPECT_EQ(constant(graph, "i64").as_i64(), (std::vector<int64_t>{-(int64_t{1} << 40)}));
  EXPECT_EQ(constant(graph, "u32").as_i64(), (std::vector<int64_t>{4294967295}));
  EXPECT_EQ(constant(graph, "u64").values<uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(constant(graph, "bool").as_i64(), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(constant(graph, "splat").as_f64(), std::vector<double>(15, 0.25));
  EXPECT_EQ(constant(graph, "empty").dims(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(constant(graph, "text").values<std::string>()[1], "bc");
}
INSTANTIATE_TEST_SUITE_P(Files, EveryForm, testing::Values("constants.pb", "constants.pbtxt"));

TEST(GraphDef, WhatIsWrittenReadsBackTheSame) {
  tensorflow::GraphDef graph = tensorflow::read_graph_def(test::data("constants.pb"));
  auto bytes = ModelBytes::from_memory("again", encode(graph));
  auto again = tensorflow::read_graph_def(bytes, bytes->bytes());
  ASSERT_EQ(again.nodes.size(), graph.nodes.size());
  for (const tensorflow::Node& node : graph.nodes) {
    EXPECT_TRUE(constant(graph, node.name).same_bits(constant(again, node.name))) << node.name;
  }
}

TEST(TextProto, SaysLineAndColumnOfAMistake) {
  const std::pair<const char*, const char*> kMistakes[] = {
      {"node {\n  name: \"x\"\n  colour: 3\n}\n", "line 3, column 3: NodeDef has no field 'colour'"},
      {"node { nmae: \"x\" }\n", "line 1, column 8: NodeDef has no field 'nmae'; did you mean name?"},
      {"versions {\n  producer:  1.5x }", "line 2, column 14: '1.5x' is no integer"},
      {"node { name: \"x\" # a note\n\tinput 3 }", "line 2, column 8: expected ':', found '3'"},
      {"node { name: 'abc\n }", "line 1, column 14: string is not closed"},
      {"node { name: 'ab\\q' }", "line 1, column 17: unknown escape '\\q'"},
      {"node { name: x }", "line 1, column 14: expected a string, found 'x'"},
      {"node {\n  name: \"x\"\n", "line 3, column 1: the text ends inside NodeDef"},
      {"versions { bad_consumers: [1, 2 3] }", "line 1, column 33: expected ',' or ']', found '3'"},
  };
  for (const auto& [text, said] : kMistakes)
    EXPECT_EQ(message_of([text = text] { text_to_wire(text, tensorflow::kGraphDefText, "bad.pbtxt"); }),
              std::string("bad.pbtxt: ") + said);
}

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c("56789", crc32c("1234")), 0xe3069283u);
}

TEST(TensorBundle, ReadsEveryVariable) {
  tensorflow::TensorBundle bundle(test::data("dense/variables/variables"));
  EXPECT_EQ(bundle.read("w/.ATTRIBUTES/VARIABLE_VALUE").as_f64(), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(bundle.read("b/.ATTRIBUTES/VARIABLE_VALUE").as_f64(), (std::vector<double>{0.5, -1}));
  EXPECT_EQ(bundle.read("_CHECKPOINTABLE_OBJECT_GRAPH").dtype(), kString);
  EXPECT_EQ(bundle.read("w/.ATTRIBUTES/VARIABLE_VALUE", "3 2 1,2:-").as_f64(), (std::vector<double>{2, 3, 4, 5}));
  EXPECT_THROW(bundle.read("w/.ATTRIBUTES/VARIABLE_VALUE", "3 2 2,2:-"), Error);
}

TEST(TensorBundle, DamagedDataIsNamed) {
  std::string prefix = testing::TempDir() + "damaged";
  std::filesystem::copy_file(test::data("dense/variables/variables.index"), prefix + ".index",
                             std::filesystem::copy_options::overwrite_existing);
  std::string bytes = test::read_file(test::data("dense/variables/variables.data-00000-of-00001"));
  bytes[9] ^= 1;
  std::ofstream(prefix + ".data-00000-of-00001", std::ios::binary) << bytes;
  tensorflow::TensorBundle bundle(prefix);
  std::string message = message_of([&] {
    bundle.read("b/.ATTRIBUTES/VARIABLE_VALUE");
    bundle.read("w/.ATTRIBUTES/VARIABLE_VALUE");
  });
  EXPECT_NE(message.find("VARIABLE_VALUE is damaged: its checksum does not match"), std::string::npos) << message;
}

TEST(Wire, DeepNestingIsRefused) {
  std::string bytes;
  for (int level = 0; level < 200; ++level) {
    std::string inner = bytes;
    auto wrap = [](char tag, const std::string& body) {
      std::string result(1, tag);
      for (size_t size = body.size(); true; size >>= 7) {
        result += static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
        if (size <= 0x7f) break;
      }
      return result + body;
    };
    // GraphProto.node > NodeProto.attribute > AttributeProto.g
    bytes = wrap(0x0a, wrap(0x2a, wrap(0x32, inner)));
  }
  auto wrap_model = [&] {
    std::string head("\x3a", 1);
    for (size_t size = bytes.size(); true; size >>= 7) {
      head += static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
      if (size <= 0x7f) break;
    }
    return head + bytes;
  };
  std::string message = message_of([&] { onnx::read_model(ModelBytes::from_memory("deep", wrap_model()), ""); });
  EXPECT_NE(message.find("is nested deeper than 64 messages"), std::string::npos) << message;
}

TEST(Functions, ExponentialInliningIsRefused) {
  // f0 calls f1 twice, f1 calls f2 twice, ...: 2^40 nodes if nobody counted.
  std::string text = "node { name: \"y\" op: \"f0\" }\nlibrary {\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format(
        "function {{ signature {{ name: \"f{0}\" }} node_def {{ name: \"a\" op: \"f{1}\" }} "
        "node_def {{ name: \"b\" op: \"f{1}\" }} }}\n",
        i, i + 1);
  std::string path = testing::TempDir() + "bomb.pbtxt";
  std::ofstream(path) << text << "}\n";
  tensorflow::GraphDef graph = tensorflow::read_graph_def(path);
  std::string message = message_of([&] {
    std::vector<uint32_t> roots;
    inline_calls(graph, roots);
  });
  EXPECT_NE(message.find("MiB of memory for a file of"), std::string::npos) << message;
}

class Escapes : public testing::TestWithParam<const char*> {};

TEST_P(Escapes, OfExternalDataAreRefused) {
  std::filesystem::path root = testing::TempDir() + "external";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "model/sub");
  std::ofstream(root / "secret") << "secret";
  std::ofstream(root / "model/good") << "good";
  std::filesystem::create_symlink("../secret", root / "model/link");
  std::filesystem::create_symlink("..", root / "model/up");
  std::filesystem::create_hard_link(root / "secret", root / "model/hard");
  ASSERT_EQ(mkfifo((root / "model/fifo").c_str(), 0600), 0);
  std::string directory = (root / "model").string();
  EXPECT_EQ(onnx::open_external(directory, "./good", "w")->bytes(), "good");
  std::string message = message_of([&] { onnx::open_external(directory, GetParam(), "tensor w"); });
  EXPECT_EQ(message.rfind("tensor w: external data ", 0), 0u) << message;
}
INSTANTIATE_TEST_SUITE_P(Paths, Escapes,
                         testing::Values("../secret", "sub/../../secret", "/etc/passwd", "link", "up/secret", "hard",
                                         "fifo", "sub", "", ".", "..", "a\\..\\secret", "missing"));

}  // namespace
}  // namespace cairn
