//! Properties of redaction for arbitrary text: secrets of a known shape are hidden, ordinary text and the structure of
//! JSON do not change, a second pass finds nothing, and the time is linear.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use redact::{MARK, RedactOptions, Redactor, redact};
use serde_json::{Map, Value, json};

/// The prefix and the pattern of the body of each kind of key. They are separate, so that this file contains no key.
const KEYS: [(&str, &str); 38] = [
    ("sk-", "[A-Za-z0-9]{48}"),
    ("sk-", "[0-9a-f]{32}"),
    ("sk-proj-", "[A-Za-z0-9_-]{120}T3BlbkFJ[A-Za-z0-9]{20}"),
    ("sk-ant-api03-", "[A-Za-z0-9_-]{93}AA"),
    ("sk-or-v1-", "[0-9a-f]{64}"),
    ("AIza", "[A-Za-z0-9_-]{35}"),
    ("AKIA", "[A-Z2-7]{16}"),
    ("ASIA", "[A-Z2-7]{16}"),
    ("ghp_", "[A-Za-z0-9]{36}"),
    ("gho_", "[A-Za-z0-9]{36}"),
    ("ghu_", "[A-Za-z0-9]{36}"),
    ("ghs_", "[A-Za-z0-9]{36}"),
    ("ghr_", "[A-Za-z0-9]{36}"),
    ("github_pat_", "[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    ("glpat-", "[A-Za-z0-9_-]{20}"),
    ("xoxa-", "[0-9]{12}-[A-Za-z0-9]{24}"),
    ("xoxb-", "[0-9]{12}-[0-9]{12}-[A-Za-z0-9]{24}"),
    ("xoxp-", "[0-9]{12}-[0-9]{12}-[0-9]{12}-[0-9a-f]{32}"),
    ("xoxr-", "[0-9]{12}-[A-Za-z0-9]{24}"),
    ("xoxs-", "[0-9]{12}-[A-Za-z0-9]{24}"),
    ("xapp-", "1-A[A-Z0-9]{10}-[0-9]{13}-[0-9a-f]{64}"),
    ("sk_live_", "[A-Za-z0-9]{24}"),
    ("sk_test_", "[A-Za-z0-9]{24}"),
    ("rk_live_", "[A-Za-z0-9]{24}"),
    ("whsec_", "[A-Za-z0-9+/]{32}"),
    ("hf_", "[A-Za-z]{34}"),
    ("npm_", "[A-Za-z0-9]{36}"),
    ("pypi-", "AgEIcHlwaS5vcmc[A-Za-z0-9_-]{150}"),
    ("SG.", "[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{42}[A-Za-z0-9]"),
    ("gsk_", "[A-Za-z0-9]{52}"),
    ("xai-", "[A-Za-z0-9]{80}"),
    ("pplx-", "[A-Za-z0-9]{48}"),
    ("r8_", "[A-Za-z0-9]{37}"),
    ("SK", "[0-9a-f]{32}"),
    ("dop_v1_", "[0-9a-f]{64}"),
    ("ya29.", "[A-Za-z0-9_-]{60}"),
    ("eyJ", "[A-Za-z0-9_-]{30}\\.eyJ[A-Za-z0-9_-]{60}\\.[A-Za-z0-9_-]{43}"),
    ("GOCSPX-", "[A-Za-z0-9_-]{28}"),
];

/// Fragments of secrets, quotes and addresses. The tests combine them at random.
#[rustfmt::skip]
const PIECES: [&str; 82] = [
    "password", "token", "api_key", "authorization", "cookie", "pwd", "--password", "secret", "Kind::", "self.", "=",
    ":", ": ", " = ", "=>", ":=", "\"", "'", "`", "\\", "\\\"", "\\\\", "\\n", "\n", " ", "  ", ",", ", ", ";", "&",
    "(", ")", "[", "]", "{", "}", "<", ">", "$", "${", "%", "%20", "://", "@", ".", "-", "_", "/", "#", "?", "x", "m",
    "n", "u00e9", "é", "🎉", "値", "user", "host.com", "a.bc", "1.2", "hunter2", "letmein", "next_name", "null",
    "env:A", "file:/a", "str", "Bearer ", "Basic ", "sk-", "eyJ", "AKIA", "SK", "ABCDEFGH12345678",
    "0123456789abcdef0123456789abcdef", "eyJhbGciOi", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
    "[redacted]", "[redacted", "redacted]",
];

/// Text directly before and after a key.
#[rustfmt::skip]
const OPENINGS: [&str; 17] = [
    " ", "\n", "\"", "'", "`", "(", "=", ":", "/", "?k=", "%3D", "[", "<", ",", "_", "-", "\u{1b}[1m",
];
#[rustfmt::skip]
const CLOSINGS: [&str; 15] = ["", " ", "\n", "\"", "'", "`", ")", "&x=1", "/", "]", ">", ",", ".", ";", "@host"];

#[rustfmt::skip]
const WORDS: [&str; 27] = [
    "the", "password", "is", "wrong", "token", "secret", "a", "unit", "of", "text", "bearers", "risk-free",
    "task-force", "disk", "authorization", "failed", "api", "key", "1,024", "42", "3.14", "50%", "e.g.", "…",
    "привет", "日本語", "🎉",
];

const LINES: [&str; 40] = [
    "let token = self.next_token()?;",
    "pub fn password(&self) -> Option<&str> {",
    "    token: Token![where],",
    "    pub secret: String,",
    "    pub max_tokens: u32,",
    "let secret = config.secret.as_deref().unwrap_or_default();",
    "if password == other.password { return Err(Error::Password) }",
    "Kind::Token => \"token\",",
    "#[arg(long, env = \"ADJUTANT_TOKEN\")]",
    "assert_eq!(token.len(), 3); // token: the first one",
    "let url = format!(\"postgres://{user}:{password}@{host}/{name}\");",
    "println!(\"{token:?} {secret:#?}\");",
    "def login(self, password: str, token: Optional[str] = None) -> bool:",
    "    self.token = token",
    "    password = os.environ[\"DB_PASSWORD\"]",
    "    api_key=os.getenv(\"OPENAI_API_KEY\"),",
    "    client = Client(api_key=api_key, token=self.token)",
    "    headers = {\"Authorization\": f\"Bearer {token}\"}",
    "    print(\"Token: \" + repr(token))",
    "@app.route(\"/login\")",
    "const token = await getToken(request);",
    "export TOKEN=$(cat /run/secrets/token)",
    "curl -H \"Authorization: Bearer $TOKEN\" https://api.example.com/v1?page=2",
    "docker run -e PASSWORD=${PASSWORD} image@sha256:0123456789abcdef",
    "git clone git@github.com:owner/repo.git && ssh://git@github.com/owner/repo",
    "npm install left-pad@1.3.0 @types/node@20.1.0-beta.2",
    "api_key = \"env:OPENAI_API_KEY\"",
    "{\"usage\":{\"input_tokens\":12,\"output_tokens\":5},\"max_tokens\":\"4096\",\"stop_token\":\"</s>\"}",
    "{\"password\":null,\"token\":17,\"secret\":true,\"next_page_token\":\"abc123\"}",
    "password: <your password>, token: ***, secret: ${SECRET}",
    "error: unexpected token: identifier",
    "use --token to set the token, or --password for the password",
    "/home/user/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/lib.rs:12:5",
    "C:\\Users\\name\\token.txt",
    "getty@tty1.service: Succeeded. logo@2x.png a@b.T foo@bar",
    "http://localhost:8080/a@b?x=1#y https://example.com:443/",
    "-----BEGIN CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----",
    "PWD=/home/user OLDPWD=/",
    "sk-toggleable__content-arrow xai-based hf_model_name npm_config_registry",
];

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn key() -> impl Strategy<Value = String> {
    select(&KEYS[..]).prop_flat_map(|(prefix, rest)| rest.prop_map(move |rest| format!("{prefix}{rest}")))
}

fn ordinary() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => select(&WORDS[..]).prop_map(str::to_owned),
        1 => "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}",
        1 => "[0-9a-f]{40}",
        1 => "20[0-9]{2}-0[1-9]-[12][0-9]T[01][0-9]:[0-5][0-9]:[0-5][0-9]Z",
        1 => "(/[a-z_]{1,9}){2,5}\\.(rs|py|toml)",
        1 => "[\\p{Greek}\\p{Cyrillic}\\p{Han}]{1,12}",
    ];
    let sentence = vec(word, 1..12).prop_map(|words| words.join(" "));
    let line = prop_oneof![sentence, select(&LINES[..]).prop_map(str::to_owned)];
    vec(line, 1..6).prop_map(|lines| lines.join("\n"))
}

