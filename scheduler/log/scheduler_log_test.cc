// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/scheduler_log.h"

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

proto::LogRecord Record(uint64_t index) {
  proto::LogRecord record;
  record.set_index(index);
  record.set_decision("decision");
  record.mutable_view()->set_epoch(index * 10);
  for (const char* name : {"a", "b", "c", "d"}) {
    (*(*record.mutable_barriers())[name].mutable_request_ids())[7] = index;
  }
  return record;
}

absl::StatusOr<RecoveredLog> Recover(const std::string& bytes) {
  return RecoverLog({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

TEST(SchedulerLogTest, NewestRecordWins) {
  const std::string bytes = EncodeRecord(Record(1)) + EncodeRecord(Record(2));
  const auto log = Recover(bytes);
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->intact_bytes, bytes.size());
  EXPECT_EQ(log->newest->index(), 2);
  EXPECT_EQ(log->newest->view().epoch(), 20);
  EXPECT_EQ(log->newest->barriers().at("c").request_ids().at(7), 2);
}

TEST(SchedulerLogTest, EmptyLogHasNoState) {
  const auto log = Recover("");
  ASSERT_TRUE(log.ok());
  EXPECT_FALSE(log->newest.has_value());
  EXPECT_EQ(log->intact_bytes, 0);
}

TEST(SchedulerLogTest, EveryTornTailIsCut) {
  const std::string first = EncodeRecord(Record(1));
  const std::string both = first + EncodeRecord(Record(2));
  for (size_t size = first.size(); size < both.size(); ++size) {
    // A crash may also leave zeros in place of bytes.
    for (const std::string& torn :
         {both.substr(0, size), both.substr(0, size) + std::string(50, '\0')}) {
      const auto log = Recover(torn);
      ASSERT_TRUE(log.ok()) << size << log.status();
      EXPECT_EQ(log->intact_bytes, first.size()) << size;
      EXPECT_EQ(log->newest->index(), 1) << size;
    }
  }
}

TEST(SchedulerLogTest, DamageBeforeIntactRecordsIsDataLoss) {
  const std::string first = EncodeRecord(Record(1));
  const std::string both = first + EncodeRecord(Record(2));
  for (size_t at = 0; at < first.size(); ++at) {
    std::string damaged = both;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_EQ(Recover(damaged).status().code(), absl::StatusCode::kDataLoss) << at;
  }
}

TEST(SchedulerLogTest, TornFirstRecordIsAnEmptyLog) {
  const std::string first = EncodeRecord(Record(1));
  for (size_t size = 0; size < first.size(); ++size) {
    const auto log = Recover(first.substr(0, size));
    ASSERT_TRUE(log.ok()) << size << log.status();
    EXPECT_EQ(log->intact_bytes, 0);
  }
}

TEST(SchedulerLogTest, OtherFilesAreNotOverwritten) {
  EXPECT_EQ(Recover("A letter to somebody.").status().code(), absl::StatusCode::kDataLoss);
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(random.Below(500), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Next());
    const auto log = Recover(bytes);
    EXPECT_FALSE(log.ok() && log->newest.has_value());
  }
}

TEST(SchedulerLogTest, SameRecordSameBytes) {
  proto::LogRecord backwards;
  for (const char* name : {"d", "c", "b", "a"}) {
    (*(*backwards.mutable_barriers())[name].mutable_request_ids())[7] = 4;
  }
  const proto::LogRecord forwards = Record(4);
  backwards.set_index(4);
  backwards.set_decision("decision");
  backwards.mutable_view()->set_epoch(40);
  EXPECT_EQ(EncodeRecord(backwards), EncodeRecord(forwards));
}

}  // namespace
}  // namespace covey::scheduler
