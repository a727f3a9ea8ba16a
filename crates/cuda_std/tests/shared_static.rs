//! Statics in shared memory: the running block's own, by their names and by their addresses.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "each thread uses elements of its own, or what a barrier has made safe"
)]

use cuda_std::ptr::{AddressSpace, is_in_address_space};
use cuda_std::simulator::{Fault, Launch, ThreadOrder};
use cuda_std::{address_space, pipeline, shared, thread};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

/// A tile that a kernel declares by itself.
struct Tile(UnsafeCell<[u32; 32]>);

// SAFETY: the kernel's threads each write an element of their own.
unsafe impl Sync for Tile {}

// SAFETY: its only field is an `UnsafeCell`.
unsafe impl shared::SharedContent for Tile {}

#[address_space(shared)]
static TILE: Tile = Tile(UnsafeCell::new([0; 32]));

#[address_space(constant)]
static STEP: u32 = 3;

/// Words at a multiple of 16 bytes, which asynchronous copies need.
#[repr(align(16))]
struct Words([u32; 32]);

#[address_space(shared)]
static mut WORDS: MaybeUninit<Words> = MaybeUninit::uninit();

#[address_space(shared)]
static mut LARGE: MaybeUninit<[u8; 48 * 1024]> = MaybeUninit::uninit();

fn by_name() -> *mut u32 {
    TILE.0.get().cast()
}

fn by_address() -> *mut u32 {
    (&raw mut WORDS).cast()
}

#[test]
fn each_block_has_its_own() {
    for words in [by_name, by_address] {
        let launch = Launch::new(20, 32);
        let result = launch.run_in_all_orders(&mut [0u32; 0], |_| {
            let (i, block) = (thread::thread_idx_x() as usize, thread::block_idx_x());
            unsafe {
                assert_eq!(*words().add(i), u32::MAX);
                thread::sync_threads();
                *words().add(i) = block * STEP + i as u32;
                thread::sync_threads();
                assert_eq!(*words().add(31 - i), block * STEP + 31 - i as u32);
            }
        });
        result.unwrap();
        let launched = launch.run(|| unsafe { *words() = 1 }).unwrap();
        assert_eq!(launched.shared_bytes, 32 * 4);
    }
}

#[test]
fn both_ways_find_the_same_memory() {
    let result = Launch::new(2, 1).run(|| unsafe {
        *by_address().add(3) = 7;
        #[expect(static_mut_refs, reason = "by its name")]
        let by_name = WORDS.as_mut_ptr().cast::<u32>();
        assert_eq!((by_name, *by_name.add(3)), (by_address(), 7));
        assert!(is_in_address_space(by_name, AddressSpace::Shared));
        assert!(!is_in_address_space(&raw const STEP, AddressSpace::Shared));
        *by_name.add(3) = 8;
        assert_eq!(*by_address().add(3), 8);
    });
    assert_eq!(result.unwrap().shared_bytes, 32 * 4);
}

#[test]
fn asynchronous_copies_write_to_it() {
    let source = Words(std::array::from_fn(|i| i as u32 + 1));
    let result = Launch::new(1, 1).run(|| unsafe {
        pipeline::memcpy_async(by_address().cast(), source.0.as_ptr().cast::<[u32; 4]>());
        pipeline::commit();
        pipeline::wait_prior::<0>();
        assert_eq!(*by_address().cast::<[u32; 4]>(), source.0[..4]);
    });
    result.unwrap();
}

#[test]
fn more_than_a_block_can_have_is_a_fault() {
    let result = Launch::new(1, 1).run(|| unsafe {
        (&raw mut LARGE).cast::<u8>().write(1);
        *by_address() = 1;
    });
    let sentence = result.unwrap_err().to_string();
    let words = "Thread (0, 0, 0) of block (0, 0, 0), at crates/cuda_std/tests/shared_static.rs:";
    assert!(sentence.starts_with(words), "{sentence}");
    assert!(
        sentence.contains("needs 49280 bytes of shared memory"),
        "{sentence}"
    );
}

#[test]
fn a_write_behind_its_end_is_a_fault() {
    for words in [by_name, by_address] {
        let fault = Launch::new(1, 32).run(|| {
            if thread::thread_idx_x() == 5 {
                unsafe { *words().add(32 + 2) = 7 };
            }
            thread::sync_threads();
        });
        let sentence = fault.unwrap_err().to_string();
        let words = "Thread (5, 0, 0) of block (0, 0, 0) has written past the end of shared memory, before it came to \
                     sync_threads() at crates/cuda_std/tests/shared_static.rs:";
        assert!(sentence.starts_with(words), "{sentence}");
        assert!(
            sentence.contains("to byte 136 of the array of 128 bytes"),
            "{sentence}"
        );
    }
}

#[test]
fn an_update_without_an_atomic_is_lost_among_threads_at_once() {
    let count = |order| {
        let launch = Launch::new(1, 32).thread_order(order);
        let result = launch.run(|| unsafe {
            if thread::thread_idx_x() == 0 {
                *by_address() = 0;
            }
            thread::sync_threads();
            *by_address() += 1;
            thread::sync_threads();
            assert_eq!(*by_address(), 32);
        });
        result.map(|_| ())
    };
    count(ThreadOrder::Forward).unwrap();
    assert!(matches!(
        count(ThreadOrder::AtOnce),
        Err(Fault::Panic { .. })
    ));
}

#[test]
fn the_blocks_of_a_cluster_cannot_use_it() {
    for words in [by_name, by_address] {
        let launch = Launch::new(2, 1).cluster(2);
        let sentence = launch
            .run(|| unsafe { *words() = 1 })
            .unwrap_err()
            .to_string();
        let words = "A block of a cluster has used the static in shared memory at crates/cuda_std/tests/shared_static.rs:";
        assert!(sentence.starts_with(words), "{sentence}");
    }
}
