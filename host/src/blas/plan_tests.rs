//! Tests of plans, on the table's own kernels.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::{Grid, Storage, Variant};

use super::{Call, Pack, Plan, Processor, Role, Sharing, Stored, Transpose};
use crate::choose::{self, Rates, candidates};
use crate::problem::Shape;

/// As predicted for an H200.
fn choose(call: Call, processor: &Processor, workspace: usize) -> Result<Plan<'static>, usize> {
    choose::choose(call, processor, &Rates::H200, None, workspace)
}

/// The first variant that streams and is like this.
fn streaming(is: impl Fn(&Variant) -> bool) -> &'static Variant {
    let mut variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
    variants
        .find(|variant| variant.grid == Grid::Streams && is(variant))
        .unwrap()
}

fn along_tile(whole: bool) -> &'static Variant {
    streaming(|variant| {
        let storages = [variant.a, variant.b];
        variant.whole == whole && storages == [Storage::AlongTile; 2]
    })
}

const SHAPE: Shape = Shape {
    m: 1024,
    n: 2048,
    k: 512,
};

fn planned(variant: &'static Variant, call: Call) -> Plan<'static> {
    Plan::new(variant, call, Sharing::NONE).unwrap()
}

#[test]
fn what_lies_as_the_kernel_wants_it_is_read_in_place() {
    let call = Call::compact(SHAPE, Transpose::Yes, Transpose::No);
    for whole in [true, false] {
        let plan = planned(along_tile(whole), call);
        assert_eq!(plan.packs().count(), 0);
        assert_eq!(plan.workspace_elements(), 0);
    }
    let call = Call::compact(SHAPE, Transpose::No, Transpose::Yes);
    let across = streaming(|variant| [variant.a, variant.b] == [Storage::AlongSums; 2]);
    assert_eq!(planned(across, call).packs().count(), 0);
    let double = gpu_kernels::double_buffer::KERNEL.variants;
    let call = Call::compact(SHAPE, Transpose::No, Transpose::No);
    assert_eq!(planned(&double[0], call).packs().count(), 0);
}

#[test]
fn what_lies_otherwise_is_transposed_one_copy_after_the_other() {
    let call = Call::compact(SHAPE, Transpose::No, Transpose::Yes);
    let plan = planned(along_tile(true), call);
    let [a, b] = [Role::A, Role::B].map(|role| plan.packed(role).unwrap());
    let expected = Pack {
        role: Role::A,
        transposed: true,
        source: (1024, 512),
        target: (512, 1024),
        offset: 0,
    };
    assert_eq!(a, expected);
    let expected = Pack {
        role: Role::B,
        transposed: true,
        source: (2048, 512),
        target: (512, 2048),
        offset: 512 * 1024,
    };
    assert_eq!(b, expected);
    assert_eq!(plan.workspace_elements(), 512 * (1024 + 2048));
    assert_eq!(a.grid(), (1024 / 64, 512 / 64));
}

#[test]
fn misaligned_rows_are_copied_to_aligned_ones() {
    let stored = |transpose, leading| Stored::at(0x1000, leading, transpose);
    let shape = Shape {
        m: 1001,
        n: 2048,
        k: 500,
    };
    let call = Call {
        shape,
        a: stored(Transpose::Yes, 1001),
        b: stored(Transpose::No, 2048),
    };
    let edges = planned(along_tile(false), call);
    let a = edges.packed(Role::A).unwrap();
    assert_eq!((a.transposed, a.source), (false, (500, 1001)));
    assert_eq!(a.target, (500, 1004));
    assert_eq!(edges.packed(Role::B), None);
    // Whole tiles: 500 is no multiple of 8, so that B is copied, too.
    let whole = planned(along_tile(true), call);
    assert_eq!(whole.packed(Role::A).unwrap().target, (504, 1024));
    assert_eq!(whole.packed(Role::B).unwrap().target, (504, 2048));
    assert!(!Stored::at(0x1004, 2048, Transpose::No).aligned);
}

#[test]
fn nothing_is_copied_for_sums_without_products_or_a_c_without_elements() {
    for shape in [
        Shape { k: 0, ..SHAPE },
        Shape { m: 0, ..SHAPE },
        Shape { n: 0, ..SHAPE },
    ] {
        let call = Call::compact(shape, Transpose::No, Transpose::Yes);
        let plan = planned(along_tile(true), call);
        assert_eq!(plan.workspace_elements(), 0);
        assert_eq!(plan.grids().unwrap().len(), usize::from(shape.k == 0));
    }
}

#[test]
fn split_tiles_have_two_places_a_stream_behind_the_copies() {
    let call = Call::compact(SHAPE, Transpose::No, Transpose::No);
    let variant = along_tile(true);
    let sharing = Sharing {
        streams: 100,
        whole_waves: 0,
    };
    let plan = Plan::new(variant, call, sharing).unwrap();
    let tile = (variant.tile.m * variant.tile.n) as usize;
    assert!(plan.is_split());
    assert_eq!(plan.partials_offset(), 512 * 1024);
    assert_eq!(plan.workspace_elements(), 512 * 1024 + 200 * tile);
    assert_eq!(plan.grid(), Some((100, 1)));
    let tiles = plan.tiles() as u32;
    assert_eq!(plan.fix_up_grid(), Some((tile as u32 / 2048, tiles)));
    assert_eq!(plan.grids().unwrap().len(), 3);
}

#[test]
fn columns_that_fill_no_tile_go_to_another_kernel_in_whole_tiles_of_that_if_that_can_be() {
    let wide = streaming(|variant| variant.rest.is_some());
    assert_eq!((wide.tile.m, wide.tile.n), (128, 192));
    let columns = |n| {
        let call = Call::compact(Shape { n, ..SHAPE }, Transpose::No, Transpose::No);
        let plan = planned(wide, call);
        let rest = plan.rest();
        let of_rest = rest.map_or(0, |rest| rest.call().shape.n);
        assert_eq!(plan.call().shape.n + of_rest, n);
        of_rest
    };
    for (n, of_rest) in [
        (384, 0),
        (100, 0),
        (193, 1),
        (320, 128),
        (2048, 128),
        (4096, 256),
        (8192, 128),
        (16384, 256),
        // Of so few columns none is left for the wide tiles if the rest is to be whole tiles.
        (256, 64),
    ] {
        assert_eq!(columns(n), of_rest, "{n}");
    }
}

#[test]
fn a_rest_uses_the_copy_of_a_and_the_same_workspace() {
    let wide = streaming(|variant| variant.rest.is_some());
    let call = Call::compact(SHAPE, Transpose::No, Transpose::Yes);
    let sharing = Sharing {
        streams: 100,
        whole_waves: 0,
    };
    let plan = Plan::new(wide, call, sharing).unwrap();
    let rest = plan.rest().unwrap();
    assert_eq!(plan.parts().count(), 2);
    assert_eq!(rest.packed(Role::A), plan.packed(Role::A));
    let made: Vec<Role> = plan.packs().map(|pack| pack.role).collect();
    assert_eq!(made, [Role::A, Role::B]);
    // Of B there is a copy of other columns, in the place of the copy before.
    let made: Vec<Pack> = rest.packs().collect();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].source, (128, 512));
    assert_eq!(made[0].offset, plan.packed(Role::B).unwrap().offset);
    assert!(plan.workspace_elements() >= rest.workspace_elements());
    assert!(rest.follows() && rest.rest().is_none());
    // Two copies, a kernel and its parts; a copy, a kernel and its parts.
    assert_eq!(plan.grids().unwrap().len(), 7);
}

