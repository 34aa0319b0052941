// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc/view_watch.h"

#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/testing/control_requests.h"
#include "common/net/testing/fake_scheduler.h"
#include "common/net/testing/reply_inbox.h"

namespace covey {
namespace {

// A watch with two schedulers, the first of which is current.
class ViewWatchTest : public testing::Test {
 protected:
  ~ViewWatchTest() override { calls_.Close(); }

  Message Take() {
    std::optional<Message> message = inbox_.Take();
    EXPECT_TRUE(message.has_value());
    return message.value_or(Message());
  }

  FakeScheduler first_;
  FakeScheduler second_;
  ReplyInbox inbox_;
  SchedulerStubs stubs_{absl::StrCat(first_.address(), ",", second_.address()),
                        grpc::InsecureChannelCredentials(), [this] { watch_.Follow(); }};
  CallsInFlight calls_;
  ViewWatch watch_{stubs_, calls_, [this](Message reply) { inbox_.Put(std::move(reply)); }};
};

TEST_F(ViewWatchTest, AViewThatTheRequestKnowsIsNotDelivered) {
  watch_.Send(WatchRequest(1, 0));
  EXPECT_EQ(Take().envelope.watch_view_reply().view().epoch(), 1u);
  watch_.Send(WatchRequest(2, 3));
  first_.Publish(2);
  first_.AwaitSent(2);
  first_.Publish(5);
  const Message reply = Take();
  EXPECT_EQ(reply.envelope.header().request_id(), 2u);
  EXPECT_EQ(reply.envelope.watch_view_reply().view().epoch(), 5u);
  EXPECT_EQ(first_.streams(), 1);
}

TEST_F(ViewWatchTest, ANodeThatHasRegisteredAgainOpensAnotherStream) {
  watch_.Send(WatchRequest(1, 0));
  EXPECT_EQ(Take().envelope.watch_view_reply().view().epoch(), 1u);
  Message request = WatchRequest(2, 1);
  request.envelope.mutable_header()->set_node(kRequester.node.value() + 1);
  watch_.Send(std::move(request));
  first_.Publish(2);
  EXPECT_EQ(Take().envelope.watch_view_reply().view().epoch(), 2u);
  EXPECT_EQ(first_.streams(), 2);
}

TEST_F(ViewWatchTest, FollowsWhenAnotherSchedulerBecomesCurrent) {
  watch_.Send(WatchRequest(1, 1));
  stubs_.MoveOn(0);
  // The reply is there when MoveOn returns.
  ASSERT_FALSE(inbox_.empty());
  const Message reply = Take();
  EXPECT_EQ(reply.envelope.header().request_id(), 1u);
  EXPECT_TRUE(reply.envelope.has_watch_view_reply());
  EXPECT_EQ(StatusOf(reply),
            absl::UnavailableError(absl::StrCat("scheduler at ", first_.address(),
                                                " does not answer or does not lead; the next of ",
                                                stubs_.addresses(), " is asked")));
  second_.Publish(7);
  watch_.Send(WatchRequest(2, 1));
  EXPECT_EQ(Take().envelope.watch_view_reply().view().epoch(), 7u);
}

TEST_F(ViewWatchTest, KeepsAStreamFromTheCurrentScheduler) {
  watch_.Send(WatchRequest(1, 1));
  watch_.Follow();
  EXPECT_TRUE(inbox_.empty());
  first_.Publish(2);
  EXPECT_EQ(Take().envelope.watch_view_reply().view().epoch(), 2u);
  EXPECT_EQ(first_.streams(), 1);
}

}  // namespace
}  // namespace covey
