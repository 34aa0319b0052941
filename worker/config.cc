// SPDX-License-Identifier: Apache-2.0
#include "worker/config.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/metrics/metrics_server.h"
#include "common/net/data_transport.h"
#include "common/runtime/config_file.h"
#include "common/runtime/exposure.h"
#include "common/tensor/codec.h"

namespace covey::worker {
namespace {

template <typename T>
void AddParsed(ConfigFile& options, absl::string_view name, T* field,
               absl::StatusOr<T> (*parse)(absl::string_view), const char* (*text)(T),
               absl::string_view help) {
  options.Add(
      name,
      [field, parse](absl::string_view given) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(*field, parse(given));
        return absl::OkStatus();
      },
      [field, text] { return std::string(text(*field)); }, help);
}

}  // namespace

absl::Status WorkerConfig::Validate() const {
  COVEY_RETURN_IF_ERROR(cluster.Validate());
  if (data_host.empty()) {
    return absl::InvalidArgumentError(
        "data_host is empty; give this machine's address (or set COVEY_DATA_HOST)");
  }
  if (transport != "ipc") {
    COVEY_RETURN_IF_ERROR(CheckExposure({.setting = "data_host",
                                         .host = data_host,
                                         .is_secured = !cluster.tls.empty(),
                                         .is_insecure = insecure}));
  }
  COVEY_RETURN_IF_ERROR(MetricsServer::Check(metrics, !cluster.tls.empty(), insecure));
  if (!IsDataTransport(transport)) {
    return absl::InvalidArgumentError(
        absl::StrCat("transport is '", transport, "'; choose ", kDataTransportNames));
  }
  if (NeedsFeedback(collective_wire)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "collective_wire is ", WireFormatName(collective_wire),
        ", which leaves out most elements, and only steps of a model send them later; choose "
        "another format"));
  }
  if (form_deadline < absl::Seconds(1) || form_deadline > absl::Hours(1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "form_deadline is ", absl::FormatDuration(form_deadline), "; choose 1s to 1h"));
  }
  return absl::OkStatus();
}

void WorkerConfig::AddTo(ConfigFile& options) {
  cluster.AddTo(options);
  options.Add("rank", &cluster.rank, "requested rank among all workers; -1 = any");
  options.Add("data-host", &data_host,
              "address at which other members reach this one; one that other hosts reach needs "
              "--tls or --insecure");
  options.Add("insecure", &insecure, "listen without --tls although other hosts reach the address");
  options.Add(
      "transport", &transport,
      "how tensors travel: auto (shared memory on one host, TCP between hosts), tcp or ipc");
  options.Add("metrics", &metrics, MetricsServer::kHelp);
  AddPriority(options, &priority);
  options.Add("form-deadline", &form_deadline, "longest wait for the group to form");
  AddParsed(options, "collective", &collective, ParseAlgorithm, AlgorithmName,
            "algorithm of collectives: auto, direct, ring, multi-ring, hierarchical, "
            "halving-doubling, tree or one-shot");
  AddParsed(
      options, "collective-wire", &collective_wire, ParseWireFormat, WireFormatName,
      "encoding of the program's own collectives: float32, float16, bfloat16, scaled-float16, "
      "int8 or float8");
}

}  // namespace covey::worker
