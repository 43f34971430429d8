"""What holds without any configuration: the default answers, what is never done, what always asks."""

import itertools
import posixpath
import re
from collections.abc import Mapping
from typing import Final

from callboard_rpc.approvals import Effect

from ..tools.base import Effect as ToolEffect

POLICY: Final[Mapping[ToolEffect, Effect]] = {
    "read": "allow",
    "write": "ask",
    "execute": "ask",
    "kernel": "allow",
}
"""By a tool's effect."""

PROTECTED: Final[Mapping[str, str]] = {
    ".git": "it is the repository's own data, where a hook or a setting runs as a program",
    ".hg": "it is the repository's own data",
    ".svn": "it is the repository's own data",
    ".callboard": "it holds what agents are told and may do",
    ".vscode": "an editor runs what is written there",
    ".idea": "an editor runs what is written there",
    ".zed": "an editor runs what is written there",
    ".nvim.lua": "an editor runs what is written there",
    ".exrc": "an editor runs what is written there",
    ".envrc": "a shell runs what is written there",
    ".bashrc": "a shell runs what is written there",
    ".bash_profile": "a shell runs what is written there",
    ".profile": "a shell runs what is written there",
    ".zshrc": "a shell runs what is written there",
    ".zshenv": "a shell runs what is written there",
    ".zprofile": "a shell runs what is written there",
    ".ssh": "who may log in, and where to, is written there",
    ".config": "it is where programs are set up, and Callboard with its hooks and rules",
}
"""Names of folders and files whose change is asked about even where a rule allows, and why."""

_PRIVILEGED: Final = frozenset(
    ["sudo", "sudoedit", "su", "doas", "pkexec", "run0", "runas", "gsudo", "visudo", "machinectl"]
)
_POWER: Final = frozenset(["shutdown", "reboot", "halt", "poweroff"])
_DISKS: Final = frozenset(
    ["fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted", "wipefs", "blkdiscard", "mkswap",
     "diskpart", "cryptsetup", "pvremove", "vgremove", "lvremove"]
)  # fmt: skip
_ACCOUNTS: Final = frozenset(
    [
        "useradd",
        "userdel",
        "usermod",
        "groupdel",
        "groupmod",
        "passwd",
        "chpasswd",
        "adduser",
        "deluser",
    ]
)
_KERNEL: Final = frozenset(["insmod", "rmmod", "modprobe", "kexec", "sysctl"])
_SYSTEM_FOLDERS: Final = frozenset(
    ["bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "opt", "proc", "root", "run",
     "sbin", "srv", "sys", "usr", "var", "mnt", "media",
     "applications", "library", "system", "users", "volumes", "private", "cores"]
)  # fmt: skip
_HOME: Final = re.compile(
    r"(?:~[A-Za-z0-9_-]*|\$HOME|\$\{HOME\}|\$USERPROFILE|%USERPROFILE%)(?:/\.?)*"
)
_HOME_OF: Final = re.compile(r"/(?:home|Users|export/home)/[^/]+|/root", re.IGNORECASE)
_BLOCK_DEVICE: Final = re.compile(
    r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|md|dm-|mapper/|loop|zram|mem|kmem|port)"
)
_FORK_BOMB: Final = re.compile(r"([\w:.]{1,64})\(\)\{\1\|\1&\};\1")
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]*\*?")


def forbidden(program: str, arguments: tuple[str, ...]) -> str | None:
    """Why a command is never run, whoever asks; None when it is not of that kind.

    `program` is a bare name. The list is of what destroys a machine, or acts as another user;
    what merely could do harm is a matter of approval.
    """
    if program in _PRIVILEGED:
        return f"{program} acts with another user's rights"
    if program in _POWER or (program in ("init", "telinit") and set(arguments) & {"0", "6"}):
        return f"{program} stops the machine"
    if program in ("systemctl", "loginctl") and set(arguments) & (
        _POWER | {"kexec", "suspend", "hibernate"}
    ):
        return f"{program} would stop the machine"
    if program in _DISKS and set(arguments) & {"-l", "--list"}:
        return None
    if program in _DISKS or program.startswith(("mkfs", "newfs")):
        return f"{program} changes disks"
    if program == "diskutil" and any(
        re.match(r"(?i)erase|partition|zero|secure", a) for a in arguments
    ):
        return "diskutil would erase a disk"
    if program == "format" and any(_DRIVE.fullmatch(a) for a in arguments):
        return "format erases a disk"
    if program in _ACCOUNTS:
        return f"{program} changes the accounts of this machine"
    if program in _KERNEL and not (program == "sysctl" and not _sets(arguments)):
        return f"{program} changes the running system"
    return _forbidden_by_arguments(program, arguments)


