#include "comm/job.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <future>
#include <mutex>
#include <numeric>

#include "comm/alone.h"
#include "comm/beside.h"
#include "comm/fabric.h"
#include "comm/hub.h"
#include "comm/member.h"
#include "comm/options.h"
#include "comm/transport.h"
#include "support/error.h"
#include "support/json_fault.h"
#include "support/stop.h"

namespace cairn::comm {

namespace {

constexpr const char* kWorld = "world";

std::string host_name() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

/// Equal for processes that can share memory: one host, one view of its processes, one user.
std::string machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat view {};
  stat("/proc/self/ns/pid", &view);
  return fmt::format("{} {} {}", boot, view.st_ino, geteuid());
}

void check_size(const Request& request, int size) {
  if (request.ranks != 0 && request.ranks != size)
    fail(ErrorKind::invalid_argument, to_string(request.kind), "group {} has {} ranks, the operator was made for {}",
         request.group, size, request.ranks);
}

/// Of rank 0 under mpirun, with a free port.
std::string mpi_address() {
  const auto value = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  if (value("OMPI_COMM_WORLD_LOCAL_SIZE") == value("OMPI_COMM_WORLD_SIZE")) return "127.0.0.1:0";
  if (const std::string host = value("HCCL_IF_IP"); !host.empty()) return host + ":0";
  fail(ErrorKind::invalid_argument, "HCCL_IF_IP",
       "is not set: mpirun has started ranks on several hosts, which reach rank 0 "
       "by this address of its host");
}

struct Usage {
  uint64_t calls = 0, bytes = 0;
  double seconds = 0, waiting = 0;
};

struct Group {
  Party party;
  std::unique_ptr<Fabric> fabric;  // null: one member
  std::mutex mutex;                // collectives of a group take turns
};

class Job {
 public:
  explicit Job(const JobOptions& options) : options_(options) {
    if (options.size > 1) meet();
    std::vector<int> all(static_cast<size_t>(options.size));
    std::iota(all.begin(), all.end(), 0);
    create(kWorld, all);
  }

  void create(const std::string& name, const std::vector<int>& ranks) {
    auto group = std::make_shared<Group>();
    group->party.ranks = ranks;
    const auto me = std::find(ranks.begin(), ranks.end(), options_.rank);
    group->party.me = me == ranks.end() ? -1 : static_cast<int>(me - ranks.begin());
    if (group->party.me >= 0 && ranks.size() > 1) group->fabric = connect(name, group->party);
    const std::lock_guard lock(mutex_);
    groups_[name] = std::move(group);
  }

  void destroy(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (!groups_.erase(name)) fail(ErrorKind::not_found, name, "is no group of this job");
  }

  std::shared_ptr<Group> find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    auto found = groups_.find(name);
    if (found == groups_.end()) fail(ErrorKind::not_found, std::string(name), "is no group of this job");
    return found->second;
  }

  int size_of(std::string_view name) const { return find(name)->party.size(); }

  GroupView view(std::string_view name) const {
    const auto group = find(name);
    GroupView view{group->party.me, 0, 0, group->party.ranks};
    for (int rank : group->party.ranks) {
      if (machine_of(rank) != machine_of(options_.rank)) continue;
      if (rank == options_.rank) view.local_rank = view.local_size;
      ++view.local_size;
    }
    return view;
  }

  void run(const Request& request, const std::shared_ptr<Group>& group) {
    if (group->party.me < 0)
      fail(ErrorKind::invalid_argument, to_string(request.kind), "rank {} is no member of group {}", options_.rank,
           request.group);
    check_size(request, group->party.size());
    if (!group->fabric) return run_alone(request);
    const std::lock_guard order(group->mutex);
    const auto start = Turn::Clock::now();
    if (request.kind == Kind::send || request.kind == Kind::receive) return message(*group, request, start);
    take_turn(*group, request, request.digest(), group->party.ranks, start);
  }

  void set_timeout(double seconds) {
    if (member_) member_->set_timeout(seconds);
  }

  void leave() {
    if (member_) member_->leave(member_->failed() ? 0 : member_->timeout());
    if (mpi_ && member_->failed()) mpi_->close();  // it would wait for the others
    groups_.clear();
  }

  void abandon() {
    if (member_) member_->abandon();
    if (hub_) hub_->abandon();
  }

  Json describe() const;

