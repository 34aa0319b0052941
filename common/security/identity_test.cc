// SPDX-License-Identifier: Apache-2.0
#include "common/security/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"

namespace covey {
namespace {

using testing::HasSubstr;

Identity Worker() {
  return {.trust_domain = "covey", .job = "mnist", .role = IdentityRole::kWorker, .rank = 3};
}

std::string Refusal(absl::string_view uri) {
  const auto identity = ParseIdentity(uri);
  EXPECT_EQ(identity.status().code(), absl::StatusCode::kInvalidArgument) << uri;
  return std::string(identity.status().message());
}

TEST(IdentityTest, HasOneUri) {
  EXPECT_EQ(UriOf(Worker()), "spiffe://covey/job/mnist/role/worker/rank/3");
  for (const IdentityRole role : kIdentityRoles) {
    const Identity identity{.trust_domain = "a-b.example.org", .job = "J_1.x", .role = role};
    EXPECT_EQ(*ParseIdentity(UriOf(identity)), identity);
  }
  const Identity admin{.trust_domain = "covey", .role = IdentityRole::kAdmin};
  EXPECT_EQ(UriOf(admin), "spiffe://covey/role/admin");
  EXPECT_EQ(*ParseIdentity("spiffe://covey/role/admin"), admin);
}

TEST(IdentityTest, IsDescribedToPeople) {
  EXPECT_EQ(Describe(Worker()), "worker 3 of job mnist");
  EXPECT_EQ(Describe({.trust_domain = "covey", .role = IdentityRole::kViewer}),
            "viewer of every job");
}

TEST(IdentityTest, RefusesOtherForms) {
  for (const char* uri : {
           "",
           "spiffe://",
           "https://example.org/job/a/role/worker",
           "spiffe://covey",
           "spiffe://covey/",
           "spiffe://covey/job/a",
           "spiffe://covey/job/a/role",
           "spiffe://covey/role/worker/job/a",
           "spiffe://covey/job/a/role/worker/",
           "spiffe://covey/job/a/role/worker/rank",
           "spiffe://covey/job/a/role/worker/rank/",
           "spiffe://covey/job/a/role/worker/rank/03",
           "spiffe://covey/job/a/role/worker/rank/+3",
           "spiffe://covey/job/a/role/worker/rank/-1",
           "spiffe://covey/job/a/role/worker/rank/ 3",
           "spiffe://covey/job/a/role/worker/rank/4294967296",
           "spiffe://covey/job/a/role/worker/rank/3/rank/3",
           "spiffe://covey/job/a/job/b/role/worker",
           "spiffe://covey/job/a/role/worker?x=1",
           "SPIFFE://covey/job/a/role/worker",
       }) {
    EXPECT_THAT(Refusal(uri), testing::Not("")) << uri;
  }
  EXPECT_THAT(Refusal("spiffe://covey/x"), HasSubstr("is not of the form spiffe://TRUST-DOMAIN/"));
}

TEST(IdentityTest, SaysWhichPartIsWrong) {
  EXPECT_THAT(Refusal("spiffe://Covey/job/a/role/worker"), HasSubstr("the trust domain 'Covey'"));
  EXPECT_THAT(Refusal("spiffe://user@covey/job/a/role/worker"), HasSubstr("the trust domain"));
  EXPECT_THAT(Refusal("spiffe:///job/a/role/worker"), HasSubstr("the trust domain ''"));
  EXPECT_THAT(Refusal("spiffe://covey/job/../role/worker"), HasSubstr("the job '..'"));
  EXPECT_THAT(Refusal("spiffe://covey/job/a%20b/role/worker"), HasSubstr("the job 'a%20b'"));
  EXPECT_THAT(Refusal("spiffe://covey/job/*/role/admin"), HasSubstr("the job '*'"));
  EXPECT_THAT(Refusal("spiffe://covey/job//role/worker"), HasSubstr("the job ''"));
  EXPECT_THAT(Refusal("spiffe://covey/job/a/role/wroker"),
              HasSubstr("'wroker' is no role; did you mean worker?"));
  EXPECT_THAT(Refusal("spiffe://covey/role/worker"), HasSubstr("a worker belongs to one job"));
  EXPECT_THAT(Refusal("spiffe://covey/job/a/role/client/rank/1"),
              HasSubstr("the role client has no ranks"));
}

TEST(IdentityTest, LimitsLengths) {
  const auto uri = [](size_t domain, size_t job) {
    return absl::StrCat("spiffe://", std::string(domain, 'd'), "/job/", std::string(job, 'j'),
                        "/role/", "client");
  };
  EXPECT_TRUE(ParseIdentity(uri(kTrustDomainBytesMax, kIdentityJobBytesMax)).ok());
  EXPECT_THAT(Refusal(uri(kTrustDomainBytesMax + 1, 1)), HasSubstr("the trust domain"));
  EXPECT_THAT(Refusal(uri(1, kIdentityJobBytesMax + 1)), HasSubstr("the job"));
  EXPECT_THAT(Refusal(uri(1, 1'000'000)), HasSubstr("at most 2048 are allowed"));
  EXPECT_LT(Refusal(uri(1, 1'000'000)).size(), 400u) << "a message does not repeat it all";
}

TEST(IdentityTest, MessagesHoldNoControlCharacters) {
  const std::string message = Refusal("spiffe://covey/job/a\n\x1b[31m\xff/role/worker");
  EXPECT_THAT(message, HasSubstr("a\\n\\x1b[31m\\xff"));
}

// Whatever is accepted is spelled in one way; nothing crashes.
TEST(IdentityTest, ManglesOfUrisAreRefusedOrCanonical) {
  Random random(7);
  const std::string pieces[] = {"spiffe://", "covey", "/job/", "/role/", "/rank/", "worker",
                                "admin",     "a",     "0",     "4",      "/",      "//",
                                ".",         "%2f",   "\n",    "\xc3",   "",       "viewer"};
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string uri = "spiffe://covey/job/a/role/worker/rank/4";
    if (random.Chance(0.5)) {
      for (uint64_t edits = 1 + random.Below(3); edits > 0 && !uri.empty(); --edits) {
        const size_t at = random.Below(uri.size());
        if (random.Chance(0.5)) {
          uri[at] = static_cast<char>(random.Below(256));
        } else {
          uri.erase(at, 1 + random.Below(6));
        }
      }
    } else {
      uri = "spiffe://covey";
      for (uint64_t count = random.Below(7); count > 0; --count) {
        uri += pieces[random.Below(std::size(pieces))];
      }
    }
    const auto identity = ParseIdentity(uri);
    if (!identity.ok()) continue;
    ++accepted;
    EXPECT_EQ(UriOf(*identity), uri);
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace covey
