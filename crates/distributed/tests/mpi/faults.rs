//! What goes wrong on one rank ends the job, and is said once.

use crate::job::{Ended, PROGRAM, end, job, mpirun};

/// Work for longer than any test waits.
const LONG: &str = "--size 256 --runs 100000 --layout summa";

pub fn a_rank_that_panics_ends_the_job_with_its_name() {
    let ended = end(job(3, &format!("{LONG} --panic-on-rank 1")));
    ended.assert_failed(&[
        "error: rank 1 of 3 (on ",
        "panicked at ",
        "as --panic-on-rank asks",
    ]);
    assert_eq!(
        ended.notes.matches("error: rank").count(),
        1,
        "{}",
        ended.notes
    );
}

pub fn ranks_that_were_started_differently_do_not_start() {
    let options = [
        "-n", "2", PROGRAM, "--size", "8", ":", "-n", "1", PROGRAM, "--size", "9",
    ];
    let ended = end(mpirun(&options));
    ended.assert_failed(&[
        "error: Rank 2 was started with `--size 9`, but rank 0 with `--size 8`.",
        "start them with the same options",
    ]);
    assert_eq!(ended.notes.matches("error: ").count(), 1, "{}", ended.notes);
    // However late they differ.
    let long = format!("{}.json", "long".repeat(60));
    let options = [
        "-n", "1", PROGRAM, "--json", &long, "--size", "8", ":", "-n", "1", PROGRAM, "--json",
        &long, "--size", "9",
    ];
    end(mpirun(&options)).assert_failed(&[".json --size 9`, but", ".json --size 8`. All"]);
}

pub fn what_does_not_exist_is_refused_once_with_the_exit_code_for_usage() {
    for (arguments, part) in [
        ("--layout rows", "invalid value 'rows'"),
        (
            "--scaling 1,3",
            "--scaling asks for 3 ranks, but the job has 2",
        ),
        ("--kernel cpu-strassen", "`cpu-strassen` is for one machine"),
        ("--kernel nonsense", "There is no kernel `nonsense`"),
        ("--kernel cpu", "names 10 kernels"),
        (
            "--kernel cpu-matrixmultiply --dtype i32",
            "does not multiply i32",
        ),
        ("--m 3000000000", "more than MPI can count"),
        ("--batch 2", "leave --batch out"),
        (
            "--kernel naive --device sim+sim",
            "multiplies on one device",
        ),
        (
            "--layout all --out c.npy",
            "--out takes one C, but 5 are computed",
        ),
        (
            "--dtype bf16 --kernel warpgroup --layout all",
            "Kernel `warpgroup` does not multiply bf16-f32, but bf16 and f16. ",
        ),
        (
            "--dtype bf16 --kernel warpgroup*",
            "but bf16 and f16. `rust-gemm --list` shows what each kernel multiplies. Ranks add up products of bf16 in f32",
        ),
        (
            "--dtype bf16-f32",
            "`cpu-rows` does not multiply bf16-f32, but f32, f64 and i32. ",
        ),
        (
            "--dtype f16 --kernel auto --check distributed",
            "keep C as ranks compute it, with --dtype f16-f32.",
        ),
    ] {
        let Ended { code, notes, .. } = end(job(2, arguments));
        assert_eq!(code, Some(2), "{arguments}: {notes}");
        assert_eq!(notes.matches(part).count(), 1, "{arguments}: {notes}");
    }
}

pub fn a_file_that_cannot_be_read_ends_all_ranks() {
    let ended = end(job(3, "--a missing.npy --b missing.npy"));
    assert_eq!(ended.code, Some(1), "{}", ended.notes);
    ended.assert_failed(&["`missing.npy` cannot be read"]);
    let ended = end(job(3, "--size 4 --out /nowhere/c.npy"));
    ended.assert_failed(&["`/nowhere/c.npy` cannot be written"]);
    let ended = end(job(2, "--size 1000k"));
    ended.assert_failed(&["error: rank 0 of 2", "GiB of memory on the host"]);
}

pub fn a_device_that_no_rank_has_is_said_once() {
    let ended = end(job(3, "--size 8 --kernel naive --device cuda:77"));
    assert_eq!(ended.code, Some(1), "{}", ended.notes);
    ended.assert_failed(&["error: Rank 0 cannot open its device: "]);
    assert_eq!(ended.notes.matches("error").count(), 1, "{}", ended.notes);
}
