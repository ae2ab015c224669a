#include "frontends/tensorflow/table.h"

#include <snappy.h>

#include "support/crc32c.h"

namespace cairn::tensorflow {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr uint64_t kMagic = 0xdb4775248b80fb57;
constexpr size_t kTrailerBytes = 5;  // compression, checksum

template <class T>
T load(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// Takes varints and texts off the front of a block.
class Cursor {
 public:
  Cursor(std::string_view rest, const ModelBytes& model) : rest_(rest), model_(model) {}
  bool done() const { return rest_.empty(); }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      uint8_t byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail(ErrorKind::invalid_model, model_.name(), "table block has a damaged number");
  }
  std::string_view text(uint64_t size) {
    if (size > rest_.size())
      fail(ErrorKind::invalid_model, model_.name(), "table block entry has {} bytes, {} are left", size, rest_.size());
    std::string_view result = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return result;
  }

 private:
  std::string_view rest_;
  const ModelBytes& model_;
};

struct Handle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

Handle read_handle(std::string_view bytes, const ModelBytes& model) {
  Cursor cursor(bytes, model);
  Handle handle;
  handle.offset = cursor.varint();
  handle.size = cursor.varint();
  return handle;
}

/// The block's bytes after its checksum held; `buffer` receives them when compressed.
std::string_view read_block(Handle handle, ModelBytes& model, std::string& buffer) {
  std::string_view file = model.bytes();
  if (handle.offset > file.size() || handle.size > file.size() - handle.offset ||
      file.size() - handle.offset - handle.size < kTrailerBytes)
    fail(ErrorKind::invalid_model, model.name(), "table block at {} of {} bytes lies outside the file of {} bytes",
         handle.offset, handle.size, file.size());
  std::string_view block = file.substr(handle.offset, handle.size + 1);
  uint32_t stored = unmask_crc32c(load<uint32_t>(file, handle.offset + handle.size + 1));
  if (stored != crc32c(block))
    fail(ErrorKind::invalid_model, model.name(), "table block at {} is damaged: its checksum does not match",
         handle.offset);
  char compression = block.back();
  block.remove_suffix(1);
  if (compression == 0) return block;
  if (compression != 1)
    fail(ErrorKind::invalid_model, model.name(), "table block at {} has unknown compression {}", handle.offset,
         static_cast<int>(compression));
  size_t size = 0;
  if (!snappy::GetUncompressedLength(block.data(), block.size(), &size))
    fail(ErrorKind::invalid_model, model.name(), "table block at {} cannot be decompressed", handle.offset);
  model.charge(size);
  buffer.resize(size);
  if (!snappy::RawUncompress(block.data(), block.size(), buffer.data()))
    fail(ErrorKind::invalid_model, model.name(), "table block at {} cannot be decompressed", handle.offset);
  return buffer;
}

void read_entries(std::string_view block, ModelBytes& model,
                  FunctionRef<void(std::string_view key, std::string_view value)> visit) {
  uint64_t restarts = block.size() >= 4 ? load<uint32_t>(block, block.size() - 4) : UINT64_MAX;
  if (restarts > block.size() / 4 - 1)
    fail(ErrorKind::invalid_model, model.name(), "table block of {} bytes has no room for its restart points",
         block.size());
  Cursor cursor(block.substr(0, block.size() - 4 * (restarts + 1)), model);
  std::string key;
  while (!cursor.done()) {
    uint64_t shared = cursor.varint();
    uint64_t own = cursor.varint();
    uint64_t value_bytes = cursor.varint();
    if (shared > key.size())
      fail(ErrorKind::invalid_model, model.name(), "table key shares {} bytes with one of {}", shared, key.size());
    key.resize(shared);
    key += cursor.text(own);
    visit(key, cursor.text(value_bytes));
  }
}

}  // namespace

void read_table(ModelBytes& model, FunctionRef<void(std::string_view key, std::string_view value)> visit) {
  std::string_view file = model.bytes();
  if (file.size() < kFooterBytes || load<uint64_t>(file, file.size() - 8) != kMagic)
    fail(ErrorKind::invalid_model, model.name(), "is not a checkpoint index: the mark at its end is missing");
  Cursor footer(file.substr(file.size() - kFooterBytes), model);
  for (int i = 0; i < 2; ++i) footer.varint();  // where the meta block is: nothing of use
  Handle index;
  index.offset = footer.varint();
  index.size = footer.varint();
  std::string index_buffer, buffer;
  read_entries(read_block(index, model, index_buffer), model, [&](std::string_view, std::string_view handle) {
    read_entries(read_block(read_handle(handle, model), model, buffer), model, visit);
  });
}

}  // namespace cairn::tensorflow
