// SPDX-License-Identifier: Apache-2.0
#include "client/cli/certificates/certificates_options.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/console/actions.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

using Action = CertificatesOptions::Action;
using Step = CertificatesOptions::Step;

constexpr absl::Duration kDay = absl::Hours(24);
constexpr uint32_t kRootDays = 365;
constexpr uint32_t kProcessDays = 7;
constexpr uint32_t kPersonDays = 30;
// A list of those that were taken back is for emergencies, so those of nodes end soon.
constexpr uint32_t kRootDaysMax = 3650;
constexpr uint32_t kIssuedDaysMax = 90;

constexpr char kHow[] =
    "write init DIR, issue DIR --role ROLE --job JOB --out NODE-DIR, revoke DIR SERIAL "
    "[SCHEDULER-DIR...], rotate DIR --step STEP [NODE-DIR...] or show DIR";

constexpr std::pair<absl::string_view, Action> kActions[] = {{"init", Action::kInit},
                                                             {"issue", Action::kIssue},
                                                             {"revoke", Action::kRevoke},
                                                             {"rotate", Action::kRotate},
                                                             {"show", Action::kShow}};

constexpr std::pair<absl::string_view, Step> kSteps[] = {
    {"add", Step::kAdd}, {"use", Step::kUse}, {"remove", Step::kRemove}};

// All actions take --output, too.
constexpr FlagUse kFlags[] = {{"trust-domain", "init"}, {"days", "init, issue, rotate"},
                              {"role", "issue"},        {"every-role", "issue"},
                              {"job", "issue"},         {"every-job", "issue"},
                              {"rank", "issue"},        {"out", "issue"},
                              {"step", "rotate"},       {"force", "rotate"}};

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::Status ReadNumber(absl::string_view text, std::optional<uint32_t>* field) {
  uint32_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return Wrong("not a whole number from 0 on");
  *field = number;
  return absl::OkStatus();
}

// Viewers and admins; other roles are those of processes.
bool IsPerson(std::optional<IdentityRole> role) {
  return role == IdentityRole::kViewer || role == IdentityRole::kAdmin;
}

std::string Print(const std::optional<uint32_t>& number) {
  return number.has_value() ? absl::StrCat(*number) : "";
}

}  // namespace

void CertificatesOptions::AddTo(ConfigFile& options) {
  options.Add("trust-domain", &trust_domain,
              "init: the name in front of all identities, as in training.example.org");
  options.Add(
      "days", [this](absl::string_view text) { return ReadNumber(text, &days); },
      [this] { return Print(days); },
      "init, rotate: validity of the new root, 365 unless given; issue: of the certificate, 7 "
      "unless given, 30 for viewers and admins");
  options.Add(
      "role",
      [this](absl::string_view text) {
        COVEY_ASSIGN_OR_RETURN(role, ParseIdentityRole(text));
        return absl::OkStatus();
      },
      [this] { return role.has_value() ? std::string(NameOf(*role)) : ""; },
      "issue: scheduler, server, worker, client, viewer or admin");
  options.Add("every-role", &every_role,
              "issue: instead of --role; makes a folder for each role in that of --out");
  options.Add("job", &job, "issue: name of the job");
  options.Add("every-job", &every_job, "issue: instead of --job, for a viewer or admin");
  options.Add(
      "rank", [this](absl::string_view text) { return ReadNumber(text, &rank); },
      [this] { return Print(rank); }, "issue: of a server or worker; any rank unless given");
  options.Add("out", &out,
              "issue: folder of the node, which is made, or replaced when the certificate in it is "
              "of the same role, job and rank");
  options.Add(
      "step",
      [this](absl::string_view text) {
        for (const auto& [name, value] : kSteps) {
          if (name != text) continue;
          step = value;
          return absl::OkStatus();
        }
        return Wrong("no step; write add, use or remove, in this order");
      },
      [this] { return step.has_value() ? std::string(kSteps[static_cast<int>(*step)].first) : ""; },
      "rotate: add (a new root that all are to trust), use (it signs), remove (the old root)");
  options.Add("force", &force,
              "rotate --step remove: even while certificates of the old root are in use, which are "
              "refused from then on, over open connections after ten minutes at most");
  AddOutput(options, &json);
  options.TakeRest(
      &words_,
      "init DIR | issue DIR | revoke DIR SERIAL [SCHEDULER-DIR...] | rotate DIR [NODE-DIR...] | "
      "show DIR   DIR: folder of the "
      "authority; of show also that of a node");
}

