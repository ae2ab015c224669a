// Which line of a user's script made a node, out of the stacks that exporters leave in model files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cairn {

struct ScriptFrame {
  std::string_view file;
  int64_t line = 0;
};

/// "train.py:41": the innermost frame outside installed packages, which is the last; nothing where all are inside.
std::string script_line(const std::vector<ScriptFrame>& frames);

/// The same of a stack as text: what Python prints, or a line "train.py(41): forward" a frame, the innermost first, which
/// torch.onnx.export(dynamo=False, verbose=True) writes.
std::string script_line_in(std::string_view text);

}  // namespace cairn
