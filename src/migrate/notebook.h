// A Jupyter notebook as one Python text, cell after cell, and edits of that text as edits of the notebook's bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "migrate/migrate.h"

namespace cairn::migrate {

class Notebook {
 public:
  /// nullptr when the bytes are not a notebook; the reason, and cells that do not parse, go to `findings`.
  static std::unique_ptr<Notebook> read(const std::string& text, const std::string& path,
                                        std::vector<Finding>& findings);

  const std::string& source() const { return source_; }
  /// The same edits on the notebook's JSON; new text is escaped, and a deletion over several lines' strings is split.
  std::vector<Edit> translate(const std::vector<Edit>& edits) const;

 private:
  // source_[i] comes from the bytes [begin_[i], begin_[i] + size_[i]) of the JSON; size 0 marks text of our own.
  std::string source_;
  std::vector<uint32_t> begin_;
  std::vector<uint8_t> size_;
  friend class NotebookReader;
};

}  // namespace cairn::migrate
