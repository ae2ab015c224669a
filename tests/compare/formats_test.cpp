// Files of dumps: arrays as numpy writes them, DumpData in both forms, names, layouts.
#include <gtest/gtest.h>

#include "compare/formats/layout.h"
#include "folders.h"
#include "formats/names.h"
#include "formats/npz.h"

namespace cairn::compare {
namespace {

const std::string kData = CAIRN_SOURCE_DIR "/tests/compare/data/";

TEST(Npy, ReadsWhatNumpyWrites) {
  Tensor expected = Tensor::of<float>(kF32, {2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_TRUE(read_npy(kData + "columns_first.npy").same_bits(expected));
  EXPECT_TRUE(read_npy(kData + "big_endian.npy").same_bits(expected));
  EXPECT_TRUE(read_npy(kData + "scalar.npy").same_bits(Tensor::of<double>(kF64, {}, {2.5})));
}

TEST(Npy, RoundTripsEveryType) {
  TestFolder folder;
  for (DType dtype : {kBool, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF16, kF32, kF64, kBF16, kC64})
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {5}, {2, 3, 4}, {0, 7}}) {
      Tensor tensor = Tensor::zeros(dtype, dims);
      for (size_t i = 0; i < tensor.bytes(); ++i)
        static_cast<char*>(tensor.mutable_data())[i] = static_cast<char>(i % 2);
      write_npy(folder.path("t.npy"), tensor);
      EXPECT_TRUE(read_npy(folder.path("t.npy")).same_bits(tensor)) << to_string(tensor.type());
    }
}

std::string npy_of(const std::string& descr, const std::string& shape, const std::string& data,
                   const std::string& order = "False") {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, order, shape);
  header.append(63 - (10 + header.size()) % 64, ' ').append("\n");
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + std::string(1, '\0') + header + data;
}

TEST(Npy, TextsAreBytesOrCharacters) {
  TestFolder folder;
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {3}, {2, 3}, {0, 7}}) {
    Tensor tensor = Tensor::zeros(kString, dims);
    size_t length = 0;
    for (std::string& text : tensor.mutable_values<std::string>()) text = std::string(9 * length++, 'a');
    write_npy(folder.path("t.npy"), tensor);
    EXPECT_TRUE(read_npy(folder.path("t.npy")).same_bits(tensor)) << to_string(tensor.type());
  }
  auto parsed = [](const std::string& bytes) { return parse_npy(bytes, "t", nullptr); };
  const std::string wide("a\0\0\0\xdf\0\0\0\x3b\x4e\0\0\x00\xf6\x01\0", 16);  // a, sharp s, a Chinese letter, a face
  Tensor expected = Tensor::of<std::string>(kString, {2}, {"a\xc3\x9f", "\xe4\xb8\xbb\xf0\x9f\x98\x80"});
  EXPECT_TRUE(parsed(npy_of("<U2", "(2,)", wide)).same_bits(expected));
  std::string swapped;
  for (size_t i = 0; i < wide.size(); i += 4) swapped += {wide[i + 3], wide[i + 2], wide[i + 1], wide[i]};
  EXPECT_TRUE(parsed(npy_of(">U2", "(2,)", swapped)).same_bits(expected));
  EXPECT_TRUE(parsed(npy_of("|S1", "(2, 2)", "abcd", "True"))
                  .same_bits(Tensor::of<std::string>(kString, {2, 2}, {"a", "c", "b", "d"})));
  for (const std::string& bad :
       {npy_of("|S3", "(2,)", "abcde"), npy_of("|S3", "(2,)", "abcdefg"), npy_of("|S0", "(2,)", ""),
        npy_of("|S999999999999999999999", "(2,)", ""), npy_of("|S-1", "(2,)", ""), npy_of("|S", "(2,)", ""),
        npy_of("<U1", "(1,)", "\xff\xff\xff\xff"), npy_of("|O", "(1,)", "12345678"),
        npy_of("|S4", "(4611686018427387904,)", "abcd")})
    EXPECT_THROW(parsed(bad), Error);
  EXPECT_THROW(npy_bytes(Tensor::of<std::string>(kString, {1}, {std::string("a\0", 2)})), Error);
}

