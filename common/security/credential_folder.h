// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/descriptor.h"
#include "common/security/secret.h"

namespace covey {

// The names of files, in the folder of a node and in that of an authority.
inline constexpr absl::string_view kNodeKeyFile = "node.key";
inline constexpr absl::string_view kNodeCertificateFile = "node.crt";
inline constexpr absl::string_view kRootsFile = "ca.crt";
inline constexpr absl::string_view kAuthorityKeyFile = "ca.key";
inline constexpr absl::string_view kRevokedFile = "revoked";

// Certificates and keys are a few KiB; a file beyond this is none.
inline constexpr size_t kCredentialBytesMax = 1 << 20;

// Whether only the owner of a file may read it.
enum class Readers { kOwner, kAll };

// The path of the file `name` in a folder.
std::string PathIn(const std::string& folder, absl::string_view name);

// File operations on folders with private keys. All block; errors name the path, and what to do.

// NOT_FOUND, FAILED_PRECONDITION: no file, larger than kCredentialBytesMax, or private and yet
// readable by its group or others, where the group may read what root gives to another user's
// process; the limits are checked before anything is read.
absl::StatusOr<Secret> ReadCredential(const std::string& path, Readers readers);

// Whether there is something of this name, readable or not.
bool HasFile(const std::string& folder, absl::string_view name);
// Whether `path`, which need not exist, is an entry of `folder`, however the two are spelled.
bool IsDirectlyIn(const std::string& path, const std::string& folder);

// Which folder `path` names now: another number once ReplaceFolder has replaced it; 0 = none.
uint64_t FolderNumber(const std::string& path);

// A file to write.
struct CredentialFile {
  absl::string_view name;
  absl::string_view content;
  Readers readers;
};

// Makes the folder `path` with `files`, for its owner alone, or replaces the folder as a whole: it
// never holds a part of the old files beside a part of the new ones. Survives a power cut.
// FAILED_PRECONDITION: a folder of that name holds files whose names are not in `replaced`, or it
// is no folder.
absl::Status ReplaceFolder(const std::string& path, std::span<const CredentialFile> files,
                           std::span<const absl::string_view> replaced);
// The errors of ReplaceFolder that concern what is there now.
absl::Status CheckReplaceable(const std::string& path, std::span<const absl::string_view> replaced);
// Replaces one file in a folder as a whole.
absl::Status ReplaceFile(const std::string& folder, const CredentialFile& file);

// While it exists, no other process changes the folder that `path` names.
class FolderLock {
 public:
  // UNAVAILABLE: another process has it; does not wait. NOT_FOUND: there is no such folder.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Take(const std::string& path);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(Descriptor folder) : folder_(std::move(folder)) {}

  const Descriptor folder_;
};

}  // namespace covey
