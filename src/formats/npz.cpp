#include "formats/npz.h"

#include "formats/npy.h"
#include "support/error.h"
#include "support/files.h"

namespace cairn {

std::shared_ptr<const NpzFile> NpzFile::open(const std::string& path) {
  return std::make_shared<NpzFile>(NpzFile(ZipArchive::open(path)));
}

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (const ZipMember& member : archive_.members())
    names.push_back(member.name.ends_with(".npy") ? member.name.substr(0, member.name.size() - 4) : member.name);
  return names;
}

Tensor NpzFile::read(const std::string& name) const {
  const ZipMember* member = archive_.find(name + ".npy");
  if (!member) member = archive_.find(name);
  if (!member) fail(ErrorKind::not_found, archive_.name(), "has no array {}", name);
  const ZipArchive::Content content = archive_.content(*member);
  return parse_npy(content.bytes, archive_.name() + ":" + name, content.owner);
}

void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays) {
  write_file(path, [&](const FileSink& sink) {
    ZipWriter zip(path);
    for (const auto& [name, tensor] : arrays) {
      const std::string bytes = npy_bytes(tensor);
      sink(zip.head(name + ".npy", bytes));
      sink(bytes);
    }
    sink(zip.finish());
  });
}

}  // namespace cairn
