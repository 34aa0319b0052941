// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// Something that happened to a process during a run, and what came of it.
struct Incident {
  // Since the run began.
  double seconds = 0;
  // "server-0".
  std::string node;
  // One line: "killed by signal 9 (Killed)".
  std::string what;
};

// What a run went through, in numbers.
struct RunLosses {
  // Processes that ended without having been told to.
  uint32_t died = 0;
  uint32_t drained = 0;
  // Shards that another server took over when theirs died; the longest time from such a death until
  // the scheduler had promoted others, seconds.
  uint32_t failovers = 0;
  double failover_seconds = 0;
  // Shards that went to another server while theirs was alive.
  uint32_t moved = 0;
  // Shards whose content was lost: no replica was left.
  uint32_t lost = 0;
  // Steps that a group did again because a member had died, of the group that did most; the longest
  // time one took, seconds.
  uint64_t recoveries = 0;
  double recovery_seconds = 0;

  bool none() const { return died + drained + failovers + moved + lost + recoveries == 0; }
};

// Follows a run for what goes wrong: exits as the launcher sees them, and one status of the
// scheduler after the other. Pure; time is an argument.
class RunIncidents {
 public:
  static constexpr size_t kIncidentsMax = 1000;

  // A process ended without having been told to.
  void Died(double seconds, absl::string_view node, absl::string_view how);
  // Anything else that is worth a line.
  void Note(double seconds, absl::string_view node, absl::string_view what);
  // `status` holds only events that earlier ones did not.
  void See(double seconds, const proto::StatusReply& status);

  // Oldest first.
  const std::vector<Incident>& incidents() const { return incidents_; }
  const RunLosses& losses() const { return losses_; }

 private:
  void SeeNodes(double seconds, const proto::StatusReply& status);
  void SeeShards(double seconds, const proto::StatusReply& status);

  std::vector<Incident> incidents_;
  RunLosses losses_;
  std::map<std::string, double> died_at_;  // by name, newest
  std::map<uint64_t, double> found_dead_;  // by node, when the scheduler found out
  proto::ClusterView last_;
  std::map<uint64_t, uint64_t> recoveries_;  // by node, the most it has told
  // By group: how often it has formed again after a death, and the generation of the last time.
  struct Recovered {
    uint64_t count = 0;
    uint64_t generation = 0;
  };
  std::map<uint32_t, Recovered> recovered_;
};

}  // namespace covey::cli
