// Files of rows, by the kind of their target.
#include <algorithm>
#include <filesystem>

#include "data/images/images.h"
#include "data/mindrecord.h"
#include "data/opened.h"
#include "data/tfrecord.h"
#include "data/transforms.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/part_file.h"
#include "support/utf8.h"

namespace cairn::data {

namespace fs = std::filesystem;

namespace {

bool is_pixels(const Array& array) {
  if (array.type.kind != Kind::u8 || array.shape.size() < 2 || array.shape.size() > 3 || array.count() == 0)
    return false;
  const int64_t channels = array.shape.size() == 2 ? 1 : array.shape[2];
  return channels == 1 || channels == 3 || channels == 4;
}

Array bytes_of(std::string_view bytes) {
  Array made = Array::make(Kind::u8, {std::ssize(bytes)});
  std::memcpy(made.bytes(), bytes.data(), bytes.size());
  return made;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = utf8_size(text);
    if (size == 0 || text[0] == '\0') return false;
    text.remove_prefix(size);
  }
  return true;
}

/// Pixels as the bytes of a PNG file, and bytes as such or as a text, all else as it is.
Row encoded(const Row& row) {
  Row made;
  for (const Array& array : row) {
    if (is_pixels(array))
      made.push_back(bytes_of(encode_png(array)));
    else if (array.type.kind == Kind::bytes && array.count() == 1)
      made.push_back(is_utf8(array.view()) ? Array::of_text(array.view()) : bytes_of(array.view()));
    else
      made.push_back(array);
  }
  return made;
}

std::string text_of_cell(const Array& array) {
  if (array.type.is_text()) {
    const std::string_view text = array.view();
    return std::string(text.substr(0, text.find_last_not_of('\0') + 1));
  }
  std::string text;
  with_number(array.type.kind, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < array.count(); ++i) {
      const T value = array.as<T>()[i];
      if constexpr (std::is_same_v<T, bool>)
        text += value ? "1" : "0";
      else if constexpr (sizeof(T) == 1)
        text += fmt::format("{}", static_cast<int>(value));
      else
        text += fmt::format("{}", value);
    }
  });
  return text;
}

class MindTarget : public Target {
 public:
  MindTarget(const TargetOptions& options, const OpenedData& from, const Row& first)
      : writer_(names(options), schema_of(from.source->columns, encoded(first)), options.index) {}
  void write(const Row& row) override { writer_.write(encoded(row)); }
  void commit() override { writer_.commit(); }

 private:
  static std::vector<std::string> names(const TargetOptions& options) {
    if (options.shards == 1) return {options.path};
    std::vector<std::string> names;
    const size_t width = std::to_string(options.shards - 1).size();
    for (int i = 0; i < options.shards; ++i) names.push_back(fmt::format("{}{:0{}}", options.path, i, width));
    return names;
  }
  MindWriter writer_;
};

class TfrecordTarget : public Target {
 public:
  TfrecordTarget(const TargetOptions& options, const OpenedData& from) : columns_(from.source->columns) {
    for (int i = 0; i < options.shards; ++i)
      writers_.push_back(std::make_unique<TfrecordWriter>(
          options.shards == 1 ? options.path : fmt::format("{}-{:05}-of-{:05}", options.path, i, options.shards)));
  }
  void write(const Row& row) override { writers_[next_++ % writers_.size()]->write(columns_, encoded(row)); }
  void commit() override {
    for (auto& writer : writers_) writer->commit();
  }

 private:
  std::vector<std::string> columns_;
  std::vector<std::unique_ptr<TfrecordWriter>> writers_;
  size_t next_ = 0;
};

class CsvTarget : public Target {
 public:
  CsvTarget(const TargetOptions& options, const OpenedData& from)
      : columns_(from.source->columns), file_(options.path) {
    line(columns_);
  }
  void write(const Row& row) override {
    std::vector<std::string> cells;
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].count() != 1)
        fail(ErrorKind::unsupported, "", "column '{}' holds {} {}, but a cell of CSV holds one number or text",
             columns_[i], name_of(row[i].type), cairn::data::text_of(row[i].shape));
      cells.push_back(text_of_cell(row[i]));
    }
    line(cells);
  }
  void commit() override { file_.commit(); }

 private:
  void line(const std::vector<std::string>& cells) {
    std::string text;
    for (const std::string& cell : cells) {
      if (!text.empty() || &cell != &cells.front()) text += ',';
      if (cell.find_first_of(",\"\n\r") == std::string::npos) {
        text += cell;
        continue;
      }
      text += '"';
      for (char c : cell) text += c == '"' ? std::string("\"\"") : std::string(1, c);
      text += '"';
    }
    file_.write(text + '\n');
  }
  std::vector<std::string> columns_;
  PartFile file_;
};

