// What the system refuses (memory, threads, files, streams) in our own sentences, for every door.
#pragma once

#include <cstddef>
#include <new>
#include <string>
#include <string_view>

#include "support/error.h"

namespace cairn {

/// Memory that the system refused, of that many bytes.
struct NoMemory : std::bad_alloc {
  explicit NoMemory(size_t asked) : bytes(asked) {}
  const char* what() const noexcept override { return "memory ran out"; }
  size_t bytes;
};

/// What errno `code` means and what to do: "No space left on device; free some space or name another folder".
std::string reason(int code);

/// The exception that is being handled, as the user is told: an Error as it is; one of the standard library (no memory, no
/// thread, a file or a stream that fails) in our own sentence. To be called in a catch block.
Error current_fault();

/// Memory that ran out when so many bytes were asked for.
Error memory_fault(size_t bytes);

/// A line on standard error; where that cannot be written nothing happens.
void note(std::string_view line) noexcept;

/// The same, once in this process for each `line`.
void note_once(std::string_view line) noexcept;

}  // namespace cairn
