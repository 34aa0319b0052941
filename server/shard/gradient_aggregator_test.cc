// SPDX-License-Identifier: Apache-2.0
#include "server/shard/gradient_aggregator.h"

#include <algorithm>
#include <vector>

#include "common/net/testing/frame_lender.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// common/contract/update_gate_test.cc tests when pushes are due; this file tests their sums.

// Takes groups as numbers, and returns sums.
class Gatherer {
 public:
  Gatherer(const Contract& contract, const std::vector<uint32_t>& live)
      : aggregator_(contract, spares_) {
    for (uint32_t group : live) live_.push_back({.id = GroupId(group)});
  }

  void Push(uint32_t group, uint64_t step, float value) {
    const std::vector<float> gradient = {value};
    aggregator_.Add(
        {.key = {.producer = {.id = group}, .sequence = step},
         .group = GroupId(group),
         .step = Step(step),
         .samples = 2},
        {.elements = Buffer::CopyOf({reinterpret_cast<const uint8_t*>(gradient.data()), 4}),
         .keys = {}});
  }
  // The sums of all updates that are due.
  std::vector<float> Due() {
    std::vector<float> sums;
    pushes_.clear();
    const GroupCensus groups{.live = live_, .initial = live_.size()};
    while (const auto update = aggregator_.TakeDue(absl::UnixEpoch(), groups)) {
      sums.push_back(update->gradient_sum.gradient().elements[0]);
      for (const ReceivedPush& push : update->pushes) {
        pushes_.push_back(push.group.value() * 10 + push.step.value());
      }
      EXPECT_EQ(update->samples, 2 * update->pushes.size());
    }
    return sums;
  }
  // The pushes of those updates: group and step in one number.
  const std::vector<uint64_t>& pushes() const { return pushes_; }
  void SwitchTo(const Contract& contract) { aggregator_.SwitchTo(contract); }
  GradientAggregator& aggregator() { return aggregator_; }

 private:
  BufferPool spares_{1 << 20};
  GradientAggregator aggregator_;
  std::vector<LiveGroup> live_;
  std::vector<uint64_t> pushes_;
};

template <typename T>
Buffer BytesOf(const std::vector<T>& values) {
  return Buffer::CopyOf(
      {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)});
}

// Three values whose sum depends on the order.
constexpr float kValues[] = {1e8f, 1.0f, -1e8f};

TEST(GradientAggregator, OneGradientAloneIsDueAtOnce) {
  for (const Contract::Kind kind : {Contract::Kind::kAsync, Contract::Kind::kSsp}) {
    Gatherer gatherer({.kind = kind}, {1, 2});
    gatherer.Push(1, 1, 3);
    EXPECT_THAT(gatherer.Due(), ElementsAre(3));
    EXPECT_THAT(gatherer.Due(), IsEmpty());
  }
}

