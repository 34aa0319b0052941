// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/shm_greeting.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/net/shm/shm_layout.h"

namespace covey {
namespace {

constexpr absl::string_view kNamePrefix = "covey/";
constexpr int kBacklog = 128;
// The kernel shows users without a mapping in this user namespace as this one.
constexpr uid_t kUnknownUser = 65534;

// The packet, beside which the two descriptors travel. The version changes with shm_layout.h and
// with the records of shm_link.h.
struct Packet {
  std::array<char, 8> name = {'C', 'O', 'V', 'E', 'Y', 'S', 'H', 'M'};
  uint64_t version = 1;
  uint64_t region_bytes = kShmRegionBytes;

  friend bool operator==(const Packet&, const Packet&) = default;
};

constexpr size_t kDescriptors = 2;

absl::Status Failed(absl::string_view call) {
  return absl::UnavailableError(absl::StrCat(call, ": ", std::strerror(errno)));
}

struct Name {
  sockaddr_un address = {};
  socklen_t bytes = 0;
};

absl::StatusOr<Name> NameOf(const std::string& endpoint) {
  Name name;
  const std::string text = absl::StrCat(kNamePrefix, endpoint);
  // The first byte is 0: the name is not that of a file.
  if (text.size() + 1 > sizeof(name.address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the endpoint ", endpoint, " is too long for the name of a Unix socket"));
  }
  name.address.sun_family = AF_UNIX;
  std::copy(text.begin(), text.end(), &name.address.sun_path[1]);
  name.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

Descriptor MakeSocket() {
  return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// An eventfd that does not block.
bool IsEventDescriptor(const Descriptor& descriptor) {
  constexpr absl::string_view kEventDescriptor = "anon_inode:[eventfd]";
  std::array<char, 64> target;
  const std::string link = absl::StrCat("/proc/self/fd/", descriptor.number());
  const ssize_t bytes = readlink(link.c_str(), target.data(), target.size());
  if (bytes < 0 ||
      absl::string_view(target.data(), static_cast<size_t>(bytes)) != kEventDescriptor) {
    return false;
  }
  const int flags = fcntl(descriptor.number(), F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

bool IsOfThisUser(const Descriptor& socket) {
  ucred peer = {};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return false;
  return peer.uid == geteuid() && peer.uid != kUnknownUser;
}

}  // namespace

absl::StatusOr<Descriptor> ListenForShm(const std::string& endpoint) {
  const absl::StatusOr<Name> name = NameOf(endpoint);
  if (!name.ok()) return name.status();
  Descriptor listener = MakeSocket();
  if (!listener.open()) return Failed("socket");
  const auto* address = reinterpret_cast<const sockaddr*>(&name->address);
  if (bind(listener.number(), address, name->bytes) != 0) return Failed("bind");
  if (listen(listener.number(), kBacklog) != 0) return Failed("listen");
  return listener;
}

absl::StatusOr<std::optional<Descriptor>> AcceptShm(const Descriptor& listener) {
  Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.open() &&
      (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
    return absl::ResourceExhaustedError(absl::StrCat("accept: ", std::strerror(errno)));
  }
  if (!socket.open() || !IsOfThisUser(socket)) return std::nullopt;
  return socket;
}

absl::StatusOr<Descriptor> ConnectShm(const std::string& endpoint) {
  const absl::StatusOr<Name> name = NameOf(endpoint);
  if (!name.ok()) return name.status();
  Descriptor socket = MakeSocket();
  if (!socket.open()) return Failed("socket");
  const auto* address = reinterpret_cast<const sockaddr*>(&name->address);
  if (connect(socket.number(), address, name->bytes) != 0) {
    if (errno == ECONNREFUSED) return absl::NotFoundError("no process listens there on this host");
    return Failed("connect");
  }
  if (!IsOfThisUser(socket)) {
    return absl::PermissionDeniedError(
        "the process that listens there on this host belongs to another user");
  }
  return socket;
}

absl::Status SendShmGreeting(const Descriptor& socket, const Descriptor& region, int wake_up) {
  Packet packet;
  iovec bytes = {.iov_base = &packet, .iov_len = sizeof(packet)};
  const std::array<int, kDescriptors> descriptors = {region.number(), wake_up};
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(descriptors))> control = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(descriptors));
  std::memcpy(CMSG_DATA(head), descriptors.data(), sizeof(descriptors));
  const ssize_t sent = sendmsg(socket.number(), &message, MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(sizeof(packet)) ? absl::OkStatus() : Failed("sendmsg");
}

absl::StatusOr<std::optional<ShmGreeting>> ReadShmGreeting(const Descriptor& socket) {
  Packet packet{.version = 0};
  iovec bytes = {.iov_base = &packet, .iov_len = sizeof(packet)};
  std::array<int, kDescriptors> numbers;
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(numbers))> control = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t received = recvmsg(socket.number(), &message, MSG_CMSG_CLOEXEC);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    return std::nullopt;
  }
  if (received <= 0) return absl::UnavailableError("the peer has closed the connection");
  ShmGreeting greeting;
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
    // All of them are closed if there are too few.
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(numbers.data(), CMSG_DATA(head), std::min(count, kDescriptors) * sizeof(int));
    if (count > 0) greeting.region = Descriptor(numbers[0]);
    if (count > 1) greeting.wake_up = Descriptor(numbers[1]);
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return absl::ResourceExhaustedError("no descriptors left for the peer's memory");
  }
  if (received != static_cast<ssize_t>(sizeof(packet)) || !(packet == Packet()) ||
      !greeting.wake_up.open()) {
    return absl::InvalidArgumentError("the peer is of another version, or no part of Covey");
  }
  // A write to something else could block this loop, or end the process by SIGPIPE.
  if (!IsEventDescriptor(greeting.wake_up)) {
    return absl::InvalidArgumentError("the peer has handed over no eventfd that does not block");
  }
  return greeting;
}

}  // namespace covey
