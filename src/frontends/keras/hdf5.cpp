#include "frontends/keras/hdf5.h"

#include <algorithm>

namespace cairn::hdf5 {
namespace {

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
constexpr uint64_t kNowhere = ~uint64_t{0};
constexpr size_t kMostRank = 32;
constexpr size_t kMostParts = 4096;  // pieces of one object, nodes of one group
constexpr int kMostLevels = 16;

enum MessageType : uint32_t {
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kLink = 0x06,
  kLayout = 0x08,
  kFilters = 0x0b,
  kAttribute = 0x0c,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
  kAttributeInfo = 0x15,
};
enum TypeClass : uint8_t { kInteger = 0, kReal = 1, kText = 3, kEnumeration = 8, kVariableLength = 9 };

size_t padded(size_t size) { return (size + 7) & ~size_t{7}; }

}  // namespace

bool looks_like_hdf5(std::string_view bytes) { return bytes.starts_with(kSignature); }

/// Bytes read one after the other, little-endian.
class File::Cursor {
 public:
  Cursor(const File& file, std::string_view bytes, const char* what) : file_(file), bytes_(bytes), what_(what) {}

  std::string_view take(uint64_t size) {
    if (size > bytes_.size()) file_.damaged(fmt::format("{} ends too early", what_));
    std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  uint64_t number(size_t size) {
    std::string_view from = take(size);
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(from[i]);
    return value;
  }
  uint8_t byte() { return static_cast<uint8_t>(number(1)); }
  void expect(std::string_view signature) {
    if (take(signature.size()) != signature) file_.damaged(fmt::format("{} has no '{}'", what_, signature));
  }
  /// Dims of a dataspace message.
  std::vector<int64_t> dims() {
    const uint8_t version = byte(), rank = byte(), flags = byte();
    if (version != 1 && version != 2) file_.damaged(fmt::format("a dataspace has version {}", version));
    take(version == 1 ? 5 : 1);
    (void)flags;
    if (rank > kMostRank) file_.damaged(fmt::format("a dataspace has {} dims", rank));
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < rank; ++i) {
      sizes.push_back(static_cast<int64_t>(number(8)));
      if (sizes.back() < 0) file_.damaged("a dim is negative");
    }
    return sizes;
  }
  std::string_view rest() const { return bytes_; }

