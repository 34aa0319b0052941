// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/cluster_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/cluster/name_checks.h"
#include "client/cli/cluster/yaml_section.h"
#include "common/base/status_macros.h"
#include "common/grouping/group_count.h"
#include "common/runtime/config_value.h"
#include "common/security/identity.h"

namespace covey::cli {
namespace {

constexpr uint32_t kAtOnceMax = 256;

absl::Status Wrong(const std::string& at, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(at, ": ", what));
}

// Reads a file from its parts; `file` grows meanwhile.
class Reader {
 public:
  explicit Reader(ClusterFile& file) : file_(file) {}

  absl::Status ReadAll(const YAML::Node& root) {
    COVEY_ASSIGN_OR_RETURN(
        const YamlSection top,
        YamlSection::Open(root, file_.path, "the file",
                          {"job", "folder", "programs", "copy", "tls", "insecure", "groups",
                           "start_deadline", "ssh", "hosts", "scheduler", "servers", "workers"}));
    COVEY_RETURN_IF_ERROR(ReadJob(top));
    COVEY_RETURN_IF_ERROR(ReadSsh(top));
    COVEY_RETURN_IF_ERROR(ReadHosts(top));
    COVEY_RETURN_IF_ERROR(ReadScheduler(top));
    for (const bool is_server : {true, false}) {
      const absl::string_view name = is_server ? "servers" : "workers";
      COVEY_ASSIGN_OR_RETURN(const std::vector<YAML::Node> parts, top.ReadSections(name));
      for (const YAML::Node& part : parts) {
        COVEY_RETURN_IF_ERROR(is_server ? ReadServers(part) : ReadWorkers(part));
      }
    }
    if (file_.servers.empty()) {
      return Wrong(top.at(), "there are no servers; add servers: {hosts: [HOST]}");
    }
    const uint32_t workers = file_.workers_count();
    if (file_.groups == 0 || workers % file_.groups != 0) {
      return Wrong(top.AtKey("groups"),
                   absl::StrCat(workers, " workers cannot be divided into ", file_.groups,
                                " groups; change one of the numbers"));
    }
    return workers == 0 ? absl::OkStatus() : CheckGroupFlags(top);
  }

