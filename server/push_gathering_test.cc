#include "server/push_gathering.h"

#include <algorithm>
#include <vector>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Code = absl::StatusCode;

// Groups as numbers in, sums out.
class Gatherer {
 public:
  Gatherer(const Contract& contract, std::vector<uint32_t> live)
      : gathering_(contract, spares_), known_(live.size()) {
    SetLive(live);
  }

  void SetLive(const std::vector<uint32_t>& live) {
    live_.clear();
    for (uint32_t group : live) live_.push_back({.id = GroupId(group)});
  }
  Code Admit(uint32_t group, uint64_t step) const {
    return gathering_.gate().Admit(GroupId(group), Step(step)).code();
  }
  void Push(uint32_t group, uint64_t step, float value) {
    const std::vector<float> gradient = {value};
    gathering_.Add({.key = {.producer = {.id = group}, .sequence = step},
                    .group = GroupId(group),
                    .step = Step(step),
                    .samples = 2},
                   Buffer::CopyOf({reinterpret_cast<const uint8_t*>(gradient.data()), 4}));
  }
  // The sums of all updates that are due.
  std::vector<float> Due() {
    std::vector<float> sums;
    pushes_in_updates_.clear();
    while (const auto update =
               gathering_.TakeDue(absl::UnixEpoch(), {.live = live_, .known = known_})) {
      sums.push_back(update->gradient_sum.elements()[0]);
      pushes_in_updates_.push_back(update->pushes.size());
      EXPECT_EQ(update->samples, 2 * update->pushes.size());
    }
    return sums;
  }
  const std::vector<size_t>& pushes_in_updates() const { return pushes_in_updates_; }
  uint64_t samples_held() const { return gathering_.gate().samples_held(); }
  size_t spare_bytes() const { return spares_.retained_bytes(); }

 private:
  SpareBuffers spares_{1 << 20};
  PushGathering gathering_;
  std::vector<LiveGroup> live_;
  size_t known_;
  std::vector<size_t> pushes_in_updates_;
};

TEST(PushGathering, AsyncAndSspUpdateOnArrival) {
  for (const Contract::Kind kind : {Contract::Kind::kAsync, Contract::Kind::kSsp}) {
    Gatherer gatherer({.kind = kind}, {1, 2});
    gatherer.Push(1, 1, 3);
    EXPECT_THAT(gatherer.Due(), ElementsAre(3));
    EXPECT_THAT(gatherer.Due(), IsEmpty());
    EXPECT_EQ(gatherer.spare_bytes(), 0u);  // One gradient is not copied.
  }
}

TEST(PushGathering, BspWaitsForEveryLiveGroupAndKeepsTheOrderOfSteps) {
  Gatherer gatherer({.kind = Contract::Kind::kBsp}, {1, 2});
  gatherer.Push(1, 1, 1);
  gatherer.Push(1, 2, 10);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  EXPECT_EQ(gatherer.samples_held(), 4u);
  gatherer.Push(2, 2, 20);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.Push(2, 1, 2);
  EXPECT_THAT(gatherer.Due(), ElementsAre(3, 30));
  EXPECT_EQ(gatherer.samples_held(), 0u);
}

