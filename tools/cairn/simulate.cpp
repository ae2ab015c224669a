// cairn simulate: what a training step would take on many ranks, predicted from one that was measured.
#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include "made_inputs.h"
#include "observe/recorder.h"
#include "profile/recording.h"
#include "simulate/predict.h"
#include "support/files.h"
#include "train/trainer.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;
using namespace simulate;

struct Simulate {
  ModelArguments model;  // or a recording
  std::vector<std::string> ranks;
  std::string network, inside, spread, bucket = std::to_string(comm::kBucketBytes), output;
  int ranks_per_host = 0, cores = 0, steps = 30;
  double processor_share = -1;
  TrainingOptions training;
  bool json = false;
};

bool holds_recordings(const std::string& path) {
  std::error_code error;
  if (fs::exists(fs::path(path) / kEventPath, error)) return true;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (fs::exists(entry.path() / kEventPath, error)) return true;
  return false;
}

/// Labels of zeros, for a batch as large as the inputs'.
Tensor labels_for(const Port& port, const std::vector<Tensor>& inputs) {
  Dims dims;
  for (const Dim& dim : port.type.shape.dims)
    dims.push_back(dim.known() ? dim.size : dims.empty() && !inputs[0].dims().empty() ? inputs[0].dims()[0] : 1);
  return Tensor::zeros(port.type.dtype, dims);
}

