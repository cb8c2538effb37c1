use crate::support::Sandbox;

#[test]
fn every_fixture_is_readable_as_expected() {
    let sandbox = Sandbox::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    let expected: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("expect.json")).unwrap()).unwrap();
    for file in expected["files"].as_array().unwrap() {
        let name = file["file"].as_str().unwrap();
        sandbox.fixture(name);
        let run = sandbox.run(&["check", name, "--json"]);
        let damage = file["damage"].as_array().unwrap();
        let result: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
        if damage.iter().any(|d| d["kind"] == "no_header") {
            assert_eq!(result["error"]["kind"], "no_session", "{name}");
            assert_eq!(run.code(), 3);
            continue;
        }
        assert_eq!(result["entries"], file["readable"], "{name}");
        let kinds = |list: &serde_json::Value| -> Vec<(u64, String)> {
            let mut kinds: Vec<(u64, String)> = list
                .as_array()
                .unwrap()
                .iter()
                .map(|d| {
                    (
                        d["line"].as_u64().unwrap(),
                        d["kind"].as_str().unwrap().to_owned(),
                    )
                })
                .collect();
            kinds.sort();
            kinds
        };
        assert_eq!(kinds(&result["damaged"]), kinds(&file["damage"]), "{name}");
        assert_eq!(run.code(), if damage.is_empty() { 0 } else { 3 }, "{name}");
    }
}

/// Whatever is cut off, the complete lines before the cut are read.
#[test]
fn a_file_cut_anywhere_keeps_its_complete_lines() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("branching.jsonl");
    let whole = std::fs::read(sandbox.path(&name)).unwrap();
    let header = whole.iter().position(|b| *b == b'\n').unwrap();
    // A fixed stride that hits all places within lines over time.
    for cut in (1..whole.len()).step_by(whole.len() / 50 + 1) {
        sandbox.write("cut.jsonl", &whole[..cut]);
        let run = sandbox.run(&["check", "cut.jsonl", "--json"]);
        let result: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
        assert!(run.code() == 0 || run.code() == 3, "cut at {cut}: {}", run.all());
        if cut < header {
            assert_eq!(result["error"]["kind"], "no_session");
            continue;
        }
        let complete = whole[..cut].split(|b| *b == b'\n').count() - 1;
        let entries = usize::try_from(result["entries"].as_u64().unwrap()).unwrap();
        let last_is_whole = usize::from(whole[cut] == b'\n' && whole[cut - 1] != b'\n');
        assert_eq!(
            entries,
            (complete + last_is_whole).saturating_sub(1),
            "cut at {cut}"
        );
        let context = sandbox.run(&["context", "cut.jsonl"]);
        assert_eq!(context.code(), 0, "cut at {cut}: {}", context.all());
    }
}
