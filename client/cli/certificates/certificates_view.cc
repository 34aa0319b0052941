// SPDX-License-Identifier: Apache-2.0
#include "client/cli/certificates/certificates_view.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/console/json_text.h"
#include "client/cli/console/text_table.h"
#include "common/security/identity.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;
using Stage = CertificateAuthority::Stage;

Json IdentityJson(const Identity& identity) {
  Json json = {{"uri", UriOf(identity)},
               {"trust_domain", identity.trust_domain},
               {"role", NameOf(identity.role)}};
  if (identity.job.has_value()) json["job"] = *identity.job;
  if (identity.rank.has_value()) json["rank"] = *identity.rank;
  return json;
}

Json RootsJson(const std::vector<Certificate>& roots) {
  Json json = Json::array();
  for (const Certificate& root : roots) {
    json.push_back({{"serial", root.Serial()}, {"not_after", FormatUtc(root.NotAfter())}});
  }
  return json;
}

absl::string_view StageName(Stage stage) {
  switch (stage) {
    case Stage::kOneRoot:
      return "one root";
    case Stage::kRootIsAdded:
      return "new root added";
    case Stage::kRootIsUsed:
      return "new root used";
  }
  return "";
}

std::string ProblemsText(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) absl::StrAppend(&text, "wrong: ", problem, "\n");
  return text;
}

}  // namespace

std::string ShowLeft(absl::Duration left) {
  if (left <= absl::ZeroDuration()) return "expired";
  const int64_t minutes = absl::ToInt64Minutes(left);
  if (minutes >= 2880) return absl::StrCat(minutes / 1440, " d ", minutes / 60 % 24, " h");
  if (minutes >= 60) return absl::StrCat(minutes / 60, " h ", minutes % 60, " min");
  return absl::StrCat(minutes, " min");
}

std::string IssuedText(std::span<const IssuedCertificate> issued) {
  std::string text;
  for (const auto& [folder, certificate] : issued) {
    const auto identity = certificate.FindIdentity();
    absl::StrAppend(&text, "issued in ", folder, ": ",
                    identity.ok() ? Describe(*identity) : "somebody", ", until ",
                    FormatUtc(certificate.NotAfter()), ", serial ", certificate.Serial(), "\n");
  }
  return text;
}

std::string IssuedJson(std::span<const IssuedCertificate> issued) {
  Json all = Json::array();
  for (const auto& [folder, certificate] : issued) {
    Json json = {{"folder", folder}};
    if (const auto identity = certificate.FindIdentity(); identity.ok()) {
      json["identity"] = IdentityJson(*identity);
    }
    json["serial"] = certificate.Serial();
    json["not_after"] = FormatUtc(certificate.NotAfter());
    all.push_back(std::move(json));
  }
  return JsonText(all.size() == 1 ? all[0] : all);
}

std::string RevokedText(const std::string& folder, const std::string& what,
                        std::span<const IssuedRecord::Entry> revoked, bool is_unknown) {
  std::string text;
  for (const IssuedRecord::Entry& entry : revoked) {
    absl::StrAppend(&text, "revoked serial ", entry.serial, ": ", Describe(entry.identity), "\n");
  }
  if (revoked.empty()) text = "revoked already\n";
  if (std::any_of(revoked.begin(), revoked.end(), [](const IssuedRecord::Entry& entry) {
        return entry.identity.role == IdentityRole::kScheduler;
      })) {
    absl::StrAppend(&text,
                    "but nodes and commands do not know of it: against a scheduler's key in other "
                    "hands, replace the root: covey certificates rotate ",
                    folder, " --step add\n");
  }
  if (is_unknown) {
    absl::StrAppend(&text, "next, so that schedulers know of it: covey certificates revoke ",
                    folder, " ", what, " SCHEDULER-DIR..., with the folders of all schedulers\n");
  }
  return text;
}

std::string RevokedJson(std::span<const IssuedRecord::Entry> revoked) {
  Json all = Json::array();
  for (const IssuedRecord::Entry& entry : revoked) {
    all.push_back({{"serial", entry.serial}, {"identity", IdentityJson(entry.identity)}});
  }
  return JsonText(all);
}

std::vector<std::string> AuthorityProblems(const std::string& folder,
                                           const CertificateAuthority& authority, absl::Time now) {
  std::vector<std::string> problems;
  for (const Certificate& root : authority.roots()) {
    if (now < root.NotAfter()) continue;
    problems.push_back(absl::StrCat(
        "root ", root.Serial(), " expired at ", FormatUtc(root.NotAfter()),
        &root == &authority.roots()[0]
            ? absl::StrCat("; make another authority in a new folder: covey certificates init")
            : absl::StrCat("; run: covey certificates rotate ", folder, " --step remove")));
  }
  return problems;
}

