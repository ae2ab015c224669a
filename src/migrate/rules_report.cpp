// What is reported and never edited: other frameworks, CUDA packages, names that TensorFlow does not have.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "migrate/api_table.h"
#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

struct Package {
  std::string_view name, advice;
};
constexpr Package kCudaPackages[] = {
    {"cupy", "use NumPy or TensorFlow operators"},
    {"cupyx", "use NumPy or TensorFlow operators"},
    {"pynvml", "take it out: there is no GPU to watch"},
    {"py3nvml", "take it out: there is no GPU to watch"},
    {"GPUtil", "take it out: there is no GPU to watch"},
    {"nvidia", "use tf.data in place of DALI"},
    {"pycuda", "write the kernel as a custom operator"},
    {"numba.cuda", "write the kernel as a custom operator"},
    {"tensorrt", "convert the model with `cairn convert`"},
    {"apex", "use precision_mode and NPULossScaleOptimizer, or the framework's own mixed precision"},
    {"amp_C", "use the framework's own optimizers"},
    {"bagua", "use the platform's collectives"},
    {"byteps", "use the platform's collectives"},
    {"deepspeed", "use the platform's collectives"},
};
constexpr Package kFrameworks[] = {{"torch", "PyTorch"},       {"torchvision", "PyTorch"}, {"mindspore", "MindSpore"},
                                   {"paddle", "PaddlePaddle"}, {"mxnet", "MXNet"},         {"jax", "JAX"}};

void cuda_packages(Context& file, const Rule& rule) {
  for (const Import& import : file.module.imports()) {
    std::string dotted = import.member.empty() || import.star ? import.module : import.module + "." + import.member;
    for (const auto& [name, advice] : kCudaPackages)
      if (dotted == name || dotted.starts_with(std::string(name) + "."))
        file.find(rule, import.entry, Severity::error, fmt::format("{} needs CUDA", import.module),
                  std::string(advice));
  }
}

// What PyTorch scripts need changed, by resolved name; reported until the pass for them rewrites it.
struct Foreign {
  std::string_view name, advice;
};
constexpr Foreign kTorch[] = {
    {"torch.cuda.default_generators", "torch_npu.npu.default_generators"},
    {"torch.cuda.get_device_properties",
     "attributes such as major do not exist on an NPU: take capability branches out"},
    {"torch.cuda.get_device_capability", "it gives None on an NPU: take capability branches out"},
    {"torch.cuda", "torch_npu.npu has the same names"},
    {"torch.nn.DataParallel",
     "use torch.nn.parallel.DistributedDataParallel with the hccl backend, one process a device"},
    {"torch.channels_last", "leave it out: the device chooses its own layout"},
    {"torch.jit.script", "not supported on an NPU: take the decorator out"},
    {"torch.compile", "not supported on an NPU: take it out"},
    {"torch.utils.cpp_extension.CUDAExtension", "write the kernel as a custom operator"},
    {"torch.utils.data.DataLoader",
     "one process a device: give it DistributedSampler(dataset) unless it has a sampler"},
    {"torch.distributed.init_process_group", "the backend is hccl"},
    {"apex", "use torch.npu.amp"},
};

