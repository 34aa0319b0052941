// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/security/identity.h"

namespace grpc {
class AuthContext;
}  // namespace grpc

namespace covey::scheduler {

// Whose certificates the connections of a secured scheduler have. gRPC checks a certificate when a
// connection is made, and an open connection outlives it; so each call asks here, too. Thread-safe.
class Callers {
 public:
  // Certificates that are remembered, so that they are parsed once.
  static constexpr size_t kRememberedMax = 4096;

  // The identity of the caller behind `context`, which does not change while its certificate is
  // valid. UNAUTHENTICATED: it has shown none, or one that does not name one identity, or has
  // expired since.
  absl::StatusOr<std::shared_ptr<const Identity>> Find(const grpc::AuthContext& context,
                                                       absl::Time now);

 private:
  struct Entry {
    std::shared_ptr<const Identity> identity;
    absl::Time not_after;
  };

  static absl::StatusOr<Entry> Read(const grpc::AuthContext& context, const std::string& text);

  Mutex mutex_;
  // By the text of the certificate.
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey::scheduler
