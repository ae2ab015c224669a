#include "profile/job.h"

#include <algorithm>
#include <map>

#include "profile/files.h"
#include "support/error.h"

namespace cairn::profile {
namespace {

const StepInfo& step_of(const Recording& recording, const Record& op) {
  return recording.plans[op.plan].steps[op.step];
}

/// The collectives of a rank, and how much of them its other steps hide.
void find_exchanges(RankShare& rank) {
  std::vector<const Record*> all;
  for (const Record& op : rank.recording.ops) {
    all.push_back(&op);
    const StepInfo& step = step_of(rank.recording, op);
    if (step.kind != "communication") continue;
    rank.exchanges.push_back({&op, 0});
    rank.bytes += step.input_bytes;
    rank.exchanging += op.end_ns - op.begin_ns;
  }
  const Spans computing = computing_spans(rank.recording, all);
  for (const Exchange& each : rank.exchanges) rank.hidden += overlap(each.op->begin_ns, each.op->end_ns, computing);
}

/// One time that a collective ran: an execution of each rank.
using Meeting = std::vector<std::pair<RankShare*, Exchange*>>;

/// By the name of the collective; those that not all ranks have recorded are left out.
std::map<std::string, std::vector<Meeting>> meetings_of(Job& job) {
  std::map<std::string, std::vector<Meeting>> made;
  for (RankShare& rank : job.ranks) {
    std::map<std::string, size_t> seen;
    for (Exchange& each : rank.exchanges) {
      const StepInfo& step = step_of(rank.recording, *each.op);
      std::vector<Meeting>& list = made[step.name];
      const size_t number = seen[step.name]++;
      if (number == list.size()) list.emplace_back();
      list[number].emplace_back(&rank, &each);
    }
  }
  for (auto& [name, list] : made)
    std::erase_if(list, [&](const Meeting& each) { return each.size() < job.ranks.size(); });
  return made;
}

/// Ranks of one host have one clock. Those of others are moved so that collectives end together, which they do up to the time
/// of one message.
void align(Job& job, std::map<std::string, std::vector<Meeting>>& meetings) {
  const RankShare& first = job.ranks.front();
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    RankShare& rank = job.ranks[i];
    if (rank.recording.session.host == first.recording.session.host) continue;
    rank.shift = real_time(rank.recording, 0) - real_time(first.recording, 0);
    std::vector<int64_t> differences;
    for (auto& [name, list] : meetings)
      for (Meeting& each : list) differences.push_back(each[0].second->op->end_ns - each[i].second->op->end_ns);
    if (differences.empty()) continue;
    auto middle = differences.begin() + static_cast<ptrdiff_t>(differences.size() / 2);
    std::nth_element(differences.begin(), middle, differences.end());
    rank.shift = *middle;
  }
}

CollectiveTotal total_of(const std::string& name, std::vector<Meeting>& list, std::map<int64_t, int64_t>& caused) {
  CollectiveTotal total;
  const StepInfo& step = step_of(list[0][0].first->recording, *list[0][0].second->op);
  total.name = name, total.op = step.ops, total.count = list.size(), total.bytes = step.input_bytes;
  std::map<int64_t, size_t> last;
  double moving = 0;
  for (Meeting& each : list) {
    auto begin = [](auto& one) { return one.second->op->begin_ns + one.first->shift; };
    auto later = std::max_element(each.begin(), each.end(), [&](auto& a, auto& b) { return begin(a) < begin(b); });
    const int64_t together = begin(*later);
    ++last[later->first->rank];
    for (auto& [rank, exchange] : each) {
      const int64_t taken = exchange->op->end_ns - exchange->op->begin_ns;
      exchange->waited = std::min(taken, together - exchange->op->begin_ns - rank->shift);
      rank->waiting += exchange->waited;
      caused[later->first->rank] += exchange->waited;
      total.time += static_cast<double>(taken), total.waited += static_cast<double>(exchange->waited);
    }
    moving += static_cast<double>(later->second->op->end_ns - later->second->op->begin_ns);
  }
  const double times = static_cast<double>(list.size() * list[0].size());
  total.time /= times, total.waited /= times;
  if (moving > 0) total.bandwidth = static_cast<double>(total.bytes * list.size()) / (moving / 1e9);
  total.last_rank =
      std::max_element(last.begin(), last.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
  return total;
}

/// One recording a rank; those without a rank are numbered in their order.
std::map<int64_t, std::string> by_rank(const std::vector<std::string>& folders) {
  std::map<int64_t, std::string> found;
  for (const std::string& folder : folders) {
    const int64_t rank = read_recording(folder).session.rank;
    found[rank >= 0 ? rank : static_cast<int64_t>(found.size())] = folder;
  }
  return found;
}

}  // namespace

Spans computing_spans(const Recording& recording, const std::vector<const Record*>& ops) {
  Spans spans;
  for (const Record* op : ops) {
    const std::string& kind = step_of(recording, *op).kind;
    if (kind == "communication" || kind == "control") continue;
    if (!spans.empty() && op->begin_ns <= spans.back().second)
      spans.back().second = std::max(spans.back().second, op->end_ns);
    else
      spans.emplace_back(op->begin_ns, op->end_ns);
  }
  return spans;
}

int64_t overlap(int64_t begin, int64_t end, const Spans& others) {
  auto at = std::lower_bound(others.begin(), others.end(), begin,
                             [](auto& each, int64_t time) { return each.second <= time; });
  int64_t sum = 0;
  for (; at != others.end() && at->first < end; ++at) sum += std::min(end, at->second) - std::max(begin, at->first);
  return sum;
}

Job read_job(const std::vector<std::string>& folders) {
  Job job;
  for (const auto& [rank, folder] : by_rank(folders)) {
    RankShare& share = job.ranks.emplace_back();
    share.rank = rank;
    share.recording = read_recording(folder);
    if (!share.recording.remark.empty())
      job.remarks.push_back(fmt::format("rank {}: {}", rank, share.recording.remark));
  }
  for (RankShare& rank : job.ranks) rank.analysis = analyse(rank.recording), find_exchanges(rank);
  if (job.ranks.size() < 2)
    fail(ErrorKind::invalid_argument, folders.empty() ? "" : folders[0], "holds one rank; a job has several");
  const auto expected = static_cast<size_t>(job.ranks.front().recording.session.ranks);
  if (expected > job.ranks.size())
    job.remarks.push_back(fmt::format("{} of {} ranks are here", job.ranks.size(), expected));
  auto meetings = meetings_of(job);
  align(job, meetings);
  std::map<int64_t, int64_t> caused;  // waiting of others, by the rank that came last
  for (auto& [name, list] : meetings)
    if (!list.empty()) job.collectives.push_back(total_of(name, list, caused));
  auto in_all = [](const CollectiveTotal& each) { return each.time * static_cast<double>(each.count); };
  std::stable_sort(job.collectives.begin(), job.collectives.end(),
                   [&](auto& a, auto& b) { return in_all(a) > in_all(b); });
  if (!caused.empty())
    job.slowest =
        std::max_element(caused.begin(), caused.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
  return job;
}

}  // namespace cairn::profile
