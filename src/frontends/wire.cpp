#include "frontends/wire.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <protozero/exception.hpp>

#include "support/fault.h"
#include "support/files.h"
#include "support/pages.h"

namespace cairn {

std::shared_ptr<ModelBytes> ModelBytes::open(const std::string& path) {
  // O_NONBLOCK: a FIFO must be refused, not waited for.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (const int code = errno; descriptor < 0)
    fail(code == ENOENT ? ErrorKind::not_found : ErrorKind::io, path, "cannot be opened: {}{}", reason(code),
         code == ENOENT ? near_file(path) : "");
  return from_descriptor(path, descriptor);
}

std::shared_ptr<ModelBytes> ModelBytes::from_descriptor(std::string name, int descriptor) {
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } closer{descriptor};
  struct stat status;
  if (fstat(descriptor, &status) != 0) fail(ErrorKind::io, name, "cannot be examined: {}", reason(errno));
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::io, name, "is not a regular file");
  std::shared_ptr<ModelBytes> model(new ModelBytes(std::move(name)));
  size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) return model;
  void* start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (start == MAP_FAILED) fail(ErrorKind::io, model->name_, "cannot be mapped: {}", reason(errno));
  model->bytes_ = {static_cast<const char*>(start), size};
  model->mapped_ = true;
  remember_mapping(model->bytes_, model->name_);
  return model;
}

std::shared_ptr<ModelBytes> ModelBytes::from_memory(std::string name, std::string bytes) {
  std::shared_ptr<ModelBytes> model(new ModelBytes(std::move(name)));
  model->bytes_ = model->texts_.emplace_back(std::move(bytes));
  return model;
}

ModelBytes::~ModelBytes() {
  if (!mapped_) return;
  forget_mapping(bytes_);
  munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void ModelBytes::charge(uint64_t bytes) {
  constexpr uint64_t kSlack = uint64_t{160} << 20;
  uint64_t limit = bytes_.size() + kSlack;
  if (bytes > limit - charged_)
    fail(ErrorKind::out_of_memory, name_, "would take more than {} MiB of memory for a file of {} bytes", limit >> 20,
         bytes_.size());
  charged_ += bytes;
}

std::string_view ModelBytes::keep(std::string text) {
  charge(text.size() + sizeof(text));
  return texts_.emplace_back(std::move(text));
}

Wire::Wire(std::string_view bytes, const char* message, ModelBytes& model, int depth)
    : reader_(bytes.data(), bytes.size()), message_(message), model_(model), depth_(depth) {
  if (depth > kMaxNesting) fail_text(fmt::format("is nested deeper than {} messages", kMaxNesting));
}

void Wire::fail_text(const std::string& text) const {
  cairn::fail(ErrorKind::invalid_model, model_.name(), "{} {}", message_, text);
}

/// What is wrong with the bytes, of an exception that says it in terms of a reader.
const char* meaning(const protozero::exception& error) {
  if (dynamic_cast<const protozero::end_of_buffer_exception*>(&error)) return "it is longer than what is left";
  if (dynamic_cast<const protozero::varint_too_long_exception*>(&error)) return "a number has more than ten bytes";
  return "what follows is no field";
}

template <class Read>
auto Wire::guarded(Read&& read) {
  try {
    return read();
  } catch (const protozero::exception& error) {
    uint32_t tag = reader_.tag();
    fail_text(fmt::format("is damaged {}: {}", tag == 0 ? "at its start" : fmt::format("at or after field {}", tag),
                          meaning(error)));
  }
}

bool Wire::next() {
  return guarded([&] { return reader_.next(); });
}

void Wire::skip() {
  guarded([&] { reader_.skip(); });
}

void Wire::need(protozero::pbf_wire_type type) const {
  if (reader_.wire_type() != type)
    fail_text(fmt::format("field {} has wire type {}, expected {}", reader_.tag(),
                          static_cast<int>(reader_.wire_type()), static_cast<int>(type)));
}

int64_t Wire::integer() {
  need(protozero::pbf_wire_type::varint);
  return guarded([&] { return reader_.get_int64(); });
}

float Wire::real32() {
  need(protozero::pbf_wire_type::fixed32);
  return guarded([&] { return reader_.get_float(); });
}

uint32_t Wire::fixed32() {
  need(protozero::pbf_wire_type::fixed32);
  return guarded([&] { return reader_.get_fixed32(); });
}

uint64_t Wire::fixed64() {
  need(protozero::pbf_wire_type::fixed64);
  return guarded([&] { return reader_.get_fixed64(); });
}

std::string_view Wire::bytes() {
  need(protozero::pbf_wire_type::length_delimited);
  auto view = guarded([&] { return reader_.get_view(); });
  return {view.data(), view.size()};
}

void Wire::append_integers(std::vector<int64_t>& to) {
  if (reader_.wire_type() == protozero::pbf_wire_type::varint) return to.push_back(integer());
  need(protozero::pbf_wire_type::length_delimited);
  guarded([&] {
    for (int64_t value : reader_.get_packed_int64()) {
      if ((to.size() & 1023) == 0) model_.charge(1024 * sizeof(value));
      to.push_back(value);
    }
  });
}

void Wire::append_reals(std::vector<float>& to) {
  if (reader_.wire_type() == protozero::pbf_wire_type::fixed32) return to.push_back(real32());
  std::string_view packed = bytes();
  if (packed.size() % sizeof(float) != 0) fail("field {} has {} bytes, not a multiple of 4", field(), packed.size());
  model_.charge(packed.size());
  size_t start = to.size();
  to.resize(start + packed.size() / sizeof(float));
  if (!packed.empty()) std::memcpy(to.data() + start, packed.data(), packed.size());
}

void Wire::append_fixed(std::string& to) {
  std::string_view data;
  if (reader_.wire_type() == protozero::pbf_wire_type::length_delimited) {
    data = bytes();
  } else {
    const char* end = reader_.data().data();
    skip();
    size_t size = reader_.data().data() - end;
    data = {end, size};
  }
  model_.charge(2 * data.size());
  to += data;
}

}  // namespace cairn
