//! The explanation for people.

use std::io::{self, Write};

use super::explanation::Explanation;
use super::resources;
use super::work::{Copied, Remainder, Work};
use crate::report::{new_table, speed};
use crate::traffic::{self, Access, By, Direction, Space};
use gpu_gemm::gpu::occupancy::{WARP, Waves};
use gpu_gemm::gpu_kernels::spec::Unit;
use gpu_gemm::launch::Waits;
use gpu_gemm::plan::Panel;
use gpu_gemm::text::plural;
use serde::Serialize;

/// Writes the explanation.
pub fn write(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let variant = explanation.variant();
    let kernel = gpu_gemm::gpu_kernels::kernel_of(variant);
    let (idea, source) = kernel.map_or(("", ""), |kernel| (kernel.idea, kernel.source));
    writeln!(out, "{}: {idea}", variant.name)?;
    let (shape, data_type) = (explanation.question.shape, variant.types.data_type());
    writeln!(out, "{source}; {shape} of {data_type} (m x n x k)\n")?;
    let tile = match (variant.tile.m, variant.tile.n, variant.tile.k) {
        (m, n, 1) => format!("{m} x {n}"),
        (m, n, k) => format!("{m} x {n}, {k} of k at a time"),
    };
    writeln!(
        out,
        "CTA        {} in {}, for a block tile of {tile}",
        plural(u64::from(variant.block.threads()), "thread"),
        plural(u64::from(warps(explanation)), "warp")
    )?;
    let (thread_m, thread_n) = variant.thread_tile;
    writeln!(out, "thread     a thread tile of {thread_m} x {thread_n}")?;
    if let Unit::TensorCores { warp_tile: (m, n) } = variant.unit {
        let unit = variant.unit.name();
        writeln!(out, "warp       a warp tile of {m} x {n}, on {unit}")?;
    }
    write_work(explanation, out)?;
    writeln!(out, "\n{}\n", launches(explanation))?;
    write_traffic(explanation, out)?;
    write_roofline(explanation, out)?;
    write_ceilings(explanation, out)?;
    write_resources(explanation, out)
}

/// Warps of a CTA.
fn warps(explanation: &Explanation) -> u32 {
    explanation.variant().block.threads().div_ceil(WARP)
}

/// The launches, in order.
fn launches(explanation: &Explanation) -> impl std::fmt::Display {
    let mut table = new_table();
    let head = ["launch", "grid", "CTAs", "threads", "dyn. shared", "begins"];
    table.set_header(head);
    for launch in explanation.plan.launches() {
        let ((x, y), (threads_x, threads_y)) = (launch.grid, launch.block);
        let begins = match launch.waits {
            Waits::InTheKernel => "early, waits",
            _ => "in order",
        };
        table.add_row([
            launch.kernel.name.to_string(),
            format!("{x} x {y}"),
            grouped(launch.ctas().into()),
            format!("{threads_x} x {threads_y}"),
            bytes(launch.dynamic_shared_bytes.into()),
            begins.to_string(),
        ]);
    }
    table
}

/// Operand copies, and each CTA's work if it is not one tile.
fn write_work(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let plan = &explanation.plan;
    if plan.panels().iter().any(Panel::is_transposed) {
        let meaning = "its rows are columns of C, and its B is A";
        writeln!(
            out,
            "transposed the kernel computes C^T = B^T * A^T: {meaning}"
        )?;
    }
    for copy in Copied::of(plan) {
        let (matrix, rows, columns) = (copy.matrix, copy.rows, copy.columns);
        let is = if copy.transposed {
            "transposed"
        } else {
            "copied"
        };
        let zeros = match copy.padded {
            true => ", with zeros up to exact tiles",
            false => "",
        };
        writeln!(
            out,
            "copy       {matrix} is {is} to {rows} x {columns}{zeros}"
        )?;
    }
    if let Some(work) = Work::of(plan) {
        let first = match work.data_parallel_waves {
            0 => String::new(),
            1 => ", the first with a tile each".to_string(),
            waves => format!(", the first {waves} with a tile each"),
        };
        writeln!(
            out,
            "stream-K   waves of {}{first}; the last one divides {} of {} each: {:.1} a CTA",
            plural(work.ctas, "CTA"),
            plural(work.stream_k_tiles as u64, "tile"),
            plural(work.k_iterations as u64, "k-iteration"),
            work.k_iterations_per_cta
        )?;
        match work.split_tiles {
            0 => writeln!(out, "           no tile is split")?,
            tiles => writeln!(
                out,
                "fix-up     adds the {} of {}; {} of workspace in all",
                plural(work.segments as u64, "segment"),
                plural(tiles as u64, "tile"),
                bytes(work.workspace_bytes)
            )?,
        }
    }
    let Some(remainder) = Remainder::of(plan) else {
        return Ok(());
    };
    let (columns, kernel) = (plural(remainder.columns as u64, "column"), remainder.kernel);
    let ctas = plural(remainder.ctas, "CTA");
    writeln!(
        out,
        "remainder  the last {columns} of C by {kernel}, {ctas}"
    )
}

