// SPDX-License-Identifier: Apache-2.0
#include "client/cli/dashboard/request_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace covey::cli {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

const char kToken[] = "0123456789abcdef";

bool IsRefused(const std::string& path, const Headers& headers) {
  const auto refusal = RefusalOf({.path = path, .headers = headers}, 80, kToken);
  return refusal.has_value() && refusal->status == 403;
}

TEST(RequestCheckTest, TakesOwnHostsOnly) {
  for (const char* host : {"127.0.0.1:80", "localhost:80"}) {
    EXPECT_FALSE(IsRefused("/", {{"Host", host}})) << host;
  }
  for (const char* host : {"", "evil.example.com:80", "127.0.0.1", "127.0.0.1:81",
                           "127.0.0.1:80.example.com", "localhost:800", "[::1]:80"}) {
    EXPECT_TRUE(IsRefused("/", {{"Host", host}})) << host;
  }
}

TEST(RequestCheckTest, RefusesOtherOrigins) {
  const auto is_refused = [](const char* name, const char* value) {
    return IsRefused("/api/v1/state",
                     {{"Host", "localhost:80"}, {"Covey-Token", kToken}, {name, value}});
  };
  EXPECT_FALSE(is_refused("Origin", "http://localhost:80"));
  EXPECT_FALSE(is_refused("Origin", "http://127.0.0.1:80"));
  EXPECT_TRUE(is_refused("Origin", "https://localhost:80"));
  EXPECT_TRUE(is_refused("Origin", "http://localhost:81"));
  EXPECT_TRUE(is_refused("Origin", "http://example.com"));
  EXPECT_TRUE(is_refused("Origin", "null"));
  EXPECT_FALSE(is_refused("Sec-Fetch-Site", "same-origin"));
  EXPECT_TRUE(is_refused("Sec-Fetch-Site", "cross-site"));
  EXPECT_TRUE(is_refused("Sec-Fetch-Site", "same-site"));
}

TEST(RequestCheckTest, WantsTheTokenForTheState) {
  for (const char* token : {"", "0123456789abcdee", "0123456789abcde", "0123456789abcdef0"}) {
    EXPECT_TRUE(IsRefused("/api/v1/state", {{"Host", "localhost:80"}, {"Covey-Token", token}}));
  }
  EXPECT_FALSE(IsRefused("/api/v1/state", {{"Host", "localhost:80"}, {"covey-token", kToken}}));
  EXPECT_FALSE(IsRefused("/page.js", {{"Host", "localhost:80"}}));
}

TEST(RequestCheckTest, AddsThePolicy) {
  HttpResponse response;
  AddSafeHeaders(response);
  const auto policy =
      std::find_if(response.headers.begin(), response.headers.end(),
                   [](const auto& header) { return header.first == "Content-Security-Policy"; });
  ASSERT_NE(policy, response.headers.end());
  EXPECT_EQ(policy->second.rfind("default-src 'none';", 0), 0U);
  EXPECT_NE(policy->second.find("frame-ancestors 'none'"), std::string::npos);
}

TEST(RequestCheckTest, ReadsTheSequence) {
  EXPECT_EQ(SinceOf({.query = ""}), 0U);
  EXPECT_EQ(SinceOf({.query = "since=17"}), 17U);
  EXPECT_EQ(SinceOf({.query = "a=1&since=17"}), 17U);
  EXPECT_EQ(SinceOf({.query = "since=-1"}), 0U);
  EXPECT_EQ(SinceOf({.query = "since=x"}), 0U);
}

}  // namespace
}  // namespace covey::cli
