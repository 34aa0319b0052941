// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/chaos/verdict.h"
#include "client/cli/run/launch_plan.h"

namespace covey::cli {

// What an experiment needs from whoever runs it.
struct Laboratory {
  LocalPaths binaries;
  // The program of the workers, for those experiments that have some.
  std::string worker_binary;
  // A line for whoever waits.
  std::function<void(absl::string_view)> say;
};

// Each starts a cluster of its own on this machine, lets it work, breaks something while it does,
// and measures what that does to the rest. They block for less than a minute. An error: the
// experiment could not be made; what was broken is no error, it is in the verdict.

// One of three servers is killed while pushes go to shards of all.
absl::StatusOr<Verdict> KillServer(const Laboratory& laboratory);
// One of three servers is cut off from the scheduler and from whoever asks it, while pushes go to
// shards of all; later it is back.
absl::StatusOr<Verdict> PartitionServer(const Laboratory& laboratory);
// The scheduler is killed, and started again later, several times, while pushes go on.
absl::StatusOr<Verdict> RestartScheduler(const Laboratory& laboratory);
// One of the members of one of three groups stands still.
absl::StatusOr<Verdict> FreezeWorker(const Laboratory& laboratory);
// One of three groups dies.
absl::StatusOr<Verdict> KillGroup(const Laboratory& laboratory);

}  // namespace covey::cli
