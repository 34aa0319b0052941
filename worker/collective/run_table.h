// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "worker/collective/collective.h"
#include "worker/collective/collective_run.h"

namespace covey::worker {

// The collectives that are under way on one member, and when their callbacks run:
//
//   under way ── the result is in place: `arrived` ──▶ arrived ── no frames out: `done` ──▶ gone
//       │                                                 │
//       └── AbandonAll, FailAll ──▶ waits for its frames ◀┘ ── no frames out: `done` ──▶ gone
//
// A run that is abandoned has no id any more: the next round may use the id again. Its number stays
// its own. Actor-confined. Deterministic: callbacks run in the order of changes.
class RunTable {
 public:
  ~RunTable();

  // A new collective; its number is above all before it.
  CollectiveRun& Add(Collective collective, std::shared_ptr<const Plan> plan,
                     const CollectiveRun::Options& options);
  // Those that neither have ended nor wait for their frames only; nullptr: there is none.
  CollectiveRun* Find(const CollectiveId& id) const;
  CollectiveRun* Find(uint64_t number) const;
  // As CollectiveRun::Take.
  absl::Status Take(CollectiveRun& run, const Message& slice);
  // The callbacks of the run may be due.
  void Changed(const CollectiveRun& run) { changed_.push_back(run.number()); }
  // The transport holds one frame of the run less.
  void Released(uint64_t number);

  // Ends all: those that have not arrived with `status`, when their callbacks run.
  void AbandonAll(const absl::Status& status);
  // The same, for good.
  void FailAll(const absl::Status& status);
  const absl::Status& failure() const { return failure_; }
  // Why those that were abandoned last have ended.
  const absl::Status& stopped() const { return stopped_; }
  // Runs the callbacks that are due. They may add collectives, and call this again. `took`: how
  // long a collective has taken that has arrived.
  void RunCallbacks(absl::Time now, absl::FunctionRef<void(absl::Duration)> took, Outbox& outbox);

  // Not abandoned, not done.
  size_t size() const { return runs_.size() - abandoned_; }
  // Of slices that came too soon to be added.
  size_t waiting_bytes() const { return waiting_bytes_; }
  absl::Time deadline() const;
  // The first run whose deadline has passed and that waits for other members; else the first whose
  // deadline has passed; nullptr: none.
  const CollectiveRun* Overdue(absl::Time now) const;
  void BoundDeadlines(absl::Time latest);
  // The members whose slices are missing.
  std::set<uint32_t> WaitsFor() const;
  // For PlantedBug::kPartialSumAsSuccess only.
  void TellPartialSums(absl::Time now, Outbox& outbox);

 private:
  std::map<uint64_t, std::unique_ptr<CollectiveRun>> runs_;  // by number
  std::map<CollectiveId, uint64_t> numbers_;                 // of runs that are not abandoned
  std::deque<uint64_t> changed_;                             // numbers whose callbacks may be due
  uint64_t last_number_ = 0;
  size_t abandoned_ = 0;
  size_t waiting_bytes_ = 0;
  absl::Status failure_;
  absl::Status stopped_;
};

}  // namespace covey::worker
