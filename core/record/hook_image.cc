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
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
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
  const bool good = write_all(fd, bytes_.data(), bytes_.size());
  const int e = errno;
  close(fd);
  return good ? Result<void>() : errno_error("write " + path, e);
}

#ifndef FEIGN_ZYDIS

Result<HookImage> HookImages::add(const std::string&, bool) {
  return Error(FEIGN_ERR_UNSUPPORTED,
               "this feign was built without Zydis, which finds the system calls in libc");
}
OwnCalls own_system_calls(const std::string&) { return {}; }

#else

namespace {

constexpr uint64_t kDistance = uint64_t{512} << 20;  // within reach of a jump, past all libraries
constexpr uint64_t kAbove = uint64_t{1} << 30;       // of a program at a low address: past its heap
constexpr size_t kJump = 5;
// What is moved, and what may not be jumped to, lies within: a jump and an instruction around it.
constexpr uint64_t kAround = 32;
constexpr uint64_t kShortJump = 128 + 2;
// More than any function has; in how large parts such code is decoded, and how far before each it
// begins: by then instructions are told apart, wherever one begins.
constexpr uint64_t kLongest = uint64_t{1} << 20, kPart = 4096, kLead = 1024;
// A call's number is loaded that many instructions before it, or less.
constexpr uint64_t kLoaded = 8, kLongestInstruction = 15;

// A file that is read.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
  }
  Result<void> open(const std::string& path) {
    struct stat st {};
    if (stat(path.c_str(), &st) != 0) return errno_error(path, errno);
    if (!S_ISREG(st.st_mode)) return Error(FEIGN_ERR_ARGUMENT, path + ": is no file");
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno_error("open " + path, errno);
    void* map = nullptr;
    if (fstat(fd, &st) != 0)
      map = MAP_FAILED;
    else if (st.st_size > 0)
      map = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    close(fd);
    if (map == MAP_FAILED) return errno_error("read " + path, error);
    if (map != nullptr)
      bytes_ = {static_cast<const uint8_t*>(map), static_cast<size_t>(st.st_size)};
    return {};
  }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::span<const uint8_t> bytes_;
};

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
  bool kept = false;    // it loads what was kept on the stack into it
};

// mov N(%rsp or %rbp), %rax: how what is not optimized loads a call's number.
bool loads_kept(const ZydisDecodedInstruction& d) {
  constexpr uint8_t kLoads = 0x8b, kBehind = 4, kStack = 4, kFrame = 5, kNoIndex = 4;
  const auto& m = d.raw.modrm;
  if (d.mnemonic != ZYDIS_MNEMONIC_MOV || d.opcode != kLoads || m.reg != 0 || m.mod == 3 ||
      d.raw.rex.R != 0 || d.raw.rex.X != 0 || d.raw.rex.B != 0)
    return false;
  if (m.rm == kBehind) return d.raw.sib.base == kStack && d.raw.sib.index == kNoIndex;
  return m.rm == kFrame && m.mod != 0;
}

