/* SPDX-License-Identifier: MIT */
/**
 * @file feign.h
 * The whole of Feign's plug-in ABI, version 1, in C99.
 *
 * A plug-in is a shared object that exports one constant, `feign_plugin_v1`: a tree of constants
 * that says what it offers. It links nothing of Feign's: all that it needs of the host is handed to
 * it. (The ten-line form of the Feign paper works too; it is the last section of this file.)
 *
 * Rules that hold for everything below:
 *  - Growth: a struct starts with `struct_size`; fields are only ever added at its end. Read a field
 *    that came with a later minor version only after FEIGN_HAS(). Arrays of structs are arrays of
 *    pointers, or say their stride.
 *  - Ownership: whoever made a thing frees it. A pointer handed to a call is borrowed until the
 *    call returns, unless its comment says otherwise.
 *  - Threads: every function names in brackets who may call it: [main] the thread that set the
 *    pipeline up; [stream] one thread at a time for each instance, but not always the same one;
 *    [any thread].
 *  - Errors: a callback that fails calls host->fail() with the value that was wrong in the text,
 *    and returns the code. The host adds which plug-in and where. Bad input is never an abort.
 *  - No exception may leave a plug-in: the callbacks' types are noexcept in C++.
 */
#ifndef FEIGN_H
#define FEIGN_H

#include <stddef.h>
#include <stdint.h>

#define FEIGN_ABI_MAJOR 1
#define FEIGN_ABI_MINOR 0

#if defined(__GNUC__)
#define FEIGN_EXPORT __attribute__((visibility("default")))
#else
#define FEIGN_EXPORT
#endif

