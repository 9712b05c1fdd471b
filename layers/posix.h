/* SPDX-License-Identifier: MIT */
/*
 * The posix layer: Linux's file interface, one description a call. From this file alone
 * layers/generate.py makes the op ids and argument tables, the mapping from strace's text, the
 * replayer's dispatch and the reference page. No other file lists the calls. To add one, add its
 * description here.
 *
 *   //@ layer NAME "what it is" [first=N]  N is added to the IDs of its ops
 *   //@ names GROUP CONSTANT …             a set of flag names; values come from the system's headers
 *   //@ op ID NAME kind=K effect=E [does=D] [result=R] [nofollow] [foreign]
 *   //@ args ROLE …                        one for each parameter of the prototype that follows
 *   //@ more NAME=ROLE …                   what else is kept of the call, and is no parameter
 *   //@ every NAME=ROLE …                  the same of every op that follows
 *   //@ replay EXPRESSION                  how to do it; left out: the prototype's call, with the
 *                                          arguments put in by role
 *   //@ capture none                       no wrapper is made for it (layers mpi, mpiio)
 *   //@ alias NAME OP                      another architecture's, time's or library's name of the same call
 *   //@ left-out pause|counted|waits|asks|sleeps "why" NAME …  calls that are no activities: what their time was; of those
 *                                  that are a part of the pause, feign record keeps the counted ones; those that
 *                                  wait for what they ask for, which no trace of calls shows
 *
 * ID is for ever: compiled plug-ins may know it. kind is a feign_kind. effect is what resolve does
 * about it (core/trace/effects.h); a layer without any keeps its handles itself. does: what it is
 * to other ranks (mpi.h). result: `bytes`,
 * `zero`, `position` and `number` must come back the same; for `fd`, `pid` and `any` every success is
 * as good. cloexec: the flag that has an exec close the descriptor, where it is not O_CLOEXEC; always: any
 * exec does. nofollow: a symbolic link at the end of the path is used itself, whatever the flags.
 * foreign: it brings descriptors of what it does not name, such as another process's: as its result or
 * in a message.
 *
 * Roles of parameters (`-` is not kept):
 *   fd          a descriptor used               fd2         a second one, or the one to be made
 *   dir, dir2   the directory descriptor that the path after it starts from
 *   path, path2 a path                          text2       a text that is no path to be resolved
 *   buf         a buffer                        readback2   a buffer that gets a path (readlink)
 *   names       a buffer that gets entries of a directory: one text, of each the letter that find -type has
 *               for it (? if that is not known) and its name, with / in between; strace -v tells them
 *   length      bytes                           offset      a position in the file
 *   flags:GROUP named flags or numbers          mode        permission bits
 *   value:I     a rare number, values[I]        value:I:GROUP  the same, named
 *   at:I        a pointer to a position, values[I]; NULL is the current one, FEIGN_NO_OFFSET
 *   iov         an array of {iov_base, iov_len}; the lengths become values
 *   times       an array of two times; four values: s and ns of access, s and ns of change
 *   stat, statx a struct that tells size and mode    fds    an array of two new descriptors
 *   rights      a message; the descriptors that it brings become values
 *   result      a pointer to what is the result in truth
 *   struct:MEMBER=ROLE,…   members of a struct that is passed by address
 *   NAME=ROLE   another name than the parameter's
 *   rank, tag, count, request   numbers among the values, at the next free index, as is `value`
 *   comm, datatype, text        texts among the values       list   all values that are left
 * In a replay expression: c is the stream's context, a the activity, fd and fd2 the real descriptors.
 */
//@ layer posix "Linux's file interface, as its system calls"

