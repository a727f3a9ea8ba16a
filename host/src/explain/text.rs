//! The explanation for people.

use std::io::{self, Write};

use super::{Explanation, drawing};
use crate::report::{new_table, speed};

/// Writes it, with a drawing.
///
/// # Errors
///
/// Writing fails.
pub fn write(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let Explanation {
        kernel,
        idea,
        source,
        dtype,
        launch,
        ..
    } = explanation;
    writeln!(out, "{kernel}: {idea}")?;
    writeln!(
        out,
        "{source}; {} of {dtype} (m x n x k)\n",
        explanation.shape()
    )?;
    writeln!(
        out,
        "{}",
        drawing::draw(explanation.variant, explanation.shape())
    )?;

    writeln!(
        out,
        "grid       {} x {} = {}{}",
        launch.grid_x,
        launch.grid_y,
        plural(u64::from(launch.grid_x) * u64::from(launch.grid_y), "block"),
        match launch.launches {
            0 | 1 => String::new(),
            launches => format!(" a launch; {launches} launches, {} blocks", launch.blocks),
        }
    )?;
    writeln!(
        out,
        "block      {} x {} = {} in {}, for {} x {} of C{}",
        launch.block_x,
        launch.block_y,
        plural(u64::from(launch.block_x * launch.block_y), "thread"),
        plural(u64::from(launch.warps()), "warp"),
        launch.tile_m,
        launch.tile_n,
        match launch.tile_k {
            1 => String::new(),
            depth => format!(", {depth} of k at a time"),
        }
    )?;
    writeln!(
        out,
        "thread     {} x {} of C",
        launch.patch_m, launch.patch_n
    )?;
    write_sharing(explanation, out)?;
    writeln!(out)?;
    write_traffic(explanation, out)?;
    write_roofline(explanation, out)?;
    write_resources(explanation, out)
}

