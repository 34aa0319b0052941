// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/limits.h"

namespace covey {

// What a certificate says of its holder. Processes are schedulers, servers, workers and clients;
// people and tools are viewers and admins.
enum class IdentityRole { kScheduler, kServer, kWorker, kClient, kViewer, kAdmin };

inline constexpr IdentityRole kIdentityRoles[] = {IdentityRole::kScheduler, IdentityRole::kServer,
                                                  IdentityRole::kWorker,    IdentityRole::kClient,
                                                  IdentityRole::kViewer,    IdentityRole::kAdmin};

// The longest URI, and the longest trust domain in it, by SPIFFE's rules. A job's name is as long
// as that of any job.
inline constexpr size_t kIdentityUriBytesMax = 2048;
inline constexpr size_t kTrustDomainBytesMax = 255;
inline constexpr size_t kIdentityJobBytesMax = kNameBytesMax;

// The identity of a process or a person, as the one URI in the subject alternative names of an
// X.509 certificate, in the form of SPIFFE:
//
//   spiffe://TRUST-DOMAIN/job/JOB/role/ROLE[/rank/N]
//   spiffe://TRUST-DOMAIN/role/ROLE                     an admin or viewer of every job
//
// TRUST-DOMAIN: 1 to 255 of a-z 0-9 . - _ and JOB: 1 to 256 of A-Z a-z 0-9 . - _, but not "." and
// "..". An identity has one URI, and a URI one identity. A value; all functions are pure.
struct Identity {
  std::string trust_domain;
  // Absent = every job.
  std::optional<std::string> job;
  IdentityRole role = IdentityRole::kViewer;
  // Of a server or worker. Absent = any rank.
  std::optional<uint32_t> rank;

  friend bool operator==(const Identity&, const Identity&) = default;
};

// "scheduler", "server", "worker", "client", "viewer", "admin".
absl::string_view NameOf(IdentityRole role);
// INVALID_ARGUMENT: it ends the sentence "'x' is", and names the nearest role.
absl::StatusOr<IdentityRole> ParseIdentityRole(absl::string_view text);

// Whether the holder may be a process of `role` and `rank` (-1 = any): its role is this one, and
// its rank, too, if it has one. A worker may also be a client, since programs with a worker read
// and write tables by clients of their own.
bool MayBe(const Identity& holder, IdentityRole role, int64_t rank);

// INVALID_ARGUMENT: the rules of TRUST-DOMAIN.
absl::Status CheckTrustDomain(absl::string_view trust_domain);
// INVALID_ARGUMENT: the rules above; which field, why, and what to write instead.
absl::Status CheckIdentity(const Identity& identity);

// INVALID_ARGUMENT: `uri` is no identity. It may be any bytes.
absl::StatusOr<Identity> ParseIdentity(absl::string_view uri);
// Precondition: CheckIdentity.
std::string UriOf(const Identity& identity);
// For people: "worker 3 of job mnist", "viewer of every job".
std::string Describe(const Identity& identity);

}  // namespace covey
