// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/ids.h"
#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/straggler_options.h"
#include "common/grouping/stragglers/worker_pace.h"

namespace covey {

// Tells from the reports of workers which of them are stragglers, and which have hiccups. Owned by
// the StragglerLadder, which decides what to do about them.
//
//   steady ── slow_reports in a row above slow_ratio ──────────────▶ straggler
//      ▲─── recovered_reports in a row below recovered_ratio ────────────┘
//
// A member is compared with the median of its group. Actor-confined. Deterministic.
class StragglerJudge {
 public:
  explicit StragglerJudge(const StragglerOptions& options) : options_(options) {}

  // From the next report on. How a pace is measured changes for workers that are new.
  void SetOptions(const StragglerOptions& options) { options_ = options; }

  // Handles a worker's newest report.
  void Add(NodeId worker, const PaceReport& report);
  // Compares a member that has reported with its group. O(size of the group).
  void Compare(NodeId member, const GroupInForce& group);
  // The group has other members than before: all of them are steady again. Their paces are kept.
  void Reset(const GroupInForce& group);
  void Forget(NodeId worker);

  // Preconditions of the following four: the worker has reported.
  const WorkerPace& PaceOf(NodeId worker) const { return workers_.at(worker).pace; }
  bool IsStraggler(NodeId worker) const { return workers_.at(worker).straggler; }
  // Whether it has been close to the median for recovered_reports.
  bool HasRecovered(NodeId worker) const;
  // Whether more than hiccups_max of its reports have a hiccup.
  bool HasHiccups(NodeId worker) const;

  // The paces of members whose pace is known, in the order of the group.
  std::vector<const WorkerPace*> KnownPaces(const GroupInForce& group) const;

  enum class State { kLearning, kSteady, kStraggler, kHiccups };
  struct Standing {
    State state = State::kLearning;
    double seconds_per_sample = 0;
    double slowness = 0;  // times the median of its group; 0 = not known
  };
  // Nothing for a worker without reports.
  std::optional<Standing> StandingOf(NodeId worker) const;
  // "worker-3 takes 4.2 ms per sample, 2.10x its group's median". Precondition: it has reported.
  std::string Describe(const GroupMember& member) const;

 private:
  struct Judgment {
    WorkerPace pace;
    double slowness = 0;
    size_t slow = 0;       // reports in a row above slow_ratio
    size_t recovered = 0;  // below recovered_ratio
    bool straggler = false;
  };

  bool HasHiccups(const WorkerPace& pace) const;

  StragglerOptions options_;
  std::map<NodeId, Judgment> workers_;
};

}  // namespace covey
