// SPDX-License-Identifier: Apache-2.0
#include "common/faults/fault_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/edit_distance.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

// yaml-cpp reports problems as exceptions; they end here.
absl::StatusOr<YAML::Node> Read(const std::function<YAML::Node()>& read, absl::string_view origin) {
  try {
    return read();
  } catch (const YAML::BadFile&) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the faults of ", origin, "; check the file's name"));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ":", std::max(0, error.mark.line) + 1,
                                                   ": not YAML: ", error.msg,
                                                   "; see common/faults/fault_file.h"));
  }
}

absl::Status ReadDuration(absl::string_view text, absl::Duration* field) {
  if (absl::ParseDuration(text, field) && *field >= absl::ZeroDuration() &&
      *field != absl::InfiniteDuration()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("not a time like \"2.5s\" or \"300ms\"");
}

absl::Status ReadNumber(absl::string_view text, double* field) {
  if (absl::SimpleAtod(text, field)) return absl::OkStatus();
  return absl::InvalidArgumentError("not a number");
}

absl::Status ReadCount(absl::string_view text, uint64_t* field) {
  if (absl::SimpleAtoi(text, field)) return absl::OkStatus();
  return absl::InvalidArgumentError("not a whole number");
}

absl::Status ReadName(absl::string_view text, std::string* field) {
  *field = std::string(text);
  return absl::OkStatus();
}

struct Key {
  std::string name;
  std::function<absl::Status(absl::string_view)> read;
};

std::vector<Key> ArgumentKeys(Fault* fault) {
  return {
      {"other", [fault](absl::string_view text) { return ReadName(text, &fault->other); }},
      {"by", [fault](absl::string_view text) { return ReadDuration(text, &fault->by); }},
      {"chance", [fault](absl::string_view text) { return ReadNumber(text, &fault->chance); }},
      {"factor", [fault](absl::string_view text) { return ReadNumber(text, &fault->factor); }},
      {"bits_per_second",
       [fault](absl::string_view text) { return ReadCount(text, &fault->bits_per_second); }},
      {"loop", [fault](absl::string_view text) { return ReadCount(text, &fault->loop); }},
  };
}

std::vector<Key> FaultKeys(Fault* fault) {
  return {
      {"at", [fault](absl::string_view text) { return ReadDuration(text, &fault->at); }},
      {"for", [fault](absl::string_view text) { return ReadDuration(text, &fault->duration); }},
      {"kind",
       [fault](absl::string_view text) {
         COVEY_ASSIGN_OR_RETURN(fault->kind, ParseFaultKind(text));
         return absl::OkStatus();
       }},
      {"target", [fault](absl::string_view text) { return ReadName(text, &fault->target); }},
      {"args", nullptr},
  };
}

// The position of the fault that is being read; messages begin with it.
class Place {
 public:
  explicit Place(absl::string_view origin) : origin_(origin) {}
  absl::Status Wrong(const YAML::Node& node, absl::string_view what) const {
    const std::string line = absl::StrCat(std::max(0, node.Mark().line) + 1);
    return absl::InvalidArgumentError(
        origin_.empty() ? std::string(what) : absl::StrCat(origin_, ":", line, ": ", what));
  }

 private:
  const std::string origin_;
};

// Reads the map's scalars; `nested` gets the value of the key without a reader.
absl::Status ReadMap(const YAML::Node& map, const std::vector<Key>& keys, const Place& place,
                     std::set<std::string>* given, YAML::Node* nested) {
  for (const auto& entry : map) {
    if (!entry.first.IsScalar()) return place.Wrong(entry.first, "expected `key: value`");
    const std::string& name = entry.first.Scalar();
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
    if (key == keys.end()) {
      const auto nearest =
          std::min_element(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
            return EditDistance(name, a.name) < EditDistance(name, b.name);
          });
      return place.Wrong(entry.first, absl::StrCat("unknown key \"", name, "\"; did you mean \"",
                                                   nearest->name, "\"?"));
    }
    if (!given->insert(name).second) {
      return place.Wrong(entry.first, absl::StrCat("\"", name, "\" is given twice"));
    }
    if (key->read == nullptr) {
      *nested = entry.second;
      continue;
    }
    if (!entry.second.IsScalar()) {
      return place.Wrong(entry.first, absl::StrCat("\"", name, "\" takes one value"));
    }
    const absl::Status status = key->read(entry.second.Scalar());
    if (!status.ok()) {
      return place.Wrong(entry.second, name == "kind"
                                           ? std::string(status.message())
                                           : absl::StrCat(name, " is \"", entry.second.Scalar(),
                                                          "\", ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Fault> ReadFault(const YAML::Node& node, const Place& place) {
  if (!node.IsMap()) {
    return place.Wrong(node, "expected a fault, as in `{at: 2s, kind: kill, target: server-1}`");
  }
  Fault fault{.line = std::max(0, node.Mark().line) + 1};
  std::set<std::string> given;
  YAML::Node arguments;
  COVEY_RETURN_IF_ERROR(ReadMap(node, FaultKeys(&fault), place, &given, &arguments));
  for (const char* const needed : {"kind", "target"}) {
    if (given.count(needed) == 0) return place.Wrong(node, absl::StrCat("needs a ", needed));
  }
  if (given.count("args") > 0) {
    if (!arguments.IsMap()) return place.Wrong(arguments, "args: expected `{name: value}`");
    std::set<std::string> given_arguments;
    COVEY_RETURN_IF_ERROR(
        ReadMap(arguments, ArgumentKeys(&fault), place, &given_arguments, nullptr));
  }
  const absl::Status status = Validate(fault);
  if (!status.ok()) return place.Wrong(node, status.message());
  return fault;
}

absl::StatusOr<FaultPlan> ReadPlan(const YAML::Node& root, absl::string_view origin) {
  const Place place(origin);
  if (root.IsNull()) return FaultPlan();
  if (!root.IsSequence()) {
    return place.Wrong(root, "not a list of faults; begin each with \"- \"");
  }
  if (root.size() > kFaultsMax) {
    return place.Wrong(root, absl::StrCat(root.size(), " faults; at most ", kFaultsMax));
  }
  FaultPlan plan;
  for (const YAML::Node& node : root) {
    COVEY_ASSIGN_OR_RETURN(Fault fault, ReadFault(node, place));
    plan.push_back(std::move(fault));
  }
  return plan;
}

// The shortest form that reads back as the same number.
std::string Number(double value) {
  for (int digits = 6; digits < 17; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double again = 0;
    if (absl::SimpleAtod(text, &again) && again == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

std::string Name(absl::string_view name) {
  return name == kEverybody ? absl::StrCat("\"", name, "\"") : std::string(name);
}

absl::Status CheckSize(absl::string_view text, absl::string_view origin) {
  if (text.size() <= kFaultFileBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": ", text.size(), " bytes of faults; at most ", kFaultFileBytesMax));
}

}  // namespace

absl::StatusOr<FaultPlan> ParseFaultPlan(absl::string_view text, absl::string_view origin) {
  COVEY_RETURN_IF_ERROR(CheckSize(text, origin));
  COVEY_ASSIGN_OR_RETURN(const YAML::Node root,
                         Read([&] { return YAML::Load(std::string(text)); }, origin));
  return ReadPlan(root, origin);
}

absl::StatusOr<FaultPlan> LoadFaultPlan(const std::string& path) {
  COVEY_ASSIGN_OR_RETURN(const YAML::Node root, Read([&] { return YAML::LoadFile(path); }, path));
  return ReadPlan(root, path);
}

absl::StatusOr<Fault> ParseFault(absl::string_view text) {
  COVEY_RETURN_IF_ERROR(CheckSize(text, "fault"));
  COVEY_ASSIGN_OR_RETURN(const YAML::Node root,
                         Read([&] { return YAML::Load(std::string(text)); }, "fault"));
  return ReadFault(root, Place(""));
}

std::string PrintFault(const Fault& fault) {
  std::string text = absl::StrCat("{at: ", absl::FormatDuration(fault.at));
  if (fault.duration != absl::InfiniteDuration()) {
    absl::StrAppend(&text, ", for: ", absl::FormatDuration(fault.duration));
  }
  absl::StrAppend(&text, ", kind: ", FaultKindName(fault.kind), ", target: ", Name(fault.target));
  std::vector<std::string> arguments;
  if (!fault.other.empty()) arguments.push_back(absl::StrCat("other: ", Name(fault.other)));
  if (fault.by != absl::ZeroDuration()) {
    arguments.push_back(absl::StrCat("by: ", absl::FormatDuration(fault.by)));
  }
  if (fault.chance != 0) arguments.push_back(absl::StrCat("chance: ", Number(fault.chance)));
  if (fault.factor != 0) arguments.push_back(absl::StrCat("factor: ", Number(fault.factor)));
  if (fault.bits_per_second != 0) {
    arguments.push_back(absl::StrCat("bits_per_second: ", fault.bits_per_second));
  }
  if (fault.loop != 0) arguments.push_back(absl::StrCat("loop: ", fault.loop));
  if (!arguments.empty()) {
    absl::StrAppend(&text, ", args: {", absl::StrJoin(arguments, ", "), "}");
  }
  return absl::StrCat(text, "}");
}

std::string PrintFaultPlan(const FaultPlan& plan) {
  std::string text;
  for (const Fault& fault : plan) absl::StrAppend(&text, "- ", PrintFault(fault), "\n");
  return text;
}

}  // namespace covey
