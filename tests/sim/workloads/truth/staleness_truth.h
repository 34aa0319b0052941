// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"
#include "tests/sim/workloads/truth/counted_samples.h"
#include "tests/sim/workloads/truth/given_gradients.h"
#include "tests/sim/workloads/truth/monotonic_reads.h"
#include "tests/sim/workloads/truth/read_bounds.h"
#include "tests/sim/workloads/truth/step_elements.h"
#include "tests/sim/workloads/truth/step_fates.h"

namespace covey::sim {

// Checks replies to readers against the steps in their values. Every step of every group owns one
// element of each shard and adds to it, so the values show which steps they contain.
//
// Invariants, for every reply with values:
//  - no step is in twice. Where pushes are averaged, an element holds its share of one update. A
//    gradient that was given for this step and reported under no other may have its share of
//    another step's update;
//  - the clock vector names exactly the highest step of each group that is in, was too stale, or
//    had no gradient;
//  - those of ReadBounds, StepFates, CountedSamples and MonotonicReads.
//
// Actor-confined.
class StalenessTruth : public Observer {
 public:
  struct Options {
    // Of each group, see StepElements.
    uint64_t steps = 0;
    // Some contract of the run combines several pushes into one update.
    bool averages = false;
    // Such an update weights pushes by samples, and the pushes differ in their samples.
    bool uneven = false;
    // Gradients travel in a format that rounds them.
    bool rounded = false;
    // Some contract of the run does not apply pushes that are too stale.
    bool discards = false;
    // The gradients that each step may have; outlives this. Null: one for each step in which a
    // group pushes.
    const GivenGradients* given = nullptr;
  };
  StalenessTruth(Violations& violations, const Options& options);

  void OnSend(absl::Time now, const Message& message) override;
  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;

  // See StepFates.
  void GaveUp(GroupId group, Step step) { fates_.GaveUp(group, step); }
  bool HistoryWasLost() const { return fates_.HistoryWasLost(); }
  // See StepElements.
  uint64_t PositionOf(GroupId group) const { return elements_.PositionOf(group); }
  uint64_t ElementOf(GroupId group, Step step) const {
    return elements_.ElementOf(group, step.value());
  }
  uint64_t reads() const { return reads_; }

 private:
  void NoteView(const proto::ClusterView& view);
  // False: a violation.
  bool CheckElements(const ShardReply& reply);
  // Whether a step that was applied exactly once can result in this value.
  bool IsOnce(float value, const GivenGradients::Place& place) const;
  void CheckClocks(const ShardReply& reply);

  Violations& violations_;
  const Options options_;
  StepElements elements_;
  StepFates fates_;
  ReadBounds bounds_;
  CountedSamples samples_;
  MonotonicReads monotonic_;
  uint64_t epoch_ = 0;
  uint64_t reads_ = 0;
};

}  // namespace covey::sim
