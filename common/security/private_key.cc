// SPDX-License-Identifier: Apache-2.0
#include "common/security/private_key.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "absl/strings/match.h"

namespace covey {

absl::StatusOr<PrivateKey> PrivateKey::Make() {
  KeyPointer key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslFailure("making a private key");
  return PrivateKey(std::move(key));
}

absl::StatusOr<PrivateKey> PrivateKey::Parse(absl::string_view text) {
  const BioPointer reader = ReaderOf(text);
  if (reader == nullptr) return OpenSslFailure("reading a private key");
  KeyPointer key(PEM_read_bio_PrivateKey(reader.get(), nullptr, RefusePassphrase, nullptr));
  if (key != nullptr) return PrivateKey(std::move(key));
  ERR_clear_error();
  if (absl::StrContains(text, "ENCRYPTED")) {
    return absl::InvalidArgumentError(
        "the private key is encrypted; write it without a passphrase, and let nobody else read the "
        "file");
  }
  return absl::InvalidArgumentError("there is no private key in PEM form");
}

absl::StatusOr<Secret> PrivateKey::Text() const {
  const BioPointer writer = MakeWriter();
  if (writer == nullptr || PEM_write_bio_PKCS8PrivateKey(writer.get(), key_.get(), nullptr, nullptr,
                                                         0, nullptr, nullptr) != 1) {
    return OpenSslFailure("writing a private key");
  }
  return SecretIn(*writer);
}

}  // namespace covey
