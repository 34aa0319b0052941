// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey::relay {

// A network interface of one namespace whose other end is this process: it reads what the namespace
// sends, and what it writes arrives there. Not copied; closes, and so removes the interface, at its
// end.
class TunDevice {
 public:
  // `name` in the network namespace that `namespace_path` names. Thread: returns to the caller's
  // namespace. PERMISSION_DENIED, UNAVAILABLE: what the system refused.
  static absl::StatusOr<TunDevice> Open(const std::string& namespace_path, const std::string& name);

  TunDevice(TunDevice&& other) noexcept;
  TunDevice& operator=(TunDevice&&) = delete;
  ~TunDevice();

  // Empty: nothing to be read now.
  absl::string_view Read();
  // A packet that does not fit any more is dropped.
  void Write(absl::string_view packet);
  int descriptor() const { return descriptor_; }

 private:
  explicit TunDevice(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  std::string buffer_;
};

}  // namespace covey::relay
