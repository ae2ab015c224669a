// The one list of op families, and the index of their rows by name.
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "ops/families.h"
#include "support/fork.h"

namespace cairn {

namespace {

struct Table {
  std::vector<const OpDef*> rows;
  std::unordered_map<std::string_view, const OpDef*> index;

  Table() {
    for (auto family :
         {constant_ops,     unary_ops,         binary_ops,         special_ops,        bit_ops,      linear_ops,
          convolution_ops,  quantisation_ops,  linear_algebra_ops, fourier_ops,        pooling_ops,  morphology_ops,
          ctc_decoding_ops, normalisation_ops, loss_ops,           reduction_ops,      segment_ops,  shape_ops,
          slicing_ops,      indexing_ops,      image_ops,          image_gradient_ops, sampling_ops, suppression_ops,
          tree_ops,         aipp_ops,          dynamic_ops,        control_ops,        list_ops,     state_ops,
          random_ops,       host_ops,          text_ops,           text_part_ops,      lookup_ops,   sparse_ops,
          ragged_ops,       example_ops,       collective_ops})
      for (const OpDef& row : family()) {
        rows.push_back(&row);
        CHECK(index.emplace(row.name, &row).second, "two rows are called {}", row.name);
      }
  }
};

const Table& table() {
  static std::atomic<const Table*> made = nullptr;
  if (const Table* known = made.load(std::memory_order_acquire)) return *known;
  const ForkShield shield;  // else a child forked while another thread builds the index would wait forever
  static const Table table;
  made.store(&table, std::memory_order_release);
  return table;
}

// Rows of operators from users; they live as long as the process.
struct UserTable {
  std::shared_mutex mutex;
  std::map<std::string_view, std::unique_ptr<const OpDef>> rows;
  std::atomic<bool> any = false;
};

UserTable& user_table() {
  static auto& table = *new UserTable;
  return table;
}

}  // namespace

const OpDef* find_op(std::string_view name) {
  auto found = table().index.find(name);
  if (found != table().index.end()) return found->second;
  UserTable& users = user_table();
  if (!users.any.load(std::memory_order_acquire)) return nullptr;
  const Shielded<std::shared_lock<std::shared_mutex>> lock(users.mutex);
  auto row = users.rows.find(name);
  return row == users.rows.end() ? nullptr : row->second.get();
}

std::span<const OpDef* const> all_ops() { return table().rows; }

const OpDef& register_op(OpDef row) {
  const std::string_view name = row.name;
  if (!row.infer) fail(ErrorKind::invalid_argument, row.name, "has no shape rule");
  if (!row.reference && !row.decompose)
    fail(ErrorKind::invalid_argument, row.name, "has neither kernel nor decomposition");
  UserTable& users = user_table();
  const Shielded<std::unique_lock<std::shared_mutex>> lock(users.mutex);
  if (table().index.contains(name) || users.rows.contains(name))
    fail(ErrorKind::invalid_argument, row.name, "is the name of another operator");
  auto& place = users.rows[name];
  place = std::make_unique<const OpDef>(std::move(row));
  users.any.store(true, std::memory_order_release);
  return *place;
}

std::vector<const OpDef*> user_ops() {
  UserTable& users = user_table();
  const Shielded<std::shared_lock<std::shared_mutex>> lock(users.mutex);
  std::vector<const OpDef*> rows;
  for (const auto& [name, row] : users.rows) rows.push_back(row.get());
  return rows;
}

}  // namespace cairn
