// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/manifest.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/fixed_bytes.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/snapshot/manifest_checks.h"
#include "common/snapshot/shard_entries.h"
#include "common/store/folder.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace covey {
namespace {

constexpr absl::string_view kImportPrefix = "import-";
constexpr char kMagic[] = "COVEYMAN";
constexpr size_t kMagicBytes = 8;
constexpr size_t kHeaderBytes = 32;
constexpr size_t kMajorAt = 8;
constexpr size_t kLengthAt = 16;
constexpr size_t kChecksumAt = 24;
constexpr size_t kHeaderChecksumAt = 28;

absl::Status CheckHeader(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, kMagicBytes) != 0) {
    return absl::DataLossError("it is not a manifest: cut off, damaged, or another file");
  }
  if (Crc32c(bytes.first(kHeaderChecksumAt)) != ReadFixed<uint32_t>(bytes, kHeaderChecksumAt)) {
    return absl::DataLossError("its header, bytes 0 to 31, differs from its checksum");
  }
  const uint16_t major = ReadFixed<uint16_t>(bytes, kMajorAt);
  if (major < kManifestMajor || major > kManifestMajorWithLogs) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the snapshot has format ", major, ", and this program reads formats ", kManifestMajor,
        " to ", kManifestMajorWithLogs, ": use the version of Covey that wrote it"));
  }
  const uint64_t length = ReadFixed<uint64_t>(bytes, kLengthAt);
  if (length != bytes.size() - kHeaderBytes) {
    return absl::DataLossError(absl::StrCat("it has ", bytes.size() - kHeaderBytes,
                                            " bytes after its header, which says ", length));
  }
  if (Crc32c(bytes.subspan(kHeaderBytes)) != ReadFixed<uint32_t>(bytes, kChecksumAt)) {
    return absl::DataLossError("its message, from byte 32 on, differs from its checksum");
  }
  return absl::OkStatus();
}

// The lowest major version whose readers know all that the manifest has.
uint16_t MajorOf(const proto::SnapshotManifest& manifest) {
  if (HasLogs(manifest)) return kManifestMajorWithLogs;
  return HasReferences(manifest) ? kManifestMajorWithReferences : kManifestMajor;
}

}  // namespace

std::string SnapshotFolderName(uint64_t id, uint64_t epoch) {
  return absl::StrFormat("snapshot-%06d-e%d", id, epoch);
}

std::optional<SnapshotName> ParseSnapshotFolderName(absl::string_view folder) {
  absl::string_view rest = folder;
  if (!absl::ConsumePrefix(&rest, "snapshot-")) return std::nullopt;
  const size_t at = rest.find("-e");
  SnapshotName name;
  if (at == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, at), &name.id) ||
      !absl::SimpleAtoi(rest.substr(at + 2), &name.epoch) ||
      SnapshotFolderName(name.id, name.epoch) != folder) {
    return std::nullopt;
  }
  return name;
}

std::string ImportFolderName(absl::string_view name) { return absl::StrCat(kImportPrefix, name); }

bool IsImportFolderName(absl::string_view folder) {
  return absl::StartsWith(folder, kImportPrefix) && folder.size() > kImportPrefix.size() &&
         CheckEntryName(folder).ok();
}

bool IsSnapshotFolderName(absl::string_view folder) {
  return IsImportFolderName(folder) || ParseSnapshotFolderName(folder).has_value();
}

absl::StatusOr<SnapshotChoice> SnapshotChoice::Parse(absl::string_view called) {
  if (IsSnapshotFolderName(called)) return SnapshotChoice{.folder = std::string(called), .id = {}};
  if (called == kNewestSnapshot) return SnapshotChoice();
  if (uint64_t id = 0; absl::SimpleAtoi(called, &id)) return SnapshotChoice{.folder = {}, .id = id};
  return absl::InvalidArgumentError(
      absl::StrCat("'", called.substr(0, 64), "' is no snapshot; write ", kNewestSnapshot,
                   ", an id like 17, or a name like ", SnapshotFolderName(17, 42), " or ",
                   ImportFolderName("gpt2")));
}