TEST(GradientAggregator, BspAndLocalSumInTheOrderOfGroups) {
  for (const Contract::Kind kind : {Contract::Kind::kBsp, Contract::Kind::kLocal}) {
    std::vector<uint32_t> order = {1, 2, 3};
    do {
      Gatherer gatherer({.kind = kind}, {1, 2, 3});
      for (uint32_t group : order) gatherer.Push(group, 1, kValues[group - 1]);
      EXPECT_THAT(gatherer.Due(), ElementsAre((kValues[0] + kValues[1]) + kValues[2]));
      EXPECT_THAT(gatherer.pushes(), ElementsAre(11, 21, 31));
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// Rows of one element, and the update's mean as a shard computes it: the sum over all samples.
TEST(GradientAggregator, ARowsMeanIsOverAllPushesOrOverThoseThatHoldIt) {
  const struct {
    RoundMean mean;
    std::vector<float> means;
  } cases[] = {{RoundMean::kOfAllPushes, {0.5f, 3.5f, 1.5f}},
               {RoundMean::kOfHolders, {2, 3.5f, 2}}};
  for (const auto& [mean, means] : cases) {
    BufferPool spares(1 << 20);
    GradientAggregator aggregator({.kind = Contract::Kind::kLocal}, spares, 1, mean);
    const std::vector<LiveGroup> live = {{.id = GroupId(1)}, {.id = GroupId(2)}};
    const auto push = [&](uint32_t group, uint64_t samples, const std::vector<uint64_t>& keys,
                          const std::vector<float>& rows) {
      aggregator.Add({.key = {.producer = {.id = group}, .sequence = 1},
                      .group = GroupId(group),
                      .step = Step(1),
                      .samples = samples},
                     {.elements = BytesOf(rows), .keys = BytesOf(keys)});
    };
    push(1, 2, {3, 5}, {4, 10});
    push(2, 6, {5, 8}, {18, 12});
    const auto update = aggregator.TakeDue(absl::UnixEpoch(), {.live = live, .initial = 2});
    ASSERT_TRUE(update.has_value());
    EXPECT_EQ(update->samples, 8u);
    const Gradient sum = update->gradient_sum.gradient();
    EXPECT_THAT(sum.keys, ElementsAre(3, 5, 8));
    ASSERT_EQ(sum.elements.size(), 3u);
    for (size_t row = 0; row < 3; ++row) EXPECT_FLOAT_EQ(sum.elements[row] / 8, means[row]) << row;
  }
}

TEST(GradientAggregator, ALateChangeIsSummedBesideItsGroups) {
  Gatherer gatherer({.kind = Contract::Kind::kLocal, .quorum = 2}, {1, 2, 3});
  gatherer.Push(1, 1, 5);
  gatherer.Push(2, 1, 6);
  EXPECT_THAT(gatherer.Due(), ElementsAre(11));
  gatherer.Push(3, 1, kValues[1]);
  gatherer.Push(3, 2, kValues[2]);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.Push(1, 2, kValues[0]);
  EXPECT_THAT(gatherer.Due(), ElementsAre((kValues[0] + kValues[1]) + kValues[2]));
  EXPECT_THAT(gatherer.pushes(), ElementsAre(12, 31, 32));
}

TEST(GradientAggregator, BufferedSumsInTheOrderOfArrival) {
  Gatherer gatherer({.kind = Contract::Kind::kBuffered, .buffer = 3}, {1, 2});
  gatherer.Push(2, 1, kValues[0]);
  gatherer.Push(1, 1, kValues[1]);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.Push(2, 2, kValues[2]);
  EXPECT_THAT(gatherer.Due(), ElementsAre((kValues[0] + kValues[1]) + kValues[2]));
  EXPECT_THAT(gatherer.pushes(), ElementsAre(21, 11, 22));
}

TEST(GradientAggregator, CopiesALentGradientOnlyIfItIsHeld) {
  for (const Contract::Kind kind :
       {Contract::Kind::kAsync, Contract::Kind::kBsp, Contract::Kind::kBuffered}) {
    for (const bool is_due : {true, false}) {
      FrameLender lender;
      BufferPool spares(1 << 20);
      const Contract contract{.kind = kind, .buffer = is_due ? 1u : 2u};
      GradientAggregator aggregator(contract, spares);
      std::vector<LiveGroup> live = {{.id = GroupId(1)}};
      if (!is_due) live.push_back({.id = GroupId(2)});
      const GroupCensus groups{.live = live, .initial = live.size()};
      Buffer lent = lender.Lend(Buffer::CopyOf(std::vector<uint8_t>(4)));
      aggregator.Add({.key = {.producer = {.id = 1}, .sequence = 1},
                      .group = GroupId(1),
                      .step = Step(1),
                      .samples = 1},
                     {.elements = lent, .keys = {}}, {.frame = lent, .checksum = 7});
      auto update = aggregator.TakeDue(absl::UnixEpoch(), groups);
      ASSERT_EQ(update.has_value(), is_due || kind == Contract::Kind::kAsync);
      aggregator.KeepHeld();
      if (update) {
        EXPECT_EQ(update->gradient_sum.elements().data(), lent.data());
        EXPECT_EQ(update->encoded.frame.data(), lent.data());
        continue;
      }
      lent = Buffer();
      EXPECT_EQ(lender.out(), 0u);
      EXPECT_EQ(aggregator.held_bytes(), 4u);
      aggregator.FlushPartialBuffer();
      live.pop_back();
      update = aggregator.TakeDue(absl::UnixEpoch(), groups);
      ASSERT_TRUE(update.has_value());
      // One copy is both.
      EXPECT_EQ(update->encoded.frame.data(), update->gradient_sum.elements().data());
      EXPECT_EQ(update->encoded.checksum, 7u);
    }
  }
}

TEST(GradientAggregator, EachContractsPushesAreSummedApart) {
  Gatherer gatherer({.kind = Contract::Kind::kBsp}, {1, 2});
  gatherer.Push(1, 1, 1);
  gatherer.Push(1, 2, 10);
  gatherer.SwitchTo({.kind = Contract::Kind::kBuffered, .buffer = 3});
  EXPECT_THAT(gatherer.Due(), ElementsAre(1, 10));
  gatherer.Push(2, 1, 100);
  gatherer.Push(2, 2, 1000);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.SwitchTo({.kind = Contract::Kind::kBsp});
  EXPECT_THAT(gatherer.Due(), ElementsAre(1100));
  gatherer.Push(1, 3, 5);
  gatherer.Push(2, 3, 6);
  EXPECT_THAT(gatherer.Due(), ElementsAre(11));
}

TEST(GradientAggregator, PushesBeyondAreInNoSumBeforeTheirRelease) {
  Gatherer gatherer({.kind = Contract::Kind::kBuffered, .buffer = 3}, {1, 2, 3});
  gatherer.aggregator().HoldBeyond({{GroupId(1), Step(1)}, {GroupId(2), Step(1)}});
  gatherer.Push(1, 1, 1);
  gatherer.Push(1, 2, 20);
  gatherer.Push(2, 1, 2);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  EXPECT_EQ(gatherer.aggregator().held_bytes(), 2 * sizeof(float));
  gatherer.aggregator().HurryHeld();
  EXPECT_THAT(gatherer.Due(), ElementsAre(3));
  EXPECT_THAT(gatherer.pushes(), ElementsAre(11, 21));
  gatherer.aggregator().Release();
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.Push(2, 2, 40);
  gatherer.Push(3, 1, 80);
  EXPECT_THAT(gatherer.Due(), ElementsAre(140));
  EXPECT_THAT(gatherer.pushes(), ElementsAre(12, 22, 31));
}

TEST(GradientAggregator, ReleasedPushesAreAppliedOneByOne) {
  Gatherer gatherer({.kind = Contract::Kind::kAsync}, {1, 2});
  gatherer.aggregator().HoldBeyond({{GroupId(1), Step(1)}, {GroupId(2), Step(1)}});
  gatherer.Push(1, 2, 20);
  gatherer.Push(2, 2, 40);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.aggregator().Release();
  EXPECT_THAT(gatherer.Due(), ElementsAre(20, 40));
  EXPECT_EQ(gatherer.aggregator().held_bytes(), 0u);
}

TEST(GradientAggregator, ASwitchOfTheContractAppliesWhatIsBeyond) {
  Gatherer gatherer({.kind = Contract::Kind::kAsync}, {1, 2});
  gatherer.aggregator().HoldBeyond({{GroupId(1), Step(1)}, {GroupId(2), Step(1)}});
  gatherer.Push(1, 2, 20);
  gatherer.SwitchTo({.kind = Contract::Kind::kBsp});
  EXPECT_THAT(gatherer.Due(), ElementsAre(20));
}

}  // namespace
}  // namespace covey::server
