// SPDX-License-Identifier: Apache-2.0

// The scheduler's real service over loopback sockets: with our own channel, and with the bytes of
// strangers.
#include "scheduler/rpc/grpc_service.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/cluster/view.h"
#include "common/net/grpc_channel.h"
#include "common/net/loopback_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/scheduler_service.grpc.pb.h"
#include "scheduler/log/file_log.h"
#include "scheduler/scheduler_actor.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

constexpr int kPatienceSeconds = 20;
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

class GrpcServiceTest : public ::testing::Test {
 protected:
  GrpcServiceTest() {
    log_.SetReceiver([this](Message message) { loop_.Deliver(std::move(message)); });
    loop_.AddPort({kSchedulerNode, kDiskLoop}, log_);
    auto service = GrpcService::Start({.host = "127.0.0.1"}, actor_, loop_);
    EXPECT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    loop_.SetDefaultPort(*service_);
    loop_.Start();
    channel_ = grpc::CreateChannel(Target(), grpc::InsecureChannelCredentials());
    stub_ = proto::Scheduler::NewStub(channel_);
  }
  ~GrpcServiceTest() override {
    service_->Shutdown();
    loop_.Stop();
  }

  std::string Target() const { return absl::StrCat("127.0.0.1:", service_->port()); }
  // The loop's count, once it has handled everything that arrived before.
  uint64_t Malformed() {
    std::promise<uint64_t> counted;
    loop_.Post([&](absl::Time, Outbox&) { counted.set_value(service_->malformed()); });
    return counted.get_future().get();
  }
  std::unique_ptr<grpc::ClientContext> Context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(gpr_time_from_seconds(kPatienceSeconds, GPR_TIMESPAN));
    return context;
  }
  // Bytes of the reply of grpc.health.v1.Health/Check: {status: SERVING} is 08 01.
  static std::string Health(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::GenericStub generic(channel);
    const grpc::Slice nothing("");
    grpc::ByteBuffer empty(&nothing, 1);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
    grpc::ClientContext context;
    context.set_deadline(gpr_time_from_seconds(kPatienceSeconds, GPR_TIMESPAN));
    generic.UnaryCall(&context, absl::StrCat("/", "grpc.health.v1.Health", "/", "Check"), {},
                      &empty, &reply,
                      [&](grpc::Status status) { done.set_value(std::move(status)); });
    const grpc::Status status = done.get_future().get();
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(reply.Dump(&slices).ok());
    std::string bytes;
    for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
    return bytes;
  }
  proto::RegisterRequest Client(uint64_t incarnation) {
    proto::RegisterRequest request;
    request.mutable_header()->set_incarnation(incarnation);
    request.set_job_name("job");
    request.set_role(proto::CLIENT);
    request.set_rank(-1);
    return request;
  }
  proto::RegisterReply MustRegister(uint64_t incarnation) {
    proto::RegisterReply reply;
    const grpc::Status status = stub_->Register(Context().get(), Client(incarnation), &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  Config config_{.job_name = "job", .servers = 1, .groups = 0, .workers_per_group = 1};
  SchedulerActor actor_{config_, std::nullopt};
  LoopbackHub hub_;
  std::unique_ptr<Transport> transport_ = hub_.MakeTransport("");
  EventLoop loop_{{.job = JobFingerprint("job"),
                   .self = {kSchedulerNode, 0},
                   .incarnation = Incarnation(1),
                   .thread_name = "scheduler"},
                  actor_,
                  *transport_};
  NullLog log_;
  std::unique_ptr<GrpcService> service_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<proto::Scheduler::Stub> stub_;
};

TEST_F(GrpcServiceTest, AnswersTypedCallsWithTheActorsStatus) {
  EXPECT_EQ(MustRegister(5).node(), 2);
  proto::RegisterRequest other = Client(6);
  other.set_job_name("other");
  proto::RegisterReply reply;
  const grpc::Status status = stub_->Register(Context().get(), other, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("runs job 'job', not 'other'"));
  proto::StatusReply state;
  EXPECT_TRUE(stub_->GetStatus(Context().get(), {}, &state).ok());
  EXPECT_EQ(state.nodes_size(), 1);
  EXPECT_EQ(state.events_size(), 1);
}

// gRPC itself replies UNIMPLEMENTED to a method that the service does not implement.
TEST_F(GrpcServiceTest, TakesEveryRpcOfTheService) {
  grpc::GenericStub generic(channel_);
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
      proto::Scheduler::service_full_name());
  ASSERT_NE(service, nullptr);
  for (int i = 0; i < service->method_count(); ++i) {
    const google::protobuf::MethodDescriptor& rpc = *service->method(i);
    if (rpc.server_streaming()) continue;  // its reply ends with the caller
    const grpc::Slice nothing("");
    grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
    const auto context = Context();
    generic.UnaryCall(context.get(), absl::StrCat("/", service->full_name(), "/", rpc.name()), {},
                      &request, &reply,
                      [&](grpc::Status status) { done.set_value(std::move(status)); });
    const grpc::Status status = done.get_future().get();
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << rpc.name();
    EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << rpc.name();
  }
}

