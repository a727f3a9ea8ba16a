//! Clusters: what the blocks of one see of each other, and what a missing wait does.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the contract of each call is what its test is about"
)]

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::simulator::{BarrierSite, Fault, Launch, ThreadOrder};
use cuda_std::tma::{self, Swizzle, Tiles};
use cuda_std::{cluster, shared, shared_array, thread};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Each block tells its number to the next of its cluster.
fn pass_on(seen: &[AtomicU32]) {
    let mine = shared_array![u32; 1];
    let block = thread::block_idx_x();
    if thread::thread_idx_x() == 0 {
        unsafe { mine.write(100 + block) };
    }
    cluster::sync_threads(); // all have written
    if thread::thread_idx_x() == 1 {
        let next = (cluster::rank() + 1) % cluster::blocks();
        let value = unsafe { cluster::shared_of(mine, next).read() };
        seen[block as usize].store(value, Ordering::Relaxed);
    }
    cluster::sync_threads(); // all have read
}

fn passed_on(launch: &Launch) -> (Result<Vec<BarrierSite>, Fault>, Vec<u32>) {
    let seen: Vec<AtomicU32> = (0..6).map(|_| AtomicU32::new(0)).collect();
    let report = launch.run(|| pass_on(&seen));
    let sites = report.map(|report| report.waits.into_keys().collect());
    (sites, seen.into_iter().map(AtomicU32::into_inner).collect())
}

#[test]
fn each_block_reads_what_the_next_of_its_cluster_has_written() {
    for order in ThreadOrder::ALL {
        let launch = Launch::new(6, 64).thread_order(order);
        let (report, seen) = passed_on(&launch.clone().cluster(3));
        assert_eq!(report.map(|sites| sites.len()), Ok(2), "{order:?}");
        assert_eq!(seen, [101, 102, 100, 104, 105, 103], "{order:?}");
        // Without clusters each block is its own neighbour.
        let (_, alone) = passed_on(&launch);
        assert_eq!(alone, [100, 101, 102, 103, 104, 105], "{order:?}");
    }
}

#[test]
fn each_barrier_of_a_cluster_is_missed() {
    let whole = Launch::new(6, 64).cluster(3);
    let (sites, right) = passed_on(&whole);
    let sites = sites.unwrap();
    assert_eq!(sites.len(), 2);
    for site in sites {
        let launch = unsafe { whole.clone().without_wait(site) };
        let (report, seen) = passed_on(&launch);
        let is_missed = report.is_err() || seen != right;
        assert!(is_missed, "nothing shows without {site}");
    }
}

/// Each block of a cluster of two brings half of 16 rows to both.
fn multicast(launch: &Launch) -> (Result<Vec<BarrierSite>, Fault>, Vec<Vec<u16>>) {
    let mut matrix: Vec<[u16; 8]> = (0..16).map(|row| [row; 8]).collect();
    let rows = Tiles {
        global: matrix.as_mut_ptr().cast(),
        element_bytes: 2,
        rounds_to_tf32: false,
        width: 8,
        height: 16,
        row_bytes: 16,
        planes: None,
        box_width: 8,
        box_height: 8,
        swizzle: Swizzle::None,
    };
    let map = rows.simulated().unwrap();
    let seen = Mutex::new(vec![Vec::new(); 2]);
    let report = launch.run(|| {
        let tile = shared::dynamic_shared_mem_aligned::<u16, 1024>();
        let full = shared_array![Mbarrier; 1];
        let rank = cluster::rank();
        unsafe {
            mbarrier::init(full, 1);
            mbarrier::fence_init();
            cluster::sync_threads(); // the barriers may be used
            mbarrier::arrive_expect_tx(full, 2 * 16 * 8);
            let half = tile.add(rank as usize * 8 * 8);
            tma::load_2d_multicast(half, &map, 0, 8 * rank, full, 0b11);
            mbarrier::wait(full, 0); // both halves have landed
            let values = (0..16 * 8).map(|i| *tile.add(i)).collect();
            seen.lock().unwrap()[rank as usize] = values;
        }
        cluster::sync_threads(); // nothing is on its way to another any more
    });
    let sites = report.map(|report| report.waits.into_keys().collect());
    (sites, seen.into_inner().unwrap())
}

#[test]
fn a_box_lands_in_each_block_and_its_waits_are_missed() {
    let right: Vec<u16> = (0..16).flat_map(|row| [row; 8]).collect();
    for order in ThreadOrder::ALL {
        let launch = Launch::new(2, 1).cluster(2).dynamic_shared_bytes(256);
        let launch = launch.thread_order(order);
        let (sites, seen) = multicast(&launch);
        let sites = sites.unwrap();
        assert_eq!(seen, [right.clone(), right.clone()], "{order:?}");
        assert_eq!(sites.len(), 3);
        // The last one only keeps a block from ending: all has landed when it is reached.
        for &site in &sites[..2] {
            let launch = unsafe { launch.clone().without_wait(site) };
            let (report, seen) = multicast(&launch);
            let is_missed = report.is_err() || seen != [right.clone(), right.clone()];
            assert!(is_missed, "{order:?}: nothing shows without {site}");
        }
    }
}

fn refused(launch: Launch, kernel: impl Fn() + Sync) -> String {
    launch.run(kernel).expect_err("a fault").to_string()
}

#[test]
fn what_no_cluster_has_is_refused() {
    let no_such_block = refused(Launch::new(2, 1).cluster(2), || {
        let mine = shared_array![u32; 1];
        unsafe { cluster::shared_of(mine, 2) };
    });
    assert!(no_such_block.contains("has no block 2"), "{no_such_block}");

    let uneven = refused(Launch::new(5, 1).cluster(2), || {});
    assert!(uneven.contains("Clusters of 2 blocks"), "{uneven}");
    let too_many = refused(Launch::new(32, 1).cluster(32), || {});
    assert!(too_many.contains("from 1 to 16"), "{too_many}");

    // One block has ended when the other reads.
    let ended = refused(Launch::new(2, 1).cluster(2), || {
        let mine = shared_array![u32; 1];
        if cluster::rank() == 1 {
            unsafe { cluster::shared_of(mine, 0).read() };
        }
    });
    assert!(
        ended.contains("block 0 of the cluster, which has ended"),
        "{ended}"
    );

    // A barrier that a thread of the other block never reaches.
    let alone = refused(Launch::new(2, 32).cluster(2), || {
        if cluster::rank() == 1 {
            thread::sync_threads();
            return;
        }
        if thread::thread_idx_x() > 0 {
            thread::sync_threads();
        }
        cluster::sync_threads();
    });
    assert!(alone.contains("cluster::sync_threads"), "{alone}");
}
