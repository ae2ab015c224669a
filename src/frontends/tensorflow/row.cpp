#include "frontends/tensorflow/row.h"

#include <algorithm>
#include <unordered_map>

#include "ir/user_ops.h"
#include "support/error.h"

namespace cairn::tensorflow {
namespace {

/// In the order of Trait.
constexpr std::string_view kTraitNames[] = {
    "reads",          "writes",     "assigns",     "asks",        "rows",     "distinct", "hands_on", "calls",
    "makes_variable", "makes_list", "makes_table", "fills_table", "puts",     "takes",    "draws",    "stops",
    "shapes",         "all_known",  "free",        "heavy",       "rivalled", "host"};
static_assert(std::size(kTraitNames) == static_cast<size_t>(Trait::host) + 1);

/// Their results have any size: a cluster would be planned anew in every step.
std::vector<std::span<const Row>> host_families() {
  return {text_rows(), lookup_rows(), example_rows(), sparse_tensor_rows()};
}

std::vector<std::span<const Row>> row_families() {
  return {array_rows(),          block_rnn_rows(), cluster_rows(),       control_rows(),       image_rows(),
          list_rows(),           math_rows(),      composed_math_rows(), network_rows(),       training_rows(),
          gradient_rows(),       fused_rows(),     update_rows(),        sparse_rows(),        quantisation_rows(),
          random_rows(),         colour_rows(),    counting_rows(),      ctc_rows(),           diagonal_rows(),
          linear_algebra_rows(), signal_rows(),    slicing_rows(),       warp_rows(),          window_rows(),
          text_rows(),           lookup_rows(),    example_rows(),       sparse_tensor_rows(), collective_rows(),
          user_rows(),           host_rows()};
}

using Table = std::unordered_map<std::string_view, const Row*>;

const Row* row_in(const Table& table, std::string_view op) {
  auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

const Table& all_rows() {
  static const Table table = [] {
    Table rows;
    for (std::span<const Row> family : row_families())
      for (const Row& row : family) CHECK(rows.emplace(row.op, &row).second, "two rows for {}", row.op);
    return rows;
  }();
  return table;
}

/// With those of loops in place of a frozen model's.
const Table& all_cluster_rows() {
  static const Table table = [] {
    Table rows = all_rows();
    for (const Row& row : loop_rows()) rows[row.op] = &row;
    return rows;
  }();
  return table;
}

}  // namespace

const Row* find_row(std::string_view op) {
  if (const Row* row = row_in(all_rows(), op); row != nullptr && row->build != nullptr) return row;
  static const Row of_user{"", make_user_op};
  if (find_foreign_op("tensorflow", op)) return &of_user;
  const std::string_view alias = foreign_alias("tensorflow", op);
  return alias.empty() ? nullptr : find_row(alias);
}

const Row* find_cluster_row(std::string_view op) {
  for (std::span<const Row> family : host_families())
    for (const Row& row : family)
      if (row.op == op) return nullptr;
  const Row* row = row_in(all_cluster_rows(), op);
  if (row != nullptr && row->traits.has(Trait::host)) return nullptr;
  return row != nullptr && row->build != nullptr ? row : find_row(op);
}

Traits traits_of(std::string_view op) {
  if (const Row* row = row_in(all_cluster_rows(), op)) return row->traits;
  const std::string_view alias = foreign_alias("tensorflow", op);
  return alias.empty() ? Traits() : traits_of(alias);
}

bool has_effect(std::string_view op) {
  const Traits traits = traits_of(op);
  return traits.has(Trait::writes) || traits.has(Trait::stops);
}

std::vector<std::string_view> supported_ops() {
  std::vector<std::string_view> ops;
  for (const auto& [op, row] : all_rows())
    if (row->build != nullptr && !op.starts_with("Cairn")) ops.push_back(op);  // TensorFlow's alone
  std::sort(ops.begin(), ops.end());
  return ops;
}

std::vector<const Row*> rows_with_traits() {
  std::vector<const Row*> rows;
  for (const auto& [op, row] : all_cluster_rows())
    if (row->traits.bits != 0 || row->traits.known_input != Traits::kNoInput) rows.push_back(row);
  return rows;
}

std::vector<std::string_view> names_of(Traits traits) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < std::size(kTraitNames); ++i)
    if (traits.has(static_cast<Trait>(i))) names.push_back(kTraitNames[i]);
  return names;
}

}  // namespace cairn::tensorflow
