/* SPDX-License-Identifier: MIT */
/*
 * The mpi layer: the calls of MPI 3.1 and of those before it that programs still make, in the order
 * of their names, one description a call. posix.h explains the language. MPI-IO is mpiio.h.
 *
 * What an argument is in an activity:
 *   size       bytes of the buffer that the call sends from, or works on; recv_size those of the one
 *              it receives into. 0 where the trace does not tell (MPI_Recv, often).
 *   rank       in MPI_COMM_WORLD, whatever the communicator
 *   comm       a text, the same on all ranks: the name, or #N, and the ranks in it in their order:
 *              WORLD{0-3}, #2{3,0-1}; a bare number is one that the trace does not explain.
 *              Two groups: #5{0-1|2-3}. Neighbours, where it has them, follow the name: #6:cart(2,2;1,0){0-3},
 *              graph(index;edges), dist(in,out,sources,destinations of each rank in turn). Persistent collective
 *              calls, which each rank starts in an order of its own, have one each: WORLD/3{0-3} the third of WORLD
 *              (up to 64, then from 1 again).
 *   datatype   a text: a name such as MPI_INT, or how it was made, as MPI_Type_get_contents() tells it:
 *              COMBINER(integers;addresses;datatypes), vector(809,1,810;;MPI_DOUBLE). A bare number
 *              is one that the trace does not explain.
 *   request    a number, the tracer's own; several: a list. Bit 62 says that the call completed it. Two more
 *              numbers for each receive by wildcard that it completed, and each that MPI_Cancel came too late
 *              for: bit 61 and the request, bit 60, the source << 32 and the tag.
 *              feign record has a call on more than 1,364 requests several times in the trace, and of more than
 *              512 that are looked at again and again those that are over, and others as far as 512.
 *   flag       what a test or probe found: 0 or 1
 *   list       counts for each member, as given; of alltoallv those sent, then those received; of alltoallw bytes
 *   group      a text, ranks as in a communicator: {0-2,5}
 *   message    a text; the same for MPI_Mprobe and the MPI_Mrecv that takes it
 *   info       a text: key=value;key=value with %, = and ; as %25, %3D and %3B
 *   text       the tracer's own name of any other object
 *   site       FILE:LINE of the call in the program
 * What a call does about other ranks, `does=`; whoever makes calls or orders them goes by this, not by
 * names, and a call on a communicator or window that has data or a request must say it:
 *   send, receive, send-receive   a message; a receive may be that of a message which a probe found
 *   keep-send, keep-receive       the same, each time that its persistent request is started. Of collective calls each
 *                                 start is the call that waits for nobody, which says what makes such requests:
 *                                 //@ persistent NAME, with an MPI_Info before the request (an extension of Open MPI's).
 *   probe                         looks for a message
 *   begin                         begins something else that its request ends
 *   start                         starts persistent requests
 *   end, end-some                 ends its requests: all of them, or those marked as completed
 *   request                       looks at a request, frees it, cancels it
 *   meet                          nobody goes on before all of the communicator have come; of a file, all
 *                                 that opened it. If it has a request, that is what ends then.
 *   from-root, to-root            nobody goes on before the root has come; the root not before all
 *   upwards                       nobody goes on before all of lower rank
 *   neighbours                    nobody goes on before those that are next to it
 *   make-comm, make-window        as meet; and a communicator or window is made
 *   meet-window, window           as meet, of a window's ranks; another call on a window
 *   make-type                     makes a datatype ready to be used
 *   init, finalize                all ranks come to it; a replayer's MPI is there before a replay, and after it
 *   nothing                       none of this
 *
 * A number that the trace does not tell is FEIGN_UNKNOWN, a text 0. The result is 0 or -errno. Calls
 * that make, free or change objects, which others need, are of kind process.
 */
//@ layer mpi "MPI's messages, collectives, communicators, groups, datatypes, requests and windows" first=1000
//@ every site=text

//@ op 1 MPI_Abort kind=process result=zero
//@ args comm value
int MPI_Abort(MPI_Comm comm, int errorcode);

//@ op 2 MPI_Accumulate does=window result=zero
//@ args size=length count datatype rank value count datatype text text
int MPI_Accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win);

//@ op 3 MPI_Add_error_class result=zero
//@ args -
int MPI_Add_error_class(int *errorclass);

//@ op 4 MPI_Add_error_code result=zero
//@ args value -
int MPI_Add_error_code(int errorclass, int *errorcode);

//@ op 5 MPI_Add_error_string result=zero
//@ args value text
int MPI_Add_error_string(int errorcode, const char *string);

//@ op 6 MPI_Address result=zero
//@ capture none
//@ args - -
int MPI_Address(void *location, MPI_Aint *address);

//@ op 7 MPI_Allgather does=meet result=zero
//@ args size=length count datatype recv_size=value count datatype comm
int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm);

//@ op 8 MPI_Allgatherv does=meet result=zero
//@ args size=length count datatype recv_size=value list - datatype comm
int MPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm);

//@ op 9 MPI_Alloc_mem result=zero
//@ args value text -
int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr);

//@ op 10 MPI_Allreduce does=meet result=zero
//@ args size=length buf count datatype text comm
int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

//@ op 11 MPI_Alltoall does=meet result=zero
//@ args size=length count datatype recv_size=value count datatype comm
int MPI_Alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm);

//@ op 12 MPI_Alltoallv does=meet result=zero
//@ args size=length list - datatype recv_size=value - - datatype comm
int MPI_Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm);

//@ op 13 MPI_Alltoallw does=meet result=zero
//@ args size=length list - - recv_size=value - - - comm
int MPI_Alltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm);

//@ op 14 MPI_Attr_delete result=zero
//@ args comm value
int MPI_Attr_delete(MPI_Comm comm, int keyval);

//@ op 15 MPI_Attr_get result=zero
//@ args comm value - -
int MPI_Attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag);

//@ op 16 MPI_Attr_put result=zero
//@ args comm value -
int MPI_Attr_put(MPI_Comm comm, int keyval, void *attribute_val);

//@ op 17 MPI_Barrier does=meet result=zero
//@ args comm
int MPI_Barrier(MPI_Comm comm);

