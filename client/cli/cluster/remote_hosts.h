// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/cluster/cluster_file.h"
#include "client/cli/cluster/command_batch.h"
#include "client/cli/cluster/host_script.h"
#include "client/cli/cluster/ssh_commands.h"
#include "client/cli/console/text_file.h"

namespace covey::cli {

// The hosts of a cluster, as ssh reaches them: some ClusterFile::Ssh::at_once at a time, each
// within a deadline, all by one connection per host, which ends with this object.
//
// Confined to one thread. All methods block. CANCELLED: a signal came, see RunBatch.
class RemoteHosts {
 public:
  // A script, or files, for one host.
  struct Script {
    size_t host = 0;
    std::string text;
  };
  struct Files {
    size_t host = 0;
    std::vector<std::string> paths;
    // Below the host's folder of the job.
    std::string folder;
  };
  // What came of it.
  struct Answer {
    size_t host = 0;
    // UNAVAILABLE: ssh does not reach the host, FAILED_PRECONDITION: the host refuses; each says
    // where, why and what to do.
    absl::Status status;
    HostReport report;
  };
  using Answers = std::vector<Answer>;

  // `file` outlives this object.
  explicit RemoteHosts(const ClusterFile& file);
  ~RemoteHosts();
  RemoteHosts(const RemoteHosts&) = delete;
  RemoteHosts& operator=(const RemoteHosts&) = delete;

  // `deadline`: of each script, once connected.
  absl::StatusOr<Answers> Run(const std::vector<Script>& scripts, absl::Duration deadline);
  absl::StatusOr<Answers> Copy(const std::vector<Files>& files);

  const SshCommands& commands() const { return commands_; }

 private:
  absl::StatusOr<Answers> RunAll(const std::vector<size_t>& hosts,
                                 const std::vector<BatchCommand>& commands);
  Answer AnswerOf(size_t host, const BatchOutcome& outcome) const;

  const ClusterFile& file_;
  const std::unique_ptr<TemporaryFolder> sockets_;  // null: there is no room for one
  const SshCommands commands_;
};

// The failures among them as one: a line for each host, at most kFailuresShown. UNAVAILABLE when
// one is.
inline constexpr size_t kFailuresShown = 10;
absl::Status FailureOf(const RemoteHosts::Answers& answers);

}  // namespace covey::cli
