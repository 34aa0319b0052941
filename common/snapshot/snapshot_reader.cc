// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/snapshot_reader.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/part_format.h"
#include "common/snapshot/stored_piece.h"

namespace covey {
namespace {

struct NamedPiece {
  const proto::SnapshotShard* shard = nullptr;
  const proto::SnapshotPiece* piece = nullptr;
};

// The pieces of a file that the manifest names, by the offset of their headers.
std::map<uint64_t, NamedPiece> PiecesOf(const proto::SnapshotManifest& manifest,
                                        const proto::SnapshotFile& file) {
  std::map<uint64_t, NamedPiece> pieces;
  for (const proto::SnapshotShard& shard : manifest.shards()) {
    if (shard.file() != file.name()) continue;
    for (const proto::SnapshotPiece& piece : shard.pieces()) {
      pieces[RangeOf(piece).offset] = {.shard = &shard, .piece = &piece};
    }
  }
  return pieces;
}

absl::Status Damage(absl::string_view path, uint64_t offset, const absl::Status& status) {
  return Annotate(absl::StrCat(path, ", offset ", offset), status);
}

// Whether the files that the manifest names are there, in their sizes.
absl::Status CheckSizes(const proto::SnapshotManifest& manifest,
                        const std::vector<FolderEntry>& entries) {
  auto entry = entries.begin();
  for (const proto::SnapshotFile& file : manifest.files()) {
    while (entry != entries.end() && entry->name < file.name()) ++entry;
    const std::string path = absl::StrCat(manifest.folder(), "/", file.name());
    if (entry == entries.end() || entry->name != file.name() || entry->is_folder) {
      return absl::DataLossError(
          absl::StrCat(path, " is missing: it was removed, or did not travel with the others"));
    }
    if (entry->bytes != file.bytes()) {
      return absl::DataLossError(absl::StrCat(path, " has ", entry->bytes, " bytes instead of ",
                                              file.bytes(),
                                              ": it was cut off, or is another file"));
    }
  }
  return absl::OkStatus();
}

SnapshotSummary Summarize(Folder& store, const std::string& folder, const SnapshotName& name) {
  SnapshotSummary summary = {.folder = folder, .id = name.id, .epoch = name.epoch};
  const absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(store, folder);
  summary.complete = reader.status();
  if (!reader.ok()) return summary;
  const proto::SnapshotManifest& manifest = reader->manifest();
  summary.bytes = reader->bytes();
  summary.ordered_unix_ms = manifest.ordered_unix_ms();
  summary.tables = static_cast<uint64_t>(manifest.state().view().tables_size());
  for (const proto::CutStep& group : manifest.groups()) {
    summary.step = std::max(summary.step, group.step());
  }
  for (const proto::SnapshotShard& shard : manifest.shards()) {
    summary.step = std::max(summary.step, shard.last_step());
  }
  return summary;
}

}  // namespace

absl::StatusOr<std::vector<SnapshotSummary>> ListSnapshots(Folder& store) {
  COVEY_ASSIGN_OR_RETURN(const std::vector<FolderEntry> entries, store.List(""));
  std::vector<SnapshotSummary> snapshots;
  for (const FolderEntry& entry : entries) {
    if (!entry.is_folder || !IsSnapshotFolderName(entry.name)) continue;
    const SnapshotName imported;
    snapshots.push_back(
        Summarize(store, entry.name, ParseSnapshotFolderName(entry.name).value_or(imported)));
  }
  std::sort(snapshots.begin(), snapshots.end(),
            [](const SnapshotSummary& a, const SnapshotSummary& b) {
              return std::tie(a.id, a.epoch, a.folder) < std::tie(b.id, b.epoch, b.folder);
            });
  return snapshots;
}

absl::StatusOr<std::string> FindSnapshot(Folder& store, absl::string_view called) {
  COVEY_ASSIGN_OR_RETURN(const SnapshotChoice choice, SnapshotChoice::Parse(called));
  if (!choice.folder.empty()) return choice.folder;
  COVEY_ASSIGN_OR_RETURN(const std::vector<SnapshotSummary> snapshots, ListSnapshots(store));
  for (auto snapshot = snapshots.rbegin(); snapshot != snapshots.rend(); ++snapshot) {
    if (snapshot->complete.ok() && snapshot->id != 0 &&
        choice.Admits({.id = snapshot->id, .epoch = snapshot->epoch})) {
      return snapshot->folder;
    }
  }
  return choice.NotFound();
}

absl::StatusOr<SnapshotReader> SnapshotReader::Open(Folder& store, absl::string_view folder) {
  if (!IsSnapshotFolderName(folder)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", folder.substr(0, 64), "' is not a snapshot; one is named as in ",
                     SnapshotFolderName(17, 42), " or ", ImportFolderName("gpt2")));
  }
  COVEY_ASSIGN_OR_RETURN(const std::vector<FolderEntry> entries, store.List(folder));
  const std::string path = absl::StrCat(folder, "/", kManifestName);
  const bool has_manifest = std::any_of(entries.begin(), entries.end(), [](const FolderEntry& e) {
    return e.name == kManifestName && !e.is_folder;
  });
  if (!has_manifest) {
    return absl::NotFoundError(
        absl::StrCat(path, " is missing: the snapshot is being made, or was not completed"));
  }
  COVEY_ASSIGN_OR_RETURN(const Buffer bytes, store.Read(path, 0, 0));
  absl::StatusOr<proto::SnapshotManifest> manifest = DecodeManifest(bytes.bytes());
  if (!manifest.ok()) return Annotate(path, manifest.status());
  if (manifest->folder() != folder) {
    return absl::DataLossError(
        absl::StrCat(path, " is the manifest of ", manifest->folder(), ": move it back"));
  }
  COVEY_RETURN_IF_ERROR(CheckSizes(*manifest, entries));
  uint64_t all = bytes.size();
  for (const proto::SnapshotFile& file : manifest->files()) all += file.bytes();
  return SnapshotReader(store, *std::move(manifest), all);
}

