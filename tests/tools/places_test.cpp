// Every command where a file that it reads or writes is a link, a folder, a pipe, a device, damaged, or cannot be made.
#include <sys/stat.h>

#include <random>

#include "tools/command_folder.h"

namespace cairn {
namespace {

struct Writer {
  const char* line;              // OUT is what it writes
  const char* ending = nullptr;  // of a file; null: a folder
};

constexpr Writer kWriters[] = {
    {"cairn convert m.cairn -o OUT", ".om"},
    {"cairn convert m.cairn -o OUT", ".onnx"},
    {"cairn quantize m.om --weights-only 8 -o OUT", ".om"},
    {"cairn quantize m.om --data x.npz -o q.om --report OUT", ".html"},
    {"cairn quantize m.om --data x.npz -o q.om --write-config OUT", ".cfg"},
    {"cairn quantize m.om --data x.npz -o q.om --write-record OUT", ".txt"},
    {"cairn run m.om -o OUT", ".npz"},
    {"cairn train m.onnx --data x.npz --loss mse --epochs 1 -o OUT", ".onnx"},
    {"cairn train m.onnx --data x.npz --loss mse --epochs 1 -o t.onnx --checkpoint OUT", ".npz"},
    {"cairn migrate scripts -o moved --csv OUT", ".csv"},
    {"cairn migrate scripts -o moved --html OUT", ".html"},
    {"cairn migrate scripts -o moved --sarif OUT", ".sarif"},
    {"cairn migrate scripts -o moved --xlsx OUT", ".xlsx"},
    {"cairn compare results/y.npy results/y.npy --csv OUT", ".csv"},
    {"cairn compare results/y.npy results/y.npy --json OUT", ".json"},
    {"cairn compare results/y.npy results/y.npy --html OUT", ".html"},
    {"cairn data inspect t.csv --html OUT", ".html"},
    {"cairn data convert t.csv -o OUT", ".tfrecord"},
    {"cairn data convert t.csv -o OUT", ".csv"},
    {"cairn profile merge ranks -o OUT", ".trace"},
    {"cairn simulate m.om --batch 4 --ranks 2 --network 5us,100Gb/s -o OUT", ".html"},
    {"atc --mode=1 --om=m.om --json=OUT", ".json"},
    {"atc --mode=3 --model=m.onnx --framework=5 --soc_version=Ascend310 --check_report=OUT", ".json"},
    {"cairn run m.om -o OUT"},
    {"cairn run m.om --dump OUT"},
    {"cairn diff m.om m.cairn -o OUT"},
    {"cairn migrate scripts -o OUT"},
    {"cairn migrate scripts -o moved --report OUT"},
    {"cairn profile -o OUT -- @/cairn run m.om"},
    {"cairn bench m.om --seconds 0 --runs 2 --profile OUT"},
    {"cairn op new acme.gelu2 --folder OUT"},
    {"cairn launch -n 2 --log-dir OUT @/cairn check m.om"},
    {"msame --model m.om --output OUT"},
    {"msprof --output=OUT @/cairn run m.om"},
    {"msaccucmp compare -m results -g results -out OUT"},
    {"atc --singleop=relu.json --soc_version=Ascend310 --output=OUT"},
};

struct Reader {
  const char* line;  // IN is what it reads
  const char* ending;
  bool any_text = false;  // nothing at all is a content, too
};

constexpr Reader kReaders[] = {
    {"cairn show IN", ".om"},
    {"cairn show IN", ".keras"},
    {"cairn convert IN -o c.om", ".pb"},
    {"cairn convert IN -o c.om", ".onnx"},
    {"cairn freeze IN -o f.pb", ".pb"},
    {"cairn check IN", ".om"},
    {"cairn run IN", ".cairn"},
    {"cairn run m.om --input x=IN", ".npy"},
    {"cairn run m.om --input x=IN", ".npz"},
    {"cairn run m.om --input x=IN", ".bin"},
    {"cairn run m.om --op-library IN", ".so"},
    {"cairn op test IN", ".so"},
    {"cairn op list --op-library IN", ".so"},
    {"cairn quantize m.om --data IN -o q.om", ".npz"},
    {"cairn quantize m.om --data x.npz --config IN -o q.om", ".cfg"},
    {"cairn quantize m.om --data x.npz --record IN -o q.om", ".txt"},
    {"cairn train m.onnx --data IN --loss mse --epochs 1", ".npz"},
    {"cairn bench IN --seconds 0", ".om"},
    {"cairn why IN", ".json"},
    {"cairn verify IN --steps", ".om"},
    {"cairn diff IN m.om", ".om"},
    {"cairn migrate IN", ".py", true},
    {"cairn migrate scripts -o moved --config IN", ".json"},
    {"cairn compare IN results/y.npy", ".npy"},
    {"cairn compare results/y.npy IN", ".npz"},
    {"cairn compare results/y.npy IN", ".dump"},
    {"cairn compare results -f IN results", ".json", true},
    {"cairn data inspect IN", ".csv", true},
    {"cairn data inspect IN", ".tfrecord", true},
    {"cairn data convert IN -o c.tfrecord", ".mindrecord"},
    {"cairn profile export IN", ""},
    {"cairn profile merge IN", ""},
    {"cairn simulate IN --batch 4 --ranks 2 --network 5us,100Gb/s", ".om"},
    {"cairn simulate m.om --batch 4 --ranks 2 --network IN", ".json"},
    {"cairn launch --rank-table IN @/cairn check m.om", ".json"},
    {"atc --model=IN --framework=3 --soc_version=Ascend310 --output=a", ".pb"},
    {"atc --model=IN --framework=0 --weight=IN --soc_version=Ascend310 --output=a", ".prototxt"},
    {"atc --singleop=IN --soc_version=Ascend310 --output=a", ".json"},
    {"atc --model=m.onnx --framework=5 --soc_version=Ascend310 --output=a --insert_op_conf=IN", ".cfg"},
    {"atc --model=m.onnx --framework=5 --soc_version=Ascend310 --output=a --op_precision_mode=IN", ".ini", true},
    {"atc --model=m.onnx --framework=5 --soc_version=Ascend310 --output=a --customize_dtypes=IN", ".cfg", true},
    {"atc --mode=1 --om=IN --json=j.json", ".om"},
    {"atc --mode=6 --om=IN", ".om"},
    {"omg --model=IN --framework=5 --output=a", ".onnx"},
    {"msame --model IN --output out", ".om"},
    {"msame --model m.om --input IN --output out", ".bin"},
    {"msaccucmp convert -d IN -out out", ".bin"},
    {"msaccucmp file_compare -m IN -g IN -out out", ".npy"},
    {"msprof --export=on --output=IN", ""},
};

constexpr const char* kRelu = R"([{"op": "Relu",
  "input_desc": [{"format": "ND", "shape": [2, 3], "type": "float"}],
  "output_desc": [{"format": "ND", "shape": [2, 3], "type": "float"}]}])";