class Image {
 public:
  Image(std::span<const uint8_t> file, std::string name, bool by_number)
      : file_(file), name_(std::move(name)), by_number_(by_number) {}
  // Finds the system calls; the rest does something with them.
  Result<void> read();
  OwnCalls own() const;
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
  bool of_signal(uint64_t entry) const;
  std::vector<uint64_t> functions(uint64_t table_address, uint64_t table_offset) const;
  void add_piece(uint64_t begin, uint64_t end);
  void find_sites();
  void find_jumps();
  void decode(size_t piece);
  void sort();
  bool hook(size_t index);
  const uint8_t* code(uint64_t address) const {
    return file_.data() + text_offset_ + (address - text_address_);
  }
  // Whether the next instruction follows right behind.
  bool joined(size_t index) const {
    return all_[index].address + all_[index].length == all_[index + 1].address;
  }
  bool relocatable(const Instruction& i) const {
    return i.kind == Instruction::kPlain || i.kind == Instruction::kJumps ||
           i.kind == Instruction::kBranches || i.kind == Instruction::kEnd;
  }
  int64_t pushed(uint64_t begin, uint64_t address) const;
  bool returns_from_signal(size_t index) const;
  bool is_target(uint64_t address) const {
    return std::binary_search(targets_.begin(), targets_.end(), address);
  }
  uint64_t stub_address() const { return text_address_ - distance_ + stubs_.size(); }
  void put(std::initializer_list<uint8_t> bytes) { stubs_.insert(stubs_.end(), bytes); }
  // As jumps and accesses have it; of what is too far from where it is moved to it is noted.
  int32_t distance(uint64_t from, uint64_t to) {
    const auto d = static_cast<int64_t>(to - from);
    reaches_ = reaches_ && d >= INT32_MIN && d <= INT32_MAX;
    return static_cast<int32_t>(d);
  }
  // From the end of it to `target`.
  void put_distance(uint64_t target) {
    const int32_t d = distance(stub_address() + 4, target);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&d);
    stubs_.insert(stubs_.end(), bytes, bytes + 4);
  }
  void move(const Instruction& i);

  std::span<const uint8_t> file_;
  std::string name_;
  bool by_number_;  // hook only what a number was loaded for close before
  bool go_ = false;
  std::vector<uint8_t> id_;
  uint64_t text_address_ = 0, text_offset_ = 0, text_size_ = 0;
  uint64_t distance_ = kDistance;
  bool taken_above_ = false;  // its own data lies where the stubs would
  // Code in pieces that are decoded each for itself: what has entries of its own in the unwinder's
  // table, else parts of sections.
  struct Piece {
    uint64_t begin, end;
    uint64_t from;   // where decoding it begins
    uint64_t reach;  // the end of what it is a part of: its last instruction may go on there
  };
  std::vector<Piece> pieces_;
  std::set<size_t> decoded_;  // of these
  std::vector<Instruction> all_;
  std::vector<size_t> sites_;  // system calls among these
  std::vector<uint64_t> targets_;
  uint8_t* text_ = nullptr;  // the copy
  std::vector<uint8_t> stubs_;
  std::vector<std::pair<uint64_t, uint32_t> > slots_;  // where stubs refer to the hook's address
  uint64_t taken_ = 0;                                 // what is below is part of a jump already
  bool reaches_ = true;                                // of the stub at hand: see distance()
};

