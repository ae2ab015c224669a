// Imports the layers of a Caffe net by the table of rows.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/caffe/net.h"
#include "frontends/caffe/weights.h"
#include "frontends/operands.h"
#include "frontends/problems.h"
#include "frontends/reshape.h"
#include "frontends/unknowns.h"
#include "ir/builder.h"

namespace cairn::caffe {

/// Where a blob is made: a top of a layer, or with `layer` kInput an input that the net declares.
struct Edge {
  static constexpr uint32_t kInput = UINT32_MAX;
  uint32_t layer = kInput, top = 0;
  auto operator<=>(const Edge&) const = default;
};

/// Height and width of the planes of which Yolo layers made their tops, whose dims no longer tell them.
using Planes = std::map<const Value*, std::pair<int64_t, int64_t>>;

/// The context in which a row imports one layer. Its functions throw Error with the reason only; the importer adds the
/// layer and its type.
class LayerContext {
 public:
  LayerContext(Builder& builder, const Layer& layer, const Weights& weights, std::vector<Value*> inputs,
               const char* target, Planes& planes)
      : b(builder), in(std::move(inputs)), target(target), planes(planes), layer_(layer), weights_(weights) {}

  Builder& b;
  Operands in;
  std::vector<Value*> out;
  const char* target;  // of the row
  Planes& planes;

  const Layer& layer() const { return layer_; }
  size_t tops() const { return layer_.tops.size(); }
  Message params(std::string_view field) const { return layer_.params.message(field); }
  /// Refuses other numbers of bottoms.
  void expect(size_t least, size_t most) const;
  void expect(size_t count) const { expect(count, count); }
  size_t rank(size_t input = 0) const;
  /// The size of a dim, which must be known.
  int64_t size(size_t axis, size_t input = 0) const;
  /// The axis that a parameter tells, from 0; negative ones count from the end.
  size_t axis(const Message& params, std::string_view field, int64_t fallback) const;
  /// The weights number `i`, which must have these dims, but for leading dims of 1.
  Value* blob(size_t i, const std::vector<int64_t>& dims);
  Tensor weights(size_t i, const std::vector<int64_t>& dims) const;

  /// Reshapes; a NewDim without number and source is what the others leave.
  Value* reshape(Value* x, const std::vector<NewDim>& dims);

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::unsupported, "", format, std::forward<Args>(args)...);
  }
  template <class... Args>
  [[noreturn]] void invalid(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::invalid_model, "", format, std::forward<Args>(args)...);
  }

 private:
  const Blob& stored(size_t i) const;

  const Layer& layer_;
  const Weights& weights_;
};

/// What a layer means for inference.
enum class Role : uint8_t {
  compute,
  input,     // its tops are inputs of the net
  training,  // not there
  discard    // as training, and its bottoms are no outputs
};

struct Row {
  std::string_view type;
  void (*build)(LayerContext& context) = nullptr;
  const char* target = nullptr;
  Role role = Role::compute;
  size_t bottoms = SIZE_MAX;  // so many are read, the others only in training
};
const Row* find_row(std::string_view type);
std::vector<std::string_view> supported_layers();

std::span<const Row> array_rows();
std::span<const Row> box_rows();
std::span<const Row> detection_rows();
std::span<const Row> element_rows();
std::span<const Row> image_rows();
std::span<const Row> input_rows();
std::span<const Row> network_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> region_rows();

/// The inputs that a layer with Role::input makes, one for each top.
std::vector<Input> inputs_of(const Layer& layer);

/// The net as edges: who reads what.
class Graph {
 public:
  /// Throws Error invalid_model for a bottom that nothing makes.
  explicit Graph(const Net& net);

  const Net& net() const { return net_; }
  const std::vector<Edge>& bottoms(uint32_t layer) const { return bottoms_[layer]; }
  /// The tops of layers that no other layer reads, in order.
  std::vector<Edge> ends() const;
  std::string_view name(Edge edge) const;
  /// What a user names: a blob ("fc8": where it is made last), a layer ("relu1": all its tops) or one of its tops
  /// ("slice:1"). Empty when there is none.
  std::vector<Edge> named(const std::string& text) const;
  bool is_input(Edge edge) const;

 private:
  const Net& net_;
  std::vector<std::vector<Edge>> bottoms_;
};

class Importer {
 public:
  Importer(const Graph& graph, const Weights& weights, Module& module)
      : graph_(graph), weights_(weights), module_(module) {}

  /// Imports the layers that the outputs need; `values` holds the inputs.
  std::vector<Value*> import(const std::vector<Edge>& outputs, std::map<Edge, Value*> values, Builder& builder);
  const Problems& problems() const { return problems_; }
  /// Blobs that need none of the failed layers, and are read by one.
  const std::vector<std::string>& ends() const { return ends_; }
  /// Layers that can be inputs so that the outputs need nothing that failed; may be none.
  std::vector<std::string> inputs_below(const std::vector<Edge>& outputs) const;

 private:
  void import_layer(uint32_t index, std::map<Edge, Value*>& values, Builder& builder);
  std::vector<Value*> build(const Row& row, uint32_t index, std::vector<Value*> inputs, Builder& builder);

  const Graph& graph_;
  const Weights& weights_;
  Module& module_;
  Problems problems_;
  Unknowns unknowns_;
  std::set<uint32_t> failed_;
  Planes planes_;
  std::vector<std::string> ends_;
};

/// The layers that the outputs need; none above what is `given`.
std::vector<bool> needed_layers(const Graph& graph, const std::vector<Edge>& outputs,
                                const std::map<Edge, Value*>& given);

}  // namespace cairn::caffe
