// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/gate_view.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_table.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLinesMax = 20;

// "group-3", "client-0".
std::string NameOf(const proto::ClusterView& view, bool is_group, uint64_t id) {
  if (is_group) return absl::StrCat("group-", id);
  const auto node = std::find_if(view.nodes().begin(), view.nodes().end(),
                                 [id](const proto::Node& each) { return each.id() == id; });
  return node == view.nodes().end() ? absl::StrCat("node ", id) : node->name();
}

// What the gates of one table have seen of one producer.
struct Line {
  const proto::Table* table = nullptr;
  // Shards that tell of it.
  int shards = 0;
  // The one that has seen the most of its pushes in a row beyond the gate.
  const proto::GatedProducer* worst = nullptr;
  const proto::QuarantinedProducer* quarantined = nullptr;
};

bool IsWorse(const proto::GatedProducer& a, const proto::GatedProducer& b) {
  return std::pair(a.beyond_in_row(), a.beyond()) > std::pair(b.beyond_in_row(), b.beyond());
}

std::vector<Line> LinesOf(const proto::StatusReply& status) {
  std::map<uint32_t, const proto::Table*> tables;
  for (const proto::Table& table : status.view().tables()) tables[table.id()] = &table;
  std::map<std::tuple<uint32_t, bool, uint64_t>, Line> by_producer;
  for (const proto::NodeStatus& server : status.nodes()) {
    for (const proto::GatedProducer& gated : server.load().gated()) {
      const auto table = tables.find(gated.table());
      if (table == tables.end()) continue;
      Line& line = by_producer[{gated.table(), gated.is_group(), gated.id()}];
      line.table = table->second;
      ++line.shards;
      if (line.worst == nullptr || IsWorse(gated, *line.worst)) line.worst = &gated;
    }
  }
  std::vector<Line> lines;
  for (auto& [key, line] : by_producer) {
    for (const proto::QuarantinedProducer& each : status.view().quarantined()) {
      const bool is_it = each.is_group() == line.worst->is_group() && each.id() == line.worst->id();
      if (is_it) line.quarantined = &each;
    }
    lines.push_back(line);
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return IsWorse(*a.worst, *b.worst); });
  return lines;
}

}  // namespace

std::vector<std::string> QuarantineLines(const proto::ClusterView& view) {
  std::vector<std::string> lines;
  for (const proto::QuarantinedProducer& each : view.quarantined()) {
    const std::string name = NameOf(view, each.is_group(), each.id());
    lines.push_back(absl::StrCat(name, " is quarantined since epoch ", each.epoch(), ": ",
                                 each.reason(), "; to release it: covey quarantine ", name,
                                 " --release"));
  }
  return lines;
}

std::string GatedText(const proto::StatusReply& status) {
  TextTable text({"PRODUCER", "TABLE", "SHARD", "PUSHES", "BEYOND", "IN A ROW", "USUAL NORM",
                  "OTHERS' NORM", "QUARANTINED"});
  const std::vector<Line> lines = LinesOf(status);
  const size_t shown = std::min(lines.size(), kLinesMax);
  for (size_t i = 0; i < shown; ++i) {
    const Line& line = lines[i];
    const proto::GatedProducer& worst = *line.worst;
    const uint32_t limit = line.table->spec().norm_gate().quarantine_after();
    text.Add({NameOf(status.view(), worst.is_group(), worst.id()), line.table->spec().name(),
              absl::StrCat(worst.shard(),
                           line.shards > 1 ? absl::StrCat(" and ", line.shards - 1, " more") : ""),
              ShowCount(worst.pushes()), ShowCount(worst.beyond()),
              absl::StrCat(ShowCount(worst.beyond_in_row()),
                           limit > 0 ? absl::StrCat(" of ", ShowCount(limit)) : ""),
              ShowNumber(worst.usual()),
              worst.usual_of_others() > 0 ? ShowNumber(worst.usual_of_others()) : "-",
              line.quarantined != nullptr ? absl::StrCat("since epoch ", line.quarantined->epoch())
                                          : std::string("-")});
  }
  if (text.empty()) return "";
  return absl::StrCat(
      "Pushes beyond the gate\n", text.Render(),
      lines.size() > shown ? absl::StrCat(lines.size() - shown, " more, see -o json\n") : "");
}

Json QuarantinedJson(const proto::ClusterView& view) {
  Json json = Json::array();
  for (const proto::QuarantinedProducer& each : view.quarantined()) {
    json.push_back({{"producer", NameOf(view, each.is_group(), each.id())},
                    {"since_epoch", each.epoch()},
                    {"reason", each.reason()}});
  }
  return json;
}

Json GatedJson(const proto::StatusReply& status) {
  Json json = Json::array();
  for (const Line& line : LinesOf(status)) {
    const proto::GatedProducer& worst = *line.worst;
    json.push_back({{"producer", NameOf(status.view(), worst.is_group(), worst.id())},
                    {"table", line.table->spec().name()},
                    {"shard", worst.shard()},
                    {"shards", line.shards},
                    {"pushes", worst.pushes()},
                    {"beyond", worst.beyond()},
                    {"beyond_in_row", worst.beyond_in_row()},
                    {"quarantine_after", line.table->spec().norm_gate().quarantine_after()},
                    {"usual_norm", worst.usual()},
                    {"usual_norm_of_others", worst.usual_of_others()},
                    {"quarantined", line.quarantined != nullptr}});
  }
  return json;
}

}  // namespace covey::cli
