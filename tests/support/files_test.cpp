// Files that are replaced as a whole, and the one list of problems.
#include "support/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "support/fault.h"
#include "support/part_file.h"
#include "support/report.h"

/// A signal handler may not free the names of the files that it removes.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions() {
  return "leak:tests/support/files_test.cpp";
}

namespace cairn {
namespace {

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "cairn.XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_;
};

TEST_F(Folder, APathThatDoesNotExistHasTheNearestFileOfItsFolder) {
  for (const char* name : {"net.pb", "other.onnx"}) std::ofstream(folder_ / name) << "x";
  const auto near = [&](const std::string& name) { return near_file(folder_ / name); };
  const std::string meant = "; did you mean " + (folder_ / "net.pb").string() + "?";
  for (const char* wrong : {"nett.pb", "Net.pb", "net.bp", "net"}) EXPECT_EQ(near(wrong), meant) << wrong;
  EXPECT_EQ(near("resnet_v2.pb"), "");
  EXPECT_EQ(near("models/net.pb"), "; there is no folder " + (folder_ / "models").string());
  EXPECT_EQ(near_file("models\\net.pb"), "; parts of a path are separated by '/'");
  try {
    read_file(folder_ / "Net.pb");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with(meant)) << error.what();
  }
}

using Files = Folder;

TEST_F(Files, WritingReplacesAndLeavesNothingElse) {
  std::string path = folder_ / "a";
  write_file(path, "one");
  ::chmod(path.c_str(), 0640);
  write_file(path, "two");
  EXPECT_EQ(read_file(path), "two");
  struct stat info {};
  ::stat(path.c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(MappedFile::open(path)->bytes(), "two");
}

TEST_F(Files, AnErrorWhileWritingLeavesTheOldFile) {
  std::string path = folder_ / "a";
  write_file(path, "old");
  EXPECT_THROW(write_file(path,
                          [](const FileSink& sink) {
                            sink("new");
                            fail(ErrorKind::unsupported, "", "stop");
                          }),
               Error);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, AKilledWriterLeavesTheOldFile) {
  std::string path = folder_ / "a";
  write_file(path, "old");
  pid_t child = ::fork();
  if (child == 0) {
    write_file(path, [](const FileSink& sink) {
      sink("half");
      ::kill(::getpid(), SIGKILL);
    });
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_file(path), "old");
}

TEST_F(Files, ALinkStaysALink) {
  write_file(folder_ / "real", "old");
  std::filesystem::create_symlink("real", folder_ / "link");
  write_file(folder_ / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "real"), "new");
}

TEST_F(Files, APipeIsWrittenToAndStaysOne) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file(pipe, "content");
  char content[16] = {};
  EXPECT_EQ(::read(reader, content, sizeof content), 7);
  EXPECT_STREQ(content, "content");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, WhatCannotBeReadIsNamed) {
  ::mkfifo((folder_ / "pipe").c_str(), 0600);
  for (const char* name : {"missing", "pipe", "."}) {
    try {
      MappedFile::open(folder_ / name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.where(), folder_ / name);
    }
  }
}

TEST_F(Files, ALinkToNothingYetIsWrittenThrough) {
  std::filesystem::create_directory(folder_ / "models");
  std::filesystem::create_symlink("models/new", folder_ / "link");
  std::filesystem::create_symlink("link", folder_ / "link to link");
  write_file(folder_ / "link to link", "content");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link to link"));
  EXPECT_EQ(read_file(folder_ / "models" / "new"), "content");
}

TEST_F(Files, AnOpenDescriptorIsWrittenTo) {
  const int file = ::open((folder_ / "a").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::write(file, "before ", 7), 7);
  write_file(fmt::format("/dev/fd/{}", file), "content");
  ASSERT_EQ(::write(file, " after", 6), 6);
  ::close(file);
  EXPECT_EQ(read_file(folder_ / "a"), "before content after");
}

