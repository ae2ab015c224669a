#include "options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <climits>

#include "help.h"
#include "support/nearest.h"

namespace cairn::cli {

namespace {

template <class Number>
CLI::Validator number_in(Number low, Number high, const std::string& range) {
  auto check = [=](const std::string& text) {
    Number value;
    const bool fits = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
    return fits ? std::string()
                : fmt::format("{} is no {}number {}", text, std::is_integral_v<Number> ? "whole " : "", range);
  };
  return CLI::Validator(check, range, "");
}

constexpr const char* kSeeHelp = "Run with --help for more information.\n";

/// The verb's name: of "cairn launch" the last word.
std::string verb_name(const CLI::App& app) { return app.get_name().substr(app.get_name().rfind(' ') + 1); }

// What is wrong with words that the command line does not take, a line each. Words after an unknown option may be its value.
std::string refusal(const CLI::App& app, const std::vector<std::string>& words) {
  const auto chosen = app.get_subcommands();
  const CLI::App& verb = chosen.empty() ? app : *chosen.front();
  std::vector<std::string> names;
  if (chosen.empty())
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(each->get_name());
  const bool has_commands = !names.empty();
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string lines;
  const bool options = std::any_of(words.begin(), words.end(), [](const auto& word) { return word.starts_with('-'); });
  for (const std::string& word : words) {
    if (options && !word.starts_with('-')) continue;
    const std::string name = word.substr(0, word.find('='));
    const bool command = chosen.empty() && has_commands;
    const char* kind = name.starts_with('-') ? "no option" : command ? "no command" : "one argument too many";
    lines += fmt::format("error: {}: {} is {}{}\n", verb_name(verb), name, kind, did_you_mean(name, candidates));
  }
  return lines + kSeeHelp;
}

}  // namespace

int end_parse(const CLI::App& app, const CLI::ParseError& error, int failure) {
  if (error.get_exit_code() == 0) return app.exit(error);  // help and version
  const auto chosen = app.get_subcommands();
  const std::string name = verb_name(chosen.empty() ? app : *chosen.front());
  const std::vector<std::string> extras = app.remaining(true);
  fmt::print(stderr, "{}",
             extras.empty() ? fmt::format("error: {}: {}\n{}", name, error.what(), kSeeHelp) : refusal(app, extras));
  return failure;
}

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::positive() {
  option_->check(number_in(1, INT_MAX, "above 0"));
  return *this;
}

Option& Option::within(int low, int high) {
  option_->check(number_in(low, high, fmt::format("from {} to {}", low, high)));
  return *this;
}

Option& Option::within(double low, double high) {
  option_->check(number_in(low, high, fmt::format("from {} to {}", low, high)));
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& values) {
  auto check = [values](const std::string& text) {
    if (std::find(values.begin(), values.end(), text) != values.end()) return std::string();
    auto folded = [](std::string word) {
      for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return word;
    };
    for (const std::string& value : values)
      if (folded(value) == folded(text)) return fmt::format("{} is written {}", text, value);
    const std::vector<std::string_view> candidates(values.begin(), values.end());
    return fmt::format("{} is none of {}{}", text, fmt::join(values, ", "), did_you_mean(text, candidates));
  };
  option_->check(CLI::Validator(check, fmt::format("{{{}}}", fmt::join(values, ",")), ""));
  return *this;
}

Option& Option::delimiter(char separator) {
  option_->delimiter(separator);
  return *this;
}

Option Verb::add_option(const std::string& names, std::string& value, const std::string& meaning) {
  return Option(app_->add_option(names, value, meaning)->check(not_empty()));
}

Option Verb::add_option(const std::string& names, int& value, const std::string& meaning) {
  return Option(app_->add_option(names, value, meaning));
}

Option Verb::add_option(const std::string& names, double& value, const std::string& meaning) {
  return Option(app_->add_option(names, value, meaning));
}

Option Verb::add_option(const std::string& names, std::vector<std::string>& values, const std::string& meaning) {
  return Option(app_->add_option(names, values, meaning)->check(not_empty()));
}

void Verb::add_flag(const std::string& names, bool& value, const std::string& meaning) {
  app_->add_flag(names, value, meaning);
}

void Verb::add_switch(const std::string& name, bool& value, const std::string& meaning) {
  CLI::callback_t set = [&value](const std::vector<std::string>& given) {
    value = given.empty() || (given[0] != "false" && given[0] != "0");
    return true;
  };
  app_->add_option(name, set, meaning)->expected(0, 1);
}

void Verb::remove_option(const std::string& name) { app_->remove_option(app_->get_option(name)); }

void Verb::footer(const std::string& text) { app_->footer(text); }

Verb Verb::add_verb(const std::string& name, const std::string& meaning) {
  app_->require_subcommand(1);
  return Verb(app_->add_subcommand(name, meaning));
}

void Verb::callback(std::function<void()> chosen) { app_->callback(std::move(chosen)); }

void Verb::prefix_command() { app_->prefix_command(); }

Program::Program(const std::string& name, const std::string& meaning)
    : Verb(nullptr), own_(std::make_unique<CLI::App>(meaning, name)) {
  app_ = own_.get();
  app_->formatter(std::make_shared<Help>());
}

Program::~Program() = default;

void Program::version(const std::string& text) { app_->set_version_flag("--version", text); }

std::optional<int> Program::parse(const std::vector<std::string>& arguments) {
  const bool has_verbs = app_->get_require_subcommand_min() > 0;
  if (has_verbs && arguments.empty()) {
    fmt::print("{}", app_->help());
    return 1;
  }
  const auto is_named = [&](const CLI::App* verb) { return verb->get_name() == arguments[0]; };
  if (has_verbs && !arguments[0].starts_with('-') && app_->get_subcommands(is_named).empty()) {
    fmt::print(stderr, "{}", refusal(*app_, {arguments[0]}));
    return 1;
  }
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the end
  } catch (const CLI::ParseError& error) {
    return end_parse(*app_, error, 1);
  }
  return std::nullopt;
}

std::string Program::verb() const { return app_->get_subcommands().front()->get_name(); }

}  // namespace cairn::cli
