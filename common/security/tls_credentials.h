// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/identity.h"

namespace grpc {
class AuthContext;
class ChannelCredentials;
class ServerCredentials;
namespace experimental {
class CertificateProviderInterface;
}  // namespace experimental
}  // namespace grpc

namespace covey {

// A process's credentials for gRPC over mutual TLS, from the folder of NodeCredentials. When the
// folder is replaced, connections that are made a second later use the new files; open ones go on.
// One per process, since a thread watches the folder. Thread-safe. What it has given outlives it.
class TlsCredentials {
 public:
  // FAILED_PRECONDITION: as LoadNodeCredentials.
  static absl::StatusOr<TlsCredentials> Load(const std::string& folder, absl::Time now);

  // For a scheduler's port: it admits holders of certificates that a root in ca.crt vouches for and
  // that name one identity of the same trust domain. What each may call is CheckRight's affair.
  std::shared_ptr<grpc::ServerCredentials> ForServer() const;
  // For channels: they connect to schedulers of the same trust domain and of `job` (absent = of any
  // job), at whatever address.
  std::shared_ptr<grpc::ChannelCredentials> ForSchedulersOf(std::optional<std::string> job) const;

  // When it was loaded. It does not change: a folder is replaced for the same identity only.
  const Identity& identity() const { return identity_; }
  const std::string& folder() const { return folder_; }
  // The rank that a process of `role` asks for: the certificate's, if it is of this role and names
  // one, or else `rank`. So the clients of a worker's program do not ask for the worker's rank.
  int32_t RankOr(IdentityRole role, int32_t rank) const;
  // For an error about a scheduler that does not reply: what is wrong with the folder now, or that
  // the scheduler may have refused the certificate. gRPC does not say why it has no connection.
  // Blocks on the disk.
  std::string WhyRefused(absl::Time now) const;

 private:
  using Provider = std::shared_ptr<grpc::experimental::CertificateProviderInterface>;

  TlsCredentials(std::string folder, Identity identity, Provider provider)
      : folder_(std::move(folder)),
        identity_(std::move(identity)),
        provider_(std::move(provider)) {}

  std::string folder_;
  Identity identity_;
  Provider provider_;
};

// What a process is, as its configuration says.
struct ProcessPlace {
  IdentityRole role = IdentityRole::kServer;
  std::string job;
  int64_t rank = -1;  // -1 = any
};

// The credentials of such a process; null where `folder` is empty. FAILED_PRECONDITION: as
// LoadNodeCredentials, or they are those of another role, job or rank.
absl::StatusOr<std::shared_ptr<const TlsCredentials>> LoadTlsCredentials(const std::string& folder,
                                                                         const ProcessPlace& place,
                                                                         absl::Time now);

// `status`, if it is UNAVAILABLE, with what WhyRefused says of `credentials`; null = none.
absl::Status WithReason(const absl::Status& status, const TlsCredentials* credentials,
                        absl::Time now);

// The identity of a call's client, from ServerContext::auth_context. UNAUTHENTICATED: the
// connection has no certificate, or its certificate does not name one identity. Pure.
absl::StatusOr<Identity> CallerOf(const grpc::AuthContext& context);

}  // namespace covey
