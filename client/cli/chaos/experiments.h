// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "client/cli/chaos/experiment_context.h"
#include "client/cli/chaos/verdict.h"

namespace covey::cli {

// Each experiment starts a cluster of its own on this machine, injects a fault while the cluster
// works, and measures the effect on the rest. It blocks for less than a minute. An error means that
// the experiment could not be carried out; a broken promise is no error but part of the verdict.

// One of three servers is killed while pushes go to shards of all three.
absl::StatusOr<Verdict> KillServer(const ExperimentContext& context);
// One of three servers is cut off from the scheduler and from its clients, while pushes go to
// shards of all three; later it is reachable again.
absl::StatusOr<Verdict> PartitionServer(const ExperimentContext& context);
// The scheduler is killed and restarted several times, while pushes continue.
absl::StatusOr<Verdict> RestartScheduler(const ExperimentContext& context);
// One member of one of three groups is frozen.
absl::StatusOr<Verdict> FreezeWorker(const ExperimentContext& context);
// One of three groups is killed.
absl::StatusOr<Verdict> KillGroup(const ExperimentContext& context);

}  // namespace covey::cli