//@ names open O_WRONLY O_RDWR O_ACCMODE O_CREAT O_EXCL O_NOCTTY O_TRUNC O_APPEND O_NONBLOCK O_SYNC O_DSYNC O_DIRECT O_LARGEFILE=0100000 O_TMPFILE O_DIRECTORY O_NOFOLLOW O_NOATIME O_CLOEXEC O_PATH O_ASYNC O_RDONLY=0 FASYNC=020000 O_NDELAY=04000 O_RSYNC=04010000
//@ names at AT_SYMLINK_NOFOLLOW AT_REMOVEDIR AT_SYMLINK_FOLLOW AT_NO_AUTOMOUNT AT_EMPTY_PATH AT_EACCESS=0x200 AT_STATX_FORCE_SYNC=0x2000 AT_STATX_DONT_SYNC=0x4000
//@ names resolve RESOLVE_NO_XDEV=1 RESOLVE_NO_MAGICLINKS=2 RESOLVE_NO_SYMLINKS=4 RESOLVE_BENEATH=8 RESOLVE_IN_ROOT=16 RESOLVE_CACHED=32
//@ names type S_IFREG S_IFDIR S_IFLNK S_IFCHR S_IFBLK S_IFIFO S_IFSOCK S_ISUID S_ISGID S_ISVTX
//@ names close_range CLOSE_RANGE_UNSHARE=2 CLOSE_RANGE_CLOEXEC=4
//@ names whence SEEK_SET SEEK_CUR SEEK_END SEEK_DATA=3 SEEK_HOLE=4
//@ names access R_OK W_OK X_OK F_OK
//@ names fcntl F_DUPFD F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_SETLK F_SETLKW F_SETOWN F_GETOWN F_SETSIG F_GETSIG F_DUPFD_CLOEXEC=1030 F_SETPIPE_SZ=1031 F_GETPIPE_SZ=1032 F_ADD_SEALS=1033 F_GET_SEALS=1034 F_SETLEASE=1024 F_GETLEASE=1025 F_OFD_GETLK=36 F_OFD_SETLK=37 F_OFD_SETLKW=38 F_SETOWN_EX=15 F_GETOWN_EX=16 F_NOTIFY=1026 F_GET_RW_HINT=1035 F_SET_RW_HINT=1036 F_GET_FILE_RW_HINT=1037 F_SET_FILE_RW_HINT=1038 F_GETLK64=5 F_SETLK64=6 F_SETLKW64=7 F_GETOWNER_UIDS=17 F_DUPFD_QUERY=1027 F_CREATED_QUERY=1028 F_CANCELLK=1029 F_GETDELEG=1039 F_SETDELEG=1040
//@ names fcntl_flags FD_CLOEXEC O_RDONLY=0 O_WRONLY O_RDWR O_APPEND O_NONBLOCK O_DIRECT O_NOATIME O_LARGEFILE=0100000 RWH_WRITE_LIFE_NOT_SET=0 RWH_WRITE_LIFE_NONE=1 RWH_WRITE_LIFE_SHORT=2 RWH_WRITE_LIFE_MEDIUM=3 RWH_WRITE_LIFE_LONG=4 RWH_WRITE_LIFE_EXTREME=5 F_RDLCK F_WRLCK F_UNLCK
//@ names lock F_RDLCK F_WRLCK F_UNLCK
//@ names rename RENAME_NOREPLACE=1 RENAME_EXCHANGE=2 RENAME_WHITEOUT=4
//@ names fallocate FALLOC_FL_KEEP_SIZE=1 FALLOC_FL_PUNCH_HOLE=2 FALLOC_FL_COLLAPSE_RANGE=8 FALLOC_FL_ZERO_RANGE=16 FALLOC_FL_INSERT_RANGE=32 FALLOC_FL_UNSHARE_RANGE=64
//@ names fadvise POSIX_FADV_NORMAL POSIX_FADV_RANDOM POSIX_FADV_SEQUENTIAL POSIX_FADV_WILLNEED POSIX_FADV_DONTNEED POSIX_FADV_NOREUSE
//@ names flock LOCK_SH LOCK_EX LOCK_NB LOCK_UN LOCK_MAND LOCK_READ LOCK_WRITE LOCK_RW
//@ names rwf RWF_HIPRI=1 RWF_DSYNC=2 RWF_SYNC=4 RWF_NOWAIT=8 RWF_APPEND=16 RWF_NOAPPEND=32 RWF_ATOMIC=64 RWF_DONTCACHE=128 RWF_NOSIGNAL=256
//@ names sync_range SYNC_FILE_RANGE_WAIT_BEFORE=1 SYNC_FILE_RANGE_WRITE=2 SYNC_FILE_RANGE_WAIT_AFTER=4
//@ names splice SPLICE_F_MOVE=1 SPLICE_F_NONBLOCK=2 SPLICE_F_MORE=4 SPLICE_F_GIFT=8
//@ names ioctl FICLONE=0x40049409 BTRFS_IOC_CLONE=0x40049409 FICLONERANGE=0x4020940d BTRFS_IOC_CLONE_RANGE=0x4020940d FIDEDUPERANGE=0xc0189436 BTRFS_IOC_FILE_EXTENT_SAME=0xc0189436 FIOCLEX=0x5451 FIONCLEX=0x5450
//@ names xattr XATTR_CREATE=1 XATTR_REPLACE=2
//@ names futex FUTEX_CLOCK_REALTIME=256 FUTEX_LOCK_PI2_PRIVATE=141 FUTEX_CMP_REQUEUE_PI_PRIVATE=140 FUTEX_WAIT_REQUEUE_PI_PRIVATE=139 FUTEX_WAKE_BITSET_PRIVATE=138 FUTEX_WAIT_BITSET_PRIVATE=137 FUTEX_TRYLOCK_PI_PRIVATE=136 FUTEX_UNLOCK_PI_PRIVATE=135 FUTEX_LOCK_PI_PRIVATE=134 FUTEX_WAKE_OP_PRIVATE=133 FUTEX_CMP_REQUEUE_PRIVATE=132 FUTEX_REQUEUE_PRIVATE=131 FUTEX_WAKE_PRIVATE=129 FUTEX_WAIT_PRIVATE=128 FUTEX_LOCK_PI2=13 FUTEX_CMP_REQUEUE_PI=12 FUTEX_WAIT_REQUEUE_PI=11 FUTEX_WAKE_BITSET=10 FUTEX_WAIT_BITSET=9 FUTEX_TRYLOCK_PI=8 FUTEX_UNLOCK_PI=7 FUTEX_LOCK_PI=6 FUTEX_WAKE_OP=5 FUTEX_CMP_REQUEUE=4 FUTEX_REQUEUE=3 FUTEX_FD=2 FUTEX_WAKE=1 FUTEX_WAIT=0 FUTEX_PRIVATE_FLAG=128
//@ names wait WNOHANG=1 WUNTRACED=2 WSTOPPED=2 WEXITED=4 WCONTINUED=8 WNOWAIT=0x1000000 __WNOTHREAD=0x20000000 __WALL=0x40000000 __WCLONE=0x80000000
//@ names prot PROT_NONE=0 PROT_READ=1 PROT_WRITE=2 PROT_EXEC=4 PROT_SEM=8 PROT_GROWSDOWN=0x01000000 PROT_GROWSUP=0x02000000
//@ names map MAP_SHARED_VALIDATE=3 MAP_SHARED=1 MAP_PRIVATE=2 MAP_FIXED=0x10 MAP_ANONYMOUS=0x20 MAP_GROWSDOWN=0x100 MAP_DENYWRITE=0x800 MAP_EXECUTABLE=0x1000 MAP_LOCKED=0x2000 MAP_NORESERVE=0x4000 MAP_POPULATE=0x8000 MAP_NONBLOCK=0x10000 MAP_STACK=0x20000 MAP_HUGETLB=0x40000 MAP_SYNC=0x80000 MAP_FIXED_NOREPLACE=0x100000 MAP_FILE=0
//@ names mremap MREMAP_MAYMOVE=1 MREMAP_FIXED=2 MREMAP_DONTUNMAP=4
//@ names msync MS_ASYNC=1 MS_INVALIDATE=2 MS_SYNC=4
//@ names madvise MADV_NORMAL=0 MADV_RANDOM=1 MADV_SEQUENTIAL=2 MADV_WILLNEED=3 MADV_DONTNEED=4 MADV_FREE=8 MADV_REMOVE=9 MADV_DONTFORK=10 MADV_DOFORK=11 MADV_MERGEABLE=12 MADV_UNMERGEABLE=13 MADV_HUGEPAGE=14 MADV_NOHUGEPAGE=15 MADV_DONTDUMP=16 MADV_DODUMP=17 MADV_WIPEONFORK=18 MADV_KEEPONFORK=19 MADV_COLD=20 MADV_PAGEOUT=21 MADV_POPULATE_READ=22 MADV_POPULATE_WRITE=23
//@ names clone CLONE_VM=0x100 CLONE_FS=0x200 CLONE_FILES=0x400 CLONE_SIGHAND=0x800 CLONE_VFORK=0x4000 CLONE_THREAD=0x10000 CLONE_PARENT=0x8000 CLONE_PIDFD=0x1000 CLONE_NEWNS=0x20000 CLONE_SYSVSEM=0x40000 CLONE_SETTLS=0x80000 CLONE_PARENT_SETTID=0x100000 CLONE_CHILD_CLEARTID=0x200000 CLONE_CHILD_SETTID=0x1000000 CLONE_PTRACE=0x2000 CLONE_IO=0x80000000 CLONE_NEWTIME=0x80 CLONE_NEWCGROUP=0x2000000 CLONE_NEWUTS=0x4000000 CLONE_NEWIPC=0x8000000 CLONE_NEWUSER=0x10000000 CLONE_NEWPID=0x20000000 CLONE_NEWNET=0x40000000 SIGCHLD=0

