/* SPDX-License-Identifier: MIT */
/*
 * The mpiio layer: MPI's own file interface, in the order of names. posix.h explains the language,
 * mpi.h what communicators, datatypes and infos are.
 *
 * handle is one MPI_File_open of one process, in numbers of the provider's own; file and path are
 * those of all other layers, so that filters and rebasing mean the same: resolve gives the file.
 * What stands before the path of a name (pvfs2:, ufs:) is file_system.
 *   MPI_File_open    size: what the file held before, if the trace tells; marks: FEIGN_CREATES
 *   reads, writes    size: bytes asked for; result: bytes moved. offset of the activity: the first byte
 *                    in the file, at the explicit offset or the individual file pointer, holes of the
 *                    view not counted; the argument offset: as given, in etypes of the view. pieces:
 *                    offset and bytes of each part, where the tracer tells several.
 *   shared, ordered  the activity's offset is FEIGN_NO_OFFSET: where they took place is not known.
 *   MPI_File_seek    offset: as given; result: the position that it came to, if the trace tells
 */
//@ layer mpiio "MPI's file interface" first=2000
//@ names amode MPI_MODE_CREATE=1 MPI_MODE_RDONLY=2 MPI_MODE_WRONLY=4 MPI_MODE_RDWR=8 MPI_MODE_DELETE_ON_CLOSE=16 MPI_MODE_UNIQUE_OPEN=32 MPI_MODE_EXCL=64 MPI_MODE_APPEND=128 MPI_MODE_SEQUENTIAL=256
//@ names whence MPI_SEEK_SET=600 MPI_SEEK_CUR=602 MPI_SEEK_END=604
//@ every site=text

//@ op 1 MPI_File_call_errhandler result=zero
//@ args fd value
int MPI_File_call_errhandler(MPI_File fh, int errorcode);

//@ op 2 MPI_File_close kind=close does=meet result=zero
//@ args fd
int MPI_File_close(MPI_File *fh);

//@ op 3 MPI_File_create_errhandler result=zero
//@ args - text
int MPI_File_create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *errhandler);

//@ op 4 MPI_File_delete kind=change result=zero
//@ args path text
//@ more file_system=text
int MPI_File_delete(const char *filename, MPI_Info info);

//@ op 5 MPI_File_get_amode result=zero
//@ args fd -
int MPI_File_get_amode(MPI_File fh, int *amode);

//@ op 6 MPI_File_get_atomicity result=zero
//@ args fd -
int MPI_File_get_atomicity(MPI_File fh, int *flag);

//@ op 7 MPI_File_get_byte_offset result=zero
//@ args fd value -
int MPI_File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset *disp);

//@ op 8 MPI_File_get_errhandler result=zero
//@ args fd text
int MPI_File_get_errhandler(MPI_File file, MPI_Errhandler *errhandler);

//@ op 9 MPI_File_get_group result=zero
//@ args fd text
int MPI_File_get_group(MPI_File fh, MPI_Group *group);

//@ op 10 MPI_File_get_info result=zero
//@ args fd text
int MPI_File_get_info(MPI_File fh, MPI_Info *info_used);

//@ op 11 MPI_File_get_position kind=seek result=zero
//@ args fd -
int MPI_File_get_position(MPI_File fh, MPI_Offset *offset);

//@ op 12 MPI_File_get_position_shared kind=seek result=zero
//@ args fd -
int MPI_File_get_position_shared(MPI_File fh, MPI_Offset *offset);

//@ op 13 MPI_File_get_size kind=stat result=zero
//@ args fd length
int MPI_File_get_size(MPI_File fh, MPI_Offset *size);

//@ op 14 MPI_File_get_type_extent result=zero
//@ args fd datatype -
int MPI_File_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Aint *extent);

//@ op 15 MPI_File_get_view result=zero
//@ args fd - datatype datatype -
int MPI_File_get_view(MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep);

//@ op 16 MPI_File_iread kind=read does=begin result=bytes
//@ args fd size=length count datatype request
//@ more pieces=list
int MPI_File_iread(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Request *request);

