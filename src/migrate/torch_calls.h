// What the files about names and calls of PyTorch share: which row a call meets, the text of its template, and the edit that writes it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "migrate/torch_file.h"

namespace cairn::migrate {

struct Piece {
  bool source;  // a span of the old text; otherwise new text
  Span span;
  std::string text;
  NodeId node = kNoNode;
};

// How one call meets one row.
struct Match {
  const TorchRow* row;
  std::map<std::string_view, Span>
      given;  // parameter -> its argument; "self"; the rest parameter spans all its arguments
  std::map<std::string_view, NodeId> nodes;
};

// ---- rows and templates (torch_templates.cpp) ----

/// The names under which the table may hold a name: its own, and those of the classes it is derived from.
std::vector<std::string> lookups(const std::string& name);
const std::vector<TorchRow>& rows_of(const std::string& name);
std::optional<Match> match(TorchFile& torch, NodeId call, const TorchRow& row);
bool some_script_holds(TorchFile& torch, std::string_view words);
std::string transformed(TorchFile& torch, std::string_view how, NodeId node, const std::string& text);
std::optional<std::vector<Piece>> expand(TorchFile& torch, const Match& match, std::string_view target);

// ---- calls (torch_calls.cpp) ----

void write(TorchFile& torch, NodeId node, const std::vector<Piece>& pieces, const std::string& message);
std::string shown(const std::string& name);
std::string reason_of(const std::string& name, const TorchRow* row);
/// p.data, where p is a parameter.
bool is_data_of_parameter(const Syntax& syntax, NodeId node);
bool is_gradient(const Syntax& syntax, NodeId node);
/// Whether an expression is what a library other than PyTorch gives.
bool begins_with_library(TorchFile& torch, NodeId node, int depth = 0);
bool is_imported(TorchFile& torch, NodeId name);
void rewrite_call(TorchFile& torch, NodeId call);

}  // namespace cairn::migrate
