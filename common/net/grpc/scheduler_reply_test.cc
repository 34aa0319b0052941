// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc/scheduler_reply.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/net/testing/control_requests.h"

namespace covey {
namespace {

TEST(SchedulerReplyTest, AReplyComesFromTheSchedulerToItsRequester) {
  Message request = Request(12);
  request.envelope.mutable_header()->set_job(3);
  const Message reply = MakeSchedulerReply(request);
  EXPECT_EQ(reply.to(), kRequester);
  EXPECT_EQ(reply.from(), (Address{kSchedulerNode, 0}));
  EXPECT_EQ(reply.envelope.header().job(), 3u);
  EXPECT_EQ(reply.envelope.header().request_id(), 12u);
  EXPECT_EQ(reply.envelope.body_case(), proto::Envelope::BODY_NOT_SET);
}

TEST(SchedulerReplyTest, AStatusThatIsNotTheSchedulersNamesTheAddresses) {
  const grpc::ClientContext context;
  EXPECT_EQ(OutcomeOf(grpc::Status::OK, context, "a:1"), absl::OkStatus());
  EXPECT_EQ(OutcomeOf({grpc::StatusCode::UNAVAILABLE, "refused"}, context, "a:1,b:2"),
            absl::UnavailableError("scheduler at a:1,b:2 does not answer: refused; check that it "
                                   "runs, that the address is right, and that --tls is given to "
                                   "both or to neither"));
}

}  // namespace
}  // namespace covey
