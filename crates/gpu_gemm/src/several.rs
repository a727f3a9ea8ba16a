//! The library call on several devices.

use crate::backend::Space;
use crate::call::{MatrixLayout, Shape, Transpose};
use crate::device::several::Devices;
use crate::launch::{Element, MultipliesInto};
use crate::matrix::{GemmError, Input, Output, Span};

impl Devices {
    /// `C = alpha * op(A) * op(B) + beta * C` on row-major matrices in host memory, of one of the
    /// element types of [`gemm`](crate::gemm), each given with its leading dimension, and A and B
    /// also with their transposes, as in the table there. They are spread over the devices, each
    /// computes its part of C while it receives panels from the others, and C is copied back.
    ///
    /// ```
    /// use gpu_gemm::{Device, DeviceChoice, Shape, Transpose};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let two: DeviceChoice = "sim+sim".parse()?;
    /// let device = Device::open(two)?.device;
    /// let devices = device.several().expect("two were asked for");
    /// let (a, b) = ([1.0f32, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]); // 2 x 2
    /// let mut c = [0.0; 4];
    /// let no = Transpose::No;
    /// devices.gemm(1.0, (&a, 2, no), (&b, 2, no), 0.0, (&mut c, 2), Shape::cube(2))?;
    /// assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A leading dimension is too small, a matrix does not fit into its slice, a device has no
    /// kernel for the type, or a device, which the error names, fails; in that case C is unchanged
    /// or incomplete.
    pub fn gemm<T: MultipliesInto<C>, C: Element>(
        &self,
        alpha: T::Scalar,
        (a, lda, transpose_a): (&[T], usize, Transpose),
        (b, ldb, transpose_b): (&[T], usize, Transpose),
        beta: T::Scalar,
        (c, ldc): (&mut [C], usize),
        shape: Shape,
    ) -> Result<(), GemmError> {
        let Shape { m, n, k } = shape;
        let check = |name, span: Span, size, leading| {
            let layout = MatrixLayout::one(size, leading);
            span.check(name, layout, Space::Host).map(|_| ())
        };
        check('A', Input::from(a).span, transpose_a.of((m, k)), lda)?;
        check('B', Input::from(b).span, transpose_b.of((k, n)), ldb)?;
        check('C', Output::from(&mut *c).span, (m, n), ldc)?;
        if shape.is_empty() {
            return Ok(());
        }
        let product = (shape, [transpose_a, transpose_b]);
        let scalars = (alpha.scalar(), beta.scalar());
        let mut product = self.streamed::<T, C>(product, self.count(), scalars, None)?;
        product.multiply((a, lda), (b, ldb), (c, ldc))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::{Context, WORKSPACE};

    fn devices(count: usize) -> Devices {
        let members = (0..count).map(|_| Device::simulator());
        Devices::of(members.collect()).unwrap()
    }

    /// Multiplies small integers in `T` and `C`, with A stored as k x m, and with padded rows.
    fn multiplies<T: MultipliesInto<C>, C: Element + std::fmt::Debug>(
        of: impl Fn(i32) -> T,
        of_c: impl Fn(i32) -> C,
        (alpha, beta): (T::Scalar, T::Scalar),
    ) {
        let (m, n, k) = (21, 18, 5);
        let (lda, ldb, ldc) = (m + 3, n + 2, n + 1);
        let a_at = |row: usize, index: usize| (row * 3 + index) as i32 % 9 - 4;
        let b_at = |index: usize, column: usize| (column * 2 + index * 7 % 5) as i32 % 5 - 2;
        let a: Vec<T> = (0..k * lda)
            .map(|at| of(a_at(at % lda, at / lda)))
            .collect();
        let b: Vec<T> = (0..k * ldb)
            .map(|at| of(b_at(at / ldb, at % ldb)))
            .collect();
        let sum = |row, column| (0..k).map(|l| a_at(row, l) * b_at(l, column)).sum::<i32>();
        let want = |at: usize| match at % ldc < n {
            true => of_c(2 * sum(at / ldc, at % ldc) - 7),
            false => of_c(7),
        };
        for count in [1, 2, 4] {
            let mut c = vec![of_c(7); m * ldc];
            let (a, b) = ((&a[..], lda, Transpose::Yes), (&b[..], ldb, Transpose::No));
            let shape = Shape::new(m, n, k);
            let done = devices(count).gemm(alpha, a, b, beta, (&mut c, ldc), shape);
            done.unwrap();
            assert_eq!(
                c,
                (0..m * ldc).map(want).collect::<Vec<C>>(),
                "{count} devices"
            );
        }
    }

    #[test]
    fn the_call_multiplies_every_type() {
        let single = |value| value as f32;
        let bf16 = |value: i32| half::bf16::from_f64(value.into());
        let f16 = |value: i32| half::f16::from_f64(value.into());
        multiplies(single, single, (2.0, -1.0));
        multiplies(f64::from, f64::from, (2.0, -1.0));
        multiplies(|value| value, |value| value, (2, -1));
        multiplies(bf16, bf16, (2.0, -1.0));
        multiplies(f16, f16, (2.0, -1.0));
        multiplies(bf16, single, (2.0, -1.0));
        multiplies(f16, single, (2.0, -1.0));
    }

    #[test]
    fn what_does_not_fit_is_refused_as_by_the_call_on_one_device() {
        let (a, b, mut c) = (vec![0.0; 5], vec![0.0; 6], vec![0.0; 4]);
        let mut done = |lda, m| {
            let (a, b) = ((&a[..], lda, Transpose::No), (&b[..], 2, Transpose::No));
            devices(2).gemm(1.0, a, b, 0.0, (&mut c, 2), Shape::new(m, 2, 3))
        };
        assert!(matches!(
            done(2, 2),
            Err(GemmError::ShortLeadingDimension { .. })
        ));
        assert!(matches!(done(3, 2), Err(GemmError::ShortBuffer { .. })));
        assert!(done(3, 0).is_ok());
    }

    #[test]
    fn a_context_is_for_one_device_and_says_what_several_are_for() {
        let several = Device::from(devices(2));
        let error = Context::new(&several, WORKSPACE).err().unwrap().to_string();
        assert!(error.contains("multiply with `Devices::gemm`"), "{error}");
    }
}