//@ op 17 MPI_File_iread_all kind=read does=meet result=bytes
//@ args fd size=length count datatype request
//@ more pieces=list
int MPI_File_iread_all(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Request *request);

//@ op 18 MPI_File_iread_at kind=read does=begin result=bytes
//@ args fd value size=length count datatype request
//@ more pieces=list
int MPI_File_iread_at(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype, MPI_Request *request);

//@ op 19 MPI_File_iread_at_all kind=read does=meet result=bytes
//@ args fd value size=length count datatype request
//@ more pieces=list
int MPI_File_iread_at_all(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype, MPI_Request *request);

//@ op 20 MPI_File_iread_shared kind=read does=begin result=bytes
//@ args fd size=length count datatype request
//@ more pieces=list
int MPI_File_iread_shared(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Request *request);

//@ op 21 MPI_File_iwrite kind=write does=begin result=bytes
//@ args fd size=length count datatype request
//@ more pieces=list
int MPI_File_iwrite(MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request);

//@ op 22 MPI_File_iwrite_all kind=write does=meet result=bytes
//@ args fd size=length count datatype request
//@ more pieces=list
int MPI_File_iwrite_all(MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request);

//@ op 23 MPI_File_iwrite_at kind=write does=begin result=bytes
//@ args fd value size=length count datatype request
//@ more pieces=list
int MPI_File_iwrite_at(MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request);

//@ op 24 MPI_File_iwrite_at_all kind=write does=meet result=bytes
//@ args fd value size=length count datatype request
//@ more pieces=list
int MPI_File_iwrite_at_all(MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request);

//@ op 25 MPI_File_iwrite_shared kind=write does=begin result=bytes
//@ args fd size=length count datatype request
//@ more pieces=list
int MPI_File_iwrite_shared(MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request);

//@ op 26 MPI_File_open kind=open does=meet result=zero
//@ args comm path flags:amode text fd
//@ more size=length file_system=text
int MPI_File_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh);

//@ op 27 MPI_File_preallocate kind=size does=meet result=zero
//@ args fd length
int MPI_File_preallocate(MPI_File fh, MPI_Offset size);

