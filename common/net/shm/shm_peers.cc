// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/shm_peers.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/net/frame_bytes.h"
#include "common/net/seal/refusal.h"
#include "common/net/shm/shm_greeting.h"
#include "common/net/shm/shm_layout.h"

namespace covey {
namespace {

constexpr uint64_t kListener = 0;

// Whether the peer has closed its end. It sends nothing after its greeting.
bool HasEnded(const Descriptor& socket) {
  char byte;
  const ssize_t received = recv(socket.number(), &byte, sizeof(byte), MSG_DONTWAIT);
  return received >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace

ShmPeers::ShmPeers(Options options)
    : options_(std::move(options)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  COVEY_CHECK(epoll_.open());
}

ShmPeers::~ShmPeers() {
  for (auto& [id, connection] : connections_) CloseSocket(connection.socket);
}

absl::Status ShmPeers::Listen(const std::string& endpoint) {
  COVEY_ASSIGN_OR_RETURN(listener_, ListenForShm(endpoint));
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kListener}};
  COVEY_CHECK(epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, listener_.number(), &event) == 0);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ShmPeers::Connect(const std::string& endpoint) {
  if (connections_.size() >= kShmConnectionsMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this process has ", kShmConnectionsMax, " peers already"));
  }
  COVEY_ASSIGN_OR_RETURN(Descriptor socket, ConnectShm(endpoint));
  COVEY_ASSIGN_OR_RETURN(ShmRegion region, ShmRegion::Create());
  COVEY_RETURN_IF_ERROR(SendShmGreeting(socket, region.descriptor(), options_.wake_up));
  return Add(std::move(socket), std::move(region), /*is_ours=*/true);
}

absl::StatusOr<uint64_t> ShmPeers::Add(Descriptor socket, ShmRegion region, bool is_ours) {
  const uint64_t id = ++newest_;
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = id}};
  if (epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket.number(), &event) != 0) {
    return absl::UnavailableError(absl::StrCat("epoll_ctl: ", std::strerror(errno)));
  }
  Connection& connection = connections_[id];
  connection.socket = std::move(socket);
  connection.region.emplace(std::move(region));
  connection.is_ours = is_ours;
  return id;
}

void ShmPeers::CloseSocket(Descriptor& socket) {
  epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, socket.number(), nullptr);
  shutdown(socket.number(), SHUT_RDWR);
  socket.Close();
}

void ShmPeers::Close(uint64_t connection) {
  auto node = connections_.extract(connection);
  if (node.empty()) return;
  CloseSocket(node.mapped().socket);
  counters_.sent -= node.mapped().waiting.size();
  counters_.dropped += node.mapped().waiting.size();
}

void ShmPeers::Send(uint64_t id, Message message) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) {
    ++counters_.dropped;
    return;
  }
  const absl::StatusOr<size_t> head_bytes = PrepareHead(options_.limits, message);
  if (!head_bytes.ok()) {
    LogWarning("message_too_large",
               {{"body", BodyName(message.envelope)}, {"reason", head_bytes.status().message()}});
    ++counters_.dropped;
    return;
  }
  Connection& connection = found->second;
  absl::Status broken;
  if (connection.state == State::kOpen && connection.waiting.empty()) {
    const absl::StatusOr<bool> sent = connection.link->Send(message, *head_bytes);
    if (sent.ok() && *sent) {
      ++counters_.sent;
      return;
    }
    broken = sent.status();
  }
  if (MayWait(connection, message)) {
    connection.waiting_bytes += FrameBytes(message);
    connection.waiting.push_back(std::move(message));
    ++counters_.sent;
  } else {
    ++counters_.dropped;
  }
  if (!broken.ok()) End(id, broken);
}

bool ShmPeers::MayWait(const Connection& connection, const Message& message) const {
  if (connection.waiting.size() >= static_cast<size_t>(options_.queue_messages)) return false;
  return connection.is_ours ||
         connection.waiting_bytes + FrameBytes(message) <= options_.reply_bytes;
}

absl::Status ShmPeers::SendWaiting(Connection& connection) {
  if (connection.state != State::kOpen) return absl::OkStatus();
  while (!connection.waiting.empty()) {
    Message& message = connection.waiting.front();
    const size_t bytes = FrameBytes(message);
    COVEY_ASSIGN_OR_RETURN(const size_t head_bytes, PrepareHead(options_.limits, message));
    COVEY_ASSIGN_OR_RETURN(const bool sent, connection.link->Send(message, head_bytes));
    if (!sent) break;
    connection.waiting_bytes -= bytes;
    connection.waiting.pop_front();
  }
  return absl::OkStatus();
}

