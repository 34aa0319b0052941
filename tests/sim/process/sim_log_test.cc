// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/process/sim_log.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "common/net/message.h"
#include "scheduler/log/scheduler_log.h"

namespace covey::sim {
namespace {

constexpr absl::Duration kDelayMax = absl::Milliseconds(5);

class SimLogTest : public testing::Test {
 protected:
  void Run(absl::Duration duration) {
    const absl::Time until = simulator_.now() + duration;
    while (simulator_.RunOne(until)) {
    }
  }
  // The index of the newest record that a new process finds; 0 = none.
  static uint64_t Recovered(SimLog& log) {
    const auto recovered = log.Open();
    EXPECT_TRUE(recovered.ok()) << recovered.status();
    return recovered.ok() && recovered->has_value() ? (*recovered)->index() : 0;
  }
  absl::Duration Append(SimLog& log, uint64_t index) {
    proto::LogRecord record;
    record.set_index(index);
    record.set_decision("something");
    Message append;
    append.envelope.mutable_disk_append()->set_index(index);
    append.envelope.mutable_disk_append()->set_record(scheduler::EncodeRecord(record));
    return log.Append(std::move(append), [this](const Message& reply) {
      if (StatusOf(reply).ok()) durable_ = reply.envelope.disk_durable().index();
    });
  }

  Simulator simulator_{1};
  uint64_t durable_ = 0;
};

TEST_F(SimLogTest, ARecordTakesTheTimeForWhichItsLoopStandsStill) {
  SimLog log(simulator_, {.disk = {.delay_max = kDelayMax}}, [] {});
  EXPECT_EQ(Recovered(log), 0);
  const absl::Duration takes = Append(log, 1);
  EXPECT_GT(takes, absl::ZeroDuration());
  EXPECT_LE(takes, kDelayMax + absl::Nanoseconds(1));
  Run(takes - absl::Nanoseconds(1));
  EXPECT_EQ(durable_, 0);
  Run(absl::Nanoseconds(1));
  EXPECT_EQ(durable_, 1);
  log.Stop();
  EXPECT_EQ(Recovered(log), 1);
}

// The log is so short that every second record replaces it.
TEST_F(SimLogTest, AnEndInTheMidstOfARecordLeavesItOrTheOneBeforeIt) {
  std::map<uint64_t, int> found;
  SimLog log(simulator_, {.disk = {.delay_max = kDelayMax}, .file_bytes_max = 60}, [] {});
  for (int i = 0; i < 200; ++i) {
    log.Wipe();
    Recovered(log);
    Append(log, 1);
    Run(absl::Seconds(1));
    Append(log, 2);
    if (i % 2 == 0) {
      Run(absl::Seconds(1));
      Append(log, 3);
    }
    const uint64_t durable = durable_;
    log.Stop();
    Run(absl::Seconds(1));
    EXPECT_EQ(durable_, durable) << "a process that has ended is told nothing";
    const uint64_t recovered = Recovered(log);
    EXPECT_TRUE(recovered == durable || recovered == durable + 1) << recovered << " " << durable;
    ++found[recovered];
    log.Stop();
  }
  EXPECT_GT(found[1], 0);
  EXPECT_GT(found[2], 0);
  EXPECT_GT(found[3], 0);
}

TEST_F(SimLogTest, ADiskWithFaultsLosesNothingThatItSaidIsDurable) {
  int failures = 0;
  SimLog log(simulator_, {.disk = {.delay_max = kDelayMax, .chance = 0.5}, .file_bytes_max = 200},
             [] {});
  uint64_t index = 0;
  for (int life = 0; life < 100; ++life) {
    const auto recovered = log.Open();
    if (!recovered.ok()) {
      ++failures;
      log.Stop();
      Run(absl::Seconds(10));
      continue;
    }
    const uint64_t newest = recovered->has_value() ? (*recovered)->index() : 0;
    EXPECT_TRUE(durable_ <= newest && newest <= index) << durable_ << " " << newest;
    // The process may tell others of the record that it has read, so that one must last.
    durable_ = index = newest;
    for (int i = 0; i < 5; ++i) {
      Append(log, ++index);
      if (i < 4) Run(absl::Seconds(1));
    }
    log.Stop();
  }
  EXPECT_GT(failures, 0);
  log.Heal();
  EXPECT_GE(Recovered(log), durable_);
}

TEST_F(SimLogTest, EndsItsProcessWhileItWrites) {
  int ends = 0;
  std::unique_ptr<SimLog> log;
  log = std::make_unique<SimLog>(
      simulator_, SimLog::Options{.disk = {.delay_max = kDelayMax}, .ends = 0.5}, [&] {
        ++ends;
        log->Stop();
      });
  for (int i = 0; i < 100; ++i) {
    if (i == 50) log->Heal();
    durable_ = 0;
    Recovered(*log);
    const int before = ends;
    Append(*log, 1);
    Run(absl::Seconds(1));
    EXPECT_EQ(durable_ == 0, ends > before);
    if (ends == before) log->Stop();
    EXPECT_TRUE(i < 50 || ends == before) << "it is healed";
  }
  EXPECT_GT(ends, 10);
  EXPECT_LT(ends, 40);
}

}  // namespace
}  // namespace covey::sim
