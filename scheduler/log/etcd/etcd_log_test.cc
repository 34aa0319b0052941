// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/etcd/etcd_log.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/set_once.h"
#include "common/runtime/event_loop.h"
#include "scheduler/log/etcd/fake_etcd.h"

namespace covey::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(2);

class EtcdLogTest : public ::testing::Test {
 protected:
  EtcdLogTest() {
    log_.Wake(MonotonicNow(), outbox_);
    EXPECT_TRUE(leads_);
  }
  void WakeWhenDue() {
    SetOnce<bool>().WaitFor(log_.NextWake() - MonotonicNow());
    log_.Wake(MonotonicNow(), outbox_);
  }

  FakeEtcd etcd_;
  Outbox outbox_;
  std::vector<absl::Time> until_;  // as reported
  bool leads_ = false;
  bool lost_ = false;
  absl::Time began_ = MonotonicNow();
  EtcdLog log_{{.endpoints = {etcd_.address()},
                .prefix = "covey/job",
                .address = "10.0.0.1:7000",
                .lease = kLease},
               {.leads =
                    [this](std::optional<proto::LogRecord>) {
                      leads_ = true;
                      EXPECT_EQ(until_.size(), 1u) << "known before";
                    },
                .leads_until = [this](absl::Time until) { until_.push_back(until); },
                .stands_by = [](const std::string&) {},
                .lost = [this](absl::Status) { lost_ = true; }}};
};

TEST_F(EtcdLogTest, ItsLeadEndsBeforeThatOfItsKeyAndIsRenewed) {
  EXPECT_LT(began_, until_[0]);
  // Also when this machine's clock is a little slower than etcd's.
  EXPECT_LT(until_[0], MonotonicNow() + kLease - kLease / 17);
  WakeWhenDue();
  ASSERT_EQ(until_.size(), 2u);
  EXPECT_LT(until_[0], until_[1]);
  EXPECT_FALSE(lost_);
}

TEST_F(EtcdLogTest, ALeadThatEtcdHasEndedIsNotRenewed) {
  etcd_.EndLeases();
  WakeWhenDue();
  EXPECT_EQ(until_.size(), 1u);
  EXPECT_TRUE(lost_);
}

}  // namespace
}  // namespace covey::scheduler
