"""A launcher of programs that end with their parent process and, where needed, run as an ordinary user.

The parent runs this file by path (`python -I -S run_with_parent.py …`), so that it needs no `preexec_fn`. The launcher
then replaces itself with the program, which therefore has the process id that the parent knows.

Postgres refuses to run as root, and Linux clears the parent death signal when the user changes, so the launcher changes
the user first and then requests the signal. If the ordinary user cannot enter the checkout (below /root, for example),
the process keeps one capability, "read and search any folder". Permissions on disk stay unchanged.
"""

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
PR_SET_SECUREBITS = 28
SECBIT_NO_SETUID_FIXUP = 1 << 2
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAPABILITY_VERSION_3 = 0x20080522
# Tried in this order: the first only allows reading. The second also allows writing, but some containers have only it.
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
    """Return `command` wrapped so that it receives `death_signal` when the calling process dies.

    `run_as` is the account to change to (root only). `must_reach` lists the folders that this account must be able to
    enter.
    """
    wrapped = [sys.executable, "-I", "-S", str(Path(__file__).resolve())]
    wrapped += [f"--parent={os.getpid()}", f"--death-signal={int(death_signal)}"]
    if run_as is not None:
        wrapped += [f"--run-as={run_as}", *(f"--must-reach={path}" for path in must_reach)]
    return [*wrapped, "--", *command]


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _hold_capabilities(held: int, retained: int) -> bool:
    """Set this process's capabilities. Return False if this is not allowed.

    ``held`` become effective and inheritable, and ``retained`` are permitted as well.
    """
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    # effective, permitted, inheritable; the second three are the high 32 capabilities, all dropped
    data = (ctypes.c_uint32 * 6)(held, held | retained, held, 0, 0, 0)
    return bool(_libc().capset(header, data) == 0)


def become(account: pwd.struct_passwd, must_reach: Sequence[Path]) -> None:
    """Change from root to `account` permanently, with the fewest capabilities that make all of `must_reach` accessible.

    Raises PermissionError with the first path that stays inaccessible. Python's own files may be inaccessible
    afterwards, so import nothing after this call.
    """
    os.setgroups([account.pw_gid])
    os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
    libc = _libc()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    permitted = next(line.split()[1] for line in status.splitlines() if line.startswith("CapPrm:"))
    choices = int(permitted, 16) & (1 << CAP_DAC_READ_SEARCH | 1 << CAP_DAC_OVERRIDE)
    # Without this bit access(2), which initdb calls for its own program, ignores the capabilities.
    libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
    unreachable: Path | None = None
    for capability in (None, CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE):
        held = 0 if capability is None else 1 << capability
        if held & ~choices or not _hold_capabilities(held, choices):
            continue
        unreachable = next((path for path in must_reach if not os.access(path, os.X_OK)), None)
        if unreachable is None:
            _hold_capabilities(held, 0)
            if capability is not None:
                libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0)
            return
    raise PermissionError(f"the account '{account.pw_name}' cannot reach {unreachable}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--death-signal", type=int, required=True)
    parser.add_argument("--run-as")
    parser.add_argument("--must-reach", type=Path, action="append", default=[])
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if options.run_as is not None:
        try:
            become(pwd.getpwnam(options.run_as), options.must_reach)
        except PermissionError as error:
            sys.stderr.write(
                f"Started as root, Postgres has to run as an ordinary user, but {error}. Start as an "
                "ordinary user, or have the program and MEMORYHUB_DATA_DIR where this account can enter.\n"
            )
            sys.exit(LAUNCH_FAILED)
    _libc().prctl(PR_SET_PDEATHSIG, options.death_signal, 0, 0, 0)
    if os.getppid() != options.parent:  # the parent died before the signal was requested
        sys.exit(LAUNCH_FAILED)
    os.execv(options.command[0], options.command)  # noqa: S606  (the point of this program)


if __name__ == "__main__":
    main()
