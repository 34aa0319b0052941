// SPDX-License-Identifier: Apache-2.0
#include "common/contract/update_gate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;
using Kind = Contract::Kind;

// Pushes in, updates out as "group.step group.step".
class Driver {
 public:
  Driver(const Contract& contract, const std::vector<LiveGroup>& live)
      : gate_(contract), live_(live), initial_(live.size()) {}

  UpdateGate& gate() { return gate_; }
  void SetLive(const std::vector<LiveGroup>& live) { live_ = live; }
  void Pass(absl::Duration duration) { now_ += duration; }
  absl::Time now() const { return now_; }
  absl::Duration UntilDue() const { return gate_.NextDue() - now_; }

  Code Admit(uint32_t group, uint64_t step) const {
    return gate_.Admit(GroupId(group), Step(step)).code();
  }
  void Add(uint32_t group, uint64_t step, uint64_t samples = 1) {
    ASSERT_EQ(Admit(group, step), Code::kOk) << group << "." << step;
    const uint64_t number =
        gate_.Add({.group = GroupId(group), .step = Step(step), .samples = samples});
    ASSERT_EQ(number, names_.size());
    names_.push_back(absl::StrCat(group, ".", step));
    samples_.push_back(samples);
  }
  std::vector<std::string> Due() {
    std::vector<std::string> updates;
    while (const auto update = gate_.TakeDue(now_, {.live = live_, .initial = initial_})) {
      std::string text;
      uint64_t samples = 0;
      for (uint64_t number : update->pushes) {
        absl::StrAppend(&text, text.empty() ? "" : " ", names_.at(number));
        samples += samples_.at(number);
      }
      EXPECT_EQ(update->samples, samples);
      updates.push_back(text);
    }
    return updates;
  }
  // The updates that are due at once when this push arrives.
  std::vector<std::string> Push(uint32_t group, uint64_t step, uint64_t samples = 1) {
    Add(group, step, samples);
    return Due();
  }

 private:
  UpdateGate gate_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<LiveGroup> live_;
  const size_t initial_;
  std::vector<std::string> names_;
  std::vector<uint64_t> samples_;
};

std::vector<LiveGroup> Groups(const std::vector<uint32_t>& ids) {
  std::vector<LiveGroup> groups;
  for (uint32_t id : ids) groups.push_back({.id = GroupId(id)});
  return groups;
}

TEST(UpdateGate, AsyncAndSspAreDueOnArrival) {
  for (const Kind kind : {Kind::kAsync, Kind::kSsp}) {
    Driver driver({.kind = kind}, Groups({1, 2}));
    EXPECT_THAT(driver.Push(1, 1), ElementsAre("1.1"));
    EXPECT_THAT(driver.Push(0, 0), ElementsAre("0.0"));
  }
}

TEST(UpdateGate, ArrivalsInAHurryWaitForNoMore) {
  Driver buffered({.kind = Kind::kBuffered, .buffer = 3}, Groups({1, 2, 3}));
  EXPECT_THAT(buffered.Push(1, 1), IsEmpty());
  EXPECT_THAT(buffered.Push(2, 1), IsEmpty());
  buffered.gate().FlushPartialBuffer();
  EXPECT_THAT(buffered.Due(), ElementsAre("1.1 2.1"));
  buffered.gate().FlushPartialBuffer();
  EXPECT_THAT(buffered.Due(), IsEmpty());
  Driver bsp({.kind = Kind::kBsp}, Groups({1, 2}));
  EXPECT_THAT(bsp.Push(1, 1), IsEmpty());
  bsp.gate().FlushPartialBuffer();
  EXPECT_THAT(bsp.Due(), IsEmpty());
}

// Which pushes below its clock a group has made is known only to the deduplication window.
TEST(UpdateGate, GoesOnWhereAnotherOneStopped) {
  Driver driver({.kind = Kind::kBsp}, Groups({1, 2}));
  for (const uint32_t group : {1, 2}) driver.gate().Resume(GroupId(group), Step(4 + group));
  EXPECT_EQ(driver.gate().last_step(), Step(6));
  EXPECT_THAT(driver.Push(1, 6), ElementsAre("1.6"));
  EXPECT_THAT(driver.Push(2, 3), ElementsAre("2.3"));
  EXPECT_THAT(driver.Push(1, 7), IsEmpty());
  EXPECT_THAT(driver.Push(2, 7), ElementsAre("1.7 2.7"));
}

