#include "run_parts.h"

#include <cstdlib>
#include <cstring>

#include "comm/job.h"
#include "comm/options.h"
#include "ir/text.h"
#include "support/error.h"

namespace cairn::cli {
namespace {

bool begins_with(const Type& type, const Dim& batch) {
  return type.shape.ranked && type.shape.rank() > 0 && type.shape.dims[0].surely_equals(batch);
}

/// The open size that an input begins with, the same for all of its kind.
Dim batch_of(const Model& model) {
  Dim batch;
  for (const Port& port : model.inputs())
    if (const Shape& shape = port.type.shape; shape.ranked && shape.rank() > 0 && shape.dims[0].symbol) {
      batch = shape.dims[0];
      break;
    }
  if (!batch.symbol) fail(ErrorKind::unsupported, "", "no input begins with an open size, which ranks could share as their batch");
  for (const Port& port : model.outputs())
    if (!begins_with(port.type, batch) || port.type.dtype == kString)
      fail(ErrorKind::unsupported, port.name, "is {} and does not begin with the batch: the parts of ranks cannot be put together",
           to_string(port.type));
  return batch;
}

Tensor rows_from(const Tensor& whole, int64_t begin, int64_t rows) {
  if (whole.dtype() == kString || whole.dtype().bits < 8)
    fail(ErrorKind::unsupported, "", "a batch of {} cannot be shared among ranks", to_string(whole.type()));
  std::vector<int64_t> dims = whole.dims();
  const int64_t row = dims[0] ? whole.count() / dims[0] : 0;
  dims[0] = rows;
  const auto* data = static_cast<const char*>(whole.data()) + storage_bytes(whole.dtype(), begin * row);
  return Tensor::view(whole.dtype(), dims, data, whole.owner());
}

void message(comm::Kind kind, int64_t other, int64_t tag, const std::string& name, const Tensor& tensor) {
  comm::Request request{.kind = kind, .name = name, .dtype = tensor.dtype(), .dims = tensor.dims(), .root = other, .tag = tag};
  request.input = tensor.data();
  request.output = const_cast<void*>(tensor.data());
  comm::run(request);
}

}  // namespace

RunParts::RunParts() {
  const char* launched = std::getenv("CAIRN_JOB");
  if (!launched || comm::read_job("").size == 1) return;
  comm::join("");
  const comm::GroupView all = comm::group("world");
  rank_ = all.rank, size_ = static_cast<int>(all.ranks.size());
}

std::vector<Tensor> RunParts::part(const Model& model, const std::vector<Tensor>& inputs) {
  if (size_ == 1) return inputs;
  const Dim batch = batch_of(model);
  std::vector<Tensor> parts = inputs;
  rows_ = -1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!begins_with(model.inputs()[i].type, batch)) continue;
    const int64_t rows = inputs[i].rank() ? inputs[i].dims()[0] : 0;
    if (rows_ >= 0 && rows != rows_)
      fail(ErrorKind::invalid_argument, model.inputs()[i].name, "has {} rows, another input has {}", rows, rows_);
    rows_ = rows;
    int64_t begin = 0;
    for (int rank = 0; rank < rank_; ++rank) begin += rows_of(rank);
    parts[i] = rows_from(inputs[i], begin, rows_of(rank_));
  }
  return parts;
}

std::vector<Tensor> RunParts::put_together(const Model& model, const std::vector<Tensor>& outputs) {
  if (size_ == 1) return outputs;
  std::vector<Tensor> whole;
  const auto& ports = model.outputs();
  for (size_t i = 0; i < ports.size() && has_rows(); ++i) {
    const auto tag = static_cast<int64_t>(i);
    if (rank_ > 0) {
      message(comm::Kind::send, 0, tag, ports[i].name, outputs[i]);
      continue;
    }
    std::vector<int64_t> dims = outputs[i].dims();
    const int64_t row = dims[0] ? outputs[i].count() / dims[0] : 0;
    dims[0] = rows_;
    Tensor all = Tensor::uninitialized(outputs[i].dtype(), dims);
    std::memcpy(all.mutable_data(), outputs[i].data(), outputs[i].bytes());
    int64_t begin = dims[0] ? rows_of(0) : 0;
    for (int rank = 1; rank < size_ && rows_of(rank) > 0; begin += rows_of(rank++)) {
      dims[0] = rows_of(rank);
      auto* data = static_cast<char*>(all.mutable_data()) + storage_bytes(all.dtype(), begin * row);
      message(comm::Kind::receive, rank, tag, ports[i].name, Tensor::view(all.dtype(), dims, data, all.owner()));
    }
    whole.push_back(std::move(all));
  }
  comm::leave();
  return whole;
}

}  // namespace cairn::cli
