// What is known about framework names: how they are spelled, what their calls give, whether they run here, and the class
// the Ascend platform's own tool gives them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cairn::migrate {

/// The judgement on one API, for the report.
struct ApiSupport {
  // engine, part, host: where the operators run that it makes; layer: supplied by `cairn tf1`.
  enum class Here : uint8_t { runs, engine, part, host, layer, missing, unknown } here = Here::unknown;
  bool exists = false;  // TensorFlow 2.15 has the name
  bool in_tensorflow() const { return here <= Here::host; }
  std::string note;           // why, or the way out
  std::string_view platform;  // one of the platform's classes, English; "" for names its list does not hold
};

/// The judgement by what this version supports; `name` canonical. The tables behind it: data/*.txt.
ApiSupport api_support(std::string_view name);

/// The user's own list instead of the platform's classes: name -> class (English or Chinese). Kept by the caller.
class SupportList {
 public:
  /// Reads a .csv or .xlsx with the columns module, API, class; throws Error when it is neither.
  static SupportList read(const std::string& path);
  std::string_view find(std::string_view name) const;
  size_t size() const { return entries_.size(); }

 private:
  std::vector<std::pair<std::string, std::string>> entries_;  // sorted by name
};

/// Chinese and English titles of a platform class ("supported" -> 支持（无需迁移）).
struct ClassTitle {
  std::string_view id, chinese, english;
};
const std::vector<ClassTitle>& platform_classes();

std::string_view here_title(ApiSupport::Here here);

/// Whether TensorFlow's public interface has this canonical name ("tf.nn.relu"), in `compat` 1, 2 or either (0).
bool api_exists(std::string_view name, int compat = 0);
/// The name, or the part of it that the list holds (tf.Session of tf.Session.reset); "tf" when it holds none.
std::string_view listed_part(std::string_view name);
/// Its kind: m, c, f, v; 0 when it does not exist.
char api_kind(std::string_view name);

}  // namespace cairn::migrate
