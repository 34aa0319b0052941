// SPDX-License-Identifier: Apache-2.0
#include "common/net/seal/sealed_inbox.h"
#include "common/net/seal/refusal.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/net/seal/message_sealer.h"
#include "common/net/testing/secured_nodes.h"

namespace covey {
namespace {

constexpr Address kAlice = {NodeId(11), 0};
constexpr Address kBob = {NodeId(12), 3};
constexpr Address kCarol = {NodeId(13), 0};
const absl::Time kStart = absl::FromUnixSeconds(1000);

class SealedInboxTest : public testing::Test {
 protected:
  // The next message of this sender; its number is in its request id.
  SealedMessage Next(MessageSealer& sealer, const Address& from, size_t frame_bytes = 0,
                     const Address& to = kBob) {
    Message message;
    message.set_to(to);
    message.envelope.mutable_header()->set_node(from.node.value());
    message.envelope.mutable_header()->set_request_id(++sent_);
    message.envelope.set_from_loop(from.loop);
    if (frame_bytes > 0) message.frames.push_back(Buffer::Allocate(frame_bytes));
    const auto plain = PrepareHead({}, message);
    EXPECT_TRUE(plain.ok());
    SealedMessage sealed{.head = Buffer::Allocate(MessageSealer::HeadBytes(message, *plain))};
    std::vector<std::span<uint8_t>> frames;
    if (frame_bytes > 0) {
      sealed.frames.push_back(Buffer::Allocate(frame_bytes));
      frames.emplace_back(sealed.frames[0].MutableData(), frame_bytes);
    }
    EXPECT_TRUE(sealer.Seal(message, {sealed.head.MutableData(), sealed.head.size()}, frames).ok());
    return sealed;
  }
  // The request ids of all held messages that can be opened.
  std::vector<uint64_t> TakeHeld(absl::Time now) {
    std::vector<uint64_t> ids;
    while (auto message = inbox_.NextHeld(now)) {
      ids.push_back(message->envelope.header().request_id());
    }
    return ids;
  }
  // From now on Bob's view lacks Carol, who knows everybody.
  void HideCarol() {
    carol_node_ = nodes_.Remove(kCarol.node);
    nodes_.Publish();
  }
  void ShowCarol() {
    nodes_.node(kCarol.node) = carol_node_;
    nodes_.Publish();
  }

