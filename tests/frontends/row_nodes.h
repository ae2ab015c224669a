// Nodes for every row of a frontend, made by chance: operands of any number, kind and shape, some left out, and the attributes
// that the rows ask for with sound and absurd values.
#pragma once

#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "models.h"
#include "mutants.h"

namespace cairn::test {

inline constexpr int64_t kAbsurd[] = {INT64_MIN, INT64_MAX,        -1,       0, 1, 2, 3, 7, -5,
                                      INT32_MAX, int64_t{1} << 40, INT32_MIN};
inline int64_t some_number(Random& random) {
  return below(random, 3) != 0 ? static_cast<int64_t>(below(random, 4)) : kAbsurd[below(random, std::size(kAbsurd))];
}
inline std::vector<int64_t> some_numbers(Random& random) {
  std::vector<int64_t> list(below(random, 6));
  for (int64_t& number : list) number = some_number(random);
  return list;
}
inline const char* some_text(Random& random) {
  static constexpr const char* kTexts[] = {
      "",         "SAME",          "VALID",      "NHWC",    "NCHW",    "linear",  "nearest",       "bij,bjk->bik",
      "constant", "same",          "valid",      "REFLECT", "float32", "add",     "relu",          "sum",
      "\x01\xff", "channels_last", "SAME_UPPER", "cubic",   "ii->i",   "reverse", "bidirectional", "tanh"};
  return kTexts[below(random, std::size(kTexts))];
}

/// What the rows of each source file below src/frontends/<folder> ask for: the attribute's name and the kind of question.
struct Asked {
  std::string kind, name;
};
class Sources {
 public:
  explicit Sources(const std::string& folder) {
    static const std::regex kQuestion(
        R"re((integer|integers|integers_of|sizes|real|reals|number|boolean|text|texts|tensor|graph|dtype|shape|function|functions|find|has)\("(\w+)")re");
    const std::string root = std::string(CAIRN_SOURCE_DIR) + "/src/frontends/" + folder;
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      File& file = files_.emplace_back();
      file.text = read_file(entry.path());
      for (std::sregex_iterator match(file.text.begin(), file.text.end(), kQuestion), end; match != end; ++match)
        file.asked.push_back({(*match)[1], (*match)[2]});
    }
  }
  /// Of the file that has the row.
  const std::vector<Asked>& of(std::string_view row) const {
    static const std::vector<Asked> kNothing;
    const std::string start = "{\"" + std::string(row) + "\",";
    for (const File& file : files_)
      if (file.text.find(start) != std::string::npos) return file.asked;
    return kNothing;
  }

 private:
  struct File {
    std::string text;
    std::vector<Asked> asked;
  };
  std::vector<File> files_;
};

}  // namespace cairn::test
