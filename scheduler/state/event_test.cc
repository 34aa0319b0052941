// SPDX-License-Identifier: Apache-2.0
#include "scheduler/state/event.h"

#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

TEST(EventTest, SentencesNameTheCauseAndTheConsequences) {
  EXPECT_EQ(Describe({NodeDied{.description = "worker-1 (node 5)", .evidence = "silent for 2.6 s"},
                      GroupRecovers{
                          .group = GroupId(2), .dead = "worker-1", .generation = 3, .members = 2}}),
            "worker-1 (node 5) dead: silent for 2.6 s; group 2 goes on at once without worker-1 as "
            "generation 3 of 2 members");
}

TEST(EventTest, ShardsAreCountedByWhatHappenedToThem) {
  ShardsReconciled event;
  event.shards[{
      .kind = ShardChange::Kind::kReinitializedLost, .node = "server-1", .from = "node 4"}] = 3;
  event.shards[{.kind = ShardChange::Kind::kJoining, .node = "server-2", .from = ""}] = 1;
  EXPECT_EQ(Describe(Event(event)),
            "shards: 1 joining on server-2, 3 lost with node 4, re-initialized on server-1");
}

TEST(EventTest, EvidenceIsOptional) {
  EXPECT_EQ(Describe(Event(NodeLeft{.description = "worker-1", .reason = ""})), "worker-1 left");
  EXPECT_EQ(Describe(Event(NodeLeft{.description = "worker-1", .reason = "done"})),
            "worker-1 left: done");
}

TEST(EventTest, MovesSayWhereFromAndWhereTo) {
  EXPECT_EQ(Describe(Event(WorkerMoved{.worker = "worker-0",
                                       .from = GroupId(),
                                       .to = GroupId(1),
                                       .generation = 3,
                                       .evidence = "may try again"})),
            "worker-0 leaves standby for group 1, now of generation 3: may try again");
  EXPECT_EQ(Describe(Event(
                WorkerMoved{.worker = "worker-0", .from = GroupId(1), .evidence = "too slow"})),
            "worker-0 leaves group 1: too slow");
}

TEST(EventTest, MeasuredRacksNameTheirWorkersAndHowFarTheyAre) {
  RacksMeasured event{.racks = {{"worker-0", "worker-2"}, {"worker-1", "worker-3"}},
                      .inside = absl::Microseconds(212),
                      .between = absl::Microseconds(2100)};
  EXPECT_EQ(Describe(Event(event)),
            "2 racks measured: worker-0, worker-2 | worker-1, worker-3; 0.21 ms inside, 2.1 ms "
            "between");
  event.racks[1].assign(10, "w");
  EXPECT_EQ(Describe(Event(event)),
            "2 racks measured: worker-0, worker-2 | w, w, w, w, w, w, w, w and 2 more; 0.21 ms "
            "inside, 2.1 ms between");
}

TEST(EventTest, QuarantinesNameTheirProducer) {
  EXPECT_EQ(Describe(Event(ProducerQuarantined{.producer = "group-3", .why = "8 wild pushes"})),
            "group-3 quarantined: 8 wild pushes");
  EXPECT_EQ(Describe(Event(ProducerReleased{.producer = "group-3", .why = "asked by hand"})),
            "group-3 released from quarantine: asked by hand");
  EXPECT_EQ(Describe(Event(QuarantinesEnded{.producers = {"client-0", "group-3"}})),
            "client-0, group-3 have ended in quarantine");
}

}  // namespace
}  // namespace covey::scheduler
