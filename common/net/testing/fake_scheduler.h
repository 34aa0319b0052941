// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/net/scheduler_failover.h"
#include "proto/scheduler_service.grpc.pb.h"

namespace covey {

// A scheduler on a port of its own, for tests of the gRPC channel. Methods reply at once unless a
// comment says otherwise. Thread-safe.
class FakeScheduler : public proto::Scheduler::Service {
 public:
  explicit FakeScheduler(int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeScheduler() override { Stop(); }
  void Stop() {
    Publish(0);
    server_->Shutdown(gpr_time_0(GPR_CLOCK_MONOTONIC));
    server_->Wait();
  }
  int port() const { return port_; }
  // From now on this scheduler leads, or does not.
  void Lead(bool leads) {
    MutexLock lock(mutex_);
    leads_ = leads;
  }
  grpc::Status Heartbeat(grpc::ServerContext* context, const proto::HeartbeatRequest*,
                         proto::HeartbeatReply* reply) override {
    MutexLock lock(mutex_);
    if (!leads_) {
      context->AddTrailingMetadata(kStandbyMetadata, "1");
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "stands by");
    }
    reply->set_epoch(epoch_);
    return grpc::Status::OK;
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
  // Blocks until its caller gives up.
  grpc::Status Leave(grpc::ServerContext* context, const proto::LeaveRequest*,
                     proto::LeaveReply*) override {
    MutexLock lock(mutex_);
    while (!context->IsCancelled()) changed_.WaitFor(mutex_, absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  }
  // Replies 50 ms after the deadline of the barrier.
  grpc::Status Barrier(grpc::ServerContext*, const proto::BarrierRequest* request,
                       proto::BarrierReply*) override {
    const absl::Time end =
        MonotonicNow() + absl::Milliseconds(request->deadline_ms()) + absl::Milliseconds(50);
    MutexLock lock(mutex_);
    while (MonotonicNow() < end) changed_.WaitFor(mutex_, end - MonotonicNow());
    return grpc::Status::OK;
  }
  // Sends every published epoch that is new to the caller, as views or as changes; epoch 0 ends all
  // streams.
  grpc::Status WatchView(grpc::ServerContext* context, const proto::WatchViewRequest* request,
                         grpc::ServerWriter<proto::WatchViewReply>* writer) override {
    uint64_t known = request->known_epoch();
    MutexLock lock(mutex_);
    ++streams_;
    while (!context->IsCancelled() && epoch_ != 0) {
      if (epoch_ > known) {
        proto::WatchViewReply reply;
        if (sends_changes_ && request->takes_changes()) {
          reply.mutable_change()->set_since(known);
          reply.mutable_change()->mutable_changed()->set_epoch(epoch_);
        } else {
          reply.mutable_view()->set_epoch(epoch_);
        }
        known = epoch_;
        writer->Write(reply);
        sent_ = known;
        changed_.NotifyAll();
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
  // From now on callers that take changes get them; at first they get views, as from a scheduler of
  // an earlier version.
  void SendChanges() {
    MutexLock lock(mutex_);
    sends_changes_ = true;
  }
  // Waits until a stream has sent this epoch or a later one.
  void AwaitSent(uint64_t epoch) {
    MutexLock lock(mutex_);
    while (sent_ < epoch) changed_.WaitFor(mutex_, absl::InfiniteDuration());
  }
  // Number of streams that were ever opened.
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
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
  bool leads_ ABSL_GUARDED_BY(mutex_) = true;
  bool sends_changes_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace covey
