// Data sets by their paths: what a file or folder holds, as a source, and files of rows by the names that they should get.
#pragma once

#include "data/source.h"

namespace cairn::data {

struct OpenedData {
  std::string kind;  // mindrecord, tfrecord, csv, text, mnist, cifar10, cifar100, images
  std::vector<std::string> files;
  std::shared_ptr<const Source> source;
  std::vector<std::string> classes;  // of images in folders: their names by label
};

/// Finds out what `path` holds, unless `kind` tells; the sampler chooses rows. Throws Error: what was looked for, and what is there.
OpenedData open_data(const std::string& path, const std::string& kind, SamplerPtr sampler);
/// CIFAR's files in a folder or in one of the usual names below it, those of usage train or test, or all: the binary ones where
/// there are any, else the pickles. Empty when there are none.
std::vector<std::string> cifar_files(const std::string& folder, bool hundred, const std::string& usage = "");
/// The kinds that open_data() and make_target() know.
std::vector<std::string> data_kinds();

/// Takes the rows of a data set, all of the same columns, and is there when commit() returns.
class Target {
 public:
  virtual ~Target() = default;
  virtual void write(const Row& row) = 0;
  virtual void commit() = 0;
};

struct TargetOptions {
  std::string path, kind;  // kind empty: by the path's ending
  int shards = 1;
  std::vector<std::string> index;  // fields of a MindRecord index
};

/// For rows like `first`; images of pixels go into files of rows as PNG. Throws Error.
std::unique_ptr<Target> make_target(const TargetOptions& options, const OpenedData& from, const Row& first);

}  // namespace cairn::data
