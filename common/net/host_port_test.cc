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

}  // namespace
}  // namespace covey
