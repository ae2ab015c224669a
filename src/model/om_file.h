// The .om file: a container of checksummed sections with the module as text and each weight once; weights are mapped,
// never copied.
//
//   header        64 bytes: magic, version, number of sections, file size, checksums
//   section table 24 bytes each: kind, CRC-32C, offset, size
//   sections      in the table's order, each at the next multiple of 64; bytes between are zero
//                 1 metadata (JSON)  2 module (text form)  3 weight table  4 weights
//
// All numbers are little-endian. The module is in the text form, as it was read or, marked `optimised` with the version
// that made it, after the passes; there is no machine code in it, so any later runtime plans it again.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/cairn.h"
#include "ir/module.h"

namespace cairn {

/// Where a model came from and what it was converted with; part of the metadata.
struct OmOrigin {
  std::string source;         // file name without folders
  std::string source_sha256;  // empty: unknown
  std::map<std::string, std::string> options;
};

/// Replaces `path` atomically. Equal modules and origins give equal bytes. With `external` the weights are written to
/// files weight/weight_<SHA-256> in the same folder. Throws Error io, unsupported.
void write_om(const Module& module, const OmOrigin& origin, const std::string& path, bool external = false);
/// The same bytes in memory.
std::string encode_om(const Module& module, const OmOrigin& origin);

class OmFile {
 public:
  struct Section {
    std::string name;
    uint64_t offset = 0;
    uint64_t size = 0;
    uint32_t checksum = 0;
  };

  /// Maps the file and checks header, table and all sections but the weights' checksum. Throws Error.
  static std::shared_ptr<const OmFile> open(const std::string& path);
  /// The same for bytes that `owner` keeps alive, aligned to 64; `name` is used in messages.
  static std::shared_ptr<const OmFile> from_bytes(std::string name, std::string_view bytes,
                                                  std::shared_ptr<const void> owner);

  /// Reads all weights, also those in external files, and compares their checksums. Throws Error invalid_model.
  void check_weights() const;
  /// Parses and verifies the module; its weights are views into the file. Throws Error invalid_model.
  Module module() const;
  /// JSON: producer, targets, source, options, signature.
  std::string_view metadata() const { return metadata_; }
  std::string_view module_text() const { return text_; }
  const std::vector<Tensor>& weights() const { return weights_; }
  const std::vector<Section>& sections() const { return sections_; }
  /// Bytes of the file, without weights in other files.
  size_t size() const { return bytes_.size(); }
  size_t external_bytes() const;

 private:
  std::string name_;
  std::string_view bytes_;
  std::shared_ptr<const void> owner_;
  std::vector<Section> sections_;
  std::string_view metadata_, text_, data_;
  uint32_t data_checksum_ = 0;
  std::string folder_;                                              // of the file; empty for bytes in memory
  std::vector<std::pair<std::string, std::string_view>> external_;  // SHA-256 and bytes of weights in other files
  std::vector<Tensor> weights_;

  friend class OmReader;
};

/// Whether the bytes start like an .om file of ours.
bool is_om(std::string_view bytes);

inline constexpr const char* kProducer = "cairn " CAIRN_VERSION;

}  // namespace cairn
