//! Reduces a function that has a fault to the smallest version that still has it.

use anyhow::Result;

use crate::check::{Fault, have};
use crate::compile::Config;
use crate::generate::{Expression, Function, Statement, literal};

/// Candidates that are compiled at a time.
const AT_A_TIME: usize = 24;

/// Tries smaller versions until none has the fault.
pub fn reduce(
    function: Function,
    fault: Fault,
    inputs: &[[u64; 8]],
    configs: &[Config],
) -> Result<Function> {
    let mut best = function;
    'smaller: loop {
        for candidates in candidates(&best).chunks(AT_A_TIME) {
            let found = have(fault, candidates, inputs, configs)?;
            if let Some(at) = found.iter().position(|has_it| *has_it) {
                best = candidates[at].clone();
                continue 'smaller;
            }
        }
        return Ok(best);
    }
}

/// Versions with one thing removed, the largest removals first.
pub fn candidates(function: &Function) -> Vec<Function> {
    let removed = |number| {
        let mut smaller = function.clone();
        let mut removal = Removal { before: number };
        let is_made = removal.in_body(&mut smaller.body)
            || smaller
                .variables
                .iter_mut()
                .any(|value| removal.in_expression(value));
        is_made.then_some(smaller)
    };
    (0..).map_while(removed).collect()
}

/// The removal of a number: a walk over a function counts those that are possible, and makes this
/// one. Each step of the walk returns whether it has been made.
struct Removal {
    /// How many come before it.
    before: usize,
}

impl Removal {
    fn is_next(&mut self) -> bool {
        match self.before.checked_sub(1) {
            Some(before) => {
                self.before = before;
                false
            }
            None => true,
        }
    }

    /// Removes a statement, or replaces it by one of its branches, or makes it smaller.
    fn in_body(&mut self, body: &mut Vec<Statement>) -> bool {
        for at in 0..body.len() {
            if self.is_next() {
                body.remove(at);
                return true;
            }
            // The body of a `for` uses the variable that counts.
            let branches = match &mut body[at] {
                Statement::For(..) => Vec::new(),
                statement => bodies(statement),
            };
            let branch = branches
                .into_iter()
                .find(|branch| !branch.is_empty() && self.is_next())
                .map(std::mem::take);
            if let Some(branch) = branch {
                body.splice(at..=at, branch);
                return true;
            }
        }
        body.iter_mut()
            .any(|statement| self.in_statement(statement))
    }

    fn in_statement(&mut self, statement: &mut Statement) -> bool {
        if let Statement::For(count @ 2.., _) = statement
            && self.is_next()
        {
            *count = 1;
            return true;
        }
        let values: Vec<&mut Expression> = match statement {
            Statement::Store(place, value) => vec![place, value],
            Statement::Assign(_, value)
            | Statement::If(value, ..)
            | Statement::Match(value, _)
            | Statement::While(value, _) => vec![value],
            Statement::For(..) => Vec::new(),
        };
        values.into_iter().any(|value| self.in_expression(value))
            || bodies(statement).into_iter().any(|body| self.in_body(body))
    }

    /// Replaces an expression by a literal or by one of its parts.
    fn in_expression(&mut self, whole: &mut Expression) -> bool {
        if whole.parts.is_empty() {
            return false;
        }
        if self.is_next() {
            whole.text = literal(whole.ty, 1);
            whole.parts.clear();
            return true;
        }
        for at in 0..whole.parts.len() {
            let part = &whole.parts[at];
            if part.ty == whole.ty && !part.stays && self.is_next() {
                *whole = Expression {
                    stays: whole.stays,
                    ..whole.parts.swap_remove(at)
                };
                return true;
            }
        }
        whole.parts.iter_mut().any(|part| self.in_expression(part))
    }
}

/// The statements in a statement.
fn bodies(statement: &mut Statement) -> Vec<&mut Vec<Statement>> {
    match statement {
        Statement::Assign(..) | Statement::Store(..) => Vec::new(),
        Statement::If(_, then, otherwise) => vec![then, otherwise],
        Statement::Match(_, arms) => arms.iter_mut().collect(),
        Statement::For(_, body) | Statement::While(_, body) => vec![body],
    }
}
