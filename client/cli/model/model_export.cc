// SPDX-License-Identifier: Apache-2.0
#include "client/cli/model/model_export.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/console/figures.h"
#include "client/cli/model/whole_file.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "client/parameter_client.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/cluster/limits.h"
#include "common/format/npy.h"
#include "common/format/safetensors_writer.h"
#include "common/runtime/process_main.h"
#include "common/tensor/codec.h"
#include "proto/view.pb.h"

namespace covey::cli {
namespace {

// A signal ends an export after this time at the latest.
constexpr absl::Duration kSignalPoll = absl::Milliseconds(100);
constexpr absl::Duration kProgressInterval = absl::Seconds(1);
// Elements that are encoded before they are written: 4 MiB of values.
constexpr size_t kChunkElements = 1 << 20;
// A larger magnitude is infinite in float16.
constexpr float kFloat16Limit = 65520;

static_assert(kTableDimensionsMax <= NpyLimits::kExtents);

bool IsNpy(absl::string_view path) { return absl::EndsWith(path, ".npy"); }

struct Source {
  client::Table table;
  std::vector<uint64_t> shape;
};

Source SourceOf(const proto::Table& table) {
  const auto& shape = table.spec().shape();
  return {.table = client::TableOf(table), .shape = {shape.begin(), shape.end()}};
}

// What the file begins with. `sources`: one for NPY.
std::string HeadOf(const ExportOptions& options, const std::string& job,
                   std::span<const Source> sources) {
  if (IsNpy(options.path)) return NpyHead(options.format, sources.front().shape);
  std::vector<SafetensorsTensor> tensors;
  for (const Source& source : sources) {
    tensors.push_back({source.table.name, *SafetensorsTypeOf(options.format), source.shape});
  }
  // "format": "pt" is what readers for PyTorch ask for.
  return SafetensorsHead(tensors,
                         {{"format", "pt"}, {"covey_version", kVersion}, {"covey_job", job}});
}

class Export {
 public:
  Export(const ExportOptions& options, const std::function<void(absl::string_view)>& progress)
      : options_(options), progress_(progress), last_progress_(MonotonicNow()) {}

  absl::StatusOr<ExportedModel> Run(const SchedulerTarget& scheduler, const std::string& job);

 private:
  // The tables that are asked for, by name.
  absl::StatusOr<std::vector<Source>> FindTables(const SchedulerTarget& scheduler) const;
  // Reads the table into values_; returns its version.
  absl::StatusOr<uint64_t> Read(const client::Table& table);
  // Appends values_ to the file.
  absl::Status Write(const client::Table& table, WholeFile& file);
  void ShowProgress(size_t done, size_t count, uint64_t bytes_done, uint64_t bytes);

