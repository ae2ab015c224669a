// What the classifiers and regressors of ai.onnx.ml share.
#pragma once

#include "frontends/onnx/importer.h"

namespace cairn::onnx {

inline constexpr const char* kLearning = "ai.onnx.ml";

/// An input as floats that count: f64 stays, all others become f32.
Value* as_floats(OpContext& c, size_t input);
/// The numbers as a constant of this float type.
Value* floats_of(Builder& b, DType dtype, std::vector<int64_t> dims, const std::vector<double>& numbers);
std::vector<double> doubles_of(OpContext& c, std::string_view attribute);
/// An attribute given as floats or, with "_as_tensor" behind its name, as a tensor.
std::vector<double> doubles_or_tensor(OpContext& c, const std::string& attribute);

/// The labels of classes: an attribute of integers or one of texts.
struct Labels {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  Labels(OpContext& c, const char* of_numbers, const char* of_texts);
  size_t size() const { return std::max(numbers.size(), texts.size()); }
  /// The label of each class number.
  Value* at(Builder& b, Value* classes) const;
};

/// Scores [n, k] as `post_transform` asks: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT.
Value* transformed(OpContext& c, Value* scores, const std::string& how);
/// The number of the largest score of each row, the first of equals.
Value* largest(Builder& b, Value* scores);
/// A column and what it leaves to 1, or its negative, in front of it.
Value* both_columns(Builder& b, Value* second, bool of_one);

}  // namespace cairn::onnx
