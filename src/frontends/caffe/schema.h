// The messages of caffe.proto (BVLC, BSD-2-Clause) as tables of fields: their names in prototxt files, numbers in caffemodel
// files, and kinds. Layers that are not of BVLC have the names of their own projects; their numbers are ours, as only text
// has them.
#pragma once

#include "frontends/text_proto.h"

namespace cairn::caffe {

extern const TextMessage kNet, kLayer, kOldLayer, kOldestLayer;

/// Numbers that are read without their names.
namespace field {
enum : uint32_t { net_layer = 100, net_old_layer = 2 };
namespace layer {
enum : uint32_t { name = 1, blobs = 7, unknown = 1 << 20, place = (1 << 20) + 1 };
}
namespace old_layer {
enum : uint32_t { oldest = 1, name = 4, blobs = 6 };
}
namespace oldest_layer {
enum : uint32_t { name = 1, blobs = 50 };
}
namespace blob {
enum : uint32_t { num = 1, channels = 2, height = 3, width = 4, data = 5, shape = 7, double_data = 8 };
}
}  // namespace field

/// The name that a type of layer of the second generation ("INNER_PRODUCT") or the first ("innerproduct") has now; empty
/// where there is none.
std::string_view current_type(int64_t old);
std::string_view current_type(std::string_view oldest);

}  // namespace cairn::caffe
