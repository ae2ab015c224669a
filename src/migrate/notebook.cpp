// Finds the source strings of code cells in a notebook's JSON with their byte positions; the rest of the file is never
// decoded, so that it stays as it is.
#include "migrate/notebook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "migrate/syntax.h"
#include "support/utf8.h"

namespace cairn::migrate {
namespace {

struct Decoded {
  std::string text;
  std::vector<uint32_t> begin;
  std::vector<uint8_t> size;
};

// A small pull reader over JSON text that was found valid before; it only needs to skip and to decode strings.
class JsonText {
 public:
  explicit JsonText(const std::string& text) : text_(text) {}

  void blank() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  char peek() {
    blank();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void string(Decoded* into) {
    ++at_;  // the quote
    while (at_ < text_.size() && text_[at_] != '"') {
      uint32_t start = static_cast<uint32_t>(at_);
      std::string piece(1, text_[at_++]);
      if (piece[0] == '\\') piece = escape();
      if (!into) continue;
      for (size_t i = 0; i < piece.size(); ++i) {
        into->text += piece[i];
        into->begin.push_back(start);
        into->size.push_back(i == 0 ? static_cast<uint8_t>(at_ - start)
                                    : 0);  // the first byte stands for the whole escape
      }
    }
    ++at_;
  }

  // Calls visit(key) at each member of an object; visit must read the value.
  template <class Visit>
  void object(Visit visit) {
    if (!take('{')) return skip();
    while (peek() == '"') {
      Decoded key;
      string(&key);
      take(':');
      visit(key.text);
      if (!take(',')) break;
    }
    take('}');
  }
  template <class Visit>
  void array(Visit visit) {
    if (!take('[')) return skip();
    while (peek() != ']' && at_ < text_.size()) {
      visit();
      if (!take(',')) break;
    }
    take(']');
  }
  void skip() {
    // Brackets outside of strings, counted; no recursion.
    int depth = 0;
    do {
      char c = peek();
      if (c == '"') {
        string(nullptr);
      } else {
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        ++at_;
        if (depth == 0 && c != '}' && c != ']' && c != '{' && c != '[')
          while (at_ < text_.size() && !std::strchr(",]} \n\r\t", text_[at_])) ++at_;
      }
    } while (depth > 0 && at_ < text_.size());
  }

 private:
  std::string escape() {
    char c = at_ < text_.size() ? text_[at_++] : '\0';
    switch (c) {
      case 'n': return "\n";
      case 't': return "\t";
      case 'r': return "\r";
      case 'b': return "\b";
      case 'f': return "\f";
      case 'u': {
        auto unit = [&] {
          unsigned value = static_cast<unsigned>(std::strtoul(text_.substr(at_, 4).c_str(), nullptr, 16));
          at_ += 4;
          return value;
        };
        unsigned code = unit();
        if (code >= 0xD800 && code < 0xDC00 && text_.compare(at_, 2, "\\u") == 0) {
          at_ += 2;
          code = 0x10000 + ((code - 0xD800) << 10) + (unit() - 0xDC00);
        }
        std::string utf8;
        append_utf8(utf8, code);
        return utf8;
      }
      default: return std::string(1, c);
    }
  }

  const std::string& text_;
  size_t at_ = 0;
};

// Lines that are IPython's and not Python's become comments of the same length; a cell of another language becomes blank.
void hide_magics(std::string& cell) {
  std::string_view head = cell;
  head.remove_prefix(std::min(head.find_first_not_of(" \t\n"), head.size()));
  bool foreign = head.starts_with("%%") && !head.starts_with("%%time") && !head.starts_with("%%capture") &&
                 !head.starts_with("%%prun");
  for (size_t at = 0; at < cell.size();) {
    size_t end = std::min(cell.find('\n', at), cell.size());
    size_t start = cell.find_first_not_of(" \t", at);
    if (start < end) {
      char first = cell[start], last = cell[cell.find_last_not_of(" \t\r", end - 1)];
      if (foreign || first == '%' || first == '!' || first == '?' || (last == '?' && first != '#')) {
        bool indented = start > at;
        for (size_t i = start; i < end; ++i) cell[i] = ' ';
        if (indented && end - start >= 4)
          cell.replace(start, 4, "pass");  // may be all its block holds
        else
          cell[start] = '#';
      }
    }
    at = end + 1;
  }
}

}  // namespace

std::unique_ptr<Notebook> Notebook::read(const std::string& text, const std::string& path,
                                         std::vector<Finding>& findings) {
  auto problem = [&](std::string message) {
    findings.push_back({"file", Severity::error, path, 0, 0, 0, 0, std::move(message),
                        "the file is left out; the others are not affected", false});
    return nullptr;
  };
  // nlohmann's acceptor recurses per nesting level only on its own stack object, and checks UTF-8.
  if (!nlohmann::json::accept(text)) return problem("not a notebook: no valid JSON");
  auto notebook = std::make_unique<Notebook>();
  int cell_number = 0;
  JsonText json(text);
  json.object([&](const std::string& key) {
    if (key != "cells") return json.skip();
    json.array([&] {
      std::string type;
      Decoded source;
      json.object([&](const std::string& member) {
        if (member == "cell_type" && json.peek() == '"') {
          Decoded value;
          json.string(&value);
          type = value.text;
        } else if (member == "source" && json.peek() == '"') {
          json.string(&source);
        } else if (member == "source" && json.peek() == '[') {
          json.array([&] { json.peek() == '"' ? json.string(&source) : json.skip(); });
        } else {
          json.skip();
        }
      });
      ++cell_number;
      if (type != "code" || source.text.empty()) return;
      std::string cell = source.text;
      hide_magics(cell);
      if (Syntax::errors_in(cell) > 0) {
        findings.push_back({"syntax", Severity::warning, path, 0, 0, 0, 0,
                            fmt::format("cell {} cannot be parsed", cell_number), "it is left as it is", false});
        for (char& c : cell)
          if (c != '\n') c = ' ';
      }
      notebook->source_ += cell;
      notebook->begin_.insert(notebook->begin_.end(), source.begin.begin(), source.begin.end());
      notebook->size_.insert(notebook->size_.end(), source.size.begin(), source.size.end());
      // The end of the last string, where text can be added; then a line of our own between cells.
      notebook->source_ += "\n";
      notebook->begin_.push_back(source.begin.back() + source.size.back());
      notebook->size_.push_back(0);
    });
  });
  if (cell_number == 0) return problem("not a notebook: it has no cells");
  return notebook;
}

std::vector<Edit> Notebook::translate(const std::vector<Edit>& edits) const {
  std::vector<Edit> translated;
  for (const Edit& edit : edits) {
    std::string quoted = nlohmann::json(edit.text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    quoted = quoted.substr(1, quoted.size() - 2);
    if (edit.begin >= begin_.size()) continue;
    if (edit.begin == edit.end) {
      translated.push_back({begin_[edit.begin], begin_[edit.begin], quoted, edit.order});
      continue;
    }
    // Runs of neighbouring bytes; the first takes the new text.
    for (uint32_t i = edit.begin; i < edit.end;) {
      uint32_t from = begin_[i], to = from;
      while (i < edit.end && (size_[i] == 0 || begin_[i] == to)) {
        to = std::max(to, begin_[i] + size_[i]);
        ++i;
      }
      translated.push_back({from, to, quoted, 0});
      quoted.clear();
    }
  }
  return translated;
}

}  // namespace cairn::migrate
