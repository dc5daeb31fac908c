#!/usr/bin/env python3
"""Runs a command, and keeps threads of it from running now and then, as a busy machine does.

    freeze_threads.py [--longest SECONDS] [--limit SECONDS] [--of NAME] COMMAND...

Most races need one thread to stand still at the wrong moment while the others go on. A scheduler does that rarely,
this does it again and again: it stops one or two random threads of the command, or of its descendants named NAME, for
up to SECONDS (1 by default), most often for a fraction of it. Tests should pass as they do without, unless a timeout is
shorter than that.

After the limit (300 s by default), the stacks of all threads are printed if gdb is there, and the command is killed.
Linux only. Needs the right to trace the command, which whoever started it usually has.
"""
import argparse
import ctypes
import os
import random
import subprocess
import sys
import time

DETACH, SEIZE, INTERRUPT, WAIT_ALL = 17, 0x4206, 0x4207, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def trace(request, thread):
    return libc.ptrace(request, thread, None, None) == 0


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def children(process):
    of_threads = (read(f"/proc/{process}/task/{thread}/children") for thread in threads(process))
    found = [int(child) for listed in of_threads for child in listed.split()]
    return found + [below for child in found for below in children(child)]


def threads(process):
    try:
        return [int(thread) for thread in os.listdir(f"/proc/{process}/task")]
    except OSError:
        return []


def freeze(some, seconds):
    """Returns whether threads stood still."""
    held = [thread for thread in some if trace(SEIZE, thread)]
    for thread in held:
        trace(INTERRUPT, thread)
    if held:
        time.sleep(seconds)
    # Only one that stands still can be let go, and one that was killed must be seen, or its process never ends.
    left = set(held)
    while left:
        left = {thread for thread in left if not trace(DETACH, thread) and not is_gone(thread)}
        time.sleep(0.001)
    return bool(held)


def is_gone(thread):
    try:
        ended, status = os.waitpid(thread, WAIT_ALL | os.WNOHANG)
    except OSError:
        return True
    return ended != 0 and not os.WIFSTOPPED(status)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=300.0)
    parser.add_argument("--of")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    running = subprocess.Popen(given.command)
    begun, frozen = time.monotonic(), 0
    while running.poll() is None and time.monotonic() - begun < given.limit:
        time.sleep(given.longest * random.random())
        processes = [running.pid]
        if given.of:
            processes = [child for child in children(running.pid) if read(f"/proc/{child}/comm").strip() == given.of]
        # The first thread of a test program only waits for the others.
        of_them = [thread for process in processes for thread in threads(process) if given.of or thread != running.pid]
        if of_them:
            some = random.sample(of_them, min(len(of_them), random.choice([1, 1, 2])))
            frozen += freeze(some, given.longest * random.random() ** 3)
    if running.poll() is None:
        subprocess.run(["gdb", "-p", str(running.pid), "--batch", "-ex", "thread apply all bt 14"], check=False)
        running.kill()
    print(f"{frozen} times frozen in {time.monotonic() - begun:.0f} s, ended with {running.wait()}", file=sys.stderr)
    sys.exit(running.returncode != 0)


main()
