//! How parts of matrices travel between the GPUs of ranks, and why so.
//!
//! ```text
//!                      from one GPU to another              what it takes
//! peer access          panels that are broadcast are read   as for NCCL, on one host whose GPUs
//!                      by copy engines from the memory of   have peer access to each other
//!                      the GPU that has them, over NVLink
//!                      or PCIe; all else by NCCL
//! NCCL                 on a stream, over NVLink, PCIe or    NCCL 2 on every host, and a GPU for
//!                      the network, without the host        each rank
//! MPI                  MPI reads and writes the GPUs'       an MPI that was built for it
//!                      memory                               ("CUDA-aware")
//! page-locked memory   the GPU copies to the host, MPI      nothing
//!                      sends that, the other copies it
//!                      to its GPU
//! ```
//!
//! The choice is a pure function of what all ranks say, so all make the same one.
//!
//! NCCL's kernels run on SMs. A product whose CTAs hold all SMs leaves them none until it ends, or
//! gets less than all if they come first. Copy engines take none, so panels travel beside products.

use std::ffi::c_int;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use clap::ValueEnum;
use cust::device::{Device as CudaOrdinal, DeviceAttribute};
use cust::error::CudaResult;
use gpu_gemm::device::cuda::CudaDevice;
use gpu_gemm::device::cuda::ipc::{Exported, Opened, WORDS};
use gpu_gemm::text::plural;
use gpu_gemm::{Device, DeviceError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Ranks, host_name};
use crate::nccl::{Nccl, Version};

/// The values of `--transport`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Asked {
    /// The first of the others that is available, in their order; peer for up to four ranks only
    #[default]
    Auto,
    /// NCCL, but panels that are broadcast are read from the GPU that has them, on one host
    Peer,
    /// NVIDIA's library of messages between GPUs; each rank needs a GPU of its own
    Nccl,
    /// MPI reads and writes the GPUs' memory; it must have been built for that (CUDA-aware)
    Mpi,
    /// Copies through page-locked memory of the host, which MPI sends
    Pinned,
}

/// A way from one GPU to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    Peer,
    Nccl,
    Mpi,
    #[default]
    Pinned,
}

impl Way {
    /// As `--transport` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Way::Peer => "peer",
            Way::Nccl => "nccl",
            Way::Mpi => "mpi",
            Way::Pinned => "pinned",
        }
    }

    /// Whether messages are NCCL's.
    pub fn has_nccl(self) -> bool {
        matches!(self, Way::Peer | Way::Nccl)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Way::Peer => "NCCL, and panels by peer access",
            Way::Nccl => "NCCL",
            Way::Mpi => "MPI, which takes GPUs' memory",
            Way::Pinned => "page-locked memory of the host and MPI",
        })
    }
}

/// The most ranks that read panels by peer access unless they are asked to. All of them read from
/// the one GPU that has a panel, where NCCL hands it on from rank to rank. On four H200 peer access
/// was still faster in `summa` and `broadcast-b`, in f32 and bf16; more were not measured.
const MOST_PEERS: usize = 4;

/// A way that was chosen.
#[derive(Clone)]
pub struct Transport {
    pub way: Way,
    /// Why this one.
    pub reason: String,
    /// If messages are NCCL's.
    pub nccl: Option<Nccl>,
}

/// Why the way that was asked for is not available.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TransportError {
    #[error(
        "--transport peer is not available: {why}. Leave --transport out, or use --transport nccl."
    )]
    NoPeerAccess { why: String },
    #[error(
        "--transport {asked} is not available: {why}. Install NCCL 2 (the package libnccl2) where \
         libraries are found, on every host, or leave --transport out."
    )]
    NoNccl { asked: &'static str, why: String },
    #[error(
        "--transport {asked} is not available: {shared}, and NCCL takes a GPU for each rank. Start as many \
         ranks as there are GPUs, or leave --transport out."
    )]
    SharedGpu { asked: &'static str, shared: String },
    #[error(
        "--transport mpi is not available: {why}. Use an Open MPI that was built with CUDA (`ompi_info \
         --parsable --all | grep mpi_built_with_cuda_support:value` says it), or leave --transport \
         out."
    )]
    NoGpuMemory { why: String },
    #[error(
        "--transport {asked} is for parts in GPUs' memory, but these ranks multiply in the \
         host's, from where MPI sends them. Leave --transport out, or name a GPU kernel with \
         --kernel on a machine with GPUs."
    )]
    NoGpu { asked: &'static str },
}

