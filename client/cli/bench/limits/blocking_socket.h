// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace covey::cli {

// A connection between processes of this machine with the plainest calls: blocking, at most 1 MiB
// each. Tcp sends without delay; all other options stay as the system has them. Confined to one
// thread.
class BlockingSocket {
 public:
  static absl::StatusOr<BlockingSocket> ConnectTcp(uint16_t port);
  static absl::StatusOr<BlockingSocket> ConnectUnix(const std::string& path);
  // Listens on "tcp", at a port that the system chooses, or on the path of a unix socket; calls
  // `listening` with the port or the path; returns the first connection.
  static absl::StatusOr<BlockingSocket> AcceptOne(
      const std::string& endpoint,
      const std::function<absl::Status(const std::string& address)>& listening);

  BlockingSocket(BlockingSocket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  BlockingSocket& operator=(BlockingSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~BlockingSocket();

  // All of `size` bytes.
  absl::Status Send(const void* bytes, size_t size);
  absl::Status Receive(void* bytes, size_t size);
  // Receives, and reads every byte as soon as it is there: `sum` grows by what ReadThrough returns.
  absl::Status ReceiveAndRead(void* bytes, size_t size, uint64_t& sum);

 private:
  explicit BlockingSocket(int descriptor) : descriptor_(descriptor) {}

  // Calls `use(piece, bytes)` for each piece that has arrived.
  template <typename Use>
  absl::Status ReceivePieces(void* bytes, size_t size, const Use& use);

  int descriptor_;
};

// A port that no one listens on now.
absl::StatusOr<uint16_t> FreeTcpPort();

}  // namespace covey::cli
