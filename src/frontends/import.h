// Imports a foreign model as a module: a function @main whose params and results have the model's own names, and nodes
// that record their source nodes. All problems of a model are collected before it is refused.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontends/onnx/model.h"
#include "frontends/tensorflow/freeze.h"
#include "ir/module.h"

namespace cairn {

/// The known elements of an integer input: numbers, or sizes of open dims by their symbols.
struct KnownIntegers {
  struct Element {
    int64_t number = 0;
    Symbol size = nullptr;
  };
  std::vector<Element> elements;
  bool scalar = false;  // else a vector; with no sizes it has the input's declared shape
};

struct ImportOptions {
  /// Shapes by input name (key of the signature, node name or tensor name); they may fix dims or make them open.
  std::map<std::string, Shape> input_shapes;
  /// For clusters: known values of integer inputs, by input name. The input remains, but is not read.
  std::map<std::string, KnownIntegers> input_values = {};
  /// For clusters: constant values of inputs of any type, by name. A variable among them becomes local to the run.
  std::map<std::string, Tensor> constants = {};
  /// "node", "node:index"; ONNX also tensor names; Keras: layers; Caffe: layers and tops. Default: the model's outputs.
  std::vector<std::string> out_nodes;
  std::string weights;                             // Caffe: the caffemodel file
  std::map<std::string, std::string> layer_types;  // Caffe: types that stand for others, "DetectionOutput" and the like
  std::string signature;                           // SavedModel: default "serving_default"
  std::vector<std::string> tags;                   // SavedModel: default the only meta graph, or "serve"
  /// What stands in place of a node, by its name as in out_nodes, to go on past what is not supported: "input" an input of
  /// the model of the node's name (floats unless the file tells); in TensorFlow also "identity" its first input, "zeros"
  /// zeros like that.
  std::map<std::string, std::string> replace;
  /// Called with a sentence for everything in an accepted model that its user may not expect.
  std::function<void(const std::string&)> note = {};

  template <class... Args>
  void tell(fmt::format_string<Args...> format, Args&&... args) const {
    if (note) note(fmt::format(format, std::forward<Args>(args)...));
  }
  /// The same model with other outputs, where any are given, and these nodes as inputs, to try what a refusal proposes.
  ImportOptions with(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs) const;
  void tell_cut_off(const std::string& input) const {
    tell("the shape of input '{}' has no effect: the outputs do not need that input", input);
  }
};

enum class ModelFormat { saved_model, graph_def, onnx, checkpoint, keras, caffe };
const char* to_string(ModelFormat format);
/// Determined by the content, not by the name. Throws Error not_found, invalid_model.
ModelFormat detect_format(const std::string& path);

/// Reads and imports any supported model. Throws Error, and ReportError with all unsupported or malformed nodes.
Module import_model(const std::string& path, const ImportOptions& options = {});

/// Imports a frozen graph. `signature` names inputs and outputs; if it has no tensors, the inputs are the placeholders,
/// and the outputs are options.out_nodes or the nodes that no other node uses.
Module import_tensorflow(const tensorflow::GraphDef& graph, const ImportOptions& options = {},
                         const tensorflow::Signature& signature = {});
Module import_onnx(const onnx::Model& model, const ImportOptions& options = {});
/// Imports an HDF5 file or an archive of Keras.
Module import_keras(const std::string& path, const ImportOptions& options = {});
/// Imports a prototxt file with the weights that the options name.
Module import_caffe(const std::string& path, const ImportOptions& options = {});

}  // namespace cairn
