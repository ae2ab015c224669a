// cairn train: a model of any format is trained on arrays, and written back with its new weights.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "arrays.h"
#include "autodiff/losses.h"
#include "autodiff/optimisers.h"
#include "comm/job.h"
#include "support/files.h"
#include "train/fit.h"
#include "train/write.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

struct Train {
  ModelArguments model;
  TrainingOptions training;
  FitOptions fit;
  std::string data, validation, schedule = "constant", checkpoint, resume;
  std::vector<std::string> outputs, numbers, loss_numbers;
  double rate = -1, momentum = -1, split = 0;
  int class_axis = INT_MAX, seed = 0;
  bool in_order = false, drop_rest = false, json = false;
};

/// "name=number" as numbers by name.
std::map<std::string, double> numbers_of(const std::vector<std::string>& words, const char* option) {
  std::map<std::string, double> numbers;
  for (const std::string& word : words) {
    const size_t at = word.find('=');
    char* end = nullptr;
    const double value = at == std::string::npos ? 0 : std::strtod(word.c_str() + at + 1, &end);
    if (!end || end == word.c_str() + at + 1 || *end != 0)
      fail(ErrorKind::invalid_argument, option, "'{}' is not NAME=NUMBER", printable(word));
    numbers[word.substr(0, at)] = value;
  }
  return numbers;
}

/// Inputs whose first size the file fixes, as exporters write it, are opened for any batch.
Module open_for_batches(ModelArguments arguments) {
  Module module = open(arguments);
  if (!arguments.shapes.empty() || kind_of(expand_home(arguments.path)) != FileKind::foreign) return module;
  bool fixed = false;
  for (const auto& param : module.main().body.params) {
    const Shape& shape = param->type.shape;
    if (!shape.ranked || shape.rank() == 0) return module;
    fixed |= shape.dims[0].known();
    arguments.shapes += fmt::format("{}{}:-1", arguments.shapes.empty() ? "" : ";", param->name);
    for (size_t i = 1; i < shape.rank(); ++i)
      arguments.shapes += fmt::format(",{}", shape.dims[i].known() ? shape.dims[i].size : -1);
  }
  if (fixed) module = open(arguments);
  return module;
}

/// Classes are integers with a dim less than the answers.
bool holds_classes(const Tensor& labels, const Module& module) {
  const Type& answers = module.main().body.results.at(0)->type;
  return labels.dtype().is_integer() &&
         (labels.rank() < answers.shape.rank() || (labels.rank() > 1 && labels.dims().back() == 1));
}

std::map<std::string, Tensor> read_examples(const std::string& path, const std::string& labels) {
  std::map<std::string, Tensor> arrays = read_npz(expand_home(path));
  if (arrays.contains(labels)) return arrays;
  std::vector<std::string> known;
  for (const auto& each : arrays) known.push_back(each.first);
  fail(ErrorKind::not_found, path, "has no array '{}'; --labels names another: {}", labels, fmt::join(known, ", "));
}

void print_epoch(const Epoch& epoch, int epochs, bool accuracy) {
  auto measures = [&](const char* title, double loss, double hits) {
    return fmt::format("  {}loss {:<9.4g}{}", title, loss, accuracy ? fmt::format(" accuracy {:<7.4f}", hits) : "");
  };
  fmt::print("epoch {:>{}}/{}{}", epoch.number, std::to_string(epochs).size(), epochs,
             measures("", epoch.loss, epoch.accuracy));
  if (epoch.validation) fmt::print("{}", measures("validation ", epoch.validation->loss, epoch.validation->accuracy));
  fmt::print("  {} a step\n", seconds_text(epoch.step_seconds));
  std::fflush(stdout);
}

void check_outputs(const Train& train) {
  for (const std::string& output : train.outputs)
    if (!output.ends_with(".npz")) check_trained_path(expand_home(train.model.path), output);
}

void write_output(const Trainer& trainer, const Train& train, const std::string& output) {
  const std::string path = expand_home(output);
  if (path.ends_with(".npz")) return write_npz(trainer.weights(), path);
  write_trained(trainer, expand_home(train.model.path), path);
}

void save_checkpoint(const Trainer& trainer, const std::string& path) {
  if (!path.empty()) write_npz(trainer.checkpoint(), expand_home(path));
}

TrainingOptions training_options(Train& train, const Tensor& labels, const Module& module) {
  TrainingOptions options = train.training;
  options.numbers = numbers_of(train.numbers, "--set");
  options.loss_numbers = numbers_of(train.loss_numbers, "--loss-set");
  if (train.momentum >= 0) options.numbers["momentum"] = train.momentum;
  if (train.class_axis != INT_MAX) options.class_axis = train.class_axis;
  options.classes = holds_classes(labels, module);
  options.seed = static_cast<uint64_t>(train.seed);
  return options;
}