TEST(UpdateGate, BspWaitsForEveryLiveGroupAndKeepsTheOrderOfSteps) {
  Driver driver({.kind = Kind::kBsp}, Groups({1, 2}));
  EXPECT_EQ(driver.Admit(0, 0), Code::kInvalidArgument);
  EXPECT_THAT(driver.Push(1, 1), IsEmpty());
  EXPECT_THAT(driver.Push(1, 2), IsEmpty());
  EXPECT_EQ(driver.Admit(1, 2), Code::kAborted);
  EXPECT_EQ(driver.gate().samples_held(), 2u);
  EXPECT_THAT(driver.Push(2, 2), IsEmpty());
  EXPECT_THAT(driver.Push(2, 1), ElementsAre("1.1 2.1", "1.2 2.2"));
  EXPECT_EQ(driver.Admit(1, 2), Code::kInvalidArgument);
}

TEST(UpdateGate, BspCountsTheHeldPushOfAGroupThatIsGone) {
  Driver driver({.kind = Kind::kBsp}, Groups({1, 2, 3}));
  driver.Push(2, 1);
  driver.Push(1, 1);
  driver.SetLive(Groups({1}));
  EXPECT_THAT(driver.Due(), ElementsAre("1.1 2.1"));
  EXPECT_THAT(driver.Push(1, 2), ElementsAre("1.2"));
}

// It is not the number of pushes that counts.
TEST(UpdateGate, BspWaitsForEachLiveGroupBesideOneThatIsGone) {
  Driver driver({.kind = Kind::kBsp}, Groups({1, 2, 3}));
  driver.Push(1, 1);
  driver.Push(2, 1);
  driver.SetLive({{.id = GroupId(2)}, {.id = GroupId(3)}});
  EXPECT_THAT(driver.Due(), IsEmpty());
  EXPECT_THAT(driver.Push(3, 1), ElementsAre("1.1 2.1 3.1"));
}

TEST(UpdateGate, BufferedFollowsTheNumberOfLiveGroups) {
  Driver driver({.kind = Kind::kBuffered}, Groups({1, 2, 3}));
  driver.Push(3, 1);
  EXPECT_THAT(driver.Push(1, 1), IsEmpty());
  driver.SetLive(Groups({1, 2}));
  EXPECT_THAT(driver.Due(), ElementsAre("3.1 1.1"));
  EXPECT_THAT(driver.Push(1, 2), IsEmpty());
  driver.SetLive({});
  EXPECT_THAT(driver.Due(), ElementsAre("1.2"));
}

TEST(UpdateGate, BufferedShrinksWithTheShareOfLiveGroups) {
  Driver driver({.kind = Kind::kBuffered, .buffer = 4}, Groups({1, 2}));
  for (uint64_t step = 1; step <= 3; ++step) EXPECT_THAT(driver.Push(1, step), IsEmpty());
  driver.SetLive(Groups({1}));
  EXPECT_THAT(driver.Due(), ElementsAre("1.1 1.2 1.3"));
  EXPECT_THAT(driver.Push(1, 4), IsEmpty());
  EXPECT_THAT(driver.Push(1, 5), ElementsAre("1.4 1.5"));
}

// However many groups have come and gone.
TEST(UpdateGate, BufferedIsWholeWithAsManyLiveGroupsAsAtFirstOrMore) {
  Driver driver({.kind = Kind::kBuffered, .buffer = 2}, Groups({1, 2}));
  driver.SetLive(Groups({8, 9}));
  EXPECT_THAT(driver.Push(8, 1), IsEmpty());
  EXPECT_THAT(driver.Push(9, 1), ElementsAre("8.1 9.1"));
  driver.SetLive(Groups({8, 9, 10, 11}));
  EXPECT_THAT(driver.Push(8, 2), IsEmpty());
  EXPECT_THAT(driver.Push(9, 2), ElementsAre("8.2 9.2"));
}

TEST(UpdateGate, BufferedRoundsItsShareUp) {
  Driver driver({.kind = Kind::kBuffered, .buffer = 3}, Groups({1, 2}));
  driver.SetLive(Groups({1}));
  EXPECT_THAT(driver.Push(1, 1), IsEmpty());
  EXPECT_THAT(driver.Push(1, 2), ElementsAre("1.1 1.2"));
}

