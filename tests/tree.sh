#!/bin/sh
# Lists a directory as the .after files do: type, size (not of directories), path; sorted by path.
cd "$1" && find . -printf '%y %s %p\n' | awk '{ if ($1 == "d") $2 = "-"; print }' | LC_ALL=C sort -k3
