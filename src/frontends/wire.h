// Safe reading of untrusted protocol buffer bytes: every length, wire type, nesting and count is checked where it is
// used, and memory allocated on behalf of a file is limited by the file's size.
#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace cairn {

inline constexpr int kMaxNesting = 64;

/// The bytes of one model and texts made from them. A regular file is mapped, not copied; views into bytes() and into
/// kept texts are valid as long as this object lives.
class ModelBytes {
 public:
  /// Throws Error not_found, io (also for anything but a regular file).
  static std::shared_ptr<ModelBytes> open(const std::string& path);
  static std::shared_ptr<ModelBytes> from_memory(std::string name, std::string bytes);
  /// The file of an open descriptor, which is closed; `name` is used in messages.
  static std::shared_ptr<ModelBytes> from_descriptor(std::string name, int descriptor);
  ~ModelBytes();
  ModelBytes(const ModelBytes&) = delete;
  ModelBytes& operator=(const ModelBytes&) = delete;

  const std::string& name() const { return name_; }
  std::string_view bytes() const { return bytes_; }
  /// Counts memory allocated on behalf of the file; throws Error invalid_model beyond the file's size plus 160 MiB.
  void charge(uint64_t bytes);
  std::string_view keep(std::string text);
  /// Keeps another file alive as long as this object.
  void attach(std::shared_ptr<const void> other) { attached_.push_back(std::move(other)); }

 private:
  explicit ModelBytes(std::string name) : name_(std::move(name)) {}

  std::string name_;
  std::string_view bytes_;
  bool mapped_ = false;
  uint64_t charged_ = 0;
  std::deque<std::string> texts_;
  std::vector<std::shared_ptr<const void>> attached_;
};

/// Reads one message. Throws Error invalid_model naming the file, the message and the field.
class Wire {
 public:
  Wire(std::string_view bytes, const char* message, ModelBytes& model, int depth = 0);

  /// Advances to the next field; false at the end.
  bool next();
  uint32_t field() const { return reader_.tag(); }
  /// The field holds bytes: a text, a message or packed numbers.
  bool is_message() const { return reader_.wire_type() == protozero::pbf_wire_type::length_delimited; }
  void skip();

  int64_t integer();  // int32, int64, uint64, enum, bool
  float real32();
  uint32_t fixed32();
  uint64_t fixed64();
  std::string_view bytes();
  Wire message(const char* name) { return {bytes(), name, model_, depth_ + 1}; }

  /// Appends the value or the packed values of a repeated field.
  void append_integers(std::vector<int64_t>& to);
  void append_reals(std::vector<float>& to);
  /// The same for 4- and 8-byte numbers, appended as bytes.
  void append_fixed(std::string& to);

  int depth() const { return depth_; }
  ModelBytes& model() const { return model_; }
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_text(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void fail_text(const std::string& text) const;
  void need(protozero::pbf_wire_type type) const;
  template <class Read>
  auto guarded(Read&& read);

  protozero::pbf_reader reader_;
  const char* message_;
  ModelBytes& model_;
  int depth_;
};

}  // namespace cairn
