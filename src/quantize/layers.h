// The operators that quantisation is about: convolutions and matrix products of f32 data with a constant kernel, also in the
// bodies of loops (recurrent layers).
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn::quantize {

struct Layer {
  Node* node;
  Node* loop = nullptr;   // in whose body it is; null: in none
  std::string name;       // of its source node, unique in the module
  size_t value;           // the number of its data among the different values that layers read
  size_t data, kernel;    // operands
  size_t inputs;          // dim of the kernel that is summed over
  size_t outputs;         // dim of the kernel with the output channels
  int64_t groups = 1;     // of a convolution
  bool slides = false;    // a convolution, also transposed
  bool gathers = false;   // each output is one sum over the data's last dim and, of a convolution, a window
  bool integers = false;  // engines multiply bytes; else rounded data would be floats again

  Value* data_value() const { return node->inputs[data]; }
  const Tensor& weights() const;
};

/// The block that each turn of a loop computes.
inline Block* loop_body(const Node& loop) { return loop.regions[1].get(); }

/// In the order of computation, which clones keep. `skipped`, if given, counts contractions that are none, by reason.
std::vector<Layer> layers_of(const Module& module, std::map<std::string, size_t>* skipped = nullptr);

/// The number along `dim` of each element of a tensor: element i has i / stride % size.
struct Along {
  size_t stride, size;
  Along(const std::vector<int64_t>& dims, size_t dim);
  size_t operator()(size_t i) const { return i / stride % size; }
};

/// The channel of the data that kernel element i is multiplied with.
size_t data_channel(const Layer& layer, const std::vector<int64_t>& kernel, size_t i);

/// Puts a constant of its own in the place of an operand.
void set_operand(Module& module, Node& node, size_t operand, Tensor value);

}  // namespace cairn::quantize
