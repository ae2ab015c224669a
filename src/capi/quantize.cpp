// Quantisation of modules at the C interface.
#include "capi/handles.h"
#include "capi/options.h"
#include "passes/passes.h"
#include "quantize/request.h"
#include "support/files.h"

using namespace cairn;
using namespace cairn::capi;
namespace {

struct QuantizeRequest : quantize::Request {
  std::string labels, data;
  int64_t batch = 32;
};

QuantizeRequest quantize_request(const char* text) {
  QuantizeRequest request;
  quantize::Options& options = request.options;
  const Json given = parse_options(text);
  for (const auto& [key, value] : given.items()) {
    const auto word = [&, name = key, &word_value = value] {
      if (!word_value.is_string()) fail(ErrorKind::invalid_argument, name, "is no text");
      return word_value.get<std::string>();
    };
    const auto number = [&, name = key, &number_value = value](int64_t least) {
      if (!number_value.is_number_integer() || number_value.get<int64_t>() < least)
        fail(ErrorKind::invalid_argument, name, "is no whole number from {} on", least);
      return number_value.get<int64_t>();
    };
    if (key == "method") {
      const auto method = quantize::parse_method(word());
      if (!method)
        fail(ErrorKind::invalid_argument, key, "'{}' is none of minmax, percentile, kl, mse", printable(word()));
      options.method = *method;
    } else if (key == "percentile" && value.is_number() && value.get<double>() >= 50 && value.get<double>() <= 100) {
      options.percentile = value.get<double>();
    } else if (key == "weights_only") {
      options.weights_only = static_cast<int>(number(0));
    } else if (key == "group") {
      options.group = number(1);
    } else if (key == "budget") {
      options.budget = word();
    } else if (key == "labels") {
      request.labels = word();
    } else if (key == "data") {
      request.data = word();
    } else if (key == "batch") {
      request.batch = number(1);
    } else if (key == "keep") {
      options.keep = texts(value, key);
    } else if (key == "calibrate_on") {
      options.calibration = number(1);
    } else if (key == "threads") {
      options.threads = static_cast<int>(number(0));
    } else if (key == "without") {
      request.without = texts(value, key);
    } else if (key == "config") {
      request.config = word();
    } else if (key == "record") {
      request.record = word();
    } else if (key == "report") {
      request.page = word();
    } else if (key == "write_config") {
      request.new_config = word();
    } else if (key == "write_record") {
      request.new_record = word();
    } else {
      refuse_option(key);
    }
  }
  return request;
}

}  // namespace

CairnStatus cairn_module_quantize(const CairnModule* module, const char* options, const char* const* names,
                                  const CairnTensor* examples, size_t count, CairnModule** quantized, char** report) {
  return guarded([&] {
    require(module, "module");
    require(quantized, "quantized");
    *quantized = nullptr;
    if (report) *report = nullptr;
    if (count) require(names, "names"), require(examples, "examples");
    QuantizeRequest request = quantize_request(options);
    std::vector<std::string> notes;
    complete(request, notes);
    const Inputs given(examples, count);
    std::map<std::string, Tensor> arrays;
    for (size_t i = 0; i < count; ++i) {
      require(names[i], "name");
      const TensorRef& array = given.refs()[i];
      arrays[names[i]] = Tensor::view(array.dtype, {array.dims.begin(), array.dims.end()}, array.data, nullptr);
    }
    Module source = clone(module->module);
    expand_user_ops(source);
    std::optional<quantize::Examples> data;
    if (count > 0) data.emplace(source, std::move(arrays), request.labels, request.batch);
    quantize::Outcome outcome = quantise(source, data ? &*data : nullptr, request.options);
    OmOrigin origin = module->origin;
    if (!origin.source.empty() && origin.source_sha256.empty()) origin = origin_of(origin.source);
    const quantize::Provenance provenance{origin.source, origin.source_sha256, request.data, ""};
    write_files(request, outcome, provenance);
    if (report) {
      Json json = report_json(outcome, request.options, provenance);
      json["notes"] = notes;
      *report = copy_text(json.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    *quantized = new CairnModule{std::move(outcome.module), recorded(origin, request.options)};
  });
}
