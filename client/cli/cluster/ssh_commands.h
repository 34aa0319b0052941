// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/cluster/cluster_file.h"

namespace covey::cli {

// The command lines of ssh and scp. They never ask a question (BatchMode), give up connecting in
// time, and share one connection per host. Pure.
class SshCommands {
 public:
  // `sockets`: a folder of this process alone for the shared connections; empty = each command
  // makes its own. `file` outlives this object.
  SshCommands(const ClusterFile& file, std::string sockets);

  // Runs a script with the /bin/sh of a host, whatever the shell of its user is.
  std::vector<std::string> Run(size_t host, absl::string_view script) const;
  // Copies files and folders of this machine, with their modes, into a folder of the host.
  std::vector<std::string> Copy(size_t host, const std::vector<std::string>& paths,
                                const std::string& folder) const;
  // Ends the shared connection.
  std::vector<std::string> Disconnect(size_t host) const;
  // What a user can type to see whether ssh works.
  std::vector<std::string> Probe(size_t host) const;

 private:
  enum class Sharing { kIsShared, kIsNot };
  void AddOptions(size_t host, Sharing sharing, std::vector<std::string>& words) const;
  void AddIdentity(std::vector<std::string>& words) const;

  const ClusterFile& file_;
  const std::string sockets_;
};

}  // namespace covey::cli
