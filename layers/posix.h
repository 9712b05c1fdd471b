/* SPDX-License-Identifier: MIT */
/*
 * The posix layer: Linux's file interface, one description a call. From this file alone
 * layers/generate.py makes the op ids and argument tables, the mapping from strace's text, the
 * replayer's dispatch and the reference page. No other file lists the calls. To add one, add its
 * description here.
 *
 *   //@ layer NAME "what it is"
 *   //@ names GROUP CONSTANT …             a set of flag names; values come from the system's headers
 *   //@ op ID NAME kind=K effect=E [result=R]
 *   //@ args ROLE …                        one for each parameter of the prototype that follows
 *   //@ replay EXPRESSION                  how to do it; left out: the prototype's call, with the
 *                                          arguments put in by role
 *   //@ alias NAME OP                      another architecture's or time's name of the same call
 *   //@ left-out pause|waits "why" NAME …  calls that are no activities: what their time was
 *
 * ID is for ever: compiled plug-ins may know it. kind is a feign_kind. effect is what resolve does
 * about it (core/resolve/effects.h). result: `bytes`, `zero`, `position` and `number` must come back
 * the same; for `fd`, `pid` and `any` every success is as good.
 *
 * Roles of parameters (`-` is not kept):
 *   fd          a descriptor used               fd2         a second one, or the one to be made
 *   dir, dir2   the directory descriptor that the path after it starts from
 *   path, path2 a path                          text2       a text that is no path to be resolved
 *   buf         a buffer                        readback2   a buffer that gets a path (readlink)
 *   length      bytes                           offset      a position in the file
 *   flags:GROUP named flags or numbers          mode        permission bits
 *   value:I     a rare number, values[I]        value:I:GROUP  the same, named
 *   iov         an array of {iov_base, iov_len}; the lengths become values
 *   stat, statx a struct that tells size and mode    fds    an array of two new descriptors
 * In a replay expression: c is the stream's context, a the activity, fd and fd2 the real descriptors.
 */
//@ layer posix "Linux's file interface, as its system calls"

//@ names open O_WRONLY O_RDWR O_CREAT O_EXCL O_NOCTTY O_TRUNC O_APPEND O_NONBLOCK O_SYNC O_DSYNC O_DIRECT O_LARGEFILE=0100000 O_TMPFILE O_DIRECTORY O_NOFOLLOW O_NOATIME O_CLOEXEC O_PATH O_ASYNC O_RDONLY=0 FASYNC=020000 O_NDELAY=04000 O_RSYNC=04010000
//@ names at AT_SYMLINK_NOFOLLOW AT_REMOVEDIR AT_SYMLINK_FOLLOW AT_NO_AUTOMOUNT AT_EMPTY_PATH AT_EACCESS=0x200 AT_STATX_SYNC_AS_STAT=0 AT_STATX_FORCE_SYNC=0x2000 AT_STATX_DONT_SYNC=0x4000
//@ names whence SEEK_SET SEEK_CUR SEEK_END SEEK_DATA=3 SEEK_HOLE=4
//@ names access R_OK W_OK X_OK F_OK
//@ names fcntl F_DUPFD F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_SETLK F_SETLKW F_SETOWN F_GETOWN F_SETSIG F_GETSIG F_DUPFD_CLOEXEC=1030 F_SETPIPE_SZ=1031 F_GETPIPE_SZ=1032 F_ADD_SEALS=1033 F_GET_SEALS=1034 F_SETLEASE=1024 F_GETLEASE=1025 F_OFD_GETLK=36 F_OFD_SETLK=37 F_OFD_SETLKW=38
//@ names fcntl_flags FD_CLOEXEC O_RDONLY=0 O_WRONLY O_RDWR O_APPEND O_NONBLOCK O_DIRECT O_NOATIME O_LARGEFILE=0100000
//@ names rename RENAME_NOREPLACE=1 RENAME_EXCHANGE=2 RENAME_WHITEOUT=4
//@ names fallocate FALLOC_FL_KEEP_SIZE=1 FALLOC_FL_PUNCH_HOLE=2 FALLOC_FL_COLLAPSE_RANGE=8 FALLOC_FL_ZERO_RANGE=16 FALLOC_FL_INSERT_RANGE=32 FALLOC_FL_UNSHARE_RANGE=64
//@ names fadvise POSIX_FADV_NORMAL POSIX_FADV_RANDOM POSIX_FADV_SEQUENTIAL POSIX_FADV_WILLNEED POSIX_FADV_DONTNEED POSIX_FADV_NOREUSE
//@ names flock LOCK_SH LOCK_EX LOCK_NB LOCK_UN
//@ names rwf RWF_HIPRI=1 RWF_DSYNC=2 RWF_SYNC=4 RWF_NOWAIT=8 RWF_APPEND=16
//@ names clone CLONE_VM=0x100 CLONE_FS=0x200 CLONE_FILES=0x400 CLONE_SIGHAND=0x800 CLONE_VFORK=0x4000 CLONE_THREAD=0x10000 CLONE_PARENT=0x8000 CLONE_PIDFD=0x1000 CLONE_NEWNS=0x20000 CLONE_SYSVSEM=0x40000 CLONE_SETTLS=0x80000 CLONE_PARENT_SETTID=0x100000 CLONE_CHILD_CLEARTID=0x200000 CLONE_CHILD_SETTID=0x1000000 CLONE_PTRACE=0x2000 CLONE_IO=0x80000000 SIGCHLD=0

