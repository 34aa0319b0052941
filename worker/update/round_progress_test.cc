// SPDX-License-Identifier: Apache-2.0
#include "worker/update/round_progress.h"

#include <functional>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/group.pb.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

Buffer BytesOf(const proto::RoundProgress& words) {
  const std::string bytes = words.SerializeAsString();
  return Buffer::CopyOf({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

TEST(RoundProgressTest, WhatIsEncodedIsDecoded) {
  constexpr Step kLast(kGroupStepsMax - 1);
  const RoundProgress progress{
      .learned = kLast,
      .tables = {{.samples = 5, .all_samples = 9, .pushed = Step(4), .pushed_samples = 3},
                 {},
                 {.samples = kShardSamplesMax,
                  .all_samples = kShardSamplesMax,
                  .pushed = kLast,
                  .pushed_samples = kShardSamplesMax}}};
  const auto decoded = DecodeRoundProgress(EncodeRoundProgress(progress), 3);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, progress);
}

TEST(RoundProgressTest, TheLargestBucketFitsIntoAFrame) {
  constexpr Step kLast(kGroupStepsMax - 1);
  RoundProgress progress{.learned = kLast};
  progress.tables.assign(kTablesMax, {.samples = kShardSamplesMax,
                                      .all_samples = kShardSamplesMax,
                                      .pushed = kLast,
                                      .pushed_samples = kShardSamplesMax});
  const Buffer bytes = EncodeRoundProgress(progress);
  EXPECT_LE(bytes.size(), kFrameBytesMax);
  EXPECT_TRUE(DecodeRoundProgress(bytes, kTablesMax).ok());
}

TEST(RoundProgressTest, ProgressBeyondALimitIsRefused) {
  const struct {
    std::string error;
    std::function<void(proto::RoundProgress&)> bend;
  } kCases[] = {
      {"step 1152921504606846976", [](auto& words) { words.set_learned_step(kGroupStepsMax); }},
      {"step 1152921504606846976",
       [](auto& words) { words.mutable_tables(0)->set_pushed_step(kGroupStepsMax); }},
      {"samples: 18446744073709551615",
       [](auto& words) { words.mutable_tables(0)->set_samples(UINT64_MAX); }},
      {"samples: 18446744073709551615",
       [](auto& words) { words.mutable_tables(0)->set_all_samples(UINT64_MAX); }},
      {"samples: 18446744073709551615",
       [](auto& words) { words.mutable_tables(0)->set_pushed_samples(UINT64_MAX); }},
      {"tables: 0", [](auto& words) { words.clear_tables(); }},
      {"tables: 2", [](auto& words) { words.add_tables(); }},
      {"bytes: ",
       [](auto& words) {
         for (int i = 0; i < 100; ++i) words.add_tables();
       }},
  };
  for (const auto& [error, bend] : kCases) {
    proto::RoundProgress words;
    words.add_tables()->set_samples(1);
    ASSERT_TRUE(DecodeRoundProgress(BytesOf(words), 1).ok());
    bend(words);
    const auto decoded = DecodeRoundProgress(BytesOf(words), 1);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << error;
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr(error));
  }
}

TEST(RoundProgressTest, BytesThatAreNoneDoNoHarm) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    Buffer bytes = Buffer::Allocate(random.Below(60));
    for (uint8_t& byte : bytes.MutableAs<uint8_t>()) byte = static_cast<uint8_t>(random.Below(256));
    DecodeRoundProgress(bytes, 1).status().IgnoreError();
  }
}

}  // namespace
}  // namespace covey::worker