//@ op 18 MPI_Bcast does=from-root result=zero
//@ args size=length count datatype rank comm
int MPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);

//@ op 19 MPI_Bsend does=send result=zero
//@ args size=length count datatype rank tag comm
int MPI_Bsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);

//@ op 20 MPI_Bsend_init does=keep-send result=zero
//@ args size=length count datatype rank tag comm request
int MPI_Bsend_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);

//@ op 21 MPI_Buffer_attach kind=process result=zero
//@ args size=length value
int MPI_Buffer_attach(void *buffer, int size);

//@ op 22 MPI_Buffer_detach kind=process result=zero
//@ args - -
int MPI_Buffer_detach(void *buffer, int *size);

//@ op 23 MPI_Cancel does=request result=zero
//@ args request
int MPI_Cancel(MPI_Request *request);

//@ op 24 MPI_Cart_coords result=zero
//@ args comm rank value -
int MPI_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[]);

//@ op 25 MPI_Cart_create kind=process does=make-comm result=zero
//@ args comm value - - value comm
int MPI_Cart_create(MPI_Comm old_comm, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *comm_cart);

//@ op 26 MPI_Cart_get result=zero
//@ args comm value - - -
int MPI_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]);

//@ op 27 MPI_Cart_map result=zero
//@ args comm value - - -
int MPI_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank);

//@ op 28 MPI_Cart_rank result=zero
//@ args comm - -
int MPI_Cart_rank(MPI_Comm comm, const int coords[], int *rank);

//@ op 29 MPI_Cart_shift result=zero
//@ args comm value value - -
int MPI_Cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest);

//@ op 30 MPI_Cart_sub kind=process does=make-comm result=zero
//@ args comm - comm
int MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *new_comm);

//@ op 31 MPI_Cartdim_get result=zero
//@ args comm -
int MPI_Cartdim_get(MPI_Comm comm, int *ndims);

//@ op 32 MPI_Close_port kind=process result=zero
//@ args text
int MPI_Close_port(const char *port_name);

//@ op 33 MPI_Comm_accept kind=process result=zero
//@ args text text rank comm comm
int MPI_Comm_accept(const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm);

//@ op 34 MPI_Comm_call_errhandler result=zero
//@ args comm value
int MPI_Comm_call_errhandler(MPI_Comm comm, int errorcode);

//@ op 35 MPI_Comm_compare result=zero
//@ args comm comm -
int MPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result);

//@ op 36 MPI_Comm_connect kind=process result=zero
//@ args text text rank comm comm
int MPI_Comm_connect(const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm);

//@ op 37 MPI_Comm_create kind=process does=make-comm result=zero
//@ args comm text comm
int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm);

//@ op 38 MPI_Comm_create_errhandler result=zero
//@ args - text
int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);

//@ op 39 MPI_Comm_create_group kind=process result=zero
//@ args comm text tag comm
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm);

//@ op 40 MPI_Comm_create_keyval result=zero
//@ args - - - -
int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn, MPI_Comm_delete_attr_function *comm_delete_attr_fn, int *comm_keyval, void *extra_state);

//@ op 41 MPI_Comm_delete_attr result=zero
//@ args comm value
int MPI_Comm_delete_attr(MPI_Comm comm, int comm_keyval);

//@ op 42 MPI_Comm_disconnect kind=process result=zero
//@ args comm
int MPI_Comm_disconnect(MPI_Comm *comm);

//@ op 43 MPI_Comm_dup kind=process does=make-comm result=zero
//@ args comm comm
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm);

//@ op 44 MPI_Comm_dup_with_info kind=process does=make-comm result=zero
//@ args comm text comm
int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm);

//@ op 45 MPI_Comm_free kind=process result=zero
//@ args comm
int MPI_Comm_free(MPI_Comm *comm);

//@ op 46 MPI_Comm_free_keyval result=zero
//@ args -
int MPI_Comm_free_keyval(int *comm_keyval);

//@ op 47 MPI_Comm_get_attr result=zero
//@ args comm value - -
int MPI_Comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag);

//@ op 48 MPI_Comm_get_errhandler result=zero
//@ args comm text
int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *erhandler);

//@ op 49 MPI_Comm_get_info result=zero
//@ args comm text
int MPI_Comm_get_info(MPI_Comm comm, MPI_Info *info_used);

//@ op 50 MPI_Comm_get_name result=zero
//@ args comm - -
int MPI_Comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen);

//@ op 51 MPI_Comm_get_parent result=zero
//@ args comm
int MPI_Comm_get_parent(MPI_Comm *parent);

//@ op 52 MPI_Comm_group kind=process result=zero
//@ args comm text
int MPI_Comm_group(MPI_Comm comm, MPI_Group *group);

//@ op 53 MPI_Comm_idup kind=process does=make-comm result=zero
//@ args comm comm request
int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);

//@ op 54 MPI_Comm_join kind=process result=zero
//@ args value comm
int MPI_Comm_join(int fd, MPI_Comm *intercomm);

//@ op 55 MPI_Comm_rank result=zero
//@ capture none
//@ args comm -
int MPI_Comm_rank(MPI_Comm comm, int *rank);

//@ op 56 MPI_Comm_remote_group result=zero
//@ args comm text
int MPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group);

//@ op 57 MPI_Comm_remote_size result=zero
//@ args comm -
int MPI_Comm_remote_size(MPI_Comm comm, int *size);

//@ op 58 MPI_Comm_set_attr result=zero
//@ args comm value -
int MPI_Comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val);

//@ op 59 MPI_Comm_set_errhandler result=zero
//@ args comm text
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler);

//@ op 60 MPI_Comm_set_info result=zero
//@ args comm text
int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info);

//@ op 61 MPI_Comm_set_name result=zero
//@ args comm text
int MPI_Comm_set_name(MPI_Comm comm, const char *comm_name);

//@ op 62 MPI_Comm_size result=zero
//@ capture none
//@ args comm -
int MPI_Comm_size(MPI_Comm comm, int *size);

//@ op 63 MPI_Comm_spawn kind=process result=zero
//@ args text - value text rank comm comm -
int MPI_Comm_spawn(const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[]);

