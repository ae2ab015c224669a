// Field numbers of the TensorFlow messages that are read or written, one enum per message (tensorflow/core/framework
// and tensorflow/core/protobuf, Apache-2.0). The text schema in text_schema.cpp refers to the same constants.
#pragma once

#include <cstdint>

namespace cairn::tensorflow::field {

namespace graph_def {
enum : uint32_t { node = 1, library = 2, version = 3, versions = 4, debug_info = 5 };
}
namespace version_def {
enum : uint32_t { producer = 1, min_consumer = 2, bad_consumers = 3 };
}
namespace debug_info {
enum : uint32_t { files = 1, traces = 2, frames_by_id = 4, name_to_trace_id = 5, traces_by_id = 6 };
}
namespace stack_trace {
enum : uint32_t { frames = 1, frame_ids = 2 };
}
namespace stack_frame {
enum : uint32_t { file_index = 1, line = 2 };
}
namespace node_def {
enum : uint32_t { name = 1, op = 2, input = 3, device = 4, attr = 5, debug_info = 6, experimental_type = 7 };
}
namespace map_entry {
enum : uint32_t { key = 1, value = 2 };
}
namespace attr_value {
enum : uint32_t { list = 1, s = 2, i = 3, f = 4, b = 5, type = 6, shape = 7, tensor = 8, placeholder = 9, func = 10 };
}
namespace list_value {
enum : uint32_t { s = 2, i = 3, f = 4, b = 5, type = 6, shape = 7, tensor = 8, func = 9 };
}
namespace name_attr_list {
enum : uint32_t { name = 1, attr = 2 };
}
namespace tensor_shape {
enum : uint32_t { dim = 2, unknown_rank = 3 };
}
namespace dim {
enum : uint32_t { size = 1, name = 2 };
}
namespace tensor {
// clang-format off
enum : uint32_t {
  dtype = 1, shape = 2, version_number = 3, content = 4, float_val = 5, double_val = 6, int_val = 7, string_val = 8,
  scomplex_val = 9, int64_val = 10, bool_val = 11, dcomplex_val = 12, half_val = 13, uint32_val = 16, uint64_val = 17
};
// clang-format on
}  // namespace tensor
namespace library {
enum : uint32_t { function = 1, gradient = 2 };
}
namespace function_def {
enum : uint32_t { signature = 1, node = 3, ret = 4, attr = 5, control_ret = 6, arg_attr = 7, resource_id = 8 };
}
namespace op_def {
enum : uint32_t { name = 1, input_arg = 2, output_arg = 3, is_stateful = 17, control_output = 20 };
}
namespace arg_def {
enum : uint32_t { name = 1, type = 3, type_attr = 4, number_attr = 5, type_list_attr = 6, is_ref = 16 };
}
namespace saved_model {
enum : uint32_t { schema_version = 1, meta_graph = 2 };
}
namespace meta_graph {
enum : uint32_t { info = 1, graph = 2, saver = 3, collection = 4, signature = 5, asset = 6, object_graph = 7 };
}
namespace collection_def {
enum : uint32_t { any_list = 5, any_value = 2 };
}
namespace asset_file {
enum : uint32_t { tensor_info = 1, filename = 2 };
}
namespace meta_info {
enum : uint32_t { tags = 4, tensorflow_version = 5 };
}
namespace saver_def {
enum : uint32_t { filename_tensor = 1, restore_op = 3 };
}
namespace signature_def {
enum : uint32_t { input = 1, output = 2, method_name = 3 };
}
namespace tensor_info {
enum : uint32_t { name = 1, dtype = 2, shape = 3, coo_sparse = 4, composite = 5 };
}
namespace bundle_header {
enum : uint32_t { num_shards = 1, endianness = 2, version = 3 };
}
namespace bundle_entry {
enum : uint32_t { dtype = 1, shape = 2, shard_id = 3, offset = 4, size = 5, crc32c = 6, slice = 7 };
}
namespace tensor_slice {
enum : uint32_t { extent = 1 };
}
namespace extent {
enum : uint32_t { start = 1, length = 2 };
}

}  // namespace cairn::tensorflow::field
