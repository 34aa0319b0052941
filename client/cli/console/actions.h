// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/runtime/config_file.h"

namespace covey::cli {

// For commands whose first word names what is to be done: covey certificates issue. Pure.

// Which actions take a flag: {"days", "init, issue, rotate"}.
struct FlagUse {
  absl::string_view flag;
  absl::string_view actions;
};

// The action that the first word names. INVALID_ARGUMENT: none. `how`: what a user may write.
template <typename Action, size_t N>
absl::StatusOr<Action> FindAction(const std::vector<std::string>& words,
                                  const std::pair<absl::string_view, Action> (&actions)[N],
                                  absl::string_view how) {
  if (words.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("what is to be done? ", how));
  }
  for (const auto& [name, action] : actions) {
    if (name == words[0]) return action;
  }
  return absl::InvalidArgumentError(absl::StrCat("nothing named '", words[0], "'; ", how));
}

// INVALID_ARGUMENT: a flag was given that this action does not take.
inline absl::Status CheckFlags(const ConfigFile& options, absl::string_view action,
                               std::span<const FlagUse> uses) {
  for (const auto& [flag, actions] : uses) {
    if (absl::StartsWith(options.OriginOf(flag), "flag") && !absl::StrContains(actions, action)) {
      return absl::InvalidArgumentError(
          absl::StrCat(action, " takes no --", flag, "; only ", actions, " does"));
    }
  }
  return absl::OkStatus();
}

}  // namespace covey::cli