TEST_F(GrpcServiceTest, CarriesAChangeOfContract) {
  proto::SetContractRequest request;
  request.set_name("none");
  request.mutable_contract()->set_kind(proto::Contract::ASYNC);
  proto::SetContractReply reply;
  const grpc::Status status = stub_->SetContract(Context().get(), request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("table 'none'"));
}

TEST_F(GrpcServiceTest, WatchStreamsEachNewView) {
  const auto context = Context();
  const auto stream = stub_->WatchView(context.get(), {});
  proto::WatchViewReply reply;
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    MustRegister(epoch + 10);
    ASSERT_TRUE(stream->Read(&reply));
    EXPECT_EQ(reply.view().epoch(), epoch);
  }
  context->TryCancel();
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(GrpcServiceTest, ANodeThatTakesChangesIsStreamedThem) {
  proto::WatchViewRequest watch;
  watch.mutable_header()->set_node(MustRegister(5).node());
  watch.mutable_header()->set_incarnation(5);
  watch.mutable_header()->set_job(JobFingerprint("job"));
  watch.set_known_epoch(1);
  watch.set_takes_changes(true);
  const auto context = Context();
  const auto stream = stub_->WatchView(context.get(), watch);
  proto::WatchViewReply reply;
  for (uint64_t epoch = 2; epoch <= 4; ++epoch) {
    MustRegister(epoch + 10);
    ASSERT_TRUE(stream->Read(&reply));
    EXPECT_FALSE(reply.has_view());
    EXPECT_EQ(reply.change().since(), epoch - 1);
    EXPECT_EQ(reply.change().changed().epoch(), epoch);
    ASSERT_EQ(reply.change().changed().nodes_size(), 1);
    EXPECT_EQ(reply.change().changed().nodes(0).incarnation(), epoch + 10);
  }
  context->TryCancel();
  while (stream->Read(&reply)) {
  }
  stream->Finish();
}

TEST_F(GrpcServiceTest, SpeaksWithOurOwnChannel) {
  std::promise<Message> registered;
  std::promise<Message> viewed;
  const auto await = [](std::promise<Message>& promise) {
    std::future<Message> arrived = promise.get_future();
    const bool in_time =
        arrived.wait_for(std::chrono::seconds(kPatienceSeconds)) == std::future_status::ready;
    EXPECT_TRUE(in_time);
    return in_time ? arrived.get() : Message();
  };
  GrpcChannel channel({.scheduler = Target()}, [&](Message message) {
    const bool is_view = message.envelope.has_watch_view_reply();
    (is_view ? viewed : registered).set_value(std::move(message));
  });
  Message request;
  request.set_to({kSchedulerNode, 0});
  request.envelope.mutable_header()->set_incarnation(9);
  request.envelope.mutable_header()->set_request_id(41);
  *request.envelope.mutable_register_request() = Client(9);
  channel.Send(request);
  const Message registration = await(registered);
  EXPECT_EQ(registration.envelope.header().request_id(), 41);
  EXPECT_EQ(registration.envelope.register_reply().node(), 2);
  Message watch;
  watch.set_to({kSchedulerNode, 0});
  watch.envelope.mutable_header()->set_node(2);
  watch.envelope.mutable_header()->set_incarnation(9);
  watch.envelope.mutable_header()->set_request_id(42);
  watch.envelope.mutable_watch_view_request()->set_known_epoch(1);
  channel.Send(watch);
  MustRegister(10);
  const Message view = await(viewed);
  EXPECT_EQ(view.envelope.header().request_id(), 42);
  EXPECT_EQ(view.envelope.watch_view_reply().view().epoch(), 2);
}

