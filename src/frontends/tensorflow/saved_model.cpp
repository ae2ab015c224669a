#include "frontends/tensorflow/saved_model.h"

#include <algorithm>
#include <filesystem>

#include "frontends/tensorflow/fields.h"
#include "frontends/tensorflow/text_schema.h"
#include "support/files.h"

namespace cairn::tensorflow {
namespace {

TensorInfo read_tensor_info(Wire wire, std::string_view key) {
  TensorInfo info;
  info.key = key;
  wire.model().charge(4 * sizeof(TensorInfo) + 2 * key.size());
  while (wire.next()) {
    switch (wire.field()) {
      case field::tensor_info::name: info.tensor = wire.bytes(); break;
      case field::tensor_info::dtype: info.dtype = static_cast<DataType>(wire.integer()); break;
      case field::tensor_info::shape: info.shape = read_shape(wire.message("TensorShapeProto")); break;
      default: wire.skip();
    }
  }
  return info;
}

/// Key and value bytes of a map entry.
std::pair<std::string_view, std::string_view> read_entry(Wire entry) {
  std::pair<std::string_view, std::string_view> result;
  while (entry.next()) {
    switch (entry.field()) {
      case field::map_entry::key: result.first = entry.bytes(); break;
      case field::map_entry::value: result.second = entry.bytes(); break;
      default: entry.skip();
    }
  }
  return result;
}

Signature read_signature(std::string_view key, Wire wire) {
  Signature signature;
  signature.key = key;
  wire.model().charge(4 * sizeof(Signature));
  while (wire.next()) {
    uint32_t field = wire.field();
    if (field == field::signature_def::method_name) {
      signature.method = wire.bytes();
    } else if (field == field::signature_def::input || field == field::signature_def::output) {
      auto [name, bytes] = read_entry(wire.message("SignatureDef entry"));
      auto& list = field == field::signature_def::input ? signature.inputs : signature.outputs;
      list.push_back(read_tensor_info(Wire(bytes, "TensorInfo", wire.model(), wire.depth() + 1), name));
    } else {
      wire.skip();
    }
  }
  auto by_key = [](const TensorInfo& a, const TensorInfo& b) { return a.key < b.key; };
  std::sort(signature.inputs.begin(), signature.inputs.end(), by_key);
  std::sort(signature.outputs.begin(), signature.outputs.end(), by_key);
  return signature;
}

void read_meta_info(Wire wire, MetaGraph& meta) {
  while (wire.next()) {
    switch (wire.field()) {
      case field::meta_info::tags:
        wire.model().charge(2 * sizeof(std::string));
        meta.tags.emplace_back(wire.bytes());
        break;
      case field::meta_info::tensorflow_version: meta.tensorflow_version = wire.bytes(); break;
      default: wire.skip();
    }
  }
}

void read_saver(Wire wire, MetaGraph& meta) {
  while (wire.next()) {
    switch (wire.field()) {
      case field::saver_def::filename_tensor: meta.filename_tensor = wire.bytes(); break;
      case field::saver_def::restore_op: meta.restore_op = wire.bytes(); break;
      default: wire.skip();
    }
  }
}

void read_asset(Wire wire, MetaGraph& meta) {
  std::string tensor, file;
  while (wire.next()) {
    switch (wire.field()) {
      case field::asset_file::tensor_info: tensor = read_tensor_info(wire.message("TensorInfo"), "asset").tensor; break;
      case field::asset_file::filename: file = wire.bytes(); break;
      default: wire.skip();
    }
  }
  if (!tensor.empty()) meta.assets[std::string(parse_tensor_name(tensor, "asset_file_def").node)] = file;
}

/// Version 1 has its assets in a collection, as Any messages.
void read_asset_collection(Wire wire, MetaGraph& meta) {
  auto [key, bytes] = read_entry(wire);
  if (key != "saved_model_assets") return;
  Wire collection(bytes, "CollectionDef", wire.model(), wire.depth() + 1);
  while (collection.next()) {
    if (collection.field() != field::collection_def::any_list) {
      collection.skip();
      continue;
    }
    Wire list = collection.message("CollectionDef.AnyList");
    while (list.next()) {
      Wire any = list.message("Any");
      while (any.next()) {
        if (any.field() == field::collection_def::any_value)
          read_asset(any.message("AssetFileDef"), meta);
        else
          any.skip();
      }
    }
  }
}

MetaGraph read_meta_graph(Wire wire, const std::shared_ptr<ModelBytes>& model) {
  MetaGraph meta;
  wire.model().charge(4 * sizeof(MetaGraph));
  meta.graph.model = model;
  while (wire.next()) {
    switch (wire.field()) {
      case field::meta_graph::info: read_meta_info(wire.message("MetaInfoDef"), meta); break;
      case field::meta_graph::graph: meta.graph = read_graph_def(model, wire.bytes(), wire.depth() + 1); break;
      case field::meta_graph::collection:
        read_asset_collection(wire.message("MetaGraphDef.collection_def"), meta);
        break;
      case field::meta_graph::asset: read_asset(wire.message("AssetFileDef"), meta); break;
      case field::meta_graph::saver: read_saver(wire.message("SaverDef"), meta); break;
      case field::meta_graph::signature: {
        auto [key, bytes] = read_entry(wire.message("MetaGraphDef.signature_def"));
        meta.signatures.push_back(read_signature(key, Wire(bytes, "SignatureDef", *model, wire.depth() + 1)));
        break;
      }
      default: wire.skip();
    }
  }
  std::sort(meta.tags.begin(), meta.tags.end());
  std::sort(meta.signatures.begin(), meta.signatures.end(), [](auto& a, auto& b) { return a.key < b.key; });
  return meta;
}

/// Out of what SaveOptions(save_debug_info=True) writes. What is damaged there costs script lines, not the model.
void read_script_lines(SavedModel& model) {
  const std::string path = model.directory + "/debug/saved_model_debug_info.pb";
  if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return;
  try {
    const auto file = ModelBytes::open(path);
    for (MetaGraph& meta : model.meta_graphs) {
      meta.graph.model->attach(file);
      add_script_lines(meta.graph, Wire(file->bytes(), "GraphDebugInfo", *file));
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::out_of_memory || error.kind() == ErrorKind::cancelled) throw;
  }
}

}  // namespace

const Signature* MetaGraph::find_signature(std::string_view key) const {
  for (const Signature& signature : signatures)
    if (signature.key == key) return &signature;
  return nullptr;
}

const MetaGraph& SavedModel::select(const std::vector<std::string>& tags) const {
  if (tags.empty() && meta_graphs.size() == 1) return meta_graphs.front();
  std::vector<std::string> wanted = tags.empty() ? std::vector<std::string>{"serve"} : tags;
  std::sort(wanted.begin(), wanted.end());
  std::string present;
  for (const MetaGraph& meta : meta_graphs) {
    if (meta.tags == wanted) return meta;
    std::string list;
    for (const std::string& tag : meta.tags) list += (list.empty() ? "" : ",") + printable(tag);
    present += fmt::format("{}'{}'", present.empty() ? "" : ", ", list);
  }
  fail(ErrorKind::not_found, directory, "has no graph with tags '{}'; it has {}", fmt::join(wanted, ","), present);
}

bool is_saved_model(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path + "/saved_model.pb", ignored) ||
         std::filesystem::exists(path + "/saved_model.pbtxt", ignored);
}

