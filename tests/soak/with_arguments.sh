#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program of another test, with arguments of its own; a sh_test must be a file.
exec "$@"
