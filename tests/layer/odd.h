/* SPDX-License-Identifier: MIT */
/* A library whose functions are as odd as an annotated header may have them; for generate_test.py. */
#ifndef ODD_H
#define ODD_H
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#define ODD_API __attribute__((visibility("default")))
#define ODD_CALL
#define ODD_OF(parameters) parameters
#define ODD_NAME(name) name

//@ layer odd-things "a library of odd functions"
//@ fails negative
//@ names mode ODD_FAST=1 ODD_SLOW=2 ODD_BOTH=3
//@ names level "ODD_HIGH=1 << 4"

enum { ODD_FAST = 1, ODD_SLOW = 2, ODD_BOTH = 3 };
struct odd_options {
  uint32_t flags;
  int64_t depth;
  const char *comment;
};
struct odd_thing; /* a forward declaration is no prototype */
typedef struct odd_thing odd_thing;
typedef void *odd_room;
typedef int ODD_CODE;

// A handle by way of a pointer, options in a struct; -error where it fails.
//@ op 1 odd_new kind=open
//@ args path struct:flags=flags:mode,depth=value:0,comment=text:1 new
ODD_API extern int odd_new(const char *path, const struct odd_options *options, odd_thing **result);

//@ op 2 odd_free kind=close
//@ args handle-at
ODD_API int odd_free(odd_thing **a);

// Handles that are numbers, from 0; a handle made of another one.
//@ op 3 odd_cursor kind=open result=handle
//@ args handle offset
ODD_API int odd_cursor(odd_thing *c, int64_t from);

//@ op 4 odd_cursor_close kind=close
//@ args handle
ODD_API int odd_cursor_close(int cursor);

// Of two handles, of two types.
//@ op 5 odd_read kind=read result=bytes fails=errno
//@ args handle handle2 buf value value -
//@ capture length="size * count"
ODD_API long odd_read(odd_thing *r, int cursor, odd_room data, size_t size, size_t count,
                      void (*progress)(void *, int));

// Says whether; the length is what it moved. A parameter per line, and comments /* within */.
//@ op 20 odd_write kind=write result=bytes fails=zero
//@ args handle buf length
ODD_API _Bool odd_write(odd_thing *call,
                        const char data[], /* ; */
                        unsigned e);

//@ op 7 odd_log kind=write result=bytes
//@ args handle text -
//@ capture call="odd_vlog(self, format, list)" length="r > 0 ? r : 0"
//@ replay odd_log(self, "%s", format)
ODD_API int odd_log(odd_thing *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
ODD_API int odd_vlog(odd_thing *self, const char *format, va_list list);

//@ op 8 odd_rename kind=change fails=code
//@ args path path2 mode flags:level
ODD_API ODD_CODE ODD_CALL odd_rename(const char *from, const char *to, unsigned short mode,
                                     unsigned flags);

//@ op 9 odd_name result=any
//@ args handle out value
ODD_API const char *odd_name(const odd_thing *, char room[64], size_t length);

//@ op 10 odd_tell kind=seek result=position fails=nonzero
//@ args handle result
ODD_API int odd_tell(odd_thing *self, uint64_t *position);

//@ op 11 odd_tick fails=never
//@ args value
ODD_API void ODD_CALL odd_tick ODD_OF((unsigned long long layer));

//@ op 12 odd_version result=number fails=never
ODD_API unsigned ODD_NAME(odd_version)(void);

//@ op 13 odd_private result=any
//@ args -
//@ replay none
ODD_API void *odd_private(struct odd_options options);

// Its own result: how far it came.
//@ op 14 odd_skip kind=seek result=number
//@ args handle value
//@ capture before=odd_where(self) result="r == 0 ? odd_where(self) - before : FEIGN_FAILED(e)"
ODD_API int odd_skip(odd_thing *self, long by);
ODD_API long odd_where(odd_thing *self);

//@ alias odd_tick64 odd_tick
ODD_API void odd_tick64(unsigned long long layer);

static inline int odd_nothing(void) { return 0; }
#undef ODD_API
#undef ODD_CALL
#undef ODD_OF
#endif
