// SPDX-License-Identifier: Apache-2.0
#include "client/cli/scale/quarantine_view.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/console/json_text.h"

namespace covey::cli {
namespace {

constexpr size_t kTablesNamed = 5;

std::vector<std::string> TablesWithGate(const proto::ClusterView& view) {
  std::vector<std::string> names;
  for (const proto::Table& table : view.tables()) {
    if (table.spec().has_norm_gate()) names.push_back(table.spec().name());
  }
  return names;
}

// "w, v and 3 more".
std::string Show(const std::vector<std::string>& tables) {
  const size_t shown = std::min(tables.size(), kTablesNamed);
  const std::vector<std::string> named(tables.begin(), tables.begin() + shown);
  return absl::StrCat(
      absl::StrJoin(named, ", "),
      tables.size() > shown ? absl::StrCat(" and ", tables.size() - shown, " more") : "");
}

}  // namespace

std::string QuarantineText(const proto::QuarantineRequest& request,
                           const proto::QuarantineReply& reply, const proto::ClusterView& view) {
  const std::string& producer = request.producer();
  if (request.release()) {
    return absl::StrCat(producer, " is released since epoch ", reply.epoch(),
                        ": its pushes are applied again, unless they are beyond a gate\n");
  }
  const std::vector<std::string> tables = TablesWithGate(view);
  if (tables.empty()) {
    return absl::StrCat(producer, " is quarantined since epoch ", reply.epoch(),
                        ", without effect: no table has a gate. Give tables a norm_gate\n");
  }
  return absl::StrCat(producer, " is quarantined since epoch ", reply.epoch(),
                      ": none of its pushes to the tables with a gate is applied (", Show(tables),
                      ")\nto release it: covey quarantine ", producer, " --release\n");
}

std::string QuarantineJson(const proto::QuarantineRequest& request,
                           const proto::QuarantineReply& reply, const proto::ClusterView& view) {
  nlohmann::ordered_json json = {{"producer", request.producer()},
                                 {"state", request.release() ? "released" : "quarantined"},
                                 {"epoch", reply.epoch()}};
  for (const proto::QuarantinedProducer& each : view.quarantined()) {
    // One epoch quarantines one producer.
    if (!request.release() && each.epoch() == reply.epoch()) json["reason"] = each.reason();
  }
  json["tables"] = TablesWithGate(view);
  return JsonText(json);
}

}  // namespace covey::cli