fn write_traffic(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    // The launch is named unless the kernel alone moves all elements.
    let traffic = &explanation.traffic;
    let is_alone = traffic.accesses.iter().all(|moved| moved.by == By::Kernel);
    let mut table = new_table();
    let by = (!is_alone).then_some("by");
    let head = ["memory", "of", "formula", "elements", "bytes"];
    table.set_header(by.into_iter().chain(head));
    for moved in &traffic.accesses {
        let by = (!is_alone).then(|| spelled(moved.by));
        let row = [
            format!("{} {}", spelled(moved.space), spelled(moved.direction)),
            moved.matrix.to_string(),
            moved.formula.clone(),
            grouped(moved.elements),
            bytes(moved.bytes),
        ];
        table.add_row(by.into_iter().chain(row));
    }
    writeln!(out, "{table}\n")?;
    for memory in [Space::Global, Space::Shared] {
        let moved = [Direction::Read, Direction::Write].map(|way| traffic.bytes(memory, way));
        if moved != [0, 0] {
            let ([read, written], memory) = (moved.map(bytes), spelled(memory));
            writeln!(out, "{memory:<10} {read} read, {written} written")?;
        }
    }
    let is_beside_formula = |moved: &Access| moved.is_beside_formula;
    if explanation.is_ragged() || traffic.accesses.iter().any(is_beside_formula) {
        let note =
            "Tiles do not divide this shape: those at the edges are staged and computed in full.";
        writeln!(out, "           {note}")?;
    }
    let (question, types) = (&explanation.question, explanation.variant().types);
    let compulsory =
        traffic::compulsory_intensity(question.shape, types.data_type(), question.reads_c);
    writeln!(
        out,
        "intensity  {:.2} operations a byte of global memory that threads request; {compulsory:.1} if every element moved once\n",
        explanation.intensity
    )
}

fn write_roofline(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let (roofline, gpu) = (&explanation.roofline, &explanation.question.gpu);
    let from = match explanation.question.gpu_is_here {
        true => "",
        false => " (not here: figures from its data sheet)",
    };
    writeln!(
        out,
        "GPU        {}{from}: {} at {} MHz, peak {}, memory {:.2} TB/s",
        gpu.name,
        plural(gpu.sms, "SM"),
        gpu.clock_mhz,
        speed(roofline.peak_flops_per_s),
        gpu.bandwidth_bytes_per_s / 1e12
    )?;
    let (intensity, ridge, bound) = (explanation.intensity, roofline.ridge, roofline.bound);
    let side = if bound == "memory" { "below" } else { "above" };
    writeln!(
        out,
        "roofline   {intensity:.2} is {side} the ridge at {ridge:.1} operations a byte: bound by {bound}, at most {} without help from caches",
        speed(roofline.attainable_flops_per_s)
    )
}

