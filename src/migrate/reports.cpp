// Text, JSON, SARIF, CSV and the platform's text reports.
#include "migrate/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "migrate/rule.h"
#include "support/files.h"

namespace cairn::migrate {

std::string_view distribution_name(Distribution distribution) {
  switch (distribution) {
    case Distribution::automatic: return "auto";
    case Distribution::none: return "none";
    case Distribution::horovod: return "horovod";
    case Distribution::tf_strategy: return "tf_strategy";
  }
  return "none";
}

std::string_view generation_name(Generation generation) {
  switch (generation) {
    case Generation::none: return "none";
    case Generation::tf1: return "tf1";
    case Generation::tf2: return "tf2";
    case Generation::both: return "both";
  }
  return "none";
}

namespace {

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

}  // namespace

std::string interfaces(const Result& result) {
  if (result.to == Target::mindspore) return "PyTorch to MindSpore";
  size_t scripts[3] = {};
  for (const FileResult& file : result.files) ++scripts[file.tf];
  if (!scripts[1] || !scripts[2]) return fmt::format("TensorFlow {}", result.tf);
  return fmt::format("{} of TensorFlow 1, {} of TensorFlow 2", scripts[1], scripts[2]);
}

std::string diff_report(const Result& result) {
  std::string text;
  for (const FileResult& file : result.files)
    if (file.state == FileState::changed) text += unified_diff(file.before, file.after, file.edits, file.path);
  return text;
}

std::string text_report(const Result& result) {
  size_t edits = 0, review = 0;
  std::map<std::string, size_t> by_rule;
  struct Places {
    std::string first;
    size_t count = 0;
  };
  std::map<Severity, std::map<std::pair<std::string_view, std::string_view>, Places>>
      findings;  // by message and advice
  for (const FileResult& file : result.files) {
    edits += file.changes.size();
    for (const AppliedChange& change : file.changes) {
      review += change.change.tier == Tier::review;
      ++by_rule[change.change.rule];
    }
    for (const Finding& finding : file.findings) {
      Places& places = findings[finding.severity][{finding.message, finding.advice}];
      if (places.count++ == 0) places.first = finding.line ? fmt::format("{}:{}", file.path, finding.line) : file.path;
    }
  }
  std::string text;
  for (const Finding& finding : result.findings)
    text += fmt::format("{:<8}{}\n        {}\n", to_string(finding.severity), finding.message, finding.advice);
  for (Severity severity : {Severity::error, Severity::warning, Severity::note})
    for (const auto& [what, places] : findings[severity]) {
      std::string where = places.first + (places.count > 1 ? fmt::format(" and {} more", places.count - 1) : "");
      text += fmt::format("{:<8}{}: {}\n", to_string(severity), where, what.first);
      if (!what.second.empty()) text += fmt::format("        {}\n", what.second);
    }
  if (!by_rule.empty()) text += "\nedits   rule\n";
  for (const auto& [rule, count] : by_rule) {
    const Rule* row = find_rule(rule);
    text += fmt::format("{:>5}   {:<24}{}\n", count, rule, row ? row->title : "");
  }
  size_t scripts = std::count_if(result.files.begin(), result.files.end(), [](const FileResult& file) {
    return file.state == FileState::changed || file.state == FileState::unchanged;
  });
  text += fmt::format(
      "\n{} files, {} of them scripts of a framework; {} changed by {} edits ({} to review), {} left out; {}, "
      "distribution {}\n",
      result.files.size(), scripts, result.changed(), edits, review, result.failed(), interfaces(result),
      distribution_name(result.distributed));
  if (result.to == Target::mindspore) {
    std::map<std::string_view, size_t> uses;
    for (const FileResult& file : result.files)
      for (const Reference& reference : file.references) ++uses[reference.status];
    text += fmt::format("uses of PyTorch: {} supported, {} replaced by a combination, {} missing\n", uses["migrated"],
                        uses["migrated by a combination"], uses["missing"]);
  }
  text += fmt::format("{} lines in {:.2f} s; {}\n", result.lines, result.seconds,
                      scripts ? fmt::format("readiness {} %", result.readiness()) : "nothing to migrate");
  return text;
}

std::string csv_report(const Result& result) {
  std::string text = "kind,file,line,column,name,status,platform class,message,advice\n";
  auto quote = [&](std::string_view content) {
    text += ",\"";
    for (size_t mark; (mark = content.find('"')) != content.npos; content.remove_prefix(mark + 1))
      text.append(content, 0, mark + 1) += '"';
    text.append(content) += '"';
  };
  auto row = [&](std::string_view kind, const std::string& file, uint32_t line, uint32_t column, std::string_view name,
                 std::string_view status, std::string_view platform, std::string_view message,
                 std::string_view advice) {
    text += kind;
    quote(file);
    fmt::format_to(std::back_inserter(text), ",{},{}", line, column);
    for (std::string_view field : {name, status, platform, message, advice}) quote(field);
    text += '\n';
  };
  for (const Finding& finding : result.findings)
    row("finding", "", 0, 0, finding.rule, to_string(finding.severity), "", finding.message, finding.advice);
  for (const FileResult& file : result.files) {
    for (const AppliedChange& change : file.changes)
      row("change", file.path, change.line, change.column, change.change.rule, tier_name(change.change.tier), "",
          change.change.message, "");
    for (const Finding& finding : file.findings)
      row("finding", file.path, finding.line, finding.column, finding.rule, to_string(finding.severity), "",
          finding.message, finding.advice);
    for (const Reference& reference : file.references)
      row("reference", file.path, reference.line, reference.column, reference.name, reference.status,
          reference.platform, reference.use, reference.advice);
  }
  return text;
}

void platform_reports(const Result& result, const SupportList& list, const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::string success, failed, by_hand;
  std::map<std::string_view, size_t> total;
  std::map<std::string_view, std::set<std::string>> distinct;
  for (const FileResult& file : result.files) {
    for (const AppliedChange& change : file.changes)
      success += fmt::format("{}:{} {}\n", file.path, change.line, change.change.message);
    for (const Finding& finding : file.findings) {
      std::string line = fmt::format("{}:{} {}; {}\n", file.path, finding.line, finding.message, finding.advice);
      if (finding.severity == Severity::error)
        failed += line;
      else
        by_hand += line;
    }
    for (const Reference& reference : file.references) {
      std::string_view given = list.find(reference.name);
      std::string_view platform = given.empty() ? reference.platform : given;
      if (platform.empty()) continue;
      ++total[platform];
      distinct[platform].insert(reference.name);
    }
  }
  auto counts = [&](std::string_view title, auto count_of) {
    size_t all = 0;
    std::string rest;
    for (const ClassTitle& row : platform_classes()) {
      size_t count = count_of(row.id);
      all += count;
      rest += fmt::format(", {}: {}", row.english, count);
    }
    return fmt::format("{} Total API: {}, in which{}\n", title, all, rest.substr(1));
  };
  std::string brief = counts("1.In brief:", [&](std::string_view id) { return total[id]; });
  brief += counts("2.After eliminate duplicate:", [&](std::string_view id) { return distinct[id].size(); });
  write_file(folder + "/success_report.txt", success);
  write_file(folder + "/failed_report.txt", failed);
  write_file(folder + "/need_migration_doc.txt", by_hand);
  write_file(folder + "/api_brief_report.txt", brief);
  xlsx_report(result, list, folder + "/api_analysis_report.xlsx");
}

std::string rules_markdown() {
  std::string text =
      "# Rules of `cairn migrate`\n\nGenerated by `cairn migrate --rules`. Tier *safe*: cannot change what the script "
      "computes. *review*: applied, and worth a look. "
      "*advice*: reported, never edited. Each example is a test.\n";
  for (const Rule* rule : all_rules()) {
    std::string_view when = rule->when == When::always      ? "always"
                            : rule->when == When::tf1       ? "scripts of TensorFlow 1"
                            : rule->when == When::tf2       ? "scripts of TensorFlow 2"
                            : rule->when == When::mindspore ? "with `--to mindspore`"
                            : rule->when == When::strategy  ? "scripts distributed by a strategy"
                                                            : "with `--platform`";
    text += fmt::format("\n## {}\n\n{}: {}.\n\nTier {}, {}.\n", rule->id, rule->title, rule->reason,
                        tier_name(rule->tier), when);
    for (const Example& example : rule->examples) {
      if (example.after.empty()) continue;
      text += fmt::format("\n```diff\n{}```\n",
                          unified_diff(example.before, example.after,
                                       first_line(example.options.empty() ? "script.py" : example.options), 1)
                              .substr(0));
    }
  }
  return text;
}

}  // namespace cairn::migrate