TEST_F(GrpcServiceTest, HealthServiceSaysServing) { EXPECT_EQ(Health(channel_), kServing); }

TEST_F(GrpcServiceTest, HealthServiceSaysNotServingUntilThisSchedulerLeads) {
  auto standby =
      GrpcService::Start({.host = "127.0.0.1", .leads = [] { return false; }}, actor_, loop_);
  ASSERT_TRUE(standby.ok()) << standby.status();
  const auto channel = grpc::CreateChannel(absl::StrCat("127.0.0.1:", (*standby)->port()),
                                           grpc::InsecureChannelCredentials());
  EXPECT_EQ(Health(channel), kNotServing);
  (*standby)->SetServing();
  EXPECT_EQ(Health(channel), kServing);
  (*standby)->Shutdown();
  (*standby)->SetServing();
}

TEST_F(GrpcServiceTest, GarbageRequestsAreCountedAndRefused) {
  grpc::GenericStub generic(channel_);
  Random random(4);
  for (uint64_t round = 1; round <= 20; ++round) {
    std::string garbage(200, '\xff');
    for (char& byte : garbage) byte = static_cast<char>(random.Next() | 0x80);
    const grpc::Slice slice(garbage);
    grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
    // The stream's request is parsed by the service itself.
    const absl::string_view method = round % 2 == 0 ? "WatchView" : "Register";
    const auto context = Context();
    generic.UnaryCall(
        context.get(), absl::StrCat("/", proto::Scheduler::service_full_name(), "/", method), {},
        &request, &reply, [&](grpc::Status status) { done.set_value(std::move(status)); });
    EXPECT_FALSE(done.get_future().get().ok());
    // It is counted when the call has ended, which the caller may learn sooner.
    while (Malformed() < round) {
    }
    EXPECT_EQ(Malformed(), round);
  }
  MustRegister(5);
}

// A caller that dies between the head of a call and its request.
TEST_F(GrpcServiceTest, CallsThatBreakOffBeforeTheirRequestAreNotMalformed) {
  grpc::GenericStub generic(channel_);
  grpc::CompletionQueue queue;
  for (int round = 0; round < 20; ++round) {
    const auto context = Context();
    const auto call = generic.PrepareCall(
        context.get(), absl::StrCat("/", proto::Scheduler::service_full_name(), "/", "Register"),
        &queue);
    grpc::Status status;
    call->StartCall(&queue);
    call->Finish(&status, &status);
    void* tag = nullptr;
    bool is_done = false;
    ASSERT_TRUE(queue.Next(&tag, &is_done));
    EXPECT_EQ(tag, &queue) << "the head is sent";
    context->TryCancel();
    ASSERT_TRUE(queue.Next(&tag, &is_done));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  }
  MustRegister(5);
  EXPECT_EQ(Malformed(), 0);
}