//@ names socket SOCK_CLOEXEC=02000000 SOCK_NONBLOCK=04000 SOCK_STREAM=1 SOCK_DGRAM=2 SOCK_RAW=3 SOCK_SEQPACKET=5
//@ names eventfd EFD_CLOEXEC=02000000 EFD_NONBLOCK=04000 EFD_SEMAPHORE=1
//@ names epoll EPOLL_CLOEXEC=02000000
//@ names timerfd TFD_CLOEXEC=02000000 TFD_NONBLOCK=04000
//@ names signalfd SFD_CLOEXEC=02000000 SFD_NONBLOCK=04000
//@ names memfd MFD_CLOEXEC=1 MFD_ALLOW_SEALING=2 MFD_HUGETLB=4 MFD_NOEXEC_SEAL=8 MFD_EXEC=020
//@ names fanotify FAN_CLOEXEC=1 FAN_NONBLOCK=2 FAN_CLASS_CONTENT=4 FAN_CLASS_PRE_CONTENT=010 FAN_UNLIMITED_QUEUE=020 FAN_UNLIMITED_MARKS=040 FAN_ENABLE_AUDIT=0100 FAN_CLASS_NOTIF=0
//@ names perf_event PERF_FLAG_FD_NO_GROUP=1 PERF_FLAG_FD_OUTPUT=2 PERF_FLAG_PID_CGROUP=4 PERF_FLAG_FD_CLOEXEC=010
//@ names inotify IN_CLOEXEC=02000000 IN_NONBLOCK=04000

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

//@ op 9 openat2 kind=open effect=open result=fd
//@ args dir path struct:flags=flags:open,mode=mode,resolve=value:0:resolve -
//@ replay c.open(a)
int openat2(int dirfd, const char *pathname, struct open_how *how, size_t size);

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
//@ args fd flags:fcntl struct:=value:0:fcntl_flags,l_type=value:1:lock,l_whence=value:2:whence,l_start=value:3,l_len=value:4
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
//@ replay ::writev(fd, c.iov(a, c.out_buffer), c.iov_count(a))
ssize_t writev(int fd, const struct iovec *iov, int iovcnt);

//@ op 16 preadv kind=read effect=pread result=bytes
//@ args fd iov - offset
//@ replay ::preadv(fd, c.iov(a, c.read_buffer), c.iov_count(a), static_cast<off_t>(a.offset))
ssize_t preadv(int fd, const struct iovec *iov, int iovcnt, off_t offset);

//@ op 17 pwritev kind=write effect=pwrite result=bytes
//@ args fd iov - offset
//@ replay ::pwritev(fd, c.iov(a, c.out_buffer), c.iov_count(a), static_cast<off_t>(a.offset))
ssize_t pwritev(int fd, const struct iovec *iov, int iovcnt, off_t offset);

// Of preadv2 and pwritev2, resolve sets mode to 1 where the recorded offset was -1: at the current one.
//@ op 18 preadv2 kind=read effect=pread2 result=bytes
//@ args fd iov - offset flags:rwf
//@ replay c.vectors2(a, fd, c.read_buffer, ::preadv2)
ssize_t preadv2(int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags);

//@ op 19 pwritev2 kind=write effect=pwrite2 result=bytes
//@ args fd iov - offset flags:rwf
//@ replay c.vectors2(a, fd, c.out_buffer, ::pwritev2)
ssize_t pwritev2(int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags);

//@ op 20 lseek kind=seek effect=seek result=position
//@ args fd offset flags:whence
off_t lseek(int fd, off_t offset, int whence);

//@ op 21 getdents64 kind=list effect=list result=bytes
//@ args fd entries=names length
//@ replay c.getdents(a, fd)
ssize_t getdents64(int fd, void *dirp, size_t count);

//@ op 22 getdents kind=list effect=list result=bytes
//@ args fd entries=names length
//@ replay c.getdents(a, fd)
long getdents(unsigned int fd, void *dirp, unsigned int count);

//@ op 23 copy_file_range kind=write effect=copy result=bytes
//@ args fd at:0 fd2 at:1 length flags:
//@ replay c.copy(a, fd, fd2, ::copy_file_range)
ssize_t copy_file_range(int fd_in, off_t *off_in, int fd_out, off_t *off_out, size_t len, unsigned int flags);

//@ op 24 sendfile kind=write effect=copy result=bytes
//@ args fd2 fd at:0 length
//@ replay c.copy(a, fd, fd2, Context::send)
ssize_t sendfile(int out_fd, int in_fd, off_t *offset, size_t count);

//@ op 25 splice kind=write effect=copy result=bytes
//@ args fd at:0 fd2 at:1 length flags:splice
//@ replay c.copy(a, fd, fd2, ::splice)
ssize_t splice(int fd_in, off_t *off_in, int fd_out, off_t *off_out, size_t len, unsigned int flags);

//@ op 26 _llseek kind=seek effect=seek result=position
//@ args fd offset result flags:whence
//@ replay ::lseek(fd, static_cast<off_t>(a.offset), static_cast<int>(a.flags))
int _llseek(unsigned int fd, off_t offset, loff_t *result, unsigned int whence);

