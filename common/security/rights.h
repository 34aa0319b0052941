// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/security/identity.h"

namespace covey {

// The access control list of a scheduler: one table of the methods that each role may call. A call
// that the table does not allow is refused. Pure.

enum class Right {
  kNo,
  kOwn,  // when the call speaks for, or acts on, the node that the caller has registered
  kYes,
};

// The node that a call speaks for or acts on. A call of Register is about the node that it makes:
// kOwn when role, job and rank are those of the caller's identity.
enum class CallSubject {
  kNone,  // the cluster as a whole
  kOwn,
  kOther,
};

// A row: what each role may do with one method.
struct MethodRights {
  absl::string_view service;  // "covey.proto.Scheduler"
  absl::string_view method;   // "Register"
  Right scheduler;
  Right server;
  Right worker;
  Right client;
  Right viewer;
  Right admin;

  Right Of(IdentityRole role) const;
};

// In the order of the services' definitions.
std::span<const MethodRights> AllRights();

struct Call {
  absl::string_view service;
  absl::string_view method;
  // Of the process that is called.
  absl::string_view trust_domain;
  absl::string_view job;
  CallSubject subject = CallSubject::kNone;
};

// OK when `caller` may make the call. PERMISSION_DENIED: who may not do what, why, and who may.
absl::Status CheckRight(const Identity& caller, const Call& call);

}  // namespace covey