TEST(UpdateGate, BufferedWithoutAnyGroupCountsArrivals) {
  Driver one({.kind = Kind::kBuffered}, {});
  EXPECT_THAT(one.Push(0, 0), ElementsAre("0.0"));
  Driver two({.kind = Kind::kBuffered, .buffer = 2}, {});
  EXPECT_THAT(two.Push(0, 0), IsEmpty());
  EXPECT_THAT(two.Push(0, 1), ElementsAre("0.0 0.1"));
}

TEST(UpdateGate, BspWaitsForAGroupFromItsFirstStepOn) {
  Driver driver({.kind = Kind::kBsp}, Groups({1}));
  EXPECT_THAT(driver.Push(1, 4), ElementsAre("1.4"));
  driver.SetLive({{.id = GroupId(1)}, {.id = GroupId(2), .first_step = Step(6)}});
  EXPECT_THAT(driver.Push(1, 5), ElementsAre("1.5"));
  EXPECT_THAT(driver.Push(1, 6), IsEmpty());
  EXPECT_THAT(driver.Push(2, 6), ElementsAre("1.6 2.6"));
}

// A group that joined at a step that the others have passed catches up; each push is applied on
// arrival.
TEST(UpdateGate, BspAppliesOnArrivalWhatOthersArePast) {
  Driver driver({.kind = Kind::kBsp}, Groups({1}));
  for (uint64_t step = 1; step <= 5; ++step) driver.Push(1, step);
  driver.SetLive({{.id = GroupId(1)}, {.id = GroupId(2), .first_step = Step(4)}});
  EXPECT_THAT(driver.Push(1, 6), IsEmpty());
  EXPECT_THAT(driver.Push(2, 4), ElementsAre("2.4"));
  EXPECT_THAT(driver.Push(2, 5), ElementsAre("2.5"));
  EXPECT_EQ(driver.Admit(2, 5), Code::kInvalidArgument);  // It counts already.
  EXPECT_EQ(driver.gate().last_step(), Step(5));
  EXPECT_THAT(driver.Push(2, 6), ElementsAre("1.6 2.6"));
}

TEST(UpdateGate, LocalMakesOneUpdatePerRoundOfAllGroups) {
  Driver driver({.kind = Kind::kLocal}, Groups({1, 2, 3}));
  EXPECT_EQ(driver.Admit(0, 1), Code::kInvalidArgument);
  EXPECT_THAT(driver.Push(3, 1), IsEmpty());
  EXPECT_EQ(driver.Admit(3, 1), Code::kAborted);
  EXPECT_THAT(driver.Push(1, 1), IsEmpty());
  driver.Pass(absl::Hours(1));
  EXPECT_THAT(driver.Due(), IsEmpty());  // Without a quorum no time ends the wait.
  EXPECT_EQ(driver.UntilDue(), absl::InfiniteDuration());
  EXPECT_THAT(driver.Push(2, 1), ElementsAre("1.1 2.1 3.1"));
  EXPECT_EQ(driver.gate().samples_held(), 0u);
}

TEST(UpdateGate, AQuorumWaitsForTheOthersAsLongAsGrace) {
  Driver driver({.kind = Kind::kLocal, .quorum = 2, .grace = absl::Milliseconds(500)},
                Groups({1, 2, 3}));
  EXPECT_THAT(driver.Push(1, 1), IsEmpty());
  EXPECT_EQ(driver.UntilDue(), absl::InfiniteDuration());
  driver.Pass(absl::Seconds(9));
  EXPECT_THAT(driver.Push(2, 1), IsEmpty());
  EXPECT_EQ(driver.UntilDue(), absl::Milliseconds(500));  // Since the quorum, not the first.
  driver.Pass(absl::Milliseconds(499));
  EXPECT_THAT(driver.Due(), IsEmpty());
  driver.Pass(absl::Milliseconds(1));
  EXPECT_THAT(driver.Due(), ElementsAre("1.1 2.1"));
  EXPECT_EQ(driver.UntilDue(), absl::InfiniteDuration());
  // All three in time: no wait.
  driver.Push(3, 2);
  driver.Push(2, 2);
  EXPECT_THAT(driver.Push(1, 2), ElementsAre("1.2 2.2 3.2"));
}

