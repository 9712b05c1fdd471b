/* SPDX-License-Identifier: MIT */
/* The errno that is closest to what MPI says went wrong: recorded, and compared in a replay. */
#ifndef FEIGN_CAPTURE_MPI_ERRNO_H
#define FEIGN_CAPTURE_MPI_ERRNO_H

#include <errno.h>
#include <mpi.h>

/* Of a class of errors. */
static inline int feign_errno_of_mpi(int error_class) {
  switch (error_class) {
    case MPI_SUCCESS:
      return 0;
    case MPI_ERR_NO_SUCH_FILE:
      return ENOENT;
    case MPI_ERR_FILE_EXISTS:
      return EEXIST;
    case MPI_ERR_ACCESS:
      return EACCES;
    case MPI_ERR_NO_SPACE:
      return ENOSPC;
    case MPI_ERR_QUOTA:
      return EDQUOT;
    case MPI_ERR_READ_ONLY:
      return EROFS;
    case MPI_ERR_FILE_IN_USE:
      return EBUSY;
    case MPI_ERR_BAD_FILE:
      return ENAMETOOLONG;
    case MPI_ERR_FILE:
      return EBADF;
    case MPI_ERR_TRUNCATE:
      return EMSGSIZE;
    case MPI_ERR_NO_MEM:
      return ENOMEM;
    case MPI_ERR_UNSUPPORTED_OPERATION:
    case MPI_ERR_UNSUPPORTED_DATAREP:
      return EOPNOTSUPP;
    case MPI_ERR_AMODE:
    case MPI_ERR_ARG:
    case MPI_ERR_COMM:
    case MPI_ERR_COUNT:
    case MPI_ERR_TYPE:
    case MPI_ERR_TAG:
    case MPI_ERR_RANK:
    case MPI_ERR_ROOT:
    case MPI_ERR_OP:
    case MPI_ERR_NOT_SAME:
      return EINVAL;
    default:
      return EIO;
  }
}

#endif
