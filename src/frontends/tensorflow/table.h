// The sorted string table of TensorFlow's checkpoints (LevelDB's format): blocks with prefix-compressed keys, optionally
// Snappy, each with a checksum, located by an index block and a footer.
#pragma once

#include <string>
#include <string_view>

#include "frontends/wire.h"
#include "support/function_ref.h"

namespace cairn::tensorflow {

/// Calls visit(key, value) for every entry in order; both views are valid during the call only. Throws Error
/// invalid_model.
void read_table(ModelBytes& model, FunctionRef<void(std::string_view key, std::string_view value)> visit);

}  // namespace cairn::tensorflow
