// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/import_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/part_format.h"
#include "common/snapshot/stored_piece.h"
#include "common/table/definition.h"
#include "proto/replication.pb.h"

namespace covey {
namespace {

constexpr char kFile[] = "values.cvp";
constexpr uint64_t kShardElements = kShardBytesMax / sizeof(float);
static_assert(kImportPieceElements * sizeof(float) <= kReplicaPieceBytesMax);

}  // namespace

proto::TableSpec ImportedTable(absl::string_view name, std::span<const uint64_t> shape) {
  proto::TableSpec spec;
  spec.set_name(std::string(name));
  spec.set_data_type(proto::FLOAT32);
  for (const uint64_t extent : shape) spec.add_shape(extent);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  spec.set_gradient_format(proto::WIRE_FLOAT32);
  return spec;
}

ImportWriter::ImportWriter(Folder& store, const std::string& folder, uint64_t unix_ms)
    : store_(store) {
  manifest_.set_folder(folder);
  manifest_.set_ordered_unix_ms(unix_ms);
}

absl::Status ImportWriter::Append(const std::vector<Buffer>& frames) {
  std::vector<Folder::Bytes> parts;
  uint64_t bytes = 0;
  for (const Buffer& frame : frames) {
    parts.push_back(frame.bytes());
    bytes += frame.size();
  }
  COVEY_RETURN_IF_ERROR(
      store_.Append(absl::StrCat(manifest_.folder(), "/", kFile), offset_, parts));
  offset_ += bytes;
  return absl::OkStatus();
}

absl::Status ImportWriter::AddPiece(Buffer values, uint64_t first, proto::SnapshotShard& shard) {
  proto::SnapshotPiece& piece = *shard.add_pieces();
  piece.set_offset(offset_ + kPartBlockBytes);
  piece.set_bytes(values.size());
  piece.set_checksum(Crc32c(values.bytes()));
  piece.set_kind(proto::ReplicaPiece::VALUES);
  piece.set_first(first);
  return Append(PieceFrames(HeaderOf(shard, piece), std::move(values)));
}

absl::Status ImportWriter::Add(const proto::TableSpec& spec, Read read) {
  COVEY_ASSIGN_OR_RETURN(const TableDefinition definition, TableDefinition::Parse(spec));
  proto::ClusterView& view = *manifest_.mutable_state()->mutable_view();
  if (view.tables_size() >= static_cast<int>(kTablesMax)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", kTablesMax, " tables; import fewer files at a time"));
  }
  if (offset_ == 0) COVEY_RETURN_IF_ERROR(Append({Buffer::CopyOf(EncodePartHeader({}))}));
  proto::Table& table = *view.add_tables();
  table.set_id(static_cast<uint32_t>(view.tables_size()));
  *table.mutable_spec() = spec;
  for (uint64_t first = 0; first < definition.elements; first += kShardElements) {
    proto::Shard& range = *table.add_shards();
    range.set_index(static_cast<uint32_t>(table.shards_size() - 1));
    range.set_first_element(first);
    range.set_element_count(std::min(kShardElements, definition.elements - first));
    range.set_generation(1);
    proto::SnapshotShard& shard = *manifest_.add_shards();
    shard.set_table(table.id());
    shard.set_shard(range.index());
    shard.set_generation(range.generation());
    shard.set_file(kFile);
    for (uint64_t at = 0; at < range.element_count(); at += kImportPieceElements) {
      const uint64_t count = std::min(kImportPieceElements, range.element_count() - at);
      COVEY_RETURN_IF_ERROR(read(first + at, values_.MutableAs<float>().first(count)));
      COVEY_RETURN_IF_ERROR(AddPiece(values_.Slice(0, count * sizeof(float)), at, shard));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ImportWriter::Finish() {
  proto::SnapshotFile& file = *manifest_.add_files();
  file.set_name(kFile);
  file.set_bytes(offset_);
  COVEY_ASSIGN_OR_RETURN(const Buffer manifest, EncodeManifest(manifest_));
  COVEY_RETURN_IF_ERROR(store_.Sync(absl::StrCat(manifest_.folder(), "/", kFile)));
  COVEY_RETURN_IF_ERROR(store_.Publish(ManifestPath(manifest_.folder()), manifest.bytes()));
  return offset_ + manifest.size();
}

}  // namespace covey
