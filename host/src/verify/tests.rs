//! Each checker with results that it must accept, and with wrong ones that it must not.

use super::bound::ErrorBound;
use super::outcome::Line;
use super::*;
use crate::data::Layout;
use gpu_gemm::ElementType;

const TILE: Tile = Tile { m: 16, n: 16, k: 8 };
const SAMPLED: Coverage<'static> = Coverage::Sampled { seed: 1 };
const BOTH: [Coverage<'static>; 2] = [Coverage::Full, SAMPLED];

fn problem<T: Number>(shape: Shape, data: Data, alpha: T, beta: T) -> Problem<T> {
    let layout = Layout::padded(shape, [3, 1, 2], [1, 2, 3]);
    Problem::random(shape, layout, data, 11, alpha, beta).unwrap()
}

/// A result computed by the plainest loop, one rounding at a time in the type itself.
fn multiplied<T: Number>(problem: &Problem<T>) -> Matrix<T> {
    let shape = problem.shape();
    let (alpha, beta, zero) = (problem.alpha, problem.beta, T::default());
    let mut c = problem.c.clone();
    for row in 0..shape.m {
        for col in 0..shape.n {
            let sum = (0..shape.k).fold(zero, |sum, index| {
                problem.a.row(row)[index].times_plus(problem.b.row(index)[col], sum)
            });
            let old = c.row(row)[col];
            let scaled = |factor: T, value| match factor == zero {
                true => zero,
                false => factor.times_plus(value, zero),
            };
            let one = T::from_integer(1);
            c.row_mut(row)[col] = scaled(alpha, sum).times_plus(one, scaled(beta, old));
        }
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
fn place(outcome: Result<Proof, Failure>) -> (usize, usize) {
    match outcome {
        Err(Failure::Element(mismatch)) => (mismatch.row, mismatch.col),
        other => panic!("not a wrong element: {other:?}"),
    }
}

/// A place in row 77 of a C that is not sampled.
fn hidden(shape: Shape) -> (usize, usize) {
    let samples = sample::positions(shape, TILE, 1);
    let mut row = (0..shape.n).map(|col| (77, col));
    row.find(|at| !samples.contains(at)).unwrap()
}

/// The outcome of [`proven`] on uniform numbers, compared in full.
fn proven_uniform(problem: &Problem<f32>, c: &Matrix<f32>) -> Result<Proof, Failure> {
    proven(problem, c, TILE, Data::Uniform, Coverage::Full)
}

/// The outcome for integers of any kind.
fn wrapping(
    problem: &Problem<i32>,
    c: &Matrix<i32>,
    coverage: Coverage<'_>,
) -> Result<Proof, Failure> {
    proven(problem, c, TILE, None, coverage)
}

/// What sends a right result through gate 1, and what changes one.
fn small_integers(alpha: f32, beta: f32) -> (Problem<f32>, Matrix<f32>) {
    let shape = Shape::new(37, 53, 41);
    let problem = problem(shape, exact_data::<f32>(shape.k).unwrap(), alpha, beta);
    let right = multiplied(&problem);
    (problem, right)
}

#[test]
fn right_results_pass_every_gate() {
    for (alpha, beta) in [(1.0, 0.0), (2.0, -1.0), (0.0, 2.0), (0.0, 0.0), (-1.0, 1.0)] {
        for coverage in BOTH {
            let (integers, right) = small_integers(alpha, beta);
            exact(&integers, &right, TILE, coverage).unwrap();
            for data in [Data::Uniform, Data::Positive, Data::Normal] {
                let problem = problem(Shape::new(37, 53, 300), data, alpha, beta);
                proven(&problem, &multiplied(&problem), TILE, data, coverage).unwrap();
            }
        }
    }
    for coverage in BOTH {
        let problem = problem::<i32>(Shape::new(9, 20, 33), Data::Uniform, -3, 1 << 30);
        wrapping(&problem, &multiplied(&problem), coverage).unwrap();
    }
}

#[test]
fn right_results_of_f64_pass_every_gate_and_those_of_f32_do_not() {
    let shape = Shape::new(37, 53, 300);
    for coverage in BOTH {
        let integers = problem::<f64>(shape, exact_data::<f64>(300).unwrap(), 2.0, -1.0);
        exact(&integers, &multiplied(&integers), TILE, coverage).unwrap();
        for data in [Data::Uniform, Data::Positive, Data::Normal] {
            let problem = problem::<f64>(shape, data, 1.5, -0.5);
            let right = multiplied(&problem);
            proven(&problem, &right, TILE, data, coverage).unwrap();
            let coarse = with(&right, (0, 0), |element| f64::from(element as f32));
            proven(&problem, &coarse, TILE, data, coverage).unwrap_err();
        }
    }
}

/// Elements of 40 bits after the point, so that the sums of their products are integers of i128,
/// times 2^-80.
#[test]
fn the_reference_of_f64_is_the_exact_sum_rounded_once_where_a_plain_sum_is_far_off() {
    let shape = Shape::new(5, 21, 3000);
    let layout = Layout::compact(shape);
    let mut problem = Problem::<f64>::random(shape, layout, Data::Uniform, 3, 1.0, 1.0).unwrap();
    let fixed = |element: f64| (element * 2f64.powi(40)).round();
    for matrix in [&mut problem.a, &mut problem.b, &mut problem.c] {
        for row in 0..matrix.rows() {
            for element in matrix.row_mut(row) {
                *element = fixed(*element) / 2f64.powi(40);
            }
        }
    }
    // The second half subtracts the first again, except for what remains in C.
    for row in 0..shape.m {
        let (first, second) = problem.a.row_mut(row).split_at_mut(1500);
        for (first, second) in first.iter().zip(second) {
            *second = -first;
        }
    }
    for row in 0..1500 {
        let first = problem.b.row(row).to_vec();
        problem.b.row_mut(row + 1500).copy_from_slice(&first);
    }
    problem.b.row_mut(2999)[7] = fixed(0.3) / 2f64.powi(40);
    for row in 0..shape.m {
        for element in problem.c.row_mut(row) {
            *element *= 2f64.powi(-35); // 75 bits after the point
        }
    }
    let integer = |element: f64, bits: i32| (element * 2f64.powi(bits)) as i128;
    let exact_sum = |row: usize, col: usize| {
        let products: i128 = (0..shape.k)
            .map(|i| integer(problem.a.row(row)[i], 40) * integer(problem.b.row(i)[col], 40))
            .sum();
        // Rounds to nearest, once.
        (products + (integer(problem.c.row(row)[col], 75) << 5)) as f64 * 2f64.powi(-80)
    };
    let copied = |_, expected: &[reference::Expected]| Ok(expected.to_vec());
    let rows = reference::each_row(&problem, Coverage::Full, true, copied).unwrap();
    let mut plain_is_off = false;
    let plain = multiplied(&problem);
    for (row, expected) in rows.iter().enumerate() {
        for (col, expected) in expected.iter().enumerate() {
            let want = exact_sum(row, col);
            assert_eq!(expected.want, want, "C[{row}][{col}]");
            assert_eq!(reference::element(&problem, row, col).want, want);
            plain_is_off |= (plain.row(row)[col] - want).abs() > 1e3 * f64::EPSILON * want.abs();
        }
    }
    assert!(plain_is_off);
}

#[test]
fn exact_refuses_an_integer_off_by_one_unit_anywhere() {
    let (problem, right) = small_integers(1.0, 0.0);
    for coverage in BOTH {
        for at in [(0, 0), (36, 52), (20, 31)] {
            let next = with(&right, at, f32::next_up);
            assert_eq!(place(exact(&problem, &next, TILE, coverage)), at);
            let one_more = with(&right, at, |element| element + 1.0);
            assert_eq!(place(exact(&problem, &one_more, TILE, coverage)), at);
        }
    }
}

#[test]
fn exact_refuses_nan_and_infinity() {
    let (problem, right) = small_integers(1.0, 1.0);
    for coverage in BOTH {
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            let changed = with(&right, (17, 18), |_| wrong);
            assert_eq!(place(exact(&problem, &changed, TILE, coverage)), (17, 18));
        }
    }
}

#[test]
fn freivalds_refuses_what_is_no_integer_even_where_zero_is_right() {
    let shape = Shape::new(200, 300, 5);
    let mut problem = problem::<f32>(shape, exact_data::<f32>(5).unwrap(), 1.0, 0.0);
    problem.a.row_mut(77).fill(0.0);
    let right = multiplied(&problem);
    let hidden = hidden(shape);
    exact(&problem, &right, TILE, SAMPLED).unwrap();
    for wrong in [f32::NAN, 0.5, f32::INFINITY] {
        let changed = with(&right, hidden, |_| wrong);
        let outcome = exact(&problem, &changed, TILE, SAMPLED);
        assert_eq!(place(outcome), hidden);
    }
}

/// The result of a kernel that drops the last term of one sum of 16384.
fn dropped_term(data: Data) -> (Problem<f32>, Matrix<f32>) {
    let shape = Shape::new(2, 3, 16384);
    let mut problem = problem::<f32>(shape, data, 1.0, 0.0);
    // A term worth dropping: integers are often zero.
    problem.a.row_mut(1)[16383] = 1.0;
    problem.b.row_mut(16383)[2] = 1.0;
    let right = multiplied(&problem);
    let wrong = with(&right, (1, 2), |element| element - 1.0);
    (problem, wrong)
}

#[test]
fn exact_refuses_one_dropped_term_of_16384_which_the_bound_alone_lets_through() {
    let data = exact_data::<f32>(16384).unwrap();
    let (integers, wrong) = dropped_term(data);
    for coverage in BOTH {
        assert_eq!(place(exact(&integers, &wrong, TILE, coverage)), (1, 2));
    }
    let (floats, wrong) = dropped_term(Data::Normal);
    assert!(is_within_bound(&floats, &wrong));
}

/// Whether the bound lets a result through, whatever the alarm says.
fn is_within_bound(problem: &Problem<f32>, c: &Matrix<f32>) -> bool {
    let bound = ErrorBound::new(problem, ErrorModel::Elementwise).unwrap();
    let rows = reference::each_row(problem, Coverage::Full, true, |row, expected| {
        let elements = c.row(row).iter().zip(expected);
        Ok(elements.fold(true, |all, (got, expected)| {
            all && bound.accepts(f64::from(*got), expected.want, bound.of(expected.magnitude))
        }))
    });
    rows.unwrap().into_iter().all(|row| row)
}

#[test]
fn the_alarm_refuses_what_the_bound_alone_lets_through() {
    let (floats, wrong) = dropped_term(Data::Uniform);
    let failure = proven_uniform(&floats, &wrong).unwrap_err();
    assert!(
        matches!(failure, Failure::Alarm { row: 1, col: 2, .. }),
        "{failure}"
    );
}

/// At k = 4096 the bound lets TF32 through: it grows as k, and the error as the root of k.
#[test]
fn the_alarm_refuses_inputs_of_reduced_precision() {
    for data in [Data::Uniform, Data::Normal] {
        for k in [512, 4096] {
            let problem = problem::<f32>(Shape::new(37, 53, k), data, 1.0, 0.0);
            proven(&problem, &multiplied(&problem), TILE, data, Coverage::Full).unwrap();
            for bits in [11, 8] {
                let wrong = multiplied_with_bits(&problem, bits);
                for coverage in BOTH {
                    for data in [Some(data), None] {
                        let failure = proven(&problem, &wrong, TILE, data, coverage);
                        failure.unwrap_err();
                    }
                }
            }
            if k == 4096 {
                let wrong = multiplied_with_bits(&problem, 11);
                assert!(is_within_bound(&problem, &wrong));
            }
        }
    }
}

#[test]
fn exact_refuses_data_that_may_round() {
    let (mut problem, right) = small_integers(1.0, 0.0);
    let unprovable = |problem: &Problem<f32>| {
        let outcome = exact(problem, &right, TILE, Coverage::Full);
        matches!(outcome, Err(Failure::Unprovable(_)))
    };
    for element in [0.5, 1e8, f32::NAN] {
        problem.a.row_mut(0)[0] = element;
        assert!(unprovable(&problem), "{element}");
    }
    let (mut problem, _) = small_integers(1.0, 0.0);
    problem.alpha = 1.5;
    assert!(unprovable(&problem));
}

#[test]
fn small_integers_get_smaller_as_sums_get_longer() {
    for (k, largest) in [(0, 4), (1 << 18, 4), (1 << 20, 2), (1 << 22, 1)] {
        let expected = Data::SmallIntegers { largest };
        assert_eq!(super::small_integers::<f32>(k), Some(expected));
    }
    assert_eq!(super::small_integers::<f32>((1 << 22) + 1), None);
}

#[test]
fn wide_integers_get_rarer_and_small_ones_smaller_as_sums_get_longer() {
    for (k, largest, every) in [
        (0, 4, 1),
        (512, 4, 1),
        (513, 4, 2),
        (16_384, 4, 32),
        (1 << 17, 4, 256),
        (1 << 21, 1, 4096),
    ] {
        let bits = 12;
        let expected = Data::WideIntegers {
            largest,
            bits,
            every,
        };
        assert_eq!(exact_data::<f32>(k), Some(expected));
    }
    let all_small = Some(Data::SmallIntegers { largest: 1 });
    assert_eq!(exact_data::<f32>((1 << 21) + 1), all_small);
    assert_eq!(exact_data::<f32>((1 << 22) + 1), None);
    let (largest, bits, every) = (4, 27, 1);
    let of_f64 = Data::WideIntegers {
        largest,
        bits,
        every,
    };
    assert_eq!(exact_data::<f64>(1 << 20), Some(of_f64));
}

/// The product of A and B after each element was rounded to so many bits.
fn multiplied_with_bits(problem: &Problem<f32>, bits: i32) -> Matrix<f32> {
    let rounded = |element: f32| {
        if element == 0.0 {
            return 0.0;
        }
        let unit = 2f32.powi(element.abs().log2().floor() as i32 + 1 - bits);
        (element / unit).round_ties_even() * unit
    };
    let mut problem = problem.clone();
    for matrix in [&mut problem.a, &mut problem.b] {
        for row in 0..matrix.rows() {
            matrix
                .row_mut(row)
                .iter_mut()
                .for_each(|element| *element = rounded(*element));
        }
    }
    multiplied(&problem)
}

/// TF32 keeps 11 bits, bf16 8, the FP8 of machine learning 4 or 3.
#[test]
fn exact_refuses_inputs_of_reduced_precision() {
    for k in [1, 64, 600, 20_011] {
        let shape = Shape::new(7, 9, k);
        let problem = problem::<f32>(shape, exact_data::<f32>(k).unwrap(), 1.0, 0.0);
        for coverage in BOTH {
            exact(&problem, &multiplied(&problem), TILE, coverage).unwrap();
            for bits in [11, 8, 4, 3] {
                let wrong = multiplied_with_bits(&problem, bits);
                place(exact(&problem, &wrong, TILE, coverage));
            }
        }
    }
}

/// What no sample shows: the last column, two errors that add up to zero, an error of the highest
/// bit alone.
#[test]
fn freivalds_finds_what_is_not_sampled_whatever_the_seed() {
    let shape = Shape::new(200, 300, 5);
    let integers = problem::<f32>(shape, exact_data::<f32>(5).unwrap(), 1.0, 0.0);
    let right = multiplied(&integers);
    let words = problem::<i32>(shape, Data::Uniform, 3, -5);
    let right_words = multiplied(&words);
    for seed in 0..5 {
        let coverage = Coverage::Sampled { seed };
        exact(&integers, &right, TILE, coverage).unwrap();
        wrapping(&words, &right_words, coverage).unwrap();
        let samples = sample::positions(shape, TILE, seed);
        let mut hidden = (0..shape.n - 1).filter(|col| !samples.contains(&(77, *col)));
        let (one, other) = (hidden.next().unwrap(), hidden.next().unwrap());
        let cancelling = with(&right, (77, one), |element| element + 1.0);
        let cancelling = with(&cancelling, (77, other), |element| element - 1.0);
        for wrong in [cancelling, with(&right, (77, shape.n - 1), |_| 0.5)] {
            assert_eq!(place(exact(&integers, &wrong, TILE, coverage)).0, 77);
        }
        for bit in [0, 17, 31] {
            let wrong = with(&right_words, (77, one), |element| element ^ (1 << bit));
            assert_eq!(place(wrapping(&words, &wrong, coverage)), (77, one));
        }
    }
}

#[test]
fn proven_refuses_nan_and_infinity_where_numbers_belong() {
    let problem = problem::<f32>(Shape::new(20, 30, 64), Data::Uniform, 1.5, 0.5);
    let right = multiplied(&problem);
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let changed = with(&right, (19, 29), |_| wrong);
        let outcome = proven_uniform(&problem, &changed);
        assert_eq!(place(outcome), (19, 29));
        proven(&problem, &changed, TILE, Data::Uniform, SAMPLED).unwrap_err();
    }
}

#[test]
fn proven_refuses_an_error_just_beyond_the_bound_and_takes_one_just_within() {
    let problem = problem::<f32>(Shape::new(3, 3, 5), Data::Normal, 1.0, 0.0);
    let expected = reference::element(&problem, 1, 1);
    let bound = ErrorBound::new(&problem, ErrorModel::Elementwise)
        .unwrap()
        .of(expected.magnitude);
    let right = multiplied(&problem);
    let off = |share: f64| {
        let changed = with(&right, (1, 1), |_| (expected.want + share * bound) as f32);
        proven(&problem, &changed, TILE, Data::Normal, Coverage::Full)
    };
    for sign in [1.0, -1.0] {
        off(sign * 0.8).unwrap();
        assert_eq!(place(off(sign * 1.2)), (1, 1));
    }
}

/// What the bounds of a row's elements together would let through.
#[test]
fn sums_of_rows_and_columns_catch_what_is_not_sampled() {
    let shape = Shape::new(200, 300, 1000);
    let problem = problem::<f32>(shape, Data::Uniform, 1.0, 0.0);
    let right = multiplied(&problem);
    let (row, col) = hidden(shape);
    let line_of = |wrong: &Matrix<f32>| match proven(&problem, wrong, TILE, Data::Uniform, SAMPLED)
    {
        Err(Failure::Sum { line, index, .. }) => (line, index),
        other => panic!("not a sum: {other:?}"),
    };
    let changed = with(&right, (row, col), |element| element + 0.1);
    assert_eq!(line_of(&changed), (Line::Row, row));
    // Two errors of which one cancels the other in the row's sum, if not these then the others.
    let samples = sample::positions(shape, TILE, 1);
    let mut others = (col + 1..shape.n).map(|col| (row, col));
    let other = others.find(|at| !samples.contains(at)).unwrap();
    let lines = [0.1, -0.1].map(|err| line_of(&with(&changed, other, |element| element + err)));
    assert!(lines.contains(&(Line::Row, row)), "{lines:?}");
    assert!(lines.contains(&(Line::Column, col)), "{lines:?}");
}

#[test]
fn the_bound_of_strassen_lets_through_what_the_elementwise_one_refuses_and_no_more() {
    let problem = problem::<f32>(Shape::cube(32), Data::Normal, 2.0, -1.0);
    let model = ErrorModel::Strassen { cutoff: 8 };
    let bound_of = |model| {
        let expected = reference::element(&problem, 3, 4);
        let bound = ErrorBound::new(&problem, model).unwrap();
        (expected.want, bound.of(expected.magnitude))
    };
    let ((want, wide), (_, narrow)) = (bound_of(model), bound_of(ErrorModel::Elementwise));
    assert!(wide > 10.0 * narrow, "{wide} {narrow}");
    let checked = |err: f64, model| {
        let wrong = with(&multiplied(&problem), (3, 4), |_| (want + err) as f32);
        general(&problem, &wrong, TILE, None::<Data>, Coverage::Full, model)
    };
    checked(0.8 * wide, model).unwrap();
    assert_eq!(place(checked(1.2 * wide, model)), (3, 4));
    assert_eq!(place(checked(0.8 * wide, ErrorModel::Elementwise)), (3, 4));
}

#[test]
fn rows_whose_sums_prove_nothing_are_not_counted_as_proven() {
    let shape = Shape::new(100, 20, 3);
    let mut problem = problem::<f32>(shape, Data::Uniform, 1.0, 0.0);
    let statement = |problem: &Problem<f32>| {
        let right = multiplied(problem);
        let proof = proven(problem, &right, TILE, Data::Uniform, SAMPLED).unwrap();
        proof.statement
    };
    let finite = statement(&problem);
    assert!(
        finite.contains(" and the sums of every row and column within"),
        "{finite}"
    );
    problem.a.row_mut(3)[1] = f32::NAN;
    problem.a.row_mut(99)[0] = f32::INFINITY;
    let some = statement(&problem);
    let expected = "and the sums of 98 of 100 rows and 0 of 20 columns (the others overflow or are not finite) within";
    assert!(some.contains(expected), "{some}");
}

#[test]
fn the_integers_of_strassen_leave_room_for_its_intermediate_results() {
    let largest = |k: usize, cutoff| {
        ErrorModel::Strassen { cutoff }.exact_data_of::<f32>(ElementType::F32, Shape::cube(k))
    };
    let up_to = |largest| Some(Data::SmallIntegers { largest });
    // One level: 6 * k; five levels: 16 times as much.
    assert_eq!(largest(1 << 15, 1 << 14), up_to(4));
    assert_eq!(largest(1 << 15, 1 << 10), up_to(1));
    assert_eq!(largest(1 << 15, 1 << 9), None);
    assert_eq!(
        largest(1 << 15, 1 << 15),
        super::small_integers::<f32>(1 << 15)
    );
}

#[test]
fn data_that_is_not_known_has_an_alarm_of_its_own() {
    let shape = Shape::new(5, 5, 200);
    let problem = problem::<f32>(shape, Data::Positive, 1.0, 0.0);
    let right = multiplied(&problem);
    // Off by so many units of rounding, where up to 202 are possible.
    let check = |units: u16, data: Option<Data>| {
        let mut problem = problem.clone();
        problem.alpha *= 1.0 + f32::from(units) * 2f32.powi(-24);
        proven(&problem, &right, TILE, data, Coverage::Full)
    };
    assert!(matches!(
        check(64, Some(Data::Uniform)),
        Err(Failure::Alarm { .. })
    ));
    let proof = check(64, None).unwrap();
    assert!(
        proof.statement.contains(", alarm at 17"),
        "{}",
        proof.statement
    );
    assert!(matches!(check(190, None), Err(Failure::Alarm { .. })));
}

#[test]
fn a_sum_that_overflows_on_the_way_is_told_apart_from_a_wrong_one() {
    let shape = Shape::new(2, 3, 8);
    let mut problem = problem::<f32>(shape, Data::Uniform, 1.0, 0.0);
    for index in 0..8 {
        problem.a.row_mut(1)[index] = if index < 4 { 1e19 } else { -1e19 };
        problem.b.row_mut(index)[2] = 1e19;
    }
    let computed = multiplied(&problem);
    let failure = proven_uniform(&problem, &computed).unwrap_err();
    let said = failure.to_string();
    assert!(
        said.starts_with("C[1][2] is inf, where the reference, in a wider type, is 0: its terms add up to 8.000e38 "),
        "{said}"
    );
    // What cannot overflow is wrong, not too large.
    let wrong = with(&computed, (0, 0), |_| f32::INFINITY);
    assert_eq!(place(proven_uniform(&problem, &wrong)), (0, 0));
}

#[test]
fn results_that_are_not_finite_are_counted() {
    let shape = Shape::new(4, 3, 5);
    let statement = |problem: &Problem<f32>| {
        let right = multiplied(problem);
        proven_uniform(problem, &right).unwrap().statement
    };
    let mut problem = problem::<f32>(shape, Data::Uniform, 1.0, 0.0);
    problem.a.row_mut(0)[0] = f32::NAN;
    let some = statement(&problem);
    assert!(
        some.starts_with("all 12 elements within the bound"),
        "{some}"
    );
    assert!(
        some.ends_with("), of which 3 are NaN, as in the reference"),
        "{some}"
    );
    problem.a.row_mut(1)[1] = f32::INFINITY;
    let more = statement(&problem);
    let expected = "), of which 6 are NaN (3) or infinite (3), as in the reference";
    assert!(more.ends_with(expected), "{more}");
    for row in 1..4 {
        problem.a.row_mut(row)[2] = f32::NAN;
    }
    assert_eq!(
        statement(&problem),
        "all 12 elements are NaN, as in the reference"
    );
}

#[test]
fn the_bound_of_tensor_cores_takes_tf32_and_refuses_what_is_off_by_a_percent() {
    let problem = problem::<f32>(Shape::new(37, 53, 512), Data::Positive, 1.0, 0.0);
    let check = |c: &Matrix<f32>| {
        let data = Data::Positive;
        general(&problem, c, TILE, data, Coverage::Full, ErrorModel::Tf32)
    };
    let right = multiplied_with_bits(&problem, 11);
    check(&right).unwrap();
    let wrong = with(&right, (5, 6), |element| 1.01 * element);
    assert_eq!(place(check(&wrong)), (5, 6));
}

/// A kernel that rounds to TF32 passes all gates; one that rounds to bf16, which has eight times
/// the error, passes neither the exact one nor the alarm, on data of either sign.
#[test]
fn the_alarm_of_tf32_does_not_take_bf16_for_it() {
    for (k, data) in [
        (64, Data::Normal),
        (512, Data::Normal),
        (512, Data::Uniform),
        (3000, Data::Normal),
        (512, Data::Positive),
    ] {
        let problem = problem::<f32>(Shape::new(37, 53, k), data, 1.0, 0.0);
        let with_bits = |bits| {
            let c = multiplied_with_bits(&problem, bits);
            let model = ErrorModel::RoundedTf32;
            general(&problem, &c, TILE, data, Coverage::Full, model)
        };
        with_bits(11).unwrap();
        with_bits(12).unwrap();
        let outcome = with_bits(8);
        let is_refused = matches!(
            outcome,
            Err(Failure::Alarm { .. } | Failure::Element { .. } | Failure::Sum { .. })
        );
        assert!(is_refused, "{k} terms, {data:?}: {outcome:?}");
    }
    let shape = Shape::new(37, 53, 512);
    let integers = ErrorModel::RoundedTf32
        .exact_data_of::<f32>(ElementType::F32, shape)
        .unwrap();
    let problem = problem::<f32>(shape, integers, 1.0, 0.0);
    let check = |bits| {
        exact(
            &problem,
            &multiplied_with_bits(&problem, bits),
            TILE,
            Coverage::Full,
        )
    };
    check(11).unwrap();
    assert!(check(10).is_err() && check(8).is_err());
}

#[test]
fn special_values_must_come_out_as_arithmetic_has_them() {
    let shape = Shape::new(4, 4, 3);
    let mut problem = problem::<f32>(shape, Data::Uniform, 1.0, 0.0);
    problem.a.row_mut(0)[0] = f32::NAN;
    problem.a.row_mut(1)[1] = f32::INFINITY;
    problem.b.row_mut(1)[2] = 0.0; // times infinity: NaN
    let right = multiplied(&problem);
    assert!(right.row(0)[0].is_nan() && right.row(1)[0].is_infinite() && right.row(1)[2].is_nan());
    let checked = |c: &Matrix<f32>| proven_uniform(&problem, c);
    checked(&right).unwrap();
    for (at, wrong) in [((0, 1), 0.5), ((1, 2), f32::INFINITY), ((2, 2), f32::NAN)] {
        assert_eq!(place(checked(&with(&right, at, |_| wrong))), at);
    }
    assert_eq!(
        place(checked(&with(&right, (1, 0), |element| -element))),
        (1, 0)
    );
}

#[test]
fn a_result_that_used_what_a_zero_scalar_excludes_is_refused() {
    let shape = Shape::new(4, 4, 3);
    for (alpha, beta) in [(1.0, 0.0), (0.0, 1.0)] {
        let problem = problem::<f32>(shape, Data::Uniform, alpha, beta);
        let right = multiplied(&problem);
        proven_uniform(&problem, &right).unwrap();
        // 0 * NaN of the poisoned operand.
        let wrong = with(&right, (3, 3), |element| element + 0.0 * f32::POISON);
        let outcome = proven_uniform(&problem, &wrong);
        assert_eq!(place(outcome), (3, 3));
    }
}

#[test]
fn wrapping_refuses_one_wrong_bit() {
    let problem = problem::<i32>(Shape::new(9, 20, 33), Data::Uniform, 3, -5);
    let right = multiplied(&problem);
    for coverage in BOTH {
        for bit in [0, 31] {
            let wrong = with(&right, (8, 19), |element| element ^ (1 << bit));
            assert_eq!(place(wrapping(&problem, &wrong, coverage)), (8, 19));
        }
    }
}

#[test]
fn a_result_of_another_shape_is_refused() {
    let (problem, _) = small_integers(1.0, 0.0);
    let short = Matrix::from_elements(36, 53, |_, _| 0.0f32).unwrap();
    for coverage in BOTH {
        let failure = exact(&problem, &short, TILE, coverage).unwrap_err();
        assert!(matches!(failure, Failure::WrongShape { .. }));
    }
}

#[test]
fn degenerate_shapes_are_proven_too() {
    for (m, n, k) in [(0, 3, 3), (3, 0, 3), (3, 3, 0), (1, 1, 1), (0, 0, 0)] {
        for coverage in BOTH {
            let data = Data::SmallIntegers { largest: 4 };
            let problem = problem::<f32>(Shape { m, n, k }, data, 1.0, 2.0);
            let right = multiplied(&problem);
            exact(&problem, &right, TILE, coverage).unwrap();
            proven(&problem, &right, TILE, Data::Uniform, coverage).unwrap();
        }
    }
}

#[test]
fn a_mismatch_is_a_sentence() {
    let mismatch = Mismatch {
        row: 3,
        col: 5,
        got: 1.5,
        want: 1.0,
        err: 0.5,
        bound: 1e-6,
    };
    assert_eq!(
        mismatch.to_string(),
        "C[3][5] is 1.5, but must be 1 within 1.000e-6: it is off by 5.000e-1."
    );
    let wrong_integer = Mismatch {
        got: f64::NAN,
        bound: 0.0,
        ..mismatch
    };
    assert_eq!(wrong_integer.to_string(), "C[3][5] is NaN, but must be 1.");
}

#[test]
fn what_is_compared_in_full_ends_at_2_to_the_33_products_beside_a_gpu_at_2_to_the_31() {
    let is_full = |coverage: Coverage<'_>| matches!(coverage, Coverage::Full);
    let of = |[m, n, k]: [usize; 3]| is_full(Coverage::of(Shape::new(m, n, k), 1));
    let one_more = [603, 683, 20_857];
    assert_eq!(one_more.iter().product::<usize>(), (1 << 33) + 1);
    assert!(of([1 << 11; 3]) && !of(one_more));
    // All three dimensions count, also where they differ.
    assert!(!of([1 << 12, 1 << 13, 1 << 9]));
    // And all products of a batch.
    for (m, most) in [(1 << 11, 1), (1 << 10, 2)] {
        for (count, k) in [(most, 1 << 10), (most + 1, 1 << 10), (most, (1 << 10) + 1)] {
            let is_most = (count, k) == (most, 1 << 10);
            let beside_gpu = Coverage::beside_gpu(count, Shape::new(m, 1 << 10, k), 1);
            assert_eq!(is_full(beside_gpu), is_most, "{count} of {m} x {k}");
            let alone = Coverage::of_each(4 * count, Shape::new(m, 1 << 10, k), 1);
            assert_eq!(is_full(alone), is_most, "{count} of {m} x {k}");
        }
    }
    // No matrix has more than 2^25 elements, whichever it is.
    let [one, other] = [8283, 4051];
    assert_eq!(one * other, (1 << 25) + 1);
    for (m, n, is_most) in [(1 << 12, 1 << 13, true), (one, other, false)] {
        assert_eq!([[m, n, 1], [m, 1, n], [1, m, n]].map(of), [is_most; 3]);
        let thin = Coverage::beside_gpu(1, Shape::new(m, n, 1), 1);
        assert_eq!(is_full(thin), is_most);
    }
}

/// A column of `a` times a row of `b`, added up over `k`, and a C.
fn outer(k: usize, (a, b, c): (f32, f32, f32), (alpha, beta): (f32, f32)) -> Problem<f32> {
    let matrix = |rows, columns, element| Matrix::from_elements(rows, columns, |_, _| element);
    let (a, b, c) = (matrix(2, k, a), matrix(k, 3, b), matrix(2, 3, c));
    Problem::new(alpha, beta, a.unwrap(), b.unwrap(), c.unwrap()).unwrap()
}

#[test]
fn the_largest_integer_of_a_result_is_what_its_terms_add_up_to() {
    for (k, elements, scalars, largest) in [
        (5, (3.0, -7.0, 11.0), (-2.0, 3.0), 243.0),
        (5, (3.0, -7.0, 11.0), (0.0, -3.0), 33.0),
        (5, (-3.0, 7.0, 11.0), (4.0, 0.0), 420.0),
        (5, (3.0, 0.0, 0.0), (1.0, 1.0), 0.0),
        (0, (3.0, 7.0, 11.0), (1.0, 1.0), 11.0),
    ] {
        let found = require_exact_sums(&outer(k, elements, scalars));
        assert_eq!(found, Ok(largest), "{k} {elements:?} {scalars:?}");
    }
    // The largest of each column of A and of each row of B, wherever they are.
    let mut problem = outer(200, (1.0, -1.0, 0.0), (1.0, 0.0));
    problem.a.row_mut(1)[199] = -5.0;
    problem.b.row_mut(199)[2] = 4.0;
    problem.b.row_mut(130)[0] = 9.0;
    assert_eq!(require_exact_sums(&problem), Ok(198.0 + 20.0 + 9.0));
}

#[test]
fn integers_that_add_up_to_2_to_the_24_are_exact_and_to_one_more_they_may_round() {
    let (half, limit) = (8_388_608.0, Ok(16_777_216.0));
    let required = |elements, scalars| require_exact_sums(&outer(1, elements, scalars));
    let too_large = Err(Failure::Unprovable(
        "the integers are too large for this k, so sums may round.".to_string(),
    ));
    assert_eq!(required((half, 2.0, 0.0), (1.0, 0.0)), limit);
    assert_eq!(required((half, 1.0, 0.0), (-2.0, 0.0)), limit);
    assert_eq!(required((half, 1.0, half), (1.0, -1.0)), limit);
    assert_eq!(required((half, 2.0, 1.0), (1.0, 1.0)), too_large);
    assert_eq!(required((half, 1.0, 1.0), (2.0, 1.0)), too_large);
    assert_eq!(required((half, 1.0, 0.0), (3.0, 0.0)), too_large);
}

/// What a scale of split elements is taken from.
#[derive(Clone, Copy, PartialEq)]
enum ScaledBy {
    RowOrColumn,
    Matrix,
}

/// A result of `split-fp32` but for what its sums round: each element as two f16, of which the
/// products with lo can be left out. `scaled_by` is as the kernel does it, or as it must not.
fn multiplied_split(problem: &Problem<f32>, scaled_by: ScaledBy, with_lo: bool) -> Matrix<f32> {
    let Shape { m, n, k } = problem.shape();
    let largest = |elements: &mut dyn Iterator<Item = f32>| {
        elements.fold(0.0, |most, one| one.abs().max(most))
    };
    let of_a = |row: usize| largest(&mut problem.a.row(row).iter().copied());
    let of_b = |col: usize| largest(&mut (0..k).map(|l| problem.b.row(l)[col]));
    let scales = |count: usize, of: &dyn Fn(usize) -> f32| {
        let mut maxima: Vec<f32> = (0..count).map(of).collect();
        if scaled_by == ScaledBy::Matrix {
            let most = largest(&mut maxima.iter().copied());
            maxima.fill(most);
        }
        maxima
            .into_iter()
            .map(|most| 2f64.powi(14) / 2f64.powf(f64::from(most).log2().floor()))
    };
    let split = |element: f32, scale: f64| {
        let scaled = f64::from(element) * scale;
        let mut hi = gpu_gemm::F16::from_f32(scaled as f32);
        if hi.to_f32() == 0.0 && element != 0.0 {
            hi = gpu_gemm::F16::from_f32(2f32.powi(-24).copysign(element));
        }
        let hi = f64::from(hi.to_f32());
        let lo = gpu_gemm::F16::from_f32(((scaled - hi) * 2048.0) as f32).to_f32();
        [
            hi / scale,
            if with_lo {
                f64::from(lo) / 2048.0 / scale
            } else {
                0.0
            },
        ]
    };
    let a_scales: Vec<f64> = scales(m, &of_a).collect();
    let b_scales: Vec<f64> = scales(n, &of_b).collect();
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

/// The outcome for split elements, of all elements or of samples.
fn proven_split(
    problem: &Problem<f32>,
    c: &Matrix<f32>,
    data: Data,
    coverage: Coverage<'_>,
) -> Result<Proof, Failure> {
    general(problem, c, TILE, data, coverage, ErrorModel::Split)
}

#[test]
fn graded_data_is_proven_as_normal_data_is_and_its_errors_are_the_same() {
    let shape = Shape::new(37, 53, 300);
    let normal = problem::<f32>(shape, Data::Normal, 1.0, 0.0);
    let graded = problem::<f32>(shape, Data::Graded, 1.0, 0.0);
    let by_row = |problem: &_| multiplied_split(problem, ScaledBy::RowOrColumn, true);
    for coverage in BOTH {
        proven(&graded, &multiplied(&graded), TILE, Data::Graded, coverage).unwrap();
        proven_split(&graded, &by_row(&graded), Data::Graded, coverage).unwrap();
    }
    let units = |problem: &Problem<f32>, data, c: &Matrix<f32>| {
        let proof = proven_split(problem, c, data, Coverage::Full).unwrap();
        proof.errors.unwrap().units
    };
    for multiplied in [&by_row as &dyn Fn(&_) -> _, &multiplied] {
        let of_normal = units(&normal, Data::Normal, &multiplied(&normal));
        let of_graded = units(&graded, Data::Graded, &multiplied(&graded));
        approx::assert_relative_eq!(of_normal, of_graded, max_relative = 1e-9);
    }
}

#[test]
fn on_graded_data_a_scale_of_the_whole_matrix_is_refused_and_so_is_a_lo_that_is_dropped() {
    let graded = problem::<f32>(Shape::new(37, 53, 300), Data::Graded, 1.0, 0.0);
    let of = |scaled_by, with_lo| multiplied_split(&graded, scaled_by, with_lo);
    let by_matrix = of(ScaledBy::Matrix, true);
    let refused = proven_split(&graded, &by_matrix, Data::Graded, Coverage::Full);
    assert!(matches!(refused, Err(Failure::Element(_))), "{refused:?}");
    // By the largest elements of A and B, the bound of a small element would be 2^100 times itself.
    for coverage in BOTH {
        let hi_alone = of(ScaledBy::RowOrColumn, false);
        let refused = proven_split(&graded, &hi_alone, Data::Graded, coverage);
        assert!(refused.is_err(), "{refused:?}");
    }
}

#[test]
fn on_wide_data_split_elements_meet_the_bound_of_rows_and_columns_and_no_other() {
    let wide = problem::<f32>(Shape::new(37, 53, 300), Data::Wide, 1.0, 0.0);
    for coverage in BOTH {
        proven(&wide, &multiplied(&wide), TILE, Data::Wide, coverage).unwrap();
    }
    let split = multiplied_split(&wide, ScaledBy::RowOrColumn, true);
    let proof = proven_split(&wide, &split, Data::Wide, Coverage::Full).unwrap();
    // Those of f32 are below 32.
    let units = proof.errors.unwrap().units;
    assert!((300.0..100_000.0).contains(&units), "{units}");
    let elementwise = proven(&wide, &split, TILE, Data::Wide, Coverage::Full);
    assert!(elementwise.is_err(), "{elementwise:?}");
}

#[test]
fn errors_are_those_of_all_elements_and_of_samples_there_are_none() {
    let problem = problem::<f32>(Shape::new(37, 53, 300), Data::Normal, 1.0, 0.0);
    let c = multiplied(&problem);
    let (mut squares, mut of_all, mut units) = (0.0, 0.0, 0f64);
    for row in 0..37 {
        for col in 0..53 {
            let expected = reference::element(&problem, row, col);
            let err = (f64::from(c.row(row)[col]) - expected.want).abs();
            squares += err * err;
            of_all += expected.want * expected.want;
            units = units.max(err / (expected.magnitude * 2f64.powi(-24)));
        }
    }
    let errors = |coverage| {
        let proof = proven(&problem, &c, TILE, Data::Normal, coverage);
        proof.unwrap().errors
    };
    let found = errors(Coverage::Full).unwrap();
    let frobenius = f64::sqrt(squares / of_all);
    approx::assert_relative_eq!(
        found.frobenius,
        frobenius,
        max_relative = 1e-9,
        epsilon = 0.0
    );
    approx::assert_relative_eq!(found.units, units, max_relative = 1e-9);
    assert_eq!(errors(SAMPLED), None);
}

#[test]
fn a_result_without_errors_has_none_and_one_whose_squares_overflow_says_nothing() {
    let zeros = outer(3, (0.0, 1.0, 0.0), (1.0, 0.0));
    let c = Matrix::from_elements(2, 3, |_, _| 0f32).unwrap();
    let proof = proven(&zeros, &c, TILE, None, Coverage::Full).unwrap();
    let none = Errors {
        frobenius: 0.0,
        units: 0.0,
    };
    assert_eq!(proof.errors, Some(none));
    // 1e200 squared is beyond f64, and one unit off.
    let one = |element: f64| Matrix::from_elements(1, 1, |_, _| element).unwrap();
    let large = Problem::new(1.0, 0.0, one(1e100), one(1e100), one(0.0)).unwrap();
    let off = one((1e100 * 1e100f64).next_up());
    let proof = proven(&large, &off, TILE, None, Coverage::Full).unwrap();
    assert_eq!(proof.errors, None);
}
