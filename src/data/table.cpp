// Rows that are all known when the source is opened: arrays in memory, and files that are read when a row is made.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "data/images/images.h"
#include "data/source.h"
#include "support/fault.h"

namespace cairn::data {

namespace {

Array read_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    const int why = descriptor < 0 ? errno : EINVAL;
    if (descriptor >= 0) ::close(descriptor);
    fail(ErrorKind::io, "", "cannot be read: {}", reason(why));
  }
  Array bytes = Array::make(Kind::u8, {status.st_size});
  int64_t done = 0;
  while (done < status.st_size) {
    const ssize_t got = ::read(descriptor, bytes.bytes() + done, static_cast<size_t>(status.st_size - done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += got;
  }
  ::close(descriptor);
  bytes.shape[0] = done;
  return bytes;
}

int64_t rows_of(const TableColumn& column) {
  if (!column.files.empty()) return std::ssize(column.files);
  if (!column.rows.empty()) return std::ssize(column.rows);
  return column.slices.shape.empty() ? -1 : column.slices.shape[0];
}

std::vector<std::string> names_of(const std::vector<TableColumn>& columns) {
  std::vector<std::string> names;
  for (const TableColumn& column : columns) names.push_back(column.name);
  return names;
}

class Table : public Source {
 public:
  Table(std::string operation, std::vector<TableColumn> columns, SamplerPtr sampler, std::string where)
      : Source(std::move(operation), names_of(columns), std::move(sampler), std::move(where)),
        columns_(std::move(columns)) {
    if (columns_.empty()) fail(ErrorKind::invalid_argument, this->where, "{}: there is no column", this->operation);
    count_ = rows_of(columns_[0]);
    for (const TableColumn& column : columns_)
      if (count_ < 0 || rows_of(column) != count_)
        fail(ErrorKind::invalid_argument, this->where, "column '{}' has the shape {}, but '{}' has {} rows",
             column.name, text_of(column.slices.shape), columns_[0].name, std::max<int64_t>(count_, 0));
    for (size_t i = columns_.size(); i-- > 0;)
      if (!columns_[i].files.empty()) named_ = i;
  }
  int64_t count() const override { return count_; }
  Row read(int64_t index) const override {
    Row row;
    row.reserve(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) row.push_back(value(i, index));
    return row;
  }
  std::string origin(int64_t index) const override {
    return named_ ? columns_[*named_].files[static_cast<size_t>(index)] : Source::origin(index);
  }
  std::vector<int64_t> labels(const std::string& column) const override {
    const size_t place = places_of({column}, columns, operation)[0];
    if (!columns_[place].files.empty())
      fail(ErrorKind::invalid_argument, where, "{}: column '{}' holds no labels", operation, column);
    return labels_of(column, [&](int64_t index) { return value(place, index); });
  }

 private:
  Array value(size_t place, int64_t index) const {
    const TableColumn& column = columns_[place];
    if (!column.files.empty()) return file(column, index, place == *named_);
    if (!column.rows.empty()) return column.rows[static_cast<size_t>(index)];
    Array slice = column.slices;
    slice.shape.erase(slice.shape.begin());
    slice.own = false;
    slice.data += static_cast<size_t>(index) * slice.size();
    return slice;
  }
  static Array file(const TableColumn& column, int64_t index, bool named) {
    const std::string& path = column.files[static_cast<size_t>(index)];
    try {
      Array bytes = read_file(path);
      return column.decode ? decode_image(bytes.view()) : bytes;
    } catch (const Error& error) {  // the row's place tells one file alone
      if (named) throw;
      fail(error.kind(), "", "{}: {}", path, error.message());
    }
  }

  std::vector<TableColumn> columns_;
  int64_t count_ = 0;
  std::optional<size_t> named_;
};

}  // namespace

NodePtr table(std::string operation, std::vector<TableColumn> columns, SamplerPtr sampler, std::string where) {
  return std::make_shared<Table>(std::move(operation), std::move(columns), std::move(sampler), std::move(where));
}

}  // namespace cairn::data
