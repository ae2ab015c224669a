// Scripts on disk: reading a file or a folder, writing the result to another folder or in place, and taking it back.
#pragma once

#include <string>
#include <vector>

#include "migrate/migrate.h"

namespace cairn::migrate {

struct Tree {
  std::string root;                // the folder that paths are relative to
  bool single = false;             // one file was named
  std::vector<Input> inputs;       // scripts, notebooks and launchers
  std::vector<std::string> rest;   // every other file
  std::vector<std::string> links;  // symbolic links, never followed into folders
};

/// Reads PATH, a file or a folder. Throws Error when it does not exist; what is wrong with one file stays with that file.
/// Folders of version control and byte code, and work folders of cairn port and cairn diff, are left out. Options: include, exclude, max_file_bytes.
Tree read_tree(const std::string& path, const Options& options);

/// Writes the whole tree with its migrated scripts to `out`, which must not lie inside the tree. Returns the files that
/// could not be written, as "path: why".
std::vector<std::string> write_tree(const Tree& tree, const Result& result, const std::string& out);

/// Writes the changed scripts over their originals, each as a whole or not at all, and adds the run to the manifest
/// `.cairn-migrate.json` beside them.
std::vector<std::string> write_in_place(const Tree& tree, const Result& result);

/// Takes the last run of a manifest (or of the one in a folder) back; files changed since are left and returned.
std::vector<std::string> undo(const std::string& path, size_t& restored);

/// Whether a glob (* within a folder, ** across) matches a relative path, or one of its folders.
bool glob_matches(std::string_view pattern, std::string_view path);

}  // namespace cairn::migrate
