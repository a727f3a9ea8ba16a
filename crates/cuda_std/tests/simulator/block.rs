//! `block_reduce`.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the contract of each call is what its test is about"
)]

use cuda_std::block::block_reduce;
use cuda_std::simulator::{Launch, ThreadOrder};
use cuda_std::thread;
use cuda_std::warp::WarpReductionOp;

#[test]
fn every_thread_of_a_block_of_any_size_gets_the_result() {
    for threads in [1, 31, 32, 33, 64, 100, 1024] {
        for order in (3..9).map(ThreadOrder::Random).chain(ThreadOrder::ALL) {
            let launch = Launch::new(2, threads).thread_order(order);
            let result = launch.run(|| unsafe {
                let i = thread::thread_idx_x();
                let sum = threads * (threads - 1) / 2;
                assert_eq!(block_reduce(i as f32, WarpReductionOp::Add), sum as f32);
                assert_eq!(
                    block_reduce(f64::from(i), WarpReductionOp::Max),
                    f64::from(threads - 1)
                );
                assert_eq!(
                    block_reduce(-i.cast_signed(), WarpReductionOp::Min),
                    1 - threads.cast_signed()
                );
                assert_eq!(block_reduce(i, WarpReductionOp::Add), sum);
            });
            result.unwrap();
        }
    }
}
