// The builder of the C interface: the core's Builder, the function or rule that it fills, and the open regions.
#pragma once

#include <vector>

#include "capi/attributes.h"
#include "ir/builder.h"

struct CairnBuilder {
  explicit CairnBuilder(std::string name);
  /// For a gradient rule or decomposition: appends nodes where `outer` does; has no functions.
  explicit CairnBuilder(const cairn::Builder& outer) : builder(outer) {}

  struct Region {
    bool loop = false;
    cairn::Value* condition = nullptr;  // of an if
    std::vector<cairn::Value*> carried;
    cairn::Captures captures;
    std::vector<std::unique_ptr<cairn::Block>> blocks;
    cairn::Block* outer = nullptr;
  };

  std::unique_ptr<cairn::Module> module;  // null inside a rule
  cairn::Function* function = nullptr;
  std::map<std::string, std::vector<cairn::Type>, std::less<>> declared;
  cairn::Block nowhere;  // before the first function
  cairn::Builder builder;
  std::vector<Region> regions;
  cairn::capi::CView shown;
};

namespace cairn::capi {

inline Value* from_c(CairnValue* value) { return reinterpret_cast<Value*>(value); }
inline const Value* from_c(const CairnValue* value) { return reinterpret_cast<const Value*>(value); }
inline CairnValue* to_c(Value* value) { return reinterpret_cast<CairnValue*>(value); }
/// Throws Error invalid_argument where one is NULL.
std::vector<Value*> values_from_c(CairnValue* const* values, size_t count, const char* name);

}  // namespace cairn::capi
