use super::*;

/// One value of each shape, built here so that no scanner takes this file for a leak.
fn corpus() -> Vec<(&'static str, String)> {
    let hex = |n: usize| "0123456789abcdef".chars().cycle().take(n).collect::<String>();
    let mixed = |n: usize| "q8Zr4TnW0xLp2VbK7sYd".chars().cycle().take(n).collect::<String>();
    let upper = |n: usize| "QX7RT2LPZ9WV4KND".chars().cycle().take(n).collect::<String>();
    let join = |a: &str, b: String| format!("{a}{b}");
    vec![
        ("anthropic-key", join("sk-ant-", mixed(40))),
        ("openrouter-key", join("sk-or-v1-", hex(40))),
        ("openai-key", join("sk-proj-", mixed(40))),
        ("google-api-key", join("AIza", mixed(35))),
        ("groq-key", join("gsk_", mixed(40))),
        ("xai-key", join("xai-", mixed(40))),
        ("perplexity-key", join("pplx-", mixed(40))),
        ("hugging-face-token", join("hf_", mixed(34))),
        ("replicate-token", join("r8_", mixed(37))),
        ("github-token", join("ghp_", mixed(36))),
        ("github-token", join("github_pat_", mixed(50))),
        ("gitlab-token", join("glpat-", mixed(20))),
        ("bitbucket-token", join("ATBB", mixed(28))),
        ("atlassian-token", join("ATATT", mixed(40))),
        ("npm-token", join("npm_", mixed(36))),
        ("pypi-token", join("pypi-", mixed(60))),
        ("rubygems-key", join("rubygems_", hex(48))),
        ("crates-token", join("cio", mixed(32))),
        ("docker-token", join("dckr_pat_", mixed(27))),
        ("aws-access-key-id", join("AKIA", upper(16))),
        ("google-oauth-token", join("ya29.", mixed(40))),
        ("google-client-secret", join("GOCSPX-", mixed(28))),
        ("digitalocean-token", join("dop_v1_", hex(64))),
        ("heroku-key", join("HRKU-", mixed(36))),
        ("fly-token", join("fo1_", mixed(43))),
        ("vault-token", join("hvs.", mixed(40))),
        ("terraform-token", format!("{}.atlasv1.{}", mixed(14), mixed(60))),
        ("databricks-token", join("dapi", hex(32))),
        ("pulumi-token", join("pul-", hex(40))),
        ("doppler-token", join("dp.pt.", mixed(43))),
        ("planetscale-token", join("pscale_tkn_", mixed(32))),
        ("supabase-key", join("sbp_", hex(40))),
        ("age-key", join("AGE-SECRET-KEY-1", upper(58))),
        ("stripe-key", join("sk_live_", mixed(24))),
        ("webhook-secret", join("whsec_", mixed(32))),
        ("square-token", join("sq0atp-", mixed(22))),
        ("shopify-token", join("shpat_", hex(32))),
        ("slack-token", join("xoxb-", mixed(40))),
        ("slack-token", join("xapp-1-", mixed(40))),
        ("telegram-token", format!("123456789:AA{}", mixed(33))),
        ("sendgrid-key", format!("SG.{}.{}", mixed(22), mixed(43))),
        ("mailgun-key", join("key-", hex(32))),
        ("mailchimp-key", format!("{}-us12", hex(32))),
        ("twilio-key", join("SK", hex(32))),
        ("linear-key", join("lin_api_", mixed(40))),
        ("notion-token", join("ntn_", mixed(46))),
        ("figma-token", join("figd_", mixed(40))),
        ("postman-key", format!("PMAK-{}-{}", hex(24), hex(34))),
        ("newrelic-key", join("NRAK-", upper(27))),
        ("grafana-token", join("glsa_", mixed(41))),
        ("sentry-token", join("sntrys_", mixed(60))),
        ("airtable-token", format!("pat{}.{}", mixed(14), hex(64))),
        ("jwt", format!("eyJ{}.eyJ{}.{}", mixed(20), mixed(40), mixed(40))),
    ]
}

