//! The model's extrapolation: time and memory of every layout on 1 to 65,536 ranks, and which one
//! wins.

use std::io::{self, Write};

use gpu_gemm::{DataType, Shape};
use host::report::{duration, new_table, speed};

use crate::layout::summa::Summa;
use crate::layout::{Layout, layouts};
use crate::model::{Case, Machine};
use crate::volume::Bytes;

/// Four times as many each time.
pub const RANKS: [usize; 9] = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536];

/// What is asked of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub shape: Shape,
    pub data_type: DataType,
    pub panel: usize,
    pub machine: Machine,
    /// Of one rank, in bytes.
    pub memory_bytes: f64,
}

/// The prediction for one layout on a number of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// From A and B on rank 0 to C on rank 0.
    pub time_s: f64,
    /// Of the product alone, with A and B where the layout wants them and C where it is computed.
    pub resident_s: f64,
    /// Bytes on rank 0, and on the rank besides it that needs the most.
    pub first_bytes: f64,
    pub other_bytes: f64,
}

impl Question {
    /// The answer for one layout.
    pub fn predict(&self, layout: &dyn Layout, ranks: usize) -> Prediction {
        let case = Case {
            shape: self.shape,
            ranks,
            panel: self.panel,
            gathers: true,
        };
        let bytes = Bytes::of(self.data_type.inputs);
        let cost = layout.cost(&case, &self.machine, bytes);
        let memory = layout.memory(&case);
        Prediction {
            time_s: cost.total(),
            resident_s: cost.resident(),
            first_bytes: memory.first.bytes(bytes),
            other_bytes: memory.others.bytes(bytes),
        }
    }

    /// The layout that takes the least time.
    pub fn winner(&self, ranks: usize) -> &'static str {
        let mut best = ("", f64::INFINITY);
        for layout in layouts::<f32>() {
            let time = self.predict(layout, ranks).time_s;
            if time < best.1 {
                best = (layout.name(), time);
            }
        }
        best.0
    }

    /// Writes a table for people.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Shape { m, n, k } = self.shape;
        let machine = &self.machine;
        writeln!(
            out,
            "model   {m} x {n} x {k} of {}, panels of {}: latency {}, {:.2} GB/s, {} a rank, {:.1} GiB a rank",
            self.data_type,
            self.panel,
            duration(machine.latency_s),
            machine.bytes_per_s / 1e9,
            speed(machine.flops_per_s),
            self.memory_bytes / GIB,
        )?;
        let names = layouts::<f32>().map(Layout::name);
        writeln!(out, "\nTime from A and B on rank 0 to C on rank 0:\n")?;
        let mut times = new_table();
        times.set_header(
            ["ranks"]
                .into_iter()
                .chain(names)
                .chain(["summa, resident", "least"]),
        );
        for ranks in RANKS {
            let predicted = layouts::<f32>().map(|layout| self.predict(layout, ranks));
            let mut row = vec![ranks.to_string()];
            row.extend(
                predicted
                    .iter()
                    .map(|prediction| duration(prediction.time_s)),
            );
            row.push(duration(self.predict(&Summa, ranks).resident_s));
            row.push(self.winner(ranks).to_string());
            times.add_row(row);
        }
        writeln!(out, "{times}")?;
        writeln!(
            out,
            "\n(summa, resident: A and B are where they are needed already, and C stays where it is computed.)"
        )?;
        writeln!(
            out,
            "\nMemory of a rank other than 0, in GiB (! does not fit):\n"
        )?;
        let mut memory = new_table();
        memory.set_header(["ranks"].into_iter().chain(names));
        for ranks in RANKS.into_iter().skip(1) {
            let mut row = vec![ranks.to_string()];
            row.extend(layouts::<f32>().map(|layout| {
                let bytes = self.predict(layout, ranks).other_bytes;
                self.gibibytes(bytes)
            }));
            memory.add_row(row);
        }
        writeln!(out, "{memory}")?;
        let first = self.predict(layouts::<f32>()[0], 1).first_bytes;
        writeln!(
            out,
            "\nRank 0 holds A, B and C here: {} GiB, whatever the layout.",
            self.gibibytes(first)
        )
    }

    fn gibibytes(&self, bytes: f64) -> String {
        let mark = if bytes > self.memory_bytes { " !" } else { "" };
        format!("{:.3}{mark}", bytes / GIB)
    }
}

const GIB: f64 = (1 << 30) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    /// The cluster of the book's chapter: 2 µs, 10 GB/s and 1 TFLOP/s a rank.
    const CLUSTER: Machine = Machine {
        latency_s: 2e-6,
        bytes_per_s: 1e10,
        flops_per_s: 1e12,
    };

    /// 16 GiB a rank.
    fn cluster(size: usize) -> Question {
        Question {
            shape: Shape::cube(size),
            data_type: DataType::F32,
            panel: 256,
            machine: CLUSTER,
            memory_bytes: 16.0 * GIB,
        }
    }

    fn of(question: &Question, name: &str, ranks: usize) -> Prediction {
        let layouts = layouts::<f32>();
        let layout = layouts.iter().find(|layout| layout.name() == name).unwrap();
        question.predict(*layout, ranks)
    }

    #[test]
    fn a_c_of_16_bits_is_added_up_in_f32_and_takes_its_memory() {
        let [m, n, k] = [1000, 2000, 3000];
        for data_type in [DataType::BF16, DataType::F16_F32] {
            let question = Question {
                shape: Shape::new(m, n, k),
                data_type,
                ..cluster(1)
            };
            let predicted = of(&question, "scatter-rows", 4);
            let bytes = [
                2 * (m * k + k * n) + 4 * m * n,
                2 * (m / 4 * k + k * n) + 4 * m / 4 * n,
            ];
            let found = [predicted.first_bytes, predicted.other_bytes];
            assert_eq!(found, bytes.map(|bytes| bytes as f64));
        }
    }
}
