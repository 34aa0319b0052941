// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/table.pb.h"

namespace covey::cli {

// "784x128"; of a sparse table "rows of 16".
inline std::string ShowShape(const proto::TableSpec& spec) {
  return spec.has_sparse() ? absl::StrCat("rows of ", spec.sparse().width())
                           : absl::StrJoin(spec.shape(), "x");
}

}  // namespace covey::cli
