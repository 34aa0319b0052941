// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq_transport.h"

#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/frame_bytes.h"
#include "common/net/seal/message_sealer.h"
#include "common/net/seal/refusal.h"
#include "common/net/seal/refusal_log.h"
#include "common/net/seal/sealed_inbox.h"
#include "common/net/zmq/connection_monitor.h"
#include "common/net/zmq/name_lookup.h"
#include "common/net/zmq/named_endpoints.h"
#include "common/net/zmq/part_reader.h"
#include "common/net/zmq/routing_id.h"
#include "common/net/zmq/socket_poller.h"
#include "common/net/zmq/zmq_message.h"
#include "common/net/zmq/zmq_socket.h"

namespace covey {
namespace {

constexpr int kSocketsMax = 16384;
// Connections whose unsent bytes are known before those without any are forgotten.
constexpr size_t kUnsentKept = 64;
// How soon a message that is held is tried again after its sender's key has become known.
constexpr absl::Duration kHeldTryEvery = absl::Milliseconds(5);

class SocketTransport : public ZmqTransport {
 public:
  explicit SocketTransport(const ZmqOptions& options)
      : options_(options),
        socket_limits_({.queue_messages = options.queue_messages,
                        .arrived_messages = options.arrived_messages,
                        .part_bytes = std::max(options.limits.frame_bytes,
                                               kWirePreludeBytes + options.limits.envelope_bytes)}),
        context_(zmq_ctx_new()) {
    COVEY_CHECK(context_ != nullptr);
    if (options.keys != nullptr) {
      COVEY_CHECK(options.keys->ClaimLoop(options.loop));
      sealer_.emplace(options.keys, options.loop);
      inbox_.emplace(
          SealedInbox::Options{
              .keys = options.keys, .loop = options.loop, .limits = options.limits},
          SealedInbox::Counters{.refused = counters_.refused, .dropped = counters_.dropped},
          refusals_);
    }
    zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, kSocketsMax);
  }

  ~SocketTransport() override {
    monitor_.reset();
    routes_.clear();
    router_.reset();
    zmq_ctx_term(context_);
  }

  absl::Status Listen() {
    router_ = std::make_unique<ZmqSocket>(context_, ZmqSocket::Kind::kRouter, socket_limits_);
    monitor_ = std::make_unique<ConnectionMonitor>(context_, *router_);
    if (!router_->Bind(options_.listen)) {
      const int error = zmq_errno();
      if (error == EADDRINUSE) {
        return absl::UnavailableError(absl::StrCat("cannot listen on ", options_.listen,
                                                   ": address already in use; choose another port "
                                                   "or 0"));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("cannot listen on ", options_.listen, ": ", zmq_strerror(error),
                       "; give tcp://ADDRESS:PORT with an address of this machine, or ipc://PATH"));
    }
    char name[kEndpointBytesMax] = {};
    size_t size = sizeof(name);
    COVEY_CHECK(zmq_getsockopt(router_->handle(), ZMQ_LAST_ENDPOINT, name, &size) == 0);
    endpoint_ = name;
    poller_.Add(*router_);
    poller_.Add(monitor_->socket());
    return absl::OkStatus();
  }

  std::string endpoint() const override { return endpoint_; }

  void SetRoute(const Address& peer, const std::string& endpoint) override {
    const auto found = routes_.find(peer);
    if (found != routes_.end() && found->second.endpoint == endpoint) return;
    DropRoute(peer);
    Route& route = routes_[peer];
    route.endpoint = endpoint;
    if (NameLookup::IsNeeded(endpoint)) {
      names_.Add(peer, endpoint);
    } else {
      Connect(peer, endpoint, route);
    }
  }

  void DropRoute(const Address& peer) override {
    const auto found = routes_.find(peer);
    if (found == routes_.end()) return;
    names_.Remove(peer);
    Disconnect(found->second);
    routes_.erase(found);
  }

  void Send(Message message) override {
    const auto head_bytes = PrepareHead(options_.limits, message);
    if (!head_bytes.ok()) {
      LogWarning("message_too_large",
                 {{"body", BodyName(message.envelope)}, {"reason", head_bytes.status().message()}});
      ++counters_.dropped;
      return;
    }
    ZmqSocket* socket = SocketFor(message);
    if (socket != nullptr) poller_.MarkReady(*socket);
    const absl::Status sent = socket == nullptr ? absl::Status(absl::StatusCode::kUnavailable, "")
                                                : Transmit(*socket, *head_bytes, message);
    if (sent.ok()) {
      ++counters_.sent;
      return;
    }
    ++counters_.dropped;
    if (!absl::IsUnavailable(sent)) refusals_.Add(MonotonicNow(), sent.message());
  }

  bool Receive(int limit, absl::FunctionRef<void(Message)> sink) override {
    for (int received = 0; received < limit; ++received) {
      if (std::optional<Message> held = NextHeld()) {
        ++counters_.received;
        sink(*std::move(held));
        continue;
      }
      ZmqSocket* socket = poller_.TakeReady();
      if (socket == nullptr) break;
      PartReader parts(*socket);
      if (!parts.Next()) continue;
      // Every socket gets its turn. `socket` must not be used once `sink` runs, because `sink` may
      // drop routes.
      poller_.MarkReady(*socket);
      if (socket->kind() == ZmqSocket::Kind::kMonitor) {
        counters_.refused.Add(Refusal::kMalformed, monitor_->Read(parts));
        continue;
      }
      std::optional<Message> message = Read(socket->kind(), parts);
      if (!message) continue;
      ++counters_.received;
      sink(*std::move(message));
    }
    return poller_.HasReady();
  }