//@ op 28 MPI_File_read kind=read result=bytes
//@ args fd size=length count datatype -
//@ more pieces=list
int MPI_File_read(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 29 MPI_File_read_all kind=read does=meet result=bytes
//@ args fd size=length count datatype -
//@ more pieces=list
int MPI_File_read_all(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 30 MPI_File_read_all_begin kind=read does=meet result=bytes
//@ args fd size=length count datatype
//@ more pieces=list request=request
int MPI_File_read_all_begin(MPI_File fh, void *buf, int count, MPI_Datatype datatype);

//@ op 31 MPI_File_read_all_end kind=read result=bytes
//@ args fd buf -
int MPI_File_read_all_end(MPI_File fh, void *buf, MPI_Status *status);

//@ op 32 MPI_File_read_at kind=read result=bytes
//@ args fd value size=length count datatype -
//@ more pieces=list
int MPI_File_read_at(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 33 MPI_File_read_at_all kind=read does=meet result=bytes
//@ args fd value size=length count datatype -
//@ more pieces=list
int MPI_File_read_at_all(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 34 MPI_File_read_at_all_begin kind=read does=meet result=bytes
//@ args fd value size=length count datatype
//@ more pieces=list request=request
int MPI_File_read_at_all_begin(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype);

//@ op 35 MPI_File_read_at_all_end kind=read result=bytes
//@ args fd buf -
int MPI_File_read_at_all_end(MPI_File fh, void *buf, MPI_Status *status);

//@ op 36 MPI_File_read_ordered kind=read does=meet result=bytes
//@ args fd size=length count datatype -
//@ more pieces=list
int MPI_File_read_ordered(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 37 MPI_File_read_ordered_begin kind=read does=meet result=bytes
//@ args fd size=length count datatype
//@ more pieces=list request=request
int MPI_File_read_ordered_begin(MPI_File fh, void *buf, int count, MPI_Datatype datatype);

//@ op 38 MPI_File_read_ordered_end kind=read result=bytes
//@ args fd buf -
int MPI_File_read_ordered_end(MPI_File fh, void *buf, MPI_Status *status);

//@ op 39 MPI_File_read_shared kind=read result=bytes
//@ args fd size=length count datatype -
//@ more pieces=list
int MPI_File_read_shared(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 40 MPI_File_seek kind=seek result=position
//@ args fd offset flags:whence
int MPI_File_seek(MPI_File fh, MPI_Offset offset, int whence);

//@ op 41 MPI_File_seek_shared kind=seek does=meet result=position
//@ args fd offset flags:whence
int MPI_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence);

//@ op 42 MPI_File_set_atomicity result=zero
//@ args fd value
int MPI_File_set_atomicity(MPI_File fh, int flag);

//@ op 43 MPI_File_set_errhandler result=zero
//@ args fd text
int MPI_File_set_errhandler(MPI_File file, MPI_Errhandler errhandler);

//@ op 44 MPI_File_set_info result=zero
//@ args fd text
int MPI_File_set_info(MPI_File fh, MPI_Info info);

//@ op 45 MPI_File_set_size kind=size does=meet result=zero
//@ args fd length
int MPI_File_set_size(MPI_File fh, MPI_Offset size);

//@ op 46 MPI_File_set_view does=meet result=zero
//@ args fd offset datatype datatype text text
int MPI_File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep, MPI_Info info);

//@ op 47 MPI_File_sync kind=flush does=meet result=zero
//@ args fd
int MPI_File_sync(MPI_File fh);

//@ op 48 MPI_File_write kind=write result=bytes
//@ args fd size=length count datatype -
//@ more pieces=list
int MPI_File_write(MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 49 MPI_File_write_all kind=write does=meet result=bytes
//@ args fd size=length count datatype -
//@ more pieces=list
int MPI_File_write_all(MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 50 MPI_File_write_all_begin kind=write does=meet result=bytes
//@ args fd size=length count datatype
//@ more pieces=list request=request
int MPI_File_write_all_begin(MPI_File fh, const void *buf, int count, MPI_Datatype datatype);

//@ op 51 MPI_File_write_all_end kind=write result=bytes
//@ args fd buf -
int MPI_File_write_all_end(MPI_File fh, const void *buf, MPI_Status *status);

//@ op 52 MPI_File_write_at kind=write result=bytes
//@ args fd value size=length count datatype -
//@ more pieces=list
int MPI_File_write_at(MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 53 MPI_File_write_at_all kind=write does=meet result=bytes
//@ args fd value size=length count datatype -
//@ more pieces=list
int MPI_File_write_at_all(MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 54 MPI_File_write_at_all_begin kind=write does=meet result=bytes
//@ args fd value size=length count datatype
//@ more pieces=list request=request
int MPI_File_write_at_all_begin(MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype);

//@ op 55 MPI_File_write_at_all_end kind=write result=bytes
//@ args fd buf -
int MPI_File_write_at_all_end(MPI_File fh, const void *buf, MPI_Status *status);

//@ op 56 MPI_File_write_ordered kind=write does=meet result=bytes
//@ args fd size=length count datatype -
//@ more pieces=list
int MPI_File_write_ordered(MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ op 57 MPI_File_write_ordered_begin kind=write does=meet result=bytes
//@ args fd size=length count datatype
//@ more pieces=list request=request
int MPI_File_write_ordered_begin(MPI_File fh, const void *buf, int count, MPI_Datatype datatype);

//@ op 58 MPI_File_write_ordered_end kind=write result=bytes
//@ args fd buf -
int MPI_File_write_ordered_end(MPI_File fh, const void *buf, MPI_Status *status);

//@ op 59 MPI_File_write_shared kind=write result=bytes
//@ args fd size=length count datatype -
//@ more pieces=list
int MPI_File_write_shared(MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status);

//@ alias MPI_FileOpen MPI_File_open
//@ alias MPI_FileClose MPI_File_close
//@ alias MPI_FileRead MPI_File_read
//@ alias MPI_FileWrite MPI_File_write
