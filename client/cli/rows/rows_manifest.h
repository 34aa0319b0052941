// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/rows/new_folder.h"
#include "client/cli/rows/rows_origin.h"
#include "client/resume_token.h"

namespace covey::cli {

// The manifest.json of exported rows: what they are, and what is in which file. Pure, but for
// TokenOfExport.
inline constexpr char kRowsManifestName[] = "manifest.json";

struct ExportedRows {
  RowsOrigin origin;
  uint64_t rows = 0;
  uint64_t removed = 0;
  std::vector<FolderFile::Summary> files;

  uint64_t bytes() const;
};

std::string RowsManifest(const ExportedRows& exported);

// Where changes since an earlier export begin; `path` is its folder or manifest. INVALID_ARGUMENT:
// it is no manifest of exported rows. Others: it cannot be read.
absl::StatusOr<client::ResumeToken> TokenOfExport(const std::string& path);

}  // namespace covey::cli
