// cairn op: operators of users, listed, begun and tested.
#include "op_verb.h"

#include <filesystem>

#include "capi/user_op.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

struct OpVerb {
  std::string name, folder, library;
  bool json = false;
};

Json row_json(const OpDef& row) {
  Json inputs = Json::array(), attributes = Json::array();
  for (const InputDef& input : row.inputs) inputs.push_back(input.name);
  for (const AttrDef& attribute : row.attributes) attributes.push_back(attribute.name);
  return {{"name", row.name},
          {"summary", row.summary},
          {"inputs", inputs},
          {"attributes", attributes},
          {"results", row.results},
          {"kernel", row.reference != nullptr},
          {"gradient", row.gradient || (row.decompose && row.user)},
          {"library", capi::library_of(row)}};
}

int list_ops(const OpVerb& verb) {
  Json list = Json::array();
  Table table({"operator", "inputs", "attributes", "gradient", "library"});
  for (const OpDef* row : user_ops()) {
    list.push_back(row_json(*row));
    const Json& each = list.back();
    auto names = [&](const char* key) {
      return fmt::format("{}", fmt::join(each[key].get<std::vector<std::string>>(), ", "));
    };
    table.add({row->name, names("inputs"), names("attributes"), each["gradient"].get<bool>() ? "yes" : "no",
               capi::library_of(*row)});
  }
  if (verb.json)
    print_json({{"operators", list}});
  else if (list.empty())
    fmt::print("no library of operators is loaded; name one with --op-library or CAIRN_OP_LIBRARY\n");
  else
    table.print();
  return 0;
}

int test_ops(const OpVerb& verb) {
  const std::string path = std::filesystem::weakly_canonical(expand_home(verb.library)).string();
  capi::load_op_library(path);
  const std::vector<OpCheck> checks = check_ops(path);
  size_t failed = 0;
  Json list = Json::array();
  for (const OpCheck& check : checks) {
    failed += !check.fault.empty();
    list.push_back({{"operator", check.op}, {"case", check.input}, {"check", check.what}, {"fault", check.fault}});
    if (!verb.json)
      fmt::print("{}  {} {}: {}{}\n", check.fault.empty() ? "ok    " : red("failed"), check.op, check.input, check.what,
                 check.fault.empty() ? "" : ": " + check.fault);
  }
  if (verb.json)
    print_json({{"checks", list}, {"failed", failed}});
  else
    fmt::print("{} checks, {} failed\n", checks.size(), failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

void add_op(Verb& app, Run& run) {
  auto own = std::make_shared<OpVerb>();
  Verb op = app.add_verb("op", "operators of your own: begin, list and test them");
  op.footer(
      "\nExamples:\n  cairn op new acme.gelu2\n  cmake -S gelu2 -B gelu2/build && cmake --build gelu2/build\n"
      "  cairn op test gelu2/build/libgelu2.so\n  cairn op list --op-library gelu2/build/libgelu2.so\n"
      "  cairn run model.onnx --op-library gelu2/build/libgelu2.so");
  Verb made = op.add_verb("new", "a folder with the source of an operator and a CMake file");
  made.add_option("name", own->name, "domain.name").required();
  made.add_option("--folder", own->folder, "folder to make; otherwise the name without its domain");
  made.callback([own, &run] {
    run = [own] {
      new_op(own->name, own->folder);
      return 0;
    };
  });
  Verb list = op.add_verb("list", "the operators of the libraries that are loaded");
  list.add_flag("--json", own->json, "print JSON");
  add_op_library_option(list);
  list.callback([own, &run] { run = [own] { return list_ops(*own); }; });
  Verb test = op.add_verb("test", "every operator of a library: shapes, kernel, decomposition, gradient");
  test.add_option("library", own->library, "shared library").required();
  test.add_flag("--json", own->json, "print JSON");
  test.callback([own, &run] { run = [own] { return test_ops(*own); }; });
  Verb include = op.add_verb("include", "prints the folder of <cairn/op.hpp>");
  include.callback([&run] {
    run = [] {
      fmt::print("{}\n", include_folder());
      return 0;
    };
  });
}

}  // namespace cairn::cli