// ---- open and close -----------------------------------------------------------------------------

//@ op 1 open kind=open effect=open result=fd
//@ args path flags:open mode
//@ replay c.open(a)
int open(const char *pathname, int flags, mode_t mode);

//@ op 2 openat kind=open effect=open result=fd
//@ args dir path flags:open mode
//@ replay c.open(a)
int openat(int dirfd, const char *pathname, int flags, mode_t mode);

//@ op 3 creat kind=open effect=creat result=fd
//@ args path mode
//@ replay c.open(a)
int creat(const char *pathname, mode_t mode);

//@ op 4 close kind=close effect=close result=zero
//@ args fd
//@ replay c.close(a)
int close(int fd);

//@ op 5 dup kind=dup effect=dup result=fd
//@ args fd
//@ replay c.dup(a, fd)
int dup(int oldfd);

//@ op 6 dup2 kind=dup effect=dup2 result=fd
//@ args fd fd2
//@ replay c.dup(a, fd)
int dup2(int oldfd, int newfd);

//@ op 7 dup3 kind=dup effect=dup2 result=fd
//@ args fd fd2 flags:open
//@ replay c.dup(a, fd)
int dup3(int oldfd, int newfd, int flags);

//@ op 8 fcntl kind=other effect=fcntl result=any
//@ args fd flags:fcntl value:0:fcntl_flags
//@ replay c.fcntl(a, fd)
int fcntl(int fd, int cmd, long arg);

// ---- data ---------------------------------------------------------------------------------------

//@ op 10 read kind=read effect=read result=bytes
//@ args fd buf length
ssize_t read(int fd, void *buf, size_t count);

//@ op 11 write kind=write effect=write result=bytes
//@ args fd buf length
ssize_t write(int fd, const void *buf, size_t count);

//@ op 12 pread64 kind=read effect=pread result=bytes
//@ args fd buf length offset
ssize_t pread64(int fd, void *buf, size_t count, off_t offset);

//@ op 13 pwrite64 kind=write effect=pwrite result=bytes
//@ args fd buf length offset
ssize_t pwrite64(int fd, const void *buf, size_t count, off_t offset);

//@ op 14 readv kind=read effect=read result=bytes
//@ args fd iov -
//@ replay ::readv(fd, c.iov(a, c.read_buffer), c.iov_count(a))
ssize_t readv(int fd, const struct iovec *iov, int iovcnt);

//@ op 15 writev kind=write effect=write result=bytes
//@ args fd iov -
//@ replay ::writev(fd, c.iov(a, c.r->write_buffer), c.iov_count(a))
ssize_t writev(int fd, const struct iovec *iov, int iovcnt);

//@ op 16 preadv kind=read effect=pread result=bytes
//@ args fd iov - offset
//@ replay ::preadv(fd, c.iov(a, c.read_buffer), c.iov_count(a), static_cast<off_t>(a.offset))
ssize_t preadv(int fd, const struct iovec *iov, int iovcnt, off_t offset);