Result<void> Image::find_text() {
  const auto* e = at<Elf64_Ehdr>(0);
  if (e == nullptr || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_machine != EM_X86_64)
    return bad("is no library for x86-64");
  const auto* h = at<Elf64_Phdr>(e->e_phoff, e->e_phnum);
  if (h == nullptr) return bad("its program headers are not in it");
  uint64_t size = 0, table_address = 0, table_offset = 0;
  std::vector<std::pair<uint64_t, uint64_t> > code;  // from and to
  for (int i = 0; i < e->e_phnum; ++i) {
    if (h[i].p_type == PT_LOAD && (h[i].p_flags & PF_X) != 0) {
      if (size != 0) return bad("has more than one piece of text");
      text_address_ = h[i].p_vaddr & ~(kPage - 1);
      text_offset_ = h[i].p_offset & ~(kPage - 1);
      if (at<uint8_t>(h[i].p_offset, h[i].p_filesz) == nullptr ||
          (h[i].p_offset - h[i].p_vaddr) % kPage != 0)
        return bad("its text is not in it");
      size = ((h[i].p_vaddr + h[i].p_filesz + kPage - 1) & ~(kPage - 1)) - text_address_;
      code = {{h[i].p_vaddr, h[i].p_vaddr + h[i].p_filesz}};
    }
    if (h[i].p_type == PT_GNU_EH_FRAME) table_address = h[i].p_vaddr, table_offset = h[i].p_offset;
    if (h[i].p_type != PT_NOTE) continue;
    for (uint64_t o = h[i].p_offset; o + 12 < h[i].p_offset + h[i].p_filesz;) {
      const auto* n = at<Elf64_Nhdr>(o);
      if (n == nullptr) break;
      const auto* id = at<uint8_t>(o + 16, n->n_descsz);
      if (const auto* name = at<char>(o + 12, 4);
          n->n_namesz == 4 && name != nullptr && memcmp(name, "Go\0\0", 4) == 0)
        go_ = true;
      if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && id != nullptr)
        id_.assign(id, id + std::min<uint32_t>(n->n_descsz, 20));
      o += 12 + ((uint64_t{n->n_namesz} + 3) & ~uint64_t{3}) +
           ((uint64_t{n->n_descsz} + 3) & ~uint64_t{3});
    }
  }
  if (size == 0) return bad("has no text");
  text_size_ = size;
  if (e->e_type == ET_EXEC && text_address_ < kDistance) {
    distance_ = -kAbove;
    // The stubs, which are less than that many times the text.
    constexpr uint64_t kTimes = 16;
    const uint64_t stubs = text_address_ + kAbove;
    for (int i = 0; i < e->e_phnum; ++i)
      taken_above_ |= h[i].p_type == PT_LOAD && h[i].p_vaddr < stubs + kTimes * size &&
                      h[i].p_vaddr + h[i].p_memsz > stubs;
  }
  // Sections leave out what is no code.
  if (const auto* s = at<Elf64_Shdr>(e->e_shoff, e->e_shnum); s != nullptr && e->e_shnum != 0) {
    const auto [begin, end] = code.front();
    std::vector<std::pair<uint64_t, uint64_t> > sections;
    for (int i = 0; i < e->e_shnum; ++i)
      if ((s[i].sh_flags & SHF_EXECINSTR) != 0 && s[i].sh_addr >= begin && s[i].sh_addr < end &&
          s[i].sh_size <= end - s[i].sh_addr)
        sections.emplace_back(s[i].sh_addr, s[i].sh_addr + s[i].sh_size);
    if (!sections.empty()) code = sections;
  }
  std::sort(code.begin(), code.end());
  const std::vector<uint64_t> begins = functions(table_address, table_offset);
  auto next = begins.begin();
  for (auto [begin, end] : code) {
    for (; next != begins.end() && *next < end; ++next) {
      if (*next <= begin) continue;
      add_piece(begin, *next);
      begin = *next;
    }
    if (begin < end) add_piece(begin, end);
  }
  return {};
}

// Whole if it is a function; else programs without unwinding (Chromium) or with a compiler of their
// own (GHC) were decoded from end to end for the one place that has the two bytes.
void Image::add_piece(uint64_t begin, uint64_t end) {
  if (end - begin <= kLongest) {
    pieces_.push_back({begin, end, begin, end});
    return;
  }
  for (uint64_t b = begin; b < end; b += kPart)
    pieces_.push_back({b, std::min(b + kPart, end), b - std::min(b - begin, kLead), end});
}

// Whether an entry is of what signal handlers return to: it begins a byte before its first
// instruction, for unwinders to take an address in there for one behind a call.
bool Image::of_signal(uint64_t entry) const {
  constexpr uint64_t kKindAt = 9, kMost = 8;  // after length, zero and version: a text
  const auto* distance = at<uint32_t>(entry + 4);
  if (distance == nullptr) return false;
  const auto* kind = at<char>(entry + 4 - *distance + kKindAt, kMost);
  return kind != nullptr && memchr(kind, 'S', strnlen(kind, kMost)) != nullptr;
}

