// SPDX-License-Identifier: Apache-2.0
#include "common/format/event_record.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/escaping.h"

namespace covey {
namespace {

absl::Time At(int64_t milliseconds) { return absl::UnixEpoch() + absl::Milliseconds(milliseconds); }

// The expected bytes are those of TensorBoard 2.21.0: its protobufs, written by its RecordWriter.

TEST(EventRecordTest, AFileBeginsWithItsVersion) {
  EXPECT_EQ(absl::BytesToHexString(EventFileStart(At(1'700'000'000'250))),
            "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9");
}

TEST(EventRecordTest, ARecordHasTheScalarsOfOneStep) {
  const EventScalar scalars[] = {
      {"loss", 0.1}, {"seconds_per_step/wait", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_EQ(absl::BytesToHexString(ScalarsRecord(At(1'700'000'001'500), 300, scalars)),
            "39000000000000008b0737f10900006040fc54d94110ac022a2b0a0b0a046c6f737315cdcccc3d0a1c0a15"
            "7365636f6e64735f7065725f737465702f77616974150000c07fa5359254");
}

TEST(EventRecordTest, ZeroIsWritten) {
  const EventScalar scalars[] = {{"a", 0}};
  EXPECT_EQ(absl::BytesToHexString(ScalarsRecord(At(1'700'000'002'000), 3, scalars)),
            "1700000000000000e7cef81e0900008040fc54d94110032a0a0a080a016115000000001885c9c9");
}

TEST(EventRecordTest, LargeNumbersFit) {
  const EventScalar scalars[] = {{"a", 1e300}};
  const std::string record = ScalarsRecord(At(1), uint64_t{1} << 40, scalars);
  // The step has 6 bytes of 7 bits; the value is infinity.
  EXPECT_NE(record.find("\x10\x80\x80\x80\x80\x80\x20"), std::string::npos);
  EXPECT_NE(record.find(std::string("\x15\0\0\x80\x7f", 5)), std::string::npos);
}

TEST(EventRecordTest, ARecordWithoutScalarsIsAMistake) {
  EXPECT_DEATH(ScalarsRecord(At(1), 1, {}), "empty");
}

}  // namespace
}  // namespace covey
