// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/name_lookup.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/status/status.h"
#include "common/base/clock.h"

namespace covey {
namespace {

absl::StatusOr<std::string> Await(NameLookup& lookup) {
  const absl::Time until = MonotonicNow() + absl::Seconds(30);
  while (!lookup.Result() && MonotonicNow() < until) std::this_thread::yield();
  return lookup.Result().value_or(absl::DeadlineExceededError("no result"));
}

TEST(NameLookupTest, OnlyNamesAreLookedUp) {
  EXPECT_TRUE(NameLookup::IsNeeded("tcp://host-7:7000"));
  EXPECT_TRUE(NameLookup::IsNeeded("tcp://a.b.c.example:7000"));
  EXPECT_FALSE(NameLookup::IsNeeded("tcp://10.1.2.3:7000"));
  EXPECT_FALSE(NameLookup::IsNeeded("tcp://[::1]:7000"));
  EXPECT_FALSE(NameLookup::IsNeeded("ipc:///run/covey/1"));
}

TEST(NameLookupTest, FindsAnAddress) {
  NameLookup lookup("tcp://localhost:7000");
  EXPECT_EQ(*Await(lookup), "tcp://127.0.0.1:7000");
}

TEST(NameLookupTest, AnAddressOfIpv6GetsBrackets) {
  NameLookup lookup("tcp://::1:7000");
  EXPECT_EQ(*Await(lookup), "tcp://[::1]:7000");
}

TEST(NameLookupTest, SaysThatANameHasNone) {
  NameLookup lookup("tcp://nowhere.invalid:7000");
  const absl::Status status = Await(lookup).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message().find("the name nowhere.invalid has no address: "), 0u) << status;
}

TEST(NameLookupTest, CanBeGivenUpAtAnyTime) {
  for (int i = 0; i < 100; ++i) NameLookup("tcp://nowhere.invalid:7000");
}

}  // namespace
}  // namespace covey
