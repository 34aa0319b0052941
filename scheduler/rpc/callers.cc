// SPDX-License-Identifier: Apache-2.0
#include "scheduler/rpc/callers.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/security/certificate.h"
#include "common/security/credential_folder.h"
#include "common/security/issued_record.h"
#include "common/security/secret.h"
#include "common/security/tls_credentials.h"

namespace covey::scheduler {
namespace {

constexpr absl::Duration kLogEvery = absl::Seconds(1);

}  // namespace

absl::StatusOr<Callers::Entry> Callers::Read(const grpc::AuthContext& context,
                                             const std::string& text) {
  COVEY_ASSIGN_OR_RETURN(Identity identity, CallerOf(context));
  const absl::StatusOr<std::vector<Certificate>> certificates = Certificate::ParseAll(text);
  if (!certificates.ok()) {
    return absl::UnauthenticatedError(
        absl::StrCat("the peer's certificate: ", certificates.status().message()));
  }
  return Entry{.identity = std::make_shared<const Identity>(std::move(identity)),
               .serial = certificates->front().Serial(),
               .not_after = certificates->front().NotAfter()};
}

absl::StatusOr<Callers::Serials> Callers::ReadRevoked(const std::string& folder) {
  if (!HasFile(folder, kRevokedFile)) return Serials();
  const std::string path = PathIn(folder, kRevokedFile);
  COVEY_ASSIGN_OR_RETURN(const Secret text, ReadCredential(path, Readers::kAll));
  const absl::StatusOr<IssuedRecord> record = IssuedRecord::Parse(text.view());
  if (!record.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": ", record.status().message(), "; bring the folder here once more"));
  }
  Serials serials;
  for (const IssuedRecord::Entry& entry : record->entries()) serials.insert(entry.serial);
  return serials;
}

void Callers::LookForRevoked(absl::Time now) {
  // The wall clock may have been set back.
  if (now < next_look_ && next_look_ - now <= kLookEvery) return;
  next_look_ = now + kLookEvery;
  absl::StatusOr<Serials> serials = ReadRevoked(folder_);
  if (serials.ok() && (!serials->empty() || HasFile(folder_, kRevokedFile))) {
    revoked_ = *std::move(serials);
  } else if (!revoked_.empty() || !serials.ok()) {
    LogError("revoked_unreadable",
             {{"folder", folder_},
              {"reason", serials.ok() ? "the file is gone" : serials.status().message()},
              {"text", "the certificates that it named before are still refused"}});
  }
}

absl::StatusOr<std::shared_ptr<const Identity>> Callers::Find(const grpc::AuthContext& context,
                                                              absl::Time now) {
  MutexLock lock(mutex_);
  auto caller = Check(context, now);
  if (!caller.ok()) ++refused_;
  if (!caller.ok() && now >= next_log_) {
    next_log_ = now + kLogEvery;
    LogWarning("caller_refused", {{"reason", caller.status().message()}});
  }
  return caller;
}

uint64_t Callers::refused() const {
  MutexLock lock(mutex_);
  return refused_;
}

absl::StatusOr<std::shared_ptr<const Identity>> Callers::Check(const grpc::AuthContext& context,
                                                               absl::Time now) {
  const auto texts = context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (texts.size() != 1) return absl::UnauthenticatedError("the peer has shown no certificate");
  const std::string text(texts[0].data(), texts[0].size());
  LookForRevoked(now);
  auto found = entries_.find(text);
  if (found == entries_.end()) {
    COVEY_ASSIGN_OR_RETURN(Entry entry, Read(context, text));
    if (entries_.size() >= kRememberedMax) entries_.clear();
    found = entries_.emplace(text, std::move(entry)).first;
  }
  if (revoked_.contains(found->second.serial)) {
    return absl::UnauthenticatedError(absl::StrCat("the certificate of ",
                                                   Describe(*found->second.identity), ", serial ",
                                                   found->second.serial, ", was revoked"));
  }
  if (now < found->second.not_after) return found->second.identity;
  return absl::UnauthenticatedError(absl::StrCat(
      "the certificate of ", Describe(*found->second.identity), " expired at ",
      FormatUtc(found->second.not_after), "; issue it again, and connect with the new one"));
}

}  // namespace covey::scheduler
