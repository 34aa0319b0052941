// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/config_reload.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_value.h"

namespace covey {

std::string Reloads(absl::string_view help) { return absl::StrCat(help, " (SIGHUP reloads it)"); }

ConfigReload::ConfigReload(const ConfigFile& started, std::vector<Setting> reloadable, int argc,
                           const char* const* argv)
    : ConfigReload(started, std::move(reloadable),
                   std::vector<std::string>(argv + std::min(argc, 1), argv + argc),
                   [](const char* name) { return std::getenv(name); }) {}

ConfigReload::ConfigReload(const ConfigFile& started, std::vector<Setting> reloadable,
                           std::vector<std::string> arguments, ConfigFile::Environment environment)
    : reloadable_(std::move(reloadable)),
      arguments_(std::move(arguments)),
      environment_(std::move(environment)),
      in_use_(started.Values()) {
  for (const Setting& setting : reloadable_) {
    COVEY_CHECK(std::any_of(in_use_.begin(), in_use_.end(),
                            [&](const auto& value) { return value.first == setting.name; }));
  }
}

bool ConfigReload::has_file() const {
  if (environment_("COVEY_CONFIG") != nullptr) return true;
  for (const std::string& argument : arguments_) {
    if (argument == "--") break;
    if (argument == "--config" || absl::StartsWith(argument, "--config=")) return true;
  }
  return false;
}

bool ConfigReload::MayChange(absl::string_view name, absl::string_view value) const {
  return std::any_of(reloadable_.begin(), reloadable_.end(), [&](const Setting& setting) {
    return setting.name == name && (setting.only_to.empty() || setting.only_to == value);
  });
}

absl::Status ConfigReload::Read(ConfigFile& read, ConfigFile& next) {
  changes_.clear();
  if (!has_file()) {
    return absl::FailedPreconditionError(
        "there is no configuration file; start the process with --config FILE to change its "
        "settings by SIGHUP");
  }
  COVEY_RETURN_IF_ERROR(read.Load(arguments_, environment_).status());
  std::map<std::string, std::string> next_values;
  const Values values = read.Values();
  COVEY_CHECK(values.size() == in_use_.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [name, before] = in_use_[i];
    const std::string& after = values[i].second;
    const bool may_change = MayChange(name, after);
    next_values[EnvironmentVariableOf(name)] = may_change ? after : before;
    if (before != after) changes_.push_back({name, before, after, !may_change});
  }
  for (const auto& [name, value] : next.Values()) {
    // A default need not be read.
    const auto found = next_values.find(EnvironmentVariableOf(name));
    if (found != next_values.end() && found->second == value) next_values.erase(found);
  }
  return next
      .Load({},
            [&next_values](const char* name) -> const char* {
              const auto found = next_values.find(name);
              return found == next_values.end() ? nullptr : found->second.c_str();
            })
      .status();
}

absl::Status ConfigReload::Together(const absl::Status& status) {
  return Annotate(
      "the settings that can change now do not go with those that need a restart; restart the "
      "process to change all of them",
      status);
}

void ConfigReload::Finish(const absl::Status& status, LogLevel log_level) {
  if (!status.ok()) {
    LogLine(has_file() ? LogLevel::kError : LogLevel::kWarning, "settings_not_reloaded",
            {{"reason", status.message()}});
    return;
  }
  // A lower level is set before the lines about the change, a higher one after them.
  if (!IsLogged(log_level)) SetLogLevel(log_level);
  size_t changed = 0;
  for (const Change& change : changes_) {
    if (change.needs_restart) {
      LogWarning("setting_not_changed", {{"name", change.name},
                                         {"before", change.before},
                                         {"after", change.after},
                                         {"reason", "needs a restart"}});
      continue;
    }
    ++changed;
    LogInfo("setting_changed",
            {{"name", change.name}, {"before", change.before}, {"after", change.after}});
    for (auto& [name, value] : in_use_) {
      if (name == change.name) value = change.after;
    }
  }
  LogInfo("settings_reloaded", {{"changed", changed}, {"need_restart", changes_.size() - changed}});
  SetLogLevel(log_level);
  changes_.clear();
}

}  // namespace covey
