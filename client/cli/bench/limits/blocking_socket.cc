// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/limits/blocking_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/bench/limits/limit_load.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

constexpr size_t kCallBytesMax = 1 << 20;

absl::Status Failure(absl::string_view what) {
  return absl::ErrnoToStatus(errno, absl::StrCat("a raw socket cannot ", what));
}

// An address of either family.
struct Address {
  union {
    sockaddr_un unix_path = {};
    sockaddr_in tcp;
    sockaddr any;
  };
  socklen_t size = 0;
};

Address TcpAddress(uint16_t port) {
  Address address;
  address.tcp.sin_family = AF_INET;
  address.tcp.sin_port = htons(port);
  address.tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.size = sizeof(address.tcp);
  return address;
}

absl::StatusOr<Address> UnixAddress(const std::string& path) {
  Address address;
  address.unix_path.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.unix_path.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is too long for a unix socket"));
  }
  std::memcpy(address.unix_path.sun_path, path.data(), path.size());
  address.size = sizeof(address.unix_path);
  return address;
}

absl::StatusOr<int> Open(const Address& address) {
  const int descriptor = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return Failure("open");
  return descriptor;
}

void SendWithoutDelay(int descriptor) {
  // Fails for unix sockets, which never delay.
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

absl::StatusOr<int> Connect(const Address& address) {
  COVEY_ASSIGN_OR_RETURN(const int descriptor, Open(address));
  if (connect(descriptor, &address.any, address.size) == 0) {
    SendWithoutDelay(descriptor);
    return descriptor;
  }
  const absl::Status failure = Failure("connect");
  close(descriptor);
  return failure;
}

// Also writes the address that the system chose.
absl::StatusOr<int> Listen(Address& address) {
  COVEY_ASSIGN_OR_RETURN(const int descriptor, Open(address));
  if (bind(descriptor, &address.any, address.size) == 0 && listen(descriptor, 1) == 0 &&
      getsockname(descriptor, &address.any, &address.size) == 0) {
    return descriptor;
  }
  const absl::Status failure = Failure("listen");
  close(descriptor);
  return failure;
}

}  // namespace

absl::StatusOr<BlockingSocket> BlockingSocket::ConnectTcp(uint16_t port) {
  COVEY_ASSIGN_OR_RETURN(const int descriptor, Connect(TcpAddress(port)));
  return BlockingSocket(descriptor);
}

absl::StatusOr<BlockingSocket> BlockingSocket::ConnectUnix(const std::string& path) {
  COVEY_ASSIGN_OR_RETURN(const Address address, UnixAddress(path));
  COVEY_ASSIGN_OR_RETURN(const int descriptor, Connect(address));
  return BlockingSocket(descriptor);
}

absl::StatusOr<BlockingSocket> BlockingSocket::AcceptOne(
    const std::string& endpoint,
    const std::function<absl::Status(const std::string& address)>& listening) {
  Address address = TcpAddress(0);
  if (endpoint != "tcp") {
    COVEY_ASSIGN_OR_RETURN(address, UnixAddress(endpoint));
  }
  COVEY_ASSIGN_OR_RETURN(const int listener, Listen(address));
  const absl::Status told =
      listening(endpoint == "tcp" ? absl::StrCat(ntohs(address.tcp.sin_port)) : endpoint);
  const int descriptor = told.ok() ? accept(listener, nullptr, nullptr) : -1;
  const absl::Status failure = told.ok() ? Failure("accept") : told;
  close(listener);
  if (descriptor < 0) return failure;
  SendWithoutDelay(descriptor);
  return BlockingSocket(descriptor);
}

BlockingSocket::~BlockingSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status BlockingSocket::Send(const void* bytes, size_t size) {
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t sent = send(descriptor_, next, std::min(size, kCallBytesMax), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return Failure("send");
    next += sent;
    size -= static_cast<size_t>(sent);
  }
  return absl::OkStatus();
}

absl::Status BlockingSocket::Receive(void* bytes, size_t size) {
  return ReceivePieces(bytes, size, [](const uint8_t*, size_t) {});
}

absl::Status BlockingSocket::ReceiveAndRead(void* bytes, size_t size, uint64_t& sum) {
  return ReceivePieces(bytes, size, [&sum](const uint8_t* piece, size_t piece_size) {
    sum += ReadThrough(piece, piece_size);
  });
}

template <typename Use>
absl::Status BlockingSocket::ReceivePieces(void* bytes, size_t size, const Use& use) {
  auto* next = static_cast<uint8_t*>(bytes);
  while (size > 0) {
    const ssize_t received = recv(descriptor_, next, std::min(size, kCallBytesMax), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received == 0) return absl::UnavailableError("the other end of a raw socket has gone");
    if (received < 0) return Failure("receive");
    use(next, static_cast<size_t>(received));
    next += received;
    size -= static_cast<size_t>(received);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint16_t> FreeTcpPort() {
  Address address = TcpAddress(0);
  COVEY_ASSIGN_OR_RETURN(const int listener, Listen(address));
  close(listener);
  return ntohs(address.tcp.sin_port);
}

}  // namespace covey::cli