fn nonsense() -> impl Strategy<Value = String> {
    vec(prop_oneof![9 => select(&PIECES[..]).prop_map(str::to_owned), 1 => any::<String>()], 0..24)
        .prop_map(|pieces| pieces.concat())
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => nonsense().prop_map(Value::from),
        1 => Just(json!(null)),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
    ];
    let name = select(&["a", "the password", "token", "API_KEY", "max_tokens", "--secret", "password:", "token="][..]);
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name.clone(), inner), 0..4).prop_map(|fields| Value::from(
                fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>()
            )),
        ]
    })
}

/// Returns the value with every string replaced by an empty one.
fn structure(value: &Value) -> Value {
    match value {
        Value::String(_) => json!(""),
        Value::Array(items) => items.iter().map(structure).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), structure(value))).collect(),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn keys_are_hidden(
        key in key(),
        before in ordinary(),
        after in ordinary(),
        open in select(&OPENINGS[..]),
        close in select(&CLOSINGS[..]),
    ) {
        // SUP-9
        let line = format!("{before}{open}{key}{close} {after}");
        let quoted = json!({ "a": { "b": [line.clone()] } }).to_string();
        let twice = json!({ "output": quoted.clone() }).to_string();
        let shell = format!("export X={key} && curl -u {key}: 'https://{key}@host/{key}?k={key}' # {after}");
        for text in [line, quoted, twice, shell] {
            let redacted = redact(&text);
            prop_assert!(!redacted.contains(&key), "{key} in {redacted}");
        }
    }

    #[test]
    fn known_values_are_hidden(value in ".{6,40}", before in nonsense(), after in nonsense()) {
        prop_assume!(value.trim().len() >= 6 && !MARK.contains(value.trim()) && !value.contains(MARK));
        let redactor = Redactor::new(RedactOptions::default()).with_known([value.clone()]);
        let text = format!("{before} {value} {after}");
        prop_assert!(!redactor.text(&text).contains(value.trim()));
        let mut document = json!({ "a": [text] });
        let redacted = redactor.text(&document.to_string()).into_owned();
        prop_assert!(!serde_json::from_str::<Value>(&redacted).unwrap()["a"][0].as_str().unwrap().contains(value.trim()));
        redactor.json(&mut document);
        prop_assert!(!document["a"][0].as_str().unwrap().contains(value.trim()));
    }

    #[test]
    fn ordinary_text_does_not_change(text in ordinary()) {
        // SUP-9
        prop_assert!(matches!(redact(&text), Cow::Borrowed(same) if same == text), "{}", redact(&text));
        let line = json!({ "message": text }).to_string();
        prop_assert_eq!(redact(&line), line.as_str());
    }

    #[test]
    fn the_structure_of_json_does_not_change(document in document()) {
        // SUP-9
        for text in [document.to_string(), serde_json::to_string_pretty(&document).unwrap()] {
            let redacted: Value = serde_json::from_str(&redact(&text)).unwrap();
            prop_assert_eq!(structure(&redacted), structure(&document));
            let quoted = redact(&json!({ "output": text }).to_string()).into_owned();
            let inner: Value = serde_json::from_str(&quoted).unwrap();
            let inner: Value = serde_json::from_str(inner["output"].as_str().unwrap()).unwrap();
            prop_assert_eq!(structure(&inner), structure(&document));
        }
        let mut redacted = document.clone();
        Redactor::new(RedactOptions::default()).json(&mut redacted);
        prop_assert_eq!(structure(&redacted), structure(&document));
    }

    #[test]
    fn a_second_pass_finds_nothing(text in nonsense(), key in key(), document in document()) {
        // SUP-9
        for text in [format!("{text}{key}{text}"), document.to_string(), text] {
            let once = redact(&text);
            prop_assert_eq!(redact(&once), once.as_ref(), "{}", text);
        }
        let redactor = Redactor::new(RedactOptions::default());
        let mut once = document;
        redactor.json(&mut once);
        let mut twice = once.clone();
        redactor.json(&mut twice);
        prop_assert_eq!(twice, once);
    }
}

