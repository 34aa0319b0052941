// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/exposure.h"

#include <sys/resource.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::HasSubstr;

TEST(ExposureTest, KnowsTheAddressesOfThisHost) {
  for (const char* host : {"127.0.0.1", "127.8.0.9", "localhost", "::1", "[::1]"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"", "0.0.0.0", "::", "[::]", "10.0.0.1", "128.0.0.1", "12", "host-127.",
                           "127.example.org"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(ExposureTest, KnowsWhoIsLookedForInVain) {
  EXPECT_TRUE(IsOutOfReach("127.0.0.1", "10.0.0.1:7070"));
  EXPECT_TRUE(IsOutOfReach("localhost", "127.0.0.1:7070,scheduler-1:7070"));
  EXPECT_FALSE(IsOutOfReach("127.0.0.1", "127.0.0.1:7070,localhost:7071"));
  EXPECT_FALSE(IsOutOfReach("::1", "[::1]:7070"));
  EXPECT_FALSE(IsOutOfReach("10.0.0.2", "10.0.0.1:7070"));
}

TEST(ExposureTest, AllowsAsManyConnectionsAsTheSystem) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  AllowManyConnections();
  rlimit after = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(ExposureTest, RefusesToListenForEverybodyUnlessTold) {
  const Exposure open = {.setting = "--host", .host = "10.0.0.1"};
  const absl::Status refused = CheckExposure(open);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  for (const char* part : {"--host is 10.0.0.1", "--tls DIR", "--insecure"}) {
    EXPECT_THAT(std::string(refused.message()), HasSubstr(part));
  }
  Exposure loopback = open;
  loopback.host = "127.0.0.1";
  EXPECT_TRUE(CheckExposure(loopback).ok());
  Exposure secured = open;
  secured.is_secured = true;
  EXPECT_TRUE(CheckExposure(secured).ok());
  Exposure insecure = open;
  insecure.is_insecure = true;
  EXPECT_TRUE(CheckExposure(insecure).ok());
  secured.is_insecure = true;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckExposure(secured)));
}

}  // namespace
}  // namespace covey
