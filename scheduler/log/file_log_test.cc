// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/file_log.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "common/base/set_once.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/log/scheduler_log.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

class FileLogTest : public ::testing::Test {
 protected:
  FileLogTest()
      : path_(::testing::TempDir() +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".log") {
    // Remove the file of an earlier run.
    unlink(path_.c_str());
    rmdir((path_ + ".new").c_str());
  }

  std::unique_ptr<FileLog> Open(uint64_t file_bytes_max = 1 << 20) {
    auto log = FileLog::Open({.path = path_, .file_bytes_max = file_bytes_max});
    EXPECT_TRUE(log.ok()) << log.status();
    if (!log.ok()) return nullptr;
    (*log)->SetReceiver([this](Message message) { durable_ = std::move(message); });
    return *std::move(log);
  }
  static Message Append(uint64_t index) {
    proto::LogRecord record;
    record.set_index(index);
    record.set_decision(std::string(100, 'x'));
    Message message;
    message.set_to({kSchedulerNode, kDiskLoop});
    message.envelope.mutable_header()->set_node(kSchedulerNode.value());
    message.envelope.mutable_disk_append()->set_index(index);
    message.envelope.mutable_disk_append()->set_record(EncodeRecord(record));
    return message;
  }
  int64_t Size() const {
    struct stat status;
    return stat(path_.c_str(), &status) == 0 ? status.st_size : -1;
  }

  const std::string path_;
  Message durable_;
};

TEST_F(FileLogTest, WhatWasDurableIsThereAgain) {
  {
    auto log = Open();
    EXPECT_FALSE(log->recovered().has_value());
    log->Send(Append(1));
    log->Send(Append(2));
    EXPECT_EQ(durable_.envelope.disk_durable().index(), 2);
    EXPECT_TRUE(StatusOf(durable_).ok());
    EXPECT_EQ(durable_.from(), (Address{kSchedulerNode, kDiskLoop}));
    EXPECT_EQ(durable_.to(), (Address{kSchedulerNode, 0}));
  }
  EXPECT_EQ(Open()->recovered()->index(), 2);
}

TEST_F(FileLogTest, TornTailIsCutAndAppendingGoesOn) {
  Open()->Send(Append(1));
  const int64_t intact = Size();
  std::ofstream(path_, std::ios::app) << "torn";
  {
    auto log = Open();
    EXPECT_EQ(log->recovered()->index(), 1);
    EXPECT_EQ(Size(), intact);
    log->Send(Append(2));
  }
  EXPECT_EQ(Open()->recovered()->index(), 2);
}

TEST_F(FileLogTest, DamagedFileIsRefusedByName) {
  {
    auto log = Open();
    log->Send(Append(1));
    log->Send(Append(2));
  }
  std::fstream(path_, std::ios::in | std::ios::out).seekp(20) << "?";
  const absl::Status status = FileLog::Open({.path = path_}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

TEST_F(FileLogTest, IsReplacedWhenItGrowsTooLong) {
  const int64_t record = static_cast<int64_t>(Append(1).envelope.disk_append().record().size());
  {
    auto log = Open(3 * record);
    for (uint64_t index = 1; index <= 8; ++index) {
      log->Send(Append(index));
      EXPECT_TRUE(StatusOf(durable_).ok());
      EXPECT_LE(Size(), 3 * record);
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(FileLog::Open({.path = path_}).status()))
        << "the lock moves along";
  }
  EXPECT_EQ(Open()->recovered()->index(), 8);
}

TEST_F(FileLogTest, OnlyOneSchedulerMayUseIt) {
  const auto log = Open();
  const absl::Status status = FileLog::Open({.path = path_}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("in use by another scheduler"));
}

// Locks belong to open files, so another thread is as good as another process.
TEST_F(FileLogTest, NobodyElseGetsItWhileItIsReplaced) {
  auto log = Open(1);
  log->Send(Append(1));
  SetOnce<bool> done;
  int refusals = 0;
  std::thread other([&] {
    while (!done.is_set()) {
      const absl::Status status = FileLog::Open({.path = path_}).status();
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      ++refusals;
    }
  });
  for (uint64_t index = 2; index <= 200; ++index) {
    log->Send(Append(index));
    ASSERT_TRUE(StatusOf(durable_).ok()) << StatusOf(durable_);
  }
  done.Set(true);
  other.join();
  EXPECT_GT(refusals, 0);
}

TEST_F(FileLogTest, AFailureIsReportedAndTheNextRecordReplacesTheFile) {
  const absl::Status status = FileLog::Open({.path = path_ + "/no/such"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::IsInvalidArgument(FileLog::Open({.path = "/dev/zero"}).status()));
  // A folder blocks the replacement.
  auto log = Open(1);
  ASSERT_EQ(mkdir((path_ + ".new").c_str(), 0755), 0);
  log->Send(Append(1));
  EXPECT_TRUE(StatusOf(durable_).ok());
  log->Send(Append(2));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(durable_)));
  log->Send(Append(3));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(durable_)));
  EXPECT_EQ(durable_.envelope.disk_durable().index(), 3);
  ASSERT_EQ(rmdir((path_ + ".new").c_str()), 0);
  log->Send(Append(4));
  EXPECT_TRUE(StatusOf(durable_).ok()) << StatusOf(durable_);
  log.reset();
  EXPECT_EQ(Open()->recovered()->index(), 4);
}

// What the failed write has left in the file is unknown, so nothing is appended to it.
TEST_F(FileLogTest, NothingFollowsWhatAFailedWriteHasLeft) {
  auto log = Open();
  log->Send(Append(1));
  const int64_t record = Size();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit less = before;
  less.rlim_cur = static_cast<rlim_t>(record + record / 2);
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &less), 0);
  log->Send(Append(2));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(durable_)));
  EXPECT_EQ(Size(), record + record / 2);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  log->Send(Append(3));
  EXPECT_TRUE(StatusOf(durable_).ok()) << StatusOf(durable_);
  EXPECT_EQ(Size(), record);
  log->Send(Append(4));
  log.reset();
  EXPECT_EQ(Open()->recovered()->index(), 4);
}

TEST(NullLogTest, EverythingIsDurable) {
  NullLog log;
  Message durable;
  log.SetReceiver([&](Message message) { durable = std::move(message); });
  Message append;
  append.set_to({kSchedulerNode, kDiskLoop});
  append.envelope.mutable_disk_append()->set_index(5);
  log.Send(append);
  EXPECT_EQ(durable.envelope.disk_durable().index(), 5);
}

}  // namespace
}  // namespace covey::scheduler
