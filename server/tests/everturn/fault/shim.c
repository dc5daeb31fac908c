/*
 * A disk that fails on cue, and a clock that is wrong: loaded into an unmodified program with LD_PRELOAD (Linux).
 *
 * Only calls that change files whose paths begin with FAULT_FILES matter, and of those not the ones on SQLite's shared
 * memory and on lock files, which hold nothing that has to last. Everything is steered by variables:
 *
 *   FAULT_FILES   how the paths begin, as /proc/self/fd shows them
 *   FAULT_LOG     a file that gets one letter for each such call: w(rite), f(lush), t(runcate), u(nlink)
 *   FAULT_AT      the number of the call at which the process is killed, from 1
 *   FAULT_MOMENT  before | torn | after: killed before the call, after half of its bytes, or after it
 *   FAULT_SWITCH  while this file exists, calls of the kinds in FAULT_KINDS fail with FAULT_ERRNO: those above, and
 *                 o(pening the files to write) and l(ock files, the same)
 *   FAULT_TIMES   at most so many of them fail; without it, all
 *   FAULT_IMAGE   a directory that is kept as the disk would be after a power cut: it gets what was flushed, and what a
 *                 failed flush should have written never gets there unless it is written again, as with Linux
 *   FAULT_CLOCK   seconds by which the wall clock is wrong
 *
 * The real calls are made as system calls, so that nothing has to be looked up in the C library. One thread at a time
 * writes a journal, so nothing here is locked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *files, *moment, *kinds, *switch_file, *image;
static long at, calls, times, clock_offset;
static int failure, log_file = -1;

__attribute__((constructor)) static void begin(void) {
    const char *text;
    files = getenv("FAULT_FILES");
    moment = (text = getenv("FAULT_MOMENT")) ? text : "";
    kinds = (text = getenv("FAULT_KINDS")) ? text : "";
    switch_file = getenv("FAULT_SWITCH");
    image = getenv("FAULT_IMAGE");
    at = (text = getenv("FAULT_AT")) ? atol(text) : 0;
    times = (text = getenv("FAULT_TIMES")) ? atol(text) : -1;
    failure = (text = getenv("FAULT_ERRNO")) ? atoi(text) : 0;
    clock_offset = (text = getenv("FAULT_CLOCK")) ? atol(text) : 0;
    if ((text = getenv("FAULT_LOG"))) log_file = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static int is_ours(const char *path) {
    return files && strncmp(path, files, strlen(files)) == 0 && !ends_with(path, "-shm") &&
           !ends_with(path, ".lock");
}

/* The path behind a descriptor when it is one of ours, else NULL. */
static const char *ours(int fd, char path[4096]) {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = files ? readlink(link, path, 4095) : -1;
    if (length < 0) return NULL;
    path[length] = 0;
    return is_ours(path) ? path : NULL;
}

/* The error that a call of that kind is to fail with, or 0. */
static int error_of(char kind) {
    if (!switch_file || !strchr(kinds, kind) || times == 0 || access(switch_file, F_OK) != 0) return 0;
    times -= times > 0;
    return failure;
}

/* Counts a call and kills before it where that is wanted. Returns the error that it is to fail with, or 0. */
static int meet(char kind) {
    calls++;
    if (log_file >= 0) syscall(SYS_write, log_file, &kind, 1);
    if (calls == at && strcmp(moment, "before") == 0) die();
    return error_of(kind);
}

static int dies(const char *when) { return calls == at && strcmp(moment, when) == 0; }

/* ---- what a power cut would leave ---- */

/* What was written and not flushed yet. */
static struct { char name[64]; off_t from; size_t length; } dirty[1 << 14];
static size_t dirty_count;

static const char *name_of(const char *path) { return strrchr(path, '/') + 1; }

static void image_path(char out[4096], const char *path) { snprintf(out, 4096, "%s/%s", image, name_of(path)); }

static void soil(const char *path, off_t from, size_t length) {
    if (!image) return;
    if (dirty_count == sizeof dirty / sizeof *dirty) abort(); /* Better no answer than a wrong one. */
    snprintf(dirty[dirty_count].name, sizeof dirty->name, "%s", name_of(path));
    dirty[dirty_count].from = from;
    dirty[dirty_count++].length = length;
}

