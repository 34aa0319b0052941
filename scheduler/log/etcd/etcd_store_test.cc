// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/etcd/etcd_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/match.h"
#include "scheduler/log/etcd/fake_etcd.h"
#include "scheduler/log/scheduler_log.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

class EtcdStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<EtcdStore> Store(const std::string& address) {
    return std::make_unique<EtcdStore>(EtcdStore::Options{.endpoints = {etcd_.address()},
                                                          .prefix = "covey/job",
                                                          .address = address,
                                                          .lease = absl::Seconds(60),
                                                          .chunk_bytes = 100});
  }
  static std::string Record(uint64_t index, size_t bytes = 10) {
    proto::LogRecord record;
    record.set_index(index);
    record.set_decision(std::string(bytes, 'd'));
    return EncodeRecord(record);
  }
  // A store that leads and has recovered.
  std::unique_ptr<EtcdStore> Leader(const std::string& address) {
    auto store = Store(address);
    const auto other = store->Campaign();
    EXPECT_TRUE(other.ok() && !other->has_value()) << other.status();
    EXPECT_TRUE(store->Recover().ok());
    return store;
  }
  // The record that the next leader recovers.
  std::optional<proto::LogRecord> Recovered() {
    etcd_.EndLeases();
    const auto store = Store("next");
    EXPECT_TRUE(store->Campaign().ok());
    auto record = store->Recover();
    EXPECT_TRUE(record.ok()) << record.status();
    return record.value_or(std::nullopt);
  }
  size_t Pieces() {
    size_t pieces = 0;
    for (const auto& [key, value] : etcd_.Keys()) {
      if (absl::StrContains(key, "/record/")) ++pieces;
    }
    return pieces;
  }

  FakeEtcd etcd_;
};

TEST_F(EtcdStoreTest, OneLeadsAndOthersHearWho) {
  const auto first = Leader("10.0.0.1:7000");
  const auto second = Store("10.0.0.2:7000");
  EXPECT_EQ(*second->Campaign(), "10.0.0.1:7000");
  first->Resign();
  EXPECT_EQ(*second->Campaign(), std::nullopt);
  EXPECT_EQ(*Store("10.0.0.3:7000")->Campaign(), "10.0.0.2:7000");
}

TEST_F(EtcdStoreTest, RefusesAnswersThatLeaveOperationsOut) {
  const auto leader = Leader("a");
  etcd_.LeaveOutOperations();
  const absl::Status status = leader->Recover().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("answers 0 of 2 operations"));
  EXPECT_TRUE(absl::IsDataLoss(leader->Append(Record(1))));
  etcd_.EndLeases();
  EXPECT_TRUE(absl::IsDataLoss(Store("b")->Campaign().status()));
}

TEST_F(EtcdStoreTest, TheNewestRecordSurvives) {
  EXPECT_FALSE(Recovered().has_value());
  etcd_.EndLeases();
  const auto store = Leader("a");
  for (uint64_t index = 1; index <= 3; ++index) {
    ASSERT_TRUE(store->Append(Record(index, 10 + 400 * (index % 2))).ok());
  }
  EXPECT_EQ(Pieces(), 5u);
  EXPECT_EQ(Recovered()->index(), 3u);
  EXPECT_EQ(Recovered()->decision().size(), 410u);
}

TEST_F(EtcdStoreTest, ALeaderThatWasOvertakenChangesNothing) {
  const auto old = Leader("old");
  ASSERT_TRUE(old->Append(Record(1)).ok());
  etcd_.EndLeases();
  const auto next = Leader("next");
  ASSERT_TRUE(next->Append(Record(2)).ok());
  const auto before = etcd_.Keys();
  const absl::Status status = old->Append(Record(7, 300));
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("lost the lead to next"));
  EXPECT_TRUE(absl::IsAborted(old->KeepAlive()));
  EXPECT_TRUE(absl::IsAborted(old->Recover().status()));
  EXPECT_EQ(etcd_.Keys(), before);
}

TEST_F(EtcdStoreTest, NobodyLeadsAndStillTheOldOneMayNot) {
  const auto old = Leader("old");
  etcd_.EndLeases();
  EXPECT_TRUE(absl::IsAborted(old->Append(Record(1))));
  EXPECT_TRUE(etcd_.Keys().empty());
}

