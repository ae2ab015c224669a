// Writer of the .om container: lays out the sections, then writes the file atomically.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "ir/text.h"
#include "model/om_file.h"
#include "model/om_layout.h"
#include "support/crc32c.h"
#include "support/files.h"
#include "support/sha256.h"

namespace cairn {

namespace {

using Json = nlohmann::ordered_json;

Json ports(const std::vector<std::string>& names, const std::vector<Type>& types) {
  Json list = Json::array();
  for (size_t i = 0; i < types.size(); ++i) list.push_back({{"name", names[i]}, {"type", to_string(types[i])}});
  return list;
}

std::string metadata_of(const Module& module, const OmOrigin& origin) {
  const Function& main = module.main();
  std::vector<std::string> names;
  std::vector<Type> inputs, outputs;
  for (const auto& param : main.body.params) names.push_back(param->name), inputs.push_back(param->type);
  for (const Value* result : main.body.results) outputs.push_back(result->type);
  Json json = {{"producer", kProducer},
               {"targets", {"any"}},  // the file has no machine code; it is planned on the machine that runs it
               {"source", {{"file", origin.source}, {"sha256", origin.source_sha256}}},
               {"options", origin.options},
               {"signature", {{"inputs", ports(names, inputs)}, {"outputs", ports(main.result_names, outputs)}}}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

/// The weights in the order of the table, and the digits of the file names of external ones.
struct Weights {
  const std::vector<Tensor>& tensors;
  std::vector<std::string> external;  // one per weight; empty: stored inside
};

/// The stored bytes of a weight; those of texts are assembled in `buffer`.
std::string_view stored_bytes(const Tensor& weight, std::string& buffer) {
  if (weight.dtype() != kString) return {static_cast<const char*>(weight.data()), weight.bytes()};
  buffer.clear();
  for (const std::string& text : weight.values<std::string>()) {
    if (text.size() > UINT32_MAX)
      fail(ErrorKind::unsupported, "", "a text of {} bytes does not fit a model", text.size());
    auto size = static_cast<uint32_t>(text.size());
    buffer += om::bytes_of(size);
  }
  for (const std::string& text : weight.values<std::string>()) buffer += text;
  return buffer;
}

std::string_view stored_bytes(const Weights& weights, size_t index, std::string& buffer) {
  return weights.external[index].empty() ? stored_bytes(weights.tensors[index], buffer) : weights.external[index];
}

/// Writes the weights section to `sink` piece by piece.
void each_weight(const Weights& weights, const FileSink& sink) {
  static constexpr char kZeros[om::kAlignment] = {};
  std::string buffer;
  uint64_t offset = 0;
  for (size_t i = 0; i < weights.tensors.size(); ++i) {
    sink({kZeros, om::align(offset) - offset});
    std::string_view bytes = stored_bytes(weights, i, buffer);
    sink(bytes);
    offset = om::align(offset) + bytes.size();
  }
}

std::string weight_table(const Weights& weights) {
  std::string table, buffer;
  uint64_t offset = 0;
  for (size_t i = 0; i < weights.tensors.size(); ++i) {
    const Tensor& weight = weights.tensors[i];
    om::Weight record{};
    record.kind = static_cast<uint8_t>(weight.dtype().kind);
    record.bits = weight.dtype().bits;
    record.rank = static_cast<uint16_t>(weight.rank());
    if (weight.rank() > om::kMaxRank)
      fail(ErrorKind::unsupported, "", "a constant of rank {} does not fit a model", weight.rank());
    const auto& layout = weights.external[i].empty() ? om::kPlainLayout : om::kExternalLayout;
    std::memcpy(record.layout, layout, sizeof record.layout);
    record.offset = om::align(offset);
    record.size = stored_bytes(weights, i, buffer).size();
    offset = record.offset + record.size;
    table += om::bytes_of(record);
    for (int64_t dim : weight.dims()) table += om::bytes_of(dim);
  }
  return table;
}

/// Writes a file for each weight except texts to `folder`; a file that exists has the same bytes, since its name is
/// their hash.
std::vector<std::string> write_external(const std::vector<Tensor>& weights, const std::filesystem::path& folder) {
  std::vector<std::string> digests;
  for (const Tensor& weight : weights) {
    std::string& digest = digests.emplace_back();
    if (weight.dtype() == kString) continue;
    std::string_view bytes{static_cast<const char*>(weight.data()), weight.bytes()};
    Sha256 hash;
    hash.add(bytes);
    digest = hash.digest();
    std::filesystem::create_directories(folder);
    std::string path = folder / (om::kExternalPrefix + digest);
    std::error_code none;
    if (std::filesystem::file_size(path, none) != bytes.size()) write_file(path, bytes);
  }
  return digests;
}

void write(const Module& module, const OmOrigin& origin, const FileSink& sink,
           const std::optional<std::filesystem::path>& external = {}) {
  ModuleText text = print(module);
  std::string metadata = metadata_of(module, origin);
  if (metadata.size() > om::kMaxMetadata)
    fail(ErrorKind::unsupported, "", "the names of inputs and outputs take {} bytes, expected at most {}",
         metadata.size(), om::kMaxMetadata);
  Weights weights{text.weights,
                  external ? write_external(text.weights, *external) : std::vector<std::string>(text.weights.size())};
  std::string table = weight_table(weights);

  uint32_t weights_checksum = 0;
  uint64_t weights_size = 0;
  each_weight(weights, [&](std::string_view bytes) {
    weights_checksum = crc32c(bytes, weights_checksum);
    weights_size += bytes.size();
  });

  om::Section sections[] = {{om::kMetadata, crc32c(metadata), 0, metadata.size()},
                            {om::kModule, crc32c(text.text), 0, text.text.size()},
                            {om::kWeightTable, crc32c(table), 0, table.size()},
                            {om::kWeights, weights_checksum, 0, weights_size}};
  uint64_t end = sizeof(om::Header) + sizeof sections;
  for (om::Section& section : sections) {
    section.offset = om::align(end);
    end = section.offset + section.size;
  }
  om::Header header{};
  std::memcpy(header.magic, om::kMagic, sizeof header.magic);
  header.version = om::kVersion;
  header.sections = std::size(sections);
  header.file_size = end;
  header.table_checksum = crc32c(om::bytes_of(sections));
  header.header_checksum = crc32c(om::bytes_of(header, offsetof(om::Header, header_checksum)));

  uint64_t written = 0;
  auto put = [&](std::string_view bytes) {
    sink(bytes);
    written += bytes.size();
  };
  put(om::bytes_of(header));
  put(om::bytes_of(sections));
  std::string_view contents[] = {metadata, text.text, table};
  for (size_t i = 0; i < std::size(sections); ++i) {
    put(std::string(sections[i].offset - written, '\0'));
    if (i < std::size(contents))
      put(contents[i]);
    else
      each_weight(weights, put);
  }
  CHECK(written == end, "wrote {} of {} bytes", written, end);
}

}  // namespace

void write_om(const Module& module, const OmOrigin& origin, const std::string& path, bool external) {
  std::optional<std::filesystem::path> folder;
  if (external) folder = std::filesystem::path(path).parent_path() / om::kExternalFolder;
  write_file(path, [&](const FileSink& sink) { write(module, origin, sink, folder); });
}

std::string encode_om(const Module& module, const OmOrigin& origin) {
  std::string bytes;
  write(module, origin, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

}  // namespace cairn