 private:
  void meet() {
    const Json about = {{"host", host_name()}, {"pid", getpid()}, {"machine", machine()}};
    Socket own, listener;
    std::string address = options_.address, token = options_.token;
    if (options_.rank == 0) listener = listen_on(Address::parse(address.empty() ? mpi_address() : address));
    if (address.empty()) std::tie(address, token) = meet_by_mpi(listener);
    if (options_.rank == 0) {
      auto [mine, hubs] = socket_pair();
      own = std::move(mine);
      hub_ =
          std::make_unique<Hub>(std::move(listener), std::move(hubs), token, options_.size, options_.connect_timeout);
    }
    host_ = Address::parse(address).host;
    const auto connect = [&](double seconds) {
      if (options_.rank == 0) return std::move(own);
      Socket socket = connect_to(Address::parse(address), seconds);
      if (socket) host_ = own_host(socket);
      return socket;
    };
    member_ = std::make_shared<Member>(
        Member::Options{options_.rank, options_.size, token, options_.connect_timeout, options_.timeout, about},
        connect);
  }

  // Under mpirun nobody else says where the ranks meet: rank 0 tells the others by Open MPI. Address and token.
  std::pair<std::string, std::string> meet_by_mpi(const Socket& listener) {
    mpi_ = load_transport("mpi", {options_.rank, options_.size, "", options_.timeout, nullptr});
    Address address = Address::parse(mpi_address());
    if (options_.rank == 0) address.port = port_of(listener);
    const std::string said = told_by_first(*mpi_, options_.rank, options_.size, options_.connect_timeout,
                                           fmt::format("{} {}", address.text(), random_hex(16)));
    const size_t space = said.find(' ');
    return {said.substr(0, space), said.substr(space + 1)};
  }

  std::unique_ptr<Fabric> connect(const std::string& name, const Party& party) {
    const bool one_host = std::all_of(party.ranks.begin(), party.ranks.end(),
                                      [&](int rank) { return machine_of(rank) == machine_of(party.ranks[0]); });
    std::string why = one_host ? "shared memory is off" : "the ranks are on several hosts";
    if (options_.shared_memory && one_host)
      if (auto memory = share_memory(*member_, name, party, why)) return memory;
    const std::string shown = fmt::format("{}, as {}", transport_name(), why);
    const uint64_t number = std::hash<std::string>()(name) % 8192;
    try {
      if (!transport_ && mpi_ && transport_name() == "mpi") transport_ = mpi_;
      if (!transport_ && party.size() < options_.size)  // all ranks share memory, these do not: they alone open it
        return by_messages(party, open_transport(name, party), true, shown, number);
      if (!transport_) transport_ = open_transport(name, party);
    } catch (const Error& error) {
      fail(error.kind(), error.where(), "{}, and {}", why, error.message());
    }
    return by_messages(party, transport_, false, shown, number);
  }

  std::string transport_name() const {
    return options_.transport != "auto" ? options_.transport : options_.source == "mpirun" ? "mpi" : "gloo";
  }

  // Of these ranks, by their numbers in the party. The library connects on a thread of its own, which is left behind where a
  // rank fails meanwhile: it would wait for that one until its timeout.
  std::shared_ptr<Transport> open_transport(const std::string& name, const Party& party) {
    struct Opening {
      std::promise<std::shared_ptr<Transport>> made;
      TransportSetup setup;
    };
    const auto exchange = [member = member_, what = name + " transport", ranks = party.ranks](const std::string& part) {
      return member->exchange(what, ranks, part);
    };
    const auto opening = std::make_shared<Opening>();
    opening->setup = {party.me, party.size(), host_, member_->timeout(), exchange};
    std::future<std::shared_ptr<Transport>> made = opening->made.get_future();
    const auto open = [opening, library = transport_name()] {
      try {
        opening->made.set_value(load_transport(library, opening->setup));
      } catch (...) {
        opening->made.set_exception(std::current_exception());
      }
    };
    if (transport_name() == "mpi")
      open();  // Open MPI ends on the thread on which it began
    else
      std::thread(open).detach();
    while (made.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) member_->check(), stop_point();
    std::shared_ptr<Transport> transport;
    std::string fault;
    try {
      transport = made.get();
    } catch (const Error& thrown) {
      fault = thrown.what();
    }
    const std::vector<std::string> faults = exchange(fault);  // or it says who is dead or stopped
    for (size_t i = 0; i < faults.size(); ++i)
      if (!faults[i].empty()) fail(ErrorKind::io, "", "rank {}: {}", party.ranks[i], faults[i]);
    return transport;
  }

