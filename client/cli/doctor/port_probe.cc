// SPDX-License-Identifier: Apache-2.0
#include "client/cli/doctor/port_probe.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "common/base/clock.h"
#include "common/base/descriptor.h"

namespace covey::cli {
namespace {

using Kind = PortAnswer::Kind;

constexpr size_t kGreetingBytesMax = 64;
constexpr int kLookupPollMs = 1;

// One connection that is being made for an endpoint, which may have several addresses.
struct Connection {
  size_t endpoint = 0;
  Descriptor socket;
};

// The names of endpoints, as the system's resolver works on them.
struct Resolution {
  struct Name {
    size_t endpoint = 0;
    std::string host;
    std::string port;
    addrinfo hints = {};
    gaicb request = {};
  };
  std::vector<std::unique_ptr<Name>> names;
};

Kind KindOf(int error) {
  if (error == ECONNREFUSED) return Kind::kRefused;
  return error == ETIMEDOUT ? Kind::kTimedOut : Kind::kUnreachable;
}

void Take(PortAnswer& answer, int error) {
  if (answer.kind == Kind::kOpen) return;
  if (error == 0) {
    answer = {.kind = Kind::kOpen, .reason = "", .greeting = ""};
  } else {
    answer = {.kind = KindOf(error), .reason = std::strerror(error), .greeting = ""};
  }
}

// The address of one end of a connection, as text.
std::string AddressOf(int socket, decltype(&getsockname) end) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  char text[NI_MAXHOST] = "";
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (end(socket, generic, &size) == 0) {
    getnameinfo(generic, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  }
  return text;
}

// With their first packets both ends say how much of a stream they take in one.
void TakePackets(PortAnswer& answer, int socket) {
  const std::string here = AddressOf(socket, getsockname);
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (here == AddressOf(socket, getpeername) ||
      getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return;
  }
  const uint32_t ip = absl::StrContains(here, ':') ? 40 : 20;
  const uint32_t tcp = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0 ? 32 : 20;
  answer.mtu = info.tcpi_pmtu;
  answer.packet_bytes_max = info.tcpi_snd_mss + tcp + ip;
}

void Connect(size_t endpoint, const sockaddr* address, socklen_t size,
             std::vector<PortAnswer>& answers, std::vector<Connection>& connections) {
  Descriptor socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) return Take(answers[endpoint], errno);
  if (connect(socket.number(), address, size) != 0 && errno != EINPROGRESS) {
    return Take(answers[endpoint], errno);
  }
  connections.push_back({.endpoint = endpoint, .socket = std::move(socket)});
}

void ConnectLocally(size_t endpoint, absl::string_view path, std::vector<PortAnswer>& answers,
                    std::vector<Connection>& connections) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return Take(answers[endpoint], ENAMETOOLONG);
  std::copy(path.begin(), path.end(), address.sun_path);
  if (absl::StartsWith(path, "@")) address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  Connect(endpoint, reinterpret_cast<const sockaddr*>(&address), size, answers, connections);
}