/// A folder of the temporary ones that goes with this object.
struct Scratch {
  fs::path path = fs::temp_directory_path() / fmt::format("cairn_simulate_{}", ::getpid());
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

/// Trains the model on made data, and records it.
Workload measure(const Simulate& asked) {
  const auto model = prepare(asked.model);
  ModelArguments batch = asked.model;
  if (batch.batch == 0) batch.batch = 32;
  std::vector<Tensor> values = make_inputs(*model, choose_dims(*model, batch, batch.batch), 0);
  ModelOptions options;
  options.threads = asked.model.threads;
  Trainer trainer(open(asked.model), asked.training, options);
  values.push_back(labels_for(trainer.inputs().back(), values));
  std::vector<TensorRef> refs;
  for (const Tensor& each : values) refs.push_back({each.dtype(), each.dims(), each.data()});
  for (int i = 0; i < 3; ++i) trainer.step(refs, trainer.usual_rate());
  const Scratch scratch;
  start_profile({.output = scratch.path.string()});
  Progress progress("measuring", asked.steps);
  for (int i = 0; i < asked.steps; ++i) trainer.step(refs, trainer.usual_rate()), progress.at(i + 1);
  Workload made = read_workload(profile::read_recording(stop_profile()));
  made.name = fs::path(asked.model.path).filename().string();
  if (asked.model.threads > 0) made.threads = asked.model.threads;
  return made;
}

Workload workload_of(const Simulate& asked) {
  const std::string path = expand_home(asked.model.path);
  if (holds_recordings(path)) return read_workload(profile::read_recording(profile::find_recordings(path).back()));
  return measure(asked);
}

std::vector<int> numbers_of_ranks(const std::vector<std::string>& texts) {
  std::vector<int> numbers;
  for (const std::string& text : texts) {
    char* end = nullptr;
    const long number = std::strtol(text.c_str(), &end, 10);
    if (end == text.c_str() || *end || number < 1 || number > 1000000)
      fail(ErrorKind::invalid_argument, "--ranks", "'{}' is no number of ranks from 1 to 1000000", printable(text));
    numbers.push_back(static_cast<int>(number));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Network network_of(const Simulate& asked) {
  Network network = read_network(asked.network);
  if (!asked.inside.empty()) network.inside = read_network(asked.inside).between;
  if (asked.ranks_per_host > 0) network.ranks_per_host = asked.ranks_per_host;
  if (asked.cores > 0) network.cores_per_host = asked.cores;
  if (asked.processor_share >= 0) network.processor_share = asked.processor_share;
  return network;
}

void print(const Workload& workload, const std::vector<Prediction>& predictions) {
  fmt::print("{}: a step of {} on one rank, {} gradients of {}, over {} steps\n\n", workload.name,
             seconds_text(workload.seconds), workload.gradients.size(), bytes_text(workload.bytes()), workload.steps);
  Table table(
      {">ranks", ">step", ">exchange", ">hidden", ">waiting", ">buckets", "algorithm", ">as fast as", ">efficiency"});
  for (const Prediction& each : predictions) {
    const double share = each.efficiency(workload.seconds);
    table.add({std::to_string(each.ranks), seconds_text(each.seconds), seconds_text(each.exchanging),
               fmt::format("{:.0f} %", 100 * each.hidden()), seconds_text(each.waiting), std::to_string(each.buckets),
               each.algorithm, fmt::format("{:.1f} ranks", each.ranks * share), fmt::format("{:.1f} %", 100 * share)});
  }
  table.print();
}

int simulate_training(const Simulate& asked) {
  const std::vector<int> ranks = numbers_of_ranks(asked.ranks);
  const Network network = network_of(asked);
  const double bucket = parse_bytes(asked.bucket, "--bucket");
  const double spread = asked.spread.empty() ? -1 : parse_seconds(asked.spread, "--spread");
  Workload workload = workload_of(asked);
  if (spread >= 0) workload.spread = spread;
  std::vector<Prediction> predictions;
  for (int each : ranks) predictions.push_back(predict(workload, each, network, bucket));
  if (!asked.output.empty()) write_file(expand_home(asked.output), picture(workload, network, predictions, bucket));
  if (asked.json)
    fmt::print("{}\n", json_of(workload, network, predictions, bucket));
  else
    print(workload, predictions);
  if (!asked.output.empty() && !asked.json) fmt::print("\npage: {}\n", asked.output);
  return 0;
}

constexpr const char* kSimulateExamples = R"(
The batch of a rank stays as it was measured. What the numbers mean: docs/how-to/simulate.md.

Examples:
  cairn profile -o profiles -- cairn ms train.py       one rank, recorded
  cairn simulate profiles --ranks 2,8,64,4096 --network 10us,12.5GB/s -o scaling.html
  cairn simulate profiles --ranks 64,1024 --network 5us,100Gb/s --ranks-per-host 8
  cairn simulate model.onnx --batch 32 --ranks 8,64 --network cluster.json --bucket 4MB --json)";

}  // namespace

void add_simulate(Verb& app, Run& run) {
  auto asked = std::make_shared<Simulate>();
  Verb verb = app.add_verb("simulate", "predict training on many ranks from one that was measured");
  add_model_options(verb, asked->model, asked->json);
  verb.add_option("--ranks", asked->ranks, "numbers of ranks, with commas between them").required().delimiter(',');
  verb.add_option("--network", asked->network,
                  "latency,bandwidth[,auto|ring|tree|direct] between hosts, or a JSON file")
      .required();
  verb.add_option("--inside", asked->inside, "latency,bandwidth inside a host, else as between hosts");
  verb.add_option("--ranks-per-host", asked->ranks_per_host, "ranks that share a host and its link").positive();
  verb.add_option("--cores", asked->cores, "of a host, for ranks of which it has too few").positive();
  verb.add_option("--processor-share", asked->processor_share, "of an exchange's time that is taken from computing")
      .within(0.0, 1.0);
  verb.add_option("--bucket", asked->bucket, "bytes up to which gradients travel together");
  verb.add_option("--spread", asked->spread,
                  "standard deviation of a step's time, 0 for ranks of one speed; else as measured");
  verb.add_option("--loss", asked->training.loss, "of a model that is measured now");
  verb.add_option("--optimizer,--optimiser", asked->training.optimiser, "of a model that is measured now");
  verb.add_option("--steps", asked->steps, "that are measured of a model").within(4, 100000);
  verb.add_option("-o,--output", asked->output, "page with the curves");
  verb.footer(kSimulateExamples);
  verb.callback([asked, &run] { run = [asked] { return simulate_training(*asked); }; });
}

}  // namespace cairn::cli
