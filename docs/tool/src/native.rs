//! The rungs of the CPU on two cores: plots of the serial ones by size, of threads and schedules,
//! and of chunks, and figures of the latter two.

use std::collections::BTreeMap;

use host::bench::{Results, pictures};
use host::plot::{Axis, BLUE, Bar, Bars, GREEN, Line, Lines, Row, SKY, Style};
use host::report::Record;

use crate::measured::passed;
use crate::repository::{at_root, read};

/// The serial rungs, and Strassen's algorithm: each one run of `rust-gemm bench`.
const SERIAL: &str = "results/cpu-serial-2-cores.json";
const STRASSEN: &str = "results/cpu-strassen-2-cores.json";
/// A run for each schedule, and number of threads or size of chunks: a list of what `rust-gemm
/// bench` writes.
const SCHEDULES: &str = "results/cpu-schedules-2-cores.json";
/// Whose runs show threads, and whose show chunks.
const BLOCKS: &str = "cpu-blocks";
const ROWS: &str = "cpu-rows";

/// The records of one kernel, with the device and the day.
fn scheduled(kernel: &str) -> Result<(String, Vec<Record>), String> {
    let runs: Vec<Results> = serde_json::from_str(&read(&at_root(SCHEDULES))?)
        .map_err(|error| format!("{SCHEDULES}: {error}"))?;
    if !runs.iter().all(Results::all_passed) {
        return Err(format!("{SCHEDULES}: a rung did not pass"));
    }
    let first = runs
        .first()
        .ok_or_else(|| format!("{SCHEDULES} is empty"))?;
    let day = first.provenance.as_ref().map_or("", |made| made.day());
    let device = first.machine.device.split(',').next().unwrap_or_default();
    let conditions = format!("{device}, 2 cores, f32, {day}.");
    let records = runs.iter().flat_map(|run| &run.sizes);
    let records = records.flat_map(|size| size.results.clone());
    let records: Vec<Record> = records.filter(|one| one.kernel == kernel).collect();
    match records.is_empty() {
        true => Err(format!("{SCHEDULES}: {kernel} was not measured")),
        false => Ok((conditions, records)),
    }
}

fn gflops(record: &Record) -> f64 {
    record.flops_per_s.unwrap_or(0.0) / 1e9
}

/// A speed in GFLOP/s: `cpu-blocks dynamic 2 1024` with a schedule, threads and a size.
pub fn figure(arguments: &str) -> Result<String, String> {
    let [kernel, schedule, threads, size] = arguments.split(' ').collect::<Vec<_>>()[..] else {
        return Err(format!("`scheduled {arguments}` is no figure"));
    };
    let (_, records) = scheduled(kernel)?;
    let mut records = records.iter();
    let record = records.find(|one| {
        one.schedule.as_deref() == Some(schedule)
            && one.threads.map(|count| count.to_string()).as_deref() == Some(threads)
            && one.m.to_string() == size
    });
    let record = record.ok_or_else(|| format!("`scheduled {arguments}` was not measured"))?;
    Ok(format!("{:.0}", gflops(record)))
}

/// The speed of serial rungs by size.
pub fn serial() -> Result<String, String> {
    Ok(pictures::speed(&passed(SERIAL)?))
}

/// The speed of Strassen's algorithm, and of the one that it ends in, by size.
pub fn strassen() -> Result<String, String> {
    Ok(pictures::speed(&passed(STRASSEN)?))
}

/// The speed of each schedule on each number of threads, at each size.
pub fn threads() -> Result<String, String> {
    let (conditions, records) = scheduled(BLOCKS)?;
    let mut rows: BTreeMap<(usize, String), Vec<Bar>> = BTreeMap::new();
    for record in &records {
        let key = (
            record.threads.unwrap_or(0),
            record.schedule.clone().unwrap_or_default(),
        );
        let bars = rows.entry(key).or_default();
        let colour = [BLUE, SKY, GREEN][bars.len().min(2)];
        let speed = gflops(record);
        bars.push(Bar::new(speed, colour, format!("{speed:.0}")));
    }
    let rows = rows.into_iter().map(|((threads, schedule), bars)| Row {
        name: format!("{threads} threads, {schedule}").replace("1 threads", "1 thread"),
        bars,
    });
    let picture = Bars {
        title: format!("Threads and schedules: {BLOCKS}"),
        notes: vec![conditions],
        legend: vec![(BLUE, "512"), (SKY, "1024"), (GREEN, "2048")],
        axis: "GFLOP/s".to_string(),
        rows: rows.collect(),
        ..Bars::default()
    };
    Ok(picture.draw())
}

/// The speed by the size of chunks, of both schedules that have one.
pub fn chunks() -> Result<String, String> {
    let (conditions, records) = scheduled(ROWS)?;
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for record in &records {
        let schedule = record.schedule.as_deref().unwrap_or_default();
        let (name, chunk) = schedule.split_once(',').unwrap_or((schedule, "1"));
        let chunk = chunk
            .parse()
            .map_err(|_| format!("`{schedule}`: a chunk?"))?;
        lines
            .entry(name.to_string())
            .or_default()
            .push((chunk, gflops(record)));
    }
    let mut marks: Vec<f64> = lines.values().flatten().map(|point| point.0).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    let named = lines.into_iter().enumerate();
    let lines = named.map(|(index, (name, mut points))| {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Line {
            name,
            style: Style::of(index),
            points,
            dotted: Vec::new(),
            is_joined: true,
        }
    });
    let picture = Lines {
        title: format!("Chunks: {ROWS} at 2048 on 2 threads, 32 bands of 64 rows"),
        notes: vec![conditions],
        x: Axis {
            title: "bands that a thread takes at once (logarithmic)".to_string(),
            is_logarithmic: true,
            marks: marks
                .into_iter()
                .map(|mark| (mark, mark.to_string()))
                .collect(),
        },
        y: Axis {
            title: "GFLOP/s".to_string(),
            ..Axis::default()
        },
        lines: lines.collect(),
        guides: Vec::new(),
    };
    Ok(picture.draw())
}
