// SPDX-License-Identifier: Apache-2.0
#include "scheduler/audit_trail.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/security/identity.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();
const absl::Status kRefused = absl::PermissionDeniedError("no right");

class AuditTrailTest : public ::testing::Test {
 protected:
  AuditTrailTest() {
    trail_.OnEntry([this](const AuditEntry& entry) { entries_.push_back(entry); });
  }
  static Message Drain(absl::string_view node) {
    Message message;
    message.envelope.mutable_drain_request()->set_node(std::string(node));
    return message;
  }
  static Message From(Message message, IdentityRole role) {
    message.caller = std::make_shared<const Identity>(
        Identity{.trust_domain = "covey", .job = "mnist", .role = role});
    return message;
  }
  void Add(absl::Time now, const Message& request, const absl::Status& outcome) {
    trail_.Add(now, *FindControlMethod(request.envelope), request, outcome);
  }

  AuditTrail trail_;
  std::vector<AuditEntry> entries_;
};

TEST_F(AuditTrailTest, TellsWhoHasAdministeredTheJob) {
  Add(kStart, From(Drain("server-1"), IdentityRole::kAdmin), absl::OkStatus());
  Add(kStart, Drain("server-2"), absl::OkStatus());
  Message by_node = Drain("server-2");
  by_node.envelope.mutable_header()->set_node(5);
  Add(kStart, by_node, absl::OkStatus());
  ASSERT_EQ(entries_.size(), 3u);
  EXPECT_EQ(entries_[0].who, "admin of job mnist");
  EXPECT_EQ(entries_[0].call, "Drain");
  EXPECT_EQ(entries_[0].target, "server-1");
  EXPECT_TRUE(entries_[0].outcome.ok());
  EXPECT_EQ(entries_[1].who, "somebody");
  EXPECT_EQ(entries_[2].who, "node 5");
  Message heartbeat;
  heartbeat.envelope.mutable_heartbeat_request();
  Add(kStart, heartbeat, absl::OkStatus());
  EXPECT_EQ(entries_.size(), 3u) << "it is no call of an administrator";
  EXPECT_EQ(trail_.refused(), 0u);
  Add(kStart, heartbeat, kRefused);
  EXPECT_EQ(entries_.size(), 4u);
  Message quarantine;
  quarantine.envelope.mutable_quarantine_request()->set_producer("group-3");
  Add(kStart, quarantine, absl::OkStatus());
  ASSERT_EQ(entries_.size(), 5u);
  EXPECT_EQ(entries_[4].target, "group-3");
}

TEST_F(AuditTrailTest, CountsTheRefusalsOfACaller) {
  const Message viewer = From(Drain("server-1"), IdentityRole::kViewer);
  for (int i = 0; i < 50; ++i) Add(kStart + absl::Seconds(i), viewer, kRefused);
  EXPECT_EQ(trail_.refused(), 50u);
  // Another caller is told of at once.
  Add(kStart + absl::Seconds(50), From(Drain("server-1"), IdentityRole::kClient), kRefused);
  ASSERT_EQ(entries_.size(), 2u);
  EXPECT_EQ(entries_[0].repeated, 0u);
  EXPECT_EQ(entries_[1].who, "client of job mnist");
  Add(kStart + AuditTrail::kRefusalEvery, viewer, kRefused);
  ASSERT_EQ(entries_.size(), 3u);
  EXPECT_EQ(entries_[2].repeated, 49u);
  EXPECT_EQ(entries_[2].outcome, kRefused);
}

TEST_F(AuditTrailTest, RemembersABoundedNumberOfCallers) {
  const auto from_node = [](uint64_t node) {
    Message message = Drain("server-1");
    message.envelope.mutable_header()->set_node(node);
    return message;
  };
  for (uint64_t node = 1; node <= AuditTrail::kCountedMax; ++node) {
    Add(kStart, from_node(node), kRefused);
  }
  entries_.clear();
  Add(kStart, from_node(5000), kRefused);
  Add(kStart, from_node(5000), kRefused);
  EXPECT_EQ(entries_.size(), 2u) << "there is no room to count its refusals";
  // A minute later the others have no more to be told of.
  const absl::Time later = kStart + AuditTrail::kRefusalEvery;
  Add(later, from_node(5000), kRefused);
  Add(later, from_node(5000), kRefused);
  EXPECT_EQ(entries_.size(), 3u);
}

}  // namespace
}  // namespace covey::scheduler
