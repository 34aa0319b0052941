// SPDX-License-Identifier: Apache-2.0
#include "client/cli/rows/rows_export.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/console/figures.h"
#include "client/cli/rows/new_folder.h"
#include "client/cli/rows/row_sorter.h"
#include "client/cli/rows/rows_origin.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/format/npy.h"
#include "common/runtime/process_main.h"
#include "common/store/disk_folder.h"
#include "common/tensor/codec.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kProgressInterval = absl::Seconds(1);
// Rows between two looks at the clock.
constexpr uint64_t kRowsBetweenLooks = 1 << 16;

template <typename T>
std::span<const uint8_t> BytesOf(std::span<const T> elements) {
  return {reinterpret_cast<const uint8_t*>(elements.data()), elements.size_bytes()};
}
std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class Export {
 public:
  Export(const RowsExportOptions& options, const std::function<void(absl::string_view)>& progress)
      : options_(options), progress_(progress) {}

  absl::StatusOr<ExportedRows> Run();

 private:
  absl::StatusOr<RowsOrigin> Read();
  absl::Status TakeRows(std::span<const uint64_t> keys, std::span<const float> rows);
  absl::Status WriteRows(ExportedRows& exported);
  // The row's elements as the file has them.
  std::span<const uint8_t> InFile(std::span<const float> row, WireFormat format);
  absl::Status WriteRemoved(ExportedRows& exported);
  // CANCELLED: the user has interrupted this.
  absl::Status Look(absl::string_view did, uint64_t rows);

  const RowsExportOptions& options_;
  const std::function<void(absl::string_view)>& progress_;
  absl::Time last_progress_ = MonotonicNow();
  std::unique_ptr<NewFolder> folder_;
  std::optional<RowSorter> sorter_;  // made when the width is known
  std::vector<uint8_t> encoded_;     // a row
};

absl::Status Export::Look(absl::string_view did, uint64_t rows) {
  if (WaitForTermination(absl::ZeroDuration())) {
    return absl::CancelledError(absl::StrCat("interrupted; ", options_.out, " was not written"));
  }
  if (MonotonicNow() - last_progress_ < kProgressInterval) return absl::OkStatus();
  last_progress_ = MonotonicNow();
  progress_(absl::StrCat(did, " ", ShowCount(rows), " rows"));
  return absl::OkStatus();
}

absl::Status Export::TakeRows(std::span<const uint64_t> keys, std::span<const float> rows) {
  if (!keys.empty()) {
    if (!sorter_) {
      sorter_.emplace(RowSorter::Options{.folder = folder_->path(),
                                         .width = rows.size() / keys.size(),
                                         .memory_bytes = options_.memory_bytes});
    }
    COVEY_RETURN_IF_ERROR(sorter_->Add(keys, rows));
  }
  return Look("read", sorter_ ? sorter_->size() : 0);
}

absl::StatusOr<RowsOrigin> Export::Read() {
  const auto take = [this](std::span<const uint64_t> keys, std::span<const float> rows) {
    return TakeRows(keys, rows);
  };
  if (!options_.snapshot.empty()) {
    COVEY_ASSIGN_OR_RETURN(const std::unique_ptr<DiskFolder> store,
                           DiskFolder::Open(options_.store, DiskFolder::Missing::kIsError));
    return ReadStoredTable(*store, options_.snapshot, options_.table, take);
  }
  ClusterChoice cluster{.scheduler = options_.scheduler,
                        .job = options_.job,
                        .since = std::nullopt,
                        .timeout = options_.timeout};
  if (!options_.changed_since.empty()) {
    COVEY_ASSIGN_OR_RETURN(cluster.since, TokenOfExport(options_.changed_since));
  }
  return ReadRunningTable(cluster, options_.table, take);
}

std::span<const uint8_t> Export::InFile(std::span<const float> row, WireFormat format) {
  if (format == WireFormat::kFloat32) return BytesOf(row);
  encoded_.resize(EncodedBytes(format, row.size()));
  Encode(format, row, encoded_);
  return encoded_;
}

