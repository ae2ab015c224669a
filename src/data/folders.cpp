// Datasets as they are published: MNIST's idx files, CIFAR's binary files and pickles.
#include <zlib.h>

#include "data/pickle.h"
#include "data/source.h"
#include "support/files.h"

namespace cairn::data {

namespace {

/// An idx file of bytes: its dims and values.
struct Idx {
  Shape shape;
  std::shared_ptr<const std::string> bytes;
  size_t begin;
};

Idx read_idx(const std::string& path, size_t rank) {
  Idx idx{{}, file_bytes(path), 4 + 4 * rank};
  const std::string& bytes = *idx.bytes;
  if (bytes.size() < idx.begin || bytes.compare(0, 3, std::string_view("\0\0\x08", 3)) ||
      static_cast<size_t>(bytes[3]) != rank)
    fail(ErrorKind::io, path, "Invalid file, no idx file of bytes with {} dimensions", rank);
  uint64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    uint32_t size = 0;
    for (size_t k = 0; k < 4; ++k) size = size << 8 | static_cast<uint8_t>(bytes[4 + 4 * i + k]);
    idx.shape.push_back(size);
    count = size && count > bytes.size() / size + 1 ? uint64_t{1} << 62 : count * size;
  }
  if (count != bytes.size() - idx.begin)
    fail(ErrorKind::io, path, "Invalid file, the header says {}, but {} bytes follow it", text_of(idx.shape),
         bytes.size() - idx.begin);
  return idx;
}

class Mnist : public Source {
 public:
  Mnist(const std::vector<std::pair<std::string, std::string>>& files, SamplerPtr sampler, std::string where)
      : Source("mnist", {"image", "label"}, std::move(sampler), std::move(where)) {
    for (const auto& [images, labels] : files) {
      Part part{read_idx(images, 3), read_idx(labels, 1), images, count_};
      if (part.images.shape[0] != part.labels.shape[0])
        fail(ErrorKind::io, images, "Invalid file, {} images, but {} labels in {}", part.images.shape[0],
             part.labels.shape[0], labels);
      count_ += part.images.shape[0];
      parts_.push_back(std::move(part));
    }
  }
  int64_t count() const override { return count_; }
  Row read(int64_t index) const override {
    const Part& part = part_of(index);
    const int64_t row = index - part.first;
    const int64_t height = part.images.shape[1], width = part.images.shape[2];
    Array image{{Kind::u8, 1}, {height, width, 1}, part.images.bytes, nullptr, false};
    image.data =
        reinterpret_cast<const std::byte*>(part.images.bytes->data()) + part.images.begin + row * height * width;
    const auto label = static_cast<uint8_t>((*part.labels.bytes)[part.labels.begin + row]);
    return {std::move(image), Array::scalar<uint32_t>(Kind::u32, label)};
  }
  std::string origin(int64_t index) const override {
    const Part& part = part_of(index);
    return fmt::format("{}, row {}", part.path, index - part.first);
  }

