// SPDX-License-Identifier: MIT
// A system call instruction has two bytes, a jump five: what follows or precedes it moves into the
// stub that the jump leads to. It may not if something else jumps into the middle of it, or if it
// says where it is in a way that cannot be said from elsewhere.
#include "record/hook_image.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/output.h"

#ifdef FEIGN_ZYDIS
#include <Zydis/Zydis.h>
#endif

namespace feign {

namespace {
constexpr size_t kPage = 4096;
constexpr uint32_t kNumbers = 1024;  // of system calls: less
static_assert(sizeof(feign_hooks) <= kPage);
}  // namespace

Result<void> HookImages::write(const std::string& path) {
  feign_hooks hooks{};
  hooks.magic = FEIGN_HOOK_MAGIC;
  hooks.count = heads_.size();
  std::copy(heads_.begin(), heads_.end(), hooks.all);
  bytes_.resize(std::max(bytes_.size(), kPage));
  memcpy(bytes_.data(), &hooks, sizeof hooks);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  if (fd < 0) return errno_error("open " + path, errno);
  for (size_t done = 0; done < bytes_.size();) {
    const ssize_t n = ::write(fd, bytes_.data() + done, bytes_.size() - done);
    if (n <= 0) {
      Error error = errno_error("write " + path, errno);
      close(fd);
      return error;
    }
    done += static_cast<size_t>(n);
  }
  close(fd);
  return {};
}

// The instruction, close behind one that loads a call's number: most programs have those two bytes
// somewhere.
bool has_system_calls(const std::string& program) {
  constexpr size_t kNear = 24, kMost = size_t{64} << 20;
  const int fd = open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat st {};
  void* map = MAP_FAILED;
  const bool fits = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
                    static_cast<size_t>(st.st_size) <= kMost;
  const auto size = fits ? static_cast<size_t>(st.st_size) : 0;
  if (fits) map = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return false;
  const std::string_view all(static_cast<const char*>(map), size);
  bool found = false;
  for (size_t at = 0; !found && (at = all.find("\x0f\x05", at)) != all.npos; ++at)
    for (size_t back = 5; back <= kNear && back <= at && !found; ++back) {
      uint32_t number = 0;
      memcpy(&number, all.data() + at - back + 1, sizeof number);
      found = static_cast<uint8_t>(all[at - back]) == 0xb8 && number < kNumbers;
    }
  munmap(map, size);
  return found;
}

#ifndef FEIGN_ZYDIS

Result<HookImage> HookImages::add(const std::string&, bool) {
  return Error(FEIGN_ERR_UNSUPPORTED,
               "this feign was built without Zydis, which finds the system calls in libc");
}

#else

namespace {

constexpr uint64_t kDistance = uint64_t{512} << 20;  // within reach of a jump, past all libraries
constexpr uint64_t kAbove = uint64_t{1} << 30;       // of a program at a low address: past its heap
constexpr size_t kJump = 5;

struct Instruction {
  uint64_t address = 0;
  uint8_t length = 0;
  uint8_t displacement = 0;  // where a RIP-relative one lies, 0: none
  enum Kind : uint8_t {
    kPlain,
    kSystemCall,
    kJumps,
    kBranches,
    kPinned,
    kEnd,
    kPadding
  } kind = kPlain;
  uint8_t condition = 0;  // of kBranches
  uint64_t target = 0;
  int64_t number = -1;  // what it loads into rax
};

class Image {
 public:
  Image(std::vector<uint8_t> file, std::string name, bool by_number)
      : file_(std::move(file)), name_(std::move(name)), by_number_(by_number) {}
  Result<HookImage> make(std::vector<uint8_t>& out, feign_hook_head& head);

 private:
  Error bad(const std::string& what) const {
    return Error(FEIGN_ERR_UNSUPPORTED, name_ + ": " + what);
  }
  template <typename T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    if (count > file_.size() / sizeof(T) || offset > file_.size() - count * sizeof(T))
      return nullptr;
    return reinterpret_cast<const T*>(file_.data() + offset);
  }
  Result<void> find_text();
  void decode(uint64_t begin, uint64_t end);
  bool hook(size_t index);
  bool relocatable(const Instruction& i) const {
    return i.kind == Instruction::kPlain || i.kind == Instruction::kJumps ||
           i.kind == Instruction::kBranches || i.kind == Instruction::kEnd;
  }
  bool is_target(uint64_t address) const {
    return std::binary_search(targets_.begin(), targets_.end(), address);
  }
  uint64_t stub_address() const { return text_address_ - distance_ + stubs_.size(); }
  void put(std::initializer_list<uint8_t> bytes) { stubs_.insert(stubs_.end(), bytes); }
  // A 32-bit distance from the end of it to `target`.
  void put_distance(uint64_t target) {
    const auto d = static_cast<int32_t>(static_cast<int64_t>(target - (stub_address() + 4)));
    const auto* bytes = reinterpret_cast<const uint8_t*>(&d);
    stubs_.insert(stubs_.end(), bytes, bytes + 4);
  }
  void move(const Instruction& i);