//@ op 46 ioctl kind=write effect=ioctl result=zero
//@ args fd flags:ioctl struct:=value:0,src_fd=value:0,src_offset=value:2,src_length=length,dest_offset=offset
//@ replay c.clone(a, fd)
int ioctl(int fd, unsigned long request, unsigned long source);

//@ op 27 tee kind=other effect=copy result=bytes
//@ args fd fd2 length flags:splice
//@ replay c.nothing(a)
ssize_t tee(int fd_in, int fd_out, size_t len, unsigned int flags);

//@ op 28 vmsplice kind=other effect=use result=bytes
//@ args fd iov - flags:splice
//@ replay c.nothing(a)
ssize_t vmsplice(int fd, const struct iovec *iov, size_t count, unsigned int flags);

//@ op 29 readdir kind=list effect=list result=any
//@ args fd - -
//@ replay c.getdents(a, fd)
int readdir(unsigned int fd, struct old_linux_dirent *dirp, unsigned int count);

// ---- asynchronous: strace's io_submit becomes one activity a request ------------------------------

//@ op 40 io_setup kind=process effect=aio_context result=zero
//@ args value:1 at:0
//@ replay c.aio_setup(a)
int io_setup(unsigned int nr_events, aio_context_t *ctx);

// The activity's flags are the request's opcode, its mode the flags that pwritev2 has, too.
//@ op 41 io_submit kind=other effect=aio result=number
//@ args value:0 - iocbs
//@ replay c.aio_submit(a, fd)
int io_submit(aio_context_t ctx, long nr, struct iocb **iocbs);

//@ op 42 io_getevents kind=process effect=aio_wait result=number
//@ args value:0 - - - -
//@ replay c.aio_wait(a)
int io_getevents(aio_context_t ctx, long min_nr, long nr, struct io_event *events, struct timespec *timeout);

//@ op 43 io_pgetevents kind=process effect=aio_wait result=number
//@ args value:0 - - - - -
//@ replay c.aio_wait(a)
int io_pgetevents(aio_context_t ctx, long min_nr, long nr, struct io_event *events, struct timespec *timeout, const void *sig);

//@ op 44 io_destroy kind=process effect=aio_context result=zero
//@ args value:0
//@ replay c.aio_destroy(a)
int io_destroy(aio_context_t ctx);

//@ op 45 io_cancel kind=process effect=none result=any
//@ args value:0 - -
//@ replay c.nothing(a)
int io_cancel(aio_context_t ctx, struct iocb *iocb, struct io_event *result);

// ---- questions ----------------------------------------------------------------------------------

//@ op 30 stat kind=stat effect=stat result=zero
//@ args path stat
//@ replay c.stat(a, 0)
int stat(const char *pathname, struct stat *statbuf);

//@ op 31 lstat kind=stat effect=stat result=zero nofollow
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
//@ replay c.access(a, fd)
int access(const char *pathname, int mode);

//@ op 36 faccessat kind=stat effect=access result=zero
//@ args dir path mode:access
//@ replay c.access(a, fd)
int faccessat(int dirfd, const char *pathname, int mode);

//@ op 37 faccessat2 kind=stat effect=access result=zero
//@ args dir path mode:access flags:at
//@ replay c.access(a, fd)
int faccessat2(int dirfd, const char *pathname, int mode, int flags);

//@ op 38 readlink kind=stat effect=readlink result=bytes nofollow
//@ args path readback2 length
//@ replay c.readlink(a)
ssize_t readlink(const char *pathname, char *buf, size_t bufsiz);

//@ op 39 readlinkat kind=stat effect=readlink result=bytes nofollow
//@ args dir path readback2 length
//@ replay c.readlink(a)
ssize_t readlinkat(int dirfd, const char *pathname, char *buf, size_t bufsiz);

// ---- names --------------------------------------------------------------------------------------

//@ op 50 unlink kind=change effect=unlink result=zero nofollow
//@ args path
//@ replay c.unlink(a, 0)
int unlink(const char *pathname);

//@ op 51 unlinkat kind=change effect=unlinkat result=zero nofollow
//@ args dir path flags:at
//@ replay c.unlink(a, static_cast<int>(a.flags))
int unlinkat(int dirfd, const char *pathname, int flags);

//@ op 52 rmdir kind=change effect=rmdir result=zero nofollow
//@ args path
//@ replay c.unlink(a, AT_REMOVEDIR)
int rmdir(const char *pathname);

//@ op 53 rename kind=change effect=rename result=zero nofollow
//@ args path path2
//@ replay c.rename(a)
int rename(const char *oldpath, const char *newpath);

//@ op 54 renameat kind=change effect=rename result=zero nofollow
//@ args dir path dir2 path2
//@ replay c.rename(a)
int renameat(int olddirfd, const char *oldpath, int newdirfd, const char *newpath);

//@ op 55 renameat2 kind=change effect=rename result=zero nofollow
//@ args dir path dir2 path2 flags:rename
//@ replay c.rename(a)
int renameat2(int olddirfd, const char *oldpath, int newdirfd, const char *newpath, unsigned int flags);

//@ op 56 mkdir kind=change effect=mkdir result=zero nofollow
//@ args path mode
//@ replay c.mkdir(a)
int mkdir(const char *pathname, mode_t mode);

//@ op 57 mkdirat kind=change effect=mkdir result=zero nofollow
//@ args dir path mode
//@ replay c.mkdir(a)
int mkdirat(int dirfd, const char *pathname, mode_t mode);

//@ op 58 link kind=change effect=link result=zero
//@ args path path2
//@ replay c.made(a.path2, c.link(a))
int link(const char *oldpath, const char *newpath);

//@ op 59 linkat kind=change effect=link result=zero
//@ args dir path dir2 path2 flags:at
//@ replay c.made(a.path2, c.link(a))
int linkat(int olddirfd, const char *oldpath, int newdirfd, const char *newpath, int flags);

//@ op 60 symlink kind=change effect=symlink result=zero nofollow
//@ args text2 path
//@ replay c.symlink(a)
int symlink(const char *target, const char *linkpath);

