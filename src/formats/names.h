// How dump files are named: by the platform, by TensorFlow's and ONNX's dumps, and by us (as the platform).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

struct FileName {
  enum class Kind : uint8_t {
    dump,       // Conv2D.conv1.3.1.1605000000000000: a DumpData file
    decoded,    // ... .output.0.npy
    raw,        // ... .output.0.64_56_56_16.float16.NC1HWC0.bin
    framework,  // conv1_Conv2D.0.1605000000000000.npy
    overflow,   // Opdebug.Node_OpDebug.3.1.1605000000000000
  };
  Kind kind = Kind::dump;
  std::string op_type, op;
  int64_t task = 0, stream = 0;
  uint64_t time = 0;
  bool input = false;
  int index = 0;
  std::vector<int64_t> dims;  // raw
  std::string dtype, layout;  // raw
};

/// Of a name without folders; nothing when it is none of these.
std::optional<FileName> parse_file_name(std::string_view name);
/// The platform's name of a dump file.
std::string dump_file_name(std::string_view op_type, std::string_view op, int64_t task, int64_t stream, uint64_t time);
/// '.', '/', '\' and blank become '_': the form in which operators' names are compared.
std::string plain_name(std::string_view op);

}  // namespace cairn