void foreign(Context& file, const Rule& rule) {
  std::set<std::string_view> frameworks;
  NodeId first = kNoNode;
  for (const Import& import : file.module.imports())
    for (const auto& [name, title] : kFrameworks)
      if (import.module == name || import.module.starts_with(std::string(name) + ".") ||
          import.module == "horovod." + std::string(name)) {
        if (frameworks.insert(title).second && first == kNoNode) first = import.statement;
        if (import.module.starts_with("horovod."))
          file.find(rule, import.entry, Severity::note, fmt::format("Horovod for {}", title),
                    "left as it is: only Horovod for TensorFlow and Keras is rewritten");
      }
  if (frameworks.empty()) return;
  std::string titles;
  for (std::string_view title : frameworks) titles += (titles.empty() ? "" : ", ") + std::string(title);
  file.find(rule, first, Severity::warning, fmt::format("a script of {}", titles),
            "its uses are listed and left as they are");
  if (!frameworks.contains("PyTorch")) return;
  const Syntax& syntax = file.syntax;
  for (NodeId node = 0; node < syntax.size(); ++node) {
    Kind kind = syntax.kind(node);
    if (kind == Kind::call) {  // x.cuda(), x.to("cuda"), device="cuda"
      NodeId callee = syntax.child(node, Field::function);
      if (syntax.kind(callee) == Kind::attribute && syntax.text(syntax.child(callee, Field::attribute)) == "cuda" &&
          file.resolver.names(file.module, callee).empty())
        file.find(rule, callee, Severity::note, ".cuda()",
                  "if this is a tensor or a module: .npu() with the same arguments");
    }
    if (kind == Kind::string) {
      std::string text;
      NodeId up = syntax.parent(node);
      bool argument = syntax.kind(up) == Kind::argument_list || syntax.kind(up) == Kind::keyword_argument ||
                      syntax.kind(up) == Kind::comparison_operator;
      if (argument && string_value(syntax, node, text) &&
          (text == "cuda" || text.starts_with("cuda:") || text == "nccl"))
        file.find(rule, node, Severity::note, fmt::format("the device or backend \"{}\"", text),
                  text == "nccl" ? "hccl" : "npu" + text.substr(4));
    }
    if (kind != Kind::attribute && kind != Kind::identifier) continue;
    if (syntax.kind(syntax.parent(node)) == Kind::attribute || syntax[node].field == Field::attribute) continue;
    for (const ApiName& name : file.resolver.names(file.module, node))
      for (const auto& [prefix, advice] : kTorch)
        if (name.name == prefix || name.name.starts_with(std::string(prefix) + ".")) {
          if (syntax.ancestor(node, Kind::import_statement) != kNoNode ||
              syntax.ancestor(node, Kind::import_from_statement) != kNoNode)
            break;
          file.find(rule, node, Severity::warning, name.name, std::string(advice));
          break;
        }
  }
}

constexpr std::array kGoneNames = {"xrange", "raw_input", "unicode", "unichr", "basestring", "execfile"};
constexpr std::array kGoneMethods = {"iteritems", "itervalues", "iterkeys", "has_key"};
constexpr std::array kGoneModules = {"cPickle",   "urllib2",  "ConfigParser", "Queue",       "StringIO",
                                     "cStringIO", "urlparse", "httplib",      "__builtin__", "Tkinter"};

bool is_one_of(std::string_view word, const auto& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// What of the node Python 3 does not take: "print statements", "xrange"; "" where it takes it.
std::string only_in_python_2(Context& file, NodeId node) {
  const Syntax& syntax = file.syntax;
  const Kind kind = syntax.kind(node);
  if (kind == Kind::print_statement) return "print statements";
  if (kind == Kind::exec_statement) return "exec statements";
  if (kind == Kind::raise_statement && syntax.first(node) != kNoNode &&
      syntax.kind(syntax.first(node)) == Kind::expression_list)
    return "raise with a comma";
  if (kind != Kind::call) return "";
  const NodeId callee = syntax.child(node, Field::function);
  if (callee == kNoNode) return "";
  if (syntax.kind(callee) == Kind::attribute) {
    const std::string_view method = syntax.text(syntax.child(callee, Field::attribute));
    const bool by_six = syntax.text(syntax.child(callee, Field::object)) == "six";
    return is_one_of(method, kGoneMethods) && !by_six ? std::string(method) : "";
  }
  const std::string_view name = syntax.text(callee);
  uint32_t scope = kNoScope;
  const bool gone = syntax.kind(callee) == Kind::identifier && is_one_of(name, kGoneNames) &&
                    file.module.lookup(name, callee, scope).empty();
  return gone ? std::string(name) : "";
}

void python_2(Context& file, const Rule& rule) {
  if (!file.own.tf) return;
  std::map<std::string, size_t> found;
  NodeId first = kNoNode;
  auto note = [&](const std::string& what, NodeId node) {
    if (what.empty() || asks_for_names(file.module, node)) return;
    ++found[what];
    first = std::min(first, node);
  };
  for (NodeId node = 0; node < file.syntax.size(); ++node) note(only_in_python_2(file, node), node);
  for (const Import& import : file.module.imports())
    if (is_one_of(import.module, kGoneModules) && file.project.find(file.module.path(), import.module).empty())
      note("module " + import.module, import.entry);
  if (found.empty()) return;
  std::string list;
  for (const auto& [what, count] : found)
    list += fmt::format("{}{}{}", list.empty() ? "" : ", ", what, count > 1 ? fmt::format(" ({})", count) : "");
  file.find(rule, first, Severity::error, "Python 3 does not take it: " + list,
            "TensorFlow 2.15 needs Python 3; 2to3 rewrites these");
}

/// Whether code around the node may run without IPython: a handler of NameError, a condition that names a notebook.
bool asks_for_ipython(const Syntax& syntax, NodeId node) {
  static constexpr std::array words = {"ipython", "IPython", "ipykernel", "otebook", "upyter", "colab"};
  auto holds = [&](NodeId part, std::string_view word) {
    return syntax.text(part).find(word) != std::string_view::npos;
  };
  for (NodeId from = node, up = syntax.parent(node); up != kNoNode; from = up, up = syntax.parent(up)) {
    if (syntax.kind(up) == Kind::try_statement) {
      for (NodeId clause : syntax.children(up))
        if (syntax.kind(clause) == Kind::except_clause && holds(clause, "NameError")) return true;
    } else if (NodeId condition = syntax.child(up, Field::condition); condition != kNoNode && condition != from) {
      for (std::string_view word : words)
        if (holds(condition, word)) return true;
    }
  }
  return false;
}

/// Calls of get_ipython() in scripts, which exporters of notebooks write for lines that begin with % or !.
void ipython(Context& file, const Rule& rule) {
  if (!file.own.tf || file.module.path().ends_with(".ipynb")) return;
  const Syntax& syntax = file.syntax;
  for (NodeId call : file.module.calls_of("get_ipython")) {
    const NodeId callee = syntax.child(call, Field::function);
    uint32_t scope = kNoScope;
    if (syntax.kind(callee) != Kind::identifier || !file.module.lookup("get_ipython", callee, scope).empty()) continue;
    if (asks_for_names(file.module, call) || asks_for_ipython(syntax, call)) continue;
    NodeId whole = call;
    while (syntax.kind(syntax.parent(whole)) == Kind::attribute || syntax[whole].field == Field::function)
      whole = syntax.parent(whole);
    file.find(rule, whole, Severity::error, "get_ipython() is there under IPython alone",
              "take it out; what it installs or downloads is done before the script starts");
  }
}

}  // namespace

