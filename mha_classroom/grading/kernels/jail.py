"""Namespaces, mounts and limits that a process enters before it runs what a student wrote."""

import ctypes
import os
import signal
import sysconfig

__all__ = ["Jail", "die_with_parent", "drop_privileges", "own_namespaces", "unavailable"]

_NAMESPACES = {
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "net": 0x40000000,
}
_NEW_USER, _NEW_PID = 0x10000000, 0x20000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 32, 4096, 16384, 1 << 18
_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_CAPABILITY_VERSION = 0x20080522
FIRST_UID, UIDS = 61184, 4336  # systemd's range for users that exist while a service runs
INSIDE_UID = 1000
SCRATCH_BYTES, SCRATCH_FILES = 64 << 20, 10_000
# Finished versions of what students write.
HIDDEN = ("d2l", "transformers", "mha_course", "mha_classroom")

_libc = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


def own_namespaces(number, folder=None):
    """Enter a user of its own and have the next child be process 1 of a process space of its own.

    number: another one for each process that is there at a time. Where this is root, what comes
        after `drop_privileges` is an ordinary user of the host, who owns nothing and has a number
        that no other notebook has. Else it stays who it is outside.
    folder: what that user is to own.
    Raises: OSError where the machine does not allow it.
    """
    outside = os.geteuid()
    user = FIRST_UID + number % UIDS if outside == 0 else outside
    group = user if outside == 0 else os.getegid()
    if folder and outside == 0:
        os.chown(folder, user, group)
    _check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")  # or /proc/self belongs to root
    if outside:
        _check(_libc.unshare(_NEW_USER | _NEW_PID), "unshare")
        _write_maps("self", [f"{INSIDE_UID} {user} 1"], [f"{INSIDE_UID} {group} 1"], "deny")
        return
    # Only one who stays outside may map a user that is not its own.
    ready, go = os.pipe()
    helper = os.fork()
    if not helper:
        status = 1
        try:
            os.close(go)
            if os.read(ready, 1):
                lines = ["0 0 1", f"{INSIDE_UID} {user} 1"]
                _write_maps(os.getppid(), lines, lines)
                status = 0
        finally:
            os._exit(status)
    os.close(ready)
    try:
        _check(_libc.unshare(_NEW_USER | _NEW_PID), "unshare")
        os.write(go, b"!")
    finally:
        os.close(go)
        _, status = os.waitpid(helper, 0)
    if status:
        raise PermissionError("the user of a notebook could not be mapped")


def _write_maps(process, users, groups, setgroups=None):
    if setgroups:
        with open(f"/proc/{process}/setgroups", "w") as target:
            target.write(setgroups)
    for file, lines in (("uid_map", users), ("gid_map", groups)):
        with open(f"/proc/{process}/{file}", "w") as target:
            target.write("\n".join(lines))