// Where functions begin: an instruction begins there, too. The table is what unwinders look a
// function up in (the Linux Standard Base, .eh_frame_hdr).
std::vector<uint64_t> Image::functions(uint64_t table_address, uint64_t table_offset) const {
  struct Head {
    uint8_t version, frame, count, table;
    int32_t frame_at;
    uint32_t entries;
  };
  struct Entry {
    int32_t begin, described;
  };
  constexpr uint8_t kFromHere4 = 0x1b, kUnsigned4 = 0x03, kFromTable4 = 0x3b;
  const auto* head = at<Head>(table_offset);
  if (table_address == 0 || head == nullptr || head->version != 1 || head->frame != kFromHere4 ||
      head->count != kUnsigned4 || head->table != kFromTable4)
    return {};
  const auto* entries = at<Entry>(table_offset + sizeof *head, head->entries);
  if (entries == nullptr) return {};
  std::vector<uint64_t> begins;
  begins.reserve(head->entries);
  for (const Entry& entry : std::span(entries, head->entries))
    if (!of_signal(table_offset + static_cast<uint64_t>(int64_t{entry.described})))
      begins.push_back(table_address + static_cast<uint64_t>(int64_t{entry.begin}));
  if (!std::is_sorted(begins.begin(), begins.end())) std::sort(begins.begin(), begins.end());
  return begins;
}

// What pop %rax there gets, if it is a number that was pushed just before (code that is to be small
// loads it so); else -1.
int64_t Image::pushed(uint64_t begin, uint64_t address) const {
  constexpr size_t kBetween = 3;
  for (size_t k = all_.size(); k-- > 0 && all_.size() - k <= kBetween;) {
    const Instruction& before = all_[k];
    if (before.address < begin || before.address + before.length != address) break;
    const uint8_t* p = code(before.address);
    if (before.length == 2 && p[0] == 0x6a) return static_cast<int8_t>(p[1]);
    if (before.length == 1 && (p[0] & 0xf0) == 0x50) break;  // another push or pop
    address = before.address;
  }
  return -1;
}

void Image::decode(size_t piece) {
  if (!decoded_.insert(piece).second) return;
  const auto [begin, end, from, reach] = pieces_[piece];
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  for (uint64_t a = from; a < end;) {
    const uint8_t* p = code(a);
    ZydisDecodedInstruction d;
    ZydisDecoderContext context;
    Instruction i;
    i.address = a;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, p, reach - a, &d))) {
      i.length = 1;
      i.kind = Instruction::kPinned;
      if (a >= begin) all_.push_back(i);
      ++a;
      continue;
    }
    if (a < begin) {
      a += d.length;
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
    } else if (d.mnemonic == ZYDIS_MNEMONIC_XOR && p[d.length - 1] == 0xc0 &&
               (p[d.length - 2] == 0x31 || p[d.length - 2] == 0x33) &&
               (d.length == 2 || (d.length == 3 && p[0] == 0x48))) {
      i.number = 0;  // xor %eax, %eax: read
    } else if (p[0] == 0x58 && d.length == 1) {
      i.number = pushed(begin, a);
    } else {
      i.kept = loads_kept(d);
    }
    all_.push_back(i);
    a += d.length;
  }
}

// Unwinders know it by its bytes, and it has no way back.
bool Image::returns_from_signal(size_t index) const {
  constexpr int64_t kSigreturn = 15;
  for (size_t k = index; k-- > 0 && index - k < 4 && joined(k);)
    if (all_[k].number >= 0) return all_[k].number == kSigreturn;
  return false;
}

void Image::sort() {
  const auto by_address = [](const auto& a, const auto& b) { return a.address < b.address; };
  if (!std::is_sorted(all_.begin(), all_.end(), by_address))
    std::sort(all_.begin(), all_.end(), by_address);
  sites_.clear();
  for (size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].kind != Instruction::kSystemCall || returns_from_signal(i)) continue;
    bool loaded = false, straight = true;
    for (size_t k = i; by_number_ && !loaded && k-- > 0 && i - k < kLoaded && joined(k);) {
      straight = straight && all_[k].kind == Instruction::kPlain;
      loaded = (all_[k].number >= 0 && all_[k].number < kNumbers) || (straight && all_[k].kept);
    }
    if (loaded || !by_number_) sites_.push_back(i);
  }
}

