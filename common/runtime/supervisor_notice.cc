// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/supervisor_notice.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/descriptor.h"
#include "common/base/log.h"

namespace covey {
namespace {

constexpr char kSocket[] = "NOTIFY_SOCKET";

void Notify(absl::string_view state) {
  const char* const address = std::getenv(kSocket);
  if (address == nullptr || *address == '\0') return;
  const absl::Status sent = SendToSupervisor(address, state);
  if (!sent.ok()) LogWarning("supervisor_not_told", {{"reason", sent.message()}});
}

}  // namespace

void NotifyReady(absl::string_view status) { Notify(absl::StrCat("READY=1\nSTATUS=", status)); }

void NotifyStatus(absl::string_view status) { Notify(absl::StrCat("STATUS=", status)); }

void NotifyStopping(absl::Duration at_most) {
  Notify(absl::StrCat("STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=",
                      absl::ToInt64Microseconds(at_most)));
}

absl::Status SendToSupervisor(absl::string_view address, absl::string_view state) {
  sockaddr_un target = {};
  target.sun_family = AF_UNIX;
  const bool is_abstract = !address.empty() && address[0] == '@';
  if (!is_abstract && (address.empty() || address[0] != '/')) {
    return absl::InvalidArgumentError(absl::StrCat(
        kSocket, " is '", address,
        "', which is neither a path nor an abstract socket; leave it as the supervisor "
        "sets it"));
  }
  // A path ends with a zero byte.
  if (address.size() + (is_abstract ? 0 : 1) > sizeof(target.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        kSocket, " has ", address.size(), " bytes, more than the name of a socket may have"));
  }
  std::copy(address.begin(), address.end(), target.sun_path);
  if (is_abstract) target.sun_path[0] = '\0';
  const auto bytes =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size() + !is_abstract);

  const Descriptor descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!descriptor.open() ||
      sendto(descriptor.number(), state.data(), state.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&target), bytes) < 0) {
    return absl::UnavailableError(
        absl::StrCat("sending to ", address, " (", kSocket, "): ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace covey
