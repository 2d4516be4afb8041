"""A filter of system calls: no new processes, no other program, no way back out of the jail."""

import ctypes
import errno
import os
import platform
import struct

__all__ = ["SUPPORTED", "deny"]

# Numbers of the system calls of both machines (Linux, arch/*/entry/syscalls and
# include/uapi/asm-generic/unistd.h).
_BOTH = {  # the calls that are newer than 424 have one number everywhere
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "memfd_secret": 447,
}
_NUMBERS = {
    "x86_64": {
        **_BOTH,
        **{"fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "ptrace": 101, "mount": 165},
        **{"umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308},
        **{"bpf": 321, "perf_event_open": 298, "add_key": 248, "request_key": 249, "keyctl": 250},
        **{"process_vm_readv": 310, "process_vm_writev": 311, "userfaultfd": 323, "mknod": 133},
        **{"open_by_handle_at": 304, "kexec_load": 246, "init_module": 175, "mknodat": 259},
        **{"finit_module": 313, "personality": 135, "quotactl": 179, "setpriority": 141},
        # Memory that belongs to no process would count for none.
        **{"memfd_create": 319, "shmget": 29, "msgget": 68, "semget": 64, "mq_open": 240},
        "syslog": 103,
    },
    "aarch64": {
        **_BOTH,
        **{"execve": 221, "execveat": 281, "ptrace": 117, "mount": 40, "umount2": 39},
        **{"pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "bpf": 280},
        **{"perf_event_open": 241, "add_key": 217, "request_key": 218, "keyctl": 219},
        **{"process_vm_readv": 270, "process_vm_writev": 271, "userfaultfd": 282, "mknodat": 33},
        **{"open_by_handle_at": 265, "kexec_load": 104, "init_module": 105, "finit_module": 273},
        **{"personality": 92, "quotactl": 60, "setpriority": 140},
        **{"memfd_create": 279, "shmget": 194, "msgget": 186, "semget": 190, "mq_open": 180},
        "syslog": 116,
    },
}
_ARGUMENT = {"x86_64": {"clone": 56, "clone3": 435, "socket": 41, "socketpair": 53}}
_ARGUMENT["aarch64"] = {"clone": 220, "clone3": 435, "socket": 198, "socketpair": 199}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE_THREAD = 0x10000
AF_UNIX = 1

SUPPORTED = platform.machine() in _NUMBERS and os.name == "posix"

_LOAD, _JUMP_EQUAL, _JUMP_SET, _JUMP_ABOVE, _RETURN = 0x20, 0x15, 0x45, 0x25, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_PR_SET_NO_NEW_PRIVS, _FILTER_MODE, _ALL_THREADS = 38, 1, 1


def deny():
    """Forbid this process, for good, what a notebook never needs.

    Properties: it holds for every thread, also for those that run already: a cell can hand work
        to the kernel's own. fork, exec and sockets other than Unix ones fail with EPERM; threads
        still start (clone3 fails with ENOSYS, and libc falls back to clone, whose flags can be
        looked at).
    Raises: OSError if the kernel refuses the filter.
    Source: the Linux kernel's Documentation/userspace-api/seccomp_filter.rst.
    """
    program = b"".join(struct.pack("HBBI", *step) for step in _program(platform.machine()))
    buffer = ctypes.create_string_buffer(program)

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]

    packed = Filter(len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    zero, call = ctypes.c_ulong(0), _SECCOMP[platform.machine()]
    for what, result in (
        ("no_new_privs", libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero)),
        ("seccomp", libc.syscall(call, _FILTER_MODE, _ALL_THREADS, ctypes.byref(packed))),
    ):
        if result:  # a positive one is a thread that could not follow
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")


def _program(machine):
    """The filter as (code, jump if true, jump if false, constant)."""
    forbidden = _ERRNO | errno.EPERM
    calls = _ARGUMENT[machine]
    steps = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":  # the x32 calls have numbers of their own
        steps += [(_JUMP_ABOVE, 0, 1, 0x3FFFFFFF), (_RETURN, 0, 0, forbidden)]
    for number in _NUMBERS[machine].values():
        steps += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, forbidden)]
    steps += [(_JUMP_EQUAL, 0, 1, calls["clone3"]), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    steps += [
        (_JUMP_EQUAL, 0, 4, calls["clone"]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_SET, 1, 0, CLONE_THREAD),
        (_RETURN, 0, 0, forbidden),
        (_RETURN, 0, 0, _ALLOW),
    ]
    for call in ("socket", "socketpair"):
        steps += [
            (_JUMP_EQUAL, 0, 4, calls[call]),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_JUMP_EQUAL, 1, 0, AF_UNIX),
            (_RETURN, 0, 0, forbidden),
            (_RETURN, 0, 0, _ALLOW),
        ]
    return [*steps, (_RETURN, 0, 0, _ALLOW)]
