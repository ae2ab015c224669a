// Values that the backward computation needs and that are out of its sight (those of a loop's turns, of branches, of called
// functions) lie on tapes: lists to which the forward computation pushes and from which the backward computation pops.
// Differentiation marks the places; thread_tapes() makes the lists inputs and results of all regions and functions between.
#pragma once

#include <map>
#include <set>

#include "ir/module.h"

namespace cairn {

/// Tapes by number.
using Tapes = std::vector<Type>;  // of the elements

/// Marks where `value` goes to the tape.
std::unique_ptr<Node> push_mark(size_t tape, Value* value);
/// Marks where the element that was pushed last comes from the tape; result 0 is that.
std::unique_ptr<Node> pop_mark(size_t tape, const Type& element);

/// Makes further inputs of a node with regions, at `place` among its inputs; returns the regions' new params.
std::vector<std::vector<Value*>> add_inputs(Node& node, size_t place, const std::vector<Value*>& inputs);
/// Makes the node carry further values; returns the new params of condition and body, whose results the caller appends.
std::vector<std::vector<Value*>> add_carried(Node& loop, const std::vector<Value*>& starts);
Value* add_result(Node& node, const Type& type);

/// Replaces the marks. Tapes begin empty in each of the `roots`; `parts` are the functions that take them and give them back.
void thread_tapes(const std::vector<Function*>& roots, const std::vector<Function*>& parts, const Tapes& tapes);

}  // namespace cairn
