//! The generic functions that other crates call, for each type of element.
//!
//! A generic function is compiled in the crates that name it for a type, unless one that they
//! depend on has done so. Named here, they are compiled once, and optimised in a dev build.

use std::hint::black_box;

use gpu_gemm::{Bf16, E4m3, F16};

use crate::data::{Data, Matrix, Number, Problem};
use crate::run::{self, Resident, several};
use crate::verify::alarm::Alarm;
use crate::verify::{self, ErrorModel, computed, reference};

/// Nothing calls it.
pub fn of_all_types() {
    of::<f32>();
    of::<f64>();
    of::<i32>();
    of::<Bf16>();
    of::<F16>();
    of_inputs::<Bf16, f32>();
    of_inputs::<F16, f32>();
    of_inputs::<E4m3, f32>();
    of_inputs::<E4m3, Bf16>();
}

fn of<T: Number>() {
    of_inputs::<T, T>();
    black_box(verify::exact::<T> as fn(_, _, _, _) -> _);
    black_box(verify::general::<T> as fn(_, _, _, Option<Data>, _, _) -> _);
    black_box(verify::general::<T> as fn(_, _, _, Data, _, _) -> _);
    black_box(verify::small_integers::<T> as fn(_) -> _);
    black_box(ErrorModel::exact_data_of::<T> as fn(_, _, _) -> _);
    black_box(Alarm::new::<T> as fn(_, _, _) -> _);
    black_box(computed::operands::<T> as fn(_) -> _);
    black_box(reference::element::<T> as fn(_, _, _) -> _);
    black_box(reference::in_own_type::<T> as fn(_, _, _) -> _);
    black_box(crate::cpu::run::<T> as fn(_, _, _) -> _);
    black_box(run::run::<T> as fn(_, _, _, _) -> _);
    black_box(Resident::<T>::new as fn(_, _) -> _);
    black_box(Resident::<T>::allocated as fn(_, _, _) -> _);
    black_box(Resident::<T>::run as fn(_, _, _, _) -> _);
    black_box(several::run::<T> as fn(_, _, _, _) -> _);
    black_box(Problem::<T>::new as fn(_, _, _, _, _) -> _);
    black_box(Problem::<T>::of_batch as fn(_, _, _) -> _);
    black_box(Problem::<T>::product as fn(_, _) -> _);
    black_box(Problem::<T>::random as fn(_, _, _, _, _, _) -> _);
    black_box(Problem::<T>::random_as as fn(_, _, _, _, _, _) -> _);
    black_box(Matrix::<T>::moved_to as fn(_, _) -> _);
    black_box(Matrix::<T>::hash_of_bits as fn(_) -> _);
    black_box(Matrix::<T>::transposed as fn(_, _) -> _);
    black_box(Matrix::<T>::first_padding_difference as fn(_, _) -> _);
}

fn of_inputs<Input: Number, C: Number>() {
    black_box(Problem::<C>::factors_as::<Input> as fn(_) -> _);
    black_box(Matrix::<C>::converted::<Input> as fn(_) -> _);
}
