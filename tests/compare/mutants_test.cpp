// Damaged and hostile files: each is read as a whole or refused with a sentence, and nothing else happens.
#include <gtest/gtest.h>

#include <random>

#include "compare/comparison.h"
#include "folders.h"

namespace cairn::compare {
namespace {

/// Reads everything that a tree holds; the sentences of what cannot be read.
std::vector<std::string> read_all(const std::string& path) {
  std::vector<std::string> sentences;
  try {
    DumpTree tree = read_tree(path);
    for (const DumpStep& step : tree.steps)
      for (const DumpedOp& op : step.ops) {
        if (!op.fault.empty()) sentences.push_back(op.fault);
        for (const TensorSource& source : op.tensors) try {
            LoadedTensor loaded = load(source);
            std::vector<float> floats;
            if (loaded.tensor.count() < 1 << 20) as_floats(loaded.tensor, floats);
          } catch (const Error& error) {
            sentences.push_back(error.what());
          }
      }
  } catch (const Error& error) {
    sentences.push_back(error.what());
  }
  return sentences;
}

std::string mutated(std::string bytes, std::mt19937& random) {
  switch (random() % 4) {
    case 0: bytes.resize(random() % bytes.size()); break;
    case 1: bytes.insert(random() % bytes.size(), 1 + random() % 16, static_cast<char>(random())); break;
    case 2: bytes.erase(random() % bytes.size(), 1 + random() % 16); break;
    default:
      for (size_t i = 0, n = 1 + random() % 4; i < n; ++i)
        bytes[random() % std::min<size_t>(bytes.size(), 512)] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
  }
  return bytes;
}

void check_mutants(const std::string& original, const std::string& name, int count) {
  TestFolder folder;
  std::mt19937 random(11);
  size_t refused = 0;
  for (int i = 0; i < count; ++i) {
    std::string bytes = mutated(original, random);
    folder.text(name, bytes);
    std::vector<std::string> sentences = read_all(folder.path(name));
    refused += !sentences.empty();
    for (const std::string& sentence : sentences) {
      EXPECT_GT(sentence.size(), 10u);
      EXPECT_EQ(sentence.find("terminate"), std::string::npos);
    }
  }
  EXPECT_GT(refused, static_cast<size_t>(count) / 4) << "mutants of " << name << " are hardly ever noticed";
}

TEST(Mutants, OfArrays) {
  TestFolder folder;
  folder.array("a.npy", ramp(24), {2, 3, 4});
  check_mutants(read_file(folder.path("a.npy")), "a.npy", 3000);
}

TEST(Mutants, OfArchives) {
  for (const char* name : {"stored.npz", "deflated.npz"})
    check_mutants(read_file(std::string(CAIRN_SOURCE_DIR "/tests/compare/data/") + name), "a.npz", 3000);
}

TEST(Mutants, OfDumpData) {
  TestFolder folder;
  Tensor tensor = Tensor::of(kF32, {2, 6}, ramp(12));
  DumpFile file;
  file.op_name = "conv1";
  file.inputs = {to_dump(tensor)}, file.outputs = {to_dump(tensor)};
  file.outputs[0].original_name = "conv1/Conv2D";
  for (int version : {1, 2}) {
    write_dump(folder.path("d"), file, version);
    check_mutants(read_file(folder.path("d")), "Conv2D.conv1.1.1.5", 3000);
  }
}

TEST(Mutants, OfMappingsAreReadOrRefused) {
  TestFolder folder;
  const std::string model = R"({"graph": [{"op": [{"name": "a", "type": "Conv2D", "input": ["x:0", "y:-1"],
    "attr": [{"key": "_datadump_original_op_names", "value": {"list": {"s": ["a", "b"]}}}],
    "output_desc": [{"attr": [{"key": "_datadump_origin_output_index", "value": {"i": "1"}}]}]}]}]})";
  std::mt19937 random(12);
  for (const std::string& text : {model, std::string(R"({"a": "b", "c": ["d", "e"]})"), std::string("a,b\nc,d,e\n")})
    for (int i = 0; i < 2000; ++i) {
      folder.text("m", mutated(text, random));
      try {
        OpMapping mapping = read_mapping(folder.path("m"));
        for (const MappedOp& op : mapping.ops)
          origin_of_input(mapping, op.name, 0), origin_of_output(mapping, op.name, 0);
      } catch (const Error& error) {
        EXPECT_GT(std::string(error.what()).size(), 10u);
      }
    }
}

