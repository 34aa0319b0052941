// SPDX-License-Identifier: Apache-2.0
#include "client/engine/client_actor.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/cluster/view.h"
#include "gtest/gtest.h"

namespace covey::client {
namespace {

constexpr uint64_t kFarFuture = uint64_t{1} << 62;

// A client that has registered and knows the view of epoch 1.
class ClientActorTest : public ::testing::Test {
 protected:
  ClientActorTest() : actor_({.member = {.job_name = "job", .role = proto::CLIENT}}) {
    actor_.Wake(now_, outbox_);
    Message reply = MakeReply(Sent(proto::Envelope::kRegisterRequest));
    reply.envelope.mutable_register_reply()->set_node(7);
    *reply.envelope.mutable_register_reply()->mutable_view() = View(1);
    actor_.Receive(now_, reply, outbox_);
    EXPECT_EQ(actor_.member().state(), Member::State::kMember);
  }

  static proto::ClusterView View(uint64_t epoch) {
    proto::ClusterView view;
    view.set_epoch(epoch);
    view.set_job_name("job");
    view.set_job(JobFingerprint("job"));
    return view;
  }

  // The newest message with this body that was sent.
  Message Sent(proto::Envelope::BodyCase body) {
    for (Message& message : outbox_.TakeMessages()) sent_.push_back(std::move(message));
    for (auto it = sent_.rbegin(); it != sent_.rend(); ++it) {
      if (it->envelope.body_case() == body) return *it;
    }
    ADD_FAILURE() << "nothing of the kind was sent";
    return {};
  }

  void StartCreation() {
    proto::Envelope request;
    request.mutable_create_table_request()->mutable_spec()->set_name("w");
    actor_.control().Start(
        now_, std::move(request), now_ + absl::Seconds(60),
        [this](absl::Time, const absl::Status& status, const proto::Envelope*, Outbox&) {
          created_ = status;
        },
        outbox_);
  }

  Message Reply(uint64_t request_id, const proto::ClusterView& view) {
    Message reply;
    reply.envelope.mutable_header()->set_request_id(request_id);
    *reply.envelope.mutable_create_table_reply()->mutable_view() = view;
    return reply;
  }

  uint64_t epoch() { return actor_.member().view()->epoch().value(); }

  absl::Time now_ = absl::UnixEpoch();
  Outbox outbox_;
  std::vector<Message> sent_;
  ClientActor actor_;
  std::optional<absl::Status> created_;
};

TEST_F(ClientActorTest, UsesACreatedTableAtOnce) {
  StartCreation();
  const Message request = Sent(proto::Envelope::kCreateTableRequest);
  actor_.Receive(now_, Reply(request.envelope.header().request_id(), View(2)), outbox_);
  ASSERT_TRUE(created_.has_value());
  EXPECT_TRUE(created_->ok()) << *created_;
  EXPECT_EQ(epoch(), 2u);
}

TEST_F(ClientActorTest, BelievesNoReplyThatItHasNotAskedFor) {
  for (uint64_t request_id = 0; request_id < 100; ++request_id) {
    actor_.Receive(now_, Reply(request_id, View(kFarFuture)), outbox_);
  }
  EXPECT_EQ(epoch(), 1u);
  StartCreation();
  const uint64_t asked = Sent(proto::Envelope::kCreateTableRequest).envelope.header().request_id();
  actor_.Receive(now_, Reply(asked + 1, View(kFarFuture)), outbox_);
  EXPECT_EQ(epoch(), 1u);
  EXPECT_FALSE(created_.has_value());
  actor_.Receive(now_, Reply(asked, View(2)), outbox_);
  EXPECT_EQ(epoch(), 2u);
  // The same reply again: the request has ended.
  actor_.Receive(now_, Reply(asked, View(kFarFuture)), outbox_);
  EXPECT_EQ(epoch(), 2u);
}

TEST_F(ClientActorTest, ReadsNoViewFromAFailedReply) {
  StartCreation();
  const Message request = Sent(proto::Envelope::kCreateTableRequest);
  Message reply = Reply(request.envelope.header().request_id(), View(2));
  SetStatus(absl::AlreadyExistsError("table 'w' has another spec"), reply);
  actor_.Receive(now_, reply, outbox_);
  ASSERT_TRUE(created_.has_value());
  EXPECT_EQ(created_->code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(epoch(), 1u);
}

TEST_F(ClientActorTest, BelievesNoViewOfAnotherJob) {
  StartCreation();
  const Message request = Sent(proto::Envelope::kCreateTableRequest);
  proto::ClusterView other = View(2);
  other.set_job(JobFingerprint("another"));
  actor_.Receive(now_, Reply(request.envelope.header().request_id(), other), outbox_);
  EXPECT_EQ(epoch(), 1u);
}

}  // namespace
}  // namespace covey::client
