// SPDX-License-Identifier: Apache-2.0
#include "common/recording/recording.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/recording/loop_recording.h"

namespace covey {
namespace {

// Table, shard, generation.
using HistoryKey = std::tuple<uint32_t, uint32_t, uint64_t>;
// Node, loop.
using LoopKey = std::pair<uint64_t, uint32_t>;

absl::Status Damaged(absl::string_view file, const absl::Status& why) {
  return absl::Status(why.code(), absl::StrCat(file, ", ", why.message()));
}

absl::StatusOr<std::map<LoopKey, std::vector<RecordingFileId>>> FindFiles(Folder& folder) {
  COVEY_ASSIGN_OR_RETURN(const std::vector<FolderEntry> entries, folder.List(""));
  std::map<LoopKey, std::vector<RecordingFileId>> loops;
  for (const FolderEntry& entry : entries) {
    const std::optional<RecordingFileId> id = ParseRecordingFileName(entry.name);
    if (id && !entry.is_folder) loops[{id->node, id->loop}].push_back(*id);
  }
  for (auto& [loop, files] : loops) std::sort(files.begin(), files.end());
  if (!loops.empty()) return loops;
  return absl::NotFoundError(
      "the folder holds no recording; record one with covey run --record DIR");
}

// The files of one loop.
class LoopReader {
 public:
  LoopReader(Folder& folder, std::vector<std::string>& files, std::vector<std::string>& notes)
      : folder_(folder), files_(files), notes_(notes) {}

  absl::StatusOr<LoopRecording> Read(const std::vector<RecordingFileId>& ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i].number != i) {
        notes_.push_back(
            absl::StrCat(RecordingFileName({ids[i].node, ids[i].loop, static_cast<uint32_t>(i)}),
                         " is missing: the recording of this server's loop ends there"));
        return recording_;
      }
      const bool is_last = i + 1 == ids.size();
      COVEY_RETURN_IF_ERROR(ReadFile(ids[i], is_last));
    }
    return recording_;
  }

 private:
  absl::Status ReadFile(const RecordingFileId& id, bool is_last) {
    const std::string name = RecordingFileName(id);
    files_.push_back(name);
    COVEY_ASSIGN_OR_RETURN(const Buffer bytes, folder_.Read(name, 0, 0));
    // A crash of the machine may tear even the header.
    if (is_last && bytes.size() < kRecordingHeaderBytes) {
      notes_.push_back(absl::StrCat(name, " ends within its header"));
      return absl::OkStatus();
    }
    const absl::StatusOr<RecordingContent> content = DecodeRecordingFile(bytes.bytes());
    if (!content.ok()) return Damaged(name, content.status());
    if (content->header.file != id) {
      return absl::DataLossError(
          absl::StrCat(name, ", offset 0: it is ", RecordingFileName(content->header.file)));
    }
    for (const RecordingBlock& block : content->blocks) {
      if (const absl::Status added = recording_.Add(block, files_.size() - 1); !added.ok()) {
        return absl::DataLossError(
            absl::StrCat(name, ", offset ", block.offset, ": ", added.message()));
      }
    }
    const bool is_torn = content->intact_bytes < bytes.size();
    if (is_torn && !is_last) {
      return absl::DataLossError(
          absl::StrCat(name, ", offset ", content->intact_bytes, ": a block is incomplete"));
    }
    if (is_last && !recording_.has_ended()) {
      notes_.push_back(absl::StrCat(
          name, " ends after block ", content->blocks.size(), ", at offset ", content->intact_bytes,
          is_torn ? ", with a torn block" : "", ": the server was killed, or could not write on"));
    }
    return absl::OkStatus();
  }

  Folder& folder_;
  std::vector<std::string>& files_;
  std::vector<std::string>& notes_;
  LoopRecording recording_;
};

// Appends what the next head has applied. False: records are missing in between.
bool Continue(ShardHistory& history, const HeadTerm& term) {
  std::vector<RecordedUpdate>& updates = history.updates;
  if (term.index < history.begin || term.index > history.begin + updates.size()) return false;
  // What the head before applied beyond this point never became durable.
  updates.resize(term.index - history.begin);
  updates.insert(updates.end(), term.updates.begin(), term.updates.end());
  return true;
}

std::string NoteGap(const ShardHistory& history, const HeadTerm& term) {
  return absl::StrCat(history.name, ": records ", history.begin + history.updates.size() + 1,
                      " to ", term.index, " were not recorded, so what follows is left out");
}

// A shard that was lost and made again has a history for each generation.
void NameGenerations(std::vector<ShardHistory>& shards) {
  std::map<std::string, int> generations;
  for (const ShardHistory& shard : shards) ++generations[shard.name];
  for (ShardHistory& shard : shards) {
    if (generations[shard.name] == 1) continue;
    absl::StrAppend(&shard.name, " generation ", shard.shard().generation());
  }
}

}  // namespace

absl::StatusOr<Recording> Recording::Open(Folder& folder) {
  Recording recording(folder);
  COVEY_ASSIGN_OR_RETURN(const auto loops, FindFiles(folder));
  std::map<HistoryKey, std::map<uint64_t, HeadTerm>> terms;
  for (const auto& [loop, ids] : loops) {
    LoopReader reader(folder, recording.files_, recording.notes_);
    COVEY_ASSIGN_OR_RETURN(const LoopRecording read, reader.Read(ids));
    for (const HeadTerm& term : read.terms()) {
      const proto::Shard& shard = term.table.shards(0);
      const HistoryKey key = {term.table.id(), shard.index(), shard.generation()};
      if (terms[key].emplace(term.chain_epoch, term).second) continue;
      return absl::DataLossError(absl::StrCat(
          RecordingFileName({loop.first, loop.second, 0}), ": table '", term.table.spec().name(),
          "' shard ", shard.index(), " has two heads in epoch ", term.chain_epoch,
          "; the folder holds files of several jobs"));
    }
  }
  for (auto& [key, heads] : terms) {
    ShardHistory history;
    history.table = heads.begin()->second.table;
    history.name =
        absl::StrCat("table '", history.table.spec().name(), "' shard ", history.shard().index());
    // It then has the index of the snapshot's record.
    if (!history.shard().origin().empty()) history.begin = heads.begin()->second.index;
    for (const auto& [epoch, term] : heads) {
      if (Continue(history, term)) continue;
      recording.notes_.push_back(NoteGap(history, term));
      break;
    }
    recording.shards_.push_back(std::move(history));
  }
  NameGenerations(recording.shards_);
  return recording;
}

absl::StatusOr<Buffer> Recording::ReadGradient(const RecordedUpdate& update) const {
  if (!update.record.payload) return absl::NotFoundError("the gradients were not recorded");
  const std::string& file = files_[update.file];
  COVEY_ASSIGN_OR_RETURN(Buffer bytes,
                         folder_->Read(file, update.payload_offset, update.record.payload->bytes));
  if (Crc32c(bytes.bytes()) == update.record.payload->checksum) return bytes;
  return absl::DataLossError(absl::StrCat(file, ", offset ", update.payload_offset,
                                          ": a gradient differs from its checksum"));
}

}  // namespace covey
