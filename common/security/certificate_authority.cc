// SPDX-License-Identifier: Apache-2.0
#include "common/security/certificate_authority.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/security/private_key.h"
#include "common/security/secret.h"

namespace covey {
namespace {

constexpr absl::string_view kNextKeyFile = "next.key";
constexpr absl::string_view kIssuedFile = "issued";
constexpr absl::string_view kAuthorityFiles[] = {kAuthorityKeyFile, kRootsFile, kNextKeyFile,
                                                 kIssuedFile, kRevokedFile};
constexpr absl::string_view kNodeFiles[] = {kNodeKeyFile, kNodeCertificateFile, kRootsFile,
                                            kRevokedFile};

std::string TextOf(const std::vector<Certificate>& certificates) {
  std::string text;
  for (const Certificate& certificate : certificates) text += certificate.Text();
  return text;
}

absl::Status Damaged(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": ", why, "; restore the authority's folder from a copy"));
}

absl::StatusOr<SigningRoot> ReadSigner(const std::string& path, const Certificate& root) {
  COVEY_ASSIGN_OR_RETURN(const Secret text, ReadCredential(path, Readers::kOwner));
  auto key = PrivateKey::Parse(text.view());
  if (!key.ok()) return Damaged(path, key.status().message());
  auto signer = SigningRoot::Load(*std::move(key), root);
  if (!signer.ok()) return Damaged(path, signer.status().message());
  return signer;
}

absl::StatusOr<std::vector<Certificate>> ReadCertificates(const std::string& path) {
  COVEY_ASSIGN_OR_RETURN(const Secret text, ReadCredential(path, Readers::kAll));
  auto certificates = Certificate::ParseAll(text.view());
  if (!certificates.ok()) return Damaged(path, certificates.status().message());
  return certificates;
}

absl::StatusOr<IssuedRecord> ReadRecord(const std::string& path) {
  COVEY_ASSIGN_OR_RETURN(const Secret text, ReadCredential(path, Readers::kAll));
  auto record = IssuedRecord::Parse(text.view());
  if (!record.ok()) return Damaged(path, record.status().message());
  return record;
}

}  // namespace

absl::Status CertificateAuthority::Write(const std::string& path, const SigningRoot& signer,
                                         const std::vector<Certificate>& roots,
                                         const SigningRoot* next, const IssuedRecord& issued,
                                         const IssuedRecord& revoked) {
  COVEY_ASSIGN_OR_RETURN(const Secret key, signer.key().Text());
  const std::string roots_text = TextOf(roots);
  const std::string issued_text = issued.Text();
  const std::string revoked_text = revoked.Text();
  std::vector<CredentialFile> files = {{kAuthorityKeyFile, key.view(), Readers::kOwner},
                                       {kRootsFile, roots_text, Readers::kAll},
                                       {kIssuedFile, issued_text, Readers::kAll},
                                       {kRevokedFile, revoked_text, Readers::kAll}};
  Secret next_key;
  if (next != nullptr) {
    COVEY_ASSIGN_OR_RETURN(next_key, next->key().Text());
    files.push_back({kNextKeyFile, next_key.view(), Readers::kOwner});
  }
  return ReplaceFolder(path, files, kAuthorityFiles);
}

absl::Status CertificateAuthority::WriteRecord(absl::string_view file, const IssuedRecord& record) {
  const std::string text = record.Text();
  if (text.size() > kCredentialBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        PathIn(path_, file), ": it would name ", record.entries().size(),
        " certificates, which are too many; issue them into the same folders again, which replaces "
        "them, or with fewer --days; or replace the root"));
  }
  return ReplaceFile(path_, {file, text, Readers::kAll});
}

absl::Status CertificateAuthority::Create(const std::string& path, const std::string& trust_domain,
                                          absl::Time now, absl::Duration lifetime) {
  if (HasFile(path, kAuthorityKeyFile)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path,
                     " holds an authority already, which is not replaced, because all its "
                     "certificates would be worthless; to replace its root run: covey "
                     "certificates rotate ",
                     path, " --step add"));
  }
  COVEY_ASSIGN_OR_RETURN(const SigningRoot root, SigningRoot::Make(trust_domain, now, lifetime));
  // Nothing may be replaced but an empty folder.
  COVEY_ASSIGN_OR_RETURN(const Secret key, root.key().Text());
  const std::string certificate = root.certificate().Text();
  const CredentialFile files[] = {{kAuthorityKeyFile, key.view(), Readers::kOwner},
                                  {kRootsFile, certificate, Readers::kAll},
                                  {kIssuedFile, "", Readers::kAll},
                                  {kRevokedFile, "", Readers::kAll}};
  return ReplaceFolder(path, files, {});
}

