#include "parts.h"

#include <algorithm>
#include <cstring>

#include "comm/job.h"
#include "comm/options.h"
#include "support/error.h"

namespace cairn::cli {
namespace {

bool is_open(const Port& port) {
  const Shape& shape = port.type.shape;
  return shape.ranked && shape.rank() > 0 && !shape.dims[0].known();
}

/// `count` rows from row `first` on.
Tensor rows_of(const Tensor& tensor, int64_t first, int64_t count) {
  if (tensor.dtype() == kString) fail(ErrorKind::unsupported, "", "texts are not divided among ranks");
  Dims dims = tensor.dims();
  const size_t row = dims[0] ? tensor.bytes() / static_cast<size_t>(dims[0]) : 0;
  dims[0] = count;
  Tensor part = Tensor::zeros(tensor.dtype(), dims);
  if (count)
    std::memcpy(part.mutable_data(), static_cast<const char*>(tensor.data()) + static_cast<size_t>(first) * row,
                part.bytes());
  return part;
}

void exchange(comm::Kind kind, const Tensor& from, Tensor& to) {
  comm::Request request;
  request.kind = kind;
  request.dtype = from.dtype();
  request.dims = from.dims();
  request.input = from.data();
  request.output = to.mutable_data();
  comm::run(request);
}

}  // namespace

Parts::Parts() {
  const comm::JobOptions job = comm::read_job("");
  if (job.size == 1 || (job.source != "CAIRN_JOB" && job.source != "mpirun")) return;
  comm::join("");
  rank_ = job.rank, size_ = job.size;
}

Parts::~Parts() {
  if (size_ > 1) comm::leave();
}

std::vector<Tensor> Parts::mine(const Model& model, std::vector<Tensor> inputs) const {
  if (size_ == 1) return inputs;
  int64_t rows = -1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = model.inputs()[i];
    if (!is_open(port)) continue;
    const int64_t all = inputs[i].dims()[0];
    if (rows >= 0 && rows != all)
      fail(ErrorKind::invalid_argument, port.name, "has {} rows and another input {}: ranks cannot divide them", all,
           rows);
    rows = all;
    inputs[i] = rows_of(inputs[i], rank_ * all / size_, (rank_ + 1) * all / size_ - rank_ * all / size_);
  }
  if (rows < 0)
    fail(ErrorKind::invalid_argument, "", "the model leaves no batch size open that {} ranks could divide", size_);
  if (rows < size_) fail(ErrorKind::invalid_argument, "", "the batch has {} rows for {} ranks", rows, size_);
  return inputs;
}

std::vector<Tensor> Parts::together(const Model& model, std::vector<Tensor> outputs) const {
  if (size_ == 1) return outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port& port = model.outputs()[i];
    if (!is_open(port))
      fail(ErrorKind::invalid_argument, port.name,
           "has no rows of the batch: what {} ranks make cannot be put together", size_);
    Tensor mine = Tensor::zeros(kI64, {1}), counts = Tensor::zeros(kI64, {size_});
    const int64_t count = outputs[i].dims()[0];
    std::memcpy(mine.mutable_data(), &count, sizeof count);
    exchange(comm::Kind::all_gather, mine, counts);
    const std::vector<int64_t> rows = counts.as_i64();
    const int64_t most = *std::max_element(rows.begin(), rows.end());
    Dims dims = outputs[i].dims();
    dims[0] = most;
    Tensor padded = Tensor::zeros(outputs[i].dtype(), dims);
    std::memcpy(padded.mutable_data(), outputs[i].data(), outputs[i].bytes());
    dims[0] = most * size_;
    Tensor all = Tensor::zeros(padded.dtype(), dims);
    exchange(comm::Kind::gather, padded, all);
    int64_t total = 0;  // of the rows that are no padding, moved to the front
    char* data = static_cast<char*>(all.mutable_data());
    const size_t row = most ? padded.bytes() / static_cast<size_t>(most) : 0;
    for (int64_t rank = 0; rank < size_; total += rows[static_cast<size_t>(rank++)])
      std::memmove(data + static_cast<size_t>(total) * row, data + static_cast<size_t>(rank * most) * row,
                   static_cast<size_t>(rows[static_cast<size_t>(rank)]) * row);
    outputs[i] = rows_of(all, 0, total);
  }
  return outputs;
}

}  // namespace cairn::cli
