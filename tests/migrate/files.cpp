// Bytes and folders: what must survive a migration unchanged, and what may be wrong with files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "folder.h"
#include "migrate/options.h"
#include "migrate/reports.h"
#include "migrate/tree.h"
#include "support/files.h"

namespace cairn::migrate {
namespace {

namespace fs = std::filesystem;

std::string migrated(std::string text) {
  Options options;
  options.tf = 1;
  FileResult result = migrate_text(text, options);
  return result.state == FileState::changed ? result.after : result.before;
}

const std::string kScript = "import tensorflow as tf\ns = tf.Session()\n";
const std::string kMigrated =
    "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\ns = "
    "tf.Session(config=npu_config_proto())\n";

TEST(bytes, line_ends_marks_tabs_form_feeds_and_a_missing_last_line_end_stay) {
  EXPECT_EQ(migrated("\xEF\xBB\xBFimport tensorflow as tf\r\nif 1:\r\n\ts = tf.Session()  # x\r\n\f\r\nx = 1"),
            "\xEF\xBB\xBFimport tensorflow as tf\r\nfrom npu_bridge.npu_init import npu_config_proto\r\nif 1:\r\n\ts = "
            "tf.Session(config=npu_config_proto())  # x\r\n\f\r\nx = 1");
  EXPECT_EQ(migrated("import tensorflow as tf; s = tf.Session()"),
            "from npu_bridge.npu_init import npu_config_proto\nimport tensorflow as tf; s = "
            "tf.Session(config=npu_config_proto())");
}

TEST(bytes, declared_encodings_are_kept_byte_for_byte) {
  // Latin-1, and Shift-JIS whose second bytes look like backslashes and quotes.
  EXPECT_EQ(migrated("# -*- coding: latin-1 -*-\nimport tensorflow as tf\nx = 'caf\xE9'\ns = tf.Session()\n"),
            "# -*- coding: latin-1 -*-\nimport tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nx = "
            "'caf\xE9'\ns = tf.Session(config=npu_config_proto())\n");
  EXPECT_EQ(migrated("# coding: shift_jis\nimport tensorflow as tf\nx = '\x95\x5C\x83\x27'\ns = tf.Session()\n"),
            "# coding: shift_jis\nimport tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nx = "
            "'\x95\x5C\x83\x27'\ns = tf.Session(config=npu_config_proto())\n");
  EXPECT_EQ(migrated("import tensorflow as tf\nx = '\xE9\xFF'  # not UTF-8, not declared\ns = tf.Session()\n"),
            "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nx = '\xE9\xFF'  # not UTF-8, "
            "not declared\ns = tf.Session(config=npu_config_proto())\n");
}

TEST(notebook, cells_are_edited_in_place_and_magics_stay) {
  std::string text = R"json({
 "cells": [
  {"cell_type": "markdown", "source": ["# tf.Session()"]},
  {"cell_type": "code", "metadata": {}, "outputs": [], "source": ["%matplotlib inline\n", "import tensorflow as tf\n", "!pip install x"]},
  {"cell_type": "code", "source": ["%%bash\n", "tf.Session()"]},
  {"cell_type": "code", "source": ["x = (\n"]},
  {"cell_type": "code", "source": "s = tf.Session(target=\"\u00e9\")\ns.run(1)"}
 ], "nbformat": 4
}
)json";
  std::vector<Input> inputs;
  inputs.push_back({"a.ipynb", text, ""});
  Result result = migrate(inputs, {});
  ASSERT_EQ(result.files[0].state, FileState::changed);
  const std::string& after = result.files[0].after;
  EXPECT_NE(after.find(R"json("source": "s = tf.Session(target=\"\u00e9\", config=npu_config_proto())\ns.run(1)")json"),
            std::string::npos)
      << after;
  EXPECT_NE(after.find("from npu_bridge.npu_init import npu_config_proto\\n"), std::string::npos) << after;
  EXPECT_NE(after.find(R"json(["%%bash\n", "tf.Session()"])json"), std::string::npos);
  EXPECT_NE(after.find(R"json(["# tf.Session()"])json"), std::string::npos);
  bool cell_reported = false;
  for (const Finding& finding : result.files[0].findings)
    cell_reported = cell_reported || finding.message == "cell 4 cannot be parsed";
  EXPECT_TRUE(cell_reported);
  inputs[0].text = after;
  EXPECT_NE(migrate(inputs, {}).files[0].state, FileState::changed);
}

TEST(tree, one_bad_file_never_stops_the_run) {
  Folder folder;
  folder.write("good.py", kScript);
  folder.write("zero.py", std::string("import tensorflow\0x", 19));
  folder.write("utf16.py", "\xFF\xFEi\0m\0");
  folder.write("broken.py", "import tensorflow as tf\ndef (:\n");
  folder.write("broken.ipynb", "{\"tensorflow\": ");
  folder.write("big.py", "import tensorflow\n" + std::string(11 << 20, '#'));
  folder.write("data/weights.bin", std::string(100, '\xFF'));
  fs::create_symlink("nowhere.py", folder / "dangling.py");
  fs::create_directory_symlink("..", folder / "data/loop");
  Tree tree = read_tree(folder / "", {});
  Result result = migrate(tree.inputs, {});
  std::map<std::string, FileState> states;
  for (const FileResult& file : result.files) states[file.path] = file.state;
  EXPECT_EQ(states["good.py"], FileState::changed);
  for (const char* bad : {"zero.py", "utf16.py", "broken.ipynb", "big.py", "dangling.py"})
    EXPECT_EQ(states[bad], FileState::failed) << bad;
  EXPECT_EQ(states["broken.py"], FileState::unchanged);
  Folder out;
  EXPECT_TRUE(write_tree(tree, result, out / "o").empty());
  EXPECT_EQ(out.read("o/good.py"), kMigrated);
  for (const char* path : {"zero.py", "utf16.py", "broken.py", "broken.ipynb", "big.py", "data/weights.bin"})
    EXPECT_EQ(out.read(std::string("o/") + path), folder.read(path)) << path;
  EXPECT_TRUE(fs::is_symlink(out / "o/dangling.py") && fs::is_symlink(out / "o/data/loop"));
  EXPECT_THROW(write_tree(tree, result, folder / "data/out"), Error);
}

TEST(tree, an_edit_in_place_is_taken_back_to_the_byte_and_never_over_later_work) {
  Folder folder;
  folder.write("a.py", kScript);
  folder.write("b/b.py", "\xEF\xBB\xBF" + kScript);
  fs::permissions(folder / "a.py", fs::perms(0750));
  Tree tree = read_tree(folder / "", {});
  EXPECT_TRUE(write_in_place(tree, migrate(tree.inputs, {})).empty());
  EXPECT_EQ(folder.read("a.py"), kMigrated);
  EXPECT_EQ(fs::status(folder / "a.py").permissions(), fs::perms(0750));
  folder.write("b/b.py", "x = 1\n");
  size_t restored = 0;
  EXPECT_EQ(undo(folder / "", restored).size(), 1u);
  EXPECT_EQ(restored, 1u);
  EXPECT_EQ(folder.read("a.py"), kScript);
  EXPECT_EQ(folder.read("b/b.py"), "x = 1\n");
}

TEST(tree, a_file_in_the_place_of_the_output_is_told_once_and_kept) {
  Folder folder;
  folder.write("in/a.py", kScript);
  folder.write("out", "mine");
  Tree tree = read_tree(folder / "in", {});
  EXPECT_THROW(write_tree(tree, migrate(tree.inputs, {}), folder / "out"), Error);
  EXPECT_EQ(folder.read("out"), "mine");
}

TEST(tree, a_manifest_cannot_reach_outside_or_do_harm) {
  Folder folder;
  folder.write("x.py", "x");
  for (const char* manifest :
       {"", "[]", "{\"runs\": [{}]}", "{\"runs\": [{\"files\": [{\"path\": \"../x.py\"}]}]}",
        "{\"runs\": [{\"files\": [{\"path\": \"/etc/passwd\"}]}]}", "{\"runs\": [{\"files\": [{\"path\": \"\"}]}]}"}) {
    folder.write("d/.cairn-migrate.json", manifest);
    size_t restored = 0;
    EXPECT_THROW(undo(folder / "d", restored), Error) << manifest;
  }
}

TEST(tree, what_is_no_script_is_refused_where_it_is_named_and_never_called_ready) {
  Folder folder;
  for (const char* name : {"net.onnx", "weights", "model.om"}) {
    folder.write(name, std::string("\x08\x07\0\x12 net", 8));
    try {
      read_tree(folder / name, {});
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "is no script: it holds zero bytes");
    }
  }
  const std::string told = text_report(migrate(read_tree(folder / "", {}).inputs, {}));
  EXPECT_NE(told.find("nothing to migrate"), std::string::npos) << told;
  EXPECT_EQ(told.find("readiness"), std::string::npos) << told;
}

TEST(tree, work_folders_of_cairn_are_no_part_of_a_project) {
  Folder folder;
  folder.write("train.py", kScript);
  folder.write("port/.cairn_work", "");
  folder.write("port/stock.run/train.py", kScript);
  Tree tree = read_tree(folder / "", {});
  ASSERT_EQ(tree.inputs.size(), 1u);
  EXPECT_EQ(tree.inputs[0].path, "train.py");
  EXPECT_TRUE(tree.rest.empty());
  EXPECT_EQ(read_tree(folder / "port", {}).inputs.size(), 1u);  // unless it is named itself
}

TEST(tree, globs) {
  EXPECT_TRUE(glob_matches("*.py", "a/b.py"));
  EXPECT_TRUE(glob_matches("a/**", "a/b/c.py"));
  EXPECT_TRUE(glob_matches("third_party", "x/third_party/c.py"));
  EXPECT_TRUE(glob_matches("a/*.py", "a/b.py"));
  EXPECT_FALSE(glob_matches("a/*.py", "a/b/c.py"));
  EXPECT_FALSE(glob_matches("b.py", "a/bb.py"));
}

TEST(result, is_the_same_for_any_number_of_threads) {
  std::vector<Input> inputs;
  for (int i = 0; i < 40; ++i)
    inputs.push_back({"m" + std::to_string(i) + ".py",
                      "from m" + std::to_string((i + 1) % 40) +
                          " import tf\nimport tensorflow as tf\ns = tf.Session()\nx = tf.contrib.foo\n",
                      ""});
  std::string first;
  for (int jobs : {1, 2, 5}) {
    Options options;
    options.jobs = jobs;
    std::string report = json_report(migrate(inputs, options));
    if (first.empty()) first = report;
    EXPECT_EQ(report, first) << jobs;
  }
}

TEST(reports, hold_what_was_found_and_a_list_of_classes_is_read_back) {
  Folder folder;
  std::vector<Input> inputs;
  inputs.push_back({"sub/train.py", kScript + "y = tf.nn.relu(x)\nimport cupy  # <b>\n", ""});
  Result result = migrate(inputs, {});
  SupportList none;
  platform_reports(result, none, folder / "r");
  EXPECT_EQ(folder.read("r/success_report.txt"),
            "sub/train.py:2 tf.Session(config=...) goes through npu_config_proto\n");
  EXPECT_NE(folder.read("r/api_brief_report.txt")
                .find("1.In brief: Total API: 2, in which Support: 1, API support after migration: 0, Network training "
                      "support after migration: 1"),
            std::string::npos);
  EXPECT_NE(folder.read("r/failed_report.txt").find("cupy needs CUDA"), std::string::npos);
  SupportList list = SupportList::read(folder / "r/api_analysis_report.xlsx");
  EXPECT_EQ(list.find("tf.Session"), "tool_train");
}

TEST(reports, list_formats) {
  Folder folder;
  folder.write("list.csv",
               "module,API,class,note\ntf.nn,relu,supported,\"a, b\"\ntf,tf.Session,工具迁移后训练功能打通\n");
  SupportList list = SupportList::read(folder / "list.csv");
  EXPECT_EQ(list.find("tf.nn.relu"), "supported");
  EXPECT_EQ(list.find("tf.Session"), "tool_train");
  folder.write("bad.xlsx", "PK\x03\x04 and then nothing");
  EXPECT_THROW(SupportList::read(folder / "bad.xlsx"), Error);
  EXPECT_THROW(SupportList::read(folder / "none.csv"), Error);
}

TEST(options, wrong_ones_are_said_in_a_sentence) {
  Options options;
  for (const char* words : {"nonsense", "tf=x", "tf=3", "distributed=mpi", "loss_scale=0", "jobs=-1",
                            "disable=no-such-rule", "precision_mode=a\"b", "platform=maybe"})
    EXPECT_THROW(set_options(options, words), Error) << words;
  set_options_json(options, "{\"tf\": 2, \"exclude\": [\"a\", \"b\"], \"platform\": true}", "c.json");
  EXPECT_EQ(options.tf, 2);
  EXPECT_EQ(options.exclude.size(), 2u);
  EXPECT_THROW(set_options_json(options, "[1", "c.json"), Error);
}

}  // namespace
}  // namespace cairn::migrate
