#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch: a DataLoader that forks workers out of a process with many threads, and tensor work in short-lived threads.
# Called by ctest; heavy (PyTorch).
limit=300
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
python=/usr/bin/python3.11
need $python python3.11
unset "${!PYTHON@}"
$python -c 'import torch' 2>import.log || skip "PyTorch is missing (Debian: python3-torch)"
both $python "$here/loader.py"
expect_reused 20