 private:
  // With workers in the file, their groups follow from it.
  absl::Status CheckGroupFlags(const YamlSection& top) const {
    for (const std::string& flag : file_.scheduler.arguments) {
      if (!absl::StartsWith(flag, "--groups=") && !absl::StartsWith(flag, "--workers=")) continue;
      return Wrong(top.AtKey("scheduler"),
                   absl::StrCat(flag,
                                " follows from `groups` and `workers` of this file; leave it "
                                "out of flags"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadJob(const YamlSection& top) {
    COVEY_RETURN_IF_ERROR(top.Read("job", &file_.job));
    if (!top.Has("job")) return Wrong(top.at(), "the job has no name; add job: NAME");
    const Identity identity = {.trust_domain = "covey", .job = file_.job};
    if (const absl::Status status = CheckIdentity(identity); !status.ok()) {
      return Wrong(top.AtKey("job"), status.message());
    }
    folder_ = absl::StrCat("covey-", file_.job);
    COVEY_RETURN_IF_ERROR(top.Read("folder", &folder_));
    COVEY_RETURN_IF_ERROR(CheckFolder(top.AtKey("folder"), folder_));
    COVEY_RETURN_IF_ERROR(top.Read("programs", &file_.programs));
    if (top.Has("programs")) {
      COVEY_RETURN_IF_ERROR(CheckFolder(top.AtKey("programs"), file_.programs));
    }
    COVEY_RETURN_IF_ERROR(top.ReadWords("copy", &file_.copy));
    if (!file_.copy.empty() && !file_.programs.empty()) {
      return Wrong(top.AtKey("copy"),
                   "copied programs go into a folder of their own; leave out `programs`");
    }
    COVEY_RETURN_IF_ERROR(top.Read("insecure", &file_.insecure));
    file_.tls = absl::StrCat(file_.job, "-tls");
    COVEY_RETURN_IF_ERROR(top.Read("tls", &file_.tls));
    if (file_.insecure && top.Has("tls")) {
      return Wrong(top.AtKey("tls"), "tls and insecure exclude each other; leave out one of them");
    }
    std::string groups = "1";
    COVEY_RETURN_IF_ERROR(top.Read("groups", &groups));
    if (const auto count = ParseGroupCount(groups, file_.groups, file_.plans_groups); !count.ok()) {
      return Wrong(top.AtKey("groups"),
                   absl::StrCat("groups: \"", groups, "\" is ", count.message()));
    }
    return top.Read("start_deadline", &file_.start_deadline);
  }

  absl::Status ReadSsh(const YamlSection& top) {
    if (!top.Has("ssh")) return absl::OkStatus();
    COVEY_ASSIGN_OR_RETURN(
        const YamlSection ssh,
        YamlSection::Open(top.Find("ssh"), file_.path, "ssh",
                          {"user", "port", "identity", "options", "connect_deadline", "at_once"}));
    COVEY_RETURN_IF_ERROR(ReadLogin(ssh, defaults_));
    COVEY_RETURN_IF_ERROR(ssh.Read("identity", &file_.ssh.identity));
    COVEY_RETURN_IF_ERROR(ssh.ReadWords("options", &file_.ssh.options));
    for (const std::string& option : file_.ssh.options) {
      if (option.find('=') == std::string::npos || !absl::ascii_isalpha(option[0])) {
        return Wrong(ssh.AtKey("options"), absl::StrCat("\"", option,
                                                        "\" is no option; write NAME=VALUE, as in "
                                                        "StrictHostKeyChecking=accept-new"));
      }
    }
    COVEY_RETURN_IF_ERROR(ssh.Read("connect_deadline", &file_.ssh.connect_deadline));
    if (file_.ssh.connect_deadline < absl::Seconds(1)) {
      return Wrong(ssh.AtKey("connect_deadline"), "connect_deadline is below 1s; give 1s or more");
    }
    COVEY_RETURN_IF_ERROR(ssh.Read("at_once", &file_.ssh.at_once));
    if (file_.ssh.at_once == 0 || file_.ssh.at_once > kAtOnceMax) {
      return Wrong(ssh.AtKey("at_once"),
                   absl::StrCat("at_once is ", file_.ssh.at_once, "; give 1 to ", kAtOnceMax));
    }
    return absl::OkStatus();
  }

  absl::Status ReadLogin(const YamlSection& section, ClusterFile::Host& host) {
    COVEY_RETURN_IF_ERROR(section.Read("user", &host.user));
    if (section.Has("user")) {
      COVEY_RETURN_IF_ERROR(CheckName(section.AtKey("user"), "user", host.user, "._-"));
    }
    COVEY_RETURN_IF_ERROR(section.Read("port", &host.port));
    return section.Has("port") ? CheckPort(section.AtKey("port"), host.port) : absl::OkStatus();
  }

  absl::StatusOr<size_t> AddHost(const std::string& at, const std::string& name) {
    COVEY_RETURN_IF_ERROR(CheckName(at, "host", name, "._-:"));
    ClusterFile::Host host = defaults_;
    host.at = at;
    host.name = name;
    host.folder = folder_;
    if (IsAddress(name)) host.address = name;
    file_.hosts.push_back(std::move(host));
    return file_.hosts.size() - 1;
  }

  absl::Status ReadHosts(const YamlSection& top) {
    const YAML::Node hosts = top.Find("hosts");
    if (!hosts.IsDefined()) return absl::OkStatus();
    are_listed_ = true;
    if (!hosts.IsMap()) {
      return Wrong(top.AtKey("hosts"),
                   "hosts is to be a list of `NAME: {address: …}`; write it so");
    }
    for (const auto& entry : hosts) {
      const std::string at = YamlSection::At(file_.path, entry.first);
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (FindHost(name) != file_.hosts.size()) {
        return Wrong(at, absl::StrCat("host ", name, " is given twice; leave one of them"));
      }
      COVEY_ASSIGN_OR_RETURN(const size_t index, AddHost(at, name));
      if (entry.second.IsNull()) continue;
      COVEY_ASSIGN_OR_RETURN(const YamlSection section,
                             YamlSection::Open(entry.second, file_.path, name,
                                               {"address", "labels", "folder", "user", "port"}));
      ClusterFile::Host& host = file_.hosts[index];
      COVEY_RETURN_IF_ERROR(ReadLogin(section, host));
      COVEY_RETURN_IF_ERROR(section.Read("address", &host.address));
      if (!host.address.empty() && !IsAddress(host.address)) {
        return Wrong(section.AtKey("address"),
                     absl::StrCat("\"", host.address, "\" is no IP address; give one"));
      }
      COVEY_RETURN_IF_ERROR(section.Read("folder", &host.folder));
      COVEY_RETURN_IF_ERROR(CheckFolder(section.AtKey("folder"), host.folder));
      COVEY_RETURN_IF_ERROR(section.Read("labels", &host.labels));
      if (section.Has("labels")) {
        COVEY_RETURN_IF_ERROR(
            CheckName(section.AtKey("labels"), "place ZONE/RACK", host.labels, "._-/"));
      }
    }
    return absl::OkStatus();
  }

  size_t FindHost(const std::string& name) const {
    const auto found = std::find_if(file_.hosts.begin(), file_.hosts.end(),
                                    [&](const auto& host) { return host.name == name; });
    return found - file_.hosts.begin();
  }

  absl::Status ReadPlaces(const YamlSection& section, absl::string_view what,
                          ClusterFile::Processes& processes) {
    std::vector<std::string> names;
    COVEY_RETURN_IF_ERROR(section.ReadWords("hosts", &names));
    processes.at = section.at();
    const std::string at = section.AtKey("hosts");
    if (names.empty()) {
      return Wrong(at, absl::StrCat(what, " has no hosts; add hosts: [HOST]"));
    }
    std::set<std::string> seen;
    for (const std::string& name : names) {
      if (!seen.insert(name).second) {
        return Wrong(at, absl::StrCat("host ", name, " is named twice; use count instead"));
      }
      size_t index = FindHost(name);
      if (index == file_.hosts.size()) {
        if (are_listed_) return UnknownHost(at, name);
        COVEY_ASSIGN_OR_RETURN(index, AddHost(at, name));
      }
      processes.hosts.push_back(index);
    }
    return absl::OkStatus();
  }

  absl::Status UnknownHost(const std::string& at, const std::string& name) const {
    std::vector<std::string> known;
    for (const auto& host : file_.hosts) known.push_back(host.name);
    return Wrong(at, known.empty()
                         ? "hosts is empty; list the hosts there, or leave it out"
                         : absl::StrCat("host ", name, " is not in `hosts`; did you mean ",
                                        NearestName(name, known), "?"));
  }

  absl::Status ReadCount(const YamlSection& section, ClusterFile::Processes& processes) {
    COVEY_RETURN_IF_ERROR(section.Read("count", &processes.count));
    const uint64_t in_all = uint64_t{processes.count} * processes.hosts.size();
    processes_ += in_all;
    if (processes.count >= 1 && in_all <= kClusterProcessesMax &&
        processes_ <= kClusterProcessesMax) {
      return absl::OkStatus();
    }
    return Wrong(section.AtKey("count"),
                 absl::StrCat("count ", processes.count, " on ", processes.hosts.size(),
                              " hosts is out of range; give 1 or more on each, and at most ",
                              kClusterProcessesMax, " processes in all"));
  }

  absl::Status ReadScheduler(const YamlSection& top) {
    if (!top.Has("scheduler")) {
      return Wrong(top.at(), "there is no scheduler; add scheduler: {hosts: HOST}");
    }
    COVEY_ASSIGN_OR_RETURN(const YamlSection section,
                           YamlSection::Open(top.Find("scheduler"), file_.path, "scheduler",
                                             {"hosts", "port", "flags"}));
    COVEY_RETURN_IF_ERROR(ReadPlaces(section, "scheduler", file_.scheduler));
    COVEY_RETURN_IF_ERROR(section.Read("port", &file_.scheduler_port));
    COVEY_RETURN_IF_ERROR(CheckPort(section.AtKey("port"), file_.scheduler_port));
    std::vector<std::string>& flags = file_.scheduler.arguments;
    COVEY_RETURN_IF_ERROR(section.ReadWords("flags", &flags));
    COVEY_RETURN_IF_ERROR(CheckFlags(section.AtKey("flags"), flags));
    const bool has_etcd = std::any_of(flags.begin(), flags.end(), [](const std::string& flag) {
      return absl::StartsWith(flag, "--etcd=");
    });
    if (file_.scheduler.hosts.size() > 1 && !has_etcd) {
      return Wrong(section.AtKey("hosts"),
                   "several schedulers keep their log in etcd; add --etcd=HOST:PORT to flags, or "
                   "name one host");
    }
    return absl::OkStatus();
  }

  absl::Status ReadServers(const YAML::Node& part) {
    COVEY_ASSIGN_OR_RETURN(
        const YamlSection section,
        YamlSection::Open(part, file_.path, "servers", {"hosts", "count", "flags"}));
    ClusterFile::Processes servers;
    COVEY_RETURN_IF_ERROR(ReadPlaces(section, "servers", servers));
    COVEY_RETURN_IF_ERROR(ReadCount(section, servers));
    COVEY_RETURN_IF_ERROR(section.ReadWords("flags", &servers.arguments));
    COVEY_RETURN_IF_ERROR(CheckFlags(section.AtKey("flags"), servers.arguments));
    file_.servers.push_back(std::move(servers));
    return absl::OkStatus();
  }

  absl::Status ReadWorkers(const YAML::Node& part) {
    COVEY_ASSIGN_OR_RETURN(
        const YamlSection section,
        YamlSection::Open(part, file_.path, "workers",
                          {"hosts", "count", "program", "arguments", "environment"}));
    ClusterFile::Processes workers;
    COVEY_RETURN_IF_ERROR(ReadPlaces(section, "workers", workers));
    COVEY_RETURN_IF_ERROR(ReadCount(section, workers));
    COVEY_RETURN_IF_ERROR(section.Read("program", &workers.program));
    const std::string& program = workers.program;
    if (program.empty() || absl::StartsWith(program, "-") || absl::StrContains(program, "=")) {
      return Wrong(section.AtKey("program"),
                   absl::StrCat("\"", program,
                                "\" is no program; give program: PATH, which does "
                                "not begin with - and has no ="));
    }
    COVEY_RETURN_IF_ERROR(section.ReadWords("arguments", &workers.arguments));
    COVEY_RETURN_IF_ERROR(section.ReadMap("environment", &workers.environment));
    for (const auto& [name, value] : workers.environment) {
      if (!IsVariable(name)) {
        return Wrong(section.AtKey("environment"),
                     absl::StrCat("\"", name, "\" is no name of a variable; write NAME: VALUE"));
      }
    }
    file_.workers.push_back(std::move(workers));
    return absl::OkStatus();
  }

  ClusterFile& file_;
  std::string folder_;
  ClusterFile::Host defaults_;
  bool are_listed_ = false;
  uint64_t processes_ = 0;
};

}  // namespace

uint32_t ClusterFile::CountOf(const std::vector<Processes>& all) {
  uint32_t count = 0;
  for (const Processes& each : all) count += each.count * each.hosts.size();
  return count;
}

absl::StatusOr<ClusterFile> ParseClusterFile(absl::string_view text, const std::string& path) {
  YAML::Node root;
  try {
    root = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    return Wrong(absl::StrCat(path, ":", error.mark.line + 1),
                 absl::StrCat("not YAML: ", error.msg, "; mend this line"));
  }
  ClusterFile file;
  file.path = path;
  COVEY_RETURN_IF_ERROR(YamlSection::CheckScalars(root, path));
  COVEY_RETURN_IF_ERROR(Reader(file).ReadAll(root));
  return file;
}

}  // namespace covey::cli