/// The ceilings of the mainloop's instructions, and the lowest of all ceilings.
fn write_ceilings(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let Some(ceilings) = &explanation.ceilings else {
        return writeln!(
            out,
            "ceilings   of loads and of instruction issue: unknown, since only machine code of f32 was counted\n"
        );
    };
    let up_to_peak = |allowed: f64| speed(allowed.min(explanation.roofline.peak_flops_per_s));
    let (fmas, all) = (ceilings.multiply_adds, ceilings.instructions);
    if let Some(allowed) = ceilings.loads_flops_per_s {
        let loads = [
            (ceilings.shared_loads, "shared"),
            (ceilings.global_loads, "global"),
        ];
        let loads = loads.into_iter().filter(|(count, _)| *count > 0);
        let loads = loads.map(|(count, from)| format!("{count} from {from} memory"));
        writeln!(
            out,
            "loads      {} for {} in the mainloop ({}), and an SM starts one warp load per clock: at most {}",
            loads.collect::<Vec<_>>().join(" and "),
            plural(fmas as u64, "FMA"),
            ceilings.architecture,
            up_to_peak(allowed)
        )?;
    }
    writeln!(
        out,
        "issue      {:.1} % of the mainloop's instructions are FMAs, {fmas} of {all}: at most {}",
        100.0 * fmas as f64 / all as f64,
        up_to_peak(ceilings.issue_flops_per_s)
    )?;
    let (lowest, at_most) = (ceilings.lowest, speed(ceilings.lowest_flops_per_s));
    write!(out, "lowest     {lowest}: at most {at_most}")?;
    let (cached, at_most) = (
        ceilings.lowest_cached,
        speed(ceilings.lowest_cached_flops_per_s),
    );
    if lowest != cached {
        write!(
            out,
            "; if caches serve all reads of global memory, {cached}: {at_most}"
        )?;
    }
    writeln!(out, "\n")
}

fn write_resources(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let (question, variant) = (&explanation.question, explanation.variant());
    let dynamic = variant.dynamic_shared_bytes(question.shape.k);
    let resources = match &explanation.resources {
        Ok(resources) => resources,
        Err(why) => {
            let dynamic = plural(dynamic, "byte");
            writeln!(out, "registers  unknown, and so is occupancy. {why}")?;
            return writeln!(out, "shared     {dynamic} of dynamic shared memory a CTA");
        }
    };
    let (registers, architecture) = (resources.registers, &resources.architecture);
    let spills = match (resources.spill_store_bytes, resources.spill_load_bytes) {
        (0, 0) => "none spilled".to_string(),
        (stored, loaded) => {
            let stored = plural(stored, "byte");
            format!("{stored} of spills stored, {loaded} loaded")
        }
    };
    writeln!(
        out,
        "registers  {registers} a thread ({architecture}), {spills}"
    )?;
    if resources.stack_bytes > 0 {
        let stack = plural(resources.stack_bytes, "byte");
        writeln!(out, "stack      {stack} a thread")?;
    }
    let fixed = plural(resources.static_shared_bytes, "byte");
    writeln!(out, "shared     {fixed} static and {dynamic} dynamic a CTA")?;
    let gpu = &question.gpu;
    let occupancy = resources::occupancy(gpu.capability, variant, resources, dynamic);
    let shared = occupancy.limits.shared_memory;
    let shared = shared.map_or(String::new(), |limit| format!(", shared memory {limit}"));
    writeln!(
        out,
        "occupancy  {:.0} %: {} of {} an SM, limited by {} (warps allow {}, CTAs {}, registers {}{shared})",
        occupancy.occupancy * 100.0,
        plural(occupancy.ctas, "CTA"),
        plural(warps(explanation), "warp"),
        occupancy.limited_by.join(" and "),
        occupancy.limits.warps,
        occupancy.limits.ctas,
        occupancy.limits.registers
    )?;
    if let Some(waves) = Waves::of(explanation.ctas(), occupancy.ctas, gpu.sms) {
        let (count, at_once) = (waves.waves, plural(waves.ctas_at_once, "CTA"));
        let full = waves.last * 100.0;
        writeln!(
            out,
            "waves      {count} of {at_once} at once, the last one {full:.0} % full"
        )?;
    }
    Ok(())
}

/// A value as serde spells it.
fn spelled(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_string()
}

/// A number with blanks between groups of three digits.
fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Bytes in a suitable binary unit.
fn bytes(count: u128) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return plural(count, "byte");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::explanation::tests::explained;
    use crate::explain::resources::Resources;
    use expect_test::expect_file;

    #[test]
    fn the_text_is_as_in_its_golden_file() {
        let mut explanation = explained("conflict-free-k8");
        // So that the text does not depend on the machine's ptxas.
        explanation.resources = Ok(Resources {
            architecture: "sm_90".to_string(),
            registers: 128,
            static_shared_bytes: 8192,
            stack_bytes: 0,
            spill_store_bytes: 0,
            spill_load_bytes: 0,
        });
        let mut out = Vec::new();
        write(&explanation, &mut out).unwrap();
        expect_file!["golden/conflict-free.txt"].assert_eq(std::str::from_utf8(&out).unwrap());
    }

    #[test]
    fn numbers_are_grouped_and_bytes_come_in_units() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(grouped(123), "123");
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(64 << 20), "64.0 MiB");
    }
}
