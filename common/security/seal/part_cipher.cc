// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/part_cipher.h"

#include <openssl/err.h>

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace covey {
namespace {

constexpr size_t kBytesMax = std::numeric_limits<int>::max();

}  // namespace

absl::StatusOr<PartCipher> PartCipher::Make(Use use, const Secret& key_and_salt) {
  COVEY_CHECK(key_and_salt.view().size() == kKeyBytes + kSaltBytes);
  const auto* key = reinterpret_cast<const uint8_t*>(key_and_salt.view().data());
  PartCipher cipher;
  std::copy_n(key + kKeyBytes, kSaltBytes, cipher.salt_.begin());
  cipher.context_.reset(EVP_CIPHER_CTX_new());
  // The default size of a nonce is 12 bytes.
  if (cipher.context_ == nullptr ||
      EVP_CipherInit_ex(cipher.context_.get(), EVP_aes_128_gcm(), nullptr, key, nullptr,
                        use == Use::kSeal ? 1 : 0) != 1) {
    return OpenSslFailure("setting the key of a cipher");
  }
  return cipher;
}

std::array<uint8_t, PartCipher::kSaltBytes> PartCipher::NonceOf(const Number& number) const {
  std::array<uint8_t, kSaltBytes> nonce = salt_;
  for (size_t i = 0; i < 8; ++i) nonce[i] ^= static_cast<uint8_t>(number.message >> (8 * i));
  for (size_t i = 0; i < 4; ++i) nonce[8 + i] ^= static_cast<uint8_t>(number.part >> (8 * i));
  return nonce;
}

// OpenSSL takes a null pointer in place of output for additional bytes, and nothing at all for
// nothing.
bool PartCipher::Update(std::span<const uint8_t> additional, std::span<const uint8_t> from,
                        uint8_t* to) {
  if (additional.size() > kBytesMax || from.size() > kBytesMax) return false;
  int written = 0;
  if (!additional.empty() && EVP_CipherUpdate(context_.get(), nullptr, &written, additional.data(),
                                              static_cast<int>(additional.size())) != 1) {
    return false;
  }
  if (from.empty()) return true;
  return EVP_CipherUpdate(context_.get(), to, &written, from.data(),
                          static_cast<int>(from.size())) == 1 &&
         static_cast<size_t>(written) == from.size();
}

bool PartCipher::Seal(const Number& number, std::span<const uint8_t> additional,
                      std::span<const uint8_t> plain, uint8_t* sealed,
                      std::span<uint8_t, kTagBytes> tag) {
  const auto nonce = NonceOf(number);
  std::array<uint8_t, kTagBytes> rest;
  int written = 0;
  const bool done =
      EVP_EncryptInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce.data()) == 1 &&
      Update(additional, plain, sealed) &&
      EVP_EncryptFinal_ex(context_.get(), rest.data(), &written) == 1 &&
      EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(kTagBytes),
                          tag.data()) == 1;
  if (!done) ERR_clear_error();
  return done;
}

bool PartCipher::Open(const Number& number, std::span<const uint8_t> additional,
                      std::span<const uint8_t> sealed, std::span<const uint8_t, kTagBytes> tag,
                      uint8_t* plain) {
  const auto nonce = NonceOf(number);
  std::array<uint8_t, kTagBytes> expected;
  std::copy(tag.begin(), tag.end(), expected.begin());
  std::array<uint8_t, kTagBytes> rest;
  int written = 0;
  const bool done =
      EVP_DecryptInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce.data()) == 1 &&
      EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(kTagBytes),
                          expected.data()) == 1 &&
      Update(additional, sealed, plain) &&
      EVP_DecryptFinal_ex(context_.get(), rest.data(), &written) == 1;
  if (!done) ERR_clear_error();
  return done;
}

}  // namespace covey
