// Tapes keep forward values for a backward computation in another block (of loop iterations, branches, called
// functions): the forward computation pushes to a list, the backward computation pops from it. Differentiation only
// places marks; thread_tapes() then passes the lists through the inputs and results of all regions and functions in
// between.
#pragma once

#include <map>
#include <set>

#include "ir/module.h"

namespace cairn {

/// The element types of the tapes, by number.
using Tapes = std::vector<Type>;

/// A mark: `value` is pushed to the tape here.
std::unique_ptr<Node> push_mark(size_t tape, Value* value);
/// A mark: the last element is popped from the tape here; it is result 0.
std::unique_ptr<Node> pop_mark(size_t tape, const Type& element);

/// Inserts inputs at index `place` of a node with regions; returns the regions' new params.
std::vector<std::vector<Value*>> add_inputs(Node& node, size_t place, const std::vector<Value*>& inputs);
/// Adds carried values to a loop; returns the new params of condition and body. The caller appends the body's results.
std::vector<std::vector<Value*>> add_carried(Node& loop, const std::vector<Value*>& starts);
Value* add_result(Node& node, const Type& type);

/// Replaces the marks. Each of the `roots` starts with empty tapes; the functions `parts` take tapes as inputs and
/// return them.
void thread_tapes(const std::vector<Function*>& roots, const std::vector<Function*>& parts, const Tapes& tapes);

}  // namespace cairn
