// A run: parsing the scripts, finding out about the project, applying the rules to each file, noting the uses of
// framework names.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>

#include "migrate/notebook.h"
#include "migrate/options.h"
#include "migrate/parallel.h"
#include "migrate/rules.h"
#include "migrate/still_parses.h"
#include "migrate/torch_file.h"
#include "support/executor.h"

namespace cairn::migrate {

NodeId main_guard(const Syntax& syntax) {
  for (NodeId statement : syntax.children(0)) {
    if (syntax.kind(statement) != Kind::if_statement) continue;
    NodeId condition = syntax.unwrap(syntax.child(statement, Field::condition));
    if (syntax.kind(condition) != Kind::comparison_operator ||
        syntax.text(condition).find("==") == std::string_view::npos)
      continue;
    bool name = false, main = false;
    for (NodeId part : syntax.children(condition)) {
      std::string text;
      name = name || syntax.text(part) == "__name__";
      main = main || (string_value(syntax, part, text) && text == "__main__");
    }
    if (name && main) return statement;
  }
  return kNoNode;
}

size_t Result::changed() const {
  return std::count_if(files.begin(), files.end(),
                       [](const FileResult& file) { return file.state == FileState::changed; });
}

size_t Result::failed() const {
  return std::count_if(files.begin(), files.end(),
                       [](const FileResult& file) { return file.state == FileState::failed; });
}

int Result::readiness() const {
  size_t all = 0, good = 0;
  for (const FileResult& file : files)
    for (const Reference& reference : file.references) {
      ++all;
      good += reference.status.starts_with("runs") || reference.status.starts_with("migrated") ||
              reference.status == "asked for first";
    }
  return all == 0 ? 100 : static_cast<int>(100 * good / all);
}

namespace {

struct Script {
  size_t file;         // index into files
  std::string source;  // Python text: the file itself or a notebook's cells
  std::unique_ptr<Module> module;
  std::unique_ptr<Notebook> notebook;
};

// ---- one file ----

bool matches(std::string_view pattern, std::string_view name) {
  size_t colon = pattern.find(':'), named = name.find(':');
  if (pattern.ends_with('*'))  // names, not what is called on their instances
    return named == name.npos && name.starts_with(pattern.substr(0, pattern.size() - 1));
  if (pattern == name) return true;
  if (colon == pattern.npos || named == name.npos) return false;
  return pattern.substr(colon) == name.substr(named) && is_subclass(name.substr(0, named), pattern.substr(0, colon));
}

// Which enabled rules a callee's name is of.
class RulesByName {
 public:
  explicit RulesByName(const Context& file) {
    for (const Rule* rule : all_rules()) {
      if (!file.is_enabled(*rule)) continue;
      enabled.push_back(rule);
      for (std::string_view name : rule->calls)
        if (name.ends_with('*') || name.find(':') != name.npos)
          patterns_.push_back({name, rule});
        else
          exact_[name].push_back(rule);
    }
  }

  const std::vector<const Rule*>& of(const std::string& name) {
    auto [entry, fresh] = found_.try_emplace(name);
    if (!fresh) return entry->second;
    std::set<const Rule*> fired;
    if (auto found = exact_.find(name); found != exact_.end()) fired.insert(found->second.begin(), found->second.end());
    for (const auto& [pattern, rule] : patterns_)
      if (matches(pattern, name)) fired.insert(rule);
    entry->second.assign(fired.begin(), fired.end());
    return entry->second;
  }

  std::vector<const Rule*> enabled;

