// The descriptions of all operators and passes at the C interface.
#include <nlohmann/json.hpp>

#include "capi/attributes.h"
#include "capi/user_op.h"
#include "ir/text.h"
#include "ir/user_ops.h"
#include "passes/pipeline.h"

using namespace cairn;
using namespace cairn::capi;
using Json = nlohmann::ordered_json;

namespace {

Json describe(const OpDef& op) {
  constexpr const char* kArity[] = {"one", "optional", "variadic"};
  constexpr const char* kRole[] = {"data", "shape", "index", "state"};
  Json inputs = Json::array(), attributes = Json::array(), results = Json::array();
  for (const InputDef& input : op.inputs)
    inputs.push_back({{"name", input.name},
                      {"arity", kArity[static_cast<int>(input.arity)]},
                      {"role", kRole[static_cast<int>(input.role)]}});
  for (const AttrDef& attribute : op.attributes) {
    Json entry = {
        {"name", attribute.name}, {"kind", attribute_kind_name(attribute.kind)}, {"required", !attribute.fallback}};
    if (attribute.fallback) entry["default"] = to_string(*attribute.fallback);
    if (!attribute.words.empty()) entry["words"] = attribute.words;
    attributes.push_back(std::move(entry));
  }
  for (const char* result : op.results) results.push_back(result);
  return {
      {"name", op.name}, {"summary", op.summary}, {"inputs", inputs}, {"attributes", attributes}, {"results", results}};
}

}  // namespace

CairnStatus cairn_describe_ops(char** description) {
  return guarded([&] {
    require(description, "description");
    load_op_libraries_of_environment();
    Json list = Json::array();
    for (const OpDef* op : all_ops()) list.push_back(describe(*op));
    for (const OpDef* op : user_ops()) {
      list.push_back(describe(*op));
      list.back()["library"] = library_of(*op);
    }
    *description = copy_text(list.dump(1));
  });
}

CairnStatus cairn_describe_passes(char** description) {
  return guarded([&] {
    require(description, "description");
    Json list = Json::array();
    for (const PassInfo& pass : list_passes())
      list.push_back(
          {{"name", pass.name}, {"summary", pass.summary}, {"rule", pass.rule}, {"required", pass.required}});
    *description = copy_text(list.dump(1));
  });
}
