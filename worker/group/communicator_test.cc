// SPDX-License-Identifier: Apache-2.0
#include "worker/group/communicator.h"

#include <cmath>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/collective/reference_reduce.h"
#include "worker/group/group_messages.h"
#include "worker/testing/ring_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

constexpr size_t kSmallSlice = 16;

// One collective on every member, with its data and outcome.
struct Trial {
  Collective common;
  std::vector<std::vector<float>> data;  // per member
  std::vector<absl::Status> outcome;
  std::vector<uint64_t> samples;
  size_t arrived = 0;
  size_t done = 0;

  Trial(CollectiveKind kind, uint32_t members, size_t elements, Random& random)
      : outcome(members, absl::UnknownError("not done")), samples(members) {
    common.kind = kind;
    common.name = "'w'";
    common.deadline = absl::UnixEpoch() + absl::Seconds(30);
    common.root = static_cast<uint32_t>(random.Below(members));
    for (uint32_t m = 0; m < members; ++m) {
      std::vector<float> values(elements);
      for (float& value : values) value = static_cast<float>(random.Uniform() * 2 - 1);
      data.push_back(values);
    }
    // Unequal parts, some of them empty.
    size_t first = 0;
    for (uint32_t m = 0; m < members; ++m) {
      const size_t left = elements - first;
      const size_t count = m + 1 == members     ? left
                           : random.Chance(0.3) ? 0
                                                : random.Below(left + 1);
      common.parts.push_back({first, count});
      first += count;
    }
  }

  CollectiveId Start(Ring& ring, uint32_t rank) {
    Collective collective = common;
    if (collective.id.sequence == 0) collective.id = ring.communicator(rank).NextPlain();
    const CollectiveId id = collective.id;
    collective.data = data[rank];
    collective.samples = rank + 1;
    collective.arrived = [this](absl::Time, const CollectiveResult&, Outbox&) { ++arrived; };
    collective.done = [this, rank](absl::Time, const CollectiveResult& result, Outbox&) {
      ++done;
      outcome[rank] = result.status;
      samples[rank] = result.samples;
    };
    ring.communicator(rank).Start(ring.now(), std::move(collective), ring.outbox(rank));
    return id;
  }
  void StartAll(Ring& ring) {
    for (uint32_t rank = 0; rank < ring.size(); ++rank) Start(ring, rank);
  }
  bool AllOk() const {
    return std::all_of(outcome.begin(), outcome.end(),
                       [](const absl::Status& s) { return s.ok(); });
  }
};

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

void ExpectResult(const Trial& trial, const std::vector<std::vector<float>>& before) {
  const size_t members = before.size();
  const std::vector<float> sum = ReferenceReduce(before, trial.common.parts);
  for (size_t m = 0; m < members; ++m) {
    const std::span<const float> data(trial.data[m]);
    switch (trial.common.kind) {
      case CollectiveKind::kReduceScatter: {
        const PartRange own = trial.common.parts[m];
        EXPECT_TRUE(SameBits(data.subspan(own.first, own.count),
                             std::span(sum).subspan(own.first, own.count)));
        if (own.count > 0) {
          EXPECT_EQ(trial.samples[m], members * (members + 1) / 2);
        }
        break;
      }
      case CollectiveKind::kAllReduce: {
        EXPECT_TRUE(SameBits(data, sum));
        for (size_t i = 0; i < data.size(); ++i) {
          double exact = 0;
          for (const auto& values : before) exact += values[i];
          EXPECT_NEAR(data[i], exact, 1e-5);
        }
        break;
      }
      case CollectiveKind::kAllGather:
        for (size_t owner = 0; owner < members; ++owner) {
          const PartRange part = trial.common.parts[owner];
          EXPECT_TRUE(SameBits(data.subspan(part.first, part.count),
                               std::span(before[owner]).subspan(part.first, part.count)));
        }
        break;
      case CollectiveKind::kBroadcast:
        EXPECT_TRUE(SameBits(data, before[trial.common.root]));
        break;
      case CollectiveKind::kBarrier:
        EXPECT_TRUE(SameBits(data, before[m]));
        break;
      case CollectiveKind::kExchange:
        ADD_FAILURE() << "is tried by worker/collective/exchange_test.cc";
        break;
    }
  }
}

class CommunicatorTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, CommunicatorTest, testing::Range(1u, 10u));

// Several collectives of every kind at once, started at different times, delivered in random order.
TEST_P(CommunicatorTest, ConcurrentCollectivesGiveTheReferenceBitForBit) {
  constexpr CollectiveKind kKinds[] = {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
                                       CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                                       CollectiveKind::kBarrier};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed * 100 + GetParam());
    Ring ring(GetParam(), kSmallSlice, seed);
    std::vector<std::unique_ptr<Trial>> trials;
    std::vector<std::vector<std::vector<float>>> before;
    for (int i = 0; i < 8; ++i) {
      trials.push_back(
          std::make_unique<Trial>(kKinds[random.Below(5)], GetParam(), random.Below(60), random));
      before.push_back(trials.back()->data);
    }
    std::vector<size_t> started(GetParam(), 0);
    for (size_t left = trials.size() * GetParam(); left > 0;) {
      const uint32_t rank = static_cast<uint32_t>(random.Below(GetParam()));
      if (started[rank] < trials.size()) {
        trials[started[rank]++]->Start(ring, rank);
        --left;
      }
      for (uint64_t i = random.Below(6); i > 0; --i) ring.Step();
    }
    ring.Run();
    for (size_t i = 0; i < trials.size(); ++i) {
      ASSERT_TRUE(trials[i]->AllOk()) << CollectiveName(trials[i]->common.kind);
      ASSERT_EQ(trials[i]->done, GetParam());
      EXPECT_EQ(trials[i]->arrived, GetParam());
      ExpectResult(*trials[i], before[i]);
    }
    for (uint32_t rank = 0; rank < GetParam(); ++rank) {
      EXPECT_EQ(ring.communicator(rank).collectives(), 0u);
    }
  }
}

TEST(CommunicatorOneTest, NobodyLeavesABarrierBeforeTheLastHasCome) {
  Random random(1);
  Ring ring(4, kSmallSlice, 1);
  Trial barrier(CollectiveKind::kBarrier, 4, 0, random);
  for (uint32_t rank = 0; rank < 3; ++rank) barrier.Start(ring, rank);
  ring.Run();
  EXPECT_EQ(barrier.done, 0u);
  barrier.Start(ring, 3);
  ring.Run();
  EXPECT_EQ(barrier.done, 4u);
}