fn plural(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// What is launched before and after the kernel, and what each of its blocks has to do, if that is not a tile.
fn write_sharing(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    for copy in &explanation.copies {
        writeln!(
            out,
            "before     {} is {} to {} x {}{}",
            copy.matrix,
            match copy.transposed {
                true => "transposed",
                false => "copied",
            },
            copy.rows,
            copy.columns,
            match copy.padded {
                true => ", with zeros up to whole tiles",
                false => "",
            }
        )?;
    }
    let Some(sharing) = &explanation.sharing else {
        return Ok(());
    };
    let held = match explanation.occupancy {
        Some(_) => "as many as run at once",
        None => "one for each multiprocessor, since occupancy is unknown",
    };
    writeln!(
        out,
        "sharing    rows of {} blocks, {held}{}",
        sharing.streams,
        match sharing.whole_rounds {
            0 => String::new(),
            1 => "; in the first a tile each".to_string(),
            rows => format!("; in the first {rows} a tile each"),
        }
    )?;
    writeln!(
        out,
        "           the last row shares {} of {} each: {:.1} steps a block",
        plural(sharing.shared_tiles as u64, "tile"),
        plural(sharing.steps_of_tile as u64, "step"),
        sharing.steps_of_block
    )?;
    match sharing.split_tiles {
        0 => writeln!(out, "           no tile is in several hands")?,
        tiles => writeln!(
            out,
            "after      fix_up adds the {} parts of {}; {} of workspace in all",
            sharing.parts,
            plural(tiles as u64, "tile"),
            bytes(sharing.workspace_bytes)
        )?,
    }
    match &explanation.rest {
        None => Ok(()),
        Some(rest) => writeln!(
            out,
            "rest       the last {} of C by {}, {}",
            plural(rest.columns as u64, "column"),
            rest.kernel,
            plural(rest.blocks, "block")
        ),
    }
}

fn write_traffic(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    // Who moves it is said where it is not the kernel alone.
    let is_alone = explanation.traffic.iter().all(|moved| moved.by == "kernel");
    let mut table = new_table();
    let by = (!is_alone).then_some("by");
    let head = ["memory", "", "matrix", "formula", "elements", "bytes"];
    table.set_header(by.into_iter().chain(head));
    for moved in &explanation.traffic {
        let by = (!is_alone).then(|| moved.by.to_string());
        let row = [
            moved.memory.to_string(),
            moved.direction.to_string(),
            moved.matrix.to_string(),
            moved.formula.clone(),
            grouped(moved.elements),
            bytes(moved.bytes),
        ];
        table.add_row(by.into_iter().chain(row));
    }
    writeln!(out, "{table}\n")?;
    for memory in ["global", "shared"] {
        let [read, written] =
            ["read", "write"].map(|direction| explanation.bytes(memory, direction));
        if read + written > 0 {
            writeln!(
                out,
                "{memory:<10} {} read, {} written",
                bytes(read),
                bytes(written)
            )?;
        }
    }
    if explanation.launch.ragged && explanation.variant.whole {
        writeln!(
            out,
            "           Tiles do not divide this shape. The copies have zeros beyond the edges of A and B, which are multiplied too."
        )?;
    } else if explanation.launch.ragged {
        writeln!(
            out,
            "           Tiles do not divide this shape. Nothing beyond an edge is read from global memory, but tiles in\n\
             \x20          shared memory, and what is computed from them, are rounded up to whole ones."
        )?;
    }
    writeln!(
        out,
        "intensity  {:.2} operations a byte of global memory that threads ask for; {:.1} if every element moved once\n",
        explanation.intensity, explanation.compulsory_intensity
    )
}

fn write_roofline(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let roofline = &explanation.roofline;
    writeln!(
        out,
        "GPU        {}{}: {} multiprocessors at {} MHz, peak {}, memory {:.2} TB/s",
        roofline.gpu,
        match roofline.gpu_is_here {
            true => "",
            false => " (not here: figures of its data sheet)",
        },
        roofline.multiprocessors,
        roofline.clock_mhz,
        speed(roofline.peak_flops_per_s),
        roofline.bandwidth_bytes_per_s / 1e12
    )?;
    let side = match roofline.bound {
        "memory" => "below",
        _ => "above",
    };
    writeln!(
        out,
        "roofline   {:.2} is {side} the ridge at {:.1} operations a byte: bound by {}, at most {} without help of caches\n",
        explanation.intensity,
        roofline.ridge,
        roofline.bound,
        speed(roofline.attainable_flops_per_s)
    )
}

fn write_resources(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let dynamic = explanation.launch.dynamic_shared_bytes;
    let Some(resources) = &explanation.resources else {
        let why = explanation.no_resources.as_deref().unwrap_or_default();
        return writeln!(
            out,
            "registers  unknown, and so is occupancy. {why}\nshared     {dynamic} bytes of dynamic shared memory a block"
        );
    };
    writeln!(
        out,
        "registers  {} a thread ({}), {}",
        resources.registers,
        resources.architecture,
        match (resources.spill_store_bytes, resources.spill_load_bytes) {
            (0, 0) => "none spilled".to_string(),
            (stored, loaded) => format!("{stored} bytes of spills stored, {loaded} loaded"),
        }
    )?;
    if resources.stack_bytes > 0 {
        writeln!(out, "stack      {} bytes a thread", resources.stack_bytes)?;
    }
    writeln!(
        out,
        "shared     {} bytes static and {dynamic} dynamic a block",
        resources.static_shared_bytes
    )?;
    if let Some(occupancy) = &explanation.occupancy {
        let limits = &occupancy.limits;
        let shared = limits
            .shared_memory
            .map_or(String::new(), |limit| format!(", shared memory {limit}"));
        writeln!(
            out,
            "occupancy  {:.0} %: {} blocks of {} warps a multiprocessor, limited by {} (warps allow {}, blocks {}, registers {}{shared})",
            occupancy.occupancy * 100.0,
            occupancy.blocks,
            explanation.launch.warps(),
            occupancy.limited_by.join(" and "),
            limits.warps,
            limits.blocks,
            limits.registers
        )?;
    }
    if let Some(waves) = &explanation.waves {
        writeln!(
            out,
            "waves      {} of {} blocks at once, the last one {:.0} % full",
            waves.waves,
            waves.blocks_at_once,
            waves.last * 100.0
        )?;
    }
    Ok(())
}

/// With a blank between groups of three digits.
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

/// In the binary unit that suits them.
fn bytes(count: u128) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} bytes");
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
    use crate::explain::tests::explained;
    use crate::explain::{Occupancy, Resources, Waves};
    use crate::gpu::Capability;
    use crate::gpu::occupancy::Needs;

    #[test]
    fn the_text_is_as_in_its_golden_file() {
        let mut explanation = explained("conflict-free-sn8");
        // The same on every machine, whatever ptxas it has.
        explanation.no_resources = None;
        explanation.resources = Some(Resources {
            architecture: "sm_90".to_string(),
            registers: 128,
            static_shared_bytes: 8192,
            stack_bytes: 0,
            spill_store_bytes: 0,
            spill_load_bytes: 0,
        });
        let needs = Needs {
            threads: 256,
            registers: 128,
            shared_bytes: 8192,
        };
        let occupancy = Capability::of((9, 0)).map(|capability| Occupancy::of(capability, needs));
        explanation.waves = Waves::of(1024, 2, 132);
        explanation.occupancy = occupancy;
        let mut out = Vec::new();
        write(&explanation, &mut out).unwrap();
        crate::golden::compare("src/explain/golden/conflict-free.txt", &out);
    }

    #[test]
    fn without_ptxas_it_says_why_and_what_to_do() {
        let mut explanation = explained("naive");
        explanation.resources = None;
        explanation.occupancy = None;
        explanation.waves = None;
        explanation.no_resources = Some("Install this.".to_string());
        let mut out = Vec::new();
        write(&explanation, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("registers  unknown, and so is occupancy. Install this.\n"),
            "{text}"
        );
    }

    #[test]
    fn numbers_are_grouped_and_bytes_come_in_units() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(grouped(123), "123");
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(64 << 20), "64.0 MiB");
    }
}
