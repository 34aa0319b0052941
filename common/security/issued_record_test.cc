// SPDX-License-Identifier: Apache-2.0
#include "common/security/issued_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace covey {
namespace {

using testing::HasSubstr;

const absl::Time kUntil = absl::FromUnixSeconds(1'800'000'000);
constexpr char kLine[] =
    "0a1b ff00 2027-01-15T08:00:00Z spiffe://covey/job/mnist/role/worker/rank/3\n";

IssuedRecord::Entry Entry(const std::string& serial, absl::Time until) {
  return {.serial = serial,
          .root = "ff00",
          .until = until,
          .identity = {
              .trust_domain = "covey", .job = "mnist", .role = IdentityRole::kWorker, .rank = 3}};
}

TEST(IssuedRecordTest, IsALineForEach) {
  IssuedRecord record;
  EXPECT_EQ(record.Text(), "");
  record.Add(Entry("0a1b", kUntil));
  EXPECT_EQ(record.Text(), kLine);
  const auto read = IssuedRecord::Parse(absl::StrCat(kLine, kLine));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Text(), absl::StrCat(kLine, kLine));
  EXPECT_TRUE(IssuedRecord::Parse("")->entries().empty());
}

TEST(IssuedRecordTest, ForgetsReplacedAndExpiredOnes) {
  IssuedRecord record;
  record.Add(Entry("01", kUntil));
  record.Add(Entry("02", kUntil + absl::Seconds(1)));
  record.Add(Entry("03", kUntil + absl::Seconds(2)));
  record.Remove("none");
  record.RemoveExpired(kUntil - absl::Seconds(1));
  EXPECT_EQ(record.entries().size(), 3u);
  record.RemoveExpired(kUntil);
  record.Remove("03");
  ASSERT_EQ(record.entries().size(), 1u);
  EXPECT_EQ(record.entries()[0].serial, "02");
  record.RemoveSignedBy("ff01");
  EXPECT_EQ(record.entries().size(), 1u);
  record.RemoveSignedBy("ff00");
  EXPECT_TRUE(record.entries().empty());
}

TEST(IssuedRecordTest, NamesTheLineThatIsMalformed) {
  for (const char* line : {"x\n", "\n", "01 02 yesterday spiffe://covey/role/admin\n",
                           "01 02 2027-01-15T08:00:00Z covey\n",
                           "01 02 2027-01-15T08:00:00Z spiffe://covey/role/admin x\n"}) {
    EXPECT_THAT(IssuedRecord::Parse(absl::StrCat(kLine, line, kLine)).status().message(),
                HasSubstr("line 2: "))
        << line;
  }
}

}  // namespace
}  // namespace covey
