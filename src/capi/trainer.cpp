// Training at the C interface.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cairn/training.h"
#include "capi/handles.h"
#include "capi/ports.h"
#include "support/files.h"
#include "train/fit.h"
#include "train/write.h"

using namespace cairn;
using namespace cairn::capi;
using Json = nlohmann::ordered_json;

struct CairnTrainer {
  CairnTrainer(Module module, std::string file, const TrainingOptions& options, const ModelOptions& run_options)
      : trainer(std::move(module), options, run_options), source(std::move(file)), inputs(ports_of(trainer.inputs())) {
    refresh();
  }
  void refresh() {
    states = trainer.checkpoint();
    std::vector<Port> ports;
    for (const auto& [name, tensor] : states) ports.push_back({name, tensor.type()});
    state_ports = ports_of(ports);
  }

  Trainer trainer;
  std::string source;  // the model's file
  std::vector<CairnModel::Port> inputs, state_ports;
  std::vector<std::pair<std::string, Tensor>> states;
};

namespace {

/// Reads a JSON object key by key; unread keys and malformed values are Errors.
class Reader {
 public:
  Reader(const char* text, const char* what) : what_(what) {
    if (!text || !*text) return;
    json_ = Json::parse(text, nullptr, false);
    if (!json_.is_object()) fail(ErrorKind::invalid_argument, what_, "are no JSON object");
  }
  template <class T>
  void read(const char* key, T& value) {
    known_.emplace_back(key);
    auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return;
    try {
      value = found->get<T>();
    } catch (const nlohmann::json::exception&) {
      fail(ErrorKind::invalid_argument, key, "has another form than expected: {}", found->dump());
    }
  }
  void finish() const {
    for (const auto& [key, value] : json_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        fail(ErrorKind::invalid_argument, what_, "no option is called {}; there are {}", key, fmt::join(known_, ", "));
  }

 private:
  const char* what_;
  Json json_ = Json::object();
  std::vector<std::string> known_;
};

TrainingOptions training_options(const char* text) {
  TrainingOptions options;
  Reader reader(text, "options");
  std::optional<int64_t> axis;
  int64_t class_axis = INT64_MAX;
  reader.read("loss", options.loss);
  reader.read("loss_numbers", options.loss_numbers);
  reader.read("class_axis", class_axis);
  reader.read("classes", options.classes);
  reader.read("optimizer", options.optimiser);
  reader.read("numbers", options.numbers);
  reader.read("weight_decay", options.weight_decay);
  reader.read("clip_norm", options.clip_norm);
  reader.read("norm_momentum", options.statistics_momentum);
  reader.read("train", options.train);
  reader.read("freeze", options.freeze);
  reader.read("labels", options.labels);
  reader.read("seed", options.seed);
  reader.finish();
  if (class_axis != INT64_MAX) options.class_axis = class_axis;
  return options;
}

FitOptions fit_options(const char* text, double usual_rate) {
  FitOptions options;
  options.schedule.rate = usual_rate;
  std::string schedule = "constant";
  Reader reader(text, "options");
  reader.read("epochs", options.epochs);
  reader.read("batch", options.batch);
  reader.read("shuffle", options.shuffle);
  reader.read("keep_rest", options.keep_rest);
  reader.read("seed", options.seed);
  reader.read("schedule", schedule);
  reader.read("learning_rate", options.schedule.rate);
  reader.read("least_rate", options.schedule.least);
  reader.read("gamma", options.schedule.gamma);
  reader.read("step_epochs", options.schedule.step_epochs);
  reader.read("warmup", options.schedule.warm_up);
  reader.finish();
  const auto kind = schedule_kind(schedule);
  if (!kind)
    fail(ErrorKind::invalid_argument, "schedule", "is {}, expected constant, step, cosine or linear", schedule);
  options.schedule.kind = *kind;
  return options;
}

Dataset dataset(const Trainer& trainer, const CairnTensor* arrays, size_t count) {
  const Inputs inputs(arrays, count);
  if (count != trainer.inputs().size())
    fail(ErrorKind::invalid_argument, "", "{} arrays are given, expected {}: the model's inputs and the labels", count,
         trainer.inputs().size());
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < count; ++i) {
    const TensorRef& ref = inputs.refs()[i];
    const std::vector<int64_t> dims(ref.dims.begin(), ref.dims.end());
    named[trainer.inputs()[i].name] = copy_of(Tensor::view(ref.dtype, dims, ref.data, nullptr));
  }
  return {trainer.inputs(), named};
}

void hand_measures(const CairnTrainer* trainer, const Trainer::Result& result, double* loss, double* accuracy) {
  if (loss) *loss = result.loss;
  if (accuracy) *accuracy = trainer->trainer.has_accuracy() ? result.accuracy : NAN;
}

}  // namespace