//@ op 64 MPI_Comm_spawn_multiple kind=process result=zero
//@ args count - - - - rank comm comm -
int MPI_Comm_spawn_multiple(int count, char *array_of_commands[], char **array_of_argv[], const int array_of_maxprocs[], const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[]);

//@ op 65 MPI_Comm_split kind=process does=make-comm result=zero
//@ args comm value value comm
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm);

//@ op 66 MPI_Comm_split_type kind=process does=make-comm result=zero
//@ args comm value value text comm
int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm);

//@ op 67 MPI_Comm_test_inter result=zero
//@ args comm -
int MPI_Comm_test_inter(MPI_Comm comm, int *flag);

//@ op 68 MPI_Compare_and_swap does=window result=zero
//@ args size=length - - datatype rank value text
int MPI_Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win);

//@ op 69 MPI_Dims_create result=zero
//@ args value value -
int MPI_Dims_create(int nnodes, int ndims, int dims[]);

//@ op 70 MPI_Dist_graph_create kind=process does=make-comm result=zero
//@ args comm value - - - - text value comm
int MPI_Dist_graph_create(MPI_Comm comm_old, int n, const int nodes[], const int degrees[], const int targets[], const int weights[], MPI_Info info, int reorder, MPI_Comm *newcomm);

//@ op 71 MPI_Dist_graph_create_adjacent kind=process does=make-comm result=zero
//@ args comm value - - value - - text value comm
int MPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[], int outdegree, const int destinations[], const int destweights[], MPI_Info info, int reorder, MPI_Comm *comm_dist_graph);

//@ op 72 MPI_Dist_graph_neighbors result=zero
//@ args comm value - - value - -
int MPI_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree, int destinations[], int destweights[]);

//@ op 73 MPI_Dist_graph_neighbors_count result=zero
//@ args comm - - -
int MPI_Dist_graph_neighbors_count(MPI_Comm comm, int *inneighbors, int *outneighbors, int *weighted);

//@ op 74 MPI_Errhandler_create kind=process result=zero
//@ args - text
int MPI_Errhandler_create(MPI_Handler_function *function, MPI_Errhandler *errhandler);

//@ op 75 MPI_Errhandler_free kind=process result=zero
//@ args text
int MPI_Errhandler_free(MPI_Errhandler *errhandler);

//@ op 76 MPI_Errhandler_get result=zero
//@ args comm text
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);

//@ op 77 MPI_Errhandler_set result=zero
//@ args comm text
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);

//@ op 78 MPI_Error_class result=zero
//@ args value -
int MPI_Error_class(int errorcode, int *errorclass);

//@ op 79 MPI_Error_string result=zero
//@ args value - -
int MPI_Error_string(int errorcode, char *string, int *resultlen);

//@ op 80 MPI_Exscan does=upwards result=zero
//@ args size=length buf count datatype text comm
int MPI_Exscan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

//@ op 81 MPI_Fetch_and_op does=window result=zero
//@ args size=length - datatype rank value text text
int MPI_Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win);

//@ op 82 MPI_Finalize kind=process does=finalize result=zero
int MPI_Finalize(void);

//@ op 83 MPI_Finalized kind=process result=zero
//@ capture none
//@ args -
int MPI_Finalized(int *flag);

//@ op 84 MPI_Free_mem result=zero
//@ args -
int MPI_Free_mem(void *base);

//@ op 85 MPI_Gather does=to-root result=zero
//@ args size=length count datatype recv_size=value count datatype rank comm
int MPI_Gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);

//@ op 86 MPI_Gatherv does=to-root result=zero
//@ args size=length count datatype recv_size=value list - datatype rank comm
int MPI_Gatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm);

//@ op 87 MPI_Get does=window result=zero
//@ args size=length count datatype rank value count datatype text
int MPI_Get(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win);

//@ op 88 MPI_Get_accumulate does=window result=zero
//@ args size=length count datatype - count datatype rank value count datatype text text
int MPI_Get_accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, void *result_addr, int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win);

//@ op 89 MPI_Get_address result=zero
//@ capture none
//@ args - -
int MPI_Get_address(const void *location, MPI_Aint *address);

//@ op 90 MPI_Get_count result=zero
//@ capture none
//@ args - datatype -
int MPI_Get_count(const MPI_Status *status, MPI_Datatype datatype, int *count);

//@ op 91 MPI_Get_elements result=zero
//@ capture none
//@ args - datatype -
int MPI_Get_elements(const MPI_Status *status, MPI_Datatype datatype, int *count);

//@ op 92 MPI_Get_elements_x result=zero
//@ capture none
//@ args - datatype -
int MPI_Get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count);

//@ op 93 MPI_Get_library_version result=zero
//@ args - -
int MPI_Get_library_version(char *version, int *resultlen);

//@ op 94 MPI_Get_processor_name result=zero
//@ args - -
int MPI_Get_processor_name(char *name, int *resultlen);

//@ op 95 MPI_Get_version result=zero
//@ args - -
int MPI_Get_version(int *version, int *subversion);

//@ op 96 MPI_Graph_create kind=process does=make-comm result=zero
//@ args comm value - - value comm
int MPI_Graph_create(MPI_Comm comm_old, int nnodes, const int index[], const int edges[], int reorder, MPI_Comm *comm_graph);

//@ op 97 MPI_Graph_get result=zero
//@ args comm value value - -
int MPI_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int index[], int edges[]);

//@ op 98 MPI_Graph_map result=zero
//@ args comm value - - -
int MPI_Graph_map(MPI_Comm comm, int nnodes, const int index[], const int edges[], int *newrank);

//@ op 99 MPI_Graph_neighbors result=zero
//@ args comm rank value -
int MPI_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[]);

//@ op 100 MPI_Graph_neighbors_count result=zero
//@ args comm rank -
int MPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *nneighbors);

//@ op 101 MPI_Graphdims_get result=zero
//@ args comm - -
int MPI_Graphdims_get(MPI_Comm comm, int *nnodes, int *nedges);

//@ op 102 MPI_Grequest_complete does=request result=zero
//@ args request
int MPI_Grequest_complete(MPI_Request request);

//@ op 103 MPI_Grequest_start does=begin result=zero
//@ args - - - - request
int MPI_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn, MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request);

