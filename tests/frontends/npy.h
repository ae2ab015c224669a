// Arrays that the tests' scripts wrote.
#pragma once

#include <cstring>
#include <map>
#include <regex>
#include <sstream>

#include "ir/tensor.h"
#include "models.h"

namespace cairn::test {

/// A little-endian, row-major .npy file of the dtypes that the tests use.
inline Tensor read_npy(const std::string& path) {
  static const std::map<std::string, DType> kTypes = {{"<f2", kF16}, {"<f4", kF32}, {"<f8", kF64}, {"|i1", kI8},
                                                      {"<i2", kI16}, {"<i4", kI32}, {"<i8", kI64}, {"|u1", kU8},
                                                      {"<u2", kU16}, {"<u4", kU32}, {"<u8", kU64}, {"|b1", kBool}};
  std::string bytes = read_file(path);
  size_t header_bytes = static_cast<uint8_t>(bytes.at(8)) + 256 * static_cast<uint8_t>(bytes.at(9));
  std::string header = bytes.substr(10, header_bytes);
  std::smatch descr, shape;
  if (!std::regex_search(header, descr, std::regex("'descr': '([^']+)'")) ||
      !std::regex_search(header, shape, std::regex("'shape': \\(([^)]*)\\)")))
    throw std::runtime_error(path + " is no array");
  std::vector<int64_t> dims;
  std::istringstream numbers(shape[1].str());
  for (std::string number; std::getline(numbers, number, ',');)
    if (number.find_first_of("0123456789") != std::string::npos) dims.push_back(std::stoll(number));
  Tensor tensor = Tensor::uninitialized(kTypes.at(descr[1]), dims);
  std::memcpy(tensor.mutable_data(), bytes.data() + 10 + header_bytes, tensor.bytes());
  return tensor;
}

}  // namespace cairn::test
