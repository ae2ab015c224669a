#include "codes.h"

#include <algorithm>

#include "frontends/unknown_name.h"
#include "support/files.h"
#include "support/json_fault.h"

namespace cairn::cli {
namespace {

[[noreturn]] void stop_for(const ConversionError& error) {
  using Fault = ConversionError::Fault;
  const std::string& name = error.name();
  switch (error.fault()) {
    case Fault::shapes: stop("E19025", "--input_shape_range", error.message());
    case Fault::preprocessing:
      stop("E10052", "--insert_op_conf", fmt::format("AIPP configuration invalid: {}", error.message()));
    case Fault::fp16_processed:
      stop("E10034", "--input_fp16_nodes", fmt::format("Input [{}] is preprocessed and cannot be fp16.", name));
    case Fault::fp16_name:
      stop("E10016", "--input_fp16_nodes",
           fmt::format("Opname [{}] specified in [--input_fp16_nodes] is not found: it {}", name, error.message()),
           name.find_first_of(", ") == std::string::npos ? "" : "separate the inputs by ';'");
    case Fault::fp16_type:
      stop("E10001", "--input_fp16_nodes",
           fmt::format("Value [{}] for parameter [--input_fp16_nodes] is invalid. Reason: {}", name, error.message()));
    case Fault::output_name:
      stop("E10016", "--output_type",
           fmt::format("Opname [{}] specified in [--output_type] is not found: it {}", name, error.message()));
    case Fault::kept_types: stop("E10003", "--keep_dtype", fmt::format("--keep_dtype: {}: {}", error.message(), name));
  }
  throw error;
}

/// Whether the name was given with a range, which --input_shape_range has.
bool is_range(const Conversion& conversion, const std::string& name) {
  return std::ranges::any_of(conversion.shapes,
                             [&](const NamedDims& shape) { return shape.name == name && shape.of_ranges; });
}

[[noreturn]] void stop_for(const UnknownName& error, const Conversion& conversion) {
  if (error.of() == UnknownName::Of::input)
    stop("E10016", "--input_shape",
         fmt::format("Opname [{}] specified in [--input_shape{}] is not found: {}", error.name(),
                     is_range(conversion, error.name()) ? "_range" : "", error.what()));
  const auto& nodes = conversion.import.out_nodes;
  const bool joined = std::any_of(nodes.begin(), nodes.end(), [](const std::string& node) {
    return node.find_first_of(", ") != std::string::npos;
  });
  stop("E10016", "--out_nodes", fmt::format("An opname specified in [--out_nodes] is not found: {}", error.what()),
       joined ? "separate the nodes by ';': --out_nodes=\"a:0;b:0\"" : "");
}

}  // namespace

std::string hint_of(const std::string& near) { return near.empty() ? "" : near.substr(2); }

void stop(const char* code, const std::string& subject, const std::string& message, const std::string& fix) {
  Report report;
  report.add({code, Severity::error, subject, {}, message, fix});
  throw ReportError(ErrorKind::invalid_argument, "", "the command line is wrong", std::move(report));
}

Json read_json(const std::string& path, const char* option, const char* code) {
  const std::string text = read_text(path);
  if (const std::string fault = json_fault(text); !fault.empty())
    stop(code, option, fmt::format("File [{}] of parameter [{}] cannot be read as JSON: {}", path, option, fault));
  return Json::parse(text);
}

Converted convert_or_stop(const Conversion& conversion) {
  try {
    return convert(conversion);
  } catch (const ConversionError& error) {
    stop_for(error);
  } catch (const UnknownName& error) {
    stop_for(error, conversion);
  }
}

}  // namespace cairn::cli
