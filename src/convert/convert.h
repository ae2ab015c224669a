// Converts a source model to an .om file that is known to run. All interfaces (`cairn convert`, atc, omg, Python, the C
// ABI) use this function, so that equal options give equal files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convert/facts.h"
#include "model/open.h"
#include "passes/pipeline.h"
#include "passes/precision.h"
#include "runtime/model.h"

namespace cairn {

struct Conversion {
  std::string source;
  std::string output;           // path of the .om or .onnx to write; empty: only check
  std::string original_output;  // path of another .om with the model as it was read; empty: none
  ImportOptions import;
  std::map<std::string, DType> output_types;  // by output, "" for all
  std::vector<std::string> fp16_inputs;
  std::vector<NamedDims> shapes;  // as given; ranges become limits of the model
  std::optional<ProfileKind> profile_kind;
  std::vector<Profile> profiles;  // for the -1 of `shapes`
  std::string format;             // order of image dims; empty: the framework's
  std::string aipp;               // configuration file, empty: none
  PrecisionOptions precision;
  std::vector<std::string> disabled_passes;
  bool keep_memory = false;  // no two values share memory
  bool external_weights = false;
  bool deterministic = false;  // convolutions by their definition alone
};
/// The options of the conversion by the platform's names, as recorded in the file.
std::map<std::string, std::string> recorded_options(const Conversion& conversion);

struct Converted {
  std::vector<Port> inputs, outputs;
  std::vector<std::pair<std::string, size_t>> operators;  // of the source, most frequent first
  std::vector<Source> sources;                            // of the source, in its order
  double parameters = 0;
  PlanTotals totals;  // of the largest profile; steps is 0 if an input's size is open (planned at run time)
  ReferenceShare
      reference;  // of the same plan; with open sizes of a run with likely ones (runtime/likely_dims.h), if there are such
  std::vector<PassRecord> passes;
  std::map<std::string, size_t> groups;  // kernels of more than one node, by name
  PrecisionReport precision;
  uint64_t bytes = 0;
};

/// The options contradict the model or each other. Each interface adds the name of its option and its error code.
class ConversionError final : public Error {
 public:
  enum class Fault : uint8_t {
    shapes,          // more shapes by position than inputs
    preprocessing,   // the AIPP configuration does not fit
    fp16_processed,  // an input that is preprocessed cannot be fp16
    fp16_name,       // no input of that name
    fp16_type,       // an input that holds no floats
    kept_types,      // no operator of that name
    output_name,     // of a type: no output of that name
  };
  ConversionError(Fault fault, std::string name, const std::string& message)
      : Error(ErrorKind::invalid_argument, name, message), fault_(fault), name_(std::move(name)) {}
  Fault fault() const { return fault_; }
  const std::string& name() const { return name_; }

 private:
  Fault fault_;
  std::string name_;
};

/// Throws ConversionError, UnknownName (for an input with a shape, or an output), other Errors about the source, and
/// ReportError with all problems of the source.
Converted convert(const Conversion& conversion);

/// The type named "FP32", "FP16", "UINT8" and so on, in any letter case; nothing for other texts.
std::optional<DType> parse_type_name(std::string_view name);

}  // namespace cairn
