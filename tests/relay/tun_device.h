// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey::relay {

// A network interface of one namespace whose other end is this process: the process reads the
// packets that the namespace sends, and its writes arrive in the namespace. Not copyable; the
// destructor removes the interface.
class TunDevice {
 public:
  // Opens `name` in the network namespace that `namespace_path` names. Thread: returns to the
  // caller's namespace. PERMISSION_DENIED, UNAVAILABLE: the system's error.
  static absl::StatusOr<TunDevice> Open(const std::string& namespace_path, const std::string& name);

  TunDevice(TunDevice&& other) noexcept;
  TunDevice& operator=(TunDevice&&) = delete;
  ~TunDevice();

  // The next packet; empty = none at the moment.
  absl::string_view Read();
  // A packet that does not fit is dropped.
  void Write(absl::string_view packet);
  int descriptor() const { return descriptor_; }

 private:
  explicit TunDevice(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  std::string buffer_;
};

}  // namespace covey::relay
