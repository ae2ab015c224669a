// Edges of a TensorFlow graph as clusters see them: which carry variables, and of what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace cairn_tf {

namespace tf = tensorflow;

/// The node takes the variable itself, not its content.
bool is_reference_input(const tf::Edge& edge);
bool makes_reference(const tf::Edge& edge);
bool is_resource(const tf::Edge& edge);
bool holds_variable(const tf::Node& node);
/// Identity of a TF1 variable that waits for nothing: TensorFlow's shares the variable's memory, so that whoever uses it
/// after an update sees the new content.
bool reads_reference(const tf::Node& node);
/// A list, or the handle of a stack or TensorArray: neither can go from one cluster to another.
bool carries_list(const tf::Edge& edge);
/// Whether the edge leads a variable to a node that changes it, also through nodes that hand it on.
bool may_write(const tf::Edge& edge);
/// Element type of the variable behind a resource edge: its maker says it, else its user.
std::optional<tf::DataType> content_type(const tf::Edge& edge);
/// Number of the cluster operator's group of references to variables of that type, or -1.
int reference_group(tf::DataType type);

/// Always in the same order.
std::vector<const tf::Edge*> sorted_inputs(const tf::Node& node);
std::vector<const tf::Edge*> sorted_outputs(const tf::Node& node);

/// What TensorFlow's own passes note on nodes for each other, in forms of their own.
bool is_note(const std::string& attribute);

}  // namespace cairn_tf
