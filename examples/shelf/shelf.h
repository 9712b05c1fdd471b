/* SPDX-License-Identifier: MIT */
/*
 * libshelf: keeps records of any size in a file, in the order in which they came. A fictitious I/O
 * library, for showing how Feign is told of one: the lines that begin with //@ are all that
 * `feign generate` needs (docs/layers.md); to a compiler they are comments.
 */
#ifndef SHELF_H
#define SHELF_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

//@ layer shelf "libshelf: records of any size in a file"
//@ names open SHELF_CREATE SHELF_EMPTY SHELF_EXCLUSIVE SHELF_SYNC SHELF_READ_ONLY
//@ names what SHELF_RECORDS=0 SHELF_BYTES=1

typedef struct shelf shelf;

enum {
  SHELF_CREATE = 1,    /* make the file if it is not there */
  SHELF_EMPTY = 2,     /* give up what it held */
  SHELF_EXCLUSIVE = 4, /* with SHELF_CREATE: fail if it is there */
  SHELF_SYNC = 8,      /* each record is durable before shelf_append() returns */
  SHELF_READ_ONLY = 16
};
enum shelf_what { SHELF_RECORDS, SHELF_BYTES };

/* All of these fail with NULL or a negative number, and say why in errno. */

//@ op 1 shelf_open kind=open result=handle
//@ args path flags:open
shelf* shelf_open(const char* path, int flags);

//@ op 2 shelf_close kind=close result=zero
//@ args handle
int shelf_close(shelf* s);

/* Adds a record; tells its number, if `number` is not NULL. Returns its size. */
//@ op 3 shelf_append kind=write result=bytes
//@ args handle buf length out
ssize_t shelf_append(shelf* s, const void* data, size_t size, uint64_t* number);

/* Reads at most `room` bytes of a record. Returns how many. */
//@ op 4 shelf_read kind=read result=bytes
//@ args handle value buf length
ssize_t shelf_read(shelf* s, uint64_t number, void* data, size_t room);

/* How many records there are, or bytes in them. */
//@ op 5 shelf_count kind=stat result=number
//@ args handle value:what result
int shelf_count(shelf* s, enum shelf_what what, uint64_t* count);

/* A text that stays with the shelf until it is closed, for messages. Returns an error number. */
//@ op 6 shelf_label result=zero fails=code
//@ args handle text
int shelf_label(shelf* s, const char* label);

/* Makes what was added durable. */
//@ op 7 shelf_flush kind=flush result=zero
//@ args handle
int shelf_flush(shelf* s);

/* A copy of a shelf in another file, open. */
//@ op 8 shelf_copy kind=open result=handle
//@ args handle path flags:open
shelf* shelf_copy(shelf* s, const char* path, int flags);

//@ op 9 shelf_remove kind=change result=zero
//@ args path
int shelf_remove(const char* path);

/* Not described, so not recorded at this layer. */
const char* shelf_label_of(const shelf* s);

#ifdef __cplusplus
}
#endif
#endif