  std::string machine_of(int rank) const {
    return member_ ? member_->members()[static_cast<size_t>(rank)].value("machine", "") : "";
  }

  // The two ranks of a message count and compare their messages in this direction alone.
  void message(Group& group, const Request& request, Turn::Clock::time_point start) {
    const bool sends = request.kind == Kind::send;
    const auto me = static_cast<int64_t>(group.party.me);
    const std::string way =
        fmt::format("{} from {} to {}", request.group, sends ? me : request.root, sends ? request.root : me);
    Request same = request;
    same.group = way;
    Request neutral = request;
    const std::string tag = fmt::to_string(request.tag);
    neutral.kind = Kind::send, neutral.root = request.tag, neutral.name = tag;
    const auto rank_of = [&](int64_t member) { return group.party.ranks[static_cast<size_t>(member)]; };
    const std::array<int, 2> asked = {rank_of(me), rank_of(request.root)};
    take_turn(group, same, neutral.digest(), asked, start);
  }

  void take_turn(Group& group, const Request& request, uint64_t digest, std::span<const int> asked,
                 Turn::Clock::time_point start) {
    member_->begin(request, digest);
    Turn turn(request, digest, *member_, group.party, asked, member_->timeout());
    turn.spins = !Beside::here();
    try {
      group.fabric->run(turn);
    } catch (const std::exception& fault) {  // the others would wait for what this rank has left undone
      if (!member_->failed())
        member_->fault(fmt::format("rank {} has given up in {}: {}", options_.rank, request.text(), fault.what()));
      throw;
    }
    const std::lock_guard lock(mutex_);
    Usage& usage = usage_[static_cast<size_t>(request.kind)];
    ++usage.calls;
    usage.bytes += storage_bytes(request.dtype, request.count());
    usage.seconds += std::chrono::duration<double>(Turn::Clock::now() - start).count();
    usage.waiting += turn.waited;
  }

  const JobOptions options_;
  std::unique_ptr<Hub> hub_;
  std::shared_ptr<Member> member_;
  std::shared_ptr<Transport> transport_, mpi_;
  std::string host_;  // this host's address for the others
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Group>, std::less<>> groups_;
  std::array<Usage, kKinds> usage_;
};

Json Job::describe() const {
  Json hosts = Json::array(), groups = Json::object(), usage = Json::object();
  if (!member_) hosts.push_back(host_name());
  for (size_t i = 0; member_ && i < member_->members().size(); ++i)
    hosts.push_back(member_->members()[i].value("host", "?"));
  const std::lock_guard lock(mutex_);
  for (const auto& [name, group] : groups_)
    groups[name] = {{"ranks", group->party.ranks},
                    {"rank", group->party.me},
                    {"transport", group->fabric ? group->fabric->name() : "none"}};
  for (size_t kind = 0; kind < kKinds; ++kind)
    if (const Usage& each = usage_[kind]; each.calls)
      usage[to_string(static_cast<Kind>(kind))] = {
          {"calls", each.calls}, {"bytes", each.bytes}, {"seconds", each.seconds}, {"waiting", each.waiting}};
  Json all = {{"rank", options_.rank},
              {"size", options_.size},
              {"hosts", hosts},
              {"groups", groups},
              {"timeout", member_ ? member_->timeout() : options_.timeout},
              {"connect_timeout", options_.connect_timeout},
              {"bucket_bytes", kBucketBytes},
              {"described_by", options_.source},
              {"collectives", usage}};
  all["transport"] = groups.contains(kWorld) ? groups[kWorld]["transport"] : Json("none");
  if (member_ && member_->failed()) all["failure"] = member_->failure();
  return all;
}

struct State {
  std::mutex mutex;
  std::shared_ptr<Job> job;  // null: not joined
  int joins = 0;
  /// The group of the collective before, which that of the next one often is.
  std::string last_name;
  std::shared_ptr<Group> last;
  std::atomic<bool> several{false};
};

State& state() {
  static auto& state = *new State;
  return state;
}

std::shared_ptr<Job> current() {
  const std::lock_guard lock(state().mutex);
  return state().job;
}

