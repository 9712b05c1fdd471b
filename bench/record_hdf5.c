/* SPDX-License-Identifier: MIT */
/* record_hdf5 FILE: an HDF5 file of 48 chunked data sets, written and read back row by row; prints
 * the seconds it took. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kSets = 48, kRows = 256, kColumns = 512 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  static double row[kColumns];
  const double begin = now();
  double sum = 0, want = 0;
  for (int writes = 1; writes >= 0; --writes) {
    const hid_t file = writes ? H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                              : H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0) return 1;
    for (int s = 0; s < kSets; ++s) {
      char name[16];
      snprintf(name, sizeof name, "set%d", s);
      const hsize_t all[2] = {kRows, kColumns}, chunk[2] = {8, kColumns}, one[2] = {1, kColumns};
      const hid_t space = H5Screate_simple(2, all, NULL), memory = H5Screate_simple(2, one, NULL);
      const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_chunk(how, 2, chunk);
      const hid_t set = writes ? H5Dcreate(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how,
                                           H5P_DEFAULT)
                               : H5Dopen(file, name, H5P_DEFAULT);
      if (set < 0) return 1;
      for (hsize_t r = 0; r < kRows; ++r) {
        const hsize_t at[2] = {r, 0};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, one, NULL);
        if (writes) {
          for (int i = 0; i < kColumns; ++i) row[i] = s + (double)r * i;
          want += row[kColumns - 1];
          if (H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, row) < 0) return 1;
        } else {
          if (H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, row) < 0) return 1;
          sum += row[kColumns - 1];
        }
      }
      H5Dclose(set);
      H5Pclose(how);
      H5Sclose(space);
      H5Sclose(memory);
    }
    H5Fclose(file);
  }
  if (sum != want) return 1; /* the work was done */
  printf("%.6f\n", now() - begin);
  return 0;
}
