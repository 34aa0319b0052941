// SPDX-License-Identifier: Apache-2.0

// The cost of the transport compared with plain libzmq: a ROUTER and a DEALER on two threads, tcp
// and ipc, measured in one run. One way: a thread sends messages with one frame and waits at the
// end for the receiver to have them all; bytes per second count the frame. Round trip: 64 bytes
// there and back. Sealed: between processes that have keys. The CPU time is that of both ends, with
// libzmq's threads; it says more than bytes per second where other programs run.

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>
#include <zmq.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/buffer.h"
#include "common/base/check.h"
#include "common/net/testing/secured_nodes.h"
#include "common/net/zmq_transport.h"

namespace covey {
namespace {

constexpr Address kServer = {NodeId(2), 0};
constexpr Address kClient = {NodeId(3), 0};
constexpr int kBatch = 64;
constexpr size_t kRoundTripBytes = 64;

enum Carrier { kTcp, kIpc };

std::string ListenAt(int64_t carrier) {
  return carrier == kTcp ? "tcp://127.0.0.1:0"
                         : absl::StrCat("ipc:///tmp/covey-bench-", getpid(), ".socket");
}

// The keys of both ends, or none.
struct Keys {
  std::shared_ptr<DataKeys> server;
  std::shared_ptr<DataKeys> client;
};

Keys KeysIf(bool sealed) {
  if (!sealed) return {};
  SecuredNodes nodes;
  Keys keys = {.server = nodes.Register(kServer.node), .client = nodes.Register(kClient.node)};
  nodes.Publish();
  return keys;
}

Message PushOf(const Buffer& frame, uint64_t sequence) {
  Message message;
  message.set_to(kServer);
  message.envelope.mutable_header()->set_job(1);
  message.envelope.mutable_header()->set_node(kClient.node.value());
  message.envelope.mutable_header()->set_request_id(sequence);
  proto::PushRequest& push = *message.envelope.mutable_push_request();
  push.mutable_id()->set_table(1);
  push.mutable_id()->set_sequence(sequence);
  push.set_samples(1);
  message.frames.push_back(frame);
  return message;
}

// Runs a transport on a thread: answers every `per_answer`-th message with an empty reply.
class Server {
 public:
  Server(int64_t carrier, int per_answer, std::shared_ptr<DataKeys> keys)
      : transport_(*MakeZmqTransport({.listen = ListenAt(carrier), .keys = std::move(keys)})),
        thread_([this, per_answer] {
          int received = 0;
          while (!stopping_) {
            const bool more = transport_->Receive(kBatch, [&](Message message) {
              benchmark::DoNotOptimize(message.frames[0].data());
              if (++received % per_answer != 0) return;
              Message reply = MakeReply(message);
              reply.envelope.mutable_header()->set_node(kServer.node.value());
              if (per_answer == 1) reply.frames = message.frames;
              transport_->Send(std::move(reply));
            });
            transport_->Wait(more ? absl::ZeroDuration() : absl::InfiniteDuration());
          }
        }) {}
  ~Server() {
    stopping_ = true;
    transport_->WakeUp();
    thread_.join();
  }
  std::string endpoint() const { return transport_->endpoint(); }

 private:
  std::unique_ptr<Transport> transport_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

void AwaitReply(Transport& transport) {
  bool answered = false;
  while (!answered) {
    if (!transport.Receive(1, [&](Message) { answered = true; })) {
      if (!answered) transport.Wait(absl::InfiniteDuration());
    }
  }
}

void BM_TransportOneWay(benchmark::State& state) {
  const size_t bytes = static_cast<size_t>(state.range(0));
  Keys keys = KeysIf(state.range(2) != 0);
  Server server(state.range(1), kBatch, std::move(keys.server));
  const auto client = *MakeZmqTransport({.keys = std::move(keys.client)});
  client->SetRoute(kServer, server.endpoint());
  const Buffer frame = Buffer::CopyOf(std::vector<uint8_t>(bytes, 1));
  uint64_t sequence = 0;
  int outstanding = 0;
  for (auto _ : state) {
    for (int i = 0; i < kBatch; ++i) client->Send(PushOf(frame, ++sequence));
    if (++outstanding == 2) {
      AwaitReply(*client);
      --outstanding;
    }
  }
  for (; outstanding > 0; --outstanding) AwaitReply(*client);
  state.SetBytesProcessed(state.iterations() * kBatch * static_cast<int64_t>(bytes));
  state.SetItemsProcessed(state.iterations() * kBatch);
}

void BM_TransportRoundTrip(benchmark::State& state) {
  Keys keys = KeysIf(state.range(1) != 0);
  Server server(state.range(0), 1, std::move(keys.server));
  const auto client = *MakeZmqTransport({.keys = std::move(keys.client)});
  client->SetRoute(kServer, server.endpoint());
  const Buffer frame = Buffer::CopyOf(std::vector<uint8_t>(kRoundTripBytes, 1));
  uint64_t sequence = 0;
  for (auto _ : state) {
    client->Send(PushOf(frame, ++sequence));
    AwaitReply(*client);
  }
}

// The same pair of sockets without message, envelope, checks and polling.
class RawServer {
 public:
  RawServer(int64_t carrier, int per_answer) : context_(zmq_ctx_new()) {
    void* const router = zmq_socket(context_, ZMQ_ROUTER);
    COVEY_CHECK(zmq_bind(router, ListenAt(carrier).c_str()) == 0);
    char name[256];
    size_t size = sizeof(name);
    zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, name, &size);
    endpoint_ = name;
    thread_ = std::thread([router, per_answer] {
      int received = 0;
      zmq_msg_t id;
      zmq_msg_t part;
      zmq_msg_init(&id);
      zmq_msg_init(&part);
      while (zmq_msg_recv(&id, router, 0) >= 0) {
        if (zmq_msg_recv(&part, router, 0) < 0) break;
        if (++received % per_answer != 0) continue;
        zmq_msg_send(&id, router, ZMQ_SNDMORE);
        if (per_answer == 1) {
          zmq_msg_send(&part, router, 0);
        } else {
          zmq_send(router, "", 0, 0);
        }
      }
      zmq_close(router);
    });
  }
  ~RawServer() {
    zmq_ctx_shutdown(context_);
    thread_.join();
    zmq_ctx_term(context_);
  }
  const std::string& endpoint() const { return endpoint_; }