// The second byte of the first system call, or what looks like one; null if there is none.
const uint8_t* call_in(const uint8_t* p, const uint8_t* end) {
  while (p + 1 < end && (p = static_cast<const uint8_t*>(
                             memchr(p + 1, 0x05, static_cast<size_t>(end - p - 1)))) != nullptr)
    if (p[-1] == 0x0f) return p;
  return nullptr;
}

// The two bytes are elsewhere, too: decoded is what has them, and kept what has the instruction.
void Image::find_sites() {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const uint8_t* const begin = code(piece.begin);
    const uint8_t* const call = call_in(begin, code(std::min(piece.end + 1, piece.reach)));
    if (call == nullptr) continue;
    const size_t known = all_.size(), targets = targets_.size();
    decode(i);
    if (std::none_of(all_.begin() + static_cast<ptrdiff_t>(known), all_.end(),
                     [](const auto& one) { return one.kind == Instruction::kSystemCall; })) {
      all_.resize(known);
      targets_.resize(targets);
      decoded_.erase(i);
    } else if (piece.from < piece.begin &&
               static_cast<size_t>(call - begin) < kLoaded * kLongestInstruction) {
      decode(i - 1);  // which may load the number
    }
  }
  sort();
}

// And what may jump to near a system call: any four bytes that would say so.
void Image::find_jumps() {
  constexpr unsigned kBlock = 6;
  std::vector<bool> blocks((text_size_ >> kBlock) + 1);
  std::vector<std::pair<uint64_t, uint64_t> > close;  // from where a short jump could lead there
  for (const size_t site : sites_) {
    const uint64_t at = all_[site].address - text_address_;
    for (const uint64_t edge : {at - std::min(at, kAround), at + kAround})
      if (edge < text_size_) blocks[edge >> kBlock] = true;
    close.emplace_back(all_[site].address - kAround - kShortJump,
                       all_[site].address + kAround + kShortJump);
  }
  auto near = close.begin();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const auto [begin, end, from, reach] = pieces_[i];
    while (near != close.end() && near->second <= begin) ++near;
    bool jumps = near != close.end() && near->first < end;
    const uint8_t* const bytes = code(begin);
    for (uint64_t o = 0; !jumps && o < end - begin && o + 4 < reach - begin; ++o) {
      int32_t distance;
      memcpy(&distance, bytes + o + 1, 4);
      const uint64_t to = begin + o + 5 + static_cast<uint64_t>(int64_t{distance}) - text_address_;
      jumps = to < text_size_ && blocks[to >> kBlock];
    }
    if (jumps) decode(i);
  }
  sort();
  std::sort(targets_.begin(), targets_.end());
}

void Image::move(const Instruction& i) {
  const uint8_t* from = code(i.address);
  if (i.kind == Instruction::kJumps) {
    put({0xe9});
    put_distance(i.target);
  } else if (i.kind == Instruction::kBranches) {
    put({0x0f, static_cast<uint8_t>(0x80 | i.condition)});
    put_distance(i.target);
  } else if (i.displacement != 0) {
    const uint64_t start = stub_address();
    stubs_.insert(stubs_.end(), from, from + i.length);
    const int32_t d = distance(start + i.length, i.target);
    memcpy(stubs_.data() + stubs_.size() - i.length + i.displacement, &d, 4);
  } else {
    stubs_.insert(stubs_.end(), from, from + i.length);
  }
}

