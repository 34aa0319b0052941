// SPDX-License-Identifier: Apache-2.0
#include "client/cli/certificates/certificates_command.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/certificates/certificates_options.h"
#include "client/cli/certificates/certificates_view.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/security/certificate_authority.h"
#include "common/security/credential_folder.h"
#include "common/security/node_credentials.h"

namespace covey::cli {
namespace {

using Step = CertificatesOptions::Step;

// What a command prints, and its exit code.
struct Shown {
  std::string output;
  int code = kExitOk;
};

absl::StatusOr<Shown> Init(const CertificatesOptions& asked, absl::Time now) {
  COVEY_RETURN_IF_ERROR(
      CertificateAuthority::Create(asked.folder, asked.trust_domain, now, asked.RootLifetime()));
  COVEY_ASSIGN_OR_RETURN(const auto authority, CertificateAuthority::Open(asked.folder));
  if (asked.json) return Shown{AuthorityJson(asked.folder, *authority, now)};
  return Shown{absl::StrCat(
      "made the authority of trust domain ", authority->trust_domain(), " in ", asked.folder,
      ", until ", FormatUtc(authority->roots()[0].NotAfter()),
      "\nnext, for each process: covey certificates issue ", asked.folder,
      " --role scheduler --job JOB --out NODE-DIR; only NODE-DIR goes to the process's host\n")};
}

absl::StatusOr<Shown> Issue(const CertificatesOptions& asked, absl::Time now) {
  COVEY_ASSIGN_OR_RETURN(const auto authority, CertificateAuthority::Open(asked.folder));
  if (asked.every_role) COVEY_RETURN_IF_ERROR(MakeFolder(asked.out));
  std::vector<IssuedCertificate> issued;
  for (const auto& [identity, folder, lifetime] : asked.CertificatesIn(authority->trust_domain())) {
    COVEY_ASSIGN_OR_RETURN(const Certificate certificate,
                           authority->Issue(identity, now, lifetime, folder));
    issued.push_back({.folder = folder, .certificate = certificate});
  }
  return Shown{asked.json ? IssuedJson(issued) : IssuedText(issued)};
}

absl::Status Advance(const CertificatesOptions& asked, absl::Time now) {
  COVEY_ASSIGN_OR_RETURN(const auto authority, CertificateAuthority::Open(asked.folder));
  switch (*asked.step) {
    case Step::kAdd:
      return authority->AddRoot(now, asked.RootLifetime());
    case Step::kUse:
      return authority->UseRoot(now);
    case Step::kRemove:
      return authority->RemoveRoot(now, asked.force ? CertificateAuthority::InUse::kIsIgnored
                                                    : CertificateAuthority::InUse::kRefuses);
  }
  return absl::OkStatus();
}

// `done`: what the command has done before, for an error.
absl::Status RenewAll(const std::vector<std::string>& node_folders, absl::string_view done,
                      absl::Time now, CertificateAuthority& authority) {
  for (const std::string& node_folder : node_folders) {
    if (const auto renewed = authority.Renew(node_folder, now); !renewed.ok()) {
      return absl::Status(renewed.status().code(),
                          absl::StrCat(done, ", but ", renewed.status().message(),
                                       "; then run the same command again"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Shown> Revoke(const CertificatesOptions& asked, absl::Time now) {
  COVEY_ASSIGN_OR_RETURN(const auto authority, CertificateAuthority::Open(asked.folder));
  COVEY_ASSIGN_OR_RETURN(const auto revoked, authority->Revoke(asked.revoked, now));
  COVEY_RETURN_IF_ERROR(
      RenewAll(asked.node_folders, "the certificate is revoked", now, *authority));
  return Shown{asked.json
                   ? RevokedJson(revoked)
                   : RevokedText(asked.folder, asked.revoked, revoked, asked.node_folders.empty())};
}

absl::StatusOr<Shown> Rotate(const CertificatesOptions& asked, absl::Time now) {
  COVEY_RETURN_IF_ERROR(Advance(asked, now));
  COVEY_ASSIGN_OR_RETURN(const auto authority, CertificateAuthority::Open(asked.folder));
  COVEY_RETURN_IF_ERROR(RenewAll(asked.node_folders, "the step is done", now, *authority));
  return Shown{asked.json ? AuthorityJson(asked.folder, *authority, now)
                          : AuthorityText(asked.folder, *authority, now)};
}

absl::StatusOr<Shown> Show(const CertificatesOptions& asked, absl::Time now) {
  const std::string& folder = asked.folder;
  if (HasFile(folder, kAuthorityKeyFile)) {
    COVEY_ASSIGN_OR_RETURN(const auto authority, CertificateAuthority::Open(folder));
    return Shown{asked.json ? AuthorityJson(folder, *authority, now)
                            : AuthorityText(folder, *authority, now),
                 AuthorityProblems(folder, *authority, now).empty() ? kExitOk : kExitFailed};
  }
  if (!HasFile(folder, kNodeKeyFile) && !HasFile(folder, kNodeCertificateFile)) {
    return absl::NotFoundError(absl::StrCat(
        folder,
        " holds neither an authority nor the certificate of a node; make an authority with: covey "
        "certificates init DIR, and a node's folder with: covey certificates issue DIR"));
  }
  const NodeFolderReport report = InspectNodeFolder(folder, now);
  return Shown{asked.json ? NodeJson(folder, report, now) : NodeText(folder, report, now),
               report.problems.empty() ? kExitOk : kExitFailed};
}

absl::StatusOr<Shown> Run(const CertificatesOptions& asked, absl::Time now) {
  switch (asked.action) {
    case CertificatesOptions::Action::kInit:
      return Init(asked, now);
    case CertificatesOptions::Action::kIssue:
      return Issue(asked, now);
    case CertificatesOptions::Action::kRevoke:
      return Revoke(asked, now);
    case CertificatesOptions::Action::kRotate:
      return Rotate(asked, now);
    case CertificatesOptions::Action::kShow:
      return Show(asked, now);
  }
  return absl::InternalError("no such action");
}

}  // namespace

int CertificatesCommand(int count, const char* const* arguments) {
  CertificatesOptions asked;
  ConfigFile options(
      "covey certificates",
      "Makes certificates for the processes and people of a job, renews and checks them, for those "
      "without an authority of their own. It works on folders of this host and needs no running "
      "job. `init` makes an authority. `issue` makes the folder of one process or person: "
      "node.key, "
      "node.crt and ca.crt; run it again to renew. `revoke` takes a certificate back: schedulers "
      "whose folders are renewed after that, as those that are given, refuse it within a second. "
      "`rotate` replaces the root of the authority in "
      "three steps, and renews the NODE-DIRs that are given; between two steps all nodes get their "
      "new folders, so nobody is refused meanwhile. `show` says what a folder holds, for how long, "
      "and what is wrong with it. Exit code: 0 ok, 1 failed or something is wrong.");
  asked.AddTo(options);
  if (const auto code = LoadWithShortOutput(options, count, arguments)) return *code;
  if (const absl::Status status = asked.Check(options); !status.ok()) {
    PrintFailure(arguments[0], status);
    return kExitUsage;
  }
  const absl::StatusOr<Shown> shown = Run(asked, absl::Now());
  if (!shown.ok()) {
    PrintFailure(arguments[0], shown.status());
    return kExitFailed;
  }
  WriteAll(STDOUT_FILENO, shown->output);
  return shown->code;
}

}  // namespace covey::cli