int64_t integer_of(const Array& array) {
  int64_t value = -1;
  if (array.count() == 1)
    with_number(array.type.kind, [&](auto zero) { value = static_cast<int64_t>(*array.as<decltype(zero)>()); });
  return value;
}

/// A folder in the making, which gets its name when it is complete.
class FolderTarget : public Target {
 public:
  FolderTarget(const TargetOptions& options, const OpenedData& from)
      : path_(options.path), part_(options.path + ".part") {
    std::error_code error;
    if (fs::exists(path_, error) && !fs::is_empty(path_, error))
      fail(ErrorKind::invalid_argument, path_, "is there already and not empty");
    image_ = place(from, {"image", "data"});
    label_ = place(from, {"label", "fine_label"});
    fs::remove_all(part_, error);
    make_folders(part_);
  }
  ~FolderTarget() override {
    std::error_code error;
    fs::remove_all(part_, error);
  }
  void commit() override {
    finish();
    std::error_code error;
    fs::remove(path_, error);
    fs::rename(part_, path_, error);
    if (error) fail(ErrorKind::io, path_, "cannot be written: {}", reason(error.value()));
  }

 protected:
  virtual void finish() {}
  static size_t place(const OpenedData& from, std::initializer_list<const char*> names) {
    const std::vector<std::string>& have = from.source->columns;
    for (const char* name : names)
      if (auto found = std::find(have.begin(), have.end(), name); found != have.end()) return found - have.begin();
    fail(ErrorKind::invalid_argument, "", "images need a column '{}', the columns are {}", *names.begin(),
         fmt::join(have, ", "));
  }
  std::string path_, part_;
  size_t image_ = 0, label_ = 0;
};

class ImagesTarget : public FolderTarget {
 public:
  ImagesTarget(const TargetOptions& options, const OpenedData& from)
      : FolderTarget(options, from), classes_(from.classes) {
    const std::vector<std::string>& have = from.source->columns;
    name_ = std::find(have.begin(), have.end(), "file_name") - have.begin();
  }
  void write(const Row& row) override {
    const bool pixels = is_pixels(row[image_]);
    const std::string bytes = pixels ? encode_png(row[image_]) : std::string(row[image_].view());
    if (!pixels) image_size(bytes);  // which says what is no image
    const fs::path file = fs::path(part_) / name_of_row(row, pixels || bytes.starts_with("\x89PNG") ? ".png"
                                                             : bytes.starts_with("BM")              ? ".bmp"
                                                                                                    : ".jpg");
    make_folders(file.parent_path().string());
    PartFile written(file.string(), false);
    written.write(bytes);
    written.commit();
    ++count_;
  }

 private:
  std::string name_of_row(const Row& row, const char* ending) const {
    if (name_ < row.size()) {
      const fs::path name = text_of_cell(row[name_]);
      const bool inside = !name.empty() && name.is_relative() &&
                          std::none_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".."; });
      if (!inside) fail(ErrorKind::invalid_argument, "", "'{}' leads out of the folder", printable(name.string()));
      return name.string();
    }
    const int64_t label = integer_of(row[label_]);
    if (label < 0) fail(ErrorKind::invalid_argument, "", "the label must be an integer of 0 or more");
    const bool named = label < std::ssize(classes_);
    return fmt::format("{}/{:08}{}", named ? classes_[static_cast<size_t>(label)] : fmt::format("{:04}", label), count_,
                       ending);
  }
  std::vector<std::string> classes_;
  size_t name_ = 0;
  int64_t count_ = 0;
};