absl::Status SnapshotChoice::NotFound() const {
  return absl::NotFoundError(
      absl::StrCat(!folder.empty() ? absl::StrCat("there is no complete snapshot ", folder)
                   : id            ? absl::StrCat("there is no complete snapshot of id ", *id)
                                   : "there is no complete snapshot of a job",
                   " in the store; covey snapshot list shows what is there"));
}

bool IsImported(const proto::SnapshotManifest& manifest) { return manifest.id() == 0; }

bool HasReferences(const proto::SnapshotManifest& manifest) {
  // In growing order of folder; the snapshot's own are the first.
  return !manifest.files().empty() && !manifest.files().rbegin()->folder().empty();
}

bool HasLogs(const proto::SnapshotManifest& manifest) {
  return std::any_of(manifest.shards().begin(), manifest.shards().end(), IsLog);
}

absl::StatusOr<Buffer> EncodeManifest(const proto::SnapshotManifest& manifest) {
  COVEY_RETURN_IF_ERROR(CheckManifest(manifest));
  const size_t length = manifest.ByteSizeLong();
  if (length > kStoreReadMax - kHeaderBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the manifest has ", length, " bytes, more than a store reads at once: ", kStoreReadMax,
        "; use larger shards"));
  }
  Buffer file = Buffer::Allocate(kHeaderBytes + length);
  const std::span<uint8_t> bytes = {file.MutableData(), file.size()};
  std::fill_n(bytes.begin(), kHeaderBytes, uint8_t{0});
  {
    google::protobuf::io::ArrayOutputStream stream(bytes.data() + kHeaderBytes,
                                                   static_cast<int>(length));
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps in the order of their keys
    COVEY_CHECK(manifest.SerializeToCodedStream(&coded));
  }
  std::memcpy(bytes.data(), kMagic, kMagicBytes);
  WriteFixed(MajorOf(manifest), kMajorAt, bytes);
  WriteFixed(kManifestMinor, 10, bytes);
  WriteFixed(uint64_t{length}, kLengthAt, bytes);
  WriteFixed(Crc32c(bytes.subspan(kHeaderBytes)), kChecksumAt, bytes);
  WriteFixed(Crc32c(bytes.first(kHeaderChecksumAt)), kHeaderChecksumAt, bytes);
  return file;
}

absl::StatusOr<proto::SnapshotManifest> DecodeManifest(std::span<const uint8_t> bytes) {
  COVEY_RETURN_IF_ERROR(CheckHeader(bytes));
  proto::SnapshotManifest manifest;
  const std::span<const uint8_t> message = bytes.subspan(kHeaderBytes);
  if (message.size() > kStoreReadMax ||
      !manifest.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return absl::DataLossError("its message is intact, but not one of this version of Covey");
  }
  if (const absl::Status status = CheckManifest(manifest); !status.ok()) {
    return absl::DataLossError(status.message());
  }
  if (MajorOf(manifest) > ReadFixed<uint16_t>(bytes, kMajorAt)) {
    return absl::DataLossError(
        "it refers to earlier snapshots or holds logs, which its format does not know");
  }
  return manifest;
}

std::string ManifestPath(absl::string_view folder) {
  return absl::StrCat(folder, "/", kManifestName);
}

absl::StatusOr<proto::SnapshotManifest> DecodeManifestOf(absl::string_view folder,
                                                         std::span<const uint8_t> bytes) {
  absl::StatusOr<proto::SnapshotManifest> manifest = DecodeManifest(bytes);
  if (!manifest.ok()) return Annotate(ManifestPath(folder), manifest.status());
  if (manifest->folder() == folder) return manifest;
  return absl::DataLossError(absl::StrCat(ManifestPath(folder), " is the manifest of ",
                                          manifest->folder(), ": move it back"));
}

}  // namespace covey
