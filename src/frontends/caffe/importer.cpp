#include "frontends/caffe/importer.h"

#include <algorithm>
#include <filesystem>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/way_around.h"
#include "ir/result_marks.h"

namespace cairn::caffe {
namespace {

size_t read_bottoms(const Layer& layer) {
  const Row* row = find_row(layer.type);
  if (row == nullptr) return layer.bottoms.size();
  return row->role == Role::training ? 0 : std::min(layer.bottoms.size(), row->bottoms);
}

Role role_of(const Layer& layer) {
  const Row* row = find_row(layer.type);
  return row == nullptr ? Role::compute : row->role;
}

/// The dims without those of 1 in front.
std::span<const int64_t> without_leading_ones(std::span<const int64_t> dims) {
  while (!dims.empty() && dims.front() == 1) dims = dims.subspan(1);
  return dims;
}

}  // namespace

Graph::Graph(const Net& net) : net_(net), bottoms_(net.layers.size()) {
  std::map<std::string_view, Edge> made;
  for (uint32_t i = 0; i < net.inputs.size(); ++i) made[net.inputs[i].name] = {Edge::kInput, i};
  for (uint32_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    for (size_t bottom = 0; bottom < read_bottoms(layer); ++bottom) {
      const auto found = made.find(layer.bottoms[bottom]);
      if (found == made.end() && role_of(layer) == Role::discard) continue;  // made by a layer of training
      if (found == made.end())
        fail(ErrorKind::invalid_model, net.bytes->name(),
             "line {}: layer '{}' reads '{}', which nothing above it makes", layer.line, printable(layer.name),
             printable(layer.bottoms[bottom]));
      bottoms_[i].push_back(found->second);
    }
    if (role_of(layer) == Role::training) continue;
    for (uint32_t top = 0; top < layer.tops.size(); ++top) made[layer.tops[top]] = {i, top};
  }
}

bool Graph::is_input(Edge edge) const {
  return edge.layer == Edge::kInput || role_of(net_.layers[edge.layer]) == Role::input;
}

std::vector<Edge> Graph::ends() const {
  std::set<Edge> read;
  for (const std::vector<Edge>& bottoms : bottoms_) read.insert(bottoms.begin(), bottoms.end());
  std::vector<Edge> ends;
  for (uint32_t i = 0; i < net_.layers.size(); ++i) {
    if (role_of(net_.layers[i]) != Role::compute) continue;
    for (uint32_t top = 0; top < net_.layers[i].tops.size(); ++top)
      if (!read.contains({i, top})) ends.push_back({i, top});
  }
  return ends;
}

std::string_view Graph::name(Edge edge) const {
  return edge.layer == Edge::kInput ? net_.inputs[edge.top].name : net_.layers[edge.layer].tops[edge.top];
}

std::vector<Edge> Graph::named(const std::string& text) const {
  const auto colon = text.rfind(':');
  const std::string_view node = std::string_view(text).substr(0, colon);
  std::vector<Edge> layer, blob;
  for (uint32_t i = 0; i < net_.layers.size(); ++i) {
    const Layer& each = net_.layers[i];
    if (role_of(each) == Role::training) continue;
    const size_t index =
        colon == std::string::npos ? each.tops.size() : std::strtoul(text.c_str() + colon + 1, nullptr, 10);
    for (uint32_t top = 0; top < each.tops.size(); ++top) {
      if (each.name == text || (each.name == node && top == index)) layer.push_back({i, top});
      if (each.tops[top] == text) blob = {{i, top}};
    }
  }
  return layer.empty() ? blob : layer;
}

std::vector<bool> needed_layers(const Graph& graph, const std::vector<Edge>& outputs,
                                const std::map<Edge, Value*>& given) {
  std::vector<bool> needed(graph.net().layers.size(), false);
  const auto need = [&](Edge edge) {
    if (edge.layer != Edge::kInput && !given.contains(edge)) needed[edge.layer] = true;
  };
  for (Edge edge : outputs) need(edge);
  for (size_t i = needed.size(); i-- > 0;)
    if (needed[i])
      for (Edge edge : graph.bottoms(static_cast<uint32_t>(i))) need(edge);
  return needed;
}

std::vector<Value*> Importer::import(const std::vector<Edge>& outputs, std::map<Edge, Value*> values,
                                     Builder& builder) {
  const std::vector<bool> needed = needed_layers(graph_, outputs, values);
  for (uint32_t i = 0; i < needed.size(); ++i)
    if (needed[i] && role_of(graph_.net().layers[i]) == Role::compute) import_layer(i, values, builder);
  std::vector<Value*> results;
  for (Edge edge : outputs) results.push_back(values.at(edge));
  return results;
}

void Importer::import_layer(uint32_t index, std::map<Edge, Value*>& values, Builder& builder) {
  const Layer& layer = graph_.net().layers[index];
  const std::string file = std::filesystem::path(graph_.net().bytes->name()).filename().string();
  const Problems::Place place{clean(layer.name), fmt::format("{}:{}", clean(file), layer.line)};
  const auto before = builder.sources;
  graph_.net().bytes->charge(1024);
  std::vector<Value*> inputs, results;
  std::vector<std::string> cuts;
  bool unknown = false;
  for (Edge edge : graph_.bottoms(index)) {
    inputs.push_back(values.at(edge));
    const bool guessed = unknowns_.contains(inputs.back());
    unknown = unknown || guessed;
    if (!guessed && inputs.back()->producer != nullptr) cuts.push_back(clean(graph_.name(edge)));
  }
  const size_t problems = problems_.count();
  try {
    const Row* row = find_row(layer.type);
    if (row == nullptr)
      problems_.unsupported(clean(layer.type), place, unknown ? std::vector<std::string>() : cuts);
    else
      results = build(*row, index, std::move(inputs), builder);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::out_of_memory || error.kind() == ErrorKind::cancelled) throw;
    problems_.refused(clean(layer.type), place, error);
  } catch (const std::logic_error&) {  // of the standard library: out_of_range, length_error
    problems_.refused(clean(layer.type), place,
                      Error(ErrorKind::invalid_model, "", "a parameter has a size that cannot be"));
  }
  builder.sources = before;
  if (problems_.count() != problems) {
    failed_.insert(index);
    for (const std::string& cut : cuts)
      if (std::find(ends_.begin(), ends_.end(), cut) == ends_.end()) ends_.push_back(cut);
  }
  for (uint32_t top = 0; top < layer.tops.size(); ++top) {
    Value*& value = values[{index, top}];
    if (value != nullptr) continue;  // an input instead
    value = top < results.size() ? results[top] : unknowns_.add(kF32, Shape::unranked());
    if (value->name.empty()) value->name = clean(layer.tops.size() == 1 ? layer.name : layer.tops[top]);
  }
}

