// Who keeps a collective from going on.
#include <algorithm>

#include "comm/hub.h"
#include "support/error.h"

namespace cairn::comm {

namespace {

// "all_reduce "w" f32[3] sum (train.py:41)"
std::string call_text(const Json& call) {
  const std::string text = call.value("text", ""), place = call.value("place", "");
  return place.empty() ? text : fmt::format("{} at {}", text, place);
}

std::string behind_text(const std::string& who, const Json& call, int64_t number) {
  if (call.is_null()) return fmt::format("{} has not called any collective of the group", who);
  const int64_t done = call.value("number", int64_t{0});
  return fmt::format("{} has not come to number {} of the group: number {}, {}, was its last", who, number, done,
                     call_text(call));
}

// Of the ranks that have not given their part of something that all create.
Verdict judge_creation(const Json& report, const std::map<int, Json>& answers, const std::vector<Json>& members,
                       const std::set<int>& left) {
  const auto late = report.value("late", std::vector<int>());
  const std::string waiting = fmt::format("rank {} waited {:.3g} s for {}", report.value("rank", 0),
                                          report.value("waited", 0.0), report.value("text", ""));
  const auto say = [&](int rank, std::string_view what) -> Verdict {
    return {fmt::format("{} {} while {}", rank_text(members[static_cast<size_t>(rank)], rank), what, waiting), rank};
  };
  for (int rank : late)
    if (left.count(rank)) return say(rank, "has left the job");
  for (int rank : late)
    if (!answers.count(rank)) return say(rank, kSilent);
  if (!late.empty()) return say(late[0], "did not come to it");
  return {waiting + ", longer than the job's timeout", -1};
}

}  // namespace

Verdict judge(const Json& report, const std::map<int, Json>& answers, const std::vector<Json>& members,
              const std::set<int>& left) {
  if (report.contains("late")) return judge_creation(report, answers, members, left);
  const int64_t number = report.value("number", int64_t{0});
  const std::string group = report.value("group", "");
  const auto ranks = report.value("ranks", std::vector<int>());
  const std::string waiting = fmt::format("while rank {} waited {:.3g} s in {}", report.value("rank", 0),
                                          report.value("waited", 0.0), call_text(report));
  const auto who = [&](int rank) { return rank_text(members[static_cast<size_t>(rank)], rank); };
  const auto call_of = [&](int rank) -> Json {
    auto found = answers.find(rank);
    if (found == answers.end() || !found->second.contains("calls")) return nullptr;
    return found->second["calls"].value(group, Json());
  };
  for (int rank : ranks)
    if (left.count(rank) && (call_of(rank).is_null() || call_of(rank).value("number", int64_t{0}) < number))
      return {fmt::format("{} has left the job {}", who(rank), waiting), rank};
  for (int rank : ranks)
    if (!answers.count(rank)) return {fmt::format("{} {} {}", who(rank), kSilent, waiting), rank};
  // The fewest agree with the one that is at fault; of two ranks that differ, the second is named.
  std::map<uint64_t, std::vector<int>> kinds;
  for (int rank : ranks)
    if (const Json call = call_of(rank); !call.is_null() && call.value("number", int64_t{0}) == number)
      kinds[call.value("digest", uint64_t{0})].push_back(rank);
  if (kinds.size() > 1) {
    const auto fewest = std::min_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
      return a.second.size() != b.second.size() ? a.second.size() < b.second.size() : a.second[0] > b.second[0];
    });
    const auto most =
        std::find_if(kinds.begin(), kinds.end(), [&](const auto& each) { return each.first != fewest->first; });
    const int odd = fewest->second[0], other = most->second[0];
    return {fmt::format("ranks disagree on collective {} of group {}: {} calls {}, rank {} calls {}", number, group,
                        who(odd), call_text(call_of(odd)), other, call_text(call_of(other))),
            odd};
  }
  for (int rank : ranks) {
    const Json call = call_of(rank);
    if (call.is_null() || call.value("number", int64_t{0}) < number)
      return {fmt::format("{} {}", behind_text(who(rank), call, number), waiting), rank};
  }
  return {fmt::format("no rank goes on, though all have come to number {} of group {}, {}", number, group, waiting),
          -1};
}

}  // namespace cairn::comm
