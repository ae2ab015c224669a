// What `cairn convert`, atc and omg share: a source model becomes an .om file that is known to run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/open.h"
#include "session.h"

namespace cairn::cli {

struct Conversion {
  std::string source;
  std::string output;  // path of the .om to write; empty: only check
  ImportOptions import;
  std::map<std::string, DType> output_types;  // by output, "" for all
  std::vector<std::string> fp16_inputs;
  std::map<std::string, std::string> options;  // recorded in the model
};

struct Converted {
  std::vector<Port> inputs, outputs;
  std::vector<std::pair<std::string, size_t>> operators;  // of the source, by number
  double parameters = 0;
  PlanTotals totals;  // steps is 0 when an input's size is open: planned when it runs
  uint64_t bytes = 0;
};

/// Throws Error, ReportError with every problem of the source.
Converted convert(const Conversion& conversion);

/// "FP32", "FP16", "UINT8" and so on in any case; nothing for other texts.
std::optional<DType> parse_type_name(std::string_view name);

}  // namespace cairn::cli