/// What one rank knows.
#[derive(Clone, Debug)]
struct Facts {
    /// The same for two ranks exactly if they have the same GPU.
    gpu: u64,
    /// Of its NCCL; `None` if it has none.
    nccl: Option<Version>,
    /// Whether its MPI takes GPUs' memory; `None` if it does not say.
    mpi: Option<bool>,
}

/// Whether the MPI library that this program runs on takes memory of GPUs; `None` if it does not
/// say. Open MPI has a function for it.
pub fn mpi_takes_gpu_memory() -> Option<bool> {
    let this = libloading::os::unix::Library::this();
    // SAFETY: the type is that of Open MPI's extension, which has no requirements.
    let query =
        unsafe { this.get::<unsafe extern "C" fn() -> c_int>(b"MPIX_Query_cuda_support\0") };
    // SAFETY: as above.
    query.ok().map(|query| unsafe { query() } == 1)
}

/// Chooses how parts travel between the GPUs that ranks multiply on. All ranks call it, and all
/// get the same answer; `None` for ranks that multiply in the host's memory.
///
/// # Errors
///
/// The way that is asked for is not available.
pub fn transport(
    world: &Ranks,
    asked: Asked,
    device: &Device,
    is_native: bool,
) -> Result<Option<Transport>, TransportError> {
    let gpu = match device {
        Device::Cuda(gpu) if !is_native => Some(gpu),
        _ => None,
    };
    let loaded = gpu.map(|_| Nccl::load());
    // A number of the GPU, whether there is one, NCCL's version, and what MPI says.
    let version = |nccl: &Nccl| nccl.version().number();
    let own = [
        gpu.map_or(0, |gpu| identity(gpu.properties().ordinal)),
        u64::from(gpu.is_some()),
        match &loaded {
            Some(Ok(nccl)) => u64::from(version(nccl)),
            _ => 0,
        },
        mpi_takes_gpu_memory().map_or(2, u64::from),
    ];
    let all = world.all_gather(&own);
    let (all, _) = all.as_chunks::<4>();
    // Ranks that differ in that have parts that differ in where they lie.
    if all.iter().any(|[_, has_gpu, ..]| *has_gpu == 0) {
        return match asked {
            Asked::Auto => Ok(None),
            Asked::Peer => Err(TransportError::NoGpu { asked: "peer" }),
            Asked::Nccl => Err(TransportError::NoGpu { asked: "nccl" }),
            Asked::Mpi => Err(TransportError::NoGpu { asked: "mpi" }),
            Asked::Pinned => Err(TransportError::NoGpu { asked: "pinned" }),
        };
    }
    let facts = all.iter().map(|&[gpu, _, nccl, mpi]| Facts {
        gpu,
        nccl: (nccl > 0).then(|| Version::of(nccl as u32)),
        mpi: (mpi < 2).then_some(mpi == 1),
    });
    let facts: Vec<Facts> = facts.collect();
    let why = loaded.as_ref().and_then(|loaded| loaded.as_ref().err());
    let (mut way, mut reason) = choose(asked, &facts, why.map(ToString::to_string))?;
    let suits = match asked {
        Asked::Auto => (2..=MOST_PEERS).contains(&world.size()),
        Asked::Peer => world.size() > 1,
        Asked::Nccl | Asked::Mpi | Asked::Pinned => false,
    };
    if let (Way::Nccl, Some(gpu), true) = (way, gpu, suits) {
        match (open_each_other(world, gpu), asked) {
            (Ok(()), _) => {
                way = Way::Peer;
                reason += ", and opens the others' memory";
            }
            (Err(why), Asked::Peer) => return Err(TransportError::NoPeerAccess { why }),
            (Err(why), _) => reason += &format!("; not by peer access, as {why}"),
        }
    }
    Ok(Some(Transport {
        way,
        reason,
        nccl: loaded.and_then(Result::ok).filter(|_| way.has_nccl()),
    }))
}