 private:
  const File& file_;
  std::string_view bytes_;
  const char* what_;
};

void File::damaged(std::string_view what) const { fail(ErrorKind::invalid_model, model_->name(), "HDF5: {}", what); }

File::Cursor File::at(uint64_t offset, const char* what) const {
  if (offset >= bytes_.size()) damaged(fmt::format("{} lies behind the end of the file", what));
  return Cursor(*this, bytes_.substr(offset), what);
}

File::File(std::shared_ptr<ModelBytes> model, std::string_view bytes) : model_(std::move(model)), bytes_(bytes) {
  Cursor head = at(0, "the superblock");
  head.expect(kSignature);
  const uint8_t version = head.byte();
  if (version > 3) fail(ErrorKind::unsupported, model_->name(), "HDF5: superblock of version {}", version);
  if (version <= 1) head.take(4);
  const uint8_t offsets = head.byte(), lengths = head.byte();
  if (offsets != 8 || lengths != 8)
    fail(ErrorKind::unsupported, model_->name(), "HDF5: addresses of {} and {} bytes, expected 8", offsets, lengths);
  head.take(version == 0 ? 9 : version == 1 ? 13 : 1);
  if (head.number(8) != 0) fail(ErrorKind::unsupported, model_->name(), "HDF5: the file does not start at its start");
  head.take(version <= 1 ? 24 + 8 : 16);  // old: also the offset of the root's name
  root_ = head.number(8);
}

void File::read_version1(uint64_t address, std::vector<Message>& to) const {
  Cursor head = at(address, "an object");
  head.take(2);  // version, reserved
  size_t left = head.number(2);
  head.take(4);
  const uint64_t size = head.number(4);
  head.take(4);
  std::vector<std::string_view> parts{head.take(size)};
  for (size_t i = 0; i < parts.size(); ++i) {
    Cursor part(*this, parts[i], "an object");
    while (left > 0 && part.rest().size() >= 8) {
      --left;
      const auto type = static_cast<uint32_t>(part.number(2));
      const uint64_t length = part.number(2);
      part.take(4);
      Cursor data(*this, part.take(length), "a message");
      to.push_back({type, data.rest()});
      if (type != kContinuation) continue;
      const uint64_t offset = data.number(8), bytes = data.number(8);
      if (parts.size() >= kMostParts) damaged("an object has too many parts");
      parts.push_back(at(offset, "a part of an object").take(bytes));
    }
  }
}

void File::read_version2(uint64_t address, std::vector<Message>& to) const {
  constexpr size_t kChecksum = 4;
  Cursor head = at(address, "an object");
  head.expect("OHDR");
  head.byte();
  const uint8_t flags = head.byte();
  if (flags & 0x20) head.take(16);
  if (flags & 0x10) head.take(4);
  std::vector<std::string_view> parts{head.take(head.number(size_t{1} << (flags & 3)))};
  for (size_t i = 0; i < parts.size(); ++i) {
    Cursor part(*this, parts[i], "an object");
    const size_t start = flags & 4 ? 6 : 4;
    while (part.rest().size() >= start) {
      const auto type = static_cast<uint32_t>(part.number(1));
      const uint64_t length = part.number(2);
      part.take(start - 3);
      Cursor data(*this, part.take(length), "a message");
      to.push_back({type, data.rest()});
      if (type != kContinuation) continue;
      const uint64_t offset = data.number(8), bytes = data.number(8);
      if (parts.size() >= kMostParts || bytes < 8) damaged("an object has parts that cannot be");
      Cursor next(*this, at(offset, "a part of an object").take(bytes - kChecksum), "a part of an object");
      next.expect("OCHK");
      parts.push_back(next.rest());
    }
  }
}

std::vector<File::Message> File::messages(uint64_t address) const {
  std::vector<Message> all;
  const uint8_t first = at(address, "an object").byte();
  if (first == 1)
    read_version1(address, all);
  else
    read_version2(address, all);
  model_->charge(all.size() * sizeof(Message));
  return all;
}

/// The names of a group's links.
std::string_view File::heap(uint64_t address) const {
  Cursor head = at(address, "a heap");
  head.expect("HEAP");
  head.take(4);
  const uint64_t size = head.number(8);
  head.take(8);
  return at(head.number(8), "a heap").take(size);
}

void File::read_tree(uint64_t address, std::string_view names, Links& to, int level, size_t& nodes) const {
  if (level > kMostLevels || ++nodes > kMostParts) damaged("a group has too many parts");
  Cursor node = at(address, "a group");
  if (node.rest().starts_with("SNOD")) {
    node.take(6);
    for (uint64_t count = node.number(2); count > 0; --count) {
      const uint64_t name = node.number(8), object = node.number(8);
      node.take(24);
      if (name >= names.size()) damaged("a name lies outside its heap");
      std::string_view text = names.substr(name);
      text = text.substr(0, text.find('\0'));
      model_->charge(64 + 2 * text.size());
      to.emplace(text, object);
    }
    return;
  }
  node.expect("TREE");
  node.take(2);
  const uint64_t count = node.number(2);
  node.take(16);
  for (uint64_t i = 0; i < count; ++i) {
    node.take(8);  // key
    read_tree(node.number(8), names, to, level + 1, nodes);
  }
}

const File::Links& File::links(uint64_t address) const {
  auto [known, fresh] = links_.try_emplace(address);
  Links& found = known->second;
  if (!fresh) return found;
  for (const Message& message : messages(address)) {
    Cursor data(*this, message.data, "a link");
    if (message.type == kSymbolTable) {
      const uint64_t tree = data.number(8), names = data.number(8);
      size_t nodes = 0;
      read_tree(tree, heap(names), found, 0, nodes);
    } else if (message.type == kLink) {
      data.byte();
      const uint8_t flags = data.byte(), kind = flags & 8 ? data.byte() : uint8_t{0};
      if (flags & 4) data.take(8);
      if (flags & 16) data.byte();
      std::string_view name = data.take(data.number(size_t{1} << (flags & 3)));
      if (kind != 0) fail(ErrorKind::unsupported, model_->name(), "HDF5: '{}' is a link to elsewhere", printable(name));
      found.emplace(name, data.number(8));
    } else if (message.type == kLinkInfo) {
      data.byte();
      if (data.byte() & 1) data.take(8);
      if (data.number(8) != kNowhere)
        fail(ErrorKind::unsupported, model_->name(), "HDF5: a group in dense storage; save it with h5py's default");
    }
  }
  return found;
}

std::optional<uint64_t> File::find(const std::string& path) const {
  uint64_t object = root_;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    const Links& all = links(object);
    auto found = all.find(name);
    if (found == all.end()) return std::nullopt;
    object = found->second;
  }
  return object;
}

