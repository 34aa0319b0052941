// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/grouping/stragglers/group_efficiency.h"
#include "common/grouping/stragglers/worker_pace.h"

namespace covey {

// How far the ladder may go. Each rung includes those before it.
enum class StragglerRung { kOff, kObserve, kShift, kPartial, kRegroup, kEvict };

// "off", "observe", "shift", "partial", "regroup", "evict". INVALID_ARGUMENT: anything else.
absl::StatusOr<StragglerRung> ParseStragglerRung(absl::string_view text);
absl::string_view StragglerRungName(StragglerRung rung);

// What to do about workers that slow their groups down: pure policy, run by the scheduler on the
// reports in heartbeats, and by the simulator.
//
//   slow for long ────▶ shift samples ──(not enough)──▶ regroup ──(no group fits)──▶ evict
//   late now and then ▶ partial reduce                     └─(neither allowed)─▶ partial reduce
//
// A member is a straggler when its seconds per sample exceed `slow_ratio` x the median of its group
// for `slow_reports` reports. Shares are in proportion to speed, so that all members finish
// together. When the slowest one still holds its group below `efficiency_min` of the summed speed
// of its members (by fixed costs that no share removes), it has to leave. Every decision is undone
// when its cause has gone, by a stricter test than the one that led to it. After each decision a
// group is left alone for `settle_reports` of each member, so that decisions do not oscillate.
//
// The measures in force are an input, not stored here: after a restart of its owner the ladder
// continues from the view. In a group of two, the faster member is the standard. Actor-confined.
// Deterministic.
class StragglerLadder {
 public:
  struct Options {
    StragglerRung highest = StragglerRung::kPartial;
    WorkerPace::Options pace = {};

    // Above noise: the ratio of two averages of sigma 0.3 exceeds 1.5 once in 10^5 reports.
    double slow_ratio = 1.5;
    size_t slow_reports = 5;
    // Lower than slow_ratio, and for longer, so that decisions do not oscillate.
    double recovered_ratio = 1.2;
    size_t recovered_reports = 10;

    // Shares in force change when one of them is wrong by more than this and by more than
    // `share_errors` standard errors of the pace: each change is a decision.
    double share_change_min = 0.05;
    double share_errors = 4;
    // Fraction of an even share. With a smaller share, a member costs more than it contributes.
    double share_min = 0.1;

    // Fraction of a member's reports with a hiccup, above which its group does not wait for it; and
    // the number of reports needed to decide that.
    double hiccups_max = 0.05;
    size_t hiccup_reports_min = 40;
    // Members that a group waits for; 0 = all but the late ones, at least half. And how much longer
    // it waits for the others; 0 = half the usual step.
    uint32_t partial_minimum = 0;
    absl::Duration partial_grace = absl::ZeroDuration();

    // Throughput of a group over the summed speed of its members: the bounds for too low, and for
    // good again.
    double efficiency_min = 0.75;
    double efficiency_good = 0.85;
    // A group gives up its slowest member only if it is this many times faster without it.
    double gain_min = 1.25;
    // A worker fits into a group when its step takes at most this many times as long as the
    // group's.
    double fit_max = 1.25;
    // Groups are never made smaller than this.
    uint32_t group_members_min = 2;
    // An evicted worker computes nothing, so nothing shows that it has recovered: it may try again
    // after this time, which doubles with each further eviction.
    absl::Duration probation = absl::Minutes(5);

    // Reports of each member between two decisions about its group, during which the averages
    // forget the past.
    size_t settle_reports = 10;
  };

  explicit StragglerLadder(const Options& options) : options_(options) {}

  struct Member {
    NodeId node;
    std::string name;
    // The group that it was evicted from; 0 = none.
    GroupId home = GroupId();
  };
  // A group as the view has it.
  struct GroupInForce {
    GroupId id;
    uint64_t generation = 0;
    std::vector<Member> members;
    std::vector<uint32_t> shares = {};  // empty = even
    uint32_t minimum_members = 0;       // 0 = all members are waited for
  };

