// A SavedModel directory: its meta graphs with tags and signatures. Variables are in the tensor bundle beside it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/tensorflow/graph_def.h"

namespace cairn::tensorflow {

/// An input or output of a signature. `tensor` is empty for sparse and composite values, which consist of several
/// tensors.
struct TensorInfo {
  std::string key;     // the signature's name for it
  std::string tensor;  // "serving_default_x:0"
  DataType dtype = kDtInvalid;
  ShapeProto shape;
};

struct Signature {
  std::string key;
  std::string method;
  std::vector<TensorInfo> inputs;  // by key
  std::vector<TensorInfo> outputs;
};

struct MetaGraph {
  std::vector<std::string> tags;
  std::string tensorflow_version;
  std::vector<Signature> signatures;  // by key
  std::string restore_op;             // SaverDef: the node that restores all variables; empty without variables
  std::string filename_tensor;
  std::map<std::string, std::string> assets;  // node that gives the path -> file in the folder "assets"
  GraphDef graph;

  const Signature* find_signature(std::string_view key) const;
};

struct SavedModel {
  std::string directory;  // of a checkpoint: its prefix
  std::vector<MetaGraph> meta_graphs;
  bool checkpoint = false;

  std::string variables_prefix() const { return checkpoint ? directory : directory + "/variables/variables"; }
  /// The meta graph with exactly these tags; without tags the only one, or the one tagged "serve". Throws Error
  /// not_found, which lists the existing ones.
  const MetaGraph& select(const std::vector<std::string>& tags) const;
};

bool is_saved_model(const std::string& path);
/// The prefix of the checkpoint of tf.train.Saver that a path names: "model.ckpt", "model.ckpt.meta" or
/// "model.ckpt.index", with both files there; else empty.
std::string checkpoint_prefix(const std::string& path);
/// Throws Error if `path` names a checkpoint without a graph beside it; the message says what is missing.
void refuse_bare_checkpoint(const std::string& path);
/// The graph beside a checkpoint (prefix.meta), with its variables in the checkpoint. Throws Error.
SavedModel read_checkpoint(const std::string& prefix);
/// Reads saved_model.pb or saved_model.pbtxt of the directory. Throws Error.
SavedModel read_saved_model(const std::string& directory);
/// Reads whichever of the two the path names. Throws Error.
SavedModel read_trained(const std::string& path);

}  // namespace cairn::tensorflow
