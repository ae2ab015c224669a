// Whose rounding is larger: the errors of a run of ours and of other values against the same graph in float64.
#pragma once

#include "diff/difference.h"
#include "judge/verdict.h"

namespace cairn::diff {

using judge::Larger;

struct TruthRow : judge::Errors {
  Row row;  // of what is said there of the value; `spread` is the truth's root mean square
  std::optional<judge::Distance> mine, theirs;  // nothing: the value is inside a step there, or has no counterpart
  bool first = false;                           // larger here although not in what it was made from
  std::optional<size_t> place;                  // in `made_from`
};

struct TruthResult {
  std::string mine, theirs, truth;
  size_t runs = 1;
  std::vector<TruthRow> outputs, rows;         // rows in the order of computation
  std::vector<std::vector<size_t>> made_from;  // of each value of ours, those that it was computed from
  size_t count(Larger larger) const;
  bool worse() const;  // an output of ours errs more
};

/// `truth` makes the model that is held to be exact, for the inputs `exact_inputs`. Throws Error.
TruthResult judge_by_truth(const Subject& mine, const std::vector<Tensor>& inputs, const Golden& theirs,
                           const Subject& truth, const std::vector<Tensor>& exact_inputs);
/// Runs of one model on inputs of their own, judged together. Names, sizes and kernels are those of the first run.
TruthResult together(std::vector<TruthResult> runs);
/// `plain` in float64 on the reference engine.
Subject in_float64(Subject plain);

std::string to_json(const TruthResult& result);
std::string to_html(const TruthResult& result);
std::string to_text(const TruthResult& result);

}  // namespace cairn::diff
