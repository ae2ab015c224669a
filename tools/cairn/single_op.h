// atc --singleop: operators described in JSON, each a model of its own.
#pragma once

#include <string>
#include <vector>

#include "support/shape_options.h"

namespace cairn::cli {

struct SingleOp {
  std::string op;
  std::string file;   // name of the model, without folder and suffix
  std::string graph;  // a GraphDef in text form
  std::vector<std::string> results;
  struct Output {
    std::string type;           // as the file has it
    std::string element;        // "f32"
    std::vector<int64_t> dims;  // -1: any
  };
  std::vector<Output> outputs;  // as the file describes them
  std::vector<std::vector<SizeRange>>
      ranges;  // of the sizes of inputs that are no constants; a list is empty where none are given
};

/// Throws ReportError with the platform's codes (E10023 to E10030, E10032).
std::vector<SingleOp> read_single_ops(const std::string& path);
/// Throws ReportError when the operator cannot be taken, or yields other results than the file describes (E10027).
void write_single_op(const SingleOp& op, const std::string& path);

}  // namespace cairn::cli
