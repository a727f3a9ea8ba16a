#!/bin/sh
# Makes a program of this template:
#
#     sh new.sh FOLDER [SOURCE [NAME]]
#
# SOURCE says where its manifests are to find cuda_std, cuda_builder and find_cuda_helper: the folder
# of this repository (unless given, the one with this script), the URL of a git repository,
# or `registry`, where only find_cuda_helper still comes from the folder. NAME is the package's; unless
# given, the folder's.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?"usage: sh new.sh FOLDER [SOURCE [NAME]]"}
source=${2:-$here/..}
name=${3:-$(basename "$folder")}

# `cargo generate` has copied it already.
if [ "$folder" != . ]; then
    mkdir "$folder"
    tar -C "$here" --exclude=target --exclude=cargo-generate.toml --exclude=set-paths.rhai -cf - . | tar -C "$folder" -xf -
    cd "$folder"
fi
rm new.sh

# A dependency is `package = "..", version = "..", path = ".."`, the entry of [patch] only a path.
crates='"[./]*/crates/\([a-z_]*\)"'
case $source in
registry) edit="s|, path = $crates||; s|path = $crates|path = \"$here/../crates/\\1\"|" ;;
*://* | git@*) edit="s|path = $crates|git = \"$source\"|" ;;
*) edit="s|path = $crates|path = \"$(cd "$source" && pwd)/crates/\\1\"|" ;;
esac
for manifest in Cargo.toml kernels/Cargo.toml cudarc/Cargo.toml; do
    sed "$edit; s|^name = \"my-\(.*\)program\"|name = \"$name\"|" "$manifest" >new.toml
    mv new.toml "$manifest"
done
