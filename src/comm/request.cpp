#include "comm/request.h"

#include <algorithm>
#include <array>

#include "support/error.h"

namespace cairn::comm {

namespace {

constexpr std::array<const char*, kKinds> kNames = {"all_reduce", "all_gather", "reduce_scatter", "broadcast_from",
                                                    "reduce_to",  "all_to_all", "gather_to",      "scatter_from",
                                                    "barrier",    "send",       "receive"};
constexpr std::array<const char*, 5> kReductions = {"sum", "prod", "max", "min", "mean"};

bool reduces(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::reduce; }
bool has_root(Kind kind) {
  return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter;
}

thread_local std::string_view t_place;

}  // namespace

const char* to_string(Kind kind) { return kNames[static_cast<size_t>(kind)]; }
const char* to_string(Reduction reduction) { return kReductions[static_cast<size_t>(reduction)]; }

Reduction reduction_named(std::string_view name) {
  for (size_t i = 0; i < kReductions.size(); ++i)
    if (name == kReductions[i]) return static_cast<Reduction>(i);
  CHECK(false, "reduction {}", name);
  return Reduction::sum;
}

int64_t Request::count() const {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;  // the product of the others may be too large
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

// The parts that the ranks of all_to_all exchange differ; they are compared pair by pair.
std::string Request::text() const {
  constexpr size_t kShown = 60;  // characters, of the names of a bucket, at both ends
  std::string text = to_string(kind);
  if (name.size() > 2 * kShown)
    text += fmt::format(" \"{}...{}\"", name.substr(0, kShown), name.substr(name.size() - kShown));
  else if (!name.empty())
    text += fmt::format(" \"{}\"", name);
  if (kind == Kind::barrier) return text;
  if (kind == Kind::all_to_all)
    text += fmt::format(" {}", cairn::to_string(dtype));
  else if (!counts.empty() && counts.size() <= 4)
    text += fmt::format(" {}[{}]", cairn::to_string(dtype), fmt::join(counts, " + "));
  else if (!counts.empty())
    text += fmt::format(" {}[{}] of {} tensors", cairn::to_string(dtype), dims[0], counts.size());
  else
    text += " " + cairn::to_string(Type::tensor(dtype, Shape::of({dims.begin(), dims.end()})));
  if (reduces(kind)) text += fmt::format(" {}", to_string(reduction));
  if (has_root(kind)) text += fmt::format(" root {}", root);
  if (kind == Kind::send) text += fmt::format(" to {} tag {}", root, tag);
  if (kind == Kind::receive) text += fmt::format(" from {} tag {}", root, tag);
  return text;
}

uint64_t Request::digest() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  add(static_cast<uint64_t>(kind) + 1);
  for (char letter : name) add(static_cast<uint8_t>(letter));
  if (kind == Kind::barrier) return hash;
  add(static_cast<uint64_t>(dtype.kind) << 8 | dtype.bits);
  if (kind != Kind::all_to_all)
    for (int64_t dim : dims) add(static_cast<uint64_t>(dim) + 1);
  for (int64_t each : counts) add(static_cast<uint64_t>(each) + 1);
  if (reduces(kind)) add(static_cast<uint64_t>(reduction) + 100);
  if (has_root(kind)) add(static_cast<uint64_t>(root) + 1000);
  return hash;
}

Place::Place(std::string_view where) : before_(std::exchange(t_place, where)) {}
Place::~Place() { t_place = before_; }
std::string_view Place::current() { return t_place; }

}  // namespace cairn::comm