TEST(UpdateGate, AQuorumWithoutGraceIsDueAtOnce) {
  Driver driver({.kind = Kind::kLocal, .quorum = 2}, Groups({1, 2, 3}));
  EXPECT_THAT(driver.Push(3, 1), IsEmpty());
  EXPECT_THAT(driver.Push(1, 1), ElementsAre("1.1 3.1"));
}

TEST(UpdateGate, GraceBeginsAnewWithEachRound) {
  Driver driver({.kind = Kind::kLocal, .quorum = 1, .grace = absl::Seconds(1)}, Groups({1, 2}));
  driver.Push(1, 1);
  driver.Pass(absl::Seconds(1));
  EXPECT_THAT(driver.Due(), ElementsAre("1.1"));
  driver.Pass(absl::Seconds(1));
  EXPECT_THAT(driver.Push(1, 2), IsEmpty());
  EXPECT_EQ(driver.UntilDue(), absl::Seconds(1));
}

// Late changes make updates without a round of their own, so the next round's number stays.
TEST(UpdateGate, GraceBeginsAgainAfterLateChanges) {
  Driver driver({.kind = Kind::kLocal, .quorum = 1, .grace = absl::Seconds(1)}, Groups({1, 2, 3}));
  driver.Push(1, 1);
  driver.Pass(absl::Seconds(1));
  EXPECT_THAT(driver.Due(), ElementsAre("1.1"));
  for (const uint32_t late : {2, 3}) {
    EXPECT_THAT(driver.Push(late, 1), IsEmpty()) << late;
    EXPECT_EQ(driver.UntilDue(), absl::Seconds(1));
    driver.Pass(absl::Seconds(1));
    EXPECT_THAT(driver.Due(), ElementsAre(absl::StrCat(late, ".1")));
  }
}

TEST(UpdateGate, ALateChangeCountsInTheNextRound) {
  Driver driver({.kind = Kind::kLocal, .quorum = 2}, Groups({1, 2, 3}));
  driver.Push(1, 1);
  EXPECT_THAT(driver.Push(2, 1), ElementsAre("1.1 2.1"));
  // It makes no round by itself; it is its group's part of the next one.
  EXPECT_THAT(driver.Push(3, 1, 7), IsEmpty());
  EXPECT_EQ(driver.gate().samples_held(), 7u);
  EXPECT_EQ(driver.Admit(3, 1), Code::kAborted);
  EXPECT_THAT(driver.Push(1, 2), ElementsAre("1.2 3.1"));
  EXPECT_EQ(driver.gate().last_step(), Step(2));
}

// Groups that faster ones have left behind, and that died, are not needed to go on.
TEST(UpdateGate, GroupsThatAreLateTogetherMakeARound) {
  Driver driver({.kind = Kind::kLocal, .quorum = 2}, Groups({1, 2, 3}));
  for (uint64_t round = 1; round <= 20; ++round) {
    driver.Push(1, round);
    EXPECT_THAT(driver.Push(2, round), SizeIs(1)) << round;
  }
  driver.SetLive({{.id = GroupId(2)}, {.id = GroupId(3)}});
  for (uint64_t round = 1; round <= 20; ++round) {
    EXPECT_THAT(driver.Push(3, round), IsEmpty()) << round;
    EXPECT_THAT(driver.Push(2, 20 + round), SizeIs(1)) << round;
  }
  driver.SetLive({{.id = GroupId(3)}});
  EXPECT_THAT(driver.Push(3, 21), ElementsAre("3.21"));
}

TEST(UpdateGate, AGroupThatIsFarBehindGetsOnAlone) {
  Driver driver({.kind = Kind::kLocal}, Groups({1}));
  EXPECT_THAT(driver.Push(1, 20), SizeIs(1));
  driver.SetLive(Groups({1, 2}));  // group 1 has finished and waits for 2
  for (uint64_t round = 1; round < kHeldStepsPerGroupMax; ++round) {
    EXPECT_THAT(driver.Push(2, round), IsEmpty()) << round;
  }
  EXPECT_THAT(driver.Push(2, kHeldStepsPerGroupMax), SizeIs(1));
  EXPECT_EQ(driver.Admit(2, kHeldStepsPerGroupMax + 1), Code::kOk);
}

