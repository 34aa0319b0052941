// SPDX-License-Identifier: Apache-2.0
#include "common/security/signing_root.h"

#include <openssl/rand.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/security/certificate_content.h"

namespace covey {
namespace {

// A name of the root that tells it from the one before; the trust domain may be too long for it.
absl::StatusOr<std::string> RootName() {
  uint32_t number;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof(number)) != 1) {
    return OpenSslFailure("making a certificate");
  }
  return absl::StrCat("covey root ", absl::Hex(number, absl::kZeroPad8));
}

}  // namespace

absl::StatusOr<SigningRoot> SigningRoot::Make(const std::string& trust_domain, absl::Time now,
                                              absl::Duration lifetime) {
  COVEY_RETURN_IF_ERROR(CheckTrustDomain(trust_domain));
  COVEY_ASSIGN_OR_RETURN(PrivateKey key, PrivateKey::Make());
  COVEY_ASSIGN_OR_RETURN(const std::string name, RootName());
  const CertificateContent content{
      .name = name,
      .not_before = now - kCertificateBackdating,
      .not_after = now + lifetime,
      .extensions = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                     {NID_key_usage, "critical,keyCertSign,cRLSign"},
                     {NID_subject_key_identifier, "hash"},
                     {NID_subject_alt_name, absl::StrCat("URI:spiffe://", trust_domain)}}};
  COVEY_ASSIGN_OR_RETURN(Certificate certificate, Sign(content, key, {.key = key}));
  return SigningRoot(std::move(key), std::move(certificate), trust_domain);
}

absl::StatusOr<SigningRoot> SigningRoot::Load(PrivateKey key, Certificate certificate) {
  if (!certificate.IsAuthority()) {
    return absl::InvalidArgumentError("the certificate is not that of an authority");
  }
  if (!certificate.Fits(key)) {
    return absl::InvalidArgumentError("the private key is not that of the certificate");
  }
  COVEY_ASSIGN_OR_RETURN(std::string trust_domain, certificate.FindTrustDomain());
  return SigningRoot(std::move(key), std::move(certificate), std::move(trust_domain));
}

absl::StatusOr<SigningRoot::Issued> SigningRoot::Issue(const Identity& identity, absl::Time now,
                                                       absl::Duration lifetime) const {
  COVEY_RETURN_IF_ERROR(CheckIdentity(identity));
  if (identity.trust_domain != trust_domain_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the trust domain is ", trust_domain_, ", not ", identity.trust_domain));
  }
  if (lifetime <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("a certificate must be valid for some time");
  }
  if (now + lifetime > certificate_.NotAfter()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate would be valid until ", FormatUtc(now + lifetime),
                     ", but its root only until ", FormatUtc(certificate_.NotAfter())));
  }
  const bool accepts = identity.role == IdentityRole::kScheduler;
  const std::string rank = identity.rank.has_value() ? absl::StrCat(" ", *identity.rank) : "";
  COVEY_ASSIGN_OR_RETURN(PrivateKey key, PrivateKey::Make());
  const CertificateContent content{
      .name = absl::StrCat(NameOf(identity.role), rank),
      .not_before = now - kCertificateBackdating,
      .not_after = now + lifetime,
      .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                     {NID_key_usage, "critical,digitalSignature"},
                     {NID_ext_key_usage, accepts ? "serverAuth,clientAuth" : "clientAuth"},
                     {NID_subject_key_identifier, "hash"},
                     {NID_authority_key_identifier, "keyid:always"},
                     {NID_subject_alt_name, absl::StrCat("URI:", UriOf(identity))}}};
  COVEY_ASSIGN_OR_RETURN(Certificate certificate,
                         Sign(content, key, {.key = key_, .certificate = &certificate_}));
  return Issued{.key = std::move(key), .certificate = std::move(certificate)};
}

}  // namespace covey
