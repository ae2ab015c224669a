// dump_op_cases DIR: inputs and reference results of every case of the op rows as .npy files, and cases.json that says
// what they are, for tests/python/test_oracles.py.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

using nlohmann::json;

// NumPy's name of the elements; bf16, which it lacks, goes as its bits.
const char* numpy_type(DType dtype) {
  static const std::pair<DType, const char*> kNames[] = {
      {kBool, "|b1"}, {kI8, "|i1"},  {kI16, "<i2"}, {kI32, "<i4"}, {kI64, "<i8"}, {kU8, "|u1"},  {kU16, "<u2"},
      {kU32, "<u4"},  {kU64, "<u8"}, {kF16, "<f2"}, {kF32, "<f4"}, {kF64, "<f8"}, {kBF16, "<u2"}};
  for (auto [known, name] : kNames)
    if (known == dtype) return name;
  CHECK(false, "dtype {}", to_string(dtype));
}

void write_npy(const std::string& path, const Tensor& tensor) {
  std::string dims;
  for (int64_t dim : tensor.dims()) dims += std::to_string(dim) + ",";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", numpy_type(tensor.dtype()), dims);
  header.resize((header.size() + 10 + 64) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8).write(reinterpret_cast<const char*>(&length), 2) << header;
  file.write(static_cast<const char*>(tensor.data()), static_cast<std::streamsize>(tensor.bytes()));
  CHECK(file.good(), "cannot write {}", path);
}

class Dump {
 public:
  explicit Dump(std::string folder) : folder_(std::move(folder)) {}

  void add(const OpCase& op_case) {
    const OpDef& op = *op_case.op;
    auto inputs = random_inputs(op_case);
    json entry = {{"op", op.name},
                  {"case", op_case.text},
                  {"expression", op.oracle.expression},
                  {"precision", static_cast<int>(op.precision)}};
    entry["inputs"] = json::array(), entry["results"] = json::array(), entry["attributes"] = json::object();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const InputDef& def = op.inputs[std::min(i, op.inputs.size() - 1)];
      entry["inputs"].push_back(tensor(inputs[i].tensor));
      entry["inputs"].back()["name"] = def.name;
      entry["inputs"].back()["variadic"] = def.arity == InputDef::Arity::variadic;
    }
    const AttributeView attributes(op, op_case.attributes);
    for (const AttrDef& def : op.attributes) entry["attributes"][def.name] = attribute(attributes.get(def.name));
    for (const HostValue& result : run_reference(op, op_case.attributes, inputs))
      entry["results"].push_back(tensor(result.tensor));
    cases_.push_back(std::move(entry));
  }

  void finish() { std::ofstream(folder_ + "/cases.json") << cases_.dump(1); }

 private:
  json tensor(const Tensor& tensor) {
    const std::string file = fmt::format("{}.npy", count_++);
    write_npy(folder_ + "/" + file, tensor);
    return {{"file", file}, {"dtype", to_string(tensor.dtype())}};
  }

  json attribute(const Attribute& value) {
    switch (kind_of(value)) {
      case AttrKind::boolean: return std::get<bool>(value);
      case AttrKind::integer: return std::get<int64_t>(value);
      case AttrKind::number: return {{"number", fmt::format("{}", std::get<double>(value))}};  // JSON has no infinity
      case AttrKind::text: return std::get<std::string>(value);
      case AttrKind::integers: return std::get<std::vector<int64_t>>(value);
      case AttrKind::texts: return std::get<std::vector<std::string>>(value);
      case AttrKind::dtype: return {{"dtype", to_string(std::get<DType>(value))}};
      case AttrKind::tensor: return tensor(std::get<Tensor>(value));
      default: CHECK(false, "attribute kind {}", value.index());
    }
  }

  std::string folder_;
  json cases_ = json::array();
  int count_ = 0;
};

}  // namespace
}  // namespace cairn

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: dump_op_cases DIR\n";
    return 2;
  }
  cairn::Dump dump(arguments[1]);
  for (const auto& op_case : cairn::all_cases())
    if (op_case.op->oracle.expression && op_case.op->reference) dump.add(op_case);
  dump.finish();
}
