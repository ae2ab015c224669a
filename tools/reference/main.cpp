// Writes the reference pages from the tables they describe: reference FOLDER. Run by ./dev docs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "autodiff/losses.h"
#include "autodiff/optimisers.h"
#include "frontends/caffe/importer.h"
#include "frontends/keras/importer.h"
#include "frontends/onnx/importer.h"
#include "frontends/tensorflow/importer.h"
#include "ir/op_def.h"
#include "ir/text.h"
#include "ops/gradients.h"
#include "support/error.h"
#include "support/files.h"
#include "support/options.h"
#include "support/precision_modes.h"

namespace cairn {
namespace {

constexpr const char* kMade = "<!-- Written by ./dev docs from the tables in the source; do not edit. -->\n";

const char* accepts_text(Accepts accepts) {
  switch (accepts) {
    case Accepts::any: return "anything";
    case Accepts::numbers: return "numbers";
    case Accepts::floats: return "floats";
    case Accepts::integers: return "integers";
    case Accepts::boolean: return "bool";
    case Accepts::number_or_bool: return "numbers, bool";
    case Accepts::i32_or_i64: return "i32, i64";
    case Accepts::text: return "text";
    case Accepts::list: return "list";
    case Accepts::resource: return "resource";
    case Accepts::rng: return "random state";
    case Accepts::token: return "token";
    case Accepts::any_tensor: return "any tensor";
  }
  return "";
}

const char* precision_text(Precision precision) {
  switch (precision) {
    case Precision::exact: return "bit-exact";
    case Precision::rounded: return "a few units in the last place";
    case Precision::accumulate_f32: return "sums in f32, in any order";
  }
  return "";
}

/// Text that stands in a table's cell.
std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : c == '<' ? std::string("&lt;") : std::string(1, c);
  return out;
}

std::string inputs_text(const OpDef& op) {
  std::vector<std::string> parts;
  for (const InputDef& input : op.inputs) {
    const char* arity = input.arity == InputDef::Arity::optional   ? "?"
                        : input.arity == InputDef::Arity::variadic ? "..."
                                                                   : "";
    parts.push_back(fmt::format("`{}{}` {}", input.name, arity, accepts_text(input.accepts)));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string attributes_text(const OpDef& op) {
  std::vector<std::string> parts;
  for (const AttrDef& attribute : op.attributes) {
    std::string part = fmt::format("`{}`", attribute.name);
    if (attribute.fallback) part += fmt::format(" = {}", cell(to_string(*attribute.fallback)));
    if (!attribute.words.empty()) part += fmt::format(" ({})", fmt::join(attribute.words, ", "));
    parts.push_back(part);
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string gradient_text(const OpDef& op) {
  if (op.gradient) return op.gradient == no_slope ? "zero" : "yes";
  return op.no_gradient ? fmt::format("none: {}", cell(op.no_gradient)) : "";
}

std::string ops_page() {
  std::string text = fmt::format("# Operators\n\n{}\n{} operators. `?` marks an optional input, `...` any number.\n\n",
                                 kMade, all_ops().size());
  text +=
      "| operator | meaning | inputs | attributes | results | accuracy | gradient | checked against "
      "|\n|---|---|---|---|---|---|---|---|\n";
  for (const OpDef* op : all_ops()) {
    std::string oracle = op->oracle.expression ? fmt::format("`{}`", cell(op->oracle.expression))
                                               : cell(op->oracle.reason ? op->oracle.reason : "");
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", op->name, cell(op->summary), inputs_text(*op),
                        attributes_text(*op), fmt::join(op->results, ", "), precision_text(op->precision),
                        gradient_text(*op), oracle);
  }
  return text;
}

std::string options_page() {
  std::string text = fmt::format("# Options of atc and omg\n\n{}", kMade);
  std::vector<std::string_view> groups;
  for (const OptionDef& option : option_table())
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  for (std::string_view group : groups) {
    text += fmt::format(
        "\n## {}\n\n| option | meaning | values | default | tools | status |\n|---|---|---|---|---|---|\n", group);
    for (const OptionDef& option : option_table()) {
      if (option.group != group) continue;
      std::string status = to_string(option.status);
      if (*option.reason) status += fmt::format(": {}", cell(option.reason));
      std::string tools = fmt::format("{}{}{}", option.doors & kAtc ? "atc" : "",
                                      option.doors == (kAtc | kOmg) ? ", " : "", option.doors & kOmg ? "omg" : "");
      text += fmt::format("| `--{}` | {} | {} | {} | {} | {} |\n", option.name, cell(option.meaning),
                          fmt::join(option.values, ", "), cell(option.fallback), tools, status);
    }
  }
  return text;
}

std::string list_of(const std::vector<std::string_view>& ops, const char* what) {
  std::string text = fmt::format("\n{} {}:\n", ops.size(), what);
  for (const std::string_view& op : ops) text += fmt::format("{}`{}`", &op == &ops.front() ? "\n" : ", ", op);
  return text + "\n";
}

std::string frontend_page(const char* framework, const std::vector<std::string_view>& ops,
                          const char* what = "operators") {
  return fmt::format("# {} {} that are read\n\n{}", framework, what, kMade) + list_of(ops, what);
}

void write_pages(const std::string& folder) {
  write_file(folder + "/ops.md", ops_page());
  write_file(folder + "/options.md", options_page());
  write_file(folder + "/tensorflow.md", frontend_page("TensorFlow", tensorflow::supported_ops()));
  write_file(folder + "/onnx.md", frontend_page("ONNX", onnx::supported_ops()));
  write_file(folder + "/caffe.md", frontend_page("Caffe", caffe::supported_layers()));
  write_file(folder + "/optimisers.md", fmt::format("# Optimisers\n\n{}{}", kMade, describe_optimisers()));
  write_file(folder + "/losses.md", fmt::format("# Losses\n\n{}{}", kMade, describe_losses()));
  write_file(folder + "/keras.md", frontend_page("Keras", keras::supported_layers(), "layers") +
                                       list_of(keras::supported_operations(), "functions of keras.ops"));
}

/// Of the Python packages of the adapters.
void write_precision_modes(const std::string& path) {
  auto tuple_of = [](const char* name, auto&& takes) {
    std::string text = fmt::format("{} = (\n", name);
    for (const NamedPrecision& mode : precision_modes())
      if (takes(mode)) text += fmt::format("    \"{}\",\n", mode.name);
    return text + ")\n";
  };
  write_file(path,
             "\"\"\"Names of precision modes; written by `./dev docs` from src/support/precision_modes.cpp.\"\"\"\n\n" +
                 tuple_of("PRECISION", [](const auto& mode) { return mode.of_v1; }) +
                 tuple_of("PRECISION_V2", [](const auto& mode) { return mode.of_v2; }) +
                 tuple_of("MIXED", [](const auto& mode) { return mode.mode == PrecisionMode::mixed; }));
}

}  // namespace
}  // namespace cairn

int main(int count, char** words) {
  if (count != 2) {
    fmt::print(stderr, "usage: reference FOLDER\n");
    return 2;
  }
  try {
    cairn::write_pages(words[1]);
    cairn::write_precision_modes(std::string(words[1]) +
                                 "/../../adapters/tensorflow/python/npu_bridge/precision_modes.py");
  } catch (const cairn::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