  std::vector<uint8_t> file_;
  std::string name_;
  bool by_number_;  // hook only what a number was loaded for close before
  std::vector<uint8_t> id_;
  uint64_t text_address_ = 0, text_offset_ = 0;
  uint64_t distance_ = kDistance;
  std::vector<std::pair<uint64_t, uint64_t> > code_;  // addresses, from and to
  std::vector<uint8_t> text_, stubs_;
  std::vector<Instruction> all_;
  std::vector<uint64_t> targets_;
  std::vector<std::pair<uint64_t, uint32_t> > slots_;  // where stubs refer to the hook's address
  uint64_t taken_ = 0;                                 // what is below is part of a jump already
};

Result<void> Image::find_text() {
  const auto* e = at<Elf64_Ehdr>(0);
  if (e == nullptr || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_machine != EM_X86_64)
    return bad("is no library for x86-64");
  const auto* h = at<Elf64_Phdr>(e->e_phoff, e->e_phnum);
  if (h == nullptr) return bad("its program headers are not in it");
  uint64_t size = 0;
  for (int i = 0; i < e->e_phnum; ++i) {
    if (h[i].p_type == PT_LOAD && (h[i].p_flags & PF_X) != 0) {
      if (size != 0) return bad("has more than one piece of text");
      text_address_ = h[i].p_vaddr & ~(kPage - 1);
      text_offset_ = h[i].p_offset & ~(kPage - 1);
      size = ((h[i].p_vaddr + h[i].p_filesz + kPage - 1) & ~(kPage - 1)) - text_address_;
      code_ = {{h[i].p_vaddr, h[i].p_vaddr + h[i].p_filesz}};
    }
    if (h[i].p_type != PT_NOTE) continue;
    for (uint64_t o = h[i].p_offset; o + 12 < h[i].p_offset + h[i].p_filesz;) {
      const auto* n = at<Elf64_Nhdr>(o);
      if (n == nullptr) break;
      const auto* id = at<uint8_t>(o + 16, n->n_descsz);
      if (const auto* name = at<char>(o + 12, 4);
          n->n_namesz == 4 && name != nullptr && memcmp(name, "Go\0\0", 4) == 0)
        return bad("is of Go, which makes them on stacks that are too small to record them");
      if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && id != nullptr)
        id_.assign(id, id + std::min<uint32_t>(n->n_descsz, 20));
      o += 12 + ((uint64_t{n->n_namesz} + 3) & ~uint64_t{3}) +
           ((uint64_t{n->n_descsz} + 3) & ~uint64_t{3});
    }
  }
  if (id_.empty()) return bad("has no build id");
  if (size == 0 || text_offset_ > file_.size()) return bad("has no text");
  if (e->e_type == ET_EXEC && text_address_ < kDistance) distance_ = -kAbove;
  text_.resize(size);
  memcpy(text_.data(), file_.data() + text_offset_,
         std::min<uint64_t>(size, file_.size() - text_offset_));
  // Sections leave out what is no code.
  if (const auto* s = at<Elf64_Shdr>(e->e_shoff, e->e_shnum); s != nullptr && e->e_shnum != 0) {
    std::vector<std::pair<uint64_t, uint64_t> > sections;
    for (int i = 0; i < e->e_shnum; ++i)
      if ((s[i].sh_flags & SHF_EXECINSTR) != 0 && s[i].sh_addr >= text_address_ &&
          s[i].sh_addr + s[i].sh_size <= text_address_ + size)
        sections.emplace_back(s[i].sh_addr, s[i].sh_addr + s[i].sh_size);
    if (!sections.empty()) code_ = sections;
  }
  return {};
}

