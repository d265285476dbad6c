/* Lets a user-mode kernel before 6.13 run on a processor that is newer than it.
 *
 * It keeps a process's floating-point registers in a buffer of fixed size, too small for what a processor with AMX has:
 * the host then hands out the beginning and refuses to take it back, and the kernel dies. Loaded before the C library,
 * this hands back the whole: the beginning as the kernel knows it, and the rest, which no program of ours uses, unused.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { XSTATE_BV = 512, AMX = 3 << 17 }; /* where the header says which parts are in use; the two that are AMX's */

static char whole[65536]; /* not on the stack: a kernel's is small */

static long regset(long request, long pid, struct iovec *theirs) {
    struct iovec ours = {whole, sizeof whole};
    long answer = syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &ours); /* sets the size */
    if (answer < 0)
        return answer;
    size_t known = theirs->iov_len < ours.iov_len ? theirs->iov_len : ours.iov_len;
    if (request == PTRACE_GETREGSET) {
        memcpy(theirs->iov_base, whole, known);
        theirs->iov_len = known;
        return answer;
    }
    memset(whole, 0, ours.iov_len);
    memcpy(whole, theirs->iov_base, known);
    *(uint64_t *)(whole + XSTATE_BV) &= ~(uint64_t)AMX;
    return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &ours);
}

long ptrace(enum __ptrace_request request, ...) {
    va_list rest;
    va_start(rest, request);
    long pid = va_arg(rest, int);
    void *address = va_arg(rest, void *), *data = va_arg(rest, void *);
    va_end(rest);
    if ((request == PTRACE_GETREGSET || request == PTRACE_SETREGSET) && (long)address == NT_X86_XSTATE)
        return regset(request, pid, data);
    if (request != PTRACE_PEEKTEXT && request != PTRACE_PEEKDATA && request != PTRACE_PEEKUSER)
        return syscall(SYS_ptrace, request, pid, address, data);
    long word = 0, answer = syscall(SYS_ptrace, request, pid, address, &word);
    if (answer < 0)
        return answer;
    errno = 0;
    return word;
}
