// SPDX-License-Identifier: MIT
// MPI's objects from the texts that stand for them in layers mpi and mpiio.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace feign::mpi {

// The ranks in "WORLD{0-2,5}", in their order; false if the text does not tell them. Of two groups,
// "{0-1|2-3}", `first` says how many are in the first; else it is 0.
bool parse_ranks(std::string_view text, std::vector<uint32_t>& ranks, size_t& first);

// The communicator with the neighbours that its text tells ("#1.2:cart(2,2;1,0){0-3}") in place of
// `comm`, which is freed; `comm` itself where it tells none.
MPI_Comm with_neighbours(std::string_view text, MPI_Comm comm);

// "vector(809,1,810;;MPI_DOUBLE)" built and committed; MPI_DATATYPE_NULL if it is not understood.
// `made` says whether it has to be freed.
MPI_Datatype build_type(std::string_view text, bool& made);

// "key=value;key=value", with %25 and the like.
MPI_Info build_info(std::string_view text);

// The errno that is closest to what MPI says.
int errno_of(int error);

}  // namespace feign::mpi
