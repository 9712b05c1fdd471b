! SPDX-License-Identifier: MIT
! A Fortran program: messages, a collective call, a derived datatype, MPI-IO, a request of its own. `use mpi`, or with
! -DHEADER mpif.h, with -DREADY a collective call that is made ready once (Open MPI's extension). fortran FILE
program fortran
#ifndef HEADER
  use mpi
#endif
  implicit none
#ifdef HEADER
  include 'mpif.h'
#endif
  integer :: rank, ranks, error, i, file, column, request(2), got
  integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2)
  integer(kind=MPI_OFFSET_KIND) :: at
  double precision :: values(10, 10), total, mine
  character(len=4096) :: name
  integer(kind=MPI_ADDRESS_KIND), parameter :: extra = 7
  external :: query, released, cancelled
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call get_command_argument(1, name)
  values = rank
  call MPI_Type_vector(10, 1, 10, MPI_DOUBLE_PRECISION, column, error)
  call MPI_Type_commit(column, error)
  do i = 1, 5
    call MPI_Irecv(values(1, 1), 1, column, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, request(1), error)
    call MPI_Isend(values(2, 1), 1, column, mod(rank + 1, ranks), i, MPI_COMM_WORLD, request(2), error)
    call MPI_Waitall(2, request, statuses, error)
    mine = rank
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  end do
  call MPI_File_open(MPI_COMM_WORLD, trim(name), ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file, error)
  at = rank * 800
  call MPI_File_write_at_all(file, at, values, 100, MPI_DOUBLE_PRECISION, status, error)
  call MPI_File_sync(file, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_File_sync(file, error)
  call MPI_File_read_at(file, at, values, 100, MPI_DOUBLE_PRECISION, status, error)
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, got, error)
  if (got /= 100) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  call MPI_File_close(file, error)
  call MPI_Type_free(column, error)
  call MPI_Grequest_start(query, released, cancelled, extra, request(1), error)
  call MPI_Cancel(request(1), error)
  call MPI_Grequest_complete(request(1), error)
  call MPI_Wait(request(1), status, error)
  if (status(MPI_TAG) /= 17) call MPI_Abort(MPI_COMM_WORLD, 4, error)
#ifdef READY
  call MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, request(1), error)
  do i = 1, 3
    call MPI_Start(request(1), error)
    call MPI_Wait(request(1), status, error)
  end do
  call MPI_Request_free(request(1), error)
#endif
  call MPI_Finalize(error)
end program fortran

subroutine query(extra, status, error)
  include 'mpif.h'
  integer(kind=MPI_ADDRESS_KIND) :: extra
  integer :: status(MPI_STATUS_SIZE), error
  if (extra == 7) status(MPI_TAG) = 17
  error = MPI_SUCCESS
end subroutine query

subroutine released(extra, error)
  include 'mpif.h'
  integer(kind=MPI_ADDRESS_KIND) :: extra
  integer :: error
  if (extra == 7) error = MPI_SUCCESS
end subroutine released

subroutine cancelled(extra, complete, error)
  include 'mpif.h'
  integer(kind=MPI_ADDRESS_KIND) :: extra
  logical :: complete
  integer :: error
  error = MPI_SUCCESS
  if (extra /= 7 .or. complete) error = MPI_ERR_OTHER
end subroutine cancelled