 private:
  struct Part {
    Idx images, labels;
    std::string path;
    int64_t first;
  };
  const Part& part_of(int64_t index) const {
    size_t i = parts_.size() - 1;
    while (parts_[i].first > index) --i;
    return parts_[i];
  }
  std::vector<Part> parts_;
  int64_t count_ = 0;
};

/// A file of CIFAR: images as planes of 1024 bytes, labels of one byte each.
struct CifarFile {
  struct Bytes {
    const uint8_t* first;
    size_t stride;
    const uint8_t* at(size_t row) const { return first + row * stride; }
  };
  std::string path;
  std::shared_ptr<const void> owner;
  size_t rows;
  Bytes images;
  std::vector<Bytes> labels;
};

constexpr size_t kCifarPixels = 3072;

CifarFile binary_cifar(const std::string& path, size_t labels) {
  auto file = MappedFile::open(path);
  const size_t length = kCifarPixels + labels, size = file->bytes().size();
  if (size == 0 || size % length != 0)
    fail(ErrorKind::io, path, "Invalid file, {} bytes are not a multiple of {}", size, length);
  const auto* begin = reinterpret_cast<const uint8_t*>(file->bytes().data());
  CifarFile made{path, file, size / length, {begin + labels, length}, {}};
  for (size_t i = 0; i < labels; ++i) made.labels.push_back({begin + i, length});
  return made;
}

/// A list or an array of integers below 256, a byte each.
std::string label_bytes(const Pickled* held, std::string_view key, const std::string& path) {
  std::string labels;
  auto add = [&](int64_t label) {
    if (label < 0 || label > 255) fail(ErrorKind::io, path, "Invalid file, {} is no label", label);
    labels.push_back(static_cast<char>(label));
  };
  if (held && held->is == Pickled::Is::sequence) {
    for (const Pickled& each : *held->items) add(each.is == Pickled::Is::integer ? each.integer : -1);
  } else if (held && held->array && held->array->type[0] != 'f') {
    const auto size = static_cast<size_t>(held->array->type[1] - '0');
    const std::string_view bytes = held->array->bytes;
    for (size_t at = 0; at < bytes.size(); at += size) {
      int64_t label = 0;
      std::memcpy(&label, bytes.data() + at, size);
      add(label);
    }
  } else {
    fail(ErrorKind::io, path, "Invalid file, it holds no {}", key);
  }
  return labels;
}

CifarFile pickled_cifar(const std::string& path, size_t labels) {
  struct Owner {
    std::shared_ptr<const MappedFile> file;
    Pickle pickle;
    std::vector<std::string> labels;
  };
  auto file = MappedFile::open(path);
  auto owner = std::make_shared<Owner>(file, Pickle(file->bytes(), path));
  const Pickled* data = owner->pickle.find("data");
  if (!data || !data->array || data->array->type != "u1" || data->array->bytes.size() % kCifarPixels != 0)
    fail(ErrorKind::io, path, "Invalid file, it holds no data of 3072 bytes for each row");
  const size_t rows = data->array->bytes.size() / kCifarPixels;
  CifarFile made{path, owner, rows, {reinterpret_cast<const uint8_t*>(data->array->bytes.data()), kCifarPixels}, {}};
  for (const char* key : labels == 1 ? std::vector{"labels"} : std::vector{"coarse_labels", "fine_labels"}) {
    owner->labels.push_back(label_bytes(owner->pickle.find(key), key, path));
    if (owner->labels.back().size() != rows)
      fail(ErrorKind::io, path, "Invalid file, {} rows of data, but {} of {}", rows, owner->labels.back().size(), key);
  }
  for (const std::string& each : owner->labels)
    made.labels.push_back({reinterpret_cast<const uint8_t*>(each.data()), 1});
  return made;
}

class Cifar : public Source {
 public:
  Cifar(const std::vector<std::string>& files, int labels, std::vector<std::string> columns, SamplerPtr sampler,
        std::string where)
      : Source("cifar", std::move(columns), std::move(sampler), std::move(where)) {
    for (const std::string& path : files) {
      files_.push_back((path.ends_with(".bin") ? binary_cifar : pickled_cifar)(path, static_cast<size_t>(labels)));
      first_.push_back(count_);
      count_ += static_cast<int64_t>(files_.back().rows);
    }
  }
  int64_t count() const override { return count_; }
  Row read(int64_t index) const override {
    const auto [file, row] = place(index);
    Row made{Array::make(Kind::u8, {32, 32, 3})};
    uint8_t* to = made[0].write<uint8_t>();
    const uint8_t* planes = files_[file].images.at(row);
    for (int i = 0; i < 1024; ++i) {
      to[3 * i] = planes[i];
      to[3 * i + 1] = planes[1024 + i];
      to[3 * i + 2] = planes[2048 + i];
    }
    for (const auto& each : files_[file].labels) made.push_back(Array::scalar<uint32_t>(Kind::u32, *each.at(row)));
    return made;
  }
  std::string origin(int64_t index) const override {
    const auto [file, row] = place(index);
    return fmt::format("{}, row {}", files_[file].path, row);
  }

 private:
  std::pair<size_t, size_t> place(int64_t index) const {
    size_t i = files_.size() - 1;
    while (first_[i] > index) --i;
    return {i, static_cast<size_t>(index - first_[i])};
  }
  std::vector<CifarFile> files_;
  std::vector<int64_t> first_;
  int64_t count_ = 0;
};

}  // namespace

std::shared_ptr<const std::string> unpacked(std::string_view packed, const std::string& path, size_t limit) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) fail(ErrorKind::out_of_memory, path, "cannot be unpacked");
  auto made = std::make_shared<std::string>();
  std::unique_ptr<z_stream, decltype(&inflateEnd)> guard(&stream, inflateEnd);
  std::vector<char> buffer(1 << 16);
  size_t given = 0;
  for (int result = Z_OK;;) {
    if (stream.avail_in == 0) {
      const size_t step = std::min<size_t>(packed.size() - given, 1 << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + given));
      stream.avail_in = static_cast<uInt>(step);
      given += step;
    }
    if (result == Z_STREAM_END) {  // files of several members
      if (stream.avail_in == 0) return made;
      if (inflateReset(&stream) != Z_OK) fail(ErrorKind::io, path, "cannot be unpacked");
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    result = inflate(&stream, Z_NO_FLUSH);
    const size_t got = buffer.size() - stream.avail_out;
    if (result != Z_OK && result != Z_STREAM_END)
      fail(ErrorKind::io, path, "is damaged: cannot be unpacked after {} bytes", made->size());
    if (made->size() + got > limit) fail(ErrorKind::unsupported, path, "unpacks to more than {} bytes", limit);
    made->append(buffer.data(), got);
    if (result == Z_OK && got == 0 && stream.avail_in == 0 && given == packed.size())
      fail(ErrorKind::io, path, "is damaged: its packed data end early");
  }
}

std::shared_ptr<const std::string> file_bytes(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (file->bytes().starts_with("\x1f\x8b")) return unpacked(file->bytes(), path);
  return std::make_shared<std::string>(file->bytes());
}

NodePtr mnist(const std::vector<std::pair<std::string, std::string>>& files, SamplerPtr sampler, std::string where) {
  return std::make_shared<Mnist>(files, std::move(sampler), std::move(where));
}
NodePtr cifar(const std::vector<std::string>& files, int labels, std::vector<std::string> columns, SamplerPtr sampler,
              std::string where) {
  return std::make_shared<Cifar>(files, labels, std::move(columns), std::move(sampler), std::move(where));
}
}  // namespace cairn::data
