// SPDX-License-Identifier: Apache-2.0
#include "worker/group/rendezvous.h"

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/group/group_messages.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = Rendezvous::State;

constexpr State kStates[] = {
    State::kNone,      State::kListening,     State::kRanging, State::kSharingDistances,
    State::kMeasuring, State::kSharingStates, State::kReady,   State::kSuperseded};

// The members of one round, wired by queues that keep order per pair; messages take 100 us.
class Round {
 public:
  Round(uint32_t size, bool labelled, uint64_t seed)
      : random_(seed), links(size * size), all(size) {
    for (uint32_t rank = 0; rank < size; ++rank) {
      members_.push_back(NodeId(10 + rank));
      paths_.push_back(
          ParseTopologyPath(labelled ? absl::StrCat("z/r/h", rank) : absl::StrCat("//h", rank)));
    }
  }
  Rendezvous::Setup SetupOf(uint32_t rank) const {
    return {.round = {.group = GroupId(1), .generation = 2, .attempt = 0},
            .rank = rank,
            .members = members_,
            .paths = paths_,
            .measures = true,
            .slice_bytes = 1024,
            .patience = absl::Seconds(5),
            .first_agreed = Step(3),
            .finished = Step(rank)};
  }
  void Collect(uint32_t rank) {
    for (Rendezvous::Outgoing& next : all[rank].TakeOutgoing()) {
      links[rank * all.size() + next.peer].push_back(std::move(next.message));
    }
    reached.insert(all[rank].state());
  }
  void StartAll() {
    for (uint32_t rank = 0; rank < all.size(); ++rank) {
      all[rank].Start(now);
      Collect(rank);
    }
  }
  bool DeliverOne() {
    std::vector<size_t> busy;
    for (size_t i = 0; i < links.size(); ++i) {
      if (!links[i].empty()) busy.push_back(i);
    }
    if (busy.empty()) return false;
    now += absl::Microseconds(100);
    const size_t link = busy[random_.Below(busy.size())];
    const Message message = std::move(links[link].front());
    links[link].pop_front();
    const auto from = static_cast<uint32_t>(link / all.size());
    const auto to = static_cast<uint32_t>(link % all.size());
    if (message.envelope.has_group_hello()) {
      EXPECT_TRUE(all[to].ReceiveHello(now, message).ok());
    } else {
      all[to].Receive(now, from, message.envelope.group_probe());
    }
    Collect(to);
    return true;
  }
  void Run() {
    while (DeliverOne()) {
    }
  }

 private:
  Random random_;
  std::vector<NodeId> members_;
  std::vector<TopologyPath> paths_;

 public:
  absl::Time now = absl::UnixEpoch();
  std::vector<std::deque<Message>> links;
  std::vector<Rendezvous> all;
  std::set<State> reached;  // by any member, at the end of a call
};

