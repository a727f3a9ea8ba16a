//! The yardsticks compute as their names say: cuBLAS and cublasLt multiply f32 and f64 in IEEE 754
//! arithmetic by default, and only those named for TF32 round their operands to it.

use gpu_gemm::DataType;
use host::measure::Effort;
use host::measure::cublas::{self, Cublas, Interface, Precision};
use host::measure::gpu::{Contender, measure};
use libtest_mimic::{Failed, Trial};
use tests::devices::{Backend, why_no_gpu};
use verification::data::{Matrix, Number, Problem};
use verification::run::Resident;

pub fn trials() -> Vec<Trial> {
    let is_ignored = why_no_gpu().is_some() || cublas::find().is_none();
    let trial = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::test(format!("gpu::yardsticks::{name}"), test).with_ignored_flag(is_ignored)
    };
    let trials = vec![
        trial("libraries_keep_all_bits_of_f32", || {
            keeps::<f32>(f32::EPSILON.into(), Precision::Of(DataType::F32), true)
        }),
        trial("libraries_keep_all_bits_of_f64", || {
            keeps::<f64>(f64::EPSILON, Precision::Of(DataType::F64), true)
        }),
        trial("libraries_for_tf32_do_not", || {
            keeps::<f32>(f32::EPSILON.into(), Precision::Tf32, false)
        }),
    ];
    trials
}

const SIZE: usize = 128;

/// Whether each column of C is bit-identical to the first of A, if the first row of B is ones and
/// all other elements are zero. That column's elements differ by `step`, their last bit.
fn keeps<T: Number>(step: f64, precision: Precision, is_kept: bool) -> Result<(), Failed> {
    let of = T::nearest;
    let zero = of(0.0);
    let value = |row: usize| of(1.0 + row as f64 * step);
    let of_a = |row, column| if column == 0 { value(row) } else { zero };
    let a = Matrix::from_elements(SIZE, SIZE, of_a)?;
    let b = Matrix::from_elements(SIZE, SIZE, |row, _| if row == 0 { of(1.0) } else { zero })?;
    let c = Matrix::from_elements(SIZE, SIZE, |_, _| zero)?;
    let problem = Problem::new(of(1.0), zero, a, b, c)?;
    Backend::Gpu.run(|opened| {
        let Some(device) = opened.one_gpu() else {
            return Err("this is no GPU".into());
        };
        for interface in Interface::ALL {
            let library = Cublas::load(device, interface, precision)?;
            let effort = Effort::of(1, None);
            let mut kept = None;
            let mut check = |_: usize, c: Matrix<T>| {
                let mut rows = (0..SIZE).map(|row| (row, c.row(row)));
                let is_value = |(row, elements): (usize, &[T])| {
                    elements.iter().all(|element| *element == value(row))
                };
                kept = Some(rows.all(is_value));
            };
            let contenders = [Contender::Cublas(&library)];
            let mut resident = Resident::new(opened, &problem);
            measure(&mut resident, &contenders, effort, &|_| (), &mut check)?;
            if kept != Some(is_kept) {
                let name = library.name();
                return Err(format!("{name} keeps all bits: {kept:?}, not {is_kept}").into());
            }
        }
        Ok(())
    })
}
