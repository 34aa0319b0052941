#!/usr/bin/env bash
# A program of another test, with arguments of its own; a sh_test must be a file.
exec "$@"
