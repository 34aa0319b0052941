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
    if (shard.file() != file.name() || shard.folder() != file.folder()) continue;
    for (const proto::SnapshotPiece& piece : shard.pieces()) {
      pieces[RangeOf(piece).offset] = {.shard = &shard, .piece = &piece};
    }
  }
  return pieces;
}

absl::Status Damage(absl::string_view path, uint64_t offset, const absl::Status& status) {
  return Annotate(absl::StrCat(path, ", offset ", offset), status);
}

// Whether the folder of the file has it, in its size.
absl::Status CheckSize(const proto::SnapshotManifest& manifest, const proto::SnapshotFile& file,
                       const std::vector<FolderEntry>& entries) {
  const auto entry =
      std::lower_bound(entries.begin(), entries.end(), file.name(),
                       [](const FolderEntry& a, const std::string& name) { return a.name < name; });
  const std::string path = PathOf(manifest, file);
  if (entry == entries.end() || entry->name != file.name() || entry->is_folder) {
    return absl::DataLossError(
        absl::StrCat(path, " is missing: it was removed, or did not travel with ",
                     file.folder().empty() ? "the others" : manifest.folder()));
  }
  if (entry->bytes == file.bytes()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has ", entry->bytes, " bytes instead of ",
                                          file.bytes(), ": it was cut off, or is another file"));
}

// Whether the files that the manifest names are there, in their sizes. `entries`: of its folder.
absl::Status CheckSizes(Folder& store, const proto::SnapshotManifest& manifest,
                        std::vector<FolderEntry> entries) {
  std::string listed;  // as SnapshotFile.folder
  for (const proto::SnapshotFile& file : manifest.files()) {
    if (file.folder() != listed) {
      listed = file.folder();
      absl::StatusOr<std::vector<FolderEntry>> others = store.List(listed);
      if (!others.ok() && !absl::IsNotFound(others.status())) return others.status();
      entries = others.ok() ? *std::move(others) : std::vector<FolderEntry>();
    }
    COVEY_RETURN_IF_ERROR(CheckSize(manifest, file, entries));
  }
  return absl::OkStatus();
}

// A manifest as it is in the store.
struct StoredManifest {
  proto::SnapshotManifest manifest;
  uint64_t bytes = 0;                // of its file
  std::vector<FolderEntry> entries;  // of its folder
};

// As SnapshotReader::Open, without a look at the other files.
absl::StatusOr<StoredManifest> ReadManifest(Folder& store, absl::string_view folder) {
  if (!IsSnapshotFolderName(folder)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", folder.substr(0, 64), "' is not a snapshot; one is named as in ",
                     SnapshotFolderName(17, 42), " or ", ImportFolderName("gpt2")));
  }
  StoredManifest stored;
  COVEY_ASSIGN_OR_RETURN(stored.entries, store.List(folder));
  const std::string path = ManifestPath(folder);
  const bool has_manifest =
      std::any_of(stored.entries.begin(), stored.entries.end(),
                  [](const FolderEntry& e) { return e.name == kManifestName && !e.is_folder; });
  if (!has_manifest) {
    return absl::NotFoundError(
        absl::StrCat(path, " is missing: the snapshot is being made, or was not completed"));
  }
  COVEY_ASSIGN_OR_RETURN(const Buffer bytes, store.Read(path, 0, 0));
  COVEY_ASSIGN_OR_RETURN(stored.manifest, DecodeManifestOf(folder, bytes.bytes()));
  stored.bytes = bytes.size();
  return stored;
}

// Of the snapshot's own files and its manifest.
uint64_t OwnBytes(const StoredManifest& stored) {
  uint64_t bytes = stored.bytes;
  for (const proto::SnapshotFile& file : stored.manifest.files()) {
    if (file.folder().empty()) bytes += file.bytes();
  }
  return bytes;
}

