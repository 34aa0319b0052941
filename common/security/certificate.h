// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/security/identity.h"
#include "common/security/openssl.h"
#include "common/security/private_key.h"

namespace covey {

// Certificates of one file: a node's with those of authorities in between, or the trusted roots.
inline constexpr size_t kCertificatesPerFileMax = 16;

// 2026-11-26T14:00:00Z, in texts and in the record of certificates. Pure.
inline constexpr char kUtcFormat[] = "%Y-%m-%dT%H:%M:%SZ";
std::string FormatUtc(absl::Time time);

// An X.509 certificate, read and not yet trusted: FindChainFault says whether it is. Immutable;
// copies share it.
class Certificate {
 public:
  explicit Certificate(CertificatePointer x509) : x509_(std::move(x509)) {}
  // All of a PEM text, in its order. INVALID_ARGUMENT: there is none, there are more than
  // kCertificatesPerFileMax, or one is malformed.
  static absl::StatusOr<std::vector<Certificate>> ParseAll(absl::string_view text);

  std::string Text() const;    // as PEM
  std::string Serial() const;  // in hexadecimal, lower case
  absl::Time NotBefore() const;
  // From then on it is invalid.
  absl::Time NotAfter() const;
  bool Fits(const PrivateKey& key) const;
  // May sign other certificates.
  bool IsAuthority() const;
  // That of its one URI. INVALID_ARGUMENT: it has none, several, or one that is no identity.
  absl::StatusOr<Identity> FindIdentity() const;
  // That of a root that Covey made: its one URI is spiffe://TRUST-DOMAIN. INVALID_ARGUMENT.
  absl::StatusOr<std::string> FindTrustDomain() const;
  // FAILED_PRECONDITION: its key usage does not allow what a process of `role` does with it.
  absl::Status CheckUsage(IdentityRole role) const;

  // OpenSSL does not write `const`.
  X509* openssl() const { return x509_.get(); }

 private:
  std::shared_ptr<X509> x509_;
};

// Whether `chain[0]`, with the help of the others, leads to one of `roots`, at `now` and with keys
// of at least 112 bits of security. FAILED_PRECONDITION: the reason. Precondition: `chain` is not
// empty. Pure.
absl::Status CheckChain(std::span<const Certificate> chain, std::span<const Certificate> roots,
                        absl::Time now);

}  // namespace covey
