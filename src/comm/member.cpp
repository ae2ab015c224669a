#include "comm/member.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "comm/hub.h"
#include "support/error.h"

namespace cairn::comm {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The next frame; nothing when none comes in time or the connection ends.
std::optional<Json> receive(const Socket& socket, FrameReader& frames, double seconds) {
  const auto start = Clock::now();
  while (true) {
    if (auto frame = frames.take()) return frame;
    const double left = seconds - seconds_since(start);
    pollfd waits{socket.fd(), POLLIN, 0};
    if (left <= 0 || poll(&waits, 1, static_cast<int>(left * 1e3) + 1) < 0) return std::nullopt;
    if (waits.revents && !frames.read(socket)) return frames.take();
  }
}

}  // namespace

Member::Member(const Options& options, const std::function<Socket(double)>& connect)
    : rank_(options.rank), timeout_(options.timeout), left_(static_cast<size_t>(options.size)) {
  std::tie(wake_, woken_) = socket_pair();
  meet(options, connect);
  thread_ = std::thread([this] { listen(); });
}

Member::~Member() {
  wake_.close();
  if (thread_.joinable()) thread_.join();
}

void Member::abandon() {
  new (&thread_) std::thread();  // which exists in the parent alone
  hub_.close();
  wake_.close();
  woken_.close();
}

