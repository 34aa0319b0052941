// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/testing/small_snapshot.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/cluster/view.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/part_format.h"

namespace covey {
namespace {

constexpr char kState[] = R"pb(
  index: 40
  decision: "snapshot"
  view {
    job_name: "small"
    epoch: 42
    nodes { id: 2 role: SERVER state: ALIVE name: "server-0" }
    nodes { id: 3 role: SERVER state: ALIVE name: "server-1" rank: 1 }
    nodes { id: 4 role: WORKER state: ALIVE name: "worker-0" }
    groups { id: 1 generation: 1 members: 4 state: ACTIVE }
    tables {
      id: 1
      spec {
        name: "weights"
        data_type: FLOAT32
        shape: 5
        shape: 4
        optimizer { kind: MOMENTUM momentum: 0.5 }
        learning_rate { base: 0.125 }
        contract { kind: BSP }
        durability: MEMORY
        gradient_format: WIRE_FLOAT32
      }
      shards {
        element_count: 16
        generation: 7
        chain { node: 2 loop: 1 }
      }
      shards {
        index: 1
        first_element: 16
        element_count: 4
        generation: 7
        chain { node: 3 loop: 1 }
      }
    }
    tables {
      id: 2
      spec {
        name: "bias"
        data_type: FLOAT32
        shape: 3
        learning_rate { base: 0.125 }
        contract { kind: BSP }
        durability: MEMORY
        gradient_format: WIRE_FLOAT32
      }
      shards {
        element_count: 3
        generation: 8
        chain { node: 3 loop: 1 }
      }
    }
  }
  next_node: 5
  next_table: 3
  barriers {
    key: "start"
    value { request_ids { key: 4 value: 9 } }
  }
  work {
    name: "train"
    examples: 1000
    item_examples: 10
    passes: 3
    pass: 1
    finished { pass: 1 first: 0 count: 250 }
    finished { pass: 1 first: 250 }
  }
)pb";

void AddPiece(SmallSnapshot::File& file, proto::SnapshotShard& shard,
              proto::ReplicaPiece::Kind kind, uint64_t bytes, proto::SnapshotFile& entry) {
  Buffer payload = Buffer::Allocate(bytes);
  // Small whole numbers, also when read as float.
  for (uint64_t i = 0; i < bytes; ++i) {
    payload.MutableData()[i] =
        static_cast<uint8_t>(i % 4 < 2 ? 0 : (i % 4 == 3 ? 0x40 : 16 * (i / 4 + shard.shard())));
  }
  proto::SnapshotPiece& piece = *shard.add_pieces();
  piece.set_offset(entry.bytes() + kPartBlockBytes);
  piece.set_bytes(bytes);
  piece.set_checksum(Crc32c(payload.bytes()));
  piece.set_kind(kind);
  entry.set_bytes(entry.bytes() + PieceSpace(bytes));
  file.appended.push_back(PieceFrames({.shard = {TableId(shard.table()), ShardIndex(shard.shard())},
                                       .generation = shard.generation(),
                                       .index = shard.index(),
                                       .kind = kind,
                                       .bytes = bytes,
                                       .checksum = piece.checksum()},
                                      std::move(payload)));
}

}  // namespace

