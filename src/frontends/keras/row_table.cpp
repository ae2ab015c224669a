// The rows of all families of layers.
#include <algorithm>
#include <array>

#include "frontends/keras/importer.h"

namespace cairn::keras {

static std::array<std::span<const Row>, 8> families() {
  return {layer_rows(),     image_rows(),    volume_rows(),    recurrent_rows(),
          attention_rows(), function_rows(), operation_rows(), preprocessing_rows()};
}

const Row* find_row(std::string_view layer) {
  for (std::span<const Row> family : families())
    for (const Row& row : family)
      if (row.layer == layer) return &row;
  return nullptr;
}

std::vector<std::string_view> supported_layers() {
  std::vector<std::string_view> layers;
  for (std::span<const Row> family : families())
    for (const Row& row : family)
      if (row.layer != kOperation) layers.push_back(row.layer);
  std::sort(layers.begin(), layers.end());
  return layers;
}

}  // namespace cairn::keras