 private:
  void* const context_;
  std::string endpoint_;
  std::thread thread_;
};

class RawClient {
 public:
  explicit RawClient(const std::string& endpoint)
      : context_(zmq_ctx_new()), dealer_(zmq_socket(context_, ZMQ_DEALER)) {
    COVEY_CHECK(zmq_connect(dealer_, endpoint.c_str()) == 0);
  }
  ~RawClient() {
    zmq_close(dealer_);
    zmq_ctx_term(context_);
  }
  void Send(const std::vector<uint8_t>& bytes) {
    zmq_msg_t part;
    zmq_msg_init_data(
        &part, const_cast<uint8_t*>(bytes.data()), bytes.size(), [](void*, void*) {}, nullptr);
    zmq_msg_send(&part, dealer_, 0);
  }
  void AwaitReply() {
    char reply[kRoundTripBytes];
    zmq_recv(dealer_, reply, sizeof(reply), 0);
  }

 private:
  void* const context_;
  void* const dealer_;
};

void BM_RawOneWay(benchmark::State& state) {
  const std::vector<uint8_t> bytes(static_cast<size_t>(state.range(0)), 1);
  RawServer server(state.range(1), kBatch);
  RawClient client(server.endpoint());
  int outstanding = 0;
  for (auto _ : state) {
    for (int i = 0; i < kBatch; ++i) client.Send(bytes);
    if (++outstanding == 2) {
      client.AwaitReply();
      --outstanding;
    }
  }
  for (; outstanding > 0; --outstanding) client.AwaitReply();
  state.SetBytesProcessed(state.iterations() * kBatch * state.range(0));
  state.SetItemsProcessed(state.iterations() * kBatch);
}

void BM_RawRoundTrip(benchmark::State& state) {
  const std::vector<uint8_t> bytes(kRoundTripBytes, 1);
  RawServer server(state.range(0), 1);
  RawClient client(server.endpoint());
  for (auto _ : state) {
    client.Send(bytes);
    client.AwaitReply();
  }
}

constexpr int64_t kSizes[] = {4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20};

void RawSizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"bytes", "ipc"})->UseRealTime()->MeasureProcessCPUTime();
  for (const int64_t bytes : kSizes) {
    for (const int64_t carrier : {kTcp, kIpc}) benchmark->Args({bytes, carrier});
  }
}
void TransportSizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"bytes", "ipc", "sealed"})->UseRealTime()->MeasureProcessCPUTime();
  for (const int64_t bytes : kSizes) {
    for (const int64_t carrier : {kTcp, kIpc}) {
      for (const int64_t sealed : {0, 1}) benchmark->Args({bytes, carrier, sealed});
    }
  }
}
BENCHMARK(BM_RawOneWay)->Apply(RawSizes);
BENCHMARK(BM_TransportOneWay)->Apply(TransportSizes);
BENCHMARK(BM_RawRoundTrip)
    ->ArgName("ipc")
    ->Arg(kTcp)
    ->Arg(kIpc)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK(BM_TransportRoundTrip)
    ->ArgNames({"ipc", "sealed"})
    ->ArgsProduct({{kTcp, kIpc}, {0, 1}})
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace covey

// Sets memory as common/runtime/process_main.cc does, which this folder may not depend on.
int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
