// Hostile input: bounded in time, no crash, no byte lost, and the rest of the run unharmed.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "allocations.h"
#include "folder.h"
#include "migrate/options.h"
#include "migrate/reports.h"
#include "migrate/still_parses.h"
#include "migrate/tree.h"
#include "support/files.h"

namespace cairn::migrate {
namespace {

namespace fs = std::filesystem;

void expect_sound(const FileResult& file, const std::string& text) {
  ASSERT_EQ(file.before, text);
  uint32_t at = 0;
  for (const Edit& edit : file.edits) {
    ASSERT_GE(edit.begin, at);
    ASSERT_LE(edit.begin, edit.end);
    ASSERT_LE(edit.end, text.size());
    at = edit.end;
  }
}

// Counted work, as it does not depend on the machine: classes that inherit in circles allocate 560 times for each byte, others
// far less, and a quadratic walk of the shortest of these texts would 15,000 times.
TEST(hostile, deep_nesting_long_files_and_long_chains_allocate_in_proportion_to_their_length) {
  std::string head = "import tensorflow as tf\ns = tf.Session()\n";
  auto repeat = [](const std::string& piece, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += piece;
    return text;
  };
  std::vector<std::string> texts = {
      head + "x = " + repeat("(", 10000) + "1" + repeat(")", 10000) + "\n",
      head + "x = " + repeat("tf.f(", 10000) + repeat(")", 10000) + "\n",
      head + "x = tf" + repeat(".a", 10000) + "\n",
      head + "x = tf" + repeat("()", 10000) + "\n",
      head + "x = " + repeat("not ", 10000) + "1\n",
      head + "x = 1" + repeat(" if y else 2", 10000) + "\n",
      head + "x = " + repeat("[", 10000) + "\n",
      head + repeat("x = tf.nn.relu(x)\n", 100000),
      head + repeat("def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\n", 2000) + "f(1).batch(2)\n",
      head + repeat("class A(B, C): pass\nclass B(A, C): pass\nclass C(A, B): pass\n", 500) + "A().batch(3)\n",
      head + repeat("from a import *\n", 2000) + "Session()\n",
  };
  std::string nested;
  for (int i = 0; i < 90; ++i) nested += std::string(i, ' ') + "if x:\n";
  texts.push_back(head + nested + std::string(90, ' ') + "s = tf.Session()\n");
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t before = allocations();
    FileResult result = migrate_text(texts[i]);
    EXPECT_NE(result.state, FileState::failed);
    EXPECT_LT(allocations() - before, 1000 * texts[i].size()) << i;
  }
}

// The parser takes `f()x` for sound or not by what follows far behind, so that a few verdicts on random damage may differ.
TEST(hostile, edits_that_a_parse_of_the_whole_script_refuses_are_refused) {
  const std::string text =
      "# begins\nimport a as b\nx = f(1, y=[2, 3])\nx1 = f(4, z=[5, 60])\n@d\nclass A(B):\n  def f(self):\n    "
      "return self.g(\n        \"a)\" 'b')\n\nif x: y = 1\nelse:\n  y = {1: 2}\nprint('x', f\"{y!r:>3} {z}\")\nz = 1; "
      "w = (2)";
  const std::vector<std::string> pieces = {"(", ")", "[",  ":", "'",    "\n", "  ", "x",
                                           "1", ",", "if", "=", "f(x)", "",   ""};
  const Module module("script.py", text);
  ASSERT_EQ(module.syntax().error_count(), 0u);
  std::mt19937 random(7);
  size_t sound = 0, damaged = 0, missed = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<Edit> edits;
    for (uint32_t at = random() % 80; at < text.size(); at += 40 + random() % 160) {
      const auto end = std::min<uint32_t>(at + random() % 4, static_cast<uint32_t>(text.size()));
      edits.push_back({at, end, pieces[random() % pieces.size()]});
      at = end;
    }
    const bool parses = Syntax::errors_in(apply_edits(text, edits)) == 0;
    const bool taken = still_parses(module, edits);
    sound += parses && taken;
    damaged += !parses;
    missed += !parses && taken;
  }
  EXPECT_LT(missed, damaged / 200);
  EXPECT_GT(sound, 100u);
  EXPECT_GT(damaged, 1000u);
}

TEST(hostile, statements_have_one_shape_when_names_and_numbers_alone_differ) {
  EXPECT_EQ(shape_of("s1 = tf.Session(3)\n"), shape_of("other = m.g(42)\n"));
  EXPECT_NE(shape_of("a = b"), shape_of("pass = b"));
  EXPECT_NE(shape_of("a = 0x1"), shape_of("a = 0x"));
  EXPECT_NE(shape_of("a = b'c'"), shape_of("a = f'c'"));
}

// Bytes allocated by a migration of `count` pieces between head and tail, with all reports that are text.
size_t allocated(const std::string& head, const std::string& piece, const std::string& tail, int count,
                 const std::string& words) {
  std::string text = head;
  for (int i = 0; i < count; ++i) text += piece;
  text += tail;
  Options options;
  set_options(options, words);
  options.jobs = 1;
  std::vector<Input> inputs;
  inputs.push_back({"script.py", text, ""});
  const size_t before = allocated_bytes();
  Result result = migrate(std::move(inputs), options);
  json_report(result), sarif_report(result), csv_report(result), html_report(result, "x"), diff_report(result);
  EXPECT_NE(result.files[0].state, FileState::failed);
  return allocated_bytes() - before;
}

