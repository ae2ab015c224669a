#include "quantize/examples.h"

#include <cmath>
#include <filesystem>

#include "formats/npy.h"
#include "formats/npz.h"
#include "ir/evaluate.h"

namespace cairn::quantize {

namespace {

namespace fs = std::filesystem;

/// The arrays of an .npz file by their names, that of an .npy file by the file's.
void add_file(const fs::path& path, std::map<std::string, std::vector<Tensor>>& parts) {
  if (path.extension() == ".npy") return parts[path.stem().string()].push_back(read_npy(path.string()));
  const auto file = NpzFile::open(path.string());
  for (const std::string& name : file->names()) parts[name].push_back(file->read(name));
}

Tensor joined(const std::string& name, const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts[0];
  for (const Tensor& part : parts)
    if (part.rank() == 0 || part.dtype() != parts[0].dtype() ||
        !std::equal(part.dims().begin() + 1, part.dims().end(), parts[0].dims().begin() + 1, parts[0].dims().end()))
      fail(ErrorKind::invalid_argument, name, "is {} in one file and {} in another", to_string(parts[0].type()),
           to_string(part.type()));
  return evaluate("concat", parts, {{"axis", int64_t{0}}});
}

void require_finite(const std::string& name, const Tensor& tensor) {
  if (!tensor.dtype().is_float()) return;
  size_t wrong = 0;
  for (const double x : tensor.as_f64()) wrong += !std::isfinite(x);
  if (wrong > 0)
    fail(ErrorKind::invalid_argument, name, "holds {} values that are infinite or no numbers, of {}", wrong,
         tensor.count());
}

std::vector<int64_t> labels_of(const std::string& name, const Tensor& tensor) {
  if (tensor.dtype() == kString) fail(ErrorKind::invalid_argument, name, "is text, expected numbers of classes");
  if (tensor.rank() == 2 && tensor.dims()[1] > 1) {  // one-hot
    const auto values = tensor.as_f64();
    const auto width = static_cast<size_t>(tensor.dims()[1]);
    std::vector<int64_t> labels;
    for (auto row = values.begin(); row != values.end(); row += static_cast<long>(width))
      labels.push_back(std::max_element(row, row + static_cast<long>(width)) - row);
    return labels;
  }
  std::vector<int64_t> labels;
  for (const double x : tensor.as_f64()) labels.push_back(std::llround(x));
  return labels;
}

std::vector<Port> inputs_of(const Module& module) {
  std::vector<Port> ports;
  for (const auto& param : module.main().body.params)
    if (param->type.is_tensor()) ports.push_back({param->name, param->type});
  return ports;
}

/// What result `i` is on average, element by element over the examples of all batches; one number of one example or of
/// results whose size differs.
std::vector<double> means_of(const std::vector<std::vector<Tensor>>& batches, size_t i) {
  std::vector<double> sums;
  double all = 0, examples = 0, elements = 0;
  bool alike = true;
  for (const std::vector<Tensor>& batch : batches) {
    const std::vector<double> values = batch[i].as_f64();
    const int64_t rows = batch[i].rank() > 0 ? batch[i].dims()[0] : 1;
    if (values.empty()) continue;
    const size_t width = values.size() / static_cast<size_t>(rows);
    alike = alike && (sums.empty() || sums.size() == width);
    sums.resize(width);
    for (size_t k = 0; k < values.size(); ++k)
      if (std::isfinite(values[k])) sums[k % width] += values[k], all += values[k], ++elements;
    examples += static_cast<double>(rows);
  }
  if (!alike || examples < 2) return {elements > 0 ? all / elements : 0};
  for (double& sum : sums) sum /= examples;
  return sums;
}

}  // namespace

std::map<std::string, Tensor> read_examples(const std::string& path) {
  std::map<std::string, std::vector<Tensor>> parts;
  if (!fs::is_directory(path)) {
    add_file(path, parts);
  } else {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files)
      if (file.extension() == ".npz" || file.extension() == ".npy") add_file(file, parts);
  }
  if (parts.empty())
    fail(ErrorKind::not_found, path, "holds no array; expected .npz files, or .npy files named as inputs");
  std::map<std::string, Tensor> arrays;
  for (const auto& [name, list] : parts) arrays[name] = joined(name, list);
  return arrays;
}

