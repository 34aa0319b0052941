// SPDX-License-Identifier: Apache-2.0
#include "client/cli/snapshot/snapshot_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/json_text.h"
#include "client/cli/console/table_shape.h"
#include "client/cli/console/text_table.h"
#include "client/cli/snapshot/omitted_state.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/needed_files.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/stored_piece.h"

namespace covey::cli {
namespace {

using nlohmann::ordered_json;

std::string ShowTime(uint64_t unix_ms) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMillis(static_cast<int64_t>(unix_ms)),
                          absl::UTCTimeZone());
}

// The least and the most of a number, over the shards of a table.
struct Span {
  uint64_t least = ~uint64_t{0};
  uint64_t most = 0;

  void Add(uint64_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  std::string Show() const {
    return least == most ? ShowCount(least)
                         : absl::StrCat(ShowCount(least), " to ", ShowCount(most));
  }
  ordered_json Json() const { return {{"least", least}, {"most", most}}; }
};

// A table in a snapshot.
struct TableFigures {
  const proto::Table* table = nullptr;
  uint64_t value_bytes = 0;
  uint64_t log_bytes = 0;  // of updates
  Span version;
  Span samples;
};

// Of the rows of a sparse table, with their optimizer's state.
uint64_t RowBytesOf(const proto::SnapshotShard& shard) {
  uint64_t bytes = 0;
  for (const proto::SnapshotPiece& piece : shard.pieces()) {
    if (piece.kind() == proto::ReplicaPiece::ROWS) bytes += piece.bytes();
  }
  return bytes;
}

std::vector<TableFigures> TablesOf(const proto::SnapshotManifest& manifest) {
  std::vector<TableFigures> tables;
  for (const proto::Table& table : manifest.state().view().tables()) {
    TableFigures& figures = tables.emplace_back();
    figures.table = &table;
    for (const proto::Shard& range : table.shards()) {
      const ShardEntries entries = EntriesOf(manifest, table.id(), range.index());
      figures.version.Add(entries.newest().version());
      figures.samples.Add(entries.newest().samples());
      for (const proto::SnapshotShard* log : entries.logs) figures.log_bytes += StoredBytesOf(*log);
      figures.value_bytes += table.spec().has_sparse() ? RowBytesOf(*entries.content)
                                                       : range.element_count() * sizeof(float);
    }
  }
  return tables;
}

// Examples of the ledger's present pass that are finished.
uint64_t FinishedInPass(const proto::WorkLedger& ledger) {
  uint64_t examples = 0;
  for (const proto::WorkItem& item : ledger.finished()) {
    if (item.pass() == ledger.pass()) examples += item.count();
  }
  return examples;
}

ordered_json JsonOf(const SnapshotSummary& snapshot) {
  const bool complete = snapshot.complete.ok();
  return {{"name", snapshot.folder},
          {"id", snapshot.id},
          {"epoch", snapshot.epoch},
          {"imported", snapshot.id == 0},
          {"complete", complete},
          {"reason", std::string(snapshot.complete.message())},
          {"ordered_unix_ms", snapshot.ordered_unix_ms},
          {"step", snapshot.step},
          {"tables", snapshot.tables},
          {"bytes", snapshot.bytes},
          {"reused_bytes", snapshot.reused_bytes}};
}

// The number of the snapshot's own files, with the manifest, and of those of earlier snapshots.
struct FileCount {
  int own = 1;
  int others = 0;

  explicit FileCount(const proto::SnapshotManifest& manifest) {
    for (const proto::SnapshotFile& file : manifest.files()) {
      ++(file.folder().empty() ? own : others);
    }
  }
};

std::vector<std::string> PathsOf(const proto::SnapshotManifest& manifest) {
  std::vector<std::string> paths;
  for (const proto::SnapshotFile& file : manifest.files()) paths.push_back(PathOf(manifest, file));
  paths.push_back(ManifestPath(manifest.folder()));
  return paths;
}

// Where the snapshot comes from.
std::string OriginText(const proto::SnapshotManifest& manifest) {
  const std::string time = absl::StrCat(ShowTime(manifest.ordered_unix_ms()), " UTC");
  if (IsImported(manifest)) return absl::StrCat("imported ", time);
  return absl::StrCat("job ", manifest.state().view().job_name(), ", ordered ", time, " in epoch ",
                      manifest.epoch());
}

}  // namespace

std::string SnapshotsText(const std::vector<SnapshotSummary>& snapshots) {
  if (snapshots.empty()) return "no snapshots\n";
  TextTable text({"NAME", "ID", "ORDERED (UTC)", "STEP", "TABLES", "BYTES", "REUSED", "STATE"});
  for (const SnapshotSummary& snapshot : snapshots) {
    if (!snapshot.complete.ok()) {
      text.Add({snapshot.folder, snapshot.id == 0 ? "-" : absl::StrCat(snapshot.id), "-", "-", "-",
                "-", "-", absl::StrCat("not complete: ", snapshot.complete.message())});
      continue;
    }
    const bool imported = snapshot.id == 0;
    text.Add({snapshot.folder, imported ? "-" : absl::StrCat(snapshot.id),
              ShowTime(snapshot.ordered_unix_ms), imported ? "-" : ShowCount(snapshot.step),
              ShowCount(snapshot.tables), ShowBytes(snapshot.bytes),
              ShowBytes(snapshot.reused_bytes), imported ? "complete, imported" : "complete"});
  }
  return text.Render();
}

