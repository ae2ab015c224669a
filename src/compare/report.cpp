#include "compare/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compare/report_page.h"
#include "formats/page.h"

namespace cairn::compare {

namespace {

using Json = nlohmann::ordered_json;

/// A CSV cell, quoted when it has to be.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string or_nan(const std::string& text) { return text.empty() ? "NaN" : text; }
std::string address(int64_t value) { return value == 0 ? "NaN" : std::to_string(value); }
std::string dims_text(const std::vector<int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

std::vector<std::string> header(const CsvOptions& options, bool steps) {
  std::vector<std::string> names = {"Index"};
  if (steps) names.push_back("Step");
  if (options.sequence) names.push_back("OpSequence");
  if (options.only_mapping) {
    names.insert(names.end(), {"OpType", "NPUDump", "GroundTruth", "TensorIndex", "NPUDumpPath", "GroundTruthPath"});
    return names;
  }
  names.insert(names.end(), {"OpType", "NPUDump", "DataType", "Address", "GroundTruth", "DataType", "Address",
                             "TensorIndex", "Shape"});
  if (options.overflow) names.push_back("OverFlow");
  for (size_t i = 0; i < kMetrics; ++i)
    if (options.columns[i]) names.emplace_back(column_name(static_cast<Metric>(i)));
  names.push_back("CompareFailReason");
  return names;
}

std::vector<std::string> cells(const Row& row, const CsvOptions& options, bool steps) {
  std::vector<std::string> list;
  if (steps) list.push_back(row.step ? std::to_string(*row.step) : "NaN");
  if (options.sequence) list.push_back(std::to_string(row.sequence));
  if (options.only_mapping) {
    list.insert(list.end(), {or_nan(row.op_type), row.mine, row.golden, row.tensor_name(), or_nan(row.mine_path),
                             or_nan(row.golden_path)});
    return list;
  }
  list.insert(list.end(), {or_nan(row.op_type), row.mine, or_nan(row.mine_type), address(row.mine_address), row.golden,
                           or_nan(row.golden_type), address(row.golden_address), row.tensor_name(),
                           row.mine_type.empty() ? "NaN" : dims_text(row.dims)});
  if (options.overflow) list.push_back(row.overflow ? (*row.overflow ? "YES" : "NO") : "NaN");
  for (size_t i = 0; i < kMetrics; ++i)
    if (options.columns[i]) list.push_back(row.metrics.text(static_cast<Metric>(i)));
  list.push_back(row.reason);
  return list;
}

std::string line(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& value : list) text += (text.empty() ? "" : ",") + cell(value);
  return text + "\n";
}

/// JSON has no NaN and no infinity: null, and text for infinity.
Json number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json diagnosis_json(const Diagnosis& d) {
  size_t last = judge::kUlpBuckets;
  while (last > 1 && d.ulps[last - 1] == 0) --last;
  return {{"scale", number(d.scale)},
          {"bias", number(d.bias)},
          {"fit_residual", number(d.fit_residual)},
          {"sqnr_db", number(d.sqnr_db)},
          {"p50", number(d.p50)},
          {"p99", number(d.p99)},
          {"p99.9", number(d.p999)},
          {"worst",
           {{"error", number(d.distance.most)},
            {"index", d.worst_index},
            {"mine", number(d.worst_x)},
            {"golden", number(d.worst_y)}}},
          {"ulp_histogram", std::vector<uint64_t>(d.ulps.begin(), d.ulps.begin() + static_cast<ptrdiff_t>(last))},
          {"nan", {d.nan_x, d.nan_y}},
          {"infinite", {d.infinite_x, d.infinite_y}},
          {"nonfinite_mismatches", d.distance.unlike},
          {"zero_mismatch", d.zero_mismatch()}};
}

Json row_json(const Row& row) {
  Json json;
  if (row.step) json["step"] = *row.step;
  json["sequence"] = row.sequence;
  json["type"] = row.op_type, json["mine"] = row.mine, json["golden"] = row.golden, json["tensor"] = row.tensor_name();
  json["dtypes"] = {row.mine_type, row.golden_type};
  json["shape"] = row.dims;
  if (!row.location.empty()) json["location"] = row.location;
  if (row.overflow) json["overflow"] = *row.overflow;
  json["verdict"] = to_string(row.verdict);
  if (!row.reason.empty()) json["reason"] = row.reason;
  if (!row.finding.empty()) json["finding"] = row.finding;
  if (!row.diagnosis) return json;
  Json metrics;
  for (size_t i = 0; i < kMetrics; ++i) {
    auto metric = static_cast<Metric>(i);
    metrics[std::string(column_name(metric))] =
        metric == Metric::deviation ? Json(row.metrics.text(metric)) : number(row.metrics[metric]);
  }
  json["metrics"] = std::move(metrics);
  json["diagnosis"] = diagnosis_json(*row.diagnosis);
  json["error_bound"] = row.bound > 0 ? number(row.bound) : Json(nullptr);
  json["paths"] = {row.mine_path, row.golden_path};
  return json;
}

Json comparison_json(const Comparison& comparison, const Thresholds& thresholds) {
  Json json = {{"mine", comparison.mine}, {"golden", comparison.golden}};
  json["thresholds"] = {{"cosine", thresholds.cosine}, {"relative_euclidean", thresholds.relative_euclidean}};
  for (Verdict verdict : {Verdict::pass, Verdict::warning, Verdict::fail, Verdict::none})
    json["counts"][to_string(verdict)] = comparison.count(verdict);
  const Row* suspect = comparison.first_suspect();
  json["first_suspect"] = suspect == nullptr ? Json(nullptr) : Json(suspect->tensor_name());
  Advice advice = advise(comparison);
  json["advice"] = {{"kind", advice.kind}, {"text", advice.text}};
  json["overflow_files"] = comparison.overflow_files;
  json["rows"] = Json::array();
  for (const Row& row : comparison.rows) json["rows"].push_back(row_json(row));
  return json;
}

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_csv(const Comparison& comparison, const CsvOptions& options) {
  bool steps =
      std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const Row& r) { return r.step.has_value(); });
  std::string text = line(header(options, steps));
  size_t index = 0;
  for (const Row& row : comparison.rows) {
    if (index == options.most_lines) break;
    std::vector<std::string> list = cells(row, options, steps);
    list.insert(list.begin(), std::to_string(index++));
    text += line(list);
  }
  return text;
}

