// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/security/certificate.h"
#include "common/security/identity.h"
#include "common/security/private_key.h"

namespace covey {

// Certificates are valid from this duration before they are made, since clocks differ.
inline constexpr absl::Duration kCertificateBackdating = absl::Minutes(5);

// A root certificate with its private key: it signs the certificates of nodes, and no other
// authorities. Immutable. Serials and keys are random, from OpenSSL; everything else depends on the
// arguments.
class SigningRoot {
 public:
  struct Issued {
    PrivateKey key;
    Certificate certificate;
  };

  // A new one, signed by itself. INVALID_ARGUMENT: CheckTrustDomain.
  static absl::StatusOr<SigningRoot> Make(const std::string& trust_domain, absl::Time now,
                                          absl::Duration lifetime);
  // INVALID_ARGUMENT: `certificate` is not the root of a trust domain, or `key` does not fit.
  static absl::StatusOr<SigningRoot> Load(PrivateKey key, Certificate certificate);

  // A certificate with a new key. It may open connections; that of a scheduler may also accept
  // them. INVALID_ARGUMENT: CheckIdentity, or another trust domain. FAILED_PRECONDITION: at the end
  // of `lifetime` the root is no longer valid.
  absl::StatusOr<Issued> Issue(const Identity& identity, absl::Time now,
                               absl::Duration lifetime) const;

  const PrivateKey& key() const { return key_; }
  const Certificate& certificate() const { return certificate_; }
  const std::string& trust_domain() const { return trust_domain_; }

 private:
  SigningRoot(PrivateKey key, Certificate certificate, std::string trust_domain)
      : key_(std::move(key)),
        certificate_(std::move(certificate)),
        trust_domain_(std::move(trust_domain)) {}

  PrivateKey key_;
  Certificate certificate_;
  std::string trust_domain_;
};

}  // namespace covey
