// Damaged model files: whatever is in them, a reader answers with a value or one sentence, in time and in bounded memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "frontends/import.h"
#include "frontends/tensorflow/tensor_bundle.h"
#include "models.h"
#include "support/report.h"

namespace cairn {
namespace {

constexpr int kMutants = 2000;
constexpr time_t kSecondsEach = 10;
constexpr size_t kSlack = size_t{256} << 20;
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMemoryIsLimited = false;  // the sanitizer takes much itself, and keeps what was freed
#else
constexpr bool kMemoryIsLimited = true;
#endif

using Random = std::mt19937_64;

size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

std::string varint(uint64_t value) {
  std::string text;
  for (; value > 0x7f; value >>= 7) text += static_cast<char>(0x80 | (value & 0x7f));
  return text + static_cast<char>(value);
}

/// Some fields of a protocol buffer message, found by reading it: where each starts, where its value is.
struct Field {
  size_t start, value, end;
  int wire;
};
std::vector<Field> fields_of(const std::string& bytes, size_t from, size_t to) {
  std::vector<Field> fields;
  auto number = [&](size_t& at, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at < to; shift += 7) {
      uint8_t byte = static_cast<uint8_t>(bytes[at++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  };
  for (size_t at = from; at < to;) {
    Field field{at, 0, 0, 0};
    uint64_t tag = 0, length = 0;
    if (!number(at, tag)) return {};
    field.wire = tag & 7;
    field.value = at;
    if (field.wire == 0 && number(at, length)) {
      field.end = at;
    } else if (field.wire == 2 && number(at, length) && length <= to - at) {
      field.value = at;
      field.end = at + length;
    } else if (field.wire == 5 && to - at >= 4) {
      field.end = at + 4;
    } else if (field.wire == 1 && to - at >= 8) {
      field.end = at + 8;
    } else {
      return {};
    }
    at = field.end;
    fields.push_back(field);
  }
  return fields;
}

/// A message with one field changed, copied, removed or exchanged somewhere below; lengths around it stay right.
std::string mutate_structure(const std::string& bytes, Random& random, int depth = 0) {
  std::vector<Field> fields = fields_of(bytes, 0, bytes.size());
  if (fields.empty()) return bytes + "\x08\x01";
  const Field& field = fields[below(random, fields.size())];
  std::string tag = bytes.substr(field.start, 1);
  std::string before = bytes.substr(0, field.start), after = bytes.substr(field.end);
  std::string whole = bytes.substr(field.start, field.end - field.start);
  if (field.wire == 2 && depth < 12 && below(random, 5) != 0) {
    std::string inner = mutate_structure(bytes.substr(field.value, field.end - field.value), random, depth + 1);
    return before + tag + varint(inner.size()) + inner + after;
  }
  static constexpr uint64_t kNumbers[] = {0,
                                          1,
                                          2,
                                          0x7f,
                                          0xffff,
                                          0x7fffffff,
                                          0xffffffff,
                                          uint64_t{1} << 40,
                                          uint64_t{1} << 62,
                                          ~uint64_t{0},
                                          ~uint64_t{0} - 1};
  switch (below(random, 5)) {
    case 0: return before + after;
    case 1: return before + whole + whole + after;
    case 2: {  // another field in its place: references to other nodes, cycles
      const Field& other = fields[below(random, fields.size())];
      return before + bytes.substr(other.start, other.end - other.start) + after;
    }
    case 3:
      if (field.wire == 0) return before + tag + varint(kNumbers[below(random, std::size(kNumbers))]) + after;
      if (field.wire == 2) {
        std::string value = bytes.substr(field.value, field.end - field.value);
        value.resize(below(random, value.size() + 1));
        return before + tag + varint(value.size()) + value + after;
      }
      return before + after;
    default: {
      std::string packed;
      for (int i = 0; i < 4; ++i) packed += varint(kNumbers[below(random, std::size(kNumbers))]);
      return before + tag + varint(packed.size()) + packed + after;
    }
  }
}

std::string mutate_bytes(std::string bytes, Random& random) {
  switch (below(random, 4)) {
    case 0: bytes.resize(below(random, bytes.size())); break;
    case 1:
      for (size_t n = 1 + below(random, 4); n > 0; --n)
        bytes[below(random, bytes.size())] = static_cast<char>(random());
      break;
    case 2: bytes[below(random, bytes.size())] ^= static_cast<char>(1 << below(random, 8)); break;
    default: {
      size_t from = below(random, bytes.size()), to = below(random, bytes.size());
      size_t size = below(random, std::min<size_t>(64, bytes.size() - std::max(from, to)));
      bytes.replace(to, size, bytes.substr(from, size));
    }
  }
  return bytes;
}

/// Text: a word or bracket replaced by another one of the same file.
std::string mutate_text(std::string text, Random& random) {
  static constexpr const char* kWords[] = {"{",        "}",
                                           "[",        ":",
                                           "\"",       "null",
                                           "1e999",    "node {",
                                           "size: -1", "size: 4611686018427387904",
                                           "#",        "-9223372036854775808",
                                           "\\x"};
  size_t at = below(random, text.size());
  text.replace(at, below(random, 12), kWords[below(random, std::size(kWords))]);
  return text;
}

size_t resident_kib() {
  std::ifstream status("/proc/self/statm");
  size_t total = 0, resident = 0;
  status >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

struct Reader {
  const char* name;
  const char* seed;  // below tests/frontends/data
  enum { message, text, table } form;
  std::function<void(const std::string& path)> read;
};

void read_graph(const tensorflow::GraphDef& graph) {
  for (const tensorflow::Node& node : graph.nodes)
    for (const tensorflow::Attr& attr : node.attrs) {
      tensorflow::AttrValue value = decode(attr, *graph.model);
      if (value.kind == tensorflow::AttrValue::Kind::tensor) read_tensor(value, graph.model, std::string(node.name));
    }
}

void read_onnx_graph(const onnx::Graph& graph, const onnx::Model& model) {
  for (const onnx::TensorProto& tensor : graph.initializers) read_tensor(tensor, model, std::string(tensor.name));
  for (const onnx::Node& node : graph.nodes)
    for (const onnx::Attribute& attribute : node.attributes) {
      if (attribute.graph) read_onnx_graph(*attribute.graph, model);
      if (attribute.type == onnx::Attribute::Type::tensor) read_tensor(attribute.tensor, model, "attribute");
    }
}

const Reader kReaders[] = {
    {"GraphDef", "constants.pb", Reader::message, [](auto& path) { read_graph(tensorflow::read_graph_def(path)); }},
    {"GraphDefText", "constants.pbtxt", Reader::text, [](auto& path) { read_graph(tensorflow::read_graph_def(path)); }},
    {"SavedModel", "dense/saved_model.pb", Reader::message,
     [](auto& path) {
       // The model's folder is the mutant's own: saved_model.pb beside sound variables.
       auto frozen = tensorflow::freeze(tensorflow::read_saved_model(std::filesystem::path(path).parent_path()));
       read_graph(frozen.graph);
     }},
    {"TensorBundle", "dense/variables/variables.index", Reader::table,
     [](auto& path) {
       tensorflow::TensorBundle bundle(path.substr(0, path.size() - 6));
       for (const auto& [name, entry] : bundle.entries()) bundle.read(name);
     }},
    {"Onnx", "branch.onnx", Reader::message,
     [](auto& path) {
       onnx::Model model = onnx::read_model(path);
       read_onnx_graph(model.graph, model);
     }},
    {"ImportTensorFlow", "control.pb", Reader::message, [](auto& path) { import_model(path); }},
    {"ImportOnnx", "branch.onnx", Reader::message, [](auto& path) { import_model(path); }},
    {"KerasHdf5", "tiny.h5", Reader::table, [](auto& path) { import_model(path); }},
    {"KerasHdf5Text", "tiny.h5", Reader::text, [](auto& path) { import_model(path); }},
    {"KerasArchive", "tiny.keras", Reader::table, [](auto& path) { import_model(path); }},
    {"KerasArchiveText", "tiny.keras", Reader::text, [](auto& path) { import_model(path); }},
};

std::ostream& operator<<(std::ostream& stream, const Reader& reader) { return stream << reader.name; }

class Mutants : public testing::TestWithParam<Reader> {};

/// Runs in a child: exit code 0 when every mutant gave a value or an Error and the sound file gave a value.
int read_all(const Reader& reader, const std::string& path, int report) {
  std::string seed = test::read_file(path);
  reader.read(path);
  Random random(7);
  const itimerval limit{{}, {kSecondsEach, 0}};  // of processor time: the machine may be busy
  int read = 0;
  for (int i = 0; i < kMutants; ++i) {
    std::string mutant = reader.form == Reader::text && i % 2 == 0      ? mutate_text(seed, random)
                         : reader.form == Reader::message && i % 2 == 0 ? mutate_structure(seed, random)
                                                                        : mutate_bytes(seed, random);
    std::filesystem::remove(path);  // written over, some file systems would sync it
    std::ofstream(path, std::ios::binary) << mutant;
    if (write(report, &i, sizeof(i)) != sizeof(i)) return 3;
    setitimer(ITIMER_PROF, &limit, nullptr);
    try {
      reader.read(path);
      ++read;
    } catch (const Error& error) {
      const auto* report = dynamic_cast<const ReportError*>(&error);
      std::string text = report ? report->headline() : error.what();
      if (text.find('\n') != std::string::npos || text.size() < 8 || text.size() > 1000) return 4;
    }
    if (kMemoryIsLimited && resident_kib() * 1024 > 2 * mutant.size() + kSlack) return 5;
  }
  return read < kMutants ? 0 : 6;  // every mutant read: they cannot have been damaged
}

TEST_P(Mutants, GiveAValueOrOneSentence) {
  const Reader& reader = GetParam();
  std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / (std::string("mutants-") + reader.name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::filesystem::path seed = test::data(reader.seed);
  std::filesystem::copy(seed.parent_path(), folder, std::filesystem::copy_options::recursive);
  std::string path = folder / seed.filename();
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  pid_t child = fork();
  if (child == 0) {
    rlimit memory{kSlack + (size_t{128} << 20), kSlack + (size_t{128} << 20)};  // and what the program itself takes
    if (kMemoryIsLimited) setrlimit(RLIMIT_DATA, &memory);
    close(report[0]);
    int code = 2;
    try {
      code = read_all(reader, path, report[1]);
    } catch (...) {
    }
    _exit(code);
  }
  close(report[1]);
  int last = -1;
  for (int number; read(report[0], &number, sizeof(number)) == sizeof(number);) last = number;
  close(report[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << " at mutant " << last;
  EXPECT_EQ(WEXITSTATUS(status), 0) << "at mutant " << last
                                    << "; 2: another exception, 4: message, 5: memory, 6: all read";
}
INSTANTIATE_TEST_SUITE_P(Readers, Mutants, testing::ValuesIn(kReaders),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cairn
