#include "train/write.h"

#include "frontends/onnx/writer.h"
#include "model/open.h"
#include "support/part_file.h"

namespace cairn {

void check_trained_path(const std::string& source, const std::string& path) {
  if (path.ends_with(".om")) return;
  if (!path.ends_with(".onnx")) fail(ErrorKind::invalid_argument, path, "has another ending than .onnx and .om");
  if (kind_of(source) != FileKind::foreign || detect_format(source) != ModelFormat::onnx)
    fail(ErrorKind::invalid_argument, path, "can be written only where an ONNX file was trained; {} is none", source);
}

void write_trained(const Trainer& trainer, const std::string& source, const std::string& path) {
  check_trained_path(source, path);
  if (path.ends_with(".om")) return write_om(trainer.trained(), origin_of(source), path);
  const auto weights = trainer.weights();
  const std::string bytes = onnx::with_initializers(onnx::read_model(source), {weights.begin(), weights.end()});
  PartFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace cairn
