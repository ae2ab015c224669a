#include "comm/fabric.h"

#include <algorithm>
#include <cstring>

#include "support/stop.h"

namespace cairn::comm {

void Turn::look(int other, Clock::time_point since) {
  constexpr auto kInFlight = std::chrono::milliseconds(500);  // of what a rank sent before it left
  member_.check();
  stop_point();
  const auto now = Clock::now();
  if (member_.left(party_.ranks[static_cast<size_t>(other)])) left_since_ = std::min(left_since_, now);
  const bool in_vain = left_since_ != Clock::time_point::max() && now - left_since_ > kInFlight;
  const double seconds = std::chrono::duration<double>(now - since).count();
  if (in_vain || seconds > timeout_) member_.overdue(request, asked_, seconds);
}

void Turn::disagree() { member_.overdue(request, asked_, 0); }

void Turn::broken(int other, const std::string& why) {
  const int rank = party_.ranks[static_cast<size_t>(other)];
  member_.await_failure(2);
  member_.check();
  fault(fmt::format("the connection to rank {} broke in {}: {}", rank, request.text(), why));
}

void Turn::fault(const std::string& text) {
  member_.fault(text);
  member_.check();
  std::abort();  // check() has thrown
}

Elements::Elements(const Request& request, const void* one, std::span<const void* const> several)
    : width_(request.dtype.size()), one_{static_cast<char*>(const_cast<void*>(one)), 0, request.count()} {
  int64_t first = 0;
  for (size_t i = 0; i < several.size(); ++i) {
    several_.push_back({static_cast<char*>(const_cast<void*>(several[i])), first, request.counts[i]});
    first += request.counts[i];
  }
}

Elements Elements::operand(const Request& request) { return {request, request.input, request.inputs}; }
Elements Elements::result(const Request& request) {
  return {request, request.output, {request.outputs.data(), request.outputs.size()}};
}

// The piece that holds the element, and those behind it.
std::span<const Elements::Piece> Elements::from(int64_t first) const {
  const std::span<const Piece> all = pieces();
  const auto found = std::upper_bound(all.begin(), all.end(), first,
                                      [](int64_t at, const Piece& piece) { return at < piece.first + piece.count; });
  return {found, all.end()};
}

void Elements::read(int64_t first, int64_t count, char* to) const {
  each(first, count, [&](const char* from, size_t bytes) { std::memcpy(to, from, bytes), to += bytes; });
}
void Elements::write(int64_t first, int64_t count, const char* from) const {
  each(first, count, [&](char* to, size_t bytes) { std::memcpy(to, from, bytes), from += bytes; });
}
void Elements::clear() const {
  for (const Piece& piece : pieces()) std::memset(piece.data, 0, static_cast<size_t>(piece.count) * width_);
}

char* Elements::place(int64_t first) const {
  const Piece& piece = from(first)[0];
  return at(piece.data, first - piece.first, width_);
}

Part part_of(int64_t count, int parts, int i) {
  constexpr int64_t kElements = 64;
  const int64_t groups = (count + kElements - 1) / kElements;
  const int64_t first = std::min(count, groups * i / parts * kElements);
  return {first, std::min(count, groups * (i + 1) / parts * kElements) - first};
}

}  // namespace cairn::comm
