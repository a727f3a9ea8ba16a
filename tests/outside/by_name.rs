//! Runs the kernel that its argument names in the simulator, at a few shapes; it fails unless
//! every element is right.

use std::error::Error;

use gpu_gemm::{
    Bindings, Call, Decomposition, ElementType, KERNELS, Plan, Scalar, Shape, Simulator, Transpose,
    run,
};

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("which kernel?")?;
    let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
    let kernel = kernel.ok_or("there is no such kernel")?;
    let variant = &kernel.variants[0];
    for (m, n, k) in [(1, 1, 1), (8, 64, 3), (33, 70, 17)] {
        let mut a: Vec<f32> = (0..m * k).map(|at| (at % 13) as f32 - 6.0).collect();
        let mut b: Vec<f32> = (0..k * n).map(|at| (at % 11) as f32 - 5.0).collect();
        let mut c = vec![f32::NAN; m * n];
        let call = Call::compact(
            Shape { m, n, k },
            Transpose::No,
            Transpose::No,
            ElementType::F32,
        );
        let plan = Plan::new(variant, call, Decomposition::DATA_PARALLEL)?;
        let mut workspace = vec![0u8; plan.workspace_bytes()];
        let bindings = Bindings {
            alpha: Scalar::F32(1.0),
            beta: Scalar::F32(0.0),
            a: a.as_mut_ptr().cast(),
            b: b.as_mut_ptr().cast(),
            c: c.as_mut_ptr().cast(),
            workspace: workspace.as_mut_ptr(),
        };
        let simulator = Simulator::default();
        // SAFETY: the vectors hold the plan's matrices and its workspace, and nothing else
        // touches them until the simulator is done.
        unsafe { run(&simulator.observed(&|| ()), &plan, &bindings)? };
        for row in 0..m {
            for column in 0..n {
                let sum: f32 = (0..k).map(|l| a[row * k + l] * b[l * n + column]).sum();
                assert_eq!(
                    c[row * n + column],
                    sum,
                    "{m} x {n} x {k}: C[{row}][{column}]"
                );
            }
        }
    }
    println!("{}: {}", kernel.name, kernel.idea);
    Ok(())
}
