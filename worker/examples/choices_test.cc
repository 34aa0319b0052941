#include "worker/examples/choices.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::examples {
namespace {

using ::testing::HasSubstr;

TEST(ChoicesTest, EveryWireFormatHasAName) {
  for (const proto::WireFormat format :
       {proto::WIRE_FLOAT32, proto::WIRE_FLOAT16, proto::WIRE_BFLOAT16, proto::WIRE_INT8_BLOCK}) {
    const absl::StatusOr<proto::WireFormat> parsed = ParseWireFormat(WireFormatName(format));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, format);
  }
  EXPECT_THAT(std::string(ParseWireFormat("fp8").status().message()), HasSubstr("bf16 or int8"));
}

TEST(ChoicesTest, ReadsFlags) {
  Contract contract;
  proto::WireFormat wire = proto::WIRE_FLOAT32;
  ConfigFile options("example", "Tries.");
  AddContract(options, &contract);
  AddWireFormat(options, &wire);
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  ASSERT_TRUE(options.Load({"--contract=ssp:2", "--wire", "int8"}, nothing).ok());
  EXPECT_EQ(contract, (Contract{.kind = Contract::Kind::kSsp, .staleness = 2}));
  EXPECT_EQ(wire, proto::WIRE_INT8_BLOCK);
  EXPECT_THAT(options.Print(), HasSubstr("ssp:2"));
  EXPECT_THAT(std::string(options.Load({"--wire", "x"}, nothing).status().message()),
              HasSubstr("no wire format is called 'x'"));
}

TEST(ChoicesTest, NoNumberIsInNoRange) {
  EXPECT_TRUE(InRange("--x", 1, 1, 2).ok());
  EXPECT_EQ(InRange("--x", 3, 1, 2).message(), "--x is 3; choose 1 to 2");
  EXPECT_FALSE(InRange("--x", std::nan(""), 1, 2).ok());
}

}  // namespace
}  // namespace covey::examples
