// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/work/work_plan.h"

namespace covey::sim {

// A member of a group that meets the others at the end of each pass, as worker::DataSource does
// with kMeet; its steps are left out. A worker without a group is alone.
//
//   asks for its pass ─▶ trains ─▶ the pass is finished ─▶ meets ─▶ names the next pass ─▶ trains
//
// Actor-confined. Everything that the constructor gets outlives it.
class MeetingTrainer : public Script {
 public:
  MeetingTrainer(const WorkPlan& plan, WorkProgress& progress, Violations& violations,
                 Random random)
      : plan_(plan), progress_(progress), violations_(violations), random_(random) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
  absl::Time NextWake() const override {
    return done_ || under_way_ ? absl::InfiniteFuture() : next_;
  }
  bool done() const override { return done_; }

 private:
  bool is_over() const { return passes_finished_ > *pass_; }
  // The item at the front was trained, or is returned.
  void Train(absl::Time now);
  // Asks for the pass; or reports, and asks for at most `wanted` items.
  void Ask(absl::Time now, uint32_t wanted, client::ClientActor& client, Outbox& outbox);
  void Answered(absl::Time now, const absl::Status& status, const proto::Envelope* reply);
  void Meet(absl::Time now, const proto::Group& group, client::ClientActor& client, Outbox& outbox);
  void EndPass(absl::Time now);

  const WorkPlan& plan_;
  WorkProgress& progress_;
  Violations& violations_;
  Random random_;
  absl::Time born_ = absl::InfiniteFuture();
  absl::Time next_ = absl::InfinitePast();
  bool under_way_ = false;
  bool done_ = false;
  // As in worker/data_source.cc.
  std::optional<uint64_t> pass_;
  uint64_t passes_finished_ = 0;
  uint64_t group_pass_ = 0;
  bool is_new_ = true;
  // The next request is only to name the pass, and to learn that of the group.
  bool names_ = false;
  bool has_paused_ = false;  // since the pass was finished
  std::deque<proto::WorkItem> held_;
  std::vector<proto::WorkItem> finished_;  // not reported yet
  std::vector<proto::WorkItem> returned_;
};

}  // namespace covey::sim
