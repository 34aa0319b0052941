// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// An event of a process during a run, and its consequence.
struct Incident {
  // Since the run began.
  double seconds = 0;
  // "server-0".
  std::string node;
  // One line: "killed by signal 9 (Killed)".
  std::string what;
};

// The losses of a run, in numbers.
struct RunLosses {
  // Processes that ended without having been told to.
  uint32_t died = 0;
  uint32_t drained = 0;
  // Shards that were taken over after their server died; the longest time from such a death until
  // the scheduler had promoted other servers, in seconds.
  uint32_t failovers = 0;
  double failover_seconds = 0;
  // Shards that moved to another server while theirs was alive.
  uint32_t moved = 0;
  // Shards whose content was lost because no replica was left.
  uint32_t lost = 0;
  // Steps that a group retried because a member had died, of the group with the most; the longest
  // time that one took, in seconds.
  uint64_t recoveries = 0;
  double recovery_seconds = 0;

  bool none() const { return died + drained + failovers + moved + lost + recoveries == 0; }
};

// Watches a run for incidents: exits that the launcher sees, and successive status replies of the
// scheduler. Pure; time is an argument.
class RunIncidents {
 public:
  static constexpr size_t kIncidentsMax = 1000;

  // A process ended without having been told to.
  void Died(double seconds, absl::string_view node, absl::string_view how);
  // Records any other incident.
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
  std::map<uint64_t, uint64_t> recoveries_;  // by node, the most that it reported
  // By group: how often it re-formed after a death, and the last generation in which it did.
  struct Recovered {
    uint64_t count = 0;
    uint64_t generation = 0;
  };
  std::map<uint32_t, Recovered> recovered_;
};

}  // namespace covey::cli
