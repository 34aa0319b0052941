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

  static Message ChangesRequest(uint64_t request_id, uint64_t known_epoch) {
    Message request = WatchRequest(request_id, known_epoch);
    request.envelope.mutable_watch_view_request()->set_takes_changes(true);
    return request;
  }
  // The epochs from which and to which the next reply leads.
  std::pair<uint64_t, uint64_t> TakeChange() {
    const Message reply = Take();
    const proto::WatchViewReply& news = reply.envelope.watch_view_reply();
    EXPECT_TRUE(news.has_change() && !news.has_view());
    return {news.change().since(), news.change().changed().epoch()};
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

TEST_F(ViewWatchTest, ChangesThatNobodyHasReadAreDeliveredAsOne) {
  first_.SendChanges();
  watch_.Send(ChangesRequest(1, 0));
  EXPECT_EQ(TakeChange(), std::pair(uint64_t{0}, uint64_t{1}));
  for (uint64_t epoch = 2; epoch <= 4; ++epoch) {
    first_.Publish(epoch);
    first_.AwaitSent(epoch);
  }
  // The last one to be sent may not have arrived yet.
  watch_.Send(ChangesRequest(2, 1));
  auto [since, to] = TakeChange();
  EXPECT_EQ(since, 1u);
  while (to < 4) {
    watch_.Send(ChangesRequest(3, to));
    const auto next = TakeChange();
    EXPECT_EQ(next.first, to);
    to = next.second;
  }
  EXPECT_EQ(to, 4u);
  EXPECT_EQ(first_.streams(), 1);
}

TEST_F(ViewWatchTest, AViewThatNobodyHasReadTakesInTheChangesAfterIt) {
  watch_.Send(ChangesRequest(1, 0));
  EXPECT_EQ(Take().envelope.watch_view_reply().view().epoch(), 1u);
  first_.Publish(2);
  first_.AwaitSent(2);
  first_.SendChanges();
  first_.Publish(3);
  first_.AwaitSent(3);
  uint64_t known = 1;
  for (uint64_t request = 2; known < 3; ++request) {
    watch_.Send(ChangesRequest(request, known));
    const Message reply = Take();
    const proto::WatchViewReply& news = reply.envelope.watch_view_reply();
    // A change comes alone only when the view before it has been delivered.
    if (news.has_change()) {
      EXPECT_EQ(news.change().since(), known);
    }
    known = news.has_change() ? news.change().changed().epoch() : news.view().epoch();
  }
  EXPECT_EQ(first_.streams(), 1);
}

// It has got a newer view from elsewhere, or could not apply a change.
TEST_F(ViewWatchTest, AChangeForAViewThatTheNodeDoesNotHoldIsNotWaitedFor) {
  first_.SendChanges();
  watch_.Send(ChangesRequest(1, 0));
  EXPECT_EQ(TakeChange(), std::pair(uint64_t{0}, uint64_t{1}));
  watch_.Send(ChangesRequest(2, 3));
  first_.Publish(4);
  EXPECT_EQ(TakeChange(), std::pair(uint64_t{3}, uint64_t{4}));
  EXPECT_EQ(first_.streams(), 2);
  // The same when the change that does not follow is here already.
  first_.Publish(5);
  first_.AwaitSent(5);
  watch_.Send(ChangesRequest(3, 3));
  EXPECT_EQ(TakeChange(), std::pair(uint64_t{3}, uint64_t{5}));
  EXPECT_EQ(first_.streams(), 3);
}

TEST_F(ViewWatchTest, ANodeThatWantsTheWholeViewGetsIt) {
  first_.SendChanges();
  watch_.Send(ChangesRequest(1, 0));
  EXPECT_EQ(TakeChange(), std::pair(uint64_t{0}, uint64_t{1}));
  first_.Publish(2);
  first_.AwaitSent(2);
  watch_.Send(WatchRequest(2, 1));
  EXPECT_EQ(Take().envelope.watch_view_reply().view().epoch(), 2u);
  // And goes on with changes.
  watch_.Send(ChangesRequest(3, 2));
  first_.Publish(3);
  EXPECT_EQ(TakeChange(), std::pair(uint64_t{2}, uint64_t{3}));
}

}  // namespace
}  // namespace covey
