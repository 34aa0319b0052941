// SPDX-License-Identifier: Apache-2.0
#include "worker/group/hello_exchange.h"

#include <deque>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

MemberHello HelloOf(uint32_t rank) {
  return {.rank = rank, .said = MemberState{.finished = Step(100 + rank)}};
}

// Messages of a group on their way, in the order of each pair.
class Exchanges {
 public:
  Exchanges(uint32_t size, uint64_t seed) : random_(seed), links_(size * size), all(size) {
    for (uint32_t rank = 0; rank < size; ++rank) all[rank].Begin(rank, size);
  }
  void Say(uint32_t rank) {
    all[rank].Say(HelloOf(rank));
    Send(rank);
  }
  // False: nothing is on its way.
  bool DeliverOne() {
    std::vector<size_t> busy;
    for (size_t i = 0; i < links_.size(); ++i) {
      if (!links_[i].empty()) busy.push_back(i);
    }
    if (busy.empty()) return false;
    const size_t link = busy[random_.Below(busy.size())];
    const auto to = static_cast<uint32_t>(link % all.size());
    for (MemberHello& hello : links_[link].front()) all[to].Hear(std::move(hello));
    links_[link].pop_front();
    Send(to);
    return true;
  }
  size_t messages() const { return messages_; }

 private:
  void Send(uint32_t from) {
    for (const HelloExchange::Outgoing& outgoing : all[from].TakeOutgoing()) {
      ++messages_;
      auto& message = links_[from * all.size() + outgoing.peer].emplace_back();
      for (const MemberHello* hello : outgoing.hellos) message.push_back(*hello);
    }
  }

  Random random_;
  std::vector<std::deque<std::vector<MemberHello>>> links_;  // [from * size + to]
  size_t messages_ = 0;

 public:
  std::vector<HelloExchange> all;
};

TEST(HelloExchangeTest, AllMembersLearnWhatEachSaysInAnyOrder) {
  for (const uint32_t size : {1u, 2u, 3u, 7u, 31u, 32u, 33u, 40u, 64u, 65u, 100u}) {
    Random random(size);
    Exchanges exchanges(size, size);
    std::vector<uint32_t> order(size);
    for (uint32_t i = 0; i < size; ++i) order[i] = i;
    for (size_t i = size; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    for (const uint32_t rank : order) {
      exchanges.Say(rank);
      for (uint64_t moves = random.Below(size); moves > 0; --moves) exchanges.DeliverOne();
    }
    while (exchanges.DeliverOne()) {
    }
    for (const HelloExchange& exchange : exchanges.all) {
      ASSERT_TRUE(exchange.complete()) << size;
      EXPECT_THAT(exchange.Missing(), IsEmpty());
      for (uint32_t rank = 0; rank < size; ++rank) {
        EXPECT_EQ(exchange.of(rank).rank, rank);
        EXPECT_EQ(std::get<MemberState>(exchange.of(rank).said).finished, Step(100 + rank));
      }
    }
  }
}

TEST(HelloExchangeTest, LargeGroupsNeedFewMessages) {
  Exchanges small(32, 1);
  Exchanges large(100, 1);
  for (Exchanges* exchanges : {&small, &large}) {
    for (uint32_t rank = 0; rank < exchanges->all.size(); ++rank) exchanges->Say(rank);
    while (exchanges->DeliverOne()) {
    }
  }
  EXPECT_EQ(small.messages(), 32u * 31u);
  EXPECT_EQ(large.messages(), 100u * 7u);
}

TEST(HelloExchangeTest, NamesTheMembersThatAreMissing) {
  HelloExchange exchange;
  exchange.Begin(1, 4);
  exchange.Hear(HelloOf(3));
  EXPECT_THAT(exchange.TakeOutgoing(), IsEmpty());  // It has nothing to say yet.
  exchange.Say(HelloOf(1));
  EXPECT_EQ(exchange.TakeOutgoing().size(), 3u);
  EXPECT_THAT(exchange.Missing(), ElementsAre(0, 2));
  EXPECT_FALSE(exchange.complete());
}

TEST(HelloExchangeTest, TheOwnWordsAndTheFirstOfEachMemberCount) {
  HelloExchange exchange;
  exchange.Begin(0, 2);
  exchange.Hear({.rank = 0, .said = MemberState{.finished = Step(9)}});
  exchange.Hear(HelloOf(1));
  exchange.Hear({.rank = 1, .said = MemberState{.finished = Step(9)}});
  EXPECT_FALSE(exchange.complete());
  exchange.Say(HelloOf(0));
  ASSERT_TRUE(exchange.complete());
  for (const uint32_t rank : {0u, 1u}) {
    EXPECT_EQ(std::get<MemberState>(exchange.of(rank).said).finished, Step(100 + rank));
  }
}

}  // namespace
}  // namespace covey::worker
