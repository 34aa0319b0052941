// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/wire_format_proto.h"

#include <utility>

#include "common/base/enum_map.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

TEST(WireFormatProtoTest, ConvertsEveryFormatBothWays) {
  for (const WireFormat format : kWireFormats) {
    EXPECT_EQ(WireFormatFromProto(ToProto(format)), format) << WireFormatName(format);
  }
  EXPECT_EQ(ToProto(WireFormat::kBfloat16), proto::WIRE_BFLOAT16);
}

TEST(WireFormatProtoTest, KnowsNoOther) {
  EXPECT_FALSE(WireFormatFromProto(static_cast<proto::WireFormat>(99)).has_value());
}

enum class Ours { kA, kB };
enum class Theirs { kA, kB, kC };

TEST(EnumMapTest, TellsWhetherItIsOneToOne) {
  constexpr EnumMap kGood({std::pair(Ours::kA, Theirs::kA), std::pair(Ours::kB, Theirs::kC)});
  static_assert(kGood.IsOneToOne() && kGood.size() == 2);
  EXPECT_EQ(kGood.ToTheirs(Ours::kB), Theirs::kC);
  EXPECT_EQ(kGood.ToOurs(Theirs::kB), std::nullopt);
  constexpr EnumMap kTwice({std::pair(Ours::kA, Theirs::kA), std::pair(Ours::kA, Theirs::kB)});
  constexpr EnumMap kSame({std::pair(Ours::kA, Theirs::kA), std::pair(Ours::kB, Theirs::kA)});
  static_assert(!kTwice.IsOneToOne() && !kSame.IsOneToOne());
}

}  // namespace
}  // namespace covey
