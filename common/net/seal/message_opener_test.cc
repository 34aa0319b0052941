// SPDX-License-Identifier: Apache-2.0
#include "common/net/seal/message_opener.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/net/seal/message_sealer.h"
#include "common/net/testing/secured_nodes.h"

namespace covey {
namespace {

constexpr Address kAlice = {NodeId(11), 1};
constexpr Address kBob = {NodeId(12), 3};
constexpr Address kMallory = {NodeId(13), 0};
constexpr Incarnation kIncarnation = Incarnation(99);

Buffer Pattern(size_t size, uint8_t seed) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + seed);
  return Buffer::CopyOf(bytes);
}

Message MessageOf(const Address& from, const Address& to, std::vector<Buffer> frames = {}) {
  Message message;
  message.set_to(to);
  message.envelope.mutable_header()->set_node(from.node.value());
  message.envelope.mutable_header()->set_incarnation(kIncarnation.value());
  message.envelope.set_from_loop(from.loop);
  message.envelope.mutable_push_request()->mutable_id()->set_sequence(5);
  message.frames.assign(frames.begin(), frames.end());
  return message;
}

SealedMessage CopyOf(const SealedMessage& sealed) {
  SealedMessage copy{.head = Buffer::CopyOf(sealed.head.bytes()), .connection = sealed.connection};
  for (const Buffer& frame : sealed.frames) copy.frames.push_back(Buffer::CopyOf(frame.bytes()));
  return copy;
}

absl::StatusOr<SealedMessage> Seal(MessageSealer& sealer, Message message) {
  const absl::StatusOr<size_t> plain = PrepareHead({}, message);
  EXPECT_TRUE(plain.ok());
  SealedMessage sealed{.head = Buffer::Allocate(MessageSealer::HeadBytes(message, *plain))};
  std::vector<std::span<uint8_t>> to;
  for (const Buffer& frame : message.frames) {
    sealed.frames.push_back(Buffer::Allocate(frame.size()));
    Buffer& last = sealed.frames.back();
    to.emplace_back(last.empty() ? nullptr : last.MutableData(), last.size());
  }
  const absl::Status status =
      sealer.Seal(message, {sealed.head.MutableData(), sealed.head.size()}, to);
  if (!status.ok()) return status;
  return sealed;
}

absl::StatusOr<Message> OpenIn(MessageOpener& opener, SealedMessage& sealed) {
  const auto head = opener.ReadHead(sealed);
  if (!head.ok()) return head.status();
  return opener.Open(*head, sealed);
}

class MessageOpenerTest : public testing::Test {
 protected:
  SealedMessage MustSeal(std::vector<Buffer> frames = {}) {
    auto sealed = Seal(sealer_, MessageOf(kAlice, kBob, std::move(frames)));
    EXPECT_TRUE(sealed.ok()) << sealed.status();
    return *std::move(sealed);
  }
  absl::StatusOr<Message> Open(const SealedMessage& sealed) {
    SealedMessage copy = CopyOf(sealed);
    return OpenIn(opener_, copy);
  }
  bool Opens(const SealedMessage& sealed) { return Open(sealed).ok(); }

  SecuredNodes nodes_;
  const std::shared_ptr<DataKeys> alice_ = nodes_.Join(kAlice.node, kIncarnation);
  const std::shared_ptr<DataKeys> bob_ = nodes_.Join(kBob.node, kIncarnation);
  MessageSealer sealer_{alice_, kAlice.loop};
  MessageOpener opener_{bob_, kBob.loop, {}};
};

TEST_F(MessageOpenerTest, OpensWhatWasSealed) {
  const std::vector<Buffer> frames = {Pattern(1000, 1), Pattern(0, 2), Pattern(65537, 3),
                                      Pattern(1, 4)};
  SealedMessage sealed = MustSeal(frames);
  sealed.connection = 7;
  ASSERT_EQ(sealed.frames.size(), 4u);
  EXPECT_NE(sealed.frames[0].bytes()[0], frames[0].bytes()[0]);
  const auto message = Open(sealed);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->from(), kAlice);
  EXPECT_EQ(message->to(), kBob);
  EXPECT_EQ(message->connection, 7u);
  EXPECT_EQ(message->envelope.push_request().id().sequence(), 5u);
  ASSERT_EQ(message->frames.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(std::equal(frames[i].bytes().begin(), frames[i].bytes().end(),
                           message->frames[i].bytes().begin(), message->frames[i].bytes().end()));
  }
}

