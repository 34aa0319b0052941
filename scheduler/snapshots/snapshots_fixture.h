// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "common/store/store_requests.h"
#include "common/store/testing/memory_folder.h"
#include "gtest/gtest.h"
#include "scheduler/snapshots/snapshots.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/work/data_dispatcher.h"

namespace covey::scheduler {

// The snapshots of a job as SmallSnapshot has it, without training data: two servers with three
// shards, and one group of worker 4, which takes 10 steps of 8 examples per second. The store
// answers at once.
class SnapshotsTest : public ::testing::Test {
 protected:
  static constexpr NodeId kWorker{4};

  SnapshotsTest() : state_(JobSpec{.name = "small"}) {
    state_.record() = SmallSnapshot::Make(1, 42).manifest.state();
    state_.record().clear_work();
    state_.record().clear_barriers();
    options_.every = absl::Minutes(10);
  }

  void Start() {
    machine_.emplace(options_, state_, dispatcher_);
    machine_->Start(now_);
    AnswerStore();
  }

  // Carries out what was asked of the store, and what follows from that.
  virtual void AnswerStore() {
    for (auto requests = machine_->TakeRequests(); !requests.empty();
         requests = machine_->TakeRequests()) {
      for (const Message& request : requests) {
        machine_->OnStoreReply(now_, AnswerStoreRequest(request, store_));
      }
    }
  }

  // The worker trains, with a heartbeat each half second.
  void Pass(absl::Duration time) {
    const absl::Time end = now_ + time;
    while (now_ < end) {
      now_ += absl::Milliseconds(100);
      ++step_;
      if (step_ % 5 == 0) Beat();
      machine_->Tick(now_);
      AnswerStore();
    }
  }
  // Until the next order; at most 20 minutes.
  void PassUntilOrdered() {
    const absl::Time end = now_ + absl::Minutes(20);
    while (!is_ordered() && now_ < end) Pass(absl::Milliseconds(100));
    ASSERT_TRUE(is_ordered());
  }
  void Beat() {
    proto::Progress progress;
    progress.set_step(7);  // since it started
    progress.set_group(1);
    progress.set_group_step(step_);
    progress.set_samples(8 * step_);
    progress.set_view_epoch(state_.view().epoch());
    machine_->OnProgress(now_, kWorker, progress);
  }

  bool is_ordered() const { return state_.view().has_snapshot(); }
  const proto::SnapshotOrder& order() const { return state_.view().snapshot(); }
  std::string folder() const { return order().folder(); }
  // How far ahead of the worker the cut lies.
  uint64_t lead() const { return order().groups(0).step() - step_; }

  proto::SnapshotReportRequest ReportOf(size_t server) const {
    const SmallSnapshot parts = SmallSnapshot::Make(order().id(), order().epoch());
    proto::SnapshotReportRequest report;
    report.set_snapshot(order().id());
    for (const proto::SnapshotShard& shard : parts.manifest.shards()) {
      if (shard.file() == parts.files[server].name) *report.add_shards() = shard;
    }
    *report.add_files() = parts.manifest.files(static_cast<int>(server));
    return report;
  }
  // A server stores its part of the ordered snapshot, and reports it.
  void StorePart(size_t server) {
    const SmallSnapshot parts = SmallSnapshot::Make(order().id(), order().epoch());
    EXPECT_TRUE(parts.WritePart(parts.files[server], store_).ok());
    machine_->OnReport(now_, ReportOf(server));
    AnswerStore();
  }
  void FailPart(const std::string& why) {
    proto::SnapshotReportRequest report;
    report.set_snapshot(order().id());
    report.set_failure(why);
    machine_->OnReport(now_, report);
    AnswerStore();
  }

  // The newest status in `covey status`.
  proto::SnapshotStatus Status() const {
    proto::StatusReply reply;
    machine_->FillStatus(now_, reply);
    return reply.snapshots().empty() ? proto::SnapshotStatus() : *reply.snapshots().rbegin();
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  uint64_t step_ = 0;
  SnapshotsOptions options_{.has_store = true};
  TestState state_;
  MemoryFolder store_;
  DataDispatcher dispatcher_{state_};

  // Made by Start, with the options of the test.
  std::optional<Snapshots> machine_;
};

}  // namespace covey::scheduler
