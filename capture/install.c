/* SPDX-License-Identifier: MIT */
/* Part of hook.c: the texts with jumps in them (core/record/hook_image.cc) are mapped over those of
 * libc and its like, as a process starts and when a library comes later. */
#include <elf.h>
#include <link.h>

char feign_capture_library[512];

/* Whether these stubs lie there already: a library was unloaded, and is loaded once more. */
static int has_stubs(uintptr_t address, uint64_t size, long fd, uint64_t offset) {
  const uint64_t words = size / sizeof(uint64_t) - 1; /* and the hook's address */
  const long other = system_call(SYS_mmap, 0, (long)size, PROT_READ, MAP_PRIVATE, fd, (long)offset);
  if (other < 0 && other >= -4095) return 0;
  const uint64_t *const here = (const uint64_t*)address, *const there = (const uint64_t*)other;
  uint64_t same = 0;
  while (same < words && (same % 512 != 0 || is_there(address + same * sizeof(uint64_t))) &&
         here[same] == there[same])
    ++same;
  system_call(SYS_munmap, other, (long)size, 0, 0, 0, 0);
  return same == words && here[words] == (uintptr_t)feign_hook_entry;
}

/* Bytes that were written, where nothing that can be written to may ever be run (PR_SET_MDWE, a
 * filter of mprotect): in a file of their own. */
static int map_written(uintptr_t address, uint64_t size, uintptr_t bytes) {
  struct {
    uint64_t soft, hard;
  } most = {0, 0};
  system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&most, 0, 0);
  if (most.soft < size) return 0; /* beyond it a signal comes */
  const long file = system_call(SYS_memfd_create, (long)"feign", MFD_CLOEXEC, 0, 0, 0, 0);
  if (file < 0) return 0;
  const int mapped = system_call(SYS_write, file, (long)bytes, (long)size, 0, 0, 0) == (long)size &&
                     system_call(SYS_mmap, (long)address, (long)size, PROT_READ | PROT_EXEC,
                                 MAP_PRIVATE | MAP_FIXED, file, 0) == (long)address;
  system_call(SYS_close, file, 0, 0, 0, 0, 0);
  system_call(SYS_munmap, (long)bytes, (long)size, 0, 0, 0, 0);
  return mapped;
}

/* A piece of the file at an address; stubs get the hook's address into their last bytes. Where the
 * file may not be run from (a file system without exec), its bytes are copied. */
static int map_code(uintptr_t address, uint64_t size, int stubs, long fd, uint64_t offset) {
  const long code = PROT_READ | PROT_EXEC, data = PROT_READ | PROT_WRITE;
  const uint64_t slot = size - sizeof(uintptr_t);
  long at = system_call(SYS_mmap, (long)address, (long)size, stubs ? data : code,
                        MAP_PRIVATE | (stubs ? MAP_FIXED_NOREPLACE : MAP_FIXED), fd, (long)offset);
  if (at == (long)address) {
    if (!stubs) return 1;
    *(uintptr_t*)(address + slot) = (uintptr_t)feign_hook_entry;
    if (system_call(SYS_mprotect, at, (long)size, code, 0, 0, 0) == 0) return 1;
  } else if (stubs || (at != -EPERM && at != -EACCES)) {
    return stubs && at == -EEXIST && has_stubs(address, size, fd, offset);
  }
  at = system_call(SYS_mmap, 0, (long)size, data, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at < 0 && at >= -4095) return 0;
  for (uint64_t done = 0; done < size;) {
    const long n = system_call(SYS_pread64, fd, at + (long)done, (long)(size - done),
                               (long)(offset + done), 0, 0);
    if (n <= 0) return 0;
    done += (uint64_t)n;
  }
  if (stubs) *(uintptr_t*)((uintptr_t)at + slot) = (uintptr_t)feign_hook_entry;
  if (system_call(SYS_mprotect, at, (long)size, code, 0, 0, 0) != 0)
    return map_written(address, size, (uintptr_t)at);
  return system_call(SYS_mremap, at, (long)size, (long)size, 3 /* MAYMOVE, FIXED */, (long)address,
                     0) == (long)address;
}

static int install(uintptr_t base, const struct feign_hook_head* head, long fd) {
  const uintptr_t text = base + head->text_address;
  return map_code(text - head->distance, head->stubs_size, 1, fd,
                  FEIGN_CAPTURE_UNIT + head->stubs_offset) &&
         map_code(text, head->text_size, 0, fd, FEIGN_CAPTURE_UNIT + head->text_offset);
}

struct search {
  struct feign_hooks hooks;
  long fd;
  int libc;
  const char* self; /* this library's path */
};

static const uint8_t* build_id(const struct dl_phdr_info* info, size_t* size) {
  const uint8_t* id = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* h = &info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + h->p_vaddr;
    if (h->p_type != PT_NOTE) continue;
    for (uintptr_t at = from; at + 12 < from + h->p_filesz;) {
      const ElfW(Nhdr)* n = (const ElfW(Nhdr)*)at;
      if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4) {
        id = (const uint8_t*)(at + 16);
        *size = n->n_descsz < 20 ? n->n_descsz : 20;
      }
      at += 12 + ((n->n_namesz + 3) & ~3u) + ((n->n_descsz + 3) & ~3u);
    }
  }
  return id;
}

