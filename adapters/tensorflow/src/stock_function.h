// The nodes of a cluster as TensorFlow runs them best. A session passes its graphs through rewrites behind their partitioning,
// oneDNN's among them; functions that a kernel calls do not meet these by themselves.
#pragma once

#include <string>

#include "tensorflow/core/framework/function.h"

namespace cairn_tf {

/// The library that functions of a cluster are added to; only the runtime's view of it is const.
tensorflow::FunctionLibraryDefinition& library_of(tensorflow::FunctionLibraryRuntime& runtime);

/// A handle of what these rewrites make of `function` on the runtime's device; added to the library under a name of its own.
tensorflow::Status instantiate_as_in_a_session(
    tensorflow::FunctionLibraryRuntime& runtime, const std::string& function,
    const google::protobuf::Map<std::string, tensorflow::AttrValue>& attributes,
    tensorflow::FunctionLibraryRuntime::Handle& handle);

}  // namespace cairn_tf
