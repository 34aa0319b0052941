// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "client/cli/scheduler/scheduler_stub.h"

namespace covey::cli {

// Requests the scheduler's status at intervals while a run continues, and once more after its work
// has finished, so that the report is complete.
//
// Confined to one thread.
class StatusFollower {
 public:
  static constexpr absl::Duration kInterval = absl::Milliseconds(500);
  // How long the final status may take.
  static constexpr absl::Duration kFinalMax = absl::Seconds(1);

  // "host:port" of the scheduler.
  explicit StatusFollower(const SchedulerTarget& scheduler) : poller_(scheduler) {}

  // Readable once a reply has arrived.
  int descriptor() const { return poller_.descriptor(); }
  // Hands a reply that has arrived to `take`, and sends the next request when it is due.
  void Follow(absl::Time now, absl::FunctionRef<void(const proto::StatusReply&)> take);
  // Something has happened: the next request is due now.
  void RequestSoon(absl::Time now) { next_ = now; }

  // The work has finished; calls after the first change nothing. True until the final status has
  // arrived, or has taken kFinalMax.
  bool AwaitsFinal(absl::Time now);
  // Whether the final status has arrived or was given up.
  bool had_final() const { return had_final_; }

  // When the final status is given up; absent = it is not awaited.
  std::optional<absl::Time> final_deadline() const;
  // When the next request is due; InfiniteFuture() while one is open.
  absl::Time next_request() const { return poller_.asking() ? absl::InfiniteFuture() : next_; }

 private:
  StatusPoller poller_;
  absl::Time next_ = absl::InfinitePast();
  absl::Time requested_ = absl::InfinitePast();
  std::optional<absl::Time> finished_;  // when the work was
  bool had_final_ = false;
};

}  // namespace covey::cli
