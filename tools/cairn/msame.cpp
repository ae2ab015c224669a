// msame: runs a model on files of raw elements, with the platform runner's options and the lines that scripts search for.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "arrays.h"
#include "observe/dump.h"
#include "runtime/input_limits.h"
#include "support/fault.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

struct Msame {
  ModelArguments model;
  std::string input, output, format = "BIN", dym_batch, dym_hw, dym_dims, dym_shape, output_size;
  int loop = 1, device = 0;
  bool profiler = false, dump = false, debug = false;
};

std::string shape_text(const std::string& name, const std::vector<int64_t>& dims, bool first) {
  return fmt::format("{}{}:{}", first ? "" : ";", name, fmt::join(dims, ","));
}

/// The open sizes of every input in order: a batch, or a height and width.
std::string filled_shapes(const std::vector<Port>& inputs, const std::vector<std::string>& sizes) {
  std::string text;
  for (const Port& input : inputs) {
    std::vector<int64_t> dims;
    size_t next = 0;
    for (const Dim& dim : input.type.shape.dims)
      dims.push_back(dim.known() || next == sizes.size() ? dim.size : std::stoll(sizes[next++]));
    text += shape_text(input.name, dims, text.empty());
  }
  return text;
}

/// Of a model with profiles whose user names none: the first.
std::string first_profile(const Model& model) {
  InputLimits limits = InputLimits::of(model.module());
  if (limits.alternatives().empty()) return {};
  std::string text;
  const auto& ports = model.inputs();
  for (size_t i = 0; i < ports.size(); ++i) {
    std::vector<int64_t> dims;
    for (const SizeRange& range : limits.alternatives()[0][i]) dims.push_back(range.low);
    text += shape_text(ports[i].name, dims, text.empty());
  }
  fmt::print("[WARN] no sizes are given for this model of dynamic sizes; run with {}\n", text);
  return text;
}

std::string shapes_of_run(const Model& model, const Msame& msame) {
  if (!msame.dym_dims.empty()) return msame.dym_dims;
  if (!msame.dym_shape.empty()) return msame.dym_shape;
  std::vector<std::string> sizes = split_list(msame.dym_batch.empty() ? msame.dym_hw : msame.dym_batch, ',');
  if (sizes.empty()) return first_profile(model);
  size_t wanted = msame.dym_batch.empty() ? 2 : 1;
  for (const std::string& size : sizes)
    if (sizes.size() != wanted || size.find_first_not_of("0123456789") != std::string::npos || size.size() > 9)
      fail(ErrorKind::invalid_argument, wanted == 2 ? "--dymHW" : "--dymBatch", "expected {}",
           wanted == 2 ? "a height and a width: 300,500" : "a number");
  const auto is_open = [](const Port& input) { return !input.type.is_static(); };
  if (std::none_of(model.inputs().begin(), model.inputs().end(), is_open))
    fail(ErrorKind::invalid_argument, wanted == 2 ? "--dymHW" : "--dymBatch", "all sizes of the model are fixed");
  return filled_shapes(model.inputs(), sizes);
}

/// Time of each step, slowest first, as a table in a file.
void write_profile(const Module& module, const StepTimes& times, const std::string& folder) {
  fs::create_directories(folder);
  auto entries = times.entries();
  std::stable_sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
  std::string text = "step,kernel,runs,total_us,mean_us\n";
  for (const StepTimes::Entry& entry : entries)
    text += fmt::format("\"{}\",\"{}\",{},{:.3f},{:.3f}\n", step_sources(module, *entry.step), entry.step->kernel,
                        entry.runs, entry.seconds * 1e6, entry.seconds * 1e6 / static_cast<double>(entry.runs));
  write_file((fs::path(folder) / "steps.csv").string(), text);
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
  msame.model.shapes = shapes_of_run(*model, msame);
  auto runs = runs_of(msame, model->inputs().size());
  std::string folder = expand_home(msame.output);
  if (!folder.empty()) fs::create_directories(folder);
  StepTimes times;
  DumpOptions dump;
  dump.path = (fs::path(folder) / "dump").string();
  dump.tensors = dump.npy = true;
  if (msame.dump) start_dump(dump);
  RunOptions observed;
  if (msame.profiler) observed.observer = &times;
  double total = 0, first = 0;
  size_t count = 0;
  int loop = runs.size() > 1 ? 1 : msame.loop;
  for (const auto& files : runs) {
    std::vector<Tensor> inputs = read_inputs(*model, msame.model, files, true);
    std::vector<Tensor> outputs;
    for (int i = 0; i < loop; ++i) {
      auto begin = std::chrono::steady_clock::now();
      outputs = run_watched(*model, inputs, observed);
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
  if (msame.profiler) write_profile(model->module(), times, (fs::path(folder) / "profiler").string());
  if (msame.dump) fmt::print("[INFO] what every step made is in {}\n", stop_dump(true));
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
  Program app("msame", "Runs a model on files of raw elements.");
  app.add_option("--model", msame.model.path, "model, .om").required();
  app.add_option("--input", msame.input, "a.bin,b.bin, or folders with equal file names; none: zeros");
  app.add_option("--output", msame.output, "folder for the outputs");
  app.add_option("--outfmt", msame.format, "BIN or TXT").one_of({"BIN", "TXT"});
  app.add_option("--loop", msame.loop, "runs; 1 with folders").within(1, 100);
  app.add_option("--dymBatch", msame.dym_batch, "batch size").positive();
  app.add_option("--dymHW", msame.dym_hw, "height,width");
  app.add_option("--dymDims", msame.dym_dims, "\"data:1,600;img:1,600\"");
  app.add_option("--dymShape", msame.dym_shape, "\"in1:8,3,5,10\"");
  app.add_option("--outputSize", msame.output_size, "not needed: outputs are as large as they are");
  app.add_option("--device", msame.device, "one machine: no effect").within(0, 255);
  app.add_option("--threads", msame.model.threads, "0: all that the process may use").within(0, 1024);
  app.add_switch("--debug", msame.debug, "no effect");
  app.add_switch("--profiler", msame.profiler, "times of the steps in OUTPUT/profiler/steps.csv");
  app.add_switch("--dump", msame.dump, "what every step makes in OUTPUT/dump, for cairn compare");
  app.footer(
      "\nExamples:\n  msame --model resnet50.om --input image.bin --output out --outfmt TXT\n"
      "  msame --model bert.om --dymBatch 8 --loop 20");
  if (std::optional<int> status = app.parse(arguments)) return *status;
  try {
    load_libraries();
    if (msame.profiler && msame.dump) fail(ErrorKind::invalid_argument, "--profiler", "excludes --dump");
    if ((msame.profiler || msame.dump) && msame.output.empty())
      fail(ErrorKind::invalid_argument, "--output", "is needed with --profiler and --dump");
    const std::string* sizes[] = {&msame.dym_batch, &msame.dym_hw, &msame.dym_dims, &msame.dym_shape};
    if (std::count_if(std::begin(sizes), std::end(sizes), [](const std::string* text) { return !text->empty(); }) > 1)
      fail(ErrorKind::invalid_argument, "--dymBatch",
           "only one of --dymBatch, --dymHW, --dymDims and --dymShape is taken");
    if (!msame.dym_shape.empty() && msame.input.empty())
      fail(ErrorKind::invalid_argument, "--input", "is needed with --dymShape");
    return run_msame(std::move(msame));
  } catch (...) {
    fmt::print("[ERROR] {}\n", current_fault().what());
    return 1;
  }
}

}  // namespace cairn::cli
