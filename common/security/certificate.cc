// SPDX-License-Identifier: Apache-2.0
#include "common/security/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <ctime>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

// OpenSSL's levels: 2 = 112 bits, such as RSA with 2048, and no SHA-1.
constexpr int kSecurityLevel = 2;

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  // Only malformed bytes fail; such a certificate was never valid.
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

// The URIs among its alternative names; INVALID_ARGUMENT when there is not exactly one.
absl::StatusOr<std::string> FindOneUri(X509* x509) {
  const NamesPointer names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(x509, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      ASN1_STRING_length(uri));
  }
  ERR_clear_error();
  if (uris.size() == 1) return uris[0];
  return absl::InvalidArgumentError(
      absl::StrCat("it has ", uris.empty() ? "no URI" : absl::StrCat(uris.size(), " URIs"),
                   " among its alternative names, and must have exactly one, which says whose it "
                   "is"));
}

using StorePointer = std::unique_ptr<X509_STORE, OpenSslRelease<X509_STORE_free>>;
using ContextPointer = std::unique_ptr<X509_STORE_CTX, OpenSslRelease<X509_STORE_CTX_free>>;

// Frees the stack and not what is on it.
struct StackRelease {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using StackPointer = std::unique_ptr<STACK_OF(X509), StackRelease>;

}  // namespace

std::string FormatUtc(absl::Time time) {
  return absl::FormatTime(kUtcFormat, time, absl::UTCTimeZone());
}

absl::StatusOr<std::vector<Certificate>> Certificate::ParseAll(absl::string_view text) {
  const BioPointer reader = ReaderOf(text);
  if (reader == nullptr) return OpenSslFailure("reading certificates");
  std::vector<Certificate> certificates;
  for (;;) {
    CertificatePointer x509(PEM_read_bio_X509(reader.get(), nullptr, RefusePassphrase, nullptr));
    if (x509 == nullptr) break;
    if (certificates.size() == kCertificatesPerFileMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("there are more than ", kCertificatesPerFileMax, " certificates"));
    }
    certificates.emplace_back(std::move(x509));
  }
  const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!is_end) {
    return absl::InvalidArgumentError(
        absl::StrCat("certificate ", certificates.size() + 1, " is malformed"));
  }
  if (certificates.empty()) {
    return absl::InvalidArgumentError("there is no certificate in PEM form");
  }
  return certificates;
}

std::string Certificate::Text() const {
  const BioPointer writer = MakeWriter();
  COVEY_CHECK(writer != nullptr && PEM_write_bio_X509(writer.get(), openssl()) == 1);
  return TextIn(*writer);
}

std::string Certificate::Serial() const {
  const ASN1_INTEGER* const serial = X509_get0_serialNumber(openssl());
  std::string text;
  const absl::string_view bytes(reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial)),
                                ASN1_STRING_length(serial));
  for (const char byte : bytes) {
    absl::StrAppend(&text, absl::Hex(static_cast<uint8_t>(byte), absl::kZeroPad2));
  }
  return text;
}

absl::Time Certificate::NotBefore() const { return TimeOf(X509_get0_notBefore(openssl())); }
absl::Time Certificate::NotAfter() const { return TimeOf(X509_get0_notAfter(openssl())); }

bool Certificate::Fits(const PrivateKey& key) const {
  const bool fits = X509_check_private_key(openssl(), key.openssl()) == 1;
  ERR_clear_error();
  return fits;
}

bool Certificate::IsAuthority() const { return X509_check_ca(openssl()) == 1; }

absl::StatusOr<Identity> Certificate::FindIdentity() const {
  COVEY_ASSIGN_OR_RETURN(const std::string uri, FindOneUri(openssl()));
  return ParseIdentity(uri);
}

absl::StatusOr<std::string> Certificate::FindTrustDomain() const {
  COVEY_ASSIGN_OR_RETURN(const std::string uri, FindOneUri(openssl()));
  absl::string_view domain = uri;
  if (!absl::ConsumePrefix(&domain, "spiffe://")) {
    return absl::InvalidArgumentError("its URI names no trust domain");
  }
  COVEY_RETURN_IF_ERROR(CheckTrustDomain(domain));
  return std::string(domain);
}

absl::Status Certificate::CheckUsage(IdentityRole role) const {
  const auto refused = [](absl::string_view what) { return absl::FailedPreconditionError(what); };
  if (X509_check_ca(openssl()) != 0) {
    return refused("it is that of an authority, which only signs certificates");
  }
  if ((X509_get_key_usage(openssl()) & KU_DIGITAL_SIGNATURE) == 0) {
    return refused("its key usage lacks digitalSignature");
  }
  // UINT32_MAX without the extension, which would allow anything.
  const uint32_t usage = X509_get_extended_key_usage(openssl());
  if (usage == UINT32_MAX) return refused("it has no extended key usage");
  if ((usage & XKU_SSL_CLIENT) == 0) return refused("its extended key usage lacks clientAuth");
  if (role == IdentityRole::kScheduler && (usage & XKU_SSL_SERVER) == 0) {
    return refused("its extended key usage lacks serverAuth, which a scheduler needs");
  }
  return absl::OkStatus();
}

absl::Status CheckChain(std::span<const Certificate> chain, std::span<const Certificate> roots,
                        absl::Time now) {
  COVEY_CHECK(!chain.empty());
  const StorePointer store(X509_STORE_new());
  const ContextPointer context(X509_STORE_CTX_new());
  const StackPointer between(sk_X509_new_null());
  if (store == nullptr || context == nullptr || between == nullptr) {
    return OpenSslFailure("checking a certificate");
  }
  for (const Certificate& root : roots) {
    if (X509_STORE_add_cert(store.get(), root.openssl()) != 1) {
      return OpenSslFailure("checking a certificate");
    }
  }
  for (const Certificate& one : chain.subspan(1)) sk_X509_push(between.get(), one.openssl());
  if (X509_STORE_CTX_init(context.get(), store.get(), chain[0].openssl(), between.get()) != 1) {
    return OpenSslFailure("checking a certificate");
  }
  X509_VERIFY_PARAM* const rules = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(rules, absl::ToTimeT(now));
  X509_VERIFY_PARAM_set_auth_level(rules, kSecurityLevel);
  const bool is_trusted = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (is_trusted) return absl::OkStatus();
  return absl::FailedPreconditionError(
      X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
}

}  // namespace covey