TEST(hostile, twice_the_edits_allocate_twice_the_bytes) {
  struct Shape {
    std::string head, piece, tail, options;
  };
  const std::string tf = "import tensorflow as tf\n";
  const Shape shapes[] = {
      {tf, "s = tf.Session()\n", "", "tf=1"},
      {tf, "s = tf.Session(config=c)\nx = tf.nn.dropout(x, rate=0.1)\n", "", "tf=1"},
      {tf + "x = [", "tf.Session(), ", "]\n", "tf=1"},  // one line
      {tf + "def train(mode):\n", "    d = tf.data.Dataset.range(9).batch(4)\n", "", "tf=1"},
      {tf, "o = tf.train.AdamOptimizer(0.1)\no.minimize(x)\n", "", "tf=1 distributed=tf_strategy"},
      {tf + "import horovod.tensorflow as hvd\n", "x = hvd.size() + hvd.alltoall(x)\n", "", "tf=1"},
      {tf, "x = tf.contrib.no_such.name(x)\n", "", "tf=1"},
  };
  for (const Shape& shape : shapes) {
    const double once = static_cast<double>(allocated(shape.head, shape.piece, shape.tail, 1000, shape.options));
    const double twice = static_cast<double>(allocated(shape.head, shape.piece, shape.tail, 2000, shape.options));
    EXPECT_LT(twice, 2.5 * once) << shape.piece;
  }
}

TEST(hostile, random_bytes_truncations_and_mutations_never_crash_or_lose_bytes) {
  std::mt19937 random(7);
  std::string seed;
  for (const auto& entry : fs::directory_iterator(CAIRN_SOURCE_DIR "/tests/migrate"))
    if (entry.path().extension() == ".test") seed += read_file(entry.path());
  for (int round = 0; round < 400; ++round) {
    std::string text;
    if (round % 4 == 0) {
      text = "tensorflow ";
      for (int i = 0; i < 300; ++i) text += static_cast<char>(random());
    } else {
      text = "import tensorflow as tf\nimport horovod.tensorflow as hvd\n" +
             seed.substr(random() % seed.size(), 50 + random() % 1500);
      for (int i = 0; i < static_cast<int>(random() % 8); ++i) {
        size_t at = random() % text.size();
        if (random() % 2)
          text[at] = "()[]{},.=:\n\\'\"#*"[random() % 16];
        else
          text.erase(at, 1 + random() % 5);
      }
    }
    std::string path = round % 5 == 4 ? "a.ipynb" : "a.py";
    if (path == "a.ipynb" && round % 2)
      text = "{\"cells\": [{\"cell_type\": \"code\", \"source\": [\"import tensorflow as tf\\n\", \"tf.Session(" +
             text.substr(0, random() % 20) + "\"]}]}";
    std::vector<Input> inputs;
    inputs.push_back({path, text, ""});
    Options options;
    options.jobs = 1;
    options.distributed = round % 3 ? Distribution::tf_strategy : Distribution::automatic;
    options.platform = round % 2;
    Result result = migrate(inputs, options);
    expect_sound(result.files[0], text);
    json_report(result), sarif_report(result), csv_report(result), html_report(result, "x"), text_report(result);
  }
}

TEST(hostile, a_script_cut_off_at_any_byte_keeps_what_is_outside_its_edits) {
  std::string script = read_file(CAIRN_SOURCE_DIR "/examples/migrate/horovod_mnist.py");
  for (size_t size = 0; size < script.size(); size += 3) {
    std::string text = script.substr(0, size);
    FileResult result = migrate_text(text);
    expect_sound(result, text);
    if (result.state != FileState::changed) continue;
    FileResult again = migrate_text(result.after);
    EXPECT_NE(again.state, FileState::changed) << size << "\n" << again.after;
  }
}

TEST(hostile, files_that_cannot_be_read_leave_the_rest_of_the_run_unharmed) {
  Folder folder;
  std::string script = "import tensorflow as tf\ns = tf.Session()\n";
  folder.write("good.py", script);
  folder.write("sub/deep/good.py", script);
  folder.write("forbidden.py", script);
  fs::permissions(folder / "forbidden.py", fs::perms::none);
  ASSERT_EQ(mkfifo((folder / "pipe.py").c_str(), 0600), 0);
  fs::create_directories(folder / "folder.py");
  fs::create_symlink("loop_b.py", folder / "loop_a.py");
  fs::create_symlink("loop_a.py", folder / "loop_b.py");
  fs::create_directory_symlink("..", folder / "sub/up");
  fs::create_directory_symlink("/proc/self/fd", folder / "sub/descriptors");
  Tree tree = read_tree(folder / "", {});
  Result result = migrate(tree.inputs, {});
  std::map<std::string, FileState> states;
  for (const FileResult& file : result.files) states[file.path] = file.state;
  EXPECT_EQ(states.at("good.py"), FileState::changed);
  EXPECT_EQ(states.at("sub/deep/good.py"), FileState::changed);
  EXPECT_EQ(states.at("loop_a.py"), FileState::failed);
  if (geteuid() != 0) {
    EXPECT_EQ(states.at("forbidden.py"), FileState::failed);
  }
  EXPECT_FALSE(states.contains("sub/up/good.py"));
  Folder out;
  write_tree(tree, result, out / "o");
  EXPECT_NE(out.read("o/good.py").find("npu_config_proto"), std::string::npos);
  fs::permissions(folder / "forbidden.py", fs::perms::owner_all);
}

}  // namespace
}  // namespace cairn::migrate
