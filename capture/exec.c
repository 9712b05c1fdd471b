/* SPDX-License-Identifier: MIT */
/* Part of hook.c: exec. The library goes with the program that is started. */
static int same_start(const char* text, const char* start) {
  while (*start != '\0')
    if (*text++ != *start++) return 0;
  return 1;
}

static int contains(const char* text, const char* part) {
  for (; *text != '\0'; ++text)
    if (same_start(text, part)) return 1;
  return 0;
}

extern char feign_capture_library[];
static const char* library_path; /* of the former, with its directory */

/* LD_PRELOAD without what is of this recording: from another root directory it is not to be had,
 * and the loader would say so to the program's user. */
static char* put_others(char* to, const char* given) {
  const char* const begin = to;
  while (*given != '\0') {
    const char* next = given;
    while (*next != '\0' && *next != ':' && *next != ' ') ++next;
    if (*next != '\0') ++next;
    int ours = 0;
    for (const char* text = given; text < next; ++text)
      ours |= same_start(text, "libfeign-capture");
    for (; given < next; ++given)
      if (!ours) *to++ = *given;
  }
  if (to > begin && to[-1] == ':') --to;
  return to;
}

/* Memory of the thread's. Not on the stack, which may be small (posix_spawn's child has 36 KiB). */
static char** room_for(struct thread* t, size_t size) {
  if (t->room_size >= size) return t->room;
  const long at = system_call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at < 0 && at >= -4095) return 0;
  if (t->room != 0) system_call(SYS_munmap, (long)t->room, (long)t->room_size, 0, 0, 0, 0);
  t->room = (char**)at;
  t->room_size = size;
  return t->room;
}

/* The environment with what brings this library into the next program, for programs that took it
 * out; ASAN_OPTIONS, too, which scripts set to what they want. */
