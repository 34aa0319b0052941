// SPDX-License-Identifier: Apache-2.0
#include "worker/group/member_hello.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/net/frame_checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kMembers = 3;

Message MessageOf(const proto::MemberHellos& words) {
  const std::string bytes = words.SerializeAsString();
  Message message;
  message.envelope.mutable_group_hello();
  message.frames.push_back(
      Buffer::CopyOf({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  SetFrameChecksums(message);
  return message;
}

MemberHello StateOf(uint32_t rank) {
  return {.rank = rank,
          .said = MemberState{.finished = Step(7),
                              .interrupted = true,
                              .known_places = UINT64_MAX,
                              .round_trips = {{.level = Level::kZone,
                                               .bytes = 32 << 10,
                                               .messages = 8,
                                               .round_trip_seconds = 0.25}},
                              .progress = {.buckets = {{.finished = Step(7),
                                                        .pulls = 2,
                                                        .waits_for_pull = true,
                                                        .learned = Step(5)},
                                                       {.finished = Step(6), .pulls = 3}},
                                           .norm = GradientNorm{.step = Step(7), .norm = 1.5}}}};
}

TEST(MemberHelloTest, WhatIsWrittenIsRead) {
  const MemberHello distances{.rank = 0, .said = MemberDistances{0, 0.5f, 0.25f}};
  const MemberHello state = StateOf(2);
  Message message;
  message.envelope.mutable_group_hello();
  WriteHellos(std::vector<const MemberHello*>{&distances, &state}, message);
  EXPECT_LE(message.frames[0].size(), EncodedBytesMax(distances) + EncodedBytesMax(state));
  const auto read = ReadHellos(message, kMembers);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].rank, 0u);
  EXPECT_EQ(std::get<MemberDistances>((*read)[0].said), std::get<MemberDistances>(distances.said));
  EXPECT_EQ((*read)[1].rank, 2u);
  const auto& said = std::get<MemberState>(state.said);
  const auto& heard = std::get<MemberState>((*read)[1].said);
  EXPECT_EQ(heard.finished, said.finished);
  EXPECT_EQ(heard.interrupted, said.interrupted);
  EXPECT_EQ(heard.known_places, said.known_places);
  ASSERT_EQ(heard.round_trips.size(), 1u);
  EXPECT_EQ(heard.round_trips[0].level, Level::kZone);
  EXPECT_EQ(heard.round_trips[0].bytes, size_t{32 << 10});
  EXPECT_EQ(heard.round_trips[0].messages, 8u);
  EXPECT_EQ(heard.round_trips[0].round_trip_seconds, 0.25);
  EXPECT_EQ(heard.progress, said.progress);
}

TEST(MemberHelloTest, TheWordsOfTheLargestModelFitIntoAFrame) {
  MemberHello hello{.rank = kMembers - 1, .said = MemberState{}};
  constexpr Step kLast(kGroupStepsMax - 1);
  std::get<MemberState>(hello.said)
      .progress.buckets.assign(kTablesMax, {.finished = kLast,
                                            .pulls = kGroupStepsMax - 1,
                                            .waits_for_pull = true,
                                            .learned = kLast});
  std::get<MemberState>(hello.said).progress.norm = GradientNorm{.step = kLast, .norm = 1e300};
  EXPECT_LE(EncodedBytesMax(hello), kGroupHelloBytesMax);
  Message message;
  message.envelope.mutable_group_hello();
  WriteHellos(std::vector<const MemberHello*>{&hello}, message);
  EXPECT_LE(message.frames[0].size(), EncodedBytesMax(hello));
  EXPECT_TRUE(ReadHellos(message, kMembers).ok());
}

TEST(MemberHelloTest, WordsBeyondALimitAreRefused) {
  struct Case {
    std::string error;
    std::function<void(proto::MemberHellos&)> bend;
  };
  const auto state = [](proto::MemberHellos& words) {
    return words.mutable_members(0)->mutable_state();
  };
  const auto trip = [state](proto::MemberHellos& words) { return state(words)->add_round_trips(); };
  const auto bucket = [state](proto::MemberHellos& words) {
    return state(words)->mutable_progress()->add_buckets();
  };
  const auto distances = [](std::vector<float> seconds) {
    return [seconds](proto::MemberHellos& words) {
      words.mutable_members(0)->mutable_distances()->mutable_seconds()->Add(seconds.begin(),
                                                                            seconds.end());
    };
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<Case> cases = {
      {"rank 3", [](auto& words) { words.mutable_members(0)->set_rank(kMembers); }},
      {"rank 4294967295", [](auto& words) { words.mutable_members(0)->set_rank(UINT32_MAX); }},
      {"says nothing", [](auto& words) { words.mutable_members(0)->clear_said(); }},
      {"members: 4",
       [](auto& words) {
         while (words.members_size() <= static_cast<int>(kMembers)) words.add_members();
       }},
      {"distances to members: 0", distances({})},
      {"distances to members: 4", distances({0, 0, 0, 0})},
      {"a norm that is none",
       [state](auto& words) {
         state(words)->mutable_progress()->set_norm_step(1);
         state(words)->mutable_progress()->set_norm(-1);
       }},
      {"a distance that is none", distances({0, -1, 0})},
      {"a distance that is none", distances({0, std::nanf(""), 0})},
      {"step 18446744073709551615",
       [state](auto& words) { state(words)->set_finished_step(UINT64_MAX); }},
      {"level 5", [trip](auto& words) { trip(words)->set_level(kLevels); }},
      {"a probe of bytes: 1", [trip](auto& words) { trip(words)->set_bytes(1); }},
      {"a round trip that is none", [trip](auto& words) { trip(words)->set_seconds(kInfinity); }},
      {"a round trip that is none", [trip](auto& words) { trip(words)->set_seconds(-1); }},
      {"messages: 9", [trip](auto& words) { trip(words)->set_messages(9); }},
      {"round trips: 21",
       [trip](auto& words) {
         for (int i = 0; i < 21; ++i) trip(words);
       }},
      {"step 1152921504606846976",
       [bucket](auto& words) { bucket(words)->set_finished_step(kGroupStepsMax); }},
      {"pulls: 18446744073709551615",
       [bucket](auto& words) { bucket(words)->set_pulls(UINT64_MAX); }},
      {"step 18446744073709551615",
       [bucket](auto& words) { bucket(words)->set_learned_step(UINT64_MAX); }},
      {"buckets: 65537",
       [bucket](auto& words) {
         for (size_t i = 0; i <= kTablesMax; ++i) bucket(words);
       }},
  };
  for (const Case& bent : cases) {
    proto::MemberHellos words;
    words.add_members()->mutable_state();
    ASSERT_TRUE(ReadHellos(MessageOf(words), kMembers).ok());
    bent.bend(words);
    const auto read = ReadHellos(MessageOf(words), kMembers);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << bent.error;
    EXPECT_THAT(read.status().message(), HasSubstr(bent.error));
  }
}

TEST(MemberHelloTest, FramesThatAreNoWordsAreRefused) {
  Message message = MessageOf({});
  message.frames.clear();
  EXPECT_EQ(ReadHellos(message, kMembers).status().code(), absl::StatusCode::kInvalidArgument);
  message = MessageOf({});
  message.frames[0] = Buffer::Allocate(kGroupHelloBytesMax + 1);
  EXPECT_THAT(ReadHellos(message, kMembers).status().message(), HasSubstr("bytes: "));
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    Message bytes;
    bytes.envelope.mutable_group_hello();
    Buffer frame = Buffer::Allocate(random.Below(60));
    for (uint8_t& byte : frame.MutableAs<uint8_t>()) byte = static_cast<uint8_t>(random.Below(256));
    bytes.frames.push_back(std::move(frame));
    SetFrameChecksums(bytes);
    ReadHellos(bytes, kMembers).status().IgnoreError();
  }
}

TEST(MemberHelloTest, ADamagedFrameIsNoticed) {
  const MemberHello state = StateOf(1);
  Message message;
  message.envelope.mutable_group_hello();
  WriteHellos(std::vector<const MemberHello*>{&state}, message);
  message.frames[0].MutableData()[0] ^= 1;
  EXPECT_EQ(ReadHellos(message, kMembers).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace covey::worker