/// Tries whether each rank can read memory of all others' GPUs, and if not, says why. All ranks
/// call it, and all get the same answer.
fn open_each_other(world: &Ranks, gpu: &CudaDevice) -> Result<(), String> {
    let mut hasher = DefaultHasher::new();
    host_name().hash(&mut hasher);
    let share = || -> Result<_, DeviceError> {
        gpu.enter()?;
        let memory = gpu.allocate::<u8>(1)?;
        let exported = Exported::of(memory.as_device_ptr().as_ptr())?;
        Ok((memory, exported))
    };
    let shared = share();
    let mut own = [hasher.finish(); 1 + WORDS];
    if let Ok((_, exported)) = &shared {
        own[1..].copy_from_slice(&exported.words());
    }
    let all = world.all_gather(&own);
    let (all, _) = all.as_chunks::<{ 1 + WORDS }>();
    if all.iter().any(|[host, ..]| *host != all[0][0]) {
        return Err("ranks are on several hosts".to_string());
    }
    all_can(world, shared.as_ref().err(), "share its GPU's memory")?;
    let of_others = all
        .iter()
        .enumerate()
        .filter(|(rank, _)| *rank != world.rank());
    let open = |(_, words): (usize, &[u64; 1 + WORDS])| {
        let exported = words.last_chunk::<WORDS>().map(Exported::from_words);
        Opened::open(&exported.unwrap_or_default())
    };
    let opened: Result<Vec<Opened>, DeviceError> = of_others.map(open).collect();
    let opens = opened.map(drop);
    // What others have opened may be freed when they have closed it, as they all have here.
    all_can(world, opens.err().as_ref(), "open other ranks' memory")
}

/// Whether all ranks could do something. All of them call it, and all get the same answer.
fn all_can(world: &Ranks, own: Option<&DeviceError>, what: &str) -> Result<(), String> {
    match world.first_failure(own) {
        None => Ok(()),
        Some((rank, why)) => Err(format!("rank {rank} cannot {what}: {why}")),
    }
}

/// A number that two processes share if they have the same GPU of the same host: of the host's
/// name and the GPU's place on its bus, since GPUs may be numbered differently for each process.
fn identity(ordinal: u32) -> u64 {
    let place = || -> CudaResult<[i32; 3]> {
        let device = CudaOrdinal::get_device(ordinal)?;
        Ok([
            device.get_attribute(DeviceAttribute::PciDomainId)?,
            device.get_attribute(DeviceAttribute::PciBusId)?,
            device.get_attribute(DeviceAttribute::PciDeviceId)?,
        ])
    };
    let mut hasher = DefaultHasher::new();
    host_name().hash(&mut hasher);
    // A driver that does not say the place still numbers its GPUs.
    place()
        .unwrap_or([-1, -1, ordinal as i32])
        .hash(&mut hasher);
    hasher.finish()
}

/// The way, and why, from what the ranks know, in their order; `why_no_nccl` is what this rank's
/// search for NCCL said.
fn choose(
    asked: Asked,
    ranks: &[Facts],
    why_no_nccl: Option<String>,
) -> Result<(Way, String), TransportError> {
    let without = ranks.iter().position(|rank| rank.nccl.is_none());
    let no_nccl = without.map(|rank| match why_no_nccl {
        Some(why) => first_in_lower_case(why.trim_end_matches('.')),
        None => format!("rank {rank} finds no NCCL"),
    });
    let shared = shared(ranks);
    let no_mpi = ranks.iter().find(|rank| rank.mpi != Some(true));
    let no_mpi = no_mpi.map(|rank| match rank.mpi {
        None => {
            "this MPI does not say that it takes GPUs' memory (it has no \
                 MPIX_Query_cuda_support)"
        }
        _ => "this MPI does not take GPUs' memory (MPIX_Query_cuda_support returns 0)",
    });
    let version = ranks[0]
        .nccl
        .map_or(String::new(), |version| version.to_string());
    let chosen = |way| (way, "asked for with --transport".to_string());
    match asked {
        Asked::Nccl | Asked::Peer => {
            let asked = match asked {
                Asked::Peer => "peer",
                _ => "nccl",
            };
            match (no_nccl, shared) {
                (Some(why), _) => Err(TransportError::NoNccl { asked, why }),
                (None, Some(shared)) => Err(TransportError::SharedGpu { asked, shared }),
                (None, None) => Ok((Way::Nccl, format!("{version}, asked for with --transport"))),
            }
        }
        Asked::Mpi => match no_mpi {
            Some(why) => Err(TransportError::NoGpuMemory {
                why: why.to_string(),
            }),
            None => Ok(chosen(Way::Mpi)),
        },
        Asked::Pinned => Ok(chosen(Way::Pinned)),
        Asked::Auto => {
            let no_nccl = match (no_nccl, shared) {
                (None, None) => {
                    let reason = format!("{version} is here, and each rank has a GPU of its own");
                    return Ok((Way::Nccl, reason));
                }
                (Some(why), _) => why,
                (None, Some(shared)) => format!("{shared}, which NCCL does not take"),
            };
            match no_mpi {
                None => Ok((Way::Mpi, format!("not NCCL, as {no_nccl}"))),
                Some(no_mpi) => Ok((
                    Way::Pinned,
                    format!("not NCCL, as {no_nccl}; not MPI alone, as {no_mpi}"),
                )),
            }
        }
    }
}