//@ op 17 pwritev kind=write effect=pwrite result=bytes
//@ args fd iov - offset
//@ replay ::pwritev(fd, c.iov(a, c.r->write_buffer), c.iov_count(a), static_cast<off_t>(a.offset))
ssize_t pwritev(int fd, const struct iovec *iov, int iovcnt, off_t offset);

//@ op 18 preadv2 kind=read effect=pread2 result=bytes
//@ args fd iov - offset flags:rwf
//@ replay ::preadv2(fd, c.iov(a, c.read_buffer), c.iov_count(a), c.offset2(a), static_cast<int>(a.flags))
ssize_t preadv2(int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags);

//@ op 19 pwritev2 kind=write effect=pwrite2 result=bytes
//@ args fd iov - offset flags:rwf
//@ replay ::pwritev2(fd, c.iov(a, c.r->write_buffer), c.iov_count(a), c.offset2(a), static_cast<int>(a.flags))
ssize_t pwritev2(int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags);

//@ op 20 lseek kind=seek effect=seek result=position
//@ args fd offset flags:whence
off_t lseek(int fd, off_t offset, int whence);

//@ op 21 getdents64 kind=list effect=list result=bytes
//@ args fd - length
//@ replay c.getdents(a, fd)
ssize_t getdents64(int fd, void *dirp, size_t count);

//@ op 22 getdents kind=list effect=list result=bytes
//@ args fd - length
//@ replay c.getdents(a, fd)
long getdents(unsigned int fd, void *dirp, unsigned int count);

//@ op 23 copy_file_range kind=write effect=copy result=bytes
//@ args fd - fd2 - length flags:
//@ replay ::copy_file_range(fd, nullptr, fd2, nullptr, c.fit(a.length), a.flags)
ssize_t copy_file_range(int fd_in, off_t *off_in, int fd_out, off_t *off_out, size_t len, unsigned int flags);

//@ op 24 sendfile kind=write effect=copy result=bytes
//@ args fd2 fd - length
//@ replay ::sendfile(fd2, fd, nullptr, c.fit(a.length))
ssize_t sendfile(int out_fd, int in_fd, off_t *offset, size_t count);

// ---- questions ----------------------------------------------------------------------------------

//@ op 30 stat kind=stat effect=stat result=zero
//@ args path stat
//@ replay c.stat(a, 0)
int stat(const char *pathname, struct stat *statbuf);

//@ op 31 lstat kind=stat effect=lstat result=zero
//@ args path stat
//@ replay c.stat(a, 0)
int lstat(const char *pathname, struct stat *statbuf);

//@ op 32 fstat kind=stat effect=fstat result=zero
//@ args fd stat
//@ replay ::fstat(fd, c.scratch<struct stat>())
int fstat(int fd, struct stat *statbuf);

//@ op 33 newfstatat kind=stat effect=statat result=zero
//@ args dir path stat flags:at
//@ replay c.stat(a, fd)
int newfstatat(int dirfd, const char *pathname, struct stat *statbuf, int flags);

//@ op 34 statx kind=stat effect=statat result=zero
//@ args dir path flags:at - statx
//@ replay c.statx(a, fd)
int statx(int dirfd, const char *pathname, int flags, unsigned int mask, struct statx *statxbuf);

//@ op 35 access kind=stat effect=access result=zero
//@ args path mode:access
//@ replay c.access(a)
int access(const char *pathname, int mode);

//@ op 36 faccessat kind=stat effect=access result=zero
//@ args dir path mode:access
//@ replay c.access(a)
int faccessat(int dirfd, const char *pathname, int mode);

//@ op 37 faccessat2 kind=stat effect=access result=zero
//@ args dir path mode:access flags:at
//@ replay c.access(a)
int faccessat2(int dirfd, const char *pathname, int mode, int flags);

//@ op 38 readlink kind=stat effect=readlink result=bytes
//@ args path readback2 length
//@ replay c.readlink(a)
ssize_t readlink(const char *pathname, char *buf, size_t bufsiz);

//@ op 39 readlinkat kind=stat effect=readlink result=bytes
//@ args dir path readback2 length
//@ replay c.readlink(a)
ssize_t readlinkat(int dirfd, const char *pathname, char *buf, size_t bufsiz);

