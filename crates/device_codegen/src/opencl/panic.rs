//! Panics: a kernel of OpenCL cannot trap, so that what has happened is written to a record.

use super::body::Body;
use super::expression::{Expression, rank};
use crate::error::Result;
use crate::ir::{Call, Type};

impl Body<'_, '_> {
    /// Writes what has happened to the panic record, and ends the work-item.
    pub(super) fn panic(&mut self, call: &Call) -> Result<()> {
        let types = [32, 64, 64, 64].map(Type::Integer);
        let mut texts = Vec::new();
        let mut reads = Vec::new();
        // The numbers of panics count from 0, and a record with 0 is empty.
        for (ty, value) in types.iter().zip(&call.arguments) {
            let value = self.value(ty, value)?;
            texts.push(match texts.is_empty() {
                true => format!("{} + 1u", value.at(rank::SUM)),
                false => value.text.clone(),
            });
            reads.push(value);
        }
        self.settle()?;
        self.report(&texts.join(", "), &reads.iter().collect::<Vec<_>>())
    }

    pub(super) fn trap(&mut self) -> Result<()> {
        self.settle()?;
        let text = "it stops itself".to_owned();
        let place = self.place_of_source();
        self.needs.panics.push(format!("{place}: {text}"));
        let number = self.needs.panics.len();
        self.report(&format!("{number}u, 0ul, 0ul, 0ul"), &[])
    }

    fn report(&mut self, arguments: &str, reads: &[&Expression]) -> Result<()> {
        if self.function.kernel.is_none() {
            return Err(self.error(
                "a function that may panic has not been inlined into the kernel, and OpenCL C can end a work-item only \
                 from the kernel itself; mark the function `#[inline(always)]`",
            ));
        }
        self.say_source();
        self.needs.panic_record = true;
        self.push(format!("report_panic(panic_record, {arguments});"), reads);
        self.push("return;", &[]);
        Ok(())
    }

    /// `src/lib.rs:5:9`, or nothing.
    fn place_of_source(&self) -> String {
        self.source
            .and_then(|source| {
                let places = crate::source_place::places(&self.printer.module.lines, source);
                Some(places.first()?.to_string())
            })
            .unwrap_or_default()
    }
}
