// SPDX-License-Identifier: Apache-2.0
#include "common/security/node_credentials.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/security/credential_folder.h"
#include "common/security/private_key.h"

namespace covey {
namespace {

// Of one folder that is replaced again and again; a reading takes much less than a replacement.
constexpr int kReadingsMax = 100;

constexpr absl::string_view kIssueAgain = "issue it again with covey certificates issue";

// Collects the problems of one folder.
class Inspection {
 public:
  Inspection(const std::string& folder, absl::Time now) : folder_(folder), now_(now) {}

  NodeFolderReport Run() && {
    if (const std::string mistake = OtherFolder(); !mistake.empty()) {
      report_.problems.push_back(mistake);
      return std::move(report_);
    }
    std::optional<Secret> key_text;
    std::optional<Secret> chain_text;
    std::optional<Secret> roots_text;
    for (int reading = 0; reading < kReadingsMax; ++reading) {
      const uint64_t number = FolderNumber(folder_);
      report_.problems.clear();
      key_text = Read(kNodeKeyFile, Readers::kOwner);
      chain_text = Read(kNodeCertificateFile, Readers::kAll);
      roots_text = Read(kRootsFile, Readers::kAll);
      // Else the folder was replaced meanwhile, and these are files of two.
      if (FolderNumber(folder_) == number) break;
    }
    if (chain_text.has_value()) report_.chain = Parse(kNodeCertificateFile, *chain_text);
    if (roots_text.has_value()) report_.roots = Parse(kRootsFile, *roots_text);
    if (key_text.has_value()) CheckKey(*key_text);
    CheckLeaf();
    CheckRoots();
    if (!report_.problems.empty()) return std::move(report_);
    const Certificate& leaf = report_.chain[0];
    report_.credentials = NodeCredentials{.key = *std::move(key_text),
                                          .certificate = std::string(chain_text->view()),
                                          .roots = std::string(roots_text->view()),
                                          .identity = *report_.identity,
                                          .not_before = leaf.NotBefore(),
                                          .not_after = leaf.NotAfter()};
    return std::move(report_);
  }

 private:
  std::string PathOf(absl::string_view name) const { return PathIn(folder_, name); }

  void Report(absl::string_view name, absl::string_view problem) {
    report_.problems.push_back(absl::StrCat(PathOf(name), ": ", problem));
  }

  // Why this is not the folder of a node at all; empty = it may be one.
  std::string OtherFolder() const {
    if (FolderNumber(folder_) == 0) {
      return absl::StrCat("there is no folder ", folder_,
                          "; copy it to this host, or make it with covey certificates issue");
    }
    if (HasFile(folder_, kNodeKeyFile) || HasFile(folder_, kNodeCertificateFile)) return "";
    if (HasFile(folder_, kAuthorityKeyFile)) {
      return absl::StrCat(folder_,
                          " is the folder of an authority, and not that of a process; make one "
                          "with: covey certificates issue ",
                          folder_, " --role ROLE --job JOB --out DIR");
    }
    std::vector<std::string> nodes;
    for (const IdentityRole role : kIdentityRoles) {
      const std::string node = PathIn(folder_, NameOf(role));
      if (HasFile(node, kNodeCertificateFile)) nodes.push_back(node);
    }
    if (nodes.empty()) return "";
    return absl::StrCat(folder_,
                        " holds folders of roles; give one of them: ", absl::StrJoin(nodes, ", "));
  }

  std::optional<Secret> Read(absl::string_view name, Readers readers) {
    auto text = ReadCredential(PathOf(name), readers);
    if (text.ok()) return *std::move(text);
    const bool is_missing = absl::IsNotFound(text.status());
    report_.problems.push_back(
        is_missing ? absl::StrCat(PathOf(name),
                                  " is missing; covey certificates issue makes a folder with "
                                  "node.key, node.crt and ca.crt")
                   : std::string(text.status().message()));
    return std::nullopt;
  }

  std::vector<Certificate> Parse(absl::string_view name, const Secret& text) {
    auto certificates = Certificate::ParseAll(text.view());
    if (certificates.ok()) return *std::move(certificates);
    Report(name, absl::StrCat(certificates.status().message(), "; copy the file again"));
    return {};
  }

  void CheckKey(const Secret& text) {
    const auto key = PrivateKey::Parse(text.view());
    if (!key.ok()) {
      Report(kNodeKeyFile, absl::StrCat(key.status().message(), "; ", kIssueAgain));
    } else if (!report_.chain.empty() && !report_.chain[0].Fits(*key)) {
      Report(kNodeKeyFile, absl::StrCat("it is not the key of the certificate in ",
                                        kNodeCertificateFile, "; copy both from one folder"));
    }
  }

  void CheckLeaf() {
    if (report_.chain.empty()) return;
    const Certificate& leaf = report_.chain[0];
    if (const auto identity = leaf.FindIdentity(); identity.ok()) {
      report_.identity = *identity;
      if (const absl::Status usage = leaf.CheckUsage(identity->role); !usage.ok()) {
        Report(kNodeCertificateFile, absl::StrCat(usage.message(), "; ", kIssueAgain));
      }
    } else {
      Report(kNodeCertificateFile, absl::StrCat(identity.status().message(), "; ", kIssueAgain));
    }
    if (now_ < leaf.NotBefore()) {
      Report(kNodeCertificateFile,
             absl::StrCat("it is not valid before ", FormatUtc(leaf.NotBefore()), ", and now is ",
                          FormatUtc(now_), "; set this machine's clock"));
    } else if (now_ >= leaf.NotAfter()) {
      Report(kNodeCertificateFile,
             absl::StrCat("it expired at ", FormatUtc(leaf.NotAfter()), ", and now is ",
                          FormatUtc(now_), "; ", kIssueAgain));
    } else if (!report_.roots.empty()) {
      CheckTrust();
    }
  }

  // Only while the certificate's own dates are right, so that each fault is said once.
  void CheckTrust() {
    const absl::Status trust = CheckChain(report_.chain, report_.roots, now_);
    if (trust.ok()) return;
    Report(kNodeCertificateFile,
           absl::StrCat("no root in ", kRootsFile, " vouches for it (", trust.message(),
                        "); copy both from one folder, or issue it again"));
  }

  void CheckRoots() {
    for (const Certificate& root : report_.roots) {
      if (root.IsAuthority()) continue;
      Report(kRootsFile, absl::StrCat("certificate ", root.Serial(),
                                      " is not that of an authority; copy the file again"));
    }
  }

  const std::string& folder_;
  const absl::Time now_;
  NodeFolderReport report_;
};

}  // namespace

std::optional<absl::Time> NodeFolderReport::Expiry() const {
  std::optional<absl::Time> first;
  for (const std::vector<Certificate>* of : {&chain, &roots}) {
    if (of->empty()) continue;
    const absl::Time expiry = of->front().NotAfter();
    first = std::min(first.value_or(expiry), expiry);
  }
  return first;
}

NodeFolderReport InspectNodeFolder(const std::string& folder, absl::Time now) {
  return Inspection(folder, now).Run();
}

absl::StatusOr<NodeCredentials> LoadNodeCredentials(const std::string& folder, absl::Time now) {
  NodeFolderReport report = InspectNodeFolder(folder, now);
  if (report.credentials.has_value()) return *std::move(report.credentials);
  const size_t others = report.problems.size() - 1;
  return absl::FailedPreconditionError(
      others == 0 ? report.problems[0]
                  : absl::StrCat(report.problems[0], " (and ", others,
                                 " more; see covey certificates show ", folder, ")"));
}

}  // namespace covey