std::string checkpoint_prefix(const std::string& path) {
  std::string prefix = path;
  for (std::string_view ending : {".meta", ".index"})
    if (path.ends_with(ending)) prefix = path.substr(0, path.size() - ending.size());
  std::error_code ignored;
  bool both = std::filesystem::exists(prefix + ".meta", ignored) && std::filesystem::exists(prefix + ".index", ignored);
  return both ? prefix : std::string();
}

void refuse_bare_checkpoint(const std::string& path) {
  const std::string prefix = path.ends_with(".index") ? path.substr(0, path.size() - 6) : path;
  std::error_code ignored;
  if (std::filesystem::exists(prefix + ".index", ignored) && !std::filesystem::exists(prefix + ".meta", ignored))
    fail(ErrorKind::unsupported, path, "is a checkpoint without its graph, {}.meta; export the model as a SavedModel",
         std::filesystem::path(prefix).filename().string());
}

SavedModel read_checkpoint(const std::string& prefix) {
  auto model = ModelBytes::open(prefix + ".meta");
  SavedModel result;
  result.directory = prefix;
  result.checkpoint = true;
  result.meta_graphs.push_back(read_meta_graph(Wire(model->bytes(), "MetaGraphDef", *model), model));
  if (result.meta_graphs[0].graph.nodes.empty()) fail(ErrorKind::invalid_model, prefix + ".meta", "holds no graph");
  return result;
}

SavedModel read_saved_model(const std::string& directory) {
  std::error_code ignored;
  if (!std::filesystem::exists(directory, ignored))
    fail(ErrorKind::not_found, directory, "does not exist{}", near_file(directory));
  if (!std::filesystem::is_directory(directory, ignored))
    fail(ErrorKind::invalid_argument, directory, "is a file; a SavedModel is a folder that holds saved_model.pb");
  bool binary = std::filesystem::exists(directory + "/saved_model.pb", ignored);
  std::string path = directory + (binary ? "/saved_model.pb" : "/saved_model.pbtxt");
  auto model = ModelBytes::open(path);
  std::string_view bytes = model->bytes();
  if (!binary) bytes = model->keep(text_to_wire(bytes, kSavedModelText, path));
  SavedModel result;
  result.directory = directory;
  Wire wire(bytes, "SavedModel", *model);
  while (wire.next()) {
    if (wire.field() == field::saved_model::meta_graph)
      result.meta_graphs.push_back(read_meta_graph(wire.message("MetaGraphDef"), model));
    else
      wire.skip();
  }
  if (result.meta_graphs.empty()) fail(ErrorKind::invalid_model, path, "holds no graph");
  read_script_lines(result);
  return result;
}

SavedModel read_trained(const std::string& path) {
  const std::string prefix = checkpoint_prefix(path);
  if (!prefix.empty()) return read_checkpoint(prefix);
  refuse_bare_checkpoint(path);
  return read_saved_model(path);
}

}  // namespace cairn::tensorflow
