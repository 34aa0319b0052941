// SPDX-License-Identifier: Apache-2.0
#include "server/replica_reports.h"

#include <memory>

#include "gtest/gtest.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

constexpr absl::Time kNow = absl::UnixEpoch();

class ReplicaReportsTest : public testing::Test {
 protected:
  void Add(proto::ReplicaReport::Kind kind, uint64_t generation = kTestGeneration) {
    proto::ReplicaReportRequest request;
    proto::ReplicaReport& report = *request.add_reports();
    report.set_table(kTestTable);
    report.set_generation(generation);
    report.set_chain_epoch(1);
    report.set_node(kTestServer.value());
    report.set_kind(kind);
    reports_.Add(kNow, request);
  }
  void SetChainEpoch(uint64_t epoch) {
    job_.view.mutable_tables(0)->mutable_shards(0)->set_chain_epoch(epoch);
  }
  void SetRestore(uint64_t restore) { job_.view.mutable_tables(0)->set_restore(restore); }
  // How many are left after this view.
  size_t Follow() {
    reports_.FollowView(**ClusterView::Make(job_.view));
    return reports_.size();
  }

  TestJob job_{{.kind = Contract::Kind::kAsync}, 0};
  uint64_t next_request_ = 1;
  ReplicaReports reports_{next_request_};
};

TEST_F(ReplicaReportsTest, AreRepeatedUntilTheChainChanges) {
  SetChainEpoch(1);
  Add(proto::ReplicaReport::UNFIT);
  EXPECT_EQ(Follow(), 1u);
  SetChainEpoch(2);
  EXPECT_EQ(Follow(), 0u);
}

TEST_F(ReplicaReportsTest, OfALoadedReplicaAreRepeatedWhileTheTableIsRestored) {
  SetChainEpoch(1);
  SetRestore(7);
  Add(proto::ReplicaReport::LOADED);
  SetChainEpoch(2);
  EXPECT_EQ(Follow(), 1u) << "another member has left, and the scheduler may not know this one";
  SetRestore(0);
  EXPECT_EQ(Follow(), 0u);
}

TEST_F(ReplicaReportsTest, OfAnotherGenerationMeanNothing) {
  SetRestore(7);
  Add(proto::ReplicaReport::LOADED, kTestGeneration - 1);
  EXPECT_EQ(Follow(), 0u);
}

}  // namespace
}  // namespace covey::server
