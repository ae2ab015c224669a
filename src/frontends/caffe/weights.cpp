#include "frontends/caffe/weights.h"

#include <algorithm>
#include <map>

#include "frontends/caffe/schema.h"
#include "frontends/values.h"

namespace cairn::caffe {
namespace {

/// Numbers in one piece stay where they are in the file; several pieces are joined.
std::string_view joined(const std::vector<std::string_view>& pieces, ModelBytes& model) {
  if (pieces.size() == 1) return pieces[0];
  std::string all;
  for (std::string_view piece : pieces) all += piece;
  return model.keep(std::move(all));
}

Blob read_blob(Wire wire) {
  Blob blob;
  std::vector<int64_t> old(4, 0);
  bool shaped = false, four = false;
  std::string single;  // elements that are not packed
  std::vector<std::string_view> pieces;
  while (wire.next()) {
    switch (wire.field()) {
      case field::blob::num:
      case field::blob::channels:
      case field::blob::height:
      case field::blob::width: old[wire.field() - field::blob::num] = wire.integer(), four = true; break;
      case field::blob::shape: {
        Wire shape = wire.message("BlobShape");
        shaped = true;
        while (shape.next())
          if (shape.field() == 1)
            shape.append_integers(blob.dims);
          else
            shape.skip();
        break;
      }
      case field::blob::double_data: blob.wide = true; [[fallthrough]];
      case field::blob::data:
        if (wire.is_message())
          pieces.push_back(wire.bytes());
        else
          wire.append_fixed(single);
        break;
      default: wire.skip();
    }
  }
  if (!single.empty()) pieces.push_back(wire.model().keep(std::move(single)));
  if (!pieces.empty()) blob.bytes = joined(pieces, wire.model());
  if (!shaped && four) blob.dims = old;
  const std::optional<int64_t> count = element_count(blob.dims);
  const uint64_t size = blob.wide ? sizeof(double) : sizeof(float);
  if (!count || static_cast<uint64_t>(*count) > blob.bytes.size() || blob.bytes.size() != *count * size)
    wire.fail("has {} bytes of numbers for the dims [{}]", blob.bytes.size(), fmt::join(blob.dims, ", "));
  return blob;
}

/// The name and the blobs of a layer of any generation, by the numbers of these fields.
std::pair<std::string_view, std::vector<Blob>> read_layer_blobs(Wire wire, uint32_t name, uint32_t blobs) {
  std::pair<std::string_view, std::vector<Blob>> layer;
  while (wire.next()) {
    if (wire.field() == name) {
      layer.first = wire.bytes();
    } else if (wire.field() == blobs) {
      wire.model().charge(sizeof(Blob) + 64);
      layer.second.push_back(read_blob(wire.message("BlobProto")));
    } else {
      wire.skip();
    }
  }
  return layer;
}

std::pair<std::string_view, std::vector<Blob>> read_old_blobs(Wire wire) {
  const Wire whole = wire;
  while (wire.next()) {
    if (wire.field() == field::old_layer::oldest)
      return read_layer_blobs(wire.message("V0LayerParameter"), field::oldest_layer::name, field::oldest_layer::blobs);
    wire.skip();
  }
  return read_layer_blobs(whole, field::old_layer::name, field::old_layer::blobs);
}

}  // namespace

Weights::Weights(const std::string& path) : name_(path), bytes_(ModelBytes::open(path)) {
  Wire wire(bytes_->bytes(), "NetParameter", *bytes_);
  bool any = false;
  while (wire.next()) {
    const bool now = wire.field() == field::net_layer;
    if (!now && wire.field() != field::net_old_layer) {
      wire.skip();
      continue;
    }
    bytes_->charge(256);
    any = true;
    Wire layer = wire.message(now ? "LayerParameter" : "V1LayerParameter");
    auto [name, blobs] =
        now ? read_layer_blobs(std::move(layer), field::layer::name, field::layer::blobs) : read_old_blobs(layer);
    if (!blobs.empty()) layers_[name] = std::move(blobs);
  }
  if (!any) fail(ErrorKind::invalid_model, path, "has no layers; it is no caffemodel file");
}

void Weights::share(const std::vector<Layer>& layers) {
  std::map<std::string_view, Blob> shared;
  for (const Layer& layer : layers) {
    const std::vector<Blob>* blobs = find(layer.name);
    for (size_t i = 0; blobs != nullptr && i < std::min(blobs->size(), layer.param_names.size()); ++i)
      shared.emplace(layer.param_names[i], (*blobs)[i]);
  }
  shared.erase("");
  for (const Layer& layer : layers) {
    if (find(layer.name) != nullptr) continue;
    std::vector<Blob> blobs;
    for (std::string_view name : layer.param_names) {
      const auto found = shared.find(name);
      if (found == shared.end()) break;
      blobs.push_back(found->second);
    }
    if (!blobs.empty()) layers_[layer.name] = std::move(blobs);
  }
}

const std::vector<Blob>* Weights::find(std::string_view layer) const {
  const auto found = layers_.find(layer);
  return found == layers_.end() ? nullptr : &found->second;
}

Tensor Weights::tensor(const Blob& blob, std::vector<int64_t> dims) const {
  if (!blob.wide && !blob.bytes.empty() && reinterpret_cast<uintptr_t>(blob.bytes.data()) % sizeof(float) == 0)
    return Tensor::view(kF32, std::move(dims), blob.bytes.data(), bytes_);
  bytes_->charge(blob.bytes.size());
  if (!blob.wide) return copy_of_elements(kF32, std::move(dims), blob.bytes);
  const Tensor wide = copy_of_elements(kF64, dims, blob.bytes);
  Tensor tensor = Tensor::zeros(kF32, std::move(dims));
  const auto from = wide.values<double>();
  std::transform(from.begin(), from.end(), tensor.mutable_values<float>().begin(),
                 [](double x) { return static_cast<float>(x); });
  return tensor;
}

}  // namespace cairn::caffe
