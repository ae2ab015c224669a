// JSON and SARIF, written as text while walking the result: no tree of values is built.
#include <fmt/format.h>

#include <charconv>
#include <iterator>

#include "migrate/reports.h"
#include "migrate/rule.h"
#include "support/utf8.h"

namespace cairn::migrate {
namespace {

// Objects and lists are opened and closed by hand; commas come by themselves.
class JsonWriter {
 public:
  std::string text;

  JsonWriter& open(char bracket) {
    comma();
    text += bracket;
    fresh_ = true;
    return *this;
  }
  JsonWriter& close(char bracket) {
    text += bracket;
    fresh_ = false;
    return *this;
  }
  JsonWriter& key(std::string_view name) {
    comma();
    text.append(1, '"').append(name).append("\": ");  // names of ours need no escapes
    fresh_ = true;
    return *this;
  }
  JsonWriter& value(std::string_view content) {
    comma();
    quote(content);
    return *this;
  }
  JsonWriter& value(const char* content) { return value(std::string_view(content)); }
  JsonWriter& value(const std::string& content) { return value(std::string_view(content)); }
  JsonWriter& value(bool content) {
    comma();
    text += content ? "true" : "false";
    return *this;
  }
  template <std::integral Number>
  JsonWriter& value(Number content) {
    comma();
    char digits[24];
    text.append(digits, std::to_chars(digits, std::end(digits), content).ptr);
    return *this;
  }
  template <class Content>
  JsonWriter& member(std::string_view name, const Content& content) {
    return key(name).value(content);
  }
  void line() { text += '\n'; }

 private:
  void comma() {
    if (!fresh_) text += ", ";
    fresh_ = false;
  }
  // Scripts hold any bytes; JSON holds UTF-8: what is none becomes the replacement character.
  void quote(std::string_view content) {
    text += '"';
    for (size_t at = 0; at < content.size();) {
      size_t plain = at;
      while (plain < content.size() && content[plain] >= 0x20 && content[plain] != '"' && content[plain] != '\\' &&
             content[plain] != 0x7F)
        ++plain;
      text += content.substr(at, plain - at);
      if ((at = plain) == content.size()) break;
      const char c = content[at];
      const size_t size = utf8_size(content.substr(at));
      if (c == '"' || c == '\\')
        text += '\\', text += c;
      else if (c == '\n')
        text += "\\n";
      else if (c == '\t')
        text += "\\t";
      else if (size == 0)
        text += "\xEF\xBF\xBD";
      else if (size == 1)
        fmt::format_to(std::back_inserter(text), "\\u{:04x}", static_cast<unsigned>(c));
      else
        text += content.substr(at, size);
      at += size == 0 ? 1 : size;
    }
    text += '"';
  }

  bool fresh_ = true;
};

std::string_view state_name(FileState state) {
  switch (state) {
    case FileState::unchanged: return "unchanged";
    case FileState::changed: return "changed";
    case FileState::copied: return "copied";
    case FileState::failed: return "failed";
  }
  return "copied";
}

void write_findings(JsonWriter& json, const std::vector<Finding>& findings) {
  json.key("findings").open('[');
  for (const Finding& finding : findings)
    json.open('{')
        .member("rule", finding.rule)
        .member("severity", to_string(finding.severity))
        .member("line", finding.line)
        .member("column", finding.column)
        .member("message", finding.message)
        .member("advice", finding.advice)
        .close('}');
  json.close(']');
}

void write_file_result(JsonWriter& json, const FileResult& file) {
  json.open('{')
      .member("path", file.path)
      .member("state", state_name(file.state))
      .member("generation", generation_name(file.generation))
      .member("tf", file.tf)
      .member("entry", file.entry)
      .member("lines", file.lines);
  json.key("changes").open('[');
  for (const AppliedChange& change : file.changes)
    json.open('{')
        .member("rule", change.change.rule)
        .member("tier", tier_name(change.change.tier))
        .member("line", change.line)
        .member("column", change.column)
        .member("message", change.change.message)
        .member("old", change.old_text)
        .member("new", change.new_text)
        .close('}');
  json.close(']').key("edits").open('[');
  for (const Edit& edit : file.edits)
    json.open('{').member("begin", edit.begin).member("end", edit.end).member("text", edit.text).close('}');
  json.close(']');
  write_findings(json, file.findings);
  json.key("references").open('[');
  for (const Reference& reference : file.references)
    json.open('{')
        .member("name", reference.name)
        .member("use", reference.use)
        .member("line", reference.line)
        .member("column", reference.column)
        .member("status", reference.status)
        .member("platform", reference.platform)
        .member("advice", reference.advice)
        .close('}');
  json.close(']').close('}').line();
}

// Positions in UTF-16 units; from one to the next only the bytes between them are walked.
class Utf16 {
 public:
  explicit Utf16(std::string_view text) : text_(text), lines_(text) {}

