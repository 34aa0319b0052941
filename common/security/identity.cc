// SPDX-License-Identifier: Apache-2.0
#include "common/security/identity.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/edit_distance.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

constexpr absl::string_view kScheme = "spiffe://";
constexpr absl::string_view kForm = "spiffe://TRUST-DOMAIN/job/JOB/role/ROLE[/rank/N]";
constexpr size_t kShownBytesMax = 128;

// Bytes from outside, fit for a log.
std::string Quoted(absl::string_view text) {
  const bool is_cut = text.size() > kShownBytesMax;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kShownBytesMax)), is_cut ? "...'" : "'");
}

bool IsPathCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
}

bool IsTrustDomainCharacter(char c) { return IsPathCharacter(c) && !absl::ascii_isupper(c); }

bool HasRank(IdentityRole role) {
  return role == IdentityRole::kServer || role == IdentityRole::kWorker;
}

bool MayBeOfEveryJob(IdentityRole role) {
  return role == IdentityRole::kViewer || role == IdentityRole::kAdmin;
}

absl::Status CheckJob(absl::string_view job) {
  const bool is_short = !job.empty() && job.size() <= kIdentityJobBytesMax;
  if (is_short && job != "." && job != ".." &&
      std::all_of(job.begin(), job.end(), IsPathCharacter)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the job ", Quoted(job), " cannot stand in a certificate; name the job with 1 to ",
      kIdentityJobBytesMax, " letters, digits, '.', '-' and '_'"));
}

// Digits without a leading zero, so that a rank has one spelling.
std::optional<uint32_t> ParseRank(absl::string_view text) {
  uint32_t rank = 0;
  const bool is_number = absl::SimpleAtoi(text, &rank);
  return is_number && absl::StrCat(rank) == text ? std::optional(rank) : std::nullopt;
}

}  // namespace

absl::string_view NameOf(IdentityRole role) {
  switch (role) {
    case IdentityRole::kScheduler:
      return "scheduler";
    case IdentityRole::kServer:
      return "server";
    case IdentityRole::kWorker:
      return "worker";
    case IdentityRole::kClient:
      return "client";
    case IdentityRole::kViewer:
      return "viewer";
    case IdentityRole::kAdmin:
      return "admin";
  }
  COVEY_CHECK(false);
}

absl::StatusOr<IdentityRole> ParseIdentityRole(absl::string_view text) {
  for (const IdentityRole role : kIdentityRoles) {
    if (NameOf(role) == text) return role;
  }
  const absl::string_view shown = text.substr(0, kShownBytesMax);
  const IdentityRole nearest =
      *std::min_element(std::begin(kIdentityRoles), std::end(kIdentityRoles),
                        [shown](IdentityRole a, IdentityRole b) {
                          return EditDistance(NameOf(a), shown) < EditDistance(NameOf(b), shown);
                        });
  return absl::InvalidArgumentError(
      absl::StrCat("no role; did you mean ", NameOf(nearest),
                   "? The roles are scheduler, server, worker, client, viewer and admin"));
}

bool MayBe(const Identity& holder, IdentityRole role, int64_t rank) {
  if (holder.role == IdentityRole::kWorker && role == IdentityRole::kClient) return true;
  return holder.role == role && (!holder.rank.has_value() || rank < 0 || *holder.rank == rank);
}

absl::Status CheckTrustDomain(absl::string_view trust_domain) {
  if (!trust_domain.empty() && trust_domain.size() <= kTrustDomainBytesMax &&
      std::all_of(trust_domain.begin(), trust_domain.end(), IsTrustDomainCharacter)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the trust domain ", Quoted(trust_domain), " is not 1 to ", kTrustDomainBytesMax,
                   " lower-case letters, digits, '.', '-' and '_'; write one, as in "
                   "training.example.org"));
}

absl::Status CheckIdentity(const Identity& identity) {
  COVEY_RETURN_IF_ERROR(CheckTrustDomain(identity.trust_domain));
  const absl::string_view role = NameOf(identity.role);
  if (identity.job.has_value()) {
    COVEY_RETURN_IF_ERROR(CheckJob(*identity.job));
  } else if (!MayBeOfEveryJob(identity.role)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a ", role, " belongs to one job; name it. Only viewers and admins may be of every job"));
  }
  if (identity.rank.has_value() && !HasRank(identity.role)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the role ", role, " has no ranks; leave the rank away. Servers and workers have them"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Identity> ParseIdentity(absl::string_view uri) {
  const absl::Status malformed = absl::InvalidArgumentError(
      absl::StrCat("the URI ", Quoted(uri), " is not of the form ", kForm));
  if (uri.size() > kIdentityUriBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the URI ", Quoted(uri), " has ", uri.size(),
                                                   " bytes; at most ", kIdentityUriBytesMax,
                                                   " are allowed"));
  }
  absl::string_view rest = uri;
  if (!absl::ConsumePrefix(&rest, kScheme)) return malformed;
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  Identity identity{.trust_domain = std::string(parts[0])};
  size_t next = 1;
  // The value that stands after `key`, when that is next.
  const auto take = [&parts, &next](absl::string_view key) -> std::optional<absl::string_view> {
    if (next + 1 >= parts.size() || parts[next] != key) return std::nullopt;
    next += 2;
    return parts[next - 1];
  };
  if (const auto job = take("job")) identity.job = std::string(*job);
  const auto role = take("role");
  if (!role.has_value()) return malformed;
  const auto known = ParseIdentityRole(*role);
  if (!known.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the URI ", Quoted(uri), ": ", Quoted(*role),
                                                   " is ", known.status().message()));
  }
  identity.role = *known;
  if (const auto rank = take("rank")) {
    identity.rank = ParseRank(*rank);
    if (!identity.rank.has_value()) return malformed;
  }
  if (next != parts.size()) return malformed;
  COVEY_RETURN_IF_ERROR(CheckIdentity(identity));
  return identity;
}

std::string UriOf(const Identity& identity) {
  COVEY_CHECK(CheckIdentity(identity).ok());
  std::string uri = absl::StrCat(kScheme, identity.trust_domain);
  if (identity.job.has_value()) absl::StrAppend(&uri, "/job/", *identity.job);
  absl::StrAppend(&uri, "/role/", NameOf(identity.role));
  if (identity.rank.has_value()) absl::StrAppend(&uri, "/rank/", *identity.rank);
  return uri;
}

std::string Describe(const Identity& identity) {
  return absl::StrCat(
      NameOf(identity.role), identity.rank.has_value() ? absl::StrCat(" ", *identity.rank) : "",
      identity.job.has_value() ? absl::StrCat(" of job ", *identity.job) : " of every job");
}

}  // namespace covey