int MillisecondsTo(absl::Time until) {
  const absl::Duration left = until - MonotonicNow();
  return static_cast<int>(
      std::max<int64_t>(0, absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
}

// Starts all lookups at once; the names that are resolved in time are connected.
void ConnectNames(std::unique_ptr<Resolution> resolution, absl::Time until,
                  std::vector<PortAnswer>& answers, std::vector<Connection>& connections) {
  if (resolution->names.empty()) return;
  std::vector<gaicb*> requests;
  for (const auto& name : resolution->names) requests.push_back(&name->request);
  const int count = static_cast<int>(requests.size());
  const int started = getaddrinfo_a(GAI_NOWAIT, requests.data(), count, nullptr);
  const auto is_under_way = [](gaicb* request) { return gai_error(request) == EAI_INPROGRESS; };
  // Polls. gai_suspend crashes a process: when it returns, a lookup that ends at this moment still
  // holds a pointer to its stack.
  while (started == 0 && std::any_of(requests.begin(), requests.end(), is_under_way) &&
         MonotonicNow() < until) {
    poll(nullptr, 0, kLookupPollMs);
  }
  // A call that fails may have begun some of them.
  bool is_abandoned = started != 0;
  for (const auto& name : resolution->names) {
    PortAnswer& answer = answers[name->endpoint];
    const int error = started != 0 ? started : gai_error(&name->request);
    if (error != 0) {
      answer = {.kind = Kind::kUnresolved,
                .reason = error == EAI_INPROGRESS ? "no answer in time" : gai_strerror(error),
                .greeting = ""};
      if (error == EAI_INPROGRESS && gai_cancel(&name->request) != EAI_CANCELED) {
        is_abandoned = true;
      }
      continue;
    }
    for (const addrinfo* at = name->request.ar_result; at != nullptr; at = at->ai_next) {
      Connect(name->endpoint, at->ai_addr, at->ai_addrlen, answers, connections);
    }
    freeaddrinfo(name->request.ar_result);
  }
  // A lookup that goes on writes to its request: it is never freed.
  if (is_abandoned) static_cast<void>(resolution.release());
}

// Waits until all connections are made or refused.
void AwaitConnections(absl::Time until, std::vector<PortAnswer>& answers,
                      std::vector<Connection>& connections) {
  std::vector<Connection> open;
  while (!connections.empty()) {
    std::vector<pollfd> polled;
    for (const Connection& each : connections) {
      polled.push_back({.fd = each.socket.number(), .events = POLLOUT, .revents = 0});
    }
    const int timeout = MillisecondsTo(until);
    if (poll(polled.data(), polled.size(), timeout) <= 0 && timeout == 0) break;
    std::vector<Connection> waiting;
    for (size_t i = 0; i < connections.size(); ++i) {
      if (polled[i].revents == 0) {
        waiting.push_back(std::move(connections[i]));
        continue;
      }
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(polled[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
      PortAnswer& answer = answers[connections[i].endpoint];
      Take(answer, error);
      if (error != 0) continue;
      TakePackets(answer, polled[i].fd);
      open.push_back(std::move(connections[i]));
    }
    connections = std::move(waiting);
  }
  connections = std::move(open);
}

void AwaitGreetings(absl::Time until, std::vector<PortAnswer>& answers,
                    std::vector<Connection> connections) {
  while (!connections.empty()) {
    std::vector<pollfd> polled;
    for (const Connection& each : connections) {
      polled.push_back({.fd = each.socket.number(), .events = POLLIN, .revents = 0});
    }
    const int timeout = MillisecondsTo(until);
    if (poll(polled.data(), polled.size(), timeout) <= 0 && timeout == 0) return;
    std::vector<Connection> waiting;
    for (size_t i = 0; i < connections.size(); ++i) {
      if (polled[i].revents == 0) {
        waiting.push_back(std::move(connections[i]));
        continue;
      }
      char bytes[kGreetingBytesMax];
      const ssize_t size = recv(polled[i].fd, bytes, sizeof(bytes), 0);
      if (size > 0) answers[connections[i].endpoint].greeting.assign(bytes, size);
    }
    connections = std::move(waiting);
  }
}

}  // namespace

std::vector<PortAnswer> ProbePorts(const std::vector<std::string>& endpoints,
                                   absl::Duration deadline, absl::Duration greeting) {
  std::vector<PortAnswer> answers(endpoints.size(), {.reason = "no answer in time"});
  std::vector<Connection> connections;
  auto resolution = std::make_unique<Resolution>();
  for (size_t i = 0; i < endpoints.size(); ++i) {
    absl::string_view text = endpoints[i];
    if (absl::ConsumePrefix(&text, "ipc://")) {
      ConnectLocally(i, text, answers, connections);
      continue;
    }
    absl::ConsumePrefix(&text, "tcp://");
    const size_t colon = text.rfind(':');
    if (colon == absl::string_view::npos) {
      answers[i] = {.kind = Kind::kUnresolved, .reason = "it has no port", .greeting = ""};
      continue;
    }
    absl::string_view host = text.substr(0, colon);
    if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
    auto name = std::make_unique<Resolution::Name>();
    name->endpoint = i;
    name->host = std::string(host);
    name->port = std::string(text.substr(colon + 1));
    name->hints.ai_socktype = SOCK_STREAM;
    name->request.ar_name = name->host.c_str();
    name->request.ar_service = name->port.c_str();
    name->request.ar_request = &name->hints;
    resolution->names.push_back(std::move(name));
  }
  ConnectNames(std::move(resolution), MonotonicNow() + deadline, answers, connections);
  AwaitConnections(MonotonicNow() + deadline, answers, connections);
  AwaitGreetings(MonotonicNow() + greeting, answers, std::move(connections));
  return answers;
}

PortProtocol ProtocolOf(absl::string_view greeting) {
  if (greeting.empty()) return PortProtocol::kSilent;
  // The frame SETTINGS of HTTP/2: three bytes of length, and its type.
  if (greeting.size() >= 4 && greeting[0] == '\0' && greeting[3] == '\4') {
    return PortProtocol::kGrpc;
  }
  if (greeting[0] == '\xff') return PortProtocol::kZeroMq;
  return PortProtocol::kOther;
}

}  // namespace covey::cli
