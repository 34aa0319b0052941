// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/file_log.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug_switch.h"
#include "common/base/set_once.h"
#include "common/store/testing/memory_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/log/os_log_folder.h"
#include "scheduler/log/scheduler_log.h"
#include "scheduler/log/testing/memory_log_folder.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

Message MakeAppend(uint64_t index) {
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
    auto log = FileLog::Open(std::make_unique<OsLogFolder>(path_), file_bytes_max);
    EXPECT_TRUE(log.ok()) << log.status();
    if (!log.ok()) return nullptr;
    (*log)->SetReceiver([this](Message message) { durable_ = std::move(message); });
    return *std::move(log);
  }
  static absl::Status OpenError(const std::string& path) {
    return FileLog::Open(std::make_unique<OsLogFolder>(path)).status();
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
    log->Send(MakeAppend(1));
    log->Send(MakeAppend(2));
    EXPECT_EQ(durable_.envelope.disk_durable().index(), 2);
    EXPECT_TRUE(StatusOf(durable_).ok());
    EXPECT_EQ(durable_.from(), (Address{kSchedulerNode, kDiskLoop}));
    EXPECT_EQ(durable_.to(), (Address{kSchedulerNode, 0}));
  }
  EXPECT_EQ(Open()->recovered()->index(), 2);
}

TEST_F(FileLogTest, TornTailIsCutAndAppendingGoesOn) {
  Open()->Send(MakeAppend(1));
  const int64_t intact = Size();
  std::ofstream(path_, std::ios::app) << "torn";
  {
    auto log = Open();
    EXPECT_EQ(log->recovered()->index(), 1);
    EXPECT_EQ(Size(), intact);
    log->Send(MakeAppend(2));
  }
  EXPECT_EQ(Open()->recovered()->index(), 2);
}

TEST_F(FileLogTest, DamagedFileIsRefusedByName) {
  {
    auto log = Open();
    log->Send(MakeAppend(1));
    log->Send(MakeAppend(2));
  }
  std::fstream(path_, std::ios::in | std::ios::out).seekp(20) << "?";
  const absl::Status status = OpenError(path_);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

TEST_F(FileLogTest, IsReplacedWhenItGrowsTooLong) {
  const int64_t record = static_cast<int64_t>(MakeAppend(1).envelope.disk_append().record().size());
  {
    auto log = Open(3 * record);
    for (uint64_t index = 1; index <= 8; ++index) {
      log->Send(MakeAppend(index));
      EXPECT_TRUE(StatusOf(durable_).ok());
      EXPECT_LE(Size(), 3 * record);
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(OpenError(path_))) << "the lock moves along";
  }
  EXPECT_EQ(Open()->recovered()->index(), 8);
}

TEST_F(FileLogTest, OnlyOneSchedulerMayUseIt) {
  const auto log = Open();
  const absl::Status status = OpenError(path_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("in use by another scheduler"));
}

// Locks belong to open files, so another thread is as good as another process.
TEST_F(FileLogTest, NobodyElseGetsItWhileItIsReplaced) {
  auto log = Open(1);
  log->Send(MakeAppend(1));
  SetOnce<bool> done;
  int refusals = 0;
  std::thread other([&] {
    while (!done.is_set()) {
      const absl::Status status = OpenError(path_);
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      ++refusals;
    }
  });
  for (uint64_t index = 2; index <= 200; ++index) {
    log->Send(MakeAppend(index));
    ASSERT_TRUE(StatusOf(durable_).ok()) << StatusOf(durable_);
  }
  done.Set(true);
  other.join();
  EXPECT_GT(refusals, 0);
}

TEST_F(FileLogTest, AFailureIsReportedAndTheNextRecordReplacesTheFile) {
  const absl::Status status = OpenError(path_ + "/no/such");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::IsInvalidArgument(OpenError("/dev/zero")));
  // A folder blocks the replacement.
  auto log = Open(1);
  ASSERT_EQ(mkdir((path_ + ".new").c_str(), 0755), 0);
  log->Send(MakeAppend(1));
  EXPECT_TRUE(StatusOf(durable_).ok());
  log->Send(MakeAppend(2));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(durable_)));
  log->Send(MakeAppend(3));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(durable_)));
  EXPECT_EQ(durable_.envelope.disk_durable().index(), 3);
  ASSERT_EQ(rmdir((path_ + ".new").c_str()), 0);
  log->Send(MakeAppend(4));
  EXPECT_TRUE(StatusOf(durable_).ok()) << StatusOf(durable_);
  log.reset();
  EXPECT_EQ(Open()->recovered()->index(), 4);
}

// What the failed write has left in the file is unknown, so nothing is appended to it.
TEST_F(FileLogTest, NothingFollowsWhatAFailedWriteHasLeft) {
  auto log = Open();
  log->Send(MakeAppend(1));
  const int64_t record = Size();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit less = before;
  less.rlim_cur = static_cast<rlim_t>(record + record / 2);
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &less), 0);
  log->Send(MakeAppend(2));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(durable_)));
  EXPECT_EQ(Size(), record + record / 2);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  log->Send(MakeAppend(3));
  EXPECT_TRUE(StatusOf(durable_).ok()) << StatusOf(durable_);
  EXPECT_EQ(Size(), record);
  log->Send(MakeAppend(4));
  log.reset();
  EXPECT_EQ(Open()->recovered()->index(), 4);
}

