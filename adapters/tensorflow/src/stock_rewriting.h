// TensorFlow's own rewriting of what its kernels run. A session on the engine asks for less of it, as the engine rewrites clusters
// once more; what stays with TensorFlow gets all that it would have had on stock TensorFlow.
#pragma once

#include <memory>
#include <string>

#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace cairn_tf {

/// Rewrites the body of a function, all of whose nodes have devices; what cannot be rewritten stays as it is. `functions` gets what
/// the rewriting adds.
void rewrite_as_stock(const tensorflow::ConfigProto& config, const std::string& title, tensorflow::Device& cpu,
                      const tensorflow::DeviceSet& devices, tensorflow::FunctionLibraryDefinition& functions,
                      std::unique_ptr<tensorflow::Graph>& graph);

}  // namespace cairn_tf
