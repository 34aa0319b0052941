// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/config_file.h"

#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/runtime/config_value.h"

namespace covey {
namespace {

constexpr int kExitUsage = 2;

std::string KeyOf(absl::string_view name) { return absl::StrReplaceAll(name, {{"-", "_"}}); }

// As a YAML scalar that reads back as the same string.
std::string Quoted(const std::string& text) {
  YAML::Emitter emitter;
  emitter << text;
  return emitter.c_str();
}

}  // namespace

std::string VersionLine(absl::string_view program) {
  return absl::StrCat(program, " ", kVersion, "\n");
}

// The parsed command line, before it is checked.
struct ConfigFile::Flags {
  std::vector<std::pair<std::string, std::string>> values;  // by option name
  std::optional<std::string> config;
  std::vector<std::string> rest;
  std::string help;     // set by --help
  std::string version;  // set by --version
  bool print_config = false;
};

ConfigFile::ConfigFile(absl::string_view program, absl::string_view summary)
    : program_(program), summary_(summary) {}

void ConfigFile::Add(absl::string_view name, std::function<absl::Status(absl::string_view)> parse,
                     std::function<std::string()> print, absl::string_view help) {
  COVEY_CHECK(Find(name) == nullptr);
  options_.push_back({.name = std::string(name),
                      .help = std::string(help),
                      .parse = std::move(parse),
                      .print = std::move(print)});
}

template <typename T>
void ConfigFile::AddField(absl::string_view name, T* field, absl::string_view help) {
  Add(
      name, [field](absl::string_view text) { return ReadValue(text, field); },
      [field] { return WriteValue(*field); }, help);
}

void ConfigFile::Add(absl::string_view name, std::string* field, absl::string_view help) {
  AddField(name, field, help);
}
void ConfigFile::Add(absl::string_view name, bool* field, absl::string_view help) {
  AddField(name, field, help);
  options_.back().is_switch = true;
}
void ConfigFile::Add(absl::string_view name, int32_t* field, absl::string_view help) {
  AddField(name, field, help);
}
void ConfigFile::Add(absl::string_view name, uint32_t* field, absl::string_view help) {
  AddField(name, field, help);
}
void ConfigFile::Add(absl::string_view name, uint64_t* field, absl::string_view help) {
  AddField(name, field, help);
}
void ConfigFile::Add(absl::string_view name, double* field, absl::string_view help) {
  AddField(name, field, help);
}
void ConfigFile::Add(absl::string_view name, absl::Duration* field, absl::string_view help) {
  AddField(name, field, help);
}
void ConfigFile::Add(absl::string_view name, std::vector<std::string>* field,
                     absl::string_view help) {
  AddField(name, field, help);
  options_.back().is_list = true;
}

void ConfigFile::Add(absl::string_view name, Bytes field, absl::string_view help) {
  Add(
      name,
      [field](absl::string_view text) {
        COVEY_ASSIGN_OR_RETURN(*field.field, ParseBytes(text));
        return absl::OkStatus();
      },
      [field] { return FormatBytes(*field.field); }, help);
}

void ConfigFile::TakeRest(std::vector<std::string>* rest, absl::string_view placeholder) {
  rest_ = rest;
  placeholder_ = std::string(placeholder);
}

ConfigFile::Option* ConfigFile::Find(absl::string_view name) {
  for (Option& option : options_) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

std::string ConfigFile::Nearest(absl::string_view name) const {
  std::vector<std::string> known = {"config", "help", "print-config", "version"};
  for (const Option& option : options_) known.push_back(option.name);
  return NearestName(name, known);
}

absl::Status ConfigFile::Assign(Option& option, absl::string_view text, const std::string& origin) {
  const absl::Status status = option.parse(text);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": \"", text, "\" is ", status.message(), "; see --help"));
  }
  option.origin = origin;
  return absl::OkStatus();
}

absl::StatusOr<ConfigFile::Flags> ConfigFile::ReadFlags(
    const std::vector<std::string>& arguments) const {
  Flags flags;
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  // CLI11 takes arguments in reverse order.
  std::vector<std::string> reversed;
  for (auto argument = arguments.begin(); argument != separator; ++argument) {
    // After "--name=" CLI11 would take the next argument for the value.
    if (absl::StartsWith(*argument, "--") && argument->find('=') + 1 == argument->size()) {
      reversed.push_back(argument->substr(0, argument->size() - 1));
      reversed.push_back("");
    } else {
      reversed.push_back(*argument);
    }
  }
  std::reverse(reversed.begin(), reversed.end());

  CLI::App app(summary_, program_);
  app.allow_extras();
  app.set_version_flag("--version", VersionLine(program_), "print the version and exit");
  app.footer(placeholder_.empty() ? "" : absl::StrCat("After the options: ", placeholder_));
  std::string config;
  const CLI::Option* const config_flag = app.add_option(
      "--config", config, "YAML file with values, `name_of_option: value` [COVEY_CONFIG]");
  app.add_flag("--print-config", flags.print_config,
               "print the configuration with the origin of each value, and exit");
  std::vector<std::string> values(options_.size());
  std::vector<CLI::Option*> given;
  for (size_t i = 0; i < options_.size(); ++i) {
    const Option& option = options_[i];
    const std::string flag = absl::StrCat("--", option.name);
    const std::string help = absl::StrCat(option.help, " [", EnvironmentVariableOf(option.name),
                                          "=", option.print(), "]");
    given.push_back(option.is_switch ? app.add_flag(flag, values[i], help)
                                     : app.add_option(flag, values[i], help));
    if (option.is_list) given.back()->join(',');
  }
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    flags.help = app.help();
    return flags;
  } catch (const CLI::CallForVersion& version) {
    flags.version = version.what();
    return flags;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat(error.what(), "; see --help"));
  }

  if (config_flag->count() > 0) flags.config = config;
  for (size_t i = 0; i < options_.size(); ++i) {
    if (given[i]->count() > 0) flags.values.emplace_back(options_[i].name, values[i]);
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.size() > 1 && extra.front() == '-') {
      const std::string flag = extra.substr(0, extra.find('='));
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag ", flag, "; did you mean --",
                       Nearest(absl::StripPrefix(absl::StripPrefix(flag, "-"), "-")), "?"));
    }
    flags.rest.push_back(extra);
  }
  if (separator != arguments.end()) {
    flags.rest.insert(flags.rest.end(), separator + 1, arguments.end());
  }
  if (rest_ == nullptr && !flags.rest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument \"", flags.rest.front(), "\"; see --help"));
  }
  return flags;
}