SmallSnapshot SmallSnapshot::Make(uint64_t id, uint64_t epoch) {
  SmallSnapshot snapshot;
  proto::SnapshotManifest& manifest = snapshot.manifest;
  manifest.set_id(id);
  manifest.set_epoch(epoch);
  manifest.set_folder(SnapshotFolderName(id, epoch));
  COVEY_CHECK(google::protobuf::TextFormat::ParseFromString(kState, manifest.mutable_state()));
  proto::ClusterView& view = *manifest.mutable_state()->mutable_view();
  view.set_job(JobFingerprint(view.job_name()));
  proto::CutStep& group = *manifest.add_groups();
  group.set_group(1);
  group.set_step(100 * id);
  manifest.set_ordered_unix_ms(1'700'000'000'000 + 60'000 * id);

  const PartHeader header = {.job = view.job(), .snapshot = id, .epoch = epoch};
  for (const char* name : {"part-2-1-000.cvp", "part-3-1-000.cvp"}) {
    snapshot.files.push_back({.name = name, .appended = {}});
    snapshot.files.back().appended.push_back({Buffer::CopyOf(EncodePartHeader(header))});
    proto::SnapshotFile& entry = *manifest.add_files();
    entry.set_name(name);
    entry.set_bytes(kPartBlockBytes);
  }
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& range : table.shards()) {
      proto::SnapshotShard& shard = *manifest.add_shards();
      const int number = static_cast<int>(range.chain(0).node()) - 2;
      File& file = snapshot.files[static_cast<size_t>(number)];
      proto::SnapshotFile& entry = *manifest.mutable_files(number);
      shard.set_table(table.id());
      shard.set_shard(range.index());
      shard.set_generation(range.generation());
      shard.set_index(10 * id + range.index());
      shard.set_version(20 * id);
      shard.set_samples(640 * id);
      shard.set_file(file.name);
      const uint64_t bytes = range.element_count() * sizeof(float);
      AddPiece(file, shard, proto::ReplicaPiece::VALUES, bytes, entry);
      if (table.spec().optimizer().kind() == proto::Optimizer::MOMENTUM) {
        AddPiece(file, shard, proto::ReplicaPiece::SLOT, bytes, entry);
      }
      AddPiece(file, shard, proto::ReplicaPiece::RECORD, 21, entry);
    }
  }
  return snapshot;
}

SmallSnapshot SmallSnapshot::MakeAfter(const SmallSnapshot& earlier, uint64_t id, uint64_t epoch) {
  SmallSnapshot snapshot = Make(id, epoch);
  snapshot.files.pop_back();
  proto::SnapshotManifest& manifest = snapshot.manifest;
  manifest.mutable_files()->RemoveLast();
  const std::string& folder = earlier.manifest.folder();
  for (int i = 1; i < manifest.shards_size(); ++i) {
    proto::SnapshotShard& shard = *manifest.mutable_shards(i);
    shard = earlier.manifest.shards(i);
    if (shard.folder().empty()) shard.set_folder(folder);
  }
  for (const proto::SnapshotFile& file : earlier.manifest.files()) {
    if (file.name() != manifest.shards(1).file()) continue;
    proto::SnapshotFile& used = *manifest.add_files();
    used = file;
    if (used.folder().empty()) used.set_folder(folder);
  }
  return snapshot;
}

absl::Status SmallSnapshot::WritePart(const File& file, Folder& store) const {
  const std::string path = manifest.folder() + "/" + file.name;
  uint64_t offset = 0;
  for (const std::vector<Buffer>& frames : file.appended) {
    std::vector<Folder::Bytes> parts;
    for (const Buffer& frame : frames) parts.push_back(frame.bytes());
    COVEY_RETURN_IF_ERROR(store.Append(path, offset, parts));
    for (const Buffer& frame : frames) offset += frame.size();
  }
  return store.Sync(path);
}

absl::Status SmallSnapshot::PublishManifest(Folder& store) const {
  COVEY_ASSIGN_OR_RETURN(const Buffer bytes, EncodeManifest(manifest));
  return store.Publish(manifest.folder() + "/" + kManifestName, bytes.bytes());
}

absl::Status SmallSnapshot::WriteTo(Folder& store) const {
  for (const File& file : files) COVEY_RETURN_IF_ERROR(WritePart(file, store));
  return PublishManifest(store);
}

std::map<std::string, std::string> SmallSnapshot::Bytes() const {
  const auto add = [](const Buffer& buffer, std::string& text) {
    text.append(reinterpret_cast<const char*>(buffer.data()), buffer.size());
  };
  std::map<std::string, std::string> all;
  for (const File& file : files) {
    for (const std::vector<Buffer>& frames : file.appended) {
      for (const Buffer& frame : frames) add(frame, all[manifest.folder() + "/" + file.name]);
    }
  }
  const absl::StatusOr<Buffer> bytes = EncodeManifest(manifest);
  COVEY_CHECK(bytes.ok());
  add(*bytes, all[manifest.folder() + "/" + kManifestName]);
  return all;
}

}  // namespace covey
