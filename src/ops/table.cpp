// The one list of op families, and the index by name over their rows.
#include <unordered_map>

#include "ops/families.h"

namespace cairn {

namespace {

struct Table {
  std::vector<const OpDef*> rows;
  std::unordered_map<std::string_view, const OpDef*> index;

  Table() {
    for (auto family :
         {constant_ops,       unary_ops,     binary_ops,  special_ops,    bit_ops,          linear_ops,
          linear_algebra_ops, fourier_ops,   pooling_ops, morphology_ops, ctc_decoding_ops, normalisation_ops,
          loss_ops,           reduction_ops, segment_ops, shape_ops,      slicing_ops,      indexing_ops,
          image_ops,          aipp_ops,      dynamic_ops, control_ops,    list_ops,         state_ops,
          random_ops,         host_ops,      text_ops,    text_part_ops,  lookup_ops,       sparse_ops,
          ragged_ops,         example_ops})
      for (const OpDef& row : family()) {
        rows.push_back(&row);
        CHECK(index.emplace(row.name, &row).second, "two rows are called {}", row.name);
      }
  }
};

const Table& table() {
  static const Table table;
  return table;
}

}  // namespace

const OpDef* find_op(std::string_view name) {
  auto found = table().index.find(name);
  return found == table().index.end() ? nullptr : found->second;
}

std::span<const OpDef* const> all_ops() { return table().rows; }

}  // namespace cairn