const Rule kIPython = {
    .id = "ipython",
    .tier = Tier::advice,
    .when = When::always,
    .title = "calls of get_ipython() in scripts exported from notebooks",
    .reason = "the script would stop there",
    .calls = {},
    .at_file = ipython,
    .examples = {{"import tensorflow as tf\nget_ipython().run_line_magic('matplotlib', 'inline')\n", ""},
                 {"import tensorflow as tf\ntry:\n    get_ipython().magic('matplotlib inline')\n"
                  "except NameError:\n    pass\n",
                  "", "", false},
                 {"import tensorflow as tf\nif 'ipykernel' in sys.modules:\n    get_ipython().system('ls')\n", "", "",
                  false}},
};

const Rule kPythonTwo = {
    .id = "python-2",
    .tier = Tier::advice,
    .when = When::always,
    .title = "statements, functions and modules of Python 2 alone",
    .reason = "the script would stop there",
    .calls = {},
    .at_file = python_2,
    .examples = {{"import tensorflow as tf\nfor i in xrange(3):\n    print i, tf.ones(i)\n", ""},
                 {"import tensorflow as tf\nfrom six.moves import xrange\nfor i in xrange(3):\n    print(tf.ones(i))\n",
                  "", "", false}},
};

const Rule kCudaPackage = {
    .id = "cuda-package",
    .tier = Tier::advice,
    .when = When::always,
    .title = "packages that need CUDA",
    .reason = "they cannot be imported here",
    .calls = {},
    .at_file = cuda_packages,
    .examples = {{"import tensorflow\nimport cupy as cp\n", ""},
                 {"import tensorflow\nfrom mine import cupy\n", "", "", false}},
};

const Rule kForeignFramework = {
    .id = "other-framework",
    .tier = Tier::advice,
    .when = When::always,
    .title = "scripts of other frameworks",
    .reason = "they stay; what they would need is listed. --to mindspore rewrites those of PyTorch",
    .calls = {},
    .at_file = foreign,
    .examples = {{"import torch\nx = torch.zeros(3).cuda(non_blocking=True)\n", ""},
                 {"import tensorflow\nfrom mine import torch\nx = torch.zeros(3)\n", "", "", false}},
};

const Rule kMissingApi = {
    .id = "missing-api",
    .tier = Tier::advice,
    .when = When::always,
    .title = "names that neither TensorFlow 2.15 nor `cairn tf1` has",
    .reason = "the script would stop there",
    .calls = {},
    .examples = {{"import tensorflow as tf\nx = tf.contrib.gan.gan_model(x)\n", ""},
                 {"import tensorflow as tf\nx = tf.contrib.layers.layer_norm(x)\n", "", "", false}},
};

}  // namespace cairn::migrate
