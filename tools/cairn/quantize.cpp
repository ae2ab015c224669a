// cairn quantize: a model whose convolutions and matrix products compute on 8 bits, or keep their weights in 8 or 4.
#include "quantize/request.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

using quantize::LayerResult;
using quantize::Outcome;
using quantize::Score;

struct Quantize {
  ModelArguments model;
  quantize::Request request;
  std::string data, output, labels, method = "mse";
  int calibration = 256, group = 64;
  bool json = false;
};

std::string score_text(const Score& score) {
  return score.accuracy ? fmt::format("{:.2f} %", 100 * *score.accuracy) : fmt::format("{:.1f} dB", score.sqnr);
}

std::string now(const LayerResult& layer) {
  if (layer.rounds_data) return "integers";
  return (layer.quantised ? "weights" : "f32") + (layer.reason.empty() ? "" : ": " + layer.reason);
}

void print_outcome(const Outcome& outcome, const Quantize& quantize) {
  Table table({"layer", "operator", "now", ">alone, dB", ">weights", ">now"});
  for (const LayerResult& layer : outcome.layers)
    table.add({layer.name, layer.op, now(layer), layer.sqnr ? fmt::format("{:.1f}", *layer.sqnr) : "",
               bytes_text(double(layer.bytes_before)), bytes_text(double(layer.bytes_after))});
  table.print();
  for (const auto& [reason, count] : outcome.skipped) fmt::print("not quantised: {} operators {}\n", count, reason);
  for (const std::string& step : outcome.steps) fmt::print("{}\n", step);
  const auto kept = std::count_if(outcome.layers.begin(), outcome.layers.end(),
                                  [](const LayerResult& layer) { return !layer.quantised; });
  fmt::print("\n{} of {} layers quantised, constants {} to {}\n", outcome.layers.size() - static_cast<size_t>(kept),
             outcome.layers.size(), bytes_text(double(outcome.bytes_before)), bytes_text(double(outcome.bytes_after)));
  if (outcome.final) {
    fmt::print("budget: {}\n", budget_text(outcome.budget));
    const bool fell_back = outcome.whole->sqnr != outcome.final->sqnr;
    const std::string all =
        fell_back ? fmt::format(", {} before layers went back to f32", score_text(*outcome.whole)) : "";
    if (outcome.final->accuracy)
      fmt::print("accuracy of {} examples: {}{}, {} of the f32 model\n", outcome.examples, score_text(*outcome.final),
                 all, score_text(*outcome.original));
    else
      fmt::print("SQNR of the results of {} examples: {}{}\n", outcome.examples, score_text(*outcome.final), all);
  }
  if (outcome.seconds_after > 0)
    fmt::print("a run on one batch: {}, {} of the f32 model\n", seconds_text(outcome.seconds_after),
               seconds_text(outcome.seconds_before));
  const quantize::Request& request = quantize.request;
  for (const std::string* path : {&request.page, &request.new_config, &request.new_record, &quantize.output})
    if (!path->empty()) fmt::print("wrote {}\n", *path);
}

/// One bar for each stage.
class Stages {
 public:
  void operator()(const std::string& what, double share) {
    if (what != shown_) bar_.reset(), bar_ = std::make_unique<Progress>(shown_ = what, 1.0);
    bar_->at(share);
  }

 private:
  std::unique_ptr<Progress> bar_;
  std::string shown_;
};

void complete_request(Quantize& quantize) {
  quantize::Request& request = quantize.request;
  if (quantize.output.empty() && request.page.empty() && request.new_config.empty() && request.new_record.empty() &&
      !quantize.json)
    fail(ErrorKind::invalid_argument, "--output", "is missing, and so is --report: there is nothing to write");
  if (!quantize.output.empty() && !quantize.output.ends_with(".om")) quantize.output += ".om";
  request.options.method = *quantize::parse_method(quantize.method);
  request.options.calibration = quantize.calibration, request.options.group = quantize.group;
  request.options.threads = quantize.model.threads;
  std::vector<std::string> notes;
  complete(request, notes);
  for (const std::string& sentence : notes) fmt::print(stderr, "note: {}\n", sentence);
  if (quantize.data.empty() && request.options.weights_only == 0 && !request.options.only_ordered)
    fail(ErrorKind::invalid_argument, "--data", "is missing: calibration needs examples, an .npz file or a folder");
}

