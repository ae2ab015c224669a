// The smaller commands beside `compare`, and the arguments that all of them take.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cairn::compare {

/// One option: its name, other spellings, and whether a value follows.
struct OptionForm {
  std::string name;
  std::vector<std::string> aliases;
  bool takes_value;
};

/// Options with one or two hyphens and names of several letters (-alg), values behind a blank or '='.
class Arguments {
 public:
  /// Throws Error invalid_argument for an unknown option, a missing value or an option given twice.
  Arguments(const std::vector<std::string>& words, const std::vector<OptionForm>& forms);
  bool has(const std::string& option) const { return values_.contains(option); }
  const std::string& text(const std::string& option) const { return values_.at(option); }
  std::vector<std::string> list(const std::string& option) const;  // at commas
  std::vector<int64_t> integers(const std::string& option) const;
  int64_t integer(const std::string& option, int64_t otherwise, int64_t least, int64_t most) const;
  double real(const std::string& option, double otherwise, double least, double most) const;
  const std::vector<std::string>& positional() const { return positional_; }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> positional_;
};

/// A name as a part of a file's name.
std::string file_part(const std::string& name);

/// -d FILES -out DIR -t npy|bin -f FORMAT -s SHAPE -o|-i INDEX
int convert_dumps(const Arguments& arguments);
/// -d DIR -n TOP -out DIR
int list_overflows(const Arguments& arguments);
/// -m FILE -g FILE -out DIR
int compare_files(const Arguments& arguments);

}  // namespace cairn::compare
