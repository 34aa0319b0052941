// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/hkdf.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>

#include <array>
#include <memory>

#include "common/security/openssl.h"

namespace covey {
namespace {

using KdfPointer = std::unique_ptr<EVP_KDF, OpenSslRelease<EVP_KDF_free>>;
using KdfContextPointer = std::unique_ptr<EVP_KDF_CTX, OpenSslRelease<EVP_KDF_CTX_free>>;

OSSL_PARAM Octets(const char* name, const void* bytes, size_t size) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<void*>(bytes), size);
}

// `name` and `bytes` are those of the parameter besides the key: the salt or the info.
absl::StatusOr<Secret> Derive(int mode, const Secret& key, const char* name,
                              std::span<const uint8_t> bytes, size_t size) {
  char digest[] = "SHA256";
  const std::array<OSSL_PARAM, 5> parameters = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      Octets(OSSL_KDF_PARAM_KEY, key.view().data(), key.view().size()),
      bytes.empty() ? OSSL_PARAM_construct_end() : Octets(name, bytes.data(), bytes.size()),
      OSSL_PARAM_construct_end()};
  const KdfPointer hkdf(EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr));
  const KdfContextPointer context(EVP_KDF_CTX_new(hkdf.get()));
  Secret made(size);
  if (context == nullptr ||
      EVP_KDF_derive(context.get(), reinterpret_cast<uint8_t*>(made.bytes().data()), size,
                     parameters.data()) != 1) {
    return OpenSslFailure("deriving a key");
  }
  return made;
}

}  // namespace

absl::StatusOr<Secret> HkdfExtract(std::span<const uint8_t> salt, const Secret& secret) {
  return Derive(EVP_KDF_HKDF_MODE_EXTRACT_ONLY, secret, OSSL_KDF_PARAM_SALT, salt, kHkdfKeyBytes);
}

absl::StatusOr<Secret> HkdfExpand(const Secret& key, std::span<const uint8_t> info, size_t size) {
  return Derive(EVP_KDF_HKDF_MODE_EXPAND_ONLY, key, OSSL_KDF_PARAM_INFO, info, size);
}

}  // namespace covey
