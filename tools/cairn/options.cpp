#include "options.h"

#include <CLI/CLI.hpp>

namespace cairn::cli {

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option& Option::within(int low, int high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option& Option::within(double low, double high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option& Option::delimiter(char separator) {
  option_->delimiter(separator);
  return *this;
}

Option Verb::add_option(const std::string& names, std::string& value, const std::string& meaning) {
  return Option(app_->add_option(names, value, meaning));
}

Option Verb::add_option(const std::string& names, int& value, const std::string& meaning) {
  return Option(app_->add_option(names, value, meaning));
}

Option Verb::add_option(const std::string& names, double& value, const std::string& meaning) {
  return Option(app_->add_option(names, value, meaning));
}

Option Verb::add_option(const std::string& names, std::vector<std::string>& values, const std::string& meaning) {
  return Option(app_->add_option(names, values, meaning));
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
}

Program::~Program() = default;

void Program::version(const std::string& text) { app_->set_version_flag("--version", text); }

std::optional<int> Program::parse(const std::vector<std::string>& arguments) {
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the end
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : 1;
  }
  return std::nullopt;
}

std::string Program::verb() const { return app_->get_subcommands().front()->get_name(); }

}  // namespace cairn::cli
