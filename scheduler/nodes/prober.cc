// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/prober.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/runtime/event_loop.h"

namespace covey::scheduler {
namespace {

// The address to connect to, in the form of the system calls.
struct Target {
  sockaddr_storage address{};
  socklen_t size = 0;
};

std::optional<Target> ParseTcp(absl::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) ||
      port == 0 || port > 65535) {
    return std::nullopt;
  }
  absl::string_view host = text.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[") && !absl::ConsumeSuffix(&host, "]")) return std::nullopt;
  Target target;
  auto& four = reinterpret_cast<sockaddr_in&>(target.address);
  if (inet_pton(AF_INET, std::string(host).c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(static_cast<uint16_t>(port));
    target.size = sizeof(sockaddr_in);
    return target;
  }
  auto& six = reinterpret_cast<sockaddr_in6&>(target.address);
  if (inet_pton(AF_INET6, std::string(host).c_str(), &six.sin6_addr) != 1) return std::nullopt;
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<uint16_t>(port));
  target.size = sizeof(sockaddr_in6);
  return target;
}

std::optional<Target> ParseIpc(absl::string_view path) {
  Target target;
  auto& address = reinterpret_cast<sockaddr_un&>(target.address);
  if (path.empty() || path.size() >= sizeof(address.sun_path)) return std::nullopt;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  target.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (path[0] == '@') {
    address.sun_path[0] = '\0';  // an abstract name, which is not terminated
  } else {
    ++target.size;
  }
  return target;
}

std::optional<Target> Parse(absl::string_view endpoint) {
  if (absl::ConsumePrefix(&endpoint, "tcp://")) return ParseTcp(endpoint);
  if (absl::ConsumePrefix(&endpoint, "ipc://")) return ParseIpc(endpoint);
  return std::nullopt;
}

}  // namespace

Prober::Prober(const Options& options)
    : options_(options), wake_up_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  COVEY_CHECK(wake_up_ >= 0);
}

Prober::~Prober() {
  for (const Probe& probe : under_way_) close(probe.socket);
  close(wake_up_);
}

void Prober::Send(Message message) {
  if (!message.envelope.has_probe_request()) {
    ++counters_.dropped;
  } else if (waiting_.size() >= options_.waiting_max) {
    ++counters_.dropped;
    Conclude(message, proto::ProbeReply::SILENT);
  } else {
    ++counters_.sent;
    waiting_.push_back(std::move(message));
    Begin(MonotonicNow());
  }
}

void Prober::Begin(absl::Time now) {
  while (!refused_.empty() && refused_.front().until <= now) {
    Probe probe = std::move(refused_.front());
    refused_.pop_front();
    probe.until = now + options_.limit;
    Connect(std::move(probe));
  }
  while (!waiting_.empty() && under_way_.size() < options_.under_way_max) {
    Message request = std::move(waiting_.front());
    waiting_.pop_front();
    Connect({.request = std::move(request), .until = now + options_.limit});
  }
}

void Prober::Connect(Probe probe) {
  const std::optional<Target> target = Parse(probe.request.envelope.probe_request().endpoint());
  probe.socket =
      target ? socket(target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
             : -1;
  if (probe.socket < 0) return Conclude(probe.request, proto::ProbeReply::SILENT);
  probe.connected =
      connect(probe.socket, reinterpret_cast<const sockaddr*>(&target->address), target->size) == 0;
  const int error = probe.connected ? 0 : errno;
  if (probe.connected || error == EINPROGRESS) {
    under_way_.push_back(std::move(probe));
    return;
  }
  close(probe.socket);
  OnFailure(error, std::move(probe));
}

void Prober::OnFailure(int error, Probe probe) {
  if (error == EAGAIN) {  // a Unix socket whose queue is full: a process has it open
    Conclude(probe.request, proto::ProbeReply::CONNECTED);
  } else if (error != ECONNREFUSED) {
    Conclude(probe.request, proto::ProbeReply::SILENT);
  } else if (probe.was_refused || Planted(PlantedBug::kDeathAtFirstLook)) {
    Conclude(probe.request, proto::ProbeReply::REFUSED);
  } else {
    probe.was_refused = true;
    probe.until = MonotonicNow() + options_.again_after;
    refused_.push_back(std::move(probe));
  }
}

bool Prober::Continue(absl::Time now, int events, Probe& probe) {
  if (events == 0) {
    if (now < probe.until) return true;
    close(probe.socket);
    Conclude(probe.request,
             probe.connected ? proto::ProbeReply::CONNECTED : proto::ProbeReply::SILENT);
    return false;
  }
  if (!probe.connected) {
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(probe.socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    probe.connected = error == 0;
    if (probe.connected) return true;
    close(probe.socket);
    OnFailure(error, std::move(probe));
    return false;
  }
  // A process that closes an accepted connection may be dying.
  close(probe.socket);
  Connect(std::move(probe));
  return false;
}

void Prober::Conclude(const Message& request, proto::ProbeReply::Result result) {
  const proto::ProbeRequest& asked = request.envelope.probe_request();
  Message reply = MakeReply(request);
  proto::ProbeReply& body = *reply.envelope.mutable_probe_reply();
  body.set_node(asked.node());
  body.set_incarnation(asked.incarnation());
  body.set_result(result);
  replies_.push_back(std::move(reply));
}

bool Prober::Receive(int limit, absl::FunctionRef<void(Message)> sink) {
  for (; limit > 0 && !replies_.empty(); --limit) {
    Message reply = std::move(replies_.front());
    replies_.pop_front();
    ++counters_.received;
    sink(std::move(reply));
  }
  return !replies_.empty();
}

void Prober::Wait(absl::Duration timeout) {
  if (!replies_.empty()) timeout = absl::ZeroDuration();
  std::vector<pollfd> files = {{.fd = wake_up_, .events = POLLIN, .revents = 0}};
  const absl::Time before = MonotonicNow();
  if (!refused_.empty()) {
    timeout = std::min(timeout, std::max(absl::ZeroDuration(), refused_.front().until - before));
  }
  for (const Probe& probe : under_way_) {
    const short events = probe.connected ? POLLRDHUP : POLLOUT;
    files.push_back({.fd = probe.socket, .events = events, .revents = 0});
    timeout = std::min(timeout, std::max(absl::ZeroDuration(), probe.until - before));
  }
  const timespec patience = absl::ToTimespec(timeout);
  ppoll(files.data(), files.size(), timeout == absl::InfiniteDuration() ? nullptr : &patience,
        nullptr);
  uint64_t count = 0;
  if (files[0].revents != 0 && read(wake_up_, &count, sizeof(count)) < 0) {
    COVEY_CHECK(errno == EAGAIN || errno == EINTR);
  }

  const absl::Time now = MonotonicNow();
  std::vector<Probe> probes = std::exchange(under_way_, {});
  for (size_t i = 0; i < probes.size(); ++i) {
    if (Continue(now, files[i + 1].revents, probes[i])) under_way_.push_back(std::move(probes[i]));
  }
  Begin(now);
}

void Prober::WakeUp() {
  const uint64_t one = 1;
  // The write fails only when the counter is full, and then the thread wakes as well.
  if (write(wake_up_, &one, sizeof(one)) < 0) COVEY_CHECK(errno == EAGAIN);
}

}  // namespace covey::scheduler
