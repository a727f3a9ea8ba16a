//! Runs each checker on results that it must accept, and on wrong ones that it must refuse.

use gpu_gemm::{ElementType, F16};

use super::bound::ErrorBound;
use super::expected::Expected;
use super::outcome::Line;
use super::*;
use crate::data::Storage;

const TILE: Tile = Tile { m: 16, n: 16, k: 8 };
const FULL: Coverage<'static> = Coverage::Full;
const SAMPLED: Coverage<'static> = Coverage::Sampled { seed: 1 };
const BOTH: [Coverage<'static>; 2] = [FULL, SAMPLED];

fn problem<T: Number>(m: usize, n: usize, k: usize, data: Data, alpha: T, beta: T) -> Problem<T> {
    let shape = Shape::new(m, n, k);
    let storage = Storage::padded([3, 1, 2], [1, 2, 3]);
    Problem::random(shape, storage, data, 11, alpha, beta).unwrap()
}

/// `A * B` of `data`.
fn floats(m: usize, n: usize, k: usize, data: Data) -> Problem<f32> {
    problem(m, n, k, data, 1.0, 0.0)
}

/// A problem of integers for the exact gate.
fn integers<T: Number>(m: usize, n: usize, k: usize, alpha: i32, beta: i32) -> Problem<T> {
    let [alpha, beta] = [alpha, beta].map(T::from_integer);
    problem(m, n, k, exact_data::<T>(k).unwrap(), alpha, beta)
}

/// A result computed in a plain loop in the type itself, with a rounding at each step.
fn multiplied<T: Number>(problem: &Problem<T>) -> Matrix<T> {
    let Shape { m, n, .. } = problem.shape();
    let mut c = problem.c.clone();
    for row in 0..m {
        let elements = reference::in_own_type(problem, row, 0..n);
        c.row_mut(row).copy_from_slice(&elements);
    }
    c
}

fn with<T: Number>(
    c: &Matrix<T>,
    (row, col): (usize, usize),
    change: impl Fn(T) -> T,
) -> Matrix<T> {
    let mut changed = c.clone();
    let element = &mut changed.row_mut(row)[col];
    *element = change(*element);
    changed
}

/// The position of the wrong element that a check found.
fn place(outcome: Result<Verdict, Failure>) -> (usize, usize) {
    match outcome {
        Err(Failure::Element(mismatch)) => (mismatch.row, mismatch.col),
        other => panic!("not a wrong element: {other:?}"),
    }
}

/// Elements in row 77 of a C of 300 columns that are not sampled.
fn hidden(seed: u64) -> impl Iterator<Item = (usize, usize)> {
    let samples = sample::positions(Shape::new(200, 300, 1), TILE, seed);
    let row = (0..300).map(|col| (77, col));
    row.filter(move |at| !samples.contains(at))
}

/// [`within_bound`] for uniform numbers, compared in full.
fn uniform_within_bound(problem: &Problem<f32>, c: &Matrix<f32>) -> Result<Verdict, Failure> {
    within_bound(problem, c, TILE, Data::Uniform, FULL)
}

#[test]
fn right_results_pass_every_gate_and_those_of_fewer_bits_do_not() {
    fn check<T: Number>(scalars: &[(i32, i32)], coarse: fn(T) -> T) {
        for &(alpha, beta) in scalars {
            for coverage in BOTH {
                let integers = integers::<T>(37, 53, 41, alpha, beta);
                exact(&integers, &multiplied(&integers), TILE, coverage).unwrap();
                for data in [Data::Uniform, Data::Positive, Data::Normal] {
                    let [alpha, beta] = [alpha, beta].map(T::from_integer);
                    let problem = problem(37, 53, 300, data, alpha, beta);
                    let right = multiplied(&problem);
                    within_bound(&problem, &right, TILE, data, coverage).unwrap();
                    if alpha != T::default() {
                        let wrong = with(&right, (0, 0), coarse);
                        within_bound(&problem, &wrong, TILE, data, coverage).unwrap_err();
                    }
                }
            }
        }
    }
    let all = [(1, 0), (2, -1), (0, 2), (0, 0), (-1, 1)];
    check::<f32>(&all, |element| F16::from_f32(element).to_f32());
    check::<f64>(&all[..2], |element| f64::from(element as f32));
    for coverage in BOTH {
        let problem = problem::<i32>(9, 20, 33, Data::Uniform, -3, 1 << 30);
        within_bound(&problem, &multiplied(&problem), TILE, None, coverage).unwrap();
    }
}

/// Elements have 40 bits after the point, so that the sums of their products are i128 integers
/// times 2^-80. The second half of A cancels the first, except for a remainder in C.
#[test]
fn the_reference_of_f64_is_the_exact_sum_rounded_once_where_a_plain_sum_is_far_off() {
    let (m, n, k) = (5, 21, 3000);
    let random = problem::<f64>(m, n, k, Data::Uniform, 1.0, 1.0);
    let fixed = |element: f64| (element * 2f64.powi(40)).round() / 2f64.powi(40);
    let a = |row, l| match l < k / 2 {
        true => fixed(random.a.row(row)[l]),
        false => -fixed(random.a.row(row)[l - k / 2]),
    };
    let b = |l, col| match (l, col) {
        (2999, 7) => fixed(0.3),
        _ => fixed(random.b.row(l % (k / 2))[col]),
    };
    // 75 bits after the point.
    let c = |row, col| fixed(random.c.row(row)[col]) * 2f64.powi(-35);
    let [matrix_a, matrix_b, matrix_c] = [
        Matrix::from_elements(m, k, a).unwrap(),
        Matrix::from_elements(k, n, b).unwrap(),
        Matrix::from_elements(m, n, c).unwrap(),
    ];
    let problem = Problem::new(3.0, 1.0, matrix_a, matrix_b, matrix_c).unwrap();
    let mut plain_is_off = false;
    let (plain, copied) = (multiplied(&problem), |_, row: &[Expected]| Ok(row.to_vec()));
    let rows = reference::each_row(&problem, FULL, true, copied).unwrap();
    for (row, expected) in rows.iter().enumerate() {
        for (col, expected) in expected.iter().enumerate() {
            let integer = |element: f64, bits: i32| (element * 2f64.powi(bits)) as i128;
            let terms = (0..k).map(|l| integer(a(row, l), 40) * integer(b(l, col), 40));
            // Rounds to nearest, once.
            let sum = 3 * terms.sum::<i128>() + (integer(c(row, col), 75) << 5);
            let want = sum as f64 * 2f64.powi(-80);
            assert_eq!(expected.want, want, "C[{row}][{col}]");
            assert_eq!(reference::element(&problem, row, col).want, want);
            plain_is_off |= (plain.row(row)[col] - want).abs() > 1e3 * f64::EPSILON * want.abs();
        }
    }
    assert!(plain_is_off);
}

/// In corners, in the middle, and where no sample is; in a row where zero is right, too.
#[test]
fn exact_refuses_any_other_number_anywhere() {
    let changes: [fn(f32) -> f32; 7] = [
        f32::next_up,
        |element| element + 1.0,
        |_| 0.5,
        |_| f32::NAN,
        |_| f32::INFINITY,
        |_| -f32::INFINITY,
        |_| f32::MAX,
    ];
    for (beta, seed) in [(0, 0), (0, 1), (0, 2), (1, 3)] {
        let mut problem = integers::<f32>(200, 300, 5, 1, beta);
        problem.a.row_mut(77).fill(0.0);
        let right = multiplied(&problem);
        let places = [(0, 0), (199, 299), (120, 131), hidden(seed).next().unwrap()];
        for coverage in [FULL, Coverage::Sampled { seed }] {
            exact(&problem, &right, TILE, coverage).unwrap();
            for (at, change) in places.iter().flat_map(|at| changes.map(|one| (*at, one))) {
                let changed = with(&right, at, change);
                assert_eq!(place(exact(&problem, &changed, TILE, coverage)), at);
            }
        }
    }
}

/// The result of a kernel that drops the last term of one sum of 16384.
fn dropped_term(data: Data) -> (Problem<f32>, Matrix<f32>) {
    let mut problem = floats(2, 3, 16384, data);
    // A nonzero term to drop: integers are often zero.
    problem.a.row_mut(1)[16383] = 1.0;
    problem.b.row_mut(16383)[2] = 1.0;
    let wrong = with(&multiplied(&problem), (1, 2), |element| element - 1.0);
    (problem, wrong)
}

/// Whether a result is within the bound, whatever the alarm says.
fn is_within_bound(problem: &Problem<f32>, c: &Matrix<f32>) -> bool {
    let bound = ErrorBound::new(problem, ErrorModel::Elementwise).unwrap();
    let rows = reference::each_row(problem, FULL, true, |row, expected| {
        let mut elements = c.row(row).iter().zip(expected);
        Ok(elements.all(|(got, expected)| {
            bound.accepts(f64::from(*got), expected.want, bound.of(expected.magnitude))
        }))
    });
    rows.unwrap().into_iter().all(|row| row)
}

#[test]
fn a_dropped_term_of_16384_passes_the_bound_and_neither_the_exact_gate_nor_the_alarm() {
    let (integers, wrong) = dropped_term(exact_data::<f32>(16384).unwrap());
    for coverage in BOTH {
        assert_eq!(place(exact(&integers, &wrong, TILE, coverage)), (1, 2));
    }
    for data in [Data::Normal, Data::Uniform] {
        let (floats, wrong) = dropped_term(data);
        assert!(is_within_bound(&floats, &wrong));
        let outcome = within_bound(&floats, &wrong, TILE, data, FULL);
        let is_alarm = matches!(outcome, Err(Failure::Alarm { row: 1, col: 2, .. }));
        assert!(is_alarm || data == Data::Normal, "{outcome:?}");
    }
}

/// The product of A and B after each element was rounded to `bits` bits.
fn multiplied_with_bits(problem: &Problem<f32>, bits: i32) -> Matrix<f32> {
    let mut problem = problem.clone();
    for matrix in [&mut problem.a, &mut problem.b] {
        matrix.replace_each(|element| {
            if element == 0.0 {
                return 0.0;
            }
            let unit = 2f32.powi(element.abs().log2().floor() as i32 + 1 - bits);
            (element / unit).round_ties_even() * unit
        });
    }
    multiplied(&problem)
}

/// TF32 keeps 11 bits, bf16 8, the FP8 of machine learning 4 or 3. At k = 4096 TF32 is within the
/// bound, which grows as k, and the error as the root of k.
#[test]
fn inputs_of_reduced_precision_pass_neither_the_exact_gate_nor_the_alarm() {
    for k in [1, 64, 600, 20_011] {
        let problem = integers::<f32>(7, 9, k, 1, 0);
        for coverage in BOTH {
            exact(&problem, &multiplied(&problem), TILE, coverage).unwrap();
            for bits in [11, 8, 4, 3] {
                let wrong = multiplied_with_bits(&problem, bits);
                place(exact(&problem, &wrong, TILE, coverage));
            }
        }
    }
    let kinds = [Data::Uniform, Data::Uniform, Data::Normal];
    for (data, k) in kinds.into_iter().zip([512, 4096, 4096]) {
        let problem = floats(37, 53, k, data);
        within_bound(&problem, &multiplied(&problem), TILE, data, FULL).unwrap();
        for bits in [11, 8] {
            let wrong = multiplied_with_bits(&problem, bits);
            for coverage in BOTH {
                for data in [Some(data), None] {
                    within_bound(&problem, &wrong, TILE, data, coverage).unwrap_err();
                }
            }
            assert!(bits == 8 || k == 512 || is_within_bound(&problem, &wrong));
        }
    }
}

/// Errors that no sample shows: two in a row that add up to zero, and single bits of words.
#[test]
fn freivalds_finds_what_is_not_sampled_whatever_the_seed() {
    let integers = integers::<f32>(200, 300, 5, 1, 0);
    let right = multiplied(&integers);
    let words = problem::<i32>(200, 300, 5, Data::Uniform, 3, -5);
    let right_words = multiplied(&words);
    for seed in 0..5 {
        let coverage = Coverage::Sampled { seed };
        let mut hidden = hidden(seed);
        let [one, other] = [(); 2].map(|()| hidden.next().unwrap());
        let cancelling = with(&right, one, |element| element + 1.0);
        let cancelling = with(&cancelling, other, |element| element - 1.0);
        assert_eq!(place(exact(&integers, &cancelling, TILE, coverage)).0, 77);
        let check = |c: &Matrix<i32>| within_bound(&words, c, TILE, None, coverage);
        check(&right_words).unwrap();
        for bit in [0, 17, 31] {
            let wrong = with(&right_words, one, |element| element ^ (1 << bit));
            assert_eq!(place(check(&wrong)), one);
        }
    }
}

#[test]
fn an_error_just_within_the_bound_of_its_model_passes_and_one_just_beyond_does_not() {
    let strassen = ErrorModel::Strassen { cutoff: 8 };
    let problem = problem::<f32>(32, 32, 32, Data::Normal, 2.0, -1.0);
    let Expected { want, magnitude } = reference::element(&problem, 3, 4);
    let right = multiplied(&problem);
    let [narrow, wide] = [ErrorModel::Elementwise, strassen].map(|model| {
        let bound = ErrorBound::new(&problem, model).unwrap().of(magnitude);
        let checked = |err: f64| {
            let wrong = with(&right, (3, 4), |_| (want + err) as f32);
            general(&problem, &wrong, TILE, None::<Data>, FULL, model)
        };
        for bound in [bound, -bound] {
            checked(0.8 * bound).unwrap();
            assert_eq!(place(checked(1.2 * bound)), (3, 4));
        }
        bound
    });
    assert!(wide > 10.0 * narrow, "{wide} {narrow}");
}

/// Errors that are within the bounds of a row's elements together.
#[test]
fn sums_of_rows_and_columns_catch_what_is_not_sampled() {
    let problem = floats(200, 300, 1000, Data::Uniform);
    let right = multiplied(&problem);
    let mut hidden = hidden(1);
    let [at, other] = [(); 2].map(|()| hidden.next().unwrap());
    let line_of =
        |wrong: &Matrix<f32>| match within_bound(&problem, wrong, TILE, Data::Uniform, SAMPLED) {
            Err(Failure::Sum { line, index, .. }) => (line, index),
            other => panic!("not a sum: {other:?}"),
        };
    let changed = with(&right, at, |element| element + 0.1);
    assert_eq!(line_of(&changed), (Line::Row, at.0));
    // With one of the two signs, the errors cancel in the row's sum.
    let lines = [0.1, -0.1].map(|err| line_of(&with(&changed, other, |element| element + err)));
    assert!(lines.contains(&(Line::Row, at.0)), "{lines:?}");
    assert!(lines.contains(&(Line::Column, at.1)), "{lines:?}");
}

#[test]
fn the_integers_of_strassen_leave_room_for_its_intermediate_results() {
    let k = 1 << 15;
    let up_to = |largest| Some(Data::SmallIntegers { largest });
    // One level: 6 * k; five levels: 16 times that.
    for (cutoff, expected) in [
        (1 << 14, up_to(4)),
        (1 << 10, up_to(1)),
        (1 << 9, None),
        (k, small_integers::<f32>(k)),
    ] {
        let model = ErrorModel::Strassen { cutoff };
        let found = model.exact_data_of::<f32>(ElementType::F32, Shape::cube(k));
        assert_eq!(found, expected, "{cutoff}");
    }
}

#[test]
fn a_sum_that_overflows_on_the_way_is_told_apart_from_a_wrong_one() {
    let mut problem = floats(2, 3, 8, Data::Uniform);
    for index in 0..8 {
        problem.a.row_mut(1)[index] = if index < 4 { 1e19 } else { -1e19 };
        problem.b.row_mut(index)[2] = 1e19;
    }
    let computed = multiplied(&problem);
    let said = uniform_within_bound(&problem, &computed)
        .unwrap_err()
        .to_string();
    let start =
        "C[1][2] is inf, where the reference, in a wider type, is 0: its terms add up to 8.000e38 ";
    assert!(said.starts_with(start), "{said}");
    // An element that cannot overflow is wrong, not too large.
    let wrong = with(&computed, (0, 0), |_| f32::INFINITY);
    assert_eq!(place(uniform_within_bound(&problem, &wrong)), (0, 0));
}

#[test]
fn results_that_are_not_finite_are_counted_and_their_sums_are_not_called_passed() {
    let mut problem = floats(100, 20, 3, Data::Uniform);
    let check = |problem: &Problem<f32>, coverage, part: &str| {
        let verdict = within_bound(problem, &multiplied(problem), TILE, Data::Uniform, coverage);
        let statement = verdict.unwrap().statement;
        assert!(statement.contains(part), "{statement}");
    };
    check(&problem, FULL, "all 2000 elements within the bound");
    check(&problem, SAMPLED, "sums of every row and column within");
    problem.a.row_mut(3)[1] = f32::NAN;
    check(&problem, FULL, "), of which 20 are NaN, as in the");
    problem.a.row_mut(99)[0] = f32::INFINITY;
    let both = "), of which 40 are NaN (20) or infinite (20), as in the reference";
    check(&problem, FULL, both);
    let sums = "and the sums of 98 of 100 rows and 0 of 20 columns (the others overflow or are not finite) within";
    check(&problem, SAMPLED, sums);
    (0..100).for_each(|row| problem.a.row_mut(row)[2] = f32::NAN);
    check(&problem, FULL, "all 2000 elements are NaN, as in the");
}

/// A kernel that rounds to TF32 passes all gates; one that rounds to bf16, which has eight times
/// the error, passes neither the exact one nor the alarm, on data of either sign.
#[test]
fn the_bound_and_the_alarm_of_tf32_take_tf32_and_nothing_coarser() {
    for (k, data) in [
        (64, Data::Normal),
        (512, Data::Normal),
        (512, Data::Uniform),
        (3000, Data::Normal),
        (512, Data::Positive),
    ] {
        let problem = floats(37, 53, k, data);
        let check = |c: &_, model| general(&problem, c, TILE, data, FULL, model);
        let [eleven, twelve, eight] = [11, 12, 8].map(|bits| multiplied_with_bits(&problem, bits));
        check(&eleven, ErrorModel::RoundedTf32).unwrap();
        check(&twelve, ErrorModel::RoundedTf32).unwrap();
        check(&eight, ErrorModel::RoundedTf32).unwrap_err();
        if data == Data::Positive {
            check(&eleven, ErrorModel::Tf32).unwrap();
            let wrong = with(&eleven, (5, 6), |element| 1.01 * element);
            assert_eq!(place(check(&wrong, ErrorModel::Tf32)), (5, 6));
        }
    }
    let shape = Shape::new(37, 53, 512);
    let data = ErrorModel::RoundedTf32.exact_data_of::<f32>(ElementType::F32, shape);
    let problem = floats(37, 53, 512, data.unwrap());
    for (bits, is_right) in [(11, true), (10, false), (8, false)] {
        let c = multiplied_with_bits(&problem, bits);
        assert_eq!(exact(&problem, &c, TILE, FULL).is_ok(), is_right);
    }
}

#[test]
fn special_values_must_come_out_as_arithmetic_has_them() {
    // Those that a zero scalar excludes must not come out: A and B, or C, are poisoned.
    let of = |alpha, beta| problem::<f32>(4, 4, 3, Data::Uniform, alpha, beta);
    let mut special = of(1.0, 0.0);
    special.a.row_mut(0)[0] = f32::NAN;
    special.a.row_mut(1)[1] = f32::INFINITY;
    special.b.row_mut(1)[2] = 0.0; // times infinity: NaN
    let right = multiplied(&special);
    assert!(right.row(0)[0].is_nan() && right.row(1)[0].is_infinite() && right.row(1)[2].is_nan());
    let opposite = -right.row(1)[0];
    for (at, wrong) in [((0, 1), 0.5), ((1, 2), f32::INFINITY), ((1, 0), opposite)] {
        let changed = with(&right, at, |_| wrong);
        assert_eq!(place(uniform_within_bound(&special, &changed)), at);
    }
    for problem in [special, of(1.0, 0.0), of(0.0, 1.0)] {
        let right = multiplied(&problem);
        uniform_within_bound(&problem, &right).unwrap();
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let changed = with(&right, (2, 2), |_| wrong);
            assert_eq!(place(uniform_within_bound(&problem, &changed)), (2, 2));
            within_bound(&problem, &changed, TILE, Data::Uniform, SAMPLED).unwrap_err();
        }
    }
}