//@ op 61 symlinkat kind=change effect=symlink result=zero nofollow
//@ args text2 dir path
//@ replay c.symlink(a)
int symlinkat(const char *target, int newdirfd, const char *linkpath);

//@ op 62 mknod kind=change effect=mknod result=zero nofollow
//@ args path mode:type -
//@ replay c.mknod(a)
int mknod(const char *pathname, mode_t mode, dev_t dev);

//@ op 63 mknodat kind=change effect=mknod result=zero nofollow
//@ args dir path mode:type -
//@ replay c.mknod(a)
int mknodat(int dirfd, const char *pathname, mode_t mode, dev_t dev);

//@ op 69 bind kind=change effect=bind result=zero nofollow
//@ args - struct:sun_path=path -
//@ replay c.bind(a)
int bind(int sockfd, const struct sockaddr *addr, socklen_t addrlen);

// ---- metadata, sizes, durability ----------------------------------------------------------------

//@ op 70 chmod kind=change effect=chmod result=zero
//@ args path mode
//@ replay c.chmod(a)
int chmod(const char *pathname, mode_t mode);

//@ op 71 fchmod kind=change effect=chmod result=zero
//@ args fd mode
//@ replay ::fchmod(fd, c.mode_of(a))
int fchmod(int fd, mode_t mode);

//@ op 72 fchmodat kind=change effect=chmod result=zero
//@ args dir path mode
//@ replay c.chmod(a)
int fchmodat(int dirfd, const char *pathname, mode_t mode);

//@ op 64 fchmodat2 kind=change effect=chmod result=zero
//@ args dir path mode flags:at
//@ replay c.chmod(a)
int fchmodat2(int dirfd, const char *pathname, mode_t mode, unsigned int flags);

//@ op 73 truncate kind=size effect=truncate result=zero
//@ args path length
//@ replay c.truncate(a, fd)
int truncate(const char *path, off_t length);

//@ op 74 ftruncate kind=size effect=ftruncate result=zero
//@ args fd length
int ftruncate(int fd, off_t length);

//@ op 75 fallocate kind=size effect=fallocate result=zero
//@ args fd flags:fallocate offset length
//@ replay c.fallocate(a, fd)
int fallocate(int fd, int mode, off_t offset, off_t len);

//@ op 76 fsync kind=flush effect=flush result=zero
//@ args fd
int fsync(int fd);

//@ op 77 fdatasync kind=flush effect=flush result=zero
//@ args fd
int fdatasync(int fd);

//@ op 78 fadvise64 kind=other effect=use result=zero
//@ args fd offset length flags:fadvise
//@ replay c.fadvise(a, fd)
int fadvise64(int fd, off_t offset, off_t len, int advice);

//@ op 79 flock kind=other effect=flock result=zero
//@ args fd flags:flock
//@ replay c.flock(a, fd)
int flock(int fd, int operation);

//@ op 80 utimensat kind=change effect=attr result=zero
//@ args dir path times flags:at
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

//@ op 84 sync_file_range kind=flush effect=flush result=zero
//@ args fd offset length flags:sync_range
//@ replay ::sync_file_range(fd, static_cast<off64_t>(a.offset), static_cast<off64_t>(a.length), a.flags)
int sync_file_range(int fd, off64_t offset, off64_t nbytes, unsigned int flags);

//@ op 65 sync kind=flush effect=none result=zero
//@ args
//@ replay c.sync()
void sync(void);

//@ op 66 syncfs kind=flush effect=use result=zero
//@ args fd
int syncfs(int fd);

//@ op 67 sync_file_range2 kind=flush effect=flush result=zero
//@ args fd flags:sync_range offset length
//@ replay ::sync_file_range(fd, static_cast<off64_t>(a.offset), static_cast<off64_t>(a.length), a.flags)
int sync_file_range2(int fd, unsigned int flags, off64_t offset, off64_t nbytes);

//@ op 68 arm_fadvise64_64 kind=other effect=use result=zero
//@ args fd flags:fadvise offset length
//@ replay c.fadvise(a, fd)
int arm_fadvise64_64(int fd, int advice, off_t offset, off_t len);

//@ op 85 chown kind=change effect=attr result=zero
//@ args path value:0 value:1
//@ replay c.chown(a, fd)
int chown(const char *pathname, uid_t owner, gid_t group);

//@ op 86 lchown kind=change effect=attr result=zero nofollow
//@ args path value:0 value:1
//@ replay c.chown(a, fd)
int lchown(const char *pathname, uid_t owner, gid_t group);

//@ op 87 fchown kind=change effect=attr result=zero
//@ args fd value:0 value:1
//@ replay c.chown(a, fd)
int fchown(int fd, uid_t owner, gid_t group);

//@ op 88 fchownat kind=change effect=attr result=zero
//@ args dir path value:0 value:1 flags:at
//@ replay c.chown(a, fd)
int fchownat(int dirfd, const char *pathname, uid_t owner, gid_t group, int flags);

//@ op 89 utime kind=change effect=attr result=zero
//@ args path times
//@ replay c.utimens(a, fd)
int utime(const char *filename, const struct utimbuf *times);

//@ op 90 utimes kind=change effect=attr result=zero
//@ args path times
//@ replay c.utimens(a, fd)
int utimes(const char *filename, const struct timeval times[2]);

//@ op 91 futimesat kind=change effect=attr result=zero
//@ args dir path times
//@ replay c.utimens(a, fd)
int futimesat(int dirfd, const char *pathname, const struct timeval times[2]);

// ---- extended attributes: path2 is the attribute's name ------------------------------------------

//@ op 140 getxattr kind=stat effect=get_xattr result=bytes
//@ args path text2 - length
//@ replay c.get_attribute(a, fd)
ssize_t getxattr(const char *path, const char *name, void *value, size_t size);

//@ op 141 lgetxattr kind=stat effect=get_xattr result=bytes nofollow
//@ args path text2 - length
//@ replay c.get_attribute(a, fd)
ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size);

//@ op 142 fgetxattr kind=stat effect=get_xattr result=bytes
//@ args fd text2 - length
//@ replay c.get_attribute(a, fd)
ssize_t fgetxattr(int fd, const char *name, void *value, size_t size);

//@ op 143 setxattr kind=change effect=set_xattr result=zero
//@ args path text2 acl length flags:xattr
//@ replay c.set_attribute(a, fd)
int setxattr(const char *path, const char *name, const void *value, size_t size, int flags);