def forbidden_target(path: str) -> str | None:
    """Why nothing may be written to this path by redirection."""
    return f"{path} is a device of the machine" if _BLOCK_DEVICE.match(path) else None


def is_fork_bomb(line: str) -> bool:
    """Whether the line defines a function that calls itself twice, for ever."""
    squeezed = "".join(line.split())
    return "(){" in squeezed and _FORK_BOMB.search(squeezed) is not None


def _forbidden_by_arguments(program: str, arguments: tuple[str, ...]) -> str | None:
    plain = [a for a in arguments if not a.startswith("-")]
    match program:
        case "rm" | "unlink" | "srm" | "rmdir" | "shred":
            if "--no-preserve-root" in arguments:
                return f"{program} --no-preserve-root destroys the system"
            target = next((a for a in plain if _is_vital(a)), None)
            if target is not None and (_recursive(arguments) or program == "srm"):
                return f"{program} would delete all of {target}"
            if program == "shred" and any(_BLOCK_DEVICE.match(a) for a in plain):
                return "shred would erase a disk"
        case "rd" | "del" | "erase" | "format":
            if any(_DRIVE.fullmatch(a) for a in plain) and any(
                a.lower() == "/s" for a in arguments
            ):
                return f"{program} /s would delete a whole drive"
        case "chmod" | "chown" | "chgrp" | "chattr" | "setfacl":
            target = next((a for a in plain[1:] if _is_vital(a)), None)
            if target is not None and _recursive(arguments):
                return f"{program} would change all of {target}"
        case "mv":
            target = next((a for a in plain[:-1] if _is_vital(a)), None)
            if target is not None:
                return f"mv would move away all of {target}"
        case "find":
            starts = [a for a in _before_tests(arguments) if _is_vital(a)]
            if starts and ("-delete" in arguments or _deletes(arguments)):
                return f"find would delete all of {starts[0]}"
        case "dd":
            target = next((a[3:] for a in arguments if a.startswith("of=")), "")
            if target.startswith("/dev/") and target not in (
                "/dev/null",
                "/dev/stdout",
                "/dev/fd/1",
            ):
                return f"dd would overwrite {target}"
        case "tee" | "cp" | "install" | "truncate":
            target = next((a for a in plain if _BLOCK_DEVICE.match(a)), None)
            if target is not None and (program != "cp" or plain[-1] == target):
                return f"{program} would overwrite {target}"
        case "kill" | "killall5":
            if program == "killall5" or (program == "kill" and "-1" in arguments[1:]):
                return f"{program} would end every process"
        case _:
            pass
    return None


def _recursive(arguments: tuple[str, ...]) -> bool:
    return any(
        a == "--recursive" or re.fullmatch(r"-[A-Za-z]*[rR][A-Za-z]*", a) is not None
        for a in arguments
    )


def _sets(arguments: tuple[str, ...]) -> bool:
    return any("=" in a or a in ("-w", "--write", "-p", "--load", "--system") for a in arguments)


def _before_tests(arguments: tuple[str, ...]) -> list[str]:
    starts: list[str] = []
    for argument in arguments:
        if argument.startswith("-") and argument not in ("-H", "-L", "-P"):
            break
        starts.append(argument)
    return starts


def _deletes(arguments: tuple[str, ...]) -> bool:
    return any(
        a in ("-exec", "-execdir") and b.rpartition("/")[2] in ("rm", "shred", "unlink")
        for a, b in itertools.pairwise(arguments)
    )


def _is_vital(target: str) -> bool:
    """Whether the path is the root, a folder of the system, or a home; or everything in it."""
    if _DRIVE.fullmatch(target):
        return True
    path = re.sub(r"(?:/+(?:\*|\.\*|\{\*,\.\*\}|\.\[!\.\]\*))+$", "", target)
    if path == "" and target.startswith("/"):
        return True
    if _HOME.fullmatch(path):
        return True
    if not path.startswith("/"):
        return False
    normal = "/" + posixpath.normpath(path).lstrip("/")
    if normal == "/" or _HOME_OF.fullmatch(normal):
        return True
    parts = normal.strip("/").split("/")
    return len(parts) == 1 and parts[0].lower() in _SYSTEM_FOLDERS
