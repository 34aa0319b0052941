// SPDX-License-Identifier: Apache-2.0
#include "common/security/certificate_content.h"

#include <openssl/rand.h>

namespace covey {
namespace {

constexpr int kSerialBytes = 16;

bool SetSerial(X509* x509) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, kSerialBytes) != 1) return false;
  // Never negative, and always of the same length.
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);
  const std::unique_ptr<BIGNUM, OpenSslRelease<BN_free>> number(
      BN_bin2bn(bytes, kSerialBytes, nullptr));
  return number != nullptr && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(x509));
}

bool SetName(X509_NAME* name, const std::string& text) {
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

bool AddExtension(X509* x509, X509* issuer, const CertificateContent::Extension& extension) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, x509, nullptr, nullptr, 0);
  X509V3_set_ctx_nodb(&context);
  const ExtensionPointer made(
      X509V3_EXT_nconf_nid(nullptr, &context, extension.kind, extension.value.c_str()));
  return made != nullptr && X509_add_ext(x509, made.get(), -1) == 1;
}

}  // namespace

absl::StatusOr<Certificate> Sign(const CertificateContent& content, const PrivateKey& key,
                                 const Issuer& issuer) {
  CertificatePointer x509(X509_new());
  X509* const subject = x509.get();
  X509* const signer = issuer.certificate == nullptr ? subject : issuer.certificate->openssl();
  const bool is_made =
      subject != nullptr && X509_set_version(subject, X509_VERSION_3) == 1 && SetSerial(subject) &&
      SetName(X509_get_subject_name(subject), content.name) &&
      X509_set_issuer_name(subject, X509_get_subject_name(signer)) == 1 &&
      ASN1_TIME_set(X509_getm_notBefore(subject), absl::ToTimeT(content.not_before)) != nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(subject), absl::ToTimeT(content.not_after)) != nullptr &&
      X509_set_pubkey(subject, key.openssl()) == 1;
  if (!is_made) return OpenSslFailure("making a certificate");
  for (const CertificateContent::Extension& extension : content.extensions) {
    if (!AddExtension(subject, signer, extension)) return OpenSslFailure("making a certificate");
  }
  if (X509_sign(subject, issuer.key.openssl(), EVP_sha256()) == 0) {
    return OpenSslFailure("signing a certificate");
  }
  return Certificate(std::move(x509));
}

}  // namespace covey