#[test]
fn wrong_shapes_are_refused_and_degenerate_ones_passed() {
    let problem = integers::<f32>(37, 53, 41, 1, 0);
    let short = Matrix::from_elements(36, 53, |_, _| 0.0f32).unwrap();
    for coverage in BOTH {
        let failure = exact(&problem, &short, TILE, coverage).unwrap_err();
        assert!(matches!(failure, Failure::WrongShape { .. }));
        for (m, n, k) in [(0, 3, 3), (3, 0, 3), (3, 3, 0), (1, 1, 1), (0, 0, 0)] {
            let problem = integers::<f32>(m, n, k, 1, 2);
            let right = multiplied(&problem);
            exact(&problem, &right, TILE, coverage).unwrap();
            within_bound(&problem, &right, TILE, Data::Uniform, coverage).unwrap();
        }
    }
}

/// A result of `split-fp32` without the rounding of its sums: each element is split into two f16,
/// scaled by the largest of its row or column, as in the kernel, or of its matrix, which is wrong.
/// The products with lo can be left out.
fn multiplied_split(problem: &Problem<f32>, by_matrix: bool, with_lo: bool) -> Matrix<f32> {
    let Shape { m, n, .. } = problem.shape();
    let magnitude = |element: f32| f64::from(element.abs());
    let scales = |mut maxima: Vec<f64>| -> Vec<f64> {
        let most = maxima.iter().copied().fold(0.0, f64::max);
        if by_matrix {
            maxima.fill(most);
        }
        let scale = |most: &f64| 2f64.powi(14) / 2f64.powf(most.log2().floor());
        maxima.iter().map(scale).collect()
    };
    let a_scales = scales(lines::largest_in_rows(&problem.a, 0.0, magnitude));
    let b_scales = scales(lines::largest_in_columns(&problem.b, 0.0, magnitude));
    let split = |element: f32, scale: f64| {
        let scaled = f64::from(element) * scale;
        let mut hi = F16::from_f32(scaled as f32);
        if hi.to_f32() == 0.0 && element != 0.0 {
            hi = F16::from_f32(2f32.powi(-24).copysign(element));
        }
        let hi = f64::from(hi.to_f32());
        let lo = F16::from_f32(((scaled - hi) * 2048.0) as f32).to_f32();
        let lo = if with_lo { f64::from(lo) } else { 0.0 };
        [hi / scale, lo / 2048.0 / scale]
    };
    Matrix::from_elements(m, n, |row, col| {
        let terms = problem.a.row(row).iter().enumerate().map(|(l, a)| {
            let [hi_a, lo_a] = split(*a, a_scales[row]);
            let [hi_b, lo_b] = split(problem.b.row(l)[col], b_scales[col]);
            hi_a * hi_b + hi_a * lo_b + lo_a * hi_b
        });
        terms.sum::<f64>() as f32
    })
    .unwrap()
}

