// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/load/block.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/runtime/config_value.h"

namespace covey::cli {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;
// A block that measures only such a size is asked for by name only.
constexpr uint64_t kLargeBytes = 1024 * kMebibyte;

constexpr Block kBlocks[] = {
    {.name = "memory",
     .about = "copy, stream (c = a + b), and the updates of SGD, momentum and Adam on one core",
     .operations = Operations::kMemory,
     .by_default = true},
    {.name = "latency",
     .about = "64-byte round trips of push and pull",
     .operations = Operations::kRoundTrips,
     .has_limits = true,
     .by_default = true},
    {.name = "rates",
     .about = "push with apply, pull, push_pull: async, SGD, one client and one server",
     .has_limits = true,
     .by_default = true},
    {.name = "buffered",
     .about = "the same with a buffer of two pushes, beside async",
     .label = " buffered",
     .contract = proto::Contract::BUFFERED,
     .replicas = 1,
     .baseline_label = " beside buffered"},
    {.name = "adam",
     .about = "the same with Adam, beside SGD",
     .label = " adam",
     .optimizer = proto::Optimizer::ADAM,
     .replicas = 1,
     .baseline_label = " beside adam"},
    {.name = "fresh",
     .about = "one pull at a time: repeated, and after a push each",
     .operations = Operations::kFreshPulls,
     .replicas = 1},
    {.name = "mixed",
     .about = "64-byte pulls beside a stream of large pushes",
     .operations = Operations::kMixed,
     .replicas = 1,
     .bytes_min = kMebibyte},
    {.name = "replicated",
     .about = "async and SGD with two replicas on two servers, beside one copy",
     .label = " r=2",
     .replicas = 2,
     .servers = 2,
     .baseline_label = " beside r=2"},
    {.name = "durable",
     .about = "the default between groups, buffered and replicated, beside async and one copy",
     .label = " buffered r=2",
     .contract = proto::Contract::BUFFERED,
     .replicas = 2,
     .servers = 2,
     .baseline_label = " beside buffered r=2"},
    {.name = "training",
     .about = "buffered, replicated and Adam, beside async, SGD and one copy",
     .label = " buffered adam r=2",
     .contract = proto::Contract::BUFFERED,
     .optimizer = proto::Optimizer::ADAM,
     .replicas = 2,
     .servers = 2,
     .baseline_label = " beside buffered adam r=2"},
    {.name = "sparse",
     .about = "rows of a sparse table of a million rows of 16: async, row-wise Adagrad",
     .operations = Operations::kRows,
     .label = " rows",
     .optimizer = proto::Optimizer::ROWWISE_ADAGRAD,
     .only_bytes = 640'000},
    {.name = "sparse-sgd",
     .about = "the same rows with SGD",
     .operations = Operations::kRows,
     .label = " rows sgd",
     .only_bytes = 640'000},
    {.name = "tables",
     .about = "rows of 26 sparse tables in each step, beside one table of as many: async, SGD",
     .operations = Operations::kManyTables,
     .label = "",
     .replicas = 1,
     .only_bytes = 425'984},
    {.name = "tables-2",
     .about = "the same on two servers",
     .operations = Operations::kManyTables,
     .label = " on 2 servers",
     .replicas = 1,
     .servers = 2,
     .only_bytes = 425'984},
    {.name = "fleet",
     .about = "two clients and two servers",
     .label = " 2x2",
     .replicas = 1,
     .servers = 2,
     .clients = 2},
    {.name = "collectives",
     .about = "all-reduce of 2, 4 and 8 members, beside Open MPI and gloo where they are installed",
     .operations = Operations::kCollectives,
     .bytes_min = 1024},
    {.name = "large",
     .about = "one table of 4 GiB; needs 15 GiB of memory",
     .label = " large",
     .replicas = 1,
     .only_bytes = 4096 * kMebibyte},
};

}  // namespace

bool NeedsCluster(Operations operations) {
  return operations != Operations::kMemory && operations != Operations::kCollectives;
}

std::string LabelOf(const Block& block, uint32_t replicas) {
  const bool names_replicas = block.replicas == 0 && replicas > 1;
  return names_replicas ? absl::StrCat(block.label, " r=", replicas) : block.label;
}

Block BaselineOf(const Block& block) {
  return {.name = "baseline",
          .about = "async and SGD, one copy in memory",
          .operations = block.operations,
          .label = block.baseline_label,
          .replicas = 1,
          .servers = block.servers,
          .clients = block.clients};
}

std::span<const Block> AllBlocks() { return kBlocks; }

absl::StatusOr<std::vector<Block>> ParseBlocks(absl::string_view text) {
  std::vector<std::string> names;
  for (const Block& block : kBlocks) names.emplace_back(block.name);
  std::vector<Block> chosen;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t before = chosen.size();
    for (const Block& block : kBlocks) {
      const bool in_all = part == "all" && block.only_bytes < kLargeBytes;
      if (part != block.name && !in_all && !(part == "default" && block.by_default)) continue;
      const bool is_new = std::none_of(chosen.begin(), chosen.end(), [&](const Block& other) {
        return absl::string_view(other.name) == block.name;
      });
      if (is_new) chosen.push_back(block);
    }
    const bool is_known = part == "all" || part == "default" ||
                          std::find(names.begin(), names.end(), part) != names.end();
    if (before == chosen.size() && !is_known) {
      return absl::InvalidArgumentError(absl::StrCat("no block '", part, "'; did you mean ",
                                                     NearestName(part, names), "? They are ",
                                                     absl::StrJoin(names, ", "), ", default, all"));
    }
  }
  return chosen;
}

std::string BlockNames(const std::vector<Block>& blocks) {
  return absl::StrJoin(blocks, ",",
                       [](std::string* out, const Block& block) { *out += block.name; });
}

std::string DescribeBlocks() {
  std::string text;
  for (const Block& block : kBlocks) {
    absl::StrAppendFormat(&text, "%s%s: %s", text.empty() ? "" : "; ", block.name, block.about);
  }
  return text;
}

std::vector<uint64_t> SizesOf(const Block& block, const std::vector<uint64_t>& sizes) {
  if (block.only_bytes != 0) return {block.only_bytes};
  std::vector<uint64_t> chosen;
  for (const uint64_t bytes : sizes) {
    if (bytes >= block.bytes_min) chosen.push_back(bytes);
  }
  return chosen;
}

proto::TableSpec SpecOf(const Block& block, absl::string_view name, uint32_t replicas) {
  proto::TableSpec spec;
  spec.set_name(absl::StrCat("bench/", block.name, "/", name));
  spec.set_data_type(proto::FLOAT32);
  spec.mutable_optimizer()->set_kind(block.optimizer);
  spec.mutable_learning_rate()->set_base(1e-6);
  spec.mutable_contract()->set_kind(block.contract);
  spec.set_durability(replicas == 1 ? proto::MEMORY : proto::REPLICATED);
  if (replicas > 1) spec.set_replicas(replicas);
  return spec;
}

}  // namespace covey::cli
