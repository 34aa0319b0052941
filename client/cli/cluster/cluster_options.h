// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/runtime/config_file.h"

namespace covey::cli {

// What `covey cluster` is to do.
struct ClusterOptions {
  enum class Action { kUp, kStatus, kDown, kLogs };

  Action action = Action::kStatus;
  // HOSTS.yaml.
  std::string file;
  // Of logs: the processes; none = all.
  std::vector<std::string> names;
  // Of up.
  bool dry_run = false;
  // Of down: until the processes of a role have ended.
  absl::Duration deadline = absl::Minutes(1);
  bool kill = false;
  // Of logs.
  bool follow = false;
  uint32_t lines = 20;
  // Of status.
  bool json = false;

  // This outlives `options`.
  void AddTo(ConfigFile& options);
  // After `options` is loaded: takes its words, and checks that everything fits the action.
  // INVALID_ARGUMENT: what is wrong, and what to write.
  absl::Status Check(const ConfigFile& options);

 private:
  std::vector<std::string> words_;
};

}  // namespace covey::cli
