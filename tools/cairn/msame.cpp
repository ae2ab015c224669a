// msame: runs a model on files of raw elements, with the platform runner's options and the lines that scripts search for.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "arrays.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

struct Msame {
  ModelArguments model;
  std::string input, output, format = "BIN", dym_batch, dym_hw, dym_dims, dym_shape, output_size;
  int loop = 1, device = 0;
  bool debug = false, profiler = false, dump = false;
};

/// The first open size of every input becomes the batch, or the two image sizes the height and width.
std::string shapes_of_profile(const std::vector<Port>& inputs, const Msame& msame) {
  std::vector<std::string> sizes = split_list(msame.dym_batch.empty() ? msame.dym_hw : msame.dym_batch, ',');
  std::string text;
  for (const Port& input : inputs) {
    std::vector<std::string> dims;
    size_t next = 0;
    for (const Dim& dim : input.type.shape.dims)
      dims.push_back(dim.known() ? std::to_string(dim.size) : next < sizes.size() ? sizes[next++] : "-1");
    text += fmt::format("{}{}:{}", text.empty() ? "" : ";", input.name, fmt::join(dims, ","));
  }
  return text;
}

/// One list of files per run: a run each of files with equal position in every folder, or of the files themselves.
std::vector<std::vector<std::string>> runs_of(const Msame& msame, size_t inputs) {
  std::vector<std::string> parts = split_list(msame.input, ',');
  if (parts.empty()) return {{}};
  if (parts.size() != inputs)
    fail(ErrorKind::invalid_argument, "--input", "names {} inputs, the model has {}", parts.size(), inputs);
  if (!fs::is_directory(expand_home(parts[0]))) return {parts};
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(expand_home(parts[0])))
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  if (names.empty()) fail(ErrorKind::not_found, parts[0], "has no files");
  std::vector<std::vector<std::string>> runs;
  for (const std::string& name : names) {
    runs.emplace_back();
    for (const std::string& folder : parts) runs.back().push_back((fs::path(folder) / name).string());
  }
  return runs;
}

void write_output(const Tensor& tensor, const std::string& stem, const std::string& format) {
  if (format == "BIN") {
    if (tensor.dtype() == kString) fail(ErrorKind::unsupported, stem, "text cannot be written as raw elements");
    write_file(stem + ".bin", {static_cast<const char*>(tensor.data()), tensor.bytes()});
    return;
  }
  std::string text;
  if (tensor.dtype() == kString)
    for (const std::string& value : tensor.values<std::string>()) text += value + " ";
  else
    for (double value : tensor.as_f64()) text += fmt::format("{:g} ", value);
  write_file(stem + ".txt", text + "\n");
}

int run_msame(Msame msame) {
  msame.model.path = expand_home(msame.model.path);
  auto model = prepare(msame.model);
  fmt::print("[INFO] load model {} success\n", msame.model.path);
  if (!msame.dym_batch.empty() || !msame.dym_hw.empty())
    msame.model.shapes = shapes_of_profile(model->inputs(), msame);
  else
    msame.model.shapes = !msame.dym_dims.empty() ? msame.dym_dims : msame.dym_shape;
  auto runs = runs_of(msame, model->inputs().size());
  std::string folder = expand_home(msame.output);
  if (!folder.empty()) fs::create_directories(folder);
  double total = 0, first = 0;
  size_t count = 0;
  int loop = runs.size() > 1 ? 1 : msame.loop;
  for (const auto& files : runs) {
    std::vector<Tensor> inputs = read_inputs(*model, msame.model, files, true);
    std::vector<Tensor> outputs;
    for (int i = 0; i < loop; ++i) {
      auto begin = std::chrono::steady_clock::now();
      outputs = model->run(inputs);
      double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      fmt::print("Inference time: {:.3f}ms\n", seconds * 1e3);
      if (count++ == 0) first = seconds;
      total += seconds;
    }
    std::string stem = files.empty() ? fs::path(msame.model.path).stem().string() : fs::path(files[0]).stem().string();
    for (size_t i = 0; i < outputs.size() && !folder.empty(); ++i)
      write_output(outputs[i], (fs::path(folder) / fmt::format("{}_output_{}", stem, i)).string(), msame.format);
  }
  if (!folder.empty()) fmt::print("[INFO] output data success\n");
  if (loop > 1) {
    fmt::print("Inference average time: {:f} ms\n", total * 1e3 / static_cast<double>(count));
  } else {
    fmt::print("Inference average time : {:.2f} ms\n", total * 1e3 / static_cast<double>(count));
    fmt::print("Inference average time without first time: {:.2f} ms\n",
               count > 1 ? (total - first) * 1e3 / static_cast<double>(count - 1) : 0.0);
  }
  fmt::print("[INFO] Execute sample success.\n");
  return 0;
}

}  // namespace

int msame_main(const std::vector<std::string>& arguments) {
  Msame msame;
  CLI::App app("Runs a model on files of raw elements.", "msame");
  app.add_option("--model", msame.model.path, "model, .om")->required();
  app.add_option("--input", msame.input, "a.bin,b.bin, or folders with equal file names; none: zeros");
  app.add_option("--output", msame.output, "folder for the outputs");
  app.add_option("--outfmt", msame.format, "BIN or TXT")->check(CLI::IsMember({"BIN", "TXT"}));
  app.add_option("--loop", msame.loop, "runs; 1 with folders")->check(CLI::Range(1, 100));
  app.add_option("--dymBatch", msame.dym_batch, "batch size")->check(CLI::PositiveNumber);
  app.add_option("--dymHW", msame.dym_hw, "height,width");
  app.add_option("--dymDims", msame.dym_dims, "\"data:1,600;img:1,600\"");
  app.add_option("--dymShape", msame.dym_shape, "\"in1:8,3,5,10\"");
  app.add_option("--outputSize", msame.output_size, "not needed: outputs are as large as they are");
  app.add_option("--device", msame.device, "one machine: no effect")->check(CLI::Range(0, 255));
  app.add_option("--threads", msame.model.threads, "0: all that the process may use")->check(CLI::Range(0, 1024));
  app.add_option("--debug", msame.debug, "no effect");
  app.add_option("--profiler", msame.profiler, "refused; cairn bench --per-op shows the time of each step");
  app.add_option("--dump", msame.dump, "refused");
  app.footer(
      "\nExamples:\n  msame --model resnet50.om --input image.bin --output out --outfmt TXT\n"
      "  msame --model bert.om --dymBatch 8 --loop 20");
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
    if (msame.profiler || msame.dump)
      fail(ErrorKind::unsupported, msame.profiler ? "--profiler" : "--dump",
           "cannot be used yet; cairn bench --per-op shows the time of each step");
    return run_msame(std::move(msame));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print("[ERROR] {}\n", error.what());
    return 1;
  }
}

}  // namespace cairn::cli
