//! The pictures of the book that show tiles, drawn from the table of kernels and from what each
//! thread writes: one for each kernel, `docs/src/pictures/NAME.svg`. And one of how CTAs share
//! k-iterations.

mod drawing;
mod elements;
mod float4;
mod lanes;
mod ring;
mod roles;
mod rows;
mod split;
mod stream_k;
mod tiles;
mod walk;
mod writers;

use gpu_kernels::spec::{Grid, Kernel};

use crate::ladder::of_floats;

/// The picture of a kernel, as SVG.
///
/// # Errors
///
/// The kernel has no variant for floats, or fails.
pub fn of(kernel: &Kernel) -> Result<String, String> {
    let variants: Vec<_> = of_floats(kernel).collect();
    let Some(&first) = variants.first() else {
        return Err(format!("{} does not multiply floats", kernel.name));
    };
    let title = format!("{}: {}", kernel.name, kernel.idea);
    let drawing = match first.grid {
        Grid::StreamK if first.k_slices > 1 => split::draw(&title, first),
        Grid::Tiles | Grid::StreamK => tiles::draw(&title, first)?,
        Grid::Rows => rows::draw(&title, first),
        Grid::Linear => elements::draw(&title, &variants)?,
        Grid::Persistent => roles::draw(&title, first),
        Grid::PersistentStreamK => stream_k::of_persistent(&title),
    };
    Ok(drawing.finish())
}

/// Makes a picture.
type Make = fn() -> Result<String, String>;

/// The pictures of single ideas: the file's name, and what makes it.
pub const IDEAS: [(&str, Make); 5] = [
    ("stream-k", || Ok(stream_k::draw().finish())),
    ("walk", || Ok(walk::draw().finish())),
    ("float4", || Ok(float4::draw().finish())),
    ("lanes", || Ok(lanes::draw()?.finish())),
    ("ring", || Ok(ring::draw().finish())),
];
