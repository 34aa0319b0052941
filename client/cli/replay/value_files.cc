// SPDX-License-Identifier: Apache-2.0
#include "client/cli/replay/value_files.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/console/text_file.h"
#include "common/base/status_macros.h"
#include "common/format/npy.h"

namespace covey::cli {
namespace {

absl::Status Missing(const std::string& table, uint64_t element) {
  return absl::FailedPreconditionError(absl::StrCat(
      "table '", table, "' cannot be written: the recording has no shard with element ", element,
      ", to which nothing was pushed"));
}

}  // namespace

absl::Status ValueFiles::Begin(const proto::Table& table) {
  COVEY_RETURN_IF_ERROR(Finish());
  COVEY_RETURN_IF_ERROR(MakeFolder(folder_));
  table_ = table.spec().name();
  written_ = 0;
  elements_ = 1;
  const std::vector<uint64_t> shape(table.spec().shape().begin(), table.spec().shape().end());
  for (const uint64_t extent : shape) elements_ *= extent;
  const std::string head = NpyHead(WireFormat::kFloat32, shape);
  const std::string path =
      absl::StrCat(folder_, "/", absl::StrReplaceAll(table_, {{"/", "%2F"}}), ".npy");
  COVEY_ASSIGN_OR_RETURN(file_, WholeFile::Begin(path, head.size() + elements_ * sizeof(float)));
  return file_->Append({reinterpret_cast<const uint8_t*>(head.data()), head.size()});
}

absl::Status ValueFiles::Add(const ShardHistory& history, const Buffer& values) {
  if (file_ == nullptr || history.table.spec().name() != table_) {
    COVEY_RETURN_IF_ERROR(Begin(history.table));
  }
  if (history.shard().first_element() != written_) return Missing(table_, written_);
  written_ += history.shard().element_count();
  return file_->Append(values.bytes());
}

absl::Status ValueFiles::Finish() {
  if (file_ == nullptr) return absl::OkStatus();
  if (written_ != elements_) return Missing(table_, written_);
  const std::unique_ptr<WholeFile> file = std::move(file_);
  return file->Finish();
}

}  // namespace covey::cli
