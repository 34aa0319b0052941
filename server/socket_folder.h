// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace covey::server {

// A new folder for sockets of the ipc transport, which only this user may enter. Removed with its
// sockets when the object is destroyed. Actor-confined.
class SocketFolder {
 public:
  // INTERNAL: the system refuses; the message says why.
  static absl::StatusOr<SocketFolder> Create();

  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::string& path() const { return path_; }

 private:
  explicit SocketFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty = moved from
};

}  // namespace covey::server
