// For plug-ins that register an operator of a framework under another name, in the form that the platform documents:
//
//   #include "register/register.h"
//   namespace domi {
//   REGISTER_CUSTOM_OP("acme.gelu")
//       .FrameworkType(TENSORFLOW)
//       .OriginOpType("MyGelu")
//       .ParseParamsFn(AutoMappingFn);
//   }
//
// Compiled with -I<folder of cairn/op.h>/cairn/plugin -I<folder of cairn/op.h>, the library is one that Cairn loads: nodes of
// type MyGelu stand for the operator acme.gelu, of a library loaded before, or for a type of the framework that Cairn reads.
// Attributes are taken by their names; functions that map them otherwise have no meaning here and do not compile.
#ifndef CAIRN_PLUGIN_REGISTER_H_
#define CAIRN_PLUGIN_REGISTER_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "cairn/op.hpp"

namespace domi {

enum FrameworkType { CAFFE = 0, MINDSPORE = 1, TENSORFLOW = 3, ONNX = 5 };
enum class ImplyType : unsigned { BUILDIN = 0, TVM, CUSTOM, AI_CPU, CCE, GELOCAL, HCCL, INVALID };
enum class AutoMapping { by_name };
inline constexpr AutoMapping AutoMappingFn = AutoMapping::by_name, AutoMappingByOpFn = AutoMapping::by_name;

/// What one registration says; collected until the library is loaded.
class CustomOp {
 public:
  explicit CustomOp(const char* op) : op_(op) {}
  CustomOp& FrameworkType(domi::FrameworkType framework) {
    framework_ = framework;
    return *this;
  }
  CustomOp& OriginOpType(const std::string& type) {
    types_.push_back(type);
    return *this;
  }
  CustomOp& OriginOpType(std::initializer_list<const char*> types) {
    types_.insert(types_.end(), types.begin(), types.end());
    return *this;
  }
  CustomOp& OriginOpType(const std::vector<std::string>& types) {
    types_.insert(types_.end(), types.begin(), types.end());
    return *this;
  }
  CustomOp& ParseParamsFn(AutoMapping) { return *this; }
  CustomOp& ParseParamsByOperatorFn(AutoMapping) { return *this; }
  CustomOp& ImplyType(domi::ImplyType) { return *this; }

  void name(const cairn::op::Registry& registry) const {
    if (framework_ != TENSORFLOW && framework_ != ONNX) throw cairn::op::Failure("the framework has no models here");
    for (const std::string& type : types_)
      registry.name(framework_ == ONNX ? "onnx" : "tensorflow", plain(type).c_str(), op_.c_str());
  }

 private:
  /// "acme::1::Gelu" names a version of the operator set, which does not count here.
  static std::string plain(const std::string& type) {
    const size_t first = type.find("::"), last = type.rfind("::");
    return first == last ? type : type.substr(0, first) + type.substr(last);
  }

  std::string op_;
  domi::FrameworkType framework_ = TENSORFLOW;
  std::vector<std::string> types_;
};

/// Those of this library.
inline std::vector<const CustomOp*>& custom_ops() {
  static std::vector<const CustomOp*> ops;
  return ops;
}

struct CustomOpReceiver {
  CustomOpReceiver(const CustomOp& op) { custom_ops().push_back(new CustomOp(op)); }  // NOLINT: implicit on purpose
};

}  // namespace domi

#define CAIRN_PLUGIN_JOIN_(a, b) a##b
#define CAIRN_PLUGIN_JOIN(a, b) CAIRN_PLUGIN_JOIN_(a, b)
#define REGISTER_CUSTOM_OP(name) \
  [[maybe_unused]] static const domi::CustomOpReceiver CAIRN_PLUGIN_JOIN(custom_op_, __COUNTER__) = domi::CustomOp(name)

// Weak, so that several sources of a library may include this file.
extern "C" CAIRN_API __attribute__((weak)) const uint32_t cairn_op_abi = CAIRN_OP_ABI_VERSION;
extern "C" CAIRN_API __attribute__((weak)) int32_t cairn_register_ops(const CairnOpRegistry* given) {
  try {
    for (const domi::CustomOp* op : domi::custom_ops()) op->name(cairn::op::Registry(*given));
    return 0;
  } catch (...) {
    return 1;
  }
}

#endif