static int object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* const s = data;
  if (info->dlpi_name == 0) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD &&
        (uintptr_t)feign_hook_entry - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) <
            info->dlpi_phdr[i].p_memsz)
      s->self = info->dlpi_name;
  size_t id_size = 0;
  const uint8_t* const id = build_id(info, &id_size);
  for (uint64_t i = 0; id != 0 && i < s->hooks.count; ++i) {
    const struct feign_hook_head* const head = &s->hooks.all[i];
    size_t same = 0;
    while (same < id_size && head->id[same] == id[same]) ++same;
    if (same != id_size || head->id_size != id_size || head->text_size == 0) continue;
    if (install(info->dlpi_addr, head, s->fd) && contains(info->dlpi_name, "/libc.so.6"))
      s->libc = 1;
  }
  return 0;
}

/* @p fd: of the file records. */
static void read_hooks(struct search* s, long fd) {
  s->libc = 0;
  s->self = 0;
  s->fd = fd;
  if (system_call(SYS_pread64, fd, (long)&s->hooks, sizeof s->hooks, FEIGN_CAPTURE_UNIT, 0, 0) !=
          (long)sizeof s->hooks ||
      s->hooks.magic != FEIGN_HOOK_MAGIC || s->hooks.count > FEIGN_HOOK_MOST)
    s->hooks.count = 0;
}

/* What is hooked, as far as a text that is mapped is compared with it. */
static struct {
  uint64_t text, size; /* in the library; 0: no more */
  uint64_t id;         /* the first bytes of its build id */
} hookable[FEIGN_HOOK_MOST];

/* Whether the headers of a library lie there, and what they say of its notes. */
static int has_headers(uintptr_t base) {
  const ElfW(Ehdr)* const e = (const ElfW(Ehdr)*)base;
  if (!is_there(base) || *(const uint32_t*)base != 0x464c457f /* ELF */ || e->e_phoff > 2048 ||
      e->e_phnum > 2048 / sizeof(ElfW(Phdr)))
    return 0;
  const ElfW(Phdr)* const all = (const ElfW(Phdr)*)(base + e->e_phoff);
  for (int i = 0; i < e->e_phnum; ++i)
    if (all[i].p_type == PT_NOTE &&
        (all[i].p_memsz > 4096 || all[i].p_filesz > all[i].p_memsz ||
         !is_there(base + all[i].p_vaddr) || !is_there(base + all[i].p_vaddr + all[i].p_memsz)))
      return 0;
  return 1;
}

/* The loader maps a library's text, for dlopen, or a second libc's for dlmopen: its headers, which
 * it maps first, say which it is. */
static __attribute__((noinline)) void maps_code(uintptr_t at, uint64_t size) {
  const struct capture* const g = &feign_capture;
  struct dl_phdr_info info = {.dlpi_name = ""};
  uint32_t i = 0;
  /* Where no call may be made, nothing tells whether memory is there. */
  if (g->control == 0 || g->off || g->sealed || feign_thread.quiet != 0 || feign_thread.vforks != 0)
    return;
  for (; i < FEIGN_HOOK_MOST; ++i) {
    const uintptr_t base = at - hookable[i].text;
    if (hookable[i].size != ((size + 4095) & ~(uint64_t)4095) || base > at || !has_headers(base))
      continue;
    info.dlpi_addr = base;
    info.dlpi_phdr = (const ElfW(Phdr)*)(base + ((const ElfW(Ehdr)*)base)->e_phoff);
    info.dlpi_phnum = ((const ElfW(Ehdr)*)base)->e_phnum;
    size_t id_size = 0;
    const uint8_t* const id = build_id(&info, &id_size);
    if (id_size >= 8 && *(const feign_loose64*)id == hookable[i].id) break;
  }
  if (i == FEIGN_HOOK_MOST) return;
  char path[sizeof g->folder + 16];
  name_records(path);
  const long fd = system_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (fd < 0) return;
  struct search s;
  read_hooks(&s, fd);
  (void)object(&info, sizeof info, &s);
  system_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

__attribute__((visibility("hidden"))) int feign_hooks_install(long fd) {
  struct search s;
  read_hooks(&s, fd);
  for (uint64_t i = 0; i < s.hooks.count; ++i) {
    hookable[i].text = s.hooks.all[i].text_address;
    hookable[i].size = s.hooks.all[i].text_size;
    hookable[i].id = *(const feign_loose64*)s.hooks.all[i].id;
  }
  /* libc's: a sanitizer has one of its own in the program, which is not to be called so early. */
  int (*iterate)(int (*)(struct dl_phdr_info*, size_t, void*), void*);
  *(void**)&iterate = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  if (iterate != 0) iterate(object, &s);
  if (s.self == 0) return 0;
  library_path = s.self;
  const char* name = s.self;
  for (const char* t = name; *t != '\0'; ++t)
    if (*t == '/') name = t + 1;
  char* to = feign_capture_library;
  for (size_t i = 0; name[i] != '\0' && i + 1 < sizeof feign_capture_library; ++i) *to++ = name[i];
  return s.libc;
}