/// On graded data, a bound from the largest elements of A and B would be 2^100 times a small
/// element.
#[test]
fn split_elements_pass_on_graded_and_wide_data_and_those_scaled_otherwise_are_not() {
    let [normal, graded, wide] =
        [Data::Normal, Data::Graded, Data::Wide].map(|data| floats(37, 53, 300, data));
    let by_row = |problem: &Problem<f32>| multiplied_split(problem, false, true);
    let check = |problem: &Problem<f32>, c: &Matrix<f32>, data, coverage| {
        general(problem, c, TILE, data, coverage, ErrorModel::Split)
    };
    for coverage in BOTH {
        for (problem, data) in [(&graded, Data::Graded), (&wide, Data::Wide)] {
            within_bound(problem, &multiplied(problem), TILE, data, coverage).unwrap();
            check(problem, &by_row(problem), data, coverage).unwrap();
        }
        let hi_alone = multiplied_split(&graded, false, false);
        check(&graded, &hi_alone, Data::Graded, coverage).unwrap_err();
    }
    let by_matrix = multiplied_split(&graded, true, true);
    place(check(&graded, &by_matrix, Data::Graded, FULL));
    let units = |problem: &Problem<f32>, data, c: &Matrix<f32>| {
        let verdict = check(problem, c, data, FULL).unwrap();
        verdict.errors.unwrap().units
    };
    // Powers of two change no error.
    for multiplied in [&by_row as &dyn Fn(&_) -> _, &multiplied] {
        let of_normal = units(&normal, Data::Normal, &multiplied(&normal));
        let of_graded = units(&graded, Data::Graded, &multiplied(&graded));
        approx::assert_relative_eq!(of_normal, of_graded, max_relative = 1e-9);
    }
    // On wide data, f32's errors are below 32 units.
    let units = units(&wide, Data::Wide, &by_row(&wide));
    assert!((300.0..100_000.0).contains(&units), "{units}");
    within_bound(&wide, &by_row(&wide), TILE, Data::Wide, FULL).unwrap_err();
}

#[test]
fn errors_are_those_of_all_elements_and_of_samples_there_are_none() {
    let problem = floats(37, 53, 300, Data::Normal);
    let c = multiplied(&problem);
    let (mut squares, mut of_all, mut units) = (0.0, 0.0, 0f64);
    for (row, col) in (0..37).flat_map(|row| (0..53).map(move |col| (row, col))) {
        let expected = reference::element(&problem, row, col);
        let err = (f64::from(c.row(row)[col]) - expected.want).abs();
        squares += err * err;
        of_all += expected.want * expected.want;
        units = units.max(err / (expected.magnitude * 2f64.powi(-24)));
    }
    let errors = |coverage| {
        within_bound(&problem, &c, TILE, Data::Normal, coverage)
            .unwrap()
            .errors
    };
    let (found, frobenius) = (errors(FULL).unwrap(), f64::sqrt(squares / of_all));
    assert!((found.frobenius / frobenius - 1.0).abs() < 1e-9);
    assert!((found.units / units - 1.0).abs() < 1e-9);
    assert_eq!(errors(SAMPLED), None);
}