  SecuredNodes nodes_;
  const std::shared_ptr<DataKeys> alice_keys_ = nodes_.Join(kAlice.node);
  const std::shared_ptr<DataKeys> bob_keys_ = nodes_.Join(kBob.node);
  const std::shared_ptr<DataKeys> carol_keys_ = nodes_.Join(kCarol.node);
  MessageSealer alice_{alice_keys_, kAlice.loop};
  MessageSealer carol_{carol_keys_, kCarol.loop};
  struct {
    RefusalCounts refused;
    uint64_t dropped = 0;
  } counters_;
  RefusalLog refusals_;
  SealedInbox inbox_{{.keys = bob_keys_, .loop = kBob.loop},
                     {.refused = counters_.refused, .dropped = counters_.dropped},
                     refusals_};
  proto::Node carol_node_;
  uint64_t sent_ = 0;
};

TEST_F(SealedInboxTest, OpensWhatItCan) {
  EXPECT_TRUE(inbox_.Receive(kStart, Next(alice_, kAlice, 10)));
  EXPECT_FALSE(inbox_.holds_any());
  EXPECT_EQ(counters_.refused.total() + counters_.dropped, 0u);
}

TEST_F(SealedInboxTest, HoldsMessagesUntilTheirSenderIsKnownAndKeepsTheirOrder) {
  std::vector<SealedMessage> of_carol;
  for (int i = 0; i < 3; ++i) of_carol.push_back(Next(carol_, kCarol, 5));
  HideCarol();
  EXPECT_FALSE(inbox_.Receive(kStart, std::move(of_carol[0])));
  EXPECT_FALSE(inbox_.Receive(kStart, std::move(of_carol[1])));
  // Others pass.
  EXPECT_TRUE(inbox_.Receive(kStart, Next(alice_, kAlice)));
  EXPECT_TRUE(TakeHeld(kStart).empty());
  EXPECT_TRUE(inbox_.holds_any());
  ShowCarol();
  // Comes after the key and before the held ones were tried again.
  EXPECT_FALSE(inbox_.Receive(kStart, std::move(of_carol[2])));
  EXPECT_EQ(TakeHeld(kStart), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_FALSE(inbox_.holds_any());
  EXPECT_EQ(counters_.refused.total() + counters_.dropped, 0u);
}

TEST_F(SealedInboxTest, DropsWhatWasHeldInVain) {
  SealedMessage first = Next(carol_, kCarol);
  SealedMessage second = Next(carol_, kCarol);
  HideCarol();
  EXPECT_FALSE(inbox_.Receive(kStart, std::move(first)));
  EXPECT_FALSE(inbox_.Receive(kStart + absl::Seconds(1), std::move(second)));
  EXPECT_TRUE(TakeHeld(kStart + absl::Milliseconds(1999)).empty());
  EXPECT_EQ(counters_.dropped, 0u);
  EXPECT_TRUE(TakeHeld(kStart + absl::Seconds(2)).empty());
  EXPECT_EQ(counters_.dropped, 1u);
  // Another view without her does not prolong it.
  nodes_.Publish();
  EXPECT_TRUE(TakeHeld(kStart + absl::Milliseconds(2999)).empty());
  EXPECT_TRUE(inbox_.holds_any());
  nodes_.Publish();
  EXPECT_TRUE(TakeHeld(kStart + absl::Seconds(3)).empty());
  EXPECT_FALSE(inbox_.holds_any());
  EXPECT_EQ(counters_.dropped, 2u);
}

TEST_F(SealedInboxTest, HoldsABoundedNumberOfMessages) {
  std::vector<SealedMessage> of_carol;
  for (size_t i = 0; i < SealedInbox::kHeldMessagesMax + 3; ++i) {
    of_carol.push_back(Next(carol_, kCarol));
  }
  HideCarol();
  for (SealedMessage& sealed : of_carol) inbox_.Receive(kStart, std::move(sealed));
  EXPECT_EQ(counters_.dropped, 3u);
  ShowCarol();
  EXPECT_EQ(TakeHeld(kStart).size(), SealedInbox::kHeldMessagesMax);
}

TEST_F(SealedInboxTest, HoldsABoundedNumberOfBytes) {
  std::vector<SealedMessage> of_carol;
  for (size_t i = 0; i < 5; ++i) of_carol.push_back(Next(carol_, kCarol, (4 << 20) - 1000));
  HideCarol();
  for (SealedMessage& sealed : of_carol) inbox_.Receive(kStart, std::move(sealed));
  EXPECT_EQ(counters_.dropped, 1u);
  EXPECT_TRUE(TakeHeld(kStart + absl::Seconds(3)).empty());
  // The room is free again.
  ShowCarol();
  SealedMessage later = Next(carol_, kCarol, 16 << 20);
  HideCarol();
  inbox_.Receive(kStart, std::move(later));
  EXPECT_EQ(counters_.dropped, 6u);  // alone beyond the limit
  EXPECT_FALSE(inbox_.holds_any());
}

TEST_F(SealedInboxTest, CountsWhatItRefuses) {
  SealedMessage changed = Next(alice_, kAlice);
  changed.head.MutableData()[changed.head.size() - 1] ^= 1;
  EXPECT_FALSE(inbox_.Receive(kStart, std::move(changed)));
  EXPECT_FALSE(inbox_.Receive(kStart, {.head = Buffer::Allocate(3)}));
  EXPECT_EQ(counters_.refused.of(Refusal::kNotGenuine), 1u);
  EXPECT_EQ(counters_.refused.of(Refusal::kMalformed), 1u);
  EXPECT_EQ(counters_.refused.total(), 2u);
  EXPECT_EQ(counters_.dropped, 0u);
}

TEST_F(SealedInboxTest, DropsWhatIsMeantForAProcessThatWasHereBefore) {
  const auto dave = nodes_.Join(NodeId(14));
  EXPECT_FALSE(inbox_.Receive(kStart, Next(alice_, kAlice, 0, {NodeId(14), kBob.loop})));
  EXPECT_EQ(counters_.refused.total(), 0u);
  EXPECT_EQ(counters_.dropped, 1u);
}

}  // namespace
}  // namespace covey
