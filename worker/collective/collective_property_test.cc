// SPDX-License-Identifier: Apache-2.0

// Every algorithm, kind, format and group size, under random orders of starting and of arrival,
// against a reference that follows the plan bit for bit, and against sums in doubles.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "common/tensor/codec.h"
#include "gtest/gtest.h"
#include "worker/testing/ring_fixture.h"

namespace covey::worker {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
                                     CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                                     CollectiveKind::kBarrier};
// Slices are small, so that tensors have many; not a multiple of an int8 block.
constexpr size_t kSliceElements = 20;
constexpr size_t kSizes[] = {0, 1, 2, 7, 19, 20, 21, 97, 211, 700};

// Largest relative error of one encoding, as wire_format.h says; of float, of one addition.
double ErrorOf(WireFormat format) {
  switch (format) {
    case WireFormat::kFloat32:
      return std::ldexp(1.0, -24);
    case WireFormat::kFloat16:
      return std::ldexp(1.0, -11);
    case WireFormat::kBfloat16:
      return std::ldexp(1.0, -8);
    case WireFormat::kInt8Block:
      return 1.0 / 253;
    case WireFormat::kFloat16Block:
      return std::ldexp(1.0, -11);
    case WireFormat::kFloat8Block:
      return std::ldexp(1.0, -4);
    case WireFormat::kTopBlock:
      return 1;
  }
  return 0;
}

std::vector<float> RoundTrip(WireFormat format, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(EncodedBytes(format, values.size()));
  Encode(format, values, bytes);
  std::vector<float> decoded(values.size());
  Decode(format, bytes, decoded);
  return decoded;
}

using Tensors = std::vector<std::vector<float>>;  // one per member

// What a node of the reduction tree has of a slice: its operands from left to right, children's as
// they come off the wire.
std::vector<float> SumOf(const Tensors& before, const Plan& plan, const Collective& collective,
                         const Section& section, uint32_t rank, PartRange slice) {
  std::vector<float> sum;
  const uint32_t owner = section.owner.value_or(0);
  for (const uint32_t operand : plan.Reduce(owner, section.stripe, rank).operands) {
    std::vector<float> values;
    if (operand == rank) {
      const auto first = before[rank].begin() + static_cast<ptrdiff_t>(slice.first);
      values.assign(first, first + static_cast<ptrdiff_t>(slice.count));
      // A member that is not alone in summing adds what the others get of it.
      if (!section.owner && rank == owner) values = RoundTrip(collective.format, values);
    } else {
      values =
          RoundTrip(collective.format, SumOf(before, plan, collective, section, operand, slice));
    }
    if (sum.empty()) {
      sum = values;
    } else {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
    }
  }
  return sum;
}

// The result of each slice at its owner or at all members, put together.
std::vector<float> Reference(const Tensors& before, const Plan& plan,
                             const Collective& collective) {
  std::vector<float> result = before[0];
  for (const Section& section :
       SectionsOf(plan, collective.kind, collective.parts, before[0].size(), collective.root)) {
    const size_t end = section.range.first + section.range.count;
    for (size_t first = section.range.first; first < end; first += kSliceElements) {
      const PartRange slice{.first = first, .count = std::min(kSliceElements, end - first)};
      std::vector<float> values;
      if (HasReduction(collective.kind)) {
        values = SumOf(before, plan, collective, section, section.owner.value_or(0), slice);
      } else {
        const auto at = before[*section.owner].begin() + static_cast<ptrdiff_t>(first);
        values.assign(at, at + static_cast<ptrdiff_t>(slice.count));
      }
      if (HasSpreading(collective.kind) && section.owner && plan.size() > 1) {
        values = RoundTrip(collective.format, values);
      }
      std::copy(values.begin(), values.end(), result.begin() + static_cast<ptrdiff_t>(slice.first));
    }
  }
  return result;
}

struct Trial {
  Collective common;
  std::vector<TopologyPath> paths;
  Tensors before;
  Tensors data;
  std::vector<CollectiveResult> results;
  std::vector<int> done;

  Trial(uint32_t members, std::vector<TopologyPath> paths, uint32_t stream, Random& random)
      : paths(std::move(paths)), results(members), done(members) {
    common.id = {.stream = stream, .sequence = 1 + random.Below(5)};
    common.kind = kKinds[random.Below(std::size(kKinds))];
    common.algorithm = kAlgorithms[random.Below(std::size(kAlgorithms))];
    common.format = kWireFormats[random.Below(std::size(kWireFormats))];
    common.root = static_cast<uint32_t>(random.Below(members));
    common.deadline = absl::UnixEpoch() + absl::Seconds(30);
    common.priority = static_cast<int>(random.Below(3));
    const size_t elements =
        common.kind == CollectiveKind::kBarrier ? 0 : kSizes[random.Below(std::size(kSizes))];
    for (uint32_t m = 0; m < members; ++m) {
      std::vector<float> values(elements);
      for (float& value : values) value = static_cast<float>(random.Uniform() * 2 - 1);
      before.push_back(values);
    }
    data = before;
    SetParts(elements, members, random);
  }

