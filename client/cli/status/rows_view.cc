// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/rows_view.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_table.h"

namespace covey::cli {
namespace {

// "evict by age", "refuse".
std::string ShowWhenFull(const proto::SparseRows& rows) {
  const std::string when = proto::SparseRows::WhenFull_Name(rows.when_full());
  if (rows.rows_max() == 0) return "-";
  if (rows.when_full() != proto::SparseRows::EVICT) return absl::AsciiStrToLower(when);
  absl::string_view by = proto::EvictBy_Name(rows.evict_by());
  by.remove_prefix(std::min(by.size(), absl::string_view("EVICT_BY_").size()));
  return absl::AsciiStrToLower(absl::StrCat(when, " by ", by));
}

// "of all pushes", "of holders".
std::string ShowRoundMean(const proto::TableSpec& spec) {
  if (spec.contract().kind() != proto::Contract::LOCAL) return "-";
  return absl::StrReplaceAll(
      absl::AsciiStrToLower(proto::SparseRows::RoundMean_Name(spec.sparse().round_mean())),
      {{"_", " "}});
}

}  // namespace

RowsByTable RowsOf(const proto::StatusReply& status) {
  RowsByTable rows;
  for (const proto::NodeStatus& node : status.nodes()) {
    for (const proto::TableRows& report : node.load().rows()) AddRows(report, rows);
  }
  return rows;
}

std::string RowsText(const google::protobuf::RepeatedPtrField<proto::Table>& tables,
                     const RowsByTable& rows) {
  TextTable text({"TABLE", "ROWS", "OF", "WAITING", "EVICTED", "REFUSED", "MEMORY", "WHEN FULL",
                  "ROUND MEAN"});
  bool is_empty = true;
  for (const proto::Table& table : tables) {
    if (!table.spec().has_sparse()) continue;
    is_empty = false;
    const proto::SparseRows& spec = table.spec().sparse();
    const auto found = rows.find(table.id());
    const proto::TableRows report = found == rows.end() ? proto::TableRows() : found->second;
    text.Add({table.spec().name(), ShowCount(report.rows()),
              spec.rows_max() == 0 ? "-" : ShowCount(spec.rows_max()), ShowCount(report.pending()),
              ShowCount(report.evicted()), ShowCount(report.refused()), ShowBytes(report.bytes()),
              ShowWhenFull(spec), ShowRoundMean(table.spec())});
  }
  return is_empty ? "" : text.Render();
}

}  // namespace covey::cli