//@ op 144 lsetxattr kind=change effect=set_xattr result=zero nofollow
//@ args path text2 acl length flags:xattr
//@ replay c.set_attribute(a, fd)
int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags);

//@ op 145 fsetxattr kind=change effect=set_xattr result=zero
//@ args fd text2 acl length flags:xattr
//@ replay c.set_attribute(a, fd)
int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);

//@ op 146 listxattr kind=stat effect=attr result=any
//@ args path - length
//@ replay c.list_attributes(a, fd)
ssize_t listxattr(const char *path, char *list, size_t size);

//@ op 147 llistxattr kind=stat effect=attr result=any nofollow
//@ args path - length
//@ replay c.list_attributes(a, fd)
ssize_t llistxattr(const char *path, char *list, size_t size);

//@ op 148 flistxattr kind=stat effect=attr result=any
//@ args fd - length
//@ replay c.list_attributes(a, fd)
ssize_t flistxattr(int fd, char *list, size_t size);

//@ op 149 removexattr kind=change effect=remove_xattr result=zero
//@ args path text2
//@ replay c.remove_attribute(a, fd)
int removexattr(const char *path, const char *name);

//@ op 150 lremovexattr kind=change effect=remove_xattr result=zero nofollow
//@ args path text2
//@ replay c.remove_attribute(a, fd)
int lremovexattr(const char *path, const char *name);

//@ op 151 fremovexattr kind=change effect=remove_xattr result=zero
//@ args fd text2
//@ replay c.remove_attribute(a, fd)
int fremovexattr(int fd, const char *name);

//@ op 152 setxattrat kind=change effect=set_xattr result=zero
//@ args dir path flags:at text2 struct:value=acl,size=length,flags=value:0:xattr -
//@ replay c.set_attribute(a, fd)
int setxattrat(int dirfd, const char *path, unsigned int at_flags, const char *name, const struct xattr_args *args, size_t size);

//@ op 153 getxattrat kind=stat effect=get_xattr result=bytes
//@ args dir path flags:at text2 struct:size=length -
//@ replay c.get_attribute(a, fd)
ssize_t getxattrat(int dirfd, const char *path, unsigned int at_flags, const char *name, struct xattr_args *args, size_t size);

//@ op 154 listxattrat kind=stat effect=attr result=any
//@ args dir path flags:at - length
//@ replay c.list_attributes(a, fd)
ssize_t listxattrat(int dirfd, const char *path, unsigned int at_flags, char *list, size_t size);

//@ op 155 removexattrat kind=change effect=remove_xattr result=zero
//@ args dir path flags:at text2
//@ replay c.remove_attribute(a, fd)
int removexattrat(int dirfd, const char *path, unsigned int at_flags, const char *name);

//@ op 156 file_getattr kind=stat effect=attr result=zero
//@ args dir path - - flags:at
//@ replay c.get_flags(a, fd)
int file_getattr(int dirfd, const char *path, struct file_attr *attr, size_t size, unsigned int at_flags);

//@ op 157 file_setattr kind=change effect=attr result=zero
//@ args dir path - - flags:at
//@ replay c.skip("flags of files, which replays do not set")
int file_setattr(int dirfd, const char *path, struct file_attr *attr, size_t size, unsigned int at_flags);

// ---- mapped files: handle2 is the mapping that mmap makes, handle the one that the others use -----

//@ op 160 mmap kind=other effect=map result=any
//@ args - length value:0:prot flags:map fd offset
//@ replay c.map(a, fd)
void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);

//@ op 161 munmap kind=other effect=unmap result=zero
//@ args offset length
//@ replay c.unmap(a)
int munmap(void *addr, size_t length);

//@ op 162 mremap kind=other effect=remap result=any
//@ args offset value:0 length flags:mremap value:1
//@ replay c.remap(a)
void *mremap(void *old_address, size_t old_size, size_t new_size, int flags, void *new_address);

//@ op 163 msync kind=flush effect=mapped result=zero
//@ args offset length flags:msync
//@ replay c.msync(a)
int msync(void *addr, size_t length, int flags);

//@ op 164 madvise kind=other effect=mapped result=zero
//@ args offset length flags:madvise
//@ replay c.madvise(a)
int madvise(void *addr, size_t length, int advice);

// ---- processes: bookkeeping, never executed -------------------------------------------------------

//@ op 100 fork kind=process effect=fork result=pid
//@ args
//@ replay c.forks(a)
pid_t fork(void);

//@ op 101 vfork kind=process effect=vfork result=pid
//@ args
//@ replay c.nothing(a)
pid_t vfork(void);

//@ op 102 clone kind=process effect=clone result=pid
//@ args - flags:clone
//@ replay c.forks(a)
long clone(void *child_stack, unsigned long flags);

//@ op 103 clone3 kind=process effect=clone result=pid
//@ args struct:flags=flags:clone -
//@ replay c.forks(a)
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
//@ args - flags:socket -
//@ replay c.nothing(a)
int socket(int domain, int type, int protocol);

//@ op 113 socketpair kind=process effect=socketpair result=zero
//@ args - flags:socket - fds
//@ replay c.nothing(a)
int socketpair(int domain, int type, int protocol, int sv[2]);

//@ op 114 accept kind=process effect=accept result=fd
//@ args - - -
//@ replay c.waits(a)
int accept(int sockfd, struct sockaddr *addr, socklen_t *addrlen);

//@ op 115 accept4 kind=process effect=accept result=fd
//@ args - - - flags:socket
//@ replay c.waits(a)
int accept4(int sockfd, struct sockaddr *addr, socklen_t *addrlen, int flags);

//@ op 116 eventfd2 kind=process effect=eventfd result=fd
//@ args - flags:eventfd
//@ replay c.nothing(a)
int eventfd2(unsigned int initval, int flags);

//@ op 117 epoll_create1 kind=process effect=channel result=fd
//@ args flags:epoll
//@ replay c.nothing(a)
int epoll_create1(int flags);

//@ op 118 timerfd_create kind=process effect=channel result=fd
//@ args - flags:timerfd
//@ replay c.nothing(a)
int timerfd_create(int clockid, int flags);

