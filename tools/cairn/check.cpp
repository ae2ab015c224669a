// cairn check: reads everything in a model file and tells whether it is sound and can be planned.
#include "model/om_file.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

struct Check {
  ModelArguments model;
  bool json = false;
};

int check_model(const Check& check) {
  std::string path = expand_home(check.model.path);
  Json json = {{"format", format_name(path)}, {"checked", Json::array()}};
  auto done = [&](const std::string& what) {
    if (check.json)
      json["checked"].push_back(what);
    else
      fmt::print("ok  {}\n", what);
  };
  if (kind_of(path) == FileKind::om) {
    auto file = OmFile::open(path);
    done(fmt::format("{} sections, {}", file->sections().size(), bytes_text(double(file->size()))));
    file->check_weights();
    done(fmt::format("checksum of {} weights", file->weights().size()));
  }
  auto model = prepare(check.model);
  done(fmt::format("module of {} inputs, {} outputs", model->inputs().size(), model->outputs().size()));
  auto plan = model->plan(choose_dims(*model, check.model));
  done(fmt::format("plan of {} steps", plan->steps.size()));
  if (check.json) print_json(json);
  return 0;
}

}  // namespace

void add_check(Verb& app, Run& run) {
  auto check = std::make_shared<Check>();
  Verb verb = app.add_verb("check", "reads everything in a model and tells whether it is sound");
  add_model_options(verb, check->model, check->json);
  verb.footer("\nExamples:\n  cairn check model.om\n  cairn check model.onnx --input-shape=\"x:1,3,224,224\" --json");
  verb.callback([check, &run] { run = [check] { return check_model(*check); }; });
}

}  // namespace cairn::cli
