//! `cargo run -p host -- --kernel double-buffer`: see `cli/mod.rs`, or `--help`.

fn main() -> std::process::ExitCode {
    host::cli::main()
}
