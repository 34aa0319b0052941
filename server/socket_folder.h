// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace covey::server {

// A folder of our own, which only this user may enter, for sockets of the ipc transport. Removed
// with the sockets in it when it goes out of scope. Actor-confined.
class SocketFolder {
 public:
  // INTERNAL: the system refuses; says why.
  static absl::StatusOr<SocketFolder> Create();

  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::string& path() const { return path_; }

 private:
  explicit SocketFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved from
};

}  // namespace covey::server
