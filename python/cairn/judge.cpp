#include "judge.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "cairn/judge.h"

namespace cairn_python {

namespace {

CairnDistance distance_of(nb::handle x, nb::handle y) {
  Inputs inputs;
  inputs.add(x, "x", "float64");
  inputs.add(y, "y", "float64");
  CairnDistance distance{sizeof distance};
  check(cairn_distance(inputs.data(), inputs.data() + 1, &distance));
  return distance;
}

nb::dict dict_of(const CairnDistance& distance) {
  nb::dict made;
  made["most"] = distance.most, made["rms"] = distance.rms, made["size"] = distance.size;
  made["largest"] = distance.largest, made["unlike"] = distance.unlike;
  return made;
}

/// Of two runs against the truth.
nb::dict errors_of(nb::handle mine, nb::handle theirs, nb::handle truth) {
  const CairnDistance ours = distance_of(mine, truth), others = distance_of(theirs, truth);
  double ratio;
  int32_t larger;
  check(cairn_compare_errors(&ours, &others, &ratio, &larger));
  constexpr const char* kLarger[] = {"alike", "mine", "theirs"};
  nb::dict made;
  made["mine"] = dict_of(ours), made["theirs"] = dict_of(others), made["ratio"] = ratio;
  made["larger"] = kLarger[larger];
  return made;
}

/// `fails`: None for what was not judged.
std::vector<bool> first_faults(const std::vector<std::optional<bool>>& fails,
                               const std::vector<std::vector<size_t>>& inputs) {
  if (inputs.size() != fails.size()) raise_error("invalid_argument", "inputs", "one list for each value");
  std::vector<CairnJudged> values;
  for (size_t i = 0; i < fails.size(); ++i)
    values.push_back({!fails[i]   ? CAIRN_NOT_JUDGED
                      : *fails[i] ? CAIRN_FAIL
                                  : CAIRN_PASS,
                      inputs[i].size(), inputs[i].data()});
  std::vector<uint8_t> first(values.size());
  check(cairn_first_faults(values.data(), values.size(), first.data()));
  return {first.begin(), first.end()};
}

}  // namespace

void add_judgement(nb::module_& module) {
  module.def("_distance", [](nb::handle x, nb::handle y) { return dict_of(distance_of(x, y)); });
  module.def("_errors", &errors_of);
  module.def("_first_faults", &first_faults);
}

}  // namespace cairn_python
