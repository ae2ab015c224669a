// What every command owes its surroundings: output that is lost is an error, standard error that is lost is not, a signal
// leaves no half-written file, and memory that runs out ends in a sentence.
#pragma once

#include <string>

namespace cairn::cli {

/// Made first in main(). A standard stream that is closed stays unusable, but its number is taken, so that no file of ours
/// gets it. What is printed never throws and never aborts.
class Process {
 public:
  /// `name` stands in messages; `failure` is the exit status of the program's own faults.
  Process(std::string name, int failure);
  Process(const Process&) = delete;

  /// The exit status to end with: `status`, or a failure where standard output could not be written. A reader that went
  /// away (a broken pipe) is told no sentence.
  int finish(int status) const;
  /// Prints the exception that is being handled; for main(), behind what the commands catch themselves.
  int fail() const;

 private:
  int failure_;
};

/// Ends the process in a sentence when it works a quarter longer than these seconds (0: any time): what asks nowhere whether it
/// has to end, a library or the system, cannot overrun the limit either. Half-written files go.
class LastLimit {
 public:
  explicit LastLimit(double seconds);
  ~LastLimit();
  LastLimit(const LastLimit&) = delete;
  LastLimit& operator=(const LastLimit&) = delete;
};

}  // namespace cairn::cli