// Two members, whose links carry 1 GB/s each way: an all-reduce of 64 MiB, and one of 64 KiB that
// begins when a tenth of it is over. When the small one has ended, as a part of the large one's
// time.
double SmallEndsAt(int priority_of_the_small, int priority_of_the_large) {
  Ring ring(2, kSliceBytesMax, 1);
  std::map<uint32_t, absl::Time> free_at;  // by sender
  ring.SetDelay([&](uint32_t from, uint32_t, const Message& message) {
    size_t bytes = message.envelope.ByteSizeLong();
    for (const Buffer& frame : message.frames) bytes += frame.size();
    absl::Time& free = free_at[from];
    free = std::max(free, ring.now()) + absl::Nanoseconds(1) * static_cast<double>(bytes);
    return free - ring.now();
  });
  struct Tensor {
    std::vector<float> data;
    absl::Time ended;
    size_t done = 0;
  };
  const auto start = [&ring](std::vector<Tensor>& tensors, uint32_t stream, int priority) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      Tensor& tensor = tensors[rank];
      Collective collective{.id = {.stream = stream, .sequence = 1},
                            .kind = CollectiveKind::kAllReduce,
                            .data = tensor.data,
                            .parts = EvenParts(tensor.data.size(), 2),
                            .samples = 1,
                            .deadline = ring.now() + absl::Seconds(30),
                            .priority = priority};
      collective.done = [&tensor](absl::Time now, const CollectiveResult& result, Outbox&) {
        EXPECT_TRUE(result.status.ok()) << result.status;
        tensor.ended = now;
        ++tensor.done;
      };
      ring.communicator(rank).Start(ring.now(), std::move(collective), ring.outbox(rank));
    }
  };
  const absl::Time begin = ring.now();
  std::vector<Tensor> large(2, {.data = std::vector<float>((64 << 20) / sizeof(float), 1)});
  std::vector<Tensor> small(2, {.data = std::vector<float>((64 << 10) / sizeof(float), 1)});
  start(large, 1, priority_of_the_large);
  while (ring.now() < begin + absl::Milliseconds(6) && ring.StepInTime(absl::InfiniteFuture())) {
  }
  start(small, 3, priority_of_the_small);
  const absl::Time end = begin + absl::Seconds(1);
  while (large[0].done + large[1].done + small[0].done + small[1].done < 4 &&
         ring.StepInTime(end)) {
  }
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(large[rank].done, 1u);
    EXPECT_EQ(small[rank].done, 1u);
    EXPECT_EQ(large[rank].data, std::vector<float>(large[rank].data.size(), 2));
    EXPECT_EQ(small[rank].data, std::vector<float>(small[rank].data.size(), 2));
  }
  const auto seconds = [begin](const std::vector<Tensor>& tensors) {
    return absl::ToDoubleSeconds(std::max(tensors[0].ended, tensors[1].ended) - begin);
  };
  return seconds(small) / seconds(large);
}

TEST(CommunicatorOneTest, AnUrgentCollectiveOvertakesALargeOneOnTheLink) {
  EXPECT_LT(SmallEndsAt(0, 9), 0.25);
}

// Negative control.
TEST(CommunicatorOneTest, WithoutPrioritiesItWaitsForWhatIsQueued) {
  EXPECT_GT(SmallEndsAt(0, 0), 0.25);
}

TEST(CommunicatorOneTest, SendsTheCallersMemoryAndKeepsItUntilTheTransportLetsGo) {
  Random random(1);
  Ring ring(2, kSmallSlice, 1);
  Trial trial(CollectiveKind::kReduceScatter, 2, 8, random);
  trial.common.parts = EvenParts(8, 2);
  trial.StartAll(ring);
  // It looks when the pass that has sent ends, and not at once again.
  EXPECT_EQ(ring.communicator(0).NextWake(), ring.now());
  Outbox outbox;
  ring.communicator(0).Wake(ring.now(), outbox);
  EXPECT_GT(ring.communicator(0).NextWake(), ring.now());
  ring.Collect();
  Message held = ring.link(0, NodeId(Ring::kFirstNode + 1)).front();
  EXPECT_EQ(held.frames[0].data(), reinterpret_cast<const uint8_t*>(trial.data[0].data() + 4));
  ring.Run();
  EXPECT_EQ(trial.arrived, 2u);
  EXPECT_EQ(trial.done, 1u);
  EXPECT_LE(ring.communicator(0).NextWake(), ring.now() + absl::Milliseconds(1));
  held = Message();
  ring.Run();
  EXPECT_EQ(trial.done, 2u);
}

TEST(CommunicatorOneTest, AHeldGatherPassesOthersOnAndWaitsForItsOwnPart) {
  Random random(1);
  Ring ring(3, kSmallSlice, 1);
  Trial trial(CollectiveKind::kAllGather, 3, 9, random);
  trial.common.parts = EvenParts(9, 3);
  const auto before = trial.data;
  trial.common.held = true;
  const CollectiveId id = trial.Start(ring, 0);
  trial.common.held = false;
  trial.Start(ring, 1);
  trial.Start(ring, 2);
  ring.Run();
  EXPECT_EQ(trial.arrived, 0u);
  EXPECT_TRUE(SameBits(std::span(trial.data[0]).subspan(3), [&] {
    std::vector<float> expected(before[1].begin() + 3, before[1].begin() + 6);
    expected.insert(expected.end(), before[2].begin() + 6, before[2].end());
    return expected;
  }()));
  ring.communicator(0).Contribute(ring.now(), id, ring.outbox(0));
  ring.Run();
  EXPECT_TRUE(trial.AllOk());
  ExpectResult(trial, before);
}