 private:
  std::unordered_map<std::string_view, std::vector<const Rule*>> exact_;
  std::vector<std::pair<std::string_view, const Rule*>> patterns_;
  std::unordered_map<std::string, std::vector<const Rule*>> found_;  // each rule once
};

struct CallOfRule {
  NodeId call;
  ApiName name;
  bool alone;            // nothing else can be called there
  bool through_partial;  // of what functools.partial gave
};

void add_call(Context& file, NodeId call, RulesByName& rules,
              std::unordered_map<const Rule*, std::vector<CallOfRule>>& spots) {
  const bool partial = file.makes_partial(call);
  const std::vector<ApiName> targets = partial ? file.targets_of_partial(call) : file.targets(call);
  if (targets.empty()) return;
  const bool through_partial = !partial && file.calls_partial(call);
  const NodeId callee = file.syntax.child(call, Field::function);
  const bool alone = targets.size() == 1 && file.resolver.values(file.module, callee).size() == 1;
  for (const ApiName& target : targets)
    for (const Rule* rule : rules.of(target.name)) {
      if ((partial || through_partial) && !rule->arguments_alone) continue;
      if (auto& found = spots[rule]; found.empty() || found.back().call != call)
        found.push_back({call, target, alone, through_partial});
    }
}

void apply_rules(Context& file) {
  const Syntax& syntax = file.syntax;
  RulesByName rules(file);
  std::unordered_map<const Rule*, std::vector<CallOfRule>> spots;
  auto use = file.own.names.begin();  // in the order of the nodes, as calls are
  for (NodeId call = 0; call < syntax.size(); ++call) {
    if (syntax.kind(call) != Kind::call) continue;
    const NodeId callee = syntax.child(call, Field::function);
    while (use != file.own.names.end() && use->node < callee) ++use;
    // Most calls can call one name alone, and that is no rule's.
    const bool known = use != file.own.names.end() && use->node == callee && use->alone;
    if (!known || !rules.of(use->name.name).empty()) add_call(file, call, rules, spots);
  }
  for (const Rule* rule : rules.enabled) {
    if (auto found = spots.find(rule); found != spots.end() && rule->at_call)
      for (auto& [call, name, alone, through_partial] : found->second) {
        Spot spot{file, *rule, call, name, alone, through_partial};
        if (is_subclass(name.name.substr(0, name.name.find(':')), rule->calls[0].substr(0, rule->calls[0].find(':'))) &&
            name.name.find(':') != std::string::npos)
          spot.name.name =
              std::string(rule->calls[0].substr(0, rule->calls[0].find(':'))) + name.name.substr(name.name.find(':'));
        rule->at_call(spot);
      }
    if (rule->at_file) rule->at_file(file, *rule);
  }
}

// The lines around one change before and after it alone.
void show(const Module& module, const Change& change, AppliedChange& shown) {
  const std::string& text = module.text();
  uint32_t begin = change.at.begin, end = change.at.end;
  for (const Edit& edit : change.edits) begin = std::min(begin, edit.begin), end = std::max(end, edit.end);
  constexpr uint32_t kMost = 160;  // of a long line on either side
  for (uint32_t most = kMost; begin > 0 && text[begin - 1] != '\n' && most > 0; --most) --begin;
  for (uint32_t most = kMost; end < text.size() && text[end] != '\n' && most > 0; --most) ++end;
  Position at = module.lines().at(change.at.begin);
  shown.line = at.line;
  shown.column = at.column;
  shown.old_text = text.substr(begin, end - begin);
  std::vector<Edit> edits = change.edits;
  std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) {
    return a.begin != b.begin                         ? a.begin < b.begin
           : (a.begin == a.end) != (b.begin == b.end) ? a.begin == a.end
                                                      : a.order < b.order;
  });
  for (Edit& edit : edits) edit.begin -= begin, edit.end -= begin;
  shown.new_text = apply_edits(shown.old_text, edits);
}

/// Whether an edit that is made takes out all that the change is about; the edits are sorted and free of overlap.
bool is_taken_out(const Change& change, const std::vector<Edit>& edits) {
  auto after = std::upper_bound(edits.begin(), edits.end(), change.at.begin,
                                [](uint32_t begin, const Edit& edit) { return begin < edit.begin; });
  return after != edits.begin() && std::prev(after)->text.empty() && change.at.end <= std::prev(after)->end;
}

