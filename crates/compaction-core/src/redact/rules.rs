//! The shapes of secrets, as data.

pub use super::entropy::Check;

/// One shape of a secret.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// What it is; stands in the replacement.
    pub kind: &'static str,
    /// Texts of which one is on the line where a match begins. Compared without case.
    pub anchors: &'static [&'static str],
    /// The shape. Group 1 is the secret, if the pattern has groups; the rest stays.
    pub pattern: &'static str,
    /// A further look at the secret.
    pub check: Check,
}

const fn shape(kind: &'static str, anchors: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule {
        kind,
        anchors,
        pattern,
        check: Check::Shape,
    }
}

const fn checked(
    kind: &'static str,
    anchors: &'static [&'static str],
    pattern: &'static str,
    check: Check,
) -> Rule {
    Rule {
        kind,
        anchors,
        pattern,
        check,
    }
}

/// The rules that come with this crate. The order does not matter.
pub const RULES: &[Rule] = &[
    // Model providers.
    shape("anthropic-key", &["sk-ant-"], r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    shape("openrouter-key", &["sk-or-"], r"\bsk-or-(?:v1-)?[A-Za-z0-9]{20,}"),
    shape(
        "openai-key",
        &["sk-"],
        r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}",
    ),
    shape("google-api-key", &["AIza"], r"\bAIza[A-Za-z0-9_-]{30,}"),
    shape("groq-key", &["gsk_"], r"\bgsk_[A-Za-z0-9]{20,}"),
    shape("xai-key", &["xai-"], r"\bxai-[A-Za-z0-9]{20,}"),
    shape("perplexity-key", &["pplx-"], r"\bpplx-[A-Za-z0-9]{20,}"),
    shape("hugging-face-token", &["hf_"], r"\bhf_[A-Za-z0-9]{20,}"),
    shape("replicate-token", &["r8_"], r"\br8_[A-Za-z0-9]{20,}"),
    // Code hosting and package registries.
    shape(
        "github-token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    ),
    shape(
        "github-token",
        &["github_pat_"],
        r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    ),
    shape(
        "gitlab-token",
        &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "gloas-"],
        r"\bgl(?:pat|dt|rt|cbt|ptt|oas)-[A-Za-z0-9_.-]{16,}",
    ),
    shape(
        "bitbucket-token",
        &["ATBB", "ATCTT"],
        r"\b(?:ATBB|ATCTT)[A-Za-z0-9_=-]{24,}",
    ),
    shape("atlassian-token", &["ATATT"], r"\bATATT[A-Za-z0-9_=-]{24,}"),
    shape("npm-token", &["npm_"], r"\bnpm_[A-Za-z0-9]{30,}"),
    shape("pypi-token", &["pypi-"], r"\bpypi-[A-Za-z0-9_-]{30,}"),
    shape("rubygems-key", &["rubygems_"], r"\brubygems_[a-f0-9]{40,}"),
    shape("crates-token", &["cio"], r"\bcio[A-Za-z0-9]{32}\b"),
    shape(
        "docker-token",
        &["dckr_pat_", "dckr_oat_"],
        r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
    ),
    // Clouds and infrastructure.
    shape(
        "aws-access-key-id",
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    ),
    shape(
        "aws-secret-key",
        &["aws_secret", "secretaccesskey", "secret_access_key"],
        r#"(?i)\b(?:aws_?)?secret_?(?:access_?)?key\b["']?\s*[:=]\s*["']?([A-Za-z0-9/+=]{40})"#,
    ),
    shape(
        "aws-session-token",
        &["session_token", "sessiontoken"],
        r#"(?i)\b(?:aws_?)?session_?token\b["']?\s*[:=]\s*["']?([A-Za-z0-9/+=]{40,})"#,
    ),
    shape("google-oauth-token", &["ya29."], r"\bya29\.[A-Za-z0-9_-]{20,}"),
    shape(
        "google-client-secret",
        &["GOCSPX-"],
        r"\bGOCSPX-[A-Za-z0-9_-]{20,}",
    ),
    shape(
        "azure-storage-key",
        &["AccountKey="],
        r"(?i)AccountKey=([A-Za-z0-9/+=]{40,})",
    ),
    shape("azure-signature", &["sig="], r"[?&]sig=([A-Za-z0-9%/+=]{30,})"),
    shape(
        "digitalocean-token",
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        r"\bdo[opr]_v1_[a-f0-9]{40,}",
    ),
    shape("heroku-key", &["HRKU-"], r"\bHRKU-[A-Za-z0-9_-]{20,}"),
    shape(
        "fly-token",
        &["fo1_", "fm1_", "fm2_"],
        r"\bf(?:o1|m1|m2)_[A-Za-z0-9_/+=-]{30,}",
    ),
    shape(
        "vault-token",
        &["hvs.", "hvb.", "hvr."],
        r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}",
    ),
    shape(
        "terraform-token",
        &[".atlasv1."],
        r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}",
    ),
    shape("databricks-token", &["dapi"], r"\bdapi[a-f0-9]{32}\b"),
    shape("pulumi-token", &["pul-"], r"\bpul-[a-f0-9]{40}\b"),
    shape(
        "doppler-token",
        &["dp."],
        r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,}",
    ),
    shape(
        "planetscale-token",
        &["pscale_"],
        r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}",
    ),
    shape(
        "supabase-key",
        &["sbp_", "sb_secret_"],
        r"\b(?:sbp|sb_secret)_[A-Za-z0-9_-]{20,}",
    ),
    shape("age-key", &["AGE-SECRET-KEY-1"], r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    // Payments, mail, chat.
    shape(
        "stripe-key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    ),
    shape("webhook-secret", &["whsec_"], r"\bwhsec_[A-Za-z0-9/+=]{20,}"),
    shape(
        "square-token",
        &["sq0atp-", "sq0csp-", "EAAA"],
        r"\b(?:sq0(?:atp|csp)-[A-Za-z0-9_-]{20,}|EAAA[A-Za-z0-9_-]{50,})",
    ),
    shape(
        "shopify-token",
        &["shpat_", "shpss_", "shpca_", "shppa_"],
        r"\bshp(?:at|ss|ca|pa)_[a-fA-F0-9]{30,}",
    ),
    shape(
        "slack-token",
        &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe"],
        r"\bxox[abeprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}",
    ),
    shape("slack-token", &["xapp-"], r"\bxapp-[0-9]-[A-Za-z0-9-]{20,}"),
    shape(
        "slack-webhook",
        &["hooks.slack.com"],
        r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{20,})",
    ),
    shape(
        "discord-webhook",
        &["/api/webhooks/"],
        r"/api/webhooks/\d+/([A-Za-z0-9_-]{40,})",
    ),
    shape(
        "discord-token",
        &["discord", "bot "],
        r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    ),
    shape("telegram-token", &[":AA"], r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,}"),
    shape(
        "sendgrid-key",
        &["SG."],
        r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    ),
    shape("mailgun-key", &["key-"], r"\bkey-[a-f0-9]{32}\b"),
    shape("mailchimp-key", &["-us"], r"\b[a-f0-9]{32}-us\d{1,2}\b"),
    shape("twilio-key", &["SK"], r"\bSK[a-f0-9]{32}\b"),
    // Tools.
    shape(
        "linear-key",
        &["lin_api_", "lin_oauth_"],
        r"\blin_(?:api|oauth)_[A-Za-z0-9]{30,}",
    ),
    shape("notion-token", &["ntn_"], r"\bntn_[A-Za-z0-9]{40,}"),
    shape("figma-token", &["figd_"], r"\bfigd_[A-Za-z0-9_-]{20,}"),
    shape(
        "postman-key",
        &["PMAK-"],
        r"\bPMAK-[A-Fa-f0-9]{24}-[A-Fa-f0-9]{34}",
    ),
    shape(
        "newrelic-key",
        &["NRAK-", "NRII-"],
        r"\bNR(?:AK|II)-[A-Za-z0-9]{20,}",
    ),
    shape(
        "grafana-token",
        &["glsa_", "glc_"],
        r"\bgl(?:sa|c)_[A-Za-z0-9_=+/]{30,}",
    ),
    shape(
        "sentry-token",
        &["sntrys_", "sntryu_"],
        r"\bsntry[su]_[A-Za-z0-9_=+/-]{30,}",
    ),
    shape(
        "airtable-token",
        &["pat"],
        r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b",
    ),
    // Forms that any of them may come in.
    shape(
        "private-key",
        &["-----BEGIN"],
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[\s\S]*)",
    ),
    shape(
        "jwt",
        &["eyJ"],
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    checked(
        "authorization",
        &["authorization"],
        r#"(?i)\bauthorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token|apikey)\s+)?([A-Za-z0-9._~+/=:-]{8,})"#,
        Check::Literal,
    ),
    checked(
        "bearer-token",
        &["bearer "],
        r"(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{20,})",
        Check::Random,
    ),
    checked(
        "url-password",
        &["://"],
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'\x22<>]*:([^\s/@'\x22<>]{1,256})@",
        Check::Literal,
    ),
    checked(
        "cookie",
        &["cookie:"],
        r"(?i)\b(?:set-)?cookie:\s*([^\r\n]{8,})",
        Check::Literal,
    ),
    checked(
        "password",
        &["password", "passwd", "passphrase", "pwd"],
        r#"(?i)\b[A-Z0-9_.-]*(?:password|passwd|passphrase|pwd)["']?\s*(?:=|:)\s*["']([^"'\r\n]{6,128})["']"#,
        Check::Literal,
    ),
    checked(
        "password",
        &["password", "passwd", "passphrase"],
        r"(?m)^\s*(?:export\s+)?[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE)=([^\s'\x22#$][^\s#]{5,127})",
        Check::Literal,
    ),
    checked(
        "secret",
        &[
            "secret",
            "token",
            "api_key",
            "apikey",
            "api-key",
            "access_key",
            "accesskey",
            "private_key",
            "credential",
        ],
        r#"(?i)\b[A-Z0-9_.-]*(?:secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[A-Z0-9_]*["']?\s*(?:=|:)\s*["']?([A-Za-z0-9_./+=~-]{16,})"#,
        Check::Random,
    ),
];