//@ op 104 MPI_Group_compare result=zero
//@ args text text -
int MPI_Group_compare(MPI_Group group1, MPI_Group group2, int *result);

//@ op 105 MPI_Group_difference kind=process result=zero
//@ args text text text
int MPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup);

//@ op 106 MPI_Group_excl kind=process result=zero
//@ args text value - text
int MPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup);

//@ op 107 MPI_Group_free kind=process result=zero
//@ args text
int MPI_Group_free(MPI_Group *group);

//@ op 108 MPI_Group_incl kind=process result=zero
//@ args text value - text
int MPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup);

//@ op 109 MPI_Group_intersection kind=process result=zero
//@ args text text text
int MPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup);

//@ op 110 MPI_Group_range_excl kind=process result=zero
//@ args text value - text
int MPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup);

//@ op 111 MPI_Group_range_incl kind=process result=zero
//@ args text value - text
int MPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup);

//@ op 112 MPI_Group_rank result=zero
//@ args text -
int MPI_Group_rank(MPI_Group group, int *rank);

//@ op 113 MPI_Group_size result=zero
//@ args text -
int MPI_Group_size(MPI_Group group, int *size);

//@ op 114 MPI_Group_translate_ranks result=zero
//@ args text value - text -
int MPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[]);

//@ op 115 MPI_Group_union kind=process result=zero
//@ args text text text
int MPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup);

//@ op 116 MPI_Iallgather does=meet result=zero
//@ args size=length count datatype recv_size=value count datatype comm request
int MPI_Iallgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Allgather_init

//@ op 117 MPI_Iallgatherv does=meet result=zero
//@ args size=length count datatype recv_size=value list - datatype comm request
int MPI_Iallgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Allgatherv_init

//@ op 118 MPI_Iallreduce does=meet result=zero
//@ args size=length buf count datatype text comm request
int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Allreduce_init

//@ op 119 MPI_Ialltoall does=meet result=zero
//@ args size=length count datatype recv_size=value count datatype comm request
int MPI_Ialltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Alltoall_init

//@ op 120 MPI_Ialltoallv does=meet result=zero
//@ args size=length list - datatype recv_size=value - - datatype comm request
int MPI_Ialltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Alltoallv_init

//@ op 121 MPI_Ialltoallw does=meet result=zero
//@ args size=length list - - recv_size=value - - - comm request
int MPI_Ialltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Alltoallw_init

//@ op 122 MPI_Ibarrier does=meet result=zero
//@ args comm request
int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Barrier_init

//@ op 123 MPI_Ibcast does=from-root result=zero
//@ args size=length count datatype rank comm request
int MPI_Ibcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Bcast_init

//@ op 124 MPI_Ibsend does=send result=zero
//@ args size=length count datatype rank tag comm request
int MPI_Ibsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);

//@ op 125 MPI_Iexscan does=upwards result=zero
//@ args size=length buf count datatype text comm request
int MPI_Iexscan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Exscan_init

//@ op 126 MPI_Igather does=to-root result=zero
//@ args size=length count datatype recv_size=value count datatype rank comm request
int MPI_Igather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Gather_init

//@ op 127 MPI_Igatherv does=to-root result=zero
//@ args size=length count datatype recv_size=value list - datatype rank comm request
int MPI_Igatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Gatherv_init

//@ op 128 MPI_Improbe does=probe result=zero
//@ args rank tag comm - text -
//@ more flag=value
int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status);

//@ op 129 MPI_Imrecv does=receive result=zero
//@ args size=length count datatype text request
int MPI_Imrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request);

//@ op 130 MPI_Ineighbor_allgather does=neighbours result=zero
//@ args size=length count datatype recv_size=value count datatype comm request
int MPI_Ineighbor_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Neighbor_allgather_init

//@ op 131 MPI_Ineighbor_allgatherv does=neighbours result=zero
//@ args size=length count datatype recv_size=value list - datatype comm request
int MPI_Ineighbor_allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Neighbor_allgatherv_init

//@ op 132 MPI_Ineighbor_alltoall does=neighbours result=zero
//@ args size=length count datatype recv_size=value count datatype comm request
int MPI_Ineighbor_alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Neighbor_alltoall_init

//@ op 133 MPI_Ineighbor_alltoallv does=neighbours result=zero
//@ args size=length list - datatype recv_size=value - - datatype comm request
int MPI_Ineighbor_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Neighbor_alltoallv_init

//@ op 134 MPI_Ineighbor_alltoallw does=neighbours result=zero
//@ args size=length list - - recv_size=value - - - comm request
int MPI_Ineighbor_alltoallw(const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Neighbor_alltoallw_init

//@ op 135 MPI_Info_create kind=process result=zero
//@ args text
int MPI_Info_create(MPI_Info *info);

//@ op 136 MPI_Info_delete kind=process result=zero
//@ args text text
int MPI_Info_delete(MPI_Info info, const char *key);

//@ op 137 MPI_Info_dup kind=process result=zero
//@ args text text
int MPI_Info_dup(MPI_Info info, MPI_Info *newinfo);

//@ op 138 MPI_Info_free kind=process result=zero
//@ args text
int MPI_Info_free(MPI_Info *info);

//@ op 139 MPI_Info_get result=zero
//@ args text text value - -
int MPI_Info_get(MPI_Info info, const char *key, int valuelen, char *value, int *flag);

//@ op 140 MPI_Info_get_nkeys result=zero
//@ args text -
int MPI_Info_get_nkeys(MPI_Info info, int *nkeys);

//@ op 141 MPI_Info_get_nthkey result=zero
//@ args text value -
int MPI_Info_get_nthkey(MPI_Info info, int n, char *key);

//@ op 142 MPI_Info_get_valuelen result=zero
//@ args text text - -
int MPI_Info_get_valuelen(MPI_Info info, const char *key, int *valuelen, int *flag);

//@ op 143 MPI_Info_set kind=process result=zero
//@ args text text text
int MPI_Info_set(MPI_Info info, const char *key, const char *value);

//@ op 144 MPI_Init kind=process does=init result=zero
//@ args - -
int MPI_Init(int *argc, char ***argv);

//@ op 145 MPI_Init_thread kind=process does=init result=zero
//@ args - - value -
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);