#[test]
fn fb_113_every_shape_is_found_alone_and_in_a_sentence() {
    let kinds: std::collections::BTreeSet<&str> = RULES.iter().map(|rule| rule.kind).collect();
    assert!(kinds.len() >= 40, "{}", kinds.len());
    for (kind, secret) in corpus() {
        for text in [
            secret.clone(),
            format!("the value is {secret}, and more"),
            format!("a\nKEY={secret}\nb"),
        ] {
            let redacted = redact(&text);
            assert!(!redacted.contains(&secret), "{kind}: {redacted}");
            assert!(redacted.contains("[REDACTED:"), "{kind}: {redacted}");
        }
        assert_eq!(redact(&secret), format!("[REDACTED:{kind}]"));
    }
}

#[test]
fn values_go_and_names_stay() {
    let value = "q8Zr4TnW0xLp2VbK7sYdq8Zr4TnW0xLp2VbK7sYd";
    let table = [
        (
            format!("AWS_SECRET_ACCESS_KEY={value}"),
            "AWS_SECRET_ACCESS_KEY=[REDACTED:aws-secret-key]",
        ),
        (
            format!("Authorization: Bearer {value}"),
            "Authorization: Bearer [REDACTED:authorization]",
        ),
        (
            format!("-H 'x: bearer {value}'"),
            "-H 'x: bearer [REDACTED:bearer-token]'",
        ),
        (
            "https://user:pw@host/x".to_owned(),
            "https://user:[REDACTED:url-password]@host/x",
        ),
        (
            format!("{{\"apiKey\":\"{value}\"}}"),
            "{\"apiKey\":\"[REDACTED:secret]\"}",
        ),
        (
            "DB_PASSWORD=correcthorse1".to_owned(),
            "DB_PASSWORD=[REDACTED:password]",
        ),
        (
            "password: 'correct horse'".to_owned(),
            "password: '[REDACTED:password]'",
        ),
        (
            format!("DefaultEndpoints;AccountKey={value};x"),
            "DefaultEndpoints;AccountKey=[REDACTED:azure-storage-key];x",
        ),
        (
            "Cookie: session=abcdef; theme=dark".to_owned(),
            "Cookie: [REDACTED:cookie]",
        ),
        (
            format!("a\n-----BEGIN RSA PRIVATE KEY-----\n{value}\n{value}\n-----END RSA PRIVATE KEY-----\nb"),
            "a\n[REDACTED:private-key]\nb",
        ),
        (
            format!("-----BEGIN PRIVATE KEY-----\n{value}"),
            "[REDACTED:private-key]",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(redact(&text), expected, "{text}");
        assert_eq!(redact(expected), expected, "redacted text stays");
    }
}

#[test]
fn ordinary_code_and_output_are_untouched() {
    for text in [
        "let token = self.next_token()?;",
        "const API_KEY = process.env.API_KEY_OF_THE_SERVICE;",
        "password: string;",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "see https://example.com/a/b?c=d#e and http://127.0.0.1:8080/x",
        "sk-learn and risk-averse, task-based",
        "max_tokens: 1024, total_tokens=173964",
        "export function tokenizeTheWholeTranscript(input: string)",
        "the secret: never give up on unreadable documentation",
        "",
    ] {
        assert!(
            matches!(redact(text), Cow::Borrowed(_)),
            "{text} -> {}",
            redact(text)
        );
    }
}

#[test]
fn rules_of_a_caller_are_checked() {
    let rule = Rule {
        kind: "ticket",
        anchors: &["TICKET-"],
        pattern: r"\bTICKET-(\d+)",
        check: rules::Check::Shape,
    };
    let redactor = Redactor::new(&[rule]).unwrap();
    assert_eq!(
        redactor.redact("see ticket-1 and TICKET-22"),
        "see ticket-1 and TICKET-[REDACTED:ticket]"
    );
    let broken = Rule { pattern: "(", ..rule };
    assert!(matches!(Redactor::new(&[broken]), Err(RuleError::Pattern { .. })));
}