  void write_region(JsonWriter& json, uint32_t begin, uint32_t end) {
    Position from = at(begin), to = at(end);
    json.open('{')
        .member("startLine", from.line)
        .member("startColumn", from.column)
        .member("endLine", to.line)
        .member("endColumn", to.column)
        .close('}');
  }

 private:
  Position at(uint32_t offset) {
    const uint32_t line = lines_.at(offset).line;
    if (line != line_) line_ = line, offset_ = lines_.start(line), column_ = 1;
    while (offset_ < offset && offset_ < text_.size()) column_ += units(offset_++);
    while (offset_ > offset) column_ -= units(--offset_);
    return {line, column_};
  }
  uint32_t units(uint32_t offset) const {
    unsigned char byte = static_cast<unsigned char>(text_[offset]);
    return (byte & 0xC0) == 0x80 ? 0 : byte >= 0xF0 ? 2 : 1;
  }

  std::string_view text_;
  LineIndex lines_;
  uint32_t line_ = 0, offset_ = 0, column_ = 1;
};

void open_location(JsonWriter& json, const std::string& path) {
  json.key("locations").open('[').open('{').key("physicalLocation").open('{');
  json.key("artifactLocation").open('{').member("uri", path).close('}').key("region");
}
void close_location(JsonWriter& json) { json.close('}').close('}').close(']'); }

void write_change(JsonWriter& json, const FileResult& file, const Change& change, Utf16& positions) {
  json.open('{')
      .member("ruleId", change.rule)
      .member("level", change.tier == Tier::safe ? "note" : "warning")
      .key("message")
      .open('{')
      .member("text", change.message)
      .close('}');
  open_location(json, file.path);
  positions.write_region(json, change.at.begin, change.at.end);
  close_location(json);
  json.key("fixes").open('[').open('{').key("description").open('{').member("text", change.message).close('}');
  json.key("artifactChanges").open('[').open('{').key("artifactLocation").open('{').member("uri", file.path).close('}');
  json.key("replacements").open('[');
  for (const Edit& edit : change.edits) {
    json.open('{').key("deletedRegion");
    positions.write_region(json, edit.begin, edit.end);
    json.key("insertedContent").open('{').member("text", edit.text).close('}').close('}');
  }
  json.close(']').close('}').close(']').close('}').close(']').close('}').line();
}

void write_finding(JsonWriter& json, const Finding& finding) {
  json.open('{').member("ruleId", finding.rule).member("level", to_string(finding.severity)).key("message").open('{');
  json.member("text", finding.advice.empty() ? finding.message : finding.message + "; " + finding.advice).close('}');
  if (!finding.path.empty()) {
    open_location(json, finding.path);
    json.open('{').member("startLine", std::max(1u, finding.line)).close('}');
    close_location(json);
  }
  json.close('}').line();
}

}  // namespace

std::string json_report(const Result& result) {
  JsonWriter json;
  json.open('{')
      .member("version", 1)
      .member("tf", result.tf)
      .member("distributed", distribution_name(result.distributed));
  json.key("entries").open('[');
  for (const std::string& entry : result.entries) json.value(entry);
  json.close(']')
      .member("changed", result.changed())
      .member("failed", result.failed())
      .member("readiness", result.readiness());
  write_findings(json, result.findings);
  json.key("files").open('[').line();
  for (const FileResult& file : result.files)
    if (file.state != FileState::copied || !file.findings.empty()) write_file_result(json, file);
  json.close(']').close('}').line();
  return std::move(json.text);
}

std::string sarif_report(const Result& result) {
  JsonWriter json;
  json.open('{').member("$schema", "https://json.schemastore.org/sarif-2.1.0.json").member("version", "2.1.0");
  json.key("runs").open('[').open('{').key("tool").open('{').key("driver").open('{').member("name", "cairn migrate");
  json.key("rules").open('[');
  for (const Rule* rule : all_rules()) {
    json.open('{').member("id", rule->id);
    json.key("shortDescription").open('{').member("text", rule->title).close('}');
    json.key("fullDescription").open('{').member("text", rule->reason).close('}').close('}');
  }
  json.close(']').close('}').close('}').member("columnKind", "utf16CodeUnits").key("results").open('[').line();
  for (const Finding& finding : result.findings) write_finding(json, finding);
  for (const FileResult& file : result.files) {
    // Spans of changes in a notebook are in its code, not in its bytes.
    if (!file.changes.empty() && !file.path.ends_with(".ipynb")) {
      Utf16 positions(file.before);
      for (const AppliedChange& change : file.changes) write_change(json, file, change.change, positions);
    }
    for (const Finding& finding : file.findings) write_finding(json, finding);
  }
  json.close(']').close('}').close(']').close('}').line();
  return std::move(json.text);
}

}  // namespace cairn::migrate
