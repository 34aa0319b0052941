// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/peers/seconds_each.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace covey::cli {
namespace {

using ::testing::ElementsAre;

TEST(MicrosecondsTest, TakesTheLastObjectThatHasThem) {
  EXPECT_THAT(*MicrosecondsIn("covey | started\n"
                              "worker-0 | result {\"seconds_each\":[0.5]}\n"
                              "{\"seconds_each\":[0.25,1],\"members\":2}\n{\"wall\":1}\n"),
              ElementsAre(250000, 1000000));
}

TEST(MicrosecondsTest, RefusesOutputWithoutTimes) {
  for (const char* text : {"", "no times", "{}", "{\"seconds_each\":[]}", "{\"seconds_each\":7}",
                           "{\"seconds_each\":[\"x\"]}", "{\"seconds_each\":[0.1"}) {
    EXPECT_FALSE(MicrosecondsIn(text).ok()) << text;
  }
}

}  // namespace
}  // namespace covey::cli