void Image::decode(uint64_t begin, uint64_t end) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  for (uint64_t a = begin; a < end;) {
    const uint8_t* p = text_.data() + (a - text_address_);
    ZydisDecodedInstruction d;
    ZydisDecoderContext context;
    Instruction i;
    i.address = a;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, p, end - a, &d))) {
      i.length = 1;
      i.kind = Instruction::kPinned;
      all_.push_back(i);
      ++a;
      continue;
    }
    i.length = d.length;
    const bool relative = (d.attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0;
    if (d.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
      i.kind = Instruction::kSystemCall;
    } else if (relative && d.raw.imm[0].is_relative) {
      i.target = a + d.length + static_cast<uint64_t>(d.raw.imm[0].value.s);
      targets_.push_back(i.target);
      if (d.mnemonic == ZYDIS_MNEMONIC_JMP)
        i.kind = Instruction::kJumps;
      else if (d.meta.category == ZYDIS_CATEGORY_COND_BR &&
               (d.opcode & 0xF0) == (d.opcode_map == ZYDIS_OPCODE_MAP_0F ? 0x80 : 0x70))
        i.kind = Instruction::kBranches, i.condition = d.opcode & 0x0F;
      else
        i.kind = Instruction::kPinned;
    } else if (relative) {
      i.displacement = d.raw.disp.offset;
      i.target = a + d.length + static_cast<uint64_t>(d.raw.disp.value);
      if (d.meta.category == ZYDIS_CATEGORY_CALL || i.displacement == 0)
        i.kind = Instruction::kPinned;
    } else if (d.meta.category == ZYDIS_CATEGORY_CALL) {
      i.kind = Instruction::kPinned;
    } else if (d.meta.category == ZYDIS_CATEGORY_RET || d.mnemonic == ZYDIS_MNEMONIC_JMP ||
               d.mnemonic == ZYDIS_MNEMONIC_HLT) {
      i.kind = Instruction::kEnd;
    } else if (d.mnemonic == ZYDIS_MNEMONIC_NOP) {
      i.kind = Instruction::kPadding;
    } else if (d.mnemonic == ZYDIS_MNEMONIC_ENDBR64) {
      i.kind = Instruction::kPinned;
    } else if (d.mnemonic == ZYDIS_MNEMONIC_MOV &&
               (p[0] == 0xb8 || (p[0] == 0xc7 && p[1] == 0xc0) ||
                (p[0] == 0x48 && p[1] == 0xc7 && p[2] == 0xc0))) {
      int32_t number;
      memcpy(&number, p + d.length - 4, 4);
      i.number = number;
    }
    all_.push_back(i);
    a += d.length;
  }
}

void Image::move(const Instruction& i) {
  const uint8_t* from = text_.data() + (i.address - text_address_);
  if (i.kind == Instruction::kJumps) {
    put({0xe9});
    put_distance(i.target);
  } else if (i.kind == Instruction::kBranches) {
    put({0x0f, static_cast<uint8_t>(0x80 | i.condition)});
    put_distance(i.target);
  } else if (i.displacement != 0) {
    const uint64_t start = stub_address();
    stubs_.insert(stubs_.end(), from, from + i.length);
    const auto d = static_cast<int32_t>(static_cast<int64_t>(i.target - (start + i.length)));
    memcpy(stubs_.data() + stubs_.size() - i.length + i.displacement, &d, 4);
  } else {
    stubs_.insert(stubs_.end(), from, from + i.length);
  }
}

