//! No dependency has a known vulnerability, is unsound or is abandoned, as far as the RustSec
//! Advisory Database knew when `advisories.csv` was made of it. `cargo deny check advisories` asks
//! the newest one; it needs a network.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use semver::{Version, VersionReq};
use serde::Deserialize;

#[derive(Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: Version,
    /// Of this repository's own packages there is none.
    source: Option<String>,
}

#[derive(Deserialize)]
struct Advisory {
    package: String,
    id: String,
    kind: String,
    /// Requirements, with semicolons between them: a version that meets one is not concerned.
    patched: String,
    unaffected: String,
}

impl Advisory {
    fn concerns(&self, package: &Package) -> bool {
        let requirements = [&self.patched, &self.unaffected];
        let mut requirements = requirements.iter().flat_map(|list| list.split(';'));
        package.name == self.package
            && !requirements.any(|requirement| {
                let requirement = requirement.trim();
                !requirement.is_empty()
                    && VersionReq::parse(requirement)
                        .unwrap_or_else(|error| panic!("{}: {requirement}: {error}", self.id))
                        .matches(&package.version)
            })
    }
}

fn advisories() -> Vec<Advisory> {
    let text = fs::read(root().join("tests/advisories.csv")).expect("the file is there");
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(io::Cursor::new(text));
    let rows: Result<Vec<Advisory>, _> = reader.deserialize().collect();
    rows.expect("each row is an advisory")
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Advisories that nothing can be done about: their number, the package, and why it stays.
const ACCEPTED: [(&str, &str, &str); 1] = [(
    "RUSTSEC-2025-0058",
    "custom_derive",
    "a macro that is unmaintained, which the newest `mpi` uses by way of `conv`; only `distributed` has it",
)];

#[test]
fn no_dependency_has_an_advisory_but_those_that_are_accepted() {
    let advisories = advisories();
    let (mut found, mut accepted) = (Vec::new(), BTreeSet::new());
    for lock in [
        "Cargo.lock",
        "template/Cargo.lock",
        "template/cudarc/Cargo.lock",
    ] {
        let text = fs::read_to_string(root().join(lock)).expect("the file is there");
        let lock: Lock = toml::from_str(&text).expect("it is a lock file");
        for package in lock
            .package
            .iter()
            .filter(|package| package.source.is_some())
        {
            for advisory in advisories
                .iter()
                .filter(|advisory| advisory.concerns(package))
            {
                let Package { name, version, .. } = package;
                let is_accepted = |(id, package, _): &(&str, &str, &str)| {
                    (*id, *package) == (advisory.id.as_str(), name.as_str())
                };
                if ACCEPTED.iter().any(is_accepted) {
                    accepted.insert(&advisory.id);
                    continue;
                }
                found.push(format!(
                    "{}: {name} {version} ({})",
                    advisory.id, advisory.kind
                ));
            }
        }
    }
    assert!(
        found.is_empty(),
        "update or replace what has an advisory:\n{}",
        found.join("\n")
    );
    assert_eq!(
        accepted.len(),
        ACCEPTED.len(),
        "no longer needed: {ACCEPTED:?}"
    );
}

#[test]
fn versions_before_a_patch_are_concerned_and_those_since_are_not() {
    let advisories = advisories();
    let concerned = |name: &str, version: &str| {
        let package = Package {
            name: name.into(),
            version: version.parse().expect("a version"),
            source: None,
        };
        let mut ids = advisories
            .iter()
            .filter(|advisory| advisory.concerns(&package));
        ids.any(|advisory| advisory.id == "RUSTSEC-2026-0097")
    };
    assert!(concerned("rand", "0.8.5"));
    assert!(concerned("rand", "0.10.0"));
    assert!(!concerned("rand", "0.8.6"));
    assert!(!concerned("rand", "0.10.1"));
    assert!(!concerned("rand", "0.6.5"));
    assert!(!concerned("rand_core", "0.8.5"));
}