void migrate_module(const Project& project, const Module& module, const Notebook* notebook, const Options& options,
                    const ProjectFacts& facts, const FileFacts& own, FileResult& result) {
  result.lines = module.lines().count();
  result.generation = own.generation;
  result.tf = own.tf;
  result.entry = own.entry;
  Resolver resolver(project);
  Context file(project, module, resolver, options, facts, own, result);
  if (module.text().find("# cairn: ignore-file") != std::string::npos) return;
  if (module.syntax().error_count()) {
    Position at = module.lines().at(module.syntax()[module.syntax().first_error()].begin);
    result.findings.push_back({"syntax", Severity::warning, result.path, at.line, at.column, at.line, at.column,
                               fmt::format("{} place{} cannot be parsed", module.syntax().error_count(),
                                           module.syntax().error_count() == 1 ? "" : "s"),
                               "statements around them are left as they are", false});
  }
  apply_rules(file);
  std::vector<Change> dropped;
  std::vector<Edit> edits = merge(file.changes, dropped);
  auto of_horovod = [](const Change& change) { return change.rule.starts_with("horovod-"); };
  if (std::any_of(dropped.begin(), dropped.end(), of_horovod)) {  // as a whole or not at all
    std::erase_if(file.changes, of_horovod);
    edits = merge(file.changes, dropped);
  }
  for (const Change& change : dropped) {
    if (is_taken_out(change, edits)) continue;
    Position at = module.lines().at(change.at.begin);
    result.findings.push_back({change.rule, Severity::warning, result.path, at.line, at.column, at.line, at.column,
                               change.message,
                               "not made, because another edit changes the same text; run again on the result", false});
  }
  if (!add_imports(file, edits)) {
    result.findings.push_back(
        {"imports", Severity::error, result.path, 1, 1, 1, 1, "no place was found for the new imports",
         "the file is left as it is; give it an import of TensorFlow on a line of its own", false});
    file.changes.clear();
    edits.clear();
  }
  if (!edits.empty() && !still_parses(module, edits)) {
    result.findings.push_back({"syntax", Severity::error, result.path, 1, 1, 1, 1, "the rewritten text would not parse",
                               "the file is left as it is; please report this", false});
    file.changes.clear();
    edits.clear();
  }
  if (options.to == Target::ascend) note_references(file, edits);
  for (Change& change : file.changes) {
    AppliedChange shown{std::move(change), 0, 0, {}, {}};
    show(module, shown.change, shown);
    result.changes.push_back(std::move(shown));
  }
  std::stable_sort(result.changes.begin(), result.changes.end(), [](const AppliedChange& a, const AppliedChange& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  std::erase_if(result.findings, [](const Finding& finding) { return finding.suppressed; });
  std::stable_sort(result.findings.begin(), result.findings.end(), [](const Finding& a, const Finding& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  result.edits = notebook ? notebook->translate(edits) : std::move(edits);
  if (!result.edits.empty()) {
    result.after = apply_edits(result.before, result.edits);
    result.state = FileState::changed;
  }
}

// Launchers and their configuration: reported by their words.
void note_launcher(FileResult& file) {
  struct Word {
    std::string_view word, advice;
  };
  static constexpr Word words[] = {
      {"horovodrun", "start the ranks with cairn launch -n N"},
      {"CUDA_VISIBLE_DEVICES", "it does nothing here; use ASCEND_DEVICE_ID"},
      {"nvidia-smi", "take it out: there is no GPU to watch"},
      {"torchrun", "start the ranks with cairn launch -n N"},
      {"--use_tpu=true", "use --use_tpu=false"},
      {"TF_XLA_FLAGS", "it does nothing here"},
  };
  LineIndex lines(file.before);
  for (uint32_t line = 1; line <= lines.count() && file.findings.size() < 200; ++line) {
    std::string_view text = lines.line(file.before, line);
    for (const auto& [word, advice] : words)
      if (size_t at = text.find(word); at != text.npos && text.find_first_not_of(" \t") != text.find('#'))
        file.findings.push_back({"launcher", Severity::note, file.path, line, static_cast<uint32_t>(at + 1), line,
                                 static_cast<uint32_t>(at + 1 + word.size()), fmt::format("{} in a launcher", word),
                                 std::string(advice), false});
  }
}

}  // namespace

Result migrate(std::vector<Input> inputs, const Options& options) {
  auto begin = std::chrono::steady_clock::now();
  Result result;
  std::sort(inputs.begin(), inputs.end(), [](const Input& a, const Input& b) { return a.path < b.path; });
  Project project;
  for (Input& input : inputs) {
    FileResult file;
    file.path = input.path;
    if (!input.problem.empty()) {
      file.state = FileState::failed;
      file.findings.push_back({"file", Severity::error, input.path, 0, 0, 0, 0, input.problem,
                               "the file is left out; the others are not affected", false});
    } else {
      file.before = std::move(input.text);
      if (file.path.ends_with(".py")) project.add_path(file.path);
    }
    result.files.push_back(std::move(file));
  }

  std::unique_ptr<Executor> executor = make_pool(options.jobs > 0 ? options.jobs : available_threads());
  std::vector<Script> scripts;
  for (size_t i : scripts_to_parse(result.files, project, options.to == Target::mindspore)) {
    FileResult& file = result.files[i];
    if (file.path.ends_with(".py") || file.path.ends_with(".pyw") || file.path.ends_with(".ipynb"))
      scripts.push_back({i, {}, nullptr, nullptr});
    else
      note_launcher(file);
  }
  for (const FileResult& file : result.files) result.lines += std::count(file.before.begin(), file.before.end(), '\n');
  parallel(*executor, scripts.size(), [&](size_t i) {
    Script& script = scripts[i];
    FileResult& file = result.files[script.file];
    file.state = FileState::unchanged;
    if (file.path.ends_with(".ipynb")) {
      script.notebook = Notebook::read(file.before, file.path, file.findings);
      if (!script.notebook) {
        file.state = FileState::failed;
        return;
      }
      script.module = std::make_unique<Module>(file.path, script.notebook->source());
    } else {
      script.module = std::make_unique<Module>(file.path, file.before);
    }
  });
  std::vector<Script*> parsed;
  for (Script& script : scripts) {
    if (!script.module) continue;
    project.add(std::move(script.module));
    parsed.push_back(&script);
  }

  project.link();
  ProjectFacts facts = find_facts(project, options, *executor);
  const auto& modules = project.modules();
  result.to = options.to;
  result.tf = facts.tf;
  result.distributed = facts.distributed;
  for (size_t i = 0; i < modules.size(); ++i)
    if (facts.files[i].entry) result.entries.push_back(modules[i]->path());

  auto migrate_all = [&](const Options& how) {
    parallel(*executor, parsed.size(), [&](size_t i) {
      Script& script = *parsed[i];
      migrate_module(project, *modules[i], script.notebook.get(), how, facts, facts.files[i],
                     result.files[script.file]);
    });
  };
  std::vector<FileResult> files = options.to == Target::mindspore ? result.files : std::vector<FileResult>();
  migrate_all(options);
  if (options.to == Target::mindspore && leaves_gradients(result)) {
    Options recorded = options;
    recorded.recorded = true;
    result.files = std::move(files);
    migrate_all(recorded);
  }
  result.findings = idle_options(result, options);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

FileResult migrate_text(std::string text, const Options& options) {
  Options alone = options;
  alone.jobs = 1;
  std::vector<Input> inputs;
  inputs.push_back({"script.py", std::move(text), ""});
  return std::move(migrate(std::move(inputs), alone).files[0]);
}

}  // namespace cairn::migrate
