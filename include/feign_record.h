/* SPDX-License-Identifier: MIT */
/**
 * @file feign_record.h
 * For programs that want `feign record` to record a part of their run only. Including this needs no
 * library: where the program is not being recorded, these do nothing.
 *
 *   feign_record_pause();     // from here on only what later calls need is recorded: opens,
 * closes, forks … … feign_record_resume();
 *
 * It is for the whole recording, all of its processes. `feign record --paused` begins paused.
 */
#ifndef FEIGN_RECORD_H
#define FEIGN_RECORD_H

#ifdef __cplusplus
extern "C" {
#endif

/** In libfeign-capture.so: pause (1) or go on (0). */
extern void feign_capture_pause(int paused) __attribute__((weak));

static inline void feign_record_pause(void) {
  if (feign_capture_pause) feign_capture_pause(1);
}

static inline void feign_record_resume(void) {
  if (feign_capture_pause) feign_capture_pause(0);
}

#ifdef __cplusplus
}
#endif
#endif
