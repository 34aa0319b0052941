// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/config.h"
#include "client/engine/client_actor.h"
#include "client/engine/table_initializations.h"
#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/metrics/metrics_server.h"
#include "common/net/transport.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/loop_runner.h"
#include "common/security/seal/data_keys.h"
#include "common/trace/process_trace.h"

namespace covey {

class TlsCredentials;

namespace client {

// A process's connection to the cluster: one loop with its transport, the channel to the scheduler,
// and the bridge between the user's threads and the loop. ParameterClient and workers are built on
// it.
//
// Thread-safety: thread-safe after Open. Owns actor, loop, transport and channel. The destructor
// flushes the pushes that servers have received (up to two seconds), leaves the cluster (up to two
// seconds), then stops the loop.
class Connection {
 public:
  // The actor that runs on the loop, and the client part inside it.
  struct LoopActor {
    std::unique_ptr<Actor> actor;
    ClientActor* client = nullptr;
  };
  using MakeActor = std::function<LoopActor(const ClientActor::Options& options)>;

  struct Options {
    proto::Role role = proto::CLIENT;
    // Where the loop listens ("tcp://127.0.0.1:0", "ipc://…"); empty = nowhere, as a plain client.
    std::string listen;
    // Whether peers on this host that offer it are reached by shared memory.
    bool shared_memory = true;
    // See EventLoop::Options.
    absl::Duration own_returns_after = LoopRunner::kOwnReturnsAfter;
    // Builds the actor once the endpoints are known; empty = a ClientActor.
    MakeActor make_actor;
    // Asked every kAskEvery by the thread that waits in Open; true = Open gives up. Empty = nobody.
    std::function<bool()> gives_up;
    // What the process tells an operator's tools, also before it is registered; an empty address =
    // nothing. Messages are added to it.
    MetricsServer::Options metrics;
  };

  static constexpr absl::Duration kAskEvery = absl::Milliseconds(100);

  // Blocks until the scheduler has admitted this process, or until config.join_deadline. Errors as
  // Member::failure, and of MetricsServer::Start. CANCELLED: it gives up.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ClientConfig& config,
                                                          const Options& options);
  ~Connection();

  // Runs `work` on the loop; false when the loop has stopped or its queue is full.
  bool Post(std::function<void(absl::Time, Outbox&)> work) { return loop_->Post(std::move(work)); }
  // See EventLoop::PostBeforeWaiting.
  bool PostBeforeWaiting(std::function<void(absl::Time, Outbox&)> work) {
    return loop_->PostBeforeWaiting(std::move(work));
  }
  // By which threads that wait for results run the loop.
  const std::shared_ptr<LoopRunner>& runner() const { return loop_->runner(); }
  // Runs `work` on the loop and waits until it has run. UNAVAILABLE: the loop has stopped or its
  // queue is full.
  absl::Status Run(std::function<void(absl::Time, Outbox&)> work);

  // Sends one request to the scheduler and returns its reply. Blocks, at most for `timeout`.
  absl::StatusOr<proto::Envelope> Request(proto::Envelope request, absl::Duration timeout);
  // See ParameterClient::Flush.
  absl::Status Flush(absl::Duration timeout);
  // See ParameterClient::InitializeTables.
  absl::StatusOr<bool> InitializeTables(std::vector<NamedValues> tables, absl::Duration timeout);
  // See ParameterClient::Barrier.
  absl::Status Barrier(absl::string_view name, uint32_t participants, absl::Duration timeout);

  // Notes what the program's thread does, while a trace is under way.
  ThreadTrace& program_trace() { return program_trace_; }

  // On the loop only.
  ClientActor& client() { return *client_; }

  NodeId node() const { return node_; }
  uint32_t rank() const { return rank_; }

 private:
  Connection() = default;
  absl::Status AwaitMembership(absl::Duration timeout, const std::function<bool()>& gives_up);
  absl::Status StartMetrics(MetricsServer::Options options);
  absl::Status FlushPushes(RequestEngine::FlushScope scope, absl::Duration timeout);

  ProcessTrace trace_{RandomFromSystem()};
  ThreadTrace& program_trace_ = trace_.AddThread("program");
  NodeId node_;
  uint32_t rank_ = 0;
  std::shared_ptr<const TlsCredentials> tls_;  // null = none
  std::shared_ptr<DataKeys> keys_;             // null = messages are not sealed
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Actor> actor_;
  ClientActor* client_ = nullptr;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<MessagePort> scheduler_;
  std::unique_ptr<MetricsServer> metrics_;  // null = none; destroyed when the loop has stopped

  Mutex mutex_;
  CondVar membership_changed_;
  Member::State membership_ ABSL_GUARDED_BY(mutex_) = Member::State::kRegistering;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace client
}  // namespace covey
