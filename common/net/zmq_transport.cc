// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq_transport.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <deque>
#include <span>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/handshake_counter.h"
#include "common/net/zmq_frame.h"

namespace covey {
namespace {

constexpr int kHandshakeMilliseconds = 5000;
constexpr int kReconnectMillisecondsMax = 1000;
constexpr int kBacklog = 1024;
// Waits up to this duration end with a precision of microseconds; longer ones with one of
// milliseconds and a system call less.
constexpr absl::Duration kFineWait = absl::Milliseconds(10);
constexpr absl::Duration kLongestWait = absl::Hours(1);
constexpr int kSocketsMax = 16384;
constexpr char kMonitorEndpoint[] = "inproc://connections";

// The routing id that libzmq gives to a peer: a zero byte, then four of its own.
constexpr size_t kRoutingIdBytes = 5;
constexpr uint64_t kConnectionMark = uint64_t{1} << (8 * kRoutingIdBytes);

// 0 when the peer chose the id itself, which our transports never do.
uint64_t PackRoutingId(std::span<const uint8_t> id) {
  if (id.size() != kRoutingIdBytes || id[0] != 0) return 0;
  uint64_t connection = kConnectionMark;
  for (size_t i = 0; i < id.size(); ++i) connection |= uint64_t{id[i]} << (8 * i);
  return connection;
}

std::array<uint8_t, kRoutingIdBytes> UnpackRoutingId(uint64_t connection) {
  std::array<uint8_t, kRoutingIdBytes> id;
  for (size_t i = 0; i < id.size(); ++i) id[i] = static_cast<uint8_t>(connection >> (8 * i));
  return id;
}

void SetOption(void* socket, int option, int value) {
  COVEY_CHECK(zmq_setsockopt(socket, option, &value, sizeof(value)) == 0);
}

// A ZeroMQ socket with its state for polling.
struct Socket {
  enum class Kind { kRouter, kDealer, kMonitor };

  Socket(void* context, Kind kind, const ZmqOptions& options) : kind(kind) {
    const int type = kind == Kind::kRouter   ? ZMQ_ROUTER
                     : kind == Kind::kDealer ? ZMQ_DEALER
                                             : ZMQ_PAIR;
    handle = zmq_socket(context, type);
    COVEY_CHECK(handle != nullptr);
    SetOption(handle, ZMQ_LINGER, 0);
    if (kind != Kind::kMonitor) {
      const int64_t part_bytes = static_cast<int64_t>(
          std::max(options.limits.frame_bytes, kWirePreludeBytes + options.limits.envelope_bytes));
      zmq_setsockopt(handle, ZMQ_MAXMSGSIZE, &part_bytes, sizeof(part_bytes));
      SetOption(handle, ZMQ_SNDHWM, options.queue_messages);
      SetOption(handle, ZMQ_RCVHWM, std::min(options.queue_messages, options.arrived_messages));
      SetOption(handle, ZMQ_HANDSHAKE_IVL, kHandshakeMilliseconds);
      SetOption(handle, ZMQ_RECONNECT_IVL_MAX, kReconnectMillisecondsMax);
      SetOption(handle, ZMQ_TCP_KEEPALIVE, 1);
    }
    if (kind == Kind::kRouter) {
      SetOption(handle, ZMQ_ROUTER_MANDATORY, 1);
      SetOption(handle, ZMQ_BACKLOG, kBacklog);
      // With a domain libzmq refuses peers older than its handshake. Otherwise it takes nearly any
      // bytes for its oldest protocol, and garbage would keep a connection open.
      zmq_setsockopt(handle, ZMQ_ZAP_DOMAIN, "covey", 5);
    }
    size_t size = sizeof(descriptor);
    COVEY_CHECK(zmq_getsockopt(handle, ZMQ_FD, &descriptor, &size) == 0);
  }
  ~Socket() { zmq_close(handle); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool HasInput() const {
    int events = 0;
    size_t size = sizeof(events);
    return zmq_getsockopt(handle, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0;
  }

  const Kind kind;
  void* handle = nullptr;
  int descriptor = -1;
  std::string endpoint;  // dealers: where it is connected to
  bool ready = false;    // is in the list of sockets that may have input
};

// Receives the parts of one message, one after the other.
class PartReader {
 public:
  explicit PartReader(Socket& socket) : socket_(socket.handle) {}

  // False when the message has no further part; at the first call, when there is no message.
  bool Next() {
    if (!more_ || zmq_msg_recv(part_.get(), socket_, ZMQ_DONTWAIT) < 0) return false;
    more_ = part_.more();
    return true;
  }
  bool more() const { return more_; }
  std::span<const uint8_t> bytes() { return {part_.data(), part_.size()}; }
  Buffer TakeFrame() { return part_.TakeFrame(); }

 private:
  void* const socket_;
  ZmqPart part_;
  bool more_ = true;
};

// Blocks without a zmq_poll over all sockets. A socket's descriptor is readable while libzmq has an
// event that no call on the socket has consumed; any call may consume it, even a send. Invariant:
// when Wait blocks, a socket outside `ready_` has been read until it was empty and not used since,
// so its descriptor shows the next event.
class ZmqTransport : public Transport {
 public:
  explicit ZmqTransport(const ZmqOptions& options)
      : options_(options),
        context_(zmq_ctx_new()),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_up_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    COVEY_CHECK(context_ != nullptr && epoll_ >= 0 && wake_up_ >= 0);
    zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, kSocketsMax);
    epoll_event event = {.events = EPOLLIN, .data = {.ptr = nullptr}};
    COVEY_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_up_, &event) == 0);
  }