#[test]
fn copies_larger_than_any_memory_have_no_plan() {
    let shape = Shape {
        m: usize::MAX / 2,
        n: 1,
        k: 512,
    };
    let call = Call::compact(Shape { m: 1, ..shape }, Transpose::No, Transpose::No);
    let call = Call { shape, ..call };
    assert!(Plan::new(along_tile(true), call, Sharing::NONE).is_none());
}

#[test]
fn a_plan_fits_the_workspace_and_the_gpu() {
    let ampere = Processor::new(80, 108, Vec::new());
    let turing = Processor::new(75, 40, Vec::new());
    for a in Transpose::ALL {
        for b in Transpose::ALL {
            let call = Call::compact(SHAPE, a, b);
            let of = |processor| candidates(call, processor).into_iter();
            assert!(of(&ampere).any(|plan| plan.variant().grid == Grid::Streams));
            assert!(of(&turing).all(|plan| plan.variant().grid != Grid::Streams));
            let free = choose(call, &ampere, usize::MAX).unwrap();
            let tight = free.workspace_elements().saturating_sub(1);
            match choose(call, &ampere, tight) {
                Ok(plan) => assert!(plan.workspace_elements() <= tight),
                Err(needed) => assert!(needed > tight),
            }
        }
    }
    // Without transpositions there always is one that reads in place.
    let call = Call::compact(SHAPE, Transpose::No, Transpose::No);
    assert_eq!(choose(call, &turing, 0).unwrap().workspace_elements(), 0);
}
