#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program of another test, with other arguments; a sh_test must be a file.
exec "$@"
