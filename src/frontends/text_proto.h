// Converts the protocol buffer text form (pbtxt, prototxt) to wire bytes by a table of the messages' fields, so that
// readers need only one decoder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

/// `ignored` fields are parsed and dropped.
enum class TextKind : uint8_t { integer, boolean, real32, real64, text, enumeration, message, ignored };

struct TextEnum {
  std::string_view name;
  int32_t value;
};

struct TextMessage;

struct TextField {
  std::string_view name;
  uint32_t number;
  TextKind kind;
  const TextMessage* message = nullptr;
  std::span<const TextEnum> words = {};
};

struct TextMessage {
  const char* name;
  std::span<const TextField> fields;
  uint32_t place = 0;  // not 0: the number of an integer field, written in front of each other one: where it stands
  uint32_t unknown =
      0;  // not 0: the number of a text field for the names of fields that are not there, which are dropped
};

/// "line 3, column 16", of the value of a `place` field.
std::string text_place(int64_t place);
int64_t text_line(int64_t place);

/// Wire bytes of one message given as text. Throws Error invalid_model "file: line 3, column 16: ...".
std::string text_to_wire(std::string_view text, const TextMessage& message, const std::string& file);

/// True when the first token of the bytes names a field of the message and ':', '{' or '<' follows.
bool looks_like_text(std::string_view bytes, const TextMessage& message);

}  // namespace cairn