// ---- names --------------------------------------------------------------------------------------

//@ op 50 unlink kind=change effect=unlink result=zero
//@ args path
//@ replay c.unlink(a, 0)
int unlink(const char *pathname);

//@ op 51 unlinkat kind=change effect=unlinkat result=zero
//@ args dir path flags:at
//@ replay c.unlink(a, static_cast<int>(a.flags))
int unlinkat(int dirfd, const char *pathname, int flags);

//@ op 52 rmdir kind=change effect=rmdir result=zero
//@ args path
//@ replay c.unlink(a, AT_REMOVEDIR)
int rmdir(const char *pathname);

//@ op 53 rename kind=change effect=rename result=zero
//@ args path path2
//@ replay c.rename(a)
int rename(const char *oldpath, const char *newpath);

//@ op 54 renameat kind=change effect=rename result=zero
//@ args dir path dir2 path2
//@ replay c.rename(a)
int renameat(int olddirfd, const char *oldpath, int newdirfd, const char *newpath);

//@ op 55 renameat2 kind=change effect=rename result=zero
//@ args dir path dir2 path2 flags:rename
//@ replay c.rename(a)
int renameat2(int olddirfd, const char *oldpath, int newdirfd, const char *newpath, unsigned int flags);

//@ op 56 mkdir kind=change effect=mkdir result=zero
//@ args path mode
//@ replay c.mkdir(a)
int mkdir(const char *pathname, mode_t mode);

//@ op 57 mkdirat kind=change effect=mkdir result=zero
//@ args dir path mode
//@ replay c.mkdir(a)
int mkdirat(int dirfd, const char *pathname, mode_t mode);

//@ op 58 link kind=change effect=link result=zero
//@ args path path2
//@ replay c.link(a)
int link(const char *oldpath, const char *newpath);

//@ op 59 linkat kind=change effect=link result=zero
//@ args dir path dir2 path2 flags:at
//@ replay c.link(a)
int linkat(int olddirfd, const char *oldpath, int newdirfd, const char *newpath, int flags);

//@ op 60 symlink kind=change effect=symlink result=zero
//@ args text2 path
//@ replay c.symlink(a)
int symlink(const char *target, const char *linkpath);

//@ op 61 symlinkat kind=change effect=symlink result=zero
//@ args text2 dir path
//@ replay c.symlink(a)
int symlinkat(const char *target, int newdirfd, const char *linkpath);

// ---- metadata, sizes, durability ----------------------------------------------------------------

//@ op 70 chmod kind=change effect=chmod result=zero
//@ args path mode
//@ replay c.chmod(a)
int chmod(const char *pathname, mode_t mode);

//@ op 71 fchmod kind=change effect=use result=zero
//@ args fd mode
//@ replay ::fchmod(fd, a.mode & 01777)
int fchmod(int fd, mode_t mode);

//@ op 72 fchmodat kind=change effect=chmod result=zero
//@ args dir path mode
//@ replay c.chmod(a)
int fchmodat(int dirfd, const char *pathname, mode_t mode);

//@ op 73 truncate kind=size effect=truncate result=zero
//@ args path length
//@ replay c.truncate(a)
int truncate(const char *path, off_t length);

//@ op 74 ftruncate kind=size effect=ftruncate result=zero
//@ args fd length
int ftruncate(int fd, off_t length);

//@ op 75 fallocate kind=size effect=fallocate result=zero
//@ args fd flags:fallocate offset length
//@ replay ::fallocate(fd, static_cast<int>(a.flags), static_cast<off_t>(a.offset), static_cast<off_t>(a.length))
int fallocate(int fd, int mode, off_t offset, off_t len);

//@ op 76 fsync kind=flush effect=use result=zero
//@ args fd
int fsync(int fd);

//@ op 77 fdatasync kind=flush effect=use result=zero
//@ args fd
int fdatasync(int fd);

//@ op 78 fadvise64 kind=other effect=use result=zero
//@ args fd offset length flags:fadvise
//@ replay c.fadvise(a, fd)
int fadvise64(int fd, off_t offset, off_t len, int advice);

//@ op 79 flock kind=other effect=use result=zero
//@ args fd flags:flock
//@ replay c.flock(a, fd)
int flock(int fd, int operation);