TEST(CommunicatorOneTest, ADeadMemberEndsEverythingWithTheViewsReason) {
  Random random(1);
  Ring ring(3, kSmallSlice, 1);
  Trial trial(CollectiveKind::kAllReduce, 3, 40, random);
  trial.Start(ring, 0);
  trial.Start(ring, 2);
  ring.Run();
  EXPECT_EQ(trial.done, 0u);
  proto::ClusterView view = Ring::ActiveView(3);
  view.set_epoch(2);
  view.mutable_nodes(1)->set_state(proto::Node::DEAD);
  view.mutable_groups(0)->set_state(proto::Group::BROKEN);
  view.mutable_groups(0)->set_reason("worker-1 (pid 7) dead: silent for 2.6 s");
  ring.SetView(view);
  ring.Run();
  EXPECT_EQ(trial.done, 2u);
  EXPECT_EQ(trial.outcome[0].code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(trial.outcome[2].message(), HasSubstr("worker-1 (pid 7) dead"));
  Trial later(CollectiveKind::kBarrier, 3, 0, random);
  later.Start(ring, 0);
  EXPECT_THAT(later.outcome[0].message(), HasSubstr("worker-1 (pid 7) dead"));
}

TEST(CommunicatorOneTest, FailureTakesFramesBackFromAPeerThatDoesNotReceive) {
  Random random(1);
  Ring ring(2, kSmallSlice, 1);
  Trial trial(CollectiveKind::kAllReduce, 2, 40, random);
  trial.Start(ring, 0);
  ring.Collect();  // On the link, not received.
  ring.Pass(absl::Seconds(31));
  ring.communicator(0).Wake(ring.now(), ring.outbox(0));
  EXPECT_EQ(trial.done, 0u) << "memory is still referenced";
  ring.Collect();  // Obeys the closed route.
  ring.communicator(0).Wake(ring.now(), ring.outbox(0));
  EXPECT_EQ(trial.done, 1u);
}

TEST(CommunicatorOneTest, ADeadlineNamesThePeerWaitedForAndReachesTheOthers) {
  Random random(1);
  Ring ring(3, kSmallSlice, 1);
  Trial trial(CollectiveKind::kAllReduce, 3, 40, random);
  trial.common.parts = EvenParts(40, 3);
  trial.Start(ring, 0);
  trial.Start(ring, 2);  // worker-1 never starts.
  ring.Run();
  ring.Pass(absl::Seconds(31));
  ring.communicator(2).Wake(ring.now(), ring.outbox(2));
  ring.Run();
  EXPECT_EQ(trial.outcome[2].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(trial.outcome[2].message(), HasSubstr("all-reduce 1 of 'w' in group 0"));
  EXPECT_THAT(trial.outcome[2].message(), HasSubstr("nothing from worker-1"));
  EXPECT_EQ(trial.outcome[0].code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(trial.outcome[0].message(), HasSubstr("worker-2 gave up: all-reduce"));
  trial.Start(ring, 1);
  EXPECT_THAT(trial.outcome[1].message(), HasSubstr("worker-2 gave up"));
}

TEST(CommunicatorOneTest, ADepartedMemberIsNamedSoon) {
  Random random(1);
  Ring ring(2, kSmallSlice, 1);
  Trial trial(CollectiveKind::kBarrier, 2, 0, random);
  trial.Start(ring, 0);
  proto::ClusterView view = Ring::ActiveView(2);
  view.set_epoch(2);
  view.mutable_nodes(1)->set_state(proto::Node::LEFT);
  ring.SetView(view);
  EXPECT_LT(ring.communicator(0).NextWake(), ring.now() + absl::Seconds(5));
  ring.Pass(absl::Seconds(5));
  ring.communicator(0).Wake(ring.now(), ring.outbox(0));
  EXPECT_THAT(trial.outcome[0].message(), HasSubstr("worker-1, which has left"));
}

// As if the member of this rank had sent it.
void ReceiveFrom(Ring& ring, uint32_t from, uint32_t to, Message message) {
  message.envelope.mutable_header()->set_node(Ring::kFirstNode + from);
  message.envelope.mutable_header()->set_incarnation(100 + from);
  EXPECT_TRUE(ring.communicator(to).Receive(ring.now(), message, ring.outbox(to)));
}

TEST(CommunicatorOneTest, WordsOfMembersBeyondEveryLimitDoNoHarm) {
  constexpr uint64_t kMost = UINT64_MAX;
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{kGroupAttemptsMax} + 1, kMost}) {
    const auto small = static_cast<uint32_t>(number);
    for (const uint64_t generation : {Ring::kGeneration, Ring::kGeneration + 1, kMost}) {
      proto::GroupRound round;
      round.set_generation(generation);
      if (small > kGroupAttemptsMax) round.set_attempt(small);
      Ring ring(3, kSmallSlice, 1);
      Message slice;
      *slice.envelope.mutable_group_slice()->mutable_round() = round;
      slice.envelope.mutable_group_slice()->set_from_rank(1);
      slice.envelope.mutable_group_slice()->set_stream(small);
      slice.envelope.mutable_group_slice()->set_sequence(number);
      slice.envelope.mutable_group_slice()->set_first(number);
      slice.envelope.mutable_group_slice()->set_count(number);
      ReceiveFrom(ring, 1, 0, slice);
      Message probe;
      proto::GroupProbe& kind = *probe.envelope.mutable_group_probe();
      *kind.mutable_round() = round;
      kind.set_from_rank(number == 0 ? 1 : small);
      ReceiveFrom(ring, 1, 0, probe);
      kind.set_from_rank(1);
      ReceiveFrom(ring, 1, 0, probe);
      kind.mutable_link()->set_number(number);
      kind.mutable_link()->set_reply(true);
      ReceiveFrom(ring, 1, 0, probe);
      kind.mutable_distance()->set_number(number);
      kind.mutable_distance()->set_reply(true);
      ReceiveFrom(ring, 1, 0, probe);
      Message hello;
      *hello.envelope.mutable_group_hello()->mutable_round() = round;
      hello.envelope.mutable_group_hello()->set_from_rank(small);
      ReceiveFrom(ring, 1, 0, hello);
      hello.envelope.mutable_group_hello()->set_from_rank(1);
      ReceiveFrom(ring, 1, 0, hello);
      ring.communicator(0).Wake(ring.now(), ring.outbox(0));
      EXPECT_TRUE(ring.communicator(0).ready());
      EXPECT_EQ(ring.communicator(0).losses(), 0u);
      EXPECT_TRUE(ring.communicator(0).failure().ok()) << ring.communicator(0).failure();
    }
  }
}

TEST(CommunicatorOneTest, AMemberThatCountsMoreSlicesThanCameMakesAllMeetAgain) {
  Ring ring(3, kSmallSlice, 1);
  Message probe;
  proto::GroupProbe& kind = *probe.envelope.mutable_group_probe();
  WriteRound(ring.communicator(0).round(), *kind.mutable_round());
  kind.set_from_rank(1);
  kind.mutable_slices_sent()->set_slices(UINT64_MAX);
  ReceiveFrom(ring, 1, 0, probe);
  ring.Run();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(ring.communicator(rank).ready());
    EXPECT_EQ(ring.communicator(rank).round().attempt, 1u);
  }
}

