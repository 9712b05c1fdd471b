/* SPDX-License-Identifier: MIT */
/* Fortran programs (mpif.h, modules mpi and mpi_f08). Open MPI's Fortran library turns each call
 * into the C one, with C's handles, and makes it as PMPI_…, past the wrappers. So the places where
 * that library keeps the addresses of those functions get the wrappers' instead: what C programs
 * record, Fortran programs record, and no call is described a second time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void* g_self;

/* The wrapper of a function by its name, or null. */
static void* wrapper_of(const char* name) {
  Dl_info info;
  if (strncmp(name, "PMPI_", 5) != 0) return NULL;
  void* found = dlsym(g_self, name + 1);
  /* The library's dependencies are searched, too: only what is in this one is a wrapper. */
  static const char here = 0;
  Dl_info own;
  if (found == NULL || dladdr(found, &info) == 0 || dladdr(&here, &own) == 0 ||
      info.dli_fbase != own.dli_fbase)
    return NULL;
  return found;
}

static void patch(const struct dl_phdr_info* object, const ElfW(Rela) * relocations, size_t size,
                  const ElfW(Sym) * symbols, const char* texts, uintptr_t fixed,
                  size_t fixed_size) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (size_t i = 0; i < size / sizeof *relocations; ++i) {
    const unsigned kind = ELF64_R_TYPE(relocations[i].r_info);
    if (kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT) continue;
    void* wrapper = wrapper_of(texts + symbols[ELF64_R_SYM(relocations[i].r_info)].st_name);
    if (wrapper == NULL) continue;
    const uintptr_t at = object->dlpi_addr + relocations[i].r_offset, start = at & ~(page - 1);
    const int readonly = at >= fixed && at < fixed + fixed_size;
    if (readonly && mprotect((void*)start, page, PROT_READ | PROT_WRITE) != 0) continue;
    *(void**)at = wrapper;
    if (readonly) (void)mprotect((void*)start, page, PROT_READ);
  }
}

static int look(struct dl_phdr_info* object, size_t size, void* ctx) {
  (void)size;
  (void)ctx;
  if (object->dlpi_name == NULL || strstr(object->dlpi_name, "libmpi_mpifh.so") == NULL) return 0;
  const ElfW(Dyn)* dynamic = NULL;
  uintptr_t fixed = 0;
  size_t fixed_size = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* h = &object->dlpi_phdr[i];
    if (h->p_type == PT_DYNAMIC) dynamic = (const void*)(object->dlpi_addr + h->p_vaddr);
    if (h->p_type == PT_GNU_RELRO) {
      fixed = object->dlpi_addr + h->p_vaddr;
      fixed_size = h->p_memsz;
    }
  }
  const ElfW(Rela)* jumps = NULL, *others = NULL;
  const ElfW(Sym)* symbols = NULL;
  const char* texts = NULL;
  size_t jumps_size = 0, others_size = 0;
  for (; dynamic != NULL && dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_JMPREL) jumps = (const void*)dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_RELA) others = (const void*)dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_PLTRELSZ) jumps_size = dynamic->d_un.d_val;
    if (dynamic->d_tag == DT_RELASZ) others_size = dynamic->d_un.d_val;
    if (dynamic->d_tag == DT_SYMTAB) symbols = (const void*)dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_STRTAB) texts = (const void*)dynamic->d_un.d_ptr;
  }
  if (symbols == NULL || texts == NULL) return 0;
  if (jumps != NULL) patch(object, jumps, jumps_size, symbols, texts, fixed, fixed_size);
  if (others != NULL) patch(object, others, others_size, symbols, texts, fixed, fixed_size);
  return 0;
}

/* After the libraries are there, before the program begins. */
__attribute__((constructor)) static void start(void) {
  Dl_info own;
  static const char here = 0;
  if (dladdr(&here, &own) == 0) return;
  g_self = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (g_self != NULL) dl_iterate_phdr(look, NULL);
}