void forget_last_group() {
  std::unique_lock lock(state().mutex);
  const std::shared_ptr<Group> last = std::move(state().last);
  lock.unlock();  // before the group ends
}

// The child of a fork is no rank: were its copies of the connections left open, nobody would notice that the rank is dead.
void forget_job_in_child() {
  State& mine = state();
  new (&mine.mutex) std::mutex();
  if (!mine.job) return;
  mine.job->abandon();
  new (&mine.job) std::shared_ptr<Job>();  // whose threads exist in the parent alone
  new (&mine.last) std::shared_ptr<Group>();
  mine.joins = 0;
  mine.several = false;
}

}  // namespace

std::string_view known_name(std::string_view name) {
  return name.empty() || name == "hccl_world_group" || name == "nccl_world_group" || name == "mccl_world_group" ? kWorld
                                                                                                                : name;
}

void join(const std::string& options) {
  const std::lock_guard lock(state().mutex);
  if (state().joins == 0) {
    const JobOptions read = read_job(options);
    static const int registered = pthread_atfork(nullptr, nullptr, forget_job_in_child);
    CHECK(registered == 0, "pthread_atfork");
    state().job = std::make_shared<Job>(read);
    state().several = read.size > 1;
  }
  ++state().joins;
}

void leave() {
  std::unique_lock lock(state().mutex);
  if (state().joins == 0) fail(ErrorKind::invalid_argument, "", "this process has not joined a job");
  if (--state().joins > 0 || !state().job) return;
  auto job = std::move(state().job);
  forget_fusion();
  state().several = false;
  lock.unlock();
  forget_last_group();
  job->leave();
}

bool joined() {
  const std::lock_guard lock(state().mutex);
  return state().joins > 0;
}

void set_timeout(double seconds) {
  if (!(seconds > 0)) fail(ErrorKind::invalid_argument, "timeout", "is {} s, expected more than 0", seconds);
  const auto job = current();
  if (!job) fail(ErrorKind::invalid_argument, "timeout", "this process has not joined a job");
  job->set_timeout(seconds);
}

bool several() { return state().several.load(std::memory_order_relaxed); }

GroupView group(std::string_view name) {
  if (auto job = current()) return job->view(known_name(name));
  if (known_name(name) != kWorld)
    fail(ErrorKind::not_found, std::string(name), "is no group: this process is in no job");
  return {};
}

void check_size(const Request& request) {
  const auto job = current();
  check_size(request, job ? job->size_of(known_name(request.group)) : 1);
}

void create_group(const std::string& name, const std::vector<int>& ranks) {
  const auto job = current();
  const int size = job ? job->size_of(kWorld) : 1;
  if (name.empty() || known_name(name) == kWorld) fail(ErrorKind::invalid_argument, name, "is the name of all ranks");
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (ranks.empty() || sorted[0] < 0 || sorted.back() >= size ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    fail(ErrorKind::invalid_argument, name, "has ranks [{}], expected different ones of 0 to {}",
         fmt::join(ranks, ", "), size - 1);
  if (!job) fail(ErrorKind::invalid_argument, name, "cannot be created: this process has not joined a job");
  job->create(name, ranks);
  forget_last_group();
}

void destroy_group(const std::string& name) {
  const auto job = current();
  if (!job || known_name(name) == kWorld) fail(ErrorKind::invalid_argument, name, "cannot be destroyed");
  job->destroy(name);
  forget_last_group();
}

void run(const Request& request) {
  Request named = request;
  named.group = known_name(request.group);
  State& mine = state();
  std::unique_lock lock(mine.mutex);
  if (const auto job = mine.job) {
    if (!mine.last || mine.last_name != named.group) mine.last = job->find(named.group), mine.last_name = named.group;
    const auto group = mine.last;
    lock.unlock();
    return job->run(named, group);
  }
  lock.unlock();
  if (named.group != kWorld)
    fail(ErrorKind::not_found, std::string(named.group), "is no group: this process is in no job");
  check_size(named, 1);
  run_alone(named);
}

std::string describe() {
  const auto job = current();
  const Json alone = {
      {"rank", 0}, {"size", 1}, {"hosts", {host_name()}}, {"transport", "none"}, {"bucket_bytes", kBucketBytes}};
  return (job ? job->describe() : alone).dump();
}

}  // namespace cairn::comm