//@ op 146 MPI_Initialized kind=process result=zero
//@ capture none
//@ args -
int MPI_Initialized(int *flag);

//@ op 147 MPI_Intercomm_create kind=process result=zero
//@ args comm rank comm rank tag comm
int MPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm bridge_comm, int remote_leader, int tag, MPI_Comm *newintercomm);

//@ op 148 MPI_Intercomm_merge kind=process result=zero
//@ args comm value comm
int MPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newintercomm);

//@ op 149 MPI_Iprobe does=probe result=zero
//@ args rank tag comm - -
//@ more flag=value
int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);

//@ op 150 MPI_Irecv does=receive result=zero
//@ args size=length count datatype rank tag comm request
int MPI_Irecv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request);

//@ op 151 MPI_Ireduce does=to-root result=zero
//@ args size=length buf count datatype text rank comm request
int MPI_Ireduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Reduce_init

//@ op 152 MPI_Ireduce_scatter does=meet result=zero
//@ args size=length recv_size=value list datatype text comm request
int MPI_Ireduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Reduce_scatter_init

//@ op 153 MPI_Ireduce_scatter_block does=meet result=zero
//@ args size=length recv_size=value count datatype text comm request
int MPI_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Reduce_scatter_block_init

//@ op 154 MPI_Irsend does=send result=zero
//@ args size=length count datatype rank tag comm request
int MPI_Irsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);

//@ op 155 MPI_Is_thread_main result=zero
//@ args -
int MPI_Is_thread_main(int *flag);

//@ op 156 MPI_Iscan does=upwards result=zero
//@ args size=length buf count datatype text comm request
int MPI_Iscan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Scan_init

//@ op 157 MPI_Iscatter does=from-root result=zero
//@ args size=length count datatype recv_size=value count datatype rank comm request
int MPI_Iscatter(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Scatter_init

//@ op 158 MPI_Iscatterv does=from-root result=zero
//@ args size=length list - datatype recv_size=value count datatype rank comm request
int MPI_Iscatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request);
//@ persistent MPIX_Scatterv_init

//@ op 159 MPI_Isend does=send result=zero
//@ args size=length count datatype rank tag comm request
int MPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);

//@ op 160 MPI_Issend does=send result=zero
//@ args size=length count datatype rank tag comm request
int MPI_Issend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);

//@ op 161 MPI_Keyval_create result=zero
//@ args - - - -
int MPI_Keyval_create(MPI_Copy_function *copy_fn, MPI_Delete_function *delete_fn, int *keyval, void *extra_state);

//@ op 162 MPI_Keyval_free result=zero
//@ args -
int MPI_Keyval_free(int *keyval);

//@ op 163 MPI_Lookup_name result=zero
//@ args text text -
int MPI_Lookup_name(const char *service_name, MPI_Info info, char *port_name);

//@ op 164 MPI_Mprobe does=probe result=zero
//@ args rank tag comm text -
int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status);

//@ op 165 MPI_Mrecv does=receive result=zero
//@ args size=length count datatype text -
int MPI_Mrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status);

//@ op 166 MPI_Neighbor_allgather does=neighbours result=zero
//@ args size=length count datatype recv_size=value count datatype comm
int MPI_Neighbor_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm);

//@ op 167 MPI_Neighbor_allgatherv does=neighbours result=zero
//@ args size=length count datatype recv_size=value list - datatype comm
int MPI_Neighbor_allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm);

//@ op 168 MPI_Neighbor_alltoall does=neighbours result=zero
//@ args size=length count datatype recv_size=value count datatype comm
int MPI_Neighbor_alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm);

//@ op 169 MPI_Neighbor_alltoallv does=neighbours result=zero
//@ args size=length list - datatype recv_size=value - - datatype comm
int MPI_Neighbor_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm);

//@ op 170 MPI_Neighbor_alltoallw does=neighbours result=zero
//@ args size=length list - - recv_size=value - - - comm
int MPI_Neighbor_alltoallw(const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm);

//@ op 171 MPI_Op_commutative result=zero
//@ args text -
int MPI_Op_commutative(MPI_Op op, int *commute);

//@ op 172 MPI_Op_create kind=process result=zero
//@ args - value text
int MPI_Op_create(MPI_User_function *function, int commute, MPI_Op *op);

//@ op 173 MPI_Op_free kind=process result=zero
//@ args text
int MPI_Op_free(MPI_Op *op);

//@ op 174 MPI_Open_port kind=process result=zero
//@ args text -
int MPI_Open_port(MPI_Info info, char *port_name);

//@ op 175 MPI_Pack does=nothing result=zero
//@ args size=length count datatype buf value - comm
int MPI_Pack(const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, int outsize, int *position, MPI_Comm comm);

//@ op 176 MPI_Pack_external result=zero
//@ args - size=length count datatype buf value -
int MPI_Pack_external(const char datarep[], const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, MPI_Aint outsize, MPI_Aint *position);

//@ op 177 MPI_Pack_external_size result=zero
//@ args - count datatype -
int MPI_Pack_external_size(const char datarep[], int incount, MPI_Datatype datatype, MPI_Aint *size);

//@ op 178 MPI_Pack_size does=nothing result=zero
//@ args count datatype comm -
int MPI_Pack_size(int incount, MPI_Datatype datatype, MPI_Comm comm, int *size);

//@ op 179 MPI_Pcontrol result=zero
//@ capture none
//@ args value
int MPI_Pcontrol(const int level);

//@ op 180 MPI_Probe does=probe result=zero
//@ args rank tag comm -
int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status);

//@ op 181 MPI_Publish_name result=zero
//@ args text text text
int MPI_Publish_name(const char *service_name, MPI_Info info, const char *port_name);

//@ op 182 MPI_Put does=window result=zero
//@ args size=length count datatype rank value count datatype text
int MPI_Put(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win);

//@ op 183 MPI_Query_thread result=zero
//@ args -
int MPI_Query_thread(int *provided);

//@ op 184 MPI_Raccumulate does=window result=zero
//@ args size=length count datatype rank value count datatype text text request
int MPI_Raccumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request);

