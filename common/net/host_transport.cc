// SPDX-License-Identifier: Apache-2.0
#include "common/net/host_transport.h"

#include <deque>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/net/shm/shm_peers.h"

namespace covey {
namespace {

constexpr absl::Duration kShmRetry = absl::Seconds(1);
// After a refusal, which a new process at the endpoint may not repeat.
constexpr absl::Duration kShmRetryAfterRefusal = absl::Minutes(1);

class HostTransport : public Transport {
 public:
  HostTransport(const HostOptions& options, std::unique_ptr<ZmqTransport> zmq)
      : options_(options),
        zmq_(std::move(zmq)),
        shm_({.limits = options.zmq.limits,
              .queue_messages = options.zmq.queue_messages,
              .reply_bytes = options.zmq.reply_bytes,
              .wake_up = zmq_->wake_up_descriptor(),
              .gone = [this](uint64_t connection, const absl::Status& why,
                             std::deque<Message> waiting) {
                PeerIsGone(connection, why, std::move(waiting));
              }}) {
    zmq_->Watch(shm_.descriptor(), [this] { shm_.HandleSockets(); });
    if (!MayUseShm(endpoint())) return;
    if (const absl::Status status = shm_.Listen(endpoint()); !status.ok()) {
      LogNoShm(endpoint(), status);
    }
  }

  std::string endpoint() const final { return zmq_->endpoint(); }

  void SetRoute(const Address& peer, const std::string& endpoint) override {
    const auto found = routes_.find(peer);
    if (found != routes_.end() && found->second.endpoint == endpoint) return;
    DropRoute(peer);
    Route& route = routes_[peer];
    route.endpoint = endpoint;
    ConnectByShm(route);
    if (route.shm == 0) zmq_->SetRoute(peer, endpoint);
  }

  void DropRoute(const Address& peer) override {
    const auto found = routes_.find(peer);
    if (found == routes_.end()) return;
    if (found->second.shm != 0) shm_.Close(found->second.shm);
    routes_.erase(found);
    zmq_->DropRoute(peer);
  }

  void Send(Message message) override {
    const uint64_t connection = ShmConnectionFor(message);
    if (connection == 0) return zmq_->Send(std::move(message));
    shm_.Send(connection, std::move(message));
  }

  bool Receive(int limit, absl::FunctionRef<void(Message)> sink) override {
    int left = limit;
    const auto counted = [&](Message message) {
      --left;
      sink(std::move(message));
    };
    // Neither of the two can keep the other one waiting.
    const bool shm_first = std::exchange(shm_first_, !shm_first_);
    bool more = shm_first ? shm_.Receive(left, counted) : zmq_->Receive(left, counted);
    if (left == 0) return true;
    more = (shm_first ? zmq_->Receive(left, counted) : shm_.Receive(left, counted)) || more;
    return more;
  }

  void Wait(absl::Duration timeout) override {
    if (timeout <= absl::ZeroDuration()) return zmq_->Wait(timeout);
    zmq_->Wait(shm_.FallAsleep() ? timeout : absl::ZeroDuration());
    shm_.Awake();
  }
  void WakeUp() override { zmq_->WakeUp(); }

  const TransportCounters& counters() const override {
    const TransportCounters& zmq = zmq_->counters();
    const TransportCounters& shm = shm_.counters();
    counters_ = {.received = zmq.received + shm.received,
                 .sent = zmq.sent + shm.sent,
                 .refused = zmq.refused,
                 .dropped = zmq.dropped + shm.dropped};
    counters_.refused.Add(shm.refused);
    return counters_;
  }

 private:
  struct Route {
    std::string endpoint;
    uint64_t shm = 0;  // the connection; 0 = by ZeroMQ
    absl::Time next_try = absl::InfinitePast();
    bool reason_logged = false;
  };

  bool MayUseShm(const std::string& endpoint) const {
    return options_.shared_memory && absl::StartsWith(endpoint, "tcp://");
  }

  // 0: the message goes by ZeroMQ.
  uint64_t ShmConnectionFor(const Message& message) {
    if (message.connection != 0) {
      return ShmPeers::IsConnection(message.connection) ? message.connection : 0;
    }
    const auto found = routes_.find(message.to());
    if (found == routes_.end()) return 0;
    if (found->second.shm == 0) ConnectByShm(found->second);
    return found->second.shm;
  }

  void ConnectByShm(Route& route) {
    if (!MayUseShm(route.endpoint)) return;
    const absl::Time now = MonotonicNow();
    if (now < route.next_try) return;
    route.next_try = now + kShmRetry;
    const absl::StatusOr<uint64_t> connection = shm_.Connect(route.endpoint);
    if (connection.ok()) {
      route.shm = *connection;
    } else if (!absl::IsNotFound(connection.status())) {
      Refused(route, connection.status());
    }
  }

  void PeerIsGone(uint64_t connection, const absl::Status& why, std::deque<Message> waiting) {
    for (auto& [peer, route] : routes_) {
      if (route.shm != connection) continue;
      route.shm = 0;
      route.next_try = MonotonicNow() + kShmRetry;
      if (!absl::IsUnavailable(why)) Refused(route, why);
      zmq_->SetRoute(peer, route.endpoint);
      break;
    }
    for (Message& message : waiting) {
      message.connection = 0;
      zmq_->Send(std::move(message));
    }
  }

  static void Refused(Route& route, const absl::Status& why) {
    route.next_try = MonotonicNow() + kShmRetryAfterRefusal;
    if (!std::exchange(route.reason_logged, true)) LogNoShm(route.endpoint, why);
  }
  static void LogNoShm(const std::string& endpoint, const absl::Status& why) {
    LogWarning("no_shared_memory",
               {{"endpoint", endpoint}, {"reason", why.message()}, {"instead", "ZeroMQ over TCP"}});
  }

  const HostOptions options_;
  const std::unique_ptr<ZmqTransport> zmq_;
  ShmPeers shm_;
  absl::btree_map<Address, Route> routes_;
  bool shm_first_ = true;  // in the next call of Receive
  mutable TransportCounters counters_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeHostTransport(const HostOptions& options) {
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<ZmqTransport> zmq, MakeZmqTransport(options.zmq));
  return std::make_unique<HostTransport>(options, std::move(zmq));
}

}  // namespace covey
