// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/certificate.h"
#include "common/security/credential_folder.h"
#include "common/security/identity.h"
#include "common/security/issued_record.h"
#include "common/security/signing_root.h"

namespace covey {

// A small certificate authority for those without one: a folder that no other host needs.
//
//   ca.key     private key of the root that signs
//   ca.crt     the roots that nodes are to trust, the signing one first; copied into nodes' folders
//   next.key   private key of the root that is to sign next, while it is being made known
//   issued     the certificates that have not expired, see IssuedRecord
//   revoked    those that were taken back before their end, in the same form; copied into the
//              folders of schedulers, which refuse them
//
// A root is replaced in three steps, and between two of them all nodes get new folders. So every
// node trusts a root before anybody shows a certificate of it.
//
//                AddRoot                  UseRoot                 RemoveRoot
//   kOneRoot ---------------> kRootIsAdded ---------> kRootIsUsed ------------> kOneRoot
//   signs:    old             old                     new                       new
//   trusted:  old             old, new                new, old                  new
//
// 1. ca.key is that of the first root in ca.crt.
// 2. A step that was done already changes nothing when it is repeated.
// 3. The old root is removed only when nothing that it signed is in use, or by force.
//
// Holds the lock of its folder, until a step replaces the folder: to issue after a step, open it
// again. All methods block on the disk; errors name the path, the reason and what to do instead.
// FAILED_PRECONDITION: not in this stage, or the folder is damaged.
class CertificateAuthority {
 public:
  enum class Stage { kOneRoot, kRootIsAdded, kRootIsUsed };
  // What removing the old root does while certificates of it are in use.
  enum class InUse { kRefuses, kIsIgnored };

  // Makes the folder. ALREADY_EXISTS: it holds an authority, which is never replaced.
  static absl::Status Create(const std::string& path, const std::string& trust_domain,
                             absl::Time now, absl::Duration lifetime);
  // UNAVAILABLE: another process has it open. NOT_FOUND: there is none.
  static absl::StatusOr<std::unique_ptr<CertificateAuthority>> Open(const std::string& path);

  // Makes the folder of a node (NodeCredentials), or replaces the one that `identity` has there.
  // FAILED_PRECONDITION: the folder holds something else, or the root ends too early.
  absl::StatusOr<Certificate> Issue(const Identity& identity, absl::Time now,
                                    absl::Duration lifetime, const std::string& node_folder);
  // The same for the identity that the folder has, for as long as its certificate was made for.
  absl::StatusOr<Certificate> Renew(const std::string& node_folder, absl::Time now);

  // Takes back the certificate with this serial, or all of an identity, given as its URI. Folders
  // of schedulers that are made or renewed from now on know of it. Returns them; none = they were
  // taken back before. NOT_FOUND: no valid one is such a one.
  absl::StatusOr<std::vector<IssuedRecord::Entry>> Revoke(absl::string_view what, absl::Time now);

  absl::Status AddRoot(absl::Time now, absl::Duration lifetime);
  absl::Status UseRoot(absl::Time now);
  absl::Status RemoveRoot(absl::Time now, InUse in_use);

  Stage stage() const;
  // The signing one first.
  const std::vector<Certificate>& roots() const { return roots_; }
  const std::string& trust_domain() const { return signer_.trust_domain(); }
  // Of certificates that had not expired at the newest change.
  const IssuedRecord& issued() const { return issued_; }
  const IssuedRecord& revoked() const { return revoked_; }

 private:
  CertificateAuthority(std::string path, std::unique_ptr<FolderLock> lock, SigningRoot signer,
                       std::vector<Certificate> roots, std::optional<SigningRoot> next,
                       IssuedRecord issued, IssuedRecord revoked)
      : path_(std::move(path)),
        lock_(std::move(lock)),
        signer_(std::move(signer)),
        roots_(std::move(roots)),
        next_(std::move(next)),
        issued_(std::move(issued)),
        revoked_(std::move(revoked)) {}

  static absl::Status Write(const std::string& path, const SigningRoot& signer,
                            const std::vector<Certificate>& roots, const SigningRoot* next,
                            const IssuedRecord& issued, const IssuedRecord& revoked);
  absl::Status WriteRecord(absl::string_view file, const IssuedRecord& record);
  // Gives up the lock, since the folder that it is on has been replaced.
  absl::Status Close(absl::Status status);
  // Of the certificate that the folder has; absent = there is no folder.
  static absl::StatusOr<std::optional<Certificate>> FindPresent(const std::string& node_folder);
  absl::Status CheckUnused(absl::Time now) const;

  const std::string path_;
  std::unique_ptr<FolderLock> lock_;  // null after a step
  SigningRoot signer_;
  std::vector<Certificate> roots_;
  std::optional<SigningRoot> next_;
  IssuedRecord issued_;
  IssuedRecord revoked_;
};

}  // namespace covey