absl::Status CertificatesOptions::Check(const ConfigFile& options) {
  COVEY_ASSIGN_OR_RETURN(action, FindAction(words_, kActions, kHow));
  COVEY_RETURN_IF_ERROR(CheckFlags(options, words_[0], kFlags));
  const bool takes_more = action == Action::kRotate || action == Action::kRevoke;
  if (words_.size() < 2 || (words_.size() > 2 && !takes_more)) {
    return Wrong(absl::StrCat(words_[0], " takes one folder, and ", words_.size() - 1,
                              " are given; ", kHow));
  }
  folder = words_[1];
  if (action == Action::kRevoke) {
    if (words_.size() < 3) {
      return Wrong(
          "which certificate? give its serial, or the URI of its identity, after the folder of the "
          "authority; `covey certificates show DIR` lists them");
    }
    revoked = words_[2];
  }
  node_folders.assign(words_.begin() + (action == Action::kRevoke ? 3 : 2), words_.end());
  if (action == Action::kRotate && !step.has_value()) {
    return Wrong(
        "which step? pass --step add, then --step use, then --step remove, and between two of them "
        "give all nodes new folders");
  }
  if (force && step != Step::kRemove) return Wrong("only --step remove takes --force");
  const uint32_t days_max = action == Action::kIssue ? kIssuedDaysMax : kRootDaysMax;
  if (days.has_value() && (*days == 0 || *days > days_max)) {
    return Wrong(absl::StrCat("--days is ", *days, "; give 1 to ", days_max));
  }
  if (action == Action::kIssue) return CheckIssue();
  return action == Action::kInit ? CheckTrustDomain(trust_domain) : absl::OkStatus();
}

absl::Status CertificatesOptions::CheckIssue() const {
  if (role.has_value() == every_role) {
    return Wrong(
        "for whom? pass --role: scheduler, server, worker, client, or viewer or admin for people; "
        "or --every-role instead");
  }
  if (every_role && (every_job || rank.has_value())) {
    return Wrong("--every-role takes neither --every-job nor --rank; name one role for these");
  }
  if (job.empty() && !every_job) {
    return Wrong(absl::StrCat("for which job? pass --job JOB",
                              IsPerson(role) ? ", or --every-job" : "",
                              "; the name that the processes get as --job"));
  }
  if (!job.empty() && every_job) return Wrong("pass --job or --every-job, and not both");
  for (const Issued& issued : CertificatesIn(trust_domain)) {
    COVEY_RETURN_IF_ERROR(CheckIdentity(issued.identity));
  }
  if (out.empty()) {
    return Wrong("where to? pass --out NODE-DIR, a folder for this node or person alone");
  }
  return absl::OkStatus();
}

CertificatesOptions::Issued CertificatesOptions::CertificateOf(
    IdentityRole of, const std::string& trust_domain) const {
  return {.identity = {.trust_domain = trust_domain,
                       .job = every_job ? std::nullopt : std::optional(job),
                       .role = of,
                       .rank = rank},
          .folder = every_role ? absl::StrCat(out, "/", NameOf(of)) : out,
          .lifetime = kDay * days.value_or(IsPerson(of) ? kPersonDays : kProcessDays)};
}

std::vector<CertificatesOptions::Issued> CertificatesOptions::CertificatesIn(
    const std::string& trust_domain) const {
  if (role.has_value()) return {CertificateOf(*role, trust_domain)};
  std::vector<Issued> certificates;
  for (const IdentityRole each : kIdentityRoles) {
    certificates.push_back(CertificateOf(each, trust_domain));
  }
  return certificates;
}

absl::Duration CertificatesOptions::RootLifetime() const { return kDay * days.value_or(kRootDays); }

}  // namespace covey::cli
