// SPDX-License-Identifier: Apache-2.0

// A flood at the scheduler's port harms neither the nodes' heartbeats nor the scheduler's memory.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/cluster/view.h"
#include "common/net/loopback_transport.h"
#include "proto/scheduler_service.grpc.pb.h"
#include "scheduler/log/file_log.h"
#include "scheduler/rpc/grpc_service.h"
#include "scheduler/scheduler_actor.h"

namespace covey::scheduler {
namespace {

constexpr int kNodes = 8;
constexpr absl::Duration kBeatEvery = absl::Milliseconds(50);
constexpr absl::Duration kFloodFor = absl::Seconds(3);
// A connection that the scheduler closes is opened again after this duration.
constexpr absl::Duration kReconnectAfter = absl::Seconds(1);
// Connections of a flooder that ignores all limits; each call costs gRPC about 16 KiB.
constexpr int kConnections = 32;
constexpr int kCallsPerConnection = 256;

std::string Number(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

// HTTP/2 by hand, so that the flooder obeys no limit and reads nothing.
std::string Frame(int kind, int flags, uint32_t stream, const std::string& payload) {
  return absl::StrCat(BigEndian(payload.size(), 3), BigEndian(static_cast<uint64_t>(kind), 1),
                      BigEndian(static_cast<uint64_t>(flags), 1), BigEndian(stream, 4), payload);
}

std::string Headers(const std::string& method) {
  std::string block;
  const std::pair<std::string, std::string> fields[] = {
      {":method", "POST"},
      {":scheme", "http"},
      {":path", absl::StrCat("/covey.proto.Scheduler/", method)},
      {":authority", "localhost"},
      {"content-type", "application/grpc"},
      {"te", "trailers"}};
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&block, std::string(1, '\0'), Number(name.size()), name, Number(value.size()),
                    value);
  }
  return block;
}

std::string Opening() {
  return absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Frame(4, 0, 0, ""), Frame(4, 1, 0, ""));
}

std::string Call(const std::string& method, const std::string& body, uint32_t stream) {
  const std::string message = absl::StrCat(std::string(1, '\0'), BigEndian(body.size(), 4), body);
  return absl::StrCat(Frame(1, 4, stream, Headers(method)), Frame(0, 1, stream, message));
}

std::string Calls(const std::string& method, const std::string& body) {
  std::string calls = Opening();
  for (uint32_t i = 0; i < kCallsPerConnection; ++i) calls += Call(method, body, 2 * i + 1);
  return calls;
}

// Announces a request of `bytes` bytes and sends all of it except the end.
std::string Unfinished(uint64_t bytes) {
  std::string text = Opening();
  text += Frame(1, 4, 1, Headers("Leave"));
  text += Frame(0, 0, 1, absl::StrCat(std::string(1, '\0'), BigEndian(bytes, 4)));
  for (uint64_t sent = 0; sent + 16384 < bytes; sent += 16384) {
    text += Frame(0, 0, 1, std::string(16384, 'x'));
  }
  return text;
}

uint64_t ResidentMiB() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0;
  uint64_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<uint64_t>(getpagesize()) >> 20;
}

class OverloadTest : public ::testing::Test {
 protected:
  OverloadTest() {
    log_.SetReceiver([this](Message message) { loop_.Deliver(std::move(message)); });
    loop_.AddPort({kSchedulerNode, kDiskLoop}, log_);
    service_ = *GrpcService::Start({.host = "127.0.0.1"}, actor_, loop_);
    loop_.SetDefaultPort(*service_);
    loop_.Start();
    for (int i = 0; i < kNodes; ++i) nodes_.emplace_back([this, i] { Beat(i); });
  }
  ~OverloadTest() override {
    stop_.store(true);
    for (std::thread& node : nodes_) node.join();
    for (const int file : files_) close(file);
    service_->Shutdown();
    loop_.Stop();
  }

