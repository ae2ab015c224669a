// Which operators of the framework an operator of the compiled model stands for.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::compare {

/// The output `index` of the operator `name` of the framework; an empty name says nothing.
struct Origin {
  std::string name;
  int index = 0;
  std::string layout;  // of the framework's tensor, may be empty
};

struct MappedOp {
  std::string name, type;
  size_t sequence = 0;                 // place in the model, from 1
  std::vector<std::string> originals;  // in order; the last gives the outputs
  std::vector<Origin> outputs;         // by output index
  std::vector<Origin> producers;       // by input index: operator and output of the same model
};

struct OpMapping {
  std::vector<MappedOp> ops;             // in the model's order
  std::map<std::string, size_t> places;  // of ops by plain name
  const MappedOp* find(std::string_view op) const;
};

/// Reads a model's JSON form (atc --mode=1: "graph" with "op"), a JSON object {"mine": "golden" | ["golden", ...]}, or
/// lines "mine,golden[,golden...]". Throws Error not_found, io, unsupported.
OpMapping read_mapping(const std::string& path);

/// The framework's tensor behind an output or input of `op`; an empty name when the mapping does not say.
Origin origin_of_output(const OpMapping& mapping, std::string_view op, int index);
Origin origin_of_input(const OpMapping& mapping, std::string_view op, int index);

}  // namespace cairn::compare
