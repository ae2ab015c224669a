// Reads the embedded tables: which names TensorFlow has, what runs here, the platform's classes.
#include "migrate/api_table.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "migrate/values.h"

namespace cairn::migrate {
namespace tables {
extern const char* const k_tf_api;
extern const char* const k_platform_classes;
extern const char* const k_api_support;
}  // namespace tables

namespace {

template <class F>
void each_row(std::string_view table, F visit) {
  while (!table.empty()) {
    size_t end = std::min(table.find('\n'), table.size());
    std::string_view row = table.substr(0, end);
    table.remove_prefix(std::min(end + 1, table.size()));
    if (!row.empty() && row[0] != '#') visit(row);
  }
}

std::string_view take_word(std::string_view& row) {
  size_t end = std::min(row.find(' '), row.size());
  std::string_view word = row.substr(0, end);
  row.remove_prefix(std::min(end + 1, row.size()));
  return word;
}

struct Api {
  char kind;
  bool v1, v2;
};

const std::unordered_map<std::string_view, Api>& apis() {
  static const auto table = [] {
    std::unordered_map<std::string_view, Api> rows;
    each_row(tables::k_tf_api, [&](std::string_view row) {
      std::string_view name = take_word(row);
      rows[name] = {row[0], row.find('1') != row.npos, row.find('2') != row.npos};
    });
    return rows;
  }();
  return table;
}

// Rows "name rest" or "prefix* rest": exact names first, else the longest prefix.
class PatternTable {
 public:
  explicit PatternTable(std::string_view text) {
    each_row(text, [&](std::string_view row) {
      std::string_view name = take_word(row);
      if (name.ends_with('*'))
        prefixes_.push_back({name.substr(0, name.size() - 1), row});
      else
        exact_[name] = row;
    });
    std::stable_sort(prefixes_.begin(), prefixes_.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  }
  std::string_view exact(std::string_view name) const {
    auto found = exact_.find(name);
    return found == exact_.end() ? std::string_view() : found->second;
  }
  std::string_view find(std::string_view name) const {
    if (std::string_view row = exact(name); !row.empty()) return row;
    for (const auto& [prefix, row] : prefixes_)
      if (name.starts_with(prefix)) return row;
    return {};
  }

 private:
  std::unordered_map<std::string_view, std::string_view> exact_;
  std::vector<std::pair<std::string_view, std::string_view>> prefixes_;
};

std::string_view without_tf(std::string_view name) {
  return name.starts_with("tf.") ? name.substr(3) : std::string_view();
}

}  // namespace

bool api_exists(std::string_view name, int compat) {
  std::string_view below = without_tf(name);
  auto found = apis().find(below);
  if (found == apis().end()) return name == "tf";
  return compat == 0 || (compat == 1 ? found->second.v1 : found->second.v2);
}

std::string_view listed_part(std::string_view name) {
  while (!api_exists(name) && name.find('.') != name.npos) name = name.substr(0, name.rfind('.'));
  return name;
}

char api_kind(std::string_view name) {
  auto found = apis().find(without_tf(name));
  return found == apis().end() ? 0 : found->second.kind;
}

namespace {

// The row of the name, or of the layer's class or function whose attribute it is (tf.contrib.training.HParams.parse).
std::string_view row_of(const PatternTable& table, std::string_view name) {
  for (std::string_view up = name; up.find('.') != up.npos; up = up.substr(0, up.rfind('.')))
    if (std::string_view row = table.exact(up); !row.empty() && (up == name || row.starts_with("layer"))) return row;
  // The private modules inside a part of contrib (tf.contrib.rnn.python.ops.rnn_cell.X) are answered by the part.
  if (size_t inner = name.find(".python."); name.starts_with("tf.contrib.") && inner != name.npos) {
    std::string part(name.substr(0, inner));
    std::string_view row = table.exact(part + std::string(name.substr(name.rfind('.'))));
    if (row.empty()) row = table.exact(part);
    if (!row.empty()) return row;
  }
  return table.find(name);
}

void judge_by_row(ApiSupport& found, std::string_view row) {
  using Here = ApiSupport::Here;
  std::string_view word = take_word(row);
  found.note = std::string(row);
  if (word == "runs") {
    found.here = Here::runs;
  } else if (word == "engine") {
    found.here = Here::engine;
  } else if (word == "part" || word == "host") {
    found.here = word == "part" ? Here::part : Here::host;
    found.note += ": not on the engine";
  } else if (word == "layer" || word == "module") {
    found.here = Here::layer;
    found.note = "cairn tf1 supplies it: " + found.note;
  } else {
    found.here = Here::missing;
  }
}

}  // namespace

// Modules behind the public interface, about whose names the list says nothing.
static constexpr std::array<std::string_view, 12> kPrivate = {
    "tf.keras.src.", "tf.keras.api.", "tf.keras.protobuf.", "tf.keras.__",
    "tf.python.",    "tf.core.",      "tf.compiler.",       "tf.tools.",
    "tf.tsl.",       "tf.dtensor.",   "tf.lite.python.",    "tf.estimator.python."};

ApiSupport api_support(std::string_view name) {
  static const PatternTable platform(tables::k_platform_classes), here(tables::k_api_support);
  ApiSupport found;
  std::string_view row = row_of(here, name);
  // tf.__version__ and the like are in no list.
  bool exists = api_exists(name) || name.starts_with("tf.__") || name == "tf.keras.__version__";
  // Beyond a class or a value of the list lies its own attribute (tf.data.Dataset.from_tensors, tf.float32.name).
  if (!exists)
    for (std::string_view up = name; up.find('.') != up.npos && !exists;) {
      up = up.substr(0, up.rfind('.'));
      exists = up != "tf" && api_exists(up) && api_kind(up) != 'm';
    }
  if (!row.empty()) {
    judge_by_row(found, row);
  } else if (exists) {
    found.here = ApiSupport::Here::runs;
  } else if (std::any_of(kPrivate.begin(), kPrivate.end(), [&](auto prefix) { return name.starts_with(prefix); })) {
    found.here = ApiSupport::Here::unknown;
    found.note = "not part of TensorFlow's public interface";
  } else if (name.starts_with("tf.")) {
    found.here = ApiSupport::Here::missing;
    found.note = "TensorFlow 2.15 has no such name";
  }
  found.exists = exists;
  bool listed = exists || name.starts_with("tf.contrib.") || name.starts_with("hvd.") || !platform.find(name).empty();
  if (listed && (exists || !name.starts_with("tf.") || name.starts_with("tf.contrib") || name.starts_with("tf.tpu")))
    found.platform = platform.find(name);
  return found;
}

const std::vector<ClassTitle>& platform_classes() {
  static const std::vector<ClassTitle> classes = {
      {"supported", "支持（无需迁移）", "Support"},
      {"tool_api", "工具迁移后API功能支持", "API support after migration"},
      {"tool_train", "工具迁移后训练功能打通", "Network training support after migration"},
      {"unsupported_harmless", "不支持（不影响迁移，用户无需干预）", "Not support but no impact on migration"},
      {"unsupported", "不支持（无迁移方案，建议用户不使用）", "Not support or recommended"},
      {"compat", "兼容类", "Compatible"},
      {"deprecated", "废弃类", "Deprecated"},
      {"analysing", "分析中（特性商用时不应该存在）", "Analysing"},
  };
  return classes;
}

std::string_view here_title(ApiSupport::Here here) {
  switch (here) {
    case ApiSupport::Here::runs: return "runs";
    case ApiSupport::Here::engine: return "runs on the engine";
    case ApiSupport::Here::part: return "runs, partly in TensorFlow";
    case ApiSupport::Here::host: return "runs in TensorFlow";
    case ApiSupport::Here::layer: return "runs by cairn tf1";
    case ApiSupport::Here::missing: return "missing";
    case ApiSupport::Here::unknown: return "unknown";
  }
  return "unknown";
}

}  // namespace cairn::migrate
