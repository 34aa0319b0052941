// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expression` is not OK.
#define COVEY_RETURN_IF_ERROR(expression)                                                    \
  do {                                                                                       \
    if (::absl::Status covey_status = (expression); !covey_status.ok()) return covey_status; \
  } while (false)

#define COVEY_CONCAT_INNER(a, b) a##b
#define COVEY_CONCAT(a, b) COVEY_CONCAT_INNER(a, b)

// `COVEY_ASSIGN_OR_RETURN(auto value, Expression())`: declares the value, or returns the error.
#define COVEY_ASSIGN_OR_RETURN(declaration, expression) \
  COVEY_ASSIGN_OR_RETURN_IMPL(COVEY_CONCAT(covey_statusor_, __LINE__), declaration, expression)
#define COVEY_ASSIGN_OR_RETURN_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                                        \
  if (!temporary.ok()) return std::move(temporary).status();            \
  declaration = *std::move(temporary)
