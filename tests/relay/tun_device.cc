// SPDX-License-Identifier: Apache-2.0
#include "tests/relay/tun_device.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace covey::relay {
namespace {

constexpr size_t kPacketBytesMax = 65536;

absl::Status SystemError(absl::string_view what) { return absl::ErrnoToStatus(errno, what); }

// Closes the file at the end of a scope.
struct File {
  explicit File(int descriptor) : descriptor(descriptor) {}
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
  const int descriptor;
};

}  // namespace

absl::StatusOr<TunDevice> TunDevice::Open(const std::string& namespace_path,
                                          const std::string& name) {
  const File own(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  const File there(open(namespace_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (own.descriptor < 0) return SystemError("open this thread's network namespace");
  if (there.descriptor < 0) return SystemError(absl::StrCat("open ", namespace_path));

  if (setns(there.descriptor, CLONE_NEWNET) != 0) {
    return SystemError(absl::StrCat("enter ", namespace_path));
  }
  // The device is created in the namespace that is current when it is opened.
  TunDevice device(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ifreq request = {};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  const bool made =
      device.descriptor() >= 0 && ioctl(device.descriptor(), TUNSETIFF, &request) == 0;
  const absl::Status status =
      made ? absl::OkStatus() : SystemError(absl::StrCat("make ", name, " in ", namespace_path));
  if (setns(own.descriptor, CLONE_NEWNET) != 0) return SystemError("return to the own namespace");
  if (!status.ok()) return status;
  device.buffer_.resize(kPacketBytesMax);
  return device;
}

TunDevice::TunDevice(TunDevice&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), buffer_(std::move(other.buffer_)) {}

TunDevice::~TunDevice() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::string_view TunDevice::Read() {
  const ssize_t bytes = read(descriptor_, buffer_.data(), buffer_.size());
  return bytes <= 0 ? absl::string_view()
                    : absl::string_view(buffer_.data(), static_cast<size_t>(bytes));
}

void TunDevice::Write(absl::string_view packet) {
  // Full, or the interface is down: the packet is lost, as on a cable.
  [[maybe_unused]] const ssize_t written = write(descriptor_, packet.data(), packet.size());
}

}  // namespace covey::relay