  ~ZmqTransport() override {
    monitor_.reset();
    routes_.clear();
    router_.reset();
    zmq_ctx_term(context_);
    close(wake_up_);
    close(epoll_);
  }

  absl::Status Listen() {
    router_ = std::make_unique<Socket>(context_, Socket::Kind::kRouter, options_);
    zmq_socket_monitor(router_->handle, kMonitorEndpoint,
                       ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED);
    monitor_ = std::make_unique<Socket>(context_, Socket::Kind::kMonitor, options_);
    zmq_connect(monitor_->handle, kMonitorEndpoint);
    if (zmq_bind(router_->handle, options_.listen.c_str()) != 0) {
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
    COVEY_CHECK(zmq_getsockopt(router_->handle, ZMQ_LAST_ENDPOINT, name, &size) == 0);
    endpoint_ = name;
    Watch(*router_);
    Watch(*monitor_);
    return absl::OkStatus();
  }

  std::string endpoint() const override { return endpoint_; }

  void SetRoute(const Address& peer, const std::string& endpoint) override {
    const auto found = routes_.find(peer);
    if (found != routes_.end() && found->second->endpoint == endpoint) return;
    DropRoute(peer);
    auto dealer = std::make_unique<Socket>(context_, Socket::Kind::kDealer, options_);
    dealer->endpoint = endpoint;
    if (zmq_connect(dealer->handle, endpoint.c_str()) != 0) {
      LogWarning("route_refused", {{"node", peer.node.value()},
                                   {"endpoint", endpoint},
                                   {"reason", zmq_strerror(zmq_errno())}});
      return;
    }
    Watch(*dealer);
    routes_.emplace(peer, std::move(dealer));
  }

  void DropRoute(const Address& peer) override {
    const auto found = routes_.find(peer);
    if (found == routes_.end()) return;
    Socket* dealer = found->second.get();
    epoll_ctl(epoll_, EPOLL_CTL_DEL, dealer->descriptor, nullptr);
    std::erase(ready_, dealer);
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
    Socket* socket = SocketFor(message);
    if (socket == nullptr || !BeginSend(*socket, message, *head_bytes)) {
      ++counters_.dropped;
      return;
    }
    // Once the first part is accepted, so are the others.
    for (size_t i = 0; i < message.frames.size(); ++i) {
      ZmqPart frame(std::move(message.frames[i]));
      SendPart(*socket, frame, {.last = i + 1 == message.frames.size()});
    }
    ++counters_.sent;
  }

  bool Receive(int limit, absl::FunctionRef<void(Message)> sink) override {
    for (int received = 0; received < limit && !ready_.empty(); ++received) {
      Socket& socket = *ready_.front();
      ready_.pop_front();
      PartReader parts(socket);
      if (!parts.Next()) {
        socket.ready = false;
        continue;
      }
      // Every socket gets its turn. `socket` must not be used once `sink` runs, because `sink` may
      // drop routes.
      ready_.push_back(&socket);
      if (socket.kind == Socket::Kind::kMonitor) {
        ReadConnectionEvent(parts);
        continue;
      }
      Message message;
      if (!ReadMessage(socket.kind, parts, message)) {
        while (parts.Next()) {
        }
        ++counters_.malformed;
        continue;
      }
      ++counters_.received;
      sink(std::move(message));
    }
    return !ready_.empty();
  }

  void Wait(absl::Duration timeout) override {
    while (!ready_.empty() && !ready_.front()->HasInput()) {
      ready_.front()->ready = false;
      ready_.pop_front();
    }
    int milliseconds = 0;
    if (ready_.empty() && timeout > kFineWait) {
      milliseconds = static_cast<int>(absl::ToInt64Milliseconds(std::min(timeout, kLongestWait)));
    } else if (ready_.empty() && timeout > absl::ZeroDuration()) {
      // epoll_wait counts in milliseconds, but a retry or a released frame may be due sooner.
      pollfd any = {.fd = epoll_, .events = POLLIN, .revents = 0};
      const timespec limit = absl::ToTimespec(timeout);
      ppoll(&any, 1, &limit, nullptr);
    }
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(epoll_, events.data(), events.size(), milliseconds);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr != nullptr) {
        MarkReady(*static_cast<Socket*>(events[i].data.ptr));
      } else {
        uint64_t times;
        [[maybe_unused]] const ssize_t bytes = read(wake_up_, &times, sizeof(times));
      }
    }
  }

  void WakeUp() override {
    const uint64_t once = 1;
    [[maybe_unused]] const ssize_t bytes = write(wake_up_, &once, sizeof(once));
  }

  const TransportCounters& counters() const override { return counters_; }

 private:
  struct PartOptions {
    bool last;
  };

  void Watch(Socket& socket) {
    epoll_event event = {.events = EPOLLIN, .data = {.ptr = &socket}};
    COVEY_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, socket.descriptor, &event) == 0);
    MarkReady(socket);
  }

  void MarkReady(Socket& socket) {
    if (std::exchange(socket.ready, true)) return;
    ready_.push_back(&socket);
  }

  // Null when no socket can take it.
  Socket* SocketFor(const Message& message) {
    if (message.connection != 0) return router_.get();
    const auto found = routes_.find(message.to());
    return found == routes_.end() ? nullptr : found->second.get();
  }

  bool SendPart(Socket& socket, ZmqPart& part, PartOptions options) {
    const int flags = ZMQ_DONTWAIT | (options.last ? 0 : ZMQ_SNDMORE);
    return zmq_msg_send(part.get(), socket.handle, flags) >= 0;
  }

  // Sends the routing id (to a connection of the router) and the head frame. False when the queue
  // is full or the connection gone; then no part was sent.
  bool BeginSend(Socket& socket, const Message& message, size_t head_bytes) {
    MarkReady(socket);
    if (message.connection != 0) {
      const auto id = UnpackRoutingId(message.connection);
      ZmqPart part(id.size());
      std::copy(id.begin(), id.end(), part.data());
      if (!SendPart(socket, part, {.last = false})) return false;
    }
    ZmqPart head(head_bytes);
    WriteHead(message, {head.data(), head.size()});
    return SendPart(socket, head, {.last = message.frames.empty()});
  }

  // An event in the form of zmq_socket_monitor(3): number and value, then an endpoint.
  void ReadConnectionEvent(PartReader& parts) {
    uint16_t event = 0;
    int32_t value = 0;
    COVEY_CHECK(parts.bytes().size() == sizeof(event) + sizeof(value));
    std::memcpy(&event, parts.bytes().data(), sizeof(event));
    std::memcpy(&value, parts.bytes().data() + sizeof(event), sizeof(value));
    while (parts.Next()) {
    }
    const uint64_t failed_before = handshakes_.failed();
    if (event == ZMQ_EVENT_ACCEPTED) handshakes_.Accepted(value);
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) handshakes_.Succeeded();
    if (event == ZMQ_EVENT_DISCONNECTED) handshakes_.Closed(value);
    counters_.malformed += handshakes_.failed() - failed_before;
  }

  // `parts` is at the first part. False when the bytes are not a valid message.
  bool ReadMessage(Socket::Kind kind, PartReader& parts, Message& message) {
    if (kind == Socket::Kind::kRouter) {
      message.connection = PackRoutingId(parts.bytes());
      if (message.connection == 0 || !parts.Next()) return false;
    }
    if (!ReadHead(parts.bytes(), options_.limits, message.envelope).ok()) return false;
    while (parts.more()) {
      if (message.frames.size() == options_.limits.frames || !parts.Next()) return false;
      message.frames.push_back(parts.TakeFrame());
    }
    return CheckFrames(message, options_.limits).ok();
  }

  const ZmqOptions options_;
  void* const context_;
  const int epoll_;
  const int wake_up_;
  std::string endpoint_;
  std::unique_ptr<Socket> router_;
  std::unique_ptr<Socket> monitor_;
  absl::btree_map<Address, std::unique_ptr<Socket>> routes_;
  std::deque<Socket*> ready_;
  HandshakeCounter handshakes_;
  TransportCounters counters_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeZmqTransport(const ZmqOptions& options) {
  auto transport = std::make_unique<ZmqTransport>(options);
  if (!options.listen.empty()) {
    if (absl::Status status = transport->Listen(); !status.ok()) return status;
  }
  return transport;
}

}  // namespace covey
