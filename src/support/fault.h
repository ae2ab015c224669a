// Turns what the system refuses (memory, threads, files, streams) into messages in our words, for every public
// interface.
#pragma once

#include <cstddef>
#include <new>
#include <string>
#include <string_view>

#include "support/error.h"

namespace cairn {

/// A refused allocation that knows how many bytes were asked for.
struct NoMemory : std::bad_alloc {
  explicit NoMemory(size_t asked) : bytes(asked) {}
  const char* what() const noexcept override { return "memory ran out"; }
  size_t bytes;
};

/// The meaning of errno `code` and the remedy: "No space left on device; free some space or name another folder".
std::string reason(int code);

/// The exception being handled as an Error: an Error unchanged, an exception of the standard library (no memory, no
/// thread, a file or stream that fails) with a message in our words. Call it in a catch block.
Error current_fault();

/// The out_of_memory Error for an allocation of so many bytes.
Error memory_fault(size_t bytes);

/// Notes once that the system, which said `code`, let fewer threads start than were wanted.
void note_fewer_threads(size_t started, int wanted, int code);

/// Writes a line to standard error; failures are ignored.
void note(std::string_view line) noexcept;

/// The same, once per process for each distinct `line`.
void note_once(std::string_view line) noexcept;

}  // namespace cairn
