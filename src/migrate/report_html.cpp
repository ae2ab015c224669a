// The HTML report: one page that needs nothing from outside.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "migrate/reports.h"
#include "migrate/rule.h"

namespace cairn::migrate {
namespace {

constexpr std::string_view kStyle = R"css(
:root{--bg:#fbfaf7;--card:#fff;--ink:#22262a;--soft:#667078;--line:#e3e0d8;--add:#e3f4e5;--addw:#b4e0ba;--del:#fbe6e4;--delw:#f2bcb6;--acc:#2b6a5c;--warn:#a35d00;--err:#b3261e}
@media(prefers-color-scheme:dark){:root{--bg:#16191b;--card:#1f2427;--ink:#e4e6e3;--soft:#98a2a6;--line:#333a3d;--add:#17321f;--addw:#2a5c38;--del:#3b1d1c;--delw:#6e302c;--acc:#6cc5ae;--warn:#e0a04a;--err:#f28b82}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1280px;margin:0 auto;padding:32px 20px 80px}h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:40px 0 12px}
p.sub{color:var(--soft);margin:0 0 24px}.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px}.card b{display:block;font-size:26px;font-weight:600}.card span{color:var(--soft);font-size:13px}
.bar{height:8px;border-radius:4px;background:var(--line);margin-top:8px;overflow:hidden}.bar i{display:block;height:100%;background:var(--acc)}
table{border-collapse:collapse;width:100%;background:var(--card);border:1px solid var(--line);border-radius:10px;overflow:hidden}
th,td{text-align:left;padding:7px 12px;border-top:1px solid var(--line);vertical-align:top;font-size:14px}th{border-top:0;color:var(--soft);font-weight:500}td.n{text-align:right;font-variant-numeric:tabular-nums}
code,.diff{font:12.5px/1.55 ui-monospace,SFMono-Regular,Menlo,monospace}#uses code,td:not(:last-child)>code{overflow-wrap:anywhere}
.tag{display:inline-block;border-radius:20px;padding:0 9px;font-size:12px;border:1px solid currentColor;white-space:nowrap}.safe,.note{color:var(--acc)}.review,.warning{color:var(--warn)}.error{color:var(--err)}.advice{color:var(--soft)}
details{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:10px 0;overflow:hidden}summary{cursor:pointer;padding:10px 14px;font-weight:500}summary small{color:var(--soft);font-weight:400;margin-left:8px}
.why{padding:0 14px 8px;margin:0;list-style:none;font-size:13.5px}.why li{padding:2px 0}
.diff{border:0;border-radius:0;table-layout:fixed}.diff td{border:0;padding:0 8px;white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}.diff td.l{width:52px;color:var(--soft);text-align:right;user-select:none}
.diff td.d{background:var(--del)}.diff td.a{background:var(--add)}.diff td.gap{color:var(--soft);text-align:center;border-top:1px dashed var(--line)}mark{background:var(--addw);color:inherit;border-radius:2px}td.d mark{background:var(--delw)}
input{width:100%;padding:9px 12px;border:1px solid var(--line);border-radius:8px;background:var(--card);color:inherit;font:inherit;margin-bottom:10px}
)css";

constexpr std::string_view kScript = R"js(
document.querySelectorAll('input[data-for]').forEach(i=>i.addEventListener('input',()=>{const q=i.value.toLowerCase();
document.querySelectorAll('#'+i.dataset.for+' tbody tr').forEach(r=>{r.hidden=!r.textContent.toLowerCase().includes(q)})}));
)js";

std::string escape(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  auto is_plain = [](char c) {
    return c != '<' && c != '>' && c != '&' && c != '"' &&
           (static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n');
  };
  while (!text.empty()) {
    const size_t plain = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
    safe += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    switch (text[0]) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      default: break;  // control characters are left out
    }
    text.remove_prefix(1);
  }
  return safe;
}

std::string tag(std::string_view name) { return fmt::format("<span class=\"tag {0}\">{0}</span>", name); }

std::string_view strip(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Two versions of a line with the part that differs marked.
std::pair<std::string, std::string> marked(std::string_view a, std::string_view b) {
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  auto middle = [&](std::string_view text) { return text.substr(head, text.size() - head - tail); };
  auto put = [&](std::string_view text) {
    std::string inner = escape(middle(text));
    return escape(text.substr(0, head)) + (inner.empty() ? "" : "<mark>" + inner + "</mark>") +
           escape(text.substr(text.size() - tail));
  };
  return {put(a), put(b)};
}

std::string side_by_side(const FileResult& file) {
  std::vector<DiffLine> lines = diff_lines(file.before, file.after, file.edits);
  std::vector<bool> shown(lines.size(), false);
  for (size_t i = 0; i < lines.size(); ++i)
    if (lines[i].kind != ' ')
      for (size_t j = i >= 3 ? i - 3 : 0; j < std::min(lines.size(), i + 4); ++j) shown[j] = true;
  std::string html = "<table class=\"diff\"><tbody>";
  auto cell = [](uint32_t line, std::string_view kind, const std::string& text) {
    return line ? fmt::format("<td class=\"l\">{}</td><td class=\"{}\">{}</td>", line, kind, text)
                : std::string("<td class=\"l\"></td><td></td>");
  };
  bool gap = false;
  for (size_t i = 0; i < lines.size();) {
    if (!shown[i]) {
      gap = true;
      ++i;
      continue;
    }
    if (gap) html += "<tr><td class=\"gap\" colspan=\"4\">…</td></tr>";
    gap = false;
    if (lines[i].kind == ' ') {
      std::string text = escape(strip(lines[i].text));
      html += "<tr>" + cell(lines[i].old_line, "", text) + cell(lines[i].new_line, "", text) + "</tr>";
      ++i;
      continue;
    }
    std::vector<DiffLine> removed, added;
    for (; i < lines.size() && lines[i].kind != ' '; ++i) (lines[i].kind == '-' ? removed : added).push_back(lines[i]);
    // Lines added in front keep their place: pair from the end.
    size_t rows = std::max(removed.size(), added.size());
    for (size_t row = 0; row < rows; ++row) {
      size_t from_end = rows - row;
      const DiffLine* old_line = from_end <= removed.size() ? &removed[removed.size() - from_end] : nullptr;
      const DiffLine* new_line = from_end <= added.size() ? &added[added.size() - from_end] : nullptr;
      std::string left = old_line ? escape(strip(old_line->text)) : "",
                  right = new_line ? escape(strip(new_line->text)) : "";
      if (old_line && new_line) std::tie(left, right) = marked(strip(old_line->text), strip(new_line->text));
      html += "<tr>" + cell(old_line ? old_line->old_line : 0, "d", left) +
              cell(new_line ? new_line->new_line : 0, "a", right) + "</tr>";
    }
  }
  return html + "</tbody></table>";
}

}  // namespace

std::string html_report(const Result& result, const std::string& title) {
  size_t edits = 0, review = 0, references = 0, findings = 0;
  struct Use {
    size_t count = 0;
    const Reference* first = nullptr;
    const FileResult* file = nullptr;
  };
  std::map<std::pair<std::string_view, std::string_view>, Use> uses;  // name and status
  for (const FileResult& file : result.files) {
    edits += file.changes.size();
    references += file.references.size();
    for (const AppliedChange& change : file.changes) review += change.change.tier == Tier::review;
    for (const Finding& finding : file.findings) findings += finding.severity != Severity::note;
    for (const Reference& reference : file.references) {
      Use& use = uses[{reference.name, reference.status}];
      if (use.count++ == 0) use.first = &reference, use.file = &file;
    }
  }
  std::string html =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>Migration of " +
      escape(title) + "</title><style>" + std::string(kStyle) + "</style></head><body><main>";
  html += fmt::format("<h1>Migration of {}</h1><p class=\"sub\">{} lines in {} files, {}</p>", escape(title),
                      result.lines, result.files.size(), interfaces(result));
  auto card = [&](const std::string& number, std::string_view label, const std::string& more = "") {
    html += fmt::format("<div class=\"card\"><b>{}</b><span>{}</span>{}</div>", number, label, more);
  };
  html += "<div class=\"cards\">";
  card(fmt::format("{} %", result.readiness()), "of framework uses are ready",
       fmt::format("<div class=\"bar\"><i style=\"width:{}%\"></i></div>", result.readiness()));
  card(std::to_string(result.changed()), "files changed");
  card(std::to_string(edits), fmt::format("edits, {} to review", review));
  card(std::to_string(findings), "findings for a person");
  card(std::to_string(references), "framework uses");
  card(std::to_string(result.failed()), "files left out");
  html += "</div>";

  html += "<h2>Findings</h2>";
  std::string rows;
  for (const Finding& finding : result.findings)
    rows +=
        fmt::format("<tr><td>{}</td><td></td><td>{}<br><span style=\"color:var(--soft)\">{}</span></td><td></td></tr>",
                    tag(to_string(finding.severity)), escape(finding.message), escape(finding.advice));
  for (Severity severity : {Severity::error, Severity::warning, Severity::note})
    for (const FileResult& file : result.files)
      for (const Finding& finding : file.findings)
        if (finding.severity == severity)
          rows += fmt::format(
              "<tr><td>{}</td><td><code>{}:{}</code></td><td>{}<br><span "
              "style=\"color:var(--soft)\">{}</span></td><td><code>{}</code></td></tr>",
              tag(to_string(severity)), escape(file.path), finding.line, escape(finding.message),
              escape(finding.advice), escape(finding.rule));
  if (rows.empty())
    html += "<p>None.</p>";
  else
    html +=
        "<input data-for=\"findings\" placeholder=\"filter\"><table "
        "id=\"findings\"><thead><tr><th>severity</th><th>place</th><th>what, and the way "
        "out</th><th>rule</th></tr></thead><tbody>" +
        rows + "</tbody></table>";

  html += "<h2>Changes</h2>";
  size_t open = 0;
  for (const FileResult& file : result.files) {
    if (file.state != FileState::changed) continue;
    html += fmt::format("<details{}><summary>{}<small>{} edit{}</small></summary><ul class=\"why\">",
                        open++ < 5 ? " open" : "", escape(file.path), file.changes.size(),
                        file.changes.size() == 1 ? "" : "s");
    for (const AppliedChange& change : file.changes) {
      const Rule* rule = find_rule(change.change.rule);
      html += fmt::format("<li>{} line {}: {}{}</li>", tag(tier_name(change.change.tier)), change.line,
                          escape(change.change.message), rule ? "; " + escape(rule->reason) : "");
    }
    html += "</ul>" + side_by_side(file) + "</details>";
  }
  if (open == 0) html += "<p>Nothing had to be changed.</p>";

  html +=
      "<h2>Framework uses</h2><input data-for=\"uses\" placeholder=\"filter\"><table "
      "id=\"uses\"><thead><tr><th>name</th><th>uses</th><th>here</th><th>the platform's class</th><th>first "
      "place</th><th>note</th></tr></thead><tbody>";
  std::vector<std::pair<std::pair<std::string_view, std::string_view>, Use>> sorted(uses.begin(), uses.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  for (const auto& [key, use] : sorted)
    html += fmt::format(
        "<tr><td><code>{}</code></td><td "
        "class=\"n\">{}</td><td>{}</td><td>{}</td><td><code>{}:{}</code></td><td>{}</td></tr>",
        escape(key.first), use.count, escape(key.second), escape(use.first->platform), escape(use.file->path),
        use.first->line, escape(use.first->advice));
  html += "</tbody></table></main><script>" + std::string(kScript) + "</script></body></html>\n";
  return html;
}

}  // namespace cairn::migrate