  // Unequal parts in any order, some of them empty.
  void SetParts(size_t elements, uint32_t members, Random& random) {
    common.parts.resize(members);
    std::vector<uint32_t> owners(members);
    std::iota(owners.begin(), owners.end(), 0);
    for (uint32_t i = members; i > 1; --i) std::swap(owners[i - 1], owners[random.Below(i)]);
    size_t first = 0;
    for (uint32_t i = 0; i < members; ++i) {
      const size_t left = elements - first;
      const size_t count = i + 1 == members     ? left
                           : random.Chance(0.3) ? 0
                                                : random.Below(left + 1);
      common.parts[owners[i]] = {.first = first, .count = count};
      first += count;
    }
  }

  void Start(Ring& ring, uint32_t rank) {
    Collective collective = common;
    collective.data = data[rank];
    collective.samples = rank + 1;
    collective.done = [this, rank](absl::Time, const CollectiveResult& result, Outbox&) {
      ++done[rank];
      results[rank] = result;
    };
    ring.communicator(rank).Start(ring.now(), std::move(collective), ring.outbox(rank));
  }

  std::string Describe() const {
    return absl::StrCat(AlgorithmName(common.algorithm), " ", CollectiveName(common.kind), " of ",
                        before[0].size(), " elements in ", WireFormatName(common.format), ", ",
                        before.size(), " members");
  }

  void Check() const {
    SCOPED_TRACE(Describe());
    const auto members = static_cast<uint32_t>(before.size());
    const Plan plan({.algorithm = common.algorithm, .size = members, .paths = paths});
    const std::vector<float> expected = Reference(before, plan, common);
    for (uint32_t m = 0; m < members; ++m) {
      ASSERT_EQ(done[m], 1);
      ASSERT_TRUE(results[m].status.ok()) << results[m].status;
      const bool scattered = common.kind == CollectiveKind::kReduceScatter;
      const PartRange mine =
          scattered ? common.parts[m] : PartRange{.first = 0, .count = data[m].size()};
      if (mine.count > 0) {
        ASSERT_EQ(std::memcmp(data[m].data() + mine.first, expected.data() + mine.first,
                              mine.count * sizeof(float)),
                  0)
            << "member " << m;
        if (HasReduction(common.kind)) {
          ASSERT_EQ(results[m].samples, members * (members + 1) / 2);
        }
        CheckAgainstDoubles(data[m], mine);
      }
    }
  }

  // Each value passes at most one encoding per member and addition, and one for the result; an
  // encoding errs by so much of the largest value of its block.
  void CheckAgainstDoubles(const std::vector<float>& got, PartRange range) const {
    for (size_t i = range.first; i < range.first + range.count; ++i) {
      if (!HasReduction(common.kind)) break;
      double exact = 0;
      for (const std::vector<float>& values : before) exact += values[i];
      const double members = static_cast<double>(before.size());
      const double largest = members;  // of any partial sum of values in [-1, 1]
      ASSERT_NEAR(
          got[i], exact,
          (members * ErrorOf(WireFormat::kFloat32) + members * ErrorOf(common.format)) * largest +
              1e-7);
    }
  }
};

class CollectivePropertyTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, CollectivePropertyTest,
                         testing::Values(1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 11u, 13u));

