// Undoes the merging of weights by exporters. Exporters and optimisers of ONNX files merge initialisers with equal
// elements, as a freshly initialised network has them: scales of 1, shifts of 0, statistics, copied layers. That is
// right for inference, but for training each weight must be separate.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "frontends/onnx/model.h"

namespace cairn::onnx {

/// The initialisers that are split into separate copies for the nodes of a model's graph:
///  - An Identity node of torch's exporter with the name of a parameter becomes that parameter; the node is removed.
///    Values with names that the exporter generated ("onnx::MatMul_12") stay shared.
///  - A float initialiser of more than one element, all equal, that is used in several places gets a copy for each
///    place, unless the file's exporter is known not to merge initialisers.
/// Others stay shared, since a network may use a weight twice; so do initialisers that are inputs or are used inside
/// `If`, `Loop` or `Scan`.
struct OwnInitializers {
  explicit OwnInitializers(const Model& model);

  struct Copy {
    std::string name;
    const TensorProto* original;
  };
  std::deque<Copy> copies;                                        // in order of their use
  std::vector<bool> gone;                                         // removed nodes, by index; empty when there are none
  std::map<std::pair<size_t, size_t>, const Copy*> replacements;  // by node and input

  bool empty() const { return copies.empty(); }
  /// The model with the copies; refers to the names here and to the model's file.
  Model applied(const Model& model) const;
};

/// The number of batch norms that torch's exporter folded into convolutions, if the file tells.
size_t folded_norms(const Model& model);

/// Which initialisers of a graph are weights, as far as the file tells: torch's exporter marks parameters and buffers;
/// of the values that it computed, single numbers and the operands of an instance norm (by which it writes group norms)
/// are constants.
class Weights {
 public:
  explicit Weights(const Graph& graph);
  bool contains(std::string_view name, const Tensor& value) const;

 private:
  std::unordered_map<std::string_view, std::string_view> kinds_;  // of the exporter, by name
  std::unordered_set<std::string_view> constants_;
};

}  // namespace cairn::onnx
