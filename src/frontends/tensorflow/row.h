// The rows of foreign ops: how one is built, what it touches and what it costs. Whoever must know that of an op, the
// TensorFlow door too (`cairn_cluster_operators`), asks its row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cairn::tensorflow {

class OpContext;

enum class Trait : uint8_t {
  reads,           // reads the variables, stacks or TensorArrays that its leading inputs are
  writes,          // changes them
  assigns,         // with `writes`: replaces the content, which may have been unset
  asks,            // with `reads`: only tests whether the content is set
  rows,            // with `writes`: changes the rows given by another input, which must be distinct
  distinct,        // the elements of result 0 are distinct
  hands_on,        // result i is input i, also if that is a variable; both results of Switch are input 0
  calls,           // passes its inputs to functions that attributes name
  makes_variable,  // result 0 is a variable
  makes_list,      // result 0 is a stack or TensorArray
  makes_table,     // result 0 is a lookup table
  fills_table,     // initialises the lookup table that is input 0
  puts,            // adds to the queue that is input 0
  takes,           // removes from the queue that is input 0
  draws,           // continues a stream of random numbers
  stops,           // may stop the run
  shapes,          // results depend on the shapes of the inputs only
  all_known,       // every input must be known when a cluster is compiled
  free,            // no work
  heavy,           // enough work for a cluster of its own
  rivalled,        // TensorFlow's kernel may be faster, depending on sizes and processor
  host,            // stays in TensorFlow while a script runs: its results have unbounded size, or it prints
};

struct Traits {
  static constexpr int8_t kAny = -1, kNoInput = -128;

  constexpr Traits() = default;
  constexpr Traits(Trait trait, int8_t count = 0) : bits(1u << static_cast<int>(trait)), handles(count) {}

  uint32_t bits = 0;
  /// The number of leading inputs that are variables instead of values; kAny: any input may be.
  int8_t handles = 0;
  /// The input, an axis for example, that must be known when a cluster is compiled; negative: from the end.
  int8_t known_input = kNoInput;

  constexpr bool has(Trait trait) const { return (bits >> static_cast<int>(trait) & 1) != 0; }
};

constexpr Traits operator|(Traits a, Traits b) {
  a.bits |= b.bits;
  if (b.handles != 0) a.handles = b.handles;
  if (b.known_input != Traits::kNoInput) a.known_input = b.known_input;
  return a;
}
constexpr Traits operator|(Trait a, Trait b) { return Traits(a) | Traits(b); }
constexpr Traits reads(int8_t handles) { return {Trait::reads, handles}; }
constexpr Traits writes(int8_t handles) { return {Trait::writes, handles}; }
constexpr Traits known(int8_t input) {
  Traits traits;
  traits.known_input = input;
  return traits;
}
inline constexpr Traits kHandsOn = Traits(Trait::hands_on, Traits::kAny) | Trait::free;
inline constexpr Traits kCalls = Traits(Trait::calls, Traits::kAny) | Trait::heavy;

/// One foreign op: `build` appends to context.out. `target` is the op that simple builders make.
struct Row {
  using Build = void (*)(OpContext& context);

  constexpr Row(std::string_view name, Build made_by, Traits what = {}) : op(name), build(made_by), traits(what) {}
  constexpr Row(std::string_view name, Build made_by, const char* simple_target, Traits what = {})
      : op(name), build(made_by), target(simple_target), traits(what) {}

  std::string_view op;
  Build build;  // null: modules never have the op
  const char* target = nullptr;
  Traits traits;
};

const Row* find_row(std::string_view op);
/// The same for a cluster, in which stacks and TensorArrays of loops are variables.
const Row* find_cluster_row(std::string_view op);
/// None where there is no row. Of a stack or TensorArray what a cluster does with it.
Traits traits_of(std::string_view op);
/// Whether the op must run even if its results are unused: it writes a variable, or may stop the run.
bool has_effect(std::string_view op);
/// Ops that modules may have, sorted.
std::vector<std::string_view> supported_ops();

/// The rows that have traits, also those of ops that modules never have; each op once.
std::vector<const Row*> rows_with_traits();
std::vector<std::string_view> names_of(Traits traits);

/// Builds a node for an operator from a user.
void make_user_op(OpContext& context);
/// Applies the row's target op to all inputs, of which there must be one or two.
void unary(OpContext& context);
void binary(OpContext& context);

std::span<const Row> array_rows();
std::span<const Row> block_rnn_rows();
std::span<const Row> cluster_rows();
std::span<const Row> collective_rows();
std::span<const Row> colour_rows();
std::span<const Row> control_rows();
std::span<const Row> ctc_rows();
std::span<const Row> counting_rows();
std::span<const Row> diagonal_rows();
std::span<const Row> host_rows();
std::span<const Row> image_rows();
std::span<const Row> linear_algebra_rows();
std::span<const Row> list_rows();
std::span<const Row> loop_rows();
std::span<const Row> math_rows();
std::span<const Row> composed_math_rows();
std::span<const Row> network_rows();
std::span<const Row> training_rows();
std::span<const Row> gradient_rows();
std::span<const Row> fused_rows();
std::span<const Row> update_rows();
std::span<const Row> sparse_rows();
std::span<const Row> quantisation_rows();
std::span<const Row> random_rows();
std::span<const Row> signal_rows();
std::span<const Row> slicing_rows();
std::span<const Row> warp_rows();
std::span<const Row> window_rows();
std::span<const Row> text_rows();
std::span<const Row> lookup_rows();
std::span<const Row> example_rows();
std::span<const Row> sparse_tensor_rows();
std::span<const Row> user_rows();

}  // namespace cairn::tensorflow
