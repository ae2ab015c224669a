#include "data/node.h"

#include <unistd.h>

#include <algorithm>

namespace cairn::data {

Run::Run(NodePtr root, Settings given) : settings(std::move(given)), root_(std::move(root)), pool_(settings.workers) {
  number(*root_);
}

void Run::number(const Node& node) {
  if (operations_.contains(&node)) return;
  for (const NodePtr& child : node.children) number(*child);
  operations_.emplace(&node, Operation{order_.size(), std::make_unique<Measure>(), nullptr});
  order_.push_back(&node);
}

std::vector<Run::Told> Run::operations() const {
  std::vector<Told> told;
  for (const Node* node : order_) {
    const auto& [place, measure, kept, ahead] = operations_.at(node);
    const double queue =
        measure->taken ? static_cast<double>(measure->queued) / static_cast<double>(measure->taken) : 0;
    told.push_back({node->operation, node->where, measure->rows, static_cast<double>(measure->busy_ns) * 1e-9,
                    static_cast<double>(measure->waited_ns) * 1e-9, queue, ahead});
  }
  return told;
}

int64_t Cursor::skip(int64_t count) {
  int64_t passed = 0;
  while (passed < count && next()) ++passed;
  return passed;
}

Node::Node(std::string operation, std::vector<NodePtr> children, std::vector<std::string> columns, std::string where)
    : operation(std::move(operation)), children(std::move(children)), columns(std::move(columns)),
      where(std::move(where)) {
  std::vector<std::string> sorted = this->columns;
  std::sort(sorted.begin(), sorted.end());
  if (auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    fail(ErrorKind::invalid_argument, this->where, "{}: two columns are called '{}'", this->operation, *twice);
}

std::string Node::place(const std::string& origin) const {
  if (where.empty()) return origin.empty() ? "pipeline" : origin;
  return origin.empty() ? where : origin + " (" + where + ")";
}

std::vector<size_t> places_of(const std::vector<std::string>& names, const std::vector<std::string>& columns,
                              const std::string& operation) {
  std::vector<size_t> places;
  for (const std::string& name : names) {
    auto found = std::find(columns.begin(), columns.end(), name);
    if (found == columns.end())
      fail(ErrorKind::invalid_argument, "", "{}: there is no column '{}', the columns are {}", operation, name,
           fmt::join(columns, ", "));
    places.push_back(static_cast<size_t>(found - columns.begin()));
  }
  return places;
}

namespace {

bool interrupts(const Settings& settings) { return settings.interrupts && settings.interrupts(); }

}  // namespace

struct Window::Chunk : Task {
  struct Slot {
    Lazy work;
    Row row;
    std::exception_ptr error;
  };
  explicit Chunk(Run& run) : owner(run) {}

  void run() override {
    const auto begin = std::chrono::steady_clock::now();
    for (Slot& slot : slots) {
      if (!slot.work) continue;
      try {
        slot.row = slot.work->make(owner);
        bytes += static_cast<int64_t>(bytes_of(slot.row));
      } catch (...) {
        slot.error = std::current_exception();
      }
    }
    took = std::chrono::steady_clock::now() - begin;
  }

  Run& owner;
  std::vector<Slot> slots;
  int64_t bytes = 0;
  std::chrono::steady_clock::duration took{};
  bool counted = false;
};

Window::Window(Run& run, const Node& node, int64_t epoch)
    : run_(run), node_(node), cursor_(node.open(run, epoch)), ahead_(1) {
  const Settings& settings = run.settings;
  if (settings.workers > 0) ahead_ = static_cast<size_t>(settings.ahead > 0 ? settings.ahead : 2 * settings.workers);
  run.told_ahead(node, ahead_);
}

Window::~Window() { drop(); }

void Window::drop() {
  for (const auto& chunk : chunks_) {
    run_.pool().cancel(*chunk);
    if (chunk->counted) run_.held -= chunk->bytes;
  }
  chunks_.clear();
  taken_ = 0;
}

void Window::fill() {
  const Settings& settings = run_.settings;
  for (const auto& chunk : chunks_) {
    if (chunk->counted || !run_.pool().done(*chunk)) continue;
    chunk->counted = true;
    run_.held += chunk->bytes;
    if (chunk->took < std::chrono::microseconds(100)) chunk_rows_ = std::min<size_t>(chunk_rows_ * 2, 64);
  }
  run_.most_held = std::max(run_.most_held, run_.held);
  while (!ended_ && chunks_.size() < ahead_ && (chunks_.empty() || run_.held < settings.memory)) {
    auto chunk = std::make_shared<Chunk>(run_);
    while (chunk->slots.size() < (settings.workers ? chunk_rows_ : 1)) {
      try {
        Lazy work = cursor_->next();
        ended_ = !work;
        if (ended_) break;
        chunk->slots.push_back({std::move(work), {}, nullptr});
      } catch (...) {  // has its turn after the rows before it
        if (interrupts(settings)) throw;
        chunk->slots.push_back({nullptr, {}, std::current_exception()});
        break;
      }
    }
    if (chunk->slots.empty()) break;
    chunks_.push_back(chunk);
    run_.pool().add(std::move(chunk));
  }
}

Window::Chunk* Window::front() {
  if (!chunks_.empty() && taken_ == chunks_.front()->slots.size()) {
    if (chunks_.front()->counted) run_.held -= chunks_.front()->bytes;
    chunks_.pop_front();
    taken_ = 0;
  }
  if (taken_ == 0) fill();
  return chunks_.empty() ? nullptr : chunks_.front().get();
}

/// Waits for a task. Where the others are all finished meanwhile, the workers stood still behind one slow row: more may lie
/// ready from now on.
void Window::take(Chunk& chunk) {
  const bool late = !run_.pool().done(chunk);
  run_.pool().wait(chunk, run_.settings.poll);
  Measure& measure = run_.measure(node_);
  measure.taken += 1;
  size_t finished = 0;
  for (const auto& each : chunks_) finished += each->counted || run_.pool().done(*each);
  measure.queued += static_cast<int64_t>(finished) - 1;
  const Settings& settings = run_.settings;
  if (!late || settings.workers == 0 || settings.ahead > 0 || finished < ahead_) return;
  ahead_ = std::min(ahead_ + static_cast<size_t>(settings.workers), 16 * static_cast<size_t>(settings.workers));
  run_.told_ahead(node_, ahead_);
}

std::optional<Row> Window::next() {
  const auto begin = std::chrono::steady_clock::now();
  Chunk* chunk = front();
  if (!chunk) return std::nullopt;
  if (taken_ == 0) take(*chunk);
  run_.measure(node_).waited_ns += (std::chrono::steady_clock::now() - begin).count();
  Chunk::Slot& slot = chunk->slots[taken_++];
  last_ = std::move(slot.work);
  if (slot.error) std::rethrow_exception(slot.error);
  return std::move(slot.row);
}

std::string Window::origin() const { return last_ ? last_->origin() : ""; }

int64_t Window::skip(int64_t count) {
  int64_t passed = 0;
  for (; passed < count && !chunks_.empty(); ++passed) {
    if (!front()) return passed;
    ++taken_;
  }
  if (!chunks_.empty() || passed == count) return passed;
  return passed + cursor_->skip(count - passed);
}

Iterator::Iterator(NodePtr root, Settings settings, int64_t epoch, int64_t row)
    : root_(std::move(root)), settings_(std::move(settings)), at_{settings_.seed, epoch, row}, process_(getpid()) {
  if (settings_.workers < 0 || settings_.workers > 1024)
    fail(ErrorKind::invalid_argument, "", "workers must be from 0 to 1024, found {}", settings_.workers);
  if (epoch < 0 || row < 0)
    fail(ErrorKind::invalid_argument, "", "an iterator cannot begin at epoch {}, row {}", epoch, row);
}

Iterator::~Iterator() { stop(); }

/// In the child of a fork the threads are the parent's, and the mutex may be held by one of them.
void Iterator::leave_parent() const {
  if (process_ == getpid()) return;
  new (&mutex_) std::mutex;
  (void)window_.release();
  (void)run_.release();
  process_ = getpid();
}

void Iterator::stop() {
  leave_parent();
  std::lock_guard lock(mutex_);
  stopped_ = true;
  window_.reset();
  run_.reset();
}

void Iterator::begin() {
  if (!run_) run_ = std::make_unique<Run>(root_, settings_);
  if (window_) return;
  window_ = std::make_unique<Window>(*run_, *root_, at_.epoch);
  if (at_.row > 0) window_->skip(at_.row);
}

std::optional<Row> Iterator::next() {
  leave_parent();
  std::lock_guard lock(mutex_);
  if (stopped_) return std::nullopt;
  begin();
  std::optional<Row> row;
  try {
    row = window_->next();
  } catch (...) {
    if (!interrupts(settings_)) ++at_.row;
    throw;
  }
  if (row) {
    ++at_.row;
    return row;
  }
  window_.reset();
  at_ = {at_.seed, at_.epoch + 1, 0};
  return std::nullopt;
}

Position Iterator::position() const {
  leave_parent();
  std::lock_guard lock(mutex_);
  return at_;
}

}  // namespace cairn::data
