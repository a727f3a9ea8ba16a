//! Hostile input: real IR with pieces torn out, doubled, swapped and replaced, and soup made of
//! IR's words.
//!
//! For any input the compiler returns a module, or an error that has a line. It does not panic,
//! and does not hang: inputs are bounded, and so is the number of them.

mod common;

use std::sync::LazyLock;

use common::{DIALECTS, cases};
use device_codegen::{Source, compile};
use proptest::prelude::*;

/// The corpus, whose pieces the inputs are made of.
static CORPUS: LazyLock<Vec<String>> = LazyLock::new(|| {
    ["golden", "errors", "fixtures"]
        .into_iter()
        .flat_map(cases)
        .map(|case| case.text)
        .collect()
});

/// The words of the corpus, with the blanks before them.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut words: Vec<String> = CORPUS
        .iter()
        .flat_map(|text| text.split_inclusive([' ', '\n', ',', '(', ')', '[', ']', '{', '}', '"']))
        .map(str::to_owned)
        .collect();
    words.sort();
    words.dedup();
    words.extend(
        [
            "\n",
            "}",
            "{",
            "(",
            "<",
            "i128 ",
            "-1 ",
            "18446744073709551616 ",
            "%",
            "@",
            "!",
            "\u{fffd}",
        ]
        .map(str::to_owned),
    );
    words
});

fn answers(text: &str) {
    for (dialect, _) in DIALECTS {
        let source = Source {
            name: "fuzz.ll",
            text,
        };
        if let Err(error) = compile(&[source], dialect) {
            let lines = text.lines().count() as u32 + 1;
            assert!(
                (1..=lines).contains(&error.line()),
                "line {} of {lines}: {error}",
                error.line()
            );
        }
    }
}

#[derive(Clone, Debug)]
enum Mutation {
    Remove,
    Double,
    SwapWithNext,
    ReplaceWord(prop::sample::Index),
    Cut,
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        Just(Mutation::Remove),
        Just(Mutation::Double),
        Just(Mutation::SwapWithNext),
        any::<prop::sample::Index>().prop_map(Mutation::ReplaceWord),
        Just(Mutation::Cut),
    ]
}

/// Splits into pieces that are lines or, finer, words.
fn pieces(text: &str, by_word: bool) -> Vec<&str> {
    match by_word {
        true => text.split_inclusive([' ', '\n', ',', '(', ')']).collect(),
        false => text.split_inclusive('\n').collect(),
    }
}

fn mutate(text: &str, by_word: bool, at: prop::sample::Index, mutation: &Mutation) -> String {
    let mut pieces = pieces(text, by_word);
    if pieces.is_empty() {
        return String::new();
    }
    let position = at.index(pieces.len());
    match mutation {
        Mutation::Remove => {
            pieces.remove(position);
        }
        Mutation::Double => pieces.insert(position, pieces[position]),
        Mutation::SwapWithNext => {
            let next = (position + 1) % pieces.len();
            pieces.swap(position, next);
        }
        Mutation::ReplaceWord(word) => pieces[position] = word.get(WORDS.as_slice()).as_str(),
        Mutation::Cut => pieces.truncate(position),
    }
    pieces.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn mutated_modules_are_answered(
        start in any::<prop::sample::Index>(),
        mutations in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), mutation()), 1..6),
    ) {
        let mut text = start.get(CORPUS.as_slice()).clone();
        for (by_word, at, mutation) in &mutations {
            text = mutate(&text, *by_word, *at, mutation);
        }
        answers(&text);
    }

    #[test]
    fn soup_of_words_is_answered(words in prop::collection::vec(any::<prop::sample::Index>(), 0..200)) {
        let text: String = words.iter().map(|word| word.get(WORDS.as_slice()).as_str()).collect();
        answers(&text);
    }

    #[test]
    fn soup_inside_a_kernel_is_answered(words in prop::collection::vec(any::<prop::sample::Index>(), 0..60)) {
        let soup: String = words.iter().map(|word| word.get(WORDS.as_slice()).as_str()).collect();
        answers(&format!("define void @k(ptr %p, i32 %a) section \".nvvm.kernel\" {{\nstart:\n  {soup}\n  ret void\n}}\n"));
    }

    #[test]
    fn any_text_is_answered(text in ".{0,200}") {
        answers(&text);
    }
}

/// Nesting that would overflow the stack of a parser that recurses without a limit.
#[test]
fn deep_nesting_is_an_error() {
    for (open, close) in [("[1 x ", "]"), ("{ ", " }"), ("<{ ", " }>")] {
        let depth = 100_000;
        let text = format!(
            "@A = internal global {}i8{} zeroinitializer\n",
            open.repeat(depth),
            close.repeat(depth)
        );
        answers(&text);
    }
    answers(&format!(
        "@A = internal global i64 {}",
        "add (i64 ".repeat(100_000)
    ));
}

/// Types that double at each name.
#[test]
fn types_that_grow_exponentially_are_an_error() {
    let mut text = String::from("%T0 = type { i8, i8 }\n");
    for index in 1..60 {
        text.push_str(&format!("%T{index} = type {{ %T{0}, %T{0} }}\n", index - 1));
    }
    text.push_str("define void @k(%T59 %x) section \".nvvm.kernel\" {\n  ret void\n}\n");
    let source = Source {
        name: "types.ll",
        text: &text,
    };
    let error = compile(&[source], DIALECTS[0].0).expect_err("2^60 parts");
    assert_eq!(error.problem(), "the type has too many parts");
}