TEST(Npz, ReadsStoredAndDeflatedMembers) {
  auto stored = NpzFile::open(kData + "stored.npz");
  EXPECT_EQ(stored->names(), (std::vector<std::string>{"conv1:0", "conv1/bias"}));
  EXPECT_TRUE(stored->read("conv1/bias").same_bits(Tensor::of_i64({1, -2})));
  auto deflated = NpzFile::open(kData + "deflated.npz");
  EXPECT_TRUE(deflated->read("conv1:0").same_bits(Tensor::zeros(kF16, {64, 64})));
  EXPECT_TRUE(deflated->read("flags").same_bits(Tensor::of<uint8_t>(kBool, {2}, {1, 0})));
}

TEST(Npz, WritesWhatItReads) {
  TestFolder folder;
  Tensor a = Tensor::of(kF32, {3}, ramp(3)), b = Tensor::of_i64({7});
  write_npz(folder.path("t.npz"), {{"a", a}, {"scope/b:1", b}});
  auto npz = NpzFile::open(folder.path("t.npz"));
  EXPECT_TRUE(npz->read("a").same_bits(a));
  EXPECT_TRUE(npz->read("scope/b:1").same_bits(b));
  EXPECT_THROW(npz->read("c"), Error);
}

DumpFile sample(const Tensor& input, const Tensor& output) {
  DumpFile file;
  file.op_name = "scope/conv1", file.time = 1605000000000000;
  file.inputs = {to_dump(input)}, file.outputs = {to_dump(output), to_dump(input)};
  file.outputs[0].format = 3, file.outputs[0].original_dims = {1, 3, 2, 2}, file.outputs[0].address = 4096;
  file.outputs[0].original_name = "scope/relu1", file.outputs[0].original_index = 2,
  file.outputs[0].original_format = 1;
  file.buffers = {"buffer"}, file.spaces = {"space!", ""};
  return file;
}

TEST(DumpData, RoundTripsInBothForms) {
  TestFolder folder;
  Tensor input = Tensor::of(kF32, {5}, ramp(5)), output = Tensor::zeros(kF16, {1, 1, 2, 2, 16});
  for (int version : {1, 2})
    for (int asked : {version, 0}) {
      write_dump(folder.path("d"), sample(input, output), version);
      DumpFile file = read_dump(folder.path("d"), asked);
      EXPECT_EQ(file.op_name, "scope/conv1");
      EXPECT_EQ(file.time, 1605000000000000u);
      ASSERT_EQ(file.outputs.size(), 2u);
      const DumpTensor& first = file.outputs[0];
      EXPECT_EQ(first.original_name, "scope/relu1");
      EXPECT_EQ(first.original_index, 2);
      EXPECT_EQ(first.original_dims, (std::vector<int64_t>{1, 3, 2, 2}));
      EXPECT_EQ(first.address, 4096);
      EXPECT_EQ(layout_name(first.format), "NC1HWC0");
      EXPECT_TRUE(to_tensor(first, "", file.owner).same_bits(output));
      EXPECT_TRUE(to_tensor(file.inputs.at(0), "", file.owner).same_bits(input));
      EXPECT_EQ(file.buffers, (std::vector<std::string_view>{"buffer"}));
      EXPECT_EQ(file.spaces, (std::vector<std::string_view>{"space!", ""}));
    }
}

TEST(DumpData, SmallFloatsBecomeFloat32) {
  DumpTensor dumped;
  dumped.dims = {6};
  auto values = [&](int type, const std::string& bytes) {
    dumped.data_type = type, dumped.data = bytes;
    return to_tensor(dumped, "", nullptr).as_f64();
  };
  // 1, -2, the smallest, the largest, and what is not finite.
  EXPECT_EQ(values(35, "\x38\xc0\x01\x7e\x08\xfe"), (std::vector<double>{1, -2, 0x1p-9, 448, 0x1p-6, -448}));
  EXPECT_EQ(values(34, "\x3c\xc0\x01\x7b\x7c\xfc"), (std::vector<double>{1, -2, 0x1p-16, 57344, INFINITY, -INFINITY}));
  EXPECT_EQ(values(36, "\x7f\x80\x7e\x81\x7d\x82"), (std::vector<double>{1, 2, 0.5, 4, 0.25, 8}));
}

