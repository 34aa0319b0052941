// SPDX-License-Identifier: Apache-2.0
#include "scheduler/rpc/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

class AdmissionTest : public ::testing::Test {
 protected:
  // Number of calls that are admitted at once.
  size_t Fill(uint64_t node, const std::string& host, const std::string& identity = "",
              Admission::Kind kind = Admission::Kind::kRequest) {
    const bool is_ipv4 = absl::StrContains(host, '.');
    size_t entered = 0;
    for (;; ++entered) {
      Admission::Place place;
      const absl::Status status =
          admission_.Enter({.node = node, .incarnation = 0, .identity = identity}, kind,
                           absl::StrCat(is_ipv4 ? "ipv4:" : "ipv6:", host, ":", entered), place);
      if (!status.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(status));
        refusal_ = std::string(status.message());
        return entered;
      }
      places_.push_back(place);
    }
  }

  Admission admission_;
  std::vector<Admission::Place> places_;
  std::string refusal_;
};

TEST_F(AdmissionTest, UntrustedCallersShareWhatIsLeftForThem) {
  EXPECT_EQ(Fill(0, "10.0.0.1"), 256u);
  EXPECT_THAT(refusal_, HasSubstr("256 of them from ipv4:10.0.0.1"));
  EXPECT_EQ(Fill(0, "10.0.0.2"), 256u);
  EXPECT_EQ(Fill(0, "10.0.0.3"), 0u);
  EXPECT_EQ(admission_.refused(), 3u);
}

TEST_F(AdmissionTest, AHostHasOneLimitForAllItsAddressesOfIpv6) {
  // As gRPC escapes brackets or not.
  EXPECT_EQ(Fill(0, "%5Bfd00:0:0:7::1%5D"), 256u);
  EXPECT_THAT(refusal_, HasSubstr("256 of them from ipv6:fd00:0:0:7::/64"));
  EXPECT_EQ(Fill(0, "%5Bfd00::7:ffff:0:0:2%5D"), 0u);
  EXPECT_EQ(Fill(0, "[fd00:0:0:7::3]"), 0u);
  EXPECT_EQ(Fill(0, "%5Bfd00:0:0:8::1%5D"), 256u) << "another host";
}

TEST_F(AdmissionTest, AKnownNodeHasRoomOfItsOwn) {
  admission_.MarkTrusted({.node = 7, .identity = ""});
  admission_.MarkTrusted({.node = 8, .identity = ""});
  Fill(0, "10.0.0.1");
  EXPECT_EQ(Fill(7, "10.0.0.1"), 32u);
  EXPECT_THAT(refusal_, HasSubstr("node 7 has 32 calls"));
  EXPECT_EQ(Fill(8, "10.0.0.1"), 32u);
}

TEST_F(AdmissionTest, AnotherIdentityTakesNoRoomFromTheNodeThatItClaimsToBe) {
  admission_.MarkTrusted({.node = 7, .identity = "worker"});
  EXPECT_EQ(Fill(7, "10.0.0.1", "viewer"), 256u) << "as any untrusted caller";
  admission_.MarkUntrusted({.node = 7, .identity = "viewer"});
  EXPECT_EQ(Fill(7, "10.0.0.2", "worker"), 32u);
}

TEST_F(AdmissionTest, AnotherIncarnationTakesNoRoomFromTheNodeThatItClaimsToBe) {
  admission_.MarkTrusted({.node = 7, .incarnation = 5, .identity = ""});
  EXPECT_EQ(Fill(7, "10.0.0.1"), 256u) << "as any untrusted caller";
  admission_.MarkUntrusted({.node = 7, .identity = ""});
  Admission::Place place;
  EXPECT_TRUE(admission_
                  .Enter({.node = 7, .incarnation = 5, .identity = ""}, Admission::Kind::kRequest,
                         "ipv4:10.0.0.1:9", place)
                  .ok());
}

TEST_F(AdmissionTest, ACallerThatOnlyClaimsToBeANodeIsUntrusted) {
  EXPECT_EQ(Fill(7, "10.0.0.1"), 256u);
  EXPECT_EQ(Fill(8, "10.0.0.1"), 0u);
  admission_.MarkTrusted({.node = 8, .identity = ""});
  EXPECT_EQ(Fill(8, "10.0.0.1"), 32u);
}

TEST_F(AdmissionTest, WatchesOfUntrustedCallersKeepNoRequestsOut) {
  EXPECT_EQ(Fill(7, "10.0.0.1", "", Admission::Kind::kWatch), 256u);
  EXPECT_THAT(refusal_, HasSubstr("256 watches"));
  EXPECT_EQ(Fill(8, "10.0.0.1"), 256u);
  EXPECT_THAT(refusal_, HasSubstr("256 requests"));
  EXPECT_EQ(Fill(7, "10.0.0.2", "", Admission::Kind::kWatch), 256u);
  EXPECT_EQ(Fill(7, "10.0.0.3", "", Admission::Kind::kWatch), 0u);
  for (const Admission::Place& place : places_) admission_.Leave(place);
  EXPECT_EQ(Fill(7, "10.0.0.3", "", Admission::Kind::kWatch), 256u);
}

TEST_F(AdmissionTest, PlacesThatAreGivenBackAreFree) {
  admission_.MarkTrusted({.node = 7, .identity = ""});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Fill(7, "10.0.0.1"), 32u);
    EXPECT_EQ(Fill(0, "10.0.0.1"), 256u);
    // Also when the node has been forgotten since then.
    admission_.MarkUntrusted({.node = 7, .identity = ""});
    for (const Admission::Place& place : places_) admission_.Leave(place);
    places_.clear();
    admission_.MarkTrusted({.node = 7, .identity = ""});
  }
}

}  // namespace
}  // namespace covey::scheduler