std::vector<Value*> Importer::build(const Row& row, uint32_t index, std::vector<Value*> inputs, Builder& builder) {
  const Layer& layer = graph_.net().layers[index];
  const std::string name = clean(layer.name), type = clean(layer.type);
  if (const auto unknown = layer.params.unknown(); !unknown.empty())
    fail(ErrorKind::invalid_model, "", "the layer has no field '{}'", printable(unknown[0]));
  const std::string file = std::filesystem::path(graph_.net().bytes->name()).filename().string();
  const std::string location = fmt::format("{}:{}", clean(file), layer.line);
  const SourceId id = module_.add_source({"caffe", name, type, location});
  const size_t nodes_before = builder.block().nodes.size();
  auto make = [&](std::vector<Value*> from) {
    builder.sources = {id};
    LayerContext context(builder, layer, weights_, std::move(from), row.target, planes_);
    row.build(context);
    for (Value*& result : context.out) result = folded(result, builder);
    if (context.out.size() < layer.tops.size())
      context.refuse("makes {} tops, the layer has {}", context.out.size(), layer.tops.size());
    return context.out;
  };
  const bool unknown = std::any_of(inputs.begin(), inputs.end(), [&](const Value* v) { return unknowns_.contains(v); });
  std::vector<Value*> results = unknown ? unknowns_.results(inputs, false, make) : make(std::move(inputs));
  if (results.empty()) return results;
  const auto& nodes = builder.block().nodes;
  const bool present = std::any_of(nodes.begin() + static_cast<int64_t>(nodes_before), nodes.end(), [&](auto& made) {
    return std::find(made->sources.begin(), made->sources.end(), id) != made->sources.end();
  });
  if (!present) module_.removed[id] = Removal::identity;
  mark_results(
      results, type,
      [&](const Value* value) {
        return value->producer && !value->producer->sources.empty() && value->producer->sources.front() == id;
      },
      [&](const std::string& mark) {
        return module_.add_source({"caffe", name, mark, location});
      });
  return results;
}

std::vector<std::string> Importer::inputs_below(const std::vector<Edge>& outputs) const {
  DataFlow flow;
  flow.sources.resize(graph_.net().layers.size());
  for (uint32_t i = 0; i < flow.sources.size(); ++i)
    for (Edge edge : graph_.bottoms(i))
      if (edge.layer != Edge::kInput) flow.sources[i].push_back(edge.layer);
  for (Edge edge : outputs)
    if (edge.layer != Edge::kInput) flow.outputs.insert(edge.layer);
  std::vector<std::string> names;
  for (uint32_t layer : cairn::inputs_below(flow, failed_)) names.push_back(clean(graph_.net().layers[layer].name));
  return names;
}

namespace {

std::vector<std::span<const Row>> row_families() {
  return {array_rows(), box_rows(),     detection_rows(), element_rows(), image_rows(),
          input_rows(), network_rows(), recurrent_rows(), region_rows()};
}

}  // namespace