// The same address, another process: the key's create revision distinguishes them.
TEST_F(EtcdStoreTest, ANamesakeIsSomebodyElse) {
  const auto old = Leader("same");
  etcd_.EndLeases();
  const auto next = Leader("same");
  EXPECT_TRUE(absl::IsAborted(old->Append(Record(1))));
  EXPECT_TRUE(next->Append(Record(1)).ok());
}

TEST_F(EtcdStoreTest, LostAnswersAreNoHarm) {
  const auto store = Leader("a");
  ASSERT_TRUE(store->Append(Record(1)).ok());
  const std::string record = Record(2, 250);  // three pieces and the head
  for (int lost = 1; lost <= 4; ++lost) {
    etcd_.LoseAnswer(lost);
    EXPECT_TRUE(absl::IsUnavailable(store->Append(record)));
    EXPECT_TRUE(store->Append(record).ok());
    EXPECT_EQ(Pieces(), 3u);
  }
  ASSERT_TRUE(store->Append(Record(3)).ok());
  EXPECT_EQ(Recovered()->index(), 3u);
}

// A retried request may still be in flight when later ones have been done.
TEST_F(EtcdStoreTest, ALateRequestDoesNotMoveTheHeadBack) {
  const auto store = Leader("a");
  ASSERT_TRUE(store->Append(Record(1)).ok());
  const auto done = etcd_.transactions();
  ASSERT_TRUE(store->Append(Record(2)).ok());
  ASSERT_TRUE(store->Append(Record(3)).ok());
  EXPECT_FALSE(etcd_.Do(done.back()).succeeded());
  ASSERT_TRUE(store->Append(Record(4)).ok());
  EXPECT_EQ(Recovered()->index(), 4u);
}

TEST_F(EtcdStoreTest, WhatALeaderDidNotFinishIsClearedUp) {
  {
    const auto store = Leader("a");
    ASSERT_TRUE(store->Append(Record(1)).ok());
    etcd_.LoseAnswer(2);
    EXPECT_FALSE(store->Append(Record(2, 900)).ok());
  }
  EXPECT_GT(Pieces(), 1u);
  EXPECT_EQ(Recovered()->index(), 1u);
  EXPECT_EQ(Pieces(), 1u);
}

TEST_F(EtcdStoreTest, DamageIsToldApartFromAnEmptyLog) {
  const auto store = Leader("a");
  ASSERT_TRUE(store->Append(Record(1, 250)).ok());
  const auto keys = etcd_.Keys();
  for (const auto& [key, value] : keys) {
    if (key == "covey/job/leader") continue;
    std::string damaged = value;
    damaged[damaged.size() / 2] ^= 1;
    etcd_.Set(key, damaged);
    etcd_.EndLeases();
    const auto next = Store("b");
    ASSERT_TRUE(next->Campaign().ok());
    EXPECT_TRUE(absl::IsDataLoss(next->Recover().status())) << key;
    etcd_.Set(key, value);
  }
  EXPECT_EQ(Recovered()->index(), 1u);
}

TEST_F(EtcdStoreTest, OldContentIsCompactedAway) {
  EtcdStore store({.endpoints = {etcd_.address()},
                   .prefix = "/p",
                   .address = "a",
                   .lease = absl::Seconds(60),
                   .compact_after_bytes = 1000});
  ASSERT_TRUE(store.Campaign().ok());
  for (uint64_t index = 1; index <= 10; ++index) ASSERT_TRUE(store.Append(Record(index, 50)).ok());
  EXPECT_EQ(etcd_.compacted(), 0);
  for (uint64_t index = 11; index <= 30; ++index) ASSERT_TRUE(store.Append(Record(index, 50)).ok());
  EXPECT_GT(etcd_.compacted(), 0);
}

TEST_F(EtcdStoreTest, AnEtcdThatIsAwayIsUnavailable) {
  const auto store = Leader("a");
  etcd_.Stop();
  EXPECT_TRUE(absl::IsUnavailable(store->Append(Record(1))));
  EXPECT_TRUE(absl::IsUnavailable(store->KeepAlive()));
  EXPECT_TRUE(absl::IsUnavailable(Store("b")->Campaign().status()));
}

TEST_F(EtcdStoreTest, AnotherMemberOfTheClusterIsAsked) {
  EtcdStore store({.endpoints = {"127.0.0.1:1", etcd_.address()},
                   .prefix = "covey/job",
                   .address = "a",
                   .lease = absl::Seconds(60)});
  EXPECT_EQ(*store.Campaign(), std::nullopt);
}

}  // namespace
}  // namespace covey::scheduler