absl::StatusOr<std::unique_ptr<CertificateAuthority>> CertificateAuthority::Open(
    const std::string& path) {
  if (!HasFile(path, kAuthorityKeyFile)) {
    return absl::NotFoundError(absl::StrCat(path,
                                            " holds no authority; make one with: covey "
                                            "certificates init ",
                                            path));
  }
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<FolderLock> lock, FolderLock::Take(path));
  COVEY_ASSIGN_OR_RETURN(std::vector<Certificate> roots,
                         ReadCertificates(PathIn(path, kRootsFile)));
  if (roots.size() > 2) return Damaged(PathIn(path, kRootsFile), "it holds more than two roots");
  COVEY_ASSIGN_OR_RETURN(SigningRoot signer, ReadSigner(PathIn(path, kAuthorityKeyFile), roots[0]));
  std::optional<SigningRoot> next;
  if (roots.size() == 2) {
    auto found = ReadSigner(PathIn(path, kNextKeyFile), roots[1]);
    if (found.ok()) {
      next = *std::move(found);
    } else if (!absl::IsNotFound(found.status())) {
      return found.status();
    }
  }
  COVEY_ASSIGN_OR_RETURN(IssuedRecord issued, ReadRecord(PathIn(path, kIssuedFile)));
  // An authority of an earlier version has none.
  IssuedRecord revoked;
  if (HasFile(path, kRevokedFile)) {
    COVEY_ASSIGN_OR_RETURN(revoked, ReadRecord(PathIn(path, kRevokedFile)));
  }
  return absl::WrapUnique(new CertificateAuthority(path, std::move(lock), std::move(signer),
                                                   std::move(roots), std::move(next),
                                                   std::move(issued), std::move(revoked)));
}

absl::Status CertificateAuthority::Close(absl::Status status) {
  lock_.reset();
  return status;
}

CertificateAuthority::Stage CertificateAuthority::stage() const {
  if (roots_.size() == 1) return Stage::kOneRoot;
  return next_.has_value() ? Stage::kRootIsAdded : Stage::kRootIsUsed;
}

absl::StatusOr<std::optional<Certificate>> CertificateAuthority::FindPresent(
    const std::string& node_folder) {
  auto text = ReadCredential(PathIn(node_folder, kNodeCertificateFile), Readers::kAll);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  COVEY_RETURN_IF_ERROR(text.status());
  auto chain = Certificate::ParseAll(text->view());
  if (chain.ok()) return chain->front();
  return absl::FailedPreconditionError(
      absl::StrCat(PathIn(node_folder, kNodeCertificateFile), ": ", chain.status().message(),
                   "; remove the folder, and issue the certificate again"));
}

absl::StatusOr<Certificate> CertificateAuthority::Issue(const Identity& identity, absl::Time now,
                                                        absl::Duration lifetime,
                                                        const std::string& node_folder) {
  COVEY_CHECK(lock_ != nullptr);
  if (IsDirectlyIn(node_folder, path_)) {
    return absl::InvalidArgumentError(
        absl::StrCat(node_folder,
                     " would lie in the folder of the authority, which stays on its "
                     "host and is replaced as a whole; choose a folder elsewhere"));
  }
  COVEY_ASSIGN_OR_RETURN(const std::optional<Certificate> present, FindPresent(node_folder));
  if (present.has_value()) {
    const auto owner = present->FindIdentity();
    if (!owner.ok() || *owner != identity) {
      return absl::FailedPreconditionError(absl::StrCat(
          node_folder, " holds the certificate of ",
          owner.ok() ? Describe(*owner) : "somebody else", ", which is not replaced by that of ",
          Describe(identity), "; choose another folder"));
    }
  }
  COVEY_RETURN_IF_ERROR(CheckReplaceable(node_folder, kNodeFiles));
  auto made = signer_.Issue(identity, now, lifetime);
  if (absl::IsFailedPrecondition(made.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        path_, ": ", made.status().message(),
        "; replace the root, beginning with: covey certificates rotate ", path_, " --step add"));
  }
  COVEY_RETURN_IF_ERROR(made.status());
  COVEY_ASSIGN_OR_RETURN(const Secret key, made->key.Text());
  const std::string certificate = made->certificate.Text();
  const std::string roots = TextOf(roots_);
  revoked_.RemoveExpired(now);
  const std::string revoked = revoked_.Text();

  // Recorded first, so that none in use is missing there, even after a crash.
  issued_.RemoveExpired(now);
  issued_.Add({.serial = made->certificate.Serial(),
               .root = signer_.certificate().Serial(),
               .until = made->certificate.NotAfter(),
               .identity = identity});
  COVEY_RETURN_IF_ERROR(WriteRecord(kIssuedFile, issued_));
  std::vector<CredentialFile> files = {{kNodeKeyFile, key.view(), Readers::kOwner},
                                       {kNodeCertificateFile, certificate, Readers::kAll},
                                       {kRootsFile, roots, Readers::kAll}};
  if (identity.role == IdentityRole::kScheduler) {
    files.push_back({kRevokedFile, revoked, Readers::kAll});
  }
  COVEY_RETURN_IF_ERROR(ReplaceFolder(node_folder, files, kNodeFiles));
  if (present.has_value()) {
    issued_.MarkReplaced(present->Serial());
    COVEY_RETURN_IF_ERROR(WriteRecord(kIssuedFile, issued_));
  }
  return made->certificate;
}

