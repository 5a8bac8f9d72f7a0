//! The tests that run on the host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::cargo::{Executable, run};
use crate::workspace::{Package, Workspace};

/// Test programs, by package.
pub type HostTests = BTreeMap<String, Vec<PathBuf>>;

/// Compiles the tests of all `packages` at once, so that no processor waits for the last crate of one of them. Of who
/// does not compile as a whole, and of who has a library that is not for the host, nothing is returned.
///
/// # Errors
/// When cargo cannot be run.
pub fn host_tests(workspace: &Workspace, packages: &[&Package]) -> Result<HostTests> {
    let packages: Vec<&Package> =
        packages.iter().copied().filter(|package| package.has_host_library()).collect();
    if packages.is_empty() {
        return Ok(HostTests::new());
    }
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--no-run", "--no-fail-fast", "--profile", "tool", "--lib"]);
    cargo.arg("--message-format=json-render-diagnostics");
    for package in &packages {
        cargo.args(["-p", &package.name]);
        for test in package.integration_tests() {
            cargo.args(["--test", test]);
        }
    }
    let log = run(&mut cargo, "the host tests")?;
    Ok(by_package(&packages, &log.executables))
}

/// Whose tests `executables` are: those of `packages` whose every program is there.
fn by_package(packages: &[&Package], executables: &[Executable]) -> HostTests {
    let whole = packages.iter().filter_map(|package| {
        let find = |source: &Path| executables.iter().find(|program| program.source == source);
        let files = package.host_tests().map(|source| Some(find(source)?.file.clone()));
        Some((package.name.clone(), files.collect::<Option<Vec<_>>>()?))
    });
    whole.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package in `/NAME`, with a library and a test called `all`.
    fn package(name: &str) -> Package {
        let target = |kind: &str, file: &str| {
            format!(
                "{{\"name\":\"all\",\"kind\":[\"{kind}\"],\"src_path\":\"/{name}/{file}\",\"test\":true}}"
            )
        };
        let targets = [target("lib", "lib.rs"), target("bin", "main.rs"), target("test", "all.rs")];
        let targets = targets.join(",");
        let text = format!(
            "{{\"name\":\"{name}\",\"manifest_path\":\"/{name}/Cargo.toml\",\"targets\":[{targets}]}}"
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn tests_are_those_of_the_package_with_their_source() {
        let (one, two) = (package("a"), package("a/b"));
        let program = |source: &str, file: &str| {
            let [source, file] = [source, file].map(PathBuf::from);
            Executable { name: "all".to_owned(), source, file }
        };
        let found = [
            program("/a/b/lib.rs", "/lib-b"),
            program("/a/all.rs", "/all-a"),
            program("/a/main.rs", "/main-a"),
            program("/a/lib.rs", "/lib-a"),
        ];
        let tests = by_package(&[&one, &two], &found);
        // The test of `a/b` is not there: it did not compile.
        let all = HostTests::from([("a".to_owned(), vec!["/lib-a".into(), "/all-a".into()])]);
        assert_eq!(tests, all);
    }
}