  void Wait(absl::Duration timeout) override {
    if (names_.any()) timeout = std::min(timeout, FollowNames(MonotonicNow()));
    poller_.Wait(inbox_ && inbox_->holds_any() ? std::min(timeout, kHeldTryEvery) : timeout);
  }
  void WakeUp() override { poller_.WakeUp(); }
  void Watch(int descriptor, std::function<void()> ready) override {
    poller_.Watch(descriptor, std::move(ready));
  }
  int wake_up_descriptor() const override { return poller_.wake_up_descriptor(); }

  const TransportCounters& counters() const override { return counters_; }

 private:
  struct Route {
    std::string endpoint;
    std::unique_ptr<ZmqSocket> dealer;  // null: its name has no address yet, or it was refused
  };

  // `endpoint`: with an address.
  void Connect(const Address& peer, const std::string& endpoint, Route& route) {
    Disconnect(route);
    auto dealer = std::make_unique<ZmqSocket>(context_, ZmqSocket::Kind::kDealer, socket_limits_);
    if (!dealer->Connect(endpoint)) {
      LogWarning("route_refused", {{"peer", peer.node.value()},
                                   {"endpoint", endpoint},
                                   {"reason", zmq_strerror(zmq_errno())}});
      return;
    }
    poller_.Add(*dealer);
    route.dealer = std::move(dealer);
  }
  void Disconnect(Route& route) {
    if (route.dealer == nullptr) return;
    poller_.Remove(*route.dealer);
    route.dealer.reset();
  }
  // Connects the peers whose names have got an address. Returns when to call it again.
  absl::Duration FollowNames(absl::Time now) {
    for (const auto& [peer, endpoint] : names_.TakeChanges(now)) {
      Connect(peer, endpoint, routes_.at(peer));
    }
    return std::max(absl::ZeroDuration(), names_.NextChange(now) - now);
  }

  absl::Status Transmit(ZmqSocket& socket, size_t head_bytes, Message& message) {
    std::shared_ptr<UnsentBytes> unsent;
    if (socket.kind() == ZmqSocket::Kind::kRouter && !message.frames.empty()) {
      unsent = UnsentTo(message.connection);
      if (*unsent + FrameBytes(message) > options_.reply_bytes) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "node ", message.to().node.value(), " does not read its replies, of which ",
            unsent->load(), " bytes wait: a reply of ", BodyName(message.envelope), " is dropped"));
      }
    }
    return sealer_ ? SendSealedMessage(socket, head_bytes, message, *sealer_, unsent)
                   : SendMessage(socket, head_bytes, message, unsent);
  }

  const std::shared_ptr<UnsentBytes>& UnsentTo(uint64_t connection) {
    if (unsent_.size() >= unsent_swept_at_) {
      absl::erase_if(unsent_, [](const auto& entry) { return *entry.second == 0; });
      unsent_swept_at_ = 2 * unsent_.size() + kUnsentKept;
    }
    std::shared_ptr<UnsentBytes>& unsent = unsent_[connection];
    if (unsent == nullptr) unsent = std::make_shared<UnsentBytes>(0);
    return unsent;
  }

  // Nothing when the message is refused or held.
  std::optional<Message> Read(ZmqSocket::Kind kind, PartReader& parts) {
    Message message;
    SealedMessage sealed;
    const absl::Status read = inbox_ ? ReadSealedMessage(kind, options_.limits, parts, sealed)
                                     : ReadMessage(kind, options_.limits, parts, message);
    if (!read.ok()) {
      parts.SkipRest();
      counters_.refused.Add(RefusalOf(read));
      refusals_.Add(MonotonicNow(), read.message());
      return std::nullopt;
    }
    if (inbox_) return inbox_->Receive(MonotonicNow(), std::move(sealed));
    return message;
  }

  std::optional<Message> NextHeld() {
    if (!inbox_ || !inbox_->holds_any()) return std::nullopt;
    return inbox_->NextHeld(MonotonicNow());
  }

  // Null when no socket can take it.
  ZmqSocket* SocketFor(const Message& message) {
    const bool is_routed = message.connection == 0 || message.connection == kRoutedConnection;
    if (!is_routed) return router_.get();
    const auto found = routes_.find(message.to());
    return found == routes_.end() ? nullptr : found->second.dealer.get();
  }

  const ZmqOptions options_;
  const ZmqSocket::Limits socket_limits_;
  void* const context_;
  std::string endpoint_;
  std::unique_ptr<ZmqSocket> router_;
  std::unique_ptr<ConnectionMonitor> monitor_;
  absl::btree_map<Address, Route> routes_;
  NamedEndpoints names_{{}};  // of routes
  // Of connections to the router that replies with frames were sent to.
  absl::btree_map<uint64_t, std::shared_ptr<UnsentBytes>> unsent_;
  size_t unsent_swept_at_ = kUnsentKept;
  SocketPoller poller_;
  TransportCounters counters_;
  RefusalLog refusals_;
  // Both or none.
  std::optional<MessageSealer> sealer_;
  std::optional<SealedInbox> inbox_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ZmqTransport>> MakeZmqTransport(const ZmqOptions& options) {
  auto transport = std::make_unique<SocketTransport>(options);
  if (!options.listen.empty()) {
    if (absl::Status status = transport->Listen(); !status.ok()) return status;
  }
  return transport;
}

}  // namespace covey
