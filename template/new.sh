#!/bin/sh
# Makes a program of this template:
#
#     sh new.sh FOLDER [SOURCE [NAME]]
#
# SOURCE says where its manifests are to find cuda_std, cuda_builder and the others: the folder
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
edit="s|^name = \"my-\(.*\)program\"|name = \"$name\"|"
for crates in '"[./]*/\(crates/[a-z_]*\)"' '"[./]*/\(gpu-kernels\)"'; do
    case $source in
    registry) edit="$edit; s|, path = $crates||; s|path = $crates|path = \"$here/../\\1\"|" ;;
    *://* | git@*) edit="$edit; s|path = $crates|git = \"$source\"|" ;;
    *) edit="$edit; s|path = $crates|path = \"$(cd "$source" && pwd)/\\1\"|" ;;
    esac
done
for manifest in Cargo.toml kernels/Cargo.toml cudarc/Cargo.toml fused/Cargo.toml fused/kernels/Cargo.toml; do
    sed "$edit" "$manifest" >new.toml
    mv new.toml "$manifest"
done