TEST_F(Files, WhatCannotBeWrittenIsNamed) {
  std::filesystem::create_symlink("circle", folder_ / "circle");
  std::filesystem::create_directory(folder_ / "folder");
  write_file(folder_ / "file", "old");
  const std::pair<const char*, const char*> cases[] = {
      {"circle", "circle: cannot be written: Too many levels of symbolic links"},
      {"folder", "folder: is a folder, cannot be written as a file"},
      {"missing/a", "missing/a: cannot be written: "},
      {"file/a", "file/a: cannot be written: Not a directory"},
  };
  for (const auto& [name, message] : cases) try {
      write_file(folder_ / name, "new");
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  EXPECT_THROW(write_file("/dev/full", "new"), Error);
  write_file("/dev/null", "new");
  EXPECT_EQ(read_file(folder_ / "file"), "old");
  EXPECT_EQ(entries(), 3u);
}

TEST_F(Files, AFileThatIsOnlyReadStays) {
  write_file(folder_ / "a", "old");
  ::chmod((folder_ / "a").c_str(), 0444);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::chmod(folder_.c_str(), 0777) != 0 || ::setuid(65534) != 0)) ::_exit(2);
    try {
      write_file(folder_ / "a", "new");
    } catch (const Error&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder_ / "a"), "old");
}

