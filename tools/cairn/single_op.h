// atc --singleop: operators described in JSON, each a model of its own.
#pragma once

#include <string>
#include <vector>

namespace cairn::cli {

struct SingleOp {
  std::string op;
  std::string file;   // name of the model, without folder and suffix
  std::string graph;  // a GraphDef in text form
  std::vector<std::string> results;
};

/// Throws ReportError with the platform's codes (E10023 to E10030, E10032).
std::vector<SingleOp> read_single_ops(const std::string& path);
/// Throws ReportError when the operator cannot be taken.
void write_single_op(const SingleOp& op, const std::string& path);

}  // namespace cairn::cli