//@ op 119 signalfd4 kind=process effect=channel result=fd
//@ args fd - - flags:signalfd
//@ replay c.nothing(a)
int signalfd4(int fd, const sigset_t *mask, size_t sizemask, int flags);

//@ op 120 inotify_init1 kind=process effect=channel result=fd
//@ args flags:inotify
//@ replay c.nothing(a)
int inotify_init1(int flags);

//@ op 121 memfd_create kind=process effect=channel result=fd cloexec=1
//@ args - flags:memfd
//@ replay c.nothing(a)
int memfd_create(const char *name, unsigned int flags);

//@ op 122 pidfd_open kind=process effect=pidfd result=fd cloexec=always
//@ args value:0 flags:
//@ replay c.nothing(a)
int pidfd_open(pid_t pid, unsigned int flags);

//@ op 123 close_range kind=close effect=close_range result=zero
//@ args offset length flags:close_range
//@ replay c.ends(a)
int close_range(unsigned int first, unsigned int last, int flags);

//@ op 129 chroot kind=process effect=chroot result=zero
//@ args path
//@ replay c.nothing(a)
int chroot(const char *path);

//@ op 130 umask kind=process effect=umask result=any
//@ args mode
//@ replay c.nothing(a)
mode_t umask(mode_t mask);

//@ op 180 unshare kind=process effect=unshare result=zero
//@ args flags:clone
//@ replay c.nothing(a)
int unshare(int flags);

//@ op 181 setns kind=process effect=setns result=zero
//@ args - flags:clone
//@ replay c.nothing(a)
int setns(int fd, int nstype);

//@ op 131 io_uring_setup kind=process effect=channel result=fd cloexec=always
//@ args - -
//@ replay c.nothing(a)
int io_uring_setup(unsigned int entries, struct io_uring_params *p);

//@ op 132 pidfd_getfd kind=process effect=getfd result=fd foreign
//@ args fd value:0 flags:
//@ replay c.nothing(a)
int pidfd_getfd(int pidfd, int targetfd, unsigned int flags);

//@ op 133 fanotify_init kind=process effect=channel result=fd cloexec=1
//@ args flags:fanotify -
//@ replay c.nothing(a)
int fanotify_init(unsigned int flags, unsigned int event_f_flags);

//@ op 134 perf_event_open kind=process effect=channel result=fd cloexec=8
//@ args - - - - flags:perf_event
//@ replay c.nothing(a)
int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);

//@ op 135 userfaultfd kind=process effect=channel result=fd
//@ args flags:open
//@ replay c.nothing(a)
int userfaultfd(int flags);

//@ op 136 memfd_secret kind=process effect=channel result=fd
//@ args flags:
//@ replay c.nothing(a)
int memfd_secret(unsigned int flags);

//@ op 137 mq_open kind=process effect=channel result=fd
//@ args - flags:open - -
//@ replay c.nothing(a)
int mq_open(const char *name, int oflag, mode_t mode, struct mq_attr *attr);

//@ op 138 open_by_handle_at kind=process effect=by_handle result=fd foreign
//@ args - - flags:open
//@ replay c.nothing(a)
int open_by_handle_at(int mount_fd, struct file_handle *handle, int flags);

//@ op 139 landlock_create_ruleset kind=process effect=ruleset result=fd cloexec=always
//@ args - - flags:
//@ replay c.nothing(a)
int landlock_create_ruleset(const struct landlock_ruleset_attr *attr, size_t size, uint32_t flags);

//@ op 125 getcwd kind=process effect=getcwd result=any
//@ args path -
//@ replay c.nothing(a)
long getcwd(char *buf, size_t size);

//@ op 124 epoll_create kind=process effect=channel result=fd
//@ args -
//@ replay c.nothing(a)
int epoll_create(int size);

//@ op 126 eventfd kind=process effect=eventfd result=fd
//@ args -
//@ replay c.nothing(a)
int eventfd(unsigned int initval);

//@ op 127 inotify_init kind=process effect=channel result=fd
//@ args
//@ replay c.nothing(a)
int inotify_init(void);

//@ op 128 signalfd kind=process effect=channel result=fd
//@ args fd - -
//@ replay c.nothing(a)
int signalfd(int fd, const sigset_t *mask, size_t sizemask);

// ---- between processes: kept for what they say about order and time, never made -------------------

//@ op 170 futex kind=process effect=futex result=any
//@ args offset flags:futex value:0 - value:1 -
//@ replay c.waits(a)
long futex(uint32_t *uaddr, int futex_op, uint32_t val, const struct timespec *timeout, uint32_t *uaddr2, uint32_t val3);

//@ op 171 wait4 kind=process effect=wait result=pid
//@ args - - flags:wait -
//@ replay c.waits(a)
pid_t wait4(pid_t pid, int *wstatus, int options, struct rusage *rusage);

//@ op 172 waitid kind=process effect=wait result=zero
//@ args - - struct:si_pid=value:0 flags:wait -
//@ replay c.waits(a)
int waitid(int idtype, id_t id, siginfo_t *infop, int options, struct rusage *rusage);

//@ op 173 recvfrom kind=process effect=receive result=bytes
//@ args fd buf length - - -
//@ replay c.waits(a)
ssize_t recvfrom(int sockfd, void *buf, size_t len, int flags, struct sockaddr *src_addr, socklen_t *addrlen);

//@ op 174 recvmsg kind=process effect=receive result=bytes foreign
//@ args fd rights -
//@ replay c.waits(a)
ssize_t recvmsg(int sockfd, struct msghdr *msg, int flags);

//@ op 175 sendto kind=process effect=send result=bytes
//@ args fd buf length - - -
//@ replay c.wakes(a)
ssize_t sendto(int sockfd, const void *buf, size_t len, int flags, const struct sockaddr *dest_addr, socklen_t addrlen);

//@ op 176 sendmsg kind=process effect=send result=bytes
//@ args fd rights -
//@ replay c.wakes(a)
ssize_t sendmsg(int sockfd, const struct msghdr *msg, int flags);

//@ op 179 connect kind=process effect=connect result=zero
//@ args fd - -
//@ replay c.waits(a)
int connect(int sockfd, const struct sockaddr *addr, socklen_t addrlen);

