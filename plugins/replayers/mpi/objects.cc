// SPDX-License-Identifier: MIT
#include "replayers/mpi/objects.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <utility>

#include "capture/mpi_errno.h"
#include "replayers/mpi/world.h"

namespace feign::mpi {
namespace {

struct Named {
  std::string_view name;
  MPI_Datatype type;
};
// Names that programs use; those of Fortran stand for what they are in C here.
const Named* named(std::string_view name) {
  static const Named kTypes[] = {{"MPI_CHAR", MPI_CHAR},
                                 {"MPI_SIGNED_CHAR", MPI_SIGNED_CHAR},
                                 {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR},
                                 {"MPI_BYTE", MPI_BYTE},
                                 {"MPI_PACKED", MPI_PACKED},
                                 {"MPI_WCHAR", MPI_WCHAR},
                                 {"MPI_SHORT", MPI_SHORT},
                                 {"MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT},
                                 {"MPI_INT", MPI_INT},
                                 {"MPI_UNSIGNED", MPI_UNSIGNED},
                                 {"MPI_LONG", MPI_LONG},
                                 {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG},
                                 {"MPI_LONG_LONG", MPI_LONG_LONG},
                                 {"MPI_LONG_LONG_INT", MPI_LONG_LONG},
                                 {"MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG},
                                 {"MPI_FLOAT", MPI_FLOAT},
                                 {"MPI_DOUBLE", MPI_DOUBLE},
                                 {"MPI_LONG_DOUBLE", MPI_LONG_DOUBLE},
                                 {"MPI_INT8_T", MPI_INT8_T},
                                 {"MPI_INT16_T", MPI_INT16_T},
                                 {"MPI_INT32_T", MPI_INT32_T},
                                 {"MPI_INT64_T", MPI_INT64_T},
                                 {"MPI_UINT8_T", MPI_UINT8_T},
                                 {"MPI_UINT16_T", MPI_UINT16_T},
                                 {"MPI_UINT32_T", MPI_UINT32_T},
                                 {"MPI_UINT64_T", MPI_UINT64_T},
                                 {"MPI_AINT", MPI_AINT},
                                 {"MPI_OFFSET", MPI_OFFSET},
                                 {"MPI_COUNT", MPI_COUNT},
                                 {"MPI_C_BOOL", MPI_C_BOOL},
                                 {"MPI_C_COMPLEX", MPI_C_COMPLEX},
                                 {"MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX},
                                 {"MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX},
                                 {"MPI_C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX},
                                 {"MPI_CXX_BOOL", MPI_C_BOOL},
                                 {"MPI_CXX_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX},
                                 {"MPI_CXX_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX},
                                 {"MPI_CXX_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX},
                                 {"MPI_FLOAT_INT", MPI_FLOAT_INT},
                                 {"MPI_DOUBLE_INT", MPI_DOUBLE_INT},
                                 {"MPI_LONG_INT", MPI_LONG_INT},
                                 {"MPI_2INT", MPI_2INT},
                                 {"MPI_SHORT_INT", MPI_SHORT_INT},
                                 {"MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT},
                                 {"MPI_INTEGER", MPI_INT},
                                 {"MPI_REAL", MPI_FLOAT},
                                 {"MPI_DOUBLE_PRECISION", MPI_DOUBLE},
                                 {"MPI_COMPLEX", MPI_C_FLOAT_COMPLEX},
                                 {"MPI_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX},
                                 {"MPI_LOGICAL", MPI_INT},
                                 {"MPI_CHARACTER", MPI_CHAR},
                                 {"MPI_INTEGER8", MPI_INT64_T},
                                 {"MPI_REAL8", MPI_DOUBLE},
                                 {"MPI_REAL4", MPI_FLOAT},
                                 {"MPI_REAL16", MPI_LONG_DOUBLE},
                                 {"MPI_COMPLEX8", MPI_C_FLOAT_COMPLEX},
                                 {"MPI_COMPLEX16", MPI_C_DOUBLE_COMPLEX},
                                 {"MPI_COMPLEX32", MPI_C_LONG_DOUBLE_COMPLEX},
                                 {"MPI_INTEGER1", MPI_INT8_T},
                                 {"MPI_INTEGER2", MPI_INT16_T},
                                 {"MPI_INTEGER4", MPI_INT32_T},
                                 {"MPI_LOGICAL1", MPI_INT8_T},
                                 {"MPI_LOGICAL2", MPI_INT16_T},
                                 {"MPI_LOGICAL4", MPI_INT32_T},
                                 {"MPI_LOGICAL8", MPI_INT64_T},
                                 {"MPI_2INTEGER", MPI_2INT},
                                 {"MPI_2REAL", MPI_C_FLOAT_COMPLEX},
                                 {"MPI_2DOUBLE_PRECISION", MPI_C_DOUBLE_COMPLEX}};
  for (const Named& n : kTypes)
    if (n.name == name) return &n;
  return nullptr;
}

constexpr size_t kMostNumbers = 1 << 20;
constexpr uint32_t kMostRanks = 1 << 20;  // as of map_ranks()
constexpr int kDeepest = 32;

// "3,5,8:4:10": numbers, and those of a run, 8, 12, … by its first, step and count.
template <typename T>
bool parse_numbers(std::string_view text, std::vector<T>& to) {
  while (!text.empty()) {
    if (text[0] == ',') {
      text.remove_prefix(1);
      continue;
    }
    int64_t parts[3] = {0, 0, 1};
    for (int i = 0; i < 3; ++i) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parts[i]);
      if (error != std::errc()) return false;
      text.remove_prefix(static_cast<size_t>(end - text.data()));
      if (!text.starts_with(':')) break;
      if (i == 2) return false;
      text.remove_prefix(1);
    }
    if (parts[2] < 1 || static_cast<uint64_t>(parts[2]) > kMostNumbers - to.size()) return false;
    for (int64_t i = 0; i < parts[2]; ++i) {
      int64_t v = 0;
      if (__builtin_mul_overflow(parts[1], i, &v) || __builtin_add_overflow(parts[0], v, &v))
        return false;
      to.push_back(static_cast<T>(v));
    }
    if (to.size() >= kMostNumbers) return false;
  }
  return true;
}

// COMBINER(integers;addresses;datatypes), as MPI_Type_get_contents() tells them.
class Builder {
 public:
  explicit Builder(std::string_view text) : left_(text) {}

  // The type at hand; `made` if it is ours to free.
  MPI_Datatype type(bool& made, int depth) {
    made = false;
    const size_t end = std::min(left_.find_first_of("(,;)"), left_.size());
    const std::string_view name = left_.substr(0, end);
    left_.remove_prefix(end);
    if (left_.empty() || left_[0] != '(') {
      const Named* n = named(name);
      return n != nullptr ? n->type : MPI_DATATYPE_NULL;
    }
    if (depth > kDeepest) return MPI_DATATYPE_NULL;
    left_.remove_prefix(1);
    std::vector<int> i;
    std::vector<MPI_Aint> a;
    std::vector<MPI_Datatype> t;
    std::vector<MPI_Datatype> ours;
    MPI_Datatype out = MPI_DATATYPE_NULL;
    std::vector<std::pair<int, MPI_Aint>> bounds;  // of a struct: which are MPI_LB (0), MPI_UB (1)
    std::vector<size_t> bound_at;
    bool good = numbers(i, ';') && numbers(a, ';');
    while (good && !left_.empty() && left_[0] != ')') {
      if (left_[0] == ',') {
        left_.remove_prefix(1);
        continue;
      }
      if (left_.starts_with("MPI_LB") || left_.starts_with("MPI_UB")) {
        bounds.emplace_back(left_[4] == 'U', 0);
        bound_at.push_back(t.size());
        t.push_back(MPI_DATATYPE_NULL);
        left_.remove_prefix(6);
        continue;
      }
      bool inner = false;
      const MPI_Datatype one = type(inner, depth + 1);
      if (inner) ours.push_back(one);
      t.push_back(one);
      good = one != MPI_DATATYPE_NULL && t.size() <= kMostNumbers;
    }
    good = good && !left_.empty();
    if (good) {
      left_.remove_prefix(1);
      out = make(name, i, a, t, bounds, bound_at);
    }
    for (MPI_Datatype& o : ours) MPI_Type_free(&o);
    made = out != MPI_DATATYPE_NULL && !name.starts_with("f90_");  // these are MPI's own
    return out;
  }
  bool at_end() const { return left_.empty(); }

 private:
  template <typename T>
  bool numbers(std::vector<T>& to, char stop) {
    const size_t end = left_.find(stop);
    if (end == std::string_view::npos || !parse_numbers(left_.substr(0, end), to)) return false;
    left_.remove_prefix(end + 1);
    return true;
  }

  static MPI_Datatype make(std::string_view name, std::vector<int>& i, std::vector<MPI_Aint>& a,
                           std::vector<MPI_Datatype>& t, std::vector<std::pair<int, MPI_Aint>>& b,
                           const std::vector<size_t>& bound_at) {
    MPI_Datatype out = MPI_DATATYPE_NULL;
    for (std::string_view prefix : {"MPI_COMBINER_", "MPI_Type_", "create_"})
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    std::string lower(name);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    for (const char* old : {"_integer"})
      if (lower.ends_with(old)) lower.resize(lower.size() - std::string_view(old).size());
    const auto count = [&] {
      return i.empty() || i[0] < 0 ? size_t{0} : static_cast<size_t>(i[0]);
    };
    const auto has = [&](size_t ni, size_t na, size_t nt) {
      return i.size() >= ni && a.size() >= na && t.size() >= nt;
    };
    const bool one = !t.empty() && t[0] != MPI_DATATYPE_NULL;
    int status = MPI_ERR_TYPE;
    if (name == "f90_real" && has(2, 0, 0)) {
      status = MPI_Type_create_f90_real(i[0], i[1], &out);
    } else if (name == "f90_complex" && has(2, 0, 0)) {
      status = MPI_Type_create_f90_complex(i[0], i[1], &out);
    } else if (name == "f90_integer" && has(1, 0, 0)) {
      status = MPI_Type_create_f90_integer(i[0], &out);
    } else if (lower == "dup" && has(0, 0, 1) && one) {
      status = MPI_Type_dup(t[0], &out);
    } else if (lower == "contiguous" && has(1, 0, 1) && one && i[0] >= 0) {
      status = MPI_Type_contiguous(i[0], t[0], &out);
    } else if (lower == "vector" && has(3, 0, 1) && one && i[0] >= 0 && i[1] >= 0) {
      status = MPI_Type_vector(i[0], i[1], i[2], t[0], &out);
    } else if (lower == "hvector" && has(2, 1, 1) && one && i[0] >= 0 && i[1] >= 0) {
      status = MPI_Type_create_hvector(i[0], i[1], a[0], t[0], &out);
    } else if (lower == "indexed" && has(1 + 2 * count(), 0, 1) && one) {
      status = MPI_Type_indexed(i[0], i.data() + 1, i.data() + 1 + count(), t[0], &out);
    } else if (lower == "hindexed" && has(1 + count(), count(), 1) && one) {
      status = MPI_Type_create_hindexed(i[0], i.data() + 1, a.data(), t[0], &out);
    } else if (lower == "indexed_block" && has(2 + count(), 0, 1) && one) {
      status = MPI_Type_create_indexed_block(i[0], i[1], i.data() + 2, t[0], &out);
    } else if (lower == "hindexed_block" && has(2, count(), 1) && one) {
      status = MPI_Type_create_hindexed_block(i[0], i[1], a.data(), t[0], &out);
    } else if (lower == "resized" && has(0, 2, 1) && one) {
      status = MPI_Type_create_resized(t[0], a[0], a[1], &out);
    } else if (lower == "subarray" && !i.empty() && i[0] > 0 && has(2 + 3 * count(), 0, 1) && one) {
      const size_t n = count();
      const int order =
          i[1 + 3 * n] == 56 || i[1 + 3 * n] == MPI_ORDER_C ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
      status = MPI_Type_create_subarray(i[0], &i[1], &i[1 + n], &i[1 + 2 * n], order, t[0], &out);
    } else if (lower == "struct" && has(1 + count(), count(), count()) && i[0] >= 0 && !t.empty()) {
      status = make_struct(i, a, t, b, bound_at, out);
    } else if (lower == "darray" && has(4, 0, 1) && one && i[2] > 0 &&
               has(4 + 4 * static_cast<size_t>(i[2]), 0, 1)) {
      const auto n = static_cast<size_t>(i[2]);
      status = MPI_Type_create_darray(i[0], i[1], i[2], &i[3], &i[3 + n], &i[3 + 2 * n],
                                      &i[3 + 3 * n], i[3 + 4 * n], t[0], &out);
    }
    return status == MPI_SUCCESS ? out : MPI_DATATYPE_NULL;
  }

  // MPI_LB and MPI_UB, which are no more, set where a type begins and ends.
  static int make_struct(std::vector<int>& i, std::vector<MPI_Aint>& a,
                         std::vector<MPI_Datatype>& t, std::vector<std::pair<int, MPI_Aint>>& b,
                         const std::vector<size_t>& bound_at, MPI_Datatype& out) {
    const auto n = static_cast<size_t>(i[0]);
    std::vector<int> lengths;
    std::vector<MPI_Aint> at;
    std::vector<MPI_Datatype> types;
    MPI_Aint low = 0, high = 0;
    bool has_low = false, has_high = false;
    for (size_t k = 0, bound = 0; k < n; ++k) {
      if (bound < bound_at.size() && bound_at[bound] == k) {
        (b[bound].first ? high : low) = a[k];
        (b[bound].first ? has_high : has_low) = true;
        ++bound;
        continue;
      }
      if (t[k] == MPI_DATATYPE_NULL || i[1 + k] < 0) return MPI_ERR_TYPE;
      lengths.push_back(i[1 + k]);
      at.push_back(a[k]);
      types.push_back(t[k]);
    }
    MPI_Datatype plain = MPI_DATATYPE_NULL;
    int status = MPI_Type_create_struct(static_cast<int>(types.size()), lengths.data(), at.data(),
                                        types.data(), &plain);
    if (status != MPI_SUCCESS) return status;
    if (!has_low && !has_high) {
      out = plain;
      return status;
    }
    MPI_Aint lb = 0, extent = 0;
    MPI_Type_get_extent(plain, &lb, &extent);
    if (!has_low) low = lb;
    if (!has_high) high = lb + extent;
    status = MPI_Type_create_resized(plain, low, high - low, &out);
    MPI_Type_free(&plain);
    return status;
  }

  std::string_view left_;
};

}  // namespace

bool parse_ranks(std::string_view text, std::vector<uint32_t>& ranks, size_t& first_group) {
  first_group = 0;
  const size_t open = text.rfind('{');
  if (open == std::string_view::npos || !text.ends_with('}')) return false;
  text = text.substr(open + 1, text.size() - open - 2);
  while (!text.empty()) {
    uint32_t first = 0, last = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), first);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      auto [end2, error2] = std::from_chars(text.data(), text.data() + text.size(), last);
      if (error2 != std::errc()) return false;
      text.remove_prefix(static_cast<size_t>(end2 - text.data()));
    }
    if (last < first || last >= kMostRanks || ranks.size() > kMostRanks) return false;
    for (uint32_t r = first; r <= last; ++r) ranks.push_back(r);
    if (text.starts_with('|')) {
      if (first_group != 0) return false;
      first_group = ranks.size();
      text.remove_prefix(1);
    } else if (text.starts_with(',')) {
      text.remove_prefix(1);
    }
  }
  return !ranks.empty() && first_group != ranks.size();
}

MPI_Comm with_neighbours(std::string_view text, MPI_Comm comm) {
  const size_t colon = text.find(':'), open = text.find('('), close = text.find(')');
  int size = 0, rank = 0;
  if (colon == std::string_view::npos || open == std::string_view::npos ||
      close == std::string_view::npos || open < colon || close < open)
    return comm;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  const std::string_view kind = text.substr(colon + 1, open - colon - 1);
  const std::string_view inside = text.substr(open + 1, close - open - 1);
  const size_t half = std::min(inside.find(';'), inside.size());
  std::vector<int> a, b;
  if (!parse_numbers(inside.substr(0, half), a) ||
      !parse_numbers(inside.substr(std::min(half + 1, inside.size())), b))
    return comm;
  const auto is_rank = [&](int n) { return n >= 0 && n < size; };
  MPI_Comm made = MPI_COMM_NULL;
  if (kind == "cart") {
    int64_t product = 1;
    for (const int n : a) product = n > 0 && product <= size ? product * n : 0;
    if (product != size || a.size() != b.size()) return comm;
    FEIGN_MUST(MPI_Cart_create(comm, static_cast<int>(a.size()), a.data(), b.data(), 0, &made));
  } else if (kind == "graph") {
    bool good = static_cast<int>(a.size()) == size && std::is_sorted(a.begin(), a.end()) &&
                std::all_of(b.begin(), b.end(), is_rank);
    good = good && !a.empty() && a[0] >= 0 && a.back() == static_cast<int>(b.size());
    if (!good) return comm;
    FEIGN_MUST(MPI_Graph_create(comm, size, a.data(), b.data(), 0, &made));
  } else if (kind == "dist") {
    // Of each rank in turn: how many sources, how many destinations, and who they are.
    size_t at = 0;
    for (int r = 0; r < size; ++r) {
      if (at + 2 > a.size() || a[at] < 0 || a[at + 1] < 0) return comm;
      const auto in = static_cast<size_t>(a[at]), out = static_cast<size_t>(a[at + 1]);
      if (in + out > a.size() - at - 2) return comm;
      const int* const who = a.data() + at + 2;
      if (!std::all_of(who, who + in + out, is_rank)) return comm;
      if (r == rank)
        b.assign(a.begin() + static_cast<ptrdiff_t>(at),
                 a.begin() + static_cast<ptrdiff_t>(at + 2 + in + out));
      at += 2 + in + out;
    }
    const int in = b[0], out = b[1];
    FEIGN_MUST(MPI_Dist_graph_create_adjacent(comm, in, b.data() + 2, MPI_UNWEIGHTED, out,
                                              b.data() + 2 + in, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                              &made));
  }
  if (made == MPI_COMM_NULL) return comm;
  FEIGN_MUST(MPI_Comm_free(&comm));
  return made;
}

MPI_Datatype build_type(std::string_view text, bool& made) {
  Builder builder(text);
  MPI_Datatype type = builder.type(made, 0);
  if (made && (!builder.at_end() || MPI_Type_commit(&type) != MPI_SUCCESS)) {
    MPI_Type_free(&type);
    made = false;
    type = MPI_DATATYPE_NULL;
  }
  return type;
}

MPI_Info build_info(std::string_view text) {
  if (text.find('=') == std::string_view::npos) return MPI_INFO_NULL;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  const auto plain = [](std::string_view coded) {
    std::string out;
    for (size_t i = 0; i < coded.size(); ++i) {
      unsigned value = 0;
      if (coded[i] == '%' && i + 2 < coded.size() + 0 &&
          std::from_chars(coded.data() + i + 1, coded.data() + i + 3, value, 16).ptr ==
              coded.data() + i + 3) {
        out += static_cast<char>(value);
        i += 2;
      } else {
        out += coded[i];
      }
    }
    return out;
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string key = plain(pair.substr(0, equals)), value = plain(pair.substr(equals + 1));
    if (!key.empty() && key.size() < MPI_MAX_INFO_KEY && value.size() < MPI_MAX_INFO_VAL)
      MPI_Info_set(info, key.c_str(), value.c_str());
  }
  return info;
}

int errno_of(int error) {
  int kind = MPI_ERR_OTHER;
  MPI_Error_class(error, &kind);
  return feign_errno_of_mpi(kind);
}

}  // namespace feign::mpi
