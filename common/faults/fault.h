// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey {

// What can go wrong. The names of files (fault_file.h) are these with dashes: "one-way-partition".
enum class FaultKind {
  // A process.
  kKill,     // ends at once, without a word; after `duration` it is started again, as a new one
  kStop,     // stands still, then goes on as if nothing had happened
  kSlow,     // everything that it does takes `factor` times as long
  kRestart,  // once: ends at once if it lives, and is started, as a new one
  // What passes between processes.
  kPartition,        // nothing between `target` and `other`
  kOneWayPartition,  // nothing from `target` to `other`; the way back is open
  kIsolate,          // nothing between `target` and anybody else
  kClog,             // what `target` sends to `other` waits, and arrives when it is over
  kDisconnect,       // once: every connection between `target` and `other` breaks
  // What `target` sends, to `other` or, without one, to anybody.
  kDelay,      // takes longer `by`
  kJitter,     // takes longer by anything up to `by`
  kLoss,       // each packet is lost with `chance`
  kDuplicate,  // each packet arrives twice with `chance`
  kCorrupt,    // one bit of each packet is flipped with `chance`
  kRate,       // no more than `bits_per_second`
};

// Everybody, as the target of what concerns sending (kDelay and the following).
inline constexpr absl::string_view kEverybody = "*";

// One thing that goes wrong at a time, and is put right again after a while. A value, meant alike
// for the simulator and for real processes. `target` and `other` are nodes as `covey status` names
// them: "server-0", "worker-3", "scheduler".
struct Fault {
  // Since the beginning of the plan.
  absl::Duration at;
  // Infinite: nobody puts it right, or its kind happens once.
  absl::Duration duration = absl::InfiniteDuration();
  FaultKind kind = FaultKind::kKill;
  std::string target;

  // Arguments: what the kind does not use stays as it is here.
  std::string other;
  absl::Duration by;
  double chance = 0;
  double factor = 0;
  uint64_t bits_per_second = 0;

  // Of the file that it came from, for messages; 0 = from none. Not part of the value.
  int line = 0;

  friend bool operator==(const Fault& a, const Fault& b);
};

// In any order of time; see fault_schedule.h.
using FaultPlan = std::vector<Fault>;

// Everything that a program reads in one plan.
inline constexpr size_t kFaultsMax = 10'000;

// "one-way-partition". Pure.
absl::string_view FaultKindName(FaultKind kind);
// INVALID_ARGUMENT: no such kind; names the nearest one.
absl::StatusOr<FaultKind> ParseFaultKind(absl::string_view name);
// Of all kinds, in the order of FaultKind.
std::vector<FaultKind> AllFaultKinds();

// Whether the fault is over by itself as soon as it has happened.
bool HappensOnce(FaultKind kind);
// Whether the kind concerns what passes between processes, not a process.
bool IsOfNetwork(FaultKind kind);

// INVALID_ARGUMENT: what is missing, superfluous or out of range for the fault's kind; says nothing
// of where the fault stands.
absl::Status Validate(const Fault& fault);

// INVALID_ARGUMENT: a fault is about a node that is none of `names`; names the line and the nearest
// one. Precondition: `names` is not empty.
absl::Status ValidateNames(const FaultPlan& plan, const std::vector<std::string>& names);

}  // namespace covey
