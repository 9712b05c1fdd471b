/* SPDX-License-Identifier: MIT */
/* Calls of MPI that would go past the wrappers. Open MPI's Fortran library turns each call (mpif.h,
 * modules mpi and mpi_f08) into the C one, with C's handles, and makes it as PMPI_…; so does a tool
 * for profiling, linked to the program or a library of its own, whose MPI_… the program calls. The
 * places where an object keeps the addresses of PMPI_… get the wrappers' instead, and those of
 * MPI_… the tool's, which would be called without the wrappers. So what C programs record, others
 * record, no call is described a second time, and a tool sees what it sees without recording. The
 * wrappers themselves have none where MPI comes later and the loader looks for all at once
 * (LD_BIND_NOW): they get MPI's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void* g_self;               /* this library … */
static const void *g_base, *g_mpi; /* … where it lies, and where MPI's does */

static const void* base_of(const void* address) {
  Dl_info info;
  return address != NULL && dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

/* What an object is to call by that name, or null: what it does. Extensions are MPIX_… */
static void* meant_by(const char* name, int own) {
  const int past = strncmp(name, "PMPI", 4) == 0;
  if (own) return past ? dlsym(RTLD_NEXT, name) : NULL;
  if (!past && strncmp(name, "MPI", 3) != 0) return NULL;
  /* The library's dependencies are searched, too: only what is in this one is a wrapper. */
  void* const wrapper = dlsym(g_self, name + past);
  if (base_of(wrapper) != g_base) return NULL;
  if (past) return wrapper;
  void* const next = dlsym(RTLD_NEXT, name);
  return next != NULL && base_of(next) != g_mpi ? next : NULL;
}

static void patch(const struct dl_phdr_info* object, const ElfW(Rela) * relocations, size_t size,
                  const ElfW(Sym) * symbols, const char* texts, uintptr_t fixed, size_t fixed_size,
                  int own) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  /* The loader protects whole pages: behind them may be what the program writes to. */
  const uintptr_t fixed_end = (fixed + fixed_size) & ~(page - 1);
  for (size_t i = 0; i < size / sizeof *relocations; ++i) {
    const unsigned kind = ELF64_R_TYPE(relocations[i].r_info);
    if (kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT) continue;
    const uintptr_t at = object->dlpi_addr + relocations[i].r_offset, start = at & ~(page - 1);
    if (own && *(void**)at != NULL) continue;
    void* meant = meant_by(texts + symbols[ELF64_R_SYM(relocations[i].r_info)].st_name, own);
    if (meant == NULL) continue;
    const int readonly = at >= fixed && at < fixed_end;
    if (readonly && mprotect((void*)start, page, PROT_READ | PROT_WRITE) != 0) continue;
    *(void**)at = meant;
    if (readonly) (void)mprotect((void*)start, page, PROT_READ);
  }
}

static int look(struct dl_phdr_info* object, size_t size, void* ctx) {
  (void)size;
  (void)ctx;
  const ElfW(Dyn)* dynamic = NULL;
  uintptr_t fixed = 0;
  size_t fixed_size = 0;
  int own = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* h = &object->dlpi_phdr[i];
    const uintptr_t at = object->dlpi_addr + h->p_vaddr;
    if (h->p_type == PT_LOAD && h->p_offset == 0) {
      if ((const void*)at == g_mpi) return 0;
      own = (const void*)at == g_base;
    }
    if (h->p_type == PT_DYNAMIC) dynamic = (const void*)at;
    if (h->p_type == PT_GNU_RELRO) {
      fixed = at;
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
  if (jumps != NULL) patch(object, jumps, jumps_size, symbols, texts, fixed, fixed_size, own);
  if (others != NULL) patch(object, others, others_size, symbols, texts, fixed, fixed_size, own);
  return 0;
}

/* MPI is there: before the program begins, or once it was loaded. */
void feign_mpi_past(void) {
  Dl_info own;
  g_mpi = base_of(dlsym(RTLD_DEFAULT, "PMPI_Init"));
  if (g_mpi == NULL || dladdr(&g_self, &own) == 0) return;
  g_base = own.dli_fbase;
  g_self = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (g_self != NULL) dl_iterate_phdr(look, NULL);
}
