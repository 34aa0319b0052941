// SPDX-License-Identifier: Apache-2.0
#include "common/fuzz/mutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace covey {
namespace {

TEST(MutationTest, TheSameSeedGivesTheSameInput) {
  const std::vector<std::string> inputs = {"one input of several words", "another"};
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random first(seed), second(seed);
    EXPECT_EQ(Mutated(inputs, first), Mutated(inputs, second));
  }
}

TEST(MutationTest, InputsBecomeShorterLongerAndMixed) {
  const std::vector<std::string> inputs = {std::string(40, 'a'), std::string(40, 'b')};
  std::set<std::string> mutations;
  int shorter = 0, longer = 0, mixed = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    const std::string text = Mutated(inputs, random);
    mutations.insert(text);
    if (text.size() < 40) ++shorter;
    if (text.size() > 40) ++longer;
    const auto has = [&text](char byte) { return std::count(text.begin(), text.end(), byte) > 2; };
    if (has('a') && has('b')) ++mixed;
  }
  EXPECT_GT(shorter, 100);
  EXPECT_GT(longer, 100);
  EXPECT_GT(mixed, 100);
  EXPECT_GT(mutations.size(), 800u);
}

TEST(MutationTest, AnEmptyInputIsOneToo) {
  const std::vector<std::string> inputs = {""};
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    Mutated(inputs, random);
  }
}

}  // namespace
}  // namespace covey
