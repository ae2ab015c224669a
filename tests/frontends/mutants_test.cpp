// Damaged model files: whatever is in them, a reader answers with a value or one sentence, in time and in bounded memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "frontends/import.h"
#include "frontends/tensorflow/tensor_bundle.h"
#include "models.h"
#include "mutants.h"
#include "sanitized.h"
#include "support/report.h"

namespace cairn {
namespace {

constexpr int kMutants = 2000, kThorough = 34000;
constexpr time_t kSecondsEach = 10;
constexpr size_t kSlack = size_t{256} << 20;
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
  int thorough = kMutants;  // with CAIRN_TEST_ALL=1

  int mutants() const {
    const char* all = std::getenv("CAIRN_TEST_ALL");
    return all && std::string_view(all) == "1" ? thorough : kMutants;
  }
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
     },
     kThorough},
    {"ImportTensorFlow", "control.pb", Reader::message, [](auto& path) { import_model(path); }},
    {"ImportOnnx", "branch.onnx", Reader::message, [](auto& path) { import_model(path); }, kThorough},
    {"ImportLearning", "learning.onnx", Reader::message, [](auto& path) { import_model(path); }, kThorough},
    {"ImportContrib", "contrib.onnx", Reader::message, [](auto& path) { import_model(path); }, kThorough},
    {"Caffe", "caffe/tiny.prototxt", Reader::text,
     [](auto& path) {
       ImportOptions options;
       options.weights = path.substr(0, path.rfind('.')) + ".caffemodel";
       import_model(path, options);
     },
     kThorough},
    {"CaffeBoxes", "caffe/boxes.prototxt", Reader::text,
     [](auto& path) {
       ImportOptions options;
       options.weights = std::filesystem::path(path).parent_path() / "tiny.caffemodel";
       import_model(path, options);
     },
     kThorough},
    {"CaffeWeights", "caffe/tiny.caffemodel", Reader::message,
     [](auto& path) {
       ImportOptions options;
       options.weights = path;
       import_model(path.substr(0, path.rfind('.')) + ".prototxt", options);
     },
     kThorough},
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
  for (int i = 0; i < reader.mutants(); ++i) {
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
    if (kMemoryCounts && resident_kib() * 1024 > 2 * mutant.size() + kSlack) return 5;
  }
  return read < reader.mutants() ? 0 : 6;  // every mutant read: they cannot have been damaged
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
    if (kMemoryCounts) setrlimit(RLIMIT_DATA, &memory);
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