TEST(UpdateGate, LocalDoesNotWaitForGroupsThatAreGoneOrAhead) {
  Driver driver({.kind = Kind::kLocal}, Groups({1, 2, 3}));
  driver.Push(1, 1);
  driver.SetLive({{.id = GroupId(1)}, {.id = GroupId(2)}});
  EXPECT_THAT(driver.Push(2, 2), ElementsAre("1.1"));  // 2 has skipped a round.
  driver.SetLive(
      {{.id = GroupId(1)}, {.id = GroupId(2)}, {.id = GroupId(4), .first_step = Step(3)}});
  EXPECT_THAT(driver.Push(1, 2), ElementsAre("1.2 2.2"));
  driver.Push(1, 3);
  EXPECT_THAT(driver.Push(2, 3), IsEmpty());
  EXPECT_THAT(driver.Push(4, 3), ElementsAre("1.3 2.3 4.3"));
}

TEST(UpdateGate, LateChangesAreNotLostWithTheLastGroup) {
  Driver driver({.kind = Kind::kLocal, .quorum = 2}, Groups({1, 2, 3}));
  driver.Push(1, 1);
  EXPECT_THAT(driver.Push(2, 1), ElementsAre("1.1 2.1"));
  EXPECT_THAT(driver.Push(3, 1), IsEmpty());
  driver.SetLive({});
  EXPECT_THAT(driver.Due(), ElementsAre("3.1"));
}

TEST(UpdateGate, RefusesGroupsThatRunAway) {
  for (const Kind kind : {Kind::kBsp, Kind::kLocal}) {
    Driver driver({.kind = kind}, Groups({1, 2}));
    for (uint64_t step = 1; step <= kHeldStepsPerGroupMax; ++step) driver.Push(1, step);
    EXPECT_EQ(driver.Admit(1, kHeldStepsPerGroupMax + 1), Code::kResourceExhausted);
    EXPECT_EQ(driver.Admit(2, 1), Code::kOk);
  }
}

TEST(UpdateGate, TheStepThatAllWaitForIsTakenAfterAnyNumberOfLaterOnes) {
  Driver driver({.kind = Kind::kBsp}, Groups({1, 2}));
  for (uint64_t step = 2; step <= kHeldStepsPerGroupMax + 1; ++step) driver.Push(1, step);
  driver.Push(2, 1);
  EXPECT_EQ(driver.Admit(1, kHeldStepsPerGroupMax + 2), Code::kResourceExhausted);
  EXPECT_EQ(driver.Admit(1, 1), Code::kOk);
  EXPECT_THAT(driver.Push(1, 1), ElementsAre("1.1 2.1"));
}

TEST(UpdateGate, HeldStepsAreDueOneByOneWhenTheContractChanges) {
  Driver driver({.kind = Kind::kBsp}, Groups({1, 2, 3}));
  driver.Push(2, 2);
  driver.Push(1, 1);
  driver.Push(1, 2);
  EXPECT_TRUE(driver.gate().Holds(GroupId(2)));
  driver.gate().SwitchTo({.kind = Kind::kAsync});
  EXPECT_THAT(driver.Due(), ElementsAre("1.1", "1.2 2.2"));
  EXPECT_FALSE(driver.gate().Holds(GroupId(2)));
  EXPECT_THAT(driver.Push(3, 1), ElementsAre("3.1"));
  // Back at bsp, all groups catch up at and below step 2, in any order; then all wait again.
  driver.gate().SwitchTo({.kind = Kind::kBsp});
  EXPECT_THAT(driver.Push(3, 2), ElementsAre("3.2"));
  EXPECT_THAT(driver.Push(2, 1), ElementsAre("2.1"));
  EXPECT_THAT(driver.Push(3, 3), IsEmpty());
  EXPECT_THAT(driver.Push(2, 3), IsEmpty());
  EXPECT_THAT(driver.Push(1, 3), ElementsAre("1.3 2.3 3.3"));
}

TEST(UpdateGate, APartFullBufferIsDueWhenTheContractChanges) {
  Driver driver({.kind = Kind::kBuffered, .buffer = 5}, Groups({1, 2}));
  EXPECT_TRUE(driver.gate().sums_on_arrival());
  driver.Push(2, 9);
  driver.Push(1, 4);
  driver.gate().SwitchTo({.kind = Kind::kBsp});
  EXPECT_FALSE(driver.gate().sums_on_arrival());
  EXPECT_THAT(driver.Due(), ElementsAre("2.9 1.4"));
  EXPECT_THAT(driver.Push(2, 10), IsEmpty());
  for (uint64_t step = 5; step <= 9; ++step) {
    EXPECT_THAT(driver.Push(1, step), ElementsAre(absl::StrCat("1.", step)));
  }
  EXPECT_THAT(driver.Push(1, 10), ElementsAre("1.10 2.10"));
}