//@ op 185 MPI_Recv does=receive result=zero
//@ args size=length count datatype rank tag comm -
int MPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status);

//@ op 186 MPI_Recv_init does=keep-receive result=zero
//@ args size=length count datatype rank tag comm request
int MPI_Recv_init(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request);

//@ op 187 MPI_Reduce does=to-root result=zero
//@ args size=length buf count datatype text rank comm
int MPI_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm);

//@ op 188 MPI_Reduce_local result=zero
//@ args size=length buf count datatype text
int MPI_Reduce_local(const void *inbuf, void *inoutbuf, int count, MPI_Datatype datatype, MPI_Op op);

//@ op 189 MPI_Reduce_scatter does=meet result=zero
//@ args size=length recv_size=value list datatype text comm
int MPI_Reduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

//@ op 190 MPI_Reduce_scatter_block does=meet result=zero
//@ args size=length recv_size=value count datatype text comm
int MPI_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

//@ op 191 MPI_Register_datarep result=zero
//@ args text - - - -
int MPI_Register_datarep(const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn, MPI_Datarep_conversion_function *write_conversion_fn, MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state);

//@ op 192 MPI_Request_free does=request result=zero
//@ args request
int MPI_Request_free(MPI_Request *request);

//@ op 193 MPI_Request_get_status does=request result=zero
//@ args request - -
//@ more flag=value
int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status);

//@ op 194 MPI_Rget does=window result=zero
//@ args size=length count datatype rank value count datatype text request
int MPI_Rget(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request);

//@ op 195 MPI_Rget_accumulate does=window result=zero
//@ args size=length count datatype - count datatype rank value count datatype text text request
int MPI_Rget_accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, void *result_addr, int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request);

//@ op 196 MPI_Rput does=window result=zero
//@ args size=length count datatype rank value value datatype text request
int MPI_Rput(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_cout, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request);

//@ op 197 MPI_Rsend does=send result=zero
//@ args size=length count datatype rank tag comm
int MPI_Rsend(const void *ibuf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);

//@ op 198 MPI_Rsend_init does=keep-send result=zero
//@ args size=length count datatype rank tag comm request
int MPI_Rsend_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);

//@ op 199 MPI_Scan does=upwards result=zero
//@ args size=length buf count datatype text comm
int MPI_Scan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

//@ op 200 MPI_Scatter does=from-root result=zero
//@ args size=length count datatype recv_size=value count datatype rank comm
int MPI_Scatter(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);

//@ op 201 MPI_Scatterv does=from-root result=zero
//@ args size=length list - datatype recv_size=value count datatype rank comm
int MPI_Scatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);

//@ op 202 MPI_Send does=send result=zero
//@ args size=length count datatype rank tag comm
int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);

//@ op 203 MPI_Send_init does=keep-send result=zero
//@ args size=length count datatype rank tag comm request
int MPI_Send_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);

//@ op 204 MPI_Sendrecv does=send-receive result=zero
//@ args size=length count datatype rank tag recv_size=value count datatype rank tag comm -
int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status);

//@ op 205 MPI_Sendrecv_replace does=send-receive result=zero
//@ args size=length count datatype rank tag rank tag comm -
int MPI_Sendrecv_replace(void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Status *status);

//@ op 206 MPI_Ssend does=send result=zero
//@ args size=length count datatype rank tag comm
int MPI_Ssend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);

//@ op 207 MPI_Ssend_init does=keep-send result=zero
//@ args size=length count datatype rank tag comm request
int MPI_Ssend_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);

//@ op 208 MPI_Start does=start result=zero
//@ capture none
//@ args request
int MPI_Start(MPI_Request *request);

//@ op 209 MPI_Startall does=start result=zero
//@ capture none
//@ args count list
int MPI_Startall(int count, MPI_Request array_of_requests[]);

//@ op 210 MPI_Status_set_cancelled result=zero
//@ args - value
int MPI_Status_set_cancelled(MPI_Status *status, int flag);

//@ op 211 MPI_Status_set_elements result=zero
//@ args - datatype count
int MPI_Status_set_elements(MPI_Status *status, MPI_Datatype datatype, int count);

//@ op 212 MPI_Status_set_elements_x result=zero
//@ args - datatype count
int MPI_Status_set_elements_x(MPI_Status *status, MPI_Datatype datatype, MPI_Count count);

//@ op 213 MPI_Test does=end result=zero
//@ capture none
//@ args request - -
//@ more flag=value matched=list
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);

//@ op 214 MPI_Test_cancelled result=zero
//@ args - -
int MPI_Test_cancelled(const MPI_Status *status, int *flag);

//@ op 215 MPI_Testall does=end result=zero
//@ capture none
//@ args count list - -
//@ more flag=value
int MPI_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[]);

//@ op 216 MPI_Testany does=end-some result=zero
//@ capture none
//@ args count list - - -
//@ more flag=value
int MPI_Testany(int count, MPI_Request array_of_requests[], int *index, int *flag, MPI_Status *status);

//@ op 217 MPI_Testsome does=end-some result=zero
//@ capture none
//@ args count list - - -
//@ more flag=value
int MPI_Testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[], MPI_Status array_of_statuses[]);

//@ op 218 MPI_Topo_test result=zero
//@ args comm -
int MPI_Topo_test(MPI_Comm comm, int *status);

//@ op 219 MPI_Type_commit kind=process does=make-type result=zero
//@ args datatype
int MPI_Type_commit(MPI_Datatype *type);

