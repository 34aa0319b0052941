// SPDX-License-Identifier: Apache-2.0
#include "common/net/host_port.h"

#include <gtest/gtest.h>

namespace covey {
namespace {

TEST(HostPortTest, IsAHostAndAPort) {
  for (const char* text : {"10.0.0.1:1", "host:65535", "[::1]:7070"}) {
    EXPECT_TRUE(IsHostPort(text)) << text;
  }
  for (const char* text :
       {"", "host", "host:", ":1", "host:0", "host:65536", "host:-1", "host:x"}) {
    EXPECT_FALSE(IsHostPort(text)) << text;
  }
}

TEST(HostPortTest, AnAddressOfIpv6HasBrackets) {
  EXPECT_EQ(HostPort("10.0.0.1", 7), "10.0.0.1:7");
  EXPECT_EQ(HostPort("host", 0), "host:0");
  EXPECT_EQ(HostPort("fd00::1", 7), "[fd00::1]:7");
  EXPECT_EQ(HostPort("[fd00::1]", 7), "[fd00::1]:7");
}

}  // namespace
}  // namespace covey