bool Image::hook(size_t index) {
  // What follows, until a jump fits; else what precedes.
  size_t first = index, last = index;
  size_t bytes = all_[index].length;
  bool ended = false;  // behind a jump nothing runs: padding need not be kept
  while (bytes < kJump && last + 1 < all_.size()) {
    const Instruction& next = all_[last + 1];
    if (!joined(last) || is_target(next.address)) break;
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
      if (!joined(first - 1) || is_target(all_[first].address) ||
          before.kind != Instruction::kPlain || before.address < taken_)
        break;
      bytes += before.length;
      --first;
    }
  }
  if (bytes < kJump || all_[first].address < taken_) return false;
  const uint64_t stub = stub_address();
  const size_t stubs = stubs_.size(), slots = slots_.size();
  reaches_ = true;
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
  const int32_t d = distance(begin + kJump, stub);
  if (!reaches_) {
    stubs_.resize(stubs);
    slots_.resize(slots);
    return false;
  }

  uint8_t* to = text_ + (begin - text_address_);
  to[0] = 0xe9;
  memcpy(to + 1, &d, 4);
  for (uint64_t k = begin + kJump; k < end; ++k) text_[k - text_address_] = 0xcc;
  taken_ = end;
  return true;
}

Result<void> Image::read() {
  if (auto found = find_text(); !found) return found;
  find_sites();
  return {};
}

OwnCalls Image::own() const { return {static_cast<uint32_t>(sites_.size()), go_, id_}; }

Result<HookImage> Image::make(std::vector<uint8_t>& all, feign_hook_head& head) {
  if (go_) return bad("is of Go, which makes them on stacks that are too small to record them");
  if (id_.empty()) return bad("has no build id");
  if (taken_above_) return bad("has data of more than 1 GiB at a fixed address");
  find_jumps();
  all.resize(std::max(all.size(), kPage));  // the first page: what is here
  head.text_offset = all.size();
  all.resize(all.size() + text_size_);
  text_ = all.data() + head.text_offset;
  memcpy(text_, file_.data() + text_offset_, std::min(text_size_, file_.size() - text_offset_));
  HookImage out;
  out.sites = static_cast<uint32_t>(sites_.size());
  for (const size_t site : sites_) out.hooked += hook(site);
  stubs_.resize((stubs_.size() + sizeof(uint64_t) + kPage - 1) & ~(kPage - 1), 0xcc);
  for (const auto& [address, offset] : slots_) {
    const uint64_t slot = text_address_ - distance_ + stubs_.size() - sizeof(uint64_t);
    const auto d = static_cast<int32_t>(static_cast<int64_t>(slot - (address + 4)));
    memcpy(stubs_.data() + offset, &d, 4);
  }
  std::copy(id_.begin(), id_.end(), head.id);
  head.id_size = static_cast<uint32_t>(id_.size());
  head.text_address = text_address_;
  head.text_size = text_size_;
  head.stubs_offset = all.size();
  head.stubs_size = stubs_.size();
  head.distance = distance_;
  all.insert(all.end(), stubs_.begin(), stubs_.end());
  return out;
}

}  // namespace

Result<HookImage> HookImages::add(const std::string& library, bool by_number) {
  MappedFile file;
  if (auto opened = file.open(library); !opened) return std::move(opened.error());
  Image image(file.bytes(), library, by_number);
  auto read = image.read();
  if (by_number && (!read || image.own().sites == 0)) return HookImage();  // a script, say
  if (!read) return std::move(read.error());
  if (heads_.size() == FEIGN_HOOK_MOST)
    return Error(FEIGN_ERR_UNSUPPORTED, library + ": too many libraries with system calls");
  feign_hook_head head{};
  auto made = image.make(bytes_, head);
  if (!made) return made;
  head.sites = made->sites;
  head.hooked = made->hooked;
  if (made->hooked == 0) head.text_size = 0;
  heads_.push_back(head);
  return made;
}

OwnCalls own_system_calls(const std::string& program) {
  MappedFile file;
  if (!file.open(program)) return {};
  Image image(file.bytes(), program, true);
  return image.read() ? image.own() : OwnCalls();
}

#endif

}  // namespace feign