TEST_F(FileLogTest, AReplacementHasTheModeOfTheLog) {
  Open()->Send(MakeAppend(1));
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  Open()->Send(MakeAppend(2));
  struct stat status;
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST_F(FileLogTest, ALinkStaysALink) {
  const std::string target = path_ + ".elsewhere";
  unlink(target.c_str());
  ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
  Open()->Send(MakeAppend(1));
  Open(1)->Send(MakeAppend(2));  // replaced twice
  struct stat status;
  ASSERT_EQ(lstat(path_.c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_EQ(Open()->recovered()->index(), 2);
}

// A log on a disk in memory, which a test fails and crashes.
class LogOnDisk {
 public:
  explicit LogOnDisk(MemoryFolder& disk) : disk_(disk) {
    auto log = FileLog::Open(std::make_unique<MemoryLogFolder>(disk), 3 * RecordBytes());
    if (!log.ok()) return;
    log_ = *std::move(log);
    recovered_ = log_->recovered() ? log_->recovered()->index() : 0;
    log_->SetReceiver([this](const Message& reply) {
      if (StatusOf(reply).ok()) durable_ = reply.envelope.disk_durable().index();
    });
  }
  static uint64_t RecordBytes() { return MakeAppend(1).envelope.disk_append().record().size(); }

  bool ok() const { return log_ != nullptr; }
  uint64_t recovered() const { return recovered_; }
  // The newest record that was said to be durable.
  uint64_t durable() const { return durable_; }
  void Append(uint64_t index) { log_->Send(MakeAppend(index)); }
  // The process ends; what it has written remains.
  void End() {
    log_.reset();
    disk_.EndProcess();
  }

 private:
  MemoryFolder& disk_;
  std::unique_ptr<FileLog> log_;
  uint64_t recovered_ = 0;
  uint64_t durable_ = 0;
};

// What a scheduler finds after a crash at this point; nothing = it cannot begin.
std::optional<uint64_t> FoundIn(MemoryFolder& crashed) {
  const LogOnDisk log(crashed);
  return log.ok() ? std::optional(log.recovered()) : std::nullopt;
}

constexpr uint64_t kRecords = 7;  // the log is replaced twice

// The first deviation that a fault at system call `number` leads to; "" = none. The process goes on
// after the fault, and the machine crashes after any of the following records.
std::string Deviation(uint64_t number, MemoryFolder::Fault fault) {
  MemoryFolder disk;
  LogOnDisk log(disk);
  disk.PlanFault(disk.operations() + number, fault);
  std::string deviation;
  for (uint64_t index = 1; index <= kRecords && deviation.empty(); ++index) {
    log.Append(index);
    disk.ForEachCrashState([&](MemoryFolder& crashed, const std::string& state) {
      const std::optional<uint64_t> found = FoundIn(crashed);
      if (found && log.durable() <= *found && *found <= index) return;
      deviation =
          absl::StrCat("after record ", index, ", of which ", log.durable(), " are durable, ",
                       state, ": ", found ? absl::StrCat("found ", *found) : "no log");
    });
  }
  return deviation;
}

// The same for the bug, over all faults and calls.
bool IsFound(PlantedBug bug) {
  PlantBug(bug);
  bool found = false;
  for (const auto fault : {MemoryFolder::Fault::kIoError, MemoryFolder::Fault::kNoSpace,
                           MemoryFolder::Fault::kShortWrite, MemoryFolder::Fault::kPowerCut}) {
    for (uint64_t number = 1; number <= 40 && !found; ++number) {
      found = !Deviation(number, fault).empty();
    }
  }
  PlantBug(PlantedBug::kNone);
  return found;
}

TEST(FileLogCrashTest, WhateverFailsWhatWasDurableIsFoundAfterACrash) {
  EXPECT_FALSE(IsFound(PlantedBug::kNone));
}

TEST(FileLogCrashTest, EachBugThatCanBePlantedIsFound) {
  EXPECT_TRUE(IsFound(PlantedBug::kLogNotSynced));
  EXPECT_TRUE(IsFound(PlantedBug::kLogFolderNotSynced));
  EXPECT_TRUE(IsFound(PlantedBug::kAppendAfterFailure));
}

// A sync has failed, the process has died, and the next one reads from the system's cache what the
// disk does not have. Others know it then, so a crash must not take it back.
TEST(FileLogCrashTest, WhatWasReadIsThereAfterACrash) {
  const auto lost = [] {
    MemoryFolder disk;
    LogOnDisk first(disk);
    first.Append(1);
    disk.PlanFault(disk.operations() + 2, MemoryFolder::Fault::kIoError);  // of the sync
    first.Append(2);
    EXPECT_EQ(first.durable(), 1);
    first.End();
    LogOnDisk second(disk);
    EXPECT_EQ(second.recovered(), 2);
    bool lost = false;
    disk.ForEachCrashState([&](MemoryFolder& crashed, const std::string&) {
      lost = lost || FoundIn(crashed) != std::optional<uint64_t>(2);
    });
    return lost;
  };
  EXPECT_FALSE(lost());
  PlantBug(PlantedBug::kTrustLogAsRead);
  EXPECT_TRUE(lost());
  PlantBug(PlantedBug::kNone);
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
