// SPDX-License-Identifier: MIT
// A sandbox: another process opens what this one may not, for the handler of SIGSYS, and sends the
// descriptor, which is what the program's open returns. With an argument the handler opens it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { kTrapped = O_RDONLY | O_NOCTTY, kOpens = 20 };

static int broker, alone;

static int message(int to, int fd, char* text, size_t length) {
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
  } rights;
  struct iovec all = {text, length};
  struct msghdr m = {0};
  m.msg_iov = &all;
  m.msg_iovlen = 1;
  m.msg_control = rights.bytes;
  m.msg_controllen = sizeof rights.bytes;
  if (fd < 0) return recvmsg(to, &m, 0) > 0 ? *(int*)CMSG_DATA(&rights.head) : -1;
  memset(&rights, 0, sizeof rights);
  rights.head.cmsg_level = SOL_SOCKET;
  rights.head.cmsg_type = SCM_RIGHTS;
  rights.head.cmsg_len = CMSG_LEN(sizeof fd);
  *(int*)CMSG_DATA(&rights.head) = fd;
  return sendmsg(to, &m, 0) > 0 ? 0 : -1;
}

static void asks(int signal, siginfo_t* info, void* context) {
  greg_t* const registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const char* const path = (const char*)registers[REG_RSI];
  char answer;
  (void)signal, (void)info;
  if (alone)
    registers[REG_RAX] = syscall(SYS_open, path, O_RDONLY);
  else
    registers[REG_RAX] =
      write(broker, path, strlen(path) + 1) > 0 ? message(broker, -1, &answer, 1) : -1;
}

static void opens(int for_whom) {
  char path[64];
  while (read(for_whom, path, sizeof path) > 0) {
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || message(for_whom, fd, "x", 1) != 0) _exit(1);
    close(fd);
  }
  _exit(0);
}

int main(int count, char** arguments) {
  const struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kTrapped, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program = {sizeof filter / sizeof *filter, (struct sock_filter*)filter};
  struct sigaction action = {0};
  char got[8];
  int ends[2], fd;
  (void)arguments;
  alone = count > 1;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) return 1;
  fd = open("file", O_CREAT | O_WRONLY, 0600);
  if (fd < 0 || write(fd, "1234567", 7) != 7 || close(fd) != 0) return 1;
  if (fork() == 0) {
    close(ends[0]);
    opens(ends[1]);
  }
  close(ends[1]);
  broker = ends[0];
  action.sa_sigaction = asks;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSYS, &action, NULL);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    return 1;
  for (int i = 0; i < kOpens; ++i) {
    fd = open("file", kTrapped);
    if (fd < 0 || read(fd, got, sizeof got) != 7 || close(fd) != 0) return 2;
  }
  close(broker);
  return wait(&fd) < 0 || fd != 0;
}
