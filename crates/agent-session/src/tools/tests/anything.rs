//! Whatever a model writes, a tool answers, and nothing outside of the root is touched.

use std::collections::BTreeMap;
use std::time::SystemTime;

use proptest::prelude::*;

use super::*;

/// Paths that are there, that lead out, and that are none.
const PATHS: [&str; 18] = [
    "a.txt",
    "a.txt:1-1",
    "sub",
    "sub/new/file",
    "..",
    "../secret",
    "out",
    "out/x",
    "up/secret",
    "up/new",
    "sub/../../secret",
    "/etc/passwd",
    "/dev/zero",
    "/proc/self/mem",
    "artifact://9",
    "~/x",
    "\\ud800\\u0000",
    "",
];

/// Values that are no path.
const VALUES: [&str; 13] = [
    "null",
    "true",
    "-1",
    "1e300",
    "2.5",
    "1",
    "18446744073709551616",
    "[]",
    r#"{"text":1}"#,
    r#"[{"oldText":"a","newText":"b"}]"#,
    r#"[{"text":"a","status":"pending"},3]"#,
    r#""(""#,
    r#""a\nb""#,
];

fn values() -> impl Strategy<Value = String> {
    let paths = prop_oneof![
        3 => prop::sample::select(&PATHS[..]).prop_map(str::to_owned),
        1 => "[a./:0-9~-]{0,12}",
    ];
    prop_oneof![
        4 => paths.prop_map(|path| format!("\"{path}\"")),
        3 => prop::sample::select(&VALUES[..]).prop_map(str::to_owned),
        1 => Just(format!("{}{}", "[".repeat(500), "]".repeat(500))),
    ]
}

fn arguments() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "path",
        "file_path",
        "offset",
        "limit",
        "pattern",
        "glob",
        "literal",
        "ignoreCase",
        "context",
        "content",
        "edits",
        "oldText",
        "newText",
        "todos",
        "timeout",
        "unknown",
    ]);
    let members = prop::collection::vec((names, values()), 0..6);
    let object = members.prop_map(|members| {
        let members = members
            .into_iter()
            .map(|(name, value)| format!("\"{name}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    });
    prop_oneof![8 => object, 1 => values().prop_filter("must be JSON", |value| RawJson::parse(value.clone()).is_some())]
}

/// Everything beside the root, with content and time.
fn outside(yard: &Yard) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let entries = fs_err::read_dir(yard.outside()).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_name() != "root");
    let state = files.map(|entry| {
        let modified = entry.metadata().unwrap().modified().unwrap();
        let content = fs_err::read(entry.path()).unwrap();
        (
            entry.file_name().to_string_lossy().into_owned(),
            (content, modified),
        )
    });
    state.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_call_is_answered_inside_of_the_root(calls in prop::collection::vec(arguments(), 1..5)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let yard = Yard::new();
        yard.put("a.txt", "a\nb\n");
        yard.put("sub/b.txt", "a\n");
        std::os::unix::fs::symlink("../secret", yard.root.join("out")).unwrap();
        std::os::unix::fs::symlink("..", yard.root.join("up")).unwrap();
        let before = outside(&yard);
        for arguments in calls {
            for tool in ToolName::ALL {
                let output = runtime.block_on(yard.call(tool, &arguments));
                let text = told(&output);
                prop_assert!(!text.is_empty() && text != "The tool failed inside.", "{} {arguments}", tool.name());
                prop_assert!(!text.contains("hidden words") && !text.contains("root:x:0"), "{} {arguments}", tool.name());
            }
        }
        prop_assert_eq!(outside(&yard), before);
    }
}