TEST_F(GrpcServiceTest, RequestsBeyondTheLimitAreRefused) {
  proto::LeaveRequest request;
  request.set_reason(std::string(17 << 20, 'x'));
  proto::LeaveReply reply;
  EXPECT_EQ(stub_->Leave(Context().get(), request, &reply).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  MustRegister(5);
}

TEST_F(GrpcServiceTest, BytesThatAreNoGrpcAreSurvived) {
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    const int raw = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(service_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(raw, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    std::string garbage = round % 2 == 0 ? "" : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (int i = 0; i < 1000; ++i) garbage.push_back(static_cast<char>(random.Next()));
    send(raw, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    close(raw);
  }
  MustRegister(5);
}

TEST_F(GrpcServiceTest, PortInUseIsOneClearLine) {
  LoopbackHub hub;
  const auto transport = hub.MakeTransport("");
  EventLoop loop({}, actor_, *transport);
  const absl::Status status =
      GrpcService::Start({.host = "127.0.0.1", .port = service_->port()}, actor_, loop).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("cannot listen on ", Target())));
}

// Stands in front of the scheduler's actor and takes the messages that only this process sends.
class Listening : public Actor {
 public:
  explicit Listening(Actor& actor) : actor_(actor) {}
  void Receive(absl::Time now, const Message& message, Outbox& outbox) override {
    if (message.envelope.has_connection_lost()) {
      lost.push_back(message.envelope.connection_lost());
      EXPECT_EQ(message.from(), (Address{kSchedulerNode, kProbeLoop}));
      if (on_lost) on_lost();
      return;
    }
    actor_.Receive(now, message, outbox);
  }
  void Wake(absl::Time now, Outbox& outbox) override { actor_.Wake(now, outbox); }
  absl::Time NextWake() const override { return actor_.NextWake(); }

  std::vector<proto::ConnectionLost> lost;
  std::function<void()> on_lost;

 private:
  Actor& actor_;
};

class ConnectionLostTest : public ::testing::Test {
 protected:
  ConnectionLostTest() {
    log_.SetReceiver([this](Message message) { loop_.Deliver(std::move(message)); });
    loop_.AddPort({kSchedulerNode, kDiskLoop}, log_);
    service_ = *GrpcService::Start({.host = "127.0.0.1"}, listening_, loop_);
    loop_.SetDefaultPort(*service_);
    loop_.Start();
  }
  ~ConnectionLostTest() override {
    service_->Shutdown();
    loop_.Stop();
  }
  // Registers over a connection of its own and watches.
  struct Node {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<proto::Scheduler::Stub> stub;
    std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>();
    std::unique_ptr<grpc::ClientReader<proto::WatchViewReply>> stream;
    uint64_t id = 0;
  };
  Node Join(uint64_t incarnation) {
    Node node;
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    node.channel = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", service_->port()),
                                             grpc::InsecureChannelCredentials(), own);
    node.stub = proto::Scheduler::NewStub(node.channel);
    proto::RegisterRequest request;
    request.mutable_header()->set_incarnation(incarnation);
    request.set_job_name("job");
    request.set_role(proto::CLIENT);
    request.set_rank(-1);
    proto::RegisterReply reply;
    grpc::ClientContext context;
    EXPECT_TRUE(node.stub->Register(&context, request, &reply).ok());
    node.id = reply.node();
    proto::WatchViewRequest watch;
    watch.mutable_header()->set_node(node.id);
    watch.mutable_header()->set_incarnation(incarnation);
    node.stream = node.stub->WatchView(node.context.get(), watch);
    proto::WatchViewReply view;
    EXPECT_TRUE(node.stream->Read(&view));
    return node;
  }

  Config config_{.job_name = "job", .servers = 1, .groups = 0, .workers_per_group = 1};
  SchedulerActor actor_{config_, std::nullopt};
  Listening listening_{actor_};
  LoopbackHub hub_;
  std::unique_ptr<Transport> transport_ = hub_.MakeTransport("");
  EventLoop loop_{
      {.job = JobFingerprint("job"), .self = {kSchedulerNode, 0}}, listening_, *transport_};
  NullLog log_;
  std::unique_ptr<GrpcService> service_;
};

TEST_F(ConnectionLostTest, ABrokenWatchIsReportedToTheActor) {
  std::promise<void> heard;
  listening_.on_lost = [&] { heard.set_value(); };
  Node node = Join(77);
  node.context->TryCancel();
  ASSERT_EQ(heard.get_future().wait_for(std::chrono::seconds(kPatienceSeconds)),
            std::future_status::ready);
  ASSERT_EQ(listening_.lost.size(), 1);
  EXPECT_EQ(listening_.lost[0].node(), node.id);
  EXPECT_EQ(listening_.lost[0].incarnation(), 77);
  proto::WatchViewReply view;
  while (node.stream->Read(&view)) {
  }
  node.stream->Finish();
}

