// SPDX-License-Identifier: Apache-2.0
#include "scheduler/state/event.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

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

TEST(EventTest, NoListOfNamesIsLongerThanEight) {
  std::vector<std::string> names;
  for (int rank = 0; rank < 10'000; ++rank) names.push_back(absl::StrCat("worker-", rank));
  const std::string listed =
      "worker-0, worker-1, worker-2, worker-3, worker-4, worker-5, worker-6, worker-7 and 9992 "
      "more";
  const GroupId group(3);
  for (const Event& event : std::vector<Event>{
           JobScaled{.workers = 1, .why = "x", .draining = names},
           LateGroupFormed{.group = group, .members = names, .first_step = 7},
           GroupGrew{.group = group, .joined = names, .generation = 2, .members = 10'001},
           GroupContinuesWithoutLeavers{.group = group, .left = names, .generation = 2},
           QuarantinesEnded{.producers = names}}) {
    const std::string text = Describe(event);
    EXPECT_THAT(text, HasSubstr(listed));
    EXPECT_LT(text.size(), 200u);
  }
}

TEST(EventTest, OneIsNotAPlural) {
  const std::string text = Describe({
      FirstGroupsFormed{.groups = 1, .automatic = true},
      FirstGroupsFormed{.groups = 2},
      GroupsPlanned{.groups = 1, .moved = 1, .placed = 1, .reason = "x"},
      PlanMeasured{.groups = 1, .before = 80, .measured = 30, .predicted = 80},
      JobScaled{.servers = 1, .workers = 1, .why = "x"},
      GroupGrew{.group = GroupId(1), .joined = {"worker-3"}, .generation = 2, .members = 1},
      TablesRestored{.snapshot = "snapshot-7", .tables = 1},
  });
  EXPECT_EQ(text,
            "all workers have registered: 1 group formed; the scheduler plans others once it has "
            "measured the speed of the workers; "
            "all workers have registered: 2 groups formed by labels; "
            "1 group planned, 1 worker moved, 1 placed: x; "
            "the plan of 1 group reached 30 samples/s; 80 were predicted (-62 %); the groups "
            "before it made 80; "
            "wanted: 1 server and 1 worker, x; "
            "group 1 takes in worker-3 as generation 2 of 1 member; "
            "1 table continues snapshot-7; updates after it are gone");
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