std::vector<std::string> File::children(const std::string& path) const {
  std::vector<std::string> names;
  if (auto object = find(path))
    for (const auto& [name, address] : links(*object)) names.push_back(name);
  return names;
}

std::string File::from_global_heap(uint64_t collection, uint32_t index) const {
  Cursor head = at(collection, "a heap of texts");
  head.expect("GCOL");
  head.take(4);
  const uint64_t size = head.number(8);
  if (size < 16) damaged("a heap of texts is too small");
  Cursor objects(*this, head.take(size - 16), "a heap of texts");
  while (objects.rest().size() >= 16) {
    const uint64_t number = objects.number(2);
    objects.take(6);
    const uint64_t length = objects.number(8);
    if (number == 0) break;
    std::string_view data = objects.take(length);
    if (number == index) return std::string(data);
    objects.take(std::min(padded(length) - length, objects.rest().size()));
  }
  damaged("a text is not in its heap");
}

std::vector<std::string> File::read_texts(Cursor attribute) const {
  const uint8_t version = attribute.byte();
  if (version < 1 || version > 3) damaged(fmt::format("an attribute has version {}", version));
  const uint8_t flags = attribute.byte();
  if (version > 1 && (flags & 3) != 0)
    fail(ErrorKind::unsupported, model_->name(), "HDF5: an attribute shares its type with others");
  const uint64_t name = attribute.number(2), type = attribute.number(2), space = attribute.number(2);
  if (version == 3) attribute.byte();
  auto part = [&](uint64_t size) { return attribute.take(version == 1 ? padded(size) : size); };
  part(name);
  Cursor datatype(*this, part(type), "an attribute's type");
  const std::vector<int64_t> dims = Cursor(*this, part(space), "an attribute's dims").dims();
  const auto kind = static_cast<uint8_t>(datatype.byte() & 15);
  const uint64_t bits = datatype.number(3), size = datatype.number(4);
  const bool variable = kind == kVariableLength && (bits & 15) == 1;
  if (kind != kText && !variable) fail(ErrorKind::unsupported, model_->name(), "HDF5: an attribute is no text");
  const std::optional<int64_t> count = element_count(dims);
  if (!count || size == 0 || static_cast<uint64_t>(*count) > attribute.rest().size() / size)
    damaged("an attribute has more elements than bytes");
  std::vector<std::string> texts;
  for (int64_t i = 0; i < *count; ++i) {
    Cursor element(*this, attribute.take(size), "an attribute");
    std::string text;
    if (variable) {
      const uint64_t length = element.number(4), heap = element.number(8);
      text = from_global_heap(heap, static_cast<uint32_t>(element.number(4)));
      text.resize(std::min<size_t>(text.size(), length));
    } else {
      text = element.rest();
    }
    text.resize(std::min(text.find('\0'), text.size()));
    model_->charge(sizeof(text) + text.size());
    texts.push_back(std::move(text));
  }
  return texts;
}