//@ op 220 MPI_Type_contiguous kind=process result=zero
//@ args count datatype datatype
int MPI_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 221 MPI_Type_create_darray kind=process result=zero
//@ args value rank value - - - - value datatype datatype
int MPI_Type_create_darray(int size, int rank, int ndims, const int gsize_array[], const int distrib_array[], const int darg_array[], const int psize_array[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 222 MPI_Type_create_f90_complex kind=process result=zero
//@ args value value datatype
int MPI_Type_create_f90_complex(int p, int r, MPI_Datatype *newtype);

//@ op 223 MPI_Type_create_f90_integer kind=process result=zero
//@ args value datatype
int MPI_Type_create_f90_integer(int r, MPI_Datatype *newtype);

//@ op 224 MPI_Type_create_f90_real kind=process result=zero
//@ args value value datatype
int MPI_Type_create_f90_real(int p, int r, MPI_Datatype *newtype);

//@ op 225 MPI_Type_create_hindexed kind=process result=zero
//@ args count - - datatype datatype
int MPI_Type_create_hindexed(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 226 MPI_Type_create_hindexed_block kind=process result=zero
//@ args count value - datatype datatype
int MPI_Type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 227 MPI_Type_create_hvector kind=process result=zero
//@ args count value value datatype datatype
int MPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 228 MPI_Type_create_indexed_block kind=process result=zero
//@ args count value - datatype datatype
int MPI_Type_create_indexed_block(int count, int blocklength, const int array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 229 MPI_Type_create_keyval result=zero
//@ args - - - -
int MPI_Type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn, MPI_Type_delete_attr_function *type_delete_attr_fn, int *type_keyval, void *extra_state);

//@ op 230 MPI_Type_create_resized kind=process result=zero
//@ args datatype value value datatype
int MPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype);

//@ op 231 MPI_Type_create_struct kind=process result=zero
//@ args count - - - datatype
int MPI_Type_create_struct(int count, const int array_of_block_lengths[], const MPI_Aint array_of_displacements[], const MPI_Datatype array_of_types[], MPI_Datatype *newtype);

//@ op 232 MPI_Type_create_subarray kind=process result=zero
//@ args value - - - value datatype datatype
int MPI_Type_create_subarray(int ndims, const int size_array[], const int subsize_array[], const int start_array[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 233 MPI_Type_delete_attr result=zero
//@ args datatype value
int MPI_Type_delete_attr(MPI_Datatype type, int type_keyval);

//@ op 234 MPI_Type_dup kind=process result=zero
//@ args datatype datatype
int MPI_Type_dup(MPI_Datatype type, MPI_Datatype *newtype);

//@ op 235 MPI_Type_extent result=zero
//@ args datatype -
int MPI_Type_extent(MPI_Datatype type, MPI_Aint *extent);

//@ op 236 MPI_Type_free kind=process result=zero
//@ args datatype
int MPI_Type_free(MPI_Datatype *type);

//@ op 237 MPI_Type_free_keyval result=zero
//@ args -
int MPI_Type_free_keyval(int *type_keyval);

//@ op 238 MPI_Type_get_attr result=zero
//@ args datatype value - -
int MPI_Type_get_attr(MPI_Datatype type, int type_keyval, void *attribute_val, int *flag);

//@ op 239 MPI_Type_get_contents result=zero
//@ args datatype value value value - - -
int MPI_Type_get_contents(MPI_Datatype mtype, int max_integers, int max_addresses, int max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]);

//@ op 240 MPI_Type_get_envelope result=zero
//@ args datatype - - - -
int MPI_Type_get_envelope(MPI_Datatype type, int *num_integers, int *num_addresses, int *num_datatypes, int *combiner);

//@ op 241 MPI_Type_get_extent result=zero
//@ args datatype - -
int MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent);

//@ op 242 MPI_Type_get_extent_x result=zero
//@ args datatype - -
int MPI_Type_get_extent_x(MPI_Datatype type, MPI_Count *lb, MPI_Count *extent);

//@ op 243 MPI_Type_get_name result=zero
//@ args datatype - -
int MPI_Type_get_name(MPI_Datatype type, char *type_name, int *resultlen);

//@ op 244 MPI_Type_get_true_extent result=zero
//@ args datatype - -
int MPI_Type_get_true_extent(MPI_Datatype datatype, MPI_Aint *true_lb, MPI_Aint *true_extent);

//@ op 245 MPI_Type_get_true_extent_x result=zero
//@ args datatype - -
int MPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent);

//@ op 246 MPI_Type_hindexed kind=process result=zero
//@ args count - - datatype datatype
int MPI_Type_hindexed(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 247 MPI_Type_hvector kind=process result=zero
//@ args count value value datatype datatype
int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 248 MPI_Type_indexed kind=process result=zero
//@ args count - - datatype datatype
int MPI_Type_indexed(int count, const int array_of_blocklengths[], const int array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 249 MPI_Type_lb result=zero
//@ args datatype -
int MPI_Type_lb(MPI_Datatype type, MPI_Aint *lb);

//@ op 250 MPI_Type_match_size kind=process result=zero
//@ args value value datatype
int MPI_Type_match_size(int typeclass, int size, MPI_Datatype *newtype);

//@ op 251 MPI_Type_set_attr result=zero
//@ args datatype value -
int MPI_Type_set_attr(MPI_Datatype type, int type_keyval, void *attr_val);

//@ op 252 MPI_Type_set_name result=zero
//@ args datatype text
int MPI_Type_set_name(MPI_Datatype type, const char *type_name);

//@ op 253 MPI_Type_size result=zero
//@ args datatype -
int MPI_Type_size(MPI_Datatype type, int *size);

//@ op 254 MPI_Type_size_x result=zero
//@ args datatype -
int MPI_Type_size_x(MPI_Datatype type, MPI_Count *size);

//@ op 255 MPI_Type_struct kind=process result=zero
//@ args count - - - datatype
int MPI_Type_struct(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[], MPI_Datatype array_of_types[], MPI_Datatype *newtype);

//@ op 256 MPI_Type_ub result=zero
//@ args datatype -
int MPI_Type_ub(MPI_Datatype mtype, MPI_Aint *ub);

//@ op 257 MPI_Type_vector kind=process result=zero
//@ args count value value datatype datatype
int MPI_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype *newtype);

//@ op 258 MPI_Unpack does=nothing result=zero
//@ args size=length value - buf count datatype comm
int MPI_Unpack(const void *inbuf, int insize, int *position, void *outbuf, int outcount, MPI_Datatype datatype, MPI_Comm comm);

//@ op 259 MPI_Unpack_external result=zero
//@ args - size=length value - buf count datatype
int MPI_Unpack_external(const char datarep[], const void *inbuf, MPI_Aint insize, MPI_Aint *position, void *outbuf, int outcount, MPI_Datatype datatype);

//@ op 260 MPI_Unpublish_name result=zero
//@ args text text text
int MPI_Unpublish_name(const char *service_name, MPI_Info info, const char *port_name);

//@ op 261 MPI_Wait does=end result=zero
//@ capture none
//@ args request -
//@ more matched=list
int MPI_Wait(MPI_Request *request, MPI_Status *status);

//@ op 262 MPI_Waitall does=end result=zero
//@ capture none
//@ args count list -
int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses);

//@ op 263 MPI_Waitany does=end-some result=zero
//@ capture none
//@ args count list - -
int MPI_Waitany(int count, MPI_Request array_of_requests[], int *index, MPI_Status *status);

//@ op 264 MPI_Waitsome does=end-some result=zero
//@ capture none
//@ args count list - - -
int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[], MPI_Status array_of_statuses[]);