absl::Status ConfigFile::ReadFile(const std::string& path) {
  YAML::Node root;
  try {
    root = YAML::LoadFile(path);
  } catch (const YAML::BadFile&) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the configuration file ", path, "; check its name"));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ":", error.mark.line + 1,
                                                   ": not YAML: ", error.msg,
                                                   "; see the form that --print-config prints"));
  }
  if (root.IsNull()) return absl::OkStatus();
  if (!root.IsMap()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a list of `name: value`; see what --print-config prints"));
  }
  for (const auto& entry : root) {
    const std::string at = absl::StrCat(path, ":", entry.first.Mark().line + 1);
    if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
      return absl::InvalidArgumentError(absl::StrCat(at, ": expected `name: value`"));
    }
    const std::string& key = entry.first.Scalar();
    const std::string name = absl::StrReplaceAll(key, {{"_", "-"}});
    Option* const option = Find(name);
    if (option == nullptr || key != KeyOf(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          at, ": unknown key \"", key, "\"; did you mean \"", KeyOf(Nearest(name)), "\"?"));
    }
    if (option->origin != "default") {
      return absl::InvalidArgumentError(
          absl::StrCat(at, ": \"", key, "\" is given twice; first at ", option->origin));
    }
    const std::string& value = entry.second.Scalar();
    // YAML is Unicode: among control characters --print-config could not show other bytes.
    if (YAML::Load(Quoted(value)).Scalar() != value) {
      return absl::InvalidArgumentError(
          absl::StrCat(at, ": the value of \"", key, "\" is not UTF-8; save the file as UTF-8"));
    }
    COVEY_RETURN_IF_ERROR(Assign(*option, value, at));
  }
  return absl::OkStatus();
}

absl::StatusOr<ConfigFile::Outcome> ConfigFile::Load(const std::vector<std::string>& arguments,
                                                     const Environment& environment) {
  COVEY_ASSIGN_OR_RETURN(const Flags flags, ReadFlags(arguments));
  if (!flags.help.empty()) return Outcome{.print = flags.help};
  if (!flags.version.empty()) return Outcome{.print = flags.version};

  const char* const file_variable = environment("COVEY_CONFIG");
  if (flags.config.has_value()) {
    COVEY_RETURN_IF_ERROR(ReadFile(*flags.config));
  } else if (file_variable != nullptr) {
    COVEY_RETURN_IF_ERROR(ReadFile(file_variable));
  }
  for (Option& option : options_) {
    const std::string variable = EnvironmentVariableOf(option.name);
    if (const char* value = environment(variable.c_str())) {
      COVEY_RETURN_IF_ERROR(Assign(option, value, absl::StrCat("environment ", variable)));
    }
  }
  for (const auto& [name, value] : flags.values) {
    COVEY_RETURN_IF_ERROR(Assign(*Find(name), value, absl::StrCat("flag --", name)));
  }
  if (rest_ != nullptr) *rest_ = flags.rest;
  if (flags.print_config) return Outcome{.print = Print()};
  return Outcome{};
}

std::optional<int> ConfigFile::LoadForMain(int argc, const char* const* argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const auto outcome = Load(arguments, [](const char* name) { return std::getenv(name); });
  if (!outcome.ok()) {
    std::cerr << program_ << ": " << outcome.status().message() << "\n";
    return kExitUsage;
  }
  if (!outcome->print.has_value()) return std::nullopt;
  std::cout << *outcome->print;
  return 0;
}

std::string ConfigFile::Print() const {
  std::string text;
  for (const Option& option : options_) {
    absl::StrAppend(&text, KeyOf(option.name), ": ", Quoted(option.print()), "  # ", option.origin,
                    "\n");
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> ConfigFile::Values() const {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Option& option : options_) values.emplace_back(option.name, option.print());
  return values;
}

std::string ConfigFile::OriginOf(absl::string_view name) const {
  for (const Option& option : options_) {
    if (option.name == name) return option.origin;
  }
  CheckFailed(__FILE__, __LINE__, "OriginOf an option that was added");
}

}  // namespace covey
