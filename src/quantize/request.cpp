#include "quantize/request.h"

#include "quantize/amct.h"
#include "support/files.h"

namespace cairn::quantize {

void complete(Request& request, std::vector<std::string>& notes) {
  Options& options = request.options;
  for (const std::string& step : request.without) {
    bool* flag = step == "equalise"  ? &options.equalise
                 : step == "smooth"  ? &options.smooth
                 : step == "correct" ? &options.correct
                 : step == "costs"   ? &options.costs
                                     : nullptr;
    if (!flag)
      fail(ErrorKind::invalid_argument, "without", "'{}' is none of equalise, smooth, correct, costs", printable(step));
    *flag = false;
  }
  if (!request.config.empty()) read_config(expand_home(request.config), options, notes);
  if (!request.record.empty()) read_record(expand_home(request.record), options);
  for (const std::string& file : {request.config, request.record, request.new_config, request.new_record})
    options.costs &= file.empty();  // these are about the platform, which multiplies bytes alone
  if (request.new_record.empty()) return;
  if (options.weights_only != 0)
    fail(ErrorKind::invalid_argument, "write-record",
         "scales of data are not chosen where weights alone are quantised");
  options.equalise = options.smooth = false;  // a record is about the weights as they are in the model
}

void write_files(const Request& request, const Outcome& outcome, const Provenance& provenance) {
  const auto write = [](const std::string& path, const auto& text) {
    if (!path.empty()) write_file(expand_home(path), text());
  };
  write(request.page, [&] { return report_page(outcome, request.options, provenance); });
  write(request.new_config, [&] { return config_text(outcome, request.options); });
  write(request.new_record, [&] { return record_text(outcome); });
}

OmOrigin recorded(OmOrigin origin, const Options& options) {
  for (const auto& [name, value] : recorded_options(options)) origin.options["quantize_" + name] = value;
  return origin;
}

}  // namespace cairn::quantize
