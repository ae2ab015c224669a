// A call into the code of a user's operator; faults inside are reported with the operator's name.
#pragma once

#include "cairn/op.h"
#include "capi/attributes.h"

namespace cairn::capi {

/// A registered row: the texts that its OpDef points to, and its functions.
struct UserRow {
  std::string library;
  CairnOpRow row;
  CairnOpRegistry registry;
  std::deque<std::string> texts;
};
inline const UserRow& user_row(const OpDef& op) { return *static_cast<const UserRow*>(op.user); }

class UserCall {
 public:
  /// `part`: "kernel", "shape rule", ...
  UserCall(const OpDef& op, const AttributeView& attributes, const char* part);

  CairnOpCall& call() { return call_; }
  CView& shown() { return shown_; }
  /// Runs body(), one of the row's functions; throws Error when it returns other than 0, throws, or has called fail().
  template <class Body>
  void run(ErrorKind kind, Body&& body) {
    int32_t status = 0;
    enter();
    try {
      status = body();
    } catch (const std::exception& thrown) {
      leave();
      refuse(kind, fmt::format("threw an exception: {}", thrown.what()));
    } catch (...) {
      leave();
      refuse(kind, "threw an exception");
    }
    leave();
    if (status != 0) refuse(kind, message_.empty() ? fmt::format("failed with status {}", status) : message_);
  }
  void say(const char* message) { message_ = message ? message : ""; }
  [[noreturn]] void refuse(ErrorKind kind, const std::string& message) const;

  // Set for the kind of function that is called.
  InferContext* infer = nullptr;
  KernelContext* kernel = nullptr;
  std::span<CairnTensor> outputs;

 private:
  void enter();
  void leave();

  /// The enclosing call on this thread: the rules of an operator may use other operators from users.
  struct {
    const char* op = nullptr;
    const char* part = nullptr;
    const char* library = nullptr;
  } before_;
  const OpDef& op_;
  const UserRow& row_;
  const char* part_;
  CView shown_;
  std::vector<CairnAttribute> attributes_;
  std::string message_;
  CairnOpCall call_{};
};

}  // namespace cairn::capi
