/* SPDX-License-Identifier: MIT */
/* Part of hook.c: whether a filter of system calls (seccomp) would end the programs that are
 * started under it for what this library does in them. */
#include <linux/audit.h>
#include <linux/filter.h>

/* What it says of a call without arguments. It only jumps forward. */
static uint32_t answer(const struct sock_filter* filter, uint32_t length, int number) {
  const uint32_t call[] = {(uint32_t)number,
                           AUDIT_ARCH_X86_64}; /* and zeros: struct seccomp_data */
  uint32_t a = 0, x = 0, memory[BPF_MEMWORDS];
  for (uint32_t at = 0; at < length; ++at) {
    const struct sock_filter* const i = &filter[at];
    const uint32_t k = i->k, other = BPF_SRC(i->code) == BPF_X ? x : k;
    uint32_t* const kept = &memory[k % BPF_MEMWORDS];
    switch (BPF_CLASS(i->code)) {
      case BPF_LD:
      case BPF_LDX: {
        const uint32_t mode = BPF_MODE(i->code);
        const uint32_t value = mode == BPF_IMM   ? k
                               : mode == BPF_MEM ? *kept
                               : mode == BPF_LEN ? (uint32_t)sizeof(struct seccomp_data)
                               : k < sizeof call ? call[k / 4]
                                                 : 0;
        *(BPF_CLASS(i->code) == BPF_LD ? &a : &x) = value;
        break;
      }
      case BPF_ST:
        *kept = a;
        break;
      case BPF_STX:
        *kept = x;
        break;
      case BPF_ALU:
        switch (BPF_OP(i->code)) {
          case BPF_ADD:
            a += other;
            break;
          case BPF_SUB:
            a -= other;
            break;
          case BPF_MUL:
            a *= other;
            break;
          case BPF_DIV:
            a = other != 0 ? a / other : 0;
            break;
          case BPF_AND:
            a &= other;
            break;
          case BPF_OR:
            a |= other;
            break;
          case BPF_XOR:
            a ^= other;
            break;
          case BPF_LSH:
            a <<= other & 31;
            break;
          case BPF_RSH:
            a >>= other & 31;
            break;
          case BPF_NEG:
            a = -a;
            break;
        }
        break;
      case BPF_JMP:
        switch (BPF_OP(i->code)) {
          case BPF_JA:
            at += k;
            break;
          case BPF_JEQ:
            at += a == other ? i->jt : i->jf;
            break;
          case BPF_JGT:
            at += a > other ? i->jt : i->jf;
            break;
          case BPF_JGE:
            at += a >= other ? i->jt : i->jf;
            break;
          case BPF_JSET:
            at += (a & other) != 0 ? i->jt : i->jf;
            break;
        }
        break;
      case BPF_RET:
        return BPF_RVAL(i->code) == BPF_A ? a : k;
      default:
        if (BPF_MISCOP(i->code) == BPF_TAX)
          x = a;
        else
          a = x;
    }
  }
  return SECCOMP_RET_KILL_PROCESS;
}

/* A call that set a filter. */
static __attribute__((noinline)) int is_harsh(const struct registers* x) {
  static const uint16_t kCalls[] = {SYS_openat,         SYS_pread64,          SYS_close,
                                    SYS_mmap,           SYS_mprotect,         SYS_munmap,
                                    SYS_mremap,         SYS_madvise,          SYS_remap_file_pages,
                                    SYS_uname,          SYS_getcwd,           SYS_getpid,
                                    SYS_getppid,        SYS_gettid,           SYS_clock_gettime,
                                    SYS_futex,          SYS_readlinkat,       SYS_getdents64,
                                    SYS_rt_sigprocmask, SYS_process_vm_readv, SYS_fstat,
                                    SYS_getsockopt,     SYS_getsockname,      SYS_getpeername,
                                    SYS_sigaltstack};
  const struct sock_fprog* const given = (const struct sock_fprog*)x->a[2];
  if (x->number == SYS_prctl ? x->a[1] != SECCOMP_MODE_FILTER : x->a[0] != SECCOMP_SET_MODE_FILTER)
    return 0;
  for (size_t i = 0; i < sizeof kCalls / sizeof *kCalls; ++i)
    switch (answer(given->filter, given->len, kCalls[i]) & SECCOMP_RET_ACTION_FULL) {
      case SECCOMP_RET_KILL_PROCESS:
      case SECCOMP_RET_KILL_THREAD:
      case SECCOMP_RET_TRAP:
      case SECCOMP_RET_USER_NOTIF:
        return 1;
    }
  return 0;
}
