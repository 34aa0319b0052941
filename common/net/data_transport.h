// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"

namespace covey {

// How tensors travel between processes, as users choose it by name:
//   auto  shared memory between processes of one host, TCP between hosts
//   tcp   TCP
//   ipc   Unix sockets; all processes are on one host
inline constexpr absl::string_view kDataTransportNames = "auto, tcp or ipc";
inline bool IsDataTransport(absl::string_view name) {
  return name == "auto" || name == "tcp" || name == "ipc";
}

}  // namespace covey