#[test]
fn redaction_takes_linear_time() {
    // SUP-9
    let plain = ["a", "@@@@", "eyJ", "://", "password=", "-----BEGIN PRIVATE KEY-----", "\"", "a.a.a.a@"];
    assert_linear(&plain, 1_000_000);
}

#[test]
fn adversarial_text_takes_linear_time() {
    // SUP-9
    #[rustfmt::skip]
    let adversarial = [
        "-eyJ", "eyJ.", "password= ", "password='", "'password: \"", "`token:'", "-----BEGIN ", "\\", "a@a.", "@a.bc:",
        "a@a.a.a.a.a.a.a.a.a.a.a.a", "sk-", "-sk-a", "ghs_.", "token=<", "token:file:", "\"token\":\"<\\\"", "[redacted]",
        "token: ", "token: a\n", "Bearer ", "Bearer a", "--token ", "password:\\\\", "cookie:", "[1;1;1;1;1m", "😀@",
    ];
    assert_linear(&adversarial, if cfg!(debug_assertions) { 50_000 } else { 1_000_000 });
}

/// Asserts that ten times the text takes at most thirty times as long. The factor allows for a busy machine. Quadratic
/// time would be a factor of a hundred.
fn assert_linear(pieces: &[&str], size: usize) {
    for piece in pieces {
        let time = |size: usize| {
            let text = piece.repeat(size / piece.len());
            let start = Instant::now();
            std::hint::black_box(redact(&text));
            start.elapsed()
        };
        // Below a few milliseconds the result depends on the cache.
        let small = time(size).min(time(size)).max(Duration::from_millis(5));
        let linear = (0..3).any(|_| time(size * 10) < small * 30);
        assert!(linear, "{piece:?} takes more than linear time: {small:?} for {size} bytes");
    }
}
