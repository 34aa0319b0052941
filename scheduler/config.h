// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/cluster/job_durability.h"
#include "common/grouping/stragglers/straggler_options.h"
#include "common/grouping/stragglers/straggler_rung.h"
#include "common/runtime/process_priority.h"
#include "common/security/identity.h"
#include "scheduler/groups/groups_options.h"
#include "scheduler/nodes/membership_options.h"
#include "scheduler/placement/chains_options.h"
#include "scheduler/snapshots/snapshots_options.h"
#include "scheduler/state/job_spec.h"

namespace covey {
class TraceSource;
}

namespace covey::scheduler {

// The operator's configuration of a scheduler, flat like its flags. A plain value. State machines
// do not use it: each gets its own options.
struct Config {
  // JobSpec.
  std::string job_name = JobSpec().name;
  uint32_t servers = JobSpec().servers;
  uint32_t groups = JobSpec().groups;
  uint32_t workers_per_group = JobSpec().workers_per_group;
  bool plans_groups = JobSpec().plans_groups;
  bool elastic = JobSpec().elastic;
  JobDurability durability = JobSpec().durability;
  // MembershipOptions.
  absl::Duration heartbeat = MembershipOptions().heartbeat;
  absl::Duration silence_min = MembershipOptions().silence_min;
  absl::Duration restart_grace = MembershipOptions().restart_grace;
  absl::Duration lease = MembershipOptions().lease;
  std::string own_host;  // not a flag
  // GroupsOptions.
  absl::Duration placement_wait = GroupsOptions().placement_wait;
  absl::Duration regroup_after = GroupsOptions().regroup_after;
  // ChainsOptions.
  absl::Duration replacement_wait = ChainsOptions().replacement_wait;
  OnLoss on_loss = ChainsOptions().on_loss;
  // Rungs above kShift change which workers take part in a step. They are for programs that count
  // steps as the group does (worker/hybrid_step.h).
  StragglerOptions stragglers = {.highest = StragglerRung::kShift};
  // Tables whose momentum asynchrony raises above their target become buffered.
  bool contract_fallback = true;

  // SnapshotsOptions.
  std::string store;  // the folder of the store; empty = none
  absl::Duration snapshot_every = SnapshotsOptions().every;
  uint64_t snapshot_every_samples = SnapshotsOptions().every_samples;
  uint32_t snapshots_kept = SnapshotsOptions().kept;
  absl::Duration snapshot_deadline = SnapshotsOptions().deadline;
  // JobSpec, where there is a store. A step in 100 in float32 adds 3 % to the bytes of int8.
  uint64_t feedback_flush_steps = 100;

  // Settings of the process, which main reads.
  // The snapshot that a new job continues: "latest", its id or the name of its folder; "if-any" =
  // the latest, or none where there is none. Empty = none.
  std::string resume;
  // With which the tables of a new job begin: "SNAPSHOT[,TABLE...]". Empty = their initializers.
  std::string initial_values;
  std::string host = "127.0.0.1";
  // The folder of this process's key and certificate, and of the roots that it trusts
  // (common/security/node_credentials.h). Empty = none: then the scheduler's calls and the data
  // plane are open to everybody who reaches them.
  std::string tls;
  // Listens at an address beyond this host although `tls` is empty.
  bool insecure = false;
  // kLow: other processes of the host come first.
  ProcessPriority priority = ProcessPriority::kNormal;
  // Of the lines of its log.
  LogLevel log_level = LogLevel::kInfo;
  // 0 = any free port.
  uint32_t port = 0;
  // The chosen port is written here, atomically. Empty = nowhere.
  std::string port_file;
  // After a signal, how long the scheduler goes on at most while servers leave, too, and their
  // content goes into a snapshot.
  absl::Duration drain_deadline = absl::Seconds(30);
  // The durable log. Empty = none: the job is lost at a restart.
  std::string log_file;
  // SnapshotsOptions.
  absl::Duration wall_clock_ahead = absl::ZeroDuration();
  // JobSpec. A random number of each process.
  uint64_t run = 0;
  // That of this scheduler's certificate: callers must show theirs, and do only what the table of
  // rights allows. Absent = they show none, and may do everything.
  std::optional<Identity> identity;
  // Of this process; null = it records nothing of its own in traces. Outlives the scheduler.
  TraceSource* trace = nullptr;

  uint32_t workers() const { return groups * workers_per_group; }

  JobSpec job() const;
  MembershipOptions membership_options() const;
  GroupsOptions groups_options() const;
  ChainsOptions chains_options() const;
  SnapshotsOptions snapshots_options() const;

  // `snapshot_every` and `snapshot_every_samples` as text: "10min", "1e6samples" or both with a
  // comma between. INVALID_ARGUMENT: it is something else.
  absl::Status SetSnapshotEvery(absl::string_view text);
  std::string SnapshotEvery() const;
  // `durability` as text. INVALID_ARGUMENT: it is something else.
  absl::Status SetDurability(absl::string_view text);

  // INVALID_ARGUMENT: names the setting, its value and the allowed range.
  absl::Status Validate() const;
};

}  // namespace covey::scheduler
