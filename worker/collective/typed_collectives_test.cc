// SPDX-License-Identifier: Apache-2.0

// Types and operations other than sums of float, for every algorithm, against a reference that
// follows the plan element by element.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/collective/algorithm.h"
#include "common/collective/plan.h"
#include "common/collective/sections.h"
#include "common/tensor/element_span.h"
#include "common/tensor/reduce.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/ring_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

// Slices are small, so that tensors have many: of 3 elements of 8 bytes, or 6 of 4.
constexpr size_t kSliceBytes = 24;

template <typename T>
using Tensors = std::vector<std::vector<T>>;  // one per member

template <typename T>
Tensors<T> RandomTensors(uint32_t members, size_t elements, Random& random) {
  Tensors<T> tensors(members, std::vector<T>(elements));
  for (std::vector<T>& tensor : tensors) {
    for (T& value : tensor) value = static_cast<T>((random.Uniform() * 2 - 1) * 1000);
  }
  return tensors;
}

// What the node of the reduction tree has of an element.
template <typename T>
T Combined(ReduceOp op, const Tensors<T>& before, const Plan& plan, const Section& section,
           uint32_t rank, size_t element) {
  std::optional<T> result;
  for (const uint32_t operand :
       plan.Reduce(section.owner.value_or(0), section.stripe, rank).operands) {
    const T value = operand == rank ? before[rank][element]
                                    : Combined(op, before, plan, section, operand, element);
    if (result) {
      ReduceInto(op, std::span(&*result, 1),
                 {reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
    } else {
      result = value;
    }
  }
  return *result;
}

// Runs one collective; returns the statuses of the members. `common` has everything but the data.
template <typename T>
std::vector<absl::Status> RunAll(Ring& ring, const Collective& common, Tensors<T>& data) {
  std::vector<absl::Status> statuses(data.size(), absl::UnknownError("not done"));
  for (uint32_t rank = 0; rank < data.size(); ++rank) {
    Collective collective = common;
    collective.id = ring.communicator(rank).NextPlain();
    collective.data = data[rank];
    collective.done = [&statuses, rank](absl::Time, const CollectiveResult& result, Outbox&) {
      statuses[rank] = result.status;
    };
    ring.communicator(rank).Start(ring.now(), std::move(collective), ring.outbox(rank));
  }
  ring.Run();
  return statuses;
}

Ring MakeRing(uint32_t members, uint64_t seed) {
  return Ring(Ring::ActiveView(members),
              {.slice_bytes = kSliceBytes, .rendezvous = RendezvousMode::kAtOnce}, seed);
}

template <typename T>
class TypedCollectivesTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, int32_t, int64_t>;
TYPED_TEST_SUITE(TypedCollectivesTest, Types);

TYPED_TEST(TypedCollectivesTest, AllReduceCombinesInTheOrderOfThePlan) {
  using T = TypeParam;
  Random random(1);
  for (const uint32_t members : {1u, 2u, 3u, 5u}) {
    for (const Algorithm algorithm : kAlgorithms) {
      for (const ReduceOp op : kReduceOps) {
        SCOPED_TRACE(absl::StrCat(members, " members, ", AlgorithmName(algorithm), ", operation ",
                                  static_cast<int>(op)));
        Ring ring = MakeRing(members, random.Next());
        const Tensors<T> before = RandomTensors<T>(members, 50, random);
        Tensors<T> data = before;
        const Collective common{.kind = CollectiveKind::kAllReduce,
                                .op = op,
                                .parts = EvenParts(50, members),
                                .algorithm = algorithm};
        for (const absl::Status& status : RunAll(ring, common, data)) ASSERT_TRUE(status.ok());
        const Plan plan(
            {.algorithm = algorithm, .size = members, .paths = std::vector<TopologyPath>(members)});
        for (const Section& section : SectionsOf(plan, common.kind, common.parts, 50, 0)) {
          for (size_t i = section.range.first; i < section.range.first + section.range.count; ++i) {
            const T expected = Combined(op, before, plan, section, section.owner.value_or(0), i);
            for (const std::vector<T>& tensor : data) ASSERT_EQ(tensor[i], expected) << i;
          }
        }
      }
    }
  }
}

TYPED_TEST(TypedCollectivesTest, ReduceScatterGivesEachMemberItsPart) {
  using T = TypeParam;
  Random random(2);
  Ring ring = MakeRing(3, 1);
  const Tensors<T> before = RandomTensors<T>(3, 20, random);
  Tensors<T> data = before;
  const Collective common{
      .kind = CollectiveKind::kReduceScatter, .op = ReduceOp::kMax, .parts = EvenParts(20, 3)};
  for (const absl::Status& status : RunAll(ring, common, data)) ASSERT_TRUE(status.ok());
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const PartRange part = common.parts[rank];
    for (size_t i = part.first; i < part.first + part.count; ++i) {
      EXPECT_EQ(data[rank][i], std::max({before[0][i], before[1][i], before[2][i]}));
    }
  }
}

// Lengths that are no multiple of a slice, nor of four.
TEST(BytesTest, TravelUnchanged) {
  Random random(3);
  for (const size_t elements : {1, 3, 24, 25, 101}) {
    for (const Algorithm algorithm : kAlgorithms) {
      Ring ring = MakeRing(4, elements);
      Tensors<uint8_t> before(4, std::vector<uint8_t>(elements));
      for (auto& tensor : before) {
        for (uint8_t& byte : tensor) byte = static_cast<uint8_t>(random.Next());
      }
      Tensors<uint8_t> sent = before;
      for (const absl::Status& status :
           RunAll(ring, {.kind = CollectiveKind::kBroadcast, .root = 2, .algorithm = algorithm},
                  sent)) {
        ASSERT_TRUE(status.ok()) << status;
      }
      for (const auto& tensor : sent) EXPECT_EQ(tensor, before[2]);

      const Collective gather{.kind = CollectiveKind::kAllGather,
                              .parts = EvenParts(elements, 4),
                              .algorithm = algorithm};
      Tensors<uint8_t> gathered = before;
      for (const absl::Status& status : RunAll(ring, gather, gathered)) ASSERT_TRUE(status.ok());
      for (uint32_t owner = 0; owner < 4; ++owner) {
        const PartRange part = gather.parts[owner];
        for (const auto& tensor : gathered) {
          for (size_t i = part.first; i < part.first + part.count; ++i) {
            ASSERT_EQ(tensor[i], before[owner][i]);
          }
        }
      }
    }
  }
}

TEST(MisfitTest, MembersWithOtherTypesOrOperationsAreRefused) {
  for (const bool other_type : {false, true}) {
    Ring ring = MakeRing(2, 1);
    std::vector<int32_t> integers(4, 1);
    std::vector<float> floats(4, 1);
    std::vector<absl::Status> statuses(2);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      Collective collective{.id = ring.communicator(rank).NextPlain(),
                            .kind = CollectiveKind::kAllReduce,
                            .data = integers,
                            .parts = EvenParts(4, 2)};
      if (rank == 1 && other_type) collective.data = floats;
      if (rank == 1 && !other_type) collective.op = ReduceOp::kMin;
      collective.done = [&statuses, rank](absl::Time, const CollectiveResult& result, Outbox&) {
        statuses[rank] = result.status;
      };
      ring.communicator(rank).Start(ring.now(), std::move(collective), ring.outbox(rank));
    }
    ring.Run();
    // One of them notices, and tells the other.
    EXPECT_TRUE(absl::IsInvalidArgument(statuses[0]) || absl::IsInvalidArgument(statuses[1]));
    for (const absl::Status& status : statuses) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("another type or operation"));
    }
  }
}

}  // namespace
}  // namespace covey::worker