std::string to_json(const Comparison& comparison, const Thresholds& thresholds) {
  return dumped(comparison_json(comparison, thresholds), 1) + "\n";
}

std::string to_html(const Comparison& comparison, const Thresholds& thresholds) {
  return fill_page(kComparisonPage, dumped(comparison_json(comparison, thresholds), -1));
}

std::string worst_elements_csv(const TensorPair& pair, size_t most) {
  std::vector<float> storage_x, storage_y;
  auto x = as_floats(pair.mine, storage_x), y = as_floats(pair.golden, storage_y);
  if (x.size() != y.size())
    fail(ErrorKind::invalid_argument, "", "sizes differ: {} and {} elements", x.size(), y.size());
  std::vector<size_t> order(x.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  // What is not a number is the worst; equal errors stay in the order of the elements.
  auto error = [&](size_t i) {
    float value = std::abs(x[i] - y[i]);
    return std::isnan(value) ? INFINITY : value;
  };
  size_t shown = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(shown), order.end(),
                    [&](size_t a, size_t b) { return error(a) != error(b) ? error(a) > error(b) : a < b; });
  std::string text = "Index,Position,NPUDump,GroundTruth,AbsoluteError,RelativeError\n";
  for (size_t k = 0; k < shown; ++k) {
    size_t i = order[k];
    std::vector<int64_t> position(pair.golden.rank());
    size_t rest = i;
    for (size_t axis = position.size(); axis-- > 0;) {
      auto dim = static_cast<size_t>(std::max<int64_t>(pair.golden.dims()[axis], 1));
      position[axis] = static_cast<int64_t>(rest % dim), rest /= dim;
    }
    float relative = std::abs(y[i]) > static_cast<float>(judge::kEpsilon) ? std::abs(x[i] / y[i] - 1) : 0;
    text += fmt::format("{},\"[{}]\",{:.9g},{:.9g},{:.6g},{:.6g}\n", i, fmt::join(position, ","), x[i], y[i],
                        std::abs(x[i] - y[i]), relative);
  }
  return text;
}

}  // namespace cairn::compare