//@ op 265 MPI_Win_allocate kind=process does=make-window result=zero
//@ args value value text comm - text
int MPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win);

//@ op 266 MPI_Win_allocate_shared kind=process does=make-window result=zero
//@ args value value text comm - text
int MPI_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win);

//@ op 267 MPI_Win_attach kind=process result=zero
//@ args text - value
int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint size);

//@ op 268 MPI_Win_call_errhandler result=zero
//@ args text value
int MPI_Win_call_errhandler(MPI_Win win, int errorcode);

//@ op 269 MPI_Win_complete does=window result=zero
//@ args text
int MPI_Win_complete(MPI_Win win);

//@ op 270 MPI_Win_create kind=process does=make-window result=zero
//@ args - value value text comm text
int MPI_Win_create(void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win);

//@ op 271 MPI_Win_create_dynamic kind=process does=make-window result=zero
//@ args text comm text
int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win);

//@ op 272 MPI_Win_create_errhandler result=zero
//@ args - text
int MPI_Win_create_errhandler(MPI_Win_errhandler_function *function, MPI_Errhandler *errhandler);

//@ op 273 MPI_Win_create_keyval result=zero
//@ args - - - -
int MPI_Win_create_keyval(MPI_Win_copy_attr_function *win_copy_attr_fn, MPI_Win_delete_attr_function *win_delete_attr_fn, int *win_keyval, void *extra_state);

//@ op 274 MPI_Win_delete_attr result=zero
//@ args text value
int MPI_Win_delete_attr(MPI_Win win, int win_keyval);

//@ op 275 MPI_Win_detach kind=process result=zero
//@ args text -
int MPI_Win_detach(MPI_Win win, const void *base);

//@ op 276 MPI_Win_fence does=meet-window result=zero
//@ args value text
int MPI_Win_fence(int assert, MPI_Win win);

//@ op 277 MPI_Win_flush does=window result=zero
//@ args rank text
int MPI_Win_flush(int rank, MPI_Win win);

//@ op 278 MPI_Win_flush_all does=window result=zero
//@ args text
int MPI_Win_flush_all(MPI_Win win);

//@ op 279 MPI_Win_flush_local does=window result=zero
//@ args rank text
int MPI_Win_flush_local(int rank, MPI_Win win);

//@ op 280 MPI_Win_flush_local_all does=window result=zero
//@ args text
int MPI_Win_flush_local_all(MPI_Win win);

//@ op 281 MPI_Win_free kind=process does=meet-window result=zero
//@ args text
int MPI_Win_free(MPI_Win *win);

//@ op 282 MPI_Win_free_keyval result=zero
//@ args -
int MPI_Win_free_keyval(int *win_keyval);

//@ op 283 MPI_Win_get_attr result=zero
//@ args text value - -
int MPI_Win_get_attr(MPI_Win win, int win_keyval, void *attribute_val, int *flag);

//@ op 284 MPI_Win_get_errhandler result=zero
//@ args text text
int MPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler);

//@ op 285 MPI_Win_get_group result=zero
//@ args text text
int MPI_Win_get_group(MPI_Win win, MPI_Group *group);

//@ op 286 MPI_Win_get_info result=zero
//@ args text text
int MPI_Win_get_info(MPI_Win win, MPI_Info *info_used);

//@ op 287 MPI_Win_get_name result=zero
//@ args text - -
int MPI_Win_get_name(MPI_Win win, char *win_name, int *resultlen);

//@ op 288 MPI_Win_lock does=window result=zero
//@ args value rank value text
int MPI_Win_lock(int lock_type, int rank, int assert, MPI_Win win);

//@ op 289 MPI_Win_lock_all does=window result=zero
//@ args value text
int MPI_Win_lock_all(int assert, MPI_Win win);

//@ op 290 MPI_Win_post does=window result=zero
//@ args text value text
int MPI_Win_post(MPI_Group group, int assert, MPI_Win win);

//@ op 291 MPI_Win_set_attr result=zero
//@ args text value -
int MPI_Win_set_attr(MPI_Win win, int win_keyval, void *attribute_val);

//@ op 292 MPI_Win_set_errhandler result=zero
//@ args text text
int MPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler);

//@ op 293 MPI_Win_set_info result=zero
//@ args text text
int MPI_Win_set_info(MPI_Win win, MPI_Info info);

//@ op 294 MPI_Win_set_name result=zero
//@ args text text
int MPI_Win_set_name(MPI_Win win, const char *win_name);

//@ op 295 MPI_Win_shared_query result=zero
//@ args text rank - - -
int MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *disp_unit, void *baseptr);

//@ op 296 MPI_Win_start does=window result=zero
//@ args text value text
int MPI_Win_start(MPI_Group group, int assert, MPI_Win win);

//@ op 297 MPI_Win_sync does=window result=zero
//@ args text
int MPI_Win_sync(MPI_Win win);

//@ op 298 MPI_Win_test does=window result=zero
//@ args text -
//@ more flag=value
int MPI_Win_test(MPI_Win win, int *flag);

//@ op 299 MPI_Win_unlock does=window result=zero
//@ args rank text
int MPI_Win_unlock(int rank, MPI_Win win);

//@ op 300 MPI_Win_unlock_all does=window result=zero
//@ args text
int MPI_Win_unlock_all(MPI_Win win);

//@ op 301 MPI_Win_wait does=window result=zero
//@ args text
int MPI_Win_wait(MPI_Win win);
