// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/certificate.h"
#include "common/security/private_key.h"

namespace covey {

// What a new certificate says, but for its key, its serial and its signature.
struct CertificateContent {
  // By OpenSSL's number, in OpenSSL's notation: {NID_key_usage, "critical,digitalSignature"}. Only
  // from our own constants and checked identities, never from outside: the notation has escapes.
  struct Extension {
    int kind;
    std::string value;
  };

  std::string name;  // of the subject, at most 64 bytes; for people
  absl::Time not_before;
  absl::Time not_after;
  std::vector<Extension> extensions;
};

// The authority that signs a certificate. Where it has no certificate of its own, the new one is
// self-signed.
struct Issuer {
  const PrivateKey& key;
  const Certificate* certificate = nullptr;
};

// A certificate of `key`, with a random serial of 127 bits. INTERNAL: OpenSSL failed.
absl::StatusOr<Certificate> Sign(const CertificateContent& content, const PrivateKey& key,
                                 const Issuer& issuer);

}  // namespace covey