class Places : public CommandFolder {
 protected:
  void SetUp() override {
    CommandFolder::SetUp();
    write_file(folder_ / "relu.json", kRelu);
  }

  static std::string with(std::string line, const std::string& word, const std::string& path) {
    for (size_t at; (at = line.find(word)) != line.npos;) line.replace(at, word.size(), path);
    return line;
  }

  /// Runs what must end by itself; the status.
  int ended(const std::string& line) const {
    const Ending ending = run(line, [] { ::alarm(60); });
    EXPECT_EQ(ending.signal, 0) << line << said("errors");
    EXPECT_TRUE(parts().empty()) << line << parts()[0];
    return ending.status;
  }

  /// Runs what cannot work: it fails, and says so in lines that a terminal can show.
  void refused(const std::string& line) const {
    EXPECT_GT(ended(line), 0) << line;
    const std::string all = said("out") + said("errors");
    EXPECT_TRUE(all.find("rror") != all.npos || all.find("ERROR") != all.npos || all.find("failed") != all.npos)
        << line << all;
    for (const char* ours : {"filesystem error", "basic_", "std::", "terminate", "File exists"})
      EXPECT_EQ(all.find(ours), all.npos) << line << all;
    EXPECT_EQ(std::count_if(all.begin(), all.end(), [](char c) { return c == 0x7f || (c >= 0 && c < 9); }), 0) << line;
  }

