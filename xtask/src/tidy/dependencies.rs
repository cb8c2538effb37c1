//! The core is sans-IO: its crates may not even depend on something that does I/O.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

use super::Finding;

/// The crates that know no file, clock, environment, randomness or thread.
pub(crate) const PURE: &[&str] = &[
    "foldline-session-model",
    "foldline-compaction-core",
    "foldline-pruning",
    "foldline-branch-summary",
    "foldline-compaction-eval",
];

/// What those may not depend on, directly or through another crate.
const BANNED: &[&str] = &[
    // Async runtimes and the network
    "tokio",
    "mio",
    "reqwest",
    "hyper",
    "async-std",
    "smol",
    // Files
    "fs-err",
    "tempfile",
    "etcetera",
    "memmap2",
    "walkdir",
    // Randomness, ids and clocks
    "rand",
    "rand_core",
    "getrandom",
    "fastrand",
    "uuid",
    "jiff",
    "chrono",
    "time",
    // Threads
    "rayon",
    "crossbeam-channel",
];

/// Which crates of the workspace a crate may use: the arrows of `ARCHITECTURE.md`.
const ARROWS: &[(&str, &[&str])] = &[
    ("foldline-session-model", &[]),
    ("foldline-compaction-core", &["foldline-session-model"]),
    ("foldline-pruning", &["foldline-session-model"]),
    (
        "foldline-branch-summary",
        &["foldline-session-model", "foldline-compaction-core"],
    ),
    (
        "foldline-compaction-eval",
        &[
            "foldline-session-model",
            "foldline-compaction-core",
            "foldline-pruning",
        ],
    ),
    ("foldline-session-store", &["foldline-session-model"]),
    ("foldline-llm-client", &["foldline-session-model"]),
    (
        "foldline-agent-session",
        &[
            "foldline-session-model",
            "foldline-compaction-core",
            "foldline-pruning",
            "foldline-branch-summary",
            "foldline-session-store",
            "foldline-llm-client",
        ],
    ),
];

/// One finding for each arrow that is not drawn, and for each pure crate and banned dependency, with the chain that leads there.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let metadata = metadata(root)?;
    let graph = Graph::new(&metadata)?;
    let mut findings = Vec::new();
    for package in metadata.workspace_packages() {
        let used = graph.uses(&package.id);
        findings.extend(
            undrawn(&package.name, &used)
                .map(|other| format!("{}: may not depend on {other}, see ARCHITECTURE.md", package.name)),
        );
        if PURE.contains(&package.name.as_str()) {
            findings.extend(
                graph
                    .chains_to_banned(&package.id)
                    .into_iter()
                    .map(|chain| format!("{}: a pure crate depends on {}", package.name, chain.join(" -> "))),
            );
        }
    }
    Ok(findings)
}

/// The crates of the workspace in `used` that the crate has no arrow to. Crates that are not in the
/// table, such as the binary, may use all.
fn undrawn<'a>(name: &str, used: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let arrows = ARROWS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to);
    let is_ours = |other: &&str| other.starts_with("foldline-");
    used.iter()
        .copied()
        .filter(is_ours)
        .filter(move |other| arrows.is_some_and(|arrows| !arrows.contains(other)))
}

/// The resolved dependencies for this machine's target. Without the network if everything is there.
fn metadata(root: &Path) -> anyhow::Result<Metadata> {
    let target = format!("--filter-platform={}", host_target()?);
    let command = |options: &[&str]| {
        MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .other_options(
                options
                    .iter()
                    .map(|option| (*option).to_owned())
                    .collect::<Vec<_>>(),
            )
            .exec()
    };
    command(&[&target, "--locked", "--offline"])
        // A fresh clone has not fetched the dependencies of every crate yet.
        .or_else(|_| command(&[&target, "--locked"]))
        .context("cargo metadata")
}

/// The target triple of this machine, as the compiler names it.
fn host_target() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc -vV")?;
    let text = String::from_utf8(output.stdout).context("rustc -vV")?;
    match text.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(host) => Ok(host.to_owned()),
        None => bail!("rustc -vV names no host"),
    }
}

