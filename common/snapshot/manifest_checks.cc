// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/manifest_checks.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/cluster/view.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/row_optimizer.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/part_format.h"
#include "common/snapshot/shard_entries.h"
#include "common/store/folder.h"
#include "common/table/definition.h"

namespace covey {
namespace {

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckFolder(const proto::SnapshotManifest& manifest) {
  const std::string folder = SnapshotFolderName(manifest.id(), manifest.epoch());
  const bool good = IsImported(manifest)
                        ? manifest.epoch() == 0 && IsImportFolderName(manifest.folder())
                        : manifest.folder() == folder;
  if (good) return absl::OkStatus();
  return Invalid("it is of folder '", manifest.folder().substr(0, kNameBytesMax), "', but id ",
                 manifest.id(), " and epoch ", manifest.epoch(), " mean ",
                 IsImported(manifest) ? ImportFolderName("NAME") : folder);
}

absl::Status CheckGroups(const proto::SnapshotManifest& manifest, const ClusterView& view) {
  const proto::CutStep* before = nullptr;
  for (const proto::CutStep& group : manifest.groups()) {
    if (before != nullptr && before->group() >= group.group()) {
      return Invalid("group ", group.group(), " follows group ", before->group());
    }
    if (view.FindGroup(GroupId(group.group())) == nullptr || group.step() > kPushSequenceMax) {
      return Invalid("group ", group.group(), " at step ", group.step(),
                     " is none of the snapshot's view");
    }
    before = &group;
  }
  return absl::OkStatus();
}

// Files are in growing order of this.
auto PlaceOf(const proto::SnapshotFile& file) { return std::tie(file.folder(), file.name()); }

// A file of another snapshot is one of an earlier snapshot.
absl::Status CheckReference(const proto::SnapshotManifest& manifest, const std::string& folder) {
  const std::optional<SnapshotName> earlier = ParseSnapshotFolderName(folder);
  if (earlier && earlier->id < manifest.id() && earlier->epoch <= manifest.epoch()) {
    return absl::OkStatus();
  }
  return Invalid("it refers to '", folder.substr(0, kNameBytesMax),
                 "', which is no earlier snapshot");
}

absl::Status CheckFiles(const proto::SnapshotManifest& manifest) {
  if (manifest.files_size() >= static_cast<int>(kStoreEntriesMax)) {
    return Invalid(manifest.files_size(), " files; at most ", kStoreEntriesMax - 1, " are allowed");
  }
  const proto::SnapshotFile* before = nullptr;
  for (const proto::SnapshotFile& file : manifest.files()) {
    COVEY_RETURN_IF_ERROR(CheckEntryName(file.name()));
    if (!file.folder().empty()) COVEY_RETURN_IF_ERROR(CheckReference(manifest, file.folder()));
    if (file.name() == kManifestName || (before != nullptr && PlaceOf(*before) >= PlaceOf(file))) {
      return Invalid("file ", file.name(), " is out of order, or twice in the list");
    }
    if (file.bytes() < kPartBlockBytes || file.bytes() % kPartBlockBytes != 0 ||
        file.bytes() >= uint64_t{1} << 60) {
      return Invalid("file ", file.name(), " has ", file.bytes(), " bytes, which no part file has");
    }
    before = &file;
  }
  return absl::OkStatus();
}

// Where a piece lies in its file.
struct Extent {
  int file = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  auto operator<=>(const Extent&) const = default;
};

// What a table's shards consist of.
struct Content {
  uint64_t elements = 0;
  // Values, and the slots of the optimizer.
  uint32_t arrays = 0;
  bool has_record = true;
  // Of a sparse table, whose shards hold rows in place of arrays: bytes of a row in a piece.
  uint64_t row_bytes = 0;
};

// The array of a piece: 0 = values, 1 = slot 0.
uint64_t ArrayOf(const proto::SnapshotPiece& piece) {
  return piece.kind() == proto::ReplicaPiece::VALUES ? 0 : uint64_t{piece.slot()} + 1;
}

absl::Status CheckPieces(const proto::SnapshotShard& shard, const Content& content) {
  uint64_t array = 0;
  uint64_t first = 0;
  int records = 0;
  for (const proto::SnapshotPiece& piece : shard.pieces()) {
    if (piece.bytes() > kFrameBytesMax) {
      return Invalid("a piece has ", piece.bytes(), " bytes, more than ", kFrameBytesMax);
    }
    if (piece.kind() == proto::ReplicaPiece::RECORD) {
      if (array != content.arrays || piece.slot() != 0 || piece.first() != 0) break;
      ++records;
      continue;
    }
    const uint64_t elements = piece.bytes() / sizeof(float);
    if ((piece.kind() != proto::ReplicaPiece::VALUES &&
         piece.kind() != proto::ReplicaPiece::SLOT) ||
        (piece.kind() == proto::ReplicaPiece::VALUES && piece.slot() != 0) || records > 0 ||
        array == content.arrays || ArrayOf(piece) != array || piece.first() != first ||
        elements == 0 || piece.bytes() % sizeof(float) != 0 ||
        elements > content.elements - first) {
      return Invalid("the piece of kind ", piece.kind(), ", slot ", piece.slot(), ", with ",
                     piece.bytes(), " bytes from element ", piece.first(),
                     " does not continue array ", array, " of ", content.arrays, " at element ",
                     first, " of ", content.elements);
    }
    first += elements;
    if (first < content.elements) continue;
    first = 0;
    ++array;
  }
  if (array == content.arrays && (records > 0) == content.has_record) return absl::OkStatus();
  return Invalid("its pieces hold ", array, " of ", content.arrays,
                 " arrays (values and the optimizer's slots) and ", records,
                 " records; all arrays and ", content.has_record ? "a" : "no",
                 " record are needed");
}

// Of a shard of a sparse table.
absl::Status CheckRowPieces(const proto::SnapshotShard& shard, const Content& content) {
  int records = 0;
  for (const proto::SnapshotPiece& piece : shard.pieces()) {
    const auto has_rows = [&](uint32_t kind, uint64_t row_bytes) {
      return piece.kind() == kind && records == 0 && piece.bytes() > 0 &&
             piece.bytes() % row_bytes == 0;
    };
    const bool is_rows = has_rows(proto::ReplicaPiece::ROWS, content.row_bytes) ||
                         has_rows(proto::ReplicaPiece::PENDING, RowLayout().row_bytes());
    const bool is_record = piece.kind() == proto::ReplicaPiece::RECORD;
    if ((!is_rows && !is_record) || piece.bytes() > kFrameBytesMax || piece.slot() != 0 ||
        piece.first() != 0) {
      return Invalid("the piece of kind ", piece.kind(), ", slot ", piece.slot(), ", with ",
                     piece.bytes(), " bytes is not of rows of ", content.row_bytes,
                     " bytes, nor of keys that wait, nor the record that follows them");
    }
    records += is_record;
  }
  if (records > 0) return absl::OkStatus();
  return Invalid("its pieces hold no record; one is needed after the rows");
}

// A log that follows the entry `before` of the same shard.
absl::Status CheckLog(const proto::SnapshotShard& before, const proto::SnapshotShard& log) {
  if (log.generation() != before.generation() || log.index() <= before.index() ||
      log.version() < before.version() || log.samples() < before.samples() ||
      log.samples() > kShardSamplesMax) {
    return Invalid("the log up to record ", log.index(), " of generation ", log.generation(),
                   " does not follow record ", before.index(), " of generation ",
                   before.generation());
  }
  if (log.folder().empty()) return Invalid("its log is in no folder of an earlier snapshot");
  uint64_t next = before.index() + 1;
  for (const proto::SnapshotPiece& piece : log.pieces()) {
    if (piece.kind() != proto::ReplicaPiece::UPDATES || piece.slot() != 0 || piece.first() < next ||
        piece.first() > log.index() || piece.bytes() == 0 || piece.bytes() > kFrameBytesMax) {
      return Invalid("the piece of kind ", piece.kind(), " with ", piece.bytes(),
                     " bytes from record ", piece.first(), " is not of a log of records ", next,
                     " to ", log.index());
    }
    next = piece.first() + 1;
  }
  return absl::OkStatus();
}

// Adds the places of the shard's pieces to `extents`.
absl::Status PlacePieces(const proto::SnapshotManifest& manifest, const proto::SnapshotShard& shard,
                         std::vector<Extent>& extents) {
  const auto& files = manifest.files();
  const auto place = std::tie(shard.folder(), shard.file());
  const auto file =
      std::lower_bound(files.begin(), files.end(), place,
                       [](const proto::SnapshotFile& a, const auto& b) { return PlaceOf(a) < b; });
  if (file == files.end() || PlaceOf(*file) != place) {
    return Invalid("its file '", shard.file().substr(0, kNameBytesMax), "' is not in the list");
  }
  for (const proto::SnapshotPiece& piece : shard.pieces()) {
    const uint64_t space = PieceSpace(piece.bytes());
    if (piece.offset() % kPartBlockBytes != 0 || piece.offset() < 2 * kPartBlockBytes ||
        piece.offset() > file->bytes() ||
        space - kPartBlockBytes > file->bytes() - piece.offset()) {
      return Invalid("the piece of ", piece.bytes(), " bytes at offset ", piece.offset(),
                     " is not inside ", file->name(), ", which has ", file->bytes(), " bytes");
    }
    const uint64_t begin = piece.offset() - kPartBlockBytes;
    extents.push_back(
        {.file = static_cast<int>(file - files.begin()), .begin = begin, .end = begin + space});
  }
  return absl::OkStatus();
}

// Of any shard of the table, without the number of elements.
absl::StatusOr<Content> ContentOf(const proto::SnapshotManifest& manifest,
                                  const proto::Table& table) {
  COVEY_ASSIGN_OR_RETURN(const TableDefinition definition, TableDefinition::InForce(table));
  if (definition.sparse) {
    COVEY_ASSIGN_OR_RETURN(const auto optimizer,
                           RowOptimizer::Create(definition.optimizer, definition.sparse->width));
    return Content{.row_bytes = optimizer->layout(definition.sparse->type).row_bytes()};
  }
  if (IsImported(manifest)) return Content{.arrays = 1, .has_record = false};
  COVEY_ASSIGN_OR_RETURN(const std::unique_ptr<Optimizer> optimizer,
                         MakeOptimizer(definition.optimizer));
  return Content{.arrays = static_cast<uint32_t>(optimizer->state_slots()) + 1};
}

absl::Status CheckShard(const proto::SnapshotManifest& manifest, const proto::SnapshotShard& shard,
                        const Content& content, std::vector<Extent>& extents) {
  if (shard.generation() == 0 || shard.samples() > kShardSamplesMax) {
    return Invalid("generation ", shard.generation(), " with ", shard.samples(),
                   " samples cannot be");
  }
  COVEY_RETURN_IF_ERROR(content.row_bytes > 0 ? CheckRowPieces(shard, content)
                                              : CheckPieces(shard, content));
  return PlacePieces(manifest, shard, extents);
}

// The logs from manifest.shards(next) on that belong to the shard before; sets `next` behind them.
absl::Status CheckLogs(const proto::SnapshotManifest& manifest, int& next,
                       std::vector<Extent>& extents) {
  size_t logs = 0;
  for (; next < manifest.shards_size(); ++next) {
    const proto::SnapshotShard& before = manifest.shards(next - 1);
    const proto::SnapshotShard& log = manifest.shards(next);
    if (!IsLog(log) || log.table() != before.table() || log.shard() != before.shard()) break;
    if (++logs > kLogsPerShardMax) {
      return Invalid("it has more than ", kLogsPerShardMax, " logs");
    }
    COVEY_RETURN_IF_ERROR(CheckLog(before, log));
    COVEY_RETURN_IF_ERROR(PlacePieces(manifest, log, extents));
  }
  return absl::OkStatus();
}

// A file of an earlier snapshot would be kept for nothing otherwise.
absl::Status CheckReferencesAreUsed(const proto::SnapshotManifest& manifest,
                                    const std::vector<Extent>& extents) {
  std::set<int> used;
  for (const Extent& extent : extents) used.insert(extent.file);
  for (int i = 0; i < manifest.files_size(); ++i) {
    if (manifest.files(i).folder().empty() || used.contains(i)) continue;
    return Invalid("no shard is in file ", manifest.files(i).name(), " of ",
                   manifest.files(i).folder());
  }
  return absl::OkStatus();
}

absl::Status CheckShards(const proto::SnapshotManifest& manifest, const ClusterView& view) {
  std::vector<Extent> extents;
  std::set<std::string> names;
  int next = 0;
  for (const proto::Table& table : view.proto().tables()) {
    const std::string where = absl::StrCat("table '", table.spec().name(), "'");
    if (!names.insert(table.spec().name()).second) return Invalid("two tables are named ", where);
    const absl::StatusOr<Content> content = ContentOf(manifest, table);
    if (!content.ok()) return Annotate(where, content.status());
    for (const proto::Shard& wanted : table.shards()) {
      const bool there = next < manifest.shards_size() &&
                         manifest.shards(next).table() == table.id() &&
                         manifest.shards(next).shard() == wanted.index();
      if (!there) return Invalid(where, ": shard ", wanted.index(), " is missing");
      const std::string shard = absl::StrCat(where, ", shard ", wanted.index());
      COVEY_RETURN_IF_ERROR(Annotate(shard, CheckShard(manifest, manifest.shards(next++),
                                                       {.elements = wanted.element_count(),
                                                        .arrays = content->arrays,
                                                        .has_record = content->has_record,
                                                        .row_bytes = content->row_bytes},
                                                       extents)));
      COVEY_RETURN_IF_ERROR(Annotate(shard, CheckLogs(manifest, next, extents)));
    }
  }
  if (next != manifest.shards_size()) {
    return Invalid("shard ", manifest.shards(next).shard(), " of table ",
                   manifest.shards(next).table(), " is none of the snapshot's tables");
  }
  std::sort(extents.begin(), extents.end());
  COVEY_RETURN_IF_ERROR(CheckReferencesAreUsed(manifest, extents));
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].file == extents[i - 1].file && extents[i].begin < extents[i - 1].end) {
      return Invalid("two pieces overlap in ", manifest.files(extents[i].file).name(),
                     " at offset ", extents[i].begin);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckManifest(const proto::SnapshotManifest& manifest) {
  COVEY_RETURN_IF_ERROR(CheckFolder(manifest));
  const absl::StatusOr<std::shared_ptr<const ClusterView>> view =
      ClusterView::Make(manifest.state().view());
  if (!view.ok()) return Annotate("the cluster's state", view.status());
  COVEY_RETURN_IF_ERROR(CheckGroups(manifest, **view));
  COVEY_RETURN_IF_ERROR(CheckFiles(manifest));
  return CheckShards(manifest, **view);
}

}  // namespace covey
