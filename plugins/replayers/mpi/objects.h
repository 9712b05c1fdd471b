// SPDX-License-Identifier: MIT
// MPI's objects from the texts that stand for them in layers mpi and mpiio.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace feign::mpi {

// The ranks in "WORLD{0-2,5}", in their order; false if the text does not tell them.
bool parse_ranks(std::string_view text, std::vector<uint32_t>& ranks);

// "vector(809,1,810;;MPI_DOUBLE)" built and committed; MPI_DATATYPE_NULL if it is not understood.
// `made` says whether it has to be freed.
MPI_Datatype build_type(std::string_view text, bool& made);

// "key=value;key=value", with %25 and the like.
MPI_Info build_info(std::string_view text);

// The errno that is closest to what MPI says.
int errno_of(int error);

}  // namespace feign::mpi
