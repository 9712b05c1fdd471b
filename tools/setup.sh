# SPDX-License-Identifier: MIT
# Sourced by quickstart and run-tests: installs what is missing on Debian and Ubuntu, says what to
# install elsewhere. Sets nothing but PATH.

feign_need="g++ meson ninja-build pkg-config python3 libyaml-dev libzstd-dev zlib1g-dev nlohmann-json3-dev libcli11-dev libjs-dygraphs libzydis-dev"
# For the tests alone.
feign_need_tests="libgtest-dev libgmock-dev strace clang libclang-rt-14-dev"
feign_nice_tests="libopenmpi-dev openmpi-bin gfortran liburing-dev libbenchmark-dev chromium"
# Programs that tests trace and replay.
feign_nice_programs="git make rsync sqlite3 fio xz-utils zstd ripgrep redis-server postgresql cmake ed vim iproute2 openssh-server bindfs gocryptfs"

feign_setup() {
  missing=""
  for package in "$@"; do
    dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0
  echo "feign: installing:$missing" >&2
  as_root=""
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1; then as_root="sudo"; else
      echo "feign: these packages are missing, and there is no sudo to install them with:$missing" >&2
      return 1
    fi
  fi
  export DEBIAN_FRONTEND=noninteractive
  $as_root apt-get update -qq >/dev/null 2>&1 || true
  # shellcheck disable=SC2086
  $as_root apt-get install -y -qq --no-install-recommends $missing >/tmp/feign-apt.$$ 2>&1 || {
    tail -5 /tmp/feign-apt.$$ >&2
    rm -f /tmp/feign-apt.$$
    echo "feign: apt-get could not install:$missing" >&2
    return 1
  }
  rm -f /tmp/feign-apt.$$
}

feign_system() {
  if command -v apt-get >/dev/null 2>&1 && command -v dpkg-query >/dev/null 2>&1; then return 0; fi
  cat >&2 <<'TEXT'
feign: this is not Debian or Ubuntu, so nothing was installed. Needed to build:
  a C++20 compiler (gcc 12 or clang 14, or later), Meson 0.61, Ninja, pkg-config, Python 3,
  libyaml, zstd, zlib, nlohmann-json and CLI11 with their headers; for the tests GoogleTest,
  strace and clang. For feign record: Zydis; for the plots of pages: dygraphs; for mpirun: Open MPI.
  Fedora:  dnf install gcc-c++ meson ninja-build pkgconf python3 libyaml-devel libzstd-devel zlib-devel json-devel cli11-devel gtest-devel gmock-devel strace clang
  Arch:    pacman -S gcc meson ninja pkgconf python libyaml zstd zlib nlohmann-json cli11 gtest strace clang
Then run this again with FEIGN_NO_INSTALL=1.
TEXT
  return 1
}
