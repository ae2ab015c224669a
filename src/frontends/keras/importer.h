// Imports Keras layers as nodes of a module: the architecture is JSON, and each layer class has a row.
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

/// An argument of a layer: a value with the mask of its valid steps, or a literal in the file.
struct Given {
  struct Value {
    cairn::Value* value = nullptr;
    cairn::Value* mask = nullptr;
    const Json* literal = nullptr;
  };
  std::vector<Value> inputs;
  std::map<std::string, Value, std::less<>> named;
};

/// The context in which a row imports one call of a layer. Its functions throw Error with the reason only; the importer
/// adds the layer.
class LayerContext {
 public:
  LayerContext(Builder& builder, const Json& config, std::vector<Value*> inputs, Weights weights)
      : b(builder), in(std::move(inputs)), config(config), weights(std::move(weights)) {}

  Builder& b;
  Operands in;  // null for literals
  std::vector<Value*> out;
  std::vector<Value*> masks;                               // of the inputs: bool; null when all steps are valid
  std::vector<const Json*> literals;                       // for inputs that are null
  std::map<std::string, Given::Value, std::less<>> named;  // arguments that the call passes by name
  Value* mask = nullptr;                                   // of the results
  const Json& config;
  Weights weights;
  const char* target = nullptr;  // the row's op name
  std::string kind;              // the layer's class
  bool keras3 = false;           // saved by Keras 3, whose layers differ here and there
  bool stateful = false;         // set by a row whose state would persist between calls

  void expect_inputs(size_t count) const;
  void check_dtype() const;  // refuses policies of mixed types, and unknown ones
  size_t rank() const;       // of the first input, refusing an unknown one
  int64_t integer(const char* key, int64_t fallback) const;
  double number(const char* key, double fallback) const;
  bool boolean(const char* key, bool fallback) const;
  std::string text(const char* key, const char* fallback) const;
  /// A list of `count` positive integers; a single integer stands for all of them.
  std::vector<int64_t> sizes(const char* key, size_t count, int64_t fallback) const;
  std::vector<int64_t> integers(const char* key) const;  // as given: one or a list
  const Json* find(const char* key) const;               // null when the key is absent or its value is null

  Value* weight(const char* name, std::vector<int64_t> dims);  // -1: any size
  int64_t last_dim() const;                                    // of the first input
  /// Applies the activation that the key names to x; linear by default.
  Value* activated(Value* x, const char* key = "activation");

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::unsupported, "", format, std::forward<Args>(args)...);
  }
};

struct Row {
  /// How masks propagate: they are dropped, the results get the conjunction of the inputs' masks, or the row sets them.
  enum class Masks : uint8_t { end, pass, own };
  std::string_view layer;
  void (*build)(LayerContext& context);  // null: a wrapper around another layer, which the importer handles
  const char* target = nullptr;
  Masks masks = Masks::end;
  bool named = false;  // takes literals, and arguments by name
  /// The position of the channels under data_format "channels_first", for layers that have it: the importer moves them
  /// to the end before the row builds, and back afterwards.
  size_t channels = 0;
};
const Row* find_row(std::string_view layer);
std::vector<std::string_view> supported_layers();
/// Throws Error, and ReportError with all unsupported layers.
Module import(const Saved& saved, const ImportOptions& options = {});

std::span<const Row> layer_rows();
std::span<const Row> image_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> attention_rows();
std::span<const Row> volume_rows();
std::span<const Row> function_rows();
std::span<const Row> operation_rows();
std::span<const Row> preprocessing_rows();
/// The row for all functions of keras.ops, and the names of these functions.
inline constexpr std::string_view kOperation = "Operation";
std::vector<std::string_view> supported_operations();

/// "float32". Throws Error unsupported.
DType dtype_named(const std::string& name);

/// Applies the activation of that name to x. Throws Error unsupported.
Value* activation(Value* x, const std::string& name, bool keras3, Builder& builder);

/// Transposes between channels first and last. `channels` and `rank` are those of the first input. States and last
/// results lack its dim of steps; values with only batch and channels are unchanged.
std::vector<Value*> channels_moved(std::vector<Value*> values, size_t channels, size_t rank, bool to_last, Builder& b);
/// The output padding of a transposed convolution along image dim i of `dims`: added to `stride` times the size. Throws
/// Error.
int64_t transposed_extra(const LayerContext& c, size_t i, size_t dims, int64_t kernel, int64_t stride,
                         int64_t dilation);

/// x divided by its Euclidean norm along the axes, whose square is taken as at least `least`.
Value* of_length_one(Value* x, const std::vector<int64_t>& axes, double least, Builder& builder);

}  // namespace cairn::keras