TEST_P(CollectivePropertyTest, EveryMemberGetsTheBitsOfThePlan) {
  const uint32_t members = GetParam();
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed * 100 + members);
    proto::ClusterView view = Ring::ActiveView(members);
    std::vector<TopologyPath> paths;
    for (proto::Node& node : *view.mutable_nodes()) {
      node.set_labels(
          absl::StrCat("z", random.Below(2), "/r", random.Below(3), "/h", random.Below(2)));
      paths.push_back(ParseTopologyPath(node.labels()));
    }
    Ring ring(
        view,
        {.slice_bytes = kSliceElements * sizeof(float), .rendezvous = RendezvousMode::kAtOnce},
        seed);
    if (seed % 4 == 0) ring.RepeatMessages();
    std::vector<std::unique_ptr<Trial>> trials;
    for (uint32_t stream = 1; stream <= 6; ++stream) {
      trials.push_back(std::make_unique<Trial>(members, paths, stream, random));
    }
    // Each member starts them in an order of its own, while messages flow.
    std::vector<std::vector<size_t>> order(members);
    for (std::vector<size_t>& of : order) {
      of.resize(trials.size());
      std::iota(of.begin(), of.end(), 0);
      for (size_t i = of.size(); i > 1; --i) std::swap(of[i - 1], of[random.Below(i)]);
    }
    for (size_t left = trials.size() * members; left > 0;) {
      const uint32_t rank = static_cast<uint32_t>(random.Below(members));
      if (!order[rank].empty()) {
        trials[order[rank].back()]->Start(ring, rank);
        order[rank].pop_back();
        --left;
      }
      for (uint64_t i = random.Below(12); i > 0; --i) ring.Step();
    }
    ring.Run();
    ring.Pass(absl::Minutes(1));
    for (uint32_t rank = 0; rank < members; ++rank) {
      ring.communicator(rank).Wake(ring.now(), ring.outbox(rank));  // Says who waits for whom.
      ASSERT_TRUE(ring.communicator(rank).failure().ok())
          << ring.communicator(rank).failure() << " seed " << seed;
      ASSERT_EQ(ring.communicator(rank).collectives(), 0u) << "seed " << seed;
    }
    for (const auto& trial : trials) trial->Check();
    if (HasFatalFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

// Every member has more to pass on than one peer may have in flight.
TEST(EncodedRingTest, PassesOnMoreThanTheCreditOfALink) {
  constexpr uint32_t kMembers = 3;
  constexpr size_t kElements = kMembers * 2 * kGroupBytesInFlightPerPeer;
  Ring ring(kMembers, kSliceBytesMax, 1);
  Tensors data(kMembers, std::vector<float>(kElements, 1));
  size_t done = 0;
  for (uint32_t rank = 0; rank < kMembers; ++rank) {
    ring.communicator(rank).Start(
        ring.now(),
        {.id = ring.communicator(rank).NextPlain(),
         .kind = CollectiveKind::kAllGather,
         .data = data[rank],
         .parts = EvenParts(kElements, kMembers),
         .format = WireFormat::kInt8Block,
         .done = [&done](absl::Time, const CollectiveResult&, Outbox&) { ++done; }},
        ring.outbox(rank));
  }
  for (int i = 0; i < 30 && done < kMembers; ++i) ring.Run();
  EXPECT_EQ(done, kMembers);
}

// What one message's rounding loses, later ones make good: the mean of many all-reduces with
// feedback is the sum, though one alone is far off.
TEST(ErrorFeedbackTest, TheMeanOfManyRoundsIsTheSum) {
  for (const Algorithm algorithm : kAlgorithms) {
    constexpr uint32_t kMembers = 5;
    constexpr size_t kElements = 50;
    constexpr int kRounds = 200;
    Ring ring(kMembers, kSliceElements * sizeof(float), 1);
    Random random(3);
    Tensors values(kMembers, std::vector<float>(kElements));
    for (auto& tensor : values) {
      for (float& value : tensor) value = static_cast<float>(random.Uniform() * 2 - 1);
    }
    Tensors residuals(kMembers, std::vector<float>(kElements));
    std::vector<double> total(kElements);
    for (int round = 0; round < kRounds; ++round) {
      Tensors data = values;
      for (uint32_t rank = 0; rank < kMembers; ++rank) {
        ring.communicator(rank).Start(ring.now(),
                                      {.id = ring.communicator(rank).NextPlain(),
                                       .kind = CollectiveKind::kAllReduce,
                                       .data = data[rank],
                                       .parts = EvenParts(kElements, kMembers),
                                       .algorithm = algorithm,
                                       .format = WireFormat::kInt8Block,
                                       .residual = residuals[rank]},
                                      ring.outbox(rank));
      }
      ring.Run();
      for (size_t i = 0; i < kElements; ++i) total[i] += data[0][i];
      for (uint32_t rank = 1; rank < kMembers; ++rank) ASSERT_EQ(data[rank], data[0]);
    }
    for (size_t i = 0; i < kElements; ++i) {
      double exact = 0;
      for (const auto& tensor : values) exact += tensor[i];
      // All residuals together are below one step of each encoding.
      EXPECT_NEAR(total[i] / kRounds, exact, 2.0 * kMembers * kMembers / 253 / kRounds)
          << AlgorithmName(algorithm);
    }
  }
}

}  // namespace
}  // namespace covey::worker