#ifdef __cplusplus
#define FEIGN_NOEXCEPT noexcept
/** C++ has to be told that an enumeration may hold what it does not name: C's plug-ins return any. */
#define FEIGN_ENUM_IS(type) : type
extern "C" {
#else
#define FEIGN_NOEXCEPT
#define FEIGN_ENUM_IS(type)
#endif

/** True if the struct behind @p ptr is long enough to hold @p field. */
#define FEIGN_HAS(ptr, field) \
  ((ptr)->struct_size >= offsetof(__typeof__(*(ptr)), field) + sizeof((ptr)->field))

/** What a call came to. FEIGN_OK: go on. Below zero: it failed. FEIGN_END is an answer where a comment
 *  says so, and no other is one: the host takes it for the plug-in's fault. */
typedef enum feign_status FEIGN_ENUM_IS(int) {
  FEIGN_OK = 0,
  FEIGN_END = 1,            /**< no more activities, ever */
  FEIGN_ERR_ARGUMENT = -1,  /**< an option or the trace is wrong: the user's to mend */
  FEIGN_ERR_IO = -2,        /**< a system call failed: the text says which, on what, and why */
  FEIGN_ERR_NOMEM = -3,     /**< out of memory */
  FEIGN_ERR_UNSUPPORTED = -4, /**< understood, but not to be had here */
  FEIGN_ERR_PLUGIN = -5     /**< a plug-in broke a rule of this header */
} feign_status;

/**
 * The roles of a component, and the short form's intents: one set of names and bits (those of the
 * Feign paper's implementation, so that its plug-ins keep their meaning).
 */
enum {
  FEIGN_PROVIDER = 1u << 0,        /**< makes activities: `provide` */
  FEIGN_FILTER = 1u << 1,          /**< short form: `filter` */
  FEIGN_FILTER_CONTEXT = 1u << 2,  /**< short form: accepted and refused with a reason */
  FEIGN_MUTATOR = 1u << 3,         /**< short form: `mutate` */
  FEIGN_MUTATOR_CONTEXT = 1u << 4, /**< short form: accepted and refused with a reason */
  FEIGN_WRITER = 1u << 5,          /**< stores or exports the activities */
  FEIGN_REPLAYER = 1u << 6,        /**< executes activities: `replay` */
  FEIGN_DESTROYER = 1u << 7,       /**< short form: `destroy` */
  FEIGN_PRECREATOR = 1u << 9,      /**< short form: accepted; preparing is the host's work */
  FEIGN_REPORTER = 1u << 14,       /**< short form: `report`, once at the end for each activity kept */
  FEIGN_MODIFIER = 1u << 16,       /**< filters, rewrites, injects, merges, adds dependencies */
  FEIGN_RANKS = 1u << 17           /**< joins the processes that run one replay together */
};

/* ---------------------------------------------------------------------------------------------
 * Activities
 * ------------------------------------------------------------------------------------------- */

/**
 * What an op does, for modifiers that care about reads, not about which of eight calls reads.
 * Kept small on purpose; the op says the rest.
 */
typedef enum feign_kind FEIGN_ENUM_IS(uint32_t) {
  FEIGN_KIND_OTHER = 0,
  FEIGN_KIND_OPEN = 1,    /**< makes a handle from a path */
  FEIGN_KIND_CLOSE = 2,   /**< gives up a descriptor of a handle */
  FEIGN_KIND_READ = 3,    /**< moves bytes out of a file */
  FEIGN_KIND_WRITE = 4,   /**< moves bytes into a file */
  FEIGN_KIND_SEEK = 5,    /**< sets or asks the current offset */
  FEIGN_KIND_STAT = 6,    /**< asks about a file or a name */
  FEIGN_KIND_LIST = 7,    /**< reads directory entries */
  FEIGN_KIND_CHANGE = 8,  /**< changes names or metadata: rename, unlink, mkdir, chmod … */
  FEIGN_KIND_SIZE = 9,    /**< changes a file's size or allocation: truncate, fallocate */
  FEIGN_KIND_FLUSH = 10,  /**< makes data durable: fsync … */
  FEIGN_KIND_DUP = 11,    /**< gives a handle one more descriptor */
  FEIGN_KIND_PROCESS = 12 /**< process structure: fork, exec, exit, chdir, pipe … */
} feign_kind;

/** Bits of feign_activity.marks. */
enum {
  /** handle, file, path and offset are the core's (see feign_activity); a provider that emits what
   *  it once got resolved (the native format) sets it, every other provider leaves it. */
  FEIGN_RESOLVED = 1u << 0,
  /** Made by a modifier, or by the core for a process that is not in the trace; it was not recorded.
   *  From a provider, of an exit: the process ended, by a signal or by a call that the trace does not
   *  have; the core drops it if it knew that. */
  FEIGN_INJECTED = 1u << 1,
  /** The handle's last descriptor goes with this activity, or, if it has a second handle, that
   *  one's (dup2, freopen). */
  FEIGN_LAST = 1u << 2,
  /** The activity made the name or the file that it names: it was not there before. */
  FEIGN_CREATES = 1u << 3,
  /** The handle is no file: a pipe, socket, terminal, eventfd …, or not known at all. It is kept for
   *  what it says about order and time, and not replayed. */
  FEIGN_NOT_A_FILE = 1u << 4,
  /** What is named is a directory. */
  FEIGN_DIRECTORY = 1u << 5,
  /** The handle was opened before the trace began (of a copy with a `path2`: handle2 was). */
  FEIGN_INHERITED = 1u << 6,
  /** The recorded result is not known (the call never returned, or the tracer did not say). */
  FEIGN_NO_RESULT = 1u << 7,
  /** The final component of path is used itself when it is a symbolic link. */
  FEIGN_NOFOLLOW = 1u << 8,
  /** What is named, or what another file is renamed onto, is a symbolic link. */
  FEIGN_SYMLINK = 1u << 9,
  /** It depends on others: host->depend() sets it. */
  FEIGN_DEPENDS = 1u << 10,
  /** What is named is a device, or made up by the kernel: below /dev, /proc or /sys. */
  FEIGN_NO_STORAGE = 1u << 11,
  /** At the end of the file, wherever that was then; offset is what is known of it. */
  FEIGN_APPENDS = 1u << 12,
  /** The handle is one end of a connection, and file is that connection: what is read from it was
   *  written to its other end, where the trace has that. (Bits 13 to 20: FEIGN_AS_NAMED.) */
  FEIGN_BOTH_WAYS = 1u << 21,
  /** Most of compute_ns was slept: no processor was kept busy. */
  FEIGN_ASLEEP = 1u << 22,
  /** From a provider: `file` is what the tracer said at this call that `handle` is. */
  FEIGN_TOLD = 1u << 23
};

/**
 * How many activities of its stream one lies in, in the top eight bits of marks: MPI_File_open makes
 * calls of MPI and opens the file with open(). A stream has an activity before those that it made, so
 * the one that made this is the last before it whose depth is one less. A replay that does an
 * activity does not do those in it once more; one that cannot (a layer that its replayer does not
 * serve) does what is in it. compute_ns of one in another counts from the start of that other.
 */
#define FEIGN_DEPTH(marks) ((uint32_t)(marks) >> 24)
#define FEIGN_AT_DEPTH(depth) ((uint32_t)(depth) << 24) /**< for marks; depth is 0 to 255 */

/**
 * By how many components the program named path and path2, in bits 13 to 20 of marks: these its kernel
 * looked up for the call, where it may not remember them (FUSE, NFS). 1 is a name in the working
 * directory or below a descriptor; FEIGN_NAMED_WHOLE is a path from the root, or as many and more; 0
 * is not known.
 */
#define FEIGN_NAMED_WHOLE 15u
#define FEIGN_NAMED_BY(marks) ((uint32_t)(marks) >> 13 & FEIGN_NAMED_WHOLE)
#define FEIGN_NAMED_BY2(marks) ((uint32_t)(marks) >> 17 & FEIGN_NAMED_WHOLE)
#define FEIGN_AS_NAMED(by, by2) ((uint32_t)(by) << 13 | (uint32_t)(by2) << 17) /**< for marks */

/**
 * One recorded call. 128 bytes; what most modifiers look at is in the first 64. Only the host makes
 * one (feign_sink.make), so it can grow at its end.
 *
 * A provider fills in what its trace says, in the trace's own terms: `handle` and `handle2` are
 * descriptor numbers as recorded, plus FEIGN_FD(); paths are as recorded. Where the tracer names
 * what descriptors are, `file` is the string id of that name for `handle` (the working directory's
 * for FEIGN_CWD or 0), `path2` for what an open returned, and `mode` for `handle2` where that is
 * the directory of a second name or the target of a copy. With FEIGN_TOLD it wins over what calls
 * tell, some of which may not have been traced; without, it is what was there when the program began,
 * and counts where nothing else tells it. The core's `resolve` then
 * plays the operating system's part and turns them into what is described here. Modifiers and
 * replayers see resolved activities only.
 */
typedef struct feign_activity {
  uint64_t start_ns;    /**< start, ns since the trace began */
  uint64_t duration_ns; /**< as recorded; 0 if unknown */
  uint64_t offset;      /**< where in the file, for data ops; seek: the offset argument */
  uint64_t length;      /**< bytes asked for; stat: the size that was found; truncate: the new size */
  int64_t result;       /**< as recorded: >= 0, or -errno */
  uint32_t op;          /**< which call: see feign_op_info */
  uint32_t stream;      /**< which recorded thread of control: see feign_stream_info */
  uint32_t handle;      /**< the open file description used or made; 0 if none */
  uint32_t file;        /**< the file's identity, which renames do not change; 0 if none */
  uint32_t path;        /**< string id of the absolute path, also for calls by descriptor; 0 if none */
  uint32_t flags;       /**< the call's flags argument */

  uint64_t id;          /**< place in the order of the trace; grows strictly; the host's */
  uint64_t compute_ns;  /**< think time before the call: computing, kept on replay. From a provider,
                             before it is resolved: the tracer's own time, to be taken off */
  uint64_t sync_ns;     /**< think time before the call: waiting for others */
  const uint64_t *values; /**< rare arguments, as op_info's args say; change by set_values() */
  uint32_t value_count; /**< how many values */
  uint32_t path2;       /**< string id of a second path: rename's new name, a link's target; of an
                             open by way of a link that no call tells, which the tracer shows
                             (strace -y): that link's target, "/.", and what of the path is behind
                             the link; with an empty target, no part of the path is one. So of a
                             getcwd that shows such a link, whose path is where the process went;
                             of a copy whose target was open before the trace: its name; of a listing
                             the entries that it showed: "fNAME/dNAME", by find's letters for types */
  uint32_t handle2;     /**< a second handle: dup's result, the target of a copy, one that open found
                             closed by a call that the trace does not have, or whose stream goes on
                             with what was opened, or, of an open without a path, what is opened
                             once more (/proc/self/fd/N); 0 if none */
  uint32_t mode;        /**< permission bits asked for; stat: st_mode found; data: docs/abi.md */
  uint64_t place;       /**< where in the input: FEIGN_PLACE_SOURCE(), FEIGN_PLACE_LINE() */
  uint32_t marks;       /**< FEIGN_RESOLVED and the like */
  uint32_t host;        /**< the host's own: leave it as it is */
} feign_activity;

/** @name Descriptor numbers in activities that are not yet resolved: fd plus 1, so that 0 is none. */
#define FEIGN_FD(fd) ((uint32_t)((int32_t)(fd) + 1))
#define FEIGN_FD_OF(handle) ((int32_t)(handle) - 1)
#define FEIGN_CWD 0xFFFFFF00u /**< in place of a directory descriptor: the working directory */
/** In place of a position: the current offset of the descriptor. */
#define FEIGN_NO_OFFSET UINT64_MAX
/** In place of a number among the values of layers mpi and mpiio: the trace does not tell it. */
#define FEIGN_UNKNOWN ((uint64_t)1 << 63)

/** @name feign_activity.place: which input file, counted from 0, and which line or record, from 1. */
#define FEIGN_PLACE(source, line) (((uint64_t)(source) << 48) | (uint64_t)(line))
#define FEIGN_PLACE_SOURCE(place) ((uint32_t)((place) >> 48))
#define FEIGN_PLACE_LINE(place) ((place)&0xFFFFFFFFFFFFu)

/** How the time of a call passed that is no activity: host->left_out(). */
typedef enum feign_passed FEIGN_ENUM_IS(uint32_t) {
  FEIGN_COMPUTED = 0, /**< as the rest of the pause that it lies in */
  FEIGN_WAITED = 1,   /**< waiting for others */
  FEIGN_SLEPT = 2     /**< asleep, for as long as was asked for */
} feign_passed;

/** A recorded thread of control. */
typedef struct feign_stream_info {
  uint32_t struct_size;
  uint32_t id;      /**< the host's number, from 1 */
  uint32_t host;    /**< string id of the host's name; 0: one host, or not known */
  int32_t rank;     /**< MPI rank, -1 if none */
  int64_t process;  /**< process id as recorded, -1 if not known */
  int64_t thread;   /**< thread id as recorded */
  uint32_t parent;  /**< the stream whose fork or clone made it, 0 if not known */
  uint32_t again;   /**< how many ended threads had the same recorded ids before */
  uint64_t parent_id; /**< id of that fork or clone */
} feign_stream_info;

/* ---------------------------------------------------------------------------------------------
 * Layers and ops
 * ------------------------------------------------------------------------------------------- */

/** Which field of an activity holds an argument. */
typedef enum feign_slot FEIGN_ENUM_IS(uint32_t) {
  FEIGN_SLOT_NONE = 0, /**< not kept: a buffer's address, say */
  FEIGN_SLOT_HANDLE = 1,
  FEIGN_SLOT_HANDLE2 = 2,
  FEIGN_SLOT_PATH = 3,
  FEIGN_SLOT_PATH2 = 4,
  FEIGN_SLOT_OFFSET = 5,
  FEIGN_SLOT_LENGTH = 6,
  FEIGN_SLOT_FLAGS = 7,
  FEIGN_SLOT_MODE = 8,
  FEIGN_SLOT_VALUE = 9 /**< values[index] */
} feign_slot;

/** How an argument is to be read and printed. */
typedef enum feign_arg_type FEIGN_ENUM_IS(uint32_t) {
  FEIGN_ARG_NUMBER = 0,
  FEIGN_ARG_PATH = 1,
  FEIGN_ARG_FD = 2,
  FEIGN_ARG_FLAGS = 3, /**< names: see feign_arg_info.names */
  FEIGN_ARG_MODE = 4,  /**< octal */
  FEIGN_ARG_BUFFER = 5,
  FEIGN_ARG_STRING = 6, /**< a string id */
  FEIGN_ARG_LIST = 7    /**< all values from index on */
} feign_arg_type;

/** A named constant. */
typedef struct feign_name {
  const char *name;
  uint64_t value;
} feign_name;

/** One argument of an op. */
typedef struct feign_arg_info {
  const char *name;
  uint32_t type;  /**< a feign_arg_type */
  uint32_t slot;  /**< a feign_slot */
  uint32_t index; /**< for FEIGN_SLOT_VALUE */
  uint32_t name_count;
  const feign_name *names; /**< the constants a flags argument is made of */
} feign_arg_info;

/** How the recorded result is compared with the replayed one. A failure always by its errno. */
typedef enum feign_result_kind FEIGN_ENUM_IS(uint32_t) {
  FEIGN_RESULT_EXACT = 0,  /**< the same number: bytes moved, 0, a position */
  FEIGN_RESULT_SUCCESS = 1 /**< any success is as good: a descriptor, a process id, an address */
} feign_result_kind;

/** One op of a layer. The host gives it its id. */
typedef struct feign_op_info {
  uint32_t struct_size;
  uint32_t id;          /**< 0 in what a plug-in registers; the host's answer has it */
  const char *name;     /**< "pread64" */
  const char *layer;    /**< "posix" */
  uint32_t kind;        /**< a feign_kind */
  uint32_t result_kind; /**< a feign_result_kind */
  uint32_t arg_count;
  uint32_t arg_stride; /**< sizeof(feign_arg_info) */
  const feign_arg_info *args;
} feign_op_info;

/** A layer: the calls of one interface. */
typedef struct feign_layer {
  uint32_t struct_size;
  uint32_t op_count;
  const char *name;
  const feign_op_info *const *ops; /**< NULL where a number is not in use */
} feign_layer;

/* ---------------------------------------------------------------------------------------------
 * The host
 * ------------------------------------------------------------------------------------------- */

typedef struct feign_host feign_host;

/** Levels of feign_host.log. */
enum {
  FEIGN_LOG_ERROR = 0, /**< the run is lost */
  FEIGN_LOG_WARN = 1,  /**< a result is doubtful */
  FEIGN_LOG_INFO = 2,  /**< once a run */
  FEIGN_LOG_DEBUG = 3  /**< once a batch */
};

/** What the host offers to a component; a table of its own for each instance. */
struct feign_host {
  uint32_t struct_size;
  uint32_t abi_minor;
  void *ctx; /**< the host's own */

  /** Say something on standard error, at a FEIGN_LOG_ level. What is said at INFO and WARN is also among the
   *  notes of the report, at INFO there alone unless the user asks for more. [any thread] */
  void (*log)(const feign_host *host, int level, const char *text) FEIGN_NOEXCEPT;
  /** Say why a callback is about to fail; returns @p code. [any thread] */
  feign_status (*fail)(const feign_host *host, feign_status code, const char *text) FEIGN_NOEXCEPT;
  /** An interface that this header does not describe, by name ("vendor.thing/1"); NULL if it is not
   *  offered. [any thread] */
  const void *(*extension)(const feign_host *host, const char *id) FEIGN_NOEXCEPT;

  /** The id of a string, the same for the same bytes; 0 for the empty string or out of memory. Ids
   *  stay good for the life of the component. [any thread] */
  uint32_t (*intern)(const feign_host *host, const char *text, size_t length) FEIGN_NOEXCEPT;
  /** The string of an id, ended by a NUL, its length in @p length unless that is NULL; "" for 0 or an
   *  unknown id. Good for the life of the component. [any thread] */
  const char *(*text)(const feign_host *host, uint32_t id, size_t *length) FEIGN_NOEXCEPT;

  /** Give @p a a copy of @p count values in place of those it has. [stream] */
  feign_status (*set_values)(const feign_host *host, feign_activity *a, const uint64_t *values,
                             uint32_t count) FEIGN_NOEXCEPT;

  /** The id of an op, 0 if there is none of that name in that layer. [any thread] */
  uint32_t (*op)(const feign_host *host, const char *layer, const char *name) FEIGN_NOEXCEPT;
  /** What an op is; NULL for an unknown id. Good for the life of the host. [any thread] */
  const feign_op_info *(*op_info)(const feign_host *host, uint32_t op) FEIGN_NOEXCEPT;
  /** Add a layer with ops of its own (or find it there already, by name: then its ops must have the
   *  same names in the same order). ops[i] gets the id *first + i. The table is borrowed for the life
   *  of the component. [main] */
  feign_status (*register_layer)(const feign_host *host, const feign_layer *layer,
                                 uint32_t *first) FEIGN_NOEXCEPT;

  /** The number of the stream that these recorded ids (host, rank, thread, again) name, made at first
   *  use; info->id is not looked at, a parent is taken note of. 0 when out of memory. [stream] */
  uint32_t (*stream)(const feign_host *host, const feign_stream_info *info) FEIGN_NOEXCEPT;
  /** What is known of a stream. [any thread] */
  feign_status (*stream_info)(const feign_host *host, uint32_t stream,
                              feign_stream_info *info) FEIGN_NOEXCEPT;

  /** @p a may not start before every activity of @p stream up to and including that with the id
   *  @p id has ended. @p id must be less than a->id (what has no id yet comes after all that was
   *  emitted). @p rule, a short static text, says in reports why. Activities that are dropped later
   *  do not break it. [stream] */
  feign_status (*depend)(const feign_host *host, feign_activity *a, uint32_t stream, uint64_t id,
                         const char *rule) FEIGN_NOEXCEPT;

  /** Account for a call of the trace that does not become an activity: which, why (a short static
   *  text), how long it took, and how that time passed (feign_passed): what was waited the next
   *  activity of the stream gets as sync_ns, all else is part of its compute_ns. [stream] */
  void (*left_out)(const feign_host *host, uint32_t stream, const char *call, const char *why,
                   uint64_t duration_ns, int passed) FEIGN_NOEXCEPT;

  /** A modifier's: what @p a was to do is done by the activity of its stream with the id @p into, and
   *  @p a is not emitted. Whatever depends on @p a then waits for that one, if it comes later; so
   *  nothing that depends on @p a may come before it. Reports say merged, not dropped. [stream] */
  void (*merged)(const feign_host *host, const feign_activity *a, uint64_t into) FEIGN_NOEXCEPT;
};

/* ---------------------------------------------------------------------------------------------
 * Moving activities
 * ------------------------------------------------------------------------------------------- */

/** Where a component puts the activities that it makes or lets pass. */
typedef struct feign_sink {
  uint32_t struct_size;
  void *ctx; /**< the host's own */
  /** A zeroed activity, the host's, to be filled and emitted; NULL when out of memory. To copy another one
   *  into it, keep its id and host, and set_values(): the other's values are not its own. [stream] */
  feign_activity *(*make)(struct feign_sink *sink) FEIGN_NOEXCEPT;
  /** Pass @p a on; from here on it is no longer the caller's. Activities keep their order, and none
   *  is emitted twice. An injected one takes its place after what was emitted before it; it is marked
   *  FEIGN_INJECTED, and what comes of it is compared with nothing, unless its marks, copied from a
   *  recorded one with that one's result, have FEIGN_RESOLVED. Until the next make(), a->id may be read: what depend() takes; 0 if it turned out to be no activity (a
   *  provider's; the host accounts for it as left out). [stream] */
  feign_status (*emit)(struct feign_sink *sink, feign_activity *a) FEIGN_NOEXCEPT;
} feign_sink;

/** A modifier's view of the look-ahead buffer. */
typedef struct feign_window {
  uint32_t struct_size;
  uint32_t at_end; /**< the trace holds nothing past items[count) */
  feign_activity *const *items;
  size_t due;   /**< items[0..due): yours; emit each, edited or not. Not emitted is dropped, its think
                     time and dependencies go to the next activity of its stream */
  size_t count; /**< items[due..count): look, do not touch */
} feign_window;

/* ---------------------------------------------------------------------------------------------
 * Options
 * ------------------------------------------------------------------------------------------- */

typedef enum feign_option_type FEIGN_ENUM_IS(uint32_t) {
  FEIGN_OPT_BOOL = 1,     /**< uint32_t, 0 or 1; typed yes|no|on|off|true|false|1|0 */
  FEIGN_OPT_UINT = 2,     /**< uint64_t */
  FEIGN_OPT_SIZE = 3,     /**< uint64_t, bytes; typed with k, m, g, t (powers of 1024) */
  FEIGN_OPT_REAL = 4,     /**< double */
  FEIGN_OPT_TEXT = 5,     /**< const char *, the host's, for the component's life */
  FEIGN_OPT_ENUM = 6,     /**< uint32_t, an index into choices */
  FEIGN_OPT_TEXTS = 7,    /**< const char *const *, NULL-ended, the host's, for the component's life;
                               given several times, each adds one */
  FEIGN_OPT_DURATION = 8  /**< uint64_t, ns; typed with ns, us, ms, s, m, h */
} feign_option_type;

/** One row of a component's option table. The host parses, checks and prints it. */
typedef struct feign_option {
  const char *name;           /**< [a-z][a-z0-9-]* */
  uint32_t type;              /**< a feign_option_type */
  uint32_t offset;            /**< where in the options struct the value goes */
  const char *fallback;       /**< as a user would type it; NULL: the option is required (TEXTS: may
                                   be left out, then the list is empty) */
  const char *const *choices; /**< NULL-ended, for FEIGN_OPT_ENUM */
  uint64_t min, max;          /**< for UINT, SIZE and DURATION; both 0: unbounded */
  const char *help;           /**< one sentence */
} feign_option;

/* ---------------------------------------------------------------------------------------------
 * Components
 * ------------------------------------------------------------------------------------------- */

/** Makes activities. Its option `file` (FEIGN_OPT_TEXTS) takes the trace files, if it has any. */
typedef struct feign_provider {
  uint32_t struct_size;
  uint32_t reserved;
  /** Open the trace. @p options: the component's own struct, filled from its table, the host's until
   *  destroy() returns. [main] */
  feign_status (*create)(const feign_host *host, const void *options, void **self) FEIGN_NOEXCEPT;
  /** Emit up to @p want activities in the order in which they took effect: most calls when they ended;
   *  a call that makes a process or gives up a descriptor when it started. Returns FEIGN_OK after at
   *  least one, FEIGN_END when there are no more (emitting some with it is fine), or fails with the
   *  file and line at fault. [stream] */
  feign_status (*next)(void *self, size_t want, feign_sink *out) FEIGN_NOEXCEPT;
  /** Called once iff create() returned FEIGN_OK. [main] */
  void (*destroy)(void *self) FEIGN_NOEXCEPT;
  /** How sure it is, 0 to 100, that the file @p path, which starts with the @p size bytes at @p head
   *  (decompressed if it was compressed), is one of its own. NULL: never. [main] */
  int (*probe)(const char *path, const void *head, size_t size) FEIGN_NOEXCEPT;
} feign_provider;

/** Changes activities on their way. */
typedef struct feign_modifier {
  uint32_t struct_size;
  uint32_t lookahead; /**< how many activities past the due ones it must be able to see */
  feign_status (*create)(const feign_host *host, const void *options, void **self) FEIGN_NOEXCEPT;
  /** Take the due activities of the window. Called with due >= 1, and once more with due == 0 and
   *  at_end when the trace is over. count - due >= lookahead() unless at_end. [stream] */
  feign_status (*process)(void *self, const feign_window *in, feign_sink *out) FEIGN_NOEXCEPT;
  void (*destroy)(void *self) FEIGN_NOEXCEPT;
  /** The look-ahead that this instance needs, if it depends on its options; NULL: as above. [main] */
  uint32_t (*lookahead_of)(void *self) FEIGN_NOEXCEPT;
} feign_modifier;

/** How an activity was done. */
typedef enum feign_doing FEIGN_ENUM_IS(uint32_t) {
  FEIGN_DONE = 0,     /**< the call was made */
  FEIGN_EMULATED = 1, /**< its effect was brought about without it */
  FEIGN_SKIPPED = 2   /**< it was left out: outcome.why says why */
} feign_doing;

/** What came of an activity. */
typedef struct feign_outcome {
  uint32_t struct_size;
  uint32_t doing;  /**< a feign_doing; FEIGN_DONE before the call */
  int64_t result;  /**< >= 0, or -errno */
  const char *why; /**< for FEIGN_SKIPPED: a short static text */
} feign_outcome;

/** Where to replay: host->extension(host, "feign.run/1"), a `const feign_run *`. */
typedef struct feign_run {
  uint32_t struct_size;
  int32_t root_fd;      /**< the directory that stands for `/`, open with O_PATH; -1 if none */
  const char *root;     /**< its path, for messages; NULL if none */
  uint64_t max_length;  /**< the longest read or write of the plan, bytes */
  uint64_t max_bytes;   /**< write no more than this, 0: no limit */
  const char *content;  /**< what files hold: "sparse", "zeros", "random" or "ratio=N" */
  uint32_t rank;        /**< of the processes that run this replay, which one this is … */
  uint32_t ranks;       /**< … of how many; 1: it is alone */
  const uint32_t *rank_of; /**< by recorded rank: the process that replays it */
  uint32_t recorded_ranks; /**< how many rank_of has; 0: the trace tells none */
  /** 1: max_bytes is nobody's wish, but most of what the root's file system had room for. What is written over
   *  and over takes no more of that. */
  uint32_t room;
  /** 1: this is the only replayer, and one thread does all of its streams. It may unshare(2) the thread's
   *  descriptors in open_stream(), which makes each call cheaper; they then end with the thread. */
  uint32_t alone;
  /** 1: nobody asks for the pauses between calls, so that a provider need not find out what of them was
   *  the tracer's own (feign_activity.compute_ns). */
  uint32_t no_pauses;
  /** Memory that the processes of this run on this host have in common, FEIGN_RUN_COMMON bytes,
   * zeroed before the first create(); NULL: there is none. It is replayer posix's, whose processes
   * tell each other which names of directories have changed. */
  void *common;
} feign_run;
#define FEIGN_RUN_COMMON 65536u

/**
 * What this process is about to replay: host->extension(host, "feign.plan/1"), a `const feign_plan *`,
 * good until create() returns. For a replayer that must get ready for what comes.
 */
typedef struct feign_plan feign_plan;
struct feign_plan {
  uint32_t struct_size;
  uint32_t reserved;
  void *ctx; /**< the host's own */
  /** Shows @p look every activity of the layers that the replayer serves, in order, until it returns
   *  another status than FEIGN_OK, which is then the answer. [main] */
  feign_status (*each)(const feign_plan *plan,
                       feign_status (*look)(void *ctx, const feign_activity *a) FEIGN_NOEXCEPT,
                       void *ctx) FEIGN_NOEXCEPT;
};

/** Executes activities. Streams, pace, order, clocks and statistics are the host's. */
typedef struct feign_replayer {
  uint32_t struct_size;
  uint32_t needs_root;       /**< 1: it cannot work without a root */
  const char *const *layers; /**< NULL-ended; the layers that it serves; NULL: all */
  feign_status (*create)(const feign_host *host, const void *options, void **self) FEIGN_NOEXCEPT;
  /** A stream begins. @p stream gets what execute() is to be given; NULL is fine. [any thread] */
  feign_status (*open_stream)(void *self, const feign_stream_info *info,
                              void **stream) FEIGN_NOEXCEPT;
  /** Do it. A call that fails is an outcome, not an error; an error ends the whole replay. [stream:
   *  one thread at a time for each stream; different streams at once] */
  feign_status (*execute)(void *self, void *stream, const feign_activity *a,
                          feign_outcome *outcome) FEIGN_NOEXCEPT;
  /** A stream has ended. [any thread] */
  void (*close_stream)(void *self, void *stream) FEIGN_NOEXCEPT;
  /** All streams have ended: close what the trace left open. [main] */
  void (*destroy)(void *self) FEIGN_NOEXCEPT;
} feign_replayer;

/** Takes a message that came; @p data is borrowed. */
typedef void (*feign_take)(void *ctx, uint32_t from, const void *data, size_t size) FEIGN_NOEXCEPT;

/**
 * Joins the processes that a launcher (mpirun) started to run one replay together: who is who, a
 * barrier, and messages. All else that they do together the host builds of these.
 */
typedef struct feign_ranks {
  uint32_t struct_size;
  uint32_t reserved;
  /** Join. [main] */
  feign_status (*create)(const feign_host *host, const void *options, void **self) FEIGN_NOEXCEPT;
  /** Which of how many this process is. [any thread] */
  void (*who)(void *self, uint32_t *rank, uint32_t *ranks) FEIGN_NOEXCEPT;
  /** Returns when all have called it, as much at the same time as can be. [main] */
  feign_status (*barrier)(void *self) FEIGN_NOEXCEPT;
  /** Hand @p data to another rank; waits for nobody. What one sends to another on a channel (0 to 7)
   *  comes in order. [any thread] */
  feign_status (*send)(void *self, uint32_t rank, uint32_t channel, const void *data,
                       size_t size) FEIGN_NOEXCEPT;
  /** Give @p take one message that has come on the channel; FEIGN_END if there is none. [any thread] */
  feign_status (*receive)(void *self, uint32_t channel, feign_take take, void *ctx) FEIGN_NOEXCEPT;
  /** End all processes at once, this one with @p status. Does not return. [any thread] */
  void (*abort)(void *self, int status) FEIGN_NOEXCEPT;
  /** Leave, when all that was sent is on its way. [main] */
  void (*destroy)(void *self) FEIGN_NOEXCEPT;
  /** Zeroed memory of at least @p size bytes that all processes of this host have in common, until
   *  destroy(); NULL where there is none. All processes must call it; it may be NULL itself. [main] */
  void *(*share)(void *self, size_t size) FEIGN_NOEXCEPT;
  /** Until it is called again with another answer, calls of this and of replayers of the same plug-in come
   *  from one thread at a time (0), or from several at once (1, as in the beginning). May be NULL.
   *  [main, while no other thread is in such a call; 1 also while one is that may never return] */
  void (*threads)(void *self, int several) FEIGN_NOEXCEPT;
} feign_ranks;

/** Stores or exports what comes out of the pipeline. Its option `file` (FEIGN_OPT_TEXT) says where to. */
typedef struct feign_writer {
  uint32_t struct_size;
  uint32_t reserved;
  feign_status (*create)(const feign_host *host, const void *options, void **self) FEIGN_NOEXCEPT;
  /** Take @p count activities, in order; they are the host's again when it returns. [stream] */
  feign_status (*write)(void *self, const feign_activity *const *items,
                        size_t count) FEIGN_NOEXCEPT;
  /** Finish the file. Not called after a failure: then nothing half-written may be left under the
   *  final name. FEIGN_ERR_UNSUPPORTED: the format has no place for any of the activities. [main] */
  feign_status (*finish)(void *self) FEIGN_NOEXCEPT;
  void (*destroy)(void *self) FEIGN_NOEXCEPT;
  /** The ending of file names that it writes (".txt"), so that `feign convert` finds it; NULL: none. */
  const char *suffix;
} feign_writer;

/** One thing that a plug-in offers. */
typedef struct feign_component {
  uint32_t struct_size;
  uint32_t role;       /**< FEIGN_PROVIDER, _MODIFIER, _REPLAYER, _WRITER or _RANKS: what `api` is */
  const char *name;    /**< [a-z][a-z0-9-]*, unique within its role */
  const char *summary; /**< one line, for `feign inspect` */
  const void *api;     /**< feign_provider, _modifier, _replayer, _writer or _ranks */
  const feign_option *options;
  uint32_t option_count;
  uint32_t option_stride; /**< sizeof(feign_option) */
  uint32_t options_size;  /**< sizeof the component's options struct */
  uint32_t reserved;
} feign_component;

/** The one symbol of a plug-in. Its name carries the ABI's major version. */
typedef struct feign_plugin {
  uint32_t struct_size;
  uint32_t abi_minor; /**< FEIGN_ABI_MINOR of the header it was built with */
  const char *name, *version, *license;
  const feign_component *const *components; /**< NULL-ended */
} feign_plugin;

#ifndef FEIGN_NO_ENTRY
extern FEIGN_EXPORT const feign_plugin feign_plugin_v1;
#endif

/**
 * Optional, once in a plug-in: the roles of its components, a mask of feign_role, as an ELF note that
 * is read without loading it. Every provider is loaded to be asked whose a trace is; a modifier that says
 * that it is one is not. To be followed by a semicolon.
 */
#if defined(__GNUC__) && defined(__ELF__)
#define FEIGN_ROLES(mask)                                                           \
  __attribute__((section(".note.feign"), used, aligned(4))) static const struct {   \
    uint32_t name_size, roles_size, type;                                           \
    char name[8];                                                                   \
    uint32_t roles;                                                                 \
  } feign_roles_note = {6, sizeof(uint32_t), 1, "feign", (mask)}
#else
#define FEIGN_ROLES(mask) typedef int feign_roles_note
#endif

/* ---------------------------------------------------------------------------------------------
 * The short form
 *
 * The Feign paper's own way to write a plug-in (Luettgau and Kunkel, "Feign: In-Silico Laboratory
 * for Researching I/O Strategies", PDSW 2014, Figure 4), for ten lines and an afternoon:
 *
 *     #include <feign.h>
 *     Plugin plugin = {.name = "no-writes", .version = "1", .intents = FEIGN_FILTER};
 *     int init(int argc, char *argv[]) {
 *       feign_register_plugin(&plugin);
 *       return 0;
 *     }
 *     Activity *filter(Activity *a) { return a->kind == FEIGN_KIND_WRITE ? NULL : a; }
 *
 * Build it with `cc -shared -fPIC -o it.so it.c` and give it to --plugin. Callbacks are found by
 * their names, one for each intent. All of them run on one thread, one activity at a time; there is
 * no look-ahead, there are no options but what init() makes of its arguments (--plugin ./it.so,a=1
 * gives argv {"it.so", "a=1"}). Whoever wants more takes the real form above.
 *
 * Define FEIGN_NO_SHORT_FORM before including this file to leave these unprefixed names out.
 * ------------------------------------------------------------------------------------------- */
#ifndef FEIGN_NO_SHORT_FORM

/** Statuses of a short-form activity, as in the paper's implementation. */
enum {
  FEIGN_STATUS_NEW = 0,
  FEIGN_STATUS_PREPROCESSED = 1,
  FEIGN_STATUS_MUTATED = 2,
  FEIGN_STATUS_READY = 3,
  FEIGN_STATUS_REPLAYED = 4,
  FEIGN_STATUS_DROPPED = 5,
  FEIGN_STATUS_SKIP = 5619 /**< set by mutate(): drop it */
};

typedef struct Statistic {
  long start, end;
  int status;
} Statistic;

/**
 * An activity as a short-form plug-in sees it. The first eight fields are those of the paper's
 * implementation, in its order; what follows says what they left out. An activity that provide()
 * returns is the plug-in's own (it may free it in destroy(), which gets every activity it provided);
 * filter(), mutate() and replay() get one of the host's, good until they return.
 */
typedef struct Activity {
  int status;          /**< a FEIGN_STATUS_ */
  int provider;        /**< instance_id of the plug-in that made it, -1 if it is not short-form */
  long long offset;    /**< think time before it, ns */
  int layer;           /**< the layer's id: layer.id of feign_register_layer(), 13 is POSIX */
  int size;            /**< bytes asked for, at most INT_MAX */
  void *data;          /**< the providing plug-in's own */
  Statistic *stats;    /**< NULL */
  int rank;            /**< MPI rank, else the recorded process id */

  int op;              /**< which call: feign_op("pread64"); 0: none, replays as nothing */
  int kind;            /**< a feign_kind; for provide() derived from op */
  const char *path;    /**< absolute path, NULL if none; filter() and mutate() may point it elsewhere */
  const char *path2;   /**< second path, NULL if none */
  int fd;              /**< provide(): the recorded descriptor used (or made: result); else the handle */
  unsigned flags, mode;
  long long position;  /**< offset in the file */
  long long length;    /**< bytes asked for */
  long long result;    /**< >= 0, or -errno */
  long long start, duration; /**< ns; provide(): start 0 means after the one before it */
} Activity;

/** A short-form plug-in says who it is. */
typedef struct Plugin {
  const char *name;
  const char *version; /**< may be NULL */
  int intents;         /**< FEIGN_PROVIDER | … */
  int instance_id;     /**< the host's number for it, from 1 */
  int id;              /**< the same */
} Plugin;

/** A layer of a short-form plug-in's own. */
typedef struct Layer {
  const char *name;
  int intents;
  int id; /**< the host's number for it */
} Layer;

/** Announce the plug-in: to be called in init(). Returns 0, or -1 if it cannot be. [main] */
int feign_register_plugin(Plugin *plugin);
/** Announce a layer: in init(). Sets layer->id and returns it. [main] */
int feign_register_layer(Layer *layer);
/** The number of a call of the POSIX layer by its name, 0 if there is none. [any thread] */
int feign_op(const char *name);

#ifdef __cplusplus
/* So that a definition in C++ gets the plain name that the host looks for. */
FEIGN_EXPORT int init(int argc, char *argv[]);
FEIGN_EXPORT int finalize(void);
FEIGN_EXPORT Activity *provide(Activity *activity);
FEIGN_EXPORT Activity *filter(Activity *activity);
FEIGN_EXPORT Activity *mutate(Activity *activity);
FEIGN_EXPORT Activity *replay(Activity *activity);
FEIGN_EXPORT Activity *destroy(Activity *activity);
FEIGN_EXPORT Activity *reset(Activity *activity);
FEIGN_EXPORT Activity *report(Activity *activity);
#endif
#endif /* FEIGN_NO_SHORT_FORM */

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(__LP64__)
static_assert(sizeof(feign_activity) == 128, "two cache lines");
static_assert(offsetof(feign_activity, id) == 64, "the second line starts at id");
#endif
#endif /* FEIGN_H */