// Under bsp no group waits for a step that another group has passed without an update.
TEST(UpdateGate, StepsWhosePushIsDiscardedArePast) {
  Driver driver({.kind = Kind::kBuffered}, Groups({1, 2}));
  driver.gate().Pass(GroupId(2), Step(7));
  EXPECT_EQ(driver.gate().last_step(), Step(7));
  driver.gate().SwitchTo({.kind = Kind::kBsp});
  EXPECT_THAT(driver.Push(1, 7), ElementsAre("1.7"));
  EXPECT_THAT(driver.Push(1, 8), IsEmpty());
  EXPECT_THAT(driver.Push(2, 8), ElementsAre("1.8 2.8"));
}

TEST(UpdateGate, AnotherSizeOfTheSameKindKeepsWhatIsHeld) {
  Driver buffered({.kind = Kind::kBuffered, .buffer = 3}, Groups({1}));
  buffered.Push(1, 1);
  buffered.Push(1, 2);
  buffered.gate().SwitchTo({.kind = Kind::kBuffered, .buffer = 4});
  EXPECT_THAT(buffered.Push(1, 3), IsEmpty());
  buffered.gate().SwitchTo({.kind = Kind::kBuffered, .buffer = 2});
  EXPECT_THAT(buffered.Due(), ElementsAre("1.1 1.2 1.3"));

  Driver local({.kind = Kind::kLocal}, Groups({1, 2}));
  local.Push(1, 1);
  local.gate().SwitchTo({.kind = Kind::kLocal, .quorum = 1, .grace = absl::Seconds(2)});
  EXPECT_THAT(local.Due(), IsEmpty());
  EXPECT_EQ(local.UntilDue(), absl::Seconds(2));
  local.gate().SwitchTo({.kind = Kind::kAsync});
  EXPECT_THAT(local.Due(), ElementsAre("1.1"));
  EXPECT_EQ(local.UntilDue(), absl::InfiniteDuration()) << "no round waits any more";
}

// Under any contracts, and however groups join and end: each push is part of exactly one update.
TEST(UpdateGate, HoldsPushesBeyondTheGivenStepsUntilTheirRelease) {
  Driver driver({.kind = Kind::kAsync}, Groups({1, 2}));
  driver.gate().HoldBeyond({{GroupId(1), Step(3)}, {GroupId(2), Step(7)}});
  EXPECT_THAT(driver.Push(1, 3), ElementsAre("1.3"));
  EXPECT_THAT(driver.Push(1, 4), IsEmpty());
  EXPECT_THAT(driver.Push(1, 2), ElementsAre("1.2"));  // overtaken
  EXPECT_THAT(driver.Push(2, 7), ElementsAre("2.7"));
  EXPECT_THAT(driver.Push(1, 5), IsEmpty());
  EXPECT_TRUE(driver.gate().Holds(GroupId(1)));
  EXPECT_FALSE(driver.gate().HoldsUpTo());
  EXPECT_EQ(driver.gate().last_received(GroupId(1)), Step(5));
  driver.gate().Release();
  EXPECT_THAT(driver.Due(), ElementsAre("1.4", "1.5"));
}

TEST(UpdateGate, APushThatIsNoLongerBeyondIsNotHeldByALaterHold) {
  Driver driver({.kind = Kind::kAsync}, Groups({1, 2}));
  driver.gate().HoldBeyond({{GroupId(1), Step(3)}});
  EXPECT_THAT(driver.Push(1, 4), IsEmpty());
  EXPECT_THAT(driver.Push(1, 6), IsEmpty());
  driver.gate().Release();
  driver.gate().HoldBeyond({{GroupId(1), Step(5)}});
  EXPECT_TRUE(driver.gate().HoldsUpTo());
  EXPECT_THAT(driver.Due(), ElementsAre("1.4"));
  EXPECT_FALSE(driver.gate().HoldsUpTo());
  driver.gate().Release();
  EXPECT_THAT(driver.Due(), ElementsAre("1.6"));
}

