// The builder of the C interface: the core's Builder, the function or rule that it fills, and the open regions
// (regions.cpp).
#pragma once

#include <vector>

#include "capi/attributes.h"
#include "ir/builder.h"

struct CairnBuilder {
  explicit CairnBuilder(std::string name);
  /// For a gradient rule or decomposition: appends nodes where `outer` does; has no functions.
  explicit CairnBuilder(const cairn::Builder& outer) : builder(outer) {}

  /// A node with regions, or a function with the one call of it, that is being made.
  struct Region {
    enum class Kind : uint8_t { branches, loop, call } kind = Kind::branches;
    cairn::Value* condition = nullptr;   // of branches
    std::vector<cairn::Value*> carried;  // of a call: its inputs
    std::vector<cairn::Value*> taken;    // what begin_if or begin_while was told
    cairn::Block* outer = nullptr;
    std::string name = {};  // of a call's function

    struct Part {
      std::unique_ptr<cairn::Block> block;
      std::unordered_map<const cairn::Value*, cairn::Value*> inside;  // for a value from outside
    };
    std::vector<Part> parts = {};  // both branches; condition and body; function and its backward function
    size_t current = 0;
    std::vector<cairn::Value*> found = {};  // values from outside that nodes use without being told; the last params
  };

  std::unique_ptr<cairn::Module> module;  // null inside a rule
  cairn::Function* function = nullptr;
  std::map<std::string, std::vector<cairn::Type>, std::less<>> declared;
  cairn::Block nowhere;  // before the first function
  cairn::Builder builder;
  std::vector<Region> regions;
  cairn::capi::CView shown;

  /// What stands for a value in the current block: the value itself, or a param that captures it. Throws Error
  /// invalid_argument for a value of a block that has ended.
  cairn::Value* here(cairn::Value* value) { return value_at(value, regions.size()); }
  /// Notes the block of a new value.
  cairn::Value* made(cairn::Value* value);
  /// Continues in a block of the innermost region.
  void continue_in(cairn::Block& block);

  std::unordered_map<const cairn::Value*, const cairn::Block*> homes;  // of values in regions
  std::vector<std::unique_ptr<cairn::Block>> abandoned;                // their addresses stay taken

 private:
  cairn::Value* value_at(cairn::Value* value, size_t depth);
};

namespace cairn::capi {

inline Value* from_c(CairnValue* value) { return reinterpret_cast<Value*>(value); }
inline const Value* from_c(const CairnValue* value) { return reinterpret_cast<const Value*>(value); }
inline CairnValue* to_c(Value* value) { return reinterpret_cast<CairnValue*>(value); }
/// Throws Error invalid_argument where one is NULL.
std::vector<Value*> values_from_c(CairnValue* const* values, size_t count, const char* name);
/// The same in the current block.
std::vector<Value*> values_here(CairnBuilder* builder, CairnValue* const* values, size_t count, const char* name);
/// Throws Error invalid_argument before the first function.
Builder& nodes_of(CairnBuilder* builder);
/// Fills results[0 .. count) with new values.
void hand_values(CairnBuilder* builder, std::span<Value* const> made, CairnValue** results, size_t count,
                 std::string_view what);

}  // namespace cairn::capi