  void remove(const std::string& name) const { fs::remove_all(folder_ / name); }
};

TEST_F(Places, ALinkAtTheOutputStaysAndItsFileIsWritten) {
  fs::create_directory(folder_ / "else");
  for (const Writer& writer : kWriters) {
    if (!writer.ending) continue;
    const std::string link = std::string("link") + writer.ending, target = std::string("else/target") + writer.ending;
    remove(target);
    fs::create_symlink(target, folder_ / link);
    for (const char* what : {"leads nowhere", "leads to a file"}) {
      EXPECT_EQ(ended(with(writer.line, "OUT", link)), 0) << writer.line << what << said("errors");
      EXPECT_TRUE(fs::is_symlink(folder_ / link)) << writer.line << what;
      EXPECT_GT(fs::file_size(folder_ / target), 0u) << writer.line << what;
    }
    remove(link);
  }
}

TEST_F(Places, AnOutputThatCannotBeMadeIsToldAndLeavesNothing) {
  write_file(folder_ / "plain", "content");
  fs::create_symlink("loop", folder_ / "loop");
  for (const Writer& writer : kWriters) {
    const std::string ending = writer.ending ? writer.ending : "";
    const std::string loop = "loop" + ending, nowhere = "nowhere" + ending;
    if (writer.ending) fs::create_symlink(loop, folder_ / loop);
    for (const std::string& output : {loop, "plain/a" + ending, std::string(300, 'n') + ending, "/proc/a" + ending})
      refused(with(writer.line, "OUT", output));
    if (!std::string(writer.line).starts_with("atc"))  // which takes an empty value for none, and says so
      refused(with(writer.line, "OUT", "''"));
    if (writer.ending) remove(loop);
    if (!writer.ending) {
      fs::create_symlink("none/there", folder_ / nowhere);
      refused(with(writer.line, "OUT", nowhere));
      EXPECT_TRUE(fs::is_symlink(folder_ / nowhere)) << writer.line;
      remove(nowhere);
    }
  }
  EXPECT_EQ(read_file(folder_ / "plain"), "content");
}

TEST_F(Places, AnInputThatIsNoPlainFileIsRefusedAndNotWaitedFor) {
  for (const Reader& reader : kReaders) {
    const std::string in = std::string("in") + reader.ending, line = with(reader.line, "IN", in);
    const fs::path path = folder_ / in;
    fs::create_symlink(in, path);
    refused(line);
    remove(in);
    fs::create_symlink("/dev/zero", path);
    refused(line);
    remove(in);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    refused(line);
    remove(in);
    fs::create_directory(path);
    ended(line);  // a folder may be what it wants
    remove(in);
  }
}

TEST_F(Places, AnInputWithoutOrWithAnyBytesIsNoCrash) {
  std::mt19937 random(7);
  std::string noise(5000, 0);
  for (char& c : noise) c = static_cast<char>(random());
  for (const Reader& reader : kReaders) {
    const std::string in = std::string("in") + reader.ending, line = with(reader.line, "IN", in);
    for (const std::string& content : {std::string(), std::string("\n"), noise}) {
      write_file(folder_ / in, content);
      if (reader.any_text)
        ended(line);
      else
        refused(line);
      remove(in);
    }
  }
}

}  // namespace
}  // namespace cairn
