// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/table.pb.h"

namespace covey::cli {

// "784x128"; of a sparse table "rows of 16", or "rows of 16 bfloat16" where it is not float32.
inline std::string ShowShape(const proto::TableSpec& spec) {
  if (!spec.has_sparse()) return absl::StrJoin(spec.shape(), "x");
  const std::string rows = absl::StrCat("rows of ", spec.sparse().width());
  if (spec.data_type() == proto::FLOAT32) return rows;
  return absl::StrCat(rows, " ", absl::AsciiStrToLower(proto::DataType_Name(spec.data_type())));
}

}  // namespace covey::cli