TEST_F(ConnectionLostTest, OurOwnShutdownIsNobodysLoss) {
  Node node = Join(77);
  service_->Shutdown();
  proto::WatchViewReply view;
  while (node.stream->Read(&view)) {
  }
  node.stream->Finish();
  loop_.Stop();
  EXPECT_TRUE(listening_.lost.empty());
}

// Answers a watch without news while the loop's queue is full, and with news the next time.
class BusyActor : public Actor {
 public:
  void Receive(absl::Time, const Message& request, Outbox& outbox) override {
    if (!request.envelope.has_watch_view_request()) return;
    Message reply = MakeReply(request);
    proto::ClusterView& view = *reply.envelope.mutable_watch_view_reply()->mutable_view();
    if (++watches > 1) view.set_epoch(1);
    outbox.Send(std::move(reply));
    if (watches > 1) return;
    while (loop->Post([](absl::Time, Outbox&) {})) {
    }
  }
  void Wake(absl::Time, Outbox&) override {}
  absl::Time NextWake() const override { return absl::InfiniteFuture(); }

  EventLoop* loop = nullptr;
  int watches = 0;
};

TEST(BusyService, AWatchThatGoesOnDoesNotWaitForTheLoopItRunsOn) {
  BusyActor actor;
  LoopbackHub hub;
  const std::unique_ptr<Transport> transport = hub.MakeTransport("");
  EventLoop loop({.self = {kSchedulerNode, 0}}, actor, *transport);
  actor.loop = &loop;
  const auto service = *GrpcService::Start({.host = "127.0.0.1"}, actor, loop);
  loop.SetDefaultPort(*service);
  loop.Start();
  const auto stub = proto::Scheduler::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", service->port()), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_seconds(kPatienceSeconds, GPR_TIMESPAN));
  const auto stream = stub->WatchView(&context, proto::WatchViewRequest());
  proto::WatchViewReply news;
  std::future<bool> is_read = std::async(std::launch::async, [&] { return stream->Read(&news); });
  // The turn of another call takes the watch along, if that call comes when the queue is full.
  while (is_read.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    proto::ListTablesReply listed;
    grpc::ClientContext other;
    other.set_deadline(gpr_time_from_millis(100, GPR_TIMESPAN));
    stub->ListTables(&other, proto::ListTablesRequest(), &listed);
  }
  ASSERT_TRUE(is_read.get());
  EXPECT_EQ(news.view().epoch(), 1u);
  context.TryCancel();
  while (stream->Read(&news)) {
  }
  stream->Finish();
  service->Shutdown();
  loop.Stop();
}

TEST_F(GrpcServiceTest, ShutdownEndsWhatIsUnderWay) {
  const auto watch_context = Context();
  const auto stream = stub_->WatchView(watch_context.get(), {});
  const uint64_t node = MustRegister(5).node();
  proto::WatchViewReply view;
  ASSERT_TRUE(stream->Read(&view));
  std::promise<grpc::Status> ended;
  proto::BarrierRequest barrier;
  barrier.mutable_header()->set_node(node);
  barrier.mutable_header()->set_incarnation(5);
  barrier.set_name("b");
  barrier.set_participants(2);
  barrier.set_deadline_ms(60000);
  proto::BarrierReply reply;
  const auto barrier_context = Context();
  stub_->async()->Barrier(barrier_context.get(), &barrier, &reply,
                          [&](grpc::Status status) { ended.set_value(std::move(status)); });
  service_->Shutdown();
  EXPECT_FALSE(stream->Read(&view));
  EXPECT_FALSE(stream->Finish().ok());
  EXPECT_FALSE(ended.get_future().get().ok());
}

}  // namespace
}  // namespace covey::scheduler
