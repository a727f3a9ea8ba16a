//! What ends a job: a rank that panics or fails takes all others with it, with one message that
//! names it. (Of a rank that is killed `mpirun` says so itself, and ends the others.)

use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};

use crate::comm::{Ranks, abort, host_name};

/// Makes a panic of any thread of this rank end the job. Without it the unwinding rank would wait
/// for messages under way, and the others for it.
pub fn end_the_job_on_panic() {
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let payload = info.payload();
        let why = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("a panic without a message");
        let place = info.location().map(|place| format!(" at {place}"));
        say(&format!("panicked{}: {why}", place.unwrap_or_default()));
        abort()
    }));
}

/// Ends the job because this rank cannot do its part.
pub fn end_the_job(why: impl std::fmt::Display) -> ! {
    say(&format!("failed: {why}"));
    abort()
}

fn say(what: &str) {
    let (all, host) = (Ranks::all(), host_name());
    let (rank, size) = (all.rank(), all.size());
    say_line(&format!("error: rank {rank} of {size} (on {host}) {what}"));
}

/// Writes a line to standard error in one piece: `mpirun` mixes the pieces of all ranks.
pub fn say_line(line: &str) {
    // Nobody may be there to read it.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Whether all ranks were started with the same command; what differs, in a sentence, if not. All
/// ranks must call it, and all get the same answer.
pub fn disagreement(ranks: &Ranks, command: &[String]) -> Option<String> {
    let command = command.join(" ");
    let commands = ranks.all_texts(&command);
    let other = commands.iter().position(|other| *other != commands[0])?;
    Some(format!(
        "Rank {other} was started with `{}`, but rank 0 with `{}`. All ranks must multiply the same \
         matrices in the same way: start them with the same options.",
        commands[other], commands[0]
    ))
}
