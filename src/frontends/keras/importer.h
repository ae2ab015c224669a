// Layers of Keras into the nodes of a module: the architecture is JSON, each class of layer has a row.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/import.h"
#include "frontends/keras/saved.h"
#include "frontends/operands.h"
#include "frontends/problems.h"
#include "ir/builder.h"

namespace cairn::keras {

/// What a layer is called on: values with the masks that say which of their steps count, or literals of the file.
struct Given {
  struct Value {
    cairn::Value* value = nullptr;
    cairn::Value* mask = nullptr;
    const Json* literal = nullptr;
  };
  std::vector<Value> inputs;
  std::map<std::string, Value, std::less<>> named;
};

/// What a row sees of one call of a layer. Everything throws Error with the reason alone.
class LayerContext {
 public:
  LayerContext(Builder& builder, const Json& config, std::vector<Value*> inputs, Weights weights)
      : b(builder), in(std::move(inputs)), config(config), weights(std::move(weights)) {}

  Builder& b;
  Operands in;  // null where a literal stands
  std::vector<Value*> out;
  std::vector<Value*> masks;                               // of the inputs: bool, null where all steps count
  std::vector<const Json*> literals;                       // in place of inputs that are null
  std::map<std::string, Given::Value, std::less<>> named;  // what the call gives by name
  Value* mask = nullptr;                                   // of the results
  const Json& config;
  Weights weights;
  const char* target = nullptr;  // the row's op name
  std::string kind;              // the layer's class
  bool keras3 = false;           // saved by Keras 3, whose layers differ here and there
  bool stateful = false;         // set by a row whose states would go on from call to call

  void expect_inputs(size_t count) const;
  size_t rank() const;  // of the first input, refusing an unknown one
  int64_t integer(const char* key, int64_t fallback) const;
  double number(const char* key, double fallback) const;
  bool boolean(const char* key, bool fallback) const;
  std::string text(const char* key, const char* fallback) const;
  /// A list of `count` positive integers, which may be given as one for all.
  std::vector<int64_t> sizes(const char* key, size_t count, int64_t fallback) const;
  std::vector<int64_t> integers(const char* key) const;  // as given, one or a list
  const Json* find(const char* key) const;               // null where it is absent or null

  Value* weight(const char* name, std::vector<int64_t> dims);  // -1: any size
  int64_t last_dim() const;                                    // of the first input
  /// x through the activation that a key names: linear by default.
  Value* activated(Value* x, const char* key = "activation");

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::unsupported, "", format, std::forward<Args>(args)...);
  }
};

struct Row {
  /// What becomes of the inputs' masks: they end, the results have them (all of them must hold), or the row says.
  enum class Masks : uint8_t { end, pass, own };
  std::string_view layer;
  void (*build)(LayerContext& context);  // null: a layer around another, which the importer calls
  const char* target = nullptr;
  Masks masks = Masks::end;
  bool named = false;  // takes literals, and arguments by name
  /// Where the channels stand under data_format "channels_first", of layers that have one: the importer puts them last
  /// before the row builds, and back behind it.
  size_t channels = 0;
};
const Row* find_row(std::string_view layer);
std::vector<std::string_view> supported_layers();
/// Throws Error, and ReportError with every layer that cannot be taken.
Module import(const Saved& saved, const ImportOptions& options = {});

std::span<const Row> layer_rows();
std::span<const Row> image_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> attention_rows();
std::span<const Row> volume_rows();
std::span<const Row> function_rows();
std::span<const Row> operation_rows();
std::span<const Row> preprocessing_rows();
/// The row of all functions of keras.ops, and which they are.
inline constexpr std::string_view kOperation = "Operation";
std::vector<std::string_view> supported_operations();

/// "float32". Throws Error unsupported.
DType dtype_named(const std::string& name);

/// x through the activation of that name. Throws Error unsupported.
Value* activation(Value* x, const std::string& name, bool keras3, Builder& builder);

/// Between channels first and last. `channels` and `rank` are those of the first input; states and last results lack its
/// steps, and what has no more dims than batch and channels stays.
std::vector<Value*> channels_moved(std::vector<Value*> values, size_t channels, size_t rank, bool to_last, Builder& b);
/// What a transposed convolution adds to `stride` times its size along image dim i of `dims`. Throws Error.
int64_t transposed_extra(const LayerContext& c, size_t i, size_t dims, int64_t kernel, int64_t stride,
                         int64_t dilation);

/// x over its length along the axes, the square of which counts as `least` at least.
Value* of_length_one(Value* x, const std::vector<int64_t>& axes, double least, Builder& builder);

}  // namespace cairn::keras