std::string SnapshotsJson(const std::vector<SnapshotSummary>& snapshots) {
  ordered_json json = ordered_json::array();
  for (const SnapshotSummary& snapshot : snapshots) json.push_back(JsonOf(snapshot));
  return JsonText(json);
}

std::string SnapshotText(const proto::SnapshotManifest& manifest, uint64_t bytes) {
  const FileCount files(manifest);
  std::string all = absl::StrCat(manifest.folder(), ": ", OriginText(manifest), ", ",
                                 ShowBytes(bytes), " in ", files.own, " files");
  if (files.others > 0) {
    absl::StrAppend(&all, ", and ", ShowBytes(ReusedBytes(manifest)), " in ", files.others,
                    " files of earlier snapshots");
  }
  absl::StrAppend(&all, "\n\n");
  TextTable tables({"TABLE", "SHAPE", "SHARDS", "VALUES", "VERSION", "SAMPLES"});
  uint64_t log_bytes = 0;
  for (const TableFigures& figures : TablesOf(manifest)) {
    log_bytes += figures.log_bytes;
    tables.Add({figures.table->spec().name(), ShowShape(figures.table->spec()),
                absl::StrCat(figures.table->shards_size()), ShowBytes(figures.value_bytes),
                figures.version.Show(), figures.samples.Show()});
  }
  absl::StrAppend(&all, tables.empty() ? "no tables\n" : tables.Render());
  if (log_bytes > 0) {
    absl::StrAppend(&all, "\n", ShowBytes(log_bytes),
                    " are updates since an earlier snapshot; they are applied when it is read.\n");
  }
  TextTable groups({"GROUP", "LAST STEP"});
  for (const proto::CutStep& group : manifest.groups()) {
    groups.Add({absl::StrCat(group.group()), ShowCount(group.step())});
  }
  if (!groups.empty()) absl::StrAppend(&all, "\n", groups.Render());
  TextTable data({"DATA SET", "PASSES DONE", "DONE OF THE NEXT PASS"});
  for (const proto::WorkLedger& ledger : manifest.state().work()) {
    data.Add({ledger.name(),
              absl::StrCat(ShowCount(ledger.pass()), " of ", ShowCount(ledger.passes())),
              absl::StrCat(ShowCount(FinishedInPass(ledger)), " of ", ShowCount(ledger.examples()),
                           " examples")});
  }
  if (!data.empty()) absl::StrAppend(&all, "\n", data.Render());
  for (const std::string& omitted : OmittedState(manifest)) {
    absl::StrAppend(&all, "\nNot in it: ", omitted, "\n");
  }
  return all;
}

std::string SnapshotJson(const proto::SnapshotManifest& manifest, uint64_t bytes) {
  ordered_json json = {{"name", manifest.folder()},
                       {"id", manifest.id()},
                       {"epoch", manifest.epoch()},
                       {"imported", IsImported(manifest)},
                       {"job", manifest.state().view().job_name()},
                       {"ordered_unix_ms", manifest.ordered_unix_ms()},
                       {"bytes", bytes},
                       {"files", FileCount(manifest).own},
                       {"reused_bytes", ReusedBytes(manifest)},
                       {"reused_files", FileCount(manifest).others},
                       {"tables", ordered_json::array()},
                       {"groups", ordered_json::array()},
                       {"data_sets", ordered_json::array()},
                       {"omitted", OmittedState(manifest)}};
  for (const TableFigures& figures : TablesOf(manifest)) {
    json["tables"].push_back({{"name", figures.table->spec().name()},
                              {"shape", std::vector<uint64_t>(figures.table->spec().shape().begin(),
                                                              figures.table->spec().shape().end())},
                              {"shards", figures.table->shards_size()},
                              {"value_bytes", figures.value_bytes},
                              {"log_bytes", figures.log_bytes},
                              {"version", figures.version.Json()},
                              {"samples", figures.samples.Json()}});
    if (figures.table->spec().has_sparse()) {
      json["tables"].back()["row_width"] = figures.table->spec().sparse().width();
      json["tables"].back()["row_type"] =
          absl::AsciiStrToLower(proto::DataType_Name(figures.table->spec().data_type()));
    }
  }
  for (const proto::CutStep& group : manifest.groups()) {
    json["groups"].push_back({{"group", group.group()}, {"last_step", group.step()}});
  }
  for (const proto::WorkLedger& ledger : manifest.state().work()) {
    json["data_sets"].push_back({{"name", ledger.name()},
                                 {"examples", ledger.examples()},
                                 {"passes", ledger.passes()},
                                 {"passes_done", ledger.pass()},
                                 {"examples_done_of_next_pass", FinishedInPass(ledger)}});
  }
  return JsonText(json);
}

std::string SnapshotFilesText(const proto::SnapshotManifest& manifest) {
  return absl::StrCat(absl::StrJoin(PathsOf(manifest), "\n"), "\n");
}

std::string SnapshotFilesJson(const proto::SnapshotManifest& manifest) {
  return JsonText(PathsOf(manifest));
}

}  // namespace covey::cli