TEST(DumpData, RefusesWhatDoesNotFit) {
  DumpTensor dumped;
  dumped.dims = {4}, dumped.data = "seven b";
  EXPECT_THROW(to_tensor(dumped, "file", nullptr), Error);
  dumped.data_type = 13;
  EXPECT_THROW(to_tensor(dumped, "file", nullptr), Error);
}

std::string described(const std::string& name) {
  auto parsed = parse_file_name(name);
  if (!parsed) return "none";
  constexpr const char* kKinds[] = {"dump", "decoded", "raw", "framework", "overflow"};
  std::string text = fmt::format("{} {} {} task {} stream {} time {}", kKinds[static_cast<int>(parsed->kind)],
                                 parsed->op_type, parsed->op, parsed->task, parsed->stream, parsed->time);
  if (parsed->kind == FileName::Kind::dump || parsed->kind == FileName::Kind::overflow) return text;
  return text + fmt::format(" {} {} [{}] {} {}", parsed->input ? "input" : "output", parsed->index,
                            fmt::join(parsed->dims, ","), parsed->dtype, parsed->layout);
}

TEST(Names, AreThoseOfEveryWriter) {
  EXPECT_EQ(described("Conv2D.conv1_Conv2D.3.7.1605000000000000"),
            "dump Conv2D conv1_Conv2D task 3 stream 7 time 1605000000000000");
  EXPECT_EQ(described("Conv2D.c.3.1605000000000000.0.1.2.0"), "dump Conv2D c task 3 stream 0 time 1605000000000000");
  EXPECT_EQ(described("Conv2D.c_lxslice0.7.3.1605000000000000.0.1.2.0"),
            "dump Conv2D c_lxslice0 task 3 stream 7 time 1605000000000000");
  EXPECT_EQ(described("Add.a.1.2.9.input.1.npy"), "decoded Add a task 1 stream 2 time 9 input 1 []  ");
  EXPECT_EQ(described("Add.a.1.2.9.output.0.2_3.float16.ND.bin"),
            "raw Add a task 1 stream 2 time 9 output 0 [2,3] float16 ND");
  EXPECT_EQ(described("conv1_Relu.2.1605000000000000.npy"),
            "framework  conv1_Relu task 0 stream 0 time 1605000000000000 output 2 []  ");
  EXPECT_EQ(described("Opdebug.Node_OpDebug.3.1.5"), "overflow Opdebug Node_OpDebug task 3 stream 1 time 5");
  for (const char* other : {"readme.txt", "a.npy", "a.b.npy", ".0.1.npy", "Conv2D.c.x.1.2", "....", "", "a.-1.5.npy"})
    EXPECT_EQ(described(other), "none") << other;
  EXPECT_EQ(dump_file_name("Conv2D", "a/b.c d", 1, 2, 33), "Conv2D.a_b_c_d.1.2.0000000000000033");
}

/// Every element is its place in the plain tensor, plus one: what is padded stays zero.
Tensor numbered(const std::vector<int64_t>& dims) {
  Tensor tensor = Tensor::uninitialized(kI32, dims);
  auto values = tensor.mutable_values<int32_t>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i + 1);
  return tensor;
}