const Row* find_row(std::string_view type) {
  static const auto table = [] {
    std::map<std::string_view, const Row*> rows;
    for (std::span<const Row> family : row_families())
      for (const Row& row : family) CHECK(rows.emplace(row.type, &row).second, "two rows for {}", row.type);
    return rows;
  }();
  const auto found = table.find(type);
  return found == table.end() ? nullptr : found->second;
}

std::vector<std::string_view> supported_layers() {
  std::vector<std::string_view> layers;
  for (std::span<const Row> family : row_families())
    for (const Row& row : family) layers.push_back(row.type);
  std::sort(layers.begin(), layers.end());
  return layers;
}

void LayerContext::expect(size_t least, size_t most) const {
  if (in.size() < least || in.size() > most)
    invalid("has {} bottoms, expected {}{}", in.size(), least,
            least == most      ? ""
            : most == SIZE_MAX ? " or more"
                               : fmt::format(" to {}", most));
}

size_t LayerContext::rank(size_t input) const {
  const Type& type = in[input]->type;
  if (!type.shape.ranked) refuse("the dims of bottom {} are not known; give --input_shape", input);
  return type.shape.rank();
}

int64_t LayerContext::size(size_t axis, size_t input) const {
  if (axis >= rank(input)) invalid("bottom {} has {} dims, expected {} or more", input, rank(input), axis + 1);
  const Dim& dim = in[input]->type.shape.dims[axis];
  if (!dim.known()) refuse("dim {} of bottom {} must be known", axis, input);
  return dim.size;
}

size_t LayerContext::axis(const Message& params, std::string_view field, int64_t fallback) const {
  return static_cast<size_t>(normal_axis(params.integer(field, fallback), rank()));
}

Value* LayerContext::reshape(Value* x, const std::vector<NewDim>& dims) {
  const auto left = [](const NewDim& dim) { return dim.size < 0 && dim.from < 0; };
  const auto free = std::find_if(dims.begin(), dims.end(), left);
  if (free == dims.end()) return reshape_to(x, dims, b);
  if (std::count_if(dims.begin(), dims.end(), left) > 1) invalid("more than one dim is -1");
  const auto rank = static_cast<int>(x->type.shape.rank());
  for (const NewDim& dim : dims)
    if (dim.from >= rank) invalid("bottom has {} dims, expected {} or more", rank, dim.from + 1);
  // The dims that stay cancel out, known or not.
  std::vector<Dim> rest = x->type.shape.dims;
  __int128 made = 1, have = 1;
  for (const NewDim& dim : dims)
    if (dim.from >= 0)
      rest[static_cast<size_t>(dim.from)] = 1;
    else if (dim.size >= 0)
      made = std::min<__int128>(made * dim.size, INT64_MAX);
  const bool known = std::all_of(rest.begin(), rest.end(), [](const Dim& dim) { return dim.known(); });
  if (known) {
    for (const Dim& dim : rest) have = std::min<__int128>(have * dim.size, INT64_MAX);
    if (made == 0 || have % made != 0) invalid("the elements do not divide into the new dims");
    std::vector<NewDim> all = dims;
    all[static_cast<size_t>(free - dims.begin())].size = static_cast<int64_t>(have / made);
    return reshape_to(x, all, b);
  }
  std::vector<Value*> sizes;
  for (const NewDim& dim : dims)
    sizes.push_back(dim.from < 0 ? b.ints({dim.size}) : dim_of(x, static_cast<size_t>(dim.from), b));
  return b.add("reshape", {x, joined(sizes, b)});
}

const Blob& LayerContext::stored(size_t i) const {
  const std::vector<Blob>* blobs = weights_.find(layer_.name);
  if (weights_.name().empty()) invalid("the layer needs weights: give the caffemodel file with --weight");
  if (blobs == nullptr) invalid("{} has no weights of a layer of this name", weights_.name());
  if (i >= blobs->size()) invalid("{} has {} blobs of the layer, expected {}", weights_.name(), blobs->size(), i + 1);
  return (*blobs)[i];
}

Tensor LayerContext::weights(size_t i, const std::vector<int64_t>& dims) const {
  const Blob& blob = stored(i);
  const auto found = without_leading_ones(blob.dims), wanted = without_leading_ones(dims);
  if (!std::equal(found.begin(), found.end(), wanted.begin(), wanted.end()))
    invalid("weights {} have the dims [{}], expected [{}]", i, fmt::join(blob.dims, ", "), fmt::join(dims, ", "));
  return weights_.tensor(blob, dims);
}

Value* LayerContext::blob(size_t i, const std::vector<int64_t>& dims) {
  return b.constant(weights(i, dims), fmt::format("{}/blob{}", clean(layer_.name), i));
}

}  // namespace cairn::caffe
