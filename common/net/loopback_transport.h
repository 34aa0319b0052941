// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "common/base/mutex.h"
#include "common/cluster/limits.h"
#include "common/net/transport.h"

namespace covey {

class LoopbackMailbox;

// Connects the loops of one process without sockets: for tests, and for loops that send only
// through ports and need a place to wait (the scheduler's).
//
// Thread-safe; outlives its transports. Messages are handed over unchanged, with shared frames.
class LoopbackHub {
 public:
  struct Options {
    size_t queue_messages = kTransportQueueMessagesMax;
  };
  LoopbackHub() : LoopbackHub(Options{}) {}
  explicit LoopbackHub(const Options& options) : options_(options) {}

  // Listens at "loopback://NAME", or nowhere when `name` is empty. Precondition: the name is free;
  // it becomes free again when its transport is destroyed.
  std::unique_ptr<Transport> MakeTransport(absl::string_view name);

 private:
  friend class LoopbackTransport;

  uint64_t Join(const std::string& endpoint, std::shared_ptr<LoopbackMailbox> mailbox);
  void Leave(const std::string& endpoint, uint64_t connection);
  // Null when no transport listens there.
  std::shared_ptr<LoopbackMailbox> AtEndpoint(const std::string& endpoint);
  std::shared_ptr<LoopbackMailbox> AtConnection(uint64_t connection);

  const Options options_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<LoopbackMailbox>> endpoints_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<LoopbackMailbox>> connections_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_connection_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace covey
