// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc/scheduler_stubs.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "common/cluster/limits.h"
#include "common/net/scheduler_failover.h"

namespace covey {
namespace {

// A scheduler that comes back is reached within a second.
constexpr int kReconnectFirstMilliseconds = 50;
constexpr int kReconnectLongestMilliseconds = 300;
constexpr int kConnectMilliseconds = 1000;
// While calls are open, a frozen or unreachable peer is noticed after the sum of these.
constexpr int kPingEveryMilliseconds = 1000;
constexpr int kPingTimeoutMilliseconds = 1500;

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& scheduler, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kControlEnvelopeBytesMax);
  arguments.SetMaxSendMessageSize(kControlEnvelopeBytesMax);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectFirstMilliseconds);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMilliseconds);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectLongestMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // gRPC would ping after each message that it receives, to find out how much is on its way: more
  // packets than all of the messages.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // A scheduler is never behind a web proxy, and a new channel starts without the back-off of an
  // older one.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(scheduler, credentials, arguments);
}

}  // namespace

std::vector<SchedulerStubs::Scheduler> SchedulerStubs::MakeSchedulers(
    const std::string& addresses, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  std::vector<Scheduler> schedulers;
  for (const std::string& address : SplitSchedulers(addresses)) {
    const auto channel = MakeChannel(address, credentials);
    schedulers.push_back(
        {.address = address, .channel = channel, .stub = proto::Scheduler::NewStub(channel)});
  }
  return schedulers;
}

SchedulerStubs::SchedulerStubs(const std::string& addresses,
                               const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                               std::function<void()> moved)
    : addresses_(addresses),
      moved_(std::move(moved)),
      schedulers_(MakeSchedulers(addresses, credentials)) {}

size_t SchedulerStubs::current() {
  MutexLock lock(mutex_);
  return current_;
}

void SchedulerStubs::MoveOn(size_t from) {
  {
    MutexLock lock(mutex_);
    if (schedulers_.size() == 1 || current_ != from) return;
    current_ = (from + 1) % schedulers_.size();
  }
  moved_();
}

}  // namespace covey