class Jail:
    """The file system that one notebook sees: the libraries, to read; a folder in memory, to write.

    root: an empty folder on which it is built. sockets: the folder of the host in which the kernel
        makes its sockets; it can be written to until `close`.
    """

    def __init__(self, root, sockets):
        self.root, self.sockets = str(root), str(sockets)

    def build(self):
        """Make the mounts, in namespaces of their own, and change into the new root, for good."""
        _check(_libc.unshare(sum(_NAMESPACES.values())), "unshare")
        _check(_libc.sethostname(b"notebook", 8), "sethostname")
        _mount(None, "/", None, _RECURSIVE | _PRIVATE)
        root = self.root
        _mount("tmpfs", root, "tmpfs", _NO_SUID | _NO_DEVICES, "size=1m,mode=755")
        for name in ("proc", "tmp", "dev", "sockets", "old"):
            os.mkdir(f"{root}/{name}")
        flags = _NO_SUID | _NO_DEVICES | _NO_EXEC
        limits = f"size={SCRATCH_BYTES},nr_inodes={SCRATCH_FILES},mode=700"
        limits += f",uid={INSIDE_UID},gid={INSIDE_UID}"
        _mount("tmpfs", f"{root}/tmp", "tmpfs", flags, limits)
        for path in _readable():  # some of which may lie below /tmp
            _bind(path, root + path)
            for name in HIDDEN:
                for package in (f"{path}/{name}", f"{path}/site-packages/{name}"):
                    if os.path.isdir(package):
                        _mount("tmpfs", root + package, "tmpfs", _READ_ONLY, "size=4k,mode=755")
        # Nothing of the machine, and of process 1 not even that it is there.
        _mount("proc", f"{root}/proc", "proc", flags, "subset=pid,hidepid=2")
        for name in ("null", "zero", "urandom", "random"):
            _make_file(f"{root}/dev/{name}")
            _mount(f"/dev/{name}", f"{root}/dev/{name}", None, _BIND)
        _bind(self.sockets, f"{root}/sockets", _NO_EXEC)
        self._enter()

    def _enter(self):
        os.chdir(self.root)
        _check(_libc.pivot_root(b".", b"old"), "pivot_root")
        os.chdir("/")
        _check(_libc.umount2(b"/old", _DETACH), "umount2")
        os.rmdir("/old")
        flags = _BIND | _REMOUNT | _READ_ONLY | _NO_SUID | _NO_DEVICES
        _mount(None, "/", None, flags)
        os.chdir("/tmp")

    def close(self):
        """Let nothing more be written into the folder of the sockets."""
        flags = _BIND | _REMOUNT | _READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_EXEC
        _mount(None, "/sockets", None, flags)


def drop_privileges():
    """Become the user of the notebook, give up every capability and the way to get any."""
    for capability in range(64):  # first, since who is no longer root may not
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    if os.getuid() != INSIDE_UID:
        os.setgroups([])
        os.setresgid(INSIDE_UID, INSIDE_UID, INSIDE_UID)
        os.setresuid(INSIDE_UID, INSIDE_UID, INSIDE_UID)
    header = _Header(_CAPABILITY_VERSION, 0)
    _check(_libc.capset(ctypes.byref(header), (_Sets * 2)()), "capset")
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    # Or another process of this user could write into the memory of this one.
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")
    die_with_parent()  # which the system forgets where a process becomes another user


def die_with_parent():
    """Have the system kill this process when its parent ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")


def unavailable():
    """Return why this machine cannot build a jail, "" if it can: it is tried in a child."""
    import tempfile

    readable, written = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if not child:
            try:
                _try_out(folder)
                reason = ""
            except BaseException as error:
                reason = f"{type(error).__name__}: {error}"
            os.write(written, reason.encode()[:500])
            os._exit(0)
        os.close(written)
        with os.fdopen(readable, "rb") as pipe:
            reason = pipe.read().decode()
        os.waitpid(child, 0)
    return reason


def _try_out(folder):
    sockets, root = os.path.join(folder, "sockets"), os.path.join(folder, "root")
    os.mkdir(sockets)
    os.mkdir(root)
    jail = Jail(root, sockets)
    own_namespaces(os.getpid())
    child = os.fork()
    if not child:
        status = 1
        try:
            jail.build()
            drop_privileges()
            status = 0
        except OSError as error:
            os.write(2, f"{error}\n".encode())
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise OSError("the mounts were refused")


def _readable():
    """The folders of the host that a notebook needs: Python's, and those of the libraries.

    Longer paths come after those that they lie in.
    """
    paths = sysconfig.get_paths()
    wanted = {os.path.realpath(paths[name]) for name in ("stdlib", "purelib", "platlib")}
    wanted |= {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo"}
    return sorted(path for path in wanted if os.path.isdir(path))


def _bind(path, target, flags=_READ_ONLY):
    os.makedirs(target, exist_ok=True)
    _mount(path, target, None, _BIND)
    _mount(None, target, None, _BIND | _REMOUNT | _NO_SUID | _NO_DEVICES | flags)


def _make_file(path):
    with open(path, "w"):
        pass


def _mount(source, target, kind, flags=0, data=None):
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    result = _libc.mount(*words[:3], ctypes.c_ulong(flags), words[3])
    _check(result, f"mount {source or ''} on {target}")


def _check(result, what):
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
