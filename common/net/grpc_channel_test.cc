#include "common/net/grpc_channel.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "proto/scheduler_service.grpc.pb.h"

namespace covey {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr Address kSelf = {NodeId(7), 2};

absl::Time Now() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Replies, handed from gRPC's threads to the test. Thread-safe.
class Inbox {
 public:
  void Put(Message message) {
    MutexLock lock(mutex_);
    messages_.push_back(std::move(message));
    arrived_.NotifyAll();
  }
  std::optional<Message> Take() {
    const absl::Time deadline = Now() + kPatience;
    MutexLock lock(mutex_);
    while (messages_.empty() && Now() < deadline) arrived_.WaitFor(mutex_, deadline - Now());
    if (messages_.empty()) return std::nullopt;
    Message message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  bool empty() {
    MutexLock lock(mutex_);
    return messages_.empty();
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::deque<Message> messages_ ABSL_GUARDED_BY(mutex_);
};

// Answers at once, except what a test holds back.
class FakeScheduler : public proto::Scheduler::Service {
 public:
  FakeScheduler() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeScheduler() override {
    Publish(0);
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Status Register(grpc::ServerContext*, const proto::RegisterRequest* request,
                        proto::RegisterReply* reply) override {
    if (request->header().request_id() == 0 || request->header().incarnation() == 0) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no header");
    }
    reply->set_node(41);
    reply->set_rank(static_cast<uint32_t>(request->rank()));
    return grpc::Status::OK;
  }
  grpc::Status CreateTable(grpc::ServerContext*, const proto::CreateTableRequest*,
                           proto::CreateTableReply*) override {
    return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "table w exists with another spec");
  }
  grpc::Status DropTable(grpc::ServerContext*, const proto::DropTableRequest*,
                         proto::DropTableReply*) override {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not ready yet");
  }
  // Until its caller gives up.
  grpc::Status Leave(grpc::ServerContext* context, const proto::LeaveRequest*,
                     proto::LeaveReply*) override {
    MutexLock lock(mutex_);
    while (!context->IsCancelled()) changed_.WaitFor(mutex_, absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  }
  // Sends every published epoch that the caller does not know; epoch 0 ends all streams.
  grpc::Status WatchView(grpc::ServerContext* context, const proto::WatchViewRequest* request,
                         grpc::ServerWriter<proto::WatchViewReply>* writer) override {
    uint64_t known = request->known_epoch();
    MutexLock lock(mutex_);
    ++streams_;
    while (!context->IsCancelled() && epoch_ != 0) {
      if (epoch_ > known) {
        known = epoch_;
        proto::WatchViewReply reply;
        reply.mutable_view()->set_epoch(known);
        writer->Write(reply);
      }
      changed_.WaitFor(mutex_, absl::Milliseconds(5));
    }
    return grpc::Status::OK;
  }

  void Publish(uint64_t epoch) {
    MutexLock lock(mutex_);
    epoch_ = epoch;
    changed_.NotifyAll();
  }
  int streams() {
    MutexLock lock(mutex_);
    return streams_;
  }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mutex_;
  CondVar changed_;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 1;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
};

Message Request(uint64_t request_id) {
  Message message;
  message.set_to({kSchedulerNode, 0});
  message.envelope.set_from_loop(kSelf.loop);
  proto::Header& header = *message.envelope.mutable_header();
  header.set_node(kSelf.node.value());
  header.set_incarnation(5);
  header.set_request_id(request_id);
  return message;
}

Message WatchRequest(uint64_t request_id, uint64_t known_epoch) {
  Message message = Request(request_id);
  message.envelope.mutable_watch_view_request()->set_known_epoch(known_epoch);
  return message;
}

class GrpcChannelTest : public testing::Test {
 protected:
  std::unique_ptr<GrpcChannel> Connect(const std::string& address) {
    return std::make_unique<GrpcChannel>(
        GrpcChannel::Options{.scheduler = address},
        [this](Message message) { inbox_.Put(std::move(message)); });
  }

  Message Take() {
    std::optional<Message> message = inbox_.Take();
    EXPECT_TRUE(message.has_value());
    return message.value_or(Message());
  }

  Inbox inbox_;
  FakeScheduler scheduler_;
};

TEST_F(GrpcChannelTest, CarriesARequestAndItsReply) {
  const auto channel = Connect(scheduler_.address());
  Message request = Request(12);
  request.envelope.mutable_register_request()->set_rank(3);
  channel->Send(std::move(request));
  const Message reply = Take();
  EXPECT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
  EXPECT_EQ(reply.envelope.register_reply().node(), 41u);
  EXPECT_EQ(reply.envelope.register_reply().rank(), 3u);
  EXPECT_EQ(reply.envelope.header().request_id(), 12u);
  EXPECT_EQ(reply.to(), kSelf);
  EXPECT_EQ(reply.from(), (Address{kSchedulerNode, 0}));
}

TEST_F(GrpcChannelTest, KeepsTheSchedulersOwnStatus) {
  const auto channel = Connect(scheduler_.address());
  Message request = Request(1);
  request.envelope.mutable_create_table_request();
  channel->Send(std::move(request));
  Message reply = Take();
  EXPECT_TRUE(reply.envelope.has_create_table_reply());
  EXPECT_EQ(StatusOf(reply), absl::AlreadyExistsError("table w exists with another spec"));

  request = Request(2);
  request.envelope.mutable_drop_table_request();
  channel->Send(std::move(request));
  EXPECT_EQ(StatusOf(Take()), absl::UnavailableError("not ready yet"));
}

TEST_F(GrpcChannelTest, SaysWhichSchedulerDoesNotAnswer) {
  const auto channel = Connect("127.0.0.1:1");
  Message request = Request(1);
  request.envelope.mutable_heartbeat_request();
  channel->Send(std::move(request));
  channel->Send(WatchRequest(2, 0));
  for (int i = 0; i < 2; ++i) {
    const Message reply = Take();
    EXPECT_TRUE(reply.envelope.has_heartbeat_reply() || reply.envelope.has_watch_view_reply());
    EXPECT_EQ(StatusOf(reply).code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(
        absl::StartsWith(StatusOf(reply).message(), "scheduler at 127.0.0.1:1 does not answer: "))
        << StatusOf(reply);
  }
}

TEST_F(GrpcChannelTest, GivesUpAtTheDeadline) {
  GrpcChannel channel({.scheduler = scheduler_.address(), .deadline = absl::Milliseconds(50)},
                      [this](Message message) { inbox_.Put(std::move(message)); });
  Message request = Request(1);
  request.envelope.mutable_leave_request();
  channel.Send(std::move(request));
  const Message reply = Take();
  EXPECT_EQ(StatusOf(reply).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(StatusOf(reply).message(), scheduler_.address()));
}

TEST_F(GrpcChannelTest, OneStreamAnswersManyWatches) {
  const auto channel = Connect(scheduler_.address());
  channel->Send(WatchRequest(1, 0));
  Message reply = Take();
  EXPECT_EQ(reply.envelope.watch_view_reply().view().epoch(), 1u);
  EXPECT_EQ(reply.envelope.header().request_id(), 1u);
  for (uint64_t epoch = 2; epoch < 10; ++epoch) {
    channel->Send(WatchRequest(epoch, epoch - 1));
    scheduler_.Publish(epoch);
    reply = Take();
    EXPECT_EQ(reply.envelope.watch_view_reply().view().epoch(), epoch);
    EXPECT_EQ(reply.envelope.header().request_id(), epoch);
  }
  EXPECT_EQ(scheduler_.streams(), 1);
}

TEST_F(GrpcChannelTest, ARepeatedWatchOpensAnotherStream) {
  const auto channel = Connect(scheduler_.address());
  channel->Send(WatchRequest(1, 1));
  channel->Send(WatchRequest(2, 1));
  scheduler_.Publish(2);
  const Message reply = Take();
  EXPECT_EQ(reply.envelope.header().request_id(), 2u);
  EXPECT_EQ(reply.envelope.watch_view_reply().view().epoch(), 2u);
  EXPECT_TRUE(inbox_.empty());
}

TEST_F(GrpcChannelTest, TellsThatTheSchedulerEndedTheWatch) {
  const auto channel = Connect(scheduler_.address());
  channel->Send(WatchRequest(1, 0));
  EXPECT_TRUE(StatusOf(Take()).ok());
  channel->Send(WatchRequest(2, 1));
  scheduler_.Publish(0);
  const Message reply = Take();
  EXPECT_TRUE(reply.envelope.has_watch_view_reply());
  EXPECT_EQ(StatusOf(reply).code(), absl::StatusCode::kUnavailable);
}

TEST_F(GrpcChannelTest, EndsWithoutAnswersWhileCallsAreUnderWay) {
  auto channel = Connect(scheduler_.address());
  channel->Send(WatchRequest(1, 1));
  for (uint64_t i = 2; i < 6; ++i) {
    Message request = Request(i);
    request.envelope.mutable_leave_request();
    channel->Send(std::move(request));
  }
  channel.reset();
  EXPECT_TRUE(inbox_.empty());
}

}  // namespace
}  // namespace covey
