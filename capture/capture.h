/* SPDX-License-Identifier: MIT */
/**
 * @file capture.h
 * How a wrapper of any layer records a call. This is all that wrappers (generated or not) need; it
 * is C99, and links against libfeign-capture.so.
 *
 *   struct feign_call call;
 *   feign_call_begin(&call);                       // the clock, and one level deeper
 *   int result = PMPI_Send(buf, count, type, dest, tag, comm);
 *   struct feign_record r;
 *   if (feign_call_end(&call, &r, FEIGN_CAPTURE_OP(FEIGN_CAPTURE_MPI, 12), result, 0)) {
 *     feign_put_value(&r, dest);                   // the kept arguments, by the slots of the
 * layer's feign_put_text_value(&r, name, strlen(name));  // description, values in order from
 * values[0] feign_record_end(&r);
 *   }
 *
 * - Every begin has its end, on the same thread; what other layers do in between is recorded one
 * level deeper. A wrapper that is left by longjmp or an exception is put right by the next begin.
 * - op is the op's number in its layer's description, not its id.
 * - result: >= 0, or -errno. It is the result that the layer's description promises.
 * - Between feign_call_end and feign_record_end a wrapper calls nothing that could be recorded: get
 *   names and numbers before. Reading memory, and the put functions, are fine.
 * - A wrapper that wants to add fields which it only has before the call keeps them in variables.
 * - Nothing here allocates, locks, fails or changes errno. A text longer than 4096 bytes is cut,
 * more than FEIGN_MOST_VALUES are left out.
 * - If feign_call_end returns 0, nothing is to be recorded (paused, left out, no room): go on.
 * - feign_capture_quiet(1) … feign_capture_quiet(0): what this thread calls in between is not
 *   recorded (calls that a wrapper makes for itself, to ask for a name say).
 */
#ifndef FEIGN_CAPTURE_H
#define FEIGN_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FEIGN_MOST_VALUES 4096

struct feign_call {
  uint64_t start; /* ticks */
  uint32_t level; /* how many calls it is in, as far as they are kept */
  uint32_t waits; /* feign_call_waits() */
};

struct feign_record {
  uint8_t *start, *at, *end; /* where it is built; `end` leaves room for one more number */
  void* lane;                /* the library's own */
  uint64_t ticks;            /* when the call ended */
  uint32_t values, busy;
};

void feign_call_begin(struct feign_call* call);
/** Around a function of the program's own that a recorded call calls (an attribute's destructor, an
 * error handler): what it does is not done by that call, and is recorded as if it followed it. */
void feign_call_back_begin(struct feign_call* call);
void feign_call_back_end(struct feign_call* call);
/** @p room: bytes that texts and lists take, each with 3 and each number with 10; 0: not known, no
 * more than 8 KiB. */
int feign_call_end(struct feign_call* call, struct feign_record* r, uint16_t op, int64_t result,
                   uint32_t room);
void feign_record_end(struct feign_record* r);
/** Which chunk the record is in, for as long as this memory lives and in what is forked of it, and
 * where that begins: a text that was put into it may be put as a number (format.h). */
uint64_t feign_record_chunk(const struct feign_record* r, const uint8_t** begin);
/** After feign_call_begin: other nodes may keep this call waiting, and what it does to files is its
 * own business (a message, a barrier). `feign discover` takes a node in it for one that waits. */
void feign_call_waits(struct feign_call* call, const char* name);
void feign_capture_quiet(int quiet);
/** The process's rank in MPI_COMM_WORLD, once it is known; */
void feign_capture_rank(int rank);
/** What is known of this recording on this host; 0: nothing is being recorded. */
struct feign_control* feign_capture_control(void);
/** The number of a third party's layer, for FEIGN_CAPTURE_OP(); 0: it is not being recorded. */
uint32_t feign_capture_layer(const char* name);

/* Numbers at any address, of any type. */
typedef uint64_t __attribute__((aligned(1), may_alias)) feign_loose64;
typedef uint16_t __attribute__((aligned(1), may_alias)) feign_loose16;

