// One operator of the platform as a small TensorFlow graph in text form. Most have TensorFlow's own meaning and become one
// node; others have constants as attributes ("ReduceSumD"), layouts or formulas of their own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "console.h"

namespace cairn::cli {

struct Operand {
  std::string name;    // of the node that makes it; empty: left out
  std::string type;    // "DT_FLOAT"
  std::string format;  // "nchw", in small letters
  std::vector<int64_t> dims;
};

/// What the file says of one operator. `attributes` by name: the JSON value, and as text of a GraphDef's AttrValue.
struct OpDescription {
  std::string op;
  std::vector<Operand> inputs, outputs;
  std::map<std::string, Json> attributes;
  std::map<std::string, std::string> written;
};

struct OpGraph {
  std::string nodes;                 // in text form, without the inputs
  std::vector<std::string> results;  // "node:index"
};

/// The operators that have a meaning of the platform's own here; others have that of TensorFlow's operator of their name.
std::vector<std::string> own_operators();
std::string lower(std::string text);

/// Throws ReportError (E10027, E10030) where an input or attribute that the operator needs is missing or is not taken.
OpGraph graph_of(const OpDescription& description);

/// A constant of whole or real numbers; `values` may be lists of lists.
std::string constant_node(const std::string& name, const std::string& type, const std::vector<int64_t>& dims,
                          const Json& values);
/// The line of one attribute of a node.
std::string attribute_line(const std::string& key, const std::string& value);

}  // namespace cairn::cli