TEST(RendezvousTest, OnlyTheDrawnTransitionsAreLegal) {
  const std::set<std::pair<State, State>> drawn = {
      {State::kListening, State::kRanging},
      {State::kListening, State::kMeasuring},
      {State::kListening, State::kReady},
      {State::kRanging, State::kSharingDistances},
      {State::kSharingDistances, State::kMeasuring},
      {State::kMeasuring, State::kSharingStates},
      {State::kSharingStates, State::kReady},
  };
  for (const State from : kStates) {
    for (const State to : kStates) {
      const bool always = to == State::kNone || to == State::kListening ||
                          (to == State::kSuperseded && from != State::kNone);
      EXPECT_EQ(Rendezvous::IsLegal(from, to), always || drawn.contains({from, to}))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

TEST(RendezvousTest, MembersWithoutLabelsWalkThroughAllStatesAndAgree) {
  Round round(6, false, 1);
  for (uint32_t rank = 0; rank < 6; ++rank) round.all[rank].Begin(round.SetupOf(rank));
  EXPECT_EQ(round.all[0].state(), State::kListening);
  round.StartAll();
  round.Run();
  // A member that is the first waits for the others in each exchange.
  EXPECT_EQ(round.reached,
            (std::set<State>{State::kRanging, State::kSharingDistances, State::kMeasuring,
                             State::kSharingStates, State::kReady}));
  for (const Rendezvous& member : round.all) {
    ASSERT_TRUE(member.ready());
    EXPECT_EQ(member.agreed_step(), Step(5));
    EXPECT_EQ(member.measured_racks(), round.all[0].measured_racks());
    EXPECT_EQ(member.costs().at(Level::kCluster).latency_seconds,
              round.all[0].costs().at(Level::kCluster).latency_seconds);
    EXPECT_THAT(member.recovery_state(), IsEmpty());  // Nobody was interrupted.
    EXPECT_EQ(member.retry_at(), absl::InfiniteFuture());
    EXPECT_EQ(member.NextWake(), absl::InfiniteFuture());
  }
}

TEST(RendezvousTest, MembersWithLabelsMeasureLinksAtOnce) {
  Round round(3, true, 1);
  for (uint32_t rank = 0; rank < 3; ++rank) round.all[rank].Begin(round.SetupOf(rank));
  round.StartAll();
  round.Run();
  EXPECT_EQ(round.reached,
            (std::set<State>{State::kMeasuring, State::kSharingStates, State::kReady}));
}

TEST(RendezvousTest, AMemberThatIsAheadIsHeardBeforeTheStart) {
  Round round(2, true, 1);
  Rendezvous::Setup hurried = round.SetupOf(1);
  hurried.measures = false;
  round.all[0].Begin(round.SetupOf(0));
  round.all[1].Begin(hurried);
  round.all[1].Start(round.now);
  round.Collect(1);
  round.Run();
  EXPECT_EQ(round.all[0].state(), State::kListening);
  EXPECT_TRUE(round.all[1].exchanging());
  EXPECT_THAT(round.all[1].Missing(), ElementsAre(0));
  EXPECT_EQ(round.all[1].retry_at(), absl::UnixEpoch() + absl::Seconds(5));
  round.all[0].Start(round.now);
  round.Collect(0);
  round.Run();
  EXPECT_TRUE(round.all[0].ready() && round.all[1].ready());
}

// An answer to no question, before anything was asked.
TEST(RendezvousTest, AnswersThatNobodyAskedForHaveNoEffect) {
  Round round(6, false, 1);
  round.all[0].Begin(round.SetupOf(0));
  proto::GroupProbe probe;
  for (const bool started : {false, true}) {
    if (started) round.all[0].Start(round.now);
    const State before = round.all[0].state();
    for (const uint64_t number : {uint64_t{0}, uint64_t{99}, UINT64_MAX}) {
      probe.mutable_distance()->set_number(number);
      probe.mutable_distance()->set_reply(true);
      round.all[0].Receive(round.now, 1, probe);
      probe.mutable_link()->set_number(number);
      probe.mutable_link()->set_reply(true);
      round.all[0].Receive(round.now, 1, probe);
      EXPECT_EQ(round.all[0].state(), before);
    }
  }
}

TEST(RendezvousTest, AfterAnInterruptionAllKnowHowFarEachHasCome) {
  Round round(3, true, 1);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Rendezvous::Setup setup = round.SetupOf(rank);
    setup.interrupted = rank == 1;
    if (rank < 2) setup.progress.buckets = {{.finished = Step(rank)}, {.finished = Step(7)}};
    round.all[rank].Begin(setup);
  }
  round.StartAll();
  round.Run();
  for (const Rendezvous& member : round.all) {
    ASSERT_TRUE(member.ready());
    ASSERT_EQ(member.recovery_state().size(), 3u);
    EXPECT_EQ(member.recovery_state()[1].buckets[0].finished, Step(1));
    EXPECT_THAT(member.recovery_state()[2].buckets, IsEmpty());  // It is new.
  }
}

TEST(RendezvousTest, ASupersededRoundSaysNoHello) {
  Round round(3, true, 1);
  for (uint32_t rank = 0; rank < 3; ++rank) round.all[rank].Begin(round.SetupOf(rank));
  round.all[0].Start(round.now);
  round.all[0].TakeOutgoing();
  round.all[0].Supersede();
  EXPECT_EQ(round.all[0].NextWake(), absl::InfiniteFuture());
  round.all[1].Start(round.now);
  round.all[2].Start(round.now);
  round.Collect(1);
  round.Collect(2);
  round.Run();
  round.all[0].Wake(round.now + absl::Hours(1));
  EXPECT_TRUE(round.all[0].superseded());
  EXPECT_FALSE(round.all[1].ready());
  round.all[0].Begin(round.SetupOf(0));
  EXPECT_EQ(round.all[0].state(), State::kListening);
}

TEST(RendezvousTest, TheDeadlineOfAnExchangeCanOnlyComeSooner) {
  Round round(2, true, 1);
  Rendezvous::Setup setup = round.SetupOf(0);
  setup.measures = false;
  round.all[0].Begin(setup);
  round.all[0].BoundDeadline(round.now);
  EXPECT_EQ(round.all[0].deadline(), absl::InfiniteFuture());  // Nothing is exchanged yet.
  round.all[0].Start(round.now);
  const absl::Time deadline = round.all[0].deadline();
  round.all[0].BoundDeadline(deadline + absl::Seconds(1));
  EXPECT_EQ(round.all[0].deadline(), deadline);
  round.all[0].BoundDeadline(round.now + absl::Seconds(2));
  EXPECT_EQ(round.all[0].deadline(), round.now + absl::Seconds(2));
}

}  // namespace
}  // namespace covey::worker