//@ op 177 semop kind=process effect=semaphore result=zero
//@ args value:0 - -
//@ replay c.waits(a)
int semop(int semid, struct sembuf *sops, size_t nsops);

//@ op 178 semtimedop kind=process effect=semaphore result=zero
//@ args value:0 - - -
//@ replay c.waits(a)
int semtimedop(int semid, struct sembuf *sops, size_t nsops, const struct timespec *timeout);

//@ alias futex_time64 futex
//@ alias waitpid wait4
//@ alias recv recvfrom
//@ alias send sendto
//@ alias semtimedop_time64 semtimedop
//@ alias pread pread64
//@ alias pwrite pwrite64
//@ alias open64 open
//@ alias openat64 openat
//@ alias creat64 creat
//@ alias lseek64 lseek
//@ alias preadv64 preadv
//@ alias pwritev64 pwritev
//@ alias mmap64 mmap
//@ alias posix_fadvise fadvise64
//@ alias posix_fadvise64 fadvise64
//@ alias stat64 stat
//@ alias lstat64 lstat
//@ alias fstat64 fstat
//@ alias oldstat stat
//@ alias oldlstat lstat
//@ alias oldfstat fstat
//@ alias fstatat64 newfstatat
//@ alias ftruncate64 ftruncate
//@ alias truncate64 truncate
//@ alias fadvise64_64 fadvise64
//@ alias fcntl64 fcntl
//@ alias statfs64 statfs
//@ alias fstatfs64 fstatfs
//@ alias sendfile64 sendfile
//@ alias chown32 chown
//@ alias lchown32 lchown
//@ alias fchown32 fchown
//@ alias mmap2 mmap
//@ alias old_mmap mmap
//@ alias utimensat_time64 utimensat
//@ alias io_pgetevents_time64 io_pgetevents
//@ alias _exit exit
//@ alias clone2 clone
//@ alias newstat stat
//@ alias newlstat lstat
//@ alias newfstat fstat
//@ alias arm_sync_file_range sync_file_range2

// ---- what is no activity --------------------------------------------------------------------------

//@ left-out waits "waits for others" futex_wait futex_wake futex_requeue futex_waitv poll ppoll ppoll_time64 select _newselect oldselect pselect6 pselect6_time64 epoll_wait epoll_wait_old epoll_pwait epoll_pwait2 pause sigsuspend rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 recvmmsg recvmmsg_time64 msgrcv mq_timedreceive mq_timedreceive_time64
//@ left-out asks "io_uring: its requests are in shared memory, where strace cannot see them" io_uring_enter
//@ left-out pause "io_uring: its requests are in shared memory, where strace cannot see them" io_uring_register
//@ left-out sleeps "a pause" nanosleep clock_nanosleep clock_nanosleep_time64 restart_syscall
//@ left-out pause "a pause" sched_yield alarm setitimer
//@ left-out pause "network" listen sendmmsg setsockopt getsockopt getsockname getpeername shutdown socketcall sethostname setdomainname
//@ left-out pause "messages between processes" msgget msgsnd msgctl semget semctl ipc mq_unlink mq_timedsend mq_timedsend_time64 mq_notify mq_getsetattr process_vm_readv process_vm_writev
//@ left-out pause "memory" brk mprotect mlock mlock2 munlock mlockall munlockall mincore mbind set_mempolicy get_mempolicy set_mempolicy_home_node migrate_pages move_pages pkey_alloc pkey_free pkey_mprotect shmget shmat shmdt shmctl membarrier process_madvise process_mrelease remap_file_pages map_shadow_stack mseal cachestat
//@ left-out pause "signals" rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending sigaltstack sigaction sigprocmask sigreturn sigpending signal sgetmask ssetmask kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal
//@ left-out pause "threads and limits" arch_prctl set_tid_address set_robust_list get_robust_list rseq set_thread_area get_thread_area modify_ldt prlimit64 getrlimit ugetrlimit old_getrlimit oldgetrlimit ulimit setrlimit getrusage prctl sched_getaffinity sched_setaffinity sched_getattr sched_setattr sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_rr_get_interval_time64 getpriority setpriority nice ioprio_get ioprio_set getcpu seccomp landlock_add_rule landlock_restrict_self ptrace kcmp set_tls get_tls cacheflush cachectl sysmips riscv_flush_icache riscv_hwprobe rseq_slice_yield vm86 vm86old switch_endian swapcontext
//@ left-out pause "who and when" getpid gettid getppid getpgid getpgrp setpgid setsid getsid getuid geteuid getgid getegid getgroups setuid setgid setgroups setreuid setregid setresuid setresgid getresuid getresgid setfsuid setfsgid getuid32 geteuid32 getgid32 getegid32 getgroups32 setuid32 setgid32 setgroups32 setreuid32 setregid32 setresuid32 setresgid32 getresuid32 getresgid32 setfsuid32 setfsgid32 capget capset uname sysinfo gettimeofday settimeofday clock_gettime clock_gettime64 clock_getres clock_getres_time64 clock_settime clock_adjtime adjtimex time times getrandom syslog personality timer_create timer_settime timer_settime64 timer_delete timer_gettime timer_gettime64 timer_getoverrun getitimer clock_settime64 clock_adjtime64 stime ftime olduname oldolduname idle add_key request_key keyctl
//@ left-out pause "descriptors that are no files" epoll_ctl epoll_ctl_old timerfd timerfd_settime timerfd_settime64 timerfd_gettime timerfd_gettime64 inotify_add_watch inotify_rm_watch fanotify_mark bpf
//@ left-out counted "mounts are not followed: what is made below one lies in the directory itself" mount umount umount2 oldumount pivot_root move_mount open_tree open_tree_attr fsmount
//@ left-out pause "administration of the system" mount_setattr fsopen fsconfig fspick statmount listmount listns swapon swapoff reboot acct quotactl quotactl_fd init_module finit_module delete_module kexec_load kexec_file_load create_module query_module get_kernel_syms nfsservctl _sysctl pciconfig_read pciconfig_write pciconfig_iobase lsm_get_self_attr lsm_set_self_attr lsm_list_modules iopl ioperm vhangup name_to_handle_at lookup_dcookie ustat sysfs bdflush uselib