  struct Action {
    enum class Kind {
      kNotice,         // no change; only with StragglerRung::kObserve
      kShiftSamples,   // `shares`; empty = evenly again
      kPartialReduce,  // `minimum_members`, `grace`; 0 = wait for all members again
      kRegroup,        // `member` goes to group `to`
      kEvict,          // `member` is in no group from now on
    };
    Kind kind;
    GroupId group;  // the group concerned; for kRegroup the one that `member` leaves, 0 = none
    std::vector<uint32_t> shares = {};
    uint32_t minimum_members = 0;
    absl::Duration grace = absl::ZeroDuration();
    NodeId member = NodeId();
    GroupId to = GroupId();
    // The observation, for users: "worker-3 takes 4.2 ms per sample, 2.1x …".
    std::string evidence;
  };

  // Handles a member's newest report. `groups`: all ACTIVE ones; `group`: the reporter's among
  // them, null when it is in none. Returns at most one action, which the caller carries out before
  // the next call. O(size of the group), and O(groups) before a move.
  std::optional<Action> Report(NodeId member, const PaceReport& report, const GroupInForce* group,
                               const std::vector<GroupInForce>& groups);

  // `evicted`: workers in no group whose home is set. Returns those whose probation is over, with
  // the group that they go to; when `home` is not among `groups`, `to` is 0 and the caller chooses.
  std::vector<Action> EndProbation(absl::Time now, const std::vector<GroupInForce>& groups,
                                   const std::vector<Member>& evicted);

  // Removes a node that has departed.
  void Forget(NodeId member);

  enum class State { kLearning, kSteady, kStraggler, kHiccups };
  struct Standing {
    State state = State::kLearning;
    double seconds_per_sample = 0;
    double slowness = 0;  // times the median of its group; 0 = not known
  };
  // Nothing for a worker without reports.
  std::optional<Standing> StandingOf(NodeId member) const;

 private:
  struct Judgement {
    WorkerPace pace;
    double slowness = 0;
    size_t slow = 0;       // reports in a row above slow_ratio
    size_t recovered = 0;  // below recovered_ratio
    bool straggler = false;
    bool noticed = false;  // by a kNotice
    size_t fits_home = 0;  // reports in a row
  };
  struct GroupMemory {
    uint64_t generation = 0;
    size_t reports = 0;  // since the last decision
    size_t poor = 0;     // of the slowest member, in a row, with the efficiency too low
    size_t good = 0;     // of all members, in a row, with it good
  };
  struct Probation {
    absl::Time until = absl::InfinitePast();  // not seen as evicted yet
    uint32_t evictions = 0;
  };

  void Judge(const GroupInForce& group, Judgement& member);
  bool HasHiccups(const WorkerPace& pace) const;
  // The paces of members whose pace is known, in the order of the group.
  std::vector<const WorkerPace*> KnownPaces(const GroupInForce& group) const;

  std::optional<Action> Decide(const GroupInForce& group, const Member& reporter,
                               const std::vector<GroupInForce>& groups, GroupMemory& memory);
  std::optional<Action> Notice(const Member& member);
  std::optional<Action> Shift(const GroupInForce& group) const;
  std::optional<Action> StopWaiting(const GroupInForce& group) const;
  std::optional<Action> WaitAgain(const GroupInForce& group, const GroupMemory& memory) const;
  std::optional<Action> Remove(const GroupInForce& group, const GroupEfficiency& efficiency,
                               const std::vector<GroupInForce>& groups) const;
  std::optional<Action> GoHome(const GroupInForce& group, const Member& member,
                               const std::vector<GroupInForce>& groups);
  Action PartialReduce(const GroupInForce& group, size_t late, std::string evidence) const;
  std::string Describe(const Member& member) const;

  const Options options_;
  std::map<NodeId, Judgement> members_;
  std::map<GroupId, GroupMemory> groups_;
  std::map<NodeId, Probation> probation_;
};

}  // namespace covey