/// Batches are as large as the model takes them where its first size is fixed.
void fit_batch(Train& train, const Trainer& trainer) {
  train.fit.batch = train.model.batch > 0 ? train.model.batch : 32;
  for (const Port& port : trainer.inputs()) {
    const Shape& shape = port.type.shape;
    if (!shape.ranked || shape.rank() == 0 || !shape.dims[0].known() || shape.dims[0].size == train.fit.batch) continue;
    train.fit.batch = shape.dims[0].size, train.fit.keep_rest = false;
    fmt::print(stderr, "note: {} takes batches of {}\n", port.name, train.fit.batch);
  }
}

void tell_folded_norms(const Module& module) {
  const auto norms = module.metadata.find("folded_norms");
  if (norms == module.metadata.end()) return;
  fmt::print(stderr,
             "note: the exporter folded {} batch norms into convolutions, which train without them; export with"
             " optimize=False to keep them\n",
             norms->second);
}

/// The job that the environment tells of, if any, for as long as this lives. Rank 0 alone tells and writes.
class Ranks {
 public:
  Ranks() { comm::join(""); }
  ~Ranks() {
    try {
      comm::leave();
    } catch (const Error&) {  // of a job that has failed, which was said
    }
  }
  Ranks(const Ranks&) = delete;
  bool first() const { return comm::group("world").rank == 0; }
};

int train_model(Train train) {
  const Ranks ranks;
  if (!ranks.first()) {
    train.outputs.clear(), train.checkpoint.clear();
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
  }
  check_outputs(train);
  Module module = open_for_batches(train.model);
  tell_folded_norms(module);
  const auto arrays = read_examples(train.data, train.training.labels);
  const TrainingOptions options = training_options(train, arrays.at(train.training.labels), module);
  ModelOptions run_options;
  run_options.threads = train.model.threads;
  run_options.engines = split_list(train.model.engines, ',');
  Trainer trainer(std::move(module), options, run_options);
  if (!train.resume.empty()) trainer.restore(read_npz(expand_home(train.resume)));
  fit_batch(train, trainer);
  train.fit.shuffle = !train.in_order, train.fit.seed = options.seed;
  train.fit.keep_rest &= !train.drop_rest;
  train.fit.schedule.kind = *schedule_kind(train.schedule);
  train.fit.schedule.rate = train.rate >= 0 ? train.rate : trainer.usual_rate();

  Dataset data(trainer.inputs(), arrays);
  std::optional<Dataset> validation;
  if (!train.validation.empty())
    validation.emplace(trainer.inputs(), read_examples(train.validation, options.labels));
  else if (train.split > 0) {
    std::vector<int64_t> places = shuffled(data.count(), options.seed);
    places.resize(std::max<size_t>(1, static_cast<size_t>(train.split * static_cast<double>(places.size()))));
    std::sort(places.begin(), places.end());
    if (static_cast<int64_t>(places.size()) == data.count())
      fail(ErrorKind::invalid_argument, "--split", "leaves no example of {} to train on", data.count());
    validation.emplace(data.split_off(places));
  }

  const auto weights = trainer.weights();
  double elements = 0;
  for (const auto& [name, tensor] : weights) elements += static_cast<double>(tensor.count());
  if (!train.json)
    fmt::print("{} examples{}, {} weights of {} elements, {}, {}\n", data.count(),
               validation ? fmt::format(" and {} to validate", validation->count()) : "", weights.size(),
               count_text(elements), options.loss, options.optimiser);
  Json epochs = Json::array();
  auto progress = std::make_unique<Progress>("training", 1.0);
  FitWatch watch;
  watch.step = [&](int64_t done, int64_t all) { progress->at(static_cast<double>(done) / static_cast<double>(all)); };
  watch.epoch = [&](const Epoch& epoch) {
    epochs.push_back(Json::parse(json_of(epoch, trainer.has_accuracy())));
    if (!train.json) print_epoch(epoch, train.fit.epochs, trainer.has_accuracy());
    save_checkpoint(trainer, train.checkpoint);
    return true;
  };
  fit(trainer, data, validation ? &*validation : nullptr, train.fit, watch);
  progress.reset();
  for (const std::string& output : train.outputs) write_output(trainer, train, output);
  if (train.json) {
    print_json({{"epochs", epochs},
                {"weights", weights.size()},
                {"elements", elements},
                {"steps", trainer.steps()},
                {"outputs", train.outputs}});
    return 0;
  }
  if (epochs.empty()) fmt::print("nothing to do: {} epochs are done\n", train.fit.epochs);
  for (const std::string& output : train.outputs) fmt::print("wrote {}\n", output);
  return 0;
}