std::string NextStep(const std::string& folder, Stage stage) {
  switch (stage) {
    case Stage::kOneRoot:
      return "";
    case Stage::kRootIsAdded:
      return absl::StrCat(
          "give all nodes new folders, which trust both roots; then run: covey certificates "
          "rotate ",
          folder, " --step use");
    case Stage::kRootIsUsed:
      return absl::StrCat(
          "give all nodes new folders, with certificates of the new root; then run: covey "
          "certificates rotate ",
          folder, " --step remove");
  }
  return "";
}

std::string AuthorityText(const std::string& folder, const CertificateAuthority& authority,
                          absl::Time now) {
  std::string text = absl::StrCat("authority of trust domain ", authority.trust_domain(), ", ",
                                  StageName(authority.stage()), "\n\n");
  TextTable roots({"ROOT", "UNTIL", "LEFT", "SIGNS"});
  for (const Certificate& root : authority.roots()) {
    roots.Add({root.Serial(), FormatUtc(root.NotAfter()), ShowLeft(root.NotAfter() - now),
               &root == &authority.roots()[0] ? "yes" : "no"});
  }
  absl::StrAppend(&text, roots.Render(), "\n");
  TextTable issued({"CERTIFICATE OF", "UNTIL", "LEFT", "SERIAL", "ROOT"});
  for (const IssuedRecord::Entry& entry : authority.issued().InUse()) {
    issued.Add({Describe(entry.identity), FormatUtc(entry.until), ShowLeft(entry.until - now),
                entry.serial, entry.root.substr(0, 8)});
  }
  absl::StrAppend(&text, issued.empty() ? "no certificate is in use\n" : issued.Render());
  if (const std::string next = NextStep(folder, authority.stage()); !next.empty()) {
    absl::StrAppend(&text, "\nnext: ", next, "\n");
  }
  return text + ProblemsText(AuthorityProblems(folder, authority, now));
}

std::string AuthorityJson(const std::string& folder, const CertificateAuthority& authority,
                          absl::Time now) {
  Json issued = Json::array();
  for (const IssuedRecord::Entry& entry : authority.issued().InUse()) {
    issued.push_back({{"identity", IdentityJson(entry.identity)},
                      {"serial", entry.serial},
                      {"root", entry.root},
                      {"not_after", FormatUtc(entry.until)}});
  }
  return JsonText({{"kind", "authority"},
                   {"folder", folder},
                   {"trust_domain", authority.trust_domain()},
                   {"stage", StageName(authority.stage())},
                   {"roots", RootsJson(authority.roots())},
                   {"issued", issued},
                   {"next", NextStep(folder, authority.stage())},
                   {"problems", AuthorityProblems(folder, authority, now)}});
}

std::string NodeText(const std::string& folder, const NodeFolderReport& report, absl::Time now) {
  std::string text = absl::StrCat(
      folder, ": ",
      report.identity.has_value() ? Describe(*report.identity) : "of nobody that can be named",
      "\n");
  if (report.identity.has_value())
    absl::StrAppend(&text, "  uri     ", UriOf(*report.identity), "\n");
  if (!report.chain.empty()) {
    const Certificate& leaf = report.chain[0];
    absl::StrAppend(&text, "  serial  ", leaf.Serial(), "\n  valid   from ",
                    FormatUtc(leaf.NotBefore()), " until ", FormatUtc(leaf.NotAfter()),
                    ", left: ", ShowLeft(leaf.NotAfter() - now), "\n");
  }
  for (const Certificate& root : report.roots) {
    absl::StrAppend(&text, "  trusts  root ", root.Serial(), " until ", FormatUtc(root.NotAfter()),
                    ", left: ", ShowLeft(root.NotAfter() - now), "\n");
  }
  return text + ProblemsText(report.problems);
}

std::string NodeJson(const std::string& folder, const NodeFolderReport& report, absl::Time now) {
  Json json = {{"kind", "node"}, {"folder", folder}};
  if (report.identity.has_value()) json["identity"] = IdentityJson(*report.identity);
  if (!report.chain.empty()) {
    const Certificate& leaf = report.chain[0];
    json["serial"] = leaf.Serial();
    json["not_before"] = FormatUtc(leaf.NotBefore());
    json["not_after"] = FormatUtc(leaf.NotAfter());
    json["seconds_left"] = absl::ToInt64Seconds(leaf.NotAfter() - now);
  }
  json["roots"] = RootsJson(report.roots);
  json["problems"] = report.problems;
  return JsonText(json);
}

}  // namespace covey::cli
