// Caffe's layers that make the inputs of a net, and those that are there only for training.
#include <algorithm>

#include "frontends/caffe/importer.h"

namespace cairn::caffe {
namespace {

constexpr Row kInputRows[] = {
    {"AnnotatedData", nullptr, nullptr, Role::input},
    {"Data", nullptr, nullptr, Role::input},
    {"DummyData", nullptr, nullptr, Role::input},
    {"HDF5Data", nullptr, nullptr, Role::input},
    {"ImageData", nullptr, nullptr, Role::input},
    {"Input", nullptr, nullptr, Role::input},
    {"MemoryData", nullptr, nullptr, Role::input},
    {"Accuracy", nullptr, nullptr, Role::training},
    {"ContrastiveLoss", nullptr, nullptr, Role::training},
    {"DetectionEvaluate", nullptr, nullptr, Role::training},
    {"EuclideanLoss", nullptr, nullptr, Role::training},
    {"HDF5Output", nullptr, nullptr, Role::training},
    {"HingeLoss", nullptr, nullptr, Role::training},
    {"InfogainLoss", nullptr, nullptr, Role::training},
    {"MultiBoxLoss", nullptr, nullptr, Role::training},
    {"MultinomialLogisticLoss", nullptr, nullptr, Role::training},
    {"Silence", nullptr, nullptr, Role::discard},
    {"SmoothL1Loss", nullptr, nullptr, Role::training},
};

/// Sizes of images as layers that read them from files tell them; -1 for what they do not tell.
std::vector<int64_t> image_dims(const Layer& layer) {
  const Message transform = layer.params.message("transform_param");
  std::vector<int64_t> dims(4, -1);
  for (const char* name : {"data_param", "image_data_param", "memory_data_param", "hdf5_data_param"}) {
    const Message params = layer.params.message(name);
    const bool memory = name == std::string_view("memory_data_param"), images = name[0] == 'i';
    dims[0] = params.integer("batch_size", dims[0]);
    if (memory) dims[1] = params.integer("channels", dims[1]);
    if (memory || images)
      for (size_t i : {2, 3})
        dims[i] = params.integer(memory ? i == 2 ? "height" : "width" : i == 2 ? "new_height" : "new_width", dims[i]);
    else if (const int64_t crop = params.integer("crop_size", 0); crop > 0)
      dims[2] = dims[3] = crop;
  }
  if (const int64_t crop = transform.integer("crop_size", 0); crop > 0) dims[2] = dims[3] = crop;
  return dims;
}

}  // namespace

std::span<const Row> input_rows() { return kInputRows; }

std::vector<Input> inputs_of(const Layer& layer) {
  std::vector<Input> inputs;
  for (std::string_view top : layer.tops) inputs.push_back({top, {}, false});
  if (layer.type == "Input" || layer.type == "DummyData") {
    const Message params = layer.params.message(layer.type == "Input" ? "input_param" : "dummy_data_param");
    const auto shapes = params.messages("shape");
    for (size_t i = 0; i < inputs.size() && !shapes.empty(); ++i) {
      inputs[i].dims = shapes[shapes.size() == 1 ? 0 : std::min(i, shapes.size() - 1)].integers("dim");
      inputs[i].ranked = true;
    }
    if (layer.type == "Input" || !shapes.empty()) return inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      for (const char* name : {"num", "channels", "height", "width"})
        if (const auto sizes = params.integers(name); !sizes.empty()) {
          inputs[i].dims.push_back(sizes[std::min(i, sizes.size() - 1)]);
          inputs[i].ranked = true;
        }
  } else if (!inputs.empty() && layer.type != "HDF5Data") {
    inputs[0].dims = image_dims(layer);
    inputs[0].ranked = true;
  }
  return inputs;
}

}  // namespace cairn::caffe