std::optional<std::vector<std::string>> File::texts(const std::string& path, std::string_view attribute) const {
  auto object = find(path);
  if (!object) return std::nullopt;
  for (const Message& message : messages(*object)) {
    Cursor data(*this, message.data, "an attribute");
    if (message.type == kAttributeInfo) {
      const uint8_t flags = (data.byte(), data.byte());
      if (flags & 1) data.take(2);
      if (data.number(8) != kNowhere)
        fail(ErrorKind::unsupported, model_->name(), "HDF5: attributes in dense storage; save with h5py's default");
    }
    if (message.type != kAttribute) continue;
    const uint8_t version = data.byte();
    data.byte();
    const uint64_t size = data.number(2);
    data.take(version == 3 ? 5 : 4);
    std::string_view name = data.take(size);
    if (name.substr(0, name.find('\0')) == attribute) return read_texts(Cursor(*this, message.data, "an attribute"));
  }
  return std::nullopt;
}

std::optional<std::string> File::text(const std::string& path, std::string_view attribute) const {
  auto all = texts(path, attribute);
  if (!all) return std::nullopt;
  if (all->size() != 1) damaged(fmt::format("attribute {} has {} texts, expected 1", attribute, all->size()));
  return all->front();
}

namespace {

DType element_type(uint8_t kind, uint64_t bits, uint64_t size, const std::string& where) {
  const bool little = (bits & 1) == 0;
  if (little && kind == kReal && size == 2) return kF16;
  if (little && kind == kReal && size == 4) return kF32;
  if (little && kind == kReal && size == 8) return kF64;
  const bool is_signed = (bits & 8) != 0;
  if (little && kind == kInteger) {
    if (size == 1) return is_signed ? kI8 : kU8;
    if (size == 2) return is_signed ? kI16 : kU16;
    if (size == 4) return is_signed ? kI32 : kU32;
    if (size == 8) return is_signed ? kI64 : kU64;
  }
  fail(ErrorKind::unsupported, where, "HDF5: elements of class {} with {} bytes are not supported", kind, size);
}

}  // namespace

Tensor File::dataset(const std::string& path) const {
  const std::string where = fmt::format("{}: {}", model_->name(), printable(path));
  auto object = find(path);
  if (!object) fail(ErrorKind::invalid_model, where, "HDF5: there is no such dataset");
  std::optional<std::vector<int64_t>> dims;
  std::optional<DType> dtype;
  std::optional<std::string_view> data;
  for (const Message& message : messages(*object)) {
    Cursor from(*this, message.data, "a dataset");
    if (message.type == kDataspace) {
      dims = from.dims();
    } else if (message.type == kDatatype) {
      const auto kind = static_cast<uint8_t>(from.byte() & 15);
      const uint64_t bits = from.number(3);
      dtype = element_type(kind, bits, from.number(4), where);
    } else if (message.type == kFilters) {
      fail(ErrorKind::unsupported, where, "HDF5: compressed datasets are not supported");
    } else if (message.type == kLayout) {
      const uint8_t version = from.byte(), layout = from.byte();
      if ((version != 3 && version != 4) || layout > 1)
        fail(ErrorKind::unsupported, where, "HDF5: only dense datasets are supported, this one is in chunks");
      if (layout == 0) {
        data = from.take(from.number(2));
      } else {
        const uint64_t address = from.number(8), size = from.number(8);
        data = address == kNowhere || size == 0 ? std::string_view() : at(address, "a dataset").take(size);
      }
    }
  }
  if (!dims || !dtype || !data) fail(ErrorKind::invalid_model, where, "HDF5: is no dataset");
  const std::optional<int64_t> count = element_count(*dims);
  if (!count || static_cast<uint64_t>(*count) > data->size() / dtype->size())
    fail(ErrorKind::invalid_model, where, "HDF5: has more elements than bytes");
  if (*count > 0 && reinterpret_cast<uintptr_t>(data->data()) % dtype->size() == 0)
    return Tensor::view(*dtype, *dims, data->data(), model_);
  model_->charge(storage_bytes(*dtype, *count));
  Tensor copy = Tensor::uninitialized(*dtype, *dims);
  if (*count > 0) std::memcpy(copy.mutable_data(), data->data(), copy.bytes());
  return copy;
}

}  // namespace cairn::hdf5