bool ShmPeers::Receive(int limit, absl::FunctionRef<void(Message)> sink) {
  std::vector<std::pair<uint64_t, absl::Status>> broken;
  for (auto& [id, connection] : connections_) {
    if (connection.waiting.empty()) continue;
    if (absl::Status status = SendWaiting(connection); !status.ok())
      broken.emplace_back(id, status);
  }
  for (const auto& [id, status] : broken) End(id, status);

  // Each peer has its turn. `sink` may close connections.
  size_t without_input = 0;
  while (limit > 0 && without_input < connections_.size()) {
    auto next = connections_.upper_bound(turn_);
    if (next == connections_.end()) next = connections_.begin();
    turn_ = next->first;
    if (ReceiveOne(turn_, sink)) {
      without_input = 0;
      --limit;
    } else {
      ++without_input;
    }
  }
  return limit == 0;
}

bool ShmPeers::ReceiveOne(uint64_t id, absl::FunctionRef<void(Message)> sink) {
  Connection& connection = connections_.at(id);
  if (connection.state == State::kGreeting) return false;
  Message message;
  const absl::StatusOr<bool> received = connection.link->Receive(message);
  if (!received.ok()) {
    counters_.refused.Add(RefusalOf(received.status()));
    if (absl::IsDataLoss(received.status())) End(id, received.status());
    return true;
  }
  if (!*received) {
    if (connection.state != State::kEnding) return false;
    End(id, absl::UnavailableError("the peer has ended"));
    return true;
  }
  message.connection = id;
  ++counters_.received;
  sink(std::move(message));
  return true;
}

void ShmPeers::HandleSockets() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.number(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == kListener) {
      Accept();
    } else {
      HandleSocket(events[i].data.u64);
    }
  }
}

void ShmPeers::Accept() {
  const auto complain = [](const absl::Status& why) {
    LogWarning("no_shared_memory", {{"reason", why.message()},
                                    {"instead", "ZeroMQ over TCP, for a peer on this host"}});
  };
  absl::StatusOr<std::optional<Descriptor>> socket = AcceptShm(listener_);
  if (!socket.ok()) {
    // The listener would stay readable, and the loop would never sleep again.
    complain(socket.status());
    CloseSocket(listener_);
    return;
  }
  if (!*socket || connections_.size() >= kShmConnectionsMax) return;
  absl::StatusOr<ShmRegion> region = ShmRegion::Create();
  if (!region.ok()) return complain(region.status());
  // A peer that is gone again is no matter.
  if (!SendShmGreeting(**socket, region->descriptor(), options_.wake_up).ok()) return;
  const auto added = Add(**std::move(socket), *std::move(region), /*is_ours=*/false);
  if (!added.ok()) complain(added.status());
}

void ShmPeers::HandleSocket(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (connection.state == State::kGreeting) {
    if (const absl::Status status = Open(connection); !status.ok()) End(id, status);
    return;
  }
  if (!HasEnded(connection.socket)) return;
  connection.state = State::kEnding;
  CloseSocket(connection.socket);
}

absl::Status ShmPeers::Open(Connection& connection) {
  COVEY_ASSIGN_OR_RETURN(std::optional<ShmGreeting> greeting, ReadShmGreeting(connection.socket));
  if (!greeting) return absl::OkStatus();
  COVEY_ASSIGN_OR_RETURN(PeerShmRegion peer, PeerShmRegion::Map(std::move(greeting->region)));
  connection.region->CloseDescriptor();
  connection.link = std::make_unique<ShmLink>(*std::move(connection.region), std::move(peer),
                                              std::move(greeting->wake_up), options_.limits);
  connection.region.reset();
  connection.state = State::kOpen;
  return SendWaiting(connection);
}

void ShmPeers::End(uint64_t id, absl::Status why) {
  auto node = connections_.extract(id);
  Connection& connection = node.mapped();
  if (connection.socket.open()) CloseSocket(connection.socket);
  counters_.sent -= connection.waiting.size();
  if (!connection.is_ours) {
    counters_.dropped += connection.waiting.size();
    return;
  }
  if (connection.state == State::kGreeting && absl::IsUnavailable(why)) {
    why = absl::FailedPreconditionError("the peer did not take it up; its log may say why");
  }
  options_.gone(id, why, std::move(connection.waiting));
}

bool ShmPeers::FallAsleep() {
  bool idle = true;
  for (auto& [id, connection] : connections_) {
    if (connection.state == State::kOpen && !connection.link->FallAsleep()) idle = false;
    // Receive ends the connection.
    if (connection.state == State::kEnding) idle = false;
  }
  return idle;
}

void ShmPeers::Awake() {
  for (auto& [id, connection] : connections_) {
    if (connection.state == State::kOpen) connection.link->Awake();
  }
}

}  // namespace covey
