// The text form: what is printed parses to the same print, and bad text gets one sentence with its line.
#include "ir/text.h"

#include <gtest/gtest.h>

#include <random>

namespace cairn {
namespace {

constexpr const char* kDigits = R"(module @digits {
  metadata producer = "a \"quoted\" text\x01"
  source 0 = "tf" "conv/Conv2D" "Conv2D" "train.py:41"
  source 1 = "tf" "conv/Relu" "Relu" ""
  removed 1 = "fused"
  func @main(%image: f32[?n, 8, 8, 1], %"odd name:0": i64[]) -> (%logits: f32[?n, 6, 6, 2], %count: i64[]) updates [1 = 1] {
    %w = constant {value = f32[3, 3, 1, 2] @weights[0]} : f32[3, 3, 1, 2]
    %c = conv2d %image, %w {strides = [1, 1], padding = valid} : f32[?n, 6, 6, 2] #0  // tf:conv/Conv2D train.py:41
    %r = relu %c : f32[?n, 6, 6, 2] #0,1  // tf:conv/Conv2D train.py:41
    %one = constant {value = i64[] (1)} : i64[]
    %next = add %"odd name:0", %one : i64[]
    return %r, %next
  }
}
)";

std::vector<Tensor> weights() { return {Tensor::zeros(kF32, {3, 3, 1, 2})}; }

std::string error_of(const std::string& text, const std::vector<Tensor>& tensors = {}) {
  try {
    parse(text, tensors);
  } catch (const Error& fault) {
    return fault.what();
  }
  return "no error";
}

TEST(Text, PrintsWhatItParsed) {
  Module module = parse(kDigits, weights());
  verify(module);
  ModuleText printed = print(module);
  EXPECT_EQ(printed.text, kDigits);
  EXPECT_EQ(printed.weights.size(), 1u);
  EXPECT_EQ(where(module, *module.main().body.nodes[1]), "conv/Conv2D (train.py:41)");
}

TEST(Text, CopiesAreEqual) {
  Module module = parse(kDigits, weights());
  Module copy = clone(module);
  verify(copy);
  EXPECT_EQ(print(copy).text, kDigits);
}

TEST(Text, ConstantsKeepTheirBits) {
  for (const char* literal : {"f32[3] (0.1, -inf, nan)", "f32[1] (bits(0x7fc00001))", "f64[2] (1e+300, -0.0)",
                              "bool[2] (true, false)", "i8[2] (-128, 127)", "u64[1] (18446744073709551615)",
                              "str[2] (\"a\\nb\", \"\")", "f16[2] (0x3c00, 0x7e01)", "f32[0] ()", "f32[2, 0, 3] ()"}) {
    Attribute value = parse_attribute(literal, AttrKind::tensor);
    EXPECT_EQ(to_string(value), literal);
    EXPECT_TRUE(same(value, parse_attribute(to_string(value), AttrKind::tensor)));
  }
}

TEST(Text, TypesRoundTrip) {
  for (const char* text : {"f32[]", "bf16[?, ?n, 3]", "i64[*]", "list<f32[?]>", "resource<i32[2]>",
                           "tuple<f32[], str[*]>", "tuple<>", "rng", "token"})
    EXPECT_EQ(to_string(parse_type(text)), text);
}

TEST(Text, ErrorsNameTheLine) {
  auto in_main = [](const std::string& body) {
    return "module @m {\n  func @main(%x: f32[2]) -> (%y: f32[2]) {\n" + body + "\n  }\n}\n";
  };
  EXPECT_EQ(error_of(in_main("    %y = relux %x : f32[2]\n    return %y")), "module:3: no operator is called relux");
  EXPECT_EQ(error_of(in_main("    %y = relu %z : f32[2]\n    return %y")), "module:3: %z is not defined here");
  EXPECT_EQ(error_of(in_main("    %x = relu %x : f32[2]\n    return %x")), "module:3: %x is defined twice");
  EXPECT_EQ(error_of(in_main("    %y = relu %x : f32[3]\n    return %y")),
            "module:3: relu: result 0 is f32[2], declared f32[3]");
  EXPECT_EQ(error_of(in_main("    %y = relu %x {power = 2} : f32[2]\n    return %y")),
            "module:3: relu has no attribute power");
  EXPECT_EQ(error_of(in_main("    %y = constant {value = f32[99] @weights[4]} : f32[99]\n    return %y")),
            "module:3: no weights[4], there are 0");
  EXPECT_EQ(error_of("modul"), "module:1: expected 'module', found 'modul'");
}

TEST(Text, EveryTruncationIsRefused) {
  std::string text = kDigits;
  for (size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_NE(error_of(text.substr(0, length), weights()), "no error") << length;
}

TEST(Text, DamagedTextIsRefusedOrValid) {
  std::mt19937 random(1);
  const std::string alphabet = "%@#:,=[](){}<>?*\"0123456789-.efinxabs \n";
  size_t refused = 0;
  for (int mutant = 0; mutant < 2000; ++mutant) {
    std::string text = kDigits;
    for (unsigned change = 0; change <= random() % 3; ++change) {
      size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = alphabet[random() % alphabet.size()]; break;
        case 1: text.insert(at, 1, alphabet[random() % alphabet.size()]); break;
        case 2: text.erase(at, 1 + random() % 8); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
    }
    try {
      Module module = parse(text, weights());
      verify(module);
      EXPECT_FALSE(print(module).text.empty());
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(Text, DeepNestingIsRefused) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "list<";
  EXPECT_THROW(parse_type(deep), Error);
}

TEST(Verify, FindsBrokenModules) {
  Module module = parse(kDigits, weights());
  Block& body = module.main().body;
  std::swap(body.nodes[1], body.nodes[2]);
  EXPECT_THROW(verify(module), Error);
  std::swap(body.nodes[1], body.nodes[2]);
  body.nodes[2]->result()->type = Type::tensor(kF32, {1});
  EXPECT_THROW(verify(module), Error);
}

TEST(Tensor, HalvesRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float value = half_to_float(half);
    if (value == value) {
      EXPECT_EQ(float_to_half(value), half);
    }
  }
  EXPECT_EQ(float_to_half(65519.f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.f), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0);
  EXPECT_EQ(float_to_half(0x1.8p-25f), 1);
  EXPECT_EQ(float_to_bfloat(1.00390625f), 0x3f80);
}

}  // namespace
}  // namespace cairn