TEST_F(Files, PartsOfDeadWritersGoAndThoseOfLivingOnesStay) {
  for (const char* name : {"mine.part", ".mine.part", ".a.1.2.part"}) std::ofstream(folder_ / name) << "the user's";
  for (int i = 0; i < 5; ++i) {
    const pid_t child = ::fork();
    if (child == 0)
      write_file(folder_ / "a", [](const FileSink& sink) {
        sink("half");
        ::kill(::getpid(), SIGKILL);
      });
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  // In processes of their own: one removes what is left in a folder when it first writes there.
  const auto in_child = [&](const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  };
  write_file(folder_ / "b", [&](const FileSink& sink) {
    sink("half");
    in_child([&] { write_file(folder_ / "c", "whole"); });
    sink(" and half");
  });
  EXPECT_EQ(read_file(folder_ / "b"), "half and half");
  EXPECT_EQ(entries(), 5u);  // b, c and the user's
}

TEST_F(Files, RenamesThatAWriterLeftAreMadeByTheNextReaderOrWriter) {
  for (bool by_reader : {true, false}) {
    write_file(folder_ / "a", "old a");
    write_file(folder_ / "b", "old b");
    const pid_t child = ::fork();
    if (child == 0) {  // as far as commit_all() comes with its list and the first rename
      PartFile a(folder_ / "a"), b(folder_ / "b");
      a.write("new a"), b.write("new b");
      const auto name = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
      std::ofstream(folder_ / ".a.renames") << name(a.part()) << "/a/" << name(b.part()) << "/b/";
      a.commit();
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(read_file(folder_ / "b"), "old b");
    if (by_reader) {
      complete_renames(folder_ / "a");
    } else {
      const pid_t writer = ::fork();
      if (writer == 0) {
        write_file(folder_ / "c", "c");
        ::_exit(0);
      }
      ::waitpid(writer, &status, 0);
    }
    EXPECT_EQ(read_file(folder_ / "a"), "new a");
    EXPECT_EQ(read_file(folder_ / "b"), "new b");
    EXPECT_EQ(entries(), by_reader ? 2u : 3u);
  }
}

TEST_F(Files, AListOfRenamesMovesPartFilesOfItsFolderAlone) {
  write_file(folder_ / "mine", "mine");
  write_file(folder_ / "a", "old");
  std::ofstream(folder_ / ".a.renames") << "mine/a/.mine.1-2.3.part/a/";
  complete_renames(folder_ / "a");
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(read_file(folder_ / "mine"), "mine");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(Files, FilesThatBelongTogetherAreCommittedTogether) {
  write_file(folder_ / "a", "old");
  {
    PartFile a(folder_ / "a"), b(folder_ / "b");
    a.write("new a"), b.write("new b");
    PartFile::commit_all({&a, &b});
  }
  EXPECT_EQ(read_file(folder_ / "a") + read_file(folder_ / "b"), "new anew b");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(Files, ASignalHandlerRemovesWhatIsBeingWritten) {
  write_file(folder_ / "b", "old");
  {
    PartFile a(folder_ / "a"), b(folder_ / "b");
    a.write("half");
    EXPECT_EQ(entries(), 3u);
    EXPECT_EQ(remove_part_files(), 2u);
    EXPECT_EQ(remove_part_files(), 0u);
    EXPECT_THROW(b.commit(), Error);
  }
  EXPECT_EQ(read_file(folder_ / "b"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, AFullDiskLeavesTheOldFile) {
  write_file(folder_ / "a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    try {
      write_file(folder_ / "a", std::string(5000, 'x'));
    } catch (const Error& error) {
      const std::string text = error.what();
      ::_exit(text.find("a: cannot be written: File too large") == std::string::npos);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(entries(), 1u);
}

/// The sentence for what `body` throws.
std::string told(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    return current_fault().what();
  }
  return "nothing";
}

TEST(Fault, TheSystemsExceptionsAreToldInOurWords) {
  namespace fs = std::filesystem;
  EXPECT_EQ(told([] { fs::create_directories("/proc/self/none/a"); }),
            "/proc/self/none/a: cannot create directories: No such file or directory");
  EXPECT_EQ(told([] { fs::create_directories("/proc/self/status/a"); }),
            "/proc/self/status/a: a folder cannot be made here: a file, or a link that leads nowhere, is in the way");
  EXPECT_EQ(told([] {
              throw std::system_error(EAGAIN, std::generic_category());
            }).substr(0, std::string("no thread could be started").size()),
            "no thread could be started");
  EXPECT_EQ(told([] { throw NoMemory(size_t{5} << 30); }).substr(0, 48),
            "memory ran out when 5120 MiB more were asked for");
  EXPECT_EQ(told([] { throw std::bad_alloc(); }).substr(0, 14), "memory ran out");
  EXPECT_EQ(told([] { throw std::system_error(ENOSPC, std::system_category(), "cannot write to file"); }),
            "the output cannot be written: No space left on device; free some space or name another folder");
  EXPECT_EQ(told([] { fail(ErrorKind::io, "a", "is odd"); }), "a: is odd");
}

TEST(ReportText, EqualProblemsBecomeOneLineWithAllNodes) {
  Report report;
  for (const char* node : {"head/a", "head/b", "head/c"})
    report.add({"unsupported-op", Severity::error, "MyOp", {{node, "train.py:7"}}, "unknown operator", "register it"});
  report.add({"unsupported-op", Severity::warning, "DecodeJpeg", {{"input/decode", ""}}, "host operator"});
  EXPECT_EQ(
      report.text(),
      "  MyOp        3 nodes  head/a (train.py:7), head/b (train.py:7) and 1 more  unknown operator; register it\n"
      "  DecodeJpeg  1 node   input/decode                                      warning: host operator\n");
  EXPECT_EQ(report.count(Severity::error), 1u);
}

TEST(ReportText, JsonAndSarifHoldEveryPlaceAndSurviveBadText) {
  Report report;
  report.add({"unsupported-op", Severity::error, "My\xff", {{"a", "train.py:7"}, {"b", ""}}, "unknown operator"});
  auto json = nlohmann::json::parse(report.json());
  EXPECT_EQ(json["problems"][0]["places"].size(), 2u);
  auto sarif = nlohmann::json::parse(report.sarif("m.pb"));
  const auto& locations = sarif["runs"][0]["results"][0]["locations"];
  EXPECT_EQ(locations[0]["physicalLocation"]["region"]["startLine"], 7);
  EXPECT_EQ(locations[1]["physicalLocation"]["artifactLocation"]["uri"], "m.pb");
}

TEST_F(Folder, TextsOfWindowsAreReadWithoutTheirByteOrderMarks) {
  const std::string path = folder_ / "text";
  for (const std::string& bytes : {std::string("\xef\xbb\xbf"
                                               "a\xc3\xa4\xf0\x9f\x98\x80"),
                                   std::string("\xff\xfe"
                                               "a\0\xe4\0\x3d\xd8\0\xde",
                                               10),
                                   std::string("\xfe\xff\0a\0\xe4\xd8\x3d\xde\0", 10)}) {
    write_file(path, bytes);
    EXPECT_EQ(read_text(path), "a\xc3\xa4\xf0\x9f\x98\x80");
  }
}

}  // namespace
}  // namespace cairn