std::string SnapshotReader::PathOf(absl::string_view file) const {
  return absl::StrCat(manifest_.folder(), "/", file);
}

absl::StatusOr<Buffer> SnapshotReader::ReadPiece(const proto::SnapshotShard& shard,
                                                 const proto::SnapshotPiece& piece) const {
  const std::string path = PathOf(shard.file());
  const StoredRange range = RangeOf(piece);
  COVEY_ASSIGN_OR_RETURN(const Buffer stored, store_->Read(path, range.offset, range.bytes));
  absl::StatusOr<Buffer> payload = PayloadOf(shard, piece, stored);
  if (!payload.ok()) return Damage(path, range.offset, payload.status());
  return payload;
}

absl::Status SnapshotReader::VerifyFile(const proto::SnapshotFile& file, uint64_t& done,
                                        Progress progress) const {
  const std::string path = PathOf(file.name());
  const std::map<uint64_t, NamedPiece> named = PiecesOf(manifest_, file);
  COVEY_ASSIGN_OR_RETURN(const Buffer start, store_->Read(path, 0, kPartBlockBytes));
  COVEY_RETURN_IF_ERROR(Damage(path, 0, CheckPartHeader(manifest_, start)));
  done += kPartBlockBytes;
  uint64_t offset = kPartBlockBytes;
  size_t found = 0;
  while (offset < file.bytes()) {
    COVEY_ASSIGN_OR_RETURN(const Buffer block, store_->Read(path, offset, kPartBlockBytes));
    const absl::StatusOr<PieceHeader> header = DecodePieceHeader(block.bytes());
    if (!header.ok()) return Damage(path, offset, header.status());
    const uint64_t space = PieceSpace(header->bytes);
    if (space > file.bytes() - offset) {
      return Damage(path, offset, absl::DataLossError("the piece goes beyond the file's end"));
    }
    if (const auto piece = named.find(offset); piece != named.end()) {
      // Reads the header once more, so that there is one way to read a piece.
      COVEY_RETURN_IF_ERROR(ReadPiece(*piece->second.shard, *piece->second.piece).status());
      ++found;
    } else if (space > kPartBlockBytes) {
      COVEY_ASSIGN_OR_RETURN(const Buffer rest,
                             store_->Read(path, offset + kPartBlockBytes, space - kPartBlockBytes));
      COVEY_RETURN_IF_ERROR(Damage(path, offset, CheckPayload(*header, rest.bytes())));
    }
    offset += space;
    done += space;
    COVEY_RETURN_IF_ERROR(progress(done, bytes_));
  }
  if (found == named.size()) return absl::OkStatus();
  return Damage(path, offset,
                absl::DataLossError(absl::StrCat(named.size() - found,
                                                 " pieces of the manifest do not begin where it "
                                                 "says: the file is another one")));
}

absl::Status SnapshotReader::Verify(Progress progress) const {
  uint64_t done = bytes_;
  for (const proto::SnapshotFile& file : manifest_.files()) done -= file.bytes();
  for (const proto::SnapshotFile& file : manifest_.files()) {
    COVEY_RETURN_IF_ERROR(VerifyFile(file, done, progress));
  }
  return absl::OkStatus();
}

}  // namespace covey
