// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
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
  // How often it looks whether certificates were revoked.
  static constexpr absl::Duration kLookEvery = absl::Seconds(1);

  using Serials = absl::flat_hash_set<std::string>;
  // The certificates that are refused: those that the file `revoked` in the folder of a
  // scheduler's credentials names (IssuedRecord); none where there is no such file.
  // FAILED_PRECONDITION: it is damaged.
  static absl::StatusOr<Serials> ReadRevoked(const std::string& folder);

  // `folder`: of this scheduler's credentials. When its list is damaged or gone later, the one
  // before stays in force, and that is logged.
  explicit Callers(std::string folder) : folder_(std::move(folder)) {}

  // The identity of the caller behind `context`, which does not change while its certificate is
  // valid. UNAUTHENTICATED: it has shown none, or one that does not name one identity, has
  // expired since, or was revoked; logged, at most once a second. Blocks on the disk once per
  // kLookEvery.
  absl::StatusOr<std::shared_ptr<const Identity>> Find(const grpc::AuthContext& context,
                                                       absl::Time now);
  // Calls that it has refused so far.
  uint64_t refused() const;

 private:
  struct Entry {
    std::shared_ptr<const Identity> identity;
    std::string serial;
    absl::Time not_after;
  };

  static absl::StatusOr<Entry> Read(const grpc::AuthContext& context, const std::string& text);

  void LookForRevoked(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<const Identity>> Check(const grpc::AuthContext& context,
                                                        absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  mutable Mutex mutex_;
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time next_log_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_look_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  Serials revoked_ ABSL_GUARDED_BY(mutex_);  // by serial
  // By the text of the certificate.
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey::scheduler