SnapshotSummary Summarize(Folder& store, const std::string& folder, const SnapshotName& name) {
  SnapshotSummary summary = {.folder = folder, .id = name.id, .epoch = name.epoch};
  const absl::StatusOr<StoredManifest> stored = ReadManifest(store, folder);
  summary.complete = stored.status();
  if (!stored.ok()) return summary;
  const proto::SnapshotManifest& manifest = stored->manifest;
  summary.complete = CheckSizes(store, manifest, stored->entries);
  summary.has_manifest = true;
  summary.references = ReferencesOf(manifest);
  summary.bytes = OwnBytes(*stored);
  summary.reused_bytes = ReusedBytes(manifest);
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
  FilesByFolder needed;
  for (const SnapshotSummary& snapshot : snapshots) AddFiles(snapshot.references, needed);
  std::erase_if(snapshots, [&](const SnapshotSummary& snapshot) {
    return absl::IsNotFound(snapshot.complete) && needed.contains(snapshot.folder);
  });
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
  COVEY_ASSIGN_OR_RETURN(StoredManifest stored, ReadManifest(store, folder));
  const uint64_t bytes = OwnBytes(stored);
  COVEY_RETURN_IF_ERROR(CheckSizes(store, stored.manifest, std::move(stored.entries)));
  return SnapshotReader(store, std::move(stored.manifest), bytes);
}

absl::StatusOr<Buffer> SnapshotReader::ReadPiece(const proto::SnapshotShard& shard,
                                                 const proto::SnapshotPiece& piece) const {
  const std::string path = PathOf(manifest_, shard);
  const StoredRange range = RangeOf(piece);
  COVEY_ASSIGN_OR_RETURN(const Buffer stored, store_->Read(path, range.offset, range.bytes));
  absl::StatusOr<Buffer> payload = PayloadOf(shard, piece, stored);
  if (!payload.ok()) return Damage(path, range.offset, payload.status());
  return payload;
}

absl::Status SnapshotReader::VerifyHeader(const proto::SnapshotFile& file) const {
  const std::string path = PathOf(manifest_, file);
  COVEY_ASSIGN_OR_RETURN(const Buffer start, store_->Read(path, 0, kPartBlockBytes));
  return Damage(path, 0, CheckPartHeader(manifest_, file, start));
}

absl::Status SnapshotReader::VerifyPieces(const proto::SnapshotFile& file, uint64_t& done,
                                          Progress progress) const {
  COVEY_RETURN_IF_ERROR(VerifyHeader(file));
  for (const auto& [offset, named] : PiecesOf(manifest_, file)) {
    COVEY_RETURN_IF_ERROR(ReadPiece(*named.shard, *named.piece).status());
    done += PieceSpace(named.piece->bytes());
    COVEY_RETURN_IF_ERROR(progress(done, bytes_ + reused_bytes_));
  }
  return absl::OkStatus();
}

absl::Status SnapshotReader::VerifyFile(const proto::SnapshotFile& file, uint64_t& done,
                                        Progress progress) const {
  const std::string path = PathOf(manifest_, file);
  const std::map<uint64_t, NamedPiece> named = PiecesOf(manifest_, file);
  COVEY_RETURN_IF_ERROR(VerifyHeader(file));
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
    COVEY_RETURN_IF_ERROR(progress(done, bytes_ + reused_bytes_));
  }
  if (found == named.size()) return absl::OkStatus();
  return Damage(path, offset,
                absl::DataLossError(absl::StrCat(named.size() - found,
                                                 " pieces of the manifest do not begin where it "
                                                 "says: the file is another one")));
}

absl::Status SnapshotReader::Verify(Progress progress) const {
  uint64_t done = bytes_;
  for (const proto::SnapshotFile& file : manifest_.files()) {
    if (file.folder().empty()) done -= file.bytes();
  }
  for (const proto::SnapshotFile& file : manifest_.files()) {
    COVEY_RETURN_IF_ERROR(file.folder().empty() ? VerifyFile(file, done, progress)
                                                : VerifyPieces(file, done, progress));
  }
  return absl::OkStatus();
}

}  // namespace covey
