// Field numbers of the ONNX messages that are read (onnx/onnx.proto, Apache-2.0), one enum per message.
#pragma once

#include <cstdint>

namespace cairn::onnx::field {

namespace model {
// clang-format off
enum : uint32_t {
  ir_version = 1, producer_name = 2, producer_version = 3, graph = 7, opset_import = 8, metadata = 14, functions = 25
};
// clang-format on
}  // namespace model
namespace opset {
enum : uint32_t { domain = 1, version = 2 };
}
namespace graph {
// clang-format off
enum : uint32_t {
  node = 1, name = 2, initializer = 5, input = 11, output = 12, value_info = 13, sparse_initializer = 15, metadata = 16
};
// clang-format on
}  // namespace graph
namespace node {
// clang-format off
enum : uint32_t {
  input = 1, output = 2, name = 3, op_type = 4, attribute = 5, doc = 6, domain = 7, overload = 8, metadata = 9
};
// clang-format on
}  // namespace node
namespace attribute {
// clang-format off
enum : uint32_t {
  name = 1, f = 2, i = 3, s = 4, t = 5, g = 6, floats = 7, ints = 8, strings = 9, tp = 14, type = 20,
  ref_attr_name = 21, sparse = 22
};
// clang-format on
}  // namespace attribute
namespace value_info {
enum : uint32_t { name = 1, type = 2, metadata = 4 };
}
namespace type {
enum : uint32_t { tensor = 1, sequence = 4, map = 5, sparse_tensor = 8, optional = 9 };
}
namespace sparse_tensor {
enum : uint32_t { values = 1, indices = 2, dims = 3 };
}
namespace sequence_type {
enum : uint32_t { elem_type = 1 };
}
namespace tensor_type {
enum : uint32_t { elem_type = 1, shape = 2 };
}
namespace shape {
enum : uint32_t { dim = 1 };
}
namespace dimension {
enum : uint32_t { value = 1, param = 2 };
}
namespace entry {
enum : uint32_t { key = 1, value = 2 };
}
namespace function {
// clang-format off
enum : uint32_t {
  name = 1, input = 4, output = 5, node = 7, opset_import = 9, domain = 10, attribute_proto = 11, overload = 13
};
// clang-format on
}  // namespace function
namespace tensor {
// clang-format off
enum : uint32_t {
  dims = 1, data_type = 2, segment = 3, float_data = 4, int32_data = 5, string_data = 6, int64_data = 7, name = 8,
  raw_data = 9, double_data = 10, uint64_data = 11, external_data = 13, data_location = 14
};
// clang-format on
}  // namespace tensor

}  // namespace cairn::onnx::field
