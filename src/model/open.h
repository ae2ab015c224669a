// Opens models of all formats (our .om, our text form, foreign formats) and computes their origin.
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
  foreign_om,  // an .om of the original platform, which can be described but not run
  foreign,     // a format that import_model() reads
};
/// Determined by the content. Throws Error not_found, io.
FileKind kind_of(const std::string& path);
/// "Cairn model", "TensorFlow SavedModel", ...
std::string format_name(const std::string& path);

/// Throws Error; ReportError with all problems of the model if it has unsupported operators. `options` are for foreign
/// formats: shapes, outputs or a signature for other formats are an Error.
Module open_model(const std::string& path, const ImportOptions& options = {});

enum class BytesFormat : uint8_t { any, text, graph_def, onnx, om, cluster };
/// The same from memory; the bytes are copied.
Module open_bytes(BytesFormat format, const std::string& name, std::string_view bytes,
                  const ImportOptions& options = {});

/// File name and SHA-256 of a model file; for a SavedModel, the SHA-256 of the checksums of its files by path, in the
/// format of `sha256sum`.
OmOrigin origin_of(const std::string& path);

}  // namespace cairn
