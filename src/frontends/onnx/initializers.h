// What an exporter did to the weights of a network, undone. Exporters and optimisers of ONNX files keep one initialiser for
// several that hold the same numbers, which those of a fresh network do: scales of 1, shifts of 0, statistics, layers made as
// copies of one. That is right for inference; trained, each must move by itself.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "frontends/onnx/model.h"

namespace cairn::onnx {

/// Initialisers that the nodes of a model's graph get for themselves.
///  - What torch's exporter hands on by an Identity node, named like the parameter that it stands for, is that parameter: the
///    node goes. Its names for what it computed itself ("onnx::MatMul_12") stay tied.
///  - Floats that are all the same number, of more than one element, and are used in several places: one for each place,
///    unless the file's exporter is known to merge none.
/// Others stay tied: a weight that a network uses twice. Initialisers that are inputs or used inside `If`, `Loop` or `Scan`
/// stay too.
struct OwnInitializers {
  explicit OwnInitializers(const Model& model);

  struct Copy {
    std::string name;
    const TensorProto* original;
  };
  std::deque<Copy> copies;                                        // in order of their use
  std::vector<bool> gone;                                         // nodes, by index; empty when none is
  std::map<std::pair<size_t, size_t>, const Copy*> replacements;  // by node and input

  bool empty() const { return copies.empty(); }
  /// The model with them; views of the names here and of the model's file.
  Model applied(const Model& model) const;
};

/// How many batch norms torch's exporter folded into convolutions, where its file tells.
size_t folded_norms(const Model& model);

/// Which initialisers of a graph are weights, as far as its file tells: torch's exporter marks parameters and buffers, and of
/// what it computed, single numbers and the operands of an instance norm (it writes group norms with them) are constants.
class Weights {
 public:
  explicit Weights(const Graph& graph);
  bool contains(std::string_view name, const Tensor& value) const;

 private:
  std::unordered_map<std::string_view, std::string_view> kinds_;  // of the exporter, by name
  std::unordered_set<std::string_view> constants_;
};

}  // namespace cairn::onnx
