//! The real program under a real `mpirun`, with more ranks than this machine has cores.

mod apart;
#[path = "../../../../host/tests/devices/built.rs"]
mod fake_gpu;
mod faults;
mod job;
mod on_gpus;
mod right;
mod sent;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Tests, each by its name.
macro_rules! trials {
    ($($module:ident::$test:ident),* $(,)?) => {
        vec![$(Trial::test(concat!(stringify!($module), "::", stringify!($test)), || {
            $module::$test();
            Ok(())
        })),*]
    };
}

fn main() -> ExitCode {
    let trials = trials![
        right::every_layout_is_exact_and_sends_what_its_formulas_say_on_any_number_of_ranks,
        right::the_same_grid_gives_the_same_bits,
        right::users_files_alpha_and_beta_are_multiplied,
        right::a_factor_that_rounds_to_0_is_0,
        right::elements_of_16_bits_are_added_up_in_f32_and_rounded_once_in_every_layout,
        right::scaling_writes_json_and_plots,
        right::without_mpirun_the_program_is_one_rank_and_says_so,
        right::a_prediction_needs_no_mpirun,
        apart::blocks_pass_where_they_lie_and_c_does_not_travel,
        apart::a_wrong_element_in_any_ranks_block_is_noticed,
        apart::what_needs_all_of_c_is_refused_beside_it,
        sent::the_formulas_are_what_mpi_itself_counts,
        faults::a_rank_that_panics_ends_the_job_with_its_name,
        faults::ranks_that_were_started_differently_do_not_start,
        faults::what_does_not_exist_is_refused_once_with_the_exit_code_for_usage,
        faults::a_file_that_cannot_be_read_ends_all_ranks,
        faults::a_device_that_no_rank_has_is_said_once,
    ];
    let on_gpus = trials![
        on_gpus::every_layout_is_exact_on_gpus_in_every_order_of_streams,
        on_gpus::other_types_are_exact_on_gpus,
        on_gpus::ranks_without_a_gpu_multiply_beside_those_with_one,
        on_gpus::a_gpu_that_fails_ends_the_job_with_the_rank_and_the_reason,
    ];
    let why_not = job::why_not();
    if let Some(reason) = &why_not {
        println!("these tests are ignored here: {reason}");
    }
    let without_gpus = on_gpus::why_not();
    if let Some(reason) = without_gpus {
        println!("those of ranks on GPUs are ignored here: {reason}");
    }
    let trials = trials
        .into_iter()
        .map(|trial| trial.with_ignored_flag(why_not.is_some()));
    let cannot = why_not.is_some() || without_gpus.is_some();
    let on_gpus = on_gpus
        .into_iter()
        .map(|trial| trial.with_ignored_flag(cannot));
    let trials = trials.chain(on_gpus);
    let mut arguments = Arguments::from_args();
    // Jobs have more ranks than there are cores already.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
