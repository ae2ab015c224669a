// The uses of framework names in a script, each with what becomes of it here.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "migrate/api_table.h"
#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

std::string_view use_of(const Syntax& syntax, NodeId node) {
  NodeId parent = syntax.parent(node);
  if (parent == kNoNode) return "value";
  if (syntax.kind(parent) == Kind::call && syntax[node].field == Field::function) {
    return syntax.kind(syntax.parent(parent)) == Kind::decorator ? "decorator" : "call";
  }
  if (syntax.kind(parent) == Kind::decorator) return "decorator";
  if (syntax.kind(parent) == Kind::argument_list && syntax[parent].field == Field::superclasses) return "base";
  return "value";
}

bool is_ours(std::string_view name) { return name.starts_with("tf.") || name.starts_with("hvd."); }

/// A name of a module that Keras has no longer is there where that module is, whatever became of the name. TensorFlow's own copy
/// of Keras, which no list holds, is answered by Keras itself for scripts of the first interface.
ApiSupport support_of(const ApiName& name, int generation) {
  ApiSupport found = api_support(name.name);
  if (!name.elder.empty() && !(name.inner && generation == 2)) {
    const std::string_view platform = found.platform;
    found = api_support(name.elder);
    found.platform = platform;
  }
  const bool by_copy =
      found.here == ApiSupport::Here::missing || (generation == 2 && found.here == ApiSupport::Here::layer);
  return name.inner && by_copy ? api_support("tf.python.keras") : found;
}

/// Whether an edit replaces the text from `begin` to `end`; the edits are sorted and free of overlap.
bool is_replaced(uint32_t begin, uint32_t end, const std::vector<Edit>& edits) {
  auto after = std::upper_bound(edits.begin(), edits.end(), begin,
                                [](uint32_t at, const Edit& edit) { return at < edit.begin; });
  return after != edits.begin() && end <= std::prev(after)->end;
}

// What is known of all uses of one name in a file.
struct Judgement {
  ApiSupport support;
  std::string_view status, platform;
  std::string advice;
  std::string judged;  // the name that the tables were asked for
  bool horovod = false;
};

Judgement judge(const ApiName& name, int generation) {
  Judgement found;
  found.judged = name.elder.empty() ? name.name : name.elder;
  found.support = support_of(name, generation);
  found.status = here_title(found.support.here);
  found.platform = name.compat != 0 && !found.support.platform.empty() ? "compat" : found.support.platform;
  found.advice = found.support.note;
  found.horovod = name.name.starts_with("hvd.");
  // A name that only the other generation of the interface has: scripts often ask for the version before they use it.
  if (std::string_view listed = listed_part(name.name);
      found.support.in_tensorflow() && api_exists(listed) && !api_exists(listed, generation)) {
    found.status = generation == 2 ? "only in TensorFlow 1" : "only in TensorFlow 2";
    found.advice = fmt::format("the interface of TensorFlow {} does not have it", generation);
  } else if (found.support.here == ApiSupport::Here::layer && generation == 2) {
    found.status = "only in TensorFlow 1";
    found.advice = "`cairn tf1` supplies it to scripts of TensorFlow 1";
  }
  return found;
}

// The judgements of a file's names, each made once.
class Judgements {
 public:
  explicit Judgements(int generation) : generation_(generation) {}

  const Judgement& of(const ApiName& name) {
    key_ = name.name;
    if (!name.elder.empty()) key_ += ' ', key_ += name.elder;
    key_ += name.inner ? " inner " : " ", key_ += static_cast<char>('0' + name.compat);
    auto [found, fresh] = known_.try_emplace(key_);
    if (fresh) found->second = judge(name, name.compat ? name.compat : generation_);
    return found->second;
  }

 private:
  int generation_;
  std::string key_;
  std::unordered_map<std::string, Judgement> known_;
};

void note_missing(Context& file, NodeId node, const ApiName& name, const Judgement& judged, Reference& reference) {
  if (judged.support.exists) {  // the table says what it needs that is not here
    reference.status = "not here";
    file.find(kMissingApi, node, Severity::note, name.name + " cannot run here", judged.support.note);
  } else if (asks_for_names(file.module, node)) {
    reference.status = "asked for first";
    reference.advice = "the script has another way where it is missing";
  } else {
    file.find(kMissingApi, node, Severity::error, judged.judged + " exists neither in TensorFlow 2.15 nor in cairn tf1",
              judged.support.note);
  }
}

}  // namespace

void note_references(Context& file, const std::vector<Edit>& edits) {
  FileResult& result = file.result;
  std::map<uint32_t, size_t> hand_work;  // line -> finding, by index, as their list grows
  for (size_t i = 0; i < result.findings.size(); ++i)
    if (result.findings[i].severity != Severity::note) hand_work.emplace(result.findings[i].line, i);
  Judgements judgements(file.own.tf);
  auto add = [&](NodeId node, const ApiName& name, std::string_view use) {
    const Judgement& judged = judgements.of(name);
    const Position at = file.module.lines().at(file.syntax[node].begin);
    Reference reference{at.line, at.column, name.name, use, judged.status, judged.platform, judged.advice};
    const bool missing = judged.support.here == ApiSupport::Here::missing;
    if (file.rewritten.contains(node) || is_replaced(file.syntax[node].begin, file.syntax[node].end, edits)) {
      reference.status = "migrated";
    } else if (auto by_hand = hand_work.find(at.line); judged.horovod && by_hand != hand_work.end() && !missing) {
      reference.status = "needs hand work";
      reference.advice = result.findings[by_hand->second].advice;
    } else if (judged.horovod && judged.support.here == ApiSupport::Here::unknown) {
      reference.status = "needs hand work";
    } else if (missing) {
      note_missing(file, node, name, judged, reference);
    }
    result.references.push_back(std::move(reference));
  };
  result.references.reserve(file.own.names.size());
  for (const NameUse& use : file.own.names) add(use.node, use.name, use_of(file.syntax, use.node));
  for (const Import& import : file.module.imports()) {
    if (import.module.starts_with('.') || !is_reported_framework(import.module) ||
        !file.project.find(file.module.path(), import.module).empty())
      continue;
    ApiName name =
        canonical(import.member.empty() || import.star ? import.module : import.module + "." + import.member);
    if (is_ours(name.name)) add(import.entry, name, "import");
  }
  std::stable_sort(result.references.begin(), result.references.end(), [](const Reference& a, const Reference& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
}

}  // namespace cairn::migrate
