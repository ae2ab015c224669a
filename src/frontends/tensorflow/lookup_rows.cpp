// TensorFlow's lookup tables. A handle is a constant with the name of the table's node, which is captured by branches
// and loops like any constant; the content is given by the graph's initialisers.
#include <algorithm>
#include <numeric>

#include "frontends/fold.h"
#include "frontends/tensorflow/importer.h"
#include "frontends/tensorflow/lookup_tables.h"
#include "ir/evaluate.h"

namespace cairn::tensorflow {
namespace {

/// The value if it depends on constants alone, of any size; else nothing.
std::optional<Tensor> computed(const Value* value) {
  if (const Tensor* constant = constant_of(value)) return *constant;
  const cairn::Node* node = value->producer;
  if (node == nullptr || !node->op->pure() || !node->op->reference || !node->regions.empty() ||
      node->op->has(kNotFoldable | kControl))
    return std::nullopt;
  std::vector<HostValue> inputs;
  for (const Value* input : node->inputs) {
    const auto known = computed(input);
    if (!known) return std::nullopt;
    inputs.push_back({*known, nullptr});
  }
  return evaluate(*node, inputs)[value->index].tensor;
}

/// Keys in order, each once: the one filled in last.
template <class Key>
std::vector<int64_t> order_of(const Tensor& tensor) {
  const auto keys = tensor.values<Key>();
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  auto key = [&](int64_t place) -> const Key& { return keys[static_cast<size_t>(place)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
  std::vector<int64_t> last;
  for (size_t i = 0; i < order.size(); ++i)
    if (i + 1 == order.size() || key(order[i]) != key(order[i + 1])) last.push_back(order[i]);
  return last;
}

Tensor picked(const Tensor& from, const std::vector<int64_t>& places) {
  Tensor to = Tensor::zeros(from.dtype(), {static_cast<int64_t>(places.size())});
  for (size_t i = 0; i < places.size(); ++i) {
    if (from.dtype() == kString)
      to.mutable_values<std::string>()[i] = from.values<std::string>()[static_cast<size_t>(places[i])];
    else
      std::memcpy(static_cast<char*>(to.mutable_data()) + i * from.dtype().size(),
                  static_cast<const char*>(from.data()) + static_cast<size_t>(places[i]) * from.dtype().size(),
                  from.dtype().size());
  }
  return to;
}

LookupTable sorted(OpContext& c, const Tensor& keys, const Tensor& values) {
  if (values.rank() != 1 || keys.rank() != 1) c.refuse("values of {} dims are not supported", values.rank());
  if (keys.count() != values.count())
    fail(ErrorKind::invalid_model, "", "its table has {} keys and {} values", keys.count(), values.count());
  std::vector<int64_t> order;
  if (keys.dtype() == kString)
    order = order_of<std::string>(keys);
  else if (keys.dtype() == kI64)
    order = order_of<int64_t>(keys);
  else if (keys.dtype() == kI32)
    order = order_of<int32_t>(keys);
  else
    c.refuse("keys of {} are not supported", to_string(keys.dtype()));
  return {picked(keys, order), picked(values, order), keys, values};
}

const LookupTable& table_of(OpContext& c) {
  const Tensor handle = c.constant(0, "the table");
  if (handle.dtype() != kString || handle.count() != 1) fail(ErrorKind::invalid_model, "", "input 0 is no table");
  const std::string& name = handle.values<std::string>()[0];
  auto& tables = c.importer().tables();
  if (auto known = tables.find(name); known != tables.end()) return known->second;
  const GraphDef& graph = c.importer().graph();
  const Node* filler = nullptr;
  for (const Node& node : graph.nodes)
    if (traits_of(node.op).has(Trait::fills_table) &&
        graph.nodes[origin(data_input(node, 0), graph.nodes, graph.model->name()).node].name == name)
      filler = &node;
  if (filler == nullptr)
    c.refuse("nothing in the graph fills its table '{}'; convert the SavedModel, whose initialisers do",
             printable(name));
  Block scratch;
  Builder builder(scratch);
  const auto found = c.importer().import_graph({data_input(*filler, 1), data_input(*filler, 2)}, {}, builder);
  if (found[0] == nullptr || found[1] == nullptr) throw AlreadyReported();
  const auto keys = computed(found[0]), values = computed(found[1]);
  if (!keys || !values) c.refuse("its table '{}' is filled with what only a run tells", printable(name));
  return tables[name] = sorted(c, *keys, *values);
}

void make_table(OpContext& c) { c.out = {c.b.constant(Tensor::of<std::string>(kString, {}, {c.name()}))}; }

void find(OpContext& c) {
  c.expect_inputs(3);
  const LookupTable& table = table_of(c);
  c.out = {c.b.add("find_key", {c.b.constant(table.keys), c.b.constant(table.values), c.in[1], c.in[2]})};
}

void size_of_table(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.constant(Tensor::scalar_i64(table_of(c).keys.count()))};
}

/// In the order of filling.
void export_table(OpContext& c) {
  c.expect_inputs(1);
  const LookupTable& table = table_of(c);
  c.out = {c.b.constant(table.filled_keys), c.b.constant(table.filled_values)};
}

constexpr Row kLookupRows[] = {
    {"HashTable", make_table, Trait::makes_table},
    {"HashTableV2", make_table, Trait::makes_table},
    {"LookupTableExport", export_table},
    {"LookupTableExportV2", export_table},
    {"LookupTableFind", find},
    {"LookupTableFindV2", find},
    {"LookupTableSize", size_of_table},
    {"LookupTableSizeV2", size_of_table},
    {"MutableHashTable", make_table, Trait::makes_table},
    {"MutableHashTableV2", make_table, Trait::makes_table},
};

}  // namespace

std::span<const Row> lookup_rows() { return kLookupRows; }

}  // namespace cairn::tensorflow