TEST(CommunicatorOneTest, AHelloBeyondALimitEndsTheGroupAndNamesItsSender) {
  proto::ClusterView view = Ring::ActiveView(3);
  Ring ring(view, {.rendezvous = RendezvousMode::kAgreed}, 1);
  Message hello;
  WriteRound(ring.communicator(0).round(), *hello.envelope.mutable_group_hello()->mutable_round());
  hello.envelope.mutable_group_hello()->set_from_rank(1);
  hello.frames.push_back(Buffer::CopyOf(std::vector<uint8_t>{0xff, 0xff, 0xff}));
  SetFrameChecksums(hello);
  Message damaged = hello;
  damaged.envelope.set_frame_checksums(0, damaged.envelope.frame_checksums(0) + 1);
  ReceiveFrom(ring, 1, 0, damaged);
  EXPECT_TRUE(ring.communicator(0).failure().ok());
  EXPECT_EQ(ring.communicator(0).NextWake(), absl::InfinitePast()) << "it was not noticed";
  ReceiveFrom(ring, 1, 0, hello);
  EXPECT_EQ(ring.communicator(0).failure().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ring.communicator(0).failure().message(),
              HasSubstr("worker-1 sent a hello that is none"));
}

TEST(CommunicatorOneTest, SlicesOfAnotherGenerationOrAStrangerHaveNoEffect) {
  Random random(1);
  Ring ring(2, kSmallSlice, 1);
  Trial trial(CollectiveKind::kAllReduce, 2, 8, random);
  trial.common.parts = EvenParts(8, 2);
  const auto before = trial.data;
  trial.Start(ring, 0);
  trial.Start(ring, 1);
  ring.Collect();
  const Message genuine = ring.link(0, NodeId(Ring::kFirstNode + 1)).front();
  Message stale = genuine;
  stale.envelope.mutable_group_slice()->mutable_round()->set_generation(Ring::kGeneration - 1);
  Message stranger = genuine;
  stranger.envelope.mutable_header()->set_node(99);
  Message restarted = genuine;
  restarted.envelope.mutable_header()->set_incarnation(9);
  for (const Message& message : {stale, stranger, restarted}) {
    EXPECT_TRUE(ring.communicator(1).Receive(ring.now(), message, ring.outbox(1)));
  }
  EXPECT_TRUE(SameBits(trial.data[1], before[1]));
  ring.communicator(1).Receive(ring.now(), genuine, ring.outbox(1));
  ring.communicator(1).Receive(ring.now(), genuine, ring.outbox(1));
  ring.Run();
  const std::vector<float> sum = ReferenceReduce(before, trial.common.parts);
  EXPECT_TRUE(SameBits(std::span(trial.data[1]).subspan(4), std::span<const float>(sum).subspan(4)))
      << "a repeated slice was added twice";
}

