#include "worker/collective/schedule.h"

#include <optional>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
                                     CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                                     CollectiveKind::kBarrier};

std::vector<RingSchedule> AllMembers(CollectiveKind kind, uint32_t size, uint32_t root = 0) {
  std::vector<RingSchedule> members;
  for (uint32_t rank = 0; rank < size; ++rank) {
    members.emplace_back(
        RingSchedule::Options{.kind = kind, .rank = rank, .size = size, .root = root});
  }
  return members;
}

class ScheduleTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, ScheduleTest, testing::Range(1u, 10u));

TEST_P(ScheduleTest, WhatIsSentIsReceivedByTheNext) {
  const uint32_t size = GetParam();
  for (const CollectiveKind kind : kKinds) {
    const auto members = AllMembers(kind, size, size / 2);
    for (uint32_t rank = 0; rank < size; ++rank) {
      for (uint32_t hop = 0; hop <= members[rank].hops(); ++hop) {
        EXPECT_EQ(members[rank].SendPart(hop), members[(rank + 1) % size].ReceivePart(hop))
            << CollectiveName(kind) << " rank " << rank << " hop " << hop;
      }
    }
  }
}

TEST_P(ScheduleTest, WhatIsSentWasReceivedInTheHopBefore) {
  const uint32_t size = GetParam();
  for (const CollectiveKind kind : kKinds) {
    for (const RingSchedule& member : AllMembers(kind, size, size - 1)) {
      for (uint32_t hop = 1; hop < member.hops(); ++hop) {
        if (!member.SendPart(hop)) continue;
        EXPECT_EQ(member.SendPart(hop), member.ReceivePart(hop - 1)) << CollectiveName(kind);
      }
    }
  }
}

// Which members' data each member's copy of each part holds, in the order in which they were added.
using Content = std::vector<std::vector<std::vector<uint32_t>>>;

Content Play(CollectiveKind kind, uint32_t size, uint32_t root, Content content) {
  const auto members = AllMembers(kind, size, root);
  for (uint32_t hop = 0; hop < members[0].hops(); ++hop) {
    const Content before = content;
    for (uint32_t rank = 0; rank < size; ++rank) {
      const std::optional<uint32_t> part = members[rank].ReceivePart(hop);
      if (!part) continue;
      const std::vector<uint32_t>& arrived = before[(rank + size - 1) % size][*part];
      std::vector<uint32_t>& mine = content[rank][*part];
      std::vector<uint32_t> result = arrived;
      if (members[rank].Reduces(hop)) result.insert(result.end(), mine.begin(), mine.end());
      mine = result;
    }
  }
  return content;
}

Content EverybodyHasItsOwn(uint32_t size) {
  Content content(size);
  for (uint32_t rank = 0; rank < size; ++rank) content[rank].assign(size, {rank});
  return content;
}

std::vector<uint32_t> SumOrder(uint32_t part, uint32_t size) {
  std::vector<uint32_t> order;
  for (uint32_t i = 1; i <= size; ++i) order.push_back((part + i) % size);
  return order;
}

TEST_P(ScheduleTest, ReduceScatterSumsEachPartAtItsOwnerInTheStatedOrder) {
  const uint32_t size = GetParam();
  const Content end = Play(CollectiveKind::kReduceScatter, size, 0, EverybodyHasItsOwn(size));
  for (uint32_t part = 0; part < size; ++part) EXPECT_EQ(end[part][part], SumOrder(part, size));
}

TEST_P(ScheduleTest, AllReduceGivesEverybodyEverySum) {
  const uint32_t size = GetParam();
  const Content end = Play(CollectiveKind::kAllReduce, size, 0, EverybodyHasItsOwn(size));
  for (uint32_t rank = 0; rank < size; ++rank) {
    for (uint32_t part = 0; part < size; ++part) EXPECT_EQ(end[rank][part], SumOrder(part, size));
  }
}

TEST_P(ScheduleTest, AllGatherGivesEverybodyEachOwnersPart) {
  const uint32_t size = GetParam();
  const Content end = Play(CollectiveKind::kAllGather, size, 0, EverybodyHasItsOwn(size));
  for (uint32_t rank = 0; rank < size; ++rank) {
    for (uint32_t part = 0; part < size; ++part) {
      EXPECT_EQ(end[rank][part], std::vector<uint32_t>{part});
    }
  }
}

TEST_P(ScheduleTest, BroadcastReachesEverybodyFromAnyRoot) {
  const uint32_t size = GetParam();
  for (uint32_t root = 0; root < size; ++root) {
    const Content end = Play(CollectiveKind::kBroadcast, size, root, EverybodyHasItsOwn(size));
    for (uint32_t rank = 0; rank < size; ++rank) {
      EXPECT_EQ(end[rank][0], std::vector<uint32_t>{root});
    }
  }
}

// The last arrival is heard of by everybody before anybody's last receipt.
TEST_P(ScheduleTest, NobodyLeavesABarrierBeforeEverybodyHasCome) {
  const uint32_t size = GetParam();
  const auto members = AllMembers(CollectiveKind::kBarrier, size);
  for (uint32_t rank = 0; rank < size && size > 1; ++rank) {
    uint32_t last_receipt = 0;
    std::set<uint32_t> spoke_before;
    for (uint32_t hop = 0; hop < members[0].hops(); ++hop) {
      if (members[rank].ReceivePart(hop)) last_receipt = hop;
    }
    for (uint32_t hop = 0; hop <= last_receipt; ++hop) {
      for (uint32_t other = 0; other < size; ++other) {
        if (members[other].SendPart(hop)) spoke_before.insert(other);
      }
    }
    EXPECT_EQ(spoke_before.size(), size);
  }
}

TEST_P(ScheduleTest, EvenPartsCoverTheTensor) {
  const uint32_t size = GetParam();
  for (const size_t count : {0, 1, 2, 7, 8, 9, 1000}) {
    const std::vector<PartRange> parts = EvenParts(count, size);
    ASSERT_EQ(parts.size(), size);
    size_t next = 0;
    for (const PartRange& part : parts) {
      EXPECT_EQ(part.first, next);
      EXPECT_LE(part.count, count / size + 1);
      EXPECT_GE(part.count, count / size);
      next += part.count;
    }
    EXPECT_EQ(next, count);
  }
}

}  // namespace
}  // namespace covey::worker
