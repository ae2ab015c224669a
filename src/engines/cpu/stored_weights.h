// Weights that a model stores in fewer bits than floats. They stay as small in memory: tiles of few rows expand them in
// registers, for others a panel is expanded at a time.
#pragma once

#include <optional>

#include "engine/engine.h"
#include "engines/cpu/tile_jit.h"

namespace cairn {

class Conv;

/// A matrix of `rows` steps and `columns` channels, which a node expands.
struct StoredWeights {
  const Value* codes = nullptr;
  const Tensor *scale = nullptr, *zero = nullptr;
  Stored stored = Stored::floats;
  bool is_unsigned = false;  // codes of bytes
  int64_t rows = 0, columns = 0;
  int64_t row_step = 1, column_step = 1;    // in codes; of nibbles, two to a byte
  int64_t scale_rows = 0;                   // rows that one scale of a column is of
  int64_t scale_step = 0, zero_step = 0;    // between the columns of scale and zero point
  int64_t scale_block = 0, zero_block = 0;  // and between their blocks
  int64_t block = 0;                        // rows of the packed blocks
  bool zeros = false;                       // packed blocks have zero points

  /// Of the tensors that packing reads, together with the codes.
  std::string fingerprint() const;
  void pack_panel(const PanelLayout& layout, int64_t first_column, void* to) const;

 private:
  int32_t code(int64_t row, int64_t column) const;
  float scale_of(int64_t row, int64_t column) const;
  float zero_of(int64_t row, int64_t column) const;
  friend std::optional<StoredWeights> stored_weights(const Node& node, bool transposed);
};

/// The weights [rows, columns], or [columns, rows] when `transposed`, that the node makes of constants; or nothing.
std::optional<StoredWeights> stored_weights(const Node& node, bool transposed);

/// A packed panel as floats.
void expand_panel(const PanelLayout& layout, const void* panel, float* to);

}  // namespace cairn
