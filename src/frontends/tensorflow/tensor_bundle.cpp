#include "frontends/tensorflow/tensor_bundle.h"

#include <algorithm>
#include <charconv>

#include "frontends/tensorflow/fields.h"
#include "frontends/tensorflow/table.h"
#include "support/crc32c.h"

namespace cairn::tensorflow {
namespace {

TensorBundle::Slice read_slice(Wire wire) {
  TensorBundle::Slice slice;
  while (wire.next()) {
    if (wire.field() != field::tensor_slice::extent) {
      wire.skip();
      continue;
    }
    TensorBundle::Extent extent;
    Wire fields = wire.message("TensorSliceProto.Extent");
    while (fields.next()) {
      switch (fields.field()) {
        case field::extent::start: extent.start = fields.integer(); break;
        case field::extent::length: extent.length = fields.integer(); break;
        default: fields.skip();
      }
    }
    wire.model().charge(2 * sizeof(extent));
    slice.push_back(extent);
  }
  return slice;
}

TensorBundle::Entry read_entry(std::string_view bytes, ModelBytes& model) {
  TensorBundle::Entry entry;
  Wire wire(bytes, "BundleEntryProto", model);
  while (wire.next()) {
    switch (wire.field()) {
      case field::bundle_entry::dtype: entry.dtype = static_cast<DataType>(wire.integer()); break;
      case field::bundle_entry::shape: entry.shape = read_shape(wire.message("TensorShapeProto")); break;
      case field::bundle_entry::shard_id: entry.shard = wire.integer(); break;
      case field::bundle_entry::offset: entry.offset = wire.integer(); break;
      case field::bundle_entry::size: entry.size = wire.integer(); break;
      case field::bundle_entry::crc32c: entry.checksum = wire.fixed32(); break;
      case field::bundle_entry::slice:
        model.charge(2 * sizeof(TensorBundle::Slice));
        entry.slices.push_back(read_slice(wire.message("TensorSliceProto")));
        break;
      default: wire.skip();
    }
  }
  return entry;
}

int64_t read_header(std::string_view bytes, ModelBytes& model) {
  int64_t shards = 1;
  Wire wire(bytes, "BundleHeaderProto", model);
  while (wire.next()) {
    switch (wire.field()) {
      case field::bundle_header::num_shards: shards = wire.integer(); break;
      case field::bundle_header::endianness:
        if (wire.integer() != 0)
          fail(ErrorKind::unsupported, model.name(), "is a big-endian checkpoint, only little-endian ones can be read");
        break;
      default: wire.skip();
    }
  }
  constexpr int64_t kMostShards = 100000;  // five digits in the file names
  if (shards < 1 || shards > kMostShards) wire.fail("has {} shards, expected 1 to {}", shards, kMostShards);
  return shards;
}

/// Number as a length byte and that many big-endian bytes: keeps order under byte comparison.
void put_ordered(std::string& to, uint64_t value) {
  char bytes[9];
  int length = 0;
  for (; value != 0; value >>= 8) bytes[8 - length++] = static_cast<char>(value);
  bytes[8 - length] = static_cast<char>(length);
  to.append(bytes + 8 - length, length + 1);
}

/// Signed numbers: the sign and the length stand in the leading bits, seven bits of value a byte.
void put_ordered_signed(std::string& to, int64_t value) {
  uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  int length = 1;
  while (length < 10 && (magnitude >> (7 * length - 1)) != 0 && 7 * length - 1 < 64) ++length;
  unsigned char bytes[10];
  std::fill(bytes, bytes + 2, value < 0 ? 0xff : 0);
  for (int i = 0; i < 8; ++i) bytes[2 + i] = static_cast<unsigned char>(static_cast<uint64_t>(value) >> (56 - 8 * i));
  unsigned char* start = bytes + 10 - length;
  // `length` leading one bits (flipped for negative numbers) tell the length.
  if (length <= 8) {
    start[0] ^= static_cast<unsigned char>(0xff00 >> length);
  } else {
    start[0] ^= 0xff;
    start[1] ^= static_cast<unsigned char>(0xff00 >> (length - 8));
  }
  to.append(reinterpret_cast<char*>(start), length);
}

/// The table key of one slice of a tensor.
std::string slice_key(std::string_view name, const TensorBundle::Slice& slice) {
  std::string key;
  put_ordered(key, 0);
  for (char c : name) {
    key += c;
    if (c == '\0') key += '\xff';
    if (c == '\xff') key += '\0';
  }
  key += std::string_view("\0\1", 2);
  put_ordered(key, slice.size());
  for (const auto& extent : slice) {
    put_ordered_signed(key, extent.start);
    put_ordered_signed(key, extent.length);
  }
  return key;
}

/// Start and length in every dimension, or nothing when the slice does not fit the shape.
std::optional<TensorBundle::Slice> bounded(const TensorBundle::Slice& slice, const std::vector<int64_t>& dims) {
  if (slice.size() != dims.size()) return std::nullopt;
  TensorBundle::Slice box = slice;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (box[i].length < 0 && box[i].start == 0) box[i].length = dims[i];
    if (box[i].start < 0 || box[i].length < 0 || box[i].start > dims[i] || box[i].length > dims[i] - box[i].start)
      return std::nullopt;
  }
  return box;
}

std::vector<int64_t> lengths(const TensorBundle::Slice& box) {
  std::vector<int64_t> dims;
  for (const auto& extent : box) dims.push_back(extent.length);
  return dims;
}

/// Copies between a whole tensor and a dense box of it; `whole_to_box` gives the direction.
void copy_box(char* whole, const std::vector<int64_t>& dims, char* box_data, const TensorBundle::Slice& box,
              size_t element, bool whole_to_box) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < box.size(); ++i) rows *= box[i].length;
  size_t row_bytes = box.empty() ? element : static_cast<size_t>(box.back().length) * element;
  if (row_bytes == 0) return;
  std::vector<int64_t> at(box.size(), 0);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t offset = 0;
    for (size_t i = 0; i < box.size(); ++i) offset = offset * dims[i] + box[i].start + at[i];
    char* in_whole = whole + static_cast<size_t>(offset) * element;
    char* in_box = box_data + static_cast<size_t>(row) * row_bytes;
    std::memcpy(whole_to_box ? in_box : in_whole, whole_to_box ? in_whole : in_box, row_bytes);
    for (size_t i = box.size() > 1 ? box.size() - 1 : 0; i-- > 0;) {
      if (++at[i] < box[i].length) break;
      at[i] = 0;
    }
  }
}

}  // namespace