TEST(CommunicatorOneTest, ALostSliceIsNoticedByItsGap) {
  Random random(1);
  Ring ring(2, kSmallSlice, 1);
  Trial trial(CollectiveKind::kAllReduce, 2, 40, random);
  trial.common.parts = EvenParts(40, 2);
  trial.StartAll(ring);
  ring.Collect();
  ring.link(0, NodeId(Ring::kFirstNode + 1)).pop_front();
  ring.Run();
  EXPECT_THAT(trial.outcome[1].message(), HasSubstr("lost with a connection"));
}

// A member may skip sequences of a stream; what came early for those is forgotten.
TEST(CommunicatorOneTest, SkippedSequencesLeaveNothingBehind) {
  Random random(1);
  Ring ring(2, kSmallSlice, 1);
  Trial skipped(CollectiveKind::kBroadcast, 2, 8, random);
  Trial next(CollectiveKind::kBroadcast, 2, 8, random);
  for (Trial* trial : {&skipped, &next}) trial->common.root = 0;
  skipped.common.id = {.stream = 5, .sequence = 1};
  next.common.id = {.stream = 5, .sequence = 2};
  skipped.Start(ring, 0);
  next.Start(ring, 0);
  ring.Run();
  EXPECT_EQ(skipped.done, 0u) << "its frames are kept by the other member";
  next.Start(ring, 1);
  ring.Run();
  EXPECT_EQ(next.done, 2u);
  EXPECT_EQ(skipped.done, 1u);
  EXPECT_TRUE(SameBits(next.data[1], next.data[0]));
}

