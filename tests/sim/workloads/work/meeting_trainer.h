// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/cluster/ids.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/work/recall_wait.h"
#include "tests/sim/workloads/work/work_plan.h"

namespace covey::sim {

// A member of a group that meets the others at the end of each pass, as worker::DataSource does
// with kMeet; its steps are left out. A worker that stays without a group trains alone, so that the
// passes end; one that the scheduler counts as a member waits until it knows, as a real program,
// which makes no step outside a group.
//
//   asks for its pass ─▶ trains ─▶ the pass is finished ─▶ meets ─▶ names the next pass ─▶ trains
//
// Actor-confined. Everything that the constructor gets outlives it.
class MeetingTrainer : public Script {
 public:
  struct Options {
    const WorkPlan& plan;
    WorkProgress& progress;
    Violations& violations;
    // Whether the scheduler counts the node as a member of a group.
    std::function<bool(NodeId)> is_member;
  };
  MeetingTrainer(const Options& options, Random random)
      : plan_(options.plan),
        progress_(options.progress),
        violations_(options.violations),
        is_member_(options.is_member),
        random_(random),
        slowness_(plan_.DrawSlowness(random_)) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
  absl::Time NextWake() const override {
    return done_ || under_way_ ? absl::InfiniteFuture() : next_;
  }
  bool done() const override { return done_; }

 private:
  bool is_over() const { return passes_finished_ > *pass_; }
  // The item at the front was trained, or is returned.
  void Train(absl::Time now);
  void HeedRecalls(absl::Time now, client::ClientActor& client, Outbox& outbox);
  // Asks for the pass; or reports, and asks for at most `wanted` items.
  void Ask(absl::Time now, uint32_t wanted, client::ClientActor& client, Outbox& outbox);
  void Answered(absl::Time now, const absl::Status& status, const proto::Envelope* reply);
  void Meet(absl::Time now, const proto::Group& group, client::ClientActor& client, Outbox& outbox);
  void EndPass(absl::Time now);

  const WorkPlan& plan_;
  WorkProgress& progress_;
  Violations& violations_;
  const std::function<bool(NodeId)> is_member_;
  Random random_;
  const double slowness_;
  RecallWait recall_;
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
