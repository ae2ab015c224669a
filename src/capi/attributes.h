// Conversion of types and attributes between the C interface and the core.
#pragma once

#include <deque>
#include <optional>

#include "capi/handles.h"

namespace cairn::capi {

/// "integer", "texts", ...
const char* attribute_kind_name(AttrKind kind);
/// Throws Error invalid_argument.
Type type_from_c(const CairnType& given);
/// The value in the kind that the row declares for the attribute. Throws Error invalid_argument.
Attribute attribute_from_c(const OpDef& op, const CairnAttribute& given);
/// Throws Error invalid_argument when one is not declared or given twice.
Attributes attributes_from_c(const OpDef& op, const CairnAttribute* given, size_t count);

/// Our values as C structs that live as long as this.
class CView {
 public:
  const CairnType* type(const Type& type);
  void fill(const Type& type, CairnType& to);
  CairnTensor tensor(const Tensor& tensor);
  CairnAttribute attribute(const char* name, const Attribute& value);

 private:
  const CairnText* texts(std::span<const std::string> own);

  std::deque<CairnType> types_;
  std::deque<std::vector<CairnType>> elements_;
  std::deque<std::vector<int64_t>> dims_;
  std::deque<std::vector<const char*>> symbols_;
  std::deque<std::vector<CairnText>> texts_;
  std::deque<CairnTensor> tensors_;
};

}  // namespace cairn::capi
