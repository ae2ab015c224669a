#include "formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "support/error.h"
#include "support/files.h"

namespace cairn {

namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr size_t kEndSize = 22, kCentralSize = 46, kLocalSize = 30;
constexpr uint64_t kMostDeflation = 1032;  // no deflated byte makes more

/// Little-endian number of `size` bytes at `at`; the archive's fault when it lies outside.
uint64_t number(std::string_view bytes, uint64_t at, size_t size, const std::string& path) {
  if (at > bytes.size() || bytes.size() - at < size) fail(ErrorKind::io, path, "is a damaged zip archive");
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

std::string little(uint64_t value, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

uint32_t checksum(std::string_view bytes) {
  uLong crc = crc32_z(0, nullptr, 0);
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// Where the central directory starts and how many members it has.
std::pair<uint64_t, uint64_t> find_directory(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kEndSize) fail(ErrorKind::io, path, "is not a zip archive");
  size_t lowest = bytes.size() - std::min(bytes.size(), kEndSize + 0xffff);
  for (size_t at = bytes.size() - kEndSize + 1; at-- > lowest;) {
    if (number(bytes, at, 4, path) != kEnd) continue;
    uint64_t members = number(bytes, at + 10, 2, path), start = number(bytes, at + 16, 4, path);
    if ((members == 0xffff || start == 0xffffffff) && at >= 20 && number(bytes, at - 20, 4, path) == kLocator64) {
      uint64_t wide = number(bytes, at - 12, 8, path);
      if (number(bytes, wide, 4, path) != kEnd64) fail(ErrorKind::io, path, "is a damaged zip archive");
      return {number(bytes, wide + 48, 8, path), number(bytes, wide + 32, 8, path)};
    }
    return {start, members};
  }
  fail(ErrorKind::io, path, "is not a zip archive, or is cut off");
}

/// Replaces sizes of 0xffffffff by those of the zip64 field, in its fixed order.
void read_wide_sizes(std::string_view extra, std::array<uint64_t*, 3> values, const std::string& path) {
  for (size_t at = 0; at + 4 <= extra.size();) {
    uint64_t id = number(extra, at, 2, path), size = number(extra, at + 2, 2, path);
    at += 4;
    if (id == 1) {
      std::string_view field = extra.substr(at, size);
      size_t next = 0;
      for (uint64_t* value : values)
        if (*value == 0xffffffff) *value = number(field, next, 8, path), next += 8;
      return;
    }
    at += size;
  }
}

std::string inflated(const ZipMember& member, std::string_view packed, const std::string& where) {
  if (member.size > (packed.size() + 16) * kMostDeflation)
    fail(ErrorKind::io, where, "claims {} bytes, more than {} deflated bytes can give", member.size, packed.size());
  std::string plain(member.size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) fail(ErrorKind::out_of_memory, where, "inflating it needs more memory");
  // zlib counts in 32 bits: feed both sides in pieces.
  constexpr size_t kPiece = size_t{1} << 30;
  size_t in = 0, out = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    size_t give = std::min(kPiece, packed.size() - in), room = std::min(kPiece, plain.size() - out);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in));
    stream.next_out = reinterpret_cast<Bytef*>(plain.data() + out);
    stream.avail_in = static_cast<uInt>(give), stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in, out += room - stream.avail_out;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || out != plain.size())
    fail(ErrorKind::io, where, "cannot be inflated: its data is damaged");
  return plain;
}

}  // namespace

ZipArchive ZipArchive::open(const std::string& path) {
  auto file = MappedFile::open(path);
  return of(file->bytes(), file, path);
}

ZipArchive ZipArchive::of(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& name) {
  ZipArchive archive;
  archive.name_ = name;
  archive.bytes_ = bytes;
  archive.owner_ = std::move(owner);
  auto damaged = [&]() { fail(ErrorKind::io, name, "is a damaged zip archive"); };
  auto [at, count] = find_directory(bytes, name);
  if (count > bytes.size() / kCentralSize) damaged();
  for (uint64_t i = 0; i < count; ++i) {
    auto field = [&, base = at](size_t offset, size_t size) { return number(bytes, base + offset, size, name); };
    if (field(0, 4) != kCentral) damaged();
    if (field(8, 2) & 1) fail(ErrorKind::unsupported, name, "is an encrypted archive");
    ZipMember member;
    member.method = static_cast<int>(field(10, 2));
    member.crc = static_cast<uint32_t>(field(16, 4));
    member.packed = field(20, 4), member.size = field(24, 4), member.offset = field(42, 4);
    const size_t title = field(28, 2), extra = field(30, 2), comment = field(32, 2);
    field(kCentralSize, 0);
    if (bytes.size() - at - kCentralSize < title + extra + comment) damaged();
    member.name = bytes.substr(at + kCentralSize, title);
    read_wide_sizes(bytes.substr(at + kCentralSize + title, extra), {&member.size, &member.packed, &member.offset},
                    name);
    at += kCentralSize + title + extra + comment;
    archive.members_.push_back(std::move(member));
  }
  return archive;
}

const ZipMember* ZipArchive::find(std::string_view name) const {
  auto found =
      std::find_if(members_.begin(), members_.end(), [&](const ZipMember& member) { return member.name == name; });
  return found == members_.end() ? nullptr : &*found;
}

ZipArchive::Content ZipArchive::content(const ZipMember& member) const {
  const std::string where = name_ + ":" + member.name;
  if (number(bytes_, member.offset, 4, name_) != kLocal) fail(ErrorKind::io, name_, "is a damaged zip archive");
  const uint64_t start = member.offset + kLocalSize + number(bytes_, member.offset + 26, 2, name_) +
                         number(bytes_, member.offset + 28, 2, name_);
  if (start > bytes_.size() || bytes_.size() - start < member.packed)
    fail(ErrorKind::io, name_, "is cut off in {}", member.name);
  Content content{bytes_.substr(start, member.packed), owner_};
  if (member.method == 8) {
    auto plain = std::make_shared<std::string>(inflated(member, content.bytes, where));
    content = {*plain, plain};
  } else if (member.method != 0) {
    fail(ErrorKind::unsupported, where, "is packed by zip method {}; stored and deflated are read", member.method);
  }
  if (content.bytes.size() != member.size || checksum(content.bytes) != member.crc)
    fail(ErrorKind::io, where, "is damaged: its checksum does not hold");
  return content;
}

std::string ZipWriter::head(const std::string& name, std::string_view bytes) {
  // The version needed, names in UTF-8, stored, of 1980-01-01: the part that both headers share.
  const std::string shared = little(20, 2) + little(0x800, 2) + little(0, 2) + little(0, 2) + little(0x21, 2) +
                             little(checksum(bytes), 4) + little(bytes.size(), 4) + little(bytes.size(), 4) +
                             little(name.size(), 2);
  std::string local = little(kLocal, 4) + shared + little(0, 2) + name;
  directory_ += little(kCentral, 4) + little(20, 2) + shared + std::string(12, '\0') + little(at_, 4) + name;
  at_ += local.size() + bytes.size();
  if (at_ > 0xffffffff || ++members_ > 0xfffe)
    fail(ErrorKind::invalid_argument, path_, "would be larger than 4 GiB or hold more than 65534 arrays");
  return local;
}

std::string ZipWriter::finish() {
  return directory_ + little(kEnd, 4) + little(0, 4) + little(members_, 2) + little(members_, 2) +
         little(directory_.size(), 4) + little(at_, 4) + little(0, 2);
}

}  // namespace cairn
