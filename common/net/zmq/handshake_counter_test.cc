// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/handshake_counter.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/random.h"

namespace covey {
namespace {

TEST(HandshakeCounterTest, CountsOnlyConnectionsWithoutAHandshake) {
  HandshakeCounter counter;
  counter.Accepted(5);
  counter.Succeeded();
  counter.Closed(5);
  EXPECT_EQ(counter.failed(), 0u);
  counter.Accepted(5);
  counter.Closed(5);
  EXPECT_EQ(counter.failed(), 1u);
}

TEST(HandshakeCounterTest, ACountThatIsLateIsNotLost) {
  HandshakeCounter counter;
  counter.Accepted(1);  // a real peer
  counter.Accepted(2);  // a stranger
  counter.Succeeded();
  counter.Closed(2);  // may be the connection that succeeded
  EXPECT_EQ(counter.failed(), 0u);
  counter.Closed(1);
  EXPECT_EQ(counter.failed(), 1u);
}

TEST(HandshakeCounterTest, IsExactOnceAllAreClosed) {
  Random random(1);
  for (int run = 0; run < 500; ++run) {
    struct Connection {
      int descriptor;
      bool honest;
      bool greeted = false;
    };
    HandshakeCounter counter;
    std::vector<Connection> open;
    uint64_t expected = 0;
    int next_descriptor = 0;
    for (int step = 0; step < 60 || !open.empty(); ++step) {
      if (step < 60 && random.Chance(0.4)) {
        open.push_back({.descriptor = ++next_descriptor, .honest = random.Chance(0.5)});
        counter.Accepted(next_descriptor);
        continue;
      }
      if (open.empty()) continue;
      const size_t at = random.Below(open.size());
      if (open[at].honest && !open[at].greeted) {
        open[at].greeted = true;
        counter.Succeeded();
        continue;
      }
      if (!open[at].honest) ++expected;
      counter.Closed(open[at].descriptor);
      open.erase(open.begin() + static_cast<ptrdiff_t>(at));
    }
    EXPECT_EQ(counter.failed(), expected);
  }
}

}  // namespace
}  // namespace covey