absl::StatusOr<Certificate> CertificateAuthority::Renew(const std::string& node_folder,
                                                        absl::Time now) {
  COVEY_ASSIGN_OR_RETURN(const std::optional<Certificate> present, FindPresent(node_folder));
  if (!present.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(node_folder,
                     " holds no certificate; name folders that covey certificates "
                     "issue has made"));
  }
  const auto identity = present->FindIdentity();
  if (!identity.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(PathIn(node_folder, kNodeCertificateFile),
                                                      ": ", identity.status().message(),
                                                      "; issue another one"));
  }
  return Issue(*identity, now, present->NotAfter() - present->NotBefore() - kCertificateBackdating,
               node_folder);
}

absl::StatusOr<std::vector<IssuedRecord::Entry>> CertificateAuthority::Revoke(
    absl::string_view what, absl::Time now) {
  COVEY_CHECK(lock_ != nullptr);
  const auto is_meant = [what](const IssuedRecord::Entry& entry) {
    return entry.serial == what || UriOf(entry.identity) == what;
  };
  std::vector<IssuedRecord::Entry> taken;
  for (const IssuedRecord::Entry& entry : issued_.entries()) {
    if (is_meant(entry) && entry.until > now) taken.push_back(entry);
  }
  if (taken.empty()) {
    const auto& before = revoked_.entries();
    if (std::any_of(before.begin(), before.end(), is_meant)) return taken;
    return absl::NotFoundError(
        absl::StrCat(path_, ": no valid certificate has the serial or the URI '", what,
                     "'; `covey certificates show ", path_, "` lists them"));
  }
  revoked_.RemoveExpired(now);
  for (const IssuedRecord::Entry& entry : taken) {
    revoked_.Add(entry);
    issued_.Remove(entry.serial);
  }
  // In this order, so that after a crash none is missing in both.
  COVEY_RETURN_IF_ERROR(WriteRecord(kRevokedFile, revoked_));
  COVEY_RETURN_IF_ERROR(WriteRecord(kIssuedFile, issued_));
  return taken;
}

absl::Status CertificateAuthority::AddRoot(absl::Time now, absl::Duration lifetime) {
  if (stage() == Stage::kRootIsAdded) return absl::OkStatus();
  if (stage() == Stage::kRootIsUsed) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_,
                     ": the root before is still trusted; first run: covey certificates "
                     "rotate ",
                     path_, " --step remove"));
  }
  COVEY_ASSIGN_OR_RETURN(next_, SigningRoot::Make(trust_domain(), now, lifetime));
  roots_.push_back(next_->certificate());
  issued_.RemoveExpired(now);
  return Close(Write(path_, signer_, roots_, &*next_, issued_, revoked_));
}

absl::Status CertificateAuthority::UseRoot(absl::Time now) {
  if (stage() == Stage::kRootIsUsed) return absl::OkStatus();
  if (stage() == Stage::kOneRoot) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": there is no new root; first run: covey certificates rotate ", path_,
                     " --step add"));
  }
  signer_ = *std::move(next_);
  next_.reset();
  std::swap(roots_[0], roots_[1]);
  issued_.RemoveExpired(now);
  return Close(Write(path_, signer_, roots_, nullptr, issued_, revoked_));
}

absl::Status CertificateAuthority::CheckUnused(absl::Time now) const {
  const std::string old = roots_[1].Serial();
  std::vector<const IssuedRecord::Entry*> in_use;
  for (const IssuedRecord::Entry& entry : issued_.entries()) {
    if (entry.root == old && entry.until > now && !entry.is_replaced) in_use.push_back(&entry);
  }
  if (in_use.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path_, ": the old root vouches for ", in_use.size(),
      in_use.size() == 1 ? " certificate in use, that of "
                         : " certificates in use, the first that of ",
      Describe(in_use[0]->identity), ", serial ", in_use[0]->serial, ", until ",
      FormatUtc(in_use[0]->until),
      "; issue again into the same folders, wait until all have expired, or cut them off "
      "with --force"));
}

absl::Status CertificateAuthority::RemoveRoot(absl::Time now, InUse in_use) {
  if (stage() == Stage::kOneRoot) return absl::OkStatus();
  if (stage() == Stage::kRootIsAdded) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": the old root still signs; first run: covey certificates rotate ",
                     path_, " --step use"));
  }
  if (in_use == InUse::kRefuses) COVEY_RETURN_IF_ERROR(CheckUnused(now));
  issued_.RemoveSignedBy(roots_.back().Serial());
  roots_.pop_back();
  issued_.RemoveExpired(now);
  return Close(Write(path_, signer_, roots_, nullptr, issued_, revoked_));
}

}  // namespace covey