/* After a flush, whether it `worked` or not, nothing of that file is dirty any more. */
static void settle(int fd, const char *path, int worked) {
    if (!image) return;
    char target[4096], page[1 << 16];
    image_path(target, path);
    int out = worked ? open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    size_t kept = 0;
    for (size_t i = 0; i < dirty_count; i++) {
        if (strcmp(dirty[i].name, name_of(path)) != 0) {
            dirty[kept++] = dirty[i];
            continue;
        }
        for (size_t done = 0; worked && done < dirty[i].length;) {
            size_t want = dirty[i].length - done < sizeof page ? dirty[i].length - done : sizeof page;
            ssize_t got = pread(fd, page, want, dirty[i].from + done);
            if (got <= 0) break; /* Cut off again since. */
            syscall(SYS_pwrite64, out, page, (size_t)got, dirty[i].from + done);
            done += got;
        }
    }
    dirty_count = kept;
    struct stat now, then;
    if (out >= 0 && fstat(fd, &now) == 0 && fstat(out, &then) == 0 && then.st_size > now.st_size)
        syscall(SYS_ftruncate, out, now.st_size);
    if (out >= 0) close(out);
}

/* ---- the calls ---- */

static ssize_t put(int fd, const void *bytes, size_t length, off_t from, int is_positioned) {
    char buffer[4096];
    const char *path = ours(fd, buffer);
    int error = path ? meet('w') : 0;
    if (error) return errno = error, -1;
    if (path && dies("torn")) length = length / 2;
    if (path) soil(path, is_positioned ? from : lseek(fd, 0, SEEK_CUR), length);
    ssize_t done = is_positioned ? syscall(SYS_pwrite64, fd, bytes, length, from)
                                 : syscall(SYS_write, fd, bytes, length);
    if (path && (dies("torn") || dies("after"))) die();
    return done;
}

ssize_t write(int fd, const void *bytes, size_t length) { return put(fd, bytes, length, 0, 0); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t from) { return put(fd, bytes, length, from, 1); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t from) { return put(fd, bytes, length, from, 1); }

static int flush(int fd, long call) {
    char buffer[4096];
    const char *path = ours(fd, buffer);
    if (!path) return syscall(call, fd);
    int error = meet('f');
    settle(fd, path, !error);
    if (error) return errno = error, -1;
    int done = image ? 0 : syscall(call, fd);
    if (dies("torn") || dies("after")) die();
    return done;
}

int fsync(int fd) { return flush(fd, SYS_fsync); }
int fdatasync(int fd) { return flush(fd, SYS_fdatasync); }

static int cut(int fd, off_t length) {
    char buffer[4096];
    const char *path = ours(fd, buffer);
    int error = path ? meet('t') : 0;
    if (error) return errno = error, -1;
    int done = syscall(SYS_ftruncate, fd, length);
    if (path && (dies("torn") || dies("after"))) die();
    return done;
}

int ftruncate(int fd, off_t length) { return cut(fd, length); }
int ftruncate64(int fd, off_t length) { return cut(fd, length); }

int unlink(const char *path) {
    int error = is_ours(path) ? meet('u') : 0;
    if (error) return errno = error, -1;
    int done = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (is_ours(path) && image) {
        char target[4096];
        image_path(target, path);
        syscall(SYS_unlinkat, AT_FDCWD, target, 0);
    }
    if (is_ours(path) && (dies("torn") || dies("after"))) die();
    return done;
}

static int enter(const char *path, int flags, int mode) {
    int writes = (flags & O_ACCMODE) != O_RDONLY && files && strncmp(path, files, strlen(files)) == 0;
    int error = writes ? error_of(ends_with(path, ".lock") ? 'l' : 'o') : 0;
    if (error) return errno = error, -1;
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
    va_end(rest);
    return enter(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
    va_end(rest);
    return enter(path, flags, mode);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = syscall(SYS_clock_gettime, clock, now);
    if (done == 0 && clock == CLOCK_REALTIME) now->tv_sec += clock_offset;
    return done;
}
