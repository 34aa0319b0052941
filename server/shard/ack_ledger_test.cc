// SPDX-License-Identifier: Apache-2.0
#include "server/shard/ack_ledger.h"

#include "gtest/gtest.h"

namespace covey::server {
namespace {

using Ack = AckLedger::Ack;

PushKey Client(uint64_t incarnation, uint64_t sequence) {
  return {.producer = {.kind = Producer::Kind::kClient, .id = 1},
          .incarnation = incarnation,
          .sequence = sequence};
}
PushKey Group(uint64_t generation, uint64_t step) {
  PushKey key = Client(generation, step);
  key.producer.kind = Producer::Kind::kGroup;
  return key;
}
Message OwedReply(uint64_t request) {
  Message message;
  message.envelope.mutable_header()->set_request_id(request);
  return message;
}

TEST(AckLedger, KnowsAPushUntilItIsRecorded) {
  AckLedger ledger;
  EXPECT_FALSE(*ledger.Find(Client(5, 1)));
  ledger.Add(Client(5, 1), Ack::kReceived);
  EXPECT_TRUE(*ledger.Find(Client(5, 1)));
  EXPECT_FALSE(*ledger.Find(Client(5, 2)));
  EXPECT_FALSE(*ledger.Find(Group(5, 1)));
  EXPECT_FALSE(ledger.TakeRecorded(Client(5, 1)).has_value());
  EXPECT_FALSE(*ledger.Find(Client(5, 1)));
  EXPECT_EQ(ledger.producers(), 0u);
}

TEST(AckLedger, TellsIncarnationsOfClientsApartAndGenerationsOfGroupsNot) {
  AckLedger ledger;
  ledger.Add(Client(5, 1), Ack::kReceived);
  EXPECT_FALSE(*ledger.Find(Client(6, 1)));
  ledger.Add(Client(6, 1), Ack::kReceived);
  EXPECT_EQ(ledger.Find(Client(5, 2)).status().code(), absl::StatusCode::kAborted);
  // Pushes of the old incarnation are applied nevertheless.
  ledger.TakeRecorded(Client(5, 1));
  EXPECT_TRUE(*ledger.Find(Client(6, 1)));
  ledger.Add(Group(1, 4), Ack::kReceived);
  EXPECT_TRUE(*ledger.Find(Group(2, 4)));
  ledger.Add(Group(2, 5), Ack::kReceived);
  EXPECT_EQ(ledger.Find(Group(1, 6)).status().code(), absl::StatusCode::kAborted);
}

TEST(AckLedger, OwesTheNewestReply) {
  AckLedger ledger;
  ledger.OweReply(Client(5, 1), OwedReply(1));  // not held: no reply is owed
  ledger.Add(Client(5, 1), Ack::kReceived);
  ledger.OweReply(Client(5, 1), OwedReply(2));
  ledger.OweReply(Client(5, 1), OwedReply(3));
  EXPECT_EQ(ledger.TakeRecorded(Client(5, 1))->envelope.header().request_id(), 3u);
}

TEST(AckLedger, EarlyAcknowledgementsArePendingUntilTheyAreRecorded) {
  AckLedger ledger;
  ledger.Add(Client(5, 1), Ack::kEarly);
  ledger.Add(Client(5, 1), Ack::kEarly);
  ledger.Add(Client(5, 2), Ack::kReceived);
  EXPECT_TRUE(ledger.early_acks_pending());
  EXPECT_EQ(ledger.AckOf(Client(5, 1)), Ack::kEarly);
  EXPECT_EQ(ledger.AckOf(Client(5, 2)), Ack::kReceived);
  EXPECT_EQ(ledger.AckOf(Client(5, 3)), std::nullopt);
  ledger.TakeRecorded(Client(5, 1));
  EXPECT_FALSE(ledger.early_acks_pending());
}

TEST(AckLedger, AFlushIsDueOnlyWhileASuccessorWaitsForEarlyAcknowledgements) {
  const absl::Time now = absl::UnixEpoch();
  AckLedger ledger;
  ledger.UpdateFlush(now, /*successor_waits=*/true);
  EXPECT_EQ(ledger.flush_at(), absl::InfiniteFuture());
  ledger.Add(Client(5, 1), Ack::kEarly);
  ledger.UpdateFlush(now, /*successor_waits=*/false);
  EXPECT_EQ(ledger.flush_at(), absl::InfiniteFuture());
  ledger.UpdateFlush(now, /*successor_waits=*/true);
  const absl::Time due = ledger.flush_at();
  EXPECT_LT(due, absl::InfiniteFuture());
  // A second call does not prolong the wait.
  ledger.UpdateFlush(now + absl::Seconds(1), /*successor_waits=*/true);
  EXPECT_EQ(ledger.flush_at(), due);
  ledger.TakeRecorded(Client(5, 1));
  ledger.UpdateFlush(now + absl::Seconds(1), /*successor_waits=*/true);
  EXPECT_EQ(ledger.flush_at(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace covey::server
