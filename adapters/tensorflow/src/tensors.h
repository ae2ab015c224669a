// What the operators share: element types and faults of the engine in TensorFlow's terms.
#pragma once

#include "engine.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace cairn_tf {

/// The fault lies in the session's keys, not in the cluster.
inline bool is_setting(const Failure& failure) {
  return failure.node == "precision_mode" || failure.node == "mixed_lists" || failure.node == "customize_dtypes";
}

inline tensorflow::Status to_status(const Failure& failure, const std::string& cluster) {
  // TensorFlow's Python side finds the node by this mark and adds the script lines that made it.
  std::string node = failure.node.substr(0, failure.node.find(" ("));
  std::string text = "Cairn: " + (failure.node.empty() ? cluster : failure.node) + ": " + failure.message;
  if (!node.empty() && !is_setting(failure)) text += "\n\t [[{{node " + node + "}}]]";
  switch (failure.status) {
    case CAIRN_INVALID_ARGUMENT:
    case CAIRN_INVALID_MODEL: return tensorflow::errors::InvalidArgument(text);
    case CAIRN_UNSUPPORTED: return tensorflow::errors::Unimplemented(text);
    case CAIRN_NOT_FOUND: return tensorflow::errors::NotFound(text);
    case CAIRN_OUT_OF_MEMORY: return tensorflow::errors::ResourceExhausted(text);
    case CAIRN_CANCELLED: return tensorflow::errors::Cancelled(text);
    default: return tensorflow::errors::Internal(text);
  }
}

/// Whether the step should end: its session is closed, its time is over, or another part of it has failed.
inline int32_t is_cancelled(void* manager) {
  return manager && static_cast<tensorflow::CancellationManager*>(manager)->IsCancelled();
}

inline CairnDType to_cairn(tensorflow::DataType type) {
  switch (type) {
    case tensorflow::DT_FLOAT: return {CAIRN_FLOAT, 32, 1};
    case tensorflow::DT_DOUBLE: return {CAIRN_FLOAT, 64, 1};
    case tensorflow::DT_HALF: return {CAIRN_FLOAT, 16, 1};
    case tensorflow::DT_BFLOAT16: return {CAIRN_BFLOAT, 16, 1};
    case tensorflow::DT_INT8: return {CAIRN_INT, 8, 1};
    case tensorflow::DT_INT16: return {CAIRN_INT, 16, 1};
    case tensorflow::DT_INT32: return {CAIRN_INT, 32, 1};
    case tensorflow::DT_INT64: return {CAIRN_INT, 64, 1};
    case tensorflow::DT_UINT8: return {CAIRN_UINT, 8, 1};
    case tensorflow::DT_UINT16: return {CAIRN_UINT, 16, 1};
    case tensorflow::DT_UINT32: return {CAIRN_UINT, 32, 1};
    case tensorflow::DT_UINT64: return {CAIRN_UINT, 64, 1};
    case tensorflow::DT_BOOL: return {CAIRN_BOOL, 8, 1};
    case tensorflow::DT_COMPLEX64: return {CAIRN_COMPLEX, 64, 1};
    case tensorflow::DT_COMPLEX128: return {CAIRN_COMPLEX, 128, 1};
    default: return {0, 0, 0};  // refused by the engine
  }
}

}  // namespace cairn_tf