  const ExportOptions& options_;
  const std::function<void(absl::string_view)>& progress_;
  absl::Time last_progress_;
  std::unique_ptr<client::ParameterClient> client_;
  std::vector<float> values_;
  std::vector<uint8_t> encoded_;
};

absl::StatusOr<std::vector<Source>> Export::FindTables(const SchedulerTarget& scheduler) const {
  COVEY_ASSIGN_OR_RETURN(const proto::ListTablesReply reply, SchedulerStub(scheduler).ListTables());
  std::vector<Source> sources;
  for (const proto::Table& table : reply.tables()) {
    const auto& asked = options_.tables;
    if (!asked.empty() &&
        std::find(asked.begin(), asked.end(), table.spec().name()) == asked.end()) {
      continue;
    }
    if (table.spec().has_sparse()) {
      return absl::UnimplementedError(absl::StrCat(
          "table '", table.spec().name(), "' is sparse; `covey export-rows` writes its rows; name ",
          "the dense tables here, as in --tables a,b"));
    }
    sources.push_back(SourceOf(table));
  }
  for (const std::string& name : options_.tables) {
    if (std::none_of(sources.begin(), sources.end(),
                     [&](const Source& source) { return source.table.name == name; })) {
      return absl::NotFoundError(
          absl::StrCat("no table '", name, "'; covey tables lists those of the cluster"));
    }
  }
  if (sources.empty())
    return absl::NotFoundError("the cluster has no tables, so nothing to export");
  if (IsNpy(options_.path) && sources.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("an NPY file holds one table, and these are ",
                                                   sources.size(), "; name one, as in --tables ",
                                                   sources[0].table.name,
                                                   ", or export to a .safetensors file"));
  }
  std::sort(sources.begin(), sources.end(),
            [](const Source& a, const Source& b) { return a.table.name < b.table.name; });
  return sources;
}

absl::StatusOr<uint64_t> Export::Read(const client::Table& table) {
  values_.resize(table.elements);
  const client::Handle pull =
      client_->Pull(table, values_, {.bound = {}, .deadline = options_.timeout});
  std::optional<int> signal;
  while (!pull.done() && !signal.has_value()) {
    pull.WaitFor(kSignalPoll).IgnoreError();
    signal = WaitForTermination(absl::ZeroDuration());
  }
  if (signal.has_value()) {
    client_.reset();  // ends the pull, whose memory is about to go
    return absl::CancelledError(absl::StrCat("interrupted; ", options_.path, " was not written"));
  }
  const client::OperationResult result = pull.result();
  COVEY_RETURN_IF_ERROR(result.status);
  return result.version.value();
}

absl::Status Export::Write(const client::Table& table, WholeFile& file) {
  for (size_t first = 0; first < values_.size(); first += kChunkElements) {
    const auto chunk = std::span<const float>(values_).subspan(
        first, std::min(kChunkElements, values_.size() - first));
    if (options_.format == WireFormat::kFloat16) {
      for (const float value : chunk) {
        if (std::isfinite(value) && std::abs(value) >= kFloat16Limit) {
          return absl::OutOfRangeError(absl::StrCat("table '", table.name, "' has the value ",
                                                    value,
                                                    ", beyond float16; take --type bfloat16"));
        }
      }
    }
    encoded_.resize(EncodedBytes(options_.format, chunk.size()));
    Encode(options_.format, chunk, encoded_);
    COVEY_RETURN_IF_ERROR(file.Append(encoded_));
  }
  return absl::OkStatus();
}

void Export::ShowProgress(size_t done, size_t count, uint64_t bytes_done, uint64_t bytes) {
  if (MonotonicNow() - last_progress_ < kProgressInterval) return;
  last_progress_ = MonotonicNow();
  progress_(absl::StrCat("exported ", done, " of ", count, " tables, ", ShowBytes(bytes_done),
                         " of ", ShowBytes(bytes)));
}

absl::StatusOr<ExportedModel> Export::Run(const SchedulerTarget& scheduler,
                                          const std::string& job) {
  COVEY_ASSIGN_OR_RETURN(const std::vector<Source> sources, FindTables(scheduler));
  COVEY_ASSIGN_OR_RETURN(client_,
                         client::ParameterClient::Connect(
                             {.scheduler = scheduler.addresses, .job = job, .tls = scheduler.tls}));

  ExportedModel model;
  for (const Source& source : sources) {
    model.bytes += EncodedBytes(options_.format, source.table.elements);
  }
  const std::string head = HeadOf(options_, job, sources);
  model.bytes += head.size();

  COVEY_ASSIGN_OR_RETURN(const std::unique_ptr<WholeFile> file,
                         WholeFile::Begin(options_.path, model.bytes));
  COVEY_RETURN_IF_ERROR(file->Append({reinterpret_cast<const uint8_t*>(head.data()), head.size()}));
  uint64_t bytes_done = head.size();
  for (const Source& source : sources) {
    COVEY_ASSIGN_OR_RETURN(const uint64_t version, Read(source.table));
    COVEY_RETURN_IF_ERROR(Write(source.table, *file));
    model.tables.push_back({.name = source.table.name, .shape = source.shape, .version = version});
    bytes_done += EncodedBytes(options_.format, source.table.elements);
    ShowProgress(model.tables.size(), sources.size(), bytes_done, model.bytes);
  }
  COVEY_RETURN_IF_ERROR(file->Finish());
  return model;
}

}  // namespace

absl::Status ExportOptions::Validate() const {
  if (path.empty()) {
    return absl::InvalidArgumentError("no file given; pass --out, as in --out model.safetensors");
  }
  if (IsNpy(path) && format == WireFormat::kBfloat16) {
    return absl::InvalidArgumentError(
        "--type is bfloat16, which NPY files do not have; choose float32 or float16, or export to "
        "a "
        ".safetensors file");
  }
  if (!SafetensorsTypeOf(format).has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("--type is ", WireFormatName(format),
                                                   "; choose float32, float16 or bfloat16"));
  }
  return absl::OkStatus();
}

std::string DescribeExport(absl::string_view path, const ExportedModel& model) {
  const size_t count = model.tables.size();
  return absl::StrCat("wrote ", path, ": ", count, count == 1 ? " table, " : " tables, ",
                      ShowBytes(model.bytes));
}

absl::StatusOr<ExportedModel> ExportModel(const SchedulerTarget& scheduler, const std::string& job,
                                          const ExportOptions& options,
                                          const std::function<void(absl::string_view)>& progress) {
  return Export(options, progress).Run(scheduler, job);
}

}  // namespace covey::cli
