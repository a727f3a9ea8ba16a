//! Reduces a function that has a fault to the smallest version that still has it.

use anyhow::Result;

use crate::check::{Fault, have};
use crate::compile::Config;
use crate::generate::{Expression, Function, Statement, literal};

/// Candidates that are compiled at a time.
const AT_A_TIME: usize = 24;

/// Tries smaller versions until none has the fault.
///
/// # Errors
///
/// If the required tools are not available.
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
    let with_body = |body: Vec<Statement>| Function {
        body,
        ..function.clone()
    };
    let mut found: Vec<Function> = smaller_bodies(&function.body)
        .into_iter()
        .map(with_body)
        .collect();
    for (at, value) in function.variables.iter().enumerate() {
        for smaller in smaller_expressions(value) {
            let mut variables = function.variables.clone();
            variables[at] = smaller;
            found.push(Function {
                variables,
                ..function.clone()
            });
        }
    }
    found
}

fn smaller_bodies(body: &[Statement]) -> Vec<Vec<Statement>> {
    let mut found = Vec::new();
    let replaced = |at: usize, by: Vec<Statement>| {
        let mut body = body.to_vec();
        body.splice(at..=at, by);
        body
    };
    for (at, statement) in body.iter().enumerate() {
        found.push(replaced(at, Vec::new()));
        let inner: Vec<&Vec<Statement>> = match statement {
            Statement::If(_, then, otherwise) => vec![then, otherwise],
            Statement::Match(_, arms) => arms.iter().collect(),
            Statement::While(_, body) => vec![body],
            _ => Vec::new(),
        };
        found.extend(
            inner
                .into_iter()
                .filter(|body| !body.is_empty())
                .map(|body| replaced(at, body.clone())),
        );
    }
    for (at, statement) in body.iter().enumerate() {
        found.extend(
            smaller_statements(statement)
                .into_iter()
                .map(|smaller| replaced(at, vec![smaller])),
        );
    }
    found
}

fn smaller_statements(statement: &Statement) -> Vec<Statement> {
    let mut found = Vec::new();
    match statement {
        Statement::Assign(variable, value) => {
            found.extend(
                smaller_expressions(value)
                    .into_iter()
                    .map(|value| Statement::Assign(*variable, value)),
            );
        }
        Statement::Store(place, value) => {
            found.extend(
                smaller_expressions(place)
                    .into_iter()
                    .map(|place| Statement::Store(place, value.clone())),
            );
            found.extend(
                smaller_expressions(value)
                    .into_iter()
                    .map(|value| Statement::Store(place.clone(), value)),
            );
        }
        Statement::If(condition, then, otherwise) => {
            let new = |condition: &Expression, then: &[Statement], otherwise: &[Statement]| {
                Statement::If(condition.clone(), then.to_vec(), otherwise.to_vec())
            };
            found.extend(
                smaller_expressions(condition)
                    .iter()
                    .map(|condition| new(condition, then, otherwise)),
            );
            found.extend(
                smaller_bodies(then)
                    .iter()
                    .map(|then| new(condition, then, otherwise)),
            );
            found.extend(
                smaller_bodies(otherwise)
                    .iter()
                    .map(|otherwise| new(condition, then, otherwise)),
            );
        }
        Statement::Match(selector, arms) => {
            found.extend(
                smaller_expressions(selector)
                    .into_iter()
                    .map(|selector| Statement::Match(selector, arms.clone())),
            );
            for (at, arm) in arms.iter().enumerate() {
                for smaller in smaller_bodies(arm) {
                    let mut arms = arms.clone();
                    arms[at] = smaller;
                    found.push(Statement::Match(selector.clone(), arms));
                }
            }
        }
        Statement::For(count, body) => {
            if *count > 1 {
                found.push(Statement::For(1, body.clone()));
            }
            found.extend(
                smaller_bodies(body)
                    .into_iter()
                    .map(|body| Statement::For(*count, body)),
            );
        }
        Statement::While(condition, body) => {
            found.extend(
                smaller_expressions(condition)
                    .into_iter()
                    .map(|condition| Statement::While(condition, body.clone())),
            );
            found.extend(
                smaller_bodies(body)
                    .into_iter()
                    .map(|body| Statement::While(condition.clone(), body)),
            );
        }
    }
    found
}

fn smaller_expressions(expression: &Expression) -> Vec<Expression> {
    let mut found = Vec::new();
    if expression.parts.is_empty() {
        return found;
    }
    found.push(Expression {
        ty: expression.ty,
        text: literal(expression.ty, 1),
        parts: Vec::new(),
        stays: expression.stays,
    });
    found.extend(
        expression
            .parts
            .iter()
            .filter(|part| part.ty == expression.ty && !part.stays)
            .cloned(),
    );
    for (at, part) in expression.parts.iter().enumerate() {
        for smaller in smaller_expressions(part) {
            let mut parts = expression.parts.clone();
            let stays = part.stays;
            parts[at] = Expression { stays, ..smaller };
            found.push(Expression {
                parts,
                ..expression.clone()
            });
        }
    }
    found
}