absl::Status Export::WriteRows(ExportedRows& exported) {
  const proto::TableSpec& spec = exported.origin.table.spec();
  const uint64_t width = spec.sparse().width();
  // NumPy has no type for bfloat16, which float32 holds exactly.
  const WireFormat format =
      spec.data_type() == proto::FLOAT16 ? WireFormat::kFloat16 : WireFormat::kFloat32;
  const std::string keys_head = NpyKeysHead(exported.rows);
  const std::string values_head = NpyHead(format, std::array<uint64_t, 2>{exported.rows, width});
  COVEY_ASSIGN_OR_RETURN(
      FolderFile keys,
      FolderFile::Begin(*folder_, "keys.npy", keys_head.size() + exported.rows * sizeof(uint64_t)));
  COVEY_ASSIGN_OR_RETURN(
      FolderFile values,
      FolderFile::Begin(*folder_, "values.npy",
                        values_head.size() + EncodedRowBytes(format, width, exported.rows)));
  COVEY_RETURN_IF_ERROR(keys.Append(BytesOf(keys_head)));
  COVEY_RETURN_IF_ERROR(values.Append(BytesOf(values_head)));
  uint64_t written = 0;
  const auto write = [&](uint64_t key, std::span<const float> row) -> absl::Status {
    if (++written % kRowsBetweenLooks == 0) COVEY_RETURN_IF_ERROR(Look("wrote", written));
    COVEY_RETURN_IF_ERROR(keys.Append(BytesOf(std::span<const uint64_t>(&key, 1))));
    return values.Append(InFile(row, format));
  };
  if (sorter_) COVEY_RETURN_IF_ERROR(sorter_->Sort(write));
  for (FolderFile* const file : {&keys, &values}) {
    COVEY_ASSIGN_OR_RETURN(FolderFile::Summary summary, file->Finish());
    exported.files.push_back(std::move(summary));
  }
  return absl::OkStatus();
}

absl::Status Export::WriteRemoved(ExportedRows& exported) {
  std::vector<uint64_t>& removed = exported.origin.removed;
  std::sort(removed.begin(), removed.end());
  exported.removed = removed.size();
  const std::string head = NpyKeysHead(removed.size());
  COVEY_ASSIGN_OR_RETURN(
      FolderFile file,
      FolderFile::Begin(*folder_, "removed.npy", head.size() + removed.size() * sizeof(uint64_t)));
  COVEY_RETURN_IF_ERROR(file.Append(BytesOf(head)));
  COVEY_RETURN_IF_ERROR(file.Append(BytesOf(std::span<const uint64_t>(removed))));
  COVEY_ASSIGN_OR_RETURN(FolderFile::Summary summary, file.Finish());
  exported.files.push_back(std::move(summary));
  return absl::OkStatus();
}

absl::StatusOr<ExportedRows> Export::Run() {
  COVEY_ASSIGN_OR_RETURN(folder_, NewFolder::Begin(options_.out));
  ExportedRows exported;
  COVEY_ASSIGN_OR_RETURN(exported.origin, Read());
  exported.rows = sorter_ ? sorter_->size() : 0;
  COVEY_RETURN_IF_ERROR(WriteRows(exported));
  if (exported.origin.since) COVEY_RETURN_IF_ERROR(WriteRemoved(exported));
  COVEY_ASSIGN_OR_RETURN(FolderFile manifest, FolderFile::Begin(*folder_, kRowsManifestName, 0));
  COVEY_RETURN_IF_ERROR(manifest.Append(BytesOf(RowsManifest(exported))));
  COVEY_RETURN_IF_ERROR(manifest.Finish().status());
  COVEY_RETURN_IF_ERROR(folder_->Finish());
  return exported;
}

}  // namespace

absl::Status RowsExportOptions::Validate() const {
  if (table.empty()) {
    return absl::InvalidArgumentError(
        "no table is named; write covey export-rows TABLE --out FOLDER, and see `covey tables`");
  }
  if (out.empty()) {
    return absl::InvalidArgumentError("no folder given; pass --out, as in --out rows-1");
  }
  if (!snapshot.empty() && store.empty()) {
    return absl::InvalidArgumentError(
        "--snapshot names a snapshot of a store; pass --store DIR, too, or set COVEY_STORE");
  }
  if (!snapshot.empty() && !changed_since.empty()) {
    return absl::InvalidArgumentError(
        "--changed-since reads the running cluster, which knows which rows went; leave out "
        "--snapshot");
  }
  return absl::OkStatus();
}

absl::StatusOr<ExportedRows> ExportRows(const RowsExportOptions& options,
                                        const std::function<void(absl::string_view)>& progress) {
  return Export(options, progress).Run();
}

}  // namespace covey::cli
