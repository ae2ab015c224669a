// Opens whatever holds a model: our .om, our text form, and the foreign formats; and tells where it came from.
#pragma once

#include <string>
#include <string_view>

#include "frontends/import.h"
#include "ir/module.h"
#include "model/om_file.h"

namespace cairn {

enum class FileKind : uint8_t {
  om,
  text,
  foreign_om,  // of the original platform: can be shown, not run
  foreign,     // what import_model() reads
};
/// Told by content. Throws Error not_found, io.
FileKind kind_of(const std::string& path);
/// "Cairn model", "TensorFlow SavedModel", ...
std::string format_name(const std::string& path);

/// Throws Error; ReportError with every problem of the model when it has operators that cannot be taken. `options` are
/// for foreign formats; giving shapes, outputs or a signature for others is an Error.
Module open_model(const std::string& path, const ImportOptions& options = {});

enum class BytesFormat : uint8_t { any, text, graph_def, onnx, om, cluster };
/// The same from memory; the bytes are copied.
Module open_bytes(BytesFormat format, const std::string& name, std::string_view bytes,
                  const ImportOptions& options = {});

/// File name and SHA-256 of a model file; of a SavedModel, of its files' checksums as `sha256sum` prints them, by path.
OmOrigin origin_of(const std::string& path);

}  // namespace cairn
