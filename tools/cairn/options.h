// Command line arguments for the verbs. The headers of CLI11 behind it cost each file that sees them three seconds to
// compile; here only options.cpp does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace cairn::cli {

/// An option of a verb; what it is bound to must live until the arguments are parsed.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& positive();
  Option& within(int low, int high);
  Option& within(double low, double high);
  Option& one_of(const std::vector<std::string>& values);
  /// Splits a value at `separator` into several.
  Option& delimiter(char separator);

 private:
  CLI::Option* option_;
};

/// A program or one of its verbs.
class Verb {
 public:
  explicit Verb(CLI::App* app) : app_(app) {}

  /// `names`: "-o,--output"; without hyphens: the argument in that place.
  Option add_option(const std::string& names, std::string& value, const std::string& meaning);
  Option add_option(const std::string& names, int& value, const std::string& meaning);
  Option add_option(const std::string& names, double& value, const std::string& meaning);
  Option add_option(const std::string& names, std::vector<std::string>& values, const std::string& meaning);
  void add_flag(const std::string& names, bool& value, const std::string& meaning);
  /// A flag that also takes a value: "--dump", "--dump true" and "--dump 0".
  void add_switch(const std::string& name, bool& value, const std::string& meaning);
  void remove_option(const std::string& name);
  /// Text below the help.
  void footer(const std::string& text);

  Verb add_verb(const std::string& name, const std::string& meaning);
  /// Called when this verb was chosen.
  void callback(std::function<void()> chosen);
  /// The verb takes its arguments as they are, and is handled elsewhere.
  void prefix_command();

 protected:
  CLI::App* app_;
};

class Program : public Verb {
 public:
  Program(const std::string& name, const std::string& meaning);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void version(const std::string& text);
  /// Fills what the options are bound to. The exit status, if the program ends here: help, version or wrong usage, all
  /// printed.
  std::optional<int> parse(const std::vector<std::string>& arguments);
  /// Of the verb that was chosen; one is required where there are verbs.
  std::string verb() const;

 private:
  std::unique_ptr<CLI::App> own_;
};

/// Prints what ended the parse: help, the version, or what is wrong with the words. The exit status, `failure` for the last.
int end_parse(const CLI::App& app, const CLI::ParseError& error, int failure);

}  // namespace cairn::cli