Examples::Examples(const Module& module, std::map<std::string, Tensor> arrays, const std::string& labels, int64_t batch)
    : batch_(std::max<int64_t>(batch, 1)) {
  const std::vector<Port> ports = inputs_of(module);
  std::string found = labels;
  for (const char* usual : {"labels", "label", "y"}) {
    const bool input = std::any_of(ports.begin(), ports.end(), [&](const Port& port) { return port.name == usual; });
    if (found.empty() && arrays.contains(usual) && !input) found = usual;
  }
  std::vector<std::string> known;
  for (const auto& each : arrays) known.push_back(each.first);
  if (!found.empty() && !arrays.contains(found))
    fail(ErrorKind::not_found, found, "is no array of the data, which has {}", fmt::join(known, ", "));
  if (!found.empty()) labels_ = labels_of(found, arrays[found]), arrays.erase(found);
  if (ports.empty()) fail(ErrorKind::invalid_argument, "", "the model has no input that calibration could feed");
  if (ports.size() == 1 && arrays.size() == 1 && !arrays.contains(ports[0].name))
    arrays = {{ports[0].name, arrays.begin()->second}};
  else
    std::erase_if(arrays, [&](const auto& each) {  // what else the files hold, if all inputs are there
      return std::all_of(ports.begin(), ports.end(), [&](const Port& port) { return arrays.contains(port.name); }) &&
             std::none_of(ports.begin(), ports.end(), [&](const Port& port) { return port.name == each.first; });
    });
  for (const auto& [name, tensor] : arrays) require_finite(name, tensor);
  data_ = std::make_unique<Dataset>(ports, arrays);
  count_ = data_->count();
  if (labelled() && static_cast<int64_t>(labels_.size()) != count_)
    fail(ErrorKind::invalid_argument, found, "has {} labels for {} examples", labels_.size(), count_);
  for (const Port& port : ports) {
    const Shape& shape = port.type.shape;
    if (!shape.ranked || shape.rank() == 0 || !shape.dims[0].known()) continue;
    batch_ = shape.dims[0].size, keep_rest_ = false;
    if (count_ < batch_)
      fail(ErrorKind::invalid_argument, port.name, "has {} examples, the model takes batches of {}", count_, batch_);
  }
}

void Examples::run(const Model& model, int64_t limit,
                   const std::function<void(const std::vector<Tensor>&, int64_t)>& take) const {
  const int64_t end = std::clamp(limit, std::min(batch_, count_), count_);
  for (int64_t first = 0; first < end; first += batch_) {
    const int64_t size = std::min(batch_, count_ - first);
    if (size < batch_ && !keep_rest_) return;
    std::vector<int64_t> places(static_cast<size_t>(size));
    std::iota(places.begin(), places.end(), first);
    take(model.run(data_->batch(places)), first);
  }
}

int64_t Examples::hits(const Tensor& answers, int64_t first) const {
  const std::vector<double> values = answers.as_f64();
  const int64_t rows = std::min(answers.rank() > 0 ? answers.dims()[0] : 1, count_ - first);
  if (rows == 0) return 0;
  const auto width = static_cast<int64_t>(values.size()) / rows;
  int64_t hits = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = values.begin() + row * width;
    const bool whole = answers.dtype().is_integer();  // the model chooses the class itself
    const int64_t answer = whole        ? std::llround(*begin)
                           : width == 1 ? *begin > 0.5
                                        : std::max_element(begin, begin + width) - begin;
    hits += answer == labels_[static_cast<size_t>(first + row)];
  }
  return hits;
}

double Score::error() const { return sqnr >= kEqual ? 0 : std::pow(10, -sqnr / 20); }

Judge::Judge(const Examples& examples, const Model& model, int64_t limit) : examples_(examples) {
  int64_t seen = 0, hits = 0;
  examples.run(model, limit, [&](const std::vector<Tensor>& results, int64_t first) {
    if (examples.labelled())
      hits += examples.hits(results[0], first), seen += results[0].dims().empty() ? 1 : results[0].dims()[0];
    expected_.push_back(results);
  });
  for (size_t i = 0; i < (expected_.empty() ? 0 : expected_[0].size()); ++i)
    means_.push_back(expected_[0][i].dtype().is_float() ? means_of(expected_, i) : std::vector<double>{});
  original_.sqnr = Score::kEqual;
  if (examples.labelled())
    original_.accuracy = static_cast<double>(hits) / static_cast<double>(std::max<int64_t>(seen, 1));
}

Score Judge::of(const Model& model, int64_t limit) const {
  std::vector<double> signal, noise;
  int64_t seen = 0, hits = 0;
  size_t batch = 0;
  examples_.run(model, limit, [&](const std::vector<Tensor>& results, int64_t first) {
    const std::vector<Tensor>& expected = expected_.at(batch++);
    signal.resize(results.size()), noise.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].dtype().is_float()) continue;
      const std::vector<double> x = results[i].as_f64(), y = expected[i].as_f64();
      if (x.size() != y.size()) {
        noise[i] = std::numeric_limits<double>::infinity();
        continue;
      }
      const std::vector<double>& means = means_[i];
      for (size_t k = 0; k < x.size(); ++k) {
        if (!std::isfinite(y[k])) continue;
        const double moved = y[k] - means[k % means.size()];
        signal[i] += moved * moved, noise[i] += (x[k] - y[k]) * (x[k] - y[k]);
      }
    }
    if (examples_.labelled())
      hits += examples_.hits(results[0], first), seen += results[0].dims().empty() ? 1 : results[0].dims()[0];
  });
  Score score{Score::kEqual, {}};
  for (size_t i = 0; i < noise.size(); ++i) {
    if (noise[i] == 0) continue;
    const double sqnr = signal[i] > 0 ? 10 * std::log10(signal[i] / noise[i]) : -Score::kEqual;
    score.sqnr = std::min(score.sqnr, std::isnan(sqnr) ? -Score::kEqual : std::max(sqnr, -Score::kEqual));
  }
  if (examples_.labelled())
    score.accuracy = static_cast<double>(hits) / static_cast<double>(std::max<int64_t>(seen, 1));
  return score;
}

}  // namespace cairn::quantize
