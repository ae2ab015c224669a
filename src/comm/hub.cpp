#include "comm/hub.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "support/error.h"
#include "support/fault.h"
#include "support/process_state.h"
#include "support/sha256.h"

namespace cairn::comm {

namespace {

constexpr size_t kMostGuests = 64;
constexpr auto kGreeting = std::chrono::seconds(5);  // for a stranger to show the token
constexpr double kMostGrace = 3600;
constexpr const char* kGreets = "cairn job 1";

std::chrono::steady_clock::duration in_seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

/// The ranks that a message names. Throws Json::exception where the job has no such ranks.
std::vector<int> ranks_of(const Json& message, size_t size) {
  const auto ranks = message.at("ranks").get<std::vector<int>>();
  const Json all = std::vector<bool>(size);
  for (int rank : ranks) (void)all.at(static_cast<size_t>(rank));
  return ranks;
}

}  // namespace

std::string lost_text(const std::vector<Json>& members, int rank, int reader) {
  const auto member = [&](int each) -> const Json& { return members[static_cast<size_t>(each)]; };
  const auto machine = [&](int each) {
    return member(each).is_object() ? member(each).value("machine", Json()) : Json();
  };
  const int other = reader == 0 ? rank : 0;
  const auto process = process_state(member(other).value("pid", 0));
  if (machine(0).is_string() && machine(0) == machine(rank) && process && process->goes_on())
    return fmt::format("the connection between {} and {} was closed though both go on", rank_text(member(0), 0),
                       rank_text(member(rank), rank));
  return fmt::format("{} has ended without leaving the job", rank_text(member(other), other));
}

std::string rank_text(const Json& member, int rank) {
  if (!member.is_object()) return fmt::format("rank {}", rank);
  return fmt::format("rank {} (process {} on {})", rank, member.value("pid", 0), member.value("host", "?"));
}

std::string proof(const std::string& token, const std::string& nonce) {
  Sha256 inner, outer;
  inner.add(token + "\n" + nonce);
  outer.add(token + "\n" + inner.digest());
  return outer.digest();
}

Hub::Hub(Socket listener, Socket own, std::string token, int size, double connect_timeout)
    : listener_(std::move(listener)), token_(std::move(token)), seats_(static_cast<size_t>(size)),
      open_until_(Clock::now() + in_seconds(connect_timeout)) {
  std::tie(wake_, woken_) = socket_pair();
  Guest& first = guests_.emplace_back();
  first.socket = std::move(own);
  first.nonce = random_hex(16);
  first.until = open_until_;
  send_frame(first.socket, {{"greets", kGreets}, {"nonce", first.nonce}});
  thread_ = std::thread([this] {
    try {
      serve();
    } catch (...) {  // memory ran out
      end();
    }
  });
}

Hub::~Hub() {
  wake_.close();
  if (thread_.joinable()) thread_.join();
}

void Hub::abandon() {
  new (&thread_) std::thread();  // which exists in the parent alone
  for (Seat& seat : seats_) seat.socket.close();
  for (Guest& guest : guests_) guest.socket.close();
  listener_.close();
  wake_.close();
  woken_.close();
}

void Hub::serve() {
  while (true) {
    std::vector<pollfd> waits = {{woken_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
    for (const Guest& guest : guests_) waits.push_back({guest.socket.fd(), POLLIN, 0});
    for (const Seat& seat : seats_) waits.push_back({seat.socket.fd(), POLLIN, 0});
    poll(waits.data(), waits.size(), static_cast<int>(std::min(seconds_until_next(), 60.0) * 1e3) + 1);
    if (waits[0].revents) return;
    const size_t guests = guests_.size();
    if (waits[1].revents) accept_guest();
    for (size_t i = guests; i-- > 0;) {
      const bool over = Clock::now() > guests_[i].until;
      if (over || (waits[2 + i].revents && !greet(guests_[i]))) guests_.erase(guests_.begin() + static_cast<long>(i));
    }
    if (seated_ == seats_.size()) guests_.clear();
    for (size_t i = 0; i < seats_.size(); ++i) {
      if (!waits[2 + guests + i].revents || !seats_[i].socket) continue;
      const bool goes_on = seats_[i].frames.read(seats_[i].socket);
      while (auto message = seats_[i].frames.take()) hear(static_cast<int>(i), *message);
      if (!goes_on) lose(static_cast<int>(i));
    }
    if (seated_ < seats_.size() && Clock::now() > open_until_) late_comers();
    if (inquiry_ && Clock::now() > inquiry_->until) conclude();
  }
}

double Hub::seconds_until_next() const {
  Clock::time_point next = inquiry_ ? inquiry_->until : Clock::time_point::max();
  for (const Guest& guest : guests_) next = std::min(next, guest.until);
  if (seated_ < seats_.size() && !failed()) next = std::min(next, open_until_);
  return std::max(0.0, std::chrono::duration<double>(next - Clock::now()).count());
}

void Hub::accept_guest() {
  Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket && errno == EINVAL) {  // it was shut down: nobody comes any more, and waiting for it would not wait
    listener_.close();
    return fault(fmt::format("the socket of {} at which the ranks meet was closed", rank_text(seats_[0].about, 0)), 0);
  }
  if (!socket || guests_.size() >= kMostGuests) return;
  Guest& guest = guests_.emplace_back();
  guest.socket = std::move(socket);
  guest.nonce = random_hex(16);
  guest.until = Clock::now() + kGreeting;
  send_frame(guest.socket, {{"greets", kGreets}, {"nonce", guest.nonce}});
}

bool Hub::greet(Guest& guest) {
  const bool open = guest.frames.read(guest.socket);
  const auto hello = guest.frames.take();
  if (!hello) return open;
  const std::string why = refusal(guest, *hello);
  if (!why.empty()) {
    ++refused_;
    send_frame(guest.socket, {{"type", "refused"}, {"text", why}});
    return false;
  }
  seat(hello->at("rank"), std::move(guest.socket), *hello);
  return false;
}

std::string Hub::refusal(const Guest& guest, const Json& hello) const {
  const auto has = [&](const char* key, auto is) { return hello.contains(key) && (hello[key].*is)(); };
  if (!hello.is_object() || !has("proof", &Json::is_string) || !has("rank", &Json::is_number_integer) ||
      !has("size", &Json::is_number_integer) || !has("nonce", &Json::is_string) || !has("about", &Json::is_object) ||
      !hello["about"].value("pid", Json(0)).is_number_integer() || !hello["about"].value("host", Json("")).is_string())
    return "no rank of a job says that";
  if (hello["proof"] != proof(token_, guest.nonce)) return "the job that meets here has another token";
  const int64_t rank = hello["rank"], size = hello["size"];
  if (size != static_cast<int64_t>(seats_.size()))
    return fmt::format("the job that meets here has {} ranks, rank {} expects {}", seats_.size(), rank, size);
  if (rank < 0 || rank >= size) return fmt::format("there is no rank {} among {}", rank, size);
  if (!seats_[static_cast<size_t>(rank)].about.is_null())
    return fmt::format("{} has joined already",
                       rank_text(seats_[static_cast<size_t>(rank)].about, static_cast<int>(rank)));
  return "";
}

void Hub::seat(int rank, Socket socket, const Json& hello) {
  Seat& seat = seats_[static_cast<size_t>(rank)];
  seat.socket = std::move(socket);
  seat.about = hello["about"];
  seat.nonce = hello["nonce"];
  ++seated_;
  if (failed()) send_frame(seat.socket, fault_);
  if (failed() || seated_ < seats_.size()) return;
  listener_.close();
  Json members = Json::array();
  for (const Seat& each : seats_) members.push_back(each.about);
  for (Seat& each : seats_)
    send_frame(each.socket, {{"type", "welcome"}, {"members", members}, {"proof", proof(token_, "hub" + each.nonce)}});
}

void Hub::hear(int rank, const Json& message) try {
  const std::string type = message.at("type");
  if (type == "exchange") return take_part(rank, message);
  if (type == "status") return answer(rank, message);
  if (type == "overdue") return inquire(message);
  if (type == "fault") return fault(message.value("text", ""), message.value("rank", -1));
  if (type == "leave") {
    seats_[static_cast<size_t>(rank)].left = true;
    tell_all({{"type", "left"}, {"rank", rank}});
  }
} catch (const Json::exception&) {
  fault(fmt::format("{} speaks another language: are all ranks of one version of Cairn?",
                    rank_text(seats_[static_cast<size_t>(rank)].about, rank)),
        rank);
}

void Hub::take_part(int rank, const Json& message) {
  Exchange& exchange = exchanges_[message.at("key")];
  const auto ranks = ranks_of(message, seats_.size());
  if (exchange.ranks.empty()) exchange.ranks = ranks;
  if (exchange.ranks != ranks)
    return fault(fmt::format("ranks create \"{}\" with other members: rank {} with [{}], another with [{}]",
                             message.at("what").get<std::string>(), rank, fmt::join(ranks, ", "),
                             fmt::join(exchange.ranks, ", ")),
                 rank);
  exchange.parts[rank] = message.at("part");
  if (exchange.parts.size() < ranks.size()) return;
  Json parts = Json::array();
  for (int each : ranks) parts.push_back(exchange.parts[each]);
  for (int each : ranks)
    send_frame(seats_[static_cast<size_t>(each)].socket,
               {{"type", "exchanged"}, {"key", message.at("key")}, {"parts", parts}});
  exchanges_.erase(message.at("key").get<std::string>());
}

void Hub::lose(int rank) {
  Seat& seat = seats_[static_cast<size_t>(rank)];
  seat.socket.close();
  seat.gone = true;
  if (seat.left || failed()) return;
  std::vector<Json> members;
  for (const Seat& each : seats_) members.push_back(each.about);
  fault(lost_text(members, rank, 0), rank);
}

void Hub::inquire(const Json& report) {
  if (failed() || inquiry_) return;
  ranks_of(report, seats_.size());
  inquiry_ = Inquiry{report, {}, Clock::now() + in_seconds(std::clamp(report.value("grace", 2.0), 0.0, kMostGrace))};
  tell_all({{"type", "query"}});
}

void Hub::answer(int rank, const Json& message) {
  if (!inquiry_) return;
  inquiry_->answers[rank] = message;
  if (inquiry_->answers.size() == seats_.size()) conclude();
}

void Hub::conclude() try {
  std::vector<Json> members;
  std::set<int> left;
  for (size_t i = 0; i < seats_.size(); ++i) {
    members.push_back(seats_[i].about);
    if (seats_[i].left) left.insert(static_cast<int>(i));
  }
  if (const std::string key = inquiry_->report.value("key", ""); !key.empty()) {
    inquiry_->report["late"] = Json::array();
    if (const auto found = exchanges_.find(key); found != exchanges_.end())
      for (int rank : found->second.ranks)
        if (!found->second.parts.count(rank)) inquiry_->report["late"].push_back(rank);
  }
  const Verdict verdict = judge(inquiry_->report, inquiry_->answers, members, left);
  inquiry_.reset();
  if (!verdict.text.empty()) fault(verdict.text, verdict.rank);
} catch (const Json::exception&) {  // in some rank's account of its calls
  fault("ranks speak different languages: are all of one version of Cairn?", -1);
}

void Hub::tell_all(const Json& message) {
  for (const Seat& seat : seats_)
    if (seat.socket) send_frame(seat.socket, message);
}

void Hub::fault(const std::string& text, int rank) {
  if (failed()) return;
  inquiry_.reset();
  fault_ = {{"type", "fault"}, {"text", text}, {"rank", rank}};
  tell_all(fault_);
}

void Hub::end() {
  try {
    fault(fmt::format("the meeting point of the ranks ended: {}", current_fault().what()), 0);
  } catch (...) {  // the closed sockets tell the ranks that it is gone
  }
  guests_.clear();
  for (Seat& seat : seats_) seat.socket.close();
  listener_.close();
}

void Hub::late_comers() {
  if (failed()) return;
  std::vector<int> missing;
  for (size_t i = 0; i < seats_.size(); ++i)
    if (seats_[i].about.is_null()) missing.push_back(static_cast<int>(i));
  fault(fmt::format("rank{} {} of {} did not come to the job in time{}", missing.size() > 1 ? "s" : "",
                    fmt::join(missing, ", "), seats_.size(),
                    refused_ ? fmt::format(" ({} other connections were refused)", refused_) : ""),
        missing[0]);
}

}  // namespace cairn::comm