constexpr const char* kExamples = R"(
Data is a .npz file: an array for each input by its name, the labels as `labels`, examples along the
first dim.
Optimisers, losses and their numbers: docs/reference/optimisers.md and losses.md.

Examples:
  cairn train resnet.onnx --data digits.npz --optimizer sgd --momentum 0.9 --lr 0.1 -o new.onnx
  cairn train saved_model/ --data train.npz --validation test.npz -o trained.om -o weights.npz
  cairn train net.onnx --data xy.npz --loss mse --schedule cosine --warmup 1 --checkpoint last.npz
  cairn train net.onnx --data xy.npz --resume last.npz --epochs 20 -o trained.onnx
  cairn train vit.onnx --data xy.npz --train "head.*" --optimizer adamw -o trained.onnx)";

std::vector<std::string> names_of(auto rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

}  // namespace

void add_train(Verb& app, Run& run) {
  auto train = std::make_shared<Train>();
  Verb verb = app.add_verb("train", "train a model's weights on arrays");
  add_model_options(verb, train->model, train->json);
  verb.add_option("-d,--data", train->data, ".npz file of the examples").required();
  verb.add_option("--labels", train->training.labels, "name of the labels' array");
  verb.add_option("--loss", train->training.loss, fmt::format("{}", fmt::join(names_of(losses()), ", ")));
  verb.add_option("--loss-set", train->loss_numbers, "numbers of the loss: NAME=NUMBER");
  verb.add_option("--class-axis", train->class_axis, "axis of the classes among the model's answers");
  verb.add_option("--optimizer,--optimiser", train->training.optimiser,
                  fmt::format("{}", fmt::join(names_of(optimisers()), ", ")));
  verb.add_option("--learning-rate,--lr", train->rate, "else the optimiser's usual one").within(0.0, 1e9);
  verb.add_option("--momentum", train->momentum, "of sgd, rmsprop and lars").within(0.0, 1.0);
  verb.add_option("--set", train->numbers, "other numbers of the optimiser: NAME=NUMBER");
  verb.add_option("--weight-decay", train->training.weight_decay, "share of each weight").within(0.0, 1e9);
  verb.add_option("--clip-norm", train->training.clip_norm, "most length of all gradients together").within(0.0, 1e30);
  verb.add_option("--epochs", train->fit.epochs, "times that all examples are used").positive();
  verb.add_option("--schedule", train->schedule, "of the learning rate: constant, step, cosine, linear")
      .one_of({"constant", "step", "cosine", "linear"});
  verb.add_option("--warmup", train->fit.schedule.warm_up, "epochs in which the rate rises").within(0.0, 1e9);
  verb.add_option("--step-epochs", train->fit.schedule.step_epochs, "epochs between the falls of --schedule step")
      .positive();
  verb.add_option("--gamma", train->fit.schedule.gamma, "factor of each fall").within(0.0, 1.0);
  verb.add_option("--least-rate", train->fit.schedule.least, "where cosine and linear end").within(0.0, 1e9);
  verb.add_option("--train", train->training.train, "weights to train, names with *; else all").delimiter(',');
  verb.add_option("--freeze", train->training.freeze, "weights that stay as they are").delimiter(',');
  verb.add_option("--norm-momentum", train->training.statistics_momentum,
                  "share of the old mean and variance of batch norms")
      .within(0.0, 1.0);
  verb.add_option("--validation", train->validation, ".npz file to measure on after each epoch");
  verb.add_option("--split", train->split, "share of the examples to measure on instead").within(0.0, 1.0);
  verb.add_option("--seed", train->seed, "of the order of the examples").within(0, INT_MAX);
  verb.add_flag("--in-order", train->in_order, "examples are not shuffled");
  verb.add_flag("--drop-rest", train->drop_rest, "examples that do not fill the last batch are left out");
  verb.add_option("--checkpoint", train->checkpoint, ".npz file written after each epoch");
  verb.add_option("--resume", train->resume, "checkpoint to go on from");
  verb.add_option("-o,--output", train->outputs, "trained model: .onnx (as the file was), .om, or .npz of the weights");
  verb.footer(kExamples);
  verb.callback([train, &run] { run = [train] { return train_model(*train); }; });
}

}  // namespace cairn::cli
