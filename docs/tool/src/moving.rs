//! The data of the figures that move: `docs/moving/data.js`, one object, which the scripts beside
//! it draw. It comes from what kernels and simulator use: the 128-byte swizzle and the division of
//! stream-K are their functions, the ring is a trace of the simulator, and the addresses of other
//! accesses are formulas whose lines must be in the kernels' sources.

use cuda_std::tma::Swizzle;
use gpu_gemm::Decomposition;
use gpu_kernels::stream_k::StreamK;
use serde::Serialize;

use crate::{excerpts, ring};

/// The generated file, relative to the root of the repository.
pub const FILE: &str = "docs/moving/data.js";

#[derive(Serialize)]
struct Data {
    lanes: Vec<Access>,
    ring: ring::Trace,
    stream_k: Divisions,
}

/// What the lanes of a warp access with one instruction, or a quarter of it.
#[derive(Serialize)]
struct Access {
    name: &'static str,
    memory: Space,
    /// The bytes of each lane, and the address of its first.
    bytes: usize,
    addresses: Vec<usize>,
    note: &'static str,
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Space {
    Global,
    Shared,
}

impl Access {
    /// In global memory the number of sectors, in shared memory that of cycles: the most words that
    /// are in one bank.
    #[cfg(test)]
    fn cost(&self) -> usize {
        use std::collections::BTreeSet;
        let words = |first: &usize| (*first..first + self.bytes).step_by(4);
        let words: BTreeSet<usize> = self.addresses.iter().flat_map(words).collect();
        match self.memory {
            Space::Global => words
                .iter()
                .map(|word| word / 32)
                .collect::<BTreeSet<_>>()
                .len(),
            Space::Shared => (0..32)
                .map(|bank| words.iter().filter(|word| **word / 4 % 32 == bank).count())
                .max()
                .unwrap_or(0),
        }
    }
}

/// The accesses that can be chosen. Rows in global memory are 128 bytes apart.
fn accesses() -> Result<Vec<Access>, String> {
    use Space::{Global, Shared};
    let source = |file: &str, line: &str| {
        let file = format!("gpu-kernels/src/{file}.rs");
        excerpts::line(&file, &format!("`{line}`"))
    };
    source("naive", "sum += gemm.a(row, i) * gemm.b(i, col);")?;
    source(
        "vectorized",
        "let b_row = b_tile.add((k4 * 4 + k) * BN + x * TN);",
    )?;
    source("conflict_free", "let (row, col) = (y * 4, x * 4);")?;
    source(
        "conflict_free",
        "*a_tile.add((a_col + j) * A_STRIDE + a_row) = a.0[j];",
    )?;
    let of = |name, memory, bytes, lanes: usize, place: &dyn Fn(usize) -> usize, note| Access {
        name,
        memory,
        bytes,
        addresses: (0..lanes).map(place).collect(),
        note,
    };
    Ok(vec![
        of(
            "naive-1d reads A",
            Global,
            4,
            32,
            &|lane| lane * 128,
            "Each lane is in another row: 32 sectors, 4 bytes of each used.",
        ),
        of(
            "naive reads A",
            Global,
            4,
            32,
            &|_| 0,
            "All lanes read one element of a row of A: one sector.",
        ),
        of(
            "naive reads B",
            Global,
            4,
            32,
            &|lane| lane * 4,
            "Neighbouring lanes read neighbours: four sectors, used in full.",
        ),
        of(
            "vectorized reads B",
            Shared,
            16,
            8,
            &|lane| lane * 8 * 4,
            "A quarter of a warp. Float4s are 32 bytes apart: half of the banks have two words each.",
        ),
        of(
            "conflict-free reads B",
            Shared,
            16,
            8,
            &|lane| lane * 4 * 4,
            "A quarter of a warp. Float4s are neighbours: each bank has one word.",
        ),
        of(
            "conflict-free-sn8 stores A",
            Shared,
            4,
            32,
            &|lane| stored_a(lane, 8),
            "Two rows of the transposed tile, 132 elements apart: all 32 banks.",
        ),
        of(
            "conflict-free-sn16 stores A",
            Shared,
            4,
            32,
            &|lane| stored_a(lane, 16),
            "Four rows: they meet in 16 banks, two words in each.",
        ),
        of(
            "warpgroup, if it did not swizzle",
            Shared,
            16,
            8,
            &|lane| lane * 128,
            "The first 16 bytes of eight rows: all in the same four banks.",
        ),
        of(
            "warpgroup, with the 128-byte swizzle",
            Shared,
            16,
            8,
            &|lane| Swizzle::Bytes128.place(lane * 128),
            "Row r has its piece p in place p ^ (r % 8): eight rows, all banks.",
        ),
    ])
}

/// The byte to which a lane of `conflict-free` stores the first element of its first float4 of A.
fn stored_a(lane: usize, bk: usize) -> usize {
    const A_STRIDE: usize = 128 + 4;
    let (a_row, a_col) = (lane * 4 / bk, lane * 4 % bk);
    (a_col * A_STRIDE + a_row) * 4
}

/// Stream-K's divisions, for each number of CTAs and of tiles.
#[derive(Serialize)]
struct Divisions {
    k_iterations: usize,
    fewest_ctas: usize,
    /// For each number of CTAs, for 1, 2, .. tiles: the data-parallel waves, and the k-iteration of
    /// the other tiles at which each CTA begins; at last their number.
    of_ctas: Vec<Vec<(usize, Vec<usize>)>>,
}

const K_ITERATIONS: usize = 8;
const CTAS: std::ops::RangeInclusive<usize> = 2..=8;
const MOST_TILES: usize = 24;

fn division(tiles: usize, ctas: usize) -> (usize, Vec<usize>) {
    let even = Decomposition::even(tiles, ctas as u32);
    let stream_k = StreamK {
        tile_rows: tiles,
        tile_cols: 1,
        k_iterations: K_ITERATIONS,
        ctas,
        data_parallel_waves: even.data_parallel_waves as usize,
    };
    let first = |cta| stream_k.first_iteration(cta);
    (
        stream_k.data_parallel_waves,
        (0..=ctas).map(first).collect(),
    )
}

/// The file.
///
/// # Errors
///
/// A kernel's source has no longer the line that an access is taken from, or the simulator fails.
pub fn data() -> Result<String, String> {
    let of_ctas = CTAS.map(|ctas| {
        (1..=MOST_TILES)
            .map(|tiles| division(tiles, ctas))
            .collect()
    });
    let data = Data {
        lanes: accesses()?,
        ring: ring::trace()?,
        stream_k: Divisions {
            k_iterations: K_ITERATIONS,
            fewest_ctas: *CTAS.start(),
            of_ctas: of_ctas.collect(),
        },
    };
    let json = serde_json::to_string(&data).map_err(|error| error.to_string())?;
    // An object a line, for people who compare two versions.
    let json = json.replace("},{", "},\n{").replace("]],[[", "]],\n[[");
    Ok(format!(
        "// Written by `cargo run -p book` (docs/tool/src/moving.rs).\nconst MOVING = {json};\n"
    ))
}

/// Where the eight pieces of each row of a box are, with the 128-byte swizzle.
pub fn swizzle() -> String {
    const LEFT: usize = 90;
    const TOP: usize = 84;
    const WIDTH: usize = 92;
    const ROW: usize = 26;
    let (width, height) = (LEFT + 8 * WIDTH + 16, TOP + 8 * ROW + 44);
    let title = "The 128-byte swizzle: piece p of row r is in place p ^ (r % 8)";
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<title>{title}</title>\n<style>\n\
         text {{ font: 13px sans-serif; fill: #1a1a1a }} .small {{ font-size: 11px; fill: #444 }} \
         .head {{ font-weight: bold }} .middle {{ text-anchor: middle }}\n\
         .piece {{ fill: #fff; stroke: #777 }} .first {{ fill: #f5b267; stroke: #777 }}\n</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fdfcf8\"/>\n\
         <text class=\"head\" x=\"16\" y=\"24\">{title}</text>\n\
         <text class=\"small\" x=\"16\" y=\"44\">A row is 128 bytes, eight pieces of 16; a place is \
         four banks. Piece 0 of eight rows is in eight places: all 32 banks.</text>\n"
    );
    let middle = |place: usize| LEFT + place * WIDTH + WIDTH / 2;
    for place in 0..8 {
        let (x, y, first) = (middle(place), TOP - 8, 4 * place);
        let banks = format!("banks {first} to {}", first + 3);
        svg += &format!("<text class=\"small middle\" x=\"{x}\" y=\"{y}\">{banks}</text>\n");
    }
    for row in 0..8 {
        let y = TOP + row * ROW;
        svg += &format!("<text x=\"16\" y=\"{}\">row {row}</text>\n", y + 18);
        for piece in 0..8 {
            let place = Swizzle::Bytes128.place(row * 128 + piece * 16) % 128 / 16;
            let class = if piece == 0 { "first" } else { "piece" };
            let (x, text_x, text_y) = (LEFT + place * WIDTH, middle(place), y + 18);
            svg += &format!(
                "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{ROW}\"/>\n\
                 <text class=\"middle\" x=\"{text_x}\" y=\"{text_y}\">piece {piece}</text>\n"
            );
        }
    }
    let y = TOP + 8 * ROW + 26;
    svg += &format!(
        "<text class=\"small\" x=\"16\" y=\"{y}\">Without the swizzle, piece 0 of every row is in \
         banks 0 to 3, and eight rows take eight cycles.</text>\n</svg>\n"
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_access_costs_what_its_chapter_says() {
        let costs: Vec<usize> = accesses().unwrap().iter().map(Access::cost).collect();
        assert_eq!(costs, [32, 1, 4, 2, 1, 1, 2, 8, 1]);
    }

    #[test]
    fn ctas_have_as_much_to_do_as_each_other() {
        assert_eq!(division(11, 4), (2, vec![0, 6, 12, 18, 24]));
        for (tiles, ctas) in (1..=MOST_TILES).flat_map(|tiles| CTAS.map(move |ctas| (tiles, ctas)))
        {
            let (waves, begins) = division(tiles, ctas);
            let all = begins.last().unwrap() + waves * ctas * K_ITERATIONS;
            assert_eq!(all, tiles * K_ITERATIONS, "{tiles} tiles, {ctas} CTAs");
            let lengths = begins.windows(2).map(|pair| pair[1] - pair[0]);
            let (least, most) = (lengths.clone().min(), lengths.max());
            assert!(most.unwrap() - least.unwrap() <= 1, "{begins:?}");
        }
    }
}