TEST(UpdateGate, ReleasedPushesFillOneBufferAfterTheOther) {
  Driver driver({.kind = Kind::kBuffered, .buffer = 2}, Groups({1, 2}));
  driver.gate().HoldBeyond({{GroupId(1), Step(1)}, {GroupId(2), Step(1)}});
  EXPECT_THAT(driver.Push(1, 1), IsEmpty());
  for (uint64_t step = 2; step <= 5; ++step) EXPECT_THAT(driver.Push(1, step), IsEmpty());
  driver.gate().Release();
  EXPECT_THAT(driver.Due(), ElementsAre("1.1 1.2", "1.3 1.4"));
  EXPECT_THAT(driver.Push(2, 1), ElementsAre("1.5 2.1"));
}

TEST(UpdateGate, ABufferThatIsHurriedLacksWhatIsBeyond) {
  Driver driver({.kind = Kind::kBuffered, .buffer = 4}, Groups({1, 2, 3, 4}));
  driver.gate().HoldBeyond({{GroupId(1), Step(1)}, {GroupId(2), Step(1)}});
  EXPECT_THAT(driver.Push(1, 1), IsEmpty());
  EXPECT_THAT(driver.Push(1, 2), IsEmpty());
  EXPECT_THAT(driver.Push(2, 1), IsEmpty());
  EXPECT_TRUE(driver.gate().HoldsUpTo());
  driver.gate().HurryHeld();
  EXPECT_THAT(driver.Due(), ElementsAre("1.1 2.1"));
  EXPECT_FALSE(driver.gate().HoldsUpTo());
  driver.gate().Release();
  EXPECT_THAT(driver.Due(), IsEmpty());
  EXPECT_TRUE(driver.gate().HoldsUpTo());
}

TEST(UpdateGate, AStepBeyondWaitsAlthoughAllGroupsHavePushed) {
  Driver driver({.kind = Kind::kBsp}, Groups({1, 2}));
  driver.gate().HoldBeyond({{GroupId(1), Step(1)}, {GroupId(2), Step(1)}});
  driver.Add(1, 2);
  EXPECT_THAT(driver.Push(2, 2), IsEmpty());
  driver.Add(1, 1);
  EXPECT_THAT(driver.Push(2, 1), ElementsAre("1.1 2.1"));
  EXPECT_FALSE(driver.gate().HoldsUpTo());
  driver.gate().Release();
  EXPECT_THAT(driver.Due(), ElementsAre("1.2 2.2"));
}

// Another shard may hold a change of group 1 that waits for one of group 2.
TEST(UpdateGate, WithAQuorumLateChangesDoNotWaitForEachOther) {
  Driver driver({.kind = Kind::kLocal, .local_steps = 1, .quorum = 2, .grace = absl::Seconds(1)},
                Groups({1, 2, 3}));
  driver.Add(1, 5);
  EXPECT_THAT(driver.Push(3, 5), IsEmpty());
  driver.Pass(absl::Seconds(1));
  EXPECT_THAT(driver.Due(), ElementsAre("1.5 3.5"));
  driver.SetLive(Groups({1, 2}));
  EXPECT_THAT(driver.Push(2, 4), IsEmpty());
  EXPECT_EQ(driver.UntilDue(), UpdateGate::kLateWaitMin);
  driver.Pass(UpdateGate::kLateWaitMin - absl::Milliseconds(1));
  EXPECT_THAT(driver.Due(), IsEmpty());
  driver.Pass(absl::Milliseconds(1));
  EXPECT_THAT(driver.Due(), ElementsAre("2.4"));
}

TEST(UpdateGate, AStepBeyondWaitsAlthoughItHasAPushOfAGroupThatHasEnded) {
  for (const Kind kind : {Kind::kBsp, Kind::kLocal}) {
    Driver driver({.kind = kind, .local_steps = 1}, Groups({1, 2}));
    driver.Add(1, 1);
    EXPECT_THAT(driver.Push(2, 1), ElementsAre("1.1 2.1"));
    driver.Add(1, 2);
    driver.SetLive(Groups({2}));
    driver.gate().HoldBeyond({{GroupId(2), Step(1)}});
    EXPECT_FALSE(driver.gate().HoldsUpTo());
    EXPECT_THAT(driver.Push(2, 2), IsEmpty());
    driver.gate().Release();
    EXPECT_THAT(driver.Due(), ElementsAre("1.2 2.2"));
  }
}

