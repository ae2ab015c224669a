// Dump trees: which operators a folder of dump files holds, step by step, whoever wrote it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace cairn::compare {

/// Where one tensor lies; nothing of its data is read yet.
struct TensorSource {
  enum class Kind : uint8_t { npy, npz, dump, raw };
  Kind kind = Kind::npy;
  std::string path, member;  // member: of an .npz
  bool input = false;
  int index = 0;
  std::string origin;  // the framework's operator whose output this is, when the file says so
  int origin_index = 0;
  std::vector<int64_t> dims;  // raw
  std::string dtype, layout;  // raw
};

struct DumpedOp {
  std::string name, type;
  std::vector<std::string> sources;  // framework operators that it came from, of our manifest
  std::string location;              // "train.py:41", may be empty
  uint64_t time = 0;
  int64_t task = 0, stream = 0;
  std::string path;   // of its file, or of its first
  std::string fault;  // why its file cannot be read
  std::vector<TensorSource> tensors;
};

struct DumpStep {
  std::string folder;             // below the root, "" for the root itself
  std::optional<int64_t> number;  // the folder's data index
  std::vector<DumpedOp> ops;      // in order of time, then of name
};

struct DumpTree {
  std::string root;
  std::vector<DumpStep> steps;        // in order of number, then of folder
  std::vector<std::string> overflow;  // files of the overflow detection
  size_t other_files = 0;             // not named as dumps are
  bool plain = false;                 // of arrays whose names are theirs alone: each is to have its counterpart
};

/// A folder, or one .npy, .npz or DumpData file. Where most .npy files of a folder are not named as dumps are, each is called
/// by its path in the folder. `version` of DumpData: 1, 2 or 0 to find out. Files that are damaged
/// are kept with their fault, but the only one. Throws Error not_found, io.
DumpTree read_tree(const std::string& root, int version = 0);

struct LoadedTensor {
  Tensor tensor;
  std::string dtype;    // as the file calls it
  std::string layout;   // "" when the file does not say
  uint32_t format = 2;  // packed, of a DumpData file
  std::vector<int64_t> original_dims;
  int64_t address = 0;
};
/// Throws Error: the file cannot be read as the source says.
LoadedTensor load(const TensorSource& source, int version = 0);

}  // namespace cairn::compare
