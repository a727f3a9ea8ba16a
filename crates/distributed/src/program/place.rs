//! Where a rank multiplies.

use std::io::{self, Write};
use std::sync::Arc;

use gpu_gemm::device::driver;
use gpu_gemm::text::plural;
use gpu_gemm::{Chooser, Device, DeviceChoice, DeviceError, Opened};
use host::cli::exit::noted;
use host::cpu::Team;
use host::prove::NATIVE;

use super::asked::settings;
use crate::arguments::Arguments;
use crate::comm::{Ranks, host_name, rank_on_host};
use crate::evaluate::Request;
use crate::faults::end_the_job;
use crate::local::Place;
use crate::nccl::{Nccl, Version, mpi_takes_gpu_memory};

/// Where this rank multiplies, and why there. A rank that cannot ends the job.
pub(super) fn place(world: &Ranks, arguments: &Arguments, request: &Request) -> (Place, String) {
    let is_native = request.asked.is_native();
    let opened = match is_native {
        true => Device::open(DeviceChoice::Simulator).map(|opened| Opened {
            reason: NATIVE.to_string(),
            ..opened
        }),
        false => open_device(arguments.device.clone()),
    };
    let opened = opened.unwrap_or_else(|error| end_the_job(error));
    let team = Team::new(settings(arguments)).unwrap_or_else(|error| end_the_job(error));
    let mut unheard = Vec::new();
    let chooser = noted(Chooser::of(&opened.device), &mut unheard);
    if world.rank() == 0 {
        // Nobody may be there to read it.
        let _ = io::stderr().write_all(&unheard);
    }
    let place = Place {
        device: Arc::new(opened.device),
        chooser: Arc::new(chooser),
        team: Arc::new(team),
    };
    (place, opened.reason)
}

/// Opens a device; by default the GPU with this rank's number on its host. GPUs are shared where
/// there are fewer than ranks.
fn open_device(choice: DeviceChoice) -> Result<Opened, DeviceError> {
    let gpus = match choice {
        DeviceChoice::Auto => driver::probe().map_or(0, |gpus| gpus.len()),
        _ => 0,
    };
    if gpus == 0 {
        return Device::open(choice);
    }
    let (rank, ranks) = rank_on_host();
    let opened = Device::open(DeviceChoice::Cuda((rank % gpus) as u32))?;
    let nccl = Nccl::load().ok().map(|nccl| nccl.version());
    let reason = on_gpu(ranks, gpus, nccl, mpi_takes_gpu_memory());
    Ok(Opened { reason, ..opened })
}

/// Why ranks of a host are on these GPUs, and how matrices get there.
fn on_gpu(
    ranks: usize,
    gpus: usize,
    nccl: Option<Version>,
    mpi_takes_gpu_memory: Option<bool>,
) -> String {
    let which = match ranks > gpus {
        true => format!(
            "the rank's number on its host, modulo the number of GPUs: {} share {}",
            plural(ranks, "rank"),
            plural(gpus, "GPU")
        ),
        false => "the GPU with the rank's number on its host".to_string(),
    };
    let nccl = match nccl {
        Some(version) => format!("NCCL ({version} is here)"),
        None => "NCCL (there is none here)".to_string(),
    };
    let mpi = match mpi_takes_gpu_memory {
        Some(true) => "takes",
        Some(false) => "does not take",
        None => "does not say that it takes",
    };
    format!(
        "{which}; matrices travel by MPI through the host's memory, where all layouts keep them: \
         neither {nccl} nor an MPI that takes GPUs' memory (this one {mpi} it) is used"
    )
}

/// The names of the hosts, each once, in the order of ranks.
pub(super) fn hosts(world: &Ranks) -> Vec<String> {
    const LENGTH: usize = 256; // at least MPI_MAX_PROCESSOR_NAME
    let mut name = host_name().into_bytes();
    name.resize(LENGTH, 0);
    let all = world.all_gather(&name);
    let mut hosts: Vec<String> = Vec::new();
    for name in all.chunks(LENGTH) {
        let name = String::from_utf8_lossy(name)
            .trim_end_matches('\0')
            .to_string();
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_ranks_share_is_said_and_so_is_the_way_of_the_matrices() {
        let version = |number| Some(Version::of(number));
        let shared = on_gpu(4, 2, version(22105), Some(false));
        assert!(shared.contains("4 ranks share 2 GPUs"), "{shared}");
        let one_each = on_gpu(2, 2, None, None);
        assert!(!one_each.contains("share"), "{one_each}");
        for (said, parts) in [
            (
                shared,
                ["NCCL (2.21.5 is here)", "(this one does not take it)"],
            ),
            (
                one_each,
                ["NCCL (there is none here)", "does not say that it takes it"],
            ),
        ] {
            for part in parts
                .into_iter()
                .chain(["through the host's memory, where all layouts"])
            {
                assert!(said.contains(part), "{said}");
            }
        }
    }
}
