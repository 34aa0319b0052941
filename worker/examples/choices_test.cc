// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/choices.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::examples {
namespace {

using ::testing::HasSubstr;

TEST(ChoicesTest, ReadsFlags) {
  Contract contract;
  WireFormat wire = WireFormat::kFloat32;
  WireFormat value_wire = WireFormat::kFloat32;
  ConfigFile options("example", "Tries.");
  AddContract(options, &contract);
  AddWireFormat(options, &wire);
  AddValueFormat(options, &value_wire);
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  ASSERT_TRUE(
      options.Load({"--contract=ssp:2", "--wire", "int8", "--value-wire=bfloat16"}, nothing).ok());
  EXPECT_EQ(contract, (Contract{.kind = Contract::Kind::kSsp, .staleness = 2}));
  EXPECT_EQ(wire, WireFormat::kInt8Block);
  EXPECT_EQ(value_wire, WireFormat::kBfloat16);
  EXPECT_THAT(options.Print(), HasSubstr("ssp:2"));
  EXPECT_THAT(options.Print(), HasSubstr("int8"));
  EXPECT_THAT(std::string(options.Load({"--wire", "x"}, nothing).status().message()),
              HasSubstr("bfloat16"));
}

TEST(ChoicesTest, NoNumberIsInNoRange) {
  EXPECT_TRUE(InRange("--x", 1, 1, 2).ok());
  EXPECT_EQ(InRange("--x", 3, 1, 2).message(), "--x is 3; choose 1 to 2");
  EXPECT_FALSE(InRange("--x", std::nan(""), 1, 2).ok());
}

}  // namespace
}  // namespace covey::examples
