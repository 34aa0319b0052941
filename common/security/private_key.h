// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/security/openssl.h"
#include "common/security/secret.h"

namespace covey {

// A private key. Immutable; OpenSSL overwrites it when it goes.
class PrivateKey {
 public:
  // On the curve P-256, from OpenSSL's generator of random numbers.
  static absl::StatusOr<PrivateKey> Make();
  // From PEM of any kind that OpenSSL reads. INVALID_ARGUMENT: there is none in `text`, or it is
  // encrypted; nobody is asked for a passphrase.
  static absl::StatusOr<PrivateKey> Parse(absl::string_view text);

  // As PEM (PKCS #8).
  absl::StatusOr<Secret> Text() const;
  // OpenSSL does not write `const`.
  EVP_PKEY* openssl() const { return key_.get(); }

 private:
  explicit PrivateKey(KeyPointer key) : key_(std::move(key)) {}

  KeyPointer key_;
};

}  // namespace covey