bool Image::hook(size_t index) {
  constexpr int64_t kSigreturn = 15;  // unwinders know it by its bytes, and it has no way back
  for (size_t k = index; k-- > 0 && index - k < 4;) {
    if (all_[k].number == kSigreturn) return false;
    if (all_[k].number >= 0) break;
  }
  bool loaded = false;
  for (size_t k = index; by_number_ && !loaded && k-- > 0 && index - k < 8;)
    loaded = all_[k].number >= 0 && all_[k].number < kNumbers;
  if (by_number_ && !loaded) return false;
  // What follows, until a jump fits; else what precedes.
  size_t first = index, last = index;
  size_t bytes = all_[index].length;
  bool ended = false;  // behind a jump nothing runs: padding need not be kept
  while (bytes < kJump && last + 1 < all_.size()) {
    const Instruction& next = all_[last + 1];
    if (next.address != all_[last].address + all_[last].length || is_target(next.address)) break;
    if (next.kind != Instruction::kPadding && (ended || !relocatable(next))) break;
    if (next.kind == Instruction::kPadding && !ended) break;
    bytes += next.length;
    ++last;
    ended = ended || next.kind == Instruction::kEnd || next.kind == Instruction::kJumps;
  }
  if (bytes < kJump) {
    last = index;
    bytes = all_[index].length;
    while (bytes < kJump && first > 0) {
      const Instruction& before = all_[first - 1];
      if (before.address + before.length != all_[first].address || is_target(all_[first].address) ||
          before.kind != Instruction::kPlain || before.address < taken_)
        break;
      bytes += before.length;
      --first;
    }
  }
  if (bytes < kJump || all_[first].address < taken_) return false;
  const uint64_t stub = stub_address();
  const uint64_t begin = all_[first].address, end = all_[last].address + all_[last].length;
  for (size_t k = first; k < index; ++k) move(all_[k]);
  put({0x4c, 0x8d, 0x1d});  // lea end(%rip), %r11: where unwinders are to believe it comes from
  put_distance(end);
  put({0x48, 0x8d, 0x0d});  // lea after(%rip), %rcx
  put_distance(stub_address() + 4 + 6);
  put({0xff, 0x25});  // jmp *hook(%rip)
  slots_.emplace_back(stub_address(), static_cast<uint32_t>(stubs_.size()));
  put({0, 0, 0, 0});
  for (size_t k = index + 1; k <= last; ++k)
    if (all_[k].kind != Instruction::kPadding) move(all_[k]);
  put({0xe9});
  put_distance(end);

  uint8_t* to = text_.data() + (begin - text_address_);
  const auto d = static_cast<int32_t>(static_cast<int64_t>(stub - (begin + kJump)));
  to[0] = 0xe9;
  memcpy(to + 1, &d, 4);
  for (uint64_t k = begin + kJump; k < end; ++k) text_[k - text_address_] = 0xcc;
  taken_ = end;
  return true;
}

Result<HookImage> Image::make(std::vector<uint8_t>& all, feign_hook_head& head) {
  if (auto found = find_text(); !found) return std::move(found.error());
  for (const auto& [begin, end] : code_) decode(begin, end);
  const auto by_address = [](const auto& a, const auto& b) { return a.address < b.address; };
  if (!std::is_sorted(all_.begin(), all_.end(), by_address))
    std::sort(all_.begin(), all_.end(), by_address);
  std::sort(targets_.begin(), targets_.end());
  HookImage out;
  for (size_t i = 0; i < all_.size(); ++i)
    if (all_[i].kind == Instruction::kSystemCall) {
      ++out.sites;
      out.hooked += hook(i);
    }
  stubs_.resize((stubs_.size() + sizeof(uint64_t) + kPage - 1) & ~(kPage - 1), 0xcc);
  for (const auto& [address, offset] : slots_) {
    const uint64_t slot = text_address_ - distance_ + stubs_.size() - sizeof(uint64_t);
    const auto d = static_cast<int32_t>(static_cast<int64_t>(slot - (address + 4)));
    memcpy(stubs_.data() + offset, &d, 4);
  }
  std::copy(id_.begin(), id_.end(), head.id);
  head.id_size = static_cast<uint32_t>(id_.size());
  all.resize(std::max(all.size(), kPage));  // the first page: what is here
  head.text_address = text_address_;
  head.text_offset = all.size();
  head.text_size = text_.size();
  head.stubs_offset = all.size() + text_.size();
  head.stubs_size = stubs_.size();
  head.distance = distance_;
  all.insert(all.end(), text_.begin(), text_.end());
  all.insert(all.end(), stubs_.begin(), stubs_.end());
  return out;
}

}  // namespace

Result<HookImage> HookImages::add(const std::string& library, bool by_number) {
  const int fd = open(library.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_error("open " + library, errno);
  struct stat st {};
  std::vector<uint8_t> file;
  bool good = fstat(fd, &st) == 0;
  if (good) file.resize(static_cast<size_t>(st.st_size));
  for (size_t done = 0; good && done < file.size();) {
    const ssize_t n = read(fd, file.data() + done, file.size() - done);
    good = n > 0;
    if (good) done += static_cast<size_t>(n);
  }
  close(fd);
  if (!good) return errno_error("read " + library, errno);
  if (heads_.size() == FEIGN_HOOK_MOST)
    return Error(FEIGN_ERR_UNSUPPORTED, library + ": too many libraries with system calls");
  feign_hook_head head{};
  auto made = Image(std::move(file), library, by_number).make(bytes_, head);
  if (made && made->hooked != 0) heads_.push_back(head);
  return made;
}

#endif

}  // namespace feign
