// DumpData files of the platform: what one operator read and wrote. Two forms are read and written: a length, a protobuf
// header and raw bytes (version 2), and all in one protobuf (version 1).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"
#include "support/files.h"

namespace cairn {

struct DumpTensor {
  int data_type = 1;    // dump numbering: 1 float, 2 float16 ...
  uint32_t format = 2;  // packed: see layout.h
  std::vector<int64_t> dims, original_dims;
  std::string original_name;  // outputs: the framework's operator this is an output of
  int original_index = 0, original_data_type = 0;
  uint32_t original_format = 0;
  int64_t size = 0, address = 0;
  std::string_view data;
};

struct DumpFile {
  std::string version = "1.0", op_name;
  uint64_t time = 0;  // microseconds
  std::vector<DumpTensor> inputs, outputs;
  std::vector<std::string_view> buffers, spaces;  // raw bytes
  std::shared_ptr<const void> owner;              // of all data views
};

/// `version` 1, 2, or 0 to find out. Throws Error not_found, io.
DumpFile read_dump(const std::string& path, int version = 0);
void write_dump(const std::string& path, const DumpFile& file, int version = 2);
/// The same bytes, in order, for a caller with its own way of writing.
void send_dump(const DumpFile& file, int version, const FileSink& sink);

/// Name of a dump data type ("float16"), and back; "type 77" for one that has no name.
std::string dump_type_name(int data_type);
int dump_type_of(DType dtype);
/// The tensor of a dump; types that Cairn has no elements of (float8 and smaller) come as f32. Throws Error io for data
/// that does not fill the dims, unsupported.
Tensor to_tensor(const DumpTensor& dumped, const std::string& where, std::shared_ptr<const void> owner);
/// What a dump of `tensor` says; its data is the tensor's.
DumpTensor to_dump(const Tensor& tensor);

}  // namespace cairn
