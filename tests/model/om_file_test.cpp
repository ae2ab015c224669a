// The .om container: what is written comes back, equal input gives equal bytes, and no damage goes unnoticed.
#include "model/om_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "ir/text.h"
#include "model/foreign_om.h"
#include "model/om_layout.h"
#include "reseal.h"
#include "support/crc32c.h"
#include "support/files.h"

namespace cairn {
namespace {

constexpr const char* kText = R"(module @digits {
  metadata producer = "test"
  source 0 = "tf" "dense/MatMul" "MatMul" "train.py:41"
  func @main(%x: f32[?n, 8]) -> (%y: f32[?n, 3]) {
    %w = constant {value = f32[8, 3] @weights[0]} : f32[8, 3]
    %b = constant {value = f32[3] (1, 2, -0.5)} : f32[3]
    %c = constant {value = f32[8, 3] @weights[0]} : f32[8, 3]
    %d = add %w, %c : f32[8, 3]
    %m = matmul %x, %d : f32[?n, 3] #0
    %y = add %m, %b : f32[?n, 3]
    return %y
  }
}
)";

Module sample() {
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 7;
  return parse(kText, {Tensor::of(kF32, {8, 3}, values)});
}

/// Bytes at an address that is a multiple of 64, as a mapping has.
std::shared_ptr<const OmFile> read(std::string_view bytes) {
  size_t room = (bytes.size() + 63) / 64 * 64 + 64;
  std::shared_ptr<char> copy(static_cast<char*>(std::aligned_alloc(64, room)), std::free);
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  return OmFile::from_bytes("m.om", {copy.get(), bytes.size()}, copy);
}

TEST(OmFile, WhatIsWrittenComesBack) {
  Module module = sample();
  auto file = read(encode_om(module, {"m.pb", "abc", {{"framework", "3"}}}));
  EXPECT_EQ(print(file->module()).text, print(module).text);
  auto metadata = nlohmann::json::parse(file->metadata());
  EXPECT_EQ(metadata["source"]["sha256"], "abc");
  EXPECT_EQ(metadata["options"]["framework"], "3");
  EXPECT_EQ(metadata["signature"]["inputs"][0]["type"], "f32[?n, 8]");
  file->check_weights();
}

TEST(OmFile, EqualModulesGiveEqualBytes) { EXPECT_EQ(encode_om(sample(), {}), encode_om(sample(), {})); }

TEST(OmFile, AWeightIsStoredOnceAndMappedAligned) {
  auto file = read(encode_om(sample(), {}));
  ASSERT_EQ(file->weights().size(), 1u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file->weights()[0].data()) % 64, 0u);
  Module module = file->module();
  EXPECT_EQ(module.main().body.nodes[0]->attr().tensor("value").data(), file->weights()[0].data());
}

TEST(OmFile, TextWeightsComeBack) {
  Tensor words = Tensor::zeros(kString, {3});
  words.mutable_values<std::string>()[0] = std::string("a\0b", 3);
  words.mutable_values<std::string>()[2] = "\xff";
  Module module = parse(R"(module @m { func @main() -> (%y: str[3]) {
    %y = constant {value = str[3] @weights[0]} : str[3]
    return %y } })",
                        {words});
  Module back = read(encode_om(module, {}))->module();
  EXPECT_TRUE(back.main().body.nodes[0]->attr().tensor("value").same_bits(words));
}

std::string mutated(std::string bytes, std::mt19937& random) {
  auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    size_t at = below(bytes.size());
    switch (below(6)) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 2: bytes.resize(at); break;
      case 3: bytes.insert(at, bytes.substr(below(bytes.size()), below(40))); break;
      case 4: bytes.erase(at, below(40)); break;
      default: {  // an extreme number
        const uint64_t numbers[] = {0, ~0ull, 1ull << 63, 1ull << 32, 0x7fffffff, 64};
        if (at + 8 <= bytes.size()) std::memcpy(bytes.data() + at, &numbers[below(6)], 8);
      }
    }
    if (bytes.empty()) break;
  }
  return bytes;
}

TEST(OmFile, DamageIsNoticedByChecksums) {
  const std::string good = encode_om(sample(), {"m.pb", "abc", {}});
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_THROW(read(bad)->check_weights(), Error) << "byte " << at;
  }
  for (size_t size = 0; size < good.size(); size += 7) EXPECT_THROW(read(good.substr(0, size)), Error);
}

TEST(OmFile, TwoThousandMutantsGiveASentenceOrAModule) {
  const std::string good = encode_om(sample(), {"m.pb", "abc", {}});
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = mutated(good, random);
    if (i % 4 != 0) reseal(bytes);
    try {
      auto file = read(bytes);
      file->check_weights();
      verify(file->module());
    } catch (const Error& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()), "");
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 2000);  // some damage, such as another name, makes another valid model
}

TEST(OmFile, AKilledWriterLeavesTheOldModel) {
  std::string name = std::filesystem::temp_directory_path() / "cairn.XXXXXX";
  std::filesystem::path folder = ::mkdtemp(name.data());
  std::string path = folder / "m.om";
  Module module = sample();
  write_om(module, {"old", "", {}}, path);
  for (int round = 0; round < 20; ++round) {
    pid_t child = ::fork();
    if (child == 0)
      for (;;) write_om(module, {"new", "", {}}, path);
    ::usleep(static_cast<useconds_t>(500 + 700 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    auto file = OmFile::open(path);
    file->check_weights();
    EXPECT_EQ(print(file->module()).text, print(module).text);
  }
  std::filesystem::remove_all(folder);
}

TEST(ForeignOm, HeaderAndPartitionsAreTold) {
  std::string bytes(256, '\0');
  bytes.replace(0, 4, "IMOD");
  bytes[82] = 1;
  bytes.replace(84, 8, "resnet50");
  bytes[156] = 1;
  auto put = [&](uint32_t number) { bytes += om::bytes_of(number); };
  for (uint32_t number : {2u, 0u, 0u, 100u, 1u, 100u, 20u}) put(number);  // the 32-bit table
  bytes += std::string(120, 'x');
  ForeignOm om = read_foreign_om(bytes, "m.om");
  EXPECT_EQ(om.name, "resnet50");
  ASSERT_EQ(om.partitions.size(), 2u);
  EXPECT_EQ(om.partitions[1].name, "WEIGHTS_DATA");
  EXPECT_EQ(om.partitions[1].size, 20u);
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string bad = mutated(bytes, random);
    bad.replace(0, std::min<size_t>(4, bad.size()), "IMOD");
    try {
      if (is_foreign_om(bad)) read_foreign_om(bad, "m.om");
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace cairn