//@ op 80 utimensat kind=change effect=statat result=zero
//@ args dir path - flags:at
//@ replay c.utimens(a, fd)
int utimensat(int dirfd, const char *pathname, const struct timespec times[2], int flags);

//@ op 81 statfs kind=stat effect=stat result=zero
//@ args path -
//@ replay c.statfs(a)
int statfs(const char *path, struct statfs *buf);

//@ op 82 fstatfs kind=stat effect=use result=zero
//@ args fd -
//@ replay ::fstatfs(fd, c.scratch<struct statfs>())
int fstatfs(int fd, struct statfs *buf);

//@ op 83 readahead kind=other effect=use result=zero
//@ args fd offset length
ssize_t readahead(int fd, off64_t offset, size_t count);

//@ op 84 sync_file_range kind=flush effect=use result=zero
//@ args fd offset length flags:
//@ replay ::sync_file_range(fd, static_cast<off64_t>(a.offset), static_cast<off64_t>(a.length), a.flags)
int sync_file_range(int fd, off64_t offset, off64_t nbytes, unsigned int flags);

// ---- processes: bookkeeping, never executed -------------------------------------------------------

//@ op 100 fork kind=process effect=fork result=pid
//@ args
//@ replay c.nothing(a)
pid_t fork(void);

//@ op 101 vfork kind=process effect=fork result=pid
//@ args
//@ replay c.nothing(a)
pid_t vfork(void);

//@ op 102 clone kind=process effect=clone result=pid
//@ args named:child_stack named:flags:clone
//@ replay c.nothing(a)
long clone(void *child_stack, unsigned long flags);

//@ op 103 clone3 kind=process effect=clone result=pid
//@ args struct:flags:clone -
//@ replay c.nothing(a)
long clone3(struct clone_args *args, size_t size);

//@ op 104 execve kind=process effect=exec result=zero
//@ args path - -
//@ replay c.ends(a)
int execve(const char *pathname, char *const argv[], char *const envp[]);

//@ op 105 execveat kind=process effect=exec result=zero
//@ args dir path - - flags:at
//@ replay c.ends(a)
int execveat(int dirfd, const char *pathname, char *const argv[], char *const envp[], int flags);

//@ op 106 exit kind=process effect=exit result=any
//@ args -
//@ replay c.ends(a)
void exit(int status);

//@ op 107 exit_group kind=process effect=exit_group result=any
//@ args -
//@ replay c.ends(a)
void exit_group(int status);

//@ op 108 chdir kind=process effect=chdir result=zero
//@ args path
//@ replay c.chdir(a)
int chdir(const char *path);

//@ op 109 fchdir kind=process effect=fchdir result=zero
//@ args fd
//@ replay c.nothing(a)
int fchdir(int fd);

//@ op 110 pipe kind=process effect=pipe result=zero
//@ args fds
//@ replay c.nothing(a)
int pipe(int pipefd[2]);

//@ op 111 pipe2 kind=process effect=pipe result=zero
//@ args fds flags:open
//@ replay c.nothing(a)
int pipe2(int pipefd[2], int flags);

//@ op 112 socket kind=process effect=channel result=fd
//@ args - flags: -
//@ replay c.nothing(a)
int socket(int domain, int type, int protocol);

//@ op 113 socketpair kind=process effect=pipe result=zero
//@ args - flags: - fds
//@ replay c.nothing(a)
int socketpair(int domain, int type, int protocol, int sv[2]);

//@ op 114 accept kind=process effect=channel result=fd
//@ args - - -
//@ replay c.nothing(a)
int accept(int sockfd, struct sockaddr *addr, socklen_t *addrlen);

//@ op 115 accept4 kind=process effect=channel result=fd
//@ args - - - flags:
//@ replay c.nothing(a)
int accept4(int sockfd, struct sockaddr *addr, socklen_t *addrlen, int flags);

//@ op 116 eventfd2 kind=process effect=channel result=fd
//@ args - flags:
//@ replay c.nothing(a)
int eventfd2(unsigned int initval, int flags);

//@ op 117 epoll_create1 kind=process effect=channel result=fd
//@ args flags:
//@ replay c.nothing(a)
int epoll_create1(int flags);