int quantize_model(Quantize quantize) {
  complete_request(quantize);
  quantize::Options& options = quantize.request.options;
  const Module module = open(quantize.model);
  std::optional<quantize::Examples> examples;
  if (!quantize.data.empty()) {
    const int64_t batch = quantize.model.batch > 0 ? quantize.model.batch : 32;
    examples.emplace(module, quantize::read_examples(expand_home(quantize.data)), quantize.labels, batch);
  }
  auto stages = std::make_shared<Stages>();
  options.progress = [&](const std::string& what, double share) { (*stages)(what, share); };
  const Outcome outcome = quantise(module, examples ? &*examples : nullptr, options);
  stages.reset();
  const OmOrigin origin = quantize::recorded(origin_of(expand_home(quantize.model.path)), options);
  if (!quantize.output.empty()) write_om(outcome.module, origin, expand_home(quantize.output));
  const quantize::Provenance provenance{quantize.model.path, origin.source_sha256, quantize.data, quantize.output};
  write_files(quantize.request, outcome, provenance);
  if (quantize.json)
    print_json(report_json(outcome, options, provenance));
  else
    print_outcome(outcome, quantize);
  return 0;
}

constexpr const char* kQuantizeExamples = R"(
Data: an .npz file with an array for each input by its name, examples along the first dim, an .npy
file for a model of one input, or a folder of such files, of which each .npy bears an input's name.
An array called labels, label or y is taken for the right classes: then the budget is one of
accuracy, else one of the error of the results.

Examples:
  cairn quantize resnet50.onnx --data images.npz -o resnet50_int8.om --report quantised.html
  cairn quantize saved_model/ --data folder/ -o small.om --budget 1% --method kl
  cairn quantize gpt2.onnx --weights-only 4 -o gpt2_int4.om
  cairn quantize net.onnx --data x.npz -o net.om --config quant.cfg --write-record scales.txt
  cairn quantize net.onnx --record scales.txt -o net.om)";

}  // namespace

void add_quantize(Verb& app, Run& run) {
  auto quantize = std::make_shared<Quantize>();
  Verb verb = app.add_verb("quantize", "a model that computes on 8 bits, within a budget of accuracy");
  add_model_options(verb, quantize->model, quantize->json);
  verb.add_option("-d,--data", quantize->data,
                  "examples to calibrate on and to measure with: .npz or .npy file, or folder");
  verb.add_option("-o,--output", quantize->output, "file to write; .om is added");
  verb.add_option("--method", quantize->method, "how ranges are chosen: minmax, percentile, kl, mse")
      .one_of({"minmax", "percentile", "kl", "mse"});
  verb.add_option("--percentile", quantize->request.options.percentile,
                  "share of values within the range, of that method")
      .within(50.0, 100.0);
  verb.add_option("--weights-only", quantize->request.options.weights_only, "8 or 4 bits for weights, data stays f32");
  verb.add_option("--group", quantize->group, "inputs that share a scale of 4 bits").positive();
  verb.add_option("--budget", quantize->request.options.budget,
                  "what may be lost: 0.5% of accuracy, or of the results; or 25dB");
  verb.add_option("--labels", quantize->labels, "name of the labels' array, if not labels, label or y");
  verb.add_option("--keep", quantize->request.options.keep, "layers that stay f32; names may end in *").delimiter(',');
  verb.add_option("--calibrate-on", quantize->calibration, "most examples that ranges are taken from").positive();
  verb.add_option("--without", quantize->request.without, "steps to leave out: equalise, smooth, correct, costs")
      .delimiter(',')
      .one_of({"equalise", "smooth", "correct", "costs"});
  verb.add_option("--report", quantize->request.page, ".html file to write");
  verb.add_option("--config", quantize->request.config, "configuration of AMCT to follow");
  verb.add_option("--record", quantize->request.record, "record of AMCT whose scales and offsets to use");
  verb.add_option("--write-config", quantize->request.new_config, "configuration of AMCT to write");
  verb.add_option("--write-record", quantize->request.new_record, "record of AMCT to write");
  verb.footer(kQuantizeExamples);
  verb.callback([quantize, &run] { run = [quantize] { return quantize_model(*quantize); }; });
}

}  // namespace cairn::cli
