// What `cairn convert`, atc and omg share: a source model becomes an .om file that is known to run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/open.h"
#include "passes/pipeline.h"
#include "passes/precision.h"
#include "session.h"

namespace cairn::cli {

struct Conversion {
  std::string source;
  std::string output;           // path of the .om to write; empty: only check
  std::string original_output;  // of another one with the model as it was read; empty: none
  ImportOptions import;
  std::map<std::string, DType> output_types;  // by output, "" for all
  std::vector<std::string> fp16_inputs;
  std::vector<NamedDims> shapes;  // as given: ranges are kept as limits of the model
  std::optional<ProfileKind> profile_kind;
  std::vector<Profile> profiles;  // for the -1 of `shapes`
  std::string format;             // order of image dimensions, empty: the framework's
  std::string aipp;               // configuration file, empty: none
  PrecisionOptions precision;
  std::vector<std::string> disabled_passes;
  bool keep_memory = false;  // every value has memory of its own
  bool external_weights = false;
  std::map<std::string, std::string> options;  // recorded in the model
};

struct Converted {
  std::vector<Port> inputs, outputs;
  std::vector<std::pair<std::string, size_t>> operators;  // of the source, by number
  std::vector<Source> sources;                            // of the source, in its order
  double parameters = 0;
  PlanTotals totals;         // of the largest profile; steps is 0 when an input's size is open: planned when it runs
  ReferenceShare reference;  // of the same, or where sizes are open of a run with 1 for each, if there can be one
  std::vector<PassRecord> passes;
  std::map<std::string, size_t> groups;  // kernels of more than one node, by name
  PrecisionReport precision;
  uint64_t bytes = 0;
};

/// Throws Error, ReportError with every problem of the source or with the platform's code.
Converted convert(const Conversion& conversion);

/// "FP32", "FP16", "UINT8" and so on in any case; nothing for other texts.
std::optional<DType> parse_type_name(std::string_view name);

/// The JSON of a file that an option names; the refusal tells line and column.
Json read_json(const std::string& path, const char* option, const char* code);

/// Ends the conversion with a code of the platform.
[[noreturn]] void stop(const char* code, const std::string& subject, const std::string& message,
                       const std::string& fix = {});

}  // namespace cairn::cli
