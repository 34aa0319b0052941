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

// What can go wrong. A fault file (fault_file.h) writes these names with dashes:
// "one-way-partition".
enum class FaultKind {
  // A process.
  kKill,     // ends at once, without a farewell; after `duration` a new one is started
  kStop,     // is frozen, then goes on as if nothing had happened
  kHang,     // one of its data loops is frozen, and its other threads go on
  kSlow,     // everything that it does takes `factor` times as long
  kRestart,  // once: ends at once if it runs, and a new one is started
  // Messages between processes.
  kPartition,        // no message between `target` and `other`
  kOneWayPartition,  // no message from `target` to `other`; the other direction works
  kIsolate,          // no message between `target` and any other node
  kClog,             // messages from `target` to `other` are held, and arrive when the fault ends
  kDisconnect,       // once: every connection between `target` and `other` breaks
  // Packets that `target` sends, to `other` or, without one, to any node.
  kDelay,      // each packet takes `by` longer
  kJitter,     // each packet takes longer by a random time up to `by`
  kLoss,       // each packet is lost with `chance`
  kDuplicate,  // each packet arrives twice with `chance`
  kCorrupt,    // one bit of each packet is flipped with `chance`
  kRate,       // no more than `bits_per_second`
};

// All nodes, as the target of a kind that concerns sending (kDelay and the following).
inline constexpr absl::string_view kEverybody = "*";

// One thing that goes wrong at a time, and may be put right after a while. A value with the same
// meaning in the simulator and for real processes. `target` and `other` are nodes as `covey status`
// names them: "server-0", "worker-3", "scheduler".
struct Fault {
  // Counted from the start of the plan.
  absl::Duration at;
  // Infinite: the fault is never put right, or its kind happens once.
  absl::Duration duration = absl::InfiniteDuration();
  FaultKind kind = FaultKind::kKill;
  std::string target;

  // Arguments; those that the kind does not use keep these defaults.
  std::string other;
  absl::Duration by;
  double chance = 0;
  double factor = 0;
  uint64_t bits_per_second = 0;
  uint64_t loop = 0;  // from 1; a process without this loop is not affected

  // Line of the fault file, for messages; 0 = not from a file. Not part of the value.
  int line = 0;

  friend bool operator==(const Fault& a, const Fault& b);
};

// In any order of time; see fault_schedule.h.
using FaultPlan = std::vector<Fault>;

// Largest number of faults in one plan.
inline constexpr size_t kFaultsMax = 10'000;

// "one-way-partition". Pure.
absl::string_view FaultKindName(FaultKind kind);
// INVALID_ARGUMENT: no such kind; names the nearest one.
absl::StatusOr<FaultKind> ParseFaultKind(absl::string_view name);
// Of all kinds, in the order of FaultKind.
std::vector<FaultKind> AllFaultKinds();

// Whether a fault of this kind has no duration.
bool HappensOnce(FaultKind kind);
// Whether the kind concerns messages between processes, rather than a process.
bool IsOfNetwork(FaultKind kind);

// INVALID_ARGUMENT: names what is missing, superfluous or out of range for the fault's kind, but
// not the line of the fault.
absl::Status Validate(const Fault& fault);

// INVALID_ARGUMENT: a fault names a node that is not in `names`; the message has the line and the
// nearest name. Precondition: `names` is not empty.
absl::Status ValidateNames(const FaultPlan& plan, const std::vector<std::string>& names);

}  // namespace covey
