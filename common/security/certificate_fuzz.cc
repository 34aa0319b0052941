// SPDX-License-Identifier: Apache-2.0
// Certificates: one in DER, around which right PEM is made; or a PEM text.
#include "common/security/certificate.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

// As `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes` makes them: of
// worker 3 of a job, and of the authority of a trust domain. Their keys are gone.
constexpr char kWorker[] =
    "308201b53082015ba00302010202144f78d15816509c492bdba984e1ae1b6c08349727300a06082a8648ce3d0403"
    "02300c310a300806035504030c0177301e170d3236313132373130303831325a170d333631313234313030383132"
    "5a300c310a300806035504030c01773059301306072a8648ce3d020106082a8648ce3d03010703420004d08d4ce7"
    "fc23d057ee2111d86dfe6b4b5801a6f07a6a91270d9d5164a78d99d3d79bcd4f3b0a6d5167e6c5a9af5d6a8a9a02"
    "b94e281f03704609498c450c4dc5a3819a308197301d0603551d0e04160414b3efe6e64a1e32c19133e8ea99a759"
    "abb7aaa01d301f0603551d23041830168014b3efe6e64a1e32c19133e8ea99a759abb7aaa01d300f0603551d1301"
    "01ff040530030101ff30340603551d11042d302b86297370696666653a2f2f612e622f6a6f622f6d6e6973742f72"
    "6f6c652f776f726b65722f72616e6b2f33300e0603551d0f0101ff040403020780300a06082a8648ce3d04030203"
    "4800304502210095c3e0a82a6215ce22c5fe334aad5b812d94faedf7584d86311d32852d6204f902202bc8d2a419"
    "e3ddd1c752dd6880f3a9e52522bbe7c63b370ecd0cf3564dc918f1";
constexpr char kAuthority[] =
    "308201873082012ca003020102021442e4241ac1c4ed78a74f57d9d96c7b2b753c92fc300a06082a8648ce3d0403"
    "02300c310a300806035504030c0172301e170d3236313132373130303831325a170d333631313234313030383132"
    "5a300c310a300806035504030c01723059301306072a8648ce3d020106082a8648ce3d03010703420004d08d4ce7"
    "fc23d057ee2111d86dfe6b4b5801a6f07a6a91270d9d5164a78d99d3d79bcd4f3b0a6d5167e6c5a9af5d6a8a9a02"
    "b94e281f03704609498c450c4dc5a36c306a301d0603551d0e04160414b3efe6e64a1e32c19133e8ea99a759abb7"
    "aaa01d301f0603551d23041830168014b3efe6e64a1e32c19133e8ea99a759abb7aaa01d300f0603551d130101ff"
    "040530030101ff30170603551d110410300e860c7370696666653a2f2f612e62300a06082a8648ce3d0403020349"
    "0030460221009d96b2a837e6463ddfb7a9fb3d1908db2c2683d231dc373c3b8e0e032e6b4c8f022100f9e038c38f"
    "2df5c30d3a1afcb1ab0c3da0d23a7c8e9e13d66d4abb18bc0c4a6e";

constexpr absl::string_view kBegin = "-----BEGIN CERTIFICATE-----\n";
constexpr absl::string_view kEnd = "-----END CERTIFICATE-----\n";
constexpr size_t kLineBytes = 64;

std::string PemOf(absl::string_view der) {
  const std::string text = absl::Base64Escape(der);
  std::string pem(kBegin);
  for (size_t at = 0; at < text.size(); at += kLineBytes) {
    absl::StrAppend(&pem, text.substr(at, kLineBytes), "\n");
  }
  return absl::StrCat(pem, kEnd);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string worker = absl::HexStringToBytes(kWorker);
  const std::string authority = absl::HexStringToBytes(kAuthority);
  return {worker, authority, absl::StrCat(PemOf(worker), PemOf(authority))};
}

bool FuzzOne(std::span<const uint8_t> input) {
  const absl::string_view bytes = FuzzText(input);
  const auto certificates =
      Certificate::ParseAll(absl::StartsWith(bytes, "-----") ? std::string(bytes) : PemOf(bytes));
  if (!certificates.ok()) {
    COVEY_CHECK(certificates.status().code() == absl::StatusCode::kInvalidArgument);
    return false;
  }
  COVEY_CHECK(!certificates->empty() && certificates->size() <= kCertificatesPerFileMax);
  for (const Certificate& certificate : *certificates) {
    COVEY_CHECK(!FormatUtc(certificate.NotBefore()).empty());
    COVEY_CHECK(!FormatUtc(certificate.NotAfter()).empty());
    certificate.IsAuthority();
    (void)certificate.FindTrustDomain();
    for (const IdentityRole role : kIdentityRoles) (void)certificate.CheckUsage(role);
    if (const auto identity = certificate.FindIdentity(); identity.ok()) {
      COVEY_CHECK(CheckIdentity(*identity).ok());
    }
    const auto again = Certificate::ParseAll(certificate.Text());
    COVEY_CHECK(again.ok() && again->size() == 1);
    COVEY_CHECK(again->front().Serial() == certificate.Serial());
  }
  (void)CheckChain(*certificates, std::span(*certificates).last(1), absl::UnixEpoch());
  return true;
}

}  // namespace covey