TEST(CommunicatorOneTest, MembersThatDisagreeAreTold) {
  Random random(1);
  Ring ring(2, kSmallSlice, 1);
  Trial two(CollectiveKind::kAllReduce, 2, 2, random);
  Trial three(CollectiveKind::kAllReduce, 2, 3, random);
  two.common.parts = EvenParts(2, 2);
  three.common.parts = EvenParts(3, 2);
  two.Start(ring, 0);
  three.Start(ring, 1);
  ring.Run();
  EXPECT_FALSE(two.outcome[0].ok());
  EXPECT_THAT(three.outcome[1].message(), HasSubstr("same"));
}

// Messages of the next generation may come before the view that has it. Those of anybody must leave
// room for those of members.
TEST(CommunicatorOneTest, StrangersDoNotTakeTheRoomOfMembers) {
  Random random(1);
  Ring ring(2, kSmallSlice, 1);
  Trial trial(CollectiveKind::kBroadcast, 2, 8, random);
  trial.common.root = 0;
  trial.Start(ring, 0);
  ring.Collect();
  // The member knows both, and that they have no group yet.
  Communicator late({.slice_bytes = kSmallSlice, .rendezvous = RendezvousMode::kAtOnce});
  Outbox outbox;
  proto::ClusterView before = Ring::ActiveView(2);
  before.clear_groups();
  late.SetView(ring.now(), NodeId(Ring::kFirstNode + 1), *ClusterView::Make(before), outbox);
  const std::deque<Message>& genuine = ring.link(0, NodeId(Ring::kFirstNode + 1));
  Message forged = genuine.front();
  forged.envelope.mutable_header()->set_node(99);
  const Buffer frame = Buffer::Allocate(kFrameBytesMax);
  for (forged.frames = {}; forged.frames.size() < kFramesMax;) forged.frames.push_back(frame);
  for (int i = 0; i < 100; ++i) late.Receive(ring.now(), forged, outbox);
  forged.frames.clear();
  for (size_t i = 0; i < kGroupEarlySlicesMax; ++i) late.Receive(ring.now(), forged, outbox);
  for (const Message& message : genuine) late.Receive(ring.now(), message, outbox);
  proto::ClusterView formed = Ring::ActiveView(2);
  formed.set_epoch(before.epoch() + 1);
  late.SetView(ring.now(), NodeId(Ring::kFirstNode + 1), *ClusterView::Make(formed), outbox);
  ASSERT_TRUE(late.formed());
  Collective collective = trial.common;
  collective.id = late.NextPlain();
  collective.algorithm = Algorithm::kRing;
  collective.data = trial.data[1];
  late.Start(ring.now(), std::move(collective), outbox);
  EXPECT_TRUE(SameBits(trial.data[1], trial.data[0]));
}

TEST(CommunicatorOneTest, WhatComesBeforeTheViewIsKept) {
  Random random(1);
  Ring ring(2, kSmallSlice, 1);
  Trial trial(CollectiveKind::kBroadcast, 2, 8, random);
  trial.common.root = 0;
  trial.Start(ring, 0);
  ring.Collect();
  Communicator late({.slice_bytes = kSmallSlice, .rendezvous = RendezvousMode::kAtOnce});
  Outbox outbox;
  for (const Message& message : ring.link(0, NodeId(Ring::kFirstNode + 1))) {
    late.Receive(ring.now(), message, outbox);
  }
  late.SetView(ring.now(), NodeId(Ring::kFirstNode + 1), *ClusterView::Make(Ring::ActiveView(2)),
               outbox);
  ASSERT_TRUE(late.formed());
  Collective collective = trial.common;
  collective.id = late.NextPlain();
  collective.algorithm = Algorithm::kRing;
  collective.data = trial.data[1];
  late.Start(ring.now(), std::move(collective), outbox);
  EXPECT_TRUE(SameBits(trial.data[1], trial.data[0]));
}

}  // namespace
}  // namespace covey::worker