/// Pixels of one size: the image, or what its file holds.
Array pixels_of(const Array& image, int64_t side, int64_t channels) {
  Array pixels = is_pixels(image) ? image : decode_image(image.view());
  const bool gray = channels == 1 && pixels.shape.size() == 3 && pixels.shape[2] == 3;
  if (pixels.shape[0] != side || pixels.shape[1] != side || (!gray && channels_of(pixels) != channels))
    fail(ErrorKind::invalid_argument, "", "the image has the shape {}, expected {} x {} pixels", text_of(pixels.shape),
         side, side);
  if (!gray) return pixels;
  Array made = Array::make(Kind::u8, {side, side});
  for (int64_t i = 0; i < made.count(); ++i) {
    const uint8_t* from = pixels.as<uint8_t>() + 3 * i;
    if (from[0] != from[1] || from[0] != from[2]) fail(ErrorKind::invalid_argument, "", "the image has colours");
    made.write<uint8_t>()[i] = from[0];
  }
  return made;
}

char byte_label(const Array& label) {
  const int64_t value = integer_of(label);
  if (value < 0 || value > 255) fail(ErrorKind::invalid_argument, "", "the label {} does not fit a byte", value);
  return static_cast<char>(value);
}

class CifarTarget : public FolderTarget {
 public:
  CifarTarget(const TargetOptions& options, const OpenedData& from, bool hundred)
      : FolderTarget(options, from), file_(part_ + (hundred ? "/train.bin" : "/data_batch_1.bin"), false) {
    if (hundred) coarse_ = place(from, {"coarse_label"});
  }
  void write(const Row& row) override {
    const Array pixels = pixels_of(row[image_], 32, 3);
    std::string record;
    if (coarse_) record += byte_label(row[*coarse_]);
    record += byte_label(row[label_]);
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < 1024; ++i) record += static_cast<char>(pixels.as<uint8_t>()[3 * i + c]);
    file_.write(record);
  }

 private:
  void finish() override { file_.commit(); }
  std::optional<size_t> coarse_;
  PartFile file_;
};

class MnistTarget : public FolderTarget {
 public:
  using FolderTarget::FolderTarget;
  void write(const Row& row) override {
    const Array pixels = pixels_of(row[image_], 28, 1);
    images_ += pixels.view();
    labels_ += byte_label(row[label_]);
  }

 private:
  void finish() override {
    const auto count = static_cast<uint32_t>(labels_.size());
    auto head = [&](std::initializer_list<uint32_t> sizes) {
      std::string bytes("\0\0\x08", 3);
      bytes += static_cast<char>(sizes.size());
      for (uint32_t size : sizes)
        for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift);
      return bytes;
    };
    write_file(part_ + "/train-images-idx3-ubyte", head({count, 28, 28}) + images_);
    write_file(part_ + "/train-labels-idx1-ubyte", head({count}) + labels_);
  }
  std::string images_, labels_;
};

std::string kind_of_path(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  if (name.empty() || fs::is_directory(path)) return "images";
  if (name.find("tfrecord") != std::string::npos) return "tfrecord";
  if (name.find("mindrecord") != std::string::npos || name.ends_with(".mind")) return "mindrecord";
  if (name.ends_with(".csv")) return "csv";
  fail(ErrorKind::invalid_argument, path,
       "its name does not tell what it shall be; --to names it: mindrecord, tfrecord, csv, images, cifar10, cifar100, "
       "mnist");
}

}  // namespace

std::unique_ptr<Target> make_target(const TargetOptions& given, const OpenedData& from, const Row& first) {
  TargetOptions options = given;
  const std::string kind = options.kind.empty() ? kind_of_path(options.path) : options.kind;
  while (options.path.size() > 1 && options.path.ends_with('/')) options.path.pop_back();
  if (options.shards != 1 && kind != "mindrecord" && kind != "tfrecord")
    fail(ErrorKind::invalid_argument, options.path, "{} is not written in shards", kind);
  if (kind == "mindrecord") return std::make_unique<MindTarget>(options, from, first);
  if (kind == "tfrecord") return std::make_unique<TfrecordTarget>(options, from);
  if (kind == "csv") return std::make_unique<CsvTarget>(options, from);
  if (kind == "images") return std::make_unique<ImagesTarget>(options, from);
  if (kind == "mnist") return std::make_unique<MnistTarget>(options, from);
  if (kind == "cifar10" || kind == "cifar100") return std::make_unique<CifarTarget>(options, from, kind == "cifar100");
  fail(ErrorKind::invalid_argument, options.path, "'{}' is no kind that can be written", kind);
}

}  // namespace cairn::data
