#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/grouping/straggler_ladder.h"

namespace covey::scheduler {

// What a person says to a scheduler. A value; the simulator uses the first part only.
struct Config {
  // The job: the actor reads these.
  std::string job_name = "default";
  uint32_t servers = 1;
  uint32_t groups = 1;
  uint32_t workers_per_group = 1;
  absl::Duration heartbeat = absl::Milliseconds(500);
  // Nobody is declared dead after less silence than this.
  absl::Duration silence_min = absl::Milliseconds(2500);
  // How long after a restart the nodes of the recovered view have to be heard again.
  absl::Duration restart_grace = absl::Seconds(10);
  // Servers and workers beyond those expected are taken in, and workers that come after the groups
  // have formed are placed; else they are refused.
  bool elastic = true;
  // So long a late worker waits for others to make a group with, before it joins one.
  absl::Duration placement_wait = absl::Seconds(10);
  // So long shards whose last server is gone wait for one of the same rank; then others begin them
  // anew. Longer: a restarted server finds its shards in place; shorter: their users wait less.
  absl::Duration replacement_wait = absl::Seconds(10);
  // A server that alone holds a shard stops serving it so long after it has last heard of the
  // scheduler; and the shard begins anew elsewhere only then, unless the server's process is known
  // to be gone. 0 = it serves on, and may do so beside its successor.
  absl::Duration lease = absl::Seconds(30);
  // So long after a member left, its group re-forms without it. Below the time that members wait
  // for one that has left (2 s), above that in which all leave when training is over.
  absl::Duration regroup_after = absl::Seconds(1);
  // Beyond shares, the ladder changes what a step is made of, or who takes it: for programs that
  // count steps as the group does (worker/hybrid_step.h).
  StragglerLadder::Options stragglers = {.highest = StragglerRung::kShift};
  // Tables whose momentum asynchrony raises above what they ask for become buffered.
  bool contract_fallback = true;

  // The process: main reads these.
  std::string host = "127.0.0.1";
  // 0 = any free one.
  uint32_t port = 0;
  // The chosen port is written here, atomically. Empty = nowhere.
  std::string port_file;
  // The durable log. Empty = none: a restart forgets the job.
  std::string log_file;

  uint32_t workers() const { return groups * workers_per_group; }

  // INVALID_ARGUMENT: names the setting, its value and what is allowed.
  absl::Status Validate() const;
};

}  // namespace covey::scheduler
