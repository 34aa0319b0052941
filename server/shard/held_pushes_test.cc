#include "server/shard/held_pushes.h"

#include "gtest/gtest.h"

namespace covey::server {
namespace {

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
Message Receipt(uint64_t request) {
  Message message;
  message.envelope.mutable_header()->set_request_id(request);
  return message;
}

TEST(HeldPushes, AreKnownUntilTheyAreTaken) {
  HeldPushes held;
  EXPECT_FALSE(*held.Find(Client(5, 1)));
  held.Add(Client(5, 1), false);
  EXPECT_TRUE(*held.Find(Client(5, 1)));
  EXPECT_FALSE(*held.Find(Client(5, 2)));
  EXPECT_FALSE(*held.Find(Group(5, 1)));
  EXPECT_FALSE(held.Take(Client(5, 1)).has_value());
  EXPECT_FALSE(*held.Find(Client(5, 1)));
  EXPECT_EQ(held.producers(), 0u);
}

TEST(HeldPushes, TellIncarnationsOfClientsApartAndGenerationsOfGroupsNot) {
  HeldPushes held;
  held.Add(Client(5, 1), false);
  EXPECT_FALSE(*held.Find(Client(6, 1)));
  held.Add(Client(6, 1), false);
  EXPECT_EQ(held.Find(Client(5, 2)).status().code(), absl::StatusCode::kAborted);
  // What the old one has brought is applied all the same.
  held.Take(Client(5, 1));
  EXPECT_TRUE(*held.Find(Client(6, 1)));
  held.Add(Group(1, 4), false);
  EXPECT_TRUE(*held.Find(Group(2, 4)));
  held.Add(Group(2, 5), false);
  EXPECT_EQ(held.Find(Group(1, 6)).status().code(), absl::StatusCode::kAborted);
}

TEST(HeldPushes, OweTheNewestReceipt) {
  HeldPushes held;
  held.SetReceipt(Client(5, 1), Receipt(1));  // Not held: nothing is owed.
  held.Add(Client(5, 1), false);
  held.SetReceipt(Client(5, 1), Receipt(2));
  held.SetReceipt(Client(5, 1), Receipt(3));
  EXPECT_EQ(held.Take(Client(5, 1))->envelope.header().request_id(), 3u);
}

TEST(HeldPushes, CountThoseThatWerePromised) {
  HeldPushes held;
  held.Add(Client(5, 1), true);
  held.Add(Client(5, 1), true);
  held.Add(Client(5, 2), false);
  EXPECT_EQ(held.pledged(), 1u);
  EXPECT_TRUE(held.IsPledged(Client(5, 1)));
  EXPECT_FALSE(held.IsPledged(Client(5, 2)));
  held.Take(Client(5, 1));
  EXPECT_EQ(held.pledged(), 0u);
}

}  // namespace
}  // namespace covey::server
