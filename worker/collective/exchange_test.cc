// SPDX-License-Identifier: Apache-2.0

// The exchange of parts: what of it the properties of other collectives do not show.

#include <vector>

#include "common/tensor/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/ring_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

constexpr size_t kSliceElements = 20;

// One exchange by all members of a ring.
struct Trial {
  Trial(uint32_t members, WireFormat format, size_t elements, uint64_t seed)
      : format(format),
        ring(Ring::ActiveView(members),
             {.slice_bytes = kSliceElements * sizeof(float), .rendezvous = RendezvousMode::kAtOnce},
             seed),
        residuals(members, std::vector<float>(elements, 0.25f)),
        rows(members),
        results(members) {
    Random random(seed);
    for (uint32_t rank = 0; rank < members; ++rank) {
      std::vector<float>& values = data.emplace_back();
      for (size_t i = 0; i < elements; ++i) {
        values.push_back(static_cast<float>(random.Uniform() * 2 - 1));
      }
    }
    // Some parts are empty.
    for (size_t first = 0; parts.size() < members;) {
      const size_t left = elements - first;
      const size_t count = parts.size() + 1 == members ? left
                           : random.Chance(0.3)        ? 0
                                                       : random.Below(left + 1);
      parts.push_back({.first = first, .count = count});
      first += count;
    }
  }

  Collective Of(uint32_t rank) {
    rows[rank].assign(parts[rank].count * ring.size(), -9);
    Collective exchange{.id = {.stream = 1, .sequence = 1},
                        .kind = CollectiveKind::kExchange,
                        .data = data[rank],
                        .parts = parts,
                        .rows = rows[rank],
                        .samples = 1 + rank,
                        .deadline = absl::UnixEpoch() + absl::Seconds(30),
                        .algorithm = Algorithm::kDirect,
                        .format = format};
    if (format != WireFormat::kFloat32) exchange.residual = residuals[rank];
    exchange.done = [this, rank](absl::Time, const CollectiveResult& result, Outbox&) {
      results[rank].push_back(result);
    };
    return exchange;
  }
  void Start(uint32_t rank, Collective collective) {
    ring.communicator(rank).Start(ring.now(), std::move(collective), ring.outbox(rank));
  }

  // What member `from` sends of the range, with what it has kept.
  std::vector<float> Sent(uint32_t from, PartRange part) const {
    std::vector<float> sent;
    for (size_t first = 0; first < part.count; first += kSliceElements) {
      const size_t count = std::min(kSliceElements, part.count - first);
      std::vector<float> slice;
      for (size_t i = 0; i < count; ++i) {
        slice.push_back(data[from][part.first + first + i] +
                        (format == WireFormat::kFloat32 ? 0 : 0.25f));
      }
      std::vector<uint8_t> bytes(EncodedBytes(format, count));
      Encode(format, slice, bytes);
      Decode(format, bytes, slice);
      sent.insert(sent.end(), slice.begin(), slice.end());
    }
    return sent;
  }

  const WireFormat format;
  Ring ring;
  std::vector<PartRange> parts;
  std::vector<std::vector<float>> data;
  std::vector<std::vector<float>> residuals;
  std::vector<std::vector<float>> rows;
  std::vector<std::vector<CollectiveResult>> results;
};

class ExchangeTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, ExchangeTest, testing::Range(1u, 8u));

TEST_P(ExchangeTest, EveryMemberGetsItsPartOfAllMembers) {
  const uint32_t members = GetParam();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const WireFormat format = kWireFormats[seed % std::size(kWireFormats)];
    Trial trial(members, format, seed % 5 == 0 ? seed : 20 * seed + 1, seed);
    if (seed % 3 == 0) trial.ring.RepeatMessages();
    const auto before = trial.data;
    for (uint32_t rank = 0; rank < members; ++rank) {
      trial.Start(rank, trial.Of(rank));
      for (uint64_t i = seed % 7; i > 0; --i) trial.ring.Step();
    }
    trial.ring.Run();
    EXPECT_EQ(trial.data, before);
    for (uint32_t rank = 0; rank < members; ++rank) {
      ASSERT_EQ(trial.results[rank].size(), 1u) << "seed " << seed;
      const CollectiveResult& result = trial.results[rank][0];
      ASSERT_TRUE(result.status.ok()) << result.status;
      const PartRange part = trial.parts[rank];
      EXPECT_EQ(result.samples, part.count == 0 ? 0 : members * (members + 1) / 2);
      for (uint32_t from = 0; from < members; ++from) {
        std::vector<float> expected = trial.Sent(from, part);
        if (from == rank) {
          const auto own = before[rank].begin() + static_cast<ptrdiff_t>(part.first);
          expected.assign(own, own + static_cast<ptrdiff_t>(part.count));
        }
        const auto row = trial.rows[rank].begin() + static_cast<ptrdiff_t>(from * part.count);
        ASSERT_EQ(std::vector<float>(row, row + static_cast<ptrdiff_t>(part.count)), expected)
            << "seed " << seed << ", from " << from << " at " << rank;
      }
    }
  }
}

// Neither takes the values of the other for its own kind.
TEST(ExchangeOneTest, AMemberThatAddsIsToldSo) {
  for (const Algorithm algorithm : kAlgorithms) {
    Trial trial(2, WireFormat::kFloat32, 100, 1);
    trial.parts = EvenParts(100, 2);
    trial.Start(0, trial.Of(0));
    Collective sum = trial.Of(1);
    sum.kind = CollectiveKind::kReduceScatter;
    sum.algorithm = algorithm;
    sum.rows = {};
    trial.Start(1, std::move(sum));
    trial.ring.Run();
    for (uint32_t rank = 0; rank < 2; ++rank) {
      ASSERT_EQ(trial.results[rank].size(), 1u);
      EXPECT_THAT(trial.results[rank][0].status.message(),
                  HasSubstr("all members must start the same collectives"));
    }
  }
}

TEST(ExchangeOneTest, TellsWhomItWaitsFor) {
  Trial trial(3, WireFormat::kFloat32, 90, 1);
  trial.parts = EvenParts(90, 3);
  for (const uint32_t rank : {0u, 1u}) trial.Start(rank, trial.Of(rank));
  trial.ring.Run();
  trial.ring.Pass(absl::Minutes(1));
  trial.ring.communicator(0).Wake(trial.ring.now(), trial.ring.outbox(0));
  const absl::Status& failure = trial.ring.communicator(0).failure();
  EXPECT_TRUE(absl::IsDeadlineExceeded(failure)) << failure;
  EXPECT_THAT(failure.message(), HasSubstr("exchange 1"));
  EXPECT_THAT(failure.message(), HasSubstr("worker-2"));
}

}  // namespace
}  // namespace covey::worker