TEST(PushGathering, BspSumsInTheOrderOfGroups) {
  // These three give different sums in different orders.
  const float values[] = {1e8f, 1.0f, -1e8f};
  std::vector<uint32_t> order = {1, 2, 3};
  do {
    Gatherer gatherer({.kind = Contract::Kind::kBsp}, {1, 2, 3});
    for (uint32_t group : order) gatherer.Push(group, 1, values[group - 1]);
    EXPECT_THAT(gatherer.Due(), ElementsAre((values[0] + values[1]) + values[2]));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(PushGathering, BspCountsTheHeldPushOfAGroupThatIsGone) {
  Gatherer gatherer({.kind = Contract::Kind::kBsp}, {1, 2, 3});
  gatherer.Push(2, 1, 2);
  gatherer.Push(1, 1, 1);
  gatherer.SetLive({1});
  EXPECT_THAT(gatherer.Due(), ElementsAre(3));
  gatherer.Push(1, 2, 5);
  gatherer.SetLive({});
  EXPECT_THAT(gatherer.Due(), ElementsAre(5));
}

TEST(PushGathering, BspRefusesClientsOldStepsRepeatsAndRunaways) {
  Gatherer gatherer({.kind = Contract::Kind::kBsp}, {1, 2});
  EXPECT_EQ(gatherer.Admit(0, 0), Code::kInvalidArgument);
  gatherer.Push(1, 3, 1);
  EXPECT_EQ(gatherer.Admit(1, 3), Code::kAborted);
  EXPECT_EQ(gatherer.Admit(1, 2), Code::kOk);
  gatherer.Push(2, 3, 1);
  EXPECT_THAT(gatherer.Due(), ElementsAre(2));
  EXPECT_EQ(gatherer.Admit(1, 3), Code::kInvalidArgument);
  for (uint64_t step = 4; step < 4 + kHeldStepsPerGroupMax; ++step) {
    EXPECT_EQ(gatherer.Admit(1, step), Code::kOk);
    gatherer.Push(1, step, 1);
  }
  EXPECT_EQ(gatherer.Admit(1, 4 + kHeldStepsPerGroupMax), Code::kResourceExhausted);
  EXPECT_EQ(gatherer.Admit(2, 4), Code::kOk);
}

TEST(PushGathering, BufferedSumsInTheOrderOfArrival) {
  Gatherer gatherer({.kind = Contract::Kind::kBuffered, .buffer = 3}, {1, 2});
  gatherer.Push(2, 1, 1e8f);
  gatherer.Push(1, 1, 1.0f);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.Push(2, 2, -1e8f);
  EXPECT_THAT(gatherer.Due(), ElementsAre((1e8f + 1.0f) + -1e8f));
  EXPECT_EQ(gatherer.pushes_in_updates()[0], 3u);
  EXPECT_GT(gatherer.spare_bytes(), 0u);  // The sum's memory came back.
}

TEST(PushGathering, BufferedFollowsTheNumberOfLiveGroups) {
  Gatherer gatherer({.kind = Contract::Kind::kBuffered}, {1, 2, 3});
  gatherer.Push(1, 1, 1);
  gatherer.Push(2, 1, 1);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.SetLive({1, 2});
  EXPECT_THAT(gatherer.Due(), ElementsAre(2));
  gatherer.Push(1, 2, 7);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.SetLive({});
  EXPECT_THAT(gatherer.Due(), ElementsAre(7));
}

TEST(PushGathering, BufferedShrinksWithTheShareOfLiveGroups) {
  Gatherer gatherer({.kind = Contract::Kind::kBuffered, .buffer = 4}, {1, 2});
  for (uint64_t step = 1; step <= 3; ++step) gatherer.Push(1, step, 1);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.SetLive({1});
  EXPECT_THAT(gatherer.Due(), ElementsAre(3));
  gatherer.Push(1, 4, 1);
  EXPECT_THAT(gatherer.Due(), IsEmpty());
  gatherer.Push(1, 5, 1);
  EXPECT_THAT(gatherer.Due(), ElementsAre(2));
}

TEST(PushGathering, BufferedWithoutAnyGroupCountsArrivals) {
  Gatherer one({.kind = Contract::Kind::kBuffered}, {});
  one.Push(0, 0, 1);
  EXPECT_THAT(one.Due(), ElementsAre(1));
  Gatherer two({.kind = Contract::Kind::kBuffered, .buffer = 2}, {});
  two.Push(0, 0, 1);
  EXPECT_THAT(two.Due(), IsEmpty());
  two.Push(0, 0, 1);
  EXPECT_THAT(two.Due(), ElementsAre(2));
}

// Whatever the contract and however groups end: nothing is lost, nothing counts twice.
TEST(PushGathering, EveryPushIsPartOfExactlyOneUpdate) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Contract contract{.kind = static_cast<Contract::Kind>(random.Below(4)),
                            .buffer = random.Below(5)};
    std::vector<uint32_t> live = {1, 2, 3};
    Gatherer gatherer(contract, live);
    std::vector<uint64_t> steps(4, 0);
    double pushed = 0;
    double applied = 0;
    const auto take = [&] {
      for (float sum : gatherer.Due()) applied += sum;
    };
    for (int i = 0; i < 100 && !live.empty(); ++i) {
      const uint32_t group = live[random.Below(live.size())];
      if (gatherer.Admit(group, steps[group] + 1) != Code::kOk) continue;
      gatherer.Push(group, ++steps[group], 1);
      pushed += 1;
      take();
      if (random.Chance(0.02)) {
        std::erase(live, group);
        gatherer.SetLive(live);
        take();
      }
    }
    gatherer.SetLive({});
    take();
    ASSERT_EQ(applied, pushed) << "seed " << seed;
    ASSERT_EQ(gatherer.samples_held(), 0u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace covey::server