// A group that has ended was further than those that are left.
TEST(UpdateGate, APushBeyondIsHeldAlthoughItsStepIsOver) {
  for (const Kind kind : {Kind::kBsp, Kind::kLocal}) {
    Driver driver({.kind = kind, .local_steps = 1}, Groups({1}));
    driver.gate().Pass(GroupId(2), Step(9));
    driver.gate().HoldBeyond({{GroupId(1), Step(1)}});
    EXPECT_THAT(driver.Push(1, 2), IsEmpty());
    EXPECT_FALSE(driver.gate().HoldsUpTo());
    EXPECT_THAT(driver.Push(1, 1), ElementsAre("1.1"));
    driver.gate().HurryHeld();
    EXPECT_THAT(driver.Due(), IsEmpty());
    driver.gate().Release();
    EXPECT_THAT(driver.Due(), ElementsAre("1.2"));
  }
}

TEST(UpdateGate, ASwitchEndsTheHold) {
  for (const Kind kind : {Kind::kAsync, Kind::kBuffered, Kind::kBsp}) {
    Driver driver({.kind = kind}, Groups({1}));
    driver.gate().HoldBeyond({{GroupId(1), Step(1)}});
    EXPECT_THAT(driver.Push(1, 2), IsEmpty());
    driver.gate().SwitchTo({.kind = Kind::kSsp});
    EXPECT_THAT(driver.Due(), ElementsAre("1.2"));
    EXPECT_THAT(driver.Push(1, 3), ElementsAre("1.3"));
  }
}

TEST(UpdateGate, LateChangesOfARoundAreHurriedBeforeTheNextOne) {
  Driver driver({.kind = Kind::kLocal, .local_steps = 10, .quorum = 1}, Groups({1, 2}));
  driver.gate().HoldBeyond({{GroupId(1), Step(1)}, {GroupId(2), Step(1)}});
  EXPECT_THAT(driver.Push(1, 1), ElementsAre("1.1"));
  EXPECT_THAT(driver.Push(1, 2), IsEmpty());
  EXPECT_THAT(driver.Push(2, 1), IsEmpty());
  EXPECT_TRUE(driver.gate().HoldsUpTo());
  driver.gate().HurryHeld();
  EXPECT_THAT(driver.Due(), ElementsAre("2.1"));
  EXPECT_FALSE(driver.gate().HoldsUpTo());
  driver.gate().Release();
  EXPECT_THAT(driver.Due(), ElementsAre("1.2"));
}

TEST(UpdateGate, NothingIsLostAndNothingCountsTwice) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const bool local = random.Chance(0.3);
    const auto contract = [&]() -> Contract {
      return {.kind = local ? Kind::kLocal : static_cast<Kind>(random.Below(4)),
              .buffer = random.Below(5),
              .quorum = random.Below(4),
              .grace = absl::Seconds(random.Below(3))};
    };
    std::vector<LiveGroup> live = Groups({1, 2, 3});
    Driver driver(contract(), live);
    std::vector<uint64_t> steps(16, 0);
    std::vector<std::string> pushed;
    std::vector<std::string> applied;
    const auto take = [&] {
      for (const std::string& update : driver.Due()) {
        for (absl::string_view push : absl::StrSplit(update, ' ')) applied.emplace_back(push);
      }
    };
    for (int i = 0; i < 120 && !live.empty(); ++i) {
      driver.Pass(absl::Seconds(random.Below(2)));
      take();
      const uint32_t group = live[random.Below(live.size())].id.value();
      if (driver.Admit(group, steps[group] + 1) == Code::kOk) {
        driver.Add(group, ++steps[group]);
        pushed.push_back(absl::StrCat(group, ".", steps[group]));
      }
      take();
      if (random.Chance(0.05)) {
        driver.gate().SwitchTo(contract());
        take();
      }
      if (random.Chance(0.02)) {
        std::erase_if(live, [&](const LiveGroup& other) { return other.id.value() == group; });
      } else if (random.Chance(0.02) && live.back().id < GroupId(15)) {
        const uint32_t id = live.back().id.value() + 1;
        const uint64_t first = driver.gate().last_step().value() + random.Below(4);
        live.push_back({.id = GroupId(id), .first_step = Step(first + 1)});
        steps[id] = first;
      }
      driver.SetLive(live);
      take();
    }
    driver.SetLive({});
    take();
    ASSERT_EQ(driver.gate().samples_held(), 0u) << "seed " << seed;
    ASSERT_THAT(applied, ::testing::UnorderedElementsAreArray(pushed)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace covey