/// Which ranks share a GPU, if any do.
fn shared(ranks: &[Facts]) -> Option<String> {
    let mut gpus: Vec<u64> = ranks.iter().map(|rank| rank.gpu).collect();
    gpus.sort_unstable();
    gpus.dedup();
    (gpus.len() < ranks.len()).then(|| {
        format!(
            "{} share {}",
            plural(ranks.len(), "rank"),
            plural(gpus.len(), "GPU")
        )
    })
}

/// A sentence that goes on after others, unless it begins with an abbreviation.
fn first_in_lower_case(sentence: &str) -> String {
    let mut letters = sentence.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => sentence.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(gpus: &[u64], nccl: bool, mpi: Option<bool>) -> Vec<Facts> {
        let facts = |&gpu| Facts {
            gpu,
            nccl: nccl.then(|| Version::of(22105)),
            mpi,
        };
        gpus.iter().map(facts).collect()
    }

    #[test]
    fn without_a_wish_it_is_nccl_then_mpi_then_page_locked_memory_and_the_reason_says_why() {
        for (gpus, nccl, mpi, way, parts) in [
            (
                [1, 2],
                true,
                Some(false),
                Way::Nccl,
                ["2.21.5 is here", "each rank has a GPU of its own"],
            ),
            (
                [1, 1],
                true,
                Some(true),
                Way::Mpi,
                ["2 ranks share 1 GPU", "which NCCL does not take"],
            ),
            (
                [1, 2],
                false,
                Some(true),
                Way::Mpi,
                ["not NCCL, as", "finds no NCCL"],
            ),
            (
                [1, 2],
                false,
                Some(false),
                Way::Pinned,
                ["finds no NCCL", "MPIX_Query_cuda_support returns 0"],
            ),
            (
                [1, 1],
                true,
                None,
                Way::Pinned,
                ["2 ranks share 1 GPU", "has no MPIX_Query_cuda_support"],
            ),
        ] {
            let chosen = choose(Asked::Auto, &ranks(&gpus, nccl, mpi), None);
            let (found, reason) = chosen.unwrap();
            assert_eq!(found, way, "{reason}");
            for part in parts {
                assert!(reason.contains(part), "no `{part}` in {reason}");
            }
        }
    }

    #[test]
    fn one_rank_without_it_is_enough_for_all_to_do_without() {
        let mut facts = ranks(&[1, 2, 3], true, Some(true));
        facts[1].nccl = None;
        assert_eq!(choose(Asked::Auto, &facts, None).unwrap().0, Way::Mpi);
        facts[2].mpi = Some(false);
        let (way, reason) = choose(Asked::Auto, &facts, None).unwrap();
        assert_eq!(way, Way::Pinned);
        assert!(reason.contains("rank 1 finds no NCCL"), "{reason}");
    }

    #[test]
    fn a_way_that_is_asked_for_is_taken_or_refused() {
        let ways = [
            (Asked::Nccl, Way::Nccl),
            (Asked::Mpi, Way::Mpi),
            (Asked::Pinned, Way::Pinned),
        ];
        for (asked, way) in ways {
            let chosen = choose(asked, &ranks(&[1, 2], true, Some(true)), None).unwrap();
            assert_eq!(chosen.0, way);
            assert!(chosen.1.ends_with("asked for with --transport"));
        }
        let refused = |asked, ranks: Vec<Facts>| choose(asked, &ranks, None).unwrap_err();
        let no_nccl = refused(Asked::Nccl, ranks(&[1], false, None));
        assert!(matches!(no_nccl, TransportError::NoNccl { .. }));
        let shared = refused(Asked::Nccl, ranks(&[1, 2, 1], true, None));
        let expected = "3 ranks share 2 GPUs".to_string();
        let shared_gpu = TransportError::SharedGpu {
            asked: "nccl",
            shared: expected,
        };
        assert_eq!(shared, shared_gpu);
        for mpi in [None, Some(false)] {
            let no_mpi = refused(Asked::Mpi, ranks(&[1], true, mpi));
            assert!(matches!(no_mpi, TransportError::NoGpuMemory { .. }));
        }
    }
}
