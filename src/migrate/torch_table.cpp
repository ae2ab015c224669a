// Reads the embedded table of PyTorch's names, their helpers and what MindSpore calls the rest.
#include "migrate/torch_table.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "migrate/values.h"

namespace cairn::migrate {
namespace tables {
extern const char* const k_torch_mindspore;
extern const char* const k_torch_helpers;
extern const char* const k_torch_nearest;
}  // namespace tables

namespace {

std::string_view trimmed(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == text.npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

std::string_view taken_line(std::string_view& text) {
  size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

struct Prefix {
  std::string_view written, canonical;
};
constexpr Prefix kPrefixes[] = {
    {"Tensor.", "torch.Tensor:"},
    {"Tensor!.", "torch.Tensor:"},
    {"Module.", "torch.nn.Module:"},
    {"Module!.", "torch.nn.Module:"},
    {"nn.", "torch.nn."},
    {"F.", "torch.nn.functional."},
    {"init.", "torch.nn.init."},
    {"optim.", "torch.optim."},
    {"data.", "torch.utils.data."},
    {"lr.", "torch.optim.lr_scheduler."},
    {"distributions.", "torch.distributions."},
};

TorchParameter parameter_of(std::string_view text) {
  using Need = TorchParameter::Need;
  size_t equals = text.find('=');
  if (text.starts_with('*'))
    return {Need::rest, text.substr(1, equals - 1), equals == text.npos ? std::string_view() : text.substr(equals + 1)};
  if (text.ends_with('?')) return {Need::optional, text.substr(0, text.size() - 1), {}};
  if (text.ends_with('^')) return {Need::absent, text.substr(0, text.size() - 1), {}};
  if (equals != text.npos && text.substr(equals).starts_with("=="))
    return {Need::required, text.substr(0, equals), text.substr(equals + 2)};
  if (equals != text.npos) {
    std::string_view only = text.substr(equals + 1);
    return {only.starts_with('<') ? Need::required : Need::optional, text.substr(0, equals), only};
  }
  return {Need::required, text, {}};
}

std::vector<TorchParameter> parameters_of(std::string_view list) {
  std::vector<TorchParameter> found;
  while (!trimmed(list).empty()) {
    size_t comma = std::min(list.find(','), list.size());
    found.push_back(parameter_of(trimmed(list.substr(0, comma))));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return found;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

using Rows = std::unordered_map<std::string, std::vector<TorchRow>>;

// One line: NAME(parameters) -> target  # note. {a,b} in the name makes a row for each, which $0 in the target stands for.
void read_row(std::string_view line, Rows& rows) {
  TorchRow row{};
  size_t arrow = line.find(" -> "), combination = line.find(" ~> "), missing = line.find(" !> ");
  size_t at = std::min({arrow, combination, missing});
  row.how = at == arrow         ? TorchRow::How::direct
            : at == combination ? TorchRow::How::combination
                                : TorchRow::How::missing;
  std::string_view left = trimmed(line.substr(0, at)), right = trimmed(line.substr(at + 4));
  if (size_t note = right.find("  # "); note != right.npos) {
    row.note = right.substr(note + 4);
    right = trimmed(right.substr(0, note));
  }
  size_t open = left.find('(');
  row.call = open != left.npos;
  if (row.call) row.parameters = parameters_of(left.substr(open + 1, left.rfind(')') - open - 1));
  std::string name(left.substr(0, open));
  row.only_torch = name.find("!.") != name.npos;
  for (const Prefix& prefix : kPrefixes)
    if (name.starts_with(prefix.written)) {
      name = std::string(prefix.canonical) + name.substr(prefix.written.size());
      break;
    }
  size_t brace = name.find('{');
  std::string_view each = brace == name.npos ? std::string_view() : std::string_view(name).substr(brace + 1);
  each = each.substr(0, each.find('}'));
  do {
    size_t comma = std::min(each.find(','), each.size());
    std::string_view one = each.substr(0, comma);
    each.remove_prefix(std::min(comma + 1, each.size()));
    TorchRow made = row;
    made.name = brace == name.npos ? name : name.substr(0, brace) + std::string(one) + name.substr(name.find('}') + 1);
    made.target = replaced(std::string(right), "$0", one);
    rows[made.name].push_back(std::move(made));
  } while (!each.empty());
}

const Rows& all_rows() {
  static const Rows rows = [] {
    Rows found;
    for (std::string_view text = tables::k_torch_mindspore; !text.empty();)
      if (std::string_view line = trimmed(taken_line(text)); !line.empty() && !line.starts_with('#'))
        read_row(line, found);
    return found;
  }();
  return rows;
}

// Lower-case names of torch whose calls give no tensor.
// clang-format off
constexpr std::array kNoTensor = {
    "torch.device", "torch.load", "torch.save", "torch.is_tensor", "torch.manual_seed", "torch.seed", "torch.no_grad",
    "torch.enable_grad", "torch.set_grad_enabled", "torch.inference_mode", "torch.is_grad_enabled", "torch.numel",
    "torch.get_default_dtype", "torch.set_default_dtype", "torch.set_num_threads", "torch.get_num_threads",
    "torch.compile", "torch.allclose", "torch.equal", "torch.initial_seed", "torch.typename", "torch.finfo",
    "torch.iinfo", "torch.is_floating_point", "torch.use_deterministic_algorithms", "torch.set_printoptions",
    "torch.get_rng_state", "torch.set_rng_state", "torch.autocast"};
constexpr std::array kNoTensorMethods = {
    "size", "dim", "item", "numpy", "tolist", "backward", "numel", "nelement", "element_size", "get_device",
    "data_ptr", "is_contiguous", "ndimension", "stride", "storage", "register_hook", "requires_grad_", "names"};
constexpr std::array kTensorModules = {"torch.nn.functional.", "torch.linalg.", "torch.fft.", "torch.special."};
// clang-format on

}  // namespace

const std::vector<TorchRow>& torch_rows(std::string_view name) {
  static const std::vector<TorchRow> none;
  auto found = all_rows().find(std::string(name));
  return found == all_rows().end() ? none : found->second;
}

bool is_torch_method(std::string_view method) {
  const std::vector<TorchRow>& rows = torch_rows("torch.Tensor:" + std::string(method));
  return !rows.empty() && rows[0].only_torch;
}

std::string_view torch_nearest(std::string_view name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::string_view> found;
    for (std::string_view text = tables::k_torch_nearest; !text.empty();) {
      std::string_view line = taken_line(text);
      size_t space = line.find(' ');
      if (!line.starts_with('#') && space != line.npos) found[line.substr(0, space)] = line.substr(space + 1);
    }
    return found;
  }();
  auto found = table.find(name);
  return found == table.end() ? std::string_view() : found->second;
}

std::string_view torch_helper(std::string_view name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::string_view> found;
    std::string_view text = tables::k_torch_helpers;
    for (size_t at = text.find("\n#: "); at != text.npos;) {
      size_t next = text.find("\n#: ", at + 1);
      std::string_view block = text.substr(at + 4, (next == text.npos ? text.size() : next) - at - 4);
      std::string_view title = taken_line(block);
      while (block.ends_with('\n')) block.remove_suffix(1);
      found[title] = block;
      at = next;
    }
    return found;
  }();
  auto found = table.find(name);
  return found == table.end() ? std::string_view() : found->second;
}

std::string_view mindspore_module(std::string_view name) {
  static constexpr std::pair<std::string_view, std::array<std::string_view, 16>> modules[] = {
      {"mindspore", {"nn", "ops"}},
      {"cairn.ms", {"recorded"}},
      {"mindspore.dataset", {"GeneratorDataset", "NumpySlicesDataset", "vision", "transforms"}},
      {"mindspore.common.initializer",
       {"initializer", "HeUniform", "HeNormal", "Uniform", "Normal", "XavierUniform", "XavierNormal", "Constant",
        "Orthogonal", "TruncatedNormal", "Zero", "One"}},
  };
  if (name == "ms") return "mindspore as ms";
  if (name == "np") return "numpy as np";
  static constexpr std::array plain = {"math",   "copy",   "os",          "json",      "gzip",
                                       "pickle", "shutil", "collections", "contextlib"};
  if (std::find(plain.begin(), plain.end(), name) != plain.end()) return name;
  for (const auto& [module, names] : modules)
    if (std::find(names.begin(), names.end(), name) != names.end() && !name.empty()) return module;
  return {};
}

std::string torch_result(std::string_view name) {
  auto among = [](const auto& list, std::string_view one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  };
  if (size_t colon = name.find(':'); colon != name.npos) {
    std::string_view method = name.substr(colon + 1), klass = name.substr(0, colon);
    if (klass == "torch.Tensor" || klass == "torch.nn.Parameter")
      return among(kNoTensorMethods, method) ? "" : "torch.Tensor";
    if (klass.starts_with("torch.distributions.")) return "torch.Tensor";
    if (klass == "torch.nn.Module" || is_subclass(klass, "torch.nn.Module")) {
      if (method == "__call__" || method == "forward") return "torch.Tensor";
      static constexpr std::array same = {"to", "cuda", "cpu", "train", "eval", "double", "float", "half", "apply"};
      return among(same, method) ? std::string(klass) : "";
    }
    return "";
  }
  if (name == "torch.nn.DataParallel" || name == "torch.nn.parallel.DistributedDataParallel") return "torch.nn.Module";
  if (name == "torch.autograd.Variable" || name == "torch.nn.Parameter" || name == "torch.nn.parameter.Parameter")
    return "torch.Tensor";
  if (name.starts_with("torchvision.models.")) return "torch.nn.Module";
  if (name == "torch.nn.utils.rnn.pack_padded_sequence") return "torch.nn.utils.rnn.PackedSequence";
  if (name.ends_with(".kl_divergence") || name == "torch.nn.utils.rnn.pad_sequence") return "torch.Tensor";
  if (std::any_of(kTensorModules.begin(), kTensorModules.end(), [&](auto prefix) { return name.starts_with(prefix); }))
    return "torch.Tensor";
  if (name.find('.', 6) == name.npos && !among(kNoTensor, name)) return "torch.Tensor";  // torch.relu
  return "";
}

}  // namespace cairn::migrate
