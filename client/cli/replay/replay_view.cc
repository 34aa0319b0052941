// SPDX-License-Identifier: Apache-2.0
#include "client/cli/replay/replay_view.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_table.h"

namespace covey::cli {
namespace {

using nlohmann::ordered_json;

bool IsOfGroup(const AppliedPush& push) {
  return push.producer_kind == AppliedPush::Producer::kGroup;
}

TableReplay Sum(const std::vector<TableReplay>& tables) {
  TableReplay sum;
  for (const TableReplay& table : tables) {
    sum.shards += table.shards;
    sum.records += table.records;
    sum.pushes += table.pushes;
    sum.digests += table.digests;
    sum.unchecked += table.unchecked;
  }
  return sum;
}

std::string ShowPush(const AppliedPush& push) {
  const std::string producer = absl::StrCat(IsOfGroup(push) ? "group-" : "client-", push.producer);
  if (push.sequence == 0) return absl::StrCat(producer, " forgotten");
  return absl::StrCat(producer, ":", push.sequence, " samples=", push.samples,
                      " base=", push.base_version, push.discarded ? " discarded" : "");
}

}  // namespace

void TableReplay::Add(const ShardHistory& history, const server::ReplayedShard& replayed) {
  ++shards;
  records += replayed.records;
  pushes += replayed.pushes;
  digests += replayed.digests;
  const auto checked = std::find_if(history.updates.rbegin(), history.updates.rend(),
                                    [](const RecordedUpdate& u) { return u.digest.has_value(); });
  unchecked += static_cast<uint64_t>(checked - history.updates.rbegin());
}

std::string DescribeDifference(const ShardHistory& history,
                               const server::ReplayDifference& difference) {
  // By (kind, number): the least and the greatest sequence.
  std::map<std::pair<bool, uint64_t>, std::pair<uint64_t, uint64_t>> producers;
  for (const RecordedUpdate& update : history.updates) {
    if (update.index <= difference.after || update.index > difference.at) continue;
    for (const AppliedPush& push : update.record.pushes) {
      const auto [known, is_new] = producers.try_emplace({!IsOfGroup(push), push.producer},
                                                         std::pair(push.sequence, push.sequence));
      known->second.first = std::min(known->second.first, push.sequence);
      known->second.second = std::max(known->second.second, push.sequence);
    }
  }
  std::vector<std::string> names;
  for (const auto& [producer, steps] : producers) {
    names.push_back(absl::StrCat(producer.first ? "client " : "group ", producer.second, " (",
                                 steps.first, " to ", steps.second, ")"));
  }
  return absl::StrCat(history.name, ": the first difference is among records ",
                      difference.after + 1, " to ", difference.at, ", which hold pushes of ",
                      absl::StrJoin(names, ", "));
}

std::string ReplayText(const std::vector<TableReplay>& tables) {
  TextTable text({"TABLE", "SHARDS", "RECORDS", "PUSHES", "DIGESTS"});
  for (const TableReplay& table : tables) {
    text.Add({table.name, ShowCount(table.shards), ShowCount(table.records),
              ShowCount(table.pushes), ShowCount(table.digests)});
  }
  const TableReplay sum = Sum(tables);
  return absl::StrCat(
      text.Render(), "bit-equal: ", ShowCount(sum.shards), " shards after ", ShowCount(sum.records),
      " records, at all ", ShowCount(sum.digests), " digests",
      sum.unchecked == 0
          ? ""
          : absl::StrCat("; ", ShowCount(sum.unchecked), " records after the last are not checked"),
      "\n");
}

std::string ReplayJson(const std::vector<TableReplay>& tables,
                       const std::vector<std::string>& notes) {
  ordered_json json = {{"bit_equal", true}, {"tables", ordered_json::array()}, {"notes", notes}};
  for (const TableReplay& table : tables) {
    json["tables"].push_back({{"name", table.name},
                              {"shards", table.shards},
                              {"records", table.records},
                              {"pushes", table.pushes},
                              {"digests", table.digests},
                              {"unchecked", table.unchecked}});
  }
  return json.dump(2) + "\n";
}

std::string OrderLines(const ShardHistory& history) {
  std::string lines;
  for (const RecordedUpdate& update : history.updates) {
    absl::StrAppend(&lines, history.table.spec().name(), "/", history.shard().index(), " ",
                    update.index);
    if (update.record.is_update) absl::StrAppend(&lines, " v", update.version);
    if (update.record.cut != 0) absl::StrAppend(&lines, " cut ", update.record.cut);
    for (const AppliedPush& push : update.record.pushes) {
      absl::StrAppend(&lines, " ", ShowPush(push));
    }
    lines += "\n";
  }
  return lines;
}

}  // namespace covey::cli