/// Normal dependencies only: what tests and build scripts use is free.
struct Graph<'a> {
    names: BTreeMap<&'a PackageId, &'a str>,
    edges: BTreeMap<&'a PackageId, Vec<&'a PackageId>>,
}

impl<'a> Graph<'a> {
    fn new(metadata: &'a Metadata) -> anyhow::Result<Self> {
        let resolve = metadata
            .resolve
            .as_ref()
            .context("cargo metadata resolved nothing")?;
        let is_normal = |kinds: &[cargo_metadata::DepKindInfo]| {
            kinds.iter().any(|info| info.kind == DependencyKind::Normal)
        };
        let edges = resolve
            .nodes
            .iter()
            .map(|node| {
                let normal = node
                    .deps
                    .iter()
                    .filter(|dependency| is_normal(&dependency.dep_kinds));
                (&node.id, normal.map(|dependency| &dependency.pkg).collect())
            })
            .collect();
        let names = metadata
            .packages
            .iter()
            .map(|package| (&package.id, package.name.as_str()))
            .collect();
        Ok(Self { names, edges })
    }

    /// For each banned package that can be reached, the names on a shortest way to it.
    fn chains_to_banned(&self, from: &'a PackageId) -> Vec<Vec<&'a str>> {
        let mut came_from: BTreeMap<&PackageId, Option<&PackageId>> = BTreeMap::from([(from, None)]);
        let mut queue = VecDeque::from([from]);
        let mut chains = Vec::new();
        while let Some(id) = queue.pop_front() {
            if id != from && BANNED.contains(&self.name(id)) {
                let way = std::iter::successors(Some(id), |id| came_from.get(id).copied().flatten());
                let mut chain: Vec<&str> = way.map(|id| self.name(id)).collect();
                chain.pop();
                chain.reverse();
                chains.push(chain);
            }
            for next in self.edges.get(id).into_iter().flatten() {
                if !came_from.contains_key(next) {
                    came_from.insert(next, Some(id));
                    queue.push_back(next);
                }
            }
        }
        chains
    }

    /// The names of the direct dependencies.
    fn uses(&self, id: &PackageId) -> Vec<&'a str> {
        self.edges
            .get(id)
            .into_iter()
            .flatten()
            .map(|id| self.name(id))
            .collect()
    }

    fn name(&self, id: &PackageId) -> &'a str {
        self.names.get(id).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cargo_metadata::PackageId;

    use super::{Graph, check, undrawn};
    use crate::workspace;

    #[test]
    fn dependencies_follow_the_architecture() {
        let findings = check(&workspace::root()).unwrap();
        assert!(findings.is_empty(), "{findings:#?}");
    }

    #[test]
    fn only_drawn_arrows_are_allowed() {
        let used = ["serde", "foldline-session-model", "foldline-compaction-core"];
        assert_eq!(
            undrawn("foldline-llm-client", &used).collect::<Vec<_>>(),
            ["foldline-compaction-core"]
        );
        assert_eq!(undrawn("foldline-branch-summary", &used).count(), 0);
        assert_eq!(undrawn("foldline-cli", &used).count(), 0);
    }

    /// Guards the check itself: it must find what is two steps away, and name the way.
    #[test]
    fn a_banned_dependency_is_found_through_another_crate() {
        let ids = ["core", "hasher", "getrandom", "serde"].map(|name| PackageId {
            repr: name.to_owned(),
        });
        let [core, hasher, getrandom, serde] = &ids;
        let graph = Graph {
            names: ids.iter().map(|id| (id, id.repr.as_str())).collect(),
            edges: BTreeMap::from([(core, vec![serde, hasher]), (hasher, vec![getrandom, core])]),
        };
        assert_eq!(graph.chains_to_banned(core), [["hasher", "getrandom"]]);
        assert!(graph.chains_to_banned(serde).is_empty());
    }
}
