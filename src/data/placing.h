// Which columns of a row map takes, and where its results go.
#pragma once

#include <algorithm>

#include "data/operations.h"

namespace cairn::data {

/// What map does with the columns of a row.
struct Placing {
  std::vector<size_t> used;                      // of the child's columns
  std::vector<std::pair<bool, size_t>> sources;  // of each column: whether a result, and its number
  std::vector<std::string> columns;
  size_t results = 0;

  Placing(const Node& child, const Columns& wanted, const std::string& operation) {
    std::vector<std::string> inputs = wanted.inputs;
    if (inputs.empty()) inputs.push_back(child.columns.at(0));
    used = places_of(inputs, child.columns, operation);
    const std::vector<std::string>& made = wanted.outputs.empty() ? inputs : wanted.outputs;
    results = made.size();
    if (made.size() == inputs.size()) {
      columns = child.columns;
      for (size_t i = 0; i < used.size(); ++i) columns[used[i]] = made[i];
    } else {
      columns = made;
      for (const std::string& name : child.columns)
        if (std::find(inputs.begin(), inputs.end(), name) == inputs.end()) columns.push_back(name);
    }
    if (!wanted.order.empty()) {
      places_of(wanted.order, columns, operation);
      columns = wanted.order;
    }
    for (const std::string& name : columns) {
      auto result = std::find(made.begin(), made.end(), name);
      sources.emplace_back(result != made.end(), result != made.end() ? result - made.begin()
                                                                      : places_of({name}, child.columns, operation)[0]);
    }
  }

  Row chosen(const Row& row) const {
    Row values;
    values.reserve(used.size());
    for (size_t place : used) values.push_back(row[place]);
    return values;
  }
  Row placed(Row row, Row values) const {
    if (values.size() != results)
      fail(ErrorKind::invalid_argument, "", "gives {} columns, but {} output columns are named", values.size(),
           results);
    Row made;
    made.reserve(sources.size());
    for (auto [result, place] : sources) made.push_back(result ? values[place] : row[place]);
    return made;
  }
};

}  // namespace cairn::data
