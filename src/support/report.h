// The list of problems that every public interface prints, as text, JSON or SARIF. Import, check and conversion collect
// all problems of a model before they stop.
#pragma once

#include <string>
#include <vector>

#include "support/error.h"

namespace cairn {

enum class Severity : uint8_t { note, warning, error };
const char* to_string(Severity severity);

/// One cause and every node it concerns.
struct Problem {
  std::string code;  // stable: "unsupported-op", "E10001"
  Severity severity = Severity::error;
  std::string subject;  // operator type, option or file
  struct Place {
    std::string node;      // may be empty
    std::string location;  // "export.py:88", may be empty
    friend bool operator==(const Place&, const Place&) = default;
  };
  std::vector<Place> places = {};
  std::string message;   // lower case, no period: what is wrong
  std::string fix = {};  // what to do, may be empty
};

/// "resnet/conv1 (train.py:41)".
std::string to_string(const Problem::Place& place);

class Report {
 public:
  /// Problems with equal code, subject, message and fix are merged into one with all their places.
  void add(Problem problem);
  void add(const Report& other);
  bool empty() const { return problems_.empty(); }
  size_t count(Severity severity) const;
  const std::vector<Problem>& problems() const { return problems_; }

  /// One line per problem, in columns: subject, number of nodes, the first nodes with script lines, message; fix.
  std::string text() const;
  std::string json() const;
  /// SARIF 2.1.0, for code-review tools; `file` is the artifact of problems without a script line.
  std::string sarif(const std::string& file) const;

 private:
  std::vector<Problem> problems_;
};

/// An Error that stands for several problems; what() is its headline, then report().text().
class ReportError : public Error {
 public:
  ReportError(ErrorKind kind, std::string where, const std::string& headline, Report report);
  const Report& report() const { return report_; }
  const std::string& headline() const { return headline_; }

 private:
  Report report_;
  std::string headline_;
};

}  // namespace cairn