TensorBundle::TensorBundle(std::string prefix)
    : prefix_(std::move(prefix)), index_(ModelBytes::open(prefix_ + ".index")) {
  bool header = false;
  read_table(*index_, [&](std::string_view key, std::string_view value) {
    if (key.empty()) {
      shards_.resize(static_cast<size_t>(read_header(value, *index_)));
      header = true;
      return;
    }
    index_->charge(2 * sizeof(Entry) + 64 + 2 * key.size());
    auto& entries = key[0] == '\0' ? slice_entries_ : entries_;
    entries.emplace(key, read_entry(value, *index_));
  });
  if (!header) fail(ErrorKind::invalid_model, index_->name(), "has no header entry");
}

const TensorBundle::Entry* TensorBundle::find(std::string_view name) const {
  auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::string_view TensorBundle::stored_bytes(const std::string& name, const Entry& entry) {
  if (entry.shard < 0 || static_cast<uint64_t>(entry.shard) >= shards_.size())
    fail(ErrorKind::invalid_model, index_->name(), "tensor {} lies in shard {} of {}", printable(name), entry.shard,
         shards_.size());
  auto& shard = shards_[static_cast<size_t>(entry.shard)];
  if (!shard) shard = ModelBytes::open(fmt::format("{}.data-{:05}-of-{:05}", prefix_, entry.shard, shards_.size()));
  uint64_t size = shard->bytes().size();
  if (entry.offset < 0 || entry.size < 0 || static_cast<uint64_t>(entry.offset) > size ||
      static_cast<uint64_t>(entry.size) > size - static_cast<uint64_t>(entry.offset))
    fail(ErrorKind::invalid_model, shard->name(), "tensor {} lies at {} with {} bytes, the file has {}",
         printable(name), entry.offset, entry.size, size);
  return shard->bytes().substr(static_cast<size_t>(entry.offset), static_cast<size_t>(entry.size));
}

Tensor TensorBundle::read_strings(const std::string& name, const Entry& entry, std::string_view bytes) {
  auto& shard = *shards_[static_cast<size_t>(entry.shard)];
  int64_t count = element_count(entry.shape.dims).value_or(-1);
  auto damaged = [&] {
    fail(ErrorKind::invalid_model, shard.name(), "tensor {} is damaged: its checksum does not match", printable(name));
  };
  if (count < 0 || count > entry.size) damaged();
  shard.charge(static_cast<uint64_t>(count) * (sizeof(std::string) + 8) + bytes.size());
  std::vector<uint64_t> sizes;
  uint32_t checksum = 0;
  size_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    for (int shift = 0;; shift += 7) {
      if (at == bytes.size() || shift > 63) damaged();
      uint8_t byte = static_cast<uint8_t>(bytes[at++]);
      size |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    sizes.push_back(size);
    size_t width = size <= UINT32_MAX ? 4 : 8;
    checksum = crc32c({reinterpret_cast<const char*>(&size), width}, checksum);
  }
  if (bytes.size() - at < 4) damaged();
  checksum = crc32c(bytes.substr(at, 4), checksum);
  at += 4;
  Tensor tensor = Tensor::zeros(kString, entry.shape.dims);
  auto texts = tensor.mutable_values<std::string>();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > bytes.size() - at) damaged();
    texts[i] = bytes.substr(at, sizes[i]);
    checksum = crc32c(texts[i], checksum);
    at += sizes[i];
  }
  if (checksum != unmask_crc32c(entry.checksum)) damaged();
  return tensor;
}

