// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/security/credentials.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "proto/scheduler_service.grpc.pb.h"

namespace covey {

// The gRPC stubs of one or several schedulers, and which of them requests go to: the current one.
// Each stub connects by itself at its first call, and again after losses. Thread-safe.
class SchedulerStubs {
 public:
  using AsyncStub = proto::Scheduler::StubInterface::async_interface;

  // `addresses` as in SplitSchedulers; `credentials` for the connections. `moved` is called
  // whenever another scheduler has become current, on the thread that called MoveOn.
  SchedulerStubs(const std::string& addresses,
                 const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                 std::function<void()> moved);

  // All addresses, as they were given; for errors.
  const std::string& addresses() const { return addresses_; }
  size_t size() const { return schedulers_.size(); }
  const std::string& address(size_t at) const { return schedulers_[at].address; }
  AsyncStub& stub(size_t at) const { return *schedulers_[at].stub->async(); }
  // That of the stub.
  const std::shared_ptr<grpc::Channel>& channel(size_t at) const { return schedulers_[at].channel; }

  size_t current();
  // The scheduler with number `from` does not reply, or does not lead: the next one becomes
  // current. No effect when another one is current already, or when there is no other.
  void MoveOn(size_t from);

 private:
  struct Scheduler {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<proto::Scheduler::Stub> stub;
  };
  static std::vector<Scheduler> MakeSchedulers(
      const std::string& addresses, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  const std::string addresses_;
  const std::function<void()> moved_;
  const std::vector<Scheduler> schedulers_;

  Mutex mutex_;
  // An index of schedulers_.
  size_t current_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace covey