//@ op 118 timerfd_create kind=process effect=channel result=fd
//@ args - flags:
//@ replay c.nothing(a)
int timerfd_create(int clockid, int flags);

//@ op 119 signalfd4 kind=process effect=channel result=fd
//@ args - - - flags:
//@ replay c.nothing(a)
int signalfd4(int fd, const sigset_t *mask, size_t sizemask, int flags);

//@ op 120 inotify_init1 kind=process effect=channel result=fd
//@ args flags:
//@ replay c.nothing(a)
int inotify_init1(int flags);

//@ op 121 memfd_create kind=process effect=channel result=fd
//@ args - flags:
//@ replay c.nothing(a)
int memfd_create(const char *name, unsigned int flags);

//@ op 122 pidfd_open kind=process effect=channel result=fd
//@ args - flags:
//@ replay c.nothing(a)
int pidfd_open(pid_t pid, unsigned int flags);

//@ op 123 close_range kind=close effect=close_range result=zero
//@ args value:0 value:1 flags:
//@ replay c.ends(a)
int close_range(unsigned int first, unsigned int last, int flags);

//@ op 125 getcwd kind=process effect=getcwd result=any
//@ args path -
//@ replay c.nothing(a)
long getcwd(char *buf, size_t size);

//@ op 124 epoll_create kind=process effect=channel result=fd
//@ args -
//@ replay c.nothing(a)
int epoll_create(int size);

//@ op 126 eventfd kind=process effect=channel result=fd
//@ args -
//@ replay c.nothing(a)
int eventfd(unsigned int initval);

//@ op 127 inotify_init kind=process effect=channel result=fd
//@ args
//@ replay c.nothing(a)
int inotify_init(void);

//@ op 128 signalfd kind=process effect=channel result=fd
//@ args - - -
//@ replay c.nothing(a)
int signalfd(int fd, const sigset_t *mask, size_t sizemask);

//@ alias pread pread64
//@ alias pwrite pwrite64
//@ alias stat64 stat
//@ alias lstat64 lstat
//@ alias fstat64 fstat
//@ alias fstatat64 newfstatat
//@ alias ftruncate64 ftruncate
//@ alias truncate64 truncate
//@ alias fadvise64_64 fadvise64
//@ alias fcntl64 fcntl
//@ alias statfs64 statfs
//@ alias fstatfs64 fstatfs

// ---- what is no activity --------------------------------------------------------------------------

//@ left-out waits "waits for others" futex poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 wait4 waitid pause rt_sigsuspend rt_sigtimedwait recvfrom recvmsg recvmmsg connect msgrcv semop semtimedop io_getevents mq_timedreceive futex_waitv
//@ left-out pause "a pause" nanosleep clock_nanosleep sched_yield alarm setitimer restart_syscall
//@ left-out pause "network" bind listen sendto sendmsg sendmmsg setsockopt getsockopt getsockname getpeername shutdown
//@ left-out pause "memory" brk mmap munmap mremap mprotect madvise msync mlock munlock mlockall munlockall mincore mbind set_mempolicy get_mempolicy pkey_alloc pkey_mprotect shmget shmat shmdt shmctl membarrier process_madvise userfaultfd
//@ left-out pause "signals" rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending sigaltstack kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo
//@ left-out pause "threads and limits" arch_prctl set_tid_address set_robust_list get_robust_list rseq prlimit64 getrlimit setrlimit getrusage prctl sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_get_priority_max sched_get_priority_min getpriority setpriority ioprio_get ioprio_set getcpu seccomp
//@ left-out pause "who and when" getpid gettid getppid getpgid getpgrp setpgid setsid getsid getuid geteuid getgid getegid getgroups setuid setgid setgroups setreuid setregid setresuid setresgid getresuid getresgid setfsuid setfsgid capget capset uname sysinfo gettimeofday clock_gettime clock_getres clock_settime time times getrandom syslog personality timer_create timer_settime timer_delete timer_gettime getitimer umask
//@ left-out pause "descriptors that are no files" epoll_ctl timerfd_settime timerfd_gettime inotify_add_watch inotify_rm_watch ioctl pidfd_send_signal pidfd_getfd bpf perf_event_open