Tensor TensorBundle::read_stored(const std::string& name, const Entry& entry) {
  std::optional<DType> dtype = dtype_of(entry.dtype);
  if (!dtype)
    fail(ErrorKind::unsupported, index_->name(), "tensor {} is of {}, which is not supported", printable(name),
         to_string(entry.dtype));
  std::string_view bytes = stored_bytes(name, entry);
  auto& shard = shards_[static_cast<size_t>(entry.shard)];
  if (*dtype == kString) return read_strings(name, entry, bytes);
  std::optional<int64_t> count = element_count(entry.shape.dims);
  if (!count || entry.shape.unknown_rank || static_cast<uint64_t>(*count) > bytes.size() / dtype->size() ||
      static_cast<uint64_t>(*count) * dtype->size() != bytes.size())
    fail(ErrorKind::invalid_model, index_->name(), "tensor {} has {} bytes, which is not what its shape needs",
         printable(name), bytes.size());
  if (crc32c(bytes) != unmask_crc32c(entry.checksum))
    fail(ErrorKind::invalid_model, shard->name(), "tensor {} is damaged: its checksum does not match", printable(name));
  if (*count > 0 && reinterpret_cast<uintptr_t>(bytes.data()) % dtype->size() == 0)
    return Tensor::view(*dtype, entry.shape.dims, bytes.data(), shard);
  Tensor tensor = Tensor::uninitialized(*dtype, entry.shape.dims);
  if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
  return tensor;
}

Tensor TensorBundle::assemble(const std::string& name, const Entry& entry) {
  std::optional<DType> dtype = dtype_of(entry.dtype);
  std::optional<int64_t> count = element_count(entry.shape.dims);
  if (!dtype || *dtype == kString || !count)
    fail(ErrorKind::unsupported, index_->name(), "tensor {} of {} in slices is not supported", printable(name),
         to_string(entry.dtype));
  // All parts are read before the whole is allocated: their bytes bound it.
  std::vector<std::pair<Slice, Tensor>> parts;
  int64_t covered = 0;
  for (const Slice& slice : entry.slices) {
    auto found = slice_entries_.find(slice_key(name, slice));
    std::optional<Slice> box = bounded(slice, entry.shape.dims);
    if (found == slice_entries_.end() || !box)
      fail(ErrorKind::invalid_model, index_->name(), "tensor {} misses one of its {} slices", printable(name),
           entry.slices.size());
    Tensor part = read_stored(name, found->second);
    if (part.dims() != lengths(*box) || part.dtype() != *dtype)
      fail(ErrorKind::invalid_model, index_->name(), "a slice of tensor {} has another shape or type than it should",
           printable(name));
    covered += part.count();
    parts.emplace_back(std::move(*box), std::move(part));
  }
  if (covered != *count)
    fail(ErrorKind::invalid_model, index_->name(), "the slices of tensor {} cover {} of its {} elements",
         printable(name), covered, *count);
  Tensor whole = Tensor::zeros(*dtype, entry.shape.dims);
  for (auto& [box, part] : parts)
    copy_box(static_cast<char*>(whole.mutable_data()), whole.dims(), static_cast<char*>(part.mutable_data()), box,
             dtype->size(), false);
  return whole;
}

Tensor TensorBundle::read(std::string_view name) {
  auto found = entries_.find(name);
  if (found == entries_.end()) fail(ErrorKind::not_found, index_->name(), "has no tensor {}", printable(name));
  return found->second.slices.empty() ? read_stored(found->first, found->second)
                                      : assemble(found->first, found->second);
}

Tensor TensorBundle::read(std::string_view name, std::string_view shape_and_slice) {
  Tensor whole = read(name);
  if (shape_and_slice.empty()) return whole;
  // "20 10 0,5:-": the whole shape, then start,length or '-' for each dimension.
  auto bad = [&] {
    fail(ErrorKind::invalid_model, index_->name(), "slice '{}' does not fit tensor {} with {} dims",
         printable(shape_and_slice), printable(name), whole.rank());
  };
  size_t blank = shape_and_slice.rfind(' ');
  std::string_view text = blank == std::string_view::npos ? shape_and_slice : shape_and_slice.substr(blank + 1);
  Slice slice;
  while (!text.empty() && slice.size() <= whole.rank()) {
    std::string_view part = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    Extent extent;
    if (part != "-") {
      const char* end = part.data() + part.size();
      auto [comma, error] = std::from_chars(part.data(), end, extent.start);
      if (error != std::errc() || comma == end || *comma != ',') bad();
      auto [stop, error2] = std::from_chars(comma + 1, end, extent.length);
      if (error2 != std::errc() || stop != end || extent.length < 0) bad();
    }
    slice.push_back(extent);
  }
  std::optional<Slice> box = bounded(slice, whole.dims());
  if (!box || whole.dtype() == kString) bad();
  Tensor part = Tensor::uninitialized(whole.dtype(), lengths(*box));
  copy_box(const_cast<char*>(static_cast<const char*>(whole.data())), whole.dims(),
           static_cast<char*>(part.mutable_data()), *box, whole.dtype().size(), true);
  return part;
}

}  // namespace cairn::tensorflow