/* ---- fields -----------------------------------------------------------------------------------
 */

static inline void feign_put_number(struct feign_record* r, unsigned field, uint64_t value) {
  if (r->at >= r->end) return;
  const unsigned bytes = value == 0 ? 0 : (unsigned)(71 - __builtin_clzll(value)) / 8;
  r->at[0] = (uint8_t)(field << 4 | bytes);
  /* All eight, whatever is needed: no branch. `end` leaves room. */
  *(feign_loose64*)(r->at + 1) = value;
  r->at += 1 + bytes;
}

/* Of a record that has room for all of it: up to 65,535 bytes. */
static inline void feign_put_whole_text(struct feign_record* r, unsigned field, const char* text,
                                        size_t length) {
  if (r->at >= r->end || (size_t)(r->end - r->at) < length) return;
  r->at[0] = (uint8_t)(field << 4);
  r->at[1] = (uint8_t)length;
  r->at[2] = (uint8_t)(length >> 8);
  uint8_t* to = r->at + 3;
  for (size_t i = 0; i < length; ++i) {
    to[i] = (uint8_t)text[i];
    __asm__ volatile("" ::: "memory"); /* not to become a call of memcpy, which has vectors */
  }
  r->at = to + length;
}

static inline void feign_put_text(struct feign_record* r, unsigned field, const char* text,
                                  size_t length) {
  feign_put_whole_text(r, field, text, length < 4096 ? length : 4096);
}

/** A descriptor as the call had it: -100 is the working directory where a directory is wanted. */
static inline void feign_put_fd(struct feign_record* r, unsigned field, int fd) {
  feign_put_number(r, field, (uint32_t)fd + 1u);
}
static inline void feign_put_dir(struct feign_record* r, unsigned field, int fd) {
  feign_put_number(r, field, fd == -100 ? 0xFFFFFF00u : (uint32_t)fd + 1u);
}
/** A handle of a layer that numbers its own: from 1, for the process's life. */
static inline void feign_put_handle(struct feign_record* r, uint32_t handle) {
  feign_put_number(r, FEIGN_FIELD_HANDLE, handle);
}
static inline void feign_put_handle2(struct feign_record* r, uint32_t handle) {
  feign_put_number(r, FEIGN_FIELD_HANDLE2, handle);
}
static inline void feign_put_path(struct feign_record* r, const char* path, size_t length) {
  feign_put_text(r, FEIGN_FIELD_PATH, path, length);
}
static inline void feign_put_path2(struct feign_record* r, const char* path, size_t length) {
  feign_put_text(r, FEIGN_FIELD_PATH2, path, length);
}
static inline void feign_put_offset(struct feign_record* r, uint64_t offset) {
  feign_put_number(r, FEIGN_FIELD_OFFSET, offset);
}
static inline void feign_put_length(struct feign_record* r, uint64_t length) {
  feign_put_number(r, FEIGN_FIELD_LENGTH, length);
}
static inline void feign_put_flags(struct feign_record* r, uint32_t flags) {
  feign_put_number(r, FEIGN_FIELD_FLAGS, flags);
}
static inline void feign_put_mode(struct feign_record* r, uint32_t mode) {
  feign_put_number(r, FEIGN_FIELD_MODE, mode);
}
static inline void feign_put_value(struct feign_record* r, uint64_t value) {
  if (r->values++ < FEIGN_MOST_VALUES) feign_put_number(r, FEIGN_FIELD_VALUE, value);
}
static inline void feign_put_text_value(struct feign_record* r, const char* text, size_t length) {
  if (r->values++ < FEIGN_MOST_VALUES) feign_put_text(r, FEIGN_FIELD_TEXT_VALUE, text, length);
}
/** values[index], when they do not come in order: those before it that are missing are 0. */
static inline void feign_put_value_at(struct feign_record* r, uint32_t index, uint64_t value) {
  while (r->values < index) feign_put_value(r, 0);
  feign_put_value(r, value);
}

#ifdef __cplusplus
}
#endif
#endif