TEST_F(MessageOpenerTest, AChangeOfAnyByteIsRefused) {
  SealedMessage sealed = MustSeal({Pattern(40, 1), Pattern(16, 2)});
  size_t tried = 0;
  for (Buffer* part : {&sealed.head, &sealed.frames[0], &sealed.frames[1]}) {
    uint8_t* const bytes = part->MutableData();
    for (size_t i = 0; i < part->size(); ++i) {
      for (const uint8_t flip : {uint8_t{1}, uint8_t{0x80}, uint8_t{0xff}}) {
        bytes[i] ^= flip;
        EXPECT_FALSE(Opens(sealed)) << "byte " << i;
        bytes[i] ^= flip;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 3 * 150u);
  // None of it has moved the window, or spoiled a key.
  EXPECT_TRUE(Opens(sealed));
}

TEST_F(MessageOpenerTest, OpensAMessageOnce) {
  const SealedMessage first = MustSeal();
  const SealedMessage second = MustSeal();
  EXPECT_TRUE(Opens(second));
  EXPECT_TRUE(Opens(first));
  EXPECT_FALSE(Opens(first));
  EXPECT_FALSE(Opens(second));
}

TEST_F(MessageOpenerTest, OpensWhatIsLateWithinTheWindow) {
  std::vector<SealedMessage> messages;
  for (int i = 0; i < 1030; ++i) messages.push_back(MustSeal());
  EXPECT_TRUE(Opens(messages[1029]));
  EXPECT_TRUE(Opens(messages[1029 - 1023]));
  EXPECT_FALSE(Opens(messages[1029 - 1024]));
  EXPECT_TRUE(Opens(messages[500]));
}

TEST_F(MessageOpenerTest, ARefusedMessageIsNotTakenForSeen) {
  const SealedMessage sealed = MustSeal({Pattern(8, 1)});
  SealedMessage changed = CopyOf(sealed);
  changed.frames[0].MutableData()[3] ^= 1;
  EXPECT_FALSE(Opens(changed));
  EXPECT_TRUE(Opens(sealed));
}

TEST_F(MessageOpenerTest, FollowsThroughTheKeysOfADirection) {
  constexpr size_t kMessages = 65536 + 10;
  std::vector<SealedMessage> around;
  for (size_t i = 0; i < kMessages; ++i) {
    SealedMessage sealed = MustSeal();
    if (i >= 65530) {
      around.push_back(std::move(sealed));
    } else if (i % 1000 == 0) {
      EXPECT_TRUE(Opens(sealed));
    }
  }
  // The second key first, then late messages of the first one, then on.
  EXPECT_TRUE(Opens(around[7]));
  EXPECT_TRUE(Opens(around[2]));
  EXPECT_TRUE(Opens(around[8]));
  EXPECT_TRUE(Opens(around[3]));
  EXPECT_FALSE(Opens(around[8]));
}

TEST_F(MessageOpenerTest, AnotherLoopOfTheReceiverRefuses) {
  MessageOpener other(bob_, kBob.loop + 1, {});
  SealedMessage sealed = MustSeal();
  EXPECT_EQ(OpenIn(other, sealed).status().code(), absl::StatusCode::kPermissionDenied);
  // Nor when the head frame is rewritten.
  SealedMessage rewritten = MustSeal();
  rewritten.head.MutableData()[28] = kBob.loop + 1;
  EXPECT_EQ(OpenIn(other, rewritten).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(MessageOpenerTest, AnotherNodeDropsIt) {
  const auto mallory = nodes_.Join(kMallory.node, kIncarnation);
  MessageOpener other(mallory, kBob.loop, {});
  SealedMessage sealed = MustSeal();
  EXPECT_EQ(OpenIn(other, sealed).status().code(), absl::StatusCode::kAborted);
  SealedMessage rewritten = MustSeal();
  rewritten.head.MutableData()[32] = static_cast<uint8_t>(kMallory.node.value());
  EXPECT_EQ(OpenIn(other, rewritten).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(MessageOpenerTest, ItsSenderDoesNotTakeItBack) {
  MessageOpener back(alice_, kBob.loop, {});
  SealedMessage sealed = MustSeal();
  uint8_t* const head = sealed.head.MutableData();
  std::swap_ranges(head + 16, head + 24, head + 32);
  EXPECT_EQ(OpenIn(back, sealed).status().code(), absl::StatusCode::kUnauthenticated);
}

// A node of the job that says it is another one: with its own key, or as the sealed message's
// content.
class ForgerTest : public MessageOpenerTest {
 protected:
  // `inside` sealed with Mallory's key, by a head frame that names `outside`.
  SealedMessage Forge(const Address& outside, Message inside) {
    const auto plain = PrepareHead({}, inside);
    EXPECT_TRUE(plain.ok());
    const SealedHead head = {
        .sender = outside, .receiver = kBob, .envelope_bytes = *plain - kWirePreludeBytes};
    SealedMessage sealed{.head = Buffer::Allocate(head.bytes())};
    const std::span<uint8_t> bytes = {sealed.head.MutableData(), sealed.head.size()};
    WriteSealedHead(head, bytes);
    const std::span<uint8_t> envelope = bytes.subspan(head.envelope_offset());
    EXPECT_TRUE(
        inside.envelope.SerializeToArray(envelope.data(), static_cast<int>(envelope.size())));
    const auto peer = mallory_->Find(kBob.node);
    auto cipher = MakeCipher(PartCipher::Use::kSeal, (*peer)->pair,
                             mallory_->To(**peer, kMallory.loop, kBob.loop), 0);
    EXPECT_TRUE(cipher->Seal(EnvelopeNumber(head), bytes.first(head.envelope_tag_offset()),
                             envelope, envelope.data(), TagAt(bytes, head.envelope_tag_offset())));
    return sealed;
  }

  const std::shared_ptr<DataKeys> mallory_ = nodes_.Join(kMallory.node, kIncarnation);
};

TEST_F(ForgerTest, ItsOwnMessagesAreOpened) {
  EXPECT_TRUE(Opens(Forge(kMallory, MessageOf(kMallory, kBob))));
}

TEST_F(ForgerTest, AnotherNodesNameIsRefused) {
  EXPECT_FALSE(Opens(Forge(kMallory, MessageOf(kAlice, kBob))));
  EXPECT_FALSE(Opens(Forge(kAlice, MessageOf(kAlice, kBob))));
  EXPECT_FALSE(Opens(Forge(kAlice, MessageOf(kMallory, kBob))));
}

TEST_F(ForgerTest, AnotherLoopIncarnationOrReceiverIsRefused) {
  EXPECT_FALSE(Opens(Forge(kMallory, MessageOf({kMallory.node, 1}, kBob))));
  EXPECT_FALSE(Opens(Forge(kMallory, MessageOf(kMallory, kAlice))));
  EXPECT_FALSE(Opens(Forge(kMallory, MessageOf(kMallory, {kBob.node, 0}))));
  Message restarted = MessageOf(kMallory, kBob);
  restarted.envelope.mutable_header()->set_incarnation(kIncarnation.value() + 1);
  EXPECT_FALSE(Opens(Forge(kMallory, restarted)));
}

TEST_F(ForgerTest, WhatDoesNotTravelIsRefused) {
  Message control = MessageOf(kMallory, kBob);
  control.envelope.mutable_create_table_reply();
  EXPECT_FALSE(Opens(Forge(kMallory, control)));
}

TEST_F(MessageOpenerTest, OtherFramesAreRefused) {
  const SealedMessage sealed = MustSeal({Pattern(32, 1), Pattern(32, 2)});
  const auto refuses = [&](const std::function<void(SealedMessage&)>& change) {
    SealedMessage changed = CopyOf(sealed);
    change(changed);
    return !Opens(changed);
  };
  EXPECT_TRUE(refuses([](SealedMessage& m) { m.frames.pop_back(); }));
  EXPECT_TRUE(refuses([](SealedMessage& m) { m.frames.clear(); }));
  EXPECT_TRUE(refuses([](SealedMessage& m) { m.frames.push_back(Pattern(32, 3)); }));
  EXPECT_TRUE(refuses([](SealedMessage& m) { m.frames.resize(1000); }));
  EXPECT_TRUE(refuses([](SealedMessage& m) { std::swap(m.frames[0], m.frames[1]); }));
  EXPECT_TRUE(refuses([](SealedMessage& m) { m.frames[1] = Buffer(); }));
  EXPECT_TRUE(refuses([](SealedMessage& m) { m.frames[1] = Pattern(31, 2); }));
  EXPECT_TRUE(refuses([](SealedMessage& m) { m.frames[1] = Pattern(33, 2); }));
  EXPECT_TRUE(refuses([](SealedMessage& m) { m.head = Buffer(); }));
  for (size_t size = 1; size < sealed.head.size(); ++size) {
    EXPECT_TRUE(refuses([&](SealedMessage& m) {
      m.head = Buffer::CopyOf(sealed.head.bytes().first(size));
    })) << size;
  }
  EXPECT_TRUE(Opens(sealed));
}

TEST_F(MessageOpenerTest, PlainAndSealedDoNotMix) {
  const auto plain = EncodeMessage({}, MessageOf(kAlice, kBob));
  ASSERT_TRUE(plain.ok());
  SealedMessage unsealed{.head = (*plain)[0]};
  const absl::Status status = Open(unsealed).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("not sealed"), absl::string_view::npos);
  proto::Envelope envelope;
  const absl::Status reverse = ReadHead(MustSeal().head.bytes(), {}, envelope);
  EXPECT_EQ(reverse.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(reverse.message().find("is sealed"), absl::string_view::npos);
}

TEST_F(MessageOpenerTest, ADeadNodeIsRefusedFromThenOn) {
  EXPECT_TRUE(Opens(MustSeal()));
  nodes_.node(kAlice.node).set_state(proto::Node::DEAD);
  nodes_.Publish();
  EXPECT_EQ(Open(MustSeal()).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(MessageOpenerTest, AnUnknownSenderIsUnavailableUntilTheViewHasIt) {
  SealedMessage sealed = MustSeal();
  const proto::Node alice = nodes_.Remove(kAlice.node);
  nodes_.Publish();
  EXPECT_EQ(Open(sealed).status().code(), absl::StatusCode::kUnavailable);
  nodes_.node(kAlice.node) = alice;
  nodes_.Publish();
  EXPECT_TRUE(Opens(sealed));
}

// Whatever a peer sends: no crash, and nothing opens that was not sealed like this.
TEST_F(MessageOpenerTest, RandomDamageIsRefused) {
  Random random(7);
  std::vector<SealedMessage> originals;
  for (size_t i = 0; i < 8; ++i) {
    originals.push_back(MustSeal({Pattern(random.Below(100), 1), Pattern(random.Below(100), 2)}));
  }
  for (int i = 0; i < 20000; ++i) {
    SealedMessage sealed = CopyOf(originals[random.Below(originals.size())]);
    bool is_changed = false;
    for (uint64_t change = 0; change <= random.Below(4); ++change) {
      Buffer& part = random.Below(2) == 0 || sealed.frames.empty()
                         ? sealed.head
                         : sealed.frames[random.Below(sealed.frames.size())];
      const uint64_t kind = random.Below(10);
      if (kind == 0) {
        part = Buffer::CopyOf(part.bytes().first(random.Below(part.size() + 1)));
        is_changed = true;
      } else if (kind == 1) {
        sealed.frames.push_back(Pattern(random.Below(50), 9));
        is_changed = true;
      } else if (!part.empty()) {
        part.MutableData()[random.Below(std::min<size_t>(part.size(), 120))] ^=
            static_cast<uint8_t>(1 + random.Below(255));
        is_changed = true;
      }
    }
    if (is_changed && Opens(sealed)) {
      // Two changes of one byte may undo each other.
      EXPECT_TRUE(std::any_of(originals.begin(), originals.end(), [&](const SealedMessage& o) {
        return std::equal(o.head.bytes().begin(), o.head.bytes().end(), sealed.head.bytes().begin(),
                          sealed.head.bytes().end());
      }));
    }
  }
}

TEST_F(MessageOpenerTest, RandomBytesAreRefused) {
  Random random(8);
  for (int i = 0; i < 5000; ++i) {
    SealedMessage sealed{.head = Buffer::Allocate(1 + random.Below(300))};
    uint8_t* const bytes = sealed.head.MutableData();
    for (size_t k = 0; k < sealed.head.size(); ++k) bytes[k] = static_cast<uint8_t>(random.Next());
    const std::string begin("CVEY\1\1\0\0", 8);
    std::copy_n(begin.begin(), std::min(begin.size(), sealed.head.size()), bytes);
    EXPECT_FALSE(Opens(sealed));
  }
}

TEST_F(MessageOpenerTest, ASealerSealsItsOwnLoopOnly) {
  EXPECT_EQ(Seal(sealer_, MessageOf({kAlice.node, 0}, kBob)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Seal(sealer_, MessageOf(kMallory, kBob)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Seal(sealer_, MessageOf(kAlice, kMallory)).status().code(),
            absl::StatusCode::kNotFound);
}

// A number that was used under a key is not used again, even if views forget the receiver.
TEST_F(MessageOpenerTest, NumbersGoOnWhenAReceiverComesBack) {
  const auto number = [&](const SealedMessage& sealed) {
    return ReadSealedHead(sealed.head.bytes(), {})->number;
  };
  EXPECT_EQ(number(MustSeal()), 0u);
  EXPECT_EQ(number(MustSeal()), 1u);
  const proto::Node bob = nodes_.Remove(kBob.node);
  nodes_.Publish();
  EXPECT_FALSE(Seal(sealer_, MessageOf(kAlice, kBob)).ok());
  nodes_.node(kBob.node) = bob;
  nodes_.Publish();
  EXPECT_EQ(number(MustSeal()), 2u);
}

}  // namespace
}  // namespace covey
