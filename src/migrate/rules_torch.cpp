// PyTorch scripts become MindSpore scripts (--to mindspore): the rules' rows; what they do lies in torch_*.cpp.
#include <algorithm>
#include <array>

#include "migrate/torch_file.h"

namespace cairn::migrate {
namespace {

bool imports_from(const Module& module, std::string_view package) {
  for (const Import& import : module.imports())
    if (import.module == package || import.module.starts_with(std::string(package) + ".")) return true;
  return false;
}

// A file without PyTorch's name whose functions scripts of PyTorch call with tensors: it names methods that only those have.
bool is_given_tensors(const Context& file) {
  const Project& project = file.project;
  const auto& importers = project.importers(project.index_of(&file.module));
  if (std::none_of(importers.begin(), importers.end(),
                   [&](size_t index) { return imports_from(*project.modules()[index], "torch"); }))
    return false;
  static constexpr std::array words = {".size(",    ".detach(", ".cpu(",        ".unsqueeze(", ".view(",
                                       ".permute(", ".topk(",   ".parameters(", ".expand_as("};
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return file.module.text().find(word) != std::string::npos; });
}

// from .parts import *, where parts imports PyTorch.
bool has_names_by_star(const Context& file) {
  const auto& imports = file.module.imports();
  return std::any_of(imports.begin(), imports.end(), [&](const Import& import) {
    const std::string path = import.star ? file.project.find(file.module.path(), import.module) : "";
    const Module* other = path.empty() ? nullptr : file.project.module(path);
    return other && (imports_from(*other, "torch") || imports_from(*other, "torchvision"));
  });
}

// All rules of a script at once, because lines move under each other's edits.
void to_mindspore(Context& file, const Rule&) {
  if (!imports_from(file.module, "torch") && !imports_from(file.module, "torchvision") && !is_given_tensors(file) &&
      !has_names_by_star(file))
    return;
  if (imports_from(file.module, "mindspore")) {
    file.find(kTorchMissing, 0, Severity::note, "the script uses MindSpore already",
              "what is left of PyTorch in it is for a person to rewrite");
    return;
  }
  TorchFile torch(file);
  rewrite_calls(torch);
  rewrite_gradients(torch);
  rewrite_training(torch);
  torch.finish();
}

// What this rule stands for is done with the names.
void with_names(Context&, const Rule&) {}

}  // namespace

const Rule kTorchNames = {
    .id = "torch-names",
    .tier = Tier::review,
    .when = When::mindspore,
    .title = "names and calls of PyTorch become those of MindSpore",
    .reason = "by the table of names, with arguments, defaults and their order as MindSpore has them",
    .calls = {},
    .at_file = to_mindspore,
    .examples =
        {
            {"import torch\nfrom torch import nn\npool = nn.MaxPool2d(2)\ny = torch.cat([a, b], dim=1).view(-1, 4)\n",
             "from mindspore import nn, ops\npool = nn.MaxPool2d(2, 2)\ny = ops.concat([a, b], axis=1).view(-1, 4)\n",
             "to=mindspore"},
            {"import torch.nn.functional as F\nloss = F.smooth_l1_loss(a,  # predicted\n                        b)\n",
             "from mindspore import ops\nloss = ops.smooth_l1_loss(a,  # predicted\n                        b, "
             "reduction='mean')\n",
             "to=mindspore"},
            {"import numpy as np\ny = np.mean([1])\n", "", "to=mindspore"},
        },
};

const Rule kTorchModule = {
    .id = "torch-module",
    .tier = Tier::review,
    .when = When::mindspore,
    .title = "forward() of a module is construct() of a cell",
    .reason = "the method that a call of a cell runs",
    .calls = {},
    .at_file = with_names,
    .examples =
        {
            {"import torch.nn as nn\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n",
             "from mindspore import nn\nclass Net(nn.Cell):\n    def construct(self, x):\n        return x\n",
             "to=mindspore"},
            {"class Net(Base):\n    def forward(self, x):\n        return x\n", "", "to=mindspore"},
        },
};

const Rule kTorchTraining = {
    .id = "torch-training",
    .tier = Tier::review,
    .when = When::mindspore,
    .title = "a training step takes the gradients of a function",
    .reason = "gradients are values of ops.value_and_grad, not kept beside the parameters",
    .calls = {},
    .at_file = with_names,
    .examples =
        {
            {"from torch import nn, optim\nnet, loss_fn = nn.Tanh(), nn.MSELoss()\ndef train(x, y, optimizer: "
             "optim.Adam):\n    optimizer.zero_grad()\n    loss = loss_fn(net(x), y)  # the loss\n    "
             "loss.backward()\n    optimizer.step()\n    return loss.item()\n",
             "import mindspore as ms\nfrom mindspore import nn, ops\n\nms.set_context(mode=ms.PYNATIVE_MODE)\n\n\nnet, "
             "loss_fn = nn.Tanh(), nn.MSELoss()\ndef train(x, y, optimizer: nn.Adam):\n    def forward():\n        "
             "loss = "
             "loss_fn(net(x), y)  # the loss\n        return loss\n    loss, grads = ops.value_and_grad(forward, None, "
             "optimizer.parameters)()\n    optimizer(grads)\n    return loss.asnumpy().item()\n",
             "to=mindspore"},
            {"def train(game):\n    game.step()\n", "", "to=mindspore"},
        },
};

const Rule kTorchImports = {
    .id = "torch-imports",
    .tier = Tier::safe,
    .when = When::mindspore,
    .title = "imports of MindSpore in place of those of PyTorch",
    .reason = "imports that are still needed stay",
    .calls = {},
    .at_file = with_names,
    .examples =
        {
            {"import os, torch\nx = torch.exp(os.y)\n", "from mindspore import ops\nimport os\nx = ops.exp(os.y)\n",
             "to=mindspore"},
            {"import os\nx = os.y\n", "", "to=mindspore"},
        },
};

const Rule kTorchMissing = {
    .id = "torch-missing",
    .tier = Tier::advice,
    .when = When::mindspore,
    .title = "names of PyTorch that MindSpore has nothing for",
    .reason = "they stay as they are, marked in the line and listed with a way out",
    .calls = {},
    .examples =
        {
            {"import torch.nn as nn\nb = nn.BatchNorm2d(8, momentum=None)\n",
             "import torch.nn as nn\nb = nn.BatchNorm2d(8, momentum=None)  # cairn: by hand: torch.nn.BatchNorm2d\n",
             "to=mindspore"},
            {"import numpy\nx = numpy.zeros(3)\n", "", "to=mindspore", false},
        },
};

}  // namespace cairn::migrate