// Tries again until the job is complete: the hub may start later, and something else may listen at its address.
void Member::meet(const Options& options, const std::function<Socket(double)>& connect) {
  const auto start = Clock::now();
  const auto left = [&] { return options.connect_timeout - seconds_since(start); };
  std::string last = "nobody answered";
  while (left() > 0) {
    frames_ = FrameReader();
    hub_ = connect(std::min(left(), 5.0));
    const auto greeting = hub_ ? receive(hub_, frames_, std::min(left(), 5.0)) : std::nullopt;
    if (hub_ && (!greeting || !greeting->is_object() || !greeting->contains("greets")))
      last = "what answered is no job of Cairn";
    if (greeting && greeting->is_object() && greeting->contains("greets")) {
      const std::string nonce = random_hex(16);
      send_frame(hub_, {{"rank", rank_},
                        {"size", options.size},
                        {"about", options.about},
                        {"nonce", nonce},
                        {"proof", proof(options.token, greeting->value("nonce", ""))}});
      const auto reply = receive(hub_, frames_, std::max(left() + 5, 5.0));  // the hub itself tells who is missing
      const std::string type = reply && reply->is_object() ? reply->value("type", "") : "";
      if (type == "refused" || type == "fault") fail(ErrorKind::io, "", "{}", reply->value("text", "refused"));
      if (type == "welcome") {
        if (reply->value("proof", "") != proof(options.token, "hub" + nonce))
          fail(ErrorKind::io, "", "the job that meets here has another token");
        members_ = reply->at("members").get<std::vector<Json>>();
        return;
      }
      last = "the job ended while it came together";
    }
    usleep(50'000);
  }
  fail(ErrorKind::io, "", "rank {} did not reach rank 0 within {:.3g} s: {}", rank_, options.connect_timeout, last);
}

void Member::listen() {
  while (true) {
    while (auto message = frames_.take()) hear(*message);
    pollfd waits[2] = {{woken_.fd(), POLLIN, 0}, {hub_.fd(), POLLIN, 0}};
    poll(waits, 2, -1);
    if (waits[0].revents) return;
    if (!waits[1].revents || frames_.read(hub_)) continue;
    while (auto message = frames_.take()) hear(*message);
    if (!left(0)) return fail_with(lost_text(members_, rank_, rank_));
    const std::lock_guard lock(mutex_);
    no_news_ = true;
    return news_.notify_all();
  }
}

void Member::hear(const Json& message) try {
  const std::string type = message.is_object() ? message.value("type", "") : "";
  if (type == "fault") return fail_with(message.value("text", ""));
  if (type == "query") return send({{"type", "status"}, {"calls", calls()}});
  const std::lock_guard lock(mutex_);
  if (type == "left") left_.at(message.value("rank", size_t{0})).store(true, std::memory_order_release);
  if (type == "exchanged")
    for (const Json& part : message["parts"]) exchanged_[message["key"]].push_back(from_hex(part));
  news_.notify_all();
} catch (const std::exception&) {
  fail_with("rank 0 speaks another language: are all ranks of one version of Cairn?");
}

void Member::send(const Json& message) {
  const std::lock_guard lock(sending_);
  send_frame(hub_, message);
}

void Member::fail_with(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (!failed_.load()) failure_ = text;
  failed_.store(true, std::memory_order_release);
  news_.notify_all();
}

std::string Member::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Member::check() const {
  if (failed()) fail(ErrorKind::io, "", "the job has failed: {}", failure());
}

std::vector<std::string> Member::exchange(const std::string& what, const std::vector<int>& ranks,
                                          const std::string& part) {
  check();
  std::unique_lock lock(mutex_);
  const std::string key = fmt::format("{}/{}", what, exchanges_[what]++);
  lock.unlock();
  send({{"type", "exchange"}, {"key", key}, {"what", what}, {"ranks", ranks}, {"part", to_hex(part)}});
  lock.lock();
  const auto ready = [&] { return exchanged_.count(key) || failed(); };
  if (!news_.wait_for(lock, std::chrono::duration<double>(timeout()), ready)) {
    lock.unlock();
    const std::string_view place = Place::current();
    const std::string text =
        fmt::format("the members of \"{}\" to create it{}{}", what, place.empty() ? "" : " at ", place);
    inquire({{"key", key}, {"text", text}, {"ranks", ranks}, {"waited", timeout()}}, "for " + text);
  }
  if (!exchanged_.count(key)) {
    lock.unlock();
    check();
  }
  return std::move(exchanged_.extract(key).mapped());
}

uint64_t Member::begin(const Request& request, uint64_t digest) {
  check();
  const std::lock_guard lock(mutex_);
  auto found = calls_.find(request.group);
  if (found == calls_.end()) found = calls_.emplace(request.group, Call()).first;
  Call& call = found->second;
  ++call.number;
  call.digest = digest;
  call.kind = request.kind, call.reduction = request.reduction, call.dtype = request.dtype;
  call.root = request.root, call.tag = request.tag;
  call.name = request.name, call.place = Place::current();
  call.dims.assign(request.dims.begin(), request.dims.end());
  call.counts.assign(request.counts.begin(), request.counts.end());
  return call.number;
}

std::string Member::Call::text() const {
  Request request;
  request.kind = kind, request.reduction = reduction, request.dtype = dtype;
  request.root = root, request.tag = tag;
  request.name = name, request.dims = dims, request.counts = counts;
  return request.text();
}

Json Member::calls() const {
  const std::lock_guard lock(mutex_);
  Json calls = Json::object();
  for (const auto& [group, call] : calls_)
    calls[group] = {{"number", call.number}, {"digest", call.digest}, {"text", call.text()}, {"place", call.place}};
  return calls;
}

void Member::overdue(const Request& request, std::span<const int> ranks, double waited) {
  const std::string group(request.group);
  Json report = calls()[group];
  report["group"] = group, report["ranks"] = std::vector<int>(ranks.begin(), ranks.end()), report["waited"] = waited;
  inquire(std::move(report), "in " + request.text());
}

void Member::inquire(Json report, const std::string& where) {
  const double grace = std::clamp(timeout() / 4, 0.5, 3.0), waited = report["waited"];
  report["type"] = "overdue", report["rank"] = rank_, report["grace"] = grace;
  send(report);
  await_failure(2 * grace + 1);
  if (!failed())
    fail_with(fmt::format("{} {} while rank {} waited {:.3g} s {}", rank_text(members_[0], 0), kSilent, rank_, waited,
                          where));
  check();
  std::abort();  // check() has thrown
}

void Member::fault(const std::string& text) {
  send({{"type", "fault"}, {"text", text}, {"rank", rank_}});
  await_failure(2);
  if (!failed()) fail_with(text);
}

void Member::await_failure(double seconds) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return failed(); });
}

void Member::leave(double seconds) {
  send({{"type", "leave"}});
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
    return no_news_ || failed() ||
           std::all_of(left_.begin(), left_.end(), [](const auto& each) { return each.load(); });
  });
}

}  // namespace cairn::comm