TEST(Layout, HasTheElementsWhereTheFormulaSays) {
  // [1, 18, 2, 3] as NC1HWC0 [1, 2, 2, 3, 16]: channel 17 of row 1, column 2 is in block 1 at place 1.
  Tensor plain = numbered({1, 18, 2, 3});
  Tensor blocked = to_blocks(plain, *find_layout("NCHW"), *find_layout("NC1HWC0"));
  EXPECT_EQ(blocked.dims(), (std::vector<int64_t>{1, 2, 2, 3, 16}));
  auto at = [](const Tensor& t, int64_t i) { return t.values<int32_t>()[static_cast<size_t>(i)]; };
  EXPECT_EQ(at(blocked, ((1 * 2 + 1) * 3 + 2) * 16 + 1), (17 * 2 + 1) * 3 + 2 + 1);
  EXPECT_EQ(at(blocked, ((1 * 2 + 1) * 3 + 2) * 16 + 2), 0);  // channel 18 does not exist
  // A matrix [3, 20] as FRACTAL_NZ [2, 1, 16, 16]: columns in blocks first.
  Tensor fractal = to_blocks(numbered({3, 20}), *find_layout("ND"), *find_layout("FRACTAL_NZ"));
  EXPECT_EQ(fractal.dims(), (std::vector<int64_t>{2, 1, 16, 16}));
  EXPECT_EQ(at(fractal, (1 * 16 + 2) * 16 + 3), 2 * 20 + 19 + 1);
  // A kernel [H2, W1, C3, N17] as FRACTAL_Z [C1*H*W = 2, N1 = 2, 16, 16].
  Tensor kernel = to_blocks(numbered({2, 1, 3, 17}), *find_layout("HWCN"), *find_layout("FRACTAL_Z"));
  EXPECT_EQ(kernel.dims(), (std::vector<int64_t>{2, 2, 16, 16}));
  EXPECT_EQ(at(kernel, ((1 * 2 + 1) * 16 + 0) * 16 + 2), (1 * 3 + 2) * 17 + 16 + 1);
}

TEST(Layout, EveryConverterGoesThereAndBack) {
  struct Case {
    std::vector<const char*> plain, stored;
    std::vector<int64_t> dims;
  };
  const Case cases[] = {
      {{"NCHW", "NHWC", "HWCN", "CHWN"},
       {"NCHW", "NHWC", "HWCN", "CHWN", "NC1HWC0", "FRACTAL_Z", "NHWC1C0", "C1HWNC0"},
       {2, 19, 3, 5}},
      {{"NCDHW", "NDHWC", "DHWCN", "DHWNC"}, {"NCDHW", "NDHWC", "DHWCN", "NDC1HWC0", "FRACTAL_Z_3D"}, {2, 19, 3, 5, 4}},
      {{"ND"}, {"FRACTAL_NZ", "FRACTAL_ZZ"}, {2, 3, 17, 33}},
      {{"ND"}, {"FRACTAL_NZ", "FRACTAL_ZZ"}, {17, 33}}};
  for (const Case& test : cases)
    for (const char* plain : test.plain)
      for (const char* stored : test.stored)
        for (int64_t block : {16, 32}) {
          SCOPED_TRACE(fmt::format("{} {} {}", plain, stored, block));
          const Layout &from = *find_layout(plain), &to = *find_layout(stored);
          Tensor tensor = numbered(test.dims), there = to_blocks(tensor, from, to, block);
          EXPECT_EQ(there.dims(), dims_in(from, test.dims, to, block));
          EXPECT_TRUE(from_blocks(there, to, from, test.dims).same_bits(tensor));
        }
}

TEST(Layout, RefusesWhatCannotBeTheSameTensor) {
  Tensor blocked = Tensor::zeros(kF16, {1, 2, 2, 3, 16});
  EXPECT_FALSE(fits(*find_layout("NC1HWC0"), blocked.dims(), *find_layout("NCHW"), {1, 33, 2, 3}));
  EXPECT_THROW(from_blocks(blocked, *find_layout("NC1HWC0"), *find_layout("NCHW"), {1, 33, 2, 3}), Error);
  EXPECT_THROW(from_blocks(blocked, *find_layout("NC1HWC0"), *find_layout("ND"), {6, 32}), Error);
  EXPECT_EQ(find_layout("NC1HWC0_C04"), nullptr);
  EXPECT_EQ(layout_name(12), "NC1HWC0_C04");
  PackedFormat packed = unpack_format(3 | 8 << 8 | 5 << 24);
  EXPECT_EQ(packed.primary, 3u);
  EXPECT_EQ(packed.sub_format, 8u);
  EXPECT_EQ(packed.block, 16);
}

}  // namespace
}  // namespace cairn::compare
