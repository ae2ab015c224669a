// A comparison as files: the platform's CSV, JSON with everything, and one self-contained HTML page.
#pragma once

#include <bitset>
#include <string>

#include "compare/comparison.h"

namespace cairn::compare {

struct CsvOptions {
  std::bitset<kMetrics> columns = std::bitset<kMetrics>().set();
  bool overflow = false;      // the OverFlow column
  bool sequence = false;      // the OpSequence column
  bool only_mapping = false;  // the mapping's columns instead of the metrics
  size_t most_lines = 1'000'000;
};

/// The text of the CSV; lines beyond the limit are left out.
std::string to_csv(const Comparison& comparison, const CsvOptions& options);
std::string to_json(const Comparison& comparison, const Thresholds& thresholds);
std::string to_html(const Comparison& comparison, const Thresholds& thresholds);

/// Of one pair of tensors: the `most` elements with the largest error as CSV.
std::string worst_elements_csv(const TensorPair& pair, size_t most);

}  // namespace cairn::compare
