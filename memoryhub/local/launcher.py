"""Become another program that cannot outlive its parent, as an ordinary user where asked.

Run by path (`python -I -S launcher.py …`) between fork and exec, so that nothing has to happen in a `preexec_fn`.
It keeps its process id: whoever starts it holds the id of the program it becomes.

Why it exists: Postgres refuses to run as root, and the death signal (Linux) is cleared by a change of user, so both
must be done here, in this order. A checkout that the ordinary user cannot enter (below /root, say) is reached by
leaving the process one capability, "read and search any folder"; no permission on disk is changed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pwd
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAPABILITY_VERSION_3 = 0x20080522
# Tried in this order: the first only reads; the second also writes, but is all that some containers leave to root.
CAP_DAC_READ_SEARCH = 2
CAP_DAC_OVERRIDE = 1
LAUNCH_FAILED = 125


def launch_command(
    command: Sequence[str],
    *,
    death_signal: signal.Signals,
    run_as: str | None = None,
    must_reach: Sequence[Path] = (),
) -> list[str]:
    """`command` wrapped so that it gets `death_signal` when the calling process dies.

    `run_as` is the account to change to (root only); `must_reach` are folders which that account has to enter.
    """
    wrapped = [sys.executable, "-I", "-S", str(Path(__file__).resolve())]
    wrapped += [f"--parent={os.getpid()}", f"--death-signal={int(death_signal)}"]
    if run_as is not None:
        wrapped += [f"--run-as={run_as}", *(f"--must-reach={path}" for path in must_reach)]
    return [*wrapped, "--", *command]


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _set_capabilities(capabilities: Sequence[int]) -> bool:
    """Hold exactly these capabilities, and pass them on to the program to come. False if they cannot be had."""
    mask = sum(1 << capability for capability in capabilities)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    # effective, permitted, inheritable; twice, for the low and the high 32 capabilities
    data = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
    libc = _libc()
    if libc.capset(header, data) != 0:
        return False
    return all(
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0 for capability in capabilities
    )


def _effective_capabilities_only_permitted(capability: int) -> bool:
    """Narrow to one capability, keeping the rest merely permitted, so that a second attempt stays possible."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    mask = 1 << capability
    permitted = (1 << CAP_DAC_READ_SEARCH) | (1 << CAP_DAC_OVERRIDE)
    return _libc().capset(header, (ctypes.c_uint32 * 6)(mask, permitted, 0, 0, 0, 0)) == 0