CairnStatus cairn_trainer_create(const CairnModule* module, const char* options, const CairnModelOptions* run_options,
                                 CairnTrainer** trainer) {
  return guarded([&] {
    require(module, "module");
    require(trainer, "trainer");
    *trainer = nullptr;
    *trainer = new CairnTrainer(clone(module->module), module->origin.source, training_options(options),
                                model_options(run_options));
  });
}

void cairn_trainer_free(CairnTrainer* trainer) { delete trainer; }
size_t cairn_trainer_input_count(const CairnTrainer* trainer) { return trainer ? trainer->inputs.size() : 0; }

CairnStatus cairn_trainer_input(const CairnTrainer* trainer, size_t index, CairnPort* port) {
  return guarded([&] {
    require(trainer, "trainer");
    hand_port(trainer->inputs, index, port);
  });
}

CairnStatus cairn_trainer_step(CairnTrainer* trainer, const CairnTensor* batch, size_t count, double learning_rate,
                               double* loss, double* accuracy) {
  return guarded([&] {
    require(trainer, "trainer");
    const Inputs inputs(batch, count);
    hand_measures(trainer, trainer->trainer.step(inputs.refs(), learning_rate), loss, accuracy);
  });
}

CairnStatus cairn_trainer_evaluate(const CairnTrainer* trainer, const CairnTensor* batch, size_t count, double* loss,
                                   double* accuracy) {
  return guarded([&] {
    require(trainer, "trainer");
    const Inputs inputs(batch, count);
    hand_measures(trainer, trainer->trainer.evaluate(inputs.refs()), loss, accuracy);
  });
}

CairnStatus cairn_trainer_fit(CairnTrainer* trainer, const CairnTensor* arrays, size_t count,
                              const CairnTensor* validation, const char* options, CairnEpochEnds epoch_ends,
                              void* user) {
  return guarded([&] {
    require(trainer, "trainer");
    const Dataset data = dataset(trainer->trainer, arrays, count);
    std::optional<Dataset> held;
    if (validation) held.emplace(dataset(trainer->trainer, validation, count));
    FitWatch watch;
    if (epoch_ends)
      watch.epoch = [&](const Epoch& epoch) {
        return epoch_ends(user, json_of(epoch, trainer->trainer.has_accuracy()).c_str()) != 0;
      };
    fit(trainer->trainer, data, held ? &*held : nullptr, fit_options(options, trainer->trainer.usual_rate()), watch);
  });
}

size_t cairn_trainer_state_count(const CairnTrainer* trainer) { return trainer ? trainer->states.size() : 0; }

CairnStatus cairn_trainer_state(const CairnTrainer* trainer, size_t index, CairnPort* port) {
  return guarded([&] {
    require(trainer, "trainer");
    hand_port(trainer->state_ports, index, port);
  });
}

CairnStatus cairn_trainer_states(CairnTrainer* trainer, CairnAllocate allocate, void* user) {
  return guarded([&] {
    require(trainer, "trainer");
    trainer->refresh();
    Outputs outputs(allocate, user);
    for (size_t i = 0; i < trainer->states.size(); ++i) {
      const Tensor& state = trainer->states[i].second;
      void* to = outputs(i, state.dtype(), state.dims());
      if (state.bytes()) std::memcpy(to, state.data(), state.bytes());
    }
  });
}

CairnStatus cairn_trainer_restore(CairnTrainer* trainer, const CairnTensor* states, size_t count) {
  return guarded([&] {
    require(trainer, "trainer");
    if (count != trainer->states.size())
      fail(ErrorKind::invalid_argument, "", "{} states are given, the training has {}", count, trainer->states.size());
    const Inputs given(states, count);
    std::map<std::string, Tensor> named;
    for (size_t i = 0; i < count; ++i) {
      const TensorRef& ref = given.refs()[i];
      named[trainer->states[i].first] = Tensor::view(ref.dtype, {ref.dims.begin(), ref.dims.end()}, ref.data, nullptr);
    }
    trainer->trainer.restore(named);
  });
}

CairnStatus cairn_trainer_module(const CairnTrainer* trainer, CairnModule** module) {
  return guarded([&] {
    require(trainer, "trainer");
    require(module, "module");
    *module = nullptr;
    *module = new CairnModule{trainer->trainer.trained(), {trainer->source, "", {}}};
  });
}

CairnStatus cairn_trainer_save(const CairnTrainer* trainer, const char* path) {
  return guarded([&] {
    require(trainer, "trainer");
    require(path, "path");
    write_trained(trainer->trainer, trainer->source, expand_home(path));
  });
}
