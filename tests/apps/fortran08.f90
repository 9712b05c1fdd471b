! SPDX-License-Identifier: MIT
! What fortran.f90 does, as far as it needs no callback, with `use mpi_f08`: handles of types of their own, errors that
! are not asked for. fortran08 FILE
program fortran08
  use mpi_f08
  implicit none
  integer :: rank, ranks, i, got
  type(MPI_Datatype) :: column
  type(MPI_File) :: file
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status
  integer(kind=MPI_OFFSET_KIND) :: at
  double precision :: values(10, 10), total, mine
  character(len=4096) :: name
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(1, name)
  values = rank
  call MPI_Type_vector(10, 1, 10, MPI_DOUBLE_PRECISION, column)
  call MPI_Type_commit(column)
  do i = 1, 5
    call MPI_Irecv(values(1, 1), 1, column, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(values(2, 1), 1, column, mod(rank + 1, ranks), i, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    mine = rank
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  end do
  call MPI_File_open(MPI_COMM_WORLD, trim(name), ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file)
  at = rank * 800
  call MPI_File_write_at_all(file, at, values, 100, MPI_DOUBLE_PRECISION, status)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_read_at(file, at, values, 100, MPI_DOUBLE_PRECISION, status)
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, got)
  if (got /= 100) call MPI_Abort(MPI_COMM_WORLD, 3)
  call MPI_File_close(file)
  call MPI_Type_free(column)
  call MPI_Finalize()
end program fortran08