TEST(Mutants, OfManifestsAreReadOrRefused) {
  TestFolder folder;
  const std::string good = R"({"file":"Relu.a.1.0.5.output.0.npy","op":"a","type":"Relu","kind":"output","index":0,)"
                           R"("sources":["tf:a","tf:b"],"location":"t.py:1","step":3,"task":1,"kernel":"cpu/x"})"
                           "\n";
  write_npy(folder.path("Relu.a.1.0.5.output.0.npy"), Tensor::zeros(kF32, {2}));
  std::mt19937 random(5);
  auto check = [&](const std::string& manifest) {
    folder.text("manifest.jsonl", manifest);
    for (const std::string& sentence : read_all(folder.path())) EXPECT_GT(sentence.size(), 10u);
  };
  for (int i = 0; i < 2000; ++i) check(i % 2 ? mutated(good + good, random) : good + mutated(good, random));
  for (const char* name : {"../../../etc/passwd", "/etc/passwd", "", ".", "a/../../b"}) {
    check(fmt::format("{{\"file\":\"{}\",\"op\":\"a\",\"kind\":\"output\"}}\n", name));
    for (const DumpStep& step : read_tree(folder.path()).steps)
      for (const DumpedOp& op : step.ops) EXPECT_EQ(op.path.find("passwd"), std::string::npos);
  }
}

TEST(Hostile, FilesClaimWhatTheyDoNotHold) {
  TestFolder folder;
  auto npy = [](const std::string& shape) {
    std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (" + shape + "), }\n";
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  };
  for (const char* shape :
       {"9223372036854775807, 2", "4611686018427387904,4", "-1", "1e9", "99999999999", "((", "0x10"}) {
    folder.text("a.0.1.npy", npy(shape));
    EXPECT_EQ(read_all(folder.path()).size(), 1u) << shape;
  }
  folder.text("a.0.1.npy", npy(std::string(200, '1') + ","));
  EXPECT_EQ(read_all(folder.path()).size(), 1u);
  folder.text(
      "a.0.1.npy",
      std::string("\x93NUMPY\x01\x00\x40\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }        ", 74));
  EXPECT_EQ(read_all(folder.path()).size(), 1u);
  std::string header(8, '\xff');
  folder.text("Conv2D.c.1.1.5", header + "x");
  EXPECT_EQ(read_all(folder.path()).size(), 2u);
}

TEST(Hostile, FoldersAndNamesThatAreNoDumps) {
  TestFolder folder;
  EXPECT_THROW(read_tree(folder.path("missing")), Error);
  folder.text("notes.txt", "no dump");
  EXPECT_EQ(read_tree(folder.path()).other_files, 1u);
  EXPECT_THROW(compare_trees(read_tree(folder.path()), read_tree(folder.path()), {}, {}, {}, serial_executor()), Error);
}

TEST(Hostile, AMappingMayNestDeeply) {
  TestFolder folder;
  std::string open, close;
  for (int i = 0; i < 200000; ++i) open += "{\"a\":", close += "}";
  folder.text("f.json", open + "1" + close);
  EXPECT_THROW(read_mapping(folder.path("f.json")), Error);
  folder.text("f.json", "{\"op\":[{\"name\":\"a\",\"input\":[" + open + "1" + close + "]}]}");
  EXPECT_EQ(read_mapping(folder.path("f.json")).ops.size(), 1u);
}

TEST(Hostile, APassListIsNoMapping) {
  TestFolder folder;
  folder.text("f.json", R"([{"session_and_graph_id_0_0": {"graph_fusion": {"A": {"effect_times": "1"}}}}])");
  try {
    read_mapping(folder.path("f.json"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("names no operators"), std::string::npos);
  }
}

}  // namespace
}  // namespace cairn::compare
