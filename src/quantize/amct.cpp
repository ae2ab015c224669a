#include "quantize/amct.h"

#include <nlohmann/json.hpp>

#include "frontends/text_proto.h"
#include "frontends/wire.h"
#include "support/files.h"

namespace cairn::quantize {

namespace {

using Json = nlohmann::ordered_json;
constexpr int kSigned = 128;  // zero points of bytes are those of signed integers and this

enum Field : uint32_t {
  kScaleData = 1,
  kOffsetData,
  kScaleWeights,
  kOffsetWeights,
  kShiftBits,
  kChannels,
  kHeight,
  kWidth
};
constexpr TextField kValueFields[] = {
    {"scale_d", kScaleData, TextKind::real32},    {"offset_d", kOffsetData, TextKind::integer},
    {"scale_w", kScaleWeights, TextKind::real32}, {"offset_w", kOffsetWeights, TextKind::integer},
    {"shift_bit", kShiftBits, TextKind::integer}, {"channels", kChannels, TextKind::integer},
    {"height", kHeight, TextKind::integer},       {"width", kWidth, TextKind::integer},
    {"skip_fusion", 9, TextKind::ignored},        {"dst_type", 10, TextKind::ignored},
    {"act_type", 11, TextKind::ignored},          {"wts_type", 12, TextKind::ignored}};
constexpr TextMessage kValue = {"value", kValueFields};
constexpr TextField kRecordFields[] = {{"key", 1, TextKind::text}, {"value", 2, TextKind::message, &kValue}};
constexpr TextMessage kRecord = {"record", kRecordFields};
constexpr TextField kFileFields[] = {{"record", 1, TextKind::message, &kRecord}};
constexpr TextMessage kFile = {"quantisation record", kFileFields};

LayerOrder read_value(Wire wire, const std::string& key) {
  LayerOrder order;
  std::optional<float> scale;
  int64_t offset = 0;
  std::vector<int64_t> weight_offsets;
  while (wire.next()) switch (wire.field()) {
      case kScaleData: scale = wire.real32(); break;
      case kOffsetData: offset = wire.integer(); break;
      case kScaleWeights: wire.append_reals(order.scales); break;
      case kOffsetWeights: wire.append_integers(weight_offsets); break;
      case kShiftBits:
        if (wire.integer() != 0) wire.fail("{}: sums that are shifted are not supported", key);
        break;
      default: wire.skip();
    }
  for (const float each : order.scales)
    if (!(each > 0) || !std::isfinite(each)) wire.fail("{}: a scale is {}", key, each);
  for (const int64_t each : weight_offsets)
    if (each != 0) wire.fail("{}: weights with offsets are not supported", key);
  if (!scale) return order;
  if (!(*scale > 0) || !std::isfinite(*scale)) wire.fail("{}: scale_d is {}", key, *scale);
  if (offset < -kSigned || offset >= kSigned) wire.fail("{}: offset_d is {}, expected -128 to 127", key, offset);
  order.steps = Affine{*scale, static_cast<int>(offset) + kSigned};
  return order;
}

/// Of an algorithm's name; "ifmr" searches the range of the least error.
std::optional<Method> method_of(const Json& parameters) {
  const std::string name = parameters.value("act_algo", "");
  if (name.empty()) return {};
  if (name == "ifmr" || name == "hfmg") return Method::mse;
  if (const auto own = parse_method(name)) return own;
  fail(ErrorKind::invalid_argument, "act_algo", "'{}' is neither ifmr nor hfmg", printable(name));
}

void read_layer(const std::string& name, const Json& value, Options& options) {
  LayerOrder& order = options.orders[name];
  order.quantise = value.value("quant_enable", true);
  if (const auto data = value.find("activation_quant_params"); data != value.end()) {
    if (data->value("num_bits", 8) != 8) fail(ErrorKind::unsupported, name, "data of other than 8 bits");
    order.method = method_of(*data);
  }
  if (const auto weights = value.find("weight_quant_params"); weights != value.end())
    if (weights->value("num_bits", 8) != 8) fail(ErrorKind::unsupported, name, "weights of other than 8 bits");
}

}  // namespace

void read_config(const std::string& path, Options& options, std::vector<std::string>& notes) {
  const Json json = Json::parse(read_file(path), nullptr, false);
  if (!json.is_object()) fail(ErrorKind::invalid_argument, path, "is no JSON object");
  try {
    for (const auto& [key, value] : json.items()) {
      if (key == "version" || key == "do_fusion" || key == "fakequant_precision_mode") continue;
      if (key == "batch_num")
        options.calibration_batches = value.get<int64_t>();
      else if (key == "activation_offset" && value.get<bool>())
        continue;
      else if (key == "joint_quant" || key == "activation_offset")
        notes.push_back(fmt::format("{} of {} has no effect: each value has its own scale and offset", key, path));
      else if (key == "skip_fusion_layers")
        notes.push_back(fmt::format("{} of {} has no effect", key, path));
      else if (value.is_object())
        read_layer(key, value, options);
      else
        fail(ErrorKind::invalid_argument, path, "'{}' is not known", printable(key));
    }
  } catch (const Json::exception&) {
    fail(ErrorKind::invalid_argument, path, "has a value of another form than AMCT's");
  }
}

std::string config_text(const Outcome& outcome, const Options& options) {
  Json json = {{"version", 1}, {"batch_num", outcome.batches}, {"activation_offset", true}, {"do_fusion", true}};
  const auto algorithm = options.method == Method::mse ? "ifmr" : name_of(options.method);
  for (const LayerResult& layer : outcome.layers)
    json[layer.name] = {
        {"quant_enable", layer.quantised},
        {"activation_quant_params", {{"num_bits", 8}, {"act_algo", algorithm}}},
        {"weight_quant_params", {{"num_bits", 8}, {"wts_algo", "arq_quantize"}, {"channel_wise", true}}}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void read_record(const std::string& path, Options& options) {
  const auto model = ModelBytes::open(path);
  Wire file(model->keep(text_to_wire(model->bytes(), kFile, path)), "quantisation record", *model);
  while (file.next()) {
    Wire record = file.message("record");
    std::string key;
    std::optional<LayerOrder> order;
    while (record.next()) {
      if (record.field() == 1)
        key = record.bytes();
      else
        order = read_value(record.message("value"), key);
    }
    if (key.empty() || !order) record.fail("has no key or no value");
    options.orders[key] = *order;
  }
  if (options.orders.empty()) fail(ErrorKind::invalid_model, path, "holds no record");
  options.only_ordered = true;
}

std::string record_text(const Outcome& outcome) {
  std::string text;
  for (const LayerResult& layer : outcome.layers) {
    if (!layer.quantised || !layer.steps) continue;
    text += fmt::format("record {{\n  key: {}\n  value {{\n    scale_d: {}\n    offset_d: {}\n",
                        Json(layer.name).dump(-1, ' ', false, Json::error_handler_t::replace), layer.steps->scale,
                        layer.steps->zero - kSigned);
    for (const float scale : layer.scales) text += fmt::format("    scale_w: {}\n", scale);
    for (size_t i = 0; i < layer.scales.size(); ++i) text += "    offset_w: 0\n";
    text += "  }\n}\n";
  }
  return text;
}

}  // namespace cairn::quantize
