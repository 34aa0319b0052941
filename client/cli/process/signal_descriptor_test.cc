// SPDX-License-Identifier: Apache-2.0
#include "client/cli/process/signal_descriptor.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace covey::cli {
namespace {

TEST(SignalDescriptorTest, TakesEachSignalOnceAndLetsNoneEndTheProcess) {
  SignalDescriptor signals({SIGINT, SIGTERM});
  EXPECT_EQ(signals.Take(), std::nullopt);
  raise(SIGTERM);
  EXPECT_EQ(signals.Take(), SIGTERM);
  EXPECT_EQ(signals.Take(), std::nullopt);
  raise(SIGINT);
  raise(SIGINT);
  EXPECT_EQ(signals.Take(), SIGINT);
  EXPECT_EQ(signals.Take(), std::nullopt);
}

}  // namespace
}  // namespace covey::cli
