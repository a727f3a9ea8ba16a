//! Where a rank multiplies.

use std::fmt::Display;
use std::io::{self, Write};

use gpu_gemm::device::driver;
use gpu_gemm::text::plural;
use gpu_gemm::{Chooser, Device, DeviceChoice, DeviceError, Opened};
use host::check::NATIVE;
use host::cli::exit::{Stop, failed, noted, usage};
use verification::cpu::Team;

use super::asked::settings;
use crate::arguments::Arguments;
use crate::comm::{Ranks, host_name};
use crate::evaluate::Request;
use crate::local::Place;

/// Where this rank multiplies, and why there. All ranks call it.
pub(super) fn place(
    world: &Ranks,
    arguments: &Arguments,
    request: &Request,
) -> Result<(Place, String), Stop> {
    let is_native = request.asked.is_native();
    let opened = match is_native {
        true => Device::open(DeviceChoice::Simulator).map(|opened| Opened {
            reason: NATIVE.to_string(),
            ..opened
        }),
        false => open_device(arguments.device.clone()),
    };
    let opened = by_all(world, opened, "open its device")?;
    if opened.device.several().is_some() {
        return Err(usage(
            "A rank multiplies on one device: leave --device out, and each gets a GPU of its own.",
        ));
    }
    let team = by_all(world, Team::new(settings(arguments)), "start its threads")?;
    let mut unheard = Vec::new();
    noted(Chooser::of(&opened.device), &mut unheard);
    if world.rank() == 0 {
        // Nobody may be there to read it.
        let _ = io::stderr().write_all(&unheard);
    }
    let place = Place {
        device: opened.device,
        team,
        ranks_on_these_cores: Ranks::on_this_host().on_these_cores(),
    };
    Ok((place, opened.reason))
}

/// What all ranks must have; an error on all of them if one does not.
fn by_all<T, E: Display>(world: &Ranks, own: Result<T, E>, what: &str) -> Result<T, Stop> {
    match world.first_failure(own.as_ref().err()) {
        None => own.map_err(failed),
        Some((rank, why)) => Err(failed(format!("Rank {rank} cannot {what}: {why}."))),
    }
}

/// Opens a device; by default the GPU with this rank's number on its host. GPUs are shared where
/// there are fewer than ranks.
fn open_device(choice: DeviceChoice) -> Result<Opened, DeviceError> {
    if choice != DeviceChoice::Auto {
        return Device::open(choice);
    }
    // All ranks ask MPI, those that find no GPU as well.
    let on_host = Ranks::on_this_host();
    let (rank, ranks) = (on_host.rank(), on_host.size());
    let gpus = driver::probe().map_or(0, |gpus| gpus.len());
    if gpus == 0 {
        return Device::open(choice);
    }
    let opened = Device::open(DeviceChoice::Cuda((rank % gpus) as u32))?;
    let reason = on_gpu(ranks, gpus);
    Ok(Opened { reason, ..opened })
}

/// Why ranks of a host are on these GPUs.
fn on_gpu(ranks: usize, gpus: usize) -> String {
    match ranks > gpus {
        true => format!(
            "the rank's number on its host, modulo the number of GPUs: {} share {}",
            plural(ranks, "rank"),
            plural(gpus, "GPU")
        ),
        false => "the GPU with the rank's number on its host".to_string(),
    }
}

/// The names of the hosts, each once, in the order of ranks.
pub(super) fn hosts(world: &Ranks) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for name in world.all_texts(&host_name()) {
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    hosts
}
