// Recurrent layers (simple, GRU, LSTM) as loops over time: one product before the loop handles the inputs of all steps,
// each iteration adds the contribution of the previous state.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "ir/builder.h"

namespace cairn {

struct Recurrence {
  enum class Kind : uint8_t { simple, gru, lstm };

  Kind kind = Kind::simple;
  int64_t hidden = 0;
  /// The part of the weights for each gate. GRU: update, reset, new state. LSTM: input, forget, new cell, output.
  std::array<int64_t, 4> order = {0, 1, 2, 3};
  /// The activations of the gates (simple: none), of the new state or cell, and of the LSTM's result: names of ops, or
  /// names that `apply` handles.
  std::string gate = "sigmoid", fresh = "tanh", out = "tanh";
  std::function<Value*(const std::string& function, Value* x, Builder& b)> apply =
      [](const std::string& function, Value* x, Builder& b) { return b.add(function, {x}); };
  bool reset_after = true;  // GRU: the reset gate multiplies the product with the state, not the state
  bool coupled = false;     // LSTM: the forget gate is what the input gate leaves to 1
  bool backwards = false;

  /// Computes the state's contribution to gates from their part of the kernel. States of an LSTM may be images of
  /// `hidden` channels.
  std::function<Value*(Value* state, Value* kernel, Builder& b)> product = [](Value* state, Value* kernel, Builder& b) {
    return b.add("matmul", {state, kernel});
  };

  Value* input = nullptr;      // [steps, batch, gates * hidden]: the inputs' part of every gate, with its bias
  Value* kernel = nullptr;     // [hidden, gates * hidden], for the state
  Value* bias = nullptr;       // [gates * hidden] added to the state's part; may be null
  Value* peephole = nullptr;   // LSTM: [3 * hidden] for input, output and forget gate; may be null
  Value* lengths = nullptr;    // [batch, 1] i64: steps at or after it give 0 and keep the state; may be null
  Value* mask = nullptr;       // [steps, batch, 1] bool: masked steps keep the state; may be null
  bool masked_zero = false;    // masked steps give 0 instead of the result of the step before
  std::vector<Value*> states;  // [batch, hidden] at the start: hidden, and of an LSTM the cell
};

struct Sequence {
  Value* all;                // [steps, batch, hidden], in chronological order
  std::vector<Value*> last;  // the states after the last step
};

/// Zeros [batch, hidden] for an input [steps, batch, n].
Value* zero_state(Value* input, int64_t hidden, Builder& builder);
/// Throws Error.
Sequence recur(const Recurrence& layer, Builder& builder);

}  // namespace cairn