static __attribute__((noinline)) long exec_with(const struct registers* x, int which, int folder,
                                                int library, int reachable) {
  enum { kPage = 4096 };
  char* const* given = (char* const*)x->a[which];
  static const char asan[] = "ASAN_OPTIONS=" FEIGN_CAPTURE_ASAN;
  /* Texts: of both variables, with what is this recording's own; a program may have several. */
  size_t count = 4, n = 0,
         texts = sizeof "LD_PRELOAD=" + sizeof feign_capture.control->preload + sizeof asan;
  const char* sanitizer = 0; /* what ASAN_OPTIONS says: the first, as getenv() has it */
  for (; given != 0 && given[count - 4] != 0; ++count) {
    const char* const one = given[count - 4];
    const int options = same_start(one, "ASAN_OPTIONS=");
    if (options && sanitizer == 0) sanitizer = one + sizeof "ASAN_OPTIONS=" - 1;
    if (options || same_start(one, "LD_PRELOAD="))
      for (const char* text = one; *text != '\0'; ++text) ++texts;
  }
  const int told = sanitizer != 0 && contains(sanitizer, FEIGN_CAPTURE_ASAN);
  struct thread* const t = &feign_thread;
  const size_t size = (count * sizeof(char*) + texts + kPage - 1) & ~(size_t)(kPage - 1);
  char** const room = room_for(t, size);
  if (room == 0)
    return system_call(x->number, x->a[0], x->a[1], x->a[2], x->a[3], x->a[4], x->a[5]);
  char* const preload = (char*)(room + count);
  char* p = preload;
  for (const char* text = "LD_PRELOAD="; *text != '\0';) *p++ = *text++;
  /* Not what else this program was preloaded with: the next one may be meant to be without it. */
  for (const char* text = reachable ? feign_capture.control->preload : ""; *text != '\0';)
    *p++ = *text++;
  for (; given != 0 && *given != 0; ++given) {
    if (same_start(*given, "LD_PRELOAD=") && !reachable) {
      if (p[-1] != '=') *p++ = ':';
      p = put_others(p, *given + 11);
      continue;
    }
    if (same_start(*given, "LD_PRELOAD=") && !library) {
      *p++ = ':';
      for (const char* text = *given + 11; *text != '\0';) *p++ = *text++;
      continue;
    }
    if (reachable && !told && same_start(*given, "ASAN_OPTIONS=")) continue;
    room[n++] = *given;
  }
  *p++ = '\0';
  if (reachable ? !library : p[-2] != '=') room[n++] = preload;
  if (reachable && !told) {
    room[n++] = p;
    for (const char* text = asan; *text != '\0';) *p++ = *text++;
    if (sanitizer != 0) *p++ = ':';
    for (const char* text = sanitizer; text != 0 && *text != '\0';) *p++ = *text++;
    *p = '\0';
  }
  static char variable[sizeof feign_capture.folder + 16];
  if (!folder) {
    char* to = variable;
    for (const char* text = "FEIGN_CAPTURE="; *text != '\0';) *to++ = *text++;
    for (const char* text = feign_capture.folder; *text != '\0';) *to++ = *text++;
    *to = '\0';
    room[n++] = variable;
  }
  room[n] = 0;
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = i == which ? (long)room : x->a[i];
  return system_call(x->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Whether these are texts that can be read, as far as their first bytes tell. */
static int readable(char* const* texts) {
  uintptr_t list = UINTPTR_MAX, text = UINTPTR_MAX; /* pages that were looked at last */
  for (; texts != 0; ++texts) {
    const uintptr_t end = (uintptr_t)texts + sizeof *texts - 1; /* it may not be aligned */
    if (end >> 12 != list && (!is_there((uintptr_t)texts) || !is_there(end))) return 0;
    list = end >> 12;
    if (*texts == 0) return 1;
    if ((uintptr_t)*texts >> 12 != text && !is_there((uintptr_t)*texts)) return 0;
    text = (uintptr_t)*texts >> 12;
  }
  return 1;
}

/* It may be elsewhere in another root; and what Landlock forbids, access() does not say. */
static int can_be_loaded(void) {
  if (library_path == 0) return 1;
  const long fd =
      system_call(SYS_openat, AT_FDCWD, (long)library_path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (fd >= 0) system_call(SYS_close, fd, 0, 0, 0, 0, 0);
  return fd >= 0 || fd == -EMFILE || fd == -ENFILE;
}

static void name_records(char* to) {
  for (const char* text = feign_capture.folder; *text != '\0';) *to++ = *text++;
  for (const char* text = "/records"; *text != '\0';) *to++ = *text++;
  *to = '\0';
}

/* In a namespace of users they have other numbers, and so has the file's owner. */
static __attribute__((noinline)) int owns_records(uint32_t user) {
  char path[sizeof feign_capture.folder + 16];
  struct stat st;
  name_records(path);
  return system_call(SYS_stat, (long)path, (long)&st, 0, 0, 0, 0) == 0 && st.st_uid == user;
}

/* Whether exec will say that there is no such file, as of most of those that a search through
 * $PATH looks for. Who is killed before it has said so started no program. */
static __attribute__((noinline)) int will_fail(const struct registers* x) {
  const int at = x->number == SYS_execveat;
  char byte;
  if (feign_capture.sealed || (at && (x->a[4] & AT_EMPTY_PATH) != 0)) return 0;
  const long there =
      system_call(SYS_readlinkat, at ? x->a[0] : AT_FDCWD, x->a[at], (long)&byte, 1, 0, 0);
  return there == -ENOENT || there == -ENOTDIR;
}

static long make_call(const struct registers* x) {
  if ((x->number == SYS_execve && readable((char* const*)x->a[2])) ||
      (x->number == SYS_execveat && readable((char* const*)x->a[3]))) {
    const int which = x->number == SYS_execve ? 2 : 3;
    int folder = 0, library = 0, asan = 0;
    for (char* const* e = (char* const*)x->a[which]; e != 0 && *e != 0; ++e) {
      if (same_start(*e, "FEIGN_CAPTURE=")) folder = 1;
      if (same_start(*e, "LD_PRELOAD=") && contains(*e, feign_capture_library)) library = 1;
      if (same_start(*e, "ASAN_OPTIONS=") && contains(*e, FEIGN_CAPTURE_ASAN)) asan = 1;
    }
    struct feign_control* const c = feign_capture.control;
    if (c != 0) {
      const int32_t pid = feign_capture.sealed ? feign_capture.pid
                                               : (int32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
      int32_t* const mark = &c->execs[(uint32_t)pid % FEIGN_CAPTURE_EXECS];
      __atomic_store_n(mark, feign_exec_mark(pid, (const char*)x->a[which - 2], 0),
                       __ATOMIC_RELAXED);
      const uint32_t user = c->owner != 0 && !feign_capture.sealed
                                ? (uint32_t)system_call(SYS_geteuid, 0, 0, 0, 0, 0, 0)
                                : 0;
      const int stranger = user != 0 && user + 1 != c->owner && !owns_records(user);
      if (stranger) __atomic_fetch_add(&c->strangers, 1, __ATOMIC_RELAXED);
      const int reachable =
          !feign_capture.harsh && (!feign_capture.moved || feign_capture.sealed || can_be_loaded());
      const long failed =
          folder && library && asan && reachable
              ? system_call(x->number, x->a[0], x->a[1], x->a[2], x->a[3], x->a[4], x->a[5])
              : exec_with(x, which, folder, library, reachable);
      __atomic_store_n(mark, 0, __ATOMIC_RELAXED);
      if (stranger) __atomic_fetch_sub(&c->strangers, 1, __ATOMIC_RELAXED);
      return failed;
    }
  }
  return system_call(x->number, x->a[0], x->a[1], x->a[2], x->a[3], x->a[4], x->a[5]);
}