  // A node: registers over a connection of its own and lives until the end.
  void Beat(int number) {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = proto::Scheduler::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", service_->port()), grpc::InsecureChannelCredentials(), own));
    proto::RegisterRequest join;
    join.mutable_header()->set_incarnation(static_cast<uint64_t>(number) + 1);
    join.set_job_name("job");
    join.set_role(proto::CLIENT);
    join.set_rank(-1);
    proto::RegisterReply joined;
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(gpr_time_from_seconds(60, GPR_TIMESPAN));
    const grpc::Status registered = stub->Register(&context, join, &joined);
    if (!registered.ok()) {
      MutexLock lock(mutex_);
      failures_.push_back(registered.error_message());
      return;
    }
    registered_.fetch_add(1);
    while (!stop_.load()) {
      proto::HeartbeatRequest beat;
      *beat.mutable_header() = join.header();
      beat.mutable_header()->set_node(joined.node());
      proto::HeartbeatReply reply;
      grpc::ClientContext once;
      once.set_deadline(gpr_time_from_seconds(5, GPR_TIMESPAN));
      const absl::Time start = MonotonicNow();
      const grpc::Status status = stub->Heartbeat(&once, beat, &reply);
      const absl::Duration took = MonotonicNow() - start;
      {
        MutexLock lock(mutex_);
        took_.push_back(took);
        if (!status.ok()) failures_.push_back(status.error_message());
      }
      poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kBeatEvery)));
    }
  }

  void AwaitNodes() {
    const absl::Time until = MonotonicNow() + absl::Seconds(90);
    while (registered_.load() < kNodes && MonotonicNow() < until) poll(nullptr, 0, 1);
    MutexLock lock(mutex_);
    ASSERT_EQ(registered_.load(), kNodes) << (failures_.empty() ? "" : failures_[0]);
  }

  int Connect() {
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(service_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      close(file);
      return -1;
    }
    return file;
  }

  struct Connection {
    int file = -1;
    size_t sent = 0;
    absl::Time again = absl::InfinitePast();
  };

  void Send(const std::string& bytes, Connection& connection) {
    if (connection.file < 0 && MonotonicNow() >= connection.again) {
      connection = {.file = Connect(), .sent = 0, .again = MonotonicNow() + kReconnectAfter};
    }
    if (connection.file < 0) return;
    const ssize_t count = send(connection.file, bytes.data() + connection.sent,
                               bytes.size() - connection.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) connection.sent += static_cast<size_t>(count);
    char answer[4096];
    const bool closed = connection.sent == bytes.size() &&
                        recv(connection.file, answer, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
    if (closed || (count < 0 && errno != EAGAIN)) {
      close(connection.file);
      connection.file = -1;
    }
  }

  // Opens connections and sends `bytes` on each, as far as they are accepted, and again when the
  // scheduler hangs up. Reads nothing.
  void Flood(const std::string& bytes) {
    ASSERT_NO_FATAL_FAILURE(AwaitNodes());
    const uint64_t before = ResidentMiB();
    uint64_t most = before;
    const absl::Time until = MonotonicNow() + kFloodFor;
    std::vector<Connection> open(kConnections);
    while (MonotonicNow() < until) {
      for (Connection& connection : open) Send(bytes, connection);
      most = std::max(most, ResidentMiB());
      poll(nullptr, 0, 1);
    }
    for (const Connection& connection : open) {
      if (connection.file >= 0) files_.push_back(connection.file);
    }
    Report(before, most);
  }

  void Report(uint64_t before, uint64_t most) {
    std::vector<absl::Duration> took;
    {
      MutexLock lock(mutex_);
      took = took_;
      EXPECT_TRUE(failures_.empty()) << failures_.size() << " beats failed: " << failures_[0];
    }
    std::sort(took.begin(), took.end());
    ASSERT_GT(took.size(), 20u);
    RecordProperty("beats", static_cast<int>(took.size()));
    RecordProperty("p99_ms",
                   static_cast<int>(absl::ToInt64Milliseconds(took[took.size() * 99 / 100])));
    RecordProperty("longest_ms", static_cast<int>(absl::ToInt64Milliseconds(took.back())));
    RecordProperty("grown_mib", static_cast<int>(most - before));
    EXPECT_LE(most - before, kGrownMiBMax);
    std::promise<std::string> dead;
    loop_.Post([&](absl::Time, Outbox&) {
      std::string names;
      for (const proto::Node& node : actor_.published().nodes()) {
        if (node.state() != proto::Node::ALIVE) absl::StrAppend(&names, node.name(), " ");
      }
      dead.set_value(names);
    });
    EXPECT_EQ(dead.get_future().get(), "");
  }

  // Largest growth of memory that a flood may cause.
  static constexpr uint64_t kGrownMiBMax = 256;

  Config config_{.job_name = "job", .servers = 1, .groups = 0, .workers_per_group = 1};
  SchedulerActor actor_{config_, std::nullopt};
  LoopbackHub hub_;
  std::unique_ptr<Transport> transport_ = hub_.MakeTransport("");
  EventLoop loop_{{.job = JobFingerprint("job"), .self = {kSchedulerNode, 0}}, actor_, *transport_};
  NullLog log_;
  std::unique_ptr<GrpcService> service_;
  std::atomic<bool> stop_{false};
  std::atomic<int> registered_{0};
  std::vector<std::thread> nodes_;
  std::vector<int> files_;
  Mutex mutex_;
  std::vector<absl::Duration> took_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> failures_ ABSL_GUARDED_BY(mutex_);
};

// As a faulty program would, through gRPC's own library: 40,000 calls at once.
TEST_F(OverloadTest, AClientThatAsksTooMuch) {
  struct Asked {
    grpc::ClientContext context;
    proto::StatusRequest request;
    proto::StatusReply reply;
  };
  std::atomic<int> left{40000};
  std::vector<std::unique_ptr<proto::Scheduler::Stub>> stubs;
  for (int i = 0; i < 16; ++i) {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stubs.push_back(proto::Scheduler::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", service_->port()), grpc::InsecureChannelCredentials(), own)));
  }
  ASSERT_NO_FATAL_FAILURE(AwaitNodes());
  std::vector<std::unique_ptr<Asked>> calls;
  for (int i = 0; i < 40000; ++i) {
    calls.push_back(std::make_unique<Asked>());
    Asked& call = *calls.back();
    stubs[static_cast<size_t>(i) % stubs.size()]->async()->GetStatus(
        &call.context, &call.request, &call.reply, [&](const grpc::Status&) { left.fetch_sub(1); });
  }
  while (left.load() > 0) poll(nullptr, 0, 5);
  // The calls themselves, on the calling side, are in this process, too.
  Report(0, 0);
}

TEST_F(OverloadTest, WatchesThatNeverEnd) {
  // Waits for a view that never comes: known_epoch = 2^60.
  Flood(Calls("WatchView", absl::StrCat("\x10", Number(uint64_t{1} << 60))));
}

TEST_F(OverloadTest, AnswersThatNobodyReads) { Flood(Calls("GetStatus", "")); }

TEST_F(OverloadTest, HeartbeatsOfNobody) { Flood(Calls("Heartbeat", "")); }

TEST_F(OverloadTest, RequestsThatAreNeverFinished) { Flood(Unfinished(16 << 20)); }

TEST_F(OverloadTest, BytesThatAreNoHttp) {
  Random random(3);
  std::string junk;
  for (int i = 0; i < 1 << 20; ++i) junk.push_back(static_cast<char>(random.Next()));
  Flood(junk);
}

}  // namespace
}  // namespace covey::scheduler
